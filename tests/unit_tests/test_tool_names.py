"""What may be a tool's name, and what nobody sees of a text, are one answer wherever they are asked."""

from __future__ import annotations

import pytest
from langchain.agents import create_agent
from langchain_core.tools import StructuredTool

from langchain_tool_selection import Discovery, ToolRegistry, ToolSelectionMiddleware
from langchain_tool_selection.evals import lint
from langchain_tool_selection.testing import ScriptedChatModel

PROVIDERS = "OpenAI, Anthropic, Bedrock, Gemini"


def tool(name: str, description: str = "Forecast the weather of a city.") -> StructuredTool:
    return StructuredTool.from_function(lambda city="": city, name=name, description=description)


def offered(*tools: StructuredTool) -> dict[str, str]:
    """Return the names of the tools that a model is sent, with their descriptions."""
    model = ScriptedChatModel(script=["ok"])
    agent = create_agent(model, [*tools], middleware=[ToolSelectionMiddleware()])
    agent.invoke({"messages": [{"role": "user", "content": "Will it rain?"}]})
    return {
        schema["function"]["name"]: schema["function"]["description"] for schema in model.calls[0].schemas
    }


def is_registered(name: str) -> bool:
    try:
        ToolRegistry().register(name, "Forecast.")
    except TypeError:
        return False
    return True


def is_refused_by_all(name: str) -> bool:
    findings = lint([{"name": name, "description": "Forecast the weather of a city."}])
    return f"rejected by {PROVIDERS}" in [finding.message for finding in findings]


@pytest.mark.parametrize(
    ("name", "is_possible"),
    [
        ("get_weather", True),
        ("x" * 128, True),
        ("weather.forecast:daily", True),
        ("2fa", True),
        ("x" * 129, False),
        ("a." + "x" * 63, False),
        ("2fa.check", False),
        ("wetter_für", False),
        ("天気", False),
        ("get weather", False),
        ("get_weather\n", False),
    ],
)
def test_a_name_is_offered_and_registered_unless_lint_says_that_every_provider_refuses_it(name, is_possible):
    assert is_refused_by_all(name) is not is_possible
    assert is_registered(name) is is_possible
    assert (name in offered(tool(name), tool("ring_bell"))) is is_possible


def test_the_registry_says_which_names_it_takes():
    with pytest.raises(
        TypeError, match=r"what a provider takes \(1 to 128 ASCII letters.*, got 'wetter_für'"
    ):
        ToolRegistry().register("wetter_für")


@pytest.mark.parametrize("name", ["find tools", "find.tools", "x" * 65, "2find", "", 3])
def test_a_tool_that_the_middleware_adds_has_a_name_that_every_provider_takes(name):
    with pytest.raises(ValueError, match=r"Discovery\.name must be 1 to 64 ASCII letters"):
        Discovery(name=name)


INVISIBLE = {
    "filler": "weather\u3164 of",
    "grapheme joiner": "weather\u034f of",
    "Hangul filler": "weather\u115f of",
    "Khmer vowel": "weather\u17b4 of",
    "half-width filler": "weather\uffa0 of",
    "zero-width space": "weather\u200b of",
    "joiner in a Latin word": "wea\u200dther of",
    "selector after a letter": "weather\ufe0f of",
    "two selectors after an emoji": "weather ❤\ufe0e\ufe0f of",
    "tags": "weather\U000e0041\U000e0042 of",
    "annotation": "weather\ufff9 of",
    "end of a control sequence": "weather\x1b[8m of",
}


@pytest.mark.parametrize("text", INVISIBLE.values(), ids=INVISIBLE)
def test_lint_finds_the_characters_that_the_middleware_takes_out(text):
    description = f"Forecast the {text} a city by its name."
    sent = offered(tool("get_weather", description), tool("ring_bell"))["get_weather"]
    assert len(sent) < len(description)
    checks = [finding.check for finding in lint([{"name": "get_weather", "description": description}])]
    assert "invisible-characters" in checks
    checks = [finding.check for finding in lint([{"name": "get_weather", "description": sent}])]
    assert "invisible-characters" not in checks


@pytest.mark.parametrize("text", ["❤️‍🔥", "👩‍👩‍👧", "👁️‍🗨️", "1️⃣", "می‌خواهم", "क्‍ष"])
def test_joiners_that_a_word_or_an_emoji_needs_are_sent_and_are_no_finding(text):
    description = f"Forecast the weather: {text} of a city."
    assert offered(tool("get_weather", description), tool("ring_bell"))["get_weather"] == description
    checks = [finding.check for finding in lint([{"name": "get_weather", "description": description}])]
    assert "invisible-characters" not in checks
