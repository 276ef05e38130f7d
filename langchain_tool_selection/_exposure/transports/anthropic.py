"""What Anthropic's two transports share: the client that carries their blocks."""

from __future__ import annotations

from typing import Any

from langchain_tool_selection._exposure.transports.base import Transport, is_instance_of


class AnthropicTransport(Transport):
    """A form of the Claude API, through LangChain's client of it."""

    def can_send(self, model: Any) -> bool:
        return is_instance_of(model, "langchain_anthropic.chat_models", "ChatAnthropic")

    def can_carry(self, model: Any, name: str) -> bool:
        return self.can_send(model)
