import copy
import json
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents.middleware.types import PrivateStateAttr

from langchain_tool_selection._run.state import ToolSelectionState, last_write
from langchain_tool_selection._selection.pins import merge_pins, pins_in
from langchain_tool_selection._selection.record import THREAD, ThreadRecord

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
    assert list(dict.fromkeys(pins_in(garbage))) == read
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


def test_a_set_of_pins_has_the_same_order_in_every_process(run_python):
    code = (
        "from langchain_tool_selection._selection.pins import merge_pins; "
        "print(merge_pins([], {f'tool_{i}' for i in range(12)}))"
    )
    assert run_python(code, hash_seed=1) == run_python(code, hash_seed=2)


# -- the record of a turn


def test_a_record_survives_a_json_round_trip():
    record = ThreadRecord("key", ("b", "a"), ("a", "b", "c"), "f" * 16)
    state = json.loads(json.dumps({THREAD: record.to_state()}))
    assert ThreadRecord.from_state(state) == record


def test_what_from_state_reads_is_not_changed_by_it():
    state = {THREAD: ThreadRecord("key", ("a",)).to_state()}
    before = copy.deepcopy(state)
    ThreadRecord.from_state(state)
    assert state == before


@pytest.mark.parametrize(
    "state", [None, {}, 5, {THREAD: None}, {THREAD: {}}, {THREAD: "x"}, {THREAD: []}], ids=repr
)
def test_a_state_without_a_record_gives_none(state):
    assert ThreadRecord.from_state(state) is None


def test_a_record_of_another_version_is_not_understood():
    assert ThreadRecord.from_state({THREAD: {**ThreadRecord("key").to_state(), "version": 999}}) is None


def test_half_a_character_which_json_can_hold_and_no_checkpointer_write_is_no_text():
    half = "send\ud800email"
    texts = dict.fromkeys(("key", "catalog", "exposure", "start"), half)
    lists = {key: [half, "send_email"] for key in ("matched", "shown", "array")}
    record = {"version": 1, **texts, **lists, "reveals": [[half, "a"], ["m", half, "b"]]}
    read = ThreadRecord.from_state({THREAD: {**record, "overview": {half: 1, "mail": 2}}})
    json.dumps(read.to_state(), ensure_ascii=False).encode()
    assert (read.shown, read.overview) == (("send_email",), {"mail": 2})
    assert merge_pins([half, "send_email"], {half}) == ["send_email"]


def test_a_damaged_record_is_read_for_what_is_sound_in_it():
    damaged = {**ThreadRecord().to_state(), "key": 5, "matched": ["a", None, 7], "shown": "b", "catalog": {}}
    assert ThreadRecord.from_state({THREAD: damaged}) == ThreadRecord("", ("a",), ("b",), "")


@given(st.dictionaries(st.sampled_from(["version", "key", "matched", "shown", "catalog"]), JSON | st.just(1)))
def test_no_json_value_breaks_reading_a_record(value):
    record = ThreadRecord.from_state({THREAD: value})
    assert record is None or all(isinstance(name, str) for name in record.matched + record.shown)


def test_the_newest_turn_wins():
    assert last_write({"a": 1}, {"b": 2}) == {"b": 2}


# -- the schema


@pytest.mark.parametrize(("key", "reducer"), [("tool_selection_pinned", merge_pins), (THREAD, last_write)])
def test_every_key_is_private_and_has_its_reducer_last(key, reducer):
    hints = get_type_hints(ToolSelectionState, include_extras=True)
    # NotRequired[Annotated[...]]: the annotations are those of its only argument.
    annotated = getattr(hints[key], "__args__", (hints[key],))[0]
    metadata = getattr(annotated, "__metadata__", None) or hints[key].__metadata__
    assert metadata[-1] is reducer
    assert any(mark is PrivateStateAttr for mark in metadata)


def test_every_annotation_resolves_at_run_time():
    hints = get_type_hints(ToolSelectionState, include_extras=True)
    assert {"messages", "tool_selection_pinned", THREAD} <= set(hints)
    assert not any(isinstance(hint, str) for hint in hints.values())
