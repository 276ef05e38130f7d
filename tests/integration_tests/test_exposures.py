"""Each way of showing tools keeps its promise, on the requests that the providers' own clients build."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise, permutations
from typing import Any

import pytest
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
)
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool, tool
from langgraph.types import Command
from pydantic import BaseModel

from langchain_tool_selection import CacheUsage, Discovery, thread_usage
from langchain_tool_selection.testing import ScriptedChatModel, call, calls, scripted_client

from .agents import (
    DISCOVER,
    OFFICE,
    PINS,
    Rewriting,
    RoleFilter,
    answers,
    discover,
    make_tool,
    office,
    open_saver,
    pins_of,
    run,
    state_of,
    thread,
    user,
)
from .exposures import (
    CALL,
    CLIENTS,
    TRANSPORTS,
    StrictLog,
    additional_tools,
    agent_on,
    array,
    assert_nothing_moves,
    blocks,
    chat_completions,
    converse,
    deferred,
    foreign,
    messages_of,
    revealed,
    say,
    searching,
    selections,
    steps,
    tool_addition,
    tool_reference,
    use,
    visible,
)

APPROVE = Command(resume={"decisions": [{"type": "approve"}]})

TOPICS = ["polish", "rotate", "archive", "compress", "translate", "weigh", "measure"]
THINGS = ["bottle", "carpet", "lantern", "mirror", "ladder", "kettle"]


class Verdict(BaseModel):
    """The verdict on what was asked."""

    verdict: str


@cache
def _many_tools() -> tuple[Any, ...]:
    return tuple(
        make_tool(f"{topic}_{thing}", f"{topic.title()} a {thing}.") for topic in TOPICS for thing in THINGS
    )


def many_tools() -> list[Any]:
    return list(_many_tools())


def forms() -> Any:
    """Return a tool with a choice at the root of its schema, as MCP servers have."""
    either = [{"required": ["text"]}, {"required": ["number"]}]
    properties = {"text": {"type": "string"}, "number": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "anyOf": either}

    def run(**arguments: Any) -> str:
        return "forms did it"

    return StructuredTool(name="forms", description="Fill in forms.", args_schema=schema, func=run)


def compaction() -> SummarizationMiddleware:
    model = ScriptedChatModel(script=["Summary."] * 9)
    return SummarizationMiddleware(model, trigger=("messages", 6), keep=("messages", 2))


def choice_of(client: Any, name: str) -> Any:
    return (
        {"type": "function", "name": name} if client is additional_tools else {"type": "tool", "name": name}
    )


@pytest.fixture
def log():
    """A log that refuses what providers refuse."""
    log = StrictLog()
    yield log
    assert not log.refused


def named(value: Any) -> str:
    return getattr(value, "__name__", value)


PATHS = {tool_addition: "sync", tool_reference: "async", additional_tools: "async", chat_completions: "sync"}
"""Each client on one of the two paths, which differ in who awaits only."""

over_transports = pytest.mark.parametrize(("client", "path"), [(c, PATHS[c]) for c in TRANSPORTS], ids=named)
over_clients = pytest.mark.parametrize(("client", "path"), [(c, PATHS[c]) for c in CLIENTS], ids=named)


# -- the prefix ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", TRANSPORTS, ids=named)
async def test_append_keeps_the_whole_prefix(client, path, tmp_path, log):
    events = await converse(client, "append", path, tmp_path, log)
    report = log.prefix_report()
    assert len(report) == len(events) == 12
    assert report.intact, report
    assert [event["changed"] for event in events] == [None] + [False] * 11
    assert_nothing_moves(log.payloads)
    revealed = [event["revealed"] for event in events]
    assert [names for names in revealed if names] == [
        ["play_music"],
        ["track_parcel"],
        ["lock_door"],
        ["water_plants"],
        ["order_pizza"],
    ]


@pytest.mark.parametrize("client", CLIENTS, ids=named)
async def test_proxy_keeps_the_whole_prefix(client, path, tmp_path, log):
    events = await converse(client, "proxy", path, tmp_path, log)
    report = log.prefix_report()
    assert len(report) == len(events) == 12
    assert report.intact, report
    assert {tuple(array(payload)) for payload in log.payloads} == {(DISCOVER, "call_tool")}
    assert [event["changed"] for event in events] == [None] + [False] * 11


@pytest.mark.parametrize("client", [chat_completions, tool_reference], ids=named)
async def test_grow_changes_only_where_it_says_so_and_only_appends(client, path, tmp_path, log):
    events = await converse(client, "grow", path, tmp_path, log)
    report = log.prefix_report()
    assert [step.changed_in == "tools" for step in report[1:]] == [event["changed"] for event in events[1:]]
    assert all(step.changed_in in (None, "tools") for step in report)
    assert all(bool(event["why"]) == bool(event["changed"]) for event in events)
    for before, now in pairwise(map(array, log.payloads)):
        assert now[: len(before)] == before
    assert {"play_music", "lock_door", "order_pizza"} <= set(array(log.payloads[-1]))


@pytest.mark.parametrize("client", [chat_completions, tool_reference], ids=named)
async def test_per_turn_changes_with_a_user_message_or_a_discovery(client, path, tmp_path, log):
    events = await converse(client, "per_turn", path, tmp_path, log)
    report = log.prefix_report()
    changed = [number for number, step in enumerate(report, 1) if step.changed_in == "tools"]
    first_of_turn, after_search = [4, 6, 9, 12], [2, 7, 10]
    assert set(changed) <= {*first_of_turn, *after_search}
    assert changed == [number for number, event in enumerate(events, 1) if event["changed"]]
    assert all(bool(event["why"]) == bool(event["changed"]) for event in events)


async def test_grow_appends_what_a_change_of_topic_needs(path, log):
    agent = agent_on(chat_completions, [], log, "grow")
    for text in ("send an email to a recipient", "thanks, do it", "track a parcel by its number"):
        (event,) = selections(await say(path, agent, text))
    assert visible(log.payloads[-1]) == ["send_email", "track_parcel"]
    assert (event["changed"], event["why"]) == (True, "added track_parcel (rank)")


async def test_grow_does_not_change_for_a_message_that_leans_on_the_one_before(path, log):
    agent = agent_on(chat_completions, [], log, "grow")
    for text in ("send an email to a recipient", "and one to Berlin", "hello"):
        events = selections(await say(path, agent, text))
    assert visible(log.payloads[-1]) == ["send_email"]
    assert events[0]["changed"] is False


async def test_grow_stops_adding_unasked_when_its_budget_is_spent_and_still_adds_what_is_found(path, log):
    agent = agent_on(chat_completions, [], log, "grow", tools=many_tools())
    for topic in TOPICS:
        await say(path, agent, f"{topic} the goods of our warehouse")
    assert len(visible(log.payloads[-1])) == 1 + 15
    found = agent_on(
        chat_completions, [discover(TOPICS[-1])], log, "grow", tools=many_tools(), saver=agent.checkpointer
    )
    await say(path, found, "and now?")
    assert len(visible(log.payloads[-1])) > 1 + 15


# -- append ----------------------------------------------------------------------------------------------


@over_transports
async def test_parallel_discoveries_are_revealed_behind_the_whole_batch(client, path, log):
    agent = agent_on(
        client, [searching("play_music", "order_pizza", "lock_door"), use("lock_door")], log, "append"
    )
    await say(path, agent, "send an email")
    assert revealed(log.payloads[0]) == []
    assert sorted(revealed(log.payloads[1])) == ["lock_door", "order_pizza", "play_music"]
    last = len(messages_of(log.payloads[1])) - 1
    assert {place for place, *_ in blocks(log.payloads[1])} <= {last, last - 1, last - 2}
    assert log.prefix_report().intact
    assert_nothing_moves(log.payloads)


@over_transports
async def test_a_discovery_beside_another_call_is_revealed_behind_both(client, path, log):
    both = calls((DISCOVER, {"query": "music"}), ("send_email", {"text": "Hi"}))
    agent = agent_on(client, [both, use("play_music")], log, "append")
    result = await run(path, agent, user("send an email"), thread())
    assert answers(result, "play_music") == ["play_music did it"]
    assert [revealed(payload) for payload in log.payloads] == [[], ["play_music"], ["play_music"]]
    assert log.prefix_report().intact


@over_transports
async def test_nothing_is_revealed_twice(client, path, log):
    agent = agent_on(
        client,
        [searching("play_music"), searching("play_music"), discover("music"), use("play_music")],
        log,
        "append",
    )
    for text in ("send an email", "play some music by an artist", "send an email"):
        await say(path, agent, text)
    assert revealed(log.payloads[-1]) == ["play_music"]
    assert_nothing_moves(log.payloads)
    assert log.prefix_report().intact


@over_transports
async def test_a_tool_called_while_hidden_is_revealed_once_it_was_used(client, path, log):
    agent = agent_on(client, [call("lock_door"), "Locked."], log, "append")
    result = await run(path, agent, user("send an email"), thread())
    assert answers(result, "lock_door") == ["lock_door did it"]
    assert revealed(log.payloads[-1]) == ["lock_door"]
    assert log.prefix_report().intact


@over_transports
async def test_a_fork_from_before_the_discovery_has_no_pin_and_no_block(client, path, log):
    agent = agent_on(
        client, [searching("play_music"), use("play_music"), "It plays.", "Forked.", "Again."], log, "append"
    )
    await say(path, agent, "send an email")
    history = [s async for s in agent.aget_state_history(thread())]
    before = next(s for s in history if s.next == ("model",) and not s.values.get(PINS))
    result = await run(path, agent, None, before.config)
    assert result["messages"][-1].text == "Forked."
    assert blocks(log.payloads[-1]) == []
    assert await pins_of(path, agent, thread()) == []
    await say(path, agent, "water the plants")
    assert "play_music" not in visible(log.payloads[-1])


@over_transports
async def test_a_fork_from_behind_the_discovery_keeps_its_block(client, path, log):
    agent = agent_on(
        client, [searching("play_music"), use("play_music"), "It plays.", "Forked."], log, "append"
    )
    await say(path, agent, "send an email")
    history = [s async for s in agent.aget_state_history(thread())]
    behind = next(s for s in reversed(history) if s.next == ("model",) and s.values.get(PINS))
    await run(path, agent, None, behind.config)
    assert log.payloads[-1] == log.payloads[1]


@over_transports
@pytest.mark.parametrize("outside", [True, False])
async def test_a_discovered_tool_waits_for_approval_and_keeps_its_place(client, outside, path, tmp_path, log):
    approval = {"outer" if outside else "inner": [HumanInTheLoopMiddleware({"play_music": True})]}
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent = agent_on(
            client, [searching("play_music"), use("play_music")], log, "append", saver=saver, **approval
        )
        result = await run(path, agent, user("send an email"), thread())
        assert result["__interrupt__"][0].value["action_requests"][0]["name"] == "play_music"
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent = agent_on(client, ["It plays."], log, "append", saver=saver, **approval)
        result = await run(path, agent, APPROVE, thread())
    assert answers(result, "play_music") == ["play_music did it"]
    assert [revealed(payload) for payload in log.payloads] == [[], ["play_music"], ["play_music"]]
    assert log.prefix_report().intact


@over_transports
async def test_after_a_compaction_what_was_found_is_revealed_once_more_and_stays(client, path, log):
    agent = agent_on(
        client,
        [searching("play_music"), use("play_music"), "It plays.", *["Sure."] * 9],
        log,
        "append",
        outer=[compaction()],
    )
    for text in ("send an email", "hello", "hello again", "what now?", "and now?"):
        await say(path, agent, text)
    seen = [i for i, payload in enumerate(log.payloads) if "Summary." in json.dumps(payload)]
    assert seen
    assert all("play_music" in visible(payload) for payload in log.payloads[1:])
    for before, now in pairwise(log.payloads):
        assert array(before) == array(now)
        if len(messages_of(now)) > len(messages_of(before)):
            assert blocks(now)[: len(blocks(before))] == blocks(before)
    assert all(len(revealed(payload)) == len(set(revealed(payload))) for payload in log.payloads)


@over_transports
@pytest.mark.parametrize("strategy", [ToolStrategy, ProviderStrategy])
async def test_structured_output_keeps_the_prefix(client, strategy, path, log):
    end = call("Verdict", verdict="good") if strategy is ToolStrategy else '{"verdict": "good"}'
    agent = agent_on(
        client,
        [searching("play_music"), use("play_music"), end],
        log,
        "append",
        agent_settings={"response_format": strategy(Verdict)},
    )
    result = await run(path, agent, user("send an email"), thread())
    assert result["structured_response"] == Verdict(verdict="good")
    assert revealed(log.payloads[-1]) == ["play_music"]
    assert log.prefix_report().intact, log.prefix_report()


@over_transports
async def test_streamed_answers_keep_the_prefix(client, path, log):
    agent = agent_on(client, [discover("play music"), use("play_music"), "It plays to you."], log, "append")
    await say(path, agent, "send an email", mode="messages")
    assert all(payload.get("stream") for payload in log.payloads) or client is not additional_tools
    assert revealed(log.payloads[-1]) == ["play_music"]
    assert log.prefix_report().intact
    assert_nothing_moves(log.payloads)


@pytest.mark.parametrize("client", TRANSPORTS, ids=named)
@pytest.mark.slow
def test_sixteen_threads_at_once_on_one_agent_keep_their_own(client, log):
    names = list(OFFICE)[1:]

    def answer(sent: Any) -> Any:
        wanted = next(m for m in sent.messages if isinstance(m, HumanMessage)).text.split()[-1]
        results = [m for m in sent.messages if isinstance(m, ToolMessage)]
        return [searching(wanted), call(wanted), "Done."][len(results)]

    agent = agent_on(client, answer, log, "append")

    def play(number: int) -> None:
        agent.invoke(user(f"send an email {names[number % len(names)]}"), thread(str(number)))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(play, range(16)))
    for number in range(16):
        payloads = log.of_thread(str(number))
        assert log.prefix_report(str(number)).intact
        assert_nothing_moves(payloads)
        assert names[number % len(names)] in visible(payloads[-1])
        assert len(visible(payloads[-1])) <= 2


@over_transports
async def test_a_later_message_reveals_what_it_needs_right_behind_it_without_a_search(client, path, log):
    agent = agent_on(client, ["Sent.", "Tracked.", "Yes."], log, "append")
    for text in ("send an email", "track a parcel by its number", "is it here?"):
        await say(path, agent, text)
    assert [revealed(payload) for payload in log.payloads] == [[], ["track_parcel"], ["track_parcel"]]
    assert log.prefix_report().intact
    assert_nothing_moves(log.payloads)


@over_transports
async def test_a_later_message_that_matches_what_is_there_reveals_nothing(client, path, log):
    agent = agent_on(client, [], log, "append")
    for text in ("send an email", "send another email to a recipient"):
        (event,) = selections(await say(path, agent, text))
    assert revealed(log.payloads[-1]) == event["revealed"] == []


@over_transports
async def test_reveals_that_nobody_asked_for_have_a_budget(client, path, log):
    agent = agent_on(client, [], log, "append", tools=many_tools())
    await say(path, agent, "send an email")
    # Of the fifty that a thread may get unasked, so many are left.
    record = agent.get_state(thread()).values["tool_selection_thread"]
    agent.update_state(thread(), {"tool_selection_thread": {**record, "added": 50 - 10}})
    events = []
    for topic in TOPICS:
        events += selections(await say(path, agent, f"{topic} the goods of our warehouse"))
    assert len(revealed(log.payloads[-1])) == 10
    assert max(len(event["revealed"]) for event in events) == 3
    assert log.prefix_report().intact


@over_transports
async def test_the_tool_that_tool_choice_names_can_be_called(client, path, log):
    forcing = Rewriting(lambda request: request.override(tool_choice=choice_of(client, "lock_door")))
    agent = agent_on(client, ["One."], log, "append")
    await say(path, agent, "send an email")
    forced = agent_on(
        client, [call("lock_door"), "Two."], log, "append", saver=agent.checkpointer, outer=[forcing]
    )
    events = selections(await say(path, forced, "hello"))
    assert "lock_door" in visible(log.payloads[1])
    assert log.prefix_report()[1].changed_in == ("tools" if events[0]["changed"] else None)
    assert log.payloads[2]["tools"] == log.payloads[1]["tools"]


@over_transports
async def test_a_revealed_tool_that_is_gone_from_the_catalogue_ends_no_run(client, path, log):
    agent = agent_on(client, [searching("play_music", "lock_door"), "Found."], log, "append")
    await say(path, agent, "send an email")
    fewer = [tool for tool in office() if tool.name != "play_music"]
    rebuilt = agent_on(client, ["Hi.", "Ho."], log, "append", tools=fewer, saver=agent.checkpointer)
    await say(path, rebuilt, "hello")
    await say(path, rebuilt, "hello again")
    assert visible(log.payloads[-1]) == ["send_email", "lock_door"]
    restored = agent_on(client, ["Hi."], log, "append", saver=agent.checkpointer)
    await say(path, restored, "hello once more")
    assert sorted(visible(log.payloads[-1])) == ["lock_door", "play_music", "send_email"]


@over_transports
async def test_a_tool_of_the_array_that_is_gone_from_the_catalogue_changes_the_array_and_says_so(
    client, path, log
):
    agent = agent_on(client, [], log, "append")
    await say(path, agent, "send an email")
    fewer = [tool for tool in office() if tool.name != "send_email"]
    rebuilt = agent_on(client, [], log, "append", tools=fewer, saver=agent.checkpointer)
    (event,) = selections(await say(path, rebuilt, "hello"))
    assert (event["changed"], event["why"]) == (True, "tools that are no longer there: 1")


@over_transports
@pytest.mark.parametrize("wanted", ["forms", "play_music"])
@pytest.mark.filterwarnings("ignore:.*anyOf.*")
async def test_a_tool_whose_schema_is_a_choice_at_its_root_fails_no_request(client, wanted, path, log):
    agent = agent_on(
        client, [searching(wanted), use(wanted, text="x")], log, "append", tools=[*office(), forms()]
    )
    result = await run(path, agent, user("send an email"), thread())
    assert len(log.payloads) == 3
    assert answers(result, wanted)
    assert log.prefix_report().intact


async def test_a_search_is_not_staged_for_a_model_that_has_thought(path, log):
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}
    thoughtful = searching("play_music")
    thoughtful.content = [thinking]
    agent = agent_on(tool_reference, [thoughtful, "Found.", "Tracked."], log, "append")
    for text in ("send an email", "track a parcel by its number"):
        await say(path, agent, text)
    assert revealed(log.payloads[-1]) == ["play_music"]
    assert visible(log.payloads[-1]) == ["send_email", "play_music"]
    assert log.prefix_report().intact


@over_transports
async def test_a_providers_own_tool_stays_in_the_array(client, path, log):
    web = (
        {"type": "web_search"}
        if client is additional_tools
        else {"type": "web_search_20250305", "name": "web_search"}
    )
    agent = agent_on(
        client, [searching("play_music"), use("play_music")], log, "append", tools=[*office(), web]
    )
    await say(path, agent, "send an email")
    assert all("web_search" in array(payload) for payload in log.payloads)
    assert revealed(log.payloads[-1]) == ["play_music"]
    assert log.prefix_report().intact


@over_transports
async def test_discovery_switched_off_still_reveals_for_a_later_message_where_it_can(client, path, log):
    agent = agent_on(client, [], log, "append", discovery=None)
    for text in ("send an email", "track a parcel by its number"):
        await say(path, agent, text)
    assert "track_parcel" in visible(log.payloads[-1])
    # References live in the answers of searches: without any, the array has to grow.
    assert log.prefix_report().intact is (client is not tool_reference)


# -- proxy -----------------------------------------------------------------------------------------------


def through(name: Any, arguments: Any) -> Any:
    """Return an answer that calls a tool through the proxy."""
    return call(CALL, name=name, arguments=arguments)


@tool
def add(a: int, b: int = 0) -> str:
    """Add two numbers."""
    return str(a + b)


def served(**schema: Any) -> StructuredTool:
    """Return a tool as an MCP server's: async only, its schema a dict."""

    async def run(**arguments: Any) -> str:
        return json.dumps(arguments)

    properties = {"city": {"type": "string"}, "days": {"type": "integer", "maximum": 7}}
    schema = {"type": "object", "properties": properties, "required": ["city"], **schema}
    return StructuredTool(name="forecast", description="Forecast rain.", args_schema=schema, coroutine=run)


@over_clients
async def test_discovery_carries_the_schema(client, path, log):
    agent = agent_on(client, [searching("add")], log, "proxy", tools=[*office(), add, served()])
    result = await run(path, agent, user("send an email"), thread())
    (text,) = answers(result)
    assert '"a":{"type":"integer"}' in text.replace(" ", "")
    assert "call_tool(name, arguments)" in text


async def test_a_schema_that_the_model_may_have_lost_can_be_asked_for_again(path, log):
    agent = agent_on(
        chat_completions, [searching("add"), searching("add")], log, "proxy", tools=[*office(), add]
    )
    result = await run(path, agent, user("send an email"), thread())
    assert all('"a":{"type":"integer"}' in text.replace(" ", "") for text in answers(result))


@over_clients
async def test_the_call_runs_as_the_real_tool_and_the_model_reads_what_it_wrote(client, path, log):
    seen: list[Any] = []

    @tool
    def whoami(text: str, runtime: ToolRuntime[Any, Any]) -> str:
        """Tell who asks."""
        seen.append(runtime)
        return f"hello {text}"

    wanted = through("whoami", {"text": "you"})
    agent = agent_on(client, [searching("whoami"), wanted, "Done."], log, "proxy", tools=[*office(), whoami])
    result = await run(path, agent, user("send an email"), thread())
    assert [runtime.tool_call_id for runtime in seen] == [wanted.tool_calls[0]["id"]]
    made = [c for m in result["messages"] if isinstance(m, AIMessage) for c in m.tool_calls]
    assert [(c["name"], c["args"]) for c in made[1:]] == [("whoami", {"text": "you"})]
    assert answers(result, "whoami") == ["hello you"]
    text = json.dumps(log.payloads[-1])
    assert CALL in text.replace('"name": "call_tool", "description"', "")
    assert written_calls(log.payloads[-1])[1:] == [(CALL, {"name": "whoami", "arguments": {"text": "you"}})]
    assert log.prefix_report().intact


def written_calls(payload: Any) -> list[tuple[str, Any]]:
    """Return the calls that a request says the model has made."""
    return list(_written_calls(payload))


def _written_calls(payload: Any) -> Iterator[tuple[str, Any]]:
    for message in messages_of(payload):
        if message.get("type") == "function_call":
            yield message["name"], json.loads(message["arguments"])
        for block in message["content"] if isinstance(message.get("content"), list) else ():
            if block.get("type") == "tool_use":
                yield block["name"], block["input"]
        for one in message.get("tool_calls") or ():
            yield one["function"]["name"], json.loads(one["function"]["arguments"])


@over_clients
async def test_streamed_updates_show_the_real_tool(client, path, log):
    agent = agent_on(
        client, [searching("add"), through("add", {"a": 2})], log, "proxy", tools=[*office(), add]
    )
    updates = await say(path, agent, "send an email", mode="updates")
    names = [
        c["name"]
        for update in updates
        for node in update.values()
        for m in (node or {}).get("messages", ())
        for c in getattr(m, "tool_calls", ())
    ]
    assert names == [DISCOVER, "add"]


@over_clients
async def test_streamed_calls_through_the_proxy_run_and_keep_the_prefix(client, path, log):
    agent = agent_on(
        client, [searching("add"), through("add", {"a": 2, "b": 3})], log, "proxy", tools=[*office(), add]
    )
    await say(path, agent, "send an email", mode="messages")
    assert answers((await agent.aget_state(thread())).values, "add") == ["5"]
    assert log.prefix_report().intact


@over_clients
async def test_approval_goes_by_the_real_tools_name(client, path, tmp_path, log):
    approval = [HumanInTheLoopMiddleware({"add": True})]
    async with open_saver("sqlite", path, tmp_path) as saver:
        script = [searching("add"), through("add", {"a": 2, "b": 2})]
        agent = agent_on(client, script, log, "proxy", tools=[*office(), add], saver=saver, outer=approval)
        result = await run(path, agent, user("send an email"), thread())
        (asked,) = result["__interrupt__"][0].value["action_requests"]
        assert (asked["name"], asked["args"]) == ("add", {"a": 2, "b": 2})
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent = agent_on(client, [], log, "proxy", tools=[*office(), add], saver=saver, inner=approval)
        result = await run(path, agent, APPROVE, thread())
    assert answers(result, "add") == ["4"]
    assert log.prefix_report().intact


@over_clients
async def test_approval_that_edits_the_arguments_runs_the_edited_call(client, path, log):
    approval = [HumanInTheLoopMiddleware({"add": True})]
    script = [searching("add"), through("add", {"a": 2, "b": 2}), "Done."]
    agent = agent_on(client, script, log, "proxy", tools=[*office(), add], outer=approval)
    await run(path, agent, user("send an email"), thread())
    edited = {"type": "edit", "edited_action": {"name": "add", "args": {"a": 5, "b": 5}}}
    result = await run(path, agent, Command(resume={"decisions": [edited]}), thread())
    assert answers(result, "add")[0].endswith("10")
    assert [name for name, _ in written_calls(log.payloads[-1])] == [DISCOVER, CALL]
    assert log.prefix_report().intact


async def test_a_limit_counts_the_real_tool(path, log):
    limit = ToolCallLimitMiddleware(tool_name="add", run_limit=1)
    script = [searching("add"), through("add", {"a": 1}), through("add", {"a": 2}), "Done."]
    agent = agent_on(chat_completions, script, log, "proxy", tools=[*office(), add], outer=[limit])
    result = await run(path, agent, user("send an email"), thread())
    assert answers(result, "add")[0] == "1"
    assert "limit" in answers(result, "add")[1]


async def test_a_retry_runs_the_real_tool_again(path, log):
    tries: list[int] = []

    @tool
    def shaky(a: int) -> str:
        """Answer the second time."""
        tries.append(a)
        if len(tries) == 1:
            raise RuntimeError
        return "there"

    retry = ToolRetryMiddleware(tools=["shaky"], max_retries=1, initial_delay=0)
    script = [searching("shaky"), through("shaky", {"a": 1}), "Done."]
    agent = agent_on(chat_completions, script, log, "proxy", tools=[*office(), shaky], outer=[retry])
    result = await run(path, agent, user("send an email"), thread())
    assert (tries, answers(result, "shaky")) == ([1, 1], ["there"])


@over_clients
async def test_parallel_calls_through_the_proxy_run_as_their_tools(client, path, log):
    several = calls(
        (CALL, {"name": "add", "arguments": {"a": 1}}),
        (CALL, {"name": "play_music", "arguments": {}}),
        (DISCOVER, {"names": ["lock_door"]}),
    )
    agent = agent_on(client, [searching("add", "play_music"), several], log, "proxy", tools=[*office(), add])
    result = await run(path, agent, user("send an email"), thread())
    assert answers(result, "add") == ["1"]
    assert answers(result, "play_music") == ["play_music did it"]
    assert len(answers(result)) == 3
    assert log.prefix_report().intact


@over_clients
async def test_a_found_tool_that_is_called_without_the_proxy_runs(client, path, log):
    agent = agent_on(client, [searching("add"), call("add", a=3)], log, "proxy", tools=[*office(), add])
    result = await run(path, agent, user("send an email"), thread())
    assert answers(result, "add") == ["3"]
    assert len(log.payloads) == 3


@pytest.mark.parametrize(
    ("name", "arguments", "culprit"),
    [
        ("add", {"b": 1}, "'a'"),
        ("add", {"a": "many"}, "'a'"),
        ("add", "not json", "object"),
        ("add", [1, 2], "object"),
        ("add", 7, "object"),
        ("add", None, "'a'"),
        ("forecast", {"days": 3}, "'city'"),
        ("forecast", {"city": "Lisbon", "days": "many"}, "'days'"),
        ("forecast", {"city": "Lisbon", "days": 9}, "'days'"),
        ("forcast", {"city": "Lisbon"}, "no tool named `forcast`"),
        ("", {}, "no tool named"),
    ],
)
async def test_a_wrong_call_is_answered_with_what_is_wrong(name, arguments, culprit, path, log):
    agent = agent_on(
        chat_completions, [through(name, arguments), "Done."], log, "proxy", tools=[*office(), add, served()]
    )
    result = await run(path, agent, user("send an email"), thread())
    (text,) = answers(result, CALL)
    assert culprit in text
    message = next(m for m in result["messages"] if isinstance(m, ToolMessage))
    assert message.status == "error"


@pytest.mark.parametrize("arguments", ['{"a": 2, "b": 3}', {"a": 2, "b": 3}, {"a": "2", "b": 3}])
async def test_arguments_are_read_as_models_write_them(arguments, path, log):
    agent = agent_on(
        chat_completions, [through("add", arguments), "Done."], log, "proxy", tools=[*office(), add]
    )
    result = await run(path, agent, user("send an email"), thread())
    assert answers(result, "add") == ["5"]


async def test_arguments_may_be_left_out(path, log):
    agent = agent_on(chat_completions, [call(CALL, name="play_music"), "Done."], log, "proxy")
    result = await run(path, agent, user("send an email"), thread())
    assert answers(result, "play_music") == ["play_music did it"]


@pytest.mark.parametrize("client", CLIENTS, ids=named)
async def test_an_async_tool_with_a_dict_schema_runs_through_the_proxy(client, log):
    script = [searching("forecast"), through("forecast", {"city": "Lisbon", "days": 2})]
    agent = agent_on(client, script, log, "proxy", tools=[*office(), served()])
    result = await agent.ainvoke(user("send an email"), thread())
    assert answers(result, "forecast") == ['{"city": "Lisbon", "days": 2}']
    assert log.prefix_report().intact


async def test_a_tool_of_the_users_with_the_proxys_name_is_a_clear_error(path, log):
    agent = agent_on(chat_completions, [], log, "proxy", tools=[*office(), make_tool(CALL, "Mine.")])
    with pytest.raises(ValueError, match=r"another tool named 'call_tool'.*call_name"):
        await run(path, agent, user("send an email"), thread())


async def test_the_proxy_can_have_another_name(path, log):
    settings = Discovery(name="find", call_name="run")
    script = [call("find", names=["add"]), call("run", name="add", arguments={"a": 4}), "Done."]
    agent = agent_on(
        chat_completions,
        script,
        log,
        "proxy",
        tools=[*office(), make_tool(CALL, "Mine."), add],
        discovery=settings,
    )
    result = await run(path, agent, user("send an email"), thread())
    assert answers(result, "add") == ["4"]
    assert array(log.payloads[-1]) == ["find", "run"]


async def test_what_is_always_included_is_called_directly(path, log):
    agent = agent_on(
        chat_completions, [call("lock_door"), "Done."], log, "proxy", always_include=["lock_door"]
    )
    result = await run(path, agent, user("send an email"), thread())
    assert answers(result, "lock_door") == ["lock_door did it"]
    assert array(log.payloads[-1]) == [DISCOVER, CALL, "lock_door"]
    assert written_calls(log.payloads[-1]) == [("lock_door", {})]


async def test_a_tool_that_a_role_may_not_use_is_not_found_and_not_called_through_the_proxy(path, log):
    agent = agent_on(
        chat_completions,
        [searching("lock_door"), through("lock_door", {}), "Done."],
        log,
        "proxy",
        outer=[RoleFilter("lock")],
    )
    result = await run(path, agent, user("send an email"), thread())
    assert "No tool matches 'lock_door'" in answers(result)[0]
    assert "no tool named `lock_door`" in answers(result, CALL)[0]
    assert answers(result, "lock_door") == []


async def test_the_proxy_cannot_call_itself_or_the_search_through_itself(path, log):
    script = [through(CALL, {"name": "add", "arguments": {}}), through(DISCOVER, {"query": "x"}), "Done."]
    agent = agent_on(chat_completions, script, log, "proxy")
    result = await run(path, agent, user("send an email"), thread())
    assert all("no tool named" in text for text in answers(result, CALL))


# -- auto ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "exposure"),
    [
        (tool_addition, "append"),
        (tool_reference, "append"),
        (additional_tools, "append"),
        (chat_completions, "grow"),
    ],
    ids=named,
)
async def test_auto_takes_what_suits_the_client(client, exposure, path, log):
    agent = agent_on(client, [], log)
    (event,) = selections(await say(path, agent, "send an email"))
    assert event["exposure"] == exposure


@over_clients
@pytest.mark.parametrize("exposure", ["auto", "append", "grow", "per_turn", "proxy"])
async def test_a_small_catalogue_is_sent_whole(client, exposure, path, log):
    agent = agent_on(client, [call("lock_door")], log, exposure, top_k=99)
    events = selections(await say(path, agent, "send an email"))
    assert events == []
    assert all(sorted(array(payload)) == sorted(OFFICE) for payload in log.payloads)
    assert all(not deferred(payload) and not blocks(payload) for payload in log.payloads)


SWITCHES = [
    (tool_addition, chat_completions),
    (chat_completions, tool_addition),
    (tool_addition, tool_reference),
    (tool_reference, additional_tools),
    (additional_tools, tool_reference),
]


@pytest.mark.parametrize(("first", "second"), SWITCHES, ids=named)
async def test_a_thread_that_goes_on_with_another_model_keeps_its_pins(first, second, path, tmp_path, log):
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent = agent_on(first, [searching("play_music", "lock_door"), "Found."], log, saver=saver)
        await say(path, agent, "send an email")
    later = StrictLog()
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent = agent_on(second, [use("play_music"), use("lock_door"), "Done."], later, saver=saver)
        events = selections(await say(path, agent, "hello"))
        assert await pins_of(path, agent, thread()) == ["play_music", "lock_door"]
    assert {"play_music", "lock_door"} <= set(visible(later.payloads[0]))
    assert later.prefix_report().intact, later.prefix_report()
    assert [event["changed"] for event in events][1:] == [False, False]
    assert not later.refused


@pytest.mark.parametrize(
    "exposures", [*permutations(["per_turn", "grow", "append", "proxy"], 2)], ids="-".join
)
async def test_a_thread_that_goes_on_under_another_exposure_keeps_its_pins(exposures, path, log):
    first, second = exposures
    agent = agent_on(tool_reference, [searching("play_music"), "Found."], log, first)
    await say(path, agent, "send an email")
    rebuilt = agent_on(tool_reference, [use("play_music"), "Done."], log, second, saver=agent.checkpointer)
    result = await run(path, rebuilt, user("hello"), thread())
    assert answers(result, "play_music") == ["play_music did it"]
    assert await pins_of(path, rebuilt, thread()) == ["play_music"]
    assert "play_music" in visible(log.payloads[-1]) or second == "proxy"
    back = agent_on(tool_reference, [use("play_music"), "Done."], log, first, saver=agent.checkpointer)
    result = await run(path, back, user("hello again"), thread())
    assert answers(result, "play_music") == ["play_music did it"] * 2


@pytest.mark.parametrize("exposure", ["per_turn", "grow"])
async def test_a_changing_array_on_a_model_that_refuses_it_is_warned_of_once(exposure, path, log, caplog):
    agent = agent_on(tool_addition, [discover("music"), "Found."], log, exposure)
    for text in ("send an email", "track a parcel"):
        await say(path, agent, text)
    (warning,) = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    for word in ("claude-opus-5-5", "400", "exposure", "auto"):
        assert word in warning


async def test_no_warning_with_thinking_switched_off(path, log, caplog):
    agent = agent_on(tool_addition(thinking={"type": "disabled"}), [], log, "per_turn")
    await say(path, agent, "send an email")
    assert [r for r in caplog.records if r.levelname == "WARNING"] == []


async def test_append_on_a_client_that_cannot_is_grow_and_says_so_once(path, log, caplog):
    agent = agent_on(chat_completions, [discover("music"), "Found."], log, "append")
    events = selections(await say(path, agent, "send an email"))
    assert {event["exposure"] for event in events} == {"grow"}
    assert len([r for r in caplog.records if "'append' is 'grow'" in r.getMessage()]) == 1


# -- fallback and retry ----------------------------------------------------------------------------------


class Failing:
    """A script whose call of one number fails, as a provider's outage."""

    def __init__(self, *answers: Any, at: int) -> None:
        self._script, self._at, self._number = steps(*answers), at, 0

    def __call__(self, sent: Any) -> Any:
        self._number += 1
        if self._number == self._at:
            msg = "the provider is out"
            raise ConnectionError(msg)
        return self._script(sent)


def fallback_to(other: str, log: StrictLog, *script: Any) -> tuple[Any, Any]:
    """Return a model to fall back on, and a way to read what it was sent: names in its tools array."""
    if other == "scripted":
        model = ScriptedChatModel(script=steps(*script))
        return model, lambda: model.calls
    return scripted_client(chat_completions(), steps(*script), log), lambda: log.calls


@over_transports
@pytest.mark.parametrize("outside", [True, False], ids=["outside", "inside"])
@pytest.mark.parametrize("other", ["chat completions", "scripted"])
async def test_a_fallback_in_mid_thread_sees_the_same_tools_and_no_foreign_block(
    client, other, outside, path, log
):
    others = StrictLog()
    model, sent_to = fallback_to(other, others, use("play_music"), "Played.")
    script = Failing(searching("play_music"), "Found.", "Back.", at=3)
    agent = agent_on(
        client,
        script,
        log,
        "append",
        **{"outer" if outside else "inner": [ModelFallbackMiddleware(model)]},
    )
    for text in ("send an email", "hello", "hello again"):
        result = await run(path, agent, user(text), thread())
    (sent, *_) = sent_to()
    assert sorted(sent.tools) == sorted([DISCOVER, "send_email", "play_music"])
    assert foreign([sent.schemas, [m.content for m in sent.messages]]) == []
    assert not any("tool_selection" in str(m.additional_kwargs) for m in sent.messages)
    assert not others.refused
    assert result["messages"]


@over_transports
@pytest.mark.parametrize("outside", [True, False], ids=["outside", "inside"])
@pytest.mark.parametrize("other", ["chat completions", "scripted"])
async def test_the_first_model_keeps_its_prefix_over_a_fallback(client, other, outside, path, log):
    model, _ = fallback_to(other, StrictLog(), "Helped.")
    script = Failing(searching("play_music"), "Found.", use("play_music"), "Back.", at=3)
    agent = agent_on(
        client, script, log, "auto", **{"outer" if outside else "inner": [ModelFallbackMiddleware(model)]}
    )
    for text in ("send an email", "hello", "hello again"):
        await say(path, agent, text)
    assert revealed(log.payloads[-1]) == ["play_music"]
    assert log.prefix_report().intact, log.prefix_report()


@over_transports
@pytest.mark.parametrize("outside", [True, False], ids=["outside", "inside"])
async def test_what_was_found_during_a_fallback_is_kept_by_the_first_model(client, outside, path, log):
    model, _ = fallback_to("chat completions", StrictLog(), searching("lock_door"))
    script = Failing(searching("play_music"), "Found.", "Locked.", at=3)
    agent = agent_on(
        client, script, log, "auto", **{"outer" if outside else "inner": [ModelFallbackMiddleware(model)]}
    )
    for text in ("send an email", "hello"):
        await say(path, agent, text)
    assert visible(log.payloads[-1]) == ["send_email", "play_music", "lock_door"]
    assert log.prefix_report().intact, log.prefix_report()


class OtherClient(ScriptedChatModel):
    """Claude that checks its prefix, through a client that cannot add tools: it is sent stubs."""

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        reported = super()._get_ls_params(stop, **kwargs)
        return {**reported, "ls_provider": "amazon_bedrock", "ls_model_name": "anthropic.claude-opus-5-5"}


async def test_a_detour_on_which_stubs_are_sent_leaves_the_first_models_prefix(path, log):
    other = OtherClient(script=["Helped."])
    script = Failing(searching("play_music"), "Found.", use("play_music"), "Back.", at=3)
    agent = agent_on(tool_addition, script, log, outer=[ModelFallbackMiddleware(other)])
    for text in ("send an email", "hello", "hello again"):
        await say(path, agent, text)
    assert other.calls[0].tools == [DISCOVER, *OFFICE]
    assert revealed(log.payloads[-1]) == ["play_music"]
    assert log.prefix_report().intact, log.prefix_report()


@over_clients
@pytest.mark.parametrize("outside", [True, False], ids=["outside", "inside"])
@pytest.mark.parametrize("exposure", ["auto", "proxy", "stubs"])
async def test_a_retried_call_is_the_same_call(client, outside, exposure, path, log):
    retry = ModelRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
    script = Failing(searching("play_music"), use("play_music"), "Played.", at=2)
    agent = agent_on(client, script, log, exposure, **{"outer" if outside else "inner": [retry]})
    result = await run(path, agent, user("send an email"), thread())
    assert answers(result, "play_music") == ["play_music did it"]
    assert log.payloads[1] == log.payloads[2]
    assert all(step.changed_in is None for step in log.prefix_report()[2:])


# -- telemetry -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exposure", ["per_turn", "grow", "append", "proxy", "stubs"])
async def test_each_call_says_how_it_was_shown_and_what_changed(exposure, path, log):
    agent = agent_on(tool_reference, [searching("play_music"), "Found."], log, exposure)
    first, second = selections(await say(path, agent, "send an email"))
    assert (first["exposure"], first["changed"], first["why"], first["revealed"]) == (exposure, None, "", [])
    changes = exposure in ("per_turn", "grow")
    why = "added play_music (pinned)" if changes else ""
    assert (second["changed"], second["why"]) == (changes, why)
    assert second["revealed"] == (["play_music"] if exposure == "append" else [])


def with_usage(text: str, **details: int) -> AIMessage:
    usage = {"input_tokens": 100, "output_tokens": 1, "total_tokens": 101, "input_token_details": details}
    return AIMessage(text, usage_metadata=usage)


@over_clients
async def test_what_the_cache_did_is_reported_and_totalled_over_a_restart(client, path, tmp_path, log):
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent = agent_on(client, [with_usage("One.", cache_read=0, cache_creation=90)], log, saver=saver)
        events = await say(path, agent, "send an email")
        assert [e for e in events if e["type"] == "tool_selection_usage"] == [
            {
                "type": "tool_selection_usage",
                "calls": 1,
                "input_tokens": 100,
                "cache_read": 0,
                "cache_write": 90,
            }
        ]
    async with open_saver("sqlite", path, tmp_path) as saver:
        script = [with_usage("Two.", cache_read=80, cache_creation=10), "No report."]
        agent = agent_on(client, script, log, saver=saver)
        for text in ("hello", "hello again"):
            await say(path, agent, text)
        usage = thread_usage(await state_of(path, agent, thread()))
    assert usage == CacheUsage(calls=2, input_tokens=200, cache_read=80, cache_write=100)


async def test_the_totals_stay_out_of_the_result(path, log):
    agent = agent_on(chat_completions, [with_usage("One.", cache_read=1)], log)
    result = await run(path, agent, user("send an email"), thread())
    assert set(result) == {"messages"}


async def test_what_a_small_catalogue_costs_is_reported_too(path, log):
    agent = agent_on(chat_completions, [with_usage("One.", cache_read=1)], log, top_k=99)
    events = await say(path, agent, "send an email")
    assert [event["type"] for event in events] == ["tool_selection_usage"]
