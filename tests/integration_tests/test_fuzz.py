"""A share of `benchmarks/fuzz.py`, which plays a hundred thousand: whatever comes in, nothing is raised."""

from __future__ import annotations

import pytest

from benchmarks.fuzz import KINDS, failures

pytestmark = pytest.mark.slow

COUNTS = {"documents": 600, "queries": 600, "arguments": 400, "states": 360, "agents": 40}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore")
def test_no_input_makes_anything_raise(kind):
    assert [*failures(COUNTS[kind], only=kind)] == []
