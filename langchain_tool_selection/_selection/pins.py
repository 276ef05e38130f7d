"""The pins of a thread: names of tools that a search found, and what a checkpoint may hold in their place."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, TypeGuard

from langchain_tool_selection._ground.messages import state_value, tool_calls

PINS = "tool_selection_pinned"

SCHEMAS = "tool_selection_schemas"
"""Under this an answer's artifact names the tools whose schemas it quotes: what the model has read of them
stands and goes with the answer, after a compaction too."""

_MAX_NAME = 256
"""Longer strings are no tool's name: providers stop at 64 or 128 characters."""

_HALF = re.compile("[\ud800-\udfff]")


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
        value = sorted(filter(is_text, value))
    if not isinstance(value, list | tuple):
        return []
    return [name for name in value if is_text(name) and 0 < len(name) <= _MAX_NAME]


def is_text(value: Any) -> TypeGuard[str]:
    """Whether this is text that a checkpointer can write: JSON can hold half of a character."""
    return isinstance(value, str) and (value.isascii() or _HALF.search(value) is None)


class Pins(NamedTuple):
    """The pins of a thread at one call.

    Attributes:
        kept: Those to go on with, in the order they came.
        evicted: What was dropped of those that are present, because there were more than allowed.
    """

    kept: list[str]
    evicted: tuple[str, ...] = ()


def current_pins(state: Any, is_new: bool, present: Collection[str], max_pins: int) -> Pins:
    """Return the pins to go on with, and what of the `present` was too many.

    The least recently found or used go first; of what one search found, the worst match. Pins that are not
    present now, because of a role or of a server that is down, take no place from those that are: they are
    counted apart, and wait.
    """
    pins = pins_in(state_value(state, PINS))
    messages = state_value(state, "messages") or []
    if not pins and is_new:
        # An agent without memory of its own (a subgraph, or an app that passes the history along) still
        # has the answers of its searches in the messages.
        pins = [name for message in messages for name in found_in(message)]
    pins = list(dict.fromkeys(pins))
    if len(pins) <= max_pins:
        return Pins(pins)
    seen: dict[str, int] = {}
    for position, message in enumerate(messages):
        for name in [*found_in(message), *(name for name, _ in tool_calls(message))]:
            seen[name] = position
    age = {name: (seen[name], -index) if name in seen else (-1, index) for index, name in enumerate(pins)}
    oldest = sorted(pins, key=lambda name: age[name])
    evicted = [name for name in oldest if name in present][:-max_pins]
    forgotten = [name for name in oldest if name not in present][:-max_pins]
    gone = {*evicted, *forgotten}
    return Pins([name for name in pins if name not in gone], tuple(evicted))


def found_in(message: Any) -> list[str]:
    """Return the tools that the answer of a search found; none for any other message."""
    return _named_in(message, PINS)


def schemas_in(message: Any) -> list[str]:
    """Return the tools whose schemas an answer quotes; none for any other message."""
    return _named_in(message, SCHEMAS)


def _named_in(message: Any, key: str) -> list[str]:
    artifact = getattr(message, "artifact", None)
    return pins_in(artifact.get(key)) if isinstance(artifact, Mapping) else []
