"""`tool-selection demo`: an agent with and without tool selection, side by side."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

from rich.console import Console
from typer import Option

from langchain_tool_selection.cli import _shared

if TYPE_CHECKING:
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
    with _shared.errors_in_a_line("demo"), TemporaryDirectory() as directory:
        try:
            if mcp:
                _demo_mcp(console, Path(directory), mcp_environment)
            else:
                _demo_three_turns(console, database, Path(directory))
        except ImportError:
            raise
        except Exception as error:  # of a database, a provider, an installer
            where = f", in {database}," if database else ""
            raise _shared.failed(f"the demo{where}", error) from error


def _demo_three_turns(console: Console, database: Path | None, directory: Path) -> None:
    from langchain_tool_selection.demo.three_turns import TOOLS, run

    model, file, thread = _model(), database or directory / "threads.db", uuid4().hex[:8]
    without = run(file, selection=False, model=model, thread=f"{thread}-without")
    selected = run(file, selection=True, model=model, thread=f"{thread}-with")
    console.print(f"[bold]{len(TOOLS)} tools, three turns, at most one tool shown by relevance[/bold]")
    console.print(f"model: {type(model).__name__ if model else 'scripted, offline'}\n")
    _print_conversation(console, selected.messages)
    columns = ("turn", "without selection", "tokens", "with selection", "tokens")
    style: Any = {"title": "What each model call was sent", "title_justify": "left", "show_lines": True}
    table = _shared.new_table(*columns, left={*columns} - {"tokens"}, **style)
    totals = [0, 0]
    for number, calls in enumerate(zip(without.calls, selected.calls, strict=True), 1):
        for position, pair in enumerate(zip_longest(*calls)):
            row = ["" if position else str(number)]
            for side, sent in enumerate(pair):
                tokens = _schema_tokens(sent) if sent else 0
                totals[side] += tokens
                row += ["\n".join(sorted(sent.tools)), str(tokens)] if sent else ["-", "-"]
            table.add_row(*row)
    console.print(table)
    before, after = totals
    console.print(f"\npinned after the restart: {list(selected.pins)}")
    saved = f"[bold]{1 - after / before:.0%} saved[/bold]"
    instead = f"in {_count(selected)} model calls instead of {_count(without)}."
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
    table = _shared.new_table(*columns, left={*columns} - {"tools", "tokens"}, title=title)
    for outcome in outcomes:
        request, first = outcome.request, outcome.calls[0]
        how = "discovered" if outcome.discovered else "shown"
        counts = (str(len(first.tools)), str(_schema_tokens(first)))
        answer = " ".join((outcome.result or "").split())[:40]
        shown = how if outcome.reached else "[red]missed[/red]"
        table.add_row(request.text, request.tool, shown, *counts, answer)
    console.print(table)
    sent = sum(_schema_tokens(outcome.calls[0]) for outcome in outcomes) / len(outcomes)
    console.print(
        f"schema tokens in a first model call: {every} without selection, {sent:.0f} with it on average: "
        f"[bold]{1 - sent / every:.0%} saved[/bold]"
    )


def _count(run: Any) -> int:
    return sum(len(calls) for calls in run.calls)


def _model() -> Any:
    if not os.environ.get("OPENAI_API_KEY"):
        return None
    try:
        from langchain_openai import ChatOpenAI
    except ImportError as error:
        install = "pip install 'langchain-tool-selection[openai]', or unset the variable for the offline demo"
        msg = f"OPENAI_API_KEY is set, but langchain-openai is missing; install it with: {install}"
        raise ImportError(msg) from error
    return ChatOpenAI(model=os.environ.get("OPENAI_MODEL", "gpt-5.5"))


def _schema_tokens(sent: ModelCall) -> int:
    return _tokens(sent.schemas) if sent.schemas else 0


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
