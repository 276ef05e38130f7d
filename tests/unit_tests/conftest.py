"""What several unit tests share: a fresh interpreter, because import and hash order are per process."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from examples import examples
from hypothesis import settings
from pytest_socket import disable_socket, enable_socket

# The same examples on every run and no file left behind; time limits belong to benchmarks.
settings.register_profile("tests", max_examples=examples(100), deadline=None, derandomize=True, database=None)
settings.load_profile("tests")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def no_sockets() -> Iterator[None]:
    """Let no unit test reach a network, nor a server on this machine."""
    # An event loop wakes itself through a pair of Unix sockets.
    disable_socket(allow_unix_socket=True)
    yield
    enable_socket()


@pytest.fixture(scope="session")
def run_python() -> Callable[..., str]:
    """Run code in a new interpreter and return what it printed."""

    def run(code: str, *, hash_seed: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run
