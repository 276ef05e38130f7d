"""`tool-selection generate-cases`: labelled requests that a model proposes, for people to review."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from langchain_tool_selection.cli._shared import (
    AsJson,
    ModelOption,
    ToolsArgument,
    ToolsOption,
    chat_model_of,
    errors_in_a_line,
    failed,
    given,
    progress,
    quietly,
)

if TYPE_CHECKING:
    from langchain_tool_selection.evals.cases import Case


def generate_cases(
    *,
    tools: ToolsArgument = None,
    tools_option: ToolsOption = None,
    model: ModelOption,
    per_tool: Annotated[
        int, typer.Option(help="Direct and indirect requests for each tool, each.", min=1)
    ] = 1,
    out: Annotated[Path | None, typer.Option(help="Write here; a file that exists is not replaced.")] = None,
    as_json: AsJson = False,
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
    with errors_in_a_line("generate-cases"):
        if out and out.exists():
            msg = f"{out}: the file exists, and what people reviewed is not replaced; name another one"
            raise ValueError(msg)
        toolset = quietly(read_tools, given(tools, tools_option))
        chat_model = chat_model_of(model)
        with progress("asking the model", len(toolset.documents)) as step:
            proposals = propose(toolset, chat_model, per_tool=per_tool, progress=step)
            while True:
                try:
                    case = next(proposals, None)
                except Exception as error:
                    raise failed(f"the model, after {len(cases)} cases,", error) from error
                if case is None:
                    break
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
    typer.echo(
        f"{len(cases)} generated cases{where}, for {len(named)} of {len(toolset.documents)} tools; "
        "review them before you rely on them",
        err=True,
    )
