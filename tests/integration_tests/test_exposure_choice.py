"""Which exposure a model call gets: by name, by the default, or one of the user's own."""

from __future__ import annotations

import asyncio
from typing import Any, get_args

import pytest
from langchain.agents import create_agent

from langchain_tool_selection import Exposure, Rendered, ToolSelectionMiddleware, estimate_cost
from langchain_tool_selection.cost import DEFAULT_PRICES, Workload, break_even, input_cost
from langchain_tool_selection.cost import Exposure as CostExposure
from langchain_tool_selection.testing import PayloadLog, ScriptedChatModel, call

from .agents import OFFICE, Rewriting, answers, build, office, run, sent, state_of, thread, user
from .exposures import agent_on, chat_completions, say, selections, tool_addition, tool_reference

THREAD = "tool_selection_thread"


class Own:
    """An exposure that is not one of the package's: the array grows by what is selected."""

    name = "own"
    keeps = True
    ranks = True
    additions_reset_cache = True

    def max_additions(self, record: Any) -> int:
        return 1

    def render(self, request: Any, selection: Any, tools: Any, record: Any) -> Rendered:
        return Rendered(request.override(tools=[tools[n] for n in selection.names]), selection.names)

    def receive(self, response: Any, tools: Any) -> Any:
        return response


class Refusing(ScriptedChatModel):
    """Claude that checks its prefix, through a client that cannot add tools."""

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        reported = super()._get_ls_params(stop, **kwargs)
        return {**reported, "ls_provider": "amazon_bedrock", "ls_model_name": "anthropic.claude-opus-5-5"}


def agent_on_scripted(model: Any, **settings: Any) -> Any:
    return create_agent(model, office(), middleware=[ToolSelectionMiddleware(top_k=1, **settings)])


@pytest.fixture
def log():
    return PayloadLog()


def names_in_the_error() -> list[str]:
    with pytest.raises(ValueError, match="exposure must be one of") as error:
        ToolSelectionMiddleware(exposure="all_at_once")  # type: ignore[arg-type]
    return [part for part in str(error.value).split(", got")[0].split("'")[1::2] if part != "auto"]


def test_every_exposure_of_the_middleware_has_a_cost_and_can_be_recommended():
    compared = {"everything", "once", "per_call"}
    assert {*get_args(CostExposure)} - compared == {*names_in_the_error()}
    costs = {name: input_cost(name, 50_000, Workload(), DEFAULT_PRICES) for name in get_args(CostExposure)}
    tools = [{"name": f"tool_{number}", "description": "Does something. " * 30} for number in range(200)]
    assert estimate_cost(tools).recommended == "append"
    assert costs["append"] == costs["proxy"] < costs["grow"] < costs["per_turn"] < costs["per_call"]
    assert costs["append"] < costs["stubs"] < costs["everything"]


@pytest.mark.parametrize("name", names_in_the_error())
async def test_an_exposure_that_is_named_is_the_one_that_is_taken(name, path, log):
    (event,) = selections(await say(path, agent_on(tool_addition, ["Sent."], log, name), "send an email"))
    assert event["exposure"] == name


@pytest.mark.parametrize("setting", ["append", "auto"])
async def test_references_need_a_search_tool_to_live_in(setting, path, log):
    for settings, taken in (({}, "append"), ({"discovery": None}, "grow")):
        agent = agent_on(tool_reference, ["Sent."], log, setting, **settings)
        (event,) = selections(await say(path, agent, "send an email"))
        assert event["exposure"] == taken


async def test_a_model_that_refuses_changes_and_takes_no_additions_gets_stubs(path, caplog):
    model = Refusing(script=["Sent."])
    (event,) = selections(await say(path, agent_on_scripted(model), "send an email"))
    assert event["exposure"] == "stubs"
    assert model.calls[0].tools == ["discover_tools", *OFFICE]  # no `call_tool`, and nothing is hidden
    assert caplog.records == []


async def test_where_no_exposure_suits_all_is_sent_and_that_is_said_once(path, caplog):
    strict = Rewriting(lambda request: request.override(model_settings={"strict": True}))
    agent = create_agent(
        Refusing(script=["Sent."]), office(), middleware=[strict, ToolSelectionMiddleware(top_k=1)]
    )
    for _ in range(2):
        assert selections(await say(path, agent, "send an email")) == []
    (record,) = caplog.records
    assert record.getMessage().startswith("all tools are sent to anthropic.claude-opus-5-5")


@pytest.mark.parametrize("setting", ["per_turn", "grow", Own()], ids=["per_turn", "grow", "own"])
async def test_an_exposure_that_the_provider_refuses_is_warned_of_once(setting, path, caplog):
    agent = agent_on_scripted(Refusing(script=["Sent."]), exposure=setting)
    for _ in range(2):
        await say(path, agent, "send an email")
    (record,) = caplog.records
    assert "claude-opus-5-5 answers with an error (400)" in record.getMessage()


async def test_a_users_own_exposure_shows_what_is_selected(path, memory):
    script = [call("discover_tools", names=["play_music"]), call("play_music"), "It plays.", "Locked."]
    agent, model = build(script, exposure=Own(), saver=memory)
    result = await run(path, agent, user("send an email"), thread())
    assert answers(result, "play_music") == ["play_music did it"]
    await run(path, agent, user("lock the front door"), thread())
    assert sent(model) == [
        ["send_email"],
        ["send_email", "play_music"],
        ["send_email", "play_music"],
        ["send_email", "play_music", "lock_door"],
    ]


class Lacking:
    name = "lacking"


@pytest.mark.parametrize("setting", [Lacking(), Own, None, 3])
def test_what_is_no_exposure_is_refused(setting):
    assert isinstance(Own(), Exposure)
    with pytest.raises(
        ValueError, match="exposure must be one of 'auto', 'per_turn', 'grow', 'append', 'proxy', 'stubs'"
    ):
        ToolSelectionMiddleware(exposure=setting)


async def test_a_record_of_an_exposure_that_is_unknown_here_loses_no_pin(path, log):
    agent = agent_on(chat_completions, [call("discover_tools", names=["play_music"]), "Found."], log, "proxy")
    await say(path, agent, "send an email")
    record = (await state_of(path, agent, thread()))[THREAD]
    later = {THREAD: {**record, "exposure": "of a later version"}}
    await asyncio.to_thread(agent.update_state, thread(), later)
    again = agent_on(chat_completions, ["Hello."], log, "per_turn", saver=agent.checkpointer)
    (event,) = selections(await say(path, again, "hello"))
    assert event["shown"]["play_music"]["kind"] == "pinned"
    assert event["hidden"] < len(OFFICE)


@pytest.mark.parametrize(
    ("keeps", "resets", "same"), [(True, True, "grow"), (True, False, "append"), (False, True, "per_turn")]
)
def test_a_users_own_exposure_costs_what_one_of_ours_does_that_says_the_same(keeps, resets, same):
    own = Own()
    own.keeps, own.additions_reset_cache = keeps, resets
    known = (Workload(), DEFAULT_PRICES)
    assert input_cost(own, 50_000, *known) == input_cost(same, 50_000, *known)
    assert break_even(own, *known) == break_even(same, *known)
