"""Which model this is: the provider and the name that a chat model reports to LangChain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


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
