"""`tool-selection demo`: an agent with and without tool selection, side by side."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from itertools import chain, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

from rich.console import Console
from typer import Option

from langchain_tool_selection.cli import _shared

if TYPE_CHECKING:
    from langchain_tool_selection.demo.mcp_servers import Outcome
    from langchain_tool_selection.testing import ModelCall

_SERVERS = Path.home() / ".cache" / "langchain-tool-selection" / "mcp-servers"


def demo(
    database: Annotated[Path | None, Option(help="Keep the conversation in this SQLite file.")] = None,
    mcp: Annotated[bool, Option("--mcp", help="Use over 200 tools of real MCP servers.")] = False,
    mcp_environment: Annotated[Path, Option(help="Where --mcp installs its servers.")] = _SERVERS,
) -> None:
    """Watch an agent work with and without tool selection.

    Offline, on a scripted model. With OPENAI_API_KEY set, the three turns run on a real one.
    """
    console = Console(file=sys.stdout)  # not where what is printed by others goes
    what = f"the demo, in {database}," if database else "the demo"
    # What fails is a database, a provider, an installer, or a package that is not there.
    failing = _shared.failing(what, but=ImportError)
    with _shared.errors_in_a_line("demo"), TemporaryDirectory() as directory, failing:
        if mcp:
            _demo_mcp(console, Path(directory), mcp_environment)
        else:
            _demo_three_turns(console, database, Path(directory))


def _demo_three_turns(console: Console, database: Path | None, directory: Path) -> None:
    from langchain_tool_selection.demo.three_turns import TOOLS, run

    model, file, thread = _model(), database or directory / "threads.db", uuid4().hex[:8]
    without = run(file, selection=False, model=model, thread=f"{thread}-without")
    selected = run(file, selection=True, model=model, thread=f"{thread}-with")
    console.print(f"[bold]{len(TOOLS)} tools, three turns, at most one tool shown by relevance[/bold]")
    console.print(f"model: {type(model).__name__ if model else 'scripted, offline'}\n")
    _print_conversation(console, selected.messages)
    columns = ("turn", "without selection", "tokens", "with selection", "tokens")
    rows = [
        ("" if position else str(number), *_cells(one), *_cells(other))
        for number, calls in enumerate(zip(without.calls, selected.calls, strict=True), 1)
        for position, (one, other) in enumerate(zip_longest(*calls))
    ]
    style: Any = {"title": "What each model call was sent", "title_justify": "left", "show_lines": True}
    console.print(_shared.new_table(columns, rows, left={*columns} - {"tokens"}, **style))
    all_calls = [[*chain.from_iterable(run.calls)] for run in (without, selected)]
    before, after = (sum(_tokens(call.schemas) for call in calls) for calls in all_calls)
    console.print(f"\npinned after the restart: {list(selected.pins)}")
    saved = f"[bold]{1 - after / before:.0%} saved[/bold]"
    instead = f"in {len(all_calls[1])} model calls instead of {len(all_calls[0])}."
    console.print(f"schema tokens sent: {before} without selection, {after} with it: {saved}, {instead}")
    console.print("Tokens are counted by LangChain's approximation, four characters each.")
    if database:
        console.print(f"The conversation is in {database}.")


def _demo_mcp(console: Console, directory: Path, environment: Path) -> None:
    from langchain_tool_selection import ToolSelectionMiddleware
    from langchain_tool_selection.demo import mcp_servers
    from langchain_tool_selection.testing import schema_of

    console.print(f"MCP servers: {', '.join(mcp_servers.PACKAGES)}")
    with console.status("installing and starting them"):
        programs = mcp_servers.install_servers(environment)
        workplace = mcp_servers.Workplace.make(directory)
        tools = asyncio.run(mcp_servers.load_tools(programs, workplace))
    with console.status("playing the requests"):
        outcomes = asyncio.run(mcp_servers.play(workplace.requests, tools, ToolSelectionMiddleware()))
    every = _tokens([schema_of(tool) for tool in tools])
    title = f"{len(tools)} tools, {every} tokens of schemas; shown per request, top_k=15"
    columns = ("request", "tool", "how", "tools", "tokens", "answer")
    rows = [*map(_request_cells, outcomes)]
    console.print(_shared.new_table(columns, rows, left={*columns} - {"tools", "tokens"}, title=title))
    sent = sum(_tokens(outcome.calls[0].schemas) for outcome in outcomes) / len(outcomes)
    console.print(
        f"schema tokens in a first model call: {every} without selection, {sent:.0f} with it on average: "
        f"[bold]{1 - sent / every:.0%} saved[/bold]"
    )


def _request_cells(outcome: Outcome) -> tuple[str, ...]:
    request, first = outcome.request, outcome.calls[0]
    how = "discovered" if outcome.discovered else "shown"
    answer = " ".join((outcome.result or "").split())[:40]
    shown = how if outcome.reached else "[red]missed[/red]"
    return request.text, request.tool, shown, str(len(first.tools)), str(_tokens(first.schemas)), answer


def _cells(sent: ModelCall | None) -> tuple[str, str]:
    return ("\n".join(sorted(sent.tools)), str(_tokens(sent.schemas))) if sent else ("-", "-")


def _model() -> Any:
    if not os.environ.get("OPENAI_API_KEY"):
        return None
    try:
        from langchain_openai import ChatOpenAI
    except ImportError as error:
        install = "pip install 'langchain-tool-selection[openai]', or unset the variable for the offline demo"
        raise ImportError(
            f"OPENAI_API_KEY is set, but langchain-openai is missing; install it with: {install}"
        ) from error
    return ChatOpenAI(model=os.environ.get("OPENAI_MODEL", "gpt-5.5"))


def _tokens(schemas: Sequence[dict[str, Any]]) -> int:
    from langchain_tool_selection._tools.tokens import count_tokens

    return count_tokens(schemas).tokens


def _print_conversation(console: Console, messages: Any) -> None:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    for message in messages:
        if isinstance(message, HumanMessage):
            console.print(f"[bold cyan]user[/]  {message.text}")
        elif isinstance(message, ToolMessage):
            console.print(f"[dim]tool  {message.name}: {message.text}[/]", highlight=False)
        elif isinstance(message, AIMessage) and message.tool_calls:
            for wanted in message.tool_calls:
                console.print(f"[yellow]model[/] calls {wanted['name']}({wanted['args']})", highlight=False)
        else:
            console.print(f"[green]model[/] {message.text}\n")
