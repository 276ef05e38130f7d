"""Anthropic's `tool_reference` blocks: the answer of a search names tools, and the provider expands them.

All tools are in the array, marked as deferred, so that their definitions are no part of the prompt until one
is referenced. References live in the answers of searches. Where no search has found a tool that is to be
added, a search for it is staged: a call of the search tool and its answer, as if the model had made it. A
model that thinks cannot be told so, because its provider wants each of its calls to come with the thought
behind it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool

from langchain_tool_selection._exposure.known_models import TOOL_REFERENCE
from langchain_tool_selection._exposure.transports.anthropic import AnthropicTransport
from langchain_tool_selection._exposure.transports.base import OURS, Place, answers_up_to
from langchain_tool_selection._ground.digest import digest
from langchain_tool_selection._ground.messages import message_mark
from langchain_tool_selection._selection.pins import found_in


class ToolReference(AnthropicTransport):
    """For Claude models with tool search. See `Transport` for each member."""

    name = "tool_reference"
    lives_in_searches = True

    def can_carry(self, model: Any, name: str) -> bool:
        return super().can_carry(model, name) and bool(TOOL_REFERENCE.names.match(name))

    def deferred(self, tools: Iterable[BaseTool]) -> Sequence[BaseTool]:
        return [tool.model_copy(update={"extras": _deferring(tool.extras or {})}) for tool in tools]

    def additions(self, messages: list[Any], place: Place, search_tool: str | None) -> list[Any]:
        due = _refer_in_answers(messages, place, search_tool)
        if not due or search_tool is None:
            return []
        return _staged_search(due, search_tool, message_mark(messages[place.anchor]))

    def is_rewritten(self, message: Any) -> bool:
        return isinstance(message, ToolMessage) and any(
            isinstance(block, Mapping) and block.get("type") == "tool_reference" for block in message.content
        )

    def without_others(self, message: Any, names: Collection[str | None]) -> Any:
        content = [block for block in message.content if block["tool_name"] in names]
        return message.model_copy(update={"content": content or "Not available."})


def _refer_in_answers(messages: list[Any], place: Place, search_tool: str | None) -> list[str]:
    """Put references into the answers of the place's searches; return the names that are in none of them."""
    due = [tool.name for tool in place.tools]
    answers = [*answers_up_to(messages, place.anchor)]
    for position in answers:
        if names := [name for name in found_in(messages[position]) if name in due]:
            messages[position] = _answer(messages[position], names)
            due = [name for name in due if name not in names]
    for position in answers:
        # Other middleware has cut this answer, and with it what was found.
        if due and messages[position].name == search_tool and messages[position].artifact is None:
            messages[position], due = _answer(messages[position], due), []
    return due


def _answer(message: ToolMessage, names: Sequence[str]) -> ToolMessage:
    references = [{"type": "tool_reference", "tool_name": name} for name in names]
    return message.model_copy(update={"content": references})


def _staged_search(names: Sequence[str], search_tool: str, anchor: str) -> list[Any]:
    """Return a search for exactly these tools, and its answer, as if the model had made it."""
    wanted = {"name": search_tool, "args": {"names": list(names)}, "id": f"toolu_{digest(anchor, *names)}"}
    call = AIMessage(content="", tool_calls=[wanted], additional_kwargs={**OURS})
    answer = ToolMessage(content="", tool_call_id=wanted["id"], name=search_tool, additional_kwargs={**OURS})
    return [call, _answer(answer, names)]


def _deferring(extras: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in extras.items() if key != "cache_control"}
    return {**kept, "defer_loading": True}
