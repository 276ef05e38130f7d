"""A tool call on its way to the tool: whether it is made, and what is answered if it is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.types import Command

from langchain_tool_selection._access.audit import Audit
from langchain_tool_selection._access.boundary import Access, Boundary
from langchain_tool_selection._exposure.registry import quotes_schemas, was_stub
from langchain_tool_selection._ground.log import WarnOnce
from langchain_tool_selection._ground.messages import is_from_user, state_value
from langchain_tool_selection._ranking.query import Turn, read_turns
from langchain_tool_selection._run.answers import answer_to_stub, no_such_tool, not_shown, with_alternatives
from langchain_tool_selection._selection.pins import PINS, SCHEMAS, found_in, pins_in, schemas_in
from langchain_tool_selection._selection.record import ThreadRecord
from langchain_tool_selection._tools.arguments import mistake_in, unknown_in
from langchain_tool_selection._tools.definitions import Definitions
from langchain_tool_selection._tools.documents import ToolDocument
from langchain_tool_selection._tools.offered import OfferedTools

Verdict = Literal["called", "access", "not shown", "arguments", "unknown"]
"""What becomes of a call: it is made, or why it is not."""


@dataclass(frozen=True, eq=False)
class ToolCallReader:
    """Reads tool calls.

    Attributes:
        access: Narrows what middleware behind this one, and the tool, may see.
        audit: Is told what was called and refused.
        offered: The tools that requests offer; our own may always be called.
        definitions: Has the schemas that answers quote.
        document_of: Reads a tool.
        search_tool: The search tool's name; `None` without one.
        enforce: Whether a tool that the model was not shown is refused.
        warn_once: Says what other middleware forgot.
    """

    access: Access
    audit: Audit
    offered: OfferedTools
    definitions: Definitions
    document_of: Callable[[Any], ToolDocument]
    search_tool: str | None
    enforce: bool
    warn_once: WarnOnce = field(default_factory=WarnOnce)

    def read_tool_call(self, request: ToolCallRequest, boundary: Boundary) -> ToolCall:
        """Return a call with what becomes of it."""
        record = ThreadRecord.from_state(request.state)
        narrowed = self.access.narrowed(request, boundary)
        verdict: Verdict = "called"
        if request.tool is not None and not boundary.permits(request.tool):
            verdict = "access"
        elif self.enforce and request.tool is not None and request.tool not in self.offered.own:
            verdict = "called" if _was_shown(request, record) else "not shown"
        mistake = ""
        if verdict == "called" and request.tool not in self.offered.own:
            mistake = _mistake_in(request, record)
        return ToolCall(request, narrowed, record, "arguments" if mistake else verdict, mistake, self)


@dataclass(frozen=True, eq=False)
class ToolCall:
    """One call of one tool.

    Attributes:
        original: The call as it came.
        request: The call as middleware behind this one may see it.
        record: What the thread remembers.
        verdict: What becomes of it, as far as that is known before it is made.
        mistake: What is wrong with its arguments, where the model could not know better; empty if nothing is.
    """

    original: ToolCallRequest
    request: ToolCallRequest
    record: ThreadRecord
    verdict: Verdict
    mistake: str
    _reader: ToolCallReader

    @property
    def name(self) -> str:
        """The name that the model called."""
        return str(self.original.tool_call["name"])

    def refusal(self) -> ToolMessage | None:
        """Return what is answered if the call is not made, and write so; `None` if it is made."""
        if self.verdict == "arguments":
            return self._answered_with_schema()
        return None if self.verdict == "called" else self._refused(self.verdict)

    @contextmanager
    def audited(self) -> Iterator[None]:
        """Write that the tool is called, while it runs."""
        # Before it runs: a tool that fails half way has done half of its work.
        if self.original.tool is not None:
            self._reader.audit.call("called", self.original)
        try:
            yield
        except BaseException:
            if self.original.tool is None:  # as below: what is no tool at all raises nothing
                self._reader.audit.call("called", self.original)
            raise

    def result(self, answer: ToolMessage | Command[Any]) -> ToolMessage | Command[Any]:
        """Return what the model is answered, given what the call came to."""
        if self._is_unknown(answer):
            # LangGraph's own answer lists all registered tools, those that are hidden or refused too.
            return self._refused("unknown")
        if self.original.tool is None:  # other middleware knew what to run
            self._reader.audit.call("called", self.original)
        return answer

    def found_for(self, result: ToolMessage | Command[Any]) -> Sequence[Turn]:
        """Return the conversation if its newest request had this tool found by a search, and it worked."""
        if isinstance(result, ToolMessage) and result.status == "error":
            return ()
        messages = state_value(self.original.state, "messages") or []
        for message in reversed(messages):
            if is_from_user(message):
                return ()
            if self.name in found_in(message):
                return read_turns(messages)
        return ()

    def _is_unknown(self, answer: ToolMessage | Command[Any]) -> bool:
        """Whether this is LangGraph's answer to a call of a tool that is not registered."""
        registered = ", ".join(tool.name for tool in self.original.runtime.tools)
        listing = f" is not a valid tool, try one of [{registered}]."
        return isinstance(answer, ToolMessage) and listing in str(answer.content)

    def _answered_with_schema(self) -> ToolMessage:
        reader, tool = self._reader, self.original.tool
        reader.audit.call("refused", self.original, "arguments")
        document = reader.document_of(tool)
        return ToolMessage(
            answer_to_stub(tool, document, self.mistake, reader.definitions),  # type: ignore[arg-type]  # a stub's
            name=self.name,
            tool_call_id=self.original.tool_call["id"] or "",
            status="error",
            artifact={SCHEMAS: [self.name]},
        )

    def _refused(self, why: Verdict) -> ToolMessage:
        self._reader.audit.call("refused", self.original, why)
        shown = self.record.shown if self.record.hides else ()
        # What was shown may be refused since.
        permitted = {tool.name for tool in self.request.runtime.tools}
        gone = {tool.name for tool in self.original.runtime.tools} - permitted
        if why == "unknown" and self.name in self._reader.offered.latest.tools:
            # LangChain refuses such a tool at the model call unless some middleware wraps tool calls. We do.
            message = (
                "other middleware offers %r to the model, but it is not registered and nobody runs it. "
                "Pass it to the agent as one of its tools, or run it in wrap_tool_call."
            )
            self._reader.warn_once(self.name, message, self.name)
        search = self._reader.search_tool if self._reader.search_tool in shown else None
        text = not_shown(self.name) if why == "not shown" else no_such_tool(self.name)
        others = [name for name in shown if name not in {self.name, *gone}]
        return ToolMessage(
            with_alternatives(text, others, search),
            name=self.name,
            tool_call_id=self.original.tool_call["id"] or "",
            status="error",
        )


def _was_shown(request: ToolCallRequest, record: ThreadRecord) -> bool:
    """Whether the last model call was shown the tool: always so if it was shown all there are."""
    name = request.tool_call["name"]
    if not record.hides or name in record.shown:
        return True
    # Where answers quote schemas, a tool is shown by finding it.
    return quotes_schemas(record) and name in pins_in(state_value(request.state, PINS))


def _mistake_in(request: ToolCallRequest, record: ThreadRecord) -> str:
    """Return what is wrong with a call whose schema the model has not read; empty if it is right, or it has.

    A call by a model that has read the schema is the tool's own to judge, as where nothing is a stub.
    """
    tool, name = request.tool, request.tool_call["name"]
    if tool is None or not was_stub(record, name):
        return ""
    messages = state_value(request.state, "messages") or []
    is_read = any(name in schemas_in(message) for message in messages)
    arguments = request.tool_call["args"]
    return "" if is_read else mistake_in(tool, arguments) or unknown_in(tool, arguments)
