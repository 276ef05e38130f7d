"""Measuring a catalogue: whether requests find the tools that they take, and which tools are in the way.

`evaluate` searches each case as the middleware would and looks at where its tools come out. Recall@k is the
share of a case's relevant tools among the first k, averaged over cases, so that each case counts the same;
completeness@k the share of cases with all of theirs there; MRR the mean of 1 / rank of the first one
(Voorhees, TREC-8, 1999). A relevant tool counts as found if it or one of its alternatives is.

A request has one winner, so a tool that gains it takes it from another: a report names, for each tool, who
takes its requests, and `Report.compare` names the cases that a change stole or won, and by which tool.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from pathlib import Path
from statistics import fmean
from time import perf_counter_ns
from typing import Any

from langchain_tool_selection._ground.settings import check_count
from langchain_tool_selection._ranking.index import Catalog, ToolIndex
from langchain_tool_selection._tools.documents import ToolHints
from langchain_tool_selection.evals._explain import Explainer, Explanation, WordShare
from langchain_tool_selection.evals._files import FileError, kind_of
from langchain_tool_selection.evals.cases import GENERATED, Case, read_cases
from langchain_tool_selection.evals.catalogs import ToolSet, read_tools

_CURVE = (1, 2, 3, 5, 8, 10, 15, 20, 25, 30)
"""Where recall is drawn, beside what is asked for."""

_KEPT = 10
"""Names of a ranking that a report keeps at least: what stood first is what a comparison needs."""

_DEEP = 500
"""Ranks are looked for so far: among 10,000 tools a whole ranking takes ten times as long, and a rank of 700
says no more than that the tool is not found."""

_BEATEN_BY = 5
"""Tools named that stood above one that was missed."""

_EXPLAINED = 200
"""Misses that are explained: more than people read."""

_NAMED = 5
"""Words or tools in a line of text."""

_HEAVIEST = 10

_VERSION = 1
"""Of the form that `to_dict` writes."""


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
class Measures:
    """What is measured at one k, each from 0 to 1.

    Attributes:
        k: How many tools are looked at.
        recall: The share of a case's tools among them.
        complete: The share of cases with all of theirs among them.
        payload_saved: The share of the characters of all definitions that the first k do without.
    """

    k: int
    recall: float
    complete: float
    payload_saved: float


@dataclass(frozen=True)
class DomainRecall:
    """Recall at the largest k over the relevant tools of one domain, and how many of them there were."""

    domain: str
    recall: float
    labels: int


@dataclass(frozen=True, repr=False)
class Report:
    """What `evaluate` found.

    Attributes:
        tools: How many there are.
        cases: How many there are.
        generated: How many of these a model proposed and nobody has marked as seen.
        ranker: What ranked.
        history: Whether earlier messages were part of a query.
        ks: The ks that were asked for, in increasing order.
        top_k: How many tools the middleware would show.
        curve: Measures at every k that was asked for, at `top_k`, and at some more for a drawing.
        mrr: Mean reciprocal rank.
        micros: Median and 99th percentile of a search, in microseconds, as "p50" and "p99".
        tokens: About how many tokens all definitions take.
        results: One for each case, in their order.
        misses: At the largest k, in the order of the cases.
        confusions: The most costly first: by `missed`, then by `times`.
        domains: By name; empty if no tool has a domain.
        domain_confusions: How often a tool of the second domain stood first where one of the first was
            wanted. The two are the same where it was the right tool, or one of its own domain.
        heaviest: The ten tools of the most tokens, with these.
    """

    tools: int
    cases: int
    generated: int
    ranker: str
    history: bool
    ks: tuple[int, ...]
    top_k: int
    curve: tuple[Measures, ...]
    mrr: float
    micros: Mapping[str, float]
    tokens: int
    results: tuple[CaseResult, ...]
    misses: tuple[Miss, ...]
    confusions: tuple[Confusion, ...]
    domains: tuple[DomainRecall, ...]
    domain_confusions: Mapping[tuple[str, str], int]
    heaviest: tuple[tuple[str, int], ...]

    @property
    def k(self) -> int:
        """The largest k that was asked for: at it, misses are counted."""
        return self.ks[-1]

    @property
    def recall(self) -> dict[int, float]:
        """Recall at each k that was asked for."""
        return {k: self.at(k).recall for k in self.ks}

    @property
    def complete(self) -> dict[int, float]:
        """Completeness at each k that was asked for."""
        return {k: self.at(k).complete for k in self.ks}

    @property
    def payload_saved(self) -> dict[int, float]:
        """The share of all definitions that is not sent, at each k that was asked for."""
        return {k: self.at(k).payload_saved for k in self.ks}

    @property
    def thieves(self) -> dict[str, dict[str, int]]:
        """For each tool that was outranked, the tools that took its requests, with how many."""
        thieves: dict[str, dict[str, int]] = {}
        for confusion in self.confusions:
            thieves.setdefault(confusion.tool, {})[confusion.thief] = confusion.times
        return thieves

    def at(self, k: int) -> Measures:
        """Return the measures at one k.

        Raises:
            KeyError: it was not measured.
        """
        for measures in self.curve:
            if measures.k == k:
                return measures
        raise KeyError(k)

    def compare(self, old: Report, *, k: int | None = None) -> Comparison:
        """Return what changed since an older report, case by case.

        Args:
            old: The report of the catalogue, ranker or cases before.
            k: A case is lost if a tool of it is no longer among so many. By default the largest k of both.

        Raises:
            ValueError: the reports have no k in common, and none is given.
        """
        if k is None:
            common = set(self.ks) & set(old.ks)
            if not common:
                msg = f"the reports have no k in common: {list(self.ks)} and {list(old.ks)}; pass k="
                raise ValueError(msg)
            k = max(common)
        check_count("k", k, at_least=1)
        before = {result.key: result for result in old.results}
        after = {result.key: result for result in self.results}
        shared = [key for key in after if key in before]
        changes = [change for key in shared for change in _changes(before[key], after[key], k)]
        return Comparison(
            k=k,
            cases=len(shared),
            new=len(after) - len(shared),
            gone=len(before) - len(shared),
            recall_before=_mean(fmean(before[key].found(k)) for key in shared),
            recall_after=_mean(fmean(after[key].found(k)) for key in shared),
            stolen=tuple(change for won, change in changes if not won),
            won=tuple(change for won, change in changes if won),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values; shares rounded to four decimals."""
        shown = self.at(self.top_k)
        return {
            "tools": self.tools,
            "cases": self.cases,
            "recall": {str(k): round(value, 4) for k, value in self.recall.items()},
            "complete": {str(k): round(value, 4) for k, value in self.complete.items()},
            "mrr": round(self.mrr, 4),
            "payload_saved": {str(k): round(value, 4) for k, value in self.payload_saved.items()},
            "micros": dict(self.micros),
            "misses": [_values(miss) for miss in self.misses],
            "version": _VERSION,
            "generated": self.generated,
            "ranker": self.ranker,
            "history": self.history,
            "tokens": self.tokens,
            "shown": {"top_k": self.top_k, **_rounded(shown)},
            "curve": {str(measures.k): _rounded(measures) for measures in self.curve},
            "domains": {
                row.domain: {"recall": round(row.recall, 4), "labels": row.labels} for row in self.domains
            },
            "domain_confusions": [[*pair, times] for pair, times in self.domain_confusions.items()],
            "confusions": [_values(confusion) for confusion in self.confusions],
            "heaviest": dict(self.heaviest),
            "results": [_values(result) for result in self.results],
        }

    @classmethod
    def from_dict(cls, values: Any) -> Report:
        """Return the report of what `to_dict` returned; other keys are ignored.

        Raises:
            FileError: it is something else, or of another version.
        """
        if not isinstance(values, dict) or "results" not in values:
            what = "it has no 'results'" if isinstance(values, dict) else f"it is {kind_of(values)}"
            msg = f"no report of `tool-selection eval --json`: {what}"
            raise FileError(msg)
        if values.get("version") != _VERSION:
            msg = f"a report of version {values.get('version')!r}, and this reads {_VERSION}; make it anew"
            raise FileError(msg)
        try:
            return cls(**_report_fields(values))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            msg = f"no report of `tool-selection eval --json`: {type(error).__name__}: {error}"
            raise FileError(" ".join(msg.split())) from error

    def __repr__(self) -> str:
        """In a line: what an assertion that failed shows."""
        recalls = ", ".join(f"recall@{k}={value:.3f}" for k, value in self.recall.items())
        return f"Report({self.tools} tools, {self.cases} cases, {recalls}, {len(self.misses)} misses)"

    def __str__(self) -> str:
        """For people: the measures, and the first of the misses."""
        lines = [self.summary, ""]
        lines += ["    ".join(f"{cell:>9}" for cell in row) for row in self.table]
        if self.misses:
            lines += ["", f"{len(self.misses)} misses at {self.k}:"]
            lines += [f"  {_line(miss)}" for miss in self.misses[:_BEATEN_BY]]
        return "\n".join(lines)

    @property
    def summary(self) -> str:
        """For people: what was measured, in one line."""
        made = f" ({self.generated} of them generated, not reviewed)" if self.generated else ""
        said = "with" if self.history else "without"
        return (
            f"{self.tools:,} tools of {self.tokens:,} tokens, {self.cases:,} cases{made} {said} history, "
            f"ranked by {self.ranker}"
        )

    @property
    def table(self) -> list[tuple[str, ...]]:
        """For people: headings, then a row of text for each k that was asked for, and for `top_k`."""
        rows: list[tuple[str, ...]] = [("k", "recall", "complete", "saved")]
        for k in sorted({*self.ks, self.top_k}):
            at = self.at(k)
            rows.append((str(k), f"{at.recall:.1%}", f"{at.complete:.1%}", f"{at.payload_saved:.1%}"))
        return rows

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>" for cells in self.table
        )
        missed = "".join(f"<li>{escape(_line(miss))}</li>" for miss in self.misses[:_KEPT])
        misses = f"<p>{len(self.misses)} misses at {self.k}</p><ul>{missed}</ul>" if missed else ""
        return f"<p>{escape(self.summary)}</p><table>{rows}</table>{misses}"


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
        values = {**vars(self), "stolen": [*map(_values, self.stolen)], "won": [*map(_values, self.won)]}
        return {key: round(value, 4) if isinstance(value, float) else value for key, value in values.items()}

    def __str__(self) -> str:
        """For people: recall before and after, and a line for each case that was stolen or won."""
        recall = f"recall@{self.k} {self.recall_before:.1%} -> {self.recall_after:.1%}"
        new = f", {self.new} new" if self.new else ""
        gone = f", {self.gone} gone" if self.gone else ""
        stolen = [_said("stolen", change) for change in self.stolen]
        won = [_said("won", change) for change in self.won]
        return "\n".join([f"{recall} over {self.cases} shared cases{new}{gone}", *stolen, *won])


def evaluate(
    tools: str | Path | Iterable[Any] | ToolSet,
    cases: str | Path | Iterable[Case | Mapping[str, Any]],
    ranker: Any = None,
    ks: Sequence[int] = (1, 5, 10),
    *,
    history: bool = True,
    top_k: int = 15,
    hints: Mapping[str, ToolHints] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Return how well requests find the tools that they take.

    Args:
        tools: The catalogue: as `read_tools` takes it.
        cases: A file of cases, or cases.
        ranker: As the middleware takes it; `None` ranks by words.
        ks: Where to measure.
        history: Whether earlier messages of a case are part of its query, as the middleware has it.
        top_k: How many tools the middleware would show.
        hints: What tools are searched by beside their own text, by tool name.
        progress: Is called after each case with the number of cases that are done.

    Raises:
        FileError: tools or cases cannot be read, or a label is no tool of the catalogue.
        TypeError, ValueError: a setting is wrong.
        Exception: whatever the ranker raises.
    """
    for k in (*ks, top_k):
        check_count("k", k, at_least=1)
    if not ks:
        msg = "ks is empty; measure at one k or more"
        raise ValueError(msg)
    toolset = tools if isinstance(tools, ToolSet) else read_tools(tools)
    catalog = ToolIndex(ranker, hints=hints).sync(toolset.documents)
    labelled = read_cases(cases, catalog.names)
    depth = max(*ks, *_CURVE, top_k)
    search = _Search(catalog, depth)
    runs = []
    for number, case in enumerate(labelled, 1):
        runs.append(search(number, case, history))
        if progress:
            progress(number)
    return _report(toolset, search, runs, tuple(sorted(set(ks))), top_k)


# -- searching -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Run:
    """One case, searched."""

    number: int
    case: Case
    names: tuple[str, ...]  # the ranking, at least as far as the tools that are wanted, or 500
    ranks: dict[str, int | None]
    history: bool

    def rivals(self, tool: str) -> list[str]:
        """Return the irrelevant tools above a relevant one, best first."""
        rank = self.ranks[tool]
        above = self.names if rank is None else self.names[: rank - 1]
        fine = frozenset[str]().union(*(self.case.wanted(name) for name in self.case.relevant))
        return [name for name in above if name not in fine]


class _Search:
    """Searches cases and keeps the time that each search took."""

    def __init__(self, catalog: Catalog, depth: int) -> None:
        self.catalog, self.depth = catalog, depth
        self.nanos: list[int] = []

    def __call__(self, number: int, case: Case, history: bool) -> _Run:
        query = case.search_query(history=history)
        if not self.nanos:  # indexes are made when they are first needed, which is no request's doing
            self.catalog.search(query, limit=self.depth)
        started = perf_counter_ns()
        hits = self.catalog.search(query, limit=self.depth)
        self.nanos.append(perf_counter_ns() - started)
        names = tuple(hit.name for hit in hits)
        ranks = self._ranks(case, names)
        if None in ranks.values() and len(hits) >= self.depth:
            names = tuple(hit.name for hit in self.catalog.search(query, limit=max(_DEEP, self.depth)))
            ranks = self._ranks(case, names)
        return _Run(number, case, names, ranks, history)

    @staticmethod
    def _ranks(case: Case, names: Sequence[str]) -> dict[str, int | None]:
        places = {name: rank for rank, name in enumerate(names, 1)}
        found = {name: [places[n] for n in case.wanted(name) if n in places] for name in case.relevant}
        return {name: min(ranks, default=None) for name, ranks in found.items()}


# -- measuring -----------------------------------------------------------------------------------------


def _report(tools: ToolSet, search: _Search, runs: Sequence[_Run], ks: tuple[int, ...], top_k: int) -> Report:
    results = [
        CaseResult(run.case.key, run.case.query, run.ranks, run.names[: max(_KEPT, ks[-1])]) for run in runs
    ]
    missed = [
        (run, tool)
        for run, result in zip(runs, results, strict=True)
        for tool, found in zip(run.ranks, result.found(ks[-1]), strict=True)
        if not found
    ]
    domains = {document.name: document.domain for document in search.catalog.documents}
    ranked = sorted(search.nanos)
    weights = sorted(tools.characters.items(), key=lambda item: -item[1])[:_HEAVIEST]
    return Report(
        tools=len(tools.documents),
        cases=len(runs),
        generated=sum(run.case.source.startswith(GENERATED) for run in runs),
        ranker=type(search.catalog.ranker).__name__,
        history=runs[0].history,
        ks=ks,
        top_k=top_k,
        curve=_curve(tools, runs, results, sorted({*ks, *_CURVE, top_k})),
        mrr=_mean(result.reciprocal_rank for result in results),
        micros={f"p{p}": round(percentile(ranked, p / 100) / 1e3, 1) for p in (50, 99)},
        tokens=tools.tokens(),
        results=tuple(results),
        misses=_misses(search.catalog, missed),
        confusions=_confusions(runs, ks[-1]),
        domains=_domains(runs, results, domains, ks[-1]),
        domain_confusions=_domain_confusions(runs, domains),
        heaviest=tuple((name, tools.tokens([name])) for name, _ in weights),
    )


def _curve(
    tools: ToolSet, runs: Sequence[_Run], results: Sequence[CaseResult], ks: Sequence[int]
) -> tuple[Measures, ...]:
    whole = sum(tools.characters.values())
    sent = [list(accumulate((tools.characters[n] for n in run.names[: ks[-1]]), initial=0)) for run in runs]
    return tuple(
        Measures(
            k=k,
            recall=_mean(fmean(result.found(k)) for result in results),
            complete=_mean(all(result.found(k)) for result in results),
            payload_saved=1 - _mean(sums[min(k, len(sums) - 1)] for sums in sent) / whole,
        )
        for k in ks
    )


def _misses(catalog: Catalog, missed: Sequence[tuple[_Run, str]]) -> tuple[Miss, ...]:
    explainer = Explainer(catalog)
    misses = list[Miss]()
    for run, tool in missed:
        rivals = run.rivals(tool)
        why = _why(explainer, run, tool, rivals) if len(misses) < _EXPLAINED else ""
        beaten_by = tuple(rivals[:_BEATEN_BY])
        misses.append(Miss(run.number, run.case.query, tool, run.ranks[tool], beaten_by, why))
    return tuple(misses)


def _why(explainer: Explainer, run: _Run, tool: str, rivals: Sequence[str]) -> str:
    query = run.case.search_query(history=run.history)
    found = explainer(query, [tool, *rivals[:1]], ranks={})
    return why(found[tool], found[rivals[0]] if rivals else None)


def why(wanted: Explanation, rival: Explanation | None) -> str:
    """Return in a line what a tool that was missed lacks, and by which words another one is ahead."""
    has = {word.word for word in wanted.words}
    ahead = [word.word for word in rival.words if word.word not in has] if rival else []
    parts = [f"matches {listed(word.word for word in wanted.words)}" if wanted.words else "matches no word"]
    if rival and ahead:
        parts.append(f"{rival.tool} has {listed(ahead)} too" if has else f"{rival.tool} has {listed(ahead)}")
    elif rival and rival.words:
        mine = {word.word: word for word in wanted.words}
        most = max(rival.words, key=lambda word: word.score - mine[word.word].score)
        less = mine[most.word]
        parts.append(
            f"{most.word} counts {most.score:.1f} in {rival.tool} ({_fields(most)}) "
            f"and {less.score:.1f} here ({_fields(less)})"
        )
    if wanted.unknown:
        parts.append(f"no tool has {listed(wanted.unknown)}")
    return "; ".join(parts)


def _fields(word: WordShare) -> str:
    return listed(name.replace("_", " ") for name in sorted(word.fields, key=word.fields.__getitem__)[::-1])


def _confusions(runs: Sequence[_Run], k: int) -> tuple[Confusion, ...]:
    times, missed = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for run in runs:
        for tool, rank in run.ranks.items():
            if rivals := run.rivals(tool)[:1]:
                times[tool, rivals[0]] += 1
                missed[tool, rivals[0]] += rank is None or rank > k
    found = [Confusion(*pair, count, missed[pair]) for pair, count in times.items()]
    return tuple(sorted(found, key=lambda confusion: (-confusion.missed, -confusion.times)))


def _domains(
    runs: Sequence[_Run], results: Sequence[CaseResult], domains: Mapping[str, str], k: int
) -> tuple[DomainRecall, ...]:
    by_domain: defaultdict[str, list[bool]] = defaultdict(list)
    for run, result in zip(runs, results, strict=True):
        for tool, found in zip(run.ranks, result.found(k), strict=True):
            by_domain[domains[tool]].append(found)
    if not any(by_domain):
        return ()
    return tuple(DomainRecall(name, fmean(found), len(found)) for name, found in sorted(by_domain.items()))


def _domain_confusions(runs: Sequence[_Run], domains: Mapping[str, str]) -> dict[tuple[str, str], int]:
    pairs = Counter[tuple[str, str]]()
    for run in runs:
        for tool in run.ranks:
            first = (run.rivals(tool) or [tool])[0]
            pairs[domains[tool], domains[first]] += 1
    return dict(sorted(pairs.items()))


def _changes(before: CaseResult, after: CaseResult, k: int) -> Iterator[tuple[bool, Change]]:
    found = zip(before.ranks, before.found(k), strict=True)
    for tool, was in found:
        rank = after.ranks.get(tool)
        now = rank is not None and rank <= k
        if was == now:
            continue
        passed, ahead = (before, after) if was else (after, before)
        above = set(passed.first[: (passed.ranks[tool] or k) - 1])
        fine = set(before.ranks)
        by = next((n for n in ahead.first[:k] if n not in above and n not in fine), "")
        yield now, Change(after.query, tool, before.ranks[tool], rank, by)


def _mean(values: Iterable[float]) -> float:
    counted = list(values)
    return fmean(counted) if counted else 0.0


def percentile(ranked: Sequence[float], share: float) -> float:
    """Return the value that a share of the values stands before, of one or more in increasing order."""
    return ranked[min(len(ranked) - 1, int(share * len(ranked)))]


# -- as text and as JSON values ------------------------------------------------------------------------


def _line(miss: Miss) -> str:
    query = " ".join(miss.query.split())
    said = query if len(query) <= 60 else f"{query[:59]}…"
    rank = f"rank {miss.rank}" if miss.rank else "not found"
    return f"{miss.tool}: {rank}, behind {listed(miss.beaten_by[:3]) or 'none'} <- {said}"


def _said(what: str, change: Change) -> str:
    query = " ".join(change.query.split())[:60]
    ranks = " -> ".join("none" if rank is None else str(rank) for rank in (change.before, change.after))
    who = {"stolen": f", by {change.by}", "won": f", from {change.by}"}[what] if change.by else ""
    return f"{what}: {change.tool} ({ranks}){who} <- {query}"


def listed(words: Iterable[str]) -> str:
    """Return words for a line of text: the first few, each once."""
    distinct = list(dict.fromkeys(words))
    shown = ", ".join(distinct[:_NAMED])
    return f"{shown}, ..." if len(distinct) > _NAMED else shown


def _values(record: Any) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in vars(record).items()}


def _rounded(measures: Measures) -> dict[str, float]:
    return {key: round(value, 4) for key, value in vars(measures).items() if key != "k"}


def _report_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    results = [
        CaseResult(row["key"], row["query"], dict(row["ranks"]), tuple(row["first"]))
        for row in values["results"]
    ]
    misses = [Miss(**{**row, "beaten_by": tuple(row["beaten_by"])}) for row in values["misses"]]
    return {
        **{key: values[key] for key in ("tools", "cases", "generated", "ranker", "history", "tokens", "mrr")},
        "ks": tuple(sorted(map(int, values["recall"]))),
        "top_k": values["shown"]["top_k"],
        "curve": tuple(Measures(int(k), **row) for k, row in values["curve"].items()),
        "micros": dict(values.get("micros") or {"p50": 0.0, "p99": 0.0}),  # a stored baseline has none
        "results": tuple(results),
        "misses": tuple(misses),
        "confusions": tuple(Confusion(**row) for row in values["confusions"]),
        "domains": tuple(DomainRecall(name, **row) for name, row in values["domains"].items()),
        "domain_confusions": {(of, by): times for of, by, times in values["domain_confusions"]},
        "heaviest": tuple(values["heaviest"].items()),
    }
