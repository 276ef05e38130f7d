"""Labelled requests: what people ask, and the tools that it takes.

A file of them is JSON lines, one case a line, so that a change of one shows as one line of a diff:

    {"query": "Will it rain in Oslo?", "relevant": ["get_forecast"]}
    {"query": "And tomorrow?", "relevant": ["get_forecast"], "history": [{"role": "user", "content": "..."}]}

`alternatives` names tools that would serve as well as a relevant one, and `source` says where a case is from
if no person wrote it. LangSmith's datasets are read and written as the JSON lines that it exports: `inputs`
and `outputs` of an example.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

from langchain_tool_selection._ground.digest import digest
from langchain_tool_selection._ground.messages import is_from_user, text_of, tool_calls
from langchain_tool_selection._ranking.protocol import Query
from langchain_tool_selection._ranking.query import conversation_query, read_turns
from langchain_tool_selection._tools.documents import ToolHints
from langchain_tool_selection.evals import _files
from langchain_tool_selection.evals._files import FileError, field_of, kind_of, numbered

GENERATED = "generated"
"""How the `source` of a case begins that a model proposed and nobody has looked at."""


@dataclass(frozen=True)
class Case:
    """A request and the tools that it takes.

    Attributes:
        query: The newest user message.
        relevant: Names of all tools that are needed, one or more.
        history: Earlier messages, the oldest first: `{"role", "content"}` dicts.
        alternatives: For a relevant tool, the tools that would serve as well.
        source: Where the case is from; empty if a person wrote it.
    """

    query: str
    relevant: tuple[str, ...]
    history: tuple[Mapping[str, Any], ...] = ()
    alternatives: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    source: str = ""

    def search_query(self, *, history: bool = True) -> Query:
        """Return what the middleware searches for at this message, with or without what was said before."""
        if not history:
            return Query.of(self.query)
        return conversation_query(read_turns([*self.history, {"role": "user", "content": self.query}]))

    def wanted(self, name: str) -> frozenset[str]:
        """Return a relevant tool and what would serve as well."""
        return frozenset((name, *self.alternatives.get(name, ())))

    @cached_property
    def serving(self) -> frozenset[str]:
        """The relevant tools and all that would serve as well."""
        return frozenset[str]().union(*map(self.wanted, self.relevant))

    @cached_property
    def key(self) -> str:
        """16 hex digits over the conversation and the labels: the same case in two evaluations."""
        said = [(message.get("role"), text_of(message)) for message in self.history]
        return digest(self.query, json.dumps([said, sorted(self.relevant)]))

    def to_dict(self) -> dict[str, Any]:
        """Return the case as JSON values, without what is empty."""
        history = [dict(message) for message in self.history]
        others = {name: list(serving) for name, serving in self.alternatives.items()}
        optional = {"history": history, "alternatives": others, "source": self.source}
        given = {key: value for key, value in optional.items() if value}
        return {"query": self.query, "relevant": list(self.relevant), **given}


Cases: TypeAlias = str | Path | Iterable[Case | Mapping[str, Any]]
"""A file of cases, or cases."""


def role_of(message: Mapping[str, Any]) -> Any:
    """Return whose message it is, as OpenAI or as LangChain names them."""
    return message.get("role") or message.get("type")


def load_cases(source: str | Path, tools: Iterable[str] | None = None) -> list[Case]:
    """Return the cases of a file, in its order.

    Args:
        source: A file in UTF-8, JSON lines or an array, of cases or of LangSmith examples. Of an example,
            `inputs` has the request as `query`, `question`, `input` or at the end of `messages`, `outputs`
            has the tools as `relevant` or `tools`, or as the `tool_calls` of itself or of its `messages`.
        tools: Names of the catalogue. With them, a label that is no tool is an error.

    Raises:
        FileError: the file cannot be read, or something in it is no case; with the line and the field.
    """
    source = str(source)
    text = _files.read_text(source)
    entries = _files.parse_lines(source, text)
    if text.lstrip().startswith("["):
        entries = numbered(f"{source}, case", _files.parse_json(source, text))
    return _cases(entries, tools)


def read_cases(cases: Cases, tools: Iterable[str]) -> list[Case]:
    """Return the cases of a file, or cases, of which those that are rows of a file are read.

    Raises:
        FileError: something is no case, a label is no tool of the catalogue, or there are no cases; or a file
            cannot be read.
    """
    if isinstance(cases, str | Path):
        listed = load_cases(cases, tools)
    else:
        rows = (case.to_dict() if isinstance(case, Case) else case for case in cases)
        listed = _cases(numbered("case", rows), tools)
    if not listed:
        raise FileError("there are no cases; give one or more")
    return listed


def save_cases(
    cases: Iterable[Case], path: str | Path, *, form: Literal["cases", "langsmith"] = "cases"
) -> None:
    """Write cases as JSON lines, in the form of this module or as LangSmith's examples. Replaces a file."""
    Path(path).write_text(dump_cases(cases, form=form), encoding="utf-8", newline="\n")


def dump_cases(cases: Iterable[Case], *, form: Literal["cases", "langsmith"] = "cases") -> str:
    """Return the text of `save_cases`."""
    rows = (case.to_dict() if form == "cases" else _example(case) for case in cases)
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def hints_from(cases: Iterable[Case], *, limit: int = 20) -> dict[str, ToolHints]:
    """Return for each tool the requests that take it, to search it by: pass it on as `hints=`.

    A request that takes several tools becomes an example of each.

    Args:
        cases: The cases. Those that are evaluated must not be among them, or the result says nothing.
        limit: Examples of a tool; the first ones, each once.
    """
    examples: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for case in cases:
        for name in case.relevant:
            examples[name][case.query] = None
    return {name: ToolHints(examples=tuple(texts)[:limit]) for name, texts in examples.items()}


# -- what a line is ------------------------------------------------------------------------------------


def _cases(entries: Iterable[tuple[str, Any]], tools: Iterable[str] | None) -> list[Case]:
    known = None if tools is None else frozenset(tools)
    return [_case(where, item, known) for where, item in entries]


def _case(where: str, item: Any, known: Collection[str] | None) -> Case:
    if not isinstance(item, dict):
        raise FileError(where, f"expected an object with 'query' and 'relevant', found {kind_of(item)}")
    row = _from_example(where, item) if isinstance(item.get("inputs"), dict) else item
    query, source = row.get("query"), row.get("source")
    if not isinstance(query, str) or not query.strip():
        found = "is missing or empty" if not query or isinstance(query, str) else f"is {kind_of(query)}"
        raise FileError(where, f"field 'query' {found}; it is the request, a string")
    relevant = _names(where, "relevant", row.get("relevant"), known)
    if not relevant:
        raise FileError(where, "field 'relevant' is empty; a case names one tool or more")
    alternatives = field_of(where, row, "alternatives", dict, "an object") or {}
    if strange := [name for name in alternatives if name not in relevant]:
        raise FileError(where, f"field 'alternatives' has {strange[0]!r}, which is not in 'relevant'")
    history = field_of(where, row, "history", list, "an array of messages") or ()
    for at, message in numbered(f"{where}: field 'history', message", history):
        if not isinstance(message, dict) or not isinstance(role_of(message), str):
            raise FileError(at, "expected an object with 'role' and 'content'")
    others = {name: _names(where, f"alternatives.{name}", o, known) for name, o in alternatives.items()}
    return Case(query, relevant, tuple(history), others, source if isinstance(source, str) else "")


def _names(where: str, name: str, value: Any, known: Collection[str] | None) -> tuple[str, ...]:
    wrong = [entry for entry in value if not isinstance(entry, str)] if isinstance(value, list) else [value]
    if wrong:
        found = kind_of(wrong[0]) + (" in it" if isinstance(value, list) else "")
        raise FileError(where, f"field {name!r} must be an array of tool names, found {found}")
    for label in value:
        if known is not None and label not in known:
            close = get_close_matches(label, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {len(known)} others"
            what = f"field {name!r} has {label!r}, which is no tool of the catalogue; {hint}"
            raise FileError(where, what)
    return tuple(dict.fromkeys(value))


# -- LangSmith -----------------------------------------------------------------------------------------


def _example(case: Case) -> dict[str, Any]:
    values = case.to_dict()
    inputs = {key: values[key] for key in ("query", "history") if key in values}
    outputs = {key: values[key] for key in ("relevant", "alternatives") if key in values}
    example: dict[str, Any] = {"inputs": inputs, "outputs": outputs}
    return {**example, "metadata": {"source": case.source}} if case.source else example


def _from_example(where: str, item: Mapping[str, Any]) -> dict[str, Any]:
    inputs, outputs, metadata = item["inputs"], item.get("outputs"), item.get("metadata")
    if not isinstance(outputs, dict):
        raise FileError(where, f"field 'outputs' must be an object with 'relevant', found {kind_of(outputs)}")
    messages = _messages(inputs)
    last = max((place for place, message in enumerate(messages) if is_from_user(message)), default=None)
    newest = None if last is None else text_of(messages[last])
    called = (name for message in (outputs, *_messages(outputs)) for name, _ in tool_calls(message))
    return {
        "query": next(filter(None, map(inputs.get, ("query", "question", "input"))), newest),
        "relevant": outputs.get("relevant") or outputs.get("tools") or list(dict.fromkeys(called)),
        "history": inputs.get("history") or messages[:last],
        "alternatives": outputs.get("alternatives"),
        "source": metadata.get("source") if isinstance(metadata, dict) else "",
    }


def _messages(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    listed = values.get("messages")
    said = [*(listed if isinstance(listed, list) else ()), values.get("message")]
    return [message for message in said if isinstance(message, dict)]
