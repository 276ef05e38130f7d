"""`tool-selection verify`: what a provider does with tools that change, asked with a key of one's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from typer import Option

from langchain_tool_selection import evals
from langchain_tool_selection.cli import _shared

_OPTION_HELP = (
    "KEY=VALUE for the client of provider:name, such as use_responses_api=true or base_url=URL; may be "
    "repeated."
)
_TOKENS_HELP = "How long the prompts are. Providers cache none below 1,024 tokens, some none below 4,096."
_STYLES = {"kept": "green", "lost": "red", "partly": "yellow", "refused": "red", "ignored": "yellow"}


def verify(
    *,
    model: _shared.ModelOption,
    option: Annotated[list[str] | None, Option(help=_OPTION_HELP)] = None,
    tokens: Annotated[int, Option(help=_TOKENS_HELP, min=1)] = 6_000,
    out: Annotated[Path | None, Option(help="Write the report here, for ByModel.")] = None,
    yes: Annotated[bool, Option("--yes", help="Do not ask before anything is sent.")] = False,
    as_json: _shared.AsJson = False,
) -> None:
    """Ask a provider, with your key, what it does with tools that change in mid-conversation.

    A short conversation says, from the provider's own usage, whether the cached prompt is kept: after a
    restart, with a tool more or less in the tools array, and with each form of adding a tool in
    mid-conversation that the client can send. What is sent is said first, and about what it costs.
    """
    with _shared.errors_in_a_line("verify"):
        if out and not out.parent.is_dir():
            raise ValueError(f"{out}: there is no folder {out.parent} to write to")
        clients = _clients(model, option or [])
        with _shared.failing(f"making the model {model!r}"):
            plan = evals.VerifyPlan.of(clients, prompt_tokens=tokens)
    typer.echo(str(plan), err=True)
    if not yes:
        typer.confirm("Send them?", abort=True, err=True)
    with _shared.errors_in_a_line("verify"):
        with _shared.progress("asking the provider", plan.calls) as step:
            report = evals.verify_model(clients, prompt_tokens=tokens, progress=step)
        if out:
            report.save(out)
    _shared.tell(as_json, report.to_dict(), _shown(report, out))


def _clients(name: str, options: list[str]) -> Callable[[], Any]:
    """Return what makes the model that is named, a new one each time.

    Raises:
        ValueError: an option has no value.
    """
    settings = dict(map(_setting, options))
    if not settings:
        # What a module holds is one object, and a restart takes another.
        return lambda: _shared.chat_model_of(name).model_copy()

    def made() -> Any:
        from langchain.chat_models import init_chat_model

        return init_chat_model(name, **settings)

    return made


def _setting(option: str) -> tuple[str, Any]:
    key, equals, value = option.partition("=")
    if not key or not equals:
        raise ValueError(f"--option takes KEY=VALUE, got {option!r}")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _shown(report: evals.VerifyReport, out: Path | None) -> Iterator[RenderableType]:
    headings, *rows = report.table
    left = {*headings} - {"tokens", "from cache"}
    styles = [_STYLES.get(row[1]) for row in rows]
    yield f"{report.model} through {report.client}{f' at {report.host}' if report.host else ''}"
    yield _shared.new_table(headings, rows, left=left, styles=styles)
    if report.checks[0].result != "kept":
        yield "The provider reported nothing that was read from a cache. A longer --tokens may help."
    known = ", ".join(f"{key}={value!r}" for key, value in report.to_dict()["facts"].items())
    yield f"so: ModelFacts({known})"
    if out:
        yield f"The report is in {out}: exposure=ByModel(evals.load_model_facts({str(out)!r}))"
