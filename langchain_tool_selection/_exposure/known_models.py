"""What is known of providers and of families of models. One table of each, every row with its source.

The rows are asked last: what a model's own profile says comes first, and a user's `models=` before all. A
model that no row is about is taken for one of a provider that caches a prompt by its beginning, as most do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class Provider(NamedTuple):
    """A provider as a LangChain client reaches it.

    Attributes:
        reported: How clients name it (`ls_provider`), in small letters without punctuation.
        hosts: Domains of its own, regional ones and those of cloud resellers among them. A client that sends
            its requests elsewhere sends them to a gateway.
        limits: The rules on tools that apply, a key of `_tools.limits.LIMITS`; empty if unknown.
        carries: Whether this route takes the provider's own forms of adding tools in mid-conversation.
        source: Where this is documented, or what was run.
        read: The day, as `YYYY-MM-DD`.
    """

    reported: tuple[str, ...]
    hosts: tuple[str, ...] = ()
    limits: str = ""
    carries: bool = False
    source: str = ""
    read: str = "2026-12-01"


_CLIENT = "the names that the newest clients report, made offline; "
_AZURE = ("openai.azure.com", "services.ai.azure.com", "cognitiveservices.azure.com")

PROVIDERS = (
    Provider(
        ("anthropic",),
        ("anthropic.com", "claude.com", "services.ai.azure.com"),
        "anthropic",
        carries=True,
        source=_CLIENT + "platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool",
    ),
    # Sources disagree on whether InvokeModel takes deferred tools without a beta header, which this client
    # does not send (pydantic-ai issue 5143). A refused request ends a run, so nothing native is sent.
    Provider(
        ("anthropicbedrock", "anthropicmantle"),
        ("anthropic.com", "amazonaws.com", "api.aws"),
        "bedrock",
        source=_CLIENT + "docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html",
    ),
    Provider(
        ("anthropicvertex",),
        ("googleapis.com",),
        "anthropic",
        source=_CLIENT + "docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude",
    ),
    # Converse has a block that removes tools, which LangChain's client drops.
    Provider(
        ("amazonbedrock", "bedrock", "bedrockconverse"),
        ("amazonaws.com", "api.aws"),
        "bedrock",
        source=_CLIENT + "docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html",
    ),
    Provider(
        ("openai",),
        ("openai.com", *_AZURE),
        "openai",
        carries=True,
        source=_CLIENT + "developers.openai.com/api/docs/guides/prompt-caching",
    ),
    Provider(
        ("azure", "azureopenai", "azureai"),
        ("openai.com", *_AZURE),
        "azure",
        carries=True,
        source=_CLIENT + "the endpoint's error text quoted in langfuse issue 17166 lists additional_tools",
    ),
    Provider(("openaimantle",), ("amazonaws.com", "api.aws"), "openai", source=_CLIENT + "langchain-aws"),
    Provider(
        ("googlegenai", "googlevertexai", "vertexai"),
        ("googleapis.com",),
        "gemini",
        source=_CLIENT + "ai.google.dev/gemini-api/docs/caching",
    ),
    Provider(("mistral", "mistralai"), ("mistral.ai",), source=_CLIENT + "docs.mistral.ai: prompt caching"),
    Provider(("xai",), ("x.ai",), source=_CLIENT + "docs.x.ai: prompt caching"),
    Provider(("groq",), ("groq.com",), source=_CLIENT + "console.groq.com/docs/prompt-caching"),
    Provider(("deepseek",), ("deepseek.com",), source=_CLIENT + "api-docs.deepseek.com/guides/kv_cache"),
    Provider(
        ("baseten",),
        ("baseten.co",),
        carries=True,
        source="docs.baseten.co: deferred tools on Chat Completions; " + _CLIENT,
    ),
    Provider(("moonshot", "moonshotai"), ("moonshot.ai", "moonshot.cn"), source="platform.moonshot.ai/docs"),
    Provider(("together",), ("together.xyz", "together.ai"), source="docs.together.ai"),
    Provider(("fireworks",), ("fireworks.ai",), source="docs.fireworks.ai: prompt caching"),
    Provider(("openrouter",), ("openrouter.ai",), source=_CLIENT + "openrouter.ai/docs: prompt caching"),
)


class Family(NamedTuple):
    """Models that are alike in one respect.

    Attributes:
        names: Matches their plain names (`plain_name`) from the beginning.
        source: Where this is documented.
        read: The day, as `YYYY-MM-DD`.
    """

    names: re.Pattern[str]
    source: str
    read: str = "2026-12-01"


_END = r"(?!\d)"

CHECKS_PREFIX = Family(
    re.compile(rf"claude-(?:(?:fable|mythos)-5-[1-9]|(?:opus|sonnet|haiku)-5-[5-9]|[a-z]+-[6-9]){_END}"),
    "platform.claude.com/docs/en/build-with-claude/preserved-thinking/prefix-checks",
)
"""Claude models that bind their thinking to the tools array."""

TOOL_REFERENCE = Family(
    re.compile(rf"claude-(?:(?:opus|sonnet|haiku)-(?:4-[5-9]|[5-9])|(?:fable|mythos)-[5-9]){_END}"),
    "platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool, supportedModels",
)
"""Claude models with tool search."""

ADDITIONAL_TOOLS = Family(
    re.compile(rf"(?:gpt-4\.1|gpt-[5-9]|o3){_END}"),
    "the profiles of langchain-openai 1.7.4",
)
"""OpenAI's models that take tools in mid-conversation, through the Responses API."""


def provider_of(reported: str, host: str) -> Provider | None:
    """Return what is known of a provider; `None` if nothing is.

    Args:
        reported: The name that a client reports.
        host: Where it sends its requests, if it was told. A client of one provider may be used for another.
    """
    plain = re.sub(r"[^a-z0-9]", "", reported.lower())
    named = next((one for one in PROVIDERS if plain in one.reported), None)
    if not host or (named is not None and is_in(host, named.hosts)):
        return named
    return next((one for one in PROVIDERS if is_in(host, one.hosts)), named)


def is_in(host: str, domains: Iterable[str]) -> bool:
    """Whether a host is one of the domains, or in one of them."""
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)


RUNS_HERE = re.compile(r"fake|scripted|mock|llamacpp|mlx|gpt4all|pipeline")
"""Clients that run the model in this process, or none: nobody bills the prompt, and it is not kept apart."""
