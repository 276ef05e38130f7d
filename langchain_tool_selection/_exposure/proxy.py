"""`"proxy"`: the tools array holds what is always included, the search tool, and `call_tool`.

For any provider that caches, because the array never changes. A search answers with schemas, and the model
writes `call_tool(name=..., arguments=...)`. As soon as it has, the call becomes a call of the tool itself, so
that all that follows (approval, limits, retries, the tool's own runtime, traces) sees the real one. When the
model is shown the conversation again, it reads what it wrote. A call that fits no tool stays a call of
`call_tool`, whose answer says what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from langchain_tool_selection._exposure.base import CallContext, Rendered, constant_array
from langchain_tool_selection._ground.messages import state_value
from langchain_tool_selection._selection.pins import PINS, pins_in
from langchain_tool_selection._selection.policy import Selection
from langchain_tool_selection._selection.record import ThreadRecord

if TYPE_CHECKING:
    from langchain.agents.middleware.types import ModelRequest, ModelResponse
    from langchain_core.messages import AIMessage


@dataclass(frozen=True)
class Proxy:
    """Has one tool call the others. See `Exposure` for each member.

    Attributes:
        call_tool: The name of the tool that calls others.
    """

    call_tool: str

    name: ClassVar[str] = "proxy"
    keeps: ClassVar[bool] = True
    ranks: ClassVar[bool] = False
    additions_reset_cache: ClassVar[bool] = False
    uses_call_tool: ClassVar[bool] = True

    @classmethod
    def suits(cls, context: CallContext) -> bool:
        return False  # `call_tool` is registered with the agent only where this exposure was asked for

    @classmethod
    def of(cls, context: CallContext) -> Proxy | None:
        return None if context.call_tool is None else cls(context.call_tool)

    def max_additions(self, record: ThreadRecord) -> int:
        return 0

    def render(
        self,
        request: ModelRequest[Any],
        selection: Selection,
        tools: Mapping[str, Any],
        record: ThreadRecord,
    ) -> Rendered:
        from langchain_tool_selection._exposure.call_tool import wrap_calls  # noqa: PLC0415 - see `base`

        array = constant_array(selection, tools, record)
        # What was found stays wrapped when it is gone from the request: the model reads what it wrote.
        found = pins_in(state_value(request.state, PINS))
        messages = wrap_calls(request.messages, {*tools, *found}.difference(array), self.call_tool)
        return Rendered(request.override(tools=[tools[name] for name in array], messages=messages), array)

    def receive(
        self, response: ModelResponse[Any] | AIMessage, tools: Mapping[str, Any]
    ) -> ModelResponse[Any] | AIMessage:
        from langchain_tool_selection._exposure.call_tool import unwrap_calls  # noqa: PLC0415 - see `base`

        return unwrap_calls(response, tools, self.call_tool)
