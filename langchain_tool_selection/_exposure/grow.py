"""`"grow"`: the tools array is selected at a thread's first user message, and then only appended to.

For providers that cache a prompt and have no way to add a tool in mid-conversation. What the model finds is
appended to the array, and so are a few tools when the user changes the topic. Each addition makes the
provider read the whole conversation anew, so additions that nobody asked for have a budget. In between, the
array keeps its bytes and the conversation stays cached.
"""

from __future__ import annotations

from langchain_tool_selection._exposure.base import CallContext, OwnExposure, Rendered, Request, Tools
from langchain_tool_selection._selection.policy import Selection
from langchain_tool_selection._selection.record import Reveal, ThreadRecord

_IN_THE_ARRAY = "tools"
"""Stands for a message where an addition was made to the array instead. No message has this mark."""


class Grow(OwnExposure):
    """Appends to the tools array. See `Exposure` for each member."""

    name = "grow"
    additions_reset_cache = True
    # Three changes. By `cost.break_even`, growing with three changes in ten turns pays from about 12,000
    # tokens of tools.
    budget = (5, 15)

    @classmethod
    def suits(cls, context: CallContext) -> bool:
        return context.traits.caches and not context.traits.refuses_changes

    def render(self, request: Request, selection: Selection, tools: Tools, record: ThreadRecord) -> Rendered:
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
