"""How much of one request's prefix the next request keeps: what decides whether a prompt cache is read.

Providers match the prefix of a request exactly, in the order in which they render it: tools, then the
system prompt, then the messages. So a request is cut into segments in that order, and two requests share
what comes before the first segment that is not the same text. Nothing here calls a provider, and
nothing here knows how long one keeps a prefix or how short a prefix it ignores.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Literal, NamedTuple, TypeAlias

from langchain_tool_selection._tools.shapes import name_of
from langchain_tool_selection._tools.tokens import approximate_tokens

Payload: TypeAlias = Mapping[str, Any]
TokenCounter: TypeAlias = Callable[[str], int]
Part: TypeAlias = Literal["tools", "system", "messages"]

_ORDER: tuple[Part, ...] = ("tools", "system", "messages")
_MARKS = {"cache_control", "prompt_cache_breakpoint"}
"""Where a cached prefix ends. They are no part of it: moving one leaves it readable."""
_EXCERPT = 80


@dataclass(frozen=True)
class PrefixStep:
    """What one request kept of the request before it.

    Attributes:
        tokens: Tokens of this request's tools, system prompt and messages.
        kept: Tokens at its beginning that are the same as in the request before; 0 for the first. The
            most that a cache can give: one that only keeps what a mark ends may give less.
        previous: `tokens` of the request before; 0 for the first.
        changed_in: The part with the first difference; `None` if there is none. The system prompt of an
            OpenAI request is the messages that it begins with.
        changed_at: Which element of that part's list in the payload; of the request before, if this
            request has no such part any more.
        changed_tool: The name of that tool, if it is one.
        was: The request before around the first difference, about 80 characters; empty if there is none.
        now: This request at the same place.
        tool_choice_changed: Whether `tool_choice` is another than before. It is not in the prefix, but
            on Anthropic a change of it makes the messages cold.
    """

    tokens: int
    kept: int = 0
    previous: int = 0
    changed_in: Part | None = None
    changed_at: int | None = None
    changed_tool: str | None = None
    was: str = ""
    now: str = ""
    tool_choice_changed: bool = False

    @property
    def intact(self) -> bool:
        """Whether one of the two requests begins with all of the other.

        True of the first request. Also true of one that is shorter, as after a fork: then `kept` is
        all of its own tokens, and less than `previous`.
        """
        return self.changed_in is None


class PrefixReport(tuple[PrefixStep, ...]):
    """The steps of one conversation, in order. Its text is a table that shows each difference.

    Example:
        >>> assert report.intact, report
    """

    __slots__ = ()

    @property
    def intact(self) -> bool:
        """Whether every step is."""
        return all(step.intact for step in self)

    def __str__(self) -> str:
        return "\n".join(["call  tokens    kept      of  changed", *_rows(self)])

    __repr__ = __str__  # what an assertion without a message shows


def prefix_report(payloads: Iterable[Payload], count_tokens: TokenCounter | None = None) -> PrefixReport:
    """Compare each request with the one before it.

    Compared is the JSON text of every tool, system block and message block, in the provider's order and
    with the keys as they came. Not compared: cache marks, parameters such as `thinking` or
    `response_format`, and deferred tools, until a `tool_reference` brings one in; from there on its
    definition counts where it is referenced. Of an OpenAI tool that is deferred, name and description
    count; in a namespace nothing.

    Args:
        payloads: Requests of one conversation to one model, in order, as a client sends them: Anthropic
            Messages, OpenAI Chat Completions or OpenAI Responses.
        count_tokens: Tokens of a text; `None` counts four characters as one. With tiktoken:
            `lambda text: len(encoding.encode(text))`.

    Returns:
        One step for each payload.

    Raises:
        ValueError: a payload continues a response that the provider has stored, so that most of its
            prefix is not in it.
    """
    count = cache(count_tokens or (lambda text: approximate_tokens(len(text))))
    requests = [_Request([*_segments(payload)], payload.get("tool_choice")) for payload in payloads]
    return PrefixReport(map(partial(_step, count), [None, *requests], requests))


def api_of(payload: Payload) -> Literal["messages", "chat", "responses"]:
    """Return which API a payload is for: Anthropic Messages, OpenAI Chat Completions or Responses."""
    if "input" in payload:
        return "responses"
    # Only Anthropic's API insists on it; OpenAI's clients call it by another name.
    return "messages" if "max_tokens" in payload else "chat"


# -- comparing -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Segment:
    part: Part
    index: int = field(compare=False)  # in the payload's own list
    text: str
    tool: str | None = field(default=None, compare=False)


class _Request(NamedTuple):
    segments: list[_Segment]
    tool_choice: Any


def _step(count: TokenCounter, before: _Request | None, now: _Request) -> PrefixStep:
    tokens = [count(segment.text) for segment in now.segments]
    total = sum(tokens)
    if before is None:
        return PrefixStep(total)
    pairs = list(zip(before.segments, now.segments, strict=False))
    same = next((i for i, (was, is_now) in enumerate(pairs) if was != is_now), len(pairs))
    kept, previous = sum(tokens[:same]), sum(count(segment.text) for segment in before.segments)
    choice = before.tool_choice != now.tool_choice
    if same == len(pairs):
        return PrefixStep(total, kept, previous, tool_choice_changed=choice)
    was, is_now = pairs[same]
    # A tool more or less stands beside whatever comes next in the other request: the change is where
    # the earlier part of the two still goes on.
    at = min(is_now, was, key=lambda segment: _ORDER.index(segment.part))
    excerpts = _excerpts(was.text, is_now.text)
    return PrefixStep(total, kept, previous, at.part, at.index, at.tool, *excerpts, choice)


def _excerpts(was: str, now: str) -> tuple[str, str]:
    shared = zip(was, now, strict=False)
    first = next((i for i, (a, b) in enumerate(shared) if a != b), min(len(was), len(now)))
    start = max(0, first - _EXCERPT // 2)
    return was[start : start + _EXCERPT], now[start : start + _EXCERPT]


def _rows(steps: Iterable[PrefixStep]) -> Iterator[str]:
    for number, step in enumerate(steps, 1):
        share = f"{100 * step.kept / step.previous:.0f} %" if step.previous else "-"
        place = f"{step.changed_in}[{step.changed_at}] {step.changed_tool or ''}".rstrip()
        changed = (place if step.changed_in else "-") + ", tool_choice" * step.tool_choice_changed
        yield f"{number:4}  {step.tokens:6}  {step.kept:6}  {share:>6}  {changed}"
        if step.changed_in:
            yield f"{'':8}was {step.was!r}\n{'':8}now {step.now!r}"


# -- cutting a payload ---------------------------------------------------------------------------------


def _segments(payload: Payload) -> Iterator[_Segment]:
    if payload.get("previous_response_id"):
        raise ValueError(
            "a payload with previous_response_id has its prefix at the provider; "
            "make the client with use_previous_response_id=False to compare prefixes"
        )
    anthropic = api_of(payload) == "messages"
    deferred: dict[str, dict[str, Any]] = {}
    for i, tool in enumerate(payload.get("tools") or ()):
        shown = _shown(tool)
        if shown is None:
            deferred[tool["name"]] = _unmarked(tool)
        else:
            yield _Segment("tools", i, _text(shown), str(name_of(tool) or tool.get("type")))
    for i, block in enumerate(_blocks(payload.get("system") or payload.get("instructions") or [], True)):
        yield _Segment("system", i, _text(_unmarked(block)))
    messages = payload.get("messages") or payload.get("input") or ()
    opening = not anthropic
    for i, message in enumerate([{"content": messages}] if isinstance(messages, str) else messages):
        opening = opening and message.get("role") in {"system", "developer"} and "content" in message
        for text in _message(message, short=anthropic, deferred=deferred):
            yield _Segment("system" if opening else "messages", i, text)


def _message(message: Payload, *, short: bool, deferred: dict[str, dict[str, Any]]) -> Iterator[str]:
    content = _blocks(message.get("content"), short)
    if not isinstance(content, list):
        yield _text(_unmarked(message))
        return
    # Cut at blocks, because a message can grow by one: the client puts results of tools and what the
    # user says next into one message.
    yield _text({key: value for key, value in message.items() if key != "content"})
    for block in content:
        yield _text(_unmarked(block))
        # Each definition is brought in once, by its first reference.
        yield from (_text(deferred.pop(name)) for name in _references(block) if name in deferred)


def _blocks(content: Any, short: bool) -> Any:
    # Anthropic's API takes a string as short for one block of text, and its client writes it out as soon
    # as a second block joins.
    return [{"type": "text", "text": content}] if short and isinstance(content, str) else content


def _shown(tool: dict[str, Any]) -> Any:
    """Return what is in the prefix of a tool that is listed; `None` for nothing."""
    if tool.get("type") == "namespace":
        inner = [_unmarked(t) for t in tool.get("tools", ()) if not t.get("defer_loading")]
        return {**_unmarked(tool), "tools": inner}
    if not tool.get("defer_loading") or "function" in tool:  # Chat Completions defers nothing
        return _unmarked(tool)
    if tool.get("type") == "function":
        return {key: tool[key] for key in ("type", "name", "description") if key in tool}
    return None


def _references(block: Any) -> Iterator[str]:
    """Yield the names of the tools that a block of a message brings in."""
    if isinstance(block, dict) and block.get("type") == "tool_reference":
        yield str(block.get("tool_name") or block.get("name"))
    elif isinstance(block, dict) and block.get("type") != "tool_use":
        block = list(block.values())  # whatever the model wrote in a call is no reference
    if isinstance(block, list):
        for item in block:
            yield from _references(item)


def _unmarked(block: Any) -> Any:
    """Return a block without marks, and anything else as it is."""
    is_marked = isinstance(block, dict) and not _MARKS.isdisjoint(block)
    return {key: value for key, value in block.items() if key not in _MARKS} if is_marked else block


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
