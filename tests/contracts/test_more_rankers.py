"""The contract of every ranker, over those that stand on another one: `RuleRanker` and `LLMRanker`."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import test_rankers
from hypothesis import given, settings
from hypothesis import strategies as st
from test_rankers import (  # noqa: F401  # the contract: collected here, over this module's `make_ranker`
    documents,
    search,
    test_a_changed_description_ranks_by_its_new_words,
    test_a_limit_gives_the_beginning_of_the_whole_list,
    test_a_part_of_a_query_counts_by_its_weight,
    test_a_removed_tool_leaves_no_trace,
    test_allowed_is_a_mask_that_changes_nobodys_score,
    test_an_empty_catalogue_has_no_matches,
    test_an_empty_query_matches_nothing,
    test_it_is_a_ranker,
    test_many_threads_on_one_ranker_each_get_their_own_results,
    test_ranking_twice_gives_the_same,
    test_scores_are_finite_and_descending_and_names_are_known_and_unique,
    test_syncing_the_same_tools_again_changes_nothing,
    test_the_async_path_gives_the_same,
    test_the_tool_with_the_words_of_the_request_comes_first,
    test_ties_go_to_the_tool_registered_first,
    test_two_catalogues_on_one_ranker_do_not_mix,
)

from langchain_tool_selection import ARITHMETIC, LexicalRanker, LLMRanker, RuleRanker
from langchain_tool_selection.testing import ScriptedChatModel

RANKERS = {
    "rules": lambda: RuleRanker(
        [(ARITHMETIC, "calculator"), ("in the tracker|weather", ["gone", "create_issue", "weather_lookup"])]
    ),
    "rules and words": lambda: RuleRanker({r"\bsum\b": ["calculator", "stock_price"]}, LexicalRanker()),
    # A model that agrees with the ranker before it, one that never answers, and one that turns lists round.
    "agreeing model": lambda: LLMRanker(ScriptedChatModel(script=lambda sent: "[1]")),
    "babbling model": lambda: LLMRanker(ScriptedChatModel(script=lambda sent: "With pleasure!")),
    "contrary model": lambda: LLMRanker(ScriptedChatModel(script=lambda sent: "[3, 2]"), shortlist=3),
}
OPINIONATED = {"rules", "contrary model"}
"""Not bound by the words of a request, so nothing is promised about which of their tools comes first."""

ABOUT_WORDS = {
    test_a_changed_description_ranks_by_its_new_words,
    test_a_part_of_a_query_counts_by_its_weight,
    test_the_tool_with_the_words_of_the_request_comes_first,
    test_ties_go_to_the_tool_registered_first,
    test_two_catalogues_on_one_ranker_do_not_mix,
}


@pytest.fixture(params=RANKERS)
def make_ranker(request):
    if request.param in OPINIONATED and request.function in ABOUT_WORDS:
        pytest.skip("this ranker does not go by words alone")
    return RANKERS[request.param]


def test_the_same_input_gives_the_same_bytes_in_every_process():
    code = test_rankers._DETERMINISM.replace("import test_rankers as t", f"import {__name__} as t")
    paths = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[2])]
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True, check=True, timeout=60,
        ).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip
    assert len(printed) == 1


@settings(max_examples=40, deadline=None)
@given(tools=st.lists(documents, max_size=6), text=st.text(max_size=40), limit=st.integers(0, 8) | st.none())
@pytest.mark.parametrize("make", RANKERS.values(), ids=RANKERS)
def test_no_tool_and_no_request_is_too_odd_to_be_ranked(make, tools, text, limit):
    hits = search(make(), tools, text, limit=limit)
    assert all(math.isfinite(hit.score) for hit in hits)
    assert len(hits) <= (len(tools) if limit is None else limit)
