"""What `make test-upstream` makes of the outcomes of another project's tests."""

from __future__ import annotations

import pytest
from conformance import HERE, Difference, matches, problems, read_differences
from selection_plugin import EXPOSURES, MODES

TEST = "test_agents.py::test_tools[sync]"
LISTED = Difference((TEST,), ("last-*",), "The list has one tool more.")


def outcome(name, error=""):
    return {TEST: {"outcome": name, "builds_agents": True, "error": error}}


def found(differences, **by_mode):
    return list(
        problems([TEST], {name.replace("_", "-"): each for name, each in by_mode.items()}, differences)
    )


def test_a_test_that_passes_without_us_has_to_pass_with_us():
    (problem,) = found([], first=outcome("failed", "assert 1 == 2"))
    assert TEST in problem
    assert "first" in problem
    assert "assert 1 == 2" in problem


@pytest.mark.parametrize("outcomes", [outcome("skipped"), {}], ids=["skipped", "not run"])
def test_a_test_that_is_skipped_or_missing_with_us_differs(outcomes):
    assert len(found([], first=outcomes)) == 1


def test_a_listed_difference_is_no_problem():
    assert not found([LISTED], last_all=outcome("failed"), first_all=outcome("passed"))


def test_a_listed_difference_that_is_gone_is_a_problem():
    (problem,) = found([LISTED], last_all=outcome("failed"), last_none=outcome("passed"))
    assert "passes in last-none" in problem


def test_a_pattern_that_no_test_and_no_mode_fits_is_a_problem():
    stale = Difference(("test_gone.py::*",), ("sideways",), "Nobody knows any more.")
    assert len(found([stale], first=outcome("passed"))) == 2


def test_brackets_in_test_ids_stand_for_themselves():
    assert matches(TEST, "test_agents.py::*[sync]")
    assert not matches(TEST, "test_agents.py::test_tools[async]")
    assert not matches("test_agents.py::test_toolss", TEST)


def test_each_difference_on_the_list_has_a_reason():
    assert all(each.reason.strip() for each in read_differences(HERE / "differences.toml"))


def test_each_exposure_is_tried_on_both_sides_of_other_middleware():
    assert {f"{place}-all-{exposure}" for place in ("first", "last") for exposure in EXPOSURES} <= {*MODES}
