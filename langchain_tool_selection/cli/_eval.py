"""`tool-selection eval`: how well labelled requests find their tools."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from typer import Option

from langchain_tool_selection._ground.untrusted import visible
from langchain_tool_selection.cli import _shared
from langchain_tool_selection.cli._shared import Gate

if TYPE_CHECKING:
    from langchain_tool_selection.evals._report import Report
    from langchain_tool_selection.evals._results import Comparison, Miss
    from langchain_tool_selection.evals.catalogs import ToolSet

_MISSES = 10
_THIEVES = 5
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
    from langchain_tool_selection.evals.cases import load_cases
    from langchain_tool_selection.evals.catalogs import read_tools

    with _shared.errors_in_a_line("eval"):
        limits = [_limit(text) for text in min_recall or ()]
        if max_stolen is not None and baseline is None:
            msg = "--max-stolen needs a --baseline"
            raise ValueError(msg)
        asked = _ks(k)
        old = _report(baseline) if baseline else None
        toolset = read_tools(tools)
        listed = load_cases(cases, [document.name for document in toolset.documents])
        settings = {"ks": [*asked, *(at for _, at in limits)], "history": not no_history, "top_k": top_k}
        report = _measured(toolset, listed, _shared.ranker_of(ranker), settings)
        comparison = report.compare(old) if old else None
        gates = _gates(report, limits, comparison, max_stolen)
        _write(report, toolset, comparison, html, plots)
    if as_json:
        values = {**report.to_dict(), "gates": [gate._asdict() for gate in gates]}
        typer.echo(json.dumps({**values, "comparison": comparison.to_dict()} if comparison else values))
    else:
        _print_report(report)
        if comparison:
            typer.echo("\nsince the baseline:")
            for line in str(comparison).split("\n"):
                typer.echo(visible(f"  {line}"))
    _shared.exit_unless_passed(gates)


def _limit(text: str) -> tuple[float, int]:
    found = _GATE.fullmatch(text)
    if not found or float(found[1]) > 1:
        msg = f"--min-recall takes a share from 0 to 1 and a k, such as 0.9@10; got {text!r}"
        raise ValueError(msg)
    return float(found[1]), int(found[2])


def _ks(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) for part in parts):
        msg = f"--k takes numbers from 1 on, separated by commas, such as 1,5,10; got {text!r}"
        raise ValueError(msg)
    return [int(part) for part in parts]


def _report(path: Path) -> Report:
    from langchain_tool_selection.evals._files import FileError, parse_json, read_text
    from langchain_tool_selection.evals._report import Report

    values = parse_json(str(path), read_text(str(path)))
    try:
        return Report.from_dict(values)
    except FileError as error:
        raise FileError(str(path), str(error)) from error


def _measured(tools: ToolSet, cases: Sequence[Any], ranker: Any, settings: dict[str, Any]) -> Report:
    from langchain_tool_selection._ranking.choice import as_ranker
    from langchain_tool_selection.evals.run import evaluate as measure

    checked = as_ranker(ranker)
    with _shared.progress("searching", len(cases)) as step:
        try:
            return measure(tools, cases, checked, **settings, progress=step)
        except Exception as error:
            raise _shared.failed("the ranker", error) from error


def _gates(
    report: Report, limits: Sequence[tuple[float, int]], comparison: Comparison | None, max_stolen: int | None
) -> list[Gate]:
    gates = [
        Gate(f"recall@{k} >= {least:g}", report.recall[k], report.recall[k] >= least) for least, k in limits
    ]
    if comparison and max_stolen is not None:
        stolen = len(comparison.stolen)
        gates.append(Gate(f"stolen cases <= {max_stolen}", stolen, stolen <= max_stolen))
    return gates


def _write(
    report: Report, tools: ToolSet, comparison: Comparison | None, html: Path | None, plots: Path | None
) -> None:
    if not (html or plots):
        return
    from langchain_tool_selection.cost import estimate_cost
    from langchain_tool_selection.evals.report import save_html, save_plots

    estimate = estimate_cost(tools.definitions, top_k=report.top_k)
    if html:
        save_html(report, html, estimate=estimate, comparison=comparison)
    if plots:
        written = save_plots(report, plots, estimate=estimate)
        if not any(path.suffix == ".png" for path in written):
            install = "pip install 'langchain-tool-selection[eval]'"
            typer.echo(f"no PNG plots without matplotlib: {install}", err=True)


# -- for people ----------------------------------------------------------------------------------------


def _print_report(report: Report) -> None:
    typer.echo(report.summary)
    headings, *rows = report.table
    table = _shared.new_table(*headings)
    for row in rows:
        table.add_row(*row, style="bold" if row[0] == str(report.top_k) else None)
    Console().print(table)
    p50, p99 = report.micros["p50"], report.micros["p99"]
    typer.echo(f"MRR {report.mrr:.3f}; {p50:,.0f} µs a search, {p99:,.0f} µs at p99")
    typer.echo(
        f"\nmisses at {report.k}: {len(report.misses)}" if report.misses else f"no misses at {report.k}"
    )
    _shared.print_first([_told(miss) for miss in report.misses], _MISSES, "--json and --html have all")
    if report.confusions:
        typer.echo("\nwho takes whose requests:")
    for taken in report.confusions[:_THIEVES]:
        missed = f", {taken.missed} of them missed" if taken.missed else ""
        typer.echo(visible(f"  {taken.thief} stands above {taken.tool} in {taken.times}{missed}"))


def _told(miss: Miss) -> list[str]:
    rank = f"rank {miss.rank}" if miss.rank else "not found"
    above = [f"above it: {', '.join(miss.beaten_by[:3])}"] if miss.beaten_by else []
    return [f"{miss.tool}, {rank}: {_shared.request_line(miss.query)}", *above, miss.why]
