"""An audit log: what was shown, found, called and refused, one JSON object a record."""

from __future__ import annotations

import json
import logging
from typing import Any, Literal

logger = logging.getLogger("langchain_tool_selection.audit")

Event = Literal["shown", "found", "called", "refused"]


class Audit:
    """Writes to the logger `langchain_tool_selection.audit`, level INFO.

    Args:
        enabled: Whether anything is written.
    """

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled

    def record(self, event: Event, runtime: Any, **facts: Any) -> None:
        """Write one record: the event, thread and run where known, and what is passed. No argument values."""
        if not self._enabled or not logger.isEnabledFor(logging.INFO):
            return
        execution = getattr(runtime, "execution_info", None)
        where = {
            "thread": getattr(execution, "thread_id", None),
            "run": getattr(execution, "run_id", None),
        }
        # In ASCII, so that nothing in a name or an id can end the line, or hide what stands there.
        logger.info("%s", json.dumps({"event": event, **where, **facts}, default=str))
