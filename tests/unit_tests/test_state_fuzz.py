"""Whatever JSON a checkpoint holds under our keys, a thread goes on, and the next write repairs it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Overwrite

from langchain_tool_selection import CacheUsage, ToolSelectionMiddleware, thread_usage
from langchain_tool_selection._run.state import USAGE, add_usage, last_write
from langchain_tool_selection._selection.pins import PINS, current_pins, merge_pins, pins_in
from langchain_tool_selection._selection.record import THREAD, ThreadRecord
from langchain_tool_selection.testing import ScriptedChatModel, call

KEYS = (PINS, THREAD, USAGE)

BIG = 2**63 - 1
"""The checkpointers' format holds integers up to twice of this."""

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-BIG, BIG),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.sampled_from(["send_email", "x" * 300, "discover_tools", "__proto__", "append", "proxy", "tools"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
"""What JSON can hold."""

names = st.lists(st.sampled_from(["send_email", "play_music", "gone"]), max_size=4)


def near(written: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return what we write, with some of it replaced: the garbage that gets furthest."""
    return st.fixed_dictionaries({key: st.just(value) | values | names for key, value in written.items()})


RECORD = ThreadRecord(
    key="0123456789abcdef",
    matched=("send_email",),
    shown=("discover_tools", "send_email"),
    catalog="fedcba9876543210",
    exposure="grow",
    array=("discover_tools", "send_email"),
    added=1,
    start="message",
).to_state()
records = values | near(RECORD) | near({**RECORD, "reveals": [["message", "play_music"]], "version": 99})
usages = values | near(CacheUsage(1, 2, 3, 4).to_state())
pins = values | names | near({"send_email": 1})

many = settings(max_examples=200, deadline=None, derandomize=True, database=None)


def is_plain(value: Any) -> bool:
    return json.loads(json.dumps(value)) == value


# -- reading and merging, without an agent ---------------------------------------------------------------


@many
@given(pins, pins)
def test_pins_of_anything_are_names_each_once_and_in_order(current, update):
    merged = merge_pins(current, update)
    assert all(isinstance(name, str) and name for name in merged)
    assert len(merged) == len(set(merged))
    assert merged == merge_pins(merged, []) == merge_pins([], merged) == merge_pins(merged, merged)
    assert merged[: len(dict.fromkeys(pins_in(current)))] == list(dict.fromkeys(pins_in(current)))
    assert is_plain(merged)


@many
@given(records)
@example({**RECORD, "reveals": [[], ["a"], ["a", "b"], [1, 2], "ab", None]})
@example({**RECORD, "added": True})
@example({**RECORD, "shown": {"send_email": 1}})
def test_a_record_of_anything_is_read_or_is_none_and_writes_what_reads_the_same(value):
    record = ThreadRecord.from_state({THREAD: value})
    if record is None:
        return
    assert is_plain(record.to_state())
    assert ThreadRecord.from_state({THREAD: record.to_state()}) == record
    assert all(isinstance(name, str) for name in (*record.visible, *record.last_array))
    assert isinstance(record.was_ranked, bool)


@many
@given(values)
def test_a_state_of_any_kind_is_read(value):
    for state in (value, {THREAD: value, PINS: value, USAGE: value, "messages": []}, SimpleNamespace()):
        ThreadRecord.from_state(state)
        assert isinstance(thread_usage(state), CacheUsage)
        present = {"send_email", "0", "00", "000"}
        found, evicted = current_pins({PINS: value, "messages": []}, None, present, 2)
        assert len(present & {*found}) <= 2
        assert len({*found} - present) <= 2
        assert {*found, *evicted} & present == {*pins_in(value)} & present
        assert {*found, *evicted} <= {*pins_in(value)}


@many
@given(usages, usages)
def test_usage_of_anything_adds_up_to_counts(current, update):
    total = add_usage(current, update)
    assert set(total) == {"calls", "input_tokens", "cache_read", "cache_write"}
    assert all(type(count) is int and count >= 0 for count in total.values())
    assert add_usage(total, None) == total
    assert add_usage(None, update) == add_usage(update, {})


@many
@given(values, values)
def test_the_newest_record_counts(current, update):
    assert last_write(current, update) is update


# -- through a real agent --------------------------------------------------------------------------------


def make(name: str, description: str) -> StructuredTool:
    return StructuredTool.from_function(
        func=lambda text="": f"{name} did it", name=name, description=description
    )


TOOLS = [
    make("send_email", "Send an email message to a recipient."),
    make("play_music", "Play music by an artist."),
    make("lock_door", "Lock the front door of the house."),
]
THREAD_ID = {"configurable": {"thread_id": "thread"}}
SAY = {"messages": [HumanMessage("send an email")]}


def agent_with(script: Any, saver: Any, exposure: str) -> Any:
    return create_agent(
        ScriptedChatModel(script=script),
        TOOLS,
        middleware=[ToolSelectionMiddleware(top_k=1, exposure=exposure, enforce=True)],
        checkpointer=saver,
    )


def reporting(answer: AIMessage) -> AIMessage:
    """Return an answer that says what it took, as a provider's does."""
    return answer.model_copy(
        update={"usage_metadata": {"input_tokens": 5, "output_tokens": 1, "total_tokens": 6}}
    )


SCRIPT = [
    AIMessage("Hello."),
    *map(reporting, (call("discover_tools", query="play music"), call("play_music"), AIMessage("Done."))),
]


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(
    st.fixed_dictionaries({}, optional={PINS: pins, THREAD: records, USAGE: usages}),
    st.booleans(),
    st.sampled_from(["per_turn", "grow", "proxy"]),
)
@example({USAGE: {"calls": BIG, "input_tokens": BIG}}, True, "grow")
@example({THREAD: {**RECORD, "added": BIG}}, True, "grow")
@example({THREAD: {**RECORD, "matched": 7, "shown": "send_email"}}, True, "per_turn")
@example({PINS: "send_email", THREAD: "send_email", USAGE: "send_email"}, True, "per_turn")
def test_a_thread_with_anything_under_our_keys_goes_on_and_is_repaired(garbage, over, exposure):
    agent = agent_with(SCRIPT, InMemorySaver(), exposure)
    agent.invoke(SAY, THREAD_ID)
    agent.update_state(
        THREAD_ID, {key: Overwrite(value) if over else value for key, value in garbage.items()}
    )
    result = agent.invoke(SAY, THREAD_ID)
    assert [m.content for m in result["messages"] if m.type == "tool"][-1] == "play_music did it"
    state = agent.get_state(THREAD_ID).values
    assert "play_music" in state[PINS]
    assert state[PINS] == merge_pins([], state[PINS])
    record = ThreadRecord.from_state(state)
    assert record is not None
    assert state[THREAD] == record.to_state()
    assert state[USAGE] == CacheUsage.from_state(state[USAGE]).to_state()
    assert state[USAGE]["calls"] >= 3


@pytest.mark.parametrize("key", [USAGE, THREAD])
def test_a_count_at_the_end_of_what_a_checkpoint_holds_does_not_grow_beyond_it(key):
    agent = agent_with(SCRIPT, InMemorySaver(), "grow")
    agent.invoke(SAY, THREAD_ID)
    full = {USAGE: {"calls": 2**64 - 1, "input_tokens": 2**64 - 1}, THREAD: {**RECORD, "added": 2**64 - 1}}
    agent.update_state(THREAD_ID, {key: Overwrite(full[key])})
    agent.invoke(SAY, THREAD_ID)
    assert agent.get_state(THREAD_ID).values[USAGE]["calls"] >= 3


@pytest.mark.parametrize("field", ["matched", "added", "reveals", "overview", "start", "version"])
def test_garbage_that_reads_as_what_is_due_anyhow_is_repaired_too(field):
    agent = agent_with(["Hello."], InMemorySaver(), "per_turn")
    agent.invoke(SAY, THREAD_ID)
    written = agent.get_state(THREAD_ID).values[THREAD]
    agent.update_state(THREAD_ID, {THREAD: {**written, field: {"garbage": [1, None]}, "more": "garbage"}})
    for _ in range(2):
        agent.invoke(SAY, THREAD_ID)
    state = agent.get_state(THREAD_ID).values
    record = ThreadRecord.from_state(state)
    assert record is not None
    assert state[THREAD] == record.to_state()


def test_a_thread_of_a_newer_version_goes_on_with_what_this_one_understands():
    agent = agent_with(SCRIPT, InMemorySaver(), "per_turn")
    agent.invoke(SAY, THREAD_ID)
    newer = {**RECORD, "version": 2, "shown": {"by": "rank"}, "plan": [1, 2]}
    agent.update_state(THREAD_ID, {THREAD: newer, PINS: ["lock_door"]})
    result = agent.invoke(SAY, THREAD_ID)
    assert [m.content for m in result["messages"] if m.type == "tool"][-1] == "play_music did it"
    assert agent.get_state(THREAD_ID).values[PINS] == ["lock_door", "play_music"]


def test_a_thread_from_before_this_middleware_goes_on():
    saver = InMemorySaver()
    bare = create_agent(ScriptedChatModel(script=[call("lock_door"), "Done."]), TOOLS, checkpointer=saver)
    bare.invoke(SAY, THREAD_ID)
    assert not set(KEYS) & set(bare.get_state(THREAD_ID).values)
    agent = agent_with(SCRIPT[1:], saver, "per_turn")
    result = agent.invoke(SAY, THREAD_ID)
    assert [m.content for m in result["messages"] if m.type == "tool"][-1] == "play_music did it"


def test_a_thread_whose_tools_were_renamed_or_removed_goes_on():
    saver = InMemorySaver()
    agent_with(SCRIPT[1:], saver, "grow").invoke(SAY, THREAD_ID)
    others = [make("mail", "Send an email message."), make("lock_door", "Lock the front door."), TOOLS[0]]
    model = ScriptedChatModel(script=["Done."])
    selection = ToolSelectionMiddleware(top_k=1, exposure="grow", enforce=True)
    agent = create_agent(model, others, middleware=[selection], checkpointer=saver)
    agent.invoke(SAY, THREAD_ID)
    assert "play_music" not in model.calls[0].tools
    assert agent.get_state(THREAD_ID).values[PINS] == ["play_music"]


def test_a_thread_goes_back_to_an_agent_without_this_middleware():
    saver = InMemorySaver()
    agent_with(SCRIPT[1:], saver, "proxy").invoke(SAY, THREAD_ID)
    bare = create_agent(ScriptedChatModel(script=["Done."]), TOOLS, checkpointer=saver)
    assert bare.invoke(SAY, THREAD_ID)["messages"][-1].content == "Done."
