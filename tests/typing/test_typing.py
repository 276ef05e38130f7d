"""What type checkers say of a user's program."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

FOLDER = Path(__file__).parent


def needs(checker: str) -> None:
    """Checkers are development tools, and the oldest versions are tested without them."""
    if find_spec(checker) is None:
        pytest.skip(f"{checker} is not in this environment")


def test_mypy_takes_every_documented_form_and_refuses_the_others(root):
    needs("mypy")
    # With the project's settings, so that `make types` and this share what mypy remembers.
    done = subprocess.run(
        [sys.executable, "-m", "mypy", FOLDER / "program.py"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright_takes_every_documented_form_and_refuses_the_others(tmp_path):
    needs("basedpyright")
    settings = {
        "include": [str(FOLDER / "program.py")],
        "typeCheckingMode": "strict",
        "enableTypeIgnoreComments": False,
        "reportUnnecessaryTypeIgnoreComment": "error",
    }
    config = tmp_path / "pyrightconfig.json"
    config.write_text(json.dumps(settings), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--project", config, "--pythonpath", sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
