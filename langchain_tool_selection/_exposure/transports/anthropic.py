"""What Anthropic's two transports share: the client, which tools the API takes, and their definition."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import BaseTool

from langchain_tool_selection._exposure.transports.base import Transport, is_instance_of
from langchain_tool_selection._ground.log import WarnOnce

_REFUSED = ("oneOf", "anyOf", "allOf")
"""Keys that the API does not take at the root of a tool's schema; one such tool fails the request."""

_warn_once = WarnOnce()


class AnthropicTransport(Transport):
    """A form of the Claude API, through LangChain's client of it."""

    def can_carry(self, model: Any, name: str) -> bool:
        return is_instance_of(model, "langchain_anthropic.chat_models", "ChatAnthropic")

    def takes(self, tool: Any) -> bool:
        """Whether the API takes the tool. Logs once for each tool that it refuses."""
        if not isinstance(tool, BaseTool):
            return False
        if not any(key in anthropic_definition(tool).get("input_schema", ()) for key in _REFUSED):
            return True
        refused = "%r is not shown: Anthropic takes no oneOf, anyOf or allOf at a schema's root"
        _warn_once(tool.name, refused, tool.name)
        return False


def anthropic_definition(tool: BaseTool) -> dict[str, Any]:
    """Return the tool as LangChain's client sends it."""
    from langchain_anthropic import convert_to_anthropic_tool  # noqa: PLC0415 - loaded: the model is of it

    return dict(convert_to_anthropic_tool(tool))
