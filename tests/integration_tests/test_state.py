"""Pins: what a thread remembers of its discoveries, and for how long."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Overwrite

from langchain_tool_selection.testing import call, calls

from .agents import (
    DISCOVER,
    PINS,
    answers,
    build,
    discover,
    make_tool,
    make_tools,
    office,
    open_saver,
    pins,
    pins_of,
    run,
    sent,
    state_of,
    thread,
    user,
)

FIVE = ["order_pizza", "play_music", "book_flight", "lock_door", "water_plants"]


def searching_at_once(names: list[str]) -> Any:
    return calls(*((DISCOVER, {"names": [name]}) for name in names))


# -- discoveries become pins -----------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 5])
async def test_parallel_discoveries_in_one_message_all_count(count, path, saver_kind, tmp_path):
    wanted = FIVE[:count]
    async with open_saver(saver_kind, path, tmp_path) as saver:
        agent, model = build([searching_at_once(wanted), "Done."], saver=saver)
        result = await run(path, agent, user("send an email"), thread())
        assert await pins_of(path, agent, thread()) == wanted
    assert len(answers(result)) == count
    assert sent(model) == [["send_email"], ["send_email", *wanted]]


async def test_parallel_discoveries_of_one_tool_pin_it_once(path, memory):
    agent, _ = build([searching_at_once(["play_music"] * 5), "Done."], saver=memory)
    result = await run(path, agent, user("send an email"), thread())
    assert await pins_of(path, agent, thread()) == ["play_music"]
    assert len(answers(result)) == 5


async def test_discovery_works_without_a_checkpointer(path):
    agent, model = build([searching_at_once(FIVE[:2]), "Done."])
    await run(path, agent, user("send an email"))
    assert sent(model)[1] == ["send_email", *FIVE[:2]]


def test_the_pins_channel_has_its_reducer():
    agent, _ = build(["Done."])
    assert type(agent.channels[PINS]).__name__ == "BinaryOperatorAggregate"


async def test_a_discovered_tool_is_used_in_the_same_turn_shown_in_the_next_and_after_a_rebuild(
    path, saver_kind, tmp_path
):
    script = [discover("play some music"), call("play_music"), "Playing.", "Mail sent."]
    async with open_saver(saver_kind, path, tmp_path) as saver:
        agent, model = build(script, saver=saver, keep_used=0)
        result = await run(path, agent, user("track my parcel"), thread())
        assert answers(result, "play_music") == ["play_music did it"]
        await run(path, agent, user("send an email"), thread())
        rebuilt, new_model = build(["Watered."], saver=saver, keep_used=0)
        await run(path, rebuilt, user("water the plants"), thread())
        assert await pins_of(path, rebuilt, thread()) == ["play_music"]
    assert sent(model) == [
        ["track_parcel"],
        ["track_parcel", "play_music"],
        ["track_parcel", "play_music"],
        ["send_email", "play_music"],
    ]
    assert sent(new_model) == [["water_plants", "play_music"]]


# -- what a checkpoint may hold --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("garbage", "added"),
    [
        (None, []),
        ("order_pizza", ["order_pizza"]),
        ("", []),
        ({}, []),
        ({"order_pizza": 1}, []),
        (5, []),
        (["order_pizza", None, 7, {}], ["order_pizza"]),
        (["play_music", "order_pizza", "order_pizza"], ["order_pizza"]),
        (["x" * 10_000], []),
    ],
)
async def test_garbage_written_to_the_pins_is_passed_over(garbage, added, saver_kind, tmp_path):
    async with open_saver(saver_kind, "sync", tmp_path) as saver:
        agent, _ = build([discover("music"), "Done."], saver=saver)
        agent.invoke(user("send an email"), thread())
        agent.update_state(thread(), {PINS: garbage})
        assert pins(agent, thread()) == ["play_music", *added]
        rebuilt, model = build(["Done."], saver=saver)
        rebuilt.invoke(user("track a parcel"), thread())
        # The tool found in the turn before was searched for, not called: it stays for its pin alone.
        assert set(sent(model)[0]) == {"track_parcel", "play_music", *added}
        assert pins(rebuilt, thread()) == ["play_music", *added]


@pytest.mark.parametrize(
    ("garbage", "names"), [(None, []), ("alpha", ["alpha"]), ({}, []), (5, []), (["a", None, 7], ["a"])]
)
def test_garbage_written_over_the_pins_ends_no_run_and_is_gone_after_the_next_discovery(
    garbage, names, memory
):
    agent, model = build(["Done.", discover("music"), "Done."], saver=memory)
    agent.invoke(user("send an email"), thread())
    agent.update_state(thread(), {PINS: Overwrite(garbage)})
    agent.invoke(user("track a parcel"), thread())
    assert sent(model)[1:] == [["track_parcel"], ["track_parcel", "play_music"]]
    assert pins(agent, thread()) == [*names, "play_music"]


@pytest.mark.parametrize(
    "garbage", [None, "x", [], 5, {}, {"version": 99}, {"version": 1, "key": 3, "shown": "a", "matched": 7}]
)
def test_garbage_in_the_turn_record_ends_no_run(garbage, memory):
    agent, model = build(["Done.", discover("music"), "Done."], saver=memory)
    agent.invoke(user("send an email"), thread())
    agent.update_state(thread(), {"tool_selection_thread": garbage})
    agent.invoke(user("track a parcel"), thread())
    assert sent(model)[1] == ["track_parcel"]
    assert pins(agent, thread()) == ["play_music"]


def test_pins_without_end_cost_no_time_without_end(memory):
    agent, _ = build(["Done."], saver=memory)
    agent.invoke(user("send an email"), thread())
    agent.update_state(thread(), {PINS: Overwrite([f"tool_{number}" for number in range(30_000)])})
    started = time.process_time()
    agent.invoke(user("track a parcel"), thread())
    assert time.process_time() - started < 3
    assert len(pins(agent, thread())) == 32


def test_a_thread_from_before_the_middleware_and_one_that_lost_it_go_on(memory):
    plain, _ = build(["Hello."], tools=office()[:1], saver=memory, top_k=99)
    plain.invoke(user("hello"), thread())
    agent, model = build([discover("music"), "Done."], saver=memory)
    agent.invoke(user("send an email"), thread())
    assert sent(model) == [["send_email"], ["send_email", "play_music"]]
    plain.invoke(user("goodbye"), thread())


async def test_pins_are_a_list_of_strings_before_and_after_sqlite(path, tmp_path):
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent, _ = build([searching_at_once(FIVE[:2]), "Done."], saver=saver)
        await run(path, agent, user("send an email"), thread())
        before = await state_of(path, agent, thread())
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent, _ = build(["Done."], saver=saver)
        after = await state_of(path, agent, thread())
    for state in before, after:
        assert type(state[PINS]) is list
        assert state[PINS] == FIVE[:2]
        assert json.loads(json.dumps(state[PINS])) == state[PINS]
        turn = state["tool_selection_thread"]
        assert json.loads(json.dumps(turn)) == turn


# -- a catalogue that moves ------------------------------------------------------------------------------


def test_the_pin_of_a_tool_that_is_gone_is_passed_over_and_takes_no_place_from_others(memory):
    agent, _ = build([discover("music"), "Done."], saver=memory, max_pins=1)
    agent.invoke(user("send an email"), thread())
    left = [tool for tool in office() if tool.name != "play_music"]
    rebuilt, model = build([discover("pizza"), "Done."], tools=left, saver=memory, max_pins=1)
    result = rebuilt.invoke(user("track a parcel"), thread())
    assert sent(model) == [["track_parcel"], ["track_parcel", "order_pizza"]]
    assert "play_music" not in answers(result)[-1]
    assert pins(rebuilt, thread()) == ["play_music", "order_pizza"]


def test_a_pin_follows_the_name_when_the_tool_behind_it_changes(memory):
    agent, _ = build([discover("music"), "Done."], saver=memory)
    agent.invoke(user("send an email"), thread())
    changed = [make_tool(t.name, "Play a film.") if t.name == "play_music" else t for t in office()]
    rebuilt, model = build(["Done."], tools=changed, saver=memory)
    rebuilt.invoke(user("track a parcel"), thread())
    assert sent(model) == [["track_parcel", "play_music"]]
    bound = {schema["function"]["name"]: schema["function"] for schema in model.calls[0].schemas}
    assert bound["play_music"]["description"] == "Play a film."


# -- bounded ---------------------------------------------------------------------------------------------


def numbered(count: int) -> dict[str, str]:
    return {f"tool_{n:02}": "Does something or other." for n in range(count)}


def finding_by_number(sent_call: Any) -> Any:
    """Search for the tool with the number that the user writes, then stop."""
    last = sent_call.messages[-1]
    return discover(names=[f"tool_{len(last.content):02}"]) if isinstance(last, HumanMessage) else "Done."


@pytest.mark.slow
def test_forty_discoveries_keep_the_newest_pins_and_no_more_than_allowed(memory):
    agent, model = build(finding_by_number, tools=make_tools(numbered(41)), saver=memory, max_pins=8)
    for n in range(1, 41):
        agent.invoke(user("?" * n), thread())  # no words, so that nothing is shown by rank
        newest = [f"tool_{i:02}" for i in range(max(1, n - 7), n + 1)]
        assert pins(agent, thread()) == newest
        # The pin that had to go stays in sight until the turn ends: a turn's list only grows.
        before, after = sent(model)[-2:]
        assert after == [*before, f"tool_{n:02}"]
        assert set(after) - set(newest) == set(before[:1] if n > 8 else [])


def test_the_least_recently_used_pin_goes_first_and_the_stream_says_so(memory):
    script = [
        discover(names=["play_music"]), call("play_music"), "Done.",
        discover(names=["order_pizza"]), call("order_pizza"), "Done.",
        call("play_music"), "Done.",
        discover(names=["lock_door"]), "Done.",
        "Done.",
    ]  # fmt: skip
    agent, model = build(script, saver=memory, max_pins=2, keep_used=0)
    events: list[dict[str, Any]] = []
    for _ in range(5):
        events += agent.stream(user("track a parcel"), thread(), stream_mode="custom")
    assert pins(agent, thread()) == ["play_music", "lock_door"]
    assert sent(model)[-1] == ["track_parcel", "play_music", "lock_door"]
    assert [event["evicted"] for event in events if event.get("evicted")] == [["order_pizza"]]


@pytest.mark.parametrize("keep_used", [1, None])
def test_a_tool_called_in_this_turn_stays_when_its_pin_is_one_too_many(keep_used, memory):
    script = [
        discover(names=["play_music"]),
        call("play_music"),
        calls((DISCOVER, {"names": ["order_pizza"]}), (DISCOVER, {"names": ["lock_door"]})),
        call("play_music"),
        "Done.",
    ]
    agent, model = build(script, saver=memory, max_pins=1, keep_used=keep_used)
    agent.invoke(user("track a parcel"), thread())
    assert all("play_music" in tools for tools in sent(model)[1:])
    assert len(pins(agent, thread())) == 1


# -- written, read, forgotten ----------------------------------------------------------------------------


def test_overwrite_empties_the_pins_and_the_next_call_shows_fewer_tools(memory):
    agent, model = build([discover("music"), "Done.", "Done.", "Done."], saver=memory)
    agent.invoke(user("send an email"), thread())
    agent.update_state(thread(), {PINS: []})
    assert pins(agent, thread()) == ["play_music"]  # a write adds; only Overwrite takes away
    agent.update_state(thread(), {PINS: Overwrite([])})
    assert pins(agent, thread()) == []
    for _ in range(2):
        agent.invoke(user("track a parcel"), thread())
        assert sent(model)[-1] == ["track_parcel"]
        assert pins(agent, thread()) == []


def test_emptied_pins_stay_empty_after_a_turn_with_nothing_to_hide(memory):
    agent, model = build([discover("music"), "Done.", "Done."], saver=memory)
    agent.invoke(user("send an email"), thread())
    agent.update_state(thread(), {PINS: Overwrite([])})
    small, _ = build(["Done."], tools=office()[:1], saver=memory)
    small.invoke(user("send an email"), thread())
    agent.invoke(user("track a parcel"), thread())
    assert sent(model)[-1] == ["track_parcel"]
    assert pins(agent, thread()) == []


def test_pins_outlive_a_turn_with_nothing_to_hide(memory):
    agent, model = build([discover("music"), "Done.", "Done."], saver=memory)
    agent.invoke(user("send an email"), thread())
    small, _ = build(["Done."], tools=office()[:1], saver=memory)
    small.invoke(user("send an email"), thread())
    agent.invoke(user("track a parcel"), thread())
    assert sent(model)[-1] == ["track_parcel", "play_music"]


async def test_pins_in_the_input_are_ignored_and_always_include_is_the_way(path, memory):
    agent, model = build(["Done."], saver=memory)
    await run(path, agent, {**user("send an email"), PINS: ["play_music"]}, thread())
    assert sent(model) == [["send_email"]]
    assert await pins_of(path, agent, thread()) == []
    agent, model = build(["Done."], always_include=["play_music"])
    await run(path, agent, user("send an email"))
    assert sent(model) == [["send_email", "play_music"]]


async def test_what_is_remembered_is_in_the_state_but_not_in_the_output(path, memory):
    agent, _ = build([discover("music"), "Done."], saver=memory)
    result = await run(path, agent, user("send an email"), thread())
    assert set(result) == {"messages"}
    assert {PINS, "tool_selection_thread"} <= set(await state_of(path, agent, thread()))
    for schema in agent.get_input_jsonschema(), agent.get_output_jsonschema():
        assert "tool_selection" not in json.dumps(schema)


async def test_a_fork_from_before_the_discovery_has_no_pin(path, saver_kind, tmp_path):
    async with open_saver(saver_kind, path, tmp_path) as saver:
        script = ["Hello.", discover("music"), "Done.", "Done."]
        agent, model = build(script, saver=saver)
        await run(path, agent, user("send an email"), thread())
        before = await agent.aget_state(thread()) if path == "async" else agent.get_state(thread())
        await run(path, agent, user("send an email"), thread())
        assert await pins_of(path, agent, thread()) == ["play_music"]
        await run(path, agent, user("track a parcel"), before.config)
        assert await pins_of(path, agent, thread()) == []
    assert sent(model)[-2:] == [["send_email", "play_music"], ["track_parcel"]]


# -- the agent as a node of another graph ----------------------------------------------------------------


def graph_around(agent: Any) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_edge(START, "agent")
    graph.add_edge("agent", END)
    return graph.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("own_memory", [True, None])
async def test_an_agent_inside_another_graph_keeps_its_pins_between_turns(own_memory, path):
    script = [discover("music"), call("play_music"), "Done.", "Done.", discover("pizza"), "Done.", "Done."]
    agent, model = build(script, saver=own_memory, keep_used=0)
    graph = graph_around(agent)
    for text in ("send an email", "track a parcel", "water the plants", "lock the door"):
        result = await run(path, graph, user(text), thread())
    assert sent(model)[3] == ["track_parcel", "play_music"]
    assert sent(model)[-1] == ["lock_door", "play_music", "order_pizza"]
    assert len([m for m in result["messages"] if isinstance(m, ToolMessage)]) == 3


@pytest.mark.parametrize("own_memory", [True, None])
async def test_an_agent_inside_another_graph_keeps_what_it_found_over_an_approval(own_memory, path):
    script = [discover("music"), call("play_music"), "Done.", "Done."]
    outer = [HumanInTheLoopMiddleware({"play_music": True})]
    agent, model = build(script, saver=own_memory, keep_used=0, enforce=True, outer=outer)
    graph = graph_around(agent)
    assert (await run(path, graph, user("send an email"), thread()))["__interrupt__"]
    approved = Command(resume={"decisions": [{"type": "approve"}]})
    result = await run(path, graph, approved, thread())
    assert answers(result, "play_music") == ["play_music did it"]
    await run(path, graph, user("track a parcel"), thread())
    assert sent(model)[1:] == [["send_email", "play_music"]] * 2 + [["track_parcel", "play_music"]]
