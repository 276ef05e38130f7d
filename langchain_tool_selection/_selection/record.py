"""What was decided for a thread, as it stands in graph state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, TypeGuard, get_args

from langchain_tool_selection._ground.messages import state_value
from langchain_tool_selection._selection.pins import is_text, pins_in
from langchain_tool_selection._selection.policy import Reason, ReasonKind

THREAD = "tool_selection_thread"

_VERSION = 1
_KINDS = frozenset(get_args(ReasonKind))


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
            "key": self.key,
            "matched": list(self.matched),
            "shown": list(self.shown),
            "catalog": self.catalog,
            "exposure": self.exposure,
            "array": list(self.array),
            "reveals": [[reveal.anchor, *reveal.names] for reveal in self.reveals],
            "added": self.added,
            "start": self.start,
            "overview": None if self.overview is None else dict(self.overview),
            "turn": self.turn,
            "reasons": {name: reason.to_dict() for name, reason in self.reasons.items()},
            "definitions": dict(self.definitions),
        }

    @classmethod
    def from_state(cls, state: Any) -> ThreadRecord:
        """Read the record from graph state; a new one if there is none that this version understands."""
        value = state_value(state, THREAD)
        if not isinstance(value, Mapping) or value.get("version") != _VERSION:
            return _NEW
        return cls(
            key=_text_in(value, "key"),
            matched=tuple(pins_in(value.get("matched"))),
            shown=tuple(pins_in(value.get("shown"))),
            catalog=_text_in(value, "catalog"),
            exposure=_text_in(value, "exposure"),
            array=tuple(pins_in(value.get("array"))),
            reveals=_reveals_in(value.get("reveals")),
            added=_count_in(value, "added"),
            start=_text_in(value, "start"),
            overview=_counts_in(value, "overview"),
            turn=_count_in(value, "turn"),
            reasons=_reasons_in(value.get("reasons")),
            definitions=_texts_in(value.get("definitions")),
        )


_NEW = ThreadRecord()


def _reveals_in(value: Any) -> tuple[Reveal, ...]:
    rows = map(pins_in, value if isinstance(value, list) else ())
    return tuple(Reveal(row[0], tuple(row[1:])) for row in rows if len(row) > 1)


def _counts_in(value: Mapping[str, Any], key: str) -> dict[str, int] | None:
    counts = value.get(key)
    if not isinstance(counts, Mapping):
        return None
    return {name: n for name, n in counts.items() if is_text(name) and type(n) is int and 0 <= n < 2**31}


def _text_in(value: Mapping[str, Any], key: str) -> str:
    text = value.get(key)
    return text if is_text(text) else ""


def _count_in(value: Mapping[str, Any], key: str) -> int:
    count = value.get(key)
    return count if _is_count(count) else 0


def _is_count(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < 2**31


def _texts_in(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    return {name: text for name, text in value.items() if is_text(name) and is_text(text)}


def _reasons_in(value: Any) -> dict[str, Reason]:
    if not isinstance(value, Mapping):
        return {}
    read = ((name, _reason_in(fields)) for name, fields in value.items() if is_text(name))
    return {name: reason for name, reason in read if reason is not None}


def _reason_in(value: Any) -> Reason | None:
    if not isinstance(value, Mapping) or value.get("kind") not in _KINDS:
        return None
    rank, turn = value.get("rank"), value.get("turn")
    score: Any = value.get("score")
    return Reason(
        value["kind"],
        rank if _is_count(rank) else None,
        float(score) if type(score) in (int, float) and isfinite(score) else None,
        turn if _is_count(turn) else None,
    )
