"""What all tests keep to, read from their files."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
PACKAGE = "langchain_tool_selection"
FILES = sorted(path for path in TESTS.rglob("*.py") if "__pycache__" not in path.parts)

EXCEPTIONS: dict[str, str] = {}
"""Test files that import a private module, each with the reason. There is none."""


def is_private(module: str) -> bool:
    """Whether a dotted path into the package has a part that begins with one underscore."""
    package, *parts = module.split(".")
    return package == PACKAGE and any(part.startswith("_") and not part.startswith("__") for part in parts)


def private_imports(source: str) -> Iterator[str]:
    """Yield the private modules that Python code imports, also in code that it has as a string."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if is_private(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            yield from filter(is_private, names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # In code for another process, and in names that are imported or patched by name.
            yield from filter(is_private, node.value.replace(",", " ").replace(";", " ").split())


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_no_test_imports_a_private_module(path):
    name = str(path.relative_to(TESTS))
    assert name in EXCEPTIONS or sorted(private_imports(path.read_text("utf-8"))) == []


@pytest.mark.parametrize(
    "code",
    [
        "import {}._tools.tokens",
        "from {}._tools import tokens",
        "from {} import _tools",
        "from {}.cli import _demo",
        "run('import sys; from {}._tools.tokens import *')",
        "import_module('{}._tools.tokens')",
        "def f():\n    from {}._run.state import USAGE",
    ],
)
def test_a_private_import_is_seen_wherever_it_stands(code):
    assert list(private_imports(code.format(PACKAGE))) != []


@pytest.mark.parametrize("code", ["from {} import __version__", "import {}.evals", "'{}.evals is public'"])
def test_a_public_import_is_none(code):
    assert list(private_imports(code.format(PACKAGE))) == []


def test_every_marker_says_why_and_the_fast_suite_leaves_out_all_of_them():
    settings = tomllib.loads((TESTS.parent / "pyproject.toml").read_text("utf-8"))
    markers = dict(line.split(": ", 1) for line in settings["tool"]["pytest"]["ini_options"]["markers"])
    assert all(len(reason.split()) > 4 for reason in markers.values())
    del markers["every_way"]  # it leaves out nothing
    fast = (TESTS.parent / "Makefile").read_text("utf-8").partition("test-fast: setup")[2].splitlines()[1]
    assert [name for name in markers if name not in fast] == []


UNIT_TEST = """
import socket

def test_a_network():
    socket.create_connection(("127.0.0.1", 9))
"""


def test_a_unit_test_that_opens_a_socket_fails(pytester):
    pytester.makeconftest((TESTS / "unit_tests" / "conftest.py").read_text("utf-8"))
    pytester.makepyfile(UNIT_TEST)
    result = pytester.runpytest_inprocess(
        "-p", "no:cacheprovider", "-o", "asyncio_default_fixture_loop_scope=function"
    )
    result.assert_outcomes(failed=1)
    assert "SocketBlockedError" in result.stdout.str()
