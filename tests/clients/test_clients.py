"""What real clients report of themselves, and what the middleware makes of it. Offline, with dummy keys.

In an environment of its own (`make test-clients`): the clients ask for versions that exclude those of others.
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool

from langchain_tool_selection import ByModel, ModelFacts, ToolSelectionMiddleware

pytestmark = pytest.mark.filterwarnings("ignore")

SUBJECTS = ("email", "invoice", "flight", "music", "parcel", "garden")
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}


@pytest.fixture(autouse=True)
def dummy_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


def client(path: str, model: str, **settings: Any) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)(model=model, **settings)


def exposure_of(model: Any, setting: Any = "auto") -> str:
    """Return the exposure under which a model is shown its tools; "all" where all are sent."""

    @wrap_model_call
    def provider(_request: Any, _handler: Any) -> AIMessage:
        return AIMessage("Done.")

    tools = [
        StructuredTool(
            name=f"do_{one}", description=f"Handle the {one}.", args_schema=TEXT, func=lambda **_: ""
        )
        for one in SUBJECTS
    ]
    selection = ToolSelectionMiddleware(top_k=2, exposure=setting)
    agent = create_agent(model, tools, middleware=[selection, provider])
    (event,) = agent.stream({"messages": [("user", "the email")]}, stream_mode="custom") or [{}]
    return str(event["exposure"])


VERTEX = {"project": "none", "location": "us-east5"}
AZURE = {
    "azure_endpoint": "https://none.openai.azure.com",
    "api_key": "none",
    "api_version": "2025-04-01-preview",
}

CASES = [
    ("langchain_anthropic.ChatAnthropic", "claude-opus-5-5", {}, "append"),
    ("langchain_anthropic.ChatAnthropic", "claude-fable-5-2", {}, "append"),
    ("langchain_anthropic.ChatAnthropic", "claude-mythos-5-2", {}, "append"),
    ("langchain_anthropic.ChatAnthropic", "claude-haiku-4-5", {}, "append"),
    ("langchain_anthropic.ChatAnthropic", "claude-sonnet-4-20250514", {}, "grow"),
    ("langchain_anthropic.ChatAnthropic", "claude-opus-4-6", {"base_url": "https://gw.example/v1"}, "grow"),
    ("langchain_anthropic.ChatAnthropic", "claude-opus-5-5", {"base_url": "https://gw.example/v1"}, "stubs"),
    ("langchain_aws.ChatBedrockConverse", "us.anthropic.claude-opus-4-6-v1:0", {}, "grow"),
    ("langchain_aws.ChatBedrockConverse", "us.anthropic.claude-opus-5-5-v1:0", {}, "stubs"),
    ("langchain_aws.ChatBedrock", "anthropic.claude-opus-4-6-v1:0", {}, "grow"),
    ("langchain_aws.ChatAnthropicBedrock", "anthropic.claude-opus-4-6-v1:0", {}, "grow"),
    ("langchain_aws.ChatAnthropicBedrock", "anthropic.claude-opus-5-5-v1:0", {}, "stubs"),
    ("langchain_aws.ChatAnthropicMantle", "anthropic.claude-opus-4-6-v1:0", {}, "grow"),
    ("langchain_aws.ChatOpenAIMantle", "openai.gpt-5.5", {}, "grow"),
    ("langchain_google_vertexai.ChatVertexAI", "gemini-3-pro", VERTEX, "grow"),
    (
        "langchain_google_vertexai.model_garden.ChatAnthropicVertex",
        "claude-opus-4-6@20260401",
        VERTEX,
        "grow",
    ),
    (
        "langchain_google_vertexai.model_garden.ChatAnthropicVertex",
        "claude-opus-5-5@20261001",
        VERTEX,
        "stubs",
    ),
    ("langchain_google_genai.ChatGoogleGenerativeAI", "gemini-4-neon", {"google_api_key": "none"}, "grow"),
    ("langchain_mistralai.ChatMistralAI", "mistral-large-latest", {"api_key": "none"}, "grow"),
    ("langchain_xai.ChatXAI", "grok-4.6", {"api_key": "none"}, "grow"),
    ("langchain_groq.ChatGroq", "openai/gpt-oss-120b", {"api_key": "none"}, "grow"),
    ("langchain_deepseek.ChatDeepSeek", "deepseek-chat", {"api_key": "none"}, "grow"),
    ("langchain_openrouter.ChatOpenRouter", "openai/gpt-5.5", {"api_key": "none"}, "grow"),
    ("langchain_openrouter.ChatOpenRouter", "anthropic/claude-opus-5.5", {"api_key": "none"}, "stubs"),
    ("langchain_openai.ChatOpenAI", "gpt-5.5", {"api_key": "none"}, "grow"),
    ("langchain_openai.ChatOpenAI", "gpt-5.5", {"api_key": "none", "use_responses_api": True}, "append"),
    (
        "langchain_openai.ChatOpenAI",
        "gpt-5.5",
        {"api_key": "none", "use_responses_api": True, "base_url": "https://eu.api.openai.com/v1"},
        "append",
    ),
    (
        "langchain_openai.ChatOpenAI",
        "gpt-5.5",
        {"api_key": "none", "use_responses_api": True, "base_url": "https://gw.example/v1"},
        "grow",
    ),
    (
        "langchain_openai.ChatOpenAI",
        "qwen3",
        {"api_key": "none", "base_url": "http://localhost:8000/v1"},
        "grow",
    ),
    ("langchain_openai.AzureChatOpenAI", "gpt-5.5", AZURE, "grow"),
    ("langchain_openai.AzureChatOpenAI", "gpt-5.5", {**AZURE, "use_responses_api": True}, "append"),
]


@pytest.mark.parametrize(("path", "model", "settings", "exposure"), CASES, ids=lambda value: str(value)[:60])
def test_each_client_gets_the_exposure_that_its_route_takes(path, model, settings, exposure):
    assert exposure_of(client(path, model, **settings)) == exposure


def test_an_azure_deployment_without_a_model_keeps_its_prefix():
    azure = importlib.import_module("langchain_openai").AzureChatOpenAI(azure_deployment="ours", **AZURE)
    assert exposure_of(azure) == "grow"


def test_a_gateway_in_the_environment_is_a_gateway_too(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gw.example/v1")
    model = client("langchain_openai.ChatOpenAI", "gpt-5.5", api_key="none", use_responses_api=True)
    assert exposure_of(model) == "grow"
    passes = ByModel({"gw.example": ModelFacts(wire="additional_tools")})
    assert exposure_of(model, passes) == "append"
