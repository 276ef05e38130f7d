"""`"proxy"`: the tools array holds what is always included, the search tool, and `call_tool`.

For any provider that caches, because the array never changes. A search answers with schemas, and the model
writes `call_tool(name=..., arguments=...)`. As soon as it has, the call becomes a call of the tool itself, so
that all that follows (approval, limits, retries, the tool's own runtime, traces) sees the real one. When the
model is shown the conversation again, it reads what it wrote. A call that fits no tool stays a call of
`call_tool`, whose answer says what is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

from langchain_tool_selection._exposure.base import Answer, CallContext, OwnExposure, Rendered, Request, Tools
from langchain_tool_selection._ground.messages import state_value
from langchain_tool_selection._selection.pins import PINS, pins_in
from langchain_tool_selection._selection.policy import Selection
from langchain_tool_selection._selection.record import ThreadRecord


@dataclass(frozen=True)
class Proxy(OwnExposure):
    """Has one tool call the others. See `Exposure` for each member.

    `"auto"` never takes it: `call_tool` is registered with the agent only where it was asked for.

    Attributes:
        call_tool: The name of the tool that calls others.
    """

    call_tool: str

    name = "proxy"
    ranks = False
    uses_call_tool = True
    quotes_schemas = True

    @classmethod
    def of(cls, context: CallContext) -> Proxy | None:
        return None if context.call_tool is None else cls(context.call_tool)

    def render(self, request: Request, selection: Selection, tools: Tools, record: ThreadRecord) -> Rendered:
        from langchain_tool_selection._exposure.call_tool import wrap_calls  # noqa: PLC0415 - see `base`

        array = self.constant_array(selection, tools, record)
        # What was found stays wrapped when it is gone from the request: the model reads what it wrote.
        found = pins_in(state_value(request.state, PINS))
        messages = wrap_calls(request.messages, {*tools, *found}.difference(array), self.call_tool)
        return Rendered(request.override(tools=[tools[name] for name in array], messages=messages), array)

    def receive(self, response: Answer, tools: Tools) -> Answer:
        from langchain_tool_selection._exposure.call_tool import unwrap_calls  # noqa: PLC0415 - see `base`

        return unwrap_calls(response, tools, self.call_tool)
