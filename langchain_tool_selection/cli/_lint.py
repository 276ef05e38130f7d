"""`tool-selection lint`: what is wrong with a catalogue."""

from __future__ import annotations

import json
from collections import Counter
from itertools import groupby
from typing import Annotated

import typer
from typer import Option

from langchain_tool_selection.cli import _shared

_SHOWN = 10
"""Findings of one check that people are shown, unless they ask for all."""


def lint(
    *,
    tools: _shared.ToolsArgument = None,
    tools_option: _shared.ToolsOption = None,
    strict: Annotated[bool, Option("--strict", help="Exit with 1 if anything is found.")] = False,
    ignore: Annotated[list[str] | None, Option(help="A check to leave out; may be repeated.")] = None,
    everything: Annotated[bool, Option("--all", help="Show all findings of each check.")] = False,
    as_json: _shared.AsJson = False,
) -> None:
    """Find tools that cannot be found, pairs that will be confused, and definitions that break or weigh.

    Each finding comes with what to do about it.
    """
    from langchain_tool_selection.evals._lint import lint as find
    from langchain_tool_selection.evals.catalogs import read_tools

    with _shared.errors_in_a_line("lint"):
        toolset = read_tools(_shared.given(tools, tools_option), unique=False)
        with _shared.progress("searching each tool by its own words", len(toolset.documents)) as step:
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
            told = [(f"{', '.join(of.tools)}: {of.message}", f"{of.advice}.") for of in of_check]
            _shared.print_first(told, len(told) if everything else _SHOWN, "--all shows them")
        found = f"{counts['error']} errors, {counts['warning']} warnings"
        typer.echo(f"{len(toolset.documents):,} tools: {found}")
    if strict and findings:
        raise typer.Exit(1)
