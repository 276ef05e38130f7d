"""What a report is made of: records of one case, one tool, one k, and of what changed since another report.

Also how records become JSON values, and how they read on a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from statistics import fmean
from typing import Any

_NAMED = 5
"""Words or tools in a line of text."""


@dataclass(frozen=True)
class Miss:
    """A relevant tool that is not among the first k, nor one of its alternatives.

    Attributes:
        case: The number of the case, from 1.
        query: Its newest message.
        tool: The tool.
        rank: Its rank, or that of its best alternative; `None` if neither is a hit among the first 500.
        beaten_by: The irrelevant tools above it that rank best, up to five, best first.
        why: By which words, in a line; empty beyond the first 200 misses.
    """

    case: int
    query: str
    tool: str
    rank: int | None
    beaten_by: tuple[str, ...]
    why: str = ""

    @property
    def place(self) -> str:
        """For people: its rank."""
        return f"rank {self.rank}" if self.rank else "not found"


@dataclass(frozen=True)
class Confusion:
    """One tool that ranks above another in requests for that other.

    Attributes:
        tool: The tool that was wanted.
        thief: The irrelevant tool that ranked best above it.
        times: In how many cases.
        missed: In how many of these the wanted tool was not among the first k.
    """

    tool: str
    thief: str
    times: int
    missed: int


@dataclass(frozen=True)
class CaseResult:
    """Where the tools of one case came out.

    Attributes:
        key: Identifies the case in another report.
        query: Its newest message.
        ranks: The rank of each relevant tool or of its best alternative; `None` if neither is a hit among the
            first 500.
        first: The tools that came first, as many as the largest k, ten at least.
    """

    key: str
    query: str
    ranks: Mapping[str, int | None]
    first: tuple[str, ...]

    def found(self, k: int) -> list[bool]:
        """Return for each relevant tool whether it is among the first k."""
        return [rank is not None and rank <= k for rank in self.ranks.values()]

    @property
    def reciprocal_rank(self) -> float:
        """1 / rank of the first relevant tool; 0 if there is none."""
        return max((1 / rank for rank in self.ranks.values() if rank), default=0.0)


@dataclass(frozen=True)
class Shares:
    """What is measured among the first k tools, each from 0 to 1.

    Attributes:
        recall: The share of a case's tools among them.
        complete: The share of cases with all of theirs among them.
        payload_saved: The share of the characters of all definitions that the first k do without.
    """

    recall: float
    complete: float
    payload_saved: float


@dataclass(frozen=True)
class Shown(Shares):
    """What is measured among the tools that the middleware would show, and how many these are."""

    top_k: int


@dataclass(frozen=True)
class DomainRecall:
    """Recall at the largest k over the relevant tools of one domain, and how many of them there were."""

    domain: str
    recall: float
    labels: int


@dataclass(frozen=True)
class Change:
    """A relevant tool of a case that was found and is not any more, or the other way round.

    Attributes:
        query: The newest message of the case.
        tool: The tool.
        before: Its rank in the old report; `None` if it was not found.
        after: Its rank in the new one.
        by: Of a stolen case, the best tool above it that was not above it before; of a won case, the best one
            that was above it and is not any more. Empty if no tool moved past it.
    """

    query: str
    tool: str
    before: int | None
    after: int | None
    by: str

    def told(self, what: str, who: str) -> str:
        """Return the change as a line that begins with what happened."""
        ranks = f"{self.before or 'none'} -> {self.after or 'none'}"
        by = f", {who} {self.by}" if self.by else ""
        return f"{what}: {self.tool} ({ranks}){by} <- {' '.join(self.query.split())[:60]}"


@dataclass(frozen=True)
class Comparison:
    """What changed between two reports, over the cases that both have.

    Attributes:
        k: A tool counts as found among so many.
        cases: How many both have.
        new: Cases that only the new report has.
        gone: Cases that only the old one has.
        recall_before: Recall@k of the old one over the shared cases.
        recall_after: That of the new one.
        stolen: What was found before and is not any more.
        won: What is found now and was not before.
    """

    k: int
    cases: int
    new: int
    gone: int
    recall_before: float
    recall_after: float
    stolen: tuple[Change, ...]
    won: tuple[Change, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        return {key: json_values(value) for key, value in vars(self).items()}

    def __str__(self) -> str:
        """For people: recall before and after, and a line for each case that was stolen or won."""
        recall = f"recall@{self.k} {self.recall_before:.1%} -> {self.recall_after:.1%}"
        new = f", {self.new} new" if self.new else ""
        gone = f", {self.gone} gone" if self.gone else ""
        stolen = [change.told("stolen", "by") for change in self.stolen]
        won = [change.told("won", "from") for change in self.won]
        return "\n".join([f"{recall} over {self.cases} shared cases{new}{gone}", *stolen, *won])


def compare(old: Sequence[CaseResult], new: Sequence[CaseResult], k: int) -> Comparison:
    """Return what changed from the results of one report to those of another.

    Args:
        old: The results before.
        new: The results after.
        k: A case is lost if a tool of it is no longer among so many.
    """
    before = {result.key: result for result in old}
    after = {result.key: result for result in new}
    shared = [(before[key], after[key]) for key in after if key in before]
    changes = [change for pair in shared for change in _changes(*pair, k)]
    return Comparison(
        k=k,
        cases=len(shared),
        new=len(after) - len(shared),
        gone=len(before) - len(shared),
        recall_before=mean(fmean(result.found(k)) for result, _ in shared),
        recall_after=mean(fmean(result.found(k)) for _, result in shared),
        stolen=tuple(change for won, change in changes if not won),
        won=tuple(change for won, change in changes if won),
    )


def _changes(before: CaseResult, after: CaseResult, k: int) -> Iterator[tuple[bool, Change]]:
    for tool, was in zip(before.ranks, before.found(k), strict=True):
        rank = after.ranks.get(tool)
        now = rank is not None and rank <= k
        if was == now:
            continue
        passed, ahead = (before, after) if was else (after, before)
        # What was above it before, and what is right, did not move past it.
        others = {*passed.first[: (passed.ranks[tool] or k) - 1], *before.ranks}
        by = next((name for name in ahead.first[:k] if name not in others), "")
        yield now, Change(after.query, tool, before.ranks[tool], rank, by)


def mean(values: Iterable[float]) -> float:
    """Return the mean of the values; 0 if there are none."""
    counted = list(values)
    return fmean(counted) if counted else 0.0


def listed(words: Iterable[str]) -> str:
    """Return words for a line of text: the first few, each once."""
    distinct = list(dict.fromkeys(words))
    shown = ", ".join(distinct[:_NAMED])
    return f"{shown}, ..." if len(distinct) > _NAMED else shown


def in_a_line(text: str, limit: int = 60) -> str:
    """Return a text as one line of at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def json_values(value: Any, digits: int = 4) -> Any:
    """Return records, mappings and sequences as JSON values, with numbers rounded."""
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): json_values(item, digits) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(item, digits) for item in value]
    return round(value, digits) if isinstance(value, float) else value


def percentiles(values: Iterable[float]) -> dict[str, float]:
    """Return the values that half and 99 % of the values stand before, of one or more, as "p50" and "p99"."""
    ranked = sorted(values)
    return {f"p{p}": ranked[min(len(ranked) - 1, int(p / 100 * len(ranked)))] for p in (50, 99)}
