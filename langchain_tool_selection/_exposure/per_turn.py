"""`"per_turn"`: the tools array is selected anew for each user message.

The model sees the tools for what the user wants now, and no others. That is the shortest prompt, and what
suits models without a prompt cache. With a cache it is dear: each user message changes the array, and the
provider reads the whole conversation anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from langchain_tool_selection._exposure.base import CallContext, Rendered
from langchain_tool_selection._selection.policy import Selection
from langchain_tool_selection._selection.record import ThreadRecord

if TYPE_CHECKING:
    from langchain.agents.middleware.types import ModelRequest, ModelResponse
    from langchain_core.messages import AIMessage


@dataclass(frozen=True)
class PerTurn:
    """Selects the tools array for each user message. See `Exposure` for each member."""

    name: ClassVar[str] = "per_turn"
    keeps: ClassVar[bool] = False
    ranks: ClassVar[bool] = True
    additions_reset_cache: ClassVar[bool] = True
    uses_call_tool: ClassVar[bool] = False

    @classmethod
    def suits(cls, context: CallContext) -> bool:
        return not context.traits.refuses_changes

    @classmethod
    def of(cls, context: CallContext) -> PerTurn:
        return cls()

    def max_additions(self, record: ThreadRecord) -> int:
        return 0

    def render(
        self,
        request: ModelRequest[Any],
        selection: Selection,
        tools: Mapping[str, Any],
        record: ThreadRecord,
    ) -> Rendered:
        return Rendered(request.override(tools=[tools[name] for name in selection.names]), selection.names)

    def receive(
        self, response: ModelResponse[Any] | AIMessage, tools: Mapping[str, Any]
    ) -> ModelResponse[Any] | AIMessage:
        return response
