"""OpenAI's `additional_tools` item: a developer message in mid-conversation that holds whole definitions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from langchain_tool_selection._exposure.transports.base import (
    Place,
    adds_tools,
    is_instance_of,
    with_blocks,
)


@dataclass(frozen=True)
class AdditionalTools:
    """For OpenAI's models through the Responses API, as the profile says. See `Transport` for each member."""

    name: ClassVar[str] = "additional_tools"
    lives_in_searches: ClassVar[bool] = False

    def can_carry(self, model: Any, name: str) -> bool:
        return adds_tools(model) and is_instance_of(
            model, "langchain_openai.chat_models.base", "BaseChatOpenAI"
        )

    def takes(self, tool: Any) -> bool:
        return isinstance(tool, BaseTool)

    def deferred(self, tools: Iterable[BaseTool]) -> Sequence[BaseTool]:
        return ()

    def write(self, messages: Sequence[Any], places: Sequence[Place], search_tool: str | None) -> list[Any]:
        return with_blocks(messages, places, _block)

    def is_rewritten(self, message: Any) -> bool:
        return False

    def without_others(self, message: Any, names: Collection[str | None]) -> Any:
        return message


def _block(tool: BaseTool) -> dict[str, Any]:
    function = convert_to_openai_tool(tool)["function"]
    return {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", **function}]}
