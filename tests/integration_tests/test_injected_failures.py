"""Services around the middleware that fail now and then or turn slow: runs go on, and say what was amiss."""

from __future__ import annotations

import asyncio
import math
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore

from langchain_tool_selection import Hit, Query, ToolDocument
from langchain_tool_selection.testing import call

from .agents import OFFICE, BagOfWords, answers, build, discover, pins, pins_of, run, sent, thread, user
from .postgres import Postgres, psycopg

pytestmark = pytest.mark.slow

TURNS = {
    "send an email message": "send_email",
    "book a flight to a destination": "book_flight",
    "track a parcel by its number": "track_parcel",
    "water the plants in the garden": "water_plants",
}


async def play(
    path: str, agent: Any, what: Any, config: Any = None, kind: str = "tool_selection"
) -> list[dict[str, Any]]:
    """Run an agent and return the events of a kind: by default, the selection of each of its model calls."""
    config = config or thread()
    if path == "sync":
        events = await asyncio.to_thread(lambda: list(agent.stream(what, config, stream_mode="custom")))
    else:
        events = [event async for event in agent.astream(what, config, stream_mode="custom")]
    return [event for event in events if event["type"] == kind]


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "langchain_tool_selection"]


# -- embeddings ----------------------------------------------------------------------------------------


def refuses() -> Any:
    raise ConnectionError("the service is down")


GARBAGE: list[Callable[[], Any]] = [
    refuses,
    lambda: None,
    list,
    lambda: [math.nan] * 256,
    lambda: [1e308] * 256,
    lambda: [0.5] * 3,
    lambda: ["0.5"] * 256 + ["x"],
    lambda: {"embedding": [1.0]},
]


class Unreliable(BagOfWords):
    """Answers three of ten requests with an error or with what is no vector."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)
        self.failed = 0

    def embed_query(self, text: str) -> Any:
        vector = super().embed_query(text)
        if self._random.random() >= 0.3:
            return vector
        self.failed += 1
        return self._random.choice(GARBAGE)()


async def test_embeddings_that_fail_at_random_end_no_run_and_each_failure_is_in_the_selection(
    path, memory, caplog
):
    embeddings, degraded = Unreliable(seed=3), 0
    agent, _ = build(["Done."], ranker=embeddings, saver=memory, keep_used=0)
    for number in range(30):
        for text, name in TURNS.items():
            (selection,) = await play(path, agent, user(text), thread(f"{number} {name}"))
            assert name in selection["shown"]
            degraded += bool(selection["degraded"])
    assert degraded == embeddings.failed > 30
    assert all(count == 1 for count in Counter(warnings_in(caplog)).values())
    assert {text.split(",")[0] for text in warnings_in(caplog)} == {"HybridRanker failed"}


async def test_a_search_finds_by_words_while_embeddings_fail_at_random(path, memory):
    agent, _ = build(
        lambda sent_call: discover("play music") if len(sent_call.messages) == 1 else "Done.",
        ranker=Unreliable(seed=5),
        saver=memory,
    )
    for number in range(20):
        await run(path, agent, user("send an email message"), thread(str(number)))
        assert (await pins_of(path, agent, thread(str(number))))[:1] == ["play_music"]


class VectorStore:
    """A ranker as people write it: vectors of tools in a PostgreSQL with the vector extension."""

    def __init__(self, url: str, embeddings: Embeddings) -> None:
        self._url, self._embeddings = url, embeddings
        self._known: set[str] = set()
        with psycopg.connect(url) as connection:
            connection.execute("CREATE EXTENSION vector")
            connection.execute("CREATE TABLE tools (key text PRIMARY KEY, vector vector(256))")

    def rank(self, query: Query, documents: Sequence[ToolDocument], *, limit: int | None = None) -> list[Hit]:
        by_key = {document.fingerprint: document for document in documents}
        with psycopg.connect(self._url) as connection:
            if new := by_key.keys() - self._known:
                texts = [f"{by_key[key].name} {by_key[key].description}".replace("_", " ") for key in new]
                rows = zip(new, map(str, self._embeddings.embed_documents(texts)), strict=True)
                connection.cursor().executemany("INSERT INTO tools VALUES (%s, %s)", list(rows))
                self._known |= new
            found = connection.execute(
                "SELECT key, 1 - (vector <=> %(asked)s::vector) FROM tools WHERE key = ANY(%(keys)s) "
                "ORDER BY vector <=> %(asked)s::vector LIMIT %(limit)s",
                {"asked": str(self._embeddings.embed_query(query.text)), "keys": [*by_key], "limit": limit},
            )
            return [Hit(by_key[key].name, similarity) for key, similarity in found if similarity > 0.1]


async def test_a_vector_store_that_goes_down_and_comes_back_ends_no_run(
    path, memory, postgres: Postgres, caplog
):
    store = VectorStore(postgres.new_database(), BagOfWords())
    agent, _ = build(["Done."], ranker=store, saver=memory, keep_used=0)
    degraded = []
    try:
        for number, (text, name) in enumerate([*TURNS.items()] * 2):
            if number == 2:
                postgres.kill()
            if number == 6:
                postgres.start()
            (selection,) = await play(path, agent, user(text), thread(str(number)))
            assert name in selection["shown"]
            degraded.append(selection["degraded"])
    finally:
        postgres.start()
    failed = "VectorStore failed with OperationalError; ranked by words"
    assert degraded == ["", "", *[failed] * 4, "", ""]
    assert len(warnings_in(caplog)) == 1


class Slow(BagOfWords):
    """Takes its time, on either path."""

    def embed_query(self, text: str) -> list[float]:
        time.sleep(0.2)
        return super().embed_query(text)

    async def aembed_query(self, text: str) -> list[float]:
        await asyncio.sleep(0.2)
        return super().embed_query(text)


class OnlySync(BagOfWords):
    """Takes its time and has no async methods of its own, as most local encoders."""

    def embed_query(self, text: str) -> list[float]:
        time.sleep(0.2)
        return super().embed_query(text)


@pytest.mark.parametrize("embeddings", [Slow, OnlySync])
async def test_other_runs_go_on_while_slow_embeddings_are_awaited(embeddings, memory):
    agent, model = build(["Done."], ranker=embeddings(), saver=memory)
    agent.invoke(user("send an email message"), thread("warm"))
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticker = asyncio.create_task(tick())
    await agent.ainvoke(user("send an email message"), thread())
    ticker.cancel()
    assert ticks > 5
    assert sent(model)[-1] == ["send_email"]


class HangingEmbeddings(BagOfWords):
    """Never answers, and as most local encoders has no async methods of its own, until the test is over."""

    def __init__(self) -> None:
        super().__init__()
        self.over = threading.Event()

    def embed_query(self, text: str) -> list[float]:
        self.over.wait()
        return super().embed_query(text)


class HangingRanker:
    """Likewise a ranker of somebody's own."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def rank(self, query: Any, documents: Any, *, limit: int | None = None) -> Any:
        self.over.wait()
        return []


@pytest.mark.parametrize("kind", [HangingEmbeddings, HangingRanker])
async def test_a_ranker_that_hangs_is_waited_for_no_longer_than_its_timeout(kind, path, memory, caplog):
    """Nor does it take the threads in which an event loop runs tools that are no coroutines."""
    ranker, runs = kind(), 4 + (os.cpu_count() or 1)
    script = lambda sent_call: "Done." if len(sent_call.messages) > 1 else call("send_email")  # noqa: E731
    agent, _ = build(script, ranker=ranker, timeout=0.05, saver=memory)
    before = threading.active_count()
    try:
        for number in range(runs):
            selection, _ = await asyncio.wait_for(
                play(path, agent, user("send an email"), thread(str(number))), 10
            )
            assert "send_email" in selection["shown"]
            assert selection["degraded"].endswith("failed with TimeoutError; ranked by words")
        assert len(warnings_in(caplog)) == 1
    finally:
        ranker.over.set()
    for _ in range(100):
        await asyncio.sleep(0.02)
        if not [one for one in threading.enumerate() if one.name == "tool-selection"]:
            break
    else:
        pytest.fail(f"threads are left: {threading.active_count()} of {before}")


async def test_there_is_an_end_to_the_threads_of_a_ranker_that_hangs(path):
    ranker = HangingRanker()
    agent, _ = build(["Done."], ranker=ranker, timeout=0.001)
    try:
        for number in range(80):
            (selection,) = await play(path, agent, user("send an email"), thread(str(number)))
            assert selection["degraded"]
        assert len([one for one in threading.enumerate() if one.name == "tool-selection"]) == 64
    finally:
        ranker.over.set()


async def test_a_run_that_is_cancelled_while_a_ranker_hangs_ends_at_once():
    ranker = HangingRanker()
    agent, model = build(["Done."], ranker=ranker, timeout=30)
    running = asyncio.create_task(agent.ainvoke(user("send an email")))
    await asyncio.sleep(0.1)
    running.cancel()
    try:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(running, 5)
    finally:
        ranker.over.set()
    assert not model.calls


# -- rules ---------------------------------------------------------------------------------------------


async def test_a_rule_that_fails_for_some_tools_refuses_those_and_is_told_once(path, memory, caplog):
    def allow(tool: Any, runtime: Any) -> bool:
        if tool.name.startswith(("send", "play")):
            raise LookupError(tool.name)
        return True

    script = [discover("play some music"), call("play_music"), "Done."]
    agent, model = build(script, allow=allow, saver=memory, top_k=2)
    for text in "send an email", "send another":
        result = await run(path, agent, user(text), thread())
    assert not {"send_email", "play_music"} & {name for names in sent(model) for name in names}
    assert "play_music did it" not in [m.text for m in result["messages"]]
    assert len(warnings_in(caplog)) == 1
    assert "play_music" not in caplog.text


async def test_a_rule_that_fails_now_and_then_ends_no_run_and_never_lets_through(path, memory):
    chance = random.Random(11)

    def allow(tool: Any, runtime: Any) -> bool:
        if chance.random() < 0.3:
            raise TimeoutError
        return tool.name != "lock_door"

    agent, model = build(
        lambda sent_call: (
            discover(names=["lock_door", "play_music"]) if len(sent_call.messages) == 1 else "Done."
        ),
        allow=allow,
        saver=memory,
    )
    for number in range(20):
        await run(path, agent, user("lock the front door"), thread(str(number)))
    assert "lock_door" not in {name for names in sent(model) for name in names}


async def test_a_slow_rule_is_waited_for(path, memory):
    def allow(tool: Any, runtime: Any) -> bool:
        time.sleep(0.002)
        return tool.name != "send_email"

    agent, model = build([discover("music"), "Done."], allow=allow, saver=memory)
    await run(path, agent, user("send an email to book a flight"), thread())
    assert sent(model) == [["book_flight"], ["book_flight", "play_music"]]


class SlowRule:
    """Allows all but one tool after a while, and notes how often it was being awaited at once at most."""

    def __init__(self, refused: str = "") -> None:
        self.refused = refused
        self.waiting = self.most = 0

    async def __call__(self, tool: Any, runtime: Any) -> bool:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        await asyncio.sleep(0.005)
        self.waiting -= 1
        return tool.name != self.refused


async def test_other_runs_go_on_while_a_slow_async_rule_is_awaited(memory):
    rule = SlowRule()
    agent, model = build(["Done."], allow=rule, saver=memory)
    await asyncio.gather(*(agent.ainvoke(user("send an email"), thread(str(n))) for n in range(20)))
    assert sent(model) == [["send_email"]] * 20
    assert rule.most >= 10


async def test_a_rule_that_is_awaited_is_asked_about_all_tools_at_once():
    rule = SlowRule(refused="lock_door")
    agent, model = build(["Done."], allow=rule, top_k=99)
    await agent.ainvoke(user("send an email"))
    assert model.calls[0].tools == [name for name in OFFICE if name != "lock_door"]
    assert rule.most == len(OFFICE)


class Shared:
    """A service that works once for many, and has that work cancelled by one of them; or it never answers."""

    def __init__(self, answers: bool) -> None:
        self._answers = answers

    async def __call__(self, tool: Any, runtime: Any) -> Any:
        return await self._work() if tool.name == "lock_door" else True

    async def _work(self) -> Any:
        work = asyncio.get_running_loop().create_future()
        if self._answers:
            work.cancel()
        return await work

    def rank(self, query: Any, documents: Any, *, limit: int | None = None) -> Any:
        raise NotImplementedError

    async def arank(self, query: Any, documents: Any, *, limit: int | None = None) -> Any:
        return await self._work()


@pytest.mark.parametrize("setting", ["allow", "ranker"])
async def test_work_that_others_cancel_ends_no_run(setting):
    agent, model = build(["Done."], **{setting: Shared(answers=True)})
    (selection,) = await play("async", agent, user("send an email"))
    assert "failed with CancelledError" in selection["degraded"]
    assert sent(model) == [["send_email"]]


@pytest.mark.parametrize("setting", ["allow", "ranker"])
async def test_a_run_can_be_cancelled_whatever_it_waits_for(setting):
    agent, model = build(["Done."], **{setting: Shared(answers=False)})
    running = asyncio.create_task(agent.ainvoke(user("send an email")))
    await asyncio.sleep(0.05)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not model.calls


def failing(*_: Any) -> Any:
    raise ConnectionError("the service is down")


@pytest.mark.parametrize("setting", ["allow", "domains", "query"])
async def test_a_setting_that_fails_is_in_the_selection(setting, path):
    agent, _ = build(["Done."], **{setting: failing_for_some if setting == "allow" else failing})
    (selection,) = await play(path, agent, user("send an email"))
    assert setting in selection["degraded"]


@pytest.mark.parametrize("setting", ["allow", "domains"])
async def test_a_setting_that_fails_where_nothing_is_hidden_is_told_as_well(setting, path):
    rules = {setting: failing_for_some if setting == "allow" else failing}
    agent, model = build(["Done."], top_k=100, **rules)
    (selection,) = await play(path, agent, user("send an email"))
    assert setting in selection["degraded"]
    assert (selection["exposure"], selection["hidden"]) == ("all", 0)
    assert list(selection["shown"]) == [*sent(model)[0]]
    assert await play(path, build(["Done."], top_k=100)[0], user("send an email")) == []


async def test_a_search_that_falls_back_says_so(path, memory):
    def scorer(tool: Any, tokens: Any) -> float:
        return float(failing() if "music" in tokens else "send" in tool.name)

    agent, _ = build([discover("music"), "Done."], ranker=scorer, saver=memory)
    (found,) = await play(path, agent, user("send an email"), kind="tool_selection_found")
    assert found["found"] == ["play_music"]
    assert found["degraded"] == "ScorerRanker failed with ConnectionError; ranked by words"


def failing_for_some(tool: Any, runtime: Any) -> bool:
    return bool(failing()) if tool.name == "lock_door" else True


@pytest.mark.parametrize("setting", ["domains", "query"])
async def test_a_setting_that_fails_now_and_then_is_done_without(setting, path, memory, caplog):
    chance = random.Random(2)

    def unreliable(*_: Any) -> Any:
        if chance.random() < 0.3:
            raise ConnectionError("the service is down")
        return None if setting == "domains" else Query.of("send an email")

    agent, model = build(["Done."], saver=memory, **{setting: unreliable})
    for number in range(20):
        await run(path, agent, user("send an email"), thread(str(number)))
    assert sent(model) == [["send_email"]] * 20
    assert len(warnings_in(caplog)) == 1


# -- what threads are kept in --------------------------------------------------------------------------


class ReadOnlyStore(InMemoryStore):
    def batch(self, ops: Any) -> Any:
        if any(type(op).__name__ == "PutOp" for op in ops):
            raise PermissionError("the store is read-only")
        return super().batch(ops)


async def test_a_store_that_cannot_be_written_is_only_read(path, memory):
    def allow(tool: Any, runtime: Any) -> bool:
        return runtime.store.get(("refused",), tool.name) is None

    store = ReadOnlyStore()
    agent, _ = build(
        [discover("music"), call("play_music"), "Done."],
        allow=allow,
        saver=memory,
        agent_settings={"store": store},
    )
    result = await run(path, agent, user("send an email"), thread())
    assert answers(result, "play_music") == ["play_music did it"]
    assert await pins_of(path, agent, thread()) == ["play_music"]
    with pytest.raises(PermissionError):
        store.put(("refused",), "x", {})


class Switchable(InMemorySaver):
    """Refuses to write while it is told so."""

    read_only = False

    def put(self, *arguments: Any) -> Any:
        self._check()
        return super().put(*arguments)

    def put_writes(self, *arguments: Any, **settings: Any) -> Any:
        self._check()
        return super().put_writes(*arguments, **settings)

    def _check(self) -> None:
        if self.read_only:
            raise PermissionError("the checkpointer is read-only")


async def test_a_checkpointer_that_cannot_be_written_ends_the_run_with_its_own_error_and_no_pin_is_lost(path):
    saver = Switchable()
    script = [discover("music"), "Done.", discover("pizza"), "Done.", discover("pizza"), "Done."]
    agent, model = build(script, saver=saver, keep_used=0)
    await run(path, agent, user("send an email"), thread())
    saver.read_only = True
    with pytest.raises(PermissionError):
        await run(path, agent, user("and another"), thread())
    saver.read_only = False
    assert await pins_of(path, agent, thread()) == ["play_music"]
    model.script = [*[""] * len(model.calls), discover("pizza"), "Done."]
    await run(path, agent, user("and another"), thread())
    assert await pins_of(path, agent, thread()) == ["play_music", "order_pizza"]


def test_a_thread_in_a_database_opened_for_reading_shows_its_pins(tmp_path):
    file = tmp_path / "threads.db"
    with SqliteSaver.from_conn_string(str(file)) as saver:
        agent, _ = build([discover("music"), "Done."], saver=saver)
        agent.invoke(user("send an email"), thread())
        saver.conn.execute("PRAGMA query_only = ON")
        assert pins(agent, thread()) == ["play_music"]
        with pytest.raises(Exception, match="readonly"):
            agent.invoke(user("and another"), thread())
        saver.conn.execute("PRAGMA query_only = OFF")
        assert pins(agent, thread()) == ["play_music"]
        agent.invoke(user("and another"), thread())
        assert pins(agent, thread()) == ["play_music"]
