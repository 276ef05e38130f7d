"""What is known about a model, and which exposure "auto" takes for it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.chat_models import init_chat_model
from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_openai import AzureChatOpenAI, ChatOpenAI

from langchain_tool_selection._exposure.models import ModelTraits, automatic
from langchain_tool_selection.testing import ScriptedChatModel

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
        (lambda: claude("claude-haiku-4-5"), None, "grow"),
        (lambda: claude("claude-3-5-sonnet-20241022"), None, "grow"),
        (lambda: on_responses("gpt-5.5"), "additional_tools", "append"),
        (lambda: on_responses("gpt-4.1"), "additional_tools", "append"),
        (lambda: gpt("gpt-5.5", use_responses_api=False), None, "grow"),
        (lambda: gpt("gpt-4o", use_responses_api=True), None, "grow"),
        (lambda: gpt("gpt-4o"), None, "grow"),
        (lambda: gemini("gemini-3-pro"), None, "grow"),
        (lambda: elsewhere("deepseek", "deepseek-chat"), None, "grow"),
        (lambda: elsewhere("amazon_bedrock", "anthropic.claude-sonnet-4-5-v1:0"), None, "grow"),
        (lambda: elsewhere("amazon_bedrock", "us.anthropic.claude-opus-5-5-v1:0"), None, None),
        (lambda: elsewhere("anthropic_vertex", "claude-sonnet-5-5@20261001"), None, None),
        (lambda: elsewhere("ollama", "qwen3"), None, "per_turn"),
        (lambda: elsewhere("", ""), None, "per_turn"),
        (lambda: ScriptedChatModel(script=[]), None, "per_turn"),
        (lambda: FakeListChatModel(responses=["hi"]), None, "per_turn"),
        (lambda: GenericFakeChatModel(messages=iter([])), None, "per_turn"),
        (object, None, "per_turn"),
        (lambda: None, None, "per_turn"),
    ],
)
def test_auto_takes_the_cheapest_exposure_that_the_provider_accepts(make, transport, exposure):
    traits = ModelTraits.of(make())
    assert (traits.transport, automatic(traits)) == (transport, exposure)


def test_azure_with_responses_is_asked_like_openai():
    client = AzureChatOpenAI(
        model="gpt-5.5",
        azure_endpoint="https://none.example",
        api_key="none",
        api_version="2025-04-01-preview",
        use_responses_api=True,
    )
    can = bool((client.profile or {}).get("mid_conversation_tools"))
    traits = ModelTraits.of(client)
    assert traits.caches
    assert automatic(traits) == ("append" if can else "grow")


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
    assert ModelTraits.of(elsewhere("anthropic", name)).checks_prefix is checks


@pytest.mark.parametrize(
    ("name", "thinking", "thinks"),
    [
        ("claude-opus-5-5", None, True),
        ("claude-opus-5-5", OFF, False),
        ("claude-opus-5-5", {"type": "adaptive"}, True),
        ("claude-sonnet-4-5", None, False),
        ("claude-sonnet-4-5", ON, True),
        ("claude-sonnet-4-5", OFF, False),
    ],
)
@pytest.mark.parametrize("how", ["client", "bound", "call"])
def test_thinking_is_read_from_the_client_what_is_bound_and_the_call(name, thinking, thinks, how):
    if how == "client":
        traits = ModelTraits.of(claude(name, thinking=thinking))
    elif how == "bound":
        model = claude(name)
        traits = ModelTraits.of(model.bind(thinking=thinking) if thinking else model)
    else:
        traits = ModelTraits.of(claude(name), {"thinking": thinking} if thinking else {})
    assert traits.thinks is thinks


def test_what_the_call_says_of_thinking_wins_over_the_client():
    model = claude("claude-opus-5-5", thinking=ON).bind(thinking=ON)
    assert not ModelTraits.of(model, {"thinking": OFF}).thinks


def test_without_thinking_a_prefix_checking_model_may_grow_elsewhere():
    model = elsewhere("amazon_bedrock", "anthropic.claude-opus-5-5").bind(thinking=OFF)
    assert automatic(ModelTraits.of(model)) == "grow"


def test_arguments_bound_to_a_model_do_not_hide_it():
    bound = claude("claude-sonnet-4-5").bind(stop=["."])
    assert automatic(ModelTraits.of(bound)) == "append"
    assert ModelTraits.of(bound.bind(max_tokens=10)) == ModelTraits.of(claude("claude-sonnet-4-5"))


def test_responses_bound_as_an_argument_count_as_the_client_routes_them():
    model = gpt("gpt-5.5").bind(reasoning={"effort": "low"})
    assert automatic(ModelTraits.of(model)) in {"append", "grow"}


def test_a_model_that_is_chosen_when_it_is_called_is_unknown():
    assert automatic(ModelTraits.of(init_chat_model(configurable_fields="any"))) == "per_turn"


def test_a_configurable_model_with_a_default_never_gets_what_the_default_refuses():
    pytest.importorskip("langchain_anthropic")
    model = init_chat_model(
        "anthropic:claude-opus-5-5", api_key="none", configurable_fields=("model", "model_provider")
    )
    assert automatic(ModelTraits.of(model)) in {None, "append"}


def test_a_model_that_fails_to_report_is_unknown():
    class Broken(ScriptedChatModel):
        def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
            raise RuntimeError

    assert ModelTraits.of(Broken(script=[])) == ModelTraits()
