"""Rankers, services and models that fail: the run goes on, by words, and says so once."""

from __future__ import annotations

import logging
import math
from typing import Any

import pytest
from langchain.agents.middleware import ModelFallbackMiddleware, ModelRetryMiddleware

from langchain_tool_selection import Hit
from langchain_tool_selection.testing import ScriptedChatModel, call

from .agents import BagOfWords, answers, build, discover, pins_of, run, sent, thread, user


class FailingQueries(BagOfWords):
    def embed_query(self, text: str) -> list[float]:
        raise ConnectionError("the service is down")


class FailingDocuments(BagOfWords):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise TimeoutError("the service is slow")


class ShortQueries(BagOfWords):
    def embed_query(self, text: str) -> list[float]:
        return super().embed_query(text)[:7]


class EmptyQueries(BagOfWords):
    def embed_query(self, text: str) -> list[float]:
        return []


class FewDocuments(BagOfWords):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return super().embed_documents(texts)[:-1]


class RaggedDocuments(BagOfWords):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [vector[: 256 - n] for n, vector in enumerate(super().embed_documents(texts))]


class NaNQueries(BagOfWords):
    def embed_query(self, text: str) -> list[float]:
        return [math.nan] * 256


class NaNDocuments(BagOfWords):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[math.inf] * 256 for _ in texts]


class NoneQueries(BagOfWords):
    def embed_query(self, text: str) -> Any:
        return None


EMBEDDINGS = [
    FailingQueries,
    FailingDocuments,
    ShortQueries,
    EmptyQueries,
    FewDocuments,
    RaggedDocuments,
    NaNQueries,
    NaNDocuments,
    NoneQueries,
]


def raising(tool: Any, tokens: Any) -> float:
    raise KeyError(tool.name)


class RaisingRanker:
    def rank(self, query: Any, documents: Any, *, limit: Any = None) -> Any:
        raise RuntimeError("no")


class StrayRanker:
    """Gives back a score that is no number."""

    def rank(self, query: Any, documents: Any, *, limit: Any = None) -> Any:
        return [Hit(documents[0].name, math.nan)]


class WrongRanker:
    """Gives back what is no list of hits."""

    def rank(self, query: Any, documents: Any, *, limit: Any = None) -> Any:
        return None


SCORERS = [
    raising,
    lambda tool, tokens: math.nan,
    lambda tool, tokens: math.inf,
    lambda tool, tokens: None,
    lambda tool, tokens: "high",
    RaisingRanker(),
    StrayRanker(),
    WrongRanker(),
]


@pytest.mark.parametrize(
    "ranker",
    [*(cls() for cls in EMBEDDINGS), *SCORERS],
    ids=lambda ranker: getattr(ranker, "__name__", type(ranker).__name__),
)
async def test_a_ranker_that_fails_is_replaced_by_words_in_selection_and_discovery(
    ranker, path, memory, caplog
):
    script = [discover("play some music"), discover("order a pizza"), "Done.", "Done."]
    agent, model = build(script, ranker=ranker, saver=memory)
    with caplog.at_level(logging.INFO):
        result = await run(path, agent, user("send an email"), thread())
        await run(path, agent, user("track a parcel"), thread())
    assert [text.split(":")[0] for text in answers(result)] == [
        "Found tool `play_music`",
        "Found tool `order_pizza`",
    ]
    assert sent(model)[0] == ["send_email"]
    assert sent(model)[-1][0] == "track_parcel"
    assert await pins_of(path, agent, thread()) == ["play_music", "order_pizza"]
    said = [r for r in caplog.records if r.name.startswith("langchain_tool_selection")]
    assert len(said) == 1, [r.getMessage() for r in said]


async def test_a_failed_ranking_is_said_in_the_selection(path):
    agent, _ = build(["Done."], ranker=FailingQueries())
    if path == "sync":
        events = list(agent.stream(user("send an email"), stream_mode="custom"))
    else:
        events = [event async for event in agent.astream(user("send an email"), stream_mode="custom")]
    assert "ConnectionError" in events[0]["degraded"]


async def test_embeddings_that_work_are_used_in_selection_and_discovery(path, memory):
    embeddings = BagOfWords()
    agent, model = build([discover("play some music"), "Done."], ranker=embeddings, saver=memory)
    await run(path, agent, user("send an email message"), thread())
    assert embeddings.queries == ["send an email message", "play some music"]
    assert len(embeddings.batches) == 1
    assert len(embeddings.batches[0]) == 12
    assert sent(model)[0] == ["send_email"]
    assert (await pins_of(path, agent, thread()))[0] == "play_music"


async def test_a_turn_is_ranked_once_however_many_steps_it_takes(path, memory):
    embeddings = BagOfWords()
    steps = [call("send_email"), call("send_email"), call("send_email"), "Done."]
    agent, model = build(steps, ranker=embeddings, saver=memory)
    await run(path, agent, user("send an email message"), thread())
    assert len(model.calls) == 4
    assert embeddings.queries == ["send an email message"]


def test_a_service_that_comes_back_is_used_again(memory):
    embeddings = FailingOnce()
    agent, model = build(["Done."], ranker=embeddings, saver=memory)
    for text in ("send an email", "track a parcel"):
        agent.invoke(user(text), thread())
    assert sent(model) == [["send_email"], ["track_parcel"]]
    assert embeddings.queries[-1] == "send an email"
    assert "track a parcel" in embeddings.queries


class FailingOnce(BagOfWords):
    def __init__(self) -> None:
        super().__init__()
        self.failed = False

    def embed_query(self, text: str) -> list[float]:
        if not self.failed:
            self.failed = True
            raise ConnectionError("the service is down")
        return super().embed_query(text)


# -- models that fail ------------------------------------------------------------------------------------


def failing_first(*answers_: Any) -> Any:
    left: list[Any] = [ConnectionError("overloaded"), *answers_]

    def script(sent_call: Any) -> Any:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return script


@pytest.mark.parametrize("outside", [True, False])
async def test_a_retry_sees_the_list_that_failed(outside, path, memory):
    retry = [ModelRetryMiddleware(max_retries=2, initial_delay=0)]
    agent, model = build(
        failing_first(discover("music"), "Done."),
        saver=memory,
        top_k=2,
        **{"outer" if outside else "inner": retry},
    )
    await run(path, agent, user("send an email and book a flight"), thread())
    first, again, after = model.calls
    assert first.schemas == again.schemas
    assert after.schemas[: len(first.schemas)] == first.schemas
    assert await pins_of(path, agent, thread()) == ["play_music"]


async def test_a_retry_in_the_middle_of_a_turn_sees_the_discovered_tool(path, memory):
    retry = [ModelRetryMiddleware(max_retries=2, initial_delay=0)]
    left: list[Any] = [discover("music"), ConnectionError("overloaded"), "Done."]

    def script(sent_call: Any) -> Any:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    agent, model = build(script, saver=memory, outer=retry)
    await run(path, agent, user("send an email"), thread())
    assert sent(model) == [["send_email"], *[["send_email", "play_music"]] * 2]


@pytest.mark.parametrize("outside", [True, False])
async def test_a_fallback_model_sees_the_list_that_failed(outside, path, memory):
    second = ScriptedChatModel(script=[discover("music"), "Done."])
    agent, first = build(
        lambda sent_call: (_ for _ in ()).throw(ConnectionError("overloaded")),
        saver=memory,
        **{"outer" if outside else "inner": [ModelFallbackMiddleware(second)]},
    )
    await run(path, agent, user("send an email"), thread())
    assert sent(first) == sent(second) == [["send_email"], ["send_email", "play_music"]]
    assert await pins_of(path, agent, thread()) == ["play_music"]


async def test_a_model_that_fails_for_good_leaves_the_thread_usable(path, memory):
    agent, model = build(failing_first("Done."), saver=memory)
    with pytest.raises(ConnectionError):
        await run(path, agent, user("send an email"), thread())
    await run(path, agent, user("track a parcel"), thread())
    assert sent(model) == [["send_email"], ["track_parcel"]]
