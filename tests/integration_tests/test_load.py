"""A small load on one instance: `benchmarks/load.py` plays a large one and has the figures."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.load import churn, load

pytestmark = pytest.mark.slow


@pytest.fixture(params=["memory", "postgres"])
def saver(request: pytest.FixtureRequest) -> dict[str, Any]:
    url = request.getfixturevalue("postgres").new_database() if request.param == "postgres" else ""
    return {"kind": request.param, "url": url}


async def test_eight_threads_at_once_find_and_keep_their_own_tools(saver, path):
    played = await load(path=path, threads=8, turns=10, tools=300, **saver)
    assert played["wrong"] == []
    # The first call of each turn, and two more where the model searches and calls what it found.
    assert played["ours"]["model call"]["count"] == 8 * (10 + 2 * 2)
    assert played["ours"]["search"]["count"] == 8 * 2


async def test_a_catalogue_that_changes_all_the_time_is_neither_stale_nor_incomplete(path):
    played = await churn(path, threads=8, turns=10, tools=100, pause=0.002)
    assert played["wrong"] == []
    assert played["edits"] > 100
    assert played["asked_for_and_there"] > 20
    assert played["found"] > 20
