"""`tool-selection cost`, as people and programs run it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from langchain_tool_selection.cli import app

EXPOSURES = ["everything", "once", "per_call", "per_turn", "grow", "append", "proxy", "stubs"]


def run(*arguments: str, **environment: str) -> Any:
    return CliRunner().invoke(app, ["cost", *arguments], env={"COLUMNS": "80", **environment})


@pytest.fixture
def catalogue(tmp_path: Path) -> str:
    """A file of 40 tools of about 1,000 tokens."""
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([{"name": f"tool_{n}", "description": "x" * 4_000} for n in range(40)]))
    return str(path)


def test_people_see_a_table_with_bars_and_a_recommendation(catalogue: str) -> None:
    result = run("--tools", catalogue)
    assert result.exit_code == 0, result.output
    rows = [line for line in result.stdout.splitlines() if line.startswith("│")]
    assert [row.split()[1] for row in rows] == EXPOSURES
    bars = {row.split()[1]: row.count("█") for row in rows}
    assert max(bars, key=bars.__getitem__) == "per_call"
    assert bars["everything"] > bars["append"] > 0
    assert result.stdout.endswith("recommended: stubs\n")  # which are short, where tools are this long
    assert max(map(len, rows)) <= 80


def test_a_program_gets_one_json_object_and_nothing_else(catalogue: str) -> None:
    result = run("--tools", catalogue, "--model", "claude-opus-5-5", "--json")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    values = json.loads(result.stdout)
    assert list(values["exposures"]) == EXPOSURES
    assert values["tools"] == 40
    assert values["prices"]["read"] == 0.05
    assert values["exposures"]["append"]["usd"] == pytest.approx(
        values["exposures"]["append"]["cost"] * 4 / 1e6, abs=1e-5
    )


def test_what_a_module_prints_while_it_is_imported_stays_out_of_the_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "chatty_tools.py").write_text("print('hello')\nTOOLS = [{'name': 'a'}]\n")
    monkeypatch.syspath_prepend(tmp_path)
    result = run("--tools", "chatty_tools:TOOLS", "--json")
    assert json.loads(result.stdout)["tools"] == 1
    assert result.stderr == "hello\n"


def test_options_change_prices_and_thread(catalogue: str) -> None:
    options = "--read 0.2 --write 1.5 --usd 3 --top-k 10 --turns 5 --calls 2 --reveals 1 --json"
    values = json.loads(run("--tools", catalogue, *options.split()).stdout)
    given = {"read": 0.2, "write": 1.5, "input": 3.0, "source": "", "as_of": ""}
    assert {field: values["prices"][field] for field in given} == given
    workload = values["workload"]
    assert (workload["turns"], workload["calls_per_turn"], workload["reveals"]) == (5, 2, 1)
    assert workload["shown"] == round(values["catalog"] / 4)


def test_a_cache_that_is_kept_for_longer_is_dearer_to_write(catalogue: str) -> None:
    command = ["--tools", catalogue, "--model", "gpt-6.2-sol", "--json"]
    usual, long = (json.loads(run(*command, *options).stdout) for options in ([], ["--kept-long"]))
    assert (usual["prices"]["write"], long["prices"]["write"]) == (1.25, 2.5)
    assert long["prices"]["tiers"] == [{"above": 272_000, "factor": 2.0}]


def test_where_a_changed_array_keeps_the_cache_selecting_anew_is_recommended(catalogue: str) -> None:
    command = ["--tools", catalogue, "--top-k", "2", "--read", "0.1", "--write", "1"]
    assert "recommended: per_turn" not in run(*command).stdout
    assert "recommended: per_turn" in run(*command, "--keeps-changed").stdout


def test_a_model_without_known_prices_takes_those_that_are_given(catalogue: str) -> None:
    result = run("--tools", catalogue, "--model", "llama3", "--read", "1", "--write", "1")
    assert result.exit_code == 0
    assert "a cached read costs 1 and a write 1 of an uncached token (llama3)" in result.stdout
    rows = {line.split()[1]: line for line in result.stdout.splitlines() if line.startswith("│")}
    assert (
        rows["grow"].split()[3] == rows["append"].split()[3]
    )  # without a cache, a changed array costs nothing


def test_a_terminal_without_unicode_gets_its_bars_too(
    catalogue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rich.console.ConsoleOptions.ascii_only", True)
    assert "####" in run("--tools", catalogue).stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        (b"", "the file is empty"),
        (b'[{"name": "a"},', "line 1, column 16: the JSON ends too early"),
        (b'[{"name": "caf\xe9"}]', "line 1: byte 0xe9 is no UTF-8"),
        (b'[{"description": "a"}]', "tool 1: field 'name' is missing or empty"),
    ],
    ids=["missing", "empty", "truncated", "wrong encoding", "nameless"],
)
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_bad_file_is_said_in_one_line(
    tmp_path: Path, content: bytes | None, message: str, options: list[str]
) -> None:
    path = tmp_path / "tools.json"
    if content is not None:
        path.write_bytes(content)
    result = run("--tools", str(path), *options)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"tool-selection cost: {path}")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "llama3"], "no prices are known for the model 'llama3'"),
        (["--turns", "0"], "Workload.turns must be 1 or more, got 0"),
        (["--top-k", "0"], "top_k must be 1 or more, got 0"),
        (["--read", "2"], "Prices.read must be at most Prices.write"),
        (["--model", "gpt-5.6", "--kept-long"], "no price is known for keeping a prompt in the cache"),
        (["--write", "nan"], "Prices.write must be a number"),
    ],
)
def test_a_bad_option_is_said_in_one_line(catalogue: str, options: list[str], message: str) -> None:
    result = run("--tools", catalogue, *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_example_in_the_documentation_prints_what_is_shown(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (root / "docs" / "cost.md").read_text("utf-8")
    command, shown = re.findall(r"^```console\n\$ tool-selection cost (.*)\n([^`]*)^```", page, re.MULTILINE)[
        0
    ]
    monkeypatch.chdir(root)
    monkeypatch.syspath_prepend(root)
    assert run(*command.split()).stdout == shown


def test_the_python_and_the_links_of_the_documentation_hold(root: Path) -> None:
    page = (root / "docs" / "cost.md").read_text("utf-8")
    scope = {"tools": [{"name": f"tool_{n}", "description": "x" * 4_000} for n in range(40)]}
    for block in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        exec(block, scope)
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page):
        assert (root / "docs" / target).exists(), target
