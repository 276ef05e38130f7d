"""OpenAI's `additional_tools` item: a developer message in mid-conversation that holds whole definitions."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from langchain_tool_selection._exposure.transports.base import Transport, adds_tools, is_instance_of


class AdditionalTools(Transport):
    """For OpenAI's models through the Responses API, as the profile says. See `Transport` for each member."""

    name = "additional_tools"

    def can_carry(self, model: Any, name: str) -> bool:
        is_openai = is_instance_of(model, "langchain_openai.chat_models.base", "BaseChatOpenAI")
        return is_openai and adds_tools(model)

    def block(self, tool: BaseTool) -> dict[str, Any]:
        function = convert_to_openai_tool(tool)["function"]
        return {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", **function}]}
