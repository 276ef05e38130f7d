"""`tool-selection generate-cases`: labelled requests that a model proposes, for people to review."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from langchain_tool_selection import evals
from langchain_tool_selection.cli import _shared


def generate_cases(
    *,
    tools: _shared.ToolsArgument = None,
    tools_option: _shared.ToolsOption = None,
    model: _shared.ModelOption,
    per_tool: Annotated[int, Option(help="Requests of each kind for a tool.", min=1)] = 1,
    out: Annotated[Path | None, Option(help="Write here; a file that exists is not replaced.")] = None,
    as_json: _shared.AsJson = False,
) -> None:
    """Let a model propose requests for each tool, direct and indirect ones, to begin a set of cases with.

    They are marked as generated: read them, correct them, and delete the mark ("source") from those that are
    right. A model that writes requests from descriptions uses the descriptions' words more than people do, so
    recall on such cases is too good.
    """
    from langchain_tool_selection.evals.cases import dump_cases

    cases: list[evals.Case] = []
    with _shared.errors_in_a_line("generate-cases"):
        if out and out.exists():
            raise ValueError(
                f"{out}: the file exists, and what people reviewed is not replaced; name another one"
            )
        toolset = evals.read_tools(_shared.given(tools, tools_option))
        chat_model = _shared.chat_model_of(model)
        with _shared.progress("asking the model", len(toolset.names)) as step:
            proposals = evals.generate_cases(toolset, chat_model, per_tool=per_tool, progress=step)
            for case in _until_it_fails(proposals):
                cases.append(case)
                if out:  # as they come, because each has been paid for
                    with out.open("a", encoding="utf-8", newline="\n") as file:
                        file.write(dump_cases([case]))
    named = {name for case in cases for name in case.relevant}
    left_out = [name for name in toolset.names if name not in named]
    rows = [case.to_dict() for case in cases]
    _shared.tell(as_json, {"tools": len(toolset.names), "cases": rows, "left_out": left_out}, ())
    if not (as_json or out):
        typer.echo(dump_cases(cases).encode("utf-8"), nl=False)  # whatever a console has, a file is UTF-8
    where = f" in {out}" if out else ""
    made = f"{len(cases)} generated cases{where}, for {len(named)} of {len(toolset.names)} tools"
    typer.echo(f"{made}; review them before you rely on them", err=True)


def _until_it_fails(proposals: Iterator[evals.Case]) -> Iterator[evals.Case]:
    with _shared.failing("the model"):  # what is done with a case fails elsewhere
        yield from proposals
