"""What holds under every exposure alike, on one client that knows all of them."""

from __future__ import annotations

import pytest
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
)
from langchain.agents.structured_output import ToolStrategy
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel

from langchain_tool_selection.testing import PayloadLog, ScriptedChatModel, call

from .agents import PINS, answers, discover, open_saver, pins_of, run, thread, user
from .exposures import agent_on, chat_completions, say, searching, tool_addition, use

pytestmark = pytest.mark.slow

APPROVE = Command(resume={"decisions": [{"type": "approve"}]})
CASES = [
    (chat_completions, "per_turn"),
    (chat_completions, "grow"),
    (tool_addition, "append"),
    (chat_completions, "proxy"),
    (chat_completions, "stubs"),
]


@pytest.fixture(params=CASES, ids=[exposure for _, exposure in CASES])
def under(request):
    return request.param


@pytest.fixture
def log():
    return PayloadLog()


class Verdict(BaseModel):
    """What it came to."""

    verdict: str


async def test_parallel_discoveries_all_count_and_can_be_called(under, path, log):
    client, exposure = under
    script = [searching("play_music", "order_pizza"), use("play_music"), use("order_pizza"), "Done."]
    agent = agent_on(client, script, log, exposure)
    result = await run(path, agent, user("send an email"), thread())
    assert answers(result, "play_music") == ["play_music did it"]
    assert answers(result, "order_pizza") == ["order_pizza did it"]
    assert sorted(await pins_of(path, agent, thread())) == ["order_pizza", "play_music"]


async def test_pins_outlive_a_restart(under, path, tmp_path, log):
    client, exposure = under
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent = agent_on(client, [discover("play music"), "Found."], log, exposure, saver=saver)
        await run(path, agent, user("send an email"), thread())
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent = agent_on(client, [use("play_music"), "It plays."], log, exposure, saver=saver)
        result = await run(path, agent, user("go on"), thread())
        assert await pins_of(path, agent, thread()) == ["play_music"]
    assert answers(result, "play_music") == ["play_music did it"]


async def test_a_fork_from_before_a_discovery_has_no_pin(under, path, log):
    client, exposure = under
    agent = agent_on(
        client, [searching("play_music"), use("play_music"), "It plays.", "Forked."], log, exposure
    )
    await say(path, agent, "send an email")
    history = [state async for state in agent.aget_state_history(thread())]
    before = next(state for state in history if state.next == ("model",) and not state.values.get(PINS))
    await run(path, agent, None, before.config)
    assert await pins_of(path, agent, thread()) == []


async def test_a_discovered_tool_waits_for_approval_over_a_restart(under, path, tmp_path, log):
    client, exposure = under
    approval = [HumanInTheLoopMiddleware({"play_music": True})]
    async with open_saver("sqlite", path, tmp_path) as saver:
        script = [searching("play_music"), use("play_music")]
        agent = agent_on(client, script, log, exposure, saver=saver, outer=approval)
        result = await run(path, agent, user("send an email"), thread())
        assert result["__interrupt__"][0].value["action_requests"][0]["name"] == "play_music"
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent = agent_on(client, ["It plays."], log, exposure, saver=saver, outer=approval)
        result = await run(path, agent, APPROVE, thread())
    assert answers(result, "play_music") == ["play_music did it"]


async def test_structured_output_comes_through(under, path, log):
    client, exposure = under
    agent = agent_on(
        client,
        [searching("play_music"), use("play_music"), call("Verdict", verdict="good")],
        log,
        exposure,
        agent_settings={"response_format": ToolStrategy(Verdict)},
    )
    result = await run(path, agent, user("send an email"), thread())
    assert result["structured_response"] == Verdict(verdict="good")
    assert answers(result, "play_music") == ["play_music did it"]


async def test_a_compaction_takes_no_pin_away(under, path, log):
    client, exposure = under
    summary = ScriptedChatModel(script=["They talked."])
    compaction = SummarizationMiddleware(model=summary, trigger=("messages", 6), keep=("messages", 2))
    script = [
        searching("play_music"),
        use("play_music"),
        "It plays.",
        "Sure.",
        "Sure.",
        use("play_music"),
        "Again.",
    ]
    agent = agent_on(client, script, log, exposure, saver=InMemorySaver(), outer=[compaction])
    for text in ("send an email", "thanks", "fine", "once more"):
        result = await run(path, agent, user(text), thread())
    assert await pins_of(path, agent, thread()) == ["play_music"]
    assert answers(result, "play_music")[-1] == "play_music did it"


@pytest.mark.parametrize("outside", [True, False])
async def test_a_retry_sends_the_same_again(under, path, log, outside):
    client, exposure = under
    failures = iter([True, False, False, False])

    def failing(sent):
        if next(failures):
            raise ConnectionError
        return "Sent."

    retry = {"outer" if outside else "inner": [ModelRetryMiddleware(max_retries=2, initial_delay=0.0)]}
    agent = agent_on(client, [failing, failing], log, exposure, **retry)
    result = await run(path, agent, user("send an email"), thread())
    assert result["messages"][-1].text == "Sent."
    assert log.payloads[0] == log.payloads[1]


async def test_what_is_streamed_is_what_is_answered(under, path, log):
    client, exposure = under
    script = [discover("play music"), use("play_music"), "It plays to you."]
    agent = agent_on(client, script, log, exposure)
    updates = await say(path, agent, "send an email", mode="updates")
    ran = [m.name for update in updates for m in (update.get("tools") or {}).get("messages", ())]
    assert ran == ["discover_tools", "play_music"]
