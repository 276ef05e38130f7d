"""Adding tools to a conversation at a fixed place: what all transports have in common.

Each reveal stands behind the message that brought it up, with the same bytes on every later call, so that
all that a provider has cached or bound stays true. It is put into the request and never into the state:
another provider would not know the form. A request that carries reveals takes them out again when other
middleware hands it to another model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import takewhile
from typing import Any

from langchain.agents.middleware.types import ModelRequest
from langchain.agents.structured_output import ProviderStrategy
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool

from langchain_tool_selection._exposure.base import Request, Tools
from langchain_tool_selection._exposure.transports.base import OURS, Place, Transport, answers_up_to
from langchain_tool_selection._ground.messages import message_mark, state_value
from langchain_tool_selection._ground.models import called_model
from langchain_tool_selection._selection.pins import found_in
from langchain_tool_selection._selection.record import Reveal
from langchain_tool_selection._tools.shapes import fields_of, name_of


def is_anchor(message: Any) -> bool:
    """Whether tools can be revealed behind this message: providers want a user or a tool to have spoken."""
    return isinstance(message, HumanMessage | ToolMessage)


def readable(messages: Sequence[Any]) -> Sequence[Any]:
    """Return the messages that the provider still reads: those from its newest compaction on.

    A provider that compacts a conversation itself says so in a block of the model's answer, and no longer
    reads what stands before it.
    """
    for position in range(len(messages) - 1, -1, -1):
        content = getattr(messages[position], "content", None)
        blocks = content if isinstance(messages[position], AIMessage) and isinstance(content, list) else ()
        if any(isinstance(block, dict) and block.get("type") == "compaction" for block in blocks):
            return messages[position:]
    return messages


def newest_anchor(request: Request) -> Any:
    """Return the newest message to reveal tools behind; `None` if there is none.

    One of the conversation if possible: what other middleware adds to a request may be gone from the next.
    """
    anchors = [message for message in request.messages if is_anchor(message)]
    lasting = {message_mark(message) for message in state_value(request.state, "messages") or ()}
    newest = anchors[-1] if anchors else None
    return next((one for one in reversed(anchors) if message_mark(one) in lasting), newest)


def found_at_end(messages: Sequence[Any]) -> list[str]:
    """Return the tools that the searches found which the model has not answered yet."""
    last = len(messages) - 1
    while last >= 0 and isinstance(messages[last], HumanMessage | SystemMessage):
        last -= 1
    return [name for index in answers_up_to(messages, last) for name in found_in(messages[index])]


def with_reveals(
    request: Request,
    tools: Tools,
    array: Sequence[str],
    reveals: Sequence[Reveal],
    *,
    transport: Transport,
    search_tool: str | None,
) -> Request:
    """Return the request with `array` as its tools and the reveals in its conversation.

    Args:
        request: The call as it came; it is not changed.
        tools: Its tools by name.
        array: Names for the tools array, in order.
        reveals: What to add; those whose anchor is gone are passed over.
        transport: The provider's form.
        search_tool: The search tool's name, for references that no search has found.
    """
    places = list(_placed(request, reveals, tools))
    hidden = (tool for name, tool in tools.items() if name not in array and isinstance(tool, BaseTool))
    # Ahead of the others, because a cache mark goes on the last tool and must not be on a deferred one.
    bound = [*transport.deferred(hidden), *(tools[name] for name in array)]
    messages = transport.write(request.messages, places, search_tool)
    visible = dict.fromkeys([*array, *(tool.name for place in places for tool in place.tools)])
    plain = request.override(tools=[tools[name] for name in visible])
    sent = request.override(tools=bound, messages=messages)
    return _Revealing.of(sent, plain, frozenset(map(name_of, bound)), transport)


class _Revealing(ModelRequest[Any]):
    """A request for one model only. Handed to another, it shows the same tools in the tools array."""

    _plain: Request
    _sent: frozenset[str | None]
    _transport: Transport

    @classmethod
    def of(
        cls, request: Request, plain: Request, sent: frozenset[str | None], transport: Transport
    ) -> _Revealing:
        revealing = cls(**fields_of(request))
        # A request warns of any other way.
        vars(revealing).update(_plain=plain, _sent=sent, _transport=transport)
        return revealing

    def override(self, **changes: Any) -> Request:
        if changes.get("model", self.model) is not self.model:
            return self._withdrawn().override(**changes)
        is_rewritten = self._transport.is_rewritten
        if "messages" in changes:
            # Clearing an old result would take the tools away that it brought.
            ours = {message_mark(m): m for m in self.messages if is_rewritten(m)}
            changes["messages"] = [ours.get(message_mark(m), m) for m in changes["messages"]]
        if "tools" in changes:
            names = {name_of(tool) for tool in changes["tools"]}
            left = partial(self._transport.without_others, names=names)
            messages = changes.get("messages", self.messages)
            changes["messages"] = [left(m) if is_rewritten(m) else m for m in messages]
        return _Revealing.of(super().override(**changes), self._plain, self._sent, self._transport)

    def _withdrawn(self) -> Request:
        """Return this request without the reveals, but with what other middleware made of it since."""
        originals = {message_mark(message): message for message in self._plain.messages}
        is_rewritten = self._transport.is_rewritten
        theirs = [m for m in self.messages if m.additional_kwargs.get("lc_source") != OURS["lc_source"]]
        messages = [originals.get(message_mark(m), m) if is_rewritten(m) else m for m in theirs]
        taken = self._sent.difference(map(name_of, self.tools))
        tools = [
            *(tool for tool in self._plain.tools if name_of(tool) not in taken),
            *(tool for tool in self.tools if name_of(tool) not in self._sent),
        ]
        return ModelRequest(**{**fields_of(self), "messages": messages, "tools": tools})


def _placed(request: Request, reveals: Sequence[Reveal], tools: Tools) -> Iterator[Place]:
    position = {message_mark(message): index for index, message in enumerate(request.messages)}
    for reveal in reveals:
        found = [tools[name] for name in reveal.names if isinstance(tools.get(name), BaseTool)]
        if found and (anchor := position.get(reveal.anchor)) is not None:
            # Not between two messages that a provider takes for one, nor ahead of a turn that it drops.
            later = takewhile(_is_passed_over, request.messages[anchor + 1 :])
            yield Place(anchor, anchor + sum(1 for _ in later), found, _as_bound(request, found))


def _as_bound(request: Request, tools: Sequence[BaseTool]) -> list[dict[str, Any]]:
    """Return the definitions of tools as the client sends them in the tools array: as strict as those are."""
    settings, format_ = request.model_settings, request.response_format
    if isinstance(format_, ProviderStrategy):
        settings = {**format_.to_model_kwargs(), **settings}
    bound: Any = called_model(request.model).bind_tools(list(tools), **settings)
    return list(bound.kwargs["tools"])


def _is_passed_over(message: Any) -> bool:
    is_empty = isinstance(message, AIMessage) and not message.content and not message.tool_calls
    return is_empty or is_anchor(message)
