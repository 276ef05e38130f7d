"""A model that chooses tools inside a real agent: its words stay inside, and its failures end no run."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from langchain_tool_selection import LLMRanker
from langchain_tool_selection.testing import ScriptedChatModel, call

from .agents import answers, build, discover, run, sent, thread, user

REQUEST = "send an email, or book a flight to a destination, or play music by an artist"
FOUND = ["send_email", "book_flight", "play_music"]


def choosing(name: str) -> ScriptedChatModel:
    return ScriptedChatModel(script=lambda sent_call: f'SECRET ["{name}"]')


def failing(sent_call: Any) -> str:
    raise ConnectionError("the model is down")


async def streamed(path: str, agent: Any, mode: Any) -> list[Any]:
    if path == "sync":
        return list(agent.stream(user(REQUEST), thread(), stream_mode=mode))
    return [item async for item in agent.astream(user(REQUEST), thread(), stream_mode=mode)]


@pytest.mark.parametrize("name", FOUND)
async def test_the_agent_sees_the_tool_that_the_model_chose(name, path):
    agent, model = build(["Done."], ranker=LLMRanker(choosing(name)))
    await run(path, agent, user(REQUEST))
    assert sent(model) == [[name]]


async def test_nothing_that_the_choosing_model_says_is_in_the_stream(path, memory):
    chooser = choosing("play_music")
    script = [discover("book a flight or send an email"), call("play_music"), "It is playing now."]
    agent, _ = build(script, ranker=LLMRanker(chooser), saver=memory)
    items = await streamed(path, agent, "messages")
    assert len(chooser.calls) >= 2, "asked in the model's step and in discover_tools"
    said = "".join(str(message.content) for message, _ in items if isinstance(message, AIMessage))
    assert said.strip() == "It is playing now."
    assert "SECRET" not in repr(items)


async def test_nothing_that_the_choosing_model_says_is_in_the_state(path, memory):
    agent, _ = build(["Done."], ranker=LLMRanker(choosing("play_music")), saver=memory)
    assert "SECRET" not in repr(await streamed(path, agent, ["updates", "values", "custom"]))
    assert "SECRET" not in repr(agent.get_state(thread()).values)


async def test_the_model_is_asked_once_a_turn_however_many_steps_it_takes(path):
    chooser = choosing("play_music")
    agent, _ = build([call("play_music"), call("play_music"), "Done."], ranker=LLMRanker(chooser))
    await run(path, agent, user(REQUEST))
    assert len(chooser.calls) == 1


@pytest.mark.parametrize("answer", ["", "Sure!", '["launch_rocket"]', "[", "{}"])
async def test_a_malformed_answer_leaves_the_choice_to_words(answer, path, caplog):
    chooser = ScriptedChatModel(script=lambda sent_call: answer)
    agent, model = build(["Done."], ranker=LLMRanker(chooser))
    plain, expected = build(["Done."])
    await run(path, agent, user(REQUEST))
    await run(path, plain, user(REQUEST))
    assert sent(model) == sent(expected)
    assert len(chooser.calls) == 2
    assert caplog.records == []


async def test_a_model_that_fails_leaves_the_choice_to_words_and_ends_no_run(path, memory, caplog):
    ranker = LLMRanker(ScriptedChatModel(script=failing))
    agent, model = build([discover("book a flight or send an email"), "Done."], ranker=ranker, saver=memory)
    result = await run(path, agent, user(REQUEST), thread())
    assert result["messages"][-1].content == "Done."
    assert len(sent(model)[0]) == 1
    assert answers(result)[0].startswith("Found")
    assert [record.args[0] for record in caplog.records] == ["LLMRanker"]
