"""What is said of a selection: events, log lines, the audit log."""

from __future__ import annotations

from langchain_tool_selection._access.audit import Audit, emit
from langchain_tool_selection._ground.log import logger
from langchain_tool_selection._run.call import Call
from langchain_tool_selection._run.planner import Outcome


class Reporter:
    """Says what each model call was shown.

    Args:
        audit: The audit log.
        max_pins: How many pins a thread remembers.
    """

    def __init__(self, audit: Audit, max_pins: int) -> None:
        self._audit = audit
        self._max_pins = max_pins

    def report(self, call: Call, outcome: Outcome) -> None:
        """Say what a call is shown, and why."""
        selection, runtime = outcome.selection, call.request.runtime
        if selection is None or selection.exposure == "all":
            self._audit.tools("shown", runtime, outcome.tools, exposure="all")
        else:
            for name in selection.evicted:
                logger.info("pin of %r dropped: more than max_pins=%d", name, self._max_pins)
            if selection.why and selection.exposure != "per_turn":
                logger.info("the tools array has changed, which no cache survives: %s", selection.why)
            shown = {name: call.tools[name] for name in selection.names}
            pins = {"pinned": [*call.pins], "evicted": [*selection.evicted]}
            self._audit.tools("shown", runtime, shown, exposure=selection.exposure, **pins)
        if selection is not None:
            emit(runtime, "tool_selection", selection.to_dict())
