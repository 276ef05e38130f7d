"""Fixtures of the integration tests."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import InMemorySaver


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
