"""`"append"`: the tools array is selected at a thread's first user message, and keeps its bytes.

What is shown later is added to the conversation, in the provider's own form (a transport), behind the message
that brought it up. Each addition keeps its place and its bytes, so that all that the provider has cached, or
has bound its thinking to, stays true. An addition costs its own tokens and no more, so a user message may
add tools that nobody asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tool_selection._exposure.base import (
    IN_THE_ARRAY,
    CallContext,
    OwnExposure,
    Rendered,
    Request,
    Tools,
)
from langchain_tool_selection._ground.messages import has_thinking, message_mark
from langchain_tool_selection._selection.policy import ReasonKind, Selection
from langchain_tool_selection._selection.record import Reveal, ThreadRecord

if TYPE_CHECKING:
    from langchain_tool_selection._exposure.transports.base import Transport


@dataclass(frozen=True)
class Append(OwnExposure):
    """Adds tools to the conversation. See `Exposure` for each member.

    Attributes:
        transport: The provider's form.
        search_tool: The search tool's name; `None` without one, which some transports cannot be.
        thinks: Whether the model thinks, or has thought in this conversation.
        is_fixed: Whether the provider answers with an error when the tools array changes.
    """

    transport: Transport
    search_tool: str | None
    thinks: bool
    is_fixed: bool = False

    name = "append"
    # From `benchmarks.multiturn`: more than three at once are not used, and each that is used saves a search.
    budget = (3, 50)

    @classmethod
    def suits(cls, context: CallContext) -> bool:
        return cls.of(context) is not None

    @classmethod
    def of(cls, context: CallContext) -> Append | None:
        transport = context.traits.transport
        if transport is None or (transport.lives_in_searches and context.search_tool is None):
            return None
        traits = context.traits
        thinks = traits.thinks or has_thinking(context.messages)
        return cls(transport, context.search_tool, thinks, is_fixed=traits.refuses_changes)

    @property
    def _needs_a_search(self) -> bool:
        return self.transport.lives_in_searches and self.thinks

    @property
    def _kinds(self) -> frozenset[ReasonKind]:
        """Reasons that put a tool into the array in mid-thread. Where it can be added, that is cheaper."""
        if self.is_fixed:
            return frozenset({"provider", "deferred", "discovery"})
        return IN_THE_ARRAY if self._needs_a_search else IN_THE_ARRAY - {"core"}

    def max_additions(self, record: ThreadRecord) -> int:
        return 0 if self._needs_a_search else super().max_additions(record)

    def render(self, request: Request, selection: Selection, tools: Tools, record: ThreadRecord) -> Rendered:
        from langchain_tool_selection._exposure import reveal  # noqa: PLC0415 - see `base`

        marks = {message_mark(message) for message in reveal.readable(request.messages)}
        # A compaction may have taken the message that a reveal stood behind. Its tools are due again.
        reveals = [one for one in record.reveals if one.anchor in marks]
        added = {name for one in reveals for name in one.names}
        array = self.constant_array(selection, tools, record, self._kinds, added)
        visible = {*array, *(name for one in reveals for name in one.names)}
        due = [name for name in selection.names if name not in visible]
        anchor = reveal.newest_anchor(request)
        carried: Sequence[str] = due if anchor is not None else ()
        if self._needs_a_search:
            carried = reveal.found_at_end(request.messages)
        if not (record.array and self.is_fixed):
            array += tuple(name for name in due if name not in carried)
        revealed = tuple(name for name in due if name in carried)
        if revealed:
            reveals.append(Reveal(message_mark(anchor), revealed))
        sent = reveal.with_reveals(
            request, tools, array, reveals, transport=self.transport, search_tool=self.search_tool
        )
        return Rendered(sent, array, tuple(reveals), revealed)
