"""OpenAI's `additional_tools` item: a developer message in mid-conversation that holds whole definitions."""

from __future__ import annotations

from typing import Any

from langchain_tool_selection._exposure.known_models import ADDITIONAL_TOOLS
from langchain_tool_selection._exposure.transports.base import (
    Transport,
    adds_tools,
    is_instance_of,
    is_openai_client,
)
from langchain_tool_selection._tools.shapes import unwrapped


class AdditionalTools(Transport):
    """For OpenAI's models through the Responses API, as the profile says. See `Transport` for each member."""

    name = "additional_tools"

    def can_send(self, model: Any) -> bool:
        return is_openai_client(model) and (model.use_responses_api is True or adds_tools(model))

    def can_carry(self, model: Any, name: str) -> bool:
        if not is_openai_client(model):
            return False
        # The profile says no for Azure, whose Responses endpoint takes the item all the same.
        is_azure = is_instance_of(model, "langchain_openai.chat_models.azure", "AzureChatOpenAI")
        takes_responses = is_azure and model.use_responses_api is True
        return adds_tools(model) or (takes_responses and bool(ADDITIONAL_TOOLS.names.match(name)))

    def block(self, definition: dict[str, Any]) -> dict[str, Any]:
        tool = {"type": "function", **unwrapped(definition)}
        return {"type": "additional_tools", "role": "developer", "tools": [tool]}
