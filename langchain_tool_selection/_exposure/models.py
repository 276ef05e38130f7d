"""What there is to know about a chat model before tools are shown to it.

Learnt in this order, the first that says something counts: what the user says of models by pattern, the
model's own profile, the rules for its family, the client's class and address. See `known_models`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from langchain_tool_selection._exposure.known_models import (
    CHECKS_PREFIX,
    RUNS_HERE,
    Provider,
    is_in,
    provider_of,
)
from langchain_tool_selection._exposure.transports.base import Transport
from langchain_tool_selection._exposure.transports.registry import TRANSPORTS, transport_of
from langchain_tool_selection._ground.models import called_model, host_of, model_name, plain_name
from langchain_tool_selection._ground.settings import check_choice
from langchain_tool_selection._tools.limits import LIMITS


@dataclass(frozen=True)
class ModelFacts:
    """What you know of a model or a gateway, for `ByModel`. `None` leaves what the package learns itself.

    Attributes:
        wire: The provider's form in which tools are added in mid-conversation: "tool_reference",
            "tool_addition", "additional_tools" or "deferred_tools"; "none" if a gateway drops them.
        limits: Whose rules on tools apply, on their number and names: "openai", "azure", "anthropic",
            "bedrock" or "gemini"; empty for no rules.
        caches: Whether a prompt is cached by its beginning, so that a changed tools array costs.
        checks_prefix: Whether a changed tools array is refused once the model has thought.
        input_limit: How many tokens a request may have.

    Raises:
        ValueError: `wire` or `limits` has no possible value.
    """

    wire: str | None = None
    caches: bool | None = None
    checks_prefix: bool | None = None
    input_limit: int | None = None
    limits: str | None = None

    def __post_init__(self) -> None:
        if self.wire is not None:
            check_choice("ModelFacts.wire", self.wire, ("none", *(one.name for one in TRANSPORTS)))
        if self.limits is not None:
            check_choice("ModelFacts.limits", self.limits, ("", *LIMITS))

    @property
    def transport(self) -> Transport | None:
        """The form; `None` if there is none, or nothing is said of it."""
        return next((one for one in TRANSPORTS if one.name == self.wire), None)


NO_FACTS = ModelFacts()


@dataclass(frozen=True)
class ModelTraits:
    """What about a model decides how tools are shown to it.

    Attributes:
        name: The model's name; empty if unknown.
        full_name: The name with its provider, as `init_chat_model` takes it.
        transport: The provider's way to add a tool in mid-conversation, if this client can send it.
        caches: Whether the provider caches a prompt by its beginning, as far as anybody knows.
        checks_prefix: Whether the provider refuses a changed tools array once the model has thought.
        input_limit: How many tokens a request may have; `None` if nothing says.
        thinks: Whether thinking is switched on, as far as settings say; a model that checks its prefix
            thinks unless it is switched off.
        limits: The rules on tools that its provider has, a key of `LIMITS`; empty if unknown.
        gateway: The host that requests go to, if it is not one of the provider's own; else empty.
        could_append: Whether the model takes tools in mid-conversation, and its client is not set to.
        client: The class of the model, for messages to people.
    """

    name: str = ""
    full_name: str = ""
    transport: Transport | None = None
    caches: bool = False
    checks_prefix: bool = False
    thinks: bool = False
    input_limit: int | None = None
    limits: str = ""
    gateway: str = ""
    could_append: bool = False
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
    def of(
        cls,
        model: Any,
        settings: Mapping[str, Any] | None = None,
        models: Mapping[str, ModelFacts] | None = None,
    ) -> ModelTraits:
        """Read the traits of a chat model; of one that we know nothing about, none.

        Args:
            model: A LangChain chat model, with or without arguments bound to it. A configurable one counts as
                what it is in this call.
            settings: What the call adds to the model's own settings.
            models: What the user says of models; see `ByModel`.
        """
        bound, client = {**(settings or {})}, type(model).__name__
        while (called := _unbound(model, bound)) is not model:
            model = called
        reported, host = model_name(model), host_of(model)
        provider = provider_of(reported.provider, host)
        facts = _facts_about(models or {}, reported.full, reported.name, host)
        plain, profile = plain_name(reported.name), getattr(model, "profile", None) or {}
        gateway = host if provider and host and not is_in(host, provider.hosts) else ""
        native = transport_of(model, plain) if provider and provider.carries and not gateway else None
        checks_prefix = _first(facts.checks_prefix, bool(CHECKS_PREFIX.names.match(plain)))
        thinking = bound.get("thinking", getattr(model, "thinking", None))
        return cls(
            name=reported.name,
            full_name=reported.full,
            transport=native if facts.wire is None else facts.transport,
            caches=_first(facts.caches, _is_remote(model, reported.provider, provider)),
            checks_prefix=checks_prefix,
            thinks=thinking.get("type") != "disabled" if isinstance(thinking, Mapping) else checks_prefix,
            input_limit=_first(facts.input_limit, profile.get("max_input_tokens") or None),
            limits=_first(facts.limits, provider.limits if provider else ""),
            gateway="" if facts.wire else gateway,
            could_append=not native and not gateway and _could_append(model, profile),
            client=client,
        )


def _unbound(model: Any, bound: dict[str, Any]) -> Any:
    """Return the model under bound arguments, which are put into `bound`, or behind a configuration."""
    from langchain_core.runnables import RunnableBinding  # noqa: PLC0415 - see `base`

    if not isinstance(model, RunnableBinding):
        return called_model(model)
    bound |= {**model.kwargs, **bound}
    return model.bound


def _facts_about(models: Mapping[str, ModelFacts], *names: str) -> ModelFacts:
    """Return what the user says of a model: by the first pattern that matches one of its names."""
    for pattern, facts in models.items():
        if any(fnmatchcase(name, pattern) for name in names if name):
            return facts
    return NO_FACTS


def _is_remote(model: Any, reported: str, provider: Provider | None) -> bool:
    """Whether a server answers, which keeps what it has read of a prompt: so do most, on this machine too."""
    if provider is not None:
        return True
    from langchain_core.language_models import BaseChatModel  # noqa: PLC0415 - see `base`

    runs = f"{reported} {type(model).__name__} {type(getattr(model, 'llm', None)).__name__}".lower()
    return isinstance(model, BaseChatModel) and bool(reported) and not RUNS_HERE.search(runs)


def _could_append(model: Any, profile: Mapping[str, Any]) -> bool:
    # The profile of OpenAI's client says so, and says no because Chat Completions is used.
    return hasattr(model, "use_responses_api") and profile.get("mid_conversation_tools") is False


def _first(said: Any, learnt: Any) -> Any:
    return learnt if said is None else said
