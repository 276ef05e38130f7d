"""What there is to know about a chat model before tools are shown to it, and the exposure that suits it.

A model is known by its class, the provider and name that it reports to LangChain, and its profile. No
provider's package is imported: an instance of a class means that its module is loaded.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.runnables import RunnableBinding

ExposureName = Literal["per_turn", "grow", "append", "proxy"]
Transport = Literal["tool_addition", "tool_reference", "additional_tools"]

_CACHING_PROVIDERS = frozenset(
    """
    anthropic openai azure google_genai google_vertexai amazon_bedrock anthropic_bedrock anthropic_vertex
    deepseek
    """.split()
)
"""Providers that document a prompt cache, as LangChain's clients name themselves (`ls_provider`)."""

_TOOL_REFERENCE = re.compile(r"claude-(?:opus|sonnet)-(?:4-[5-9]|[5-9])(?!\d)")
"""Claude models with tool search, by Anthropic's page on it: Opus and Sonnet from 4.5 on."""

_CHECKS_PREFIX = re.compile(
    r"claude-(?:(?:fable|mythos)-5-[1-9]|(?:opus|sonnet|haiku)-5-[5-9]|[a-z]+-[6-9])(?!\d)"
)
"""Claude models that bind thinking to the tools array, by Anthropic's page on prefix checks."""


@dataclass(frozen=True)
class ModelTraits:
    """What about a model decides how tools are shown to it.

    Attributes:
        provider: As LangChain's client names itself, e.g. "anthropic"; empty if unknown.
        name: The model's name; empty if unknown.
        transport: The provider's way to add a tool in mid-conversation, if this client can send it:
            Anthropic's "tool_addition" or "tool_reference" blocks, OpenAI's "additional_tools" item.
        caches: Whether the provider documents a prompt cache.
        checks_prefix: Whether the provider refuses a changed tools array once the model has thought.
        input_limit: How many tokens a request may have; `None` if the profile does not say.
        thinks: Whether thinking is switched on, as far as settings say; a model that checks its prefix
            thinks unless it is switched off.
    """

    provider: str = ""
    name: str = ""
    transport: Transport | None = None
    caches: bool = False
    checks_prefix: bool = False
    thinks: bool = False
    input_limit: int | None = None

    @property
    def full_name(self) -> str:
        """The name with its provider, as `init_chat_model` takes it."""
        return f"{self.provider}:{self.name}"

    @classmethod
    def of(cls, model: Any, settings: Mapping[str, Any] | None = None) -> ModelTraits:
        """Read the traits of a chat model; of one that we know nothing about, none.

        Args:
            model: A LangChain chat model, with or without arguments bound to it.
            settings: What the call adds to the model's own settings.
        """
        bound = {**(settings or {})}
        if isinstance(model, RunnableBinding):
            bound, model = {**model.kwargs, **bound}, model.bound
        params = _reported(model)
        provider, name = str(params.get("ls_provider") or ""), str(params.get("ls_model_name") or "")
        checks_prefix = bool(_CHECKS_PREFIX.search(name))
        return cls(
            provider=provider,
            name=name,
            transport=_transport(model, name),
            caches=provider in _CACHING_PROVIDERS,
            checks_prefix=checks_prefix,
            input_limit=(getattr(model, "profile", None) or {}).get("max_input_tokens") or None,
            thinks=_thinks(bound.get("thinking", getattr(model, "thinking", None)), checks_prefix),
        )


def automatic(traits: ModelTraits) -> ExposureName | None:
    """Return the exposure for `exposure="auto"`: the cheapest that the provider accepts.

    | the model | exposure |
    |---|---|
    | its provider adds tools in mid-conversation, through this client | append |
    | a Claude that refuses a changed tools array, through another client, thinking not off | none: send all |
    | its provider documents a prompt cache | grow |
    | any other: unknown, local, a fake | per_turn |
    """
    if traits.transport:
        return "append"
    if traits.checks_prefix and traits.thinks:
        return None
    return "grow" if traits.caches else "per_turn"


def _reported(model: Any) -> Mapping[str, Any]:
    try:
        params = model._get_ls_params()
    except Exception:
        # Not a chat model of LangChain's, or one that is chosen when it is called.
        return {}
    return params if isinstance(params, Mapping) else {}


def _transport(model: Any, name: str) -> Transport | None:
    adds_tools = bool((getattr(model, "profile", None) or {}).get("mid_conversation_tools"))
    if _is_instance(model, "langchain_anthropic.chat_models", "ChatAnthropic"):
        if adds_tools:
            return "tool_addition"
        return "tool_reference" if _TOOL_REFERENCE.search(name) else None
    if adds_tools and _is_instance(model, "langchain_openai.chat_models.base", "BaseChatOpenAI"):
        return "additional_tools"
    return None


def _is_instance(model: Any, module: str, name: str) -> bool:
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(model, kind)


def _thinks(thinking: Any, by_default: bool) -> bool:
    if isinstance(thinking, Mapping):
        return thinking.get("type") != "disabled"
    return by_default
