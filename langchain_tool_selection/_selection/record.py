"""What was decided for a thread, as it stands in graph state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, get_args

from langchain_tool_selection._ground.messages import state_value
from langchain_tool_selection._selection.pins import is_text, pins_in
from langchain_tool_selection._selection.policy import Reason, ReasonKind

THREAD = "tool_selection_thread"

_VERSION = 1
_KINDS = get_args(ReasonKind)  # garbage may have no hash


@dataclass(frozen=True)
class Reveal:
    """Tools that were added to a conversation behind one of its messages.

    Attributes:
        anchor: The message, as `message_mark` identifies it.
        names: The tools, in the order they were added.
    """

    anchor: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class ThreadRecord:
    """What was decided for a thread, so that its later calls decide the same.

    Attributes:
        key: The user turn that `matched` and `shown` are about; see `Turn.key`.
        matched: What of the shown matched the request when the turn began.
        shown: What the last model call was shown, in order.
        catalog: Fingerprint of the catalogue of the last model call: what a search may find. Empty
            when that call hid nothing.
        exposure: How the last model call was shown its tools; empty if there was none.
        array: The tools array of the last call under an exposure that keeps it, in order.
        reveals: What was added to the conversation since, in order.
        added: How many tools were shown for later user messages than the first, unasked.
        start: The message that the conversation began with.
        overview: The domains that the search tool's description names, with their numbers of tools; `None`
            if it was not asked to.
        turn: The number of the user turn, 1 for the thread's first; 0 before it.
        reasons: Why each tool that the thread can see was shown, and since when.
        definitions: Under an exposure that keeps what a thread was shown: the fingerprint of the definition
            that it was sent of each tool, by name.
        limits: The rules of the last model's provider on tools, a key of `LIMITS`; empty if unknown.
    """

    key: str = ""
    matched: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    catalog: str = ""
    exposure: str = ""
    array: tuple[str, ...] = ()
    reveals: tuple[Reveal, ...] = ()
    added: int = 0
    start: str = ""
    overview: Mapping[str, int] | None = None
    turn: int = 0
    reasons: Mapping[str, Reason] = field(default_factory=dict)
    definitions: Mapping[str, str] = field(default_factory=dict)
    limits: str = ""

    @property
    def is_new(self) -> bool:
        """Whether the thread has no earlier call on record."""
        return self is _NEW or self == _NEW

    @property
    def hides(self) -> bool:
        """Whether the last model call hid something, so that there is something to find."""
        return bool(self.catalog)

    @property
    def visible(self) -> tuple[str, ...]:
        """What the thread can see: the tools array, and behind it what was added, in order."""
        return tuple(dict.fromkeys([*self.array, *(name for r in self.reveals for name in r.names)]))

    def to_state(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return {
            "version": _VERSION,
            **vars(self),
            "matched": list(self.matched),
            "shown": list(self.shown),
            "array": list(self.array),
            "reveals": [[reveal.anchor, *reveal.names] for reveal in self.reveals],
            "overview": None if self.overview is None else dict(self.overview),
            "reasons": {name: reason.to_dict() for name, reason in self.reasons.items()},
            "definitions": dict(self.definitions),
        }

    @classmethod
    def from_state(cls, state: Any) -> ThreadRecord:
        """Read the record from graph state; a new one if there is none that this version understands."""
        value = state_value(state, THREAD)
        if not isinstance(value, Mapping) or value.get("version") != _VERSION:
            return _NEW
        return cls(**{name: read(value.get(name)) for name, read in _READERS.items()})


_NEW = ThreadRecord()

# A reader takes whatever a checkpoint may hold. What it cannot read is as if it had not been there.


def _text(value: Any) -> str:
    return value if is_text(value) else ""


def _names(value: Any) -> tuple[str, ...]:
    return tuple(pins_in(value))


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**31 else None


def _reveals(value: Any) -> tuple[Reveal, ...]:
    rows = map(_names, value if isinstance(value, list) else ())
    return tuple(Reveal(row[0], row[1:]) for row in rows if len(row) > 1)


def _reason(value: Any) -> Reason | None:
    if not isinstance(value, Mapping) or value.get("kind") not in _KINDS:
        return None
    score: Any = value.get("score")
    score = float(score) if type(score) in (int, float) and isfinite(score) else None
    return Reason(value["kind"], _count(value.get("rank")), score, _count(value.get("turn")))


def _by_name(value: Any, read: Callable[[Any], Any]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {}
    return {name: entry for name, one in value.items() if is_text(name) and (entry := read(one)) is not None}


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "key": _text,
    "matched": _names,
    "shown": _names,
    "catalog": _text,
    "exposure": _text,
    "array": _names,
    "reveals": _reveals,
    "limits": _text,
    "added": lambda value: _count(value) or 0,
    "start": _text,
    "overview": lambda value: _by_name(value, _count) if isinstance(value, Mapping) else None,
    "turn": lambda value: _count(value) or 0,
    "reasons": lambda value: _by_name(value, _reason),
    "definitions": lambda value: _by_name(value, lambda one: one if is_text(one) else None),
}
"""How each field is read from graph state."""
