"""Anthropic's `tool_addition` blocks: a system message in mid-conversation that holds whole definitions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from langchain_core.tools import BaseTool

from langchain_tool_selection._exposure.transports.anthropic import (
    anthropic_definition,
    is_anthropic,
    is_taken_by_anthropic,
)
from langchain_tool_selection._exposure.transports.base import Place, adds_tools, with_blocks


@dataclass(frozen=True)
class ToolAddition:
    """For Claude models whose profile says `mid_conversation_tools`. See `Transport` for each member."""

    name: ClassVar[str] = "tool_addition"
    lives_in_searches: ClassVar[bool] = False

    def can_carry(self, model: Any, name: str) -> bool:
        return is_anthropic(model) and adds_tools(model)

    def takes(self, tool: Any) -> bool:
        return is_taken_by_anthropic(tool)

    def deferred(self, tools: Iterable[BaseTool]) -> Sequence[BaseTool]:
        return ()

    def write(self, messages: Sequence[Any], places: Sequence[Place], search_tool: str | None) -> list[Any]:
        return with_blocks(messages, places, _block)

    def is_rewritten(self, message: Any) -> bool:
        return False

    def without_others(self, message: Any, names: Collection[str | None]) -> Any:
        return message


def _block(tool: BaseTool) -> dict[str, Any]:
    definition = anthropic_definition(tool)
    definition.pop("cache_control", None)
    return {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}}
