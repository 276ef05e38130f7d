"""What to search for, read from the conversation.

The newest message of role "user" is not always what the user said last: a summary of older messages
and a pinned skill come in that role too. And what the user said last is not always a request: "do it",
"and in Berlin?" mean nothing without the turn before. So a conversation is read as turns, each opened
by something that a user wrote, and a query is the newest turn's text, plus what the model said before it
and earlier turns, at weights that fall with their age and with how much the newest text says by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_tool_selection._ground.digest import digest
from langchain_tool_selection._ground.messages import (
    field_of,
    has_user_role,
    is_from_model,
    is_from_user,
    text_of,
    tool_calls,
)
from langchain_tool_selection._ranking.protocol import Query
from langchain_tool_selection._ranking.text import query_terms

_HISTORY_WEIGHT = 0.5
"""Weight of the previous user turn when the newest text has no content word of its own."""

_REPLY_WEIGHT = 0.4
"""Weight, likewise, of what the model said just before: "At nine" answers "When shall I book it?"."""

_REPLY_CHARACTERS = 400
"""How much of the end of a reply is read: a question comes last, after whatever was reported."""

_HISTORY_HALF_TERMS = 4
"""So many content words in the newest text halve the weight of all earlier ones."""

_HISTORY_DECAY = 0.7
"""Each turn further back counts this much of the one after it."""

_SHIFT_TERMS = 2
"""Content words that a message needs before it can be about something new: "do it" has none."""

_HISTORY_TURNS = 5
"""Earlier turns that are read; beyond them the decay leaves nothing that matters."""


@dataclass(frozen=True)
class Turn:
    """What a user wrote, and what was called from there to the next thing that a user wrote.

    Attributes:
        text: The words of the message; empty for an image alone, or before the first user message.
        key: Identifies the message: the same for the same text in the same message. Empty if none.
        calls: Names of the tools that the model called in this turn, in order.
        reply: The end of what the model last wrote in this turn: where it asks back, if it does.
    """

    text: str = ""
    key: str = ""
    calls: tuple[str, ...] = ()
    reply: str = ""


def read_turns(messages: Iterable[Any]) -> list[Turn]:
    """Split a conversation into turns, the newest first.

    Args:
        messages: LangChain messages or `{"role", "content"}` dicts, the oldest first.

    Returns:
        One turn for each message that a user wrote. Calls before the first of them belong to a turn
        without text or key, which comes last, if there are any.
    """
    turns = [Turn()]
    for message in messages:
        if is_from_user(message):
            text = text_of(message)
            turns.append(Turn(text, digest(str(field_of(message, "id") or ""), text)))
        elif is_from_model(message):
            calls = (*turns[-1].calls, *(name for name, _ in tool_calls(message)))
            reply = text_of(message)[-_REPLY_CHARACTERS:] or turns[-1].reply
            turns[-1] = replace(turns[-1], calls=calls, reply=reply)
    return [turn for turn in reversed(turns) if turn.key or turn.calls]


def conversation_query(turns: Sequence[Turn]) -> Query:
    """Return what to search for at the newest of `turns` (newest first, as from `read_turns`)."""
    texts = [turn.text for turn in turns]
    if not texts:
        return Query()
    parts = [(texts[0], 1.0)] if texts[0].strip() else []
    dependence = _HISTORY_HALF_TERMS / (_HISTORY_HALF_TERMS + len(query_terms(texts[0])))
    if len(turns) > 1 and turns[1].reply.strip():
        parts.append((turns[1].reply, _REPLY_WEIGHT * dependence))
    weight = _HISTORY_WEIGHT * dependence
    for text in texts[1 : 1 + _HISTORY_TURNS]:
        if text.strip():
            parts.append((text, weight))
        weight *= _HISTORY_DECAY
    # Whatever counts most counts in full, or a threshold on scores would mean something else.
    full = max((weight for _, weight in parts), default=1.0)
    return Query(tuple((text, weight / full) for text, weight in parts))


def is_topic_shift(turns: Sequence[Turn], best: Sequence[str], shown: Collection[str]) -> bool:
    """Whether the newest user message turns to something that the tools shown so far are not for.

    Args:
        turns: The conversation, the newest turn first.
        best: The tools that match it, best first.
        shown: The tools that the model has been shown.

    Returns:
        True if the message says enough by itself and its best tool has not been shown. A message
        without a match, or one that leans on what came before, is no shift.
    """
    if len(turns) < 2 or len(query_terms(turns[0].text)) < _SHIFT_TERMS:
        return False
    return bool(best) and best[0] not in shown


def summary_query(messages: Sequence[Any]) -> Query:
    """Return a query from the newest message that poses as the user's, for want of a real one."""
    posing = map(text_of, filter(has_user_role, reversed(messages)))
    return Query.of(next(filter(str.strip, posing), ""))
