"""`tool-selection generate-cases`: labelled requests that a model proposes, for people to review."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from langchain_tool_selection.cli import _shared

if TYPE_CHECKING:
    from langchain_tool_selection.evals.cases import Case


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
    from langchain_tool_selection.evals.catalogs import read_tools
    from langchain_tool_selection.evals.generate import generate_cases as propose

    cases: list[Case] = []
    with _shared.errors_in_a_line("generate-cases"):
        if out and out.exists():
            msg = f"{out}: the file exists, and what people reviewed is not replaced; name another one"
            raise ValueError(msg)
        toolset = read_tools(_shared.given(tools, tools_option))
        chat_model = _shared.chat_model_of(model)
        with _shared.progress("asking the model", len(toolset.documents)) as step:
            proposals = propose(toolset, chat_model, per_tool=per_tool, progress=step)
            for case in _until_it_fails(proposals):
                cases.append(case)
                if out:  # as they come, because each has been paid for
                    with out.open("a", encoding="utf-8", newline="\n") as file:
                        file.write(dump_cases([case]))
    named = {name for case in cases for name in case.relevant}
    left_out = [document.name for document in toolset.documents if document.name not in named]
    if as_json:
        rows = [case.to_dict() for case in cases]
        typer.echo(json.dumps({"tools": len(toolset.documents), "cases": rows, "left_out": left_out}))
    elif not out:
        typer.echo(dump_cases(cases).encode("utf-8"), nl=False)  # whatever a console has, a file is UTF-8
    where = f" in {out}" if out else ""
    made = f"{len(cases)} generated cases{where}, for {len(named)} of {len(toolset.documents)} tools"
    typer.echo(f"{made}; review them before you rely on them", err=True)


def _until_it_fails(proposals: Iterator[Case]) -> Iterator[Case]:
    made = 0
    try:
        for made, case in enumerate(proposals, 1):  # noqa: B007
            yield case
    except Exception as error:
        raise _shared.failed(f"the model, after {made} cases,", error) from error
