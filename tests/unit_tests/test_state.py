"""How the agent's state takes what is written under our keys: its reducers, as LangGraph finds them."""

import json
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents.middleware.types import PrivateStateAttr

from langchain_tool_selection import ToolSelectionMiddleware

PINS, THREAD, USAGE = "tool_selection_pinned", "tool_selection_thread", "tool_selection_usage"
HINTS = get_type_hints(ToolSelectionMiddleware.state_schema, include_extras=True)


def marks(key: str) -> tuple[Any, ...]:
    # NotRequired[Annotated[...]]: the annotations are those of its only argument.
    annotated = getattr(HINTS[key], "__args__", (HINTS[key],))[0]
    return getattr(annotated, "__metadata__", None) or HINTS[key].__metadata__


merge_pins, last_write, add_usage = (marks(key)[-1] for key in (PINS, THREAD, USAGE))

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


# -- pins


def test_new_pins_are_appended_each_once_in_the_order_they_came():
    assert merge_pins(["a", "b"], ["c", "a", "d", "c"]) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("garbage", "read"),
    [
        (None, []),
        ("alpha", ["alpha"]),
        ("", []),
        ({}, []),
        ({"alpha": 1}, []),
        (5, []),
        (["a", None, 7, "a", ["b"]], ["a"]),
        (("a", "b"), ["a", "b"]),
        (["x" * 300, "", "ok"], ["ok"]),
        (b"alpha", []),
    ],
    ids=repr,
)
def test_garbage_on_either_side_is_read_for_the_names_in_it(garbage, read):
    assert merge_pins([], garbage) == read
    assert merge_pins(garbage, ["new"]) == [*read, "new"]
    assert merge_pins(["old"], garbage) == ["old", *read]


@given(JSON, JSON)
def test_no_json_value_breaks_the_reducer_and_the_result_is_a_list_of_distinct_names(current, update):
    merged = merge_pins(current, update)
    assert type(merged) is list
    assert all(type(name) is str and name for name in merged)
    assert len(set(merged)) == len(merged)
    assert json.loads(json.dumps(merged)) == merged


@given(st.lists(st.text(min_size=1)), st.lists(st.text(min_size=1)), st.lists(st.text(min_size=1)))
def test_it_does_not_matter_how_parallel_writes_are_grouped(a, b, c):
    assert merge_pins(merge_pins(a, b), c) == merge_pins(a, merge_pins(b, c))


def test_the_reducer_changes_neither_of_its_arguments():
    current, update = ["a"], ["b"]
    merge_pins(current, update)
    assert (current, update) == (["a"], ["b"])


def test_half_a_character_which_json_can_hold_and_no_checkpointer_write_is_no_name():
    half = "send\ud800email"
    assert merge_pins([half, "send_email"], {half}) == ["send_email"]


# -- the other keys


def test_the_newest_record_counts():
    assert last_write({"a": 1}, {"b": 2}) == {"b": 2}


@given(JSON, JSON)
def test_whatever_was_written_as_usage_adds_up_to_counts(current, update):
    total = add_usage(current, update)
    assert set(total) == {"calls", "input_tokens", "cache_read", "cache_write"}
    assert all(type(count) is int and count >= 0 for count in total.values())
    assert add_usage(total, None) == total == add_usage(None, total)


# -- the schema


@pytest.mark.parametrize("key", [PINS, THREAD, USAGE])
def test_every_key_is_private_and_has_its_reducer_last(key):
    assert callable(marks(key)[-1])
    assert marks(key)[-1] is not PrivateStateAttr
    assert any(mark is PrivateStateAttr for mark in marks(key))


def test_every_annotation_resolves_at_run_time():
    assert {"messages", PINS, THREAD, USAGE} <= set(HINTS)
    assert not any(isinstance(hint, str) for hint in HINTS.values())
