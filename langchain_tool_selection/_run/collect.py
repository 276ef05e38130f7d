"""Free labels from traffic: a request that did not show the right tool, and the tool that was found for it.

A run whose model had to search, and then called what it found without an error, says which tool the
request was for. Written down in the form that `evals.load_cases` reads, such requests show how good
selection is, and `evals.hints_from` makes examples of them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from langgraph.store.base import BaseStore

from langchain_tool_selection._ground.log import WarnOnce
from langchain_tool_selection._ranking.query import Turn

NAMESPACE = ("tool_selection", "cases")
"""Where cases go in a LangGraph store."""


@dataclass(frozen=True)
class Collect:
    """Where cases are written.

    Attributes:
        to: A JSONL file, which is appended to; a LangGraph store; or a function that takes a case.
        redact: Returns the case as it may be written, or `None` to drop it. Users' words are in it, under
            `query` and `history`.
    """

    to: str | Path | BaseStore | Callable[[dict[str, Any]], None]
    redact: Callable[[dict[str, Any]], dict[str, Any] | None] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.to, str | Path | BaseStore) and not callable(self.to):
            raise TypeError(
                f"Collect.to takes a file, a LangGraph store or a function, got {type(self.to).__name__}"
            )


class Collector:
    """Writes cases. What goes wrong is logged once and ends no run."""

    def __init__(self, settings: Collect) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._warn_once = WarnOnce()

    def note(self, turns: Sequence[Turn], tool: str) -> None:
        """Write that the newest of `turns` was for `tool`."""
        try:
            if (case := self._case(turns, tool)) is not None:
                self._write(case)
        except Exception as error:
            self._failed(error)

    async def anote(self, turns: Sequence[Turn], tool: str) -> None:
        """As `note`, awaiting a store."""
        if not isinstance(self._settings.to, BaseStore):
            return self.note(turns, tool)
        try:
            if (case := self._case(turns, tool)) is not None:
                await self._settings.to.aput(NAMESPACE, uuid4().hex, case, index=False)
        except Exception as error:
            self._failed(error)

    def _case(self, turns: Sequence[Turn], tool: str) -> dict[str, Any] | None:
        if not turns or not turns[0].text.strip():
            return None
        earlier = [{"role": "user", "content": turn.text} for turn in reversed(turns[1:]) if turn.text]
        case = {"query": turns[0].text, "relevant": [tool], "history": earlier, "source": "collected"}
        return case if self._settings.redact is None else self._settings.redact(case)

    def _write(self, case: dict[str, Any]) -> None:
        to = self._settings.to
        if isinstance(to, str | Path):
            line = json.dumps(case, ensure_ascii=False) + "\n"
            with self._lock, Path(to).open("a", encoding="utf-8") as file:
                file.write(line)
        elif isinstance(to, BaseStore):
            to.put(NAMESPACE, uuid4().hex, case, index=False)
        else:
            to(case)

    def _failed(self, error: Exception) -> None:
        self._warn_once(f"collect {type(error).__name__}", "a case could not be collected: %r", error)
