"""`tool-selection eval`: how well labelled requests find their tools."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from typer import Option

from langchain_tool_selection import evals
from langchain_tool_selection.cli import _shared
from langchain_tool_selection.cli._shared import Gate
from langchain_tool_selection.evals._results import Miss

_MISSES = 10
_THIEVES = 5
_NO_PNG = "no PNG plots without matplotlib: pip install 'langchain-tool-selection[eval]'"
_GATE = re.compile(r"(0?\.\d+|[01](?:\.\d*)?)@([1-9]\d*)")


def evaluate(
    *,
    tools: _shared.RequiredTools,
    cases: _shared.CasesOption,
    ranker: _shared.RankerOption = "words",
    k: Annotated[str, Option(help="How many tools are looked at; several, with commas.")] = "1,5,10",
    top_k: _shared.TopK = 15,
    no_history: Annotated[bool, Option("--no-history", help="Search the newest message alone.")] = False,
    min_recall: Annotated[list[str] | None, Option(help="A gate, such as 0.9@10; may be repeated.")] = None,
    baseline: Annotated[Path | None, Option(help="What --json printed: name cases stolen or won.")] = None,
    max_stolen: Annotated[int | None, Option(help="A gate: at most so many cases stolen.", min=0)] = None,
    html: Annotated[Path | None, Option(help="Write a report of one HTML file here.")] = None,
    plots: Annotated[Path | None, Option(help="Write SVG plots here, and PNG with matplotlib.")] = None,
    as_json: _shared.AsJson = False,
) -> None:
    """Measure how well labelled requests find their tools, and what is in the way.

    Exits with 1 if a gate fails.
    """
    from langchain_tool_selection._ranking.choice import as_ranker
    from langchain_tool_selection.cost import estimate_cost
    from langchain_tool_selection.evals._report import load_report

    with _shared.errors_in_a_line("eval"):
        limits = [_limit(text) for text in min_recall or ()]
        if max_stolen is not None and baseline is None:
            raise ValueError("--max-stolen needs a --baseline")
        ks = [*_ks(k), *(at for _, at in limits)]
        old = load_report(baseline) if baseline else None
        toolset = evals.read_tools(tools)
        listed = evals.load_cases(cases, toolset.names)
        by = as_ranker(_shared.ranker_of(ranker))
        with _shared.progress("searching", len(listed)) as step, _shared.failing("the ranker"):
            settings: dict[str, Any] = {"history": not no_history, "top_k": top_k, "progress": step}
            report = evals.evaluate(toolset, listed, by, ks, **settings)
        comparison = report.compare(old) if old else None
        estimate = estimate_cost(toolset.definitions, top_k=top_k) if html or plots else None
        if html:
            evals.save_html(report, html, estimate=estimate, comparison=comparison)
        written = evals.save_plots(report, plots, estimate=estimate) if plots else ()
        if plots and all(path.suffix != ".png" for path in written):
            typer.echo(_NO_PNG, err=True)
    gates = [Gate.at_least(f"recall@{at}", report.recall[at], least) for least, at in limits]
    if comparison and max_stolen is not None:
        stolen = len(comparison.stolen)
        gates.append(Gate(f"stolen cases <= {max_stolen}", stolen, stolen <= max_stolen))
    values = {**report.to_dict(), "gates": [gate._asdict() for gate in gates]}
    shown = [*_shown(report)]
    if comparison:
        values["comparison"] = comparison.to_dict()
        shown += ["\nsince the baseline:", "  " + str(comparison).replace("\n", "\n  ")]
    _shared.tell(as_json, values, shown)
    _shared.exit_unless_passed(gates)


def _limit(text: str) -> tuple[float, int]:
    found = _GATE.fullmatch(text)
    if not found or float(found[1]) > 1:
        raise ValueError(f"--min-recall takes a share from 0 to 1 and a k, such as 0.9@10; got {text!r}")
    return float(found[1]), int(found[2])


def _ks(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) for part in parts):
        raise ValueError(f"--k takes numbers from 1 on, separated by commas, such as 1,5,10; got {text!r}")
    return [int(part) for part in parts]


# -- for people ----------------------------------------------------------------------------------------


def _shown(report: evals.Report) -> Iterator[RenderableType]:
    headings, *rows = report.table
    yield report.summary
    yield _shared.new_table(
        headings, rows, styles=["bold" if row[0] == str(report.top_k) else None for row in rows]
    )
    p50, p99 = report.micros["p50"], report.micros["p99"]
    yield f"MRR {report.mrr:.3f}; {p50:,.0f} µs a search, {p99:,.0f} µs at p99"
    yield f"\nmisses at {report.k}: {len(report.misses)}" if report.misses else f"no misses at {report.k}"
    yield from _shared.first_of([*map(_told, report.misses)], _MISSES, "--json and --html have all")
    if report.confusions:
        yield "\nwho takes whose requests:"
    for taken in report.confusions[:_THIEVES]:
        missed = f", {taken.missed} of them missed" if taken.missed else ""
        yield f"  {taken.thief} stands above {taken.tool} in {taken.times}{missed}"


def _told(miss: Miss) -> list[str]:
    above = [f"above it: {', '.join(miss.beaten_by[:3])}"] if miss.beaten_by else []
    return [f"{miss.tool}, {miss.place}: {_shared.request_line(miss.query)}", *above, miss.why]
