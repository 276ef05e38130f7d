"""`tool-selection run-agent`: what a model makes of labelled requests under each way of showing tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from rich.console import RenderableType
from typer import Option

from langchain_tool_selection import evals
from langchain_tool_selection.cli import _shared
from langchain_tool_selection.evals._results import listed

_SHOWN = 10
"""Conversations under one exposure that went wrong and that people are shown."""

_EXPOSURES_HELP = (
    "Ways of showing tools, with commas: none (all tools), auto, per_turn, grow, append, proxy, stubs."
)
_MIN_ACCURACY_HELP = "A gate, such as 0.9: the share of cases whose tools are all called, for all but none."
_EXECUTE_HELP = (
    "REALLY RUN the tools that the model calls, of a module or of MCP servers, with all that they do. "
    "Without it none is run."
)


def run_agent(
    *,
    tools: _shared.RequiredTools,
    cases: _shared.CasesOption,
    model: _shared.ModelOption,
    exposure: Annotated[str, Option(help=_EXPOSURES_HELP)] = "none,auto",
    limit: Annotated[int | None, Option(help="Play so many cases, the first ones.", min=1)] = None,
    top_k: _shared.TopK = 15,
    ranker: _shared.RankerOption = "words",
    system_prompt: Annotated[str | None, Option(help="Instead of telling it not to ask back.")] = None,
    max_calls: Annotated[int, Option(help="Model calls of a case; more are an error.", min=1)] = 12,
    concurrency: Annotated[int, Option(help="Cases that are played at the same time.", min=1)] = 1,
    min_accuracy: Annotated[float | None, Option(help=_MIN_ACCURACY_HELP, min=0, max=1)] = None,
    execute: Annotated[bool, Option("--execute", help=_EXECUTE_HELP)] = False,
    as_json: _shared.AsJson = False,
) -> None:
    """Play labelled requests with a model, and compare what it calls and costs under each exposure.

    Each case is one conversation for each exposure, and a provider charges for all of them: begin with a
    --limit. No tool is run: one that is called answers that it succeeded. An error ends its conversation
    and is counted; the others go on. Exits with 1 if the gate fails.
    """
    from langchain_tool_selection.evals.catalogs import runnable_tools

    with _shared.errors_in_a_line("run-agent"):
        exposures: list[Any] = [*dict.fromkeys(name.strip() for name in exposure.split(","))]
        gated = [name for name in exposures if name != "none"]
        if min_accuracy is not None and not gated:
            raise ValueError(
                "--min-accuracy is a gate for exposures other than none; name one with --exposure"
            )
        source = runnable_tools(tools) if execute else tools
        toolset = evals.read_tools(source, unique=True)
        played = evals.load_cases(cases, toolset.names)[:limit]
        settings: dict[str, Any] = {"top_k": top_k, "ranker": _shared.ranker_of(ranker)}
        settings |= {"max_calls": max_calls, "concurrency": concurrency, "execute": execute}
        if system_prompt is not None:
            settings["system_prompt"] = system_prompt
        chat_model = _shared.chat_model_of(model)
        with _shared.progress("playing", len(played) * len(exposures)) as step:
            settings["progress"] = step
            report = evals.run_agent(
                source if execute else toolset, played, chat_model, exposures, **settings
            )
        if all(run.error for run in report.runs):
            failed = f"all {len(report.runs)} conversations failed"
            raise ValueError(f"{failed}, the first with {report.runs[0].error}")
    gates = []
    if min_accuracy is not None:
        found = {f"accuracy under {name}": report.measures[name].accuracy for name in gated}
        gates = [_shared.Gate.at_least(what, value, min_accuracy) for what, value in found.items()]
    values = {**report.to_dict(), "gates": [gate._asdict() for gate in gates]}
    _shared.tell(as_json, values, _shown(report))
    _shared.exit_unless_passed(gates)


def _shown(report: evals.AgentReport) -> Iterator[RenderableType]:
    headings, *rows = report.table
    yield report.summary
    yield _shared.new_table(headings, rows, left=headings[:1])
    for exposure in report.exposures:
        runs = [run for run in report.not_right if run.exposure == exposure]
        if runs:
            yield f"\nnot right under {exposure}: {len(runs)}"
        yield from _shared.first_of([*map(_told, runs)], _SHOWN, "--json has all")


def _told(run: evals.AgentRun) -> list[str]:
    asked = f"{', '.join(run.relevant)}: {_shared.request_line(run.query)}"
    return [asked, f"called {listed(run.called) or 'nothing'}", *filter(None, [run.error])]
