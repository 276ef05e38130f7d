"""`tool-selection lint`: what is wrong with a catalogue."""

from __future__ import annotations

import json
from collections import Counter
from itertools import groupby
from typing import Annotated

import typer

from langchain_tool_selection._ground.untrusted import visible
from langchain_tool_selection.cli._shared import (
    AsJson,
    ToolsArgument,
    ToolsOption,
    errors_in_a_line,
    given,
    progress,
    quietly,
)

_SHOWN = 10
"""Findings of one check that people are shown, unless they ask for all."""


def lint(
    *,
    tools: ToolsArgument = None,
    tools_option: ToolsOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if anything is found.")] = False,
    ignore: Annotated[
        list[str] | None, typer.Option(help="A check to leave out, such as confusable; may be repeated.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show all findings of each check.")] = False,
    as_json: AsJson = False,
) -> None:
    """Find tools that cannot be found, pairs that will be confused, and definitions that break or weigh.

    Each finding comes with what to do about it.
    """
    from langchain_tool_selection.evals._lint import lint as find
    from langchain_tool_selection.evals.catalogs import read_tools

    with errors_in_a_line("lint"):
        toolset = quietly(read_tools, given(tools, tools_option), unique=False)
        with progress("searching each tool by its own words", len(toolset.documents)) as step:
            findings = find(toolset, ignore=ignore or (), progress=step)
    counts = Counter(finding.severity for finding in findings)
    if as_json:
        rows = [finding.to_dict() for finding in findings]
        totals = {"error": counts["error"], "warning": counts["warning"]}
        typer.echo(json.dumps({"tools": len(toolset.documents), "counts": totals, "findings": rows}))
    else:
        for check, group in groupby(findings, key=lambda finding: finding.check):
            of_check = list(group)
            typer.echo(f"{check} ({of_check[0].severity}): {len(of_check)}")
            for finding in of_check if everything else of_check[:_SHOWN]:
                typer.echo(visible(f"  {', '.join(finding.tools)}: {finding.message}"))
                typer.echo(visible(f"    {finding.advice}."))
            if not everything and len(of_check) > _SHOWN:
                typer.echo(f"  and {len(of_check) - _SHOWN} more; --all shows them")
        typer.echo(
            f"{len(toolset.documents):,} tools: {counts['error']} errors, {counts['warning']} warnings"
        )
    if strict and findings:
        raise typer.Exit(1)
