"""What the tests of exposures share: providers' clients, conversations on them, and readers of their requests.

Nothing here reaches a provider. What the API's documentation says it refuses is checked on each request as
it is logged, so that a test about something else still fails on a request that would come back with a 400.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from grouped import grouped
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from langchain_tool_selection import ToolSelectionMiddleware
from langchain_tool_selection.testing import ModelCall, PayloadLog, call, calls, scripted_client

from .agents import DISCOVER, discover, office, open_saver, thread

CALL = "call_tool"


def claude(name: str, **settings: Any) -> Any:
    module = pytest.importorskip("langchain_anthropic", reason="is not in the environment of oldest versions")
    return module.ChatAnthropic(model=name, api_key="none", **settings)


def tool_addition(**settings: Any) -> Any:
    return claude("claude-opus-5-5", **settings)


def tool_reference(**settings: Any) -> Any:
    return claude("claude-sonnet-4-5", **settings)


def additional_tools(**settings: Any) -> Any:
    client = ChatOpenAI(model="gpt-5.5", api_key="none", use_responses_api=True, **settings)  # type: ignore[arg-type]
    if not (client.profile or {}).get("mid_conversation_tools"):
        pytest.skip("this version of the client cannot add tools in mid-conversation")
    return client


def chat_completions(**settings: Any) -> Any:
    return ChatOpenAI(model="gpt-5.5", api_key="none", use_responses_api=False, **settings)  # type: ignore[arg-type]


TRANSPORTS = [tool_addition, tool_reference, additional_tools]
CLIENTS = [*TRANSPORTS, chat_completions]

Client = Callable[..., Any]


# -- agents ----------------------------------------------------------------------------------------------


def agent_on(
    client: Any,
    script: Any,
    log: PayloadLog,
    exposure: str = "auto",
    *,
    tools: Sequence[Any] | None = None,
    saver: Any = None,
    outer: Sequence[Any] = (),
    inner: Sequence[Any] = (),
    agent_settings: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Any:
    """Return an agent over `tools` (the office by default) on a provider's client, made or still to be made.

    `script` is a sequence of answers, of which each may be a function from a `ModelCall`.
    """
    if not hasattr(client, "invoke"):
        client = client()
    if isinstance(script, list | tuple):
        script = steps(*script)
    return create_agent(
        scripted_client(client, script, log),
        office() if tools is None else tools,
        middleware=[
            *outer,
            ToolSelectionMiddleware(**{"top_k": 1, "exposure": exposure, **grouped(**settings)}),
            *inner,
        ],
        checkpointer=InMemorySaver() if saver is None else saver,
        **(agent_settings or {}),
    )


def steps(*answers: Any) -> Callable[[ModelCall], Any]:
    """Return a script that takes one answer for each call, and says "Done." when there are no more."""
    rest = iter(answers)

    def answer(sent: ModelCall) -> Any:
        step = next(rest, "Done.")
        return step(sent) if callable(step) else step

    return answer


def use(name: str, **arguments: Any) -> Callable[[ModelCall], Any]:
    """Return an answer that calls a tool as the model sees it: itself, or behind a proxy."""

    def answer(sent: ModelCall) -> Any:
        if CALL in sent.tools and name not in sent.tools:
            return call(CALL, name=name, arguments=arguments)
        return call(name, **arguments)

    return answer


def searching(*names: str) -> Any:
    """Return an answer that searches for tools by name, each in a call of its own."""
    return calls(*((DISCOVER, {"names": [name]}) for name in names))


def said(text: str, id_: str | None = None) -> dict[str, Any]:
    return {"messages": [HumanMessage(text, id=id_)]}


async def say(path: str, agent: Any, what: Any, config: Any = None, mode: str = "custom") -> list[Any]:
    """Run an agent on the sync or the async path; return what it streamed: by default, our events."""
    what, config = (said(what) if isinstance(what, str) else what), config or thread()

    def play() -> list[Any]:
        return list(agent.stream(what, config, stream_mode=mode))

    if path == "sync":
        return await asyncio.to_thread(play)
    return [event async for event in agent.astream(what, config, stream_mode=mode)]


def selections(events: Sequence[Any]) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == "tool_selection"]


CONVERSATION: list[tuple[str, list[Any]]] = [
    (
        "send an email to a recipient",
        [discover("play some music"), use("play_music", text="Bach"), "It plays."],
    ),
    ("and another one", [use("send_email", text="Hi"), "It is sent."]),
    ("track a parcel by its number", [discover("lock the front door"), use("lock_door"), "It is locked."]),
    ("water the plants in the garden", [searching("order_pizza"), use("order_pizza"), "It is ordered."]),
    ("thank you", ["You are welcome."]),
]
"""Twelve calls with three discoveries and two changes of topic, the first without a search for it."""

RESTART_AFTER = 3
"""Turns of the conversation ahead of the restart."""


async def converse(
    client: Client, exposure: str, path: str, directory: Any, log: PayloadLog, **settings: Any
) -> list[dict[str, Any]]:
    """Play the conversation, with a restart in it, and return the selections of all calls."""
    events: list[Any] = []
    for part in CONVERSATION[:RESTART_AFTER], CONVERSATION[RESTART_AFTER:]:
        script = [answer for _, answers in part for answer in answers]
        async with open_saver("sqlite", path, directory) as saver:
            agent = agent_on(client, script, log, exposure, saver=saver, **settings)
            for text, _ in part:
                events += await say(path, agent, said(text, f"user: {text}"))
    return selections(events)


# -- what was sent ---------------------------------------------------------------------------------------


def name_in(schema: Mapping[str, Any]) -> str:
    function = schema.get("function", schema)
    return str(function.get("name") or schema.get("type"))


def array(payload: Mapping[str, Any]) -> list[str]:
    """Return the tools array without what is deferred."""
    return [name_in(tool) for tool in payload.get("tools", ()) if not tool.get("defer_loading")]


def deferred(payload: Mapping[str, Any]) -> list[str]:
    return [name_in(tool) for tool in payload.get("tools", ()) if tool.get("defer_loading")]


def messages_of(payload: Mapping[str, Any]) -> list[Any]:
    return list(payload.get("messages") or payload.get("input") or ())


def blocks(payload: Mapping[str, Any]) -> list[tuple[int, str, list[str]]]:
    """Return what is revealed in the conversation: where, in which bytes, and which tools."""
    found = []
    for place, message in enumerate(messages_of(payload)):
        if names := list(_revealed_by(message)):
            found.append((place, json.dumps(message), names))
    return found


def revealed(payload: Mapping[str, Any]) -> list[str]:
    return [name for _, _, names in blocks(payload) for name in names]


def visible(payload: Mapping[str, Any]) -> list[str]:
    """Return all that the model can call, without the search tool."""
    return [name for name in (*array(payload), *revealed(payload)) if name != DISCOVER]


def _revealed_by(message: Mapping[str, Any]) -> Iterator[str]:
    if message.get("type") == "additional_tools":
        yield from map(name_in, message["tools"])
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if block.get("type") == "tool_addition":
            yield block["tool"]["definition"]["name"]
        elif block.get("type") == "tool_result" and isinstance(block.get("content"), list):
            yield from (b["tool_name"] for b in block["content"] if b.get("type") == "tool_reference")


def assert_nothing_moves(payloads: Sequence[Mapping[str, Any]]) -> None:
    """Check that what was revealed keeps its place and its bytes, and that nothing is revealed twice."""
    for before, now in itertools.pairwise(payloads):
        assert blocks(now)[: len(blocks(before))] == blocks(before)
    for payload in payloads:
        names = [*array(payload), *revealed(payload)]
        assert len(names) == len(set(names)), names


FOREIGN = ("tool_reference", "tool_addition", "additional_tools", "defer_loading")
"""What a provider must not be sent that does not know it."""


def foreign(sent: Any) -> list[str]:
    text = json.dumps(sent, default=repr)
    return [word for word in FOREIGN if word in text]


# -- what a provider refuses -----------------------------------------------------------------------------


class RefusedError(Exception):
    """What a provider would answer with status 400."""


class StrictLog(PayloadLog):
    """Refuses what the providers' documentation says they refuse, and remembers that it did."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[str] = []

    def add(self, payload: dict[str, Any], call: ModelCall, thread_id: str | None = None) -> Any:
        added = super().add(payload, call, thread_id)
        wrong = list(refusals(payload))
        if wrong:
            self.refused += wrong
            raise RefusedError(wrong)
        return added


def refusals(payload: Mapping[str, Any]) -> Iterator[str]:
    names = [name_in(tool) for tool in payload.get("tools", ())]
    if len(names) != len(set(names)):
        yield f"two tools have one name: {names}"
    if "input" in payload:
        yield from _refused_by_responses(payload)
    elif "max_tokens" in payload:
        yield from _refused_by_anthropic(payload)
    elif words := foreign(payload):
        yield f"Chat Completions does not know {words}"


def _refused_by_responses(payload: Mapping[str, Any]) -> Iterator[str]:
    open_calls: set[str] = set()
    for item in payload["input"]:
        match item.get("type"):
            case "function_call":
                open_calls.add(item["call_id"])
            case "function_call_output":
                open_calls.discard(item["call_id"])
            case _ if open_calls:
                yield f"{item.get('type')} stands between a call and its result"
    again = set(array(payload)) & set(revealed(payload))
    if again:
        yield f"added though there: {again}"
    if words := {*foreign(payload)} - {"additional_tools"}:
        yield f"Responses does not know {words}"


def _refused_by_anthropic(payload: Mapping[str, Any]) -> Iterator[str]:
    tools = payload.get("tools", [])
    for tool in tools:
        if tool.get("defer_loading") and tool.get("cache_control"):
            yield f"{tool['name']} is deferred and has a cache mark"
        if {"anyOf", "oneOf", "allOf"} & tool.get("input_schema", {}).keys():
            yield f"{tool['name']} has anyOf, oneOf or allOf at the root of its schema"
    if tools and not array(payload):
        yield "all tools are deferred"
    referenced = {n for _, text, names in blocks(payload) for n in names if "tool_reference" in text}
    if missing := referenced - set(deferred(payload)):
        yield f"referenced and not deferred: {missing}"
    if again := (set(revealed(payload)) - referenced) & set(array(payload)):
        yield f"added though there: {again}"
    roles = [message["role"] for message in payload["messages"]]
    for place, message in enumerate(payload["messages"]):
        content = message["content"] if isinstance(message["content"], list) else []
        before, after = roles[place - 1] if place else None, roles[place + 1 : place + 2]
        if message["role"] == "system" and (before != "user" or after not in ([], ["assistant"])):
            yield f"a system message between {before} and {after}"
        if message["role"] != "system" and before == message["role"]:
            yield f"two messages of role {before} in a row"
        called = {block["id"] for block in content if block.get("type") == "tool_use"}
        following = payload["messages"][place + 1]["content"] if after else []
        answered = {b.get("tool_use_id") for b in following if isinstance(b, dict)}
        if called - answered:
            yield f"calls without a result right behind them: {called - answered}"
