"""How a selection reaches the model.

An exposure takes the request and what was selected, and gives back the request to send. It is the only
place that decides what the `tools` array of a call holds and what else of the request tells the model
about tools. Providers render tools ahead of all messages and cache by exact prefix, so a changed array
makes the whole conversation cold; the exposures differ in how often they let that happen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage

from langchain_tool_selection._exposure.models import ExposureName, Transport
from langchain_tool_selection._exposure.proxy import unwrap_calls, wrap_calls
from langchain_tool_selection._exposure.reveal import found_at_end, newest_anchor, with_reveals
from langchain_tool_selection._ground.messages import message_mark, state_value
from langchain_tool_selection._selection.pins import PINS, pins_in
from langchain_tool_selection._selection.policy import ReasonKind, Selection
from langchain_tool_selection._selection.record import Reveal, ThreadRecord

_ADDED_BY_CHANGE = (5, 15)
"""How many tools a user message, and a thread, may add unasked where each addition makes the conversation
cold: three changes. By `cost.break_even`, growing with three changes in ten turns pays from about 12,000
tokens of tools."""

_ADDED_BY_REVEAL = (3, 50)
"""Likewise where an addition costs no more than its own tokens. From `benchmarks.multiturn`: more than three
at once are not used, and each that is used saves a search."""

ADDITION_SHARE = 0.5
"""What a tool must score to be added unasked, as a share of the best match."""

_IN_THE_ARRAY = "tools"
"""Stands for a message where an addition was made to the array instead. No message has this mark."""

_BOUND: frozenset[ReasonKind] = frozenset({"core", "provider", "deferred", "discovery", "forced"})
"""Why a tool has to be in the tools array itself, whatever other way there is to show it."""


class Rendered(NamedTuple):
    """A request as it is sent.

    Attributes:
        request: The request.
        array: The names in its tools array, in order; tools that the provider loads later left out.
        reveals: What is added to the conversation, in order.
        revealed: What of that this call is the first to add.
        bound: All names in the tools array, in order, where `array` is only what it began with.
    """

    request: ModelRequest[Any]
    array: tuple[str, ...]
    reveals: tuple[Reveal, ...] = ()
    revealed: tuple[str, ...] = ()
    bound: tuple[str, ...] | None = None


@dataclass(frozen=True)
class PerTurn:
    """The tools array is selected anew for each user message: simple, and cold for a cache each time.

    Also the base of the other exposures.

    Attributes:
        name: What users call it.
        keeps: Whether what a thread has been shown stays for the thread.
        ranks: Whether tools are shown for what the user wants, or only when the model searches.
        is_dear: Whether an addition makes the conversation cold. If so, a later user message adds tools
            only when it changes the topic, and a compaction, after which the conversation is cold
            anyhow, is used to select anew.
    """

    name: ClassVar[ExposureName] = "per_turn"
    keeps: ClassVar[bool] = False
    ranks: ClassVar[bool] = True
    is_dear: ClassVar[bool] = False

    def room(self, record: ThreadRecord) -> int:
        """Return how many tools the next user message of a thread may add to those that it keeps."""
        return 0

    def render(
        self,
        request: ModelRequest[Any],
        selection: Selection,
        tools: Mapping[str, Any],
        record: ThreadRecord,
    ) -> Rendered:
        """Return the request to send. Never changes `request`.

        Args:
            request: The call as it came.
            selection: What to show, in order.
            tools: The request's own tool objects by name. These must be bound and no others: other
                middleware may have put marks on them.
            record: What earlier calls of the thread were sent.
        """
        return Rendered(request.override(tools=[tools[name] for name in selection.names]), selection.names)

    def receive(
        self, response: ModelResponse[Any] | AIMessage, tools: Mapping[str, Any]
    ) -> ModelResponse[Any] | AIMessage:
        """Return the model's answer as the rest of the agent is to see it."""
        return response


@dataclass(frozen=True)
class Grow(PerTurn):
    """The tools array is selected at the first user message, and then only appended to.

    What the model discovers is appended, and a few tools when the user changes the topic.
    """

    name: ClassVar[ExposureName] = "grow"
    keeps: ClassVar[bool] = True
    is_dear: ClassVar[bool] = True

    def room(self, record: ThreadRecord) -> int:
        """See `PerTurn.room`."""
        per_turn, per_thread = _ADDED_BY_CHANGE
        return max(0, min(per_turn, per_thread - record.added))

    def render(
        self,
        request: ModelRequest[Any],
        selection: Selection,
        tools: Mapping[str, Any],
        record: ThreadRecord,
    ) -> Rendered:
        """See `PerTurn.render`."""
        sent = super().render(request, selection, tools, record)
        before = tuple(name for name in record.visible if name in tools)
        if not before or selection.names[: len(before)] != before:
            return sent
        # Additions are kept apart from the array, as if revealed behind no message of the conversation: a
        # model that this one stands in for goes on with its own array, and is shown them where they are due.
        reveals = record.reveals
        if added := selection.names[len(before) :]:
            reveals = (*reveals, Reveal(_IN_THE_ARRAY, added))
        return Rendered(sent.request, record.array, reveals, bound=sent.array)


@dataclass(frozen=True)
class Append(PerTurn):
    """The tools array is selected at the first user message, and stays as it is.

    What is shown later is added to the conversation, in the provider's own form, behind the message that
    brought it up: the array keeps its bytes, and each addition keeps its place.

    Attributes:
        transport: The provider's form.
        search_tool: The name of the search tool; `None` without one, which "tool_reference" cannot be.
        thinks: Whether the model thinks.
    """

    transport: Transport
    search_tool: str | None
    thinks: bool

    name: ClassVar[ExposureName] = "append"
    keeps: ClassVar[bool] = True

    @property
    def _needs_a_search(self) -> bool:
        # A reference lives in a search's answer. A search can be staged, but not for a model that thinks:
        # its provider wants each of its calls to come with the thought behind it.
        return self.transport == "tool_reference" and self.thinks

    def room(self, record: ThreadRecord) -> int:
        """See `PerTurn.room`."""
        per_turn, per_thread = (0, 0) if self._needs_a_search else _ADDED_BY_REVEAL
        return max(0, min(per_turn, per_thread - record.added))

    def render(
        self,
        request: ModelRequest[Any],
        selection: Selection,
        tools: Mapping[str, Any],
        record: ThreadRecord,
    ) -> Rendered:
        """See `PerTurn.render`."""
        array = _array(selection, tools, record)
        marks = {message_mark(message) for message in request.messages}
        # A compaction may have taken the message that a reveal stood behind. Its tools are due again.
        reveals = [reveal for reveal in record.reveals if reveal.anchor in marks]
        visible = {*array, *(name for reveal in reveals for name in reveal.names)}
        due = [name for name in selection.names if name not in visible]
        anchor = newest_anchor(request)
        carried: Sequence[str] = due if anchor is not None else ()
        if self._needs_a_search:
            carried = found_at_end(request.messages)
        array += tuple(name for name in due if name not in carried)
        revealed = tuple(name for name in due if name in carried)
        if revealed:
            reveals.append(Reveal(message_mark(anchor), revealed))
        sent = with_reveals(
            request,
            tools,
            array=array,
            reveals=reveals,
            transport=self.transport,
            search_tool=self.search_tool,
        )
        return Rendered(sent, array, tuple(reveals), revealed)


@dataclass(frozen=True)
class Proxy(PerTurn):
    """The tools array holds what is always included, the search tool, and `call_tool`.

    A search answers with schemas. What the model then calls through `call_tool` runs as the real tool:
    the call is rewritten as soon as the model has made it, and written back whenever the model reads it.

    Attributes:
        call_tool: The name of the tool that calls others.
    """

    call_tool: str

    name: ClassVar[ExposureName] = "proxy"
    keeps: ClassVar[bool] = True
    ranks: ClassVar[bool] = False

    def render(
        self,
        request: ModelRequest[Any],
        selection: Selection,
        tools: Mapping[str, Any],
        record: ThreadRecord,
    ) -> Rendered:
        """See `PerTurn.render`."""
        array = _array(selection, tools, record)
        # What was found stays wrapped when it is gone from the request: the model reads what it wrote.
        found = pins_in(state_value(request.state, PINS))
        messages = wrap_calls(request.messages, {*tools, *found}.difference(array), self.call_tool)
        return Rendered(request.override(tools=[tools[name] for name in array], messages=messages), array)

    def receive(
        self, response: ModelResponse[Any] | AIMessage, tools: Mapping[str, Any]
    ) -> ModelResponse[Any] | AIMessage:
        """See `PerTurn.receive`."""
        return unwrap_calls(response, tools, self.call_tool)


def _array(selection: Selection, tools: Mapping[str, Any], record: ThreadRecord) -> tuple[str, ...]:
    """Return the names of the thread's constant array, and behind them what must be in it since."""
    if not record.array:
        return selection.names
    bound = [name for name in selection.names if selection.reasons[name].kind in _BOUND]
    # Ahead, because a cache mark goes on the last tool and must not be on a deferred one.
    ahead = [name for name in bound if selection.reasons[name].kind == "deferred"]
    return tuple(dict.fromkeys([*ahead, *(name for name in record.array if name in tools), *bound]))
