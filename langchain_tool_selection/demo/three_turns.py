"""The three-turn scenario: shown, found, remembered.

Four tools, of which one is shown at a time. Turn 1 needs the weather and is shown it. Turn 2 needs a
calculator but does not share a word with it: the model searches, finds it, and calls it. Turn 3, in a
rebuilt agent on the same database file, asks for something else, and the calculator is still there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import add, mul, sub, truediv
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver

from langchain_tool_selection import ToolSelectionMiddleware
from langchain_tool_selection.testing import CallRecorder, ModelCall, ScriptedChatModel, call

TURNS = (
    "What's the weather like in Lisbon today?",
    "I need to crunch some numbers but don't see a tool for that, can you check?",
    "translate hello to French",
)

_ANSWERS: dict[str, tuple[str, str, dict[str, str]]] = {
    "weather": ("get the weather forecast", "weather_lookup", {"city": "Lisbon"}),
    "numbers": ("evaluate arithmetic", "calculator", {"expression": "12 * 34"}),
    "translate": ("translate a text", "translate_text", {"text": "hello", "target_language": "French"}),
}
"""By a word of the request: what to search for, and what to call."""

_OPERATORS: dict[type, Callable[..., float]] = {ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: truediv}


@tool(parse_docstring=True)
def weather_lookup(city: str, units: str = "celsius", days: int = 1, include_wind: bool = False) -> str:
    """Get the current weather and the forecast for a city.

    Args:
        city: Name of the city, with its country where the name is not unique.
        units: Temperature scale of the answer, celsius or fahrenheit.
        days: How many days of forecast to include, from 1 to 14.
        include_wind: Whether to include wind speed and direction.
    """
    return f"{city}: sunny, 21 degrees {units}."


@tool(parse_docstring=True)
def stock_price(ticker: str, exchange: str = "", currency: str = "USD", history_days: int = 0) -> str:
    """Look up the latest stock price for a ticker symbol.

    Args:
        ticker: Symbol of the listed company, such as ACME.
        exchange: Market on which it is listed; empty for its main listing.
        currency: Three-letter code of the currency of the answer.
        history_days: How many days of closing prices to include.
    """
    return f"{ticker}: 123.45 {currency}."


@tool(parse_docstring=True)
def translate_text(text: str, target_language: str, source_language: str = "", formal: bool = False) -> str:
    """Translate text from one language into another.

    Args:
        text: The words to translate.
        target_language: Language of the answer, by its English name.
        source_language: Language of the text; detected when empty.
        formal: Whether to prefer the formal way of address.
    """
    return {"hello": "bonjour"}.get(text.casefold(), text)


@tool(parse_docstring=True)
def calculator(expression: str, decimals: int = 10, scientific: bool = False) -> str:
    """Evaluate a basic arithmetic expression.

    Args:
        expression: What to evaluate, with parentheses and + - * /, such as (3 + 4) * 2.
        decimals: How many digits after the point the answer is rounded to.
        scientific: Whether to answer in scientific notation.
    """
    return str(round(_evaluate(ast.parse(expression, mode="eval").body), decimals))


TOOLS = (weather_lookup, stock_price, translate_text, calculator)


@dataclass(frozen=True)
class Run:
    """One run of the scenario.

    Attributes:
        calls: The model calls of each turn: what each was sent.
        messages: The whole conversation.
        pins: The thread's pins at the end.
    """

    calls: tuple[tuple[ModelCall, ...], ...]
    messages: tuple[BaseMessage, ...]
    pins: tuple[str, ...]


def run(
    database: Path,
    *,
    selection: bool,
    model: BaseChatModel | None = None,
    turns: Sequence[str] = TURNS,
    thread: str = "demo",
) -> Run:
    """Play turns on one thread, with the agent rebuilt from the database file for each of them.

    Args:
        database: SQLite file of the checkpointer; made if it does not exist.
        selection: Whether tools are selected, or all sent.
        model: The chat model; by default one that follows a script and needs no network.
        turns: What the user says.
        thread: The conversation's id in the database.
    """
    calls, model = [], model or ScriptedChatModel(script=scripted_answer)
    for text in turns:
        recorder = CallRecorder()
        middleware = [ToolSelectionMiddleware(top_k=1, always_include=frozenset())] if selection else []
        with SqliteSaver.from_conn_string(str(database)) as checkpointer:
            agent = create_agent(model, [*TOOLS], middleware=middleware, checkpointer=checkpointer)
            config: Any = {"configurable": {"thread_id": thread}, "callbacks": [recorder]}
            agent.invoke({"messages": [{"role": "user", "content": text}]}, config)
            state = agent.get_state(config).values
        calls.append(tuple(recorder.calls))
    return Run(tuple(calls), tuple(state["messages"]), tuple(state.get("tool_selection_pinned", ())))


def scripted_answer(sent: ModelCall) -> AIMessage | str:
    """Answer as a sensible model would that sees only the tools that it was sent."""
    last = sent.messages[-1]
    request = next(m for m in reversed(sent.messages) if isinstance(m, HumanMessage)).text
    if isinstance(last, ToolMessage) and last.name != "discover_tools":
        return f"Here you are: {last.text}"
    known = (answer for word, answer in _ANSWERS.items() if word in request)
    search, name, arguments = next(known, _ANSWERS["translate"])
    if name in sent.tools:
        return call(name, **arguments)
    if isinstance(last, ToolMessage):
        return f"There is no tool for that: {last.text}"
    return call("discover_tools", query=search)


def _evaluate(node: ast.AST) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluate(node.left), _evaluate(node.right))
    raise ValueError("only numbers, parentheses and + - * / are understood")
