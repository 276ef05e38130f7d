"""`tool-selection demo`: an agent with and without tool selection, side by side."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer
from rich.console import Console
from rich.table import Table

from langchain_tool_selection.cli._shared import errors_in_a_line, failed

if TYPE_CHECKING:
    from langchain_tool_selection.testing import ModelCall

_SERVERS = Path.home() / ".cache" / "langchain-tool-selection" / "mcp-servers"


def demo(
    database: Annotated[
        Path | None,
        typer.Option(help="Keep the conversation in this SQLite file instead of a temporary one."),
    ] = None,
    mcp: Annotated[
        bool, typer.Option("--mcp", help="Use real MCP servers, over 200 tools; installs them on first use.")
    ] = False,
    mcp_environment: Annotated[Path, typer.Option(help="Where --mcp installs its servers.")] = _SERVERS,
) -> None:
    """Watch an agent work with and without tool selection.

    Offline, on a scripted model. With OPENAI_API_KEY set, the three turns run on a real one.
    """
    console = Console()
    with errors_in_a_line("demo"), TemporaryDirectory() as directory:
        try:
            if mcp:
                _demo_mcp(console, Path(directory), mcp_environment)
            else:
                _demo_three_turns(console, database, Path(directory))
        except ImportError:
            raise
        except Exception as error:  # of a database, a provider, an installer
            where = f", in {database}," if database else ""
            raise failed(f"the demo{where}", error) from error


def _demo_three_turns(console: Console, database: Path | None, directory: Path) -> None:
    from langchain_tool_selection.demo.three_turns import TOOLS, TURNS, run

    model, file, thread = _model(), database or directory / "threads.db", uuid4().hex[:8]
    runs = {
        "without": run(file, selection=False, model=model, thread=f"{thread}-without"),
        "with": run(file, selection=True, model=model, thread=f"{thread}-with"),
    }
    console.print(f"[bold]{len(TOOLS)} tools, three turns, at most one tool shown by relevance[/bold]")
    console.print(f"model: {type(model).__name__ if model else 'scripted, offline'}\n")
    _print_conversation(console, runs["with"].messages)
    table = Table(title="What each model call was sent", title_justify="left", show_lines=True)
    for column in ("turn", "without selection", "tokens", "with selection", "tokens"):
        table.add_column(column, justify="right" if column == "tokens" else "left")
    totals = [0, 0]
    for number, _ in enumerate(TURNS):
        pairs = zip_longest(runs["without"].calls[number], runs["with"].calls[number])
        for position, pair in enumerate(pairs):
            row = [str(number + 1) if position == 0 else ""]
            for side, sent in enumerate(pair):
                tokens = _schema_tokens(sent) if sent else 0
                totals[side] += tokens
                row += ["\n".join(sorted(sent.tools)), str(tokens)] if sent else ["-", "-"]
            table.add_row(*row)
    console.print(table)
    before, after = totals
    console.print(f"\npinned after the restart: {list(runs['with'].pins)}")
    console.print(
        f"schema tokens sent: {before} without selection, {after} with it: "
        f"[bold]{1 - after / before:.0%} saved[/bold], in {_count(runs['with'])} model calls "
        f"instead of {_count(runs['without'])}."
    )
    console.print("Tokens are counted by LangChain's approximation, four characters each.")
    if database:
        console.print(f"The conversation is in {database}.")


def _demo_mcp(console: Console, directory: Path, environment: Path) -> None:
    from langchain_tool_selection import ToolSelectionMiddleware
    from langchain_tool_selection.demo.mcp_servers import (
        PACKAGES,
        Workplace,
        install_servers,
        load_tools,
        play,
    )
    from langchain_tool_selection.testing import schema_of

    console.print(f"MCP servers: {', '.join(PACKAGES)}")
    with console.status("installing and starting them"):
        programs = install_servers(environment)
        workplace = Workplace.make(directory)
        tools = asyncio.run(load_tools(programs, workplace))
    with console.status("playing the requests"):
        outcomes = asyncio.run(play(workplace.requests, tools, ToolSelectionMiddleware()))
    every = _tokens([schema_of(tool) for tool in tools])
    table = Table(title=f"{len(tools)} tools, {every} tokens of schemas; shown per request, top_k=15")
    for column in ("request", "tool", "how", "tools", "tokens", "answer"):
        table.add_column(column, justify="right" if column in ("tools", "tokens") else "left")
    for outcome in outcomes:
        first = outcome.calls[0]
        how = "discovered" if outcome.discovered else "shown"
        table.add_row(
            outcome.request.text,
            outcome.request.tool,
            how if outcome.reached else "[red]missed[/red]",
            str(len(first.tools)),
            str(_schema_tokens(first)),
            " ".join((outcome.result or "").split())[:40],
        )
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
        msg = (
            "OPENAI_API_KEY is set, but langchain-openai is missing; install it with: "
            "pip install 'langchain-tool-selection[openai]', or unset the variable for the offline demo"
        )
        raise ImportError(msg) from error
    return ChatOpenAI(model=os.environ.get("OPENAI_MODEL", "gpt-5.5"))


def _schema_tokens(sent: ModelCall) -> int:
    return _tokens(sent.schemas) if sent.schemas else 0


def _tokens(schemas: Sequence[dict[str, Any]]) -> int:
    from langchain_core.messages.utils import count_tokens_approximately

    return count_tokens_approximately([], tools=[*schemas])


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
