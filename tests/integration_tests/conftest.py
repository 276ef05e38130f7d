"""Fixtures of the integration tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from .postgres import Postgres, why_missing


@pytest.fixture(params=["sync", "async"])
def path(request: pytest.FixtureRequest) -> str:
    """Which of the two ways through the framework to take."""
    return request.param


@pytest.fixture(params=["memory", "sqlite"])
def saver_kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def memory() -> InMemorySaver:
    return InMemorySaver()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL that runs for the session. Continuous integration must have it."""
    if missing := why_missing():
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    server = Postgres()
    server.start()
    yield server
    server.stop()
