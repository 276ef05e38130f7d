"""Adding tools to a conversation in a provider's own form, at a fixed place.

Each reveal stands behind the message that brought it up, with the same bytes on every later call, so that
all that a provider has cached or bound stays true. It is put into the request and never into the state:
another provider would not know the form. A request that carries reveals takes them out again when other
middleware hands it to another model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from langchain_tool_selection._exposure.models import Transport
from langchain_tool_selection._ground.digest import digest
from langchain_tool_selection._ground.log import WarnOnce
from langchain_tool_selection._ground.messages import message_mark, state_value
from langchain_tool_selection._selection.pins import found_in
from langchain_tool_selection._selection.record import Reveal
from langchain_tool_selection._tools.shapes import fields_of, name_of

_warn_once = WarnOnce()

_OURS = {"lc_source": "tool_selection"}
"""Marks messages that are in a request only, as LangChain marks summaries."""

_REFUSED_BY_ANTHROPIC = ("oneOf", "anyOf", "allOf")
"""Keys that the API does not take at the root of a tool's schema; one such tool fails the request."""


def is_anchor(message: Any) -> bool:
    """Whether tools can be revealed behind this message: providers want a user or a tool to have spoken."""
    return isinstance(message, HumanMessage | ToolMessage)


def newest_anchor(request: ModelRequest[Any]) -> Any:
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
    return [name for index in _batch(messages, last) for name in found_in(messages[index])]


def with_reveals(
    request: ModelRequest[Any],
    tools: Mapping[str, Any],
    *,
    array: Sequence[str],
    reveals: Sequence[Reveal],
    transport: Transport,
    search_tool: str | None,
) -> ModelRequest[Any]:
    """Return the request with `array` as its tools and the reveals in its conversation.

    Args:
        request: The call as it came; it is not changed.
        tools: Its tools by name.
        array: Names for the tools array, in order.
        reveals: What to add; those whose anchor is gone are passed over.
        transport: The provider's form.
        search_tool: The search tool's name, for references that no search has found.
    """
    bound = [tools[name] for name in array]
    takes = _is_tool if transport == "additional_tools" else _is_taken_by_anthropic
    places = list(_placed(request.messages, reveals, tools, takes))
    if transport == "tool_reference":
        hidden = (tool for name, tool in tools.items() if name not in array and isinstance(tool, BaseTool))
        # Ahead of the others, because a cache mark goes on the last tool and must not be on a deferred one.
        bound = [*map(_deferred, hidden), *bound]
        messages = _with_references(request.messages, places, search_tool)
    else:
        block = _tool_addition if transport == "tool_addition" else _additional_tools
        messages = _with_blocks(request.messages, places, block)
    visible = dict.fromkeys([*array, *(tool.name for place in places for tool in place.tools)])
    plain = request.override(tools=[tools[name] for name in visible])
    return _Revealing.of(request.override(tools=bound, messages=messages), plain, map(name_of, bound))


class _Revealing(ModelRequest[Any]):
    """A request for one model only. Handed to another, it shows the same tools in the tools array."""

    _plain: ModelRequest[Any]
    _sent: frozenset[str | None]

    @classmethod
    def of(
        cls, request: ModelRequest[Any], plain: ModelRequest[Any], sent: Iterable[str | None]
    ) -> _Revealing:
        revealing = cls(**fields_of(request))
        object.__setattr__(revealing, "_plain", plain)  # a request warns of any other way
        object.__setattr__(revealing, "_sent", frozenset(sent))
        return revealing

    def override(self, **changes: Any) -> ModelRequest[Any]:
        if changes.get("model", self.model) is not self.model:
            return self._withdrawn().override(**changes)
        if "messages" in changes:
            # Clearing an old result would take the tools away that it brought.
            ours = {message_mark(m): m for m in self.messages if _holds_references(m)}
            changes["messages"] = [ours.get(message_mark(m), m) for m in changes["messages"]]
        if "tools" in changes:
            names = {name_of(tool) for tool in changes["tools"]}
            messages = changes.get("messages", self.messages)
            changes["messages"] = [_referring_to(names, m) for m in messages]
        return _Revealing.of(super().override(**changes), self._plain, self._sent)

    def _withdrawn(self) -> ModelRequest[Any]:
        """Return this request without the reveals, but with what other middleware made of it since."""
        originals = {message_mark(message): message for message in self._plain.messages}
        messages = [
            originals.get(message_mark(message), message) if _holds_references(message) else message
            for message in self.messages
            if message.additional_kwargs.get("lc_source") != _OURS["lc_source"]
        ]
        now = {name_of(tool) for tool in self.tools}
        taken = self._sent - now
        tools = [
            *(tool for tool in self._plain.tools if name_of(tool) not in taken),
            *(tool for tool in self.tools if name_of(tool) not in self._sent),
        ]
        return ModelRequest(**{**fields_of(self), "messages": messages, "tools": tools})


class _Place(NamedTuple):
    """Where a reveal stands: behind the message `behind`; what brought it up is the message `anchor`."""

    anchor: int
    behind: int
    tools: Sequence[BaseTool]


def _placed(
    messages: Sequence[Any], reveals: Sequence[Reveal], tools: Mapping[str, Any], takes: Callable[[Any], bool]
) -> Iterator[_Place]:
    position = {message_mark(message): index for index, message in enumerate(messages)}
    for reveal in reveals:
        found = [tools[name] for name in reveal.names if takes(tools.get(name))]
        if found and (anchor := position.get(reveal.anchor)) is not None:
            behind = anchor
            # Not between two messages that a provider takes for one, nor ahead of a turn that it drops.
            while behind + 1 < len(messages) and (
                is_anchor(messages[behind + 1]) or _is_empty(messages[behind + 1])
            ):
                behind += 1
            yield _Place(anchor, behind, found)


def _is_empty(message: Any) -> bool:
    return isinstance(message, AIMessage) and not message.content and not message.tool_calls


def _with_blocks(
    messages: Sequence[Any],
    places: Sequence[_Place],
    block: Callable[[BaseTool], dict[str, Any]],
) -> list[Any]:
    behind: dict[int, list[Any]] = {}
    for place in places:
        revealing = SystemMessage([*map(block, place.tools)], additional_kwargs={**_OURS})
        behind.setdefault(place.behind, []).append(revealing)
    return _interleaved(messages, behind)


def _with_references(messages: Sequence[Any], places: Sequence[_Place], search_tool: str | None) -> list[Any]:
    result = list(messages)
    behind: dict[int, list[Any]] = {}
    for place in places:
        due = [tool.name for tool in place.tools]
        for position in _batch(messages, place.anchor):
            if names := [name for name in found_in(messages[position]) if name in due]:
                result[position] = _answer(messages[position], names)
                due = [name for name in due if name not in names]
        for position in _batch(messages, place.anchor):
            # Other middleware has cut this answer, and with it what was found.
            if due and messages[position].name == search_tool and messages[position].artifact is None:
                result[position], due = _answer(messages[position], due), []
        if due and search_tool is not None:
            staged = _staged_search(due, search_tool, message_mark(messages[place.anchor]))
            behind.setdefault(place.behind, []).extend(staged)
    return _interleaved(result, behind)


def _interleaved(messages: Sequence[Any], behind: Mapping[int, Sequence[Any]]) -> list[Any]:
    return [one for index, message in enumerate(messages) for one in (message, *behind.get(index, ()))]


def _batch(messages: Sequence[Any], last: int) -> Iterator[int]:
    """Yield the indexes of the tool results that end with the message `last`, the last one first."""
    while last >= 0 and isinstance(messages[last], ToolMessage):
        yield last
        last -= 1


def _answer(message: ToolMessage, names: Sequence[str]) -> ToolMessage:
    references = [{"type": "tool_reference", "tool_name": name} for name in names]
    return message.model_copy(update={"content": references})


def _staged_search(names: Sequence[str], search_tool: str, anchor: str) -> list[Any]:
    """Return a search for exactly these tools, and its answer, as if the model had made it."""
    wanted = {"name": search_tool, "args": {"names": list(names)}, "id": f"toolu_{digest(anchor, *names)}"}
    call = AIMessage(content="", tool_calls=[wanted], additional_kwargs={**_OURS})
    answer = ToolMessage(content="", tool_call_id=wanted["id"], name=search_tool, additional_kwargs={**_OURS})
    return [call, _answer(answer, names)]


def _holds_references(message: Any) -> bool:
    return isinstance(message, ToolMessage) and any(
        isinstance(block, Mapping) and block.get("type") == "tool_reference" for block in message.content
    )


def _referring_to(names: Collection[str | None], message: Any) -> Any:
    """Return the message without references to tools that are not in the request any more."""
    if not _holds_references(message):
        return message
    content = [block for block in message.content if block["tool_name"] in names]
    return message.model_copy(update={"content": content or "Not available."})


def has_thinking(messages: Sequence[Any]) -> bool:
    """Whether a model has thought in this conversation."""
    return any(
        isinstance(block, Mapping) and block.get("type") in ("thinking", "redacted_thinking")
        for message in messages
        if isinstance(message, AIMessage) and isinstance(message.content, list)
        for block in message.content
    )


# -- the providers' forms --------------------------------------------------------------------------------


def _is_tool(tool: Any) -> bool:
    return isinstance(tool, BaseTool)


def _is_taken_by_anthropic(tool: Any) -> bool:
    if not isinstance(tool, BaseTool):
        return False
    if not any(key in _anthropic_definition(tool).get("input_schema", ()) for key in _REFUSED_BY_ANTHROPIC):
        return True
    _warn_once(
        tool.name, "%r is not shown: Anthropic takes no oneOf, anyOf or allOf at a schema's root", tool.name
    )
    return False


def _anthropic_definition(tool: BaseTool) -> dict[str, Any]:
    from langchain_anthropic import convert_to_anthropic_tool  # noqa: PLC0415 - loaded: the model is of it

    return dict(convert_to_anthropic_tool(tool))


def _deferred(tool: BaseTool) -> BaseTool:
    extras = {key: value for key, value in (tool.extras or {}).items() if key != "cache_control"}
    return tool.model_copy(update={"extras": {**extras, "defer_loading": True}})


def _tool_addition(tool: BaseTool) -> dict[str, Any]:
    definition = _anthropic_definition(tool)
    definition.pop("cache_control", None)
    return {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}}


def _additional_tools(tool: BaseTool) -> dict[str, Any]:
    function = convert_to_openai_tool(tool)["function"]
    return {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", **function}]}
