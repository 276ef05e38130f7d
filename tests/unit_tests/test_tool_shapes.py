"""A tool is the same tool in every shape that tools come in, wherever it is handed in."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.tools import BaseTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from langchain_tool_selection import (
    Query,
    SchemaPruning,
    ToolDocument,
    ToolIndex,
    ToolSelectionMiddleware,
    count_tokens,
    estimate_cost,
    prune_tool,
)
from langchain_tool_selection.evals import read_tools
from langchain_tool_selection.testing import ScriptedChatModel, call, schema_name

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FLAT = {"name": "weather_lookup", "description": "Get the current weather for a city."}


@tool
def weather_lookup(city: str) -> str:
    """Get the current weather for a city."""
    return city


SHAPES: dict[str, Any] = {
    "LangChain": weather_lookup,
    "OpenAI chat": {"type": "function", "function": {**FLAT, "parameters": SCHEMA}},
    "OpenAI responses": {"type": "function", **FLAT, "parameters": SCHEMA},
    "Anthropic": {**FLAT, "input_schema": SCHEMA},
    "Anthropic custom": {"type": "custom", **FLAT, "input_schema": SCHEMA},
    "MCP dict": {**FLAT, "inputSchema": SCHEMA},
    "MCP object": SimpleNamespace(**FLAT, inputSchema=SCHEMA),
}
every_shape = pytest.mark.parametrize("source", SHAPES.values(), ids=SHAPES)


@every_shape
def test_it_is_found_in_every_shape(source):
    catalog = ToolIndex().sync([source, {"name": "ring_bell"}])
    assert catalog.search(Query.of("weather in a city"))[0].name == "weather_lookup"
    assert catalog.document("weather_lookup").parameters == (("city", ""),)


@every_shape
def test_it_costs_the_same_in_every_shape(source):
    given: list[dict[str, Any]] = []
    estimate_cost([source], count_tokens=lambda schemas: given.extend(schemas) or 10)
    assert given == [convert_to_openai_tool(weather_lookup)]
    assert read_tools([source]).definitions == ({**FLAT, "parameters": SCHEMA},)
    assert estimate_cost([source]).catalog == read_tools([source]).tokens()


@pytest.mark.parametrize("shape", [shape for shape, source in SHAPES.items() if isinstance(source, dict)])
def test_it_is_pruned_to_the_shape_that_it_came_in(shape):
    source = SHAPES[shape]
    pruned = prune_tool(source, SchemaPruning())
    assert pruned == source
    assert schema_name(pruned) == "weather_lookup"


# -- tokens


@pytest.mark.parametrize("shape", ["LangChain", "MCP object"])
def test_an_object_is_counted_as_the_openai_tool_that_it_becomes(shape):
    expected = count_tokens_approximately([], tools=[convert_to_openai_tool(weather_lookup)])
    assert count_tokens([SHAPES[shape]]) == (expected, "approximate")


def test_functions_and_documents_are_counted_too():
    def plain(city: str) -> str:
        """Get the current weather for a city."""
        return city

    document = ToolDocument("plain", "Get the current weather for a city.", (("city", ""),))
    assert count_tokens([plain]).tokens == pytest.approx(count_tokens([document]).tokens, abs=8)


def test_a_tool_dict_is_counted_as_it_is_sent():
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    assert count_tokens([search]).tokens == count_tokens_approximately([], tools=[search])


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ([3], "takes LangChain tools, functions, .* got 3 of type int"),
        ([None], "got None of type NoneType"),
        (["weather_lookup"], "got 'weather_lookup' of type str"),
        ("weather_lookup", "takes a list of tools, got str"),
        (FLAT, "takes a list of tools, got dict"),
        ([SimpleNamespace(name="")], "'SimpleNamespace' cannot be counted, .* non-empty string as its name"),
        (
            [{**FLAT, "default": object()}],
            "'weather_lookup' cannot be counted, .* not JSON serializable",
        ),
    ],
    ids=["a number", "nothing", "a name", "one name", "one dict", "an empty name", "no JSON"],
)
def test_what_cannot_be_counted_is_named(tools, message):
    with pytest.raises(TypeError, match=message):
        count_tokens(tools)


# -- a tool without a description


class Harp(BaseTool):
    name: str = "play_harp"
    description: str | None = None  # type: ignore[assignment]

    def _run(self, song: str = "") -> str:
        return f"played {song}"


@pytest.mark.parametrize("settings", [{}, {"top_k": 1}, {"top_k": 1, "prune": SchemaPruning()}], ids=str)
@pytest.mark.parametrize("exposure", ["per_turn", "grow"])
def test_a_tool_without_a_description_passes_through_and_is_ranked(exposure, settings):
    model = ScriptedChatModel(
        script=[call("discover_tools", query="weather"), call("play_harp", song="x"), "ok"]
    )
    middleware = ToolSelectionMiddleware(exposure=exposure, **settings)
    agent = create_agent(model, [weather_lookup, Harp(), call_me], middleware=[middleware])
    messages = agent.invoke({"messages": [{"role": "user", "content": "Play the harp."}]})["messages"]
    assert "play_harp" in [schema_name(schema) for schema in model.calls[0].schemas]
    assert "played x" in [message.content for message in messages]


def test_a_tool_without_a_description_is_found_by_its_name_behind_a_proxy():
    model = ScriptedChatModel(
        script=[call("discover_tools", query="play harp"), call("call_tool", name="play_harp"), "ok"]
    )
    middleware = ToolSelectionMiddleware(exposure="proxy", top_k=1)
    agent = create_agent(model, [weather_lookup, Harp(), call_me], middleware=[middleware])
    messages = agent.invoke({"messages": [{"role": "user", "content": "Play it."}]})["messages"]
    assert "- `play_harp`:" in messages[2].content
    assert "played " in [message.content for message in messages]


@tool
def call_me(number: str) -> str:
    """Call a telephone number."""
    return number
