"""What the commands share: options, errors in one line, progress, and rankers by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich import progress as rich_progress
from rich.console import Console
from rich.table import Table
from typer import Option

from langchain_tool_selection._ground.untrusted import visible
from langchain_tool_selection.evals import _files
from langchain_tool_selection.evals._files import FileError
from langchain_tool_selection.evals._results import in_a_line

TOOLS_HELP = (
    "A file of tools: a JSON array, one tool a line, an MCP tools/list result or an MCP configuration; "
    "or module:attribute, a list of LangChain tools."
)
RANKER_HELP = (
    "words; hybrid:local, words with local embeddings; or module:attribute, a ranker, LangChain Embeddings "
    "or a scorer."
)
MODEL_HELP = "A chat model: provider:name as LangChain has it, or module:attribute."
CASES_HELP = "A file of labelled requests, one a line: {query, relevant, history?, ...}."

AsJson = Annotated[bool, Option("--json", help="Print one JSON object and nothing else.")]
ToolsArgument = Annotated[str | None, typer.Argument(metavar="TOOLS", help=TOOLS_HELP, show_default=False)]
ToolsOption = Annotated[str | None, Option("--tools", help="The same as TOOLS.", show_default=False)]
RequiredTools = Annotated[str, Option("--tools", help=TOOLS_HELP)]
CasesOption = Annotated[Path, Option(help=CASES_HELP)]
RankerOption = Annotated[str, Option(help=RANKER_HELP)]
ModelOption = Annotated[str, Option(help=MODEL_HELP)]
TopK = Annotated[int, Option(help="How many tools are shown by relevance.", min=1)]


@contextmanager
def errors_in_a_line(command: str) -> Iterator[None]:
    """Turn an error that a person can mend into one line on standard error and exit code 2.

    What is printed meanwhile goes to standard error, too: a module that is imported may print.
    """
    try:
        with redirect_stdout(sys.stderr):
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
    columns = (
        "{task.description}",
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
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
    if not _files.names_attribute(name):
        msg = f"no ranker is called {name!r}; take words, hybrid:local or module:attribute"
        raise ValueError(msg)
    if (ranker := attribute_of(name)) is None:
        raise FileError(name, "the module has no such attribute")
    return ranker


def attribute_of(source: str) -> Any:
    """Return what `module:attribute` names; `None` if the module has no such attribute.

    Raises:
        FileError: importing the module fails.
    """
    module, attribute = _files.load_module(source)
    return getattr(module, attribute, None)


def chat_model_of(name: str) -> Any:
    """Return the chat model that `--model` names.

    Raises:
        ValueError: there is none, or it cannot be made.
    """
    from langchain.chat_models import init_chat_model
    from langchain_core.language_models import BaseChatModel

    # "ollama:llama3" has the form of both, and a module of a provider's name has no such attribute.
    if _files.names_attribute(name) and _files.names_module(name):
        found = attribute_of(name)
        if isinstance(found, BaseChatModel):
            return found
    try:
        return init_chat_model(name)
    except Exception as error:
        raise failed(f"making the model {name!r}", error) from error


def new_table(*headings: str, left: Collection[str] = (), **options: Any) -> Table:
    """Return a table of columns of numbers, but for those that are named as text."""
    table = Table(**options)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in left else "right", overflow="fold")
    return table


def print_first(entries: Sequence[Iterable[str]], limit: int, instead: str) -> None:
    """Print the first entries, the second and later lines of each indented, and how many more there are."""
    for first, *others in entries[:limit]:
        typer.echo(visible(f"  {first}"))
        for line in others:
            typer.echo(visible(f"    {line}"))
    if len(entries) > limit:
        typer.echo(f"  and {len(entries) - limit} more; {instead}")


def request_line(query: str) -> str:
    """Return a request as a line of at most 60 characters."""
    return in_a_line(visible(query))


def failed(what: str, error: Exception) -> ValueError:
    """Return an error in the words of this command for one of somebody else's code."""
    return ValueError(f"{what} failed with {_files.shortened(error)}")
