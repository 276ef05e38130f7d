"""Which tools to show, given what ranking found and what must stay. Pure: no I/O, no agent.

`SelectionPolicy.select` is the only decision in the package about what a model sees. It works on names
in registration order and gives back a `Selection`, which says of each name why it is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Literal, get_args

from langchain_tool_selection._ranking.protocol import Hit, Query

# The cost model reads exposures, which read this, and loads no ranker.
if TYPE_CHECKING:
    from langchain_tool_selection._ranking.index import CatalogView

OfOneRanking = Literal["rank", "previous", "fill"]
"""Reasons that are about one ranking. All others hold on from one turn to the next."""
ReasonKind = Literal[
    OfOneRanking,
    "core",
    "provider",
    "deferred",
    "forced",
    "discovery",
    "pinned",
    "used",
    "stub",
    "turn",
    "all",
]
OnNoMatch = Literal["previous", "fill"]

_OF_ONE_RANKING = frozenset(get_args(OfOneRanking))
_UNSAID = frozenset({"names", "reasons", "matched"})
"""What `Selection.to_dict` says in another form, or not at all."""

NEAR_MISSES = 5
"""How many of the best tools that were not shown a selection names."""


@dataclass(frozen=True)
class Reason:
    """Why a tool is shown, and since when.

    Attributes:
        kind: "core" (always included), "provider" (a provider's own tool), "deferred" (the provider
            loads it on demand), "forced" (tool_choice names it), "discovery" (the search tool),
            "pinned" (found earlier), "used" (called in a recent turn), "rank" (among the best for the
            request), "previous" (nothing matched: kept from before), "fill" (nothing matched: first
            by registration), "stub" (stands in the tools array by name and one line, with an open
            schema), "turn" (shown before, for a reason that was not recorded), "all" (nothing is hidden).
        rank: 1 for the best; only for kind "rank".
        score: The ranker's score; likewise.
        turn: The user turn in which the tool came for this reason, 1 for the thread's first; `None` where
            nothing is recorded.
    """

    kind: ReasonKind
    rank: int | None = None
    score: float | None = None
    turn: int | None = None

    def __str__(self) -> str:
        """For people: `pinned`, or `rank 3 at 4.2`."""
        if self.rank is None or self.score is None:
            return self.kind
        return f"{self.kind} {self.rank} at {self.score:.3g}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are known, as JSON values."""
        # Rounded, so that the bytes are the same wherever a score was added up.
        score = None if self.score is None else float(f"{self.score:.6g}")
        fields = {"kind": self.kind, "rank": self.rank, "score": score, "turn": self.turn}
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True)
class Plan:
    """What is known before the search, and what to search for.

    Attributes:
        names: All tools of the request, in registration order, unique.
        kept: Tools that this request must not hide, each with the reason.
        pinned: Pins, in the order they came; names that are not in `names` are passed over.
        used: Tools called in recent turns.
        shown: What has been shown and stays, in its order: by the previous call of the same user turn,
            or by the thread so far where what is shown only grows.
        recorded: Why tools were shown by earlier calls of the thread, as far as that is recorded.
        matched: What of the shown matched the request when this turn was ranked; `None` on its first
            call.
        previous: What of the shown matched in the turn before.
        turn: The number of the user turn, 1 for the thread's first.
        max_additions: How many tools may be added by rank; `None` means the policy's `top_k`.
        min_share: Tools that score less than this share of the best hit are not added.
        token_budget: Tokens that all shown tools may take together; `None` for no limit. What must stay
            stays, even beyond it.
        tokens: Token count of each tool's definition, by tool name.
        can_be_sent: Whether a tool's schema can be sent to a model at all, by tool name.
        most: How many tools the provider takes in one request; `None` for any number.
        alike: For tools that say the same as others, the name that stands for all of them; such tools
            are shown one at a time.
        catalog: What is searched; `None` searches nothing.
        query: What to search for; empty if the turn was ranked before, or nothing is ranked.
        limit: How many hits are looked at; `None` for all.
    """

    names: Sequence[str] = ()
    kept: Mapping[str, Reason] = field(default_factory=dict)
    pinned: Sequence[str] = ()
    used: frozenset[str] = frozenset()
    shown: Sequence[str] = ()
    recorded: Mapping[str, Reason] = field(default_factory=dict)
    matched: Sequence[str] | None = None
    previous: Sequence[str] = ()
    turn: int = 1
    max_additions: int | None = None
    min_share: float = 0.0
    token_budget: int | None = None
    tokens: Callable[[str], int] = lambda name: 0
    can_be_sent: Callable[[str], bool] = lambda name: True
    most: int | None = None
    alike: Mapping[str, str] = field(default_factory=dict)
    catalog: CatalogView | None = None
    query: Query = field(default_factory=Query)
    limit: int | None = None


@dataclass(frozen=True)
class Selection:
    """What one model call is shown, and why.

    Attributes:
        names: The tools shown, in the order they are sent; a provider's nameless tool by its type, in
            angle brackets.
        reasons: For each of them, why.
        matched: Those that match the request, or stand in for want of a match: what a later turn
            without a match falls back on.
        hidden: How many tools were withheld.
        near_misses: The best-scoring tools that were not shown, best first, at most five.
        exposure: How they are shown; see `ToolSelectionMiddleware`. "all" where nothing is hidden.
        changed: Whether the tools array differs from that of the call before, so that nothing of the
            prompt is cached; `None` if there was no call before.
        why: What changed it; empty if nothing did.
        revealed: What this call adds to the conversation without a change of the tools array.
        cut: Tools that rank, but do not fit the token budget, best first.
        alike: Tools that rank, but say the same as one that is shown: that one, for each.
        degraded: What failed and was worked around; empty if all went well.
        evicted: Pins that were dropped by this call because there were more than allowed.
    """

    names: tuple[str, ...]
    reasons: Mapping[str, Reason]
    matched: tuple[str, ...] = ()
    hidden: int = 0
    near_misses: tuple[Hit, ...] = ()
    exposure: str = ""
    changed: bool | None = None
    why: str = ""
    revealed: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    alike: Mapping[str, str] = field(default_factory=dict)
    degraded: str = ""
    evicted: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the selection as JSON values, for events, traces and logs."""
        said = {name: value for name, value in vars(self).items() if name not in _UNSAID}
        return {
            "shown": {name: self.reasons[name].to_dict() for name in self.names},
            **said,
            "near_misses": {hit.name: round(float(hit.score), 4) for hit in self.near_misses},
            "revealed": list(self.revealed),
            "cut": list(self.cut),
            "alike": dict(self.alike),
            "evicted": list(self.evicted),
        }

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td><code>{escape(name)}</code></td><td>{escape(str(self.reasons[name]))}</td></tr>"
            for name in self.names
        )
        misses = ", ".join(f"{escape(hit.name)} ({hit.score:.3g})" for hit in self.near_misses)
        note = f"{self.hidden} hidden" + (f"; nearest: {misses}" if misses else "")
        note += f"; degraded: {escape(self.degraded)}" if self.degraded else ""
        return f"<table><tr><th>tool</th><th>shown because</th></tr>{rows}</table><p>{note}</p>"


@dataclass(frozen=True)
class SelectionPolicy:
    """The settings that decide what is shown. Validated by the middleware that takes them.

    Attributes:
        top_k: How many tools are shown by rank, beside the kept ones.
        min_score: Hits below it do not count; `None` counts all.
        on_no_match: What to show by rank when nothing matches: what the turn before showed
            ("previous"), or the first `top_k` by registration ("fill").
    """

    top_k: int = 15
    min_score: float | None = None
    on_no_match: OnNoMatch = "previous"

    def select(self, plan: Plan, hits: Sequence[Hit] = ()) -> Selection:
        """Choose the tools for one model call.

        Args:
            plan: What is there and what must stay.
            hits: What ranking found, best first; not looked at when the turn was ranked before.
        """
        present = frozenset(plan.names)
        sent = plan.can_be_sent
        pinned = {name: Reason("pinned") for name in plan.pinned if name in present and sent(name)}
        used = {name: Reason("used") for name in plan.names if name in plan.used and sent(name)}
        kept = {**pinned, **{name: reason for name, reason in plan.kept.items() if sent(name)}}
        floor = float("-inf") if self.min_score is None else self.min_score
        hits = [hit for hit in hits if hit.score >= floor and hit.name in present]
        # What has been shown stays, whatever brought it: the list must not shrink in between.
        shown = {name: _recorded(plan, name) for name in plan.shown if name in present and sent(name)}
        admission = _Admission(plan, [*shown, *used, *kept])
        by_rank = self._by_rank(plan, hits, admission)
        reasons = _bounded(plan, {**used, **shown, **by_rank, **kept}, {*used, *kept})
        if not reasons:
            # Without a search tool, a model that is shown nothing can do nothing.
            fitting = _Admission(plan, ()).take(plan.names, max(1, self.top_k))
            reasons = by_rank = dict.fromkeys(fitting or plan.names[:1], Reason("fill"))
        names = _ordered(plan, reasons)
        return Selection(
            names=names,
            reasons={name: _dated(plan, name, reason) for name, reason in reasons.items()},
            matched=tuple(by_rank | dict.fromkeys(hit.name for hit in hits if hit.name in reasons)),
            hidden=len(plan.names) - len(names),
            near_misses=tuple(hit for hit in hits if hit.name not in reasons)[:NEAR_MISSES],
            cut=tuple(admission.cut),
            alike=admission.alike,
        )

    def _by_rank(self, plan: Plan, hits: Sequence[Hit], admission: _Admission) -> dict[str, Reason]:
        present = frozenset(plan.names)
        most = self.top_k if plan.max_additions is None else plan.max_additions
        if plan.matched is not None:
            return {name: _recorded(plan, name) for name in plan.matched if name in present}
        if hits:
            best = hits[0].score
            floor = plan.min_share * best if plan.min_share and best > 0 else float("-inf")
            ranked = {hit.name: Reason("rank", rank, hit.score) for rank, hit in enumerate(hits, 1)}
            good = [hit.name for hit in hits if hit.score >= floor]
            return {name: ranked[name] for name in admission.take(good, most)}
        if self.on_no_match == "fill":
            return dict.fromkeys(admission.take(plan.names, most), Reason("fill"))
        return {name: Reason("previous") for name in plan.previous if name in present}


_ROOM = 0.75
"""Share of the most tools that is left when some have to go: their leaving makes the prompt cold."""


def _bounded(plan: Plan, reasons: dict[str, Reason], stays: Collection[str]) -> dict[str, Reason]:
    """Return as many of the tools as the provider takes. The oldest go first that nobody pinned or used."""
    if plan.most is None or len(reasons) <= plan.most:
        return reasons
    most = max(len(stays), int(_ROOM * plan.most))
    by_age = sorted(reasons, key=lambda name: (name in stays, reasons[name].turn or plan.turn))
    gone = {*by_age[: len(reasons) - min(most, plan.most)]}
    return {name: reason for name, reason in reasons.items() if name not in gone}


def _recorded(plan: Plan, name: str) -> Reason:
    return plan.recorded.get(name, Reason("turn"))


def _dated(plan: Plan, name: str, reason: Reason) -> Reason:
    """Return a reason with the turn in which the tool came for it."""
    if reason.turn is not None or reason.kind == "turn":
        return reason
    before = plan.recorded.get(name)
    if before is not None and before.kind == reason.kind and reason.kind not in _OF_ONE_RANKING:
        return before
    return Reason(reason.kind, reason.rank, reason.score, plan.turn)


class _Admission:
    """Takes tools in, in the order they come, beside those that are `kept` anyway."""

    def __init__(self, plan: Plan, kept: Iterable[str]) -> None:
        self.cut: list[str] = []
        self.alike: dict[str, str] = {}
        self._plan = plan
        self._kept = dict.fromkeys(kept)
        self._stands_for = {plan.alike.get(name, name): name for name in self._kept}

    def take(self, names: Iterable[str], most: int) -> list[str]:
        """Return up to `most` of the names, and note what was left out."""
        taken: list[str] = []
        left = self._plan.token_budget
        if left is not None:
            left -= sum(map(self._plan.tokens, self._kept))
        for name in names:
            if len(taken) >= most:
                break
            group = self._plan.alike.get(name, name)
            if name in self._kept or not self._plan.can_be_sent(name):
                continue
            if group in self._stands_for:
                self.alike[name] = self._stands_for[group]
                continue
            if left is not None:
                if (tokens := self._plan.tokens(name)) > left:
                    self.cut.append(name)
                    continue
                left -= tokens
            self._stands_for[group] = name
            taken.append(name)
        return taken


def _ordered(plan: Plan, shown: Mapping[str, Reason]) -> tuple[str, ...]:
    """Order the tools so that what is shown already keeps its place, and additions come last.

    Registration order first, then pins in the order they came. Within one user turn the list of the
    call before is the beginning of the next one, because most providers cache by prefix. Deferred tools go
    ahead of all: a provider puts its cache mark on the last tool, and rejects it on a deferred one.
    """
    pins_last = [name for name in plan.pinned if name in shown and shown[name].kind == "pinned"]
    by_registration = [name for name in plan.names if name in shown and name not in pins_last]
    names = dict.fromkeys([*(name for name in plan.shown if name in shown), *by_registration, *pins_last])
    return tuple(sorted(names, key=lambda name: shown[name].kind != "deferred"))
