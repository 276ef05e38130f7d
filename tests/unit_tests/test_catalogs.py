"""Catalogues are read from every format that people have, and what is wrong with one is said in a line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from langchain_tool_selection.evals.catalogs import CatalogError, load_catalog

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = {"name": "weather", "description": "Forecast for a city.", "parameters": SCHEMA}
MCP = {"name": "weather", "title": "Weather", "description": "Forecast for a city.", "inputSchema": SCHEMA}


@pytest.fixture
def write(tmp_path: Path):
    def write(content: Any, name: str = "tools.json") -> str:
        data = content if isinstance(content, str | bytes) else json.dumps(content)
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return str(path)

    return write


@pytest.mark.parametrize(
    "content",
    [
        [WEATHER],
        [{"type": "function", "function": WEATHER}],
        [{"type": "function", **WEATHER, "strict": True}],
        [{"name": "weather", "description": "Forecast for a city.", "input_schema": SCHEMA}],
        {"tools": [MCP]},
        {"tools": [MCP], "nextCursor": None},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [MCP]}},
        json.dumps([WEATHER], indent=2),
        json.dumps({"tools": [MCP]}, indent=2),
        json.dumps(WEATHER),
        json.dumps({"type": "function", "function": WEATHER}),
        b"\xef\xbb\xbf" + json.dumps([WEATHER]).encode(),
        "\r\n" + json.dumps(WEATHER) + "\r\n\r\n",
    ],
    ids=[
        "plain",
        "OpenAI",
        "OpenAI Responses",
        "Anthropic",
        "MCP",
        "MCP, last page",
        "JSON-RPC",
        "indented array",
        "indented object",
        "one line",
        "one line of OpenAI's",
        "byte order mark",
        "Windows line ends",
    ],
)
def test_a_tool_reads_the_same_from_every_format(write, content):
    assert load_catalog(write(content)) == [WEATHER]


def test_lines_are_tools_in_their_order(write):
    other = {"name": "b", "description": "one\u2028line", "parameters": None, "domain": "x"}
    lines = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in (WEATHER, other))
    nothing = {"type": "object", "properties": {}}
    assert load_catalog(write(f"{lines}\n\n")) == [WEATHER, {**other, "parameters": nothing}]


def test_what_is_absent_is_empty(write):
    assert load_catalog(write([{"name": "ping"}])) == [
        {"name": "ping", "description": "", "parameters": {"type": "object", "properties": {}}}
    ]


MODULE = '''
from langchain_core.tools import tool

@tool
def weather(city: str) -> str:
    """Forecast for a city."""

def plain(city: str) -> str:
    """A function."""

weather.metadata = {"domain": "sky"}
TOOLS = [weather, plain, {"name": "raw", "input_schema": {"type": "object"}}]
WRONG = [weather, 3]
NUMBER = 3
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the current folder, of a name that no other test has imported."""
    name = f"tools_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*os.sys.path])
    return name


def test_a_list_of_langchain_tools_is_read_from_a_module_in_the_current_folder(module):
    weather, plain, raw = load_catalog(f"{module}:TOOLS")
    assert (weather["name"], weather["description"], weather["domain"]) == (
        "weather",
        "Forecast for a city.",
        "sky",
    )
    assert weather["parameters"]["properties"]["city"]["type"] == "string"
    assert (plain["name"], plain["description"]) == ("plain", "A function.")
    assert raw["parameters"] == {"type": "object"}


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("NOTHING", "the module has no 'NOTHING'; its lists are: TOOLS, WRONG"),
        ("NUMBER", "'NUMBER' is no list of tools but int; its lists are: TOOLS, WRONG"),
        ("WRONG", ":WRONG, tool 2: int is no tool to LangChain: "),
    ],
)
def test_an_attribute_that_holds_no_tools_is_named_with_those_that_may(module, attribute, message):
    assert message in failure(f"{module}:{attribute}")


@pytest.mark.parametrize("code", ["1 / 0", "raise SystemExit('two\\nlines')", "import nonsense_"])
def test_a_module_that_cannot_be_imported_is_named_with_the_reason(tmp_path, monkeypatch, code):
    (tmp_path / "broken_tools.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*os.sys.path])
    assert "importing 'broken_tools' failed with " in failure("broken_tools:TOOLS")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ": the file is empty"),
        (" \n", ": the file is empty"),
        ("[]", ": there are no tools in it"),
        ({"tools": []}, ": there are no tools in it"),
        ('[{"name": "a"},\n {"name": "b"', ", line 2, column 14: the JSON ends too early"),
        ('[{"name": "a"},\n {"name": "b', ", line 2, column 11: the JSON ends too early"),
        ('{"name": "a"}\n{"name": "b"}\n{"na', ", line 3, column 2: the JSON ends too early"),
        ('[{"name": "a"},\n {"name": b}]', ", line 2, column 11: no JSON: Expecting value"),
        ("name: a\n", ", line 1, column 1: no JSON: Expecting value"),
        ("[" * 100_000, ", line 1: the JSON cannot be read: RecursionError"),
        ("[" + "1" * 5_000 + "]", ", line 1: the JSON cannot be read: ValueError"),
        (b'[\n{"name": "caf\xe9"}]', ", line 2: byte 0xe9 is no UTF-8; save the file as UTF-8"),
        (json.dumps([WEATHER]).encode("utf-16"), ", line 1: byte 0xff is no UTF-8"),
        ([{"description": "nameless"}], ", tool 1: field 'name' is missing or empty"),
        ([WEATHER, {"type": "function", "function": {}}], ", tool 2: field 'name' is missing or empty"),
        ('{"name": "a"}\n\n{"name": ""}', ", line 3: field 'name' is missing or empty"),
        ([{"name": 3}], ", tool 1: field 'name' must be a string, found a number"),
        (
            [{"name": "a", "description": ["x"]}],
            ", tool 1 ('a'): field 'description' must be a string, found an array",
        ),
        (
            [{"name": "a", "input_schema": "{}"}],
            ", tool 1 ('a'): field 'input_schema' must be an object, a JSON schema, found a string",
        ),
        ([{"name": "a", "domain": True}], ", tool 1 ('a'): field 'domain' must be a string, found a boolean"),
        (["a"], ", tool 1: expected an object with 'name' and 'description', found a string"),
        (
            "3",
            ": expected an array of tools, an object with one as 'tools', or a tool a line; found a number",
        ),
        ({"error": {"code": 1}}, "found an object with the fields 'error'"),
        ("{}", "found an object"),
        ([WEATHER, WEATHER], ", tool 2: there is another tool named 'weather' before it; rename one"),
        ({"tools": [MCP], "nextCursor": "2"}, ": field 'nextCursor' says that tools are missing"),
    ],
)
def test_a_bad_file_is_named_with_line_and_field_in_one_line(write, content, message):
    path = write(content)
    assert f"{path}" in failure(path)
    assert message in failure(path)


def test_a_file_of_lines_is_known_by_its_name_when_its_first_line_is_broken(write):
    path = write('{"name": "a"\n{"name": "b"}\n', "tools.jsonl")
    assert ", line 1, column 13: the JSON ends too early" in failure(path)


def test_a_file_that_is_not_there_is_named_with_what_is_possible(tmp_path):
    assert failure(str(tmp_path / "none.json")).endswith(
        "none.json: no such file; give one, or a list of LangChain tools as module:attribute"
    )
    assert failure(str(tmp_path)).endswith(": cannot be read: Is a directory")
    assert "cannot be read" in failure("a\0b")


def failure(source: str) -> str:
    with pytest.raises(CatalogError) as raised:
        load_catalog(source)
    assert "\n" not in str(raised.value)
    return str(raised.value)
