"""Which model a call goes to: the provider, the name and the address that its client reports."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit


class ModelName(NamedTuple):
    """The name of a model.

    Attributes:
        provider: As LangChain's client names itself, e.g. "anthropic"; empty if unknown.
        name: As the provider names the model; empty if unknown.
    """

    provider: str = ""
    name: str = ""

    @property
    def full(self) -> str:
        """The name with its provider in front, as `init_chat_model` takes it; without one, the name alone."""
        return f"{self.provider}:{self.name}" if self.provider else self.name


def model_name(model: Any) -> ModelName:
    """Return the name of a chat model. It is read on each call, because a model's settings may change.

    Args:
        model: A chat model of LangChain's, without arguments bound to it, or any object with a `model_name`
            or `model`. Of anything else the name is unknown.
    """
    reported = _reported(model)
    name = ModelName(str(reported.get("ls_provider") or ""), str(reported.get("ls_model_name") or ""))
    return name if any(name) else ModelName(name=_attribute(model))


def full_model_name(model: Any) -> str:
    """Return the full name of a chat model, and a name as it is."""
    return model if isinstance(model, str) else model_name(model).full


def plain_name(name: str) -> str:
    """Return a model's own name: without vendor, region, route, date or revision, in small letters.

    So `us.anthropic.claude-opus-5-5-v1:0`, `anthropic/claude-opus-5.5` and `claude-opus-5-5@20261001` are all
    `claude-opus-5-5`, and the same behind an ARN of Bedrock's. Of other names the dots stay.
    """
    plain = name.lower().rpartition("/")[2].partition("@")[0]
    start = plain.find("claude-")
    return plain if start < 0 else plain[start:].partition(":")[0].removesuffix("-v1").replace(".", "-")


def host_of(model: Any) -> str:
    """Return the host that a client sends its requests to; empty where it goes to its provider's own."""
    urls = (getattr(model, attribute, None) for attribute in _ADDRESSES)
    for url in (*urls, _environment(model)):
        if isinstance(url, str) and (host := urlsplit(url).hostname):
            return host
    return ""


def called_model(model: Any) -> Any:
    """Return the model that a configurable one of `init_chat_model` is in this call, and any other as it is.

    A configurable model makes its client when it is called, from what the run's config holds. That client is
    made here too, once for each configuration. Where it cannot be made, the call itself will say so.
    """
    configured = getattr(type(model), "_model_params", None), getattr(type(model), "_model", None)
    if None in configured:
        return model
    try:
        from langgraph.config import get_config  # noqa: PLC0415 - slow to import, and only an agent has one

        config = get_config()
    except RuntimeError:  # nobody runs a graph
        config = None
    try:
        key = id(model), repr(model._model_params(config))
        known = _clients.get(key)
        if known is None or known[0] is not model:
            while len(_clients) >= _CLIENTS:
                _clients.pop(next(iter(_clients)), None)
            known = _clients[key] = model, model._model(config)
        return known[1]
    except Exception:
        return model


_CLIENTS = 64
_clients: dict[tuple[int, str], tuple[Any, Any]] = {}

_ADDRESSES = (
    "openai_api_base",
    "azure_endpoint",
    "anthropic_api_url",
    "xai_api_base",
    "together_api_base",
    "openrouter_api_base",
    "groq_api_base",
    "fireworks_api_base",
    "api_base",
    "base_url",
    "endpoint_url",
    "endpoint",
)
"""Where LangChain's clients keep the address that they were given."""


def _environment(model: Any) -> str | None:
    # The SDK of OpenAI reads this one itself, and LangChain's client does not know of it.
    return os.environ.get("OPENAI_BASE_URL") if hasattr(model, "openai_api_base") else None


def _reported(model: Any) -> Mapping[str, Any]:
    try:
        report = getattr(model, "_get_ls_params", None)  # no public way leads to both provider and name
        params = report() if report else {}
    except Exception:
        # One that is chosen when it is called, or one that is broken.
        return {}
    return params if isinstance(params, Mapping) else {}


def _attribute(model: Any) -> str:
    if hasattr(type(model), "_get_ls_params"):
        return ""  # it failed to report, and what it holds may be a default that is not called
    names = (getattr(model, attribute, None) for attribute in ("model_name", "model"))
    return next((name for name in names if isinstance(name, str)), "")
