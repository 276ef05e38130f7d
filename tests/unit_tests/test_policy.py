"""Which tools a call is shown, and why: seen in the events and requests of real agents with a given ranking."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from examples import examples
from grouped import grouped
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Overwrite

from langchain_tool_selection import Discovery, Hit, Reason, Selection, ToolSelectionMiddleware
from langchain_tool_selection.testing import ScriptedChatModel, call, calls

ABC = ("alpha", "beta", "gamma", "delta", "epsilon")
THREAD = {"configurable": {"thread_id": "thread"}}
SEARCH = "discover_tools"


@cache
def tool(name: str, deferred: bool = False) -> BaseTool:
    extras = {"defer_loading": True} if deferred else None
    return StructuredTool.from_function(
        func=lambda text="": "done", name=name, description=f"The tool {name}.", extras=extras
    )


class Given:
    """A ranker that gives back what it was given, whatever is searched for."""

    def __init__(self) -> None:
        self.hits: Sequence[tuple[str, Any]] = ()

    def rank(self, query: Any, documents: Any, *, limit: int | None = None) -> list[Hit]:
        return [Hit(*hit) for hit in self.hits]


class Forcing(AgentMiddleware):
    """Names a tool in `tool_choice`, on the first call only."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.choice: str | None = name

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        choice, self.choice = self.choice, None
        return handler(request.override(tool_choice=choice) if choice else request)


class Conversation:
    """An agent over `ABC`, whose ranker gives back the `hits` of each turn."""

    def __init__(
        self, *, names: Iterable[Any] = ABC, forced: str = "", search: bool = False, **settings: Any
    ) -> None:
        self.ranker = Given()
        self.model = ScriptedChatModel(script=self._answer)
        self._answers: list[Any] = []
        selection = ToolSelectionMiddleware(
            **{
                "top_k": 1, "ranker": self.ranker, "discovery": Discovery() if search else None,
                **grouped(**settings),
            }
        )  # fmt: skip
        self.agent = create_agent(
            self.model,
            [tool(name) if isinstance(name, str) else name for name in names],
            middleware=[*([Forcing(forced)] if forced else []), selection],
            checkpointer=InMemorySaver(),
        )

    def _answer(self, sent: Any) -> Any:
        answer = self._answers.pop(0) if self._answers else "Done."
        return answer(sent) if callable(answer) else answer

    def turn(self, hits: Iterable[tuple[str, Any]] = (), *answers: Any) -> list[dict[str, Any]]:
        """Play one turn and return the selections of its calls."""
        self.ranker.hits, self._answers = list(hits), list(answers)
        events = self.agent.stream({"messages": [HumanMessage("do it")]}, THREAD, stream_mode="custom")
        return [event for event in events if event["type"] == "tool_selection"]

    def pin(self, *names: str) -> None:
        self.agent.update_state(THREAD, {"tool_selection_pinned": Overwrite(list(names))})

    @property
    def sent(self) -> list[list[str]]:
        return [[name for name in sent.tools if name != SEARCH] for sent in self.model.calls]


def select(
    hits: Iterable[tuple[str, Any]] = (),
    *,
    pinned: Sequence[str] = (),
    used: Sequence[str] = (),
    **settings: Any,
) -> dict[str, Any]:
    """Return the selection of the first call of a turn with these hits, pins and recent calls."""
    conversation = Conversation(**settings)
    if used or pinned:
        conversation.turn((), *([calls(*((name, {}) for name in used))] if used else []))
    if pinned:
        conversation.pin(*pinned)
    selection = conversation.turn(hits)[0]
    # What the event says is what was sent.
    assert [name for name in selection["shown"] if not name.startswith("<")] == [
        name for name in conversation.model.calls[-1].tools if name != "web_search"
    ]
    return selection


def ranked(rank: int, score: float) -> dict[str, Any]:
    return {"kind": "rank", "rank": rank, "score": score, "turn": 1}


def kinds(selection: dict[str, Any]) -> dict[str, str]:
    return {name: reason["kind"] for name, reason in selection["shown"].items() if name != SEARCH}


# -- what is shown, and why


def test_the_best_hits_are_shown_with_their_rank_and_score():
    selection = select([("delta", 3.0), ("beta", 2.0), ("gamma", 1.0)], top_k=2)
    assert selection["shown"] == {"beta": ranked(2, 2.0), "delta": ranked(1, 3.0)}
    assert list(selection["shown"]) == ["beta", "delta"]
    assert selection["hidden"] == 3


KEPT: dict[str, dict[str, Any]] = {
    "core": {"always_include": ["alpha"]},
    "forced": {"forced": "alpha"},
    "deferred": {"names": [tool("alpha", deferred=True), *ABC[1:]]},
}


@pytest.mark.parametrize("kind", KEPT)
def test_a_kept_tool_is_shown_for_its_reason_and_takes_no_place_from_a_ranked_one(kind):
    selection = select([("alpha", 3.0), ("beta", 2.0)], **KEPT[kind])
    assert selection["shown"] == {"alpha": {"kind": kind, "turn": 1}, "beta": ranked(2, 2.0)}


def test_tools_of_the_provider_and_the_search_take_no_place_from_a_ranked_one():
    selection = select([("beta", 2.0)], names=[*ABC, {"type": "web_search"}])
    assert selection["shown"] == {"beta": ranked(1, 2.0), "<web_search>": {"kind": "provider", "turn": 1}}
    assert select([("beta", 2.0)], search=True)["shown"] == {
        SEARCH: {"kind": "discovery", "turn": 1},
        "beta": ranked(1, 2.0),
    }


def test_pinned_and_used_tools_take_no_place_from_a_ranked_one():
    selection = select([("gamma", 1.0)], pinned=["delta"], used=["alpha"])
    assert kinds(selection) == {"alpha": "used", "gamma": "rank", "delta": "pinned"}


def test_the_strongest_reason_is_told():
    selection = select(
        [("alpha", 1.0)], always_include=["alpha"], pinned=["alpha", "beta"], used=["alpha", "beta"]
    )
    assert kinds(selection) == {"alpha": "core", "beta": "pinned"}


def test_top_k_zero_shows_only_what_is_kept():
    assert list(select([("beta", 1.0)], top_k=0, always_include=["alpha"])["shown"]) == ["alpha"]


def test_names_that_this_request_lacks_are_passed_over():
    selection = select([("gone", 9.0), ("beta", 1.0)], pinned=["gone"])
    assert selection["shown"] == {"beta": {**ranked(1, 1.0), "turn": 2}}


# -- nothing matches


def test_without_a_match_the_previous_choice_stays():
    conversation = Conversation(top_k=2)
    conversation.turn([("delta", 2.0), ("beta", 1.0)])
    for _ in range(2):
        (selection,) = conversation.turn()
        assert kinds(selection) == {"beta": "previous", "delta": "previous"}


def test_without_a_match_fill_takes_the_first_by_registration_that_are_not_kept_anyway():
    conversation = Conversation(top_k=2, on_no_match="fill", always_include=["alpha"])
    conversation.turn([("epsilon", 1.0)])
    (selection,) = conversation.turn()
    assert kinds(selection) == {"alpha": "core", "beta": "fill", "gamma": "fill"}


def test_without_a_match_on_a_first_turn_only_what_is_kept_is_shown():
    assert list(select(search=True)["shown"]) == [SEARCH]


@pytest.mark.parametrize("top_k", [0, 1, 3])
def test_a_model_is_never_shown_nothing_while_tools_exist(top_k):
    selection = select(top_k=top_k)
    assert list(selection["shown"]) == [*ABC[: max(1, top_k)]]
    assert {*kinds(selection).values()} == {"fill"}


def test_a_match_replaces_the_previous_choice():
    conversation = Conversation()
    conversation.turn([("beta", 1.0)])
    assert list(conversation.turn([("alpha", 1.0)])[0]["shown"]) == ["alpha"]


# -- scores


def test_hits_below_the_minimum_are_no_match_and_hits_at_it_are():
    hits = [("alpha", 2.0), ("beta", 1.0), ("gamma", 0.99)]
    assert list(select(hits, top_k=4, min_score=1.0)["shown"]) == ["alpha", "beta"]
    assert kinds(select(hits, min_score=5.0)) == {"alpha": "fill"}


def test_without_a_minimum_negative_scores_count():
    assert list(select([("beta", -1.0)])["shown"]) == ["beta"]


def test_near_misses_are_the_best_that_were_not_shown_at_most_five():
    names = [f"t{number}" for number in range(10)]
    hits = [(name, 10.0 - number) for number, name in enumerate(names)]
    selection = select(hits, names=names, pinned=["t2"])
    assert selection["near_misses"] == {"t1": 9.0, "t3": 7.0, "t4": 6.0, "t5": 5.0, "t6": 4.0}


# -- order


def test_order_is_registration_with_pins_last_in_the_order_they_came():
    selection = select([("gamma", 1.0)], pinned=["delta", "alpha"], always_include=["epsilon"])
    assert list(selection["shown"]) == ["gamma", "epsilon", "delta", "alpha"]


def test_a_pinned_tool_that_is_core_stays_at_its_place():
    selection = select(pinned=["delta", "alpha"], always_include=["alpha", "beta"])
    assert list(selection["shown"]) == ["alpha", "beta", "delta"]


def test_a_turn_is_ranked_once():
    conversation = Conversation()

    def answer(_: Any) -> Any:
        conversation.ranker.hits = [("epsilon", 9.0)]
        return call("beta")

    conversation.turn([("beta", 1.0)], answer)
    assert conversation.sent == [["beta"], ["beta"]]


def test_a_discovery_within_a_turn_is_appended_to_what_was_shown():
    conversation = Conversation(search=True, always_include=["beta"])
    conversation.turn([("delta", 1.0)], call(SEARCH, names=["alpha"]))
    assert conversation.sent == [["beta", "delta"], ["beta", "delta", "alpha"]]


def test_a_hidden_tool_that_was_called_anyway_is_appended_to_what_was_shown():
    conversation = Conversation()
    conversation.turn([("delta", 1.0)], call("alpha"))
    assert conversation.sent == [["delta"], ["delta", "alpha"]]


def test_a_tool_that_was_forced_on_one_call_stays_for_the_rest_of_the_turn():
    # Between two user messages the list changes only by what was discovered: providers cache by prefix.
    conversation = Conversation(forced="alpha")
    conversation.turn([("beta", 1.0)], call("beta"))
    assert conversation.sent == [["alpha", "beta"], ["alpha", "beta"]]


# Without shrinking: each example plays a conversation.
GENERATE = (Phase.explicit, Phase.generate)
some_names = st.lists(st.sampled_from(ABC), unique=True)


@settings(max_examples=examples(30), phases=GENERATE)
@given(
    hits=some_names,
    core=st.lists(st.sampled_from(ABC), unique=True, max_size=2),
    pins=some_names,
    found=some_names.filter(bool),
    called=some_names.filter(bool),
    previous=some_names,
    top_k=st.integers(0, 2),
    on_no_match=st.sampled_from(["previous", "fill"]),
)
@pytest.mark.slow
def test_within_a_turn_the_list_of_one_call_begins_the_list_of_the_next(
    hits, core, pins, found, called, previous, top_k, on_no_match
):
    conversation = Conversation(
        search=True, always_include=core, top_k=top_k, on_no_match=on_no_match, keep_used=0
    )
    conversation.turn([(name, 1.0) for name in previous])
    conversation.pin(*pins)
    ranked = [(name, 9.0 - rank) for rank, name in enumerate(hits)]
    wanted = [call(SEARCH, names=found), calls(*((name, {}) for name in called))]
    selections = conversation.turn(ranked, *wanted)
    first, *later = [list(selection["shown"]) for selection in selections]
    assert {*core, *pins} <= {*first}
    for before, now in zip([first, *later], later, strict=False):
        assert now[: len(before)] == before
    for selection in selections:
        assert len({*selection["shown"]}) == len(selection["shown"])
        assert selection["hidden"] == len(ABC) + 1 - len(selection["shown"])
    if later:
        assert {*later[-1]} - {*first} <= {*found}


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
    told = json.loads(json.dumps(selection))
    assert told["shown"] == {"alpha": ranked(1, 1.23456)}
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
