"""Whatever JSON a checkpoint holds under our keys, a thread goes on, and the next write repairs it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from examples import examples
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from langchain_tool_selection import Access, CacheUsage, Thread, ToolSelectionMiddleware, thread_usage
from langchain_tool_selection.testing import ScriptedChatModel, call

PINS, THREAD, USAGE = KEYS = ("tool_selection_pinned", "tool_selection_thread", "tool_selection_usage")

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


RECORD = {
    "version": 1,
    "key": "0123456789abcdef",
    "matched": ["send_email"],
    "shown": ["discover_tools", "send_email"],
    "catalog": "fedcba9876543210",
    "exposure": "grow",
    "array": ["discover_tools", "send_email"],
    "reveals": [],
    "added": 1,
    "start": "message",
    "overview": None,
}
"""A record as a thread's state has it."""

records = values | near(RECORD) | near({**RECORD, "reveals": [["message", "play_music"]], "version": 99})
usages = values | near(CacheUsage(1, 2, 3, 4).to_state())
pins = values | names | near({"send_email": 1})


def assert_is_sound(state: Any, present: set[str], max_pins: int = 32) -> None:
    """Check that what is stored under our keys is plain, complete, and of the right kinds."""
    pins, record, usage = (state[key] for key in KEYS)
    assert pins == list(dict.fromkeys(pins))
    assert all(isinstance(name, str) and 0 < len(name) <= 256 for name in pins)
    assert len(present & {*pins}) <= max_pins
    assert len({*pins} - present) <= max_pins
    assert set(record) >= set(RECORD)
    for key, value in RECORD.items():
        if value is not None:
            assert type(record[key]) is type(value), key
    for key in ("matched", "shown", "array"):
        assert all(isinstance(name, str) and name for name in record[key])
    assert all(len(row) > 1 and all(isinstance(name, str) for name in row) for row in record["reveals"])
    assert json.loads(json.dumps(record)) == record
    json.dumps([pins, record], ensure_ascii=False).encode()
    assert usage == CacheUsage.from_state(usage).to_state()


@settings(max_examples=examples(200))
@given(values)
def test_usage_is_read_from_a_state_of_any_kind(value):
    for state in (value, {USAGE: value, "messages": []}, SimpleNamespace()):
        assert isinstance(thread_usage(state), CacheUsage)


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
NAMES = {tool.name for tool in TOOLS}
MAX_PINS = 2
THREAD_ID = {"configurable": {"thread_id": "thread"}}
SAY = {"messages": [HumanMessage("send an email")]}


def agent_with(script: Any, saver: Any, exposure: str) -> Any:
    return create_agent(
        ScriptedChatModel(script=script),
        TOOLS,
        middleware=[
            ToolSelectionMiddleware(
                top_k=1, exposure=exposure, access=Access(enforce=True), thread=Thread(max_pins=MAX_PINS)
            )
        ],
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


@pytest.mark.slow
@settings(
    max_examples=examples(60), phases=[Phase.explicit, Phase.generate]
)  # each example plays a conversation
@given(
    st.fixed_dictionaries({}, optional={PINS: pins, THREAD: records, USAGE: usages}),
    st.booleans(),
    st.sampled_from(["per_turn", "grow", "proxy"]),
)
@example({USAGE: {"calls": BIG, "input_tokens": BIG}}, True, "grow")
@example({THREAD: {**RECORD, "added": BIG}}, True, "grow")
@example({THREAD: {**RECORD, "added": True}}, True, "grow")
@example({THREAD: {**RECORD, "reveals": [[], ["a"], ["a", "b"], [1, 2], "ab", None]}}, True, "grow")
@example({THREAD: {**RECORD, "shown": {"send_email": 1}, "key": 5, "catalog": {}}}, True, "per_turn")
@example(
    {THREAD: {**RECORD, "matched": ["send_email", None, 7], "overview": {"mail": 2, "x": []}}}, True, "grow"
)
@example({PINS: [*"abcdef", "send_email", "play_music", "lock_door"]}, True, "per_turn")
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
    assert_is_sound(state, NAMES, MAX_PINS)
    assert state[USAGE]["calls"] >= 3


def test_half_a_character_which_json_can_hold_and_no_checkpointer_write_is_no_text():
    agent, half = agent_with(SCRIPT, InMemorySaver(), "grow"), "send\ud800email"
    agent.invoke(SAY, THREAD_ID)
    texts = dict.fromkeys(("key", "catalog", "exposure", "start"), half)
    lists = {key: [half, "send_email"] for key in ("matched", "shown", "array")}
    halves = {
        "version": 1,
        **texts,
        **lists,
        "reveals": [[half, "a"], ["m", half, "b"]],
        "overview": {half: 1},
    }
    graph_state = {**agent.get_state(THREAD_ID).values, THREAD: halves, PINS: [half, "lock_door"]}
    # Read from a state in memory: a checkpointer cannot hold it in the first place.
    events: list[Any] = []
    request = ModelRequest(
        model=ScriptedChatModel(script=[]),
        messages=graph_state["messages"],
        tools=TOOLS,
        state=graph_state,
        runtime=Runtime(stream_writer=events.append),
    )
    selection = ToolSelectionMiddleware(top_k=1, discovery=None, exposure="grow")
    response = selection.wrap_model_call(request, lambda _: ModelResponse([AIMessage("Done.")]))
    json.dumps(response.command.update[THREAD], ensure_ascii=False).encode()
    json.dumps(events, ensure_ascii=False).encode()


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
    assert_is_sound({**state, USAGE: CacheUsage().to_state()}, NAMES)
    assert "more" not in state[THREAD]


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
    selection = ToolSelectionMiddleware(top_k=1, exposure="grow", access=Access(enforce=True))
    agent = create_agent(model, others, middleware=[selection], checkpointer=saver)
    agent.invoke(SAY, THREAD_ID)
    assert "play_music" not in model.calls[0].tools
    assert agent.get_state(THREAD_ID).values[PINS] == ["play_music"]


def test_a_thread_goes_back_to_an_agent_without_this_middleware():
    saver = InMemorySaver()
    agent_with(SCRIPT[1:], saver, "proxy").invoke(SAY, THREAD_ID)
    bare = create_agent(ScriptedChatModel(script=["Done."]), TOOLS, checkpointer=saver)
    assert bare.invoke(SAY, THREAD_ID)["messages"][-1].content == "Done."
