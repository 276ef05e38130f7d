"""ARCHITECTURE.md is true: what it names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
PACKAGE = ROOT / "langchain_tool_selection"
NAMED = sorted(set(re.findall(r"(?<![\w/])[\w/]+(?:\.py|\.md|/)(?![\w.])", PAGE)))


@pytest.mark.parametrize("name", NAMED)
def test_every_file_and_folder_that_it_names_exists(name):
    assert (ROOT / name).exists() or (PACKAGE / name).exists()


def test_it_names_the_way_of_a_request():
    assert len([name for name in NAMED if name.endswith(".py")]) >= 10


@pytest.mark.parametrize(
    "name",
    sorted(set(re.findall(r"\b[A-Z]\w+\.[a-z]\w+(?![\w./])", PAGE)) - {"ARCHITECTURE.md", "CONTRIBUTING.md"}),
)
def test_every_method_that_it_names_exists(name):
    kind, method = name.split(".")
    text = "".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    assert re.search(rf"class {kind}\b", text)
    assert re.search(rf"def {method}\(", text)


def test_it_is_one_page():
    assert len(PAGE.splitlines()) <= 90
