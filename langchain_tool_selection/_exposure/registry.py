"""All exposures of this package: their names, which one a model call gets, and what a record says of one.

To add one: a class in a file of its own, a name in `ExposureName`, and a line in `EXPOSURES`. The settings,
the choice, the cost model and the reading of records follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from langchain_tool_selection._exposure.append import Append
from langchain_tool_selection._exposure.base import CallContext, Exposure, OwnExposure
from langchain_tool_selection._exposure.grow import Grow
from langchain_tool_selection._exposure.per_turn import PerTurn
from langchain_tool_selection._exposure.proxy import Proxy
from langchain_tool_selection._ground.log import WarnOnce
from langchain_tool_selection._ground.settings import check_choice
from langchain_tool_selection._selection.record import ThreadRecord

if TYPE_CHECKING:
    from langchain_tool_selection._exposure.models import ModelTraits

ExposureName = Literal["per_turn", "grow", "append", "proxy"]
ExposureSetting: TypeAlias = ExposureName | Literal["auto"] | Exposure


EXPOSURES: Mapping[str, type[OwnExposure]] = {
    kind.name: kind
    for kind in (
        Append,  # an addition costs its own tokens
        Proxy,  # as much, and one indirection for the model
        Grow,  # an addition costs the conversation
        PerTurn,  # every user message does
    )
}
"""By name, the cheapest under a prompt cache first: `exposure="auto"` takes the first that suits."""


_SENDS_ALL = (
    "all tools are sent to %s: it answers with an error (400) when the tools array changes after it has "
    "thought, and this client cannot add tools in mid-conversation; exposure='proxy' can"
)
_GROWS = "exposure=%r is 'grow' for %s: this client cannot add tools in mid-conversation"
_REFUSES = (
    "%s answers with an error (400) when the tools array changes after it has thought, as exposure=%r lets "
    "it; set exposure='auto', or switch thinking off"
)


def recorded(name: str) -> type[OwnExposure]:
    """Return the exposure that a record names. One that is not known here reads as one that keeps nothing."""
    return EXPOSURES.get(name, PerTurn)


def is_proxied(record: ThreadRecord) -> bool:
    """Whether the thread's last model call was to call what it finds through `call_tool`."""
    return recorded(record.exposure).uses_call_tool


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
        if not isinstance(setting, Exposure) or isinstance(setting, type):
            check_choice("exposure", setting, ("auto", *get_args(ExposureName)))
        self._setting = setting
        self._search_tool = search_tool
        self._call_tool = call_tool
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

    def of(self, traits: ModelTraits, messages: Sequence[Any] = ()) -> Exposure | None:
        """Return how to show a selection to this model; `None` if there is no way to, so all is sent.

        | the model, under `exposure="auto"` | exposure |
        |---|---|
        | its provider adds tools in mid-conversation, through this client | append |
        | a Claude that refuses a changed tools array, otherwise, thinking not off | none: send all |
        | its provider documents a prompt cache | grow |
        | any other: unknown, local, a fake | per_turn |

        Args:
            traits: What is known of the model.
            messages: The conversation as it is sent.
        """
        context = CallContext(traits, messages, self._search_tool, self._call_tool)
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
        self._warn_once(context.traits.label, _GROWS, setting, context.traits.label)
        return Grow()
