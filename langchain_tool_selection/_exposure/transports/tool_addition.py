"""Anthropic's `tool_addition` blocks: a system message in mid-conversation that holds whole definitions."""

from __future__ import annotations

from typing import Any

from langchain_tool_selection._exposure.transports.anthropic import AnthropicTransport
from langchain_tool_selection._exposure.transports.base import adds_tools


class ToolAddition(AnthropicTransport):
    """For Claude models whose profile says `mid_conversation_tools`. See `Transport` for each member."""

    name = "tool_addition"

    def can_carry(self, model: Any, name: str) -> bool:
        return super().can_carry(model, name) and adds_tools(model)

    def block(self, definition: dict[str, Any]) -> dict[str, Any]:
        unmarked = {key: value for key, value in definition.items() if key != "cache_control"}
        return {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": unmarked}}
