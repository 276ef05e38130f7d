"""`tool-selection search`: what a request finds, and why."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from langchain_tool_selection._ground.untrusted import visible
from langchain_tool_selection.cli._shared import (
    AsJson,
    RankerOption,
    ToolsArgument,
    ToolsOption,
    errors_in_a_line,
    failed,
    given,
    quietly,
    ranker_of,
)

if TYPE_CHECKING:
    from langchain_tool_selection.evals.catalogs import ToolSet

_NEAR = 3
"""So many of those that are just not sent are shown too."""


def search(
    *,
    tools: ToolsArgument = None,
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="The request.", show_default=False)
    ] = None,
    tools_option: ToolsOption = None,
    tool: Annotated[str | None, typer.Option(help="Explain this tool alone, wherever it ranks.")] = None,
    top_k: Annotated[int, typer.Option(help="How many tools are sent.", min=1)] = 15,
    ranker: RankerOption = "words",
    as_json: AsJson = False,
) -> None:
    """Show which tools a request finds, by which words, and what would be sent.

    The percentages are the shares of a word's weight that come from each field of the tool.
    """
    from langchain_tool_selection.evals.catalogs import read_tools

    with errors_in_a_line("search"):
        if tools_option is not None and query is None:
            tools, query = None, tools
        if not query or not query.strip():
            msg = "give a request behind the tools, in quotation marks"
            raise ValueError(msg)
        toolset = quietly(read_tools, given(tools, tools_option))
        found = _found(toolset, query, tool, top_k, ranker)
    if as_json:
        typer.echo(json.dumps(found))
    elif tool:
        _print_one(found)
    else:
        _print_hits(Console(), found)


def _found(tools: ToolSet, query: str, tool: str | None, top_k: int, ranker: str) -> dict[str, Any]:
    from langchain_tool_selection._ranking.index import ToolIndex
    from langchain_tool_selection._ranking.protocol import Query
    from langchain_tool_selection.evals._explain import Explainer

    catalog = ToolIndex(ranker_of(ranker)).sync(tools.documents)
    if tool is not None and tool not in catalog.names:
        msg = f"--tool: there is no tool {tool!r} among the {len(catalog.names)}"
        raise ValueError(msg)
    wanted = Query.of(query)
    try:
        hits = catalog.search(wanted)
    except Exception as error:
        raise failed("the ranker", error) from error
    ranks = {hit.name: (rank, hit.score) for rank, hit in enumerate(hits, 1)}
    names = [tool] if tool else [hit.name for hit in hits[: top_k + _NEAR]]
    explained = Explainer(catalog)(wanted, names, ranks)
    sent = [hit.name for hit in hits[:top_k]]
    return {
        "query": query,
        "tools": len(tools.documents),
        "tokens": tools.tokens(),
        "top_k": top_k,
        "matches": len(hits),
        "sent": {"tools": len(sent), "tokens": tools.tokens(sent)},
        "hits": [
            {**explained[name].to_dict(), "tokens": tools.tokens([name]), "sent": name in sent}
            for name in names
        ],
    }


def _print_hits(console: Console, found: dict[str, Any]) -> None:
    table = Table()
    for heading in ("#", "tool", "score", "tokens", "words"):
        table.add_column(
            heading, justify="left" if heading in ("tool", "words") else "right", overflow="fold"
        )
    hits = found["hits"]
    for hit in hits:
        last_sent = hit["rank"] == found["sent"]["tools"] and hit is not hits[-1]
        cells = (str(hit["rank"]), visible(hit["tool"]), f"{hit['score']:.2f}", f"{hit['tokens']:,}")
        style = None if hit["sent"] else "dim"
        table.add_row(*cells, "\n".join(_words(hit)), style=style, end_section=last_sent)
    if hits:
        console.print(table, markup=False, highlight=False)
    sent, saved = found["sent"], 1 - found["sent"]["tokens"] / max(1, found["tokens"])
    typer.echo(
        f"sent: {sent['tools']} of {found['tools']:,} tools, {sent['tokens']:,} of {found['tokens']:,} "
        f"tokens, {saved:.0%} saved; {found['matches']:,} tools match"
    )
    unknown = hits[0]["unknown"] if hits else []
    if unknown:
        typer.echo(f"in no tool: {visible(', '.join(unknown))}")


def _words(hit: dict[str, Any]) -> list[str]:
    from langchain_tool_selection.evals._explain import OTHER

    lines = [f"{word['score']:.2f} {visible(_described(word))}" for word in hit["words"]]
    return [*lines, f"{hit['other']:.2f} {OTHER}"] if hit["other"] else lines


def _described(word: dict[str, Any]) -> str:
    from langchain_tool_selection.evals._explain import WordShare, described

    return described(WordShare(**word))


def _print_one(found: dict[str, Any]) -> None:
    from langchain_tool_selection.evals._explain import Explanation, WordShare

    (hit,) = found["hits"]
    fields = {key: hit[key] for key in ("tool", "rank", "score", "other", "lacking", "unknown")}
    text = str(Explanation(**fields, words=tuple(WordShare(**word) for word in hit["words"])))
    typer.echo("\n".join(visible(line) for line in text.split("\n")))
