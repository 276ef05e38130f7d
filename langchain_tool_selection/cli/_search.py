"""`tool-selection search`: what a request finds, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from rich.console import RenderableType
from typer import Argument, Option

from langchain_tool_selection import evals
from langchain_tool_selection._ground.untrusted import visible
from langchain_tool_selection.cli import _shared

_NEAR = 3
"""So many of those that are just not sent are shown too."""


def search(
    *,
    tools: _shared.ToolsArgument = None,
    query: Annotated[str | None, Argument(metavar="QUERY", help="The request.")] = None,
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

    with _shared.errors_in_a_line("search"):
        if tools_option is not None and query is None:
            tools, query = None, tools
        if not query or not query.strip():
            raise ValueError("give a request behind the tools, in quotation marks")
        toolset = evals.read_tools(_shared.given(tools, tools_option))
        catalog = ToolIndex(_shared.ranker_of(ranker)).sync(toolset.documents)
        if tool is not None and tool not in catalog.names:
            raise ValueError(f"--tool: there is no tool {tool!r} among the {len(catalog.names)}")
        wanted = Query.of(query)
        with _shared.failing("the ranker"):
            hits = catalog.search(wanted)
        names = [tool] if tool else [hit.name for hit in hits[: top_k + _NEAR]]
        explained = [*Explainer(catalog)(wanted, names, hits).values()]
    sent = [hit.name for hit in hits[:top_k]]
    found = {
        "query": query,
        "tools": len(toolset.names),
        "tokens": toolset.tokens(),
        "top_k": top_k,
        "matches": len(hits),
        "sent": {"tools": len(sent), "tokens": toolset.tokens(sent)},
        "hits": [
            {**hit.to_dict(), "tokens": toolset.tokens([hit.tool]), "sent": hit.tool in sent}
            for hit in explained
        ],
    }
    _shared.tell(as_json, found, [str(explained[0])] if tool else _shown(explained, found))


def _shown(hits: Sequence[evals.Explanation], found: dict[str, Any]) -> Iterator[RenderableType]:
    sent, number = found["sent"], found["sent"]["tools"]
    rows = [
        (str(hit.rank), visible(hit.tool), f"{hit.score:.2f}", f"{row['tokens']:,}", "\n".join(_words(hit)))
        for hit, row in zip(hits, found["hits"], strict=True)
    ]
    if rows:
        styles = [None if row["sent"] else "dim" for row in found["hits"]]
        table = _shared.new_table(
            ("#", "tool", "score", "tokens", "words"), rows, left=("tool", "words"), styles=styles
        )
        table.rows[number - 1].end_section = number < len(rows)
        yield table
    saved = 1 - sent["tokens"] / max(1, found["tokens"])
    yield (
        f"sent: {number} of {found['tools']:,} tools, {sent['tokens']:,} of {found['tokens']:,} tokens, "
        f"{saved:.0%} saved; {found['matches']:,} tools match"
    )
    if hits and hits[0].unknown:
        yield f"in no tool: {', '.join(hits[0].unknown)}"


def _words(hit: evals.Explanation) -> list[str]:
    from langchain_tool_selection.evals._explain import OTHER, described

    lines = [f"{word.score:.2f} {visible(described(word))}" for word in hit.words]
    return [*lines, f"{hit.other:.2f} {OTHER}"] if hit.other else lines
