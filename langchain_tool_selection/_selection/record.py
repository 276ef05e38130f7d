"""What was decided for a thread, as it stands in graph state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_tool_selection._ground.messages import state_value
from langchain_tool_selection._selection.pins import is_text, pins_in

THREAD = "tool_selection_thread"

_VERSION = 1


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

    @property
    def visible(self) -> tuple[str, ...]:
        """What the thread can see: the tools array, and behind it what was added, in order."""
        return tuple(dict.fromkeys([*self.array, *(name for r in self.reveals for name in r.names)]))

    @property
    def was_ranked(self) -> bool:
        """Whether the user turn's tools were chosen: something was hidden, and not behind a proxy."""
        return bool(self.catalog) and not self.is_proxied

    @property
    def is_proxied(self) -> bool:
        """Whether the model calls what it finds through `call_tool`."""
        return self.exposure == "proxy"

    @property
    def last_array(self) -> tuple[str, ...]:
        """The tools array of the last model call, in order."""
        if self.exposure in ("", "per_turn"):
            return self.shown
        return self.visible if self.exposure == "grow" else self.array

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
        }

    @classmethod
    def from_state(cls, state: Any) -> ThreadRecord | None:
        """Read the record from graph state; `None` if there is none that this version understands."""
        value = state_value(state, THREAD)
        if not isinstance(value, Mapping) or value.get("version") != _VERSION:
            return None
        added = value.get("added")
        return cls(
            key=_text_in(value, "key"),
            matched=tuple(pins_in(value.get("matched"))),
            shown=tuple(pins_in(value.get("shown"))),
            catalog=_text_in(value, "catalog"),
            exposure=_text_in(value, "exposure"),
            array=tuple(pins_in(value.get("array"))),
            reveals=_reveals_in(value.get("reveals")),
            added=added if isinstance(added, int) and 0 <= added < 2**31 else 0,
            start=_text_in(value, "start"),
            overview=_counts_in(value, "overview"),
        )


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
