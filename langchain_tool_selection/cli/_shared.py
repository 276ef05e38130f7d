"""What the commands share: options, errors in one line, progress, rankers by name, and how they print."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from itertools import repeat
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table
from typer import Argument, Option

from langchain_tool_selection._ground.untrusted import visible
from langchain_tool_selection.evals import _files
from langchain_tool_selection.evals._results import in_a_line

_TOOLS_HELP = (
    "A file of tools: a JSON array, one tool a line, an MCP tools/list result or an MCP configuration; "
    "or module:attribute, a list of LangChain tools."
)
_RANKER_HELP = (
    "words; hybrid:local, words with local embeddings; or module:attribute, a ranker, LangChain Embeddings "
    "or a scorer."
)
_MODEL_HELP = "A chat model: provider:name as LangChain has it, or module:attribute."
_CASES_HELP = "A file of labelled requests, one a line: {query, relevant, history?, ...}."

AsJson = Annotated[bool, Option("--json", help="Print one JSON object and nothing else.")]
ToolsArgument = Annotated[str | None, Argument(metavar="TOOLS", help=_TOOLS_HELP, show_default=False)]
ToolsOption = Annotated[str | None, Option("--tools", help="The same as TOOLS.", show_default=False)]
RequiredTools = Annotated[str, Option("--tools", help=_TOOLS_HELP)]
CasesOption = Annotated[Path, Option(help=_CASES_HELP)]
RankerOption = Annotated[str, Option(help=_RANKER_HELP)]
ModelOption = Annotated[str, Option(help=_MODEL_HELP)]
TopK = Annotated[int, Option(help="How many tools are shown by relevance.", min=1)]


# -- errors --------------------------------------------------------------------------------------------


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


@contextmanager
def failing(what: str, *, but: type[Exception] | tuple[()] = ()) -> Iterator[None]:
    """Turn an error of somebody else's code into one that says what failed; `but` stays as it is."""
    try:
        yield
    except but:
        raise
    except Exception as error:
        raise ValueError(f"{what} failed with {_files.shortened(error)}") from error


# -- what options name ---------------------------------------------------------------------------------


def given(argument: str | None, option: str | None) -> str:
    """Return the tools, which are given in one of two ways.

    Raises:
        ValueError: they are given in none, or in both.
    """
    if (argument is None) == (option is None):
        raise ValueError("give the tools once, as TOOLS or as --tools")
    return argument or option or ""


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
        raise ValueError(f"no ranker is called {name!r}; take words, hybrid:local or module:attribute")
    if (ranker := _attribute_of(name)) is None:
        raise _files.FileError(name, "the module has no such attribute")
    return ranker


def chat_model_of(name: str) -> Any:
    """Return the chat model that `--model` names.

    Raises:
        ValueError: there is none, or it cannot be made.
    """
    from langchain_core.language_models import BaseChatModel

    from langchain_tool_selection._ranking.llm import chat_model_of as made

    # "ollama:llama3" has the form of both, and a module of a provider's name has no such attribute.
    if _files.names_attribute(name) and _files.names_module(name):
        found = _attribute_of(name)
        if isinstance(found, BaseChatModel):
            return found
    with failing(f"making the model {name!r}"):
        return made(name)


def _attribute_of(source: str) -> Any:
    module, attribute = _files.load_module(source)
    return getattr(module, attribute, None)


# -- what is printed -----------------------------------------------------------------------------------


class Gate(NamedTuple):
    """What has to hold, and what was found."""

    text: str
    value: float
    passed: bool

    @classmethod
    def at_least(cls, what: str, value: float, least: float) -> Gate:
        """Return a gate that a share passes from a number on."""
        return cls(f"{what} >= {least:g}", value, value >= least)


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error, and none where nobody looks at it."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


def tell(as_json: bool, values: Mapping[str, Any], shown: Iterable[RenderableType]) -> None:
    """Print what was found: as one JSON object for programs, or as texts and tables for people."""
    if as_json:
        typer.echo(json.dumps(values))
        return
    for part in shown:
        if isinstance(part, str):
            typer.echo(visible(part))
        else:
            Console().print(part, markup=False, highlight=False)


def exit_unless_passed(gates: Iterable[Gate]) -> None:
    """Name the gates that failed on standard error, and exit with 1 if there are any."""
    if failures := [gate for gate in gates if not gate.passed]:
        for gate in failures:
            typer.echo(f"gate failed: {gate.text}, found {gate.value:.4g}", err=True)
        raise typer.Exit(1)


def new_table(
    headings: Iterable[str],
    rows: Iterable[Iterable[str]] = (),
    *,
    left: Collection[str] = (),
    styles: Iterable[str | None] = repeat(None),
    **options: Any,
) -> Table:
    """Return a table of columns of numbers, but for those that are named as text."""
    table = Table(**options)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in left else "right", overflow="fold")
    for row, style in zip(rows, styles, strict=False):
        table.add_row(*row, style=style)
    return table


def first_of(entries: Sequence[Iterable[str]], limit: int, instead: str) -> Iterator[str]:
    """Yield the first entries, the second and later lines of each indented, and how many more there are."""
    for entry in entries[:limit]:
        yield "  " + "\n    ".join(entry)
    if len(entries) > limit:
        yield f"  and {len(entries) - limit} more; {instead}"


def request_line(query: str) -> str:
    """Return a request as a line of at most 60 characters."""
    return in_a_line(visible(query))
