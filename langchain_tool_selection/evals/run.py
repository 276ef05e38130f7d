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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain, repeat
from statistics import fmean
from time import perf_counter_ns
from typing import Any

from langchain_tool_selection._ground.settings import check_count
from langchain_tool_selection._ranking.index import CatalogView, ToolIndex
from langchain_tool_selection._ranking.protocol import Query
from langchain_tool_selection._tools.documents import ToolHints
from langchain_tool_selection.evals import _results
from langchain_tool_selection.evals._explain import Explainer, why
from langchain_tool_selection.evals._report import Report
from langchain_tool_selection.evals._results import CaseResult, Confusion, DomainRecall, Miss, Shares, mean
from langchain_tool_selection.evals.cases import GENERATED, Case, Cases, read_cases
from langchain_tool_selection.evals.catalogs import Progress, Tools, ToolSet, read_tools

__all__ = ["CaseResult", "Report", "evaluate"]

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

_HEAVIEST = 10


def evaluate(
    tools: Tools,
    cases: Cases,
    ranker: Any = None,
    ks: Sequence[int] = (1, 5, 10),
    *,
    history: bool = True,
    top_k: int = 15,
    hints: Mapping[str, ToolHints] | None = None,
    progress: Progress | None = None,
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
        raise ValueError("ks is empty; measure at one k or more")
    toolset = read_tools(tools)
    catalog = ToolIndex(ranker, hints=hints).sync(toolset.documents)
    labelled = read_cases(cases, catalog.names)
    depth = max(*ks, *_CURVE, top_k)
    # Indexes are made when they are first needed, which is no request's doing.
    catalog.search(labelled[0].search_query(history=history), limit=depth)
    runs = []
    for number, case in enumerate(labelled, 1):
        runs.append(_search(catalog, number, case, case.search_query(history=history), depth))
        if progress:
            progress(number)
    return _report(toolset, catalog, runs, ks=sorted({*ks}), top_k=top_k, history=history)


# -- searching -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Run:
    """One case, searched."""

    number: int
    case: Case
    query: Query
    names: tuple[str, ...]  # the ranking, at least as far as the tools that are wanted, or 500
    nanos: int  # what the search took

    @cached_property
    def ranks(self) -> dict[str, int | None]:
        """The rank of each relevant tool or of its best alternative."""
        places = {name: rank for rank, name in enumerate(self.names, 1)}
        wanted = {name: self.case.wanted(name) & places.keys() for name in self.case.relevant}
        return {name: min((places[one] for one in found), default=None) for name, found in wanted.items()}


@dataclass(frozen=True)
class _Label:
    """One relevant tool of a case: its rank, and the irrelevant tools above it, the best first."""

    run: _Run
    tool: str
    rank: int | None
    rivals: list[str]
    found: bool  # among the first k


def _labels(runs: Iterable[_Run], k: int) -> Iterator[_Label]:
    for run in runs:
        for tool, rank in run.ranks.items():
            above = run.names if rank is None else run.names[: rank - 1]
            rivals = [name for name in above if name not in run.case.serving]
            yield _Label(run, tool, rank, rivals, found=rank is not None and rank <= k)


def _search(catalog: CatalogView, number: int, case: Case, query: Query, depth: int) -> _Run:
    started = perf_counter_ns()
    names = _names(catalog, query, depth)
    run = _Run(number, case, query, names, perf_counter_ns() - started)
    if None in run.ranks.values() and len(names) >= depth:
        return replace(run, names=_names(catalog, query, max(_DEEP, depth)))
    return run


def _names(catalog: CatalogView, query: Query, depth: int) -> tuple[str, ...]:
    return tuple(hit.name for hit in catalog.search(query, limit=depth))


# -- measuring -----------------------------------------------------------------------------------------


def _report(
    tools: ToolSet,
    catalog: CatalogView,
    runs: Sequence[_Run],
    *,
    ks: Sequence[int],
    top_k: int,
    history: bool,
) -> Report:
    kept = max(_KEPT, ks[-1])
    results = [CaseResult(run.case.key, run.case.query, run.ranks, run.names[:kept]) for run in runs]
    curve = _curve(tools, runs, results, sorted({*ks, *_CURVE, top_k}))
    labels = [*_labels(runs, ks[-1])]
    domains = {document.name: document.domain for document in catalog.documents}
    nanos = _results.percentiles(run.nanos for run in runs)
    weights = sorted(tools.characters.items(), key=lambda item: -item[1])[:_HEAVIEST]
    return Report(
        tools=len(tools.documents),
        cases=len(runs),
        generated=sum(run.case.source.startswith(GENERATED) for run in runs),
        ranker=type(catalog.ranker).__name__,
        history=history,
        recall={k: curve[k].recall for k in ks},
        complete={k: curve[k].complete for k in ks},
        payload_saved={k: curve[k].payload_saved for k in ks},
        shown=_results.Shown(**vars(curve[top_k]), top_k=top_k),
        curve=curve,
        mrr=mean(result.reciprocal_rank for result in results),
        micros={p: round(nanos / 1e3, 1) for p, nanos in nanos.items()},
        tokens=tools.tokens(),
        results=tuple(results),
        misses=_misses(catalog, [label for label in labels if not label.found]),
        confusions=_confusions(labels),
        domains=_domains(labels, domains),
        domain_confusions=_domain_confusions(labels, domains),
        heaviest=tuple((name, tools.tokens([name])) for name, _ in weights),
    )


def _curve(
    tools: ToolSet, runs: Sequence[_Run], results: Sequence[CaseResult], ks: Sequence[int]
) -> dict[int, Shares]:
    whole = sum(tools.characters.values())
    sent = [list(accumulate((tools.characters[n] for n in run.names[: ks[-1]]), initial=0)) for run in runs]
    return {
        k: Shares(
            recall=mean(fmean(result.found(k)) for result in results),
            complete=mean(all(result.found(k)) for result in results),
            payload_saved=1 - mean(sums[min(k, len(sums) - 1)] for sums in sent) / whole,
        )
        for k in ks
    }


def _misses(catalog: CatalogView, missed: Sequence[_Label]) -> tuple[Miss, ...]:
    explainer = Explainer(catalog)
    pairs = ((label.run.query, [label.tool, *label.rivals[:1]]) for label in missed[:_EXPLAINED])
    reasons = (why(*explainer(query, names, hits=()).values()) for query, names in pairs)
    return tuple(
        Miss(of.run.number, of.run.case.query, of.tool, of.rank, tuple(of.rivals[:_BEATEN_BY]), reason)
        for of, reason in zip(missed, chain(reasons, repeat("")), strict=False)
    )


def _confusions(labels: Iterable[_Label]) -> tuple[Confusion, ...]:
    times, missed = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for label in labels:
        for rival in label.rivals[:1]:
            times[label.tool, rival] += 1
            missed[label.tool, rival] += not label.found
    found = (Confusion(*pair, count, missed[pair]) for pair, count in times.items())
    return tuple(sorted(found, key=lambda confusion: (-confusion.missed, -confusion.times)))


def _domains(labels: Iterable[_Label], domains: Mapping[str, str]) -> tuple[DomainRecall, ...]:
    by_domain: defaultdict[str, list[bool]] = defaultdict(list)
    for label in labels:
        by_domain[domains[label.tool]].append(label.found)
    rows = (DomainRecall(name, fmean(found), len(found)) for name, found in sorted(by_domain.items()))
    return tuple(rows) if any(by_domain) else ()


def _domain_confusions(labels: Iterable[_Label], domains: Mapping[str, str]) -> dict[tuple[str, str], int]:
    pairs = Counter((domains[label.tool], domains[[*label.rivals, label.tool][0]]) for label in labels)
    return dict(sorted(pairs.items()))
