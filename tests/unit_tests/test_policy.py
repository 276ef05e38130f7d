import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tool_selection import Hit, Reason, Selection
from langchain_tool_selection._selection.policy import SelectionPolicy, Situation

ABC = ("alpha", "beta", "gamma", "delta", "epsilon")


def select(hits=(), *, top_k=1, min_score=None, on_no_match="previous", **situation):
    policy = SelectionPolicy(top_k, min_score, on_no_match)
    return policy.select(Situation(**{"names": ABC, **situation}), [Hit(*hit) for hit in hits])


def kinds(selection):
    return {name: selection.reasons[name].kind for name in selection.names}


# -- what is shown, and why


def test_the_best_hits_are_shown_with_their_rank_and_score():
    selection = select([("delta", 3.0), ("beta", 2.0), ("gamma", 1.0)], top_k=2)
    assert selection.names == ("beta", "delta")
    assert selection.matched == ("delta", "beta")
    assert selection.reasons == {"delta": Reason("rank", 1, 3.0), "beta": Reason("rank", 2, 2.0)}
    assert selection.hidden == 3


@pytest.mark.parametrize("kind", ["core", "provider", "deferred", "forced", "discovery"])
def test_a_kept_tool_is_shown_for_its_reason_and_takes_no_place_from_a_ranked_one(kind):
    selection = select([("alpha", 3.0), ("beta", 2.0)], kept={"alpha": Reason(kind)})
    assert kinds(selection) == {"alpha": kind, "beta": "rank"}
    assert selection.reasons["beta"] == Reason("rank", 2, 2.0)


def test_pinned_and_used_tools_take_no_place_from_a_ranked_one():
    selection = select([("gamma", 1.0)], pinned=["delta"], used=frozenset({"alpha"}))
    assert kinds(selection) == {"alpha": "used", "gamma": "rank", "delta": "pinned"}


def test_the_strongest_reason_is_told():
    selection = select(
        [("alpha", 1.0)], kept={"alpha": Reason("core")}, pinned=["alpha", "beta"], used=frozenset({"alpha", "beta"})
    )  # fmt: skip
    assert kinds(selection) == {"alpha": "core", "beta": "pinned"}


def test_top_k_zero_shows_only_what_is_kept():
    assert select([("beta", 1.0)], top_k=0, kept={"alpha": Reason("core")}).names == ("alpha",)


def test_names_that_this_request_lacks_are_passed_over_everywhere():
    selection = select(
        [("gone", 9.0), ("beta", 1.0)],
        pinned=["gone"],
        used=frozenset({"gone"}),
        shown=["gone"],
        previous=["gone"],
    )
    assert selection.names == ("beta",)
    assert select(matched=["gone", "beta"]).names == ("beta",)


# -- nothing matches


def test_without_a_match_the_previous_choice_stays():
    selection = select(previous=["delta", "beta"], top_k=1)
    assert kinds(selection) == {"beta": "previous", "delta": "previous"}
    assert selection.matched == ("delta", "beta")


def test_without_a_match_fill_takes_the_first_by_registration_that_are_not_kept_anyway():
    selection = select(on_no_match="fill", top_k=2, kept={"alpha": Reason("core")}, previous=["epsilon"])
    assert kinds(selection) == {"alpha": "core", "beta": "fill", "gamma": "fill"}


def test_without_a_match_on_a_first_turn_only_what_is_kept_is_shown():
    assert select(kept={"epsilon": Reason("discovery")}).names == ("epsilon",)


@pytest.mark.parametrize("top_k", [0, 1, 3])
def test_a_model_is_never_shown_nothing_while_tools_exist(top_k):
    selection = select(top_k=top_k)
    assert selection.names == ABC[: max(1, top_k)]
    assert set(kinds(selection).values()) == {"fill"}


def test_there_is_nothing_to_show_where_there_are_no_tools():
    assert select(names=()).names == ()


def test_a_match_replaces_the_previous_choice():
    assert select([("alpha", 1.0)], previous=["beta"]).names == ("alpha",)


# -- scores


def test_hits_below_the_minimum_are_no_match_and_hits_at_it_are():
    hits = [("alpha", 2.0), ("beta", 1.0), ("gamma", 0.99)]
    assert select(hits, top_k=5, min_score=1.0).names == ("alpha", "beta")
    assert kinds(select(hits, min_score=5.0, previous=["delta"])) == {"delta": "previous"}


def test_without_a_minimum_negative_scores_count():
    assert select([("alpha", -1.0)]).names == ("alpha",)


def test_near_misses_are_the_best_that_were_not_shown_at_most_five():
    names = [f"t{number}" for number in range(10)]
    selection = select(
        [(name, 10.0 - number) for number, name in enumerate(names)], names=names, top_k=1, pinned=["t2"]
    )
    assert [hit.name for hit in selection.near_misses] == ["t1", "t3", "t4", "t5", "t6"]
    assert selection.near_misses[0] == Hit("t1", 9.0)


# -- order


def test_order_is_registration_with_pins_last_in_the_order_they_came():
    selection = select([("gamma", 1.0)], pinned=["delta", "alpha"], kept={"epsilon": Reason("core")})
    assert selection.names == ("gamma", "epsilon", "delta", "alpha")


def test_a_pinned_tool_that_is_core_stays_at_its_place():
    selection = select(pinned=["delta", "alpha"], kept={"alpha": Reason("core"), "beta": Reason("core")})
    assert selection.names == ("alpha", "beta", "delta")


def test_a_turn_is_ranked_once():
    selection = select([("epsilon", 9.0)], matched=["beta"], shown=["beta"])
    assert selection.names == ("beta",)
    assert selection.matched == ("beta",)


def test_a_discovery_within_a_turn_is_appended_to_what_was_shown():
    selection = select(
        shown=["beta", "delta"], matched=["delta"], kept={"beta": Reason("core")}, pinned=["alpha"]
    )
    assert selection.names == ("beta", "delta", "alpha")


def test_a_hidden_tool_that_was_called_anyway_is_appended_to_what_was_shown():
    assert select(shown=["delta"], matched=["delta"], used=frozenset({"alpha"})).names == ("delta", "alpha")


def test_a_tool_that_was_forced_on_one_call_stays_for_the_rest_of_the_turn():
    # Between two user messages the list changes only by what was discovered: providers cache by prefix.
    first = select([("beta", 1.0)], kept={"alpha": Reason("forced")})
    assert first.names == ("alpha", "beta")
    later = select(shown=first.names, matched=first.matched)
    assert later.names[:2] == ("alpha", "beta")


some_names = st.lists(st.sampled_from(ABC), unique=True)


@given(
    hits=some_names,
    kept=st.sets(st.sampled_from(ABC)),
    pins=some_names,
    found=some_names,
    used=st.sets(st.sampled_from(ABC)),
    called=st.sets(st.sampled_from(ABC)),
    previous=some_names,
    top_k=st.integers(0, 4),
    on_no_match=st.sampled_from(["previous", "fill"]),
)
def test_within_a_turn_the_list_of_one_call_begins_the_list_of_the_next(
    hits, kept, pins, found, used, called, previous, top_k, on_no_match
):
    settings = {"top_k": top_k, "on_no_match": on_no_match, "kept": {name: Reason("core") for name in kept}}
    first = select(
        [(name, 9.0 - rank) for rank, name in enumerate(hits)],
        pinned=pins, used=frozenset(used), previous=previous, **settings,
    )  # fmt: skip
    second = select(
        pinned=list(dict.fromkeys(pins + found)),
        used=frozenset(used | called),
        shown=first.names,
        matched=first.matched,
        previous=first.matched,
        **settings,
    )
    for selection in (first, second):
        assert selection.names
        assert len(set(selection.names)) == len(selection.names)
        assert set(selection.reasons) == set(selection.names)
        assert selection.hidden == len(ABC) - len(selection.names)
    assert {*kept, *pins, *used} <= set(first.names)
    assert second.names[: len(first.names)] == first.names
    assert set(second.names) == {*first.names, *found, *called}


# -- telling


@pytest.mark.parametrize(
    ("reason", "text"),
    [(Reason("pinned"), "pinned"), (Reason("rank", 3, 4.2), "rank 3 at 4.2"), (Reason("rank"), "rank")],
    ids=str,
)
def test_a_reason_reads_well(reason, text):
    assert str(reason) == text


@pytest.mark.parametrize("number", [float, np.float32, np.float64], ids=lambda kind: kind.__name__)
def test_a_selection_is_json(number):
    selection = select([("alpha", number(1.23456)), ("beta", number(1.0))])
    told = json.loads(json.dumps(selection.to_dict()))
    assert told["shown"] == {"alpha": "rank 1 at 1.23"}
    assert told["near_misses"] == {"beta": 1.0}
    assert told["hidden"] == 4


def test_a_selection_as_html_shows_names_and_reasons_and_escapes_both():
    bad = "<script>alert(1)</script>"
    selection = Selection(
        names=(bad,),
        reasons={bad: Reason("core")},
        near_misses=(Hit("<i>near", 1.0),),
        hidden=3,
        degraded="<b>down",
    )
    html = selection._repr_html_()
    assert "&lt;script&gt;" in html
    assert "core" in html
    assert "3 hidden" in html
    assert not any(raw in html for raw in ("<script", "<i>", "<b>"))
