"""Deferred tools on Chat Completions: references in the answers of searches, as Anthropic has them.

Baseten documents `defer_loading` and `tool_reference` for the open models that it serves, and OpenAI's client
passes both on. All else is as with Anthropic's references.
"""

from __future__ import annotations

from typing import Any

from langchain_tool_selection._exposure.transports.base import is_openai_client
from langchain_tool_selection._exposure.transports.tool_reference import ToolReference
from langchain_tool_selection._ground.models import host_of


class DeferredTools(ToolReference):
    """For models that Baseten serves, through OpenAI's client. See `Transport` for each member."""

    name = "deferred_tools"

    def can_send(self, model: Any) -> bool:
        on_chat_completions = is_openai_client(model) and not model.use_responses_api
        return on_chat_completions and host_of(model).endswith(".baseten.co")

    def can_carry(self, model: Any, name: str) -> bool:
        return self.can_send(model)
