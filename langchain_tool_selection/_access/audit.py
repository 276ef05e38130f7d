"""Stream events and the audit log, one JSON object a record."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, Literal

from langchain.agents.middleware.types import ToolCallRequest
from langsmith.run_helpers import get_current_run_tree

from langchain_tool_selection._ground.log import logger

audit_logger = logging.getLogger("langchain_tool_selection.audit")

AuditLevel = bool | Literal["arguments"]


def emit(runtime: Any, kind: str, facts: Mapping[str, Any]) -> None:
    """Send an event to the log (at DEBUG), to the stream of custom events and to the trace."""
    logger.debug("%s: %s", kind, facts)
    if runtime is not None and runtime.stream_writer is not None:
        runtime.stream_writer({"type": kind, **facts})
    if (run := get_current_run_tree()) is not None:
        run.add_metadata({kind: facts})


class Audit:
    """Writes to the logger `langchain_tool_selection.audit`, level INFO.

    Args:
        level: Whether anything is written; `"arguments"` for what tools are called with as well.
        domain_of: Gives a tool's domain; empty if it has none.
    """

    def __init__(self, level: AuditLevel, domain_of: Callable[[Any], str]) -> None:
        self._level = level
        self._domain_of = domain_of

    def tools(
        self, event: Literal["shown", "found"], runtime: Any, tools: Mapping[str, Any], **facts: Any
    ) -> None:
        """Write what was shown or found: the tools by name, and the domains of those that have one."""
        if self._is_on:
            domains = {name: domain for name, tool in tools.items() if (domain := self._domain(tool))}
            self._write(event, runtime, {"tools": [*tools], "domains": domains, **facts})

    def call(
        self, event: Literal["called", "refused"], request: ToolCallRequest, why: str | None = None
    ) -> None:
        """Write that a tool was called, or was not, and why not."""
        if not self._is_on:
            return
        call = request.tool_call
        facts: dict[str, Any] = {
            "tool": call["name"],
            "domain": self._domain(request.tool),
            "call": call["id"],
        }
        if self._level == "arguments":
            facts["arguments"] = call["args"]
        if why is not None:
            facts["why"] = why
        self._write(event, request.runtime, facts)

    @property
    def _is_on(self) -> bool:
        return bool(self._level) and audit_logger.isEnabledFor(logging.INFO)

    def _domain(self, tool: Any) -> str:
        # A provider's own tool is a dict, and one that is not registered is `None`.
        return "" if tool is None or isinstance(tool, Mapping) else self._domain_of(tool)

    def _write(self, event: str, runtime: Any, facts: Mapping[str, Any]) -> None:
        execution = getattr(runtime, "execution_info", None)
        where = {"thread": getattr(execution, "thread_id", None), "run": getattr(execution, "run_id", None)}
        audit_logger.info("%s", _as_json({"event": event, **where, **facts}))


def _as_json(record: Mapping[str, Any]) -> str:
    # In ASCII, so that nothing in a name or an id can end the line, or hide what stands there.
    try:
        return json.dumps(record, default=str, allow_nan=False)
    except Exception:
        # JSON has no NaN, which Python reads from a model's arguments. That the tool was called counts more.
        return json.dumps({**record, "arguments": "no JSON"}, default=str)
