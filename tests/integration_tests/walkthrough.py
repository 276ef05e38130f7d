"""The three-turn scenario, one turn at a time. `python -m ....walkthrough FILE TURN` plays one in a new process."""

from __future__ import annotations

import json
import sys
from typing import Any

from langchain.agents import create_agent
from langgraph.checkpoint.sqlite import SqliteSaver

from langchain_tool_selection import ToolSelectionMiddleware
from langchain_tool_selection.testing import ScriptedChatModel, call

from .agents import make_tool, thread, user

TURNS = (
    "What is the weather in Lisbon today?",
    "I need to crunch some numbers but don't see a tool for that, can you check?",
    "translate hello to French",
)
SCRIPTS: tuple[list[Any], ...] = (
    [call("weather_lookup", text="Lisbon"), "It is sunny."],
    [call("discover_tools", query="evaluate arithmetic"), call("calculator", text="6 * 7"), "It is 42."],
    [call("translate_text", text="hello"), "Bonjour."],
)
UNFILTERED_SCRIPTS: tuple[list[Any], ...] = (
    SCRIPTS[0],
    [call("calculator", text="6 * 7"), "It is 42."],
    SCRIPTS[2],
)
TOOLS = [
    make_tool("weather_lookup", "Get the current weather for a city.", "Sunny, 21 degrees."),
    make_tool("stock_price", "Look up the latest stock price for a ticker symbol.", "123.45"),
    make_tool("translate_text", "Translate text from one language into another.", "bonjour"),
    make_tool("calculator", "Evaluate a basic arithmetic expression.", "42"),
]
ALL = sorted(tool.name for tool in TOOLS)
SELECTED = (
    [["discover_tools", "weather_lookup"]] * 2,
    [["discover_tools", "weather_lookup"]] + [["calculator", "discover_tools", "weather_lookup"]] * 2,
    [["calculator", "discover_tools", "translate_text"]] * 2,
)
FOUND = (
    "Found tool `calculator`: Evaluate a basic arithmetic expression. "
    "It is now available for the rest of this conversation."
)


def agent_of(saver: Any, script: Any, *, filtered: bool = True) -> tuple[Any, ScriptedChatModel]:
    """Build the agent of the scenario anew."""
    model = ScriptedChatModel(script=script)
    selection = ToolSelectionMiddleware(top_k=1, always_include=frozenset())
    return (
        create_agent(model, TOOLS, middleware=[selection] if filtered else [], checkpointer=saver),
        model,
    )


def sorted_tools(model: ScriptedChatModel) -> list[list[str]]:
    return [sorted(sent.tools) for sent in model.calls]


def main(file: str, turn: int) -> None:
    with SqliteSaver.from_conn_string(file) as saver:
        agent, model = agent_of(saver, SCRIPTS[turn])
        agent.invoke(user(TURNS[turn]), thread())
        pins = agent.get_state(thread()).values["tool_selection_pinned"]
    sys.stdout.write(json.dumps({"tools": sorted_tools(model), "pins": pins}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
