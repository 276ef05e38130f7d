"""All exposures of this package: their names, which one a model call gets, and what a record says of one.

To add one: a class in a file of its own, a name in `ExposureName`, and a line in `EXPOSURES`. The settings,
the choice, the cost model and the reading of records follow.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from langchain_tool_selection._exposure.append import Append
from langchain_tool_selection._exposure.base import CallContext, Exposure, OwnExposure
from langchain_tool_selection._exposure.grow import Grow
from langchain_tool_selection._exposure.per_turn import PerTurn
from langchain_tool_selection._exposure.proxy import Proxy
from langchain_tool_selection._exposure.stubs import Stubs, was_whole
from langchain_tool_selection._ground.log import WarnOnce
from langchain_tool_selection._ground.settings import check_choice, check_type
from langchain_tool_selection._selection.record import ThreadRecord

if TYPE_CHECKING:
    from langchain_tool_selection._exposure.models import ModelFacts, ModelTraits

ExposureName = Literal["per_turn", "grow", "append", "proxy", "stubs"]


@dataclass(frozen=True)
class ByModel:
    """How a selection reaches the model, with what you know of your models or of a gateway.

    Attributes:
        models: What you know, by patterns (`*`, `?` and `[...]` as in `fnmatch`) of `provider:name`, of the
            name alone, or of the host that requests go to. The first pattern that matches counts.
        exposure: The exposure, as `ToolSelectionMiddleware` takes it by name.

    Raises:
        TypeError: `models` is no mapping of patterns to `ModelFacts`.
        ValueError: `exposure` has no possible value.

    Example:
        >>> exposure = ByModel({"gateway.example.com": ModelFacts(wire="additional_tools")})
    """

    models: Mapping[str, ModelFacts]
    exposure: ExposureName | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        from langchain_tool_selection._exposure.models import ModelFacts  # noqa: PLC0415 - see `base`

        check_type("ByModel.models", self.models, Mapping)
        for pattern, facts in self.models.items():
            check_type(f"ByModel.models[{pattern!r}]", facts, ModelFacts)
        check_choice("ByModel.exposure", self.exposure, ("auto", *get_args(ExposureName)))


ExposureSetting: TypeAlias = ExposureName | Literal["auto"] | Exposure | ByModel


EXPOSURES: Mapping[str, type[OwnExposure]] = {
    kind.name: kind
    for kind in (
        Append,  # an addition costs its own tokens
        Proxy,  # as much, and one indirection for the model
        Stubs,  # each tool costs a line, and a call that did not fit costs a model call
        Grow,  # an addition costs the conversation
        PerTurn,  # every user message does
    )
}
"""By name, the cheapest under a prompt cache first: `exposure="auto"` takes the first that suits."""


_SENDS_ALL = (
    "all tools are sent to %s: it answers with an error (400) when the tools array changes after it has "
    "thought, this client cannot add tools in mid-conversation, and with strict tools they cannot be sent "
    "without their schemas; exposure='proxy' can show them in search results"
)
_GATEWAY = (
    "requests for %s go to %s, which may be a gateway that drops what it does not know; so no form of the "
    "provider's own is sent to it. If it passes them on, say so: exposure=ByModel({%r: ModelFacts(wire=...)})"
)
_COULD_APPEND = (
    "%s can add tools in mid-conversation through the Responses API. With use_responses_api=True an added "
    "tool costs its own tokens; through Chat Completions the provider reads the whole conversation anew"
)
_GROWS = "exposure=%r is 'grow' for %s: this client cannot add tools in mid-conversation"
_NOT_STRICT = (
    "exposure=%r is 'grow' for %s: tools are sent to it as strict ones, which take no arguments but those of "
    "the schema that is sent, and stubs have none. If response_format= makes them strict, ToolStrategy(...) "
    "does not"
)
_REFUSES = (
    "%s answers with an error (400) when the tools array changes after it has thought, as exposure=%r lets "
    "it; set exposure='auto', or switch thinking off"
)


def recorded(name: str) -> type[OwnExposure]:
    """Return the exposure that a record names. One that is not known here reads as one that keeps nothing."""
    return EXPOSURES.get(name, PerTurn)


def quotes_schemas(record: ThreadRecord) -> bool:
    """Whether the thread's last model call was to read schemas in the answers of searches."""
    return recorded(record.exposure).quotes_schemas


def was_stub(record: ThreadRecord, name: str) -> bool:
    """Whether the thread's last model call could call a tool without having been sent its schema."""
    return recorded(record.exposure) is Stubs and record.hides and not was_whole(record, name)


def kept_by(exposure: Exposure, record: ThreadRecord) -> tuple[str, ...]:
    """Return what a thread has been shown that stays under this exposure, in order."""
    if isinstance(exposure, Stubs):
        return exposure.array_in(record)
    return record.visible if exposure.keeps else ()


def was_ranked(record: ThreadRecord, exposure: Exposure) -> bool:
    """Whether the tools of the record's user turn were chosen: something was hidden, and by rank.

    Args:
        record: The record.
        exposure: That of the call at hand, which may be the user's own.
    """
    last = exposure if exposure.name == record.exposure else recorded(record.exposure)
    return bool(record.catalog) and last.ranks


class ExposureChoice:
    """Says how each model call is shown its tools.

    Args:
        setting: The `exposure=` of the middleware.
        search_tool: The search tool's name; `None` without one.
        call_tool: The name that the tool which calls others would have; `None` without a search tool.

    Raises:
        ValueError: `setting` has no possible value.
    """

    def __init__(self, setting: ExposureSetting, *, search_tool: str | None, call_tool: str | None) -> None:
        self._models: Mapping[str, ModelFacts] = {}
        if isinstance(setting, ByModel):
            self._models = setting.models
            setting = setting.exposure
        if not isinstance(setting, Exposure) or isinstance(setting, type):
            check_choice("exposure", setting, ("auto", *get_args(ExposureName)))
        self._setting: ExposureName | Literal["auto"] | Exposure = setting
        self._search_tool = search_tool
        self._call_tool = call_tool if self.uses_call_tool else None
        self._warn_once = WarnOnce()
        if self.uses_call_tool and call_tool is None:
            needs = "shows tools in search results and needs discovery=Discovery(...), got None"
            raise ValueError(f"exposure={self._setting!r} {needs}")

    @property
    def uses_call_tool(self) -> bool:
        """Whether the agent needs `call_tool`."""
        kind = EXPOSURES.get(self._setting) if isinstance(self._setting, str) else self._setting
        return bool(getattr(kind, "uses_call_tool", False))

    @property
    def reads_answers(self) -> bool:
        """Whether an answer is to be read by the exposure even where nothing is hidden.

        An earlier call of the thread may have hidden something, and a model repeats what it once wrote.
        """
        return self.uses_call_tool or not isinstance(self._setting, str)

    def traits_of(self, model: Any, settings: Mapping[str, Any] | None) -> ModelTraits:
        """Return what is known of the model of a call.

        Args:
            model: The model that the request is for.
            settings: What the request adds to the model's own settings.
        """
        from langchain_tool_selection._exposure.models import ModelTraits  # noqa: PLC0415 - see `base`

        return ModelTraits.of(model, settings, self._models)

    def of(
        self, traits: ModelTraits, messages: Sequence[Any] = (), *, is_strict: bool = False
    ) -> Exposure | None:
        """Return how to show a selection to this model; `None` if there is no way to, so all is sent.

        | the model, under `exposure="auto"` | exposure |
        |---|---|
        | its provider adds tools in mid-conversation, through this client | append |
        | a Claude that refuses a changed tools array, otherwise, thinking not off | stubs |
        | the same with strict tools | none: send all |
        | it is answered by a server, known or not, which keeps a prompt by its beginning | grow |
        | it runs in this process, or is a fake | per_turn |

        Args:
            traits: What is known of the model.
            messages: The conversation as it is sent.
            is_strict: Whether calls are held to the schemas that are sent; see `CallContext`.
        """
        context = CallContext(traits, messages, self._search_tool, self._call_tool, is_strict)
        if traits.gateway and self._setting in ("auto", "append"):
            self._warn_once(traits.gateway, _GATEWAY, traits.label, traits.gateway, traits.gateway)
        if traits.could_append and self._setting in ("auto", "append"):
            self._warn_once(traits.label, _COULD_APPEND, traits.label, level=logging.INFO)
        if self._setting == "auto":
            return self._automatic(context)
        exposure = self._asked_for(self._setting, context)
        changes_array = exposure.additions_reset_cache or not exposure.keeps
        if traits.refuses_changes and changes_array:
            name = self._setting if isinstance(self._setting, str) else exposure.name
            self._warn_once(traits.label, _REFUSES, traits.label, name)
        return exposure

    def _automatic(self, context: CallContext) -> Exposure | None:
        for kind in EXPOSURES.values():
            if kind.suits(context):
                return kind.of(context)
        self._warn_once(context.traits.label, _SENDS_ALL, context.traits.label)
        return None

    def _asked_for(self, setting: ExposureName | Exposure, context: CallContext) -> Exposure:
        if not isinstance(setting, str):
            return setting
        if (exposure := EXPOSURES[setting].of(context)) is not None:
            return exposure
        grows = _NOT_STRICT if context.is_strict and setting == Stubs.name else _GROWS
        self._warn_once(context.traits.label, grows, setting, context.traits.label)
        return Grow()
