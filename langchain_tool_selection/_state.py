"""What the middleware keeps in graph state, and how writes to it are merged.

Two traps make this module look the way it does:

- LangGraph takes a reducer from the *last* item of `Annotated` only. One place further left, it is
  ignored without a word, and two discoveries in one message end the run.
- LangChain and deepagents resolve these annotations at run time. A name that only a type checker can
  see would silently turn a private key into one that leaks to subagents. Hence no postponed
  annotations here, and no import under TYPE_CHECKING.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired, TypeGuard

from langchain.agents.middleware.types import AgentState, PrivateStateAttr

from langchain_tool_selection._query import tool_calls
from langchain_tool_selection._usage import CacheUsage

PINS = "tool_selection_pinned"
THREAD = "tool_selection_thread"
USAGE = "tool_selection_usage"

_MAX_NAME = 256
"""Longer strings are no tool's name: providers stop at 64 or 128 characters."""

_HALF = re.compile("[\ud800-\udfff]")

_VERSION = 1


def merge_pins(current: Any, update: Any) -> list[str]:
    """Append new pins to those there are: each once, in the order they came.

    Accepts whatever a checkpoint or a person may have put there. A string counts as one name; what is
    no name is passed over. To remove pins, write `Overwrite([...])`.
    """
    return list(dict.fromkeys([*pins_in(current), *pins_in(update)]))


def pins_in(value: Any) -> list[str]:
    """Return the tool names in `value`, whatever it is."""
    if isinstance(value, str):
        value = [value]
    if isinstance(value, set | frozenset):
        # A set has no order of its own, and hash order differs from one process to the next.
        value = sorted(filter(_is_text, value))
    if not isinstance(value, list | tuple):
        return []
    return [name for name in value if _is_text(name) and 0 < len(name) <= _MAX_NAME]


def _is_text(value: Any) -> TypeGuard[str]:
    # JSON can hold half of a character, which no checkpointer can write.
    return isinstance(value, str) and (value.isascii() or _HALF.search(value) is None)


def state_value(state: Any, key: str) -> Any:
    """Return a key of graph state, which may be a mapping or a model; `None` if it is not there."""
    return state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)


def current_pins(
    state: Any, record: "ThreadRecord | None", present: Collection[str], max_pins: int
) -> tuple[list[str], tuple[str, ...]]:
    """Return the pins to go on with, in the order they came, and what of the `present` was too many.

    The least recently found or used go first; of what one search found, the worst match. Pins that are not
    present now, because of a role or of a server that is down, take no place from those that are: they are
    counted apart, and wait.
    """
    pins = pins_in(state_value(state, PINS))
    messages = state_value(state, "messages") or []
    if not pins and record is None:
        # An agent without memory of its own (a subgraph, or an app that passes the history along) still
        # has the answers of its searches in the messages.
        pins = [name for message in messages for name in found_in(message)]
    pins = list(dict.fromkeys(pins))
    if len(pins) <= max_pins:
        return pins, ()
    seen: dict[str, int] = {}
    for position, message in enumerate(messages):
        for name in [*found_in(message), *(name for name, _ in tool_calls(message))]:
            seen[name] = position
    age = {name: (seen[name], -index) if name in seen else (-1, index) for index, name in enumerate(pins)}
    oldest = sorted(pins, key=lambda name: age[name])
    evicted = [name for name in oldest if name in present][:-max_pins]
    forgotten = [name for name in oldest if name not in present][:-max_pins]
    gone = {*evicted, *forgotten}
    return [name for name in pins if name not in gone], tuple(evicted)


def found_in(message: Any) -> list[str]:
    artifact = getattr(message, "artifact", None)
    return pins_in(artifact.get(PINS)) if isinstance(artifact, Mapping) else []


def last_write(_current: Any, update: Any) -> Any:
    """Keep the newest write."""
    return update


@dataclass(frozen=True)
class Reveal:
    """Tools that were added to a conversation behind one of its messages.

    Attributes:
        anchor: The message, as `_query.message_mark` identifies it.
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
    def from_state(cls, state: Any) -> "ThreadRecord | None":
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
    return {name: n for name, n in counts.items() if _is_text(name) and type(n) is int and 0 <= n < 2**31}


def _text_in(value: Mapping[str, Any], key: str) -> str:
    text = value.get(key)
    return text if _is_text(text) else ""


def add_usage(current: Any, update: Any) -> dict[str, int]:
    """Add what a model call used to what the thread has used."""
    return (CacheUsage.from_state(current) + CacheUsage.from_state(update)).to_state()


def thread_usage(state: Any) -> CacheUsage:
    """Return what the model calls of a thread used, as far as the provider reported it.

    Args:
        state: Values of graph state, such as `agent.get_state(config).values`. What a compaction took out
            of the messages still counts.
    """
    return CacheUsage.from_state(state_value(state, USAGE))


class ToolSelectionState(AgentState[Any]):
    """The agent's state with what tool selection remembers. Private: no input, no output, no subagent."""

    tool_selection_pinned: NotRequired[Annotated[list[str], PrivateStateAttr, merge_pins]]
    tool_selection_thread: NotRequired[Annotated[dict[str, Any], PrivateStateAttr, last_write]]
    tool_selection_usage: NotRequired[Annotated[dict[str, Any], PrivateStateAttr, add_usage]]
