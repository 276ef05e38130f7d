"""Labelled requests are read, written and turned into examples; what is wrong with one is said in a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conversations import searched_for
from hypothesis import given
from hypothesis import strategies as st

from langchain_tool_selection.evals import Case, FileError, hints_from, load_cases, save_cases

HISTORY = ({"role": "user", "content": "weather in Oslo?"}, {"role": "assistant", "content": "Rain."})
CASE = Case("and in Bergen?", ("weather",), HISTORY, {"weather": ("forecast",)}, "generated/direct")


@pytest.fixture
def write(tmp_path: Path):
    def write(content: Any, name: str = "cases.jsonl") -> str:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


@pytest.mark.parametrize("form", ["cases", "langsmith"])
def test_a_case_survives_a_file(tmp_path, form):
    path = tmp_path / "cases.jsonl"
    plain = Case("convert\u2028ÄÖ", ("a", "b"))
    save_cases([CASE, plain], path, form=form)
    assert load_cases(path, ["weather", "forecast", "a", "b"]) == [CASE, plain]
    assert path.read_bytes().count(b"\n") == 2


def test_a_plain_case_is_a_short_line(tmp_path):
    save_cases([Case("a", ("b",))], tmp_path / "c.jsonl")
    assert (tmp_path / "c.jsonl").read_text("utf-8") == '{"query": "a", "relevant": ["b"]}\n'


text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
names = st.lists(text, min_size=1, max_size=3, unique=True)


@given(
    st.lists(st.builds(Case, text, names.map(tuple)), min_size=1, max_size=3),
    st.sampled_from(["cases", "langsmith"]),
)
def test_any_text_survives_a_file(tmp_path_factory, cases, form):
    path = tmp_path_factory.mktemp("cases") / "cases.jsonl"
    save_cases(cases, path, form=form)
    assert load_cases(path) == cases


@pytest.mark.parametrize(
    "example",
    [
        {"inputs": {"query": "now?", "history": list(HISTORY)}, "outputs": {"relevant": ["weather"]}},
        {"inputs": {"question": "now?", "history": list(HISTORY)}, "outputs": {"tools": ["weather"]}},
        {
            "inputs": {"messages": [*HISTORY, {"role": "user", "content": "now?"}]},
            "outputs": {"messages": [{"role": "assistant", "tool_calls": [{"name": "weather", "args": {}}]}]},
        },
        {
            "inputs": {
                "messages": [*HISTORY, {"role": "user", "content": [{"type": "text", "text": "now?"}]}]
            },
            "outputs": {"tool_calls": [{"function": {"name": "weather"}}, {"function": {"name": "weather"}}]},
            "metadata": {"split": "test"},
        },
        {
            "inputs": {"input": "now?", "history": list(HISTORY)},
            "outputs": {"message": {"type": "ai", "tool_calls": [{"name": "weather", "args": {}}]}},
            "metadata": None,
        },
    ],
    ids=["our own", "question and tools", "messages", "OpenAI's messages", "one message"],
)
def test_langsmith_examples_are_read_as_they_are_exported(write, example):
    assert load_cases(write(json.dumps(example))) == [Case("now?", ("weather",), HISTORY)]


def test_an_array_and_windows_line_ends_are_read_too(write):
    row = '{"query": "a", "relevant": ["b"], "src": "somewhere"}'
    expected = [Case("a", ("b",)), Case("a", ("b",))]
    assert load_cases(write(f"[{row},\n{row}]")) == expected
    assert load_cases(write(b"\xef\xbb\xbf" + f"{row}\r\n\r\n{row}\r\n".encode())) == expected


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('"text"', ": expected an object with 'query' and 'relevant', found a string"),
        ('{"relevant": ["a"]}', ": field 'query' is missing or empty"),
        ('{"query": " ", "relevant": ["a"]}', ": field 'query' is missing or empty"),
        ('{"query": 3, "relevant": ["a"]}', ": field 'query' is a number"),
        ('{"query": "x"}', ": field 'relevant' must be an array of tool names, found null"),
        ('{"query": "x", "relevant": []}', ": field 'relevant' is empty"),
        ('{"query": "x", "relevant": "a"}', ": field 'relevant' must be an array of tool names, found a string"),
        ('{"query": "x", "relevant": ["a", 1]}', "must be an array of tool names, found a number in it"),
        ('{"query": "x", "relevant": ["wether"]}', "'relevant' has 'wether', which is no tool of the catalogue; did you mean 'weather'?"),
        ('{"query": "x", "relevant": ["zzz"]}', "has 'zzz', which is no tool of the catalogue; there are 2 others"),
        ('{"query": "x", "relevant": ["weather"], "alternatives": ["a"]}', "'alternatives' must be an object, found an array"),
        ('{"query": "x", "relevant": ["weather"], "alternatives": {"forecast": []}}', "has 'forecast', which is not in 'relevant'"),
        ('{"query": "x", "relevant": ["weather"], "alternatives": {"weather": ["b"]}}', "'alternatives.weather' has 'b'"),
        ('{"query": "x", "relevant": ["weather"], "history": "a"}', "'history' must be an array of messages, found a string"),
        ('{"query": "x", "relevant": ["weather"], "history": ["a"]}', "'history', message 1: expected an object with 'role'"),
        ('{"query": "x", "relevant": ["weather"], "history": [{"content": "a"}]}', "'history', message 1"),
        ('{"inputs": {"query": "x"}}', "'outputs' must be an object with 'relevant', found null"),
        ('{"inputs": {}, "outputs": {"relevant": ["weather"]}}', "field 'query' is missing or empty"),
        ('{"inputs": {"query": "x"}, "outputs": {}}', "field 'relevant' is empty"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_line_and_field(write, row, message):
    path = write(f'{{"query": "x", "relevant": ["weather"]}}\n\n{row}\n')
    with pytest.raises(FileError) as raised:
        load_cases(path, ["weather", "forecast"])
    assert str(raised.value).startswith(f"{path}, line 3: ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_what_is_searched_for_is_what_the_middleware_would_search_for():
    messages = [*HISTORY, {"role": "user", "content": CASE.query}]
    assert CASE.search_query() == searched_for(*messages)
    assert CASE.search_query(history=False).parts == (("and in Bergen?", 1.0),)


def test_a_case_keeps_its_key_whatever_it_is_marked_as():
    assert Case("a", ("b", "c"), HISTORY).key == Case("a", ("c", "b"), HISTORY, {"b": ("d",)}, "x").key
    keys = {
        Case("a", ("b",)).key,
        Case("a", ("c",)).key,
        Case("a", ("b",), HISTORY).key,
        Case("z", ("b",)).key,
    }
    assert len(keys) == 4


def test_requests_become_examples_of_the_tools_that_they_take():
    cases = [Case("one", ("a", "b")), Case("two", ("a",)), Case("one", ("a",)), Case("three", ("a",))]
    hints = hints_from(cases, limit=2)
    assert {name: hint.examples for name, hint in hints.items()} == {"a": ("one", "two"), "b": ("one",)}
