"""The command line as people run it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from langchain_tool_selection.cli import app


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {key: value for key, value in os.environ.items() if key != "OPENAI_API_KEY"}
    return subprocess.run(
        [sys.executable, "-m", "langchain_tool_selection", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**inherited, "COLUMNS": "120", **environment},
        check=False,
    )


def run_here(*arguments: str, **environment: str) -> Any:
    """Run a command in this process, which spares the imports of another."""
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "120", "OPENAI_API_KEY": None, **environment})


@pytest.mark.process
def test_the_demo_shows_each_call_before_and_after_and_what_was_saved() -> None:
    result = run("demo")
    assert result.returncode == 0, result.stderr
    assert "Found tool `calculator`: Evaluate a basic arithmetic expression." in result.stdout
    assert "pinned after the restart: ['calculator']" in result.stdout
    assert "saved" in result.stdout


def test_the_demo_keeps_its_threads_in_a_file_when_asked_to(tmp_path: Path) -> None:
    database = tmp_path / "threads.db"
    assert run_here("demo", "--database", str(database)).exit_code == 0
    assert database.stat().st_size > 0


def test_a_demo_that_cannot_go_on_says_why_in_one_line(tmp_path: Path) -> None:
    for arguments, environment, message in [
        (("--database", str(tmp_path)), {}, f"tool-selection demo: the demo, in {tmp_path}, failed with"),
        ((), {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": "http://127.0.0.1:9"}, "Connection"),
    ]:
        result = run_here("demo", *arguments, **environment)
        assert result.exit_code == 2
        assert message in result.stderr
        assert result.stderr.count("\n") == 1


@pytest.mark.process
def test_without_its_packages_the_command_line_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ImportError('no typer', name='typer')")
    result = run("demo", PYTHONPATH=str(tmp_path))
    assert result.returncode != 0
    assert "pip install 'langchain-tool-selection[cli]'" in result.stderr


COMMANDS = ["search", "eval", "lint", "cost", "verify", "generate-cases", "run-agent", "demo"]


def test_help_names_each_command() -> None:
    result = run_here("--help")
    assert result.exit_code == 0
    assert [name for name in COMMANDS if f"│ {name} " not in result.stdout] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_joins_the_lines_of_its_text(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "120"})
    assert result.exit_code == 0
    text, _, options = result.stdout.partition("╭─")
    lines = [line.strip() for line in text.splitlines()]
    # A line that is short, and goes on below, was broken for the source file and not for the terminal.
    assert [line for line, after in pairwise(lines) if after and line and len(line) < 95] == []
    assert not re.search(r"│ +--[\w-]+ +(<[^>]+>)? +│", options), "an option without a help text"
