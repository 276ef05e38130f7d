"""What a thread remembers of a call, and what changed its tools array since the call before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from langgraph.types import Overwrite

from langchain_tool_selection._exposure.base import Exposure, Rendered
from langchain_tool_selection._ground.messages import state_value
from langchain_tool_selection._selection.pins import PINS
from langchain_tool_selection._selection.policy import Selection
from langchain_tool_selection._selection.record import THREAD, ThreadRecord


def remembered(
    before: ThreadRecord,
    exposure: Exposure,
    *,
    selection: Selection,
    rendered: Rendered,
    added: int,
    fingerprint_of: Callable[[str], str],
) -> ThreadRecord:
    """Return a thread's record with what a call shows.

    Args:
        before: The record, with what is new of the user turn.
        exposure: How the call is shown its tools.
        selection: What it shows.
        rendered: How it is sent.
        added: How many tools were shown for later user messages than the first, unasked.
        fingerprint_of: Gives the fingerprint of a tool's definition by its name; empty if there is no such
            tool any more.
    """
    record = replace(before, matched=selection.matched, shown=selection.names, exposure=exposure.name)
    if exposure.keeps:  # a detour by another model changes nothing about what the thread keeps
        record = replace(record, array=rendered.array, reveals=rendered.reveals, added=added)
        names = dict.fromkeys([*record.visible, *(rendered.bound or ())])
        sent = {name: mark for name in names if (mark := fingerprint_of(name))}
        record = replace(record, definitions=sent)
    seen = dict.fromkeys([*record.visible, *selection.names])
    reasons = {n: why for n in seen if (why := selection.reasons.get(n) or before.reasons.get(n))}
    return replace(record, reasons=reasons)


def state_update(record: ThreadRecord, state: Any, pins: list[str]) -> dict[str, Any]:
    """Return what of graph state is to be written. Compared as it is stored, so that garbage is repaired.

    Args:
        record: What the thread is to remember.
        state: The state as it is.
        pins: The pins to go on with.
    """
    due = record.to_state()
    update: dict[str, Any] = {} if due == state_value(state, THREAD) else {THREAD: due}
    if pins != (state_value(state, PINS) or []):
        update[PINS] = Overwrite(pins)
    return update


def why_changed(
    exposure: Exposure,
    before: ThreadRecord,
    after: ThreadRecord,
    *,
    selection: Selection,
    rendered: Rendered,
    present: Collection[str],
) -> str | None:
    """Return what changed the tools array; empty if nothing did, `None` if there was none before.

    Args:
        exposure: How this call is shown its tools.
        before: What the thread remembered before the call.
        after: What it remembers behind it.
        selection: What the call shows.
        rendered: How it is sent.
        present: Names of all tools that the run may use.
    """
    if not before.exposure:
        return None
    then, now = _last_array(exposure, before, rendered), rendered.bound or rendered.array
    if before.exposure != exposure.name:
        return f"another model: exposure {before.exposure!r} before, {exposure.name!r} now"
    if then == now:
        return _why_rewritten(before, after, then)
    if not exposure.keeps and before.key != after.key:
        return "a new user message"
    if gone := [name for name in then if name not in now]:
        return _why_gone(before, after, [name for name in gone if name not in present])
    added = [f"{name} ({selection.reasons[name].kind})" for name in now if name not in then]
    return f"added {', '.join(added)}" if added else "another order"


def _last_array(exposure: Exposure, record: ThreadRecord, rendered: Rendered) -> tuple[str, ...]:
    """Return the tools array of the thread's last call, in order, which this exposure was sent with."""
    if not exposure.keeps:
        return record.shown
    if exposure.additions_reset_cache:
        return record.visible
    # An exposure whose array is not the record's has all that it shows in one of its own.
    return record.array if rendered.bound is None else record.shown


def _why_rewritten(before: ThreadRecord, after: ThreadRecord, array: Sequence[str]) -> str:
    """Return why the same tools are sent with other bytes than before; empty if they are not."""
    if before.overview is not None and before.overview != after.overview:
        return "a domain is no longer there"
    sent, now = before.definitions, after.definitions
    edited = [name for name in array if name in now and sent.get(name, now[name]) != now[name]]
    return f"another definition of {', '.join(edited)}" if edited else ""


def _why_gone(before: ThreadRecord, after: ThreadRecord, missing: Sequence[str]) -> str:
    if missing:
        # Without their names: the run's role may have changed, and then they do not exist for it.
        return f"tools that are no longer there: {len(missing)}"
    compacted = before.start not in ("", after.start)
    return "the conversation was compacted" if compacted else "over the token budget"
