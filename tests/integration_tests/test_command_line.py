"""The command line as people run it: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


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


def test_the_demo_shows_each_call_before_and_after_and_what_was_saved() -> None:
    result = run("demo")
    assert result.returncode == 0, result.stderr
    assert "Found tool `calculator`: Evaluate a basic arithmetic expression." in result.stdout
    assert "pinned after the restart: ['calculator']" in result.stdout
    assert "saved" in result.stdout


def test_the_demo_keeps_its_threads_in_a_file_when_asked_to(tmp_path: Path) -> None:
    database = tmp_path / "threads.db"
    assert run("demo", "--database", str(database)).returncode == 0
    assert database.stat().st_size > 0


def test_without_its_packages_the_command_line_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ImportError('no typer', name='typer')")
    result = run("demo", PYTHONPATH=str(tmp_path))
    assert result.returncode != 0
    assert "pip install 'langchain-tool-selection[cli]'" in result.stderr


@pytest.mark.parametrize("arguments", [("--help",), ("demo", "--help")])
def test_help_is_there(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.returncode == 0
    assert "tool" in result.stdout
