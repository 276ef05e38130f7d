"""Each way of showing tools beside other middleware, ahead of it and behind it."""

from __future__ import annotations

import json
from itertools import cycle
from typing import Any

import pytest
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    LLMToolSelectorMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    ProviderToolSearchMiddleware,
    SummarizationMiddleware,
    ToolCallLimitMiddleware,
)
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.types import Command

from langchain_tool_selection import ToolSelectionMiddleware
from langchain_tool_selection.testing import ScriptedChatModel, call, calls, scripted_client

from .agents import DISCOVER, OFFICE, answers, make_tool, office, pins_of, run, thread, user
from .exposures import (
    CALL,
    StrictLog,
    additional_tools,
    agent_on,
    array,
    assert_nothing_moves,
    chat_completions,
    deferred,
    say,
    searching,
    steps,
    tool_addition,
    tool_reference,
    use,
    visible,
)

pytestmark = pytest.mark.slow

CASES = [
    (chat_completions, "per_turn"),
    (chat_completions, "grow"),
    (tool_addition, "append"),
    (tool_reference, "append"),
    (additional_tools, "append"),
    (chat_completions, "proxy"),
    (tool_reference, "proxy"),
    (chat_completions, "stubs"),
    (tool_addition, "stubs"),
]

WAYS = [(*case, way) for case, way in zip(CASES, cycle(["sync", "async"]), strict=False)]
"""Each case on one of the two paths, which differ in who awaits only."""
over_cases = pytest.mark.parametrize(
    ("client", "exposure", "path"),
    WAYS,
    ids=[f"{make.__name__}-{exposure}-{way}" for make, exposure, way in WAYS],
)
over_cases_on_both = pytest.mark.parametrize(
    ("client", "exposure"), CASES, ids=[f"{make.__name__}-{exposure}" for make, exposure in CASES]
)
# Each order on one of the two paths, which differ in who awaits only.
in_both_orders = pytest.mark.parametrize(("side", "path"), [("outer", "sync"), ("inner", "async")])


@pytest.fixture
def log():
    """A log that refuses what providers refuse."""
    log = StrictLog()
    yield log
    assert not log.refused


def can_call(payload: Any, name: str) -> bool:
    return name in visible(payload) or CALL in array(payload)


def texts_sent(payload: Any) -> str:
    return json.dumps(payload)


SCRIPT = [
    searching("play_music"),
    use("play_music", text="Bach"),
    "It plays.",
    "Hello.",
    use("play_music"),
    "Done.",
]
TEXTS = ["send an email", "hello", "once more"]


async def play(path: str, agent: Any) -> dict[str, Any]:
    for text in TEXTS:
        result = await run(path, agent, user(text), thread())
    return result


def assert_the_prefix_is_kept(log: StrictLog, exposure: str) -> None:
    if exposure in ("append", "proxy", "stubs"):
        report = log.prefix_report()
        assert report.intact, report
        assert_nothing_moves(log.payloads)


# -- what leaves requests alone ----------------------------------------------------------------------------


@over_cases_on_both
@in_both_orders
async def test_beside_middleware_that_has_nothing_to_do(client, exposure, side, path, log):
    others = [
        PIIMiddleware("email", apply_to_tool_results=True),
        ToolCallLimitMiddleware(run_limit=9),
        ToolCallLimitMiddleware(tool_name="play_music", thread_limit=9),
        ModelRetryMiddleware(max_retries=1, initial_delay=0, jitter=False),
        HumanInTheLoopMiddleware({"lock_door": True}),
        ContextEditingMiddleware(),
        ModelFallbackMiddleware(ScriptedChatModel(script=["Never."])),
    ]
    agent = agent_on(client, SCRIPT, log, exposure, **{side: others})
    result = await play(path, agent)
    assert answers(result, "play_music") == ["play_music did it"] * 2
    assert await pins_of(path, agent, thread()) == ["play_music"]
    assert_the_prefix_is_kept(log, exposure)


@over_cases_on_both
@in_both_orders
async def test_personal_data_is_taken_out_ahead_of_the_model(client, exposure, side, path, log):
    redact = PIIMiddleware("email", apply_to_tool_results=True)
    agent = agent_on(client, SCRIPT, log, exposure, **{side: [redact]})
    await run(path, agent, user("send an email to ada@example.com"), thread())
    await run(path, agent, user("and to bob@example.com"), thread())
    assert "example.com" not in texts_sent(log.payloads)
    assert can_call(log.payloads[-1], "play_music")
    assert_the_prefix_is_kept(log, exposure)


@over_cases_on_both
@in_both_orders
async def test_a_limit_of_the_real_tool_holds(client, exposure, side, path, log):
    limit = ToolCallLimitMiddleware(tool_name="play_music", run_limit=1)
    script = [searching("play_music"), use("play_music"), use("play_music"), "Done."]
    agent = agent_on(client, script, log, exposure, **{side: [limit]})
    result = await run(path, agent, user("send an email"), thread())
    first, second = answers(result, "play_music")
    assert first == "play_music did it"
    assert "limit" in second
    assert_the_prefix_is_kept(log, exposure)


@over_cases_on_both
@in_both_orders
async def test_a_rejected_call_is_told_to_the_model_and_the_tool_stays(client, exposure, side, path, log):
    approval = HumanInTheLoopMiddleware({"play_music": True})
    agent = agent_on(
        client, [searching("play_music"), use("play_music"), "Then not."], log, exposure, **{side: [approval]}
    )
    result = await run(path, agent, user("send an email"), thread())
    assert result["__interrupt__"][0].value["action_requests"][0]["name"] == "play_music"
    reject = Command(resume={"decisions": [{"type": "reject", "message": "Not now."}]})
    result = await run(path, agent, reject, thread())
    assert "Not now." in texts_sent(log.payloads[-1])
    assert can_call(log.payloads[-1], "play_music")
    assert_the_prefix_is_kept(log, exposure)


@over_cases_on_both
@in_both_orders
async def test_a_retry_sends_the_same_bytes(client, exposure, side, path, log):
    failures = iter([True])

    def flaky(sent: Any) -> Any:
        if next(failures, False):
            raise ConnectionError
        return use("play_music")(sent)

    script = [searching("play_music"), flaky, "Done."]
    # The script has gone on by the time it is asked again.
    script.insert(2, use("play_music"))
    retry = ModelRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
    agent = agent_on(client, script, log, exposure, **{side: [retry]})
    result = await run(path, agent, user("send an email"), thread())
    assert log.payloads[1] == log.payloads[2]
    assert answers(result, "play_music") == ["play_music did it"]


@over_cases_on_both
@in_both_orders
async def test_a_fallback_sees_the_tools_that_the_first_model_saw(client, exposure, side, path, log):
    def out(sent: Any) -> Any:
        raise ConnectionError

    others = StrictLog()
    other = scripted_client(chat_completions(), steps(use("play_music"), "Done."), others)
    agent = agent_on(
        client, [searching("play_music"), out, out], log, exposure, **{side: [ModelFallbackMiddleware(other)]}
    )
    result = await run(path, agent, user("send an email"), thread())
    assert answers(result, "play_music") == ["play_music did it"]
    assert can_call(others.payloads[0], "play_music")
    assert not others.refused


# -- what cuts the conversation ------------------------------------------------------------------------------


@over_cases_on_both
@in_both_orders
async def test_a_summary_in_place_of_the_search_loses_no_tool(client, exposure, side, path, log):
    summaries = SummarizationMiddleware(
        ScriptedChatModel(script=["Summary."] * 9), trigger=("messages", 6), keep=("messages", 2)
    )
    agent = agent_on(client, SCRIPT, log, exposure, **{side: [summaries]})
    result = await play(path, agent)
    for text in ("hello again", "and again", "and again, please"):
        result = await run(path, agent, user(text), thread())
    assert "Summary." in texts_sent(log.payloads[-1])
    assert all(can_call(payload, "play_music") for payload in log.payloads[1:])
    assert await pins_of(path, agent, thread()) == ["play_music"]
    assert result["messages"]


@over_cases_on_both
@in_both_orders
async def test_a_cleared_search_result_loses_no_tool(client, exposure, side, path, log):
    clearing = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=1)])
    script = [searching("play_music"), use("send_email"), use("send_email"), use("play_music"), "Done."]
    agent = agent_on(client, script, log, exposure, **{side: [clearing]})
    result = await run(path, agent, user("send an email"), thread())
    assert answers(result, "play_music") == ["play_music did it"]
    assert "cleared" in texts_sent(log.payloads[-1])
    assert all(can_call(payload, "play_music") for payload in log.payloads[1:])


@in_both_orders
async def test_a_cleared_search_result_stages_no_search_for_a_model_that_thinks(side, path, log):
    thoughtful = searching("play_music")
    thoughtful.content = [{"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}]
    clearing = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=1)])
    script = [thoughtful, use("send_email"), use("send_email"), "Done."]
    agent = agent_on(tool_reference, script, log, "append", **{side: [clearing]})
    await run(path, agent, user("send an email"), thread())
    assert "toolu_" not in texts_sent(log.payloads[-1])
    assert can_call(log.payloads[-1], "play_music")


# -- what narrows the tools, too -----------------------------------------------------------------------------


ANTHROPIC_CASES = [
    (client, exposure) for client, exposure in CASES if client in (tool_addition, tool_reference)
]


@pytest.mark.parametrize(
    ("client", "exposure"), [*ANTHROPIC_CASES, (tool_reference, "per_turn"), (tool_reference, "grow")]
)
@in_both_orders
async def test_beside_the_providers_own_tool_search(client, exposure, side, path, log):
    search = ProviderToolSearchMiddleware(searchable_tools=["lock_door", "water_plants"])
    settings: dict[str, Any] = {"always_include": ["lock_door", "water_plants"]} if side == "inner" else {}
    agent = agent_on(client, SCRIPT, log, exposure, **{side: [search]}, **settings)
    result = await play(path, agent)
    assert answers(result, "play_music") == ["play_music did it"] * 2
    for payload in log.payloads:
        assert {"lock_door", "water_plants"} <= set(deferred(payload))
        assert any(name.startswith("tool_search_tool") for name in array(payload))
        assert DISCOVER in array(payload)
    assert_the_prefix_is_kept(log, exposure)


@pytest.mark.parametrize("exposure", ["per_turn", "grow", "append", "proxy"])
async def test_behind_us_the_providers_tool_search_says_which_tools_it_misses(exposure, path):
    search = ProviderToolSearchMiddleware(searchable_tools=["lock_door"])
    agent = agent_on(tool_addition, SCRIPT, StrictLog(), exposure, inner=[search])
    with pytest.raises(ValueError, match="not bound to the model: lock_door"):
        await run(path, agent, user("send an email"), thread())


def choosing(*names: str) -> LLMToolSelectorMiddleware:
    """Return LangChain's own selector, whose model always chooses these."""

    def choose(sent: Any) -> AIMessage:
        return call(sent.tools[0], tools=list(names))

    return LLMToolSelectorMiddleware(model=Choosing(script=choose), always_include=[DISCOVER])


class Choosing(ScriptedChatModel):
    """Answers in the form that was asked for, as a model with structured output."""

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
        chosen = {"tools": self.script(FAKE).tool_calls[0]["args"]["tools"]}  # type: ignore[operator]
        return ScriptedChatModel(script=["{}"]) | (lambda _: chosen)


class FAKE:
    """Stands for what the selector's model was sent."""

    tools = ("select",)


@over_cases
async def test_behind_langchains_selector_its_choice_is_the_catalogue(client, exposure, path, log):
    selector = choosing("send_email", "play_music", "lock_door", "water_plants")
    agent = agent_on(client, SCRIPT, log, exposure, outer=[selector])
    if exposure == "proxy":
        selector.always_include.append(CALL)
    result = await play(path, agent)
    assert answers(result, "play_music") == ["play_music did it"] * 2
    assert all("order_pizza" not in texts_sent(payload) for payload in log.payloads)
    assert_the_prefix_is_kept(log, exposure)


@pytest.mark.parametrize(
    ("client", "exposure"),
    [case for case in CASES if case != (tool_reference, "append")],
    ids=[f"{c.__name__}-{e}" for c, e in CASES if (c, e) != (tool_reference, "append")],
)
async def test_ahead_of_langchains_selector_it_chooses_among_what_is_shown(client, exposure, path, log):
    selector = choosing("send_email")
    agent = agent_on(client, ["Done."], log, exposure, inner=[selector])
    if exposure == "proxy":
        selector.always_include.append(CALL)
        selector.model.script = lambda _: call("select", tools=[])  # type: ignore[union-attr]
    await run(path, agent, user("send an email"), thread())
    assert set(array(log.payloads[0])) == (
        {DISCOVER, CALL} if exposure == "proxy" else {DISCOVER, "send_email"}
    )


async def test_a_selector_behind_us_that_takes_away_a_referenced_tool_fails_no_request(path, log):
    agent = agent_on(tool_reference, SCRIPT, log, "append", inner=[choosing("send_email")])
    await play(path, agent)
    assert all(set(array(payload)) <= {DISCOVER, "send_email"} for payload in log.payloads)


# -- Anthropic's prompt cache --------------------------------------------------------------------------------


@pytest.mark.parametrize(("client", "exposure"), [*ANTHROPIC_CASES, (tool_reference, "grow")])
@in_both_orders
async def test_anthropics_cache_mark_is_on_no_deferred_tool(client, exposure, side, path, log):
    client = client()
    from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware  # noqa: PLC0415

    caching = AnthropicPromptCachingMiddleware()
    agent = agent_on(
        client, SCRIPT, log, exposure, agent_settings={"system_prompt": "Run it."}, **{side: [caching]}
    )
    await play(path, agent)
    for payload in log.payloads:
        assert not payload["tools"][-1].get("defer_loading")
        marked = [tool["name"] for tool in payload["tools"] if "cache_control" in tool]
        if side == "inner":
            assert marked == [payload["tools"][-1]["name"]]
    assert_the_prefix_is_kept(log, exposure)


@pytest.mark.parametrize("client", [tool_addition, tool_reference])
async def test_a_cache_mark_of_ones_own_goes_where_the_tool_is_deferred_or_added(client, path, log):
    marked = [
        tool.model_copy(update={"extras": {"cache_control": {"type": "ephemeral"}}})
        if tool.name == "play_music"
        else tool
        for tool in office()
    ]
    agent = agent_on(client, SCRIPT, log, "append", tools=marked)
    result = await play(path, agent)
    assert answers(result, "play_music") == ["play_music did it"] * 2
    assert "cache_control" not in texts_sent(log.payloads)


@pytest.mark.parametrize("exposure", ["grow", "append"])
async def test_a_deferred_tool_that_joins_later_gets_no_cache_mark(exposure, path, log):
    client = tool_reference()
    from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware  # noqa: PLC0415

    caching = [AnthropicPromptCachingMiddleware()]
    agent = agent_on(client, [], log, exposure, inner=caching)
    await say(path, agent, "send an email")
    later = make_tool("later", "Loaded by the provider.", extras={"defer_loading": True})
    rebuilt = agent_on(
        client, [], log, exposure, inner=caching, tools=[*office(), later], saver=agent.checkpointer
    )
    await say(path, rebuilt, "hello")
    assert "later" in deferred(log.payloads[-1])


# -- deep agents ---------------------------------------------------------------------------------------------


def by_role(sent: Any) -> Any:
    """Play the parent and its subagent, told apart by what they were asked."""
    last, first = sent.messages[-1], next(m for m in sent.messages if isinstance(m, HumanMessage))
    wish = {"parent": "lock_door", "job": "play_music"}[first.text.split(":")[0]]
    results = [m for m in sent.messages if isinstance(m, ToolMessage)]
    if not results:
        return searching(wish)
    if len(results) == 1:
        return use(wish)(sent)
    if first.text == "parent" and len(results) == 2:
        return calls(("task", {"description": "job", "subagent_type": "worker"}))
    assert isinstance(last, ToolMessage)
    return "Done."


@over_cases
async def test_in_a_deep_agent_nothing_passes_between_a_parent_and_its_subagent(
    client, exposure, path, memory, log
):
    deepagents = pytest.importorskip("deepagents")
    subs = StrictLog()
    worker = {
        "name": "worker",
        "description": "Does a job.",
        "system_prompt": "You do one job.",
        "model": scripted_client(client(), by_role, subs),
        "tools": office(),
        "middleware": [ToolSelectionMiddleware(top_k=1, exposure=exposure)],
    }
    agent = deepagents.create_deep_agent(
        scripted_client(client(), by_role, log),
        office(),
        middleware=[ToolSelectionMiddleware(top_k=1, exposure=exposure)],
        subagents=[worker],
        checkpointer=memory,
    )
    result = await run(path, agent, user("parent"), thread())
    assert answers(result, "lock_door") == ["lock_door did it"]
    assert len(answers(result, "task")) == 1
    assert await pins_of(path, agent, thread()) == ["lock_door"]
    of_all = {"proxy": [], "stubs": [*OFFICE]}
    assert [name for name in visible(log.payloads[-1]) if name in OFFICE] == of_all.get(
        exposure, ["lock_door"]
    )
    assert [name for name in visible(subs.payloads[-1]) if name in OFFICE] == of_all.get(
        exposure, ["play_music"]
    )
    assert not subs.refused
    assert_the_prefix_is_kept(log, exposure)
    assert_the_prefix_is_kept(subs, exposure)


@over_cases
async def test_in_a_deep_agent_a_conversation_keeps_its_prefix(client, exposure, path, memory, log):
    deepagents = pytest.importorskip("deepagents")
    agent = deepagents.create_deep_agent(
        scripted_client(client(), steps(*SCRIPT), log),
        office(),
        middleware=[ToolSelectionMiddleware(top_k=1, exposure=exposure)],
        checkpointer=memory,
    )
    result = await play(path, agent)
    assert answers(result, "play_music") == ["play_music did it"] * 2
    assert {"ls", "read_file", "task"} <= set(array(log.payloads[-1]))
    assert_the_prefix_is_kept(log, exposure)
