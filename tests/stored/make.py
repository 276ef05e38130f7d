"""Threads as an earlier version of the package left them, for a test that goes on with them.

`threads.sqlite` has the last checkpoint of each thread, as LangGraph's SQLite checkpointer wrote it, and
`threads.json` what the model of that thread was last sent. Both were written at commit 8405a4f, where `max_pins`
was a setting of its own. To write those of another version, run this file with the package of that version
first on the path, and its settings spelled as that version has them:

    PYTHONPATH=<a checkout of that version> python tests/stored/make.py
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from langchain.agents import create_agent
from langchain_core.tools import BaseTool, StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver

from langchain_tool_selection import Thread as Settings
from langchain_tool_selection import ToolSelectionMiddleware
from langchain_tool_selection.testing import PayloadLog, call, calls, scripted_client

FOLDER = Path(__file__).parent
DATABASE, SENT = FOLDER / "threads.sqlite", FOLDER / "threads.json"

TOOLS = {
    "send_email": "Send an email message to a recipient.",
    "create_invoice": "Create an invoice for a customer.",
    "play_music": "Play music by an artist.",
    "convert_currency": "Convert an amount from one currency to another.",
    "order_pizza": "Order a pizza with toppings.",
    "track_parcel": "Track a parcel by its number.",
    "water_plants": "Water the plants in the garden.",
    "lock_door": "Lock the front door of the house.",
}

MAX_PINS = 2


def claude(name: str) -> Any:
    from langchain_anthropic import ChatAnthropic  # noqa: PLC0415  # not in every environment

    return ChatAnthropic(model=name, api_key="none")


def gpt(*, responses: bool) -> Any:
    return ChatOpenAI(model="gpt-5.5", api_key="none", use_responses_api=responses)  # type: ignore[arg-type]


class Thread(NamedTuple):
    """How the agent of a stored thread is set up."""

    client: Callable[[], Any]
    exposure: str
    max_pins: int = 32


THREADS = {
    "per_turn": Thread(lambda: gpt(responses=False), "per_turn"),
    "grow": Thread(lambda: gpt(responses=False), "grow"),
    "proxy": Thread(lambda: gpt(responses=False), "proxy"),
    "tool_addition": Thread(lambda: claude("claude-opus-5-5"), "append"),
    "tool_reference": Thread(lambda: claude("claude-sonnet-4-5"), "append"),
    "additional_tools": Thread(lambda: gpt(responses=True), "append"),
    "more pins than allowed": Thread(lambda: gpt(responses=False), "grow", MAX_PINS),
}


def tools() -> list[BaseTool]:
    return [tool(name, description) for name, description in TOOLS.items()]


def tool(name: str, description: str) -> BaseTool:
    return StructuredTool.from_function(
        func=lambda text="": f"{name} did it", name=name, description=description
    )


def agent_for(
    name: str, script: Any, log: PayloadLog, saver: Any, *, exposure: Any = None, **agent_settings: Any
) -> Any:
    """Return an agent that is set up as the thread's was, but for its exposure if another is named."""
    thread = THREADS[name]
    selection = ToolSelectionMiddleware(
        top_k=1, exposure=exposure or thread.exposure, thread=Settings(max_pins=thread.max_pins)
    )
    model = scripted_client(thread.client(), script, log)
    return create_agent(model, tools(), middleware=[selection], checkpointer=saver, **agent_settings)


def config(name: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text, "id": f"user: {text}"}]}


def use(exposure: str, name: str) -> Any:
    """Return an answer that calls a tool, by `call_tool` behind a proxy."""
    return call("call_tool", name=name, arguments={}) if exposure == "proxy" else call(name)


def conversation(exposure: str) -> Sequence[tuple[str, Sequence[Any]]]:
    """Return three turns: a discovery, a follow-up, and a new topic with a discovery."""
    music, door = (
        call("discover_tools", query="play music"),
        call("discover_tools", query="lock the front door"),
    )
    return [
        ("send an email to a recipient", [music, use(exposure, "play_music"), "It plays."]),
        ("and another one", [use(exposure, "send_email"), "It is sent."]),
        ("track a parcel by its number", [door, use(exposure, "lock_door"), "It is locked."]),
    ]


def play(name: str, log: PayloadLog, saver: Any) -> None:
    turns = conversation(THREADS[name].exposure)
    agent = agent_for(name, [answer for _, answers in turns for answer in answers], log, saver)
    for text, _ in turns:
        agent.invoke(said(text), config(name))
    if THREADS[name].max_pins == MAX_PINS:
        # The run ends between the searches and the model call that makes room for what they found.
        found = [("discover_tools", {"names": [tool]}) for tool in ("order_pizza", "water_plants")]
        stopped = agent_for(name, [calls(*found)], log, saver, interrupt_after=["tools"])
        stopped.invoke(said("thank you"), config(name))


@contextmanager
def checkpoints(file: Path) -> Iterator[SqliteSaver]:
    with SqliteSaver.from_conn_string(str(file)) as saver:
        yield saver


def keep_the_last(file: Path) -> None:
    """Drop all checkpoints but the last of each thread: they are most of the file."""
    connection = sqlite3.connect(file)
    last = "(SELECT max(checkpoint_id) FROM checkpoints c WHERE c.thread_id = {0}.thread_id)"
    for table in ("writes", "checkpoints"):
        connection.execute(f"DELETE FROM {table} WHERE checkpoint_id < {last.format(table)}")
    connection.commit()
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("VACUUM")
    connection.close()


def main() -> None:
    DATABASE.unlink(missing_ok=True)
    sent: dict[str, Mapping[str, Any]] = {}
    with checkpoints(DATABASE) as saver:
        for name in THREADS:
            log = PayloadLog()
            play(name, log, saver)
            sent[name] = log.payloads[-1]
    keep_the_last(DATABASE)
    SENT.write_text(json.dumps(sent, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
