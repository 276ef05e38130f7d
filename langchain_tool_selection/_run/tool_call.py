"""A tool call on its way to the tool: whether the model was shown it, and what to answer if it stops here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command

from langchain_tool_selection._ground.messages import is_from_user, state_value
from langchain_tool_selection._ground.untrusted import one_line
from langchain_tool_selection._ranking.query import Turn, read_turns
from langchain_tool_selection._selection.pins import PINS, found_in, pins_in
from langchain_tool_selection._selection.record import ThreadRecord

_LISTED = 40
"""How many of its tools a model is reminded of when it calls another."""


class ToolCall:
    """One call of one tool.

    Args:
        request: The call as it came.
        permitted: What of the registered tools the run may use.
        search_tool: The search tool's name; `None` without one.
    """

    def __init__(
        self, request: ToolCallRequest, permitted: Iterable[BaseTool], search_tool: str | None
    ) -> None:
        self.request = request
        self.name: str = request.tool_call["name"]
        self.id: str | None = request.tool_call["id"]
        self._permitted = permitted
        self._search_tool = search_tool
        self._record = ThreadRecord.from_state(request.state)

    def was_shown(self) -> bool:
        """Whether the last model call was shown the tool: always so if it was shown all there are."""
        if self._record is None or not self._record.catalog or self.name in self._record.shown:
            return True
        # Behind a proxy a tool is shown by finding it.
        return self._record.is_proxied and self.name in pins_in(state_value(self.request.state, PINS))

    def found_for(self, result: ToolMessage | Command[Any]) -> Sequence[Turn]:
        """Return the conversation if its newest request had this tool found by a search, and it worked."""
        if isinstance(result, ToolMessage) and result.status == "error":
            return ()
        messages = state_value(self.request.state, "messages") or []
        for message in reversed(messages):
            if is_from_user(message):
                return ()
            if self.name in found_in(message):
                return read_turns(messages)
        return ()

    def is_unknown(self, result: ToolMessage | Command[Any]) -> bool:
        """Whether this is LangGraph's answer to a call of a tool that is not registered."""
        registered = ", ".join(tool.name for tool in self.request.runtime.tools)
        listing = f" is not a valid tool, try one of [{registered}]."
        return isinstance(result, ToolMessage) and listing in str(result.content)

    def unknown(self) -> ToolMessage:
        """Answer as if there was no such tool: the same whether there is none or it is refused."""
        return self._answer(f"There is no tool named `{one_line(self.name, 80)}`.")

    def not_shown(self) -> ToolMessage:
        """Answer that the tool has to be found first."""
        return self._answer(f"`{one_line(self.name, 80)}` is not in your list, so it was not called.")

    def _answer(self, text: str) -> ToolMessage:
        shown = self._record.shown if self._record and self._record.catalog else ()
        # What was shown may be refused since.
        gone = {tool.name for tool in self.request.runtime.tools} - {tool.name for tool in self._permitted}
        others = [one_line(name, 80) for name in shown if name not in {self.name, *gone}]
        if others:
            text += f" Your tools: {', '.join(others[:_LISTED])}."
        if self._search_tool in shown:
            text += f" Find others with {self._search_tool}."
        return ToolMessage(text, name=self.name, tool_call_id=self.id or "", status="error")
