"""`tool-selection lint`: what is wrong with a catalogue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Annotated

import typer
from typer import Option

from langchain_tool_selection import evals
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
    with _shared.errors_in_a_line("lint"):
        toolset = evals.read_tools(_shared.given(tools, tools_option), unique=False)
        with _shared.progress("searching each tool by its own words", len(toolset.documents)) as step:
            findings = evals.lint(toolset, ignore=ignore or (), progress=step)
    found = Counter(finding.severity for finding in findings)
    counts = {severity: found[severity] for severity in ("error", "warning")}
    rows = [finding.to_dict() for finding in findings]
    total = f"{len(toolset.documents):,} tools: {counts['error']} errors, {counts['warning']} warnings"
    values = {"tools": len(toolset.documents), "counts": counts, "findings": rows}
    _shared.tell(as_json, values, [*_by_check(findings, len(findings) if everything else _SHOWN), total])
    if strict and findings:
        raise typer.Exit(1)


def _by_check(findings: Sequence[evals.Finding], limit: int) -> Iterator[str]:
    for (check, severity), group in groupby(findings, key=lambda finding: (finding.check, finding.severity)):
        told = [(f"{', '.join(of.tools)}: {of.message}", f"{of.advice}.") for of in group]
        yield f"{check} ({severity}): {len(told)}"
        yield from _shared.first_of(told, limit, "--all shows them")
