"""`tool-selection run-agent`: what a model makes of labelled requests under each way of showing tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from langchain_tool_selection._ground.untrusted import visible
from langchain_tool_selection.cli._shared import (
    TOOLS_HELP,
    AsJson,
    Gate,
    ModelOption,
    RankerOption,
    chat_model_of,
    errors_in_a_line,
    exit_unless_passed,
    progress,
    quietly,
    ranker_of,
    request_line,
)

if TYPE_CHECKING:
    from langchain_tool_selection.evals.agent import AgentReport, AgentRun

_SHOWN = 10
"""Conversations under one exposure that went wrong and that people are shown."""


def run_agent(
    *,
    tools: Annotated[str, typer.Option(help=TOOLS_HELP)],
    cases: Annotated[Path, typer.Option(help="A file of labelled requests, as for eval.")],
    model: ModelOption,
    exposure: Annotated[
        str,
        typer.Option(
            help="Ways of showing tools, separated by commas: none (all tools, no selection), auto, "
            "per_turn, grow, append, proxy."
        ),
    ] = "none,auto",
    limit: Annotated[int | None, typer.Option(help="Play so many cases, the first ones.", min=1)] = None,
    top_k: Annotated[int, typer.Option(help="How many tools are shown by relevance.", min=1)] = 15,
    ranker: RankerOption = "words",
    system_prompt: Annotated[
        str | None,
        typer.Option(help="What the agent is told instead of not to ask back.", show_default=False),
    ] = None,
    max_calls: Annotated[
        int, typer.Option(help="Model calls of one conversation; more end it with an error.", min=1)
    ] = 12,
    concurrency: Annotated[int, typer.Option(help="Cases that are played at the same time.", min=1)] = 1,
    min_accuracy: Annotated[
        float | None,
        typer.Option(
            help="A gate, such as 0.9: the share of cases whose tools are all called, under each exposure "
            "but none.",
            min=0,
            max=1,
        ),
    ] = None,
    execute: Annotated[
        bool,
        typer.Option(
            "--execute",
            help="REALLY RUN the tools that the model calls, of a module or of MCP servers, with all that "
            "they do. Without it none is run.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Play labelled requests with a model, and compare what it calls and costs under each exposure.

    Each case is one conversation for each exposure, and a provider charges for all of them: begin with a
    --limit. No tool is run: one that is called answers that it succeeded. An error ends its conversation
    and is counted; the others go on. Exits with 1 if the gate fails.
    """
    from langchain_tool_selection.evals.agent import run_agent as play
    from langchain_tool_selection.evals.cases import load_cases
    from langchain_tool_selection.evals.catalogs import read_tools, runnable_tools

    with errors_in_a_line("run-agent"):
        exposures: list[Any] = [*dict.fromkeys(name.strip() for name in exposure.split(","))]
        gated = [name for name in exposures if name != "none"]
        if min_accuracy is not None and not gated:
            msg = "--min-accuracy is a gate for exposures other than none; name one with --exposure"
            raise ValueError(msg)
        source = quietly(runnable_tools, tools) if execute else tools
        toolset = quietly(read_tools, source, unique=True)
        listed = load_cases(cases, [document.name for document in toolset.documents])[:limit]
        settings: dict[str, Any] = {"top_k": top_k, "ranker": ranker_of(ranker), "max_calls": max_calls}
        if system_prompt is not None:
            settings["system_prompt"] = system_prompt
        chat_model = chat_model_of(model)
        with progress("playing", len(listed) * len(exposures)) as step:
            settings |= {"execute": execute, "concurrency": concurrency, "progress": step}
            report = play(source if execute else toolset, listed, chat_model, exposures, **settings)
        if all(run.error for run in report.runs):
            msg = f"all {len(report.runs)} conversations failed, the first with {report.runs[0].error}"
            raise ValueError(msg)
    gates = [_gate(report, name, min_accuracy) for name in gated if min_accuracy is not None]
    if as_json:
        typer.echo(json.dumps({**report.to_dict(), "gates": [gate._asdict() for gate in gates]}))
    else:
        _print_report(Console(), report)
    exit_unless_passed(gates)


def _gate(report: AgentReport, exposure: Any, least: float) -> Gate:
    found = report.measures[exposure].accuracy
    return Gate(f"accuracy under {exposure} >= {least:g}", found, found >= least)


# -- for people ----------------------------------------------------------------------------------------


def _print_report(console: Console, report: AgentReport) -> None:
    typer.echo(report.summary)
    headings, *rows = report.table
    table = Table(*headings)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        table.add_row(*row)
    console.print(table, markup=False, highlight=False)
    for exposure in report.exposures:
        _print_wrong(exposure, [run for run in report.not_right if run.exposure == exposure])


def _print_wrong(exposure: str, runs: Sequence[AgentRun]) -> None:
    from langchain_tool_selection.evals.run import listed

    if not runs:
        return
    typer.echo(f"\nnot right under {exposure}: {len(runs)}")
    for run in runs[:_SHOWN]:
        typer.echo(visible(f"  {', '.join(run.relevant)}: {request_line(run.query)}"))
        typer.echo(visible(f"    called {listed(run.called) or 'nothing'}"))
        if run.error:
            typer.echo(visible(f"    {run.error}"))
    if len(runs) > _SHOWN:
        typer.echo(f"  and {len(runs) - _SHOWN} more; --json has all")
