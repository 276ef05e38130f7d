"""`"grow"`: the tools array is selected at a thread's first user message, and then only appended to.

For providers that cache a prompt and have no way to add a tool in mid-conversation. What the model finds is
appended to the array, and so are a few tools when the user changes the topic. Each addition makes the
provider read the whole conversation anew, so additions that nobody asked for have a budget. In between, the
array keeps its bytes and the conversation stays cached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from langchain_tool_selection._exposure.base import CallContext, Rendered, left_of
from langchain_tool_selection._selection.policy import Selection
from langchain_tool_selection._selection.record import Reveal, ThreadRecord

if TYPE_CHECKING:
    from langchain.agents.middleware.types import ModelRequest, ModelResponse
    from langchain_core.messages import AIMessage

_BUDGET = (5, 15)
"""How many tools a user message, and a thread, may add unasked: three changes. By `cost.break_even`, growing
with three changes in ten turns pays from about 12,000 tokens of tools."""

_IN_THE_ARRAY = "tools"
"""Stands for a message where an addition was made to the array instead. No message has this mark."""


@dataclass(frozen=True)
class Grow:
    """Appends to the tools array. See `Exposure` for each member."""

    name: ClassVar[str] = "grow"
    keeps: ClassVar[bool] = True
    ranks: ClassVar[bool] = True
    additions_reset_cache: ClassVar[bool] = True
    uses_call_tool: ClassVar[bool] = False

    @classmethod
    def suits(cls, context: CallContext) -> bool:
        return context.traits.caches and not context.traits.refuses_changes

    @classmethod
    def of(cls, context: CallContext) -> Grow:
        return cls()

    def max_additions(self, record: ThreadRecord) -> int:
        return left_of(_BUDGET, record)

    def render(
        self,
        request: ModelRequest[Any],
        selection: Selection,
        tools: Mapping[str, Any],
        record: ThreadRecord,
    ) -> Rendered:
        names = selection.names
        sent = request.override(tools=[tools[name] for name in names])
        before = tuple(name for name in record.visible if name in tools)
        if not before or names[: len(before)] != before:
            return Rendered(sent, names)
        # Additions are kept apart from the array, as if revealed behind no message of the conversation: a
        # model that this one stands in for goes on with its own array, and is shown them where they are due.
        reveals = record.reveals
        if added := names[len(before) :]:
            reveals = (*reveals, Reveal(_IN_THE_ARRAY, added))
        return Rendered(sent, record.array, reveals, bound=names)

    def receive(
        self, response: ModelResponse[Any] | AIMessage, tools: Mapping[str, Any]
    ) -> ModelResponse[Any] | AIMessage:
        return response
