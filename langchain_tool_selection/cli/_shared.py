"""What the commands share: options, errors in one line, progress, and rankers by name."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Annotated, Any, NamedTuple, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from langchain_tool_selection.evals._files import (
    FileError,
    load_module,
    names_attribute,
    names_module,
    shortened,
)

_Value = TypeVar("_Value")

TOOLS_HELP = (
    "A file of tools: a JSON array, one tool a line, an MCP tools/list result or an MCP configuration; "
    "or module:attribute, a list of LangChain tools."
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
ToolsArgument = Annotated[str | None, typer.Argument(metavar="TOOLS", help=TOOLS_HELP, show_default=False)]
ToolsOption = Annotated[str | None, typer.Option("--tools", help="The same as TOOLS.", show_default=False)]
RankerOption = Annotated[
    str,
    typer.Option(
        help="words; hybrid:local, words with local embeddings; or module:attribute, "
        "a ranker, LangChain Embeddings or a scorer."
    ),
]

ModelOption = Annotated[
    str, typer.Option(help="A chat model: provider:name as LangChain has it, or module:attribute.")
]


@contextmanager
def errors_in_a_line(command: str) -> Iterator[None]:
    """Turn an error that a person can mend into one line on standard error and exit code 2."""
    try:
        yield
    except (ValueError, TypeError, OSError, ImportError) as error:
        line = " ".join(str(error).split()) or type(error).__name__
        typer.echo(f"tool-selection {command}: {visible(line)}", err=True)
        raise typer.Exit(2) from error


class Gate(NamedTuple):
    """What has to hold, and what was found."""

    text: str
    value: float
    passed: bool


def exit_unless_passed(gates: Iterable[Gate]) -> None:
    """Name the gates that failed on standard error, and exit with 1 if there are any."""
    failures = [gate for gate in gates if not gate.passed]
    for gate in failures:
        typer.echo(f"gate failed: {gate.text}, found {gate.value:.4g}", err=True)
    if failures:
        raise typer.Exit(1)


def quietly(function: Callable[..., _Value], *arguments: Any, **options: Any) -> _Value:
    """Return what a function does, with what it prints on standard error: it may import a module."""
    with redirect_stdout(sys.stderr):
        return function(*arguments, **options)


def given(argument: str | None, option: str | None) -> str:
    """Return the tools, which are given in one of two ways.

    Raises:
        ValueError: they are given in none, or in both.
    """
    if (argument is None) == (option is None):
        msg = "give the tools once, as TOOLS or as --tools"
        raise ValueError(msg)
    return argument or option or ""


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error, and none where nobody looks at it."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


def ranker_of(name: str) -> Any:
    """Return what `--ranker` names, as `ToolIndex` takes it.

    Raises:
        ValueError: there is no such ranker.
        ImportError: it needs a package.
    """
    if name == "words":
        return None
    if name == "hybrid:local":
        from langchain_tool_selection.local import LocalEmbeddings

        return LocalEmbeddings()
    if not names_attribute(name):
        msg = f"no ranker is called {name!r}; take words, hybrid:local or module:attribute"
        raise ValueError(msg)
    ranker = attribute_of(name)
    if ranker is None:
        msg = f"{name}: the module has no such attribute"
        raise FileError(msg)
    return ranker


def attribute_of(source: str) -> Any:
    """Return what `module:attribute` names; `None` if the module has no such attribute.

    Raises:
        FileError: importing the module fails.
    """
    module, attribute = quietly(load_module, source)
    return getattr(module, attribute, None)


def chat_model_of(name: str) -> Any:
    """Return the chat model that `--model` names.

    Raises:
        ValueError: there is none, or it cannot be made.
    """
    from langchain.chat_models import init_chat_model
    from langchain_core.language_models import BaseChatModel

    # "ollama:llama3" has the form of both, and a module of a provider's name has no such attribute.
    if names_attribute(name) and names_module(name):
        found = attribute_of(name)
        if isinstance(found, BaseChatModel):
            return found
    try:
        return init_chat_model(name)
    except Exception as error:
        raise failed(f"making the model {name!r}", error) from error


def visible(text: str) -> str:
    """Return a third party's text without what would move a terminal's cursor or colour it."""
    return "".join("\ufffd" if unicodedata.category(char) in ("Cc", "Cf") else char for char in text)


def request_line(query: str, limit: int = 60) -> str:
    """Return a request as a line of at most `limit` characters."""
    line = visible(" ".join(query.split()))
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def failed(what: str, error: Exception) -> ValueError:
    """Return an error in the words of this command for one of somebody else's code."""
    return ValueError(f"{what} failed with {shortened(error)}")
