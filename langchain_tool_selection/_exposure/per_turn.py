"""`"per_turn"`: the tools array is selected anew for each user message.

The model sees the tools for what the user wants now, and no others. That is the shortest prompt, and what
suits models without a prompt cache. With a cache it is dear: each user message changes the array, and the
provider reads the whole conversation anew.
"""

from __future__ import annotations

from langchain_tool_selection._exposure.base import CallContext, OwnExposure, Rendered, Request, Tools
from langchain_tool_selection._selection.policy import Selection
from langchain_tool_selection._selection.record import ThreadRecord


class PerTurn(OwnExposure):
    """Selects the tools array for each user message. See `Exposure` for each member."""

    name = "per_turn"
    keeps = False
    additions_reset_cache = True

    @classmethod
    def suits(cls, context: CallContext) -> bool:
        return not context.traits.refuses_changes

    def render(self, request: Request, selection: Selection, tools: Tools, record: ThreadRecord) -> Rendered:
        return Rendered(request.override(tools=[tools[name] for name in selection.names]), selection.names)
