"""Which exposure "auto" takes for a model: seen in what the hook of the middleware makes of a request."""

from __future__ import annotations

import json
import logging
from functools import cache
from typing import Any, NamedTuple

import pytest
from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain.chat_models import init_chat_model
from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langchain_openai import AzureChatOpenAI, ChatOpenAI
from langgraph.runtime import Runtime

from langchain_tool_selection import ToolSelectionMiddleware
from langchain_tool_selection.testing import ScriptedChatModel, call

TRANSPORTS = ("tool_addition", "tool_reference", "additional_tools")
TOOLS = {"send_email": "Send an email.", "play_music": "Play music.", "lock_door": "Lock the door."}


@cache
def tools() -> list[BaseTool]:
    return [
        StructuredTool.from_function(func=lambda text="": "", name=name, description=description)
        for name, description in TOOLS.items()
    ]


class Shown(NamedTuple):
    """How a model call was shown its tools.

    Attributes:
        exposure: By name; `None` where all tools are sent.
        transport: The provider's way by which a tool was added to the conversation, if one was.
        revealed: What the second user message added to the conversation, unasked.
    """

    exposure: str | None
    transport: str | None
    revealed: list[str]


def shown_to(model: Any, settings: dict[str, Any] | None = None, exposure: str = "auto") -> Shown:
    """Play a search and a change of topic for a model through the hook, and return how it was shown tools."""
    selection = ToolSelectionMiddleware(top_k=1, exposure=exposure)
    everything, state, requests, events = [*selection.tools, *tools()], {}, [], []
    search = call("discover_tools", names=["play_music"])
    answer = ToolMessage(
        "Found.",
        tool_call_id=search.tool_calls[0]["id"],
        name="discover_tools",
        artifact={"tool_selection_pinned": ["play_music"]},
    )
    messages: list[Any] = [HumanMessage("send an email", id="1")]
    for more, found in (
        ([], []),
        ([search, answer], ["play_music"]),
        ([AIMessage("Done."), HumanMessage("lock the door", id="2")], []),
    ):
        messages = [*messages, *more]
        state = {
            **state,
            "messages": messages,
            "tool_selection_pinned": [*state.get("tool_selection_pinned", []), *found],
        }
        request = ModelRequest(
            model=model,
            messages=messages,
            tools=everything,
            state=state,
            model_settings=dict(settings or {}),
            tool_choice=None,
            system_message=None,
            response_format=None,
            runtime=Runtime(stream_writer=events.append),
        )
        response = selection.wrap_model_call(
            request, lambda sent: requests.append(sent) or ModelResponse([AIMessage("Done.")])
        )
        state = {**state, **(getattr(getattr(response, "command", None), "update", None) or {})}
    if not events:
        assert [tool.name for tool in requests[0].tools] == [*TOOLS]
        return Shown(None, None, [])
    sent = json.dumps([requests[1].messages, [tool.extras for tool in requests[1].tools]], default=repr)
    used = [name for name in TRANSPORTS if f"'{name}'" in sent or f'"{name}"' in sent]
    return Shown(events[0]["exposure"], used[0] if used else None, events[-1]["revealed"])


OFF = {"type": "disabled"}
ON = {"type": "enabled", "budget_tokens": 2000}


def claude(name: str, **settings: Any) -> Any:
    module = pytest.importorskip("langchain_anthropic", reason="is not in the environment of oldest versions")
    return module.ChatAnthropic(model=name, api_key="none", **settings)


def gpt(name: str, **settings: Any) -> Any:
    return ChatOpenAI(model=name, api_key="none", **settings)


def on_responses(name: str, **settings: Any) -> Any:
    client = gpt(name, use_responses_api=True, **settings)
    if not (client.profile or {}).get("mid_conversation_tools"):
        pytest.skip("this version of the client cannot add tools in mid-conversation")
    return client


def gemini(name: str) -> Any:
    module = pytest.importorskip("langchain_google_genai")
    return module.ChatGoogleGenerativeAI(model=name, google_api_key="none")


class Elsewhere(ScriptedChatModel):
    """Says that it is a provider's model, and is of none of the known clients."""

    provider: str
    named: str

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        params = super()._get_ls_params(stop, **kwargs)
        return {**params, "ls_provider": self.provider, "ls_model_name": self.named}


def elsewhere(provider: str, named: str) -> Any:
    return Elsewhere(script=[], provider=provider, named=named)


@pytest.mark.parametrize(
    ("make", "transport", "exposure"),
    [
        (lambda: claude("claude-opus-5-5"), "tool_addition", "append"),
        (lambda: claude("claude-sonnet-5-5"), "tool_addition", "append"),
        (lambda: claude("claude-haiku-5-5"), "tool_addition", "append"),
        (lambda: claude("claude-opus-4-8"), "tool_addition", "append"),
        (lambda: claude("claude-sonnet-4-5"), "tool_reference", "append"),
        (lambda: claude("claude-sonnet-4-5-20250929"), "tool_reference", "append"),
        (lambda: claude("claude-opus-4-5-20251101"), "tool_reference", "append"),
        (lambda: claude("claude-sonnet-4-20250514"), None, "grow"),
        (lambda: claude("claude-opus-4-1-20250805"), None, "grow"),
        (lambda: claude("claude-haiku-4-5"), "tool_reference", "append"),
        (lambda: claude("claude-fable-5-2"), "tool_reference", "append"),
        (lambda: claude("claude-mythos-5-2"), "tool_reference", "append"),
        (lambda: elsewhere("openrouter", "anthropic/claude-opus-5.5"), None, "stubs"),
        (lambda: elsewhere("xai", "grok-4.6"), None, "grow"),
        (lambda: elsewhere("somebody-new", "their-model"), None, "grow"),
        (lambda: claude("claude-3-5-sonnet-20241022"), None, "grow"),
        (lambda: on_responses("gpt-5.5"), "additional_tools", "append"),
        (lambda: on_responses("gpt-4.1"), "additional_tools", "append"),
        (lambda: gpt("gpt-5.5", use_responses_api=False), None, "grow"),
        (lambda: gpt("gpt-4o", use_responses_api=True), None, "grow"),
        (lambda: gpt("gpt-4o"), None, "grow"),
        (lambda: gemini("gemini-3-pro"), None, "grow"),
        (lambda: elsewhere("deepseek", "deepseek-chat"), None, "grow"),
        (lambda: elsewhere("amazon_bedrock", "anthropic.claude-sonnet-4-5-v1:0"), None, "grow"),
        (lambda: elsewhere("amazon_bedrock", "us.anthropic.claude-opus-5-5-v1:0"), None, "stubs"),
        (lambda: elsewhere("anthropic_vertex", "claude-sonnet-5-5@20261001"), None, "stubs"),
        (lambda: elsewhere("ollama", "qwen3"), None, "grow"),
        (lambda: elsewhere("", ""), None, "per_turn"),
        (lambda: ScriptedChatModel(script=[]), None, "per_turn"),
        (lambda: FakeListChatModel(responses=["hi"]), None, "per_turn"),
        (lambda: GenericFakeChatModel(messages=iter([])), None, "per_turn"),
        (object, None, "per_turn"),
        (lambda: None, None, "per_turn"),
    ],
)
def test_auto_takes_the_cheapest_exposure_that_the_provider_accepts(make, transport, exposure):
    shown = shown_to(make())
    assert (shown.transport, shown.exposure) == (transport, exposure)


def test_azure_with_responses_is_asked_like_openai():
    client = AzureChatOpenAI(
        model="gpt-5.5",
        azure_endpoint="https://none.example",
        api_key="none",
        api_version="2025-04-01-preview",
        use_responses_api=True,
    )
    can = bool((client.profile or {}).get("mid_conversation_tools"))
    assert shown_to(client).exposure == ("append" if can else "grow")


@pytest.mark.parametrize(
    ("name", "checks"),
    [
        ("claude-opus-5-5", True),
        ("claude-sonnet-5-5-20261001", True),
        ("claude-haiku-5-5", True),
        ("claude-fable-5-1", True),
        ("claude-fable-5-2", True),
        ("claude-mythos-5-1", True),
        ("claude-opus-6", True),
        ("anthropic.claude-opus-5-5-v1:0", True),
        ("claude-fable-5", False),
        ("claude-opus-5", False),
        ("claude-opus-5-20260801", False),
        ("claude-opus-4-8", False),
        ("claude-sonnet-4-6", False),
        ("claude-3-5-sonnet-20241022", False),
        ("gpt-5.5", False),
        ("", False),
    ],
)
def test_the_models_that_bind_thinking_to_the_tools_are_known_by_name(name, checks):
    # Through this client no tool can be added in mid-conversation, and the array must not change.
    assert shown_to(elsewhere("anthropic", name)).exposure == ("stubs" if checks else "grow")


def settings_of(how: str, name: str, thinking: Any) -> tuple[Any, dict[str, Any]]:
    """Return a model and a call's settings that say of thinking what `thinking` does."""
    if how == "client":
        return claude(name, thinking=thinking), {}
    model = claude(name)
    if how == "bound":
        return (model.bind(thinking=thinking) if thinking else model), {}
    return model, ({"thinking": thinking} if thinking else {})


HOWS = pytest.mark.parametrize("how", ["client", "bound", "call"])


@HOWS
@pytest.mark.parametrize(("thinking", "thinks"), [(None, True), (OFF, False), ({"type": "adaptive"}, True)])
def test_a_model_that_checks_its_prefix_thinks_unless_it_is_switched_off(how, thinking, thinks, caplog):
    model, settings = settings_of(how, "claude-opus-5-5", thinking)
    with caplog.at_level(logging.WARNING, "langchain_tool_selection"):
        assert shown_to(model, settings, "grow").exposure == "grow"
    assert ("after it has thought" in caplog.text) is thinks


@HOWS
@pytest.mark.parametrize(("thinking", "thinks"), [(None, False), (OFF, False), (ON, True)])
def test_another_model_thinks_if_it_is_told_to(how, thinking, thinks):
    # A reference needs a search to stand in, and for a model that thinks none can be staged.
    shown = shown_to(*settings_of(how, "claude-sonnet-4-5", thinking))
    assert shown.revealed == ([] if thinks else ["lock_door"])


def test_what_the_call_says_of_thinking_wins_over_the_client():
    model = claude("claude-sonnet-4-5", thinking=ON).bind(thinking=ON)
    assert shown_to(model, {"thinking": OFF}).revealed == ["lock_door"]


def test_without_thinking_a_prefix_checking_model_may_grow_elsewhere():
    model = elsewhere("amazon_bedrock", "anthropic.claude-opus-5-5").bind(thinking=OFF)
    assert shown_to(model).exposure == "grow"


def test_arguments_bound_to_a_model_do_not_hide_it():
    bound = claude("claude-sonnet-4-5").bind(stop=["."])
    assert shown_to(bound) == shown_to(bound.bind(max_tokens=10)) == shown_to(claude("claude-sonnet-4-5"))
    assert shown_to(bound).exposure == "append"


def test_responses_bound_as_an_argument_count_as_the_client_routes_them():
    model = gpt("gpt-5.5").bind(reasoning={"effort": "low"})
    assert shown_to(model).exposure in {"append", "grow"}


def test_a_model_that_is_chosen_when_it_is_called_is_unknown():
    assert shown_to(init_chat_model(configurable_fields="any")).exposure == "per_turn"


def test_a_configurable_model_with_a_default_never_gets_what_the_default_refuses():
    pytest.importorskip("langchain_anthropic")
    model = init_chat_model(
        "anthropic:claude-opus-5-5", api_key="none", configurable_fields=("model", "model_provider")
    )
    assert shown_to(model).exposure in {None, "append"}


def test_a_model_that_fails_to_report_is_unknown():
    class Broken(ScriptedChatModel):
        def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
            raise RuntimeError

    assert shown_to(Broken(script=[])).exposure == "per_turn"
