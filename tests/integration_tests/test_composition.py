"""Beside the framework's own parts: structured output, provider tool search, human approval, access by role."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ProviderToolSearchMiddleware
from langchain.agents.structured_output import AutoStrategy, ProviderStrategy, ToolStrategy
from langgraph.types import Command
from pydantic import BaseModel

from langchain_tool_selection import Discovery, ToolSelectionMiddleware
from langchain_tool_selection.testing import ScriptedChatModel, call, calls

from .agents import DISCOVER, answers, build, discover, make_tool, office, pins_of, run, sent, thread, user

# -- structured output -----------------------------------------------------------------------------------


class Verdict(BaseModel):
    """The verdict on what was asked."""

    verdict: str


def with_format(strategy: Any) -> dict[str, Any]:
    return {"response_format": strategy}


@pytest.mark.parametrize(
    "strategy", [ToolStrategy(Verdict), AutoStrategy(Verdict), Verdict], ids=["tool", "auto", "schema"]
)
@pytest.mark.parametrize("text", ["send an email", "hello"])
async def test_the_answer_tool_of_structured_output_is_added_after_the_selection(
    strategy, text, path, memory
):
    agent, model = build(
        [discover("music"), call("play_music"), call("Verdict", verdict="good")],
        saver=memory,
        agent_settings=with_format(strategy),
    )
    result = await run(path, agent, user(text), thread())
    assert result["structured_response"] == Verdict(verdict="good")
    ranked = ["send_email"] if text == "send an email" else []
    assert [c.tools for c in model.calls] == [
        [DISCOVER, *ranked, "Verdict"],
        *[[DISCOVER, *ranked, "play_music", "Verdict"]] * 2,
    ]
    assert all(c.tool_choice == "any" for c in model.calls)
    assert await pins_of(path, agent, thread()) == ["play_music"]


@pytest.mark.parametrize("text", ["send an email", "hello"])
async def test_a_providers_own_structured_output_goes_with_the_selection(text, path):
    agent, model = build(
        [discover("music"), call("play_music"), '{"verdict": "good"}'],
        agent_settings=with_format(ProviderStrategy(Verdict)),
    )
    result = await run(path, agent, user(text))
    assert result["structured_response"] == Verdict(verdict="good")
    assert sent(model)[-1][-1] == "play_music"
    assert not any("Verdict" in c.tools for c in model.calls)


async def test_structured_output_leaves_an_answer_when_discovery_finds_nothing(path):
    script = [discover("chromodynamics"), discover("chromodynamics"), call("Verdict", verdict="none")]
    agent, _ = build(script, agent_settings=with_format(ToolStrategy(Verdict)))
    result = await run(path, agent, user("hello"))
    assert result["structured_response"] == Verdict(verdict="none")
    assert all("answer" in text for text in answers(result))


@pytest.mark.parametrize(
    "strategy", [ToolStrategy(Verdict), ProviderStrategy(Verdict)], ids=["tool", "provider"]
)
async def test_structured_output_without_discovery_or_a_match_keeps_tools(strategy, path):
    end = call("Verdict", verdict="x") if isinstance(strategy, ToolStrategy) else '{"verdict": "x"}'
    agent, model = build([end], agent_settings=with_format(strategy), discovery=None)
    await run(path, agent, user("hello"))
    assert sent(model)[0][0] == "send_email"


# -- tools that the provider loads on demand ---------------------------------------------------------------


class AnthropicLike(ScriptedChatModel):
    """Scripted, and taken for Anthropic's by whoever asks."""

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        return {**super()._get_ls_params(stop, **kwargs), "ls_provider": "anthropic"}


async def test_tools_that_provider_tool_search_defers_are_never_hidden(path):
    model = AnthropicLike(script=[discover("music"), "Done."])
    search = ProviderToolSearchMiddleware(searchable_tools=["lock_door", "water_plants"])
    middleware = [search, ToolSelectionMiddleware(top_k=1)]
    agent = create_agent(model, office(), middleware=middleware)
    result = await run(path, agent, user("send an email"))
    first, second = ([n for n in c.tools if not n.startswith("tool_search")] for c in model.calls)
    assert first == ["water_plants", "lock_door", DISCOVER, "send_email"]
    assert second == [*first, "play_music"] or sorted(second) == sorted([*first, "play_music"])
    assert all(any(n.startswith("tool_search") for n in c.tools) for c in model.calls)
    assert "Found tool `play_music`" in answers(result)[0]


async def test_a_tool_marked_to_be_deferred_is_never_hidden(path):
    tools = [*office(), make_tool("deferred", "Something.", extras={"defer_loading": True})]
    agent, model = build(["Done."], tools=tools)
    await run(path, agent, user("send an email"))
    assert sent(model) == [["deferred", "send_email"]]


async def test_inside_us_provider_tool_search_finds_its_tools_when_they_always_stay(path):
    model = AnthropicLike(script=["Done."])
    selection = ToolSelectionMiddleware(top_k=1, always_include=["lock_door"])
    search = ProviderToolSearchMiddleware(searchable_tools=["lock_door"])
    agent = create_agent(model, office(), middleware=[selection, search])
    await run(path, agent, user("send an email"))
    assert model.calls[0].tools[:3] == [DISCOVER, "send_email", "lock_door"]


# -- human approval --------------------------------------------------------------------------------------


@pytest.mark.parametrize("outside", [True, False])
async def test_a_discovered_tool_waits_for_approval_and_runs(outside, path, memory):
    approval = [HumanInTheLoopMiddleware({"play_music": True})]
    agent, model = build(
        [discover("music"), call("play_music"), "Done."],
        saver=memory,
        **{"outer" if outside else "inner": approval},
    )
    result = await run(path, agent, user("send an email"), thread())
    assert result["__interrupt__"]
    assert await pins_of(path, agent, thread()) == ["play_music"]
    resume = Command(resume={"decisions": [{"type": "approve"}]})
    result = await run(path, agent, resume, thread())
    assert answers(result, "play_music") == ["play_music did it"]
    assert sent(model) == [["send_email"], *[["send_email", "play_music"]] * 2]


@pytest.mark.parametrize("outside", [True, False])
async def test_a_discovery_beside_a_call_that_waits_for_approval_counts_once(outside, path, memory):
    approval = [HumanInTheLoopMiddleware({"send_email": True})]
    agent, model = build(
        [calls(("send_email", {}), (DISCOVER, {"query": "music"})), "Done."],
        saver=memory,
        **{"outer" if outside else "inner": approval},
    )
    result = await run(path, agent, user("send an email"), thread())
    assert result["__interrupt__"]
    result = await run(
        path, agent, Command(resume={"decisions": [{"type": "reject", "message": "no"}]}), thread()
    )
    assert len(answers(result)) == 1
    assert await pins_of(path, agent, thread()) == ["play_music"]
    assert sent(model)[-1] == ["send_email", "play_music"]


# -- two of us -------------------------------------------------------------------------------------------


class Second(ToolSelectionMiddleware):
    """A second one, which is another class to Python, and would share the first one's state."""


@pytest.mark.parametrize("discovery", [None, Discovery(name="find_tools")])
def test_a_second_instance_in_one_agent_is_refused_when_the_agent_is_built(discovery):
    with pytest.raises(AssertionError, match="duplicate middleware"):
        build(["Done."], inner=[Second(discovery=discovery)])
