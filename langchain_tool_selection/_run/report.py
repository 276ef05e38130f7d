"""What is said of a selection: events, log lines, the audit log."""

from __future__ import annotations

from langchain_tool_selection._access.audit import Audit, emit
from langchain_tool_selection._ground.log import logger
from langchain_tool_selection._run.call import Call
from langchain_tool_selection._run.planner import Outcome


def report(call: Call, outcome: Outcome, audit: Audit) -> None:
    """Say what a call is shown, and why."""
    selection, runtime = outcome.selection, call.request.runtime
    if selection is None or selection.exposure == "all":
        audit.tools("shown", runtime, outcome.tools, exposure="all")
    else:
        for name in selection.evicted:
            logger.info("pin of %r dropped: more than max_pins=%d", name, call.max_pins)
        if selection.why and selection.exposure != "per_turn":
            logger.info("the tools array has changed, which no cache survives: %s", selection.why)
        shown = {name: call.tools[name] for name in selection.names}
        pins = {"pinned": [*call.pins.kept], "evicted": [*selection.evicted]}
        audit.tools("shown", runtime, shown, exposure=selection.exposure, **pins)
    if selection is not None:
        emit(runtime, "tool_selection", selection.to_dict())
