"""What there is to know about a chat model before tools are shown to it.

A model is known by its class, the provider and name that it reports to LangChain, and its profile.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableBinding

from langchain_tool_selection._exposure.transports.base import Transport
from langchain_tool_selection._exposure.transports.registry import transport_of
from langchain_tool_selection._ground.models import model_name

_CACHING_PROVIDERS = frozenset(
    """
    anthropic openai azure google_genai google_vertexai amazon_bedrock anthropic_bedrock anthropic_vertex
    deepseek
    """.split()
)
"""Providers that document a prompt cache, as LangChain's clients name themselves (`ls_provider`)."""

_CHECKS_PREFIX = re.compile(
    r"claude-(?:(?:fable|mythos)-5-[1-9]|(?:opus|sonnet|haiku)-5-[5-9]|[a-z]+-[6-9])(?!\d)"
)
"""Claude models that bind thinking to the tools array, by Anthropic's page on prefix checks."""


@dataclass(frozen=True)
class ModelTraits:
    """What about a model decides how tools are shown to it.

    Attributes:
        name: The model's name; empty if unknown.
        full_name: The name with its provider, as `init_chat_model` takes it.
        transport: The provider's way to add a tool in mid-conversation, if this client can send it.
        caches: Whether the provider documents a prompt cache.
        checks_prefix: Whether the provider refuses a changed tools array once the model has thought.
        input_limit: How many tokens a request may have; `None` if the profile does not say.
        thinks: Whether thinking is switched on, as far as settings say; a model that checks its prefix
            thinks unless it is switched off.
        client: The class of the model, for messages to people.
    """

    name: str = ""
    full_name: str = ""
    transport: Transport | None = None
    caches: bool = False
    checks_prefix: bool = False
    thinks: bool = False
    input_limit: int | None = None
    client: str = field(default="", compare=False)

    @property
    def label(self) -> str:
        """What to call the model in a message: its name, or else its class."""
        return self.name or self.client

    @property
    def refuses_changes(self) -> bool:
        """Whether the provider answers with an error when the tools array changes after a thought."""
        return self.checks_prefix and self.thinks

    @classmethod
    def of(cls, model: Any, settings: Mapping[str, Any] | None = None) -> ModelTraits:
        """Read the traits of a chat model; of one that we know nothing about, none.

        Args:
            model: A LangChain chat model, with or without arguments bound to it.
            settings: What the call adds to the model's own settings.
        """
        bound, client = {**(settings or {})}, type(model).__name__
        if isinstance(model, RunnableBinding):
            bound, model = {**model.kwargs, **bound}, model.bound
        reported = model_name(model)
        name = reported.name
        checks_prefix = bool(_CHECKS_PREFIX.search(name))
        thinking = bound.get("thinking", getattr(model, "thinking", None))
        thinks = thinking.get("type") != "disabled" if isinstance(thinking, Mapping) else checks_prefix
        return cls(
            name=name,
            full_name=reported.full,
            transport=transport_of(model, name),
            caches=reported.provider in _CACHING_PROVIDERS,
            checks_prefix=checks_prefix,
            input_limit=(getattr(model, "profile", None) or {}).get("max_input_tokens") or None,
            thinks=thinks,
            client=client,
        )
