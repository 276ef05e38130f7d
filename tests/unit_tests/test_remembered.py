"""What is made of a tool is made once, is never another tool's, and is kept for as long as it is in use."""

import asyncio
import copy
import gc
import json
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from langchain.agents import create_agent
from langchain_core.embeddings import Embeddings
from langchain_core.tools import StructuredTool, Tool
from pydantic import BaseModel, Field

from langchain_tool_selection import (
    EmbeddingRanker,
    HybridRanker,
    LexicalRanker,
    Query,
    SchemaPruning,
    ToolDocument,
    ToolHints,
    ToolIndex,
    ToolRegistry,
    ToolSelectionMiddleware,
)
from langchain_tool_selection.testing import ScriptedChatModel

SCHEMA = {
    "type": "object",
    "properties": {
        f"p{i}": {
            "type": "string",
            "description": f"The parameter number {i}, in words.",
            "enum": [f"v{j}" for j in range(5)],
        }
        for i in range(12)
    },
}


def tool_of(name, description="Do a thing.", schema=SCHEMA, **fields):
    return StructuredTool(
        name=name, description=description, args_schema=schema, func=lambda **_: "", **fields
    )


def made_anew(count):
    text = json.dumps(SCHEMA)
    return [tool_of(f"tool_{i}", f"Do thing {i}.", json.loads(text)) for i in range(count)]


def sent(tools, **settings):
    """Return the tool dicts of one model call of an agent with the middleware."""
    model = ScriptedChatModel(script=["Done."])
    agent = create_agent(model, tools, middleware=[ToolSelectionMiddleware(**settings)])
    agent.invoke({"messages": [{"role": "user", "content": "do the thing"}]})
    return model.calls[0].schemas


# -- found again


def test_equal_tools_that_are_made_anew_have_the_same_documents_and_catalogue():
    index = ToolIndex()
    first = index.sync(made_anew(20))
    gc.collect()
    again = index.sync(made_anew(20))
    assert again is first
    assert index.document_of(made_anew(1)[0]) == first.documents[0]


def test_a_changed_attribute_is_seen():
    index = ToolIndex()
    tool = tool_of("t", extras={"tags": ["one"]})
    index.sync([tool])
    for change in (
        lambda: setattr(tool, "description", "Weather."),
        lambda: setattr(tool, "args_schema", {"type": "object", "properties": {"city": {"type": "string"}}}),
        lambda: setattr(tool, "tags", ["rain"]),
        lambda: tool.extras.update(tags=["two"]),
        lambda: setattr(tool, "metadata", {"domain": "sky"}),
    ):
        before = index.document_of(tool)
        change()
        assert index.document_of(tool) != before
        assert index.document_of(tool) == ToolIndex().document_of(tool)


def test_an_exchanged_schema_is_sent_also_if_only_its_order_or_its_types_are_other():
    one = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"const": 1}}}
    two = {"type": "object", "properties": {"b": {"const": True}, "a": {"type": "string"}}}
    tool = tool_of("t", schema=one)
    assert json.dumps(sent([tool], prune=SchemaPruning())[0]).index('"a"') > 0
    tool.args_schema = two
    (schema,) = sent([tool], prune=SchemaPruning())
    properties = schema["function"]["parameters"]["properties"]
    assert list(properties) == ["b", "a"]
    assert properties["b"]["const"] is True


def test_a_schema_that_changes_in_place_before_it_is_first_sent_is_not_sent_for_its_twin():
    one, two = made_anew(2)
    two.name, two.description = one.name, one.description
    index = ToolIndex()
    index.sync([one])
    index.sync([two])
    one.args_schema["properties"]["p0"]["description"] = "Another text."
    assert "Another text." in json.dumps(sent([one], prune=SchemaPruning(keep_all_up_to=20)))
    assert "Another text." not in json.dumps(sent([two], prune=SchemaPruning(keep_all_up_to=20)))


def test_a_tool_never_gets_the_definition_of_one_that_had_its_address():
    model = ScriptedChatModel(script=["Done."] * 60)
    agent_middleware = ToolSelectionMiddleware(prune=SchemaPruning())
    for number in range(60):
        metadata = {"type": "custom_tool", "format": {"n": number}} if number % 2 else {"note": number}
        tool = Tool(name="t", description="d", func=str, metadata=metadata)
        agent = create_agent(model, [tool], middleware=[agent_middleware])
        agent.invoke({"messages": [{"role": "user", "content": "x"}]})
        schema = model.calls[-1].schemas[0]
        assert (schema["type"] == "custom") == bool(number % 2)
        if number % 2:
            assert schema["format"] == {"n": number}
        del tool, agent


def test_tools_of_two_classes_that_say_the_same_are_two_tools():
    class Numbers(Tool):
        @property
        def tool_call_schema(self):
            return {"type": "object", "properties": {"number": {"type": "integer"}}}

    tools = [Tool(name="t", description="d", func=str), Numbers(name="t", description="d", func=str)]
    first, second = (sent([tool], prune=SchemaPruning())[0]["function"]["parameters"] for tool in tools)
    assert first["properties"] != second["properties"]


def test_a_schema_that_is_no_json_is_told_by_identity():
    tool = tool_of("t", schema={"type": "object", "properties": {"a": {"default": object()}}})
    index = ToolIndex()
    assert index.sync([tool]) is index.sync([tool.model_copy()])


# -- made once


class Arguments(BaseModel):
    city: str = Field(description="A city.")


def test_a_definition_is_made_once_for_all_threads_and_middlewares():
    read = []

    class Counted(StructuredTool):
        @property
        def tool_call_schema(self):
            if self.args_schema is Arguments:  # it is the tool itself, and not the copy that is sent
                read.append(self.name)
                time.sleep(0.02)
            return super().tool_call_schema

    def agents(prefix, count):
        tools = [
            Counted(name=f"{prefix}{i}", description="d", args_schema=Arguments, func=lambda city: "")
            for i in range(3)
        ]
        for _ in range(count):
            model = ScriptedChatModel(script=["Done."])
            middleware = ToolSelectionMiddleware(prune=SchemaPruning(), token_budget=10_000, top_k=2)
            yield create_agent(model, tools, middleware=[middleware])

    (alone,), together = list(agents("a", 1)), list(agents("b", 4))
    read.clear()
    alone.invoke({"messages": [{"role": "user", "content": "d"}]})
    once = len(read)
    read.clear()
    barrier = threading.Barrier(4)

    def run(agent):
        barrier.wait()
        agent.invoke({"messages": [{"role": "user", "content": "d"}]})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, together))
    assert once
    assert len(read) == once


class Service(Embeddings):
    """Embeds a text by its length, and notes the texts. A gate keeps it waiting until it is opened."""

    def __init__(self, failures=0):
        self.texts, self.calls, self.failures = [], 0, failures
        self.gate = threading.Event()
        self.asked = threading.Event()

    def embed_documents(self, texts):
        self.calls += 1
        self.texts += texts
        self.asked.set()
        assert self.gate.wait(20)
        if self.failures:
            self.failures -= 1
            raise ConnectionError("no service")
        return [[1.0, float(len(text))] for text in texts]

    def embed_query(self, text):
        return [1.0, 1.0]

    async def aembed_documents(self, texts):
        self.calls += 1
        self.texts += texts
        self.asked.set()
        while not self.gate.is_set():
            await asyncio.sleep(0.005)
        return [[1.0, float(len(text))] for text in texts]

    async def aembed_query(self, text):
        return self.embed_query(text)


DOCUMENTS = tuple(ToolDocument(f"tool_{i}", f"Do thing {i}.") for i in range(50))
THING = Query.of("thing")


def searches_at_once(service, ranker, catalogues):
    """Search in threads and in event loops, all of them before the first vector is there."""

    def in_thread(documents):
        return len(ranker.rank(THING, documents))

    def in_loop(documents):
        async def twice():
            both = await asyncio.gather(ranker.arank(THING, documents), ranker.arank(THING, documents))
            return len(both[0])

        return asyncio.run(twice())

    with ThreadPoolExecutor(2 * len(catalogues)) as pool:
        futures = [pool.submit(how, documents) for documents in catalogues for how in (in_thread, in_loop)]
        assert service.asked.wait(20)
        time.sleep(0.2)
        service.gate.set()
        return [future.exception(20) or future.result() for future in futures]


def test_searches_at_once_in_threads_and_loops_embed_each_tool_once():
    service = Service()
    ranker = EmbeddingRanker(service, min_cosine=None)
    catalogues = [DOCUMENTS, DOCUMENTS[:30], DOCUMENTS[20:], tuple(reversed(DOCUMENTS))]
    counts = searches_at_once(service, ranker, catalogues)
    assert counts == [50, 50, 30, 30, 30, 30, 50, 50]
    assert len(service.texts) == len(set(service.texts)) == 50


def test_agents_that_start_at_once_embed_their_tools_once():
    service = Service()
    tools = made_anew(40)
    middleware = ToolSelectionMiddleware(ranker=EmbeddingRanker(service, min_cosine=None))
    agent = create_agent(ScriptedChatModel(script=["ok"]), tools, middleware=[middleware])
    ask = {"messages": [{"role": "user", "content": "do thing 3"}]}
    with ThreadPoolExecutor(6) as pool:
        runs = [pool.submit(agent.invoke, ask) for _ in range(6)]
        assert service.asked.wait(20)
        time.sleep(0.2)
        service.gate.set()
        assert all(run.result(30) for run in runs)
    assert (len(service.texts), service.calls) == (40, 1)


def test_a_failure_reaches_all_who_wait_and_the_next_search_embeds_again():
    service = Service(failures=1)
    ranker = EmbeddingRanker(service, min_cosine=None)
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(ranker.rank, THING, DOCUMENTS) for _ in range(4)]
        assert service.asked.wait(20)
        time.sleep(0.2)
        service.gate.set()
        assert all(isinstance(future.exception(20), ConnectionError) for future in futures)
    assert service.calls == 1
    assert len(ranker.rank(THING, DOCUMENTS)) == 50


async def test_a_search_that_is_cancelled_is_taken_over_by_one_that_waits():
    service = Service()
    ranker = EmbeddingRanker(service, min_cosine=None)
    first = asyncio.create_task(ranker.arank(THING, DOCUMENTS))
    await asyncio.sleep(0.05)
    second = asyncio.create_task(ranker.arank(THING, DOCUMENTS))
    third = asyncio.create_task(asyncio.to_thread(ranker.rank, THING, DOCUMENTS))
    await asyncio.sleep(0.05)
    assert service.calls == 1
    first.cancel()
    await asyncio.sleep(0.1)
    assert service.calls == 2
    service.gate.set()
    assert len(await asyncio.wait_for(second, 20)) == len(await asyncio.wait_for(third, 20)) == 50
    assert service.calls == 2


async def test_one_who_waits_may_give_up_without_harm_to_the_others():
    service = Service()
    ranker = EmbeddingRanker(service, min_cosine=None)
    first = asyncio.create_task(ranker.arank(THING, DOCUMENTS))
    await asyncio.sleep(0.05)
    second = asyncio.create_task(ranker.arank(THING, DOCUMENTS))
    await asyncio.sleep(0.05)
    second.cancel()
    service.gate.set()
    assert len(await asyncio.wait_for(first, 20)) == 50
    assert service.calls == 1


async def test_code_that_blocks_an_event_loop_does_not_wait_for_a_task_of_that_loop():
    service = Service()
    ranker = EmbeddingRanker(service, min_cosine=None)
    task = asyncio.create_task(ranker.arank(THING, DOCUMENTS))
    await asyncio.sleep(0.05)
    threading.Timer(0.2, service.gate.set).start()
    assert len(ranker.rank(THING, DOCUMENTS)) == 50
    assert len(await task) == 50


# -- sized by what is in use


def resident_megabytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads memory as Linux tells it")
def test_equal_tools_made_anew_for_each_request_do_not_pile_up():
    index = ToolIndex()
    middleware = ToolSelectionMiddleware(prune=SchemaPruning(), top_k=5)

    def request():
        tools = made_anew(200)
        index.sync(tools)
        agent = create_agent(ScriptedChatModel(script=["ok"]), tools, middleware=[middleware])
        agent.invoke({"messages": [{"role": "user", "content": "do thing 3"}]})

    for _ in range(5):
        request()
    gc.collect()
    before = resident_megabytes()
    for _ in range(30):
        request()
    gc.collect()
    assert resident_megabytes() - before < 30


@pytest.mark.slow
def test_one_tool_more_than_twenty_thousand_is_not_one_too_many():
    schema = {"type": "object", "properties": {"id": {"type": "string"}}}
    tools = [tool_of(f"tool_{i}", f"Does thing {i}.", schema) for i in range(20_500)]
    index = ToolIndex()

    def seconds(tools):
        start = time.perf_counter()
        index.sync(tools)
        return time.perf_counter() - start

    seconds(tools)
    few, many = ([seconds(part) for _ in range(5)] for part in (tools[:20_000], tools))
    assert min(many) < 2 * min(few)  # 20 times when each tool was read again


@pytest.mark.slow
def test_vectors_of_any_number_of_tools_are_made_once():
    service = Service()
    service.gate.set()
    ranker = EmbeddingRanker(service, min_cosine=None)
    documents = tuple(ToolDocument(f"t{i}") for i in range(20_500))
    for _ in range(3):
        assert len(ranker.rank(THING, documents)) == 20_500
    assert len(ranker.rank(THING, documents[1:])) == 20_499
    assert len(service.texts) == 20_500


# -- copies


class ByLength(Embeddings):
    def embed_documents(self, texts):
        return [[1.0, float(len(text))] for text in texts]

    def embed_query(self, text):
        return [1.0, float(len(text))]


def copies(thing):
    return [copy.deepcopy(thing), copy.copy(thing), pickle.loads(pickle.dumps(thing))]


@pytest.mark.parametrize(
    "make",
    [
        LexicalRanker,
        lambda: EmbeddingRanker(ByLength(), min_cosine=None),
        lambda: HybridRanker(LexicalRanker(), EmbeddingRanker(ByLength(), min_cosine=None)),
    ],
    ids=["words", "vectors", "both"],
)
def test_a_ranker_can_be_copied_and_pickled_and_its_copy_ranks_alike(make):
    ranker = make()
    hits = ranker.rank(THING, DOCUMENTS)
    for other in copies(ranker):
        assert other.rank(THING, DOCUMENTS) == hits
        assert other.rank(THING, DOCUMENTS[:3]) == make().rank(THING, DOCUMENTS[:3])


def test_an_index_and_a_catalogue_can_be_copied_and_pickled():
    index = ToolIndex(hints={"tool_1": ToolHints(tags=["umbrella"])})
    view = index.sync(DOCUMENTS)
    hits = view.search("umbrella")
    assert hits
    for other in copies(index):
        assert other.catalog(view.fingerprint) is None
        assert other.sync(DOCUMENTS).search("umbrella") == hits
        assert other.catalog(view.fingerprint) is not None
    for other_view in copies(view):
        assert other_view.search("umbrella") == hits


def test_a_registry_can_be_copied_and_pickled_and_its_copy_is_another():
    registry = ToolRegistry()
    registry.register("git_diff", "Show what changed.")
    registry.route_tools("what changed")
    for other in [copy.deepcopy(registry), pickle.loads(pickle.dumps(registry))]:
        other.register("send_mail", "Send a mail.")
        assert other.route_tools("send a mail", top_k=1) == ["send_mail"]
        assert "send_mail" not in registry
