"""The contract that every exposure keeps, as a conversation that is played and looked at.

The conversation has two searches, a change of topic, a restart from what was stored, and a tool that is
gone in the end. It goes through LangChain's own agent, with a middleware on either side of the selection: the
outer one marks each tool of each call and watches the request, the inner one notes what is sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, starmap
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, convert_to_openai_messages
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import TypeAdapter

from langchain_tool_selection._exposure.base import Exposure, OwnExposure
from langchain_tool_selection._exposure.registry import ExposureSetting, recorded
from langchain_tool_selection._selection.record import ThreadRecord
from langchain_tool_selection._tools.shapes import is_deferred, name_of
from langchain_tool_selection.testing._prefix import prefix_report

_DATA = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
_TOOLS: dict[str, str] = _DATA["tools"]
"""Tools that share no content word with each other, so that each request is for one of them."""

_SEARCH, _CALL = "discover_tools", "call_tool"
_MARK = "marked by check_exposure for call"
_CONFIG = {"configurable": {"thread_id": "check_exposure"}}

Answer = Callable[[Any], AIMessage]
"""Answers a `testing.ModelCall`."""

Payloads = Callable[[], list[dict[str, Any]]]
"""Gives the requests that a model was sent so far."""

Model = Callable[[Answer], tuple[Any, Payloads]]
"""Makes a model that answers from a script."""


@dataclass(frozen=True)
class _Turn:
    """A user message, the tools that the model calls for it, and what is different from here on."""

    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    restarts: bool = False
    gone: str = ""


_CONVERSATION = TypeAdapter(tuple[_Turn, ...]).validate_python(_DATA["conversation"])


@dataclass(frozen=True)
class _Call:
    """One model call: where it stands, what came, what was sent, and what the request was like afterwards."""

    turn: int
    number: int
    came: Any
    sent: Any
    payload: dict[str, Any]
    was_changed: bool
    exposure: Exposure | type[OwnExposure]


@dataclass
class _Play:
    """What came of one conversation."""

    calls: list[_Call] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)
    answers: list[AIMessage] = field(default_factory=list)


def check(make: Callable[[], ExposureSetting], model: Model) -> None:
    """See `testing.check_exposure`."""
    try:
        play, again = _play(make, model), _play(make, model)
    except Exception as error:
        raise AssertionError(
            f"the exposure breaks a promise: any call is rendered and received, but it raised {error!r}"
        ) from error
    for call in play.calls:
        _expect(not call.was_changed, "the request is not changed", call)
        _each_tool_is_there_once_and_as_it_came(call)
    _the_first_array_has_the_order_of_the_request(play.calls[0])
    for before, now in pairwise(play.calls):
        if not _CONVERSATION[now.turn].gone or before.turn == now.turn:
            _what_was_sent_keeps_its_bytes(before, now)
    for call, other in zip(play.calls, again.calls, strict=True):
        same = _bytes(call.payload) == _bytes(other.payload)
        _expect(same, "the same input gives the same bytes", call)
    _what_is_received_can_be_run(play)


# -- what holds -------------------------------------------------------------------------------------------


def _each_tool_is_there_once_and_as_it_came(call: _Call) -> None:
    names = [name_of(tool) for tool in call.sent.tools]
    came = {name_of(tool) for tool in call.came.tools}
    _expect(bool(names), "the tools array is never empty while there are tools", call)
    _expect(len(names) == len({*names}), f"no two tools have one name, but got {names}", call)
    _expect({*names} <= came, "only tools of the request are sent", call)
    marks = [(tool.metadata or {}).get(_MARK) for tool in call.sent.tools]
    _expect({*marks} == {call.number}, "the tools that are bound are the objects of this request", call)


def _the_first_array_has_the_order_of_the_request(call: _Call) -> None:
    deferred = [tool for tool in call.sent.tools if isinstance(tool, BaseTool) and is_deferred(tool)]
    names = [name_of(tool) for tool in call.sent.tools if tool not in deferred]
    ordered = [name for name in map(name_of, call.came.tools) if name in names]
    _expect(names == ordered, f"the first array has the order of the request, but got {names}", call)


def _what_was_sent_keeps_its_bytes(before: _Call, now: _Call) -> None:
    exposure, payloads = now.exposure, [before.payload, now.payload]
    bodies = [{key: value for key, value in one.items() if key != "tools"} for one in payloads]
    _expect_prefix(bodies, "earlier messages keep their bytes", now)
    if exposure.keeps and not exposure.additions_reset_cache:
        _expect_prefix(payloads, "tools that are kept keep their bytes for the thread", now)
    elif exposure.keeps or before.turn == now.turn:
        was, tools = (payload.get("tools", []) for payload in payloads)
        same = _bytes(tools[: len(was)]) == _bytes(was)
        _expect(same, "the tools array is only appended to", now)


def _what_is_received_can_be_run(play: _Play) -> None:
    wanted = [name for turn in _CONVERSATION for name, _ in turn.calls if name != _SEARCH]
    ran = [m.name for m in play.messages if isinstance(m, ToolMessage) and m.content == f"{m.name} did it"]
    last = play.calls[-1]
    _expect(ran == wanted, f"what the model calls is run: of {wanted} {ran} was", last)
    came = [message for message in play.messages if isinstance(message, AIMessage)]
    ids, given = ([[call["id"] for call in m.tool_calls] for m in some] for some in (came, play.answers))
    _expect(ids == given, "an answer keeps its calls, with their ids", last)


def _expect_prefix(payloads: Sequence[dict[str, Any]], promise: str, call: _Call) -> None:
    report = prefix_report(payloads)
    _expect(report.intact, f"{promise}\n{report}", call)


def _expect(kept: bool, promise: str, call: _Call) -> None:
    if not kept:
        text = _CONVERSATION[call.turn].text
        raise AssertionError(
            f"the exposure breaks a promise in call {call.number + 1}, of the turn {text!r}: {promise}"
        )


def _bytes(value: Any) -> str:
    return json.dumps(value, default=repr)


# -- playing ----------------------------------------------------------------------------------------------


def _play(make: Callable[[], ExposureSetting], model: Model) -> _Play:
    from langgraph.checkpoint.memory import InMemorySaver  # noqa: PLC0415 - slow to import, as below

    play, saver = _Play(), InMemorySaver()
    scripted, payloads = model(_script(play))
    agent = None
    for position, turn in enumerate(_CONVERSATION):
        if agent is None or turn.restarts:
            agent = _agent(make(), scripted, payloads, saver, play)
        message = HumanMessage(turn.text, id=f"user {position}")
        play.messages = agent.invoke({"messages": [message]}, _CONFIG)["messages"]
    return play


def _script(play: _Play) -> Answer:
    """Return a model's answers: the calls of each turn one by one, then a word."""
    wanted = iter([call for turn in _CONVERSATION for call in (*turn.calls, ("", {}))])

    def answer(sent: Any) -> AIMessage:
        name, arguments = next(wanted)
        call = {"name": name, "args": arguments, "id": f"call_{len(play.answers)}", "type": "tool_call"}
        if name not in sent.tools and _CALL in sent.tools:
            call |= {"name": _CALL, "args": {"name": name, "arguments": arguments}}
        play.answers.append(AIMessage("", tool_calls=[call]) if name else AIMessage("Done."))
        return play.answers[-1]

    return answer


def _agent(exposure: ExposureSetting, model: Any, payloads: Payloads, saver: Any, play: _Play) -> Any:
    # Importing an agent takes seconds, which tests of rankers should not pay.
    from langchain.agents import create_agent  # noqa: PLC0415
    from langchain.agents.middleware import wrap_model_call  # noqa: PLC0415

    from langchain_tool_selection.middleware import ToolSelectionMiddleware  # noqa: PLC0415

    sent: list[Any] = []

    def mark(request: Any, handler: Callable[[Any], Any]) -> Any:
        number = len(play.calls)
        turn = sum(isinstance(message, HumanMessage) for message in request.messages) - 1
        there = [tool for tool in request.tools if tool.name != _CONVERSATION[turn].gone]
        came = request.override(tools=[_marked(tool, number) for tool in there])
        before = _snapshot(came)
        answer = handler(came)
        known = exposure if isinstance(exposure, Exposure) else recorded(_name_in(answer))
        changed = _snapshot(came) != before
        play.calls.append(_Call(turn, number, came, sent.pop(), payloads()[-1], changed, known))
        return answer

    def note(request: Any, handler: Callable[[Any], Any]) -> Any:
        sent.append(request)
        return handler(request)

    selection = ToolSelectionMiddleware(top_k=1, exposure=exposure)
    middleware: list[Any] = [wrap_model_call(mark), selection, wrap_model_call(note)]
    return create_agent(model, [*starmap(_tool, _TOOLS.items())], middleware=middleware, checkpointer=saver)


def _name_in(answer: Any) -> str:
    """Return the exposure that a call was shown with, as what it writes to the state says it."""
    written = getattr(getattr(answer, "command", None), "update", None)
    return ThreadRecord.from_state(written).exposure


def _marked(tool: BaseTool, number: int) -> BaseTool:
    return tool.model_copy(update={"metadata": {**(tool.metadata or {}), _MARK: number}})


def _snapshot(request: Any) -> Any:
    tools = [(id(tool), tool.name, tool.description, repr(tool.extras)) for tool in request.tools]
    return tools, [(id(message), message.model_dump_json()) for message in request.messages]


def _tool(name: str, description: str) -> BaseTool:
    def run(text: str = "") -> str:
        return f"{name} did it"

    # A schema as a dict, as tools of MCP servers have it: LangChain takes milliseconds to make one.
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return StructuredTool(name=name, description=description, args_schema=schema, func=run)


def payload_of(call: Any) -> dict[str, Any]:
    """Return what a scripted model was sent, in the form of Chat Completions."""
    return {"tools": [*call.schemas], "messages": convert_to_openai_messages([*call.messages])}
