"""What the integration tests share: tools, agents on a scripted model, and ways to look at what was sent."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from grouped import grouped
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.embeddings import Embeddings
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from langchain_tool_selection import ToolSelectionMiddleware
from langchain_tool_selection.testing import ScriptedChatModel, call

PINS = "tool_selection_pinned"
DISCOVER = "discover_tools"

OFFICE = {
    "send_email": "Send an email message to a recipient.",
    "create_invoice": "Create an invoice for a customer.",
    "book_flight": "Book a flight to a destination.",
    "search_documents": "Search documents by keyword.",
    "resize_image": "Resize an image to a width and height.",
    "play_music": "Play music by an artist.",
    "convert_currency": "Convert an amount from one currency to another.",
    "schedule_meeting": "Schedule a meeting in the calendar.",
    "order_pizza": "Order a pizza with toppings.",
    "track_parcel": "Track a parcel by its number.",
    "water_plants": "Water the plants in the garden.",
    "lock_door": "Lock the front door of the house.",
}
"""Tools that share no content word with each other, in registration order."""


# -- tools and agents ----------------------------------------------------------------------------------


def make_tool(name: str, description: str, answer: str = "", **settings: Any) -> BaseTool:
    """Return a tool that takes a text and answers with `answer`, or with its own name."""

    def run(text: str = "", **_: Any) -> str:
        return answer or f"{name} did it"

    # As tools of MCP servers have it. LangChain makes a schema anew at each call where it is a class.
    settings = {"args_schema": TEXT, "func": run, **settings}
    return StructuredTool(name=name, description=description, **settings)


TEXT = {"properties": {"text": {"default": "", "type": "string"}}, "type": "object"}


@cache
def _office() -> tuple[BaseTool, ...]:
    return tuple(make_tools(OFFICE))


def office() -> list[BaseTool]:
    """Return the tools of `OFFICE`: the same objects each time, because building them takes long."""
    return list(_office())


def make_tools(descriptions: Mapping[str, str]) -> list[BaseTool]:
    return [make_tool(name, description) for name, description in descriptions.items()]


def build(
    script: Any,
    tools: Sequence[Any] | None = None,
    *,
    saver: Any = None,
    outer: Sequence[AgentMiddleware] = (),
    inner: Sequence[AgentMiddleware] = (),
    selection: ToolSelectionMiddleware | None = None,
    agent_settings: Mapping[str, Any] | None = None,
    **settings: Any,
) -> tuple[Any, ScriptedChatModel]:
    """Return an agent over `tools` (the office by default) and its model.

    `settings` are those of `ToolSelectionMiddleware` and of its records, with `top_k=1`, unless a ready `selection` is given.
    """
    model = ScriptedChatModel(script=script)
    selection = selection or ToolSelectionMiddleware(**{"top_k": 1, **grouped(**settings)})
    agent = create_agent(
        model,
        office() if tools is None else tools,
        middleware=[*outer, selection, *inner],
        checkpointer=saver,
        **(agent_settings or {}),
    )
    return agent, model


def discover(query: str = "", **arguments: Any) -> Any:
    """Return a model's answer that searches for a tool."""
    return call(DISCOVER, **({"query": query} if query else {}), **arguments)


# -- conversations -------------------------------------------------------------------------------------


def user(*texts: Any) -> dict[str, Any]:
    return {"messages": [HumanMessage(text) for text in texts]}


def thread(name: str = "thread") -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


async def run(path: str, agent: Any, what: Any, config: Any = None) -> dict[str, Any]:
    """Invoke an agent on the sync or the async path."""
    if path == "sync":
        return await asyncio.to_thread(agent.invoke, what, config)
    return await agent.ainvoke(what, config)


async def state_of(path: str, agent: Any, config: Any) -> Mapping[str, Any]:
    snapshot = agent.get_state(config) if path == "sync" else await agent.aget_state(config)
    return snapshot.values


async def pins_of(path: str, agent: Any, config: Any) -> list[str]:
    return (await state_of(path, agent, config))[PINS]


def pins(agent: Any, config: Any) -> list[str]:
    return agent.get_state(config).values[PINS]


@asynccontextmanager
async def open_saver(kind: str, path: str, directory: Path):
    """Open a checkpointer: `kind` is memory or sqlite, `path` is sync or async."""
    file = str(directory / "threads.db")
    if kind == "memory":
        yield InMemorySaver()
    elif path == "sync":
        with SqliteSaver.from_conn_string(file) as saver:
            yield saver
    else:
        async with AsyncSqliteSaver.from_conn_string(file) as saver:
            yield saver


# -- what happened -------------------------------------------------------------------------------------


def sent(model: ScriptedChatModel) -> list[list[str]]:
    """Return the tools of each model call, in the order sent, without `discover_tools`."""
    return [[name for name in call_.tools if name != DISCOVER] for call_ in model.calls]


def answers(messages: Mapping[str, Any] | Sequence[BaseMessage], name: str = DISCOVER) -> list[str]:
    """Return what a tool answered, one text for each of its calls."""
    if isinstance(messages, Mapping):
        messages = messages["messages"]
    return [str(m.content) for m in messages if isinstance(m, ToolMessage) and m.name == name]


def in_new_process(module: str, *arguments: str, **environment: str) -> Any:
    """Run a module of this folder in a new Python, and return what it wrote, read as JSON."""
    package = __name__.rpartition(".")[0]
    process = subprocess.run(
        [sys.executable, "-m", f"{package}.{module}", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


# -- other people's middleware -------------------------------------------------------------------------


class Rewriting(AgentMiddleware):
    """Changes each request by a function, as another middleware might."""

    def __init__(self, change: Callable[[Any], Any], name: str = "Rewriting") -> None:
        super().__init__()
        self._change, self._name = change, name

    @property
    def name(self) -> str:
        return self._name

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(self._change(request))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(self._change(request))


class Watching(Rewriting):
    """Notes the requests that pass by, and changes none."""

    def __init__(self, name: str = "Watching") -> None:
        super().__init__(self._note, name)
        self.requests: list[Any] = []

    def _note(self, request: Any) -> Any:
        self.requests.append(request)
        return request


class Offering(Rewriting):
    """Adds tools to each request that were never registered, and runs them."""

    def __init__(self, tools_for: Callable[[Any], list[BaseTool]]) -> None:
        super().__init__(self._with_tools, "Offering")
        self._tools_for, self._offered = tools_for, dict[str, BaseTool]()

    def _with_tools(self, request: Any) -> Any:
        tools = self._tools_for(request)
        self._offered.update((tool.name, tool) for tool in tools)
        return request.override(tools=[*request.tools, *tools])

    def _with_tool(self, request: Any) -> Any:
        return request if request.tool else request.override(tool=self._offered[request.tool_call["name"]])

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return handler(self._with_tool(request))

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await handler(self._with_tool(request))


class RoleFilter(Rewriting):
    """Takes the tools whose name starts with a prefix out of each request."""

    def __init__(self, prefix: str) -> None:
        super().__init__(
            lambda request: request.override(
                tools=[t for t in request.tools if not getattr(t, "name", "").startswith(prefix)]
            ),
            "RoleFilter",
        )


# -- embeddings ----------------------------------------------------------------------------------------


class BagOfWords(Embeddings):
    """Embeds a text as its words: equal text, equal vector. Notes what it was asked for."""

    def __init__(self) -> None:
        self.queries: list[str] = []
        self.batches: list[list[str]] = []

    def embed_query(self, text: str) -> list[float]:
        self.queries.append(text)
        return self._vector(text)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.batches.append(texts)
        return [self._vector(text) for text in texts]

    @staticmethod
    def _vector(text: str) -> list[float]:
        vector = [0.0] * 256
        for word in re.findall(r"\w+", text.lower()):
            vector[zlib.crc32(word.encode()) % 256] += 1.0
        return vector
