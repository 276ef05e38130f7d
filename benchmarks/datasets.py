"""Sets of labelled requests, read from a folder outside the repository.

Each set is a folder with two files of JSON lines:

- `tools.jsonl`: `{name, description, parameters (JSON schema or null), domain}`
- `queries.jsonl`: `{query, relevant: [names], history?: [messages], alternatives?: {name: [equivalents]}}`
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from langchain_tool_selection import ToolDocument
from langchain_tool_selection._ranking.protocol import Query
from langchain_tool_selection._ranking.query import conversation_query, read_turns
from langchain_tool_selection._tools.documents import document_of

_SEED = 13


@dataclass(frozen=True)
class Case:
    """A request and the tools that it needs.

    Attributes:
        query: The newest user message.
        relevant: Names of all tools that are needed.
        history: Earlier messages, the oldest first.
        alternatives: For a relevant tool, the tools that would serve as well.
    """

    query: str
    relevant: tuple[str, ...]
    history: tuple[Mapping[str, Any], ...] = ()
    alternatives: Mapping[str, Collection[str]] = field(default_factory=dict)

    def conversation(self) -> Query:
        """Return the package's query for the whole conversation."""
        return conversation_query(read_turns([*self.history, {"role": "user", "content": self.query}]))

    def plain(self) -> Query:
        """Return the query for the newest message alone."""
        return Query.of(self.query)


@dataclass(frozen=True)
class Dataset:
    """A catalogue of tools with requests over it."""

    name: str
    tools: tuple[dict[str, Any], ...]
    cases: tuple[Case, ...]

    def documents(self) -> tuple[ToolDocument, ...]:
        """Return the tools as the package reads them."""
        return tuple(document_of(tool) for tool in self.tools)

    def sample(self, limit: int | None) -> Dataset:
        """Return this set with at most `limit` requests, the same ones every time, in their order."""
        if limit is None or limit >= len(self.cases):
            return self
        chosen = sorted(random.Random(_SEED).sample(range(len(self.cases)), limit))
        return replace(self, cases=tuple(self.cases[i] for i in chosen))

    def digest(self) -> str:
        """Return 12 hex digits over the names of the tools and the requests."""
        text = json.dumps([[t["name"] for t in self.tools], [[c.query, c.relevant] for c in self.cases]])
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def read_datasets(folder: Path, names: Sequence[str] = (), limit: int | None = None) -> list[Dataset]:
    """Read the named sets of a folder, or all of them in alphabetical order.

    Raises:
        FileNotFoundError: a named set, or any set at all, is missing.
    """
    found = sorted(path.parent.name for path in folder.glob("*/tools.jsonl"))
    missing = [name for name in names if name not in found]
    if missing or not found:
        msg = f"no set {', '.join(missing) or 'at all'} in {folder}; found: {', '.join(found) or 'none'}"
        raise FileNotFoundError(msg)
    return [read_dataset(folder / name).sample(limit) for name in names or found]


def read_dataset(folder: Path) -> Dataset:
    """Read one set; of tools with one name the first counts."""
    tools: dict[str, dict[str, Any]] = {}
    for row in _lines(folder / "tools.jsonl"):
        tools.setdefault(row["name"], row)
    return Dataset(folder.name, tuple(tools.values()), tuple(map(_case, _lines(folder / "queries.jsonl"))))


def _case(row: Mapping[str, Any]) -> Case:
    return Case(
        query=row["query"],
        relevant=tuple(dict.fromkeys(row["relevant"])),
        history=tuple(row.get("history") or ()),
        alternatives=row.get("alternatives") or {},
    )


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
