"""`tool-selection search`: what a request finds, and why."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from typer import Option

from langchain_tool_selection._ground.untrusted import visible
from langchain_tool_selection.cli import _shared

if TYPE_CHECKING:
    from langchain_tool_selection._ranking.index import CatalogView
    from langchain_tool_selection._ranking.protocol import Hit, Query
    from langchain_tool_selection.evals import Explanation

_NEAR = 3
"""So many of those that are just not sent are shown too."""


def search(
    *,
    tools: _shared.ToolsArgument = None,
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="The request.")] = None,
    tools_option: _shared.ToolsOption = None,
    tool: Annotated[str | None, Option(help="Explain this tool alone, wherever it ranks.")] = None,
    top_k: _shared.TopK = 15,
    ranker: _shared.RankerOption = "words",
    as_json: _shared.AsJson = False,
) -> None:
    """Show which tools a request finds, by which words, and what would be sent.

    The percentages are the shares of a word's weight that come from each field of the tool.
    """
    from langchain_tool_selection._ranking.index import ToolIndex
    from langchain_tool_selection._ranking.protocol import Query
    from langchain_tool_selection.evals._explain import Explainer
    from langchain_tool_selection.evals.catalogs import read_tools

    with _shared.errors_in_a_line("search"):
        if tools_option is not None and query is None:
            tools, query = None, tools
        if not query or not query.strip():
            msg = "give a request behind the tools, in quotation marks"
            raise ValueError(msg)
        toolset = read_tools(_shared.given(tools, tools_option))
        catalog = ToolIndex(_shared.ranker_of(ranker)).sync(toolset.documents)
        if tool is not None and tool not in catalog.names:
            msg = f"--tool: there is no tool {tool!r} among the {len(catalog.names)}"
            raise ValueError(msg)
        wanted = Query.of(query)
        hits = _hits(catalog, wanted)
        ranks = {hit.name: (rank, hit.score) for rank, hit in enumerate(hits, 1)}
        names = [tool] if tool else [hit.name for hit in hits[: top_k + _NEAR]]
        explained = [*Explainer(catalog)(wanted, names, ranks).values()]
    sent = [hit.name for hit in hits[:top_k]]
    found = {
        "query": query,
        "tools": len(toolset.documents),
        "tokens": toolset.tokens(),
        "top_k": top_k,
        "matches": len(hits),
        "sent": {"tools": len(sent), "tokens": toolset.tokens(sent)},
    }
    weights = [toolset.tokens([name]) for name in names]
    if as_json:
        rows = [
            {**explanation.to_dict(), "tokens": tokens, "sent": explanation.tool in sent}
            for explanation, tokens in zip(explained, weights, strict=True)
        ]
        typer.echo(json.dumps({**found, "hits": rows}))
    elif tool:
        typer.echo("\n".join(map(visible, str(explained[0]).split("\n"))))
    else:
        _print_hits(explained, weights, found)


def _hits(catalog: CatalogView, query: Query) -> list[Hit]:
    try:
        return catalog.search(query)
    except Exception as error:
        raise _shared.failed("the ranker", error) from error


def _print_hits(hits: Sequence[Explanation], weights: Sequence[int], found: dict[str, Any]) -> None:
    table = _shared.new_table("#", "tool", "score", "tokens", "words", left=("tool", "words"))
    sent = found["sent"]
    for rank, (hit, tokens) in enumerate(zip(hits, weights, strict=True), 1):
        cells = (str(rank), visible(hit.tool), f"{hit.score:.2f}", f"{tokens:,}", "\n".join(_words(hit)))
        last_sent = rank == sent["tools"] < len(hits)
        table.add_row(*cells, style=None if rank <= sent["tools"] else "dim", end_section=last_sent)
    if hits:
        Console().print(table, markup=False, highlight=False)
    saved = 1 - sent["tokens"] / max(1, found["tokens"])
    typer.echo(
        f"sent: {sent['tools']} of {found['tools']:,} tools, {sent['tokens']:,} of {found['tokens']:,} "
        f"tokens, {saved:.0%} saved; {found['matches']:,} tools match"
    )
    if hits and hits[0].unknown:
        typer.echo(f"in no tool: {visible(', '.join(hits[0].unknown))}")


def _words(hit: Explanation) -> list[str]:
    from langchain_tool_selection.evals._explain import OTHER, described

    lines = [f"{word.score:.2f} {visible(described(word))}" for word in hit.words]
    return [*lines, f"{hit.other:.2f} {OTHER}"] if hit.other else lines
