"""One model call as it came in: what is there, what must stay, and what the user wants.

`CallReader.read_model_call` is the only reader of LangChain's request. What it gives back is frozen. What
takes a while to read (the conversation, the catalogue, the model) is read on first need, because most
agents have few tools, and their calls pass through.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from langchain.agents.middleware.types import ModelRequest
from langchain.agents.structured_output import AutoStrategy, ProviderStrategy
from langchain_core.tools import BaseTool

from langchain_tool_selection._access.boundary import Boundary
from langchain_tool_selection._exposure.base import Exposure
from langchain_tool_selection._exposure.models import ModelTraits
from langchain_tool_selection._exposure.registry import ExposureChoice, kept_by, was_ranked
from langchain_tool_selection._ground.digest import digest
from langchain_tool_selection._ground.log import WarnOnce
from langchain_tool_selection._ground.messages import message_mark, state_value
from langchain_tool_selection._ground.newest import ForNewest
from langchain_tool_selection._ground.untrusted import one_line
from langchain_tool_selection._ranking.index import CatalogView, ToolIndex
from langchain_tool_selection._ranking.protocol import Query
from langchain_tool_selection._ranking.query import Turn, conversation_query, read_turns, summary_query
from langchain_tool_selection._run.settings import Settings
from langchain_tool_selection._run.state import check_channels
from langchain_tool_selection._selection.pins import Pins, current_pins
from langchain_tool_selection._selection.policy import Reason
from langchain_tool_selection._selection.record import ThreadRecord
from langchain_tool_selection._tools.limits import Limits, limits_of
from langchain_tool_selection._tools.offered import OfferedTools
from langchain_tool_selection._tools.shapes import names_in_choice
from langchain_tool_selection.portable import check_names


@dataclass(frozen=True, eq=False)
class Call:
    """One model call as it came in.

    Attributes:
        request: LangChain's request; never changed.
        tools: What the run may use and what is in play, by name, in registration order.
        kept: Tools that are never hidden, with the reason.
        forced: Tools that `tool_choice` names, with the reason.
        record: What earlier calls of the thread decided.
        searchable: What a search may look through: those tools, and what the model's provider does not take.
        is_plain: Whether every provider takes all of the tools.
        domains: The domains in play; `None` for all.
        out_of_play: Names of tools of other domains, which are not searched.
        failures: What failed while the call was read, and what was done instead.
    """

    request: ModelRequest[Any]
    tools: Mapping[str, Any]
    kept: Mapping[str, Reason]
    forced: Mapping[str, Reason]
    record: ThreadRecord
    searchable: Mapping[str, Any]
    is_plain: bool
    domains: Collection[str] | None
    out_of_play: frozenset[str]
    failures: tuple[str, ...]
    _reader: CallReader

    @property
    def candidates(self) -> int:
        """How many tools could be hidden."""
        return len(self.tools) - len(self.kept)

    @cached_property
    def traits(self) -> ModelTraits:
        """What is known of the model of this call."""
        return self._reader.exposures.traits_of(self.request.model, self.request.model_settings)

    @property
    def limits(self) -> Limits:
        """What the model's provider takes."""
        return limits_of(self.traits.limits)

    @cached_property
    def exposure(self) -> Exposure | None:
        """How a selection is shown to the model of this call; `None` if there is no way to."""
        return self._reader.exposures.of(
            self.traits, self.request.messages, is_strict=_holds_calls_to_schemas(self.request)
        )

    @property
    def reads_answers(self) -> bool:
        """Whether the exposure reads the model's answer even where nothing is hidden."""
        return self._reader.exposures.reads_answers

    @cached_property
    def catalog(self) -> CatalogView:
        """What a search of this call may find."""
        return self._reader.catalog_of(self)

    @cached_property
    def turns(self) -> Sequence[Turn]:
        """The conversation, the newest turn first."""
        # The state has what users wrote. A request may have more, such as reminders that other middleware
        # adds to every call in the user's role, or less, after a compaction.
        messages = state_value(self.request.state, "messages")
        turns = read_turns(messages if isinstance(messages, list) else [])
        return turns if any(turn.key for turn in turns) else read_turns(self.request.messages)

    @cached_property
    def _asked(self) -> tuple[Query | None, str]:
        """What `Search.query` asks for, `None` without it or if it failed; and what failed."""
        return self._reader.own_query(self.request)

    @cached_property
    def query(self) -> Query:
        """What to search for."""
        if self._asked[0] is not None:
            return self._asked[0]
        if any(turn.key for turn in self.turns):
            return conversation_query(self.turns)
        return summary_query(self.request.messages)

    @property
    def is_forgotten(self) -> bool:
        """Whether there are earlier turns, and nothing is remembered of them."""
        return self.record.is_new and sum(bool(turn.key) for turn in self.turns) > 1

    @property
    def first_query(self) -> Query:
        """What to search for at the thread's beginning, so that it is the same at any later call."""
        first = next((turn for turn in reversed(self.turns) if turn.key), None)
        is_asked = self._asked[0] is not None
        return self.query if first is None or is_asked else conversation_query([first])

    @cached_property
    def key(self) -> str:
        """What identifies this user turn; that of the turn before if no user wrote anything.

        A phase with other domains is a turn of its own, because nothing of it was ranked before.
        """
        key = next((turn.key for turn in self.turns if turn.key), "")
        if self._asked[0] is not None:
            key = digest(key, repr(self._asked[0].parts))
        if self.domains is not None:
            key = digest(key, *sorted(self.domains))
        return key or self.record.key

    @property
    def is_ranked(self) -> bool:
        """Whether the user turn was ranked before. Its later calls show the same and search for nothing."""
        exposure = self.exposure
        return exposure is not None and was_ranked(self.record, exposure) and self.record.key == self.key

    @property
    def turn(self) -> int:
        """The number of the user turn, 1 for the thread's first."""
        return max(1, self.record.turn + (self.record.key != self.key))

    @property
    def max_pins(self) -> int:
        """How many pins the thread remembers."""
        return self._reader.settings.thread.max_pins

    @cached_property
    def pins(self) -> Pins:
        """The thread's pins."""
        return current_pins(self.request.state, self.record.is_new, self.tools, self.max_pins)

    @cached_property
    def used(self) -> frozenset[str]:
        """Tools that were called in recent turns."""
        keep = self._reader.settings.thread.keep_used
        if keep == 0:
            return frozenset()
        recent = self.turns if keep is None else self.turns[: 1 + keep]
        return frozenset(name for turn in recent for name in turn.calls)

    @property
    def start(self) -> str:
        """The message that the conversation begins with."""
        return message_mark(self.request.messages[0]) if self.request.messages else ""

    @property
    def overview(self) -> Mapping[str, int]:
        """The domains that the search tool's description names: the same for a thread while all are there."""
        domains, before = self.catalog.domains, self.record.overview
        return domains if before is None or before.keys() - domains.keys() else before

    @property
    def query_failure(self) -> str:
        """What failed when `Search.query` was asked; empty if nothing did."""
        return self._asked[1]


class CallReader:
    """Reads model calls.

    Args:
        settings: The settings of the middleware.
        index: Reads tools and keeps their catalogues.
        exposures: Chooses how a selection is shown.
        offered: Reads the tools of requests.
    """

    def __init__(
        self, settings: Settings, index: ToolIndex, exposures: ExposureChoice, offered: OfferedTools
    ) -> None:
        self.settings = settings
        self.exposures = exposures
        self._index = index
        self._offered = offered
        self._catalogs = ForNewest[CatalogView]()
        self._refused = ForNewest[dict[Limits, dict[str, str]]]()
        self._warn_once = WarnOnce()

    def read_model_call(self, request: ModelRequest[Any], boundary: Boundary) -> Call:
        """Return a call.

        Args:
            request: LangChain's request.
            boundary: What of its tools the run may use.

        Raises:
            ValueError: the agent has another tool by the name of one of ours, or a state schema that
                declares one of our keys without its reducer.
        """
        check_channels(request.state)
        record = ThreadRecord.from_state(request.state)
        offer = self._offered.read(boundary.tools)
        tools = offer.tools
        call = Call(
            request=request,
            tools=tools,
            kept={name: Reason(kind) for name, kind in offer.never_hidden.items()},
            forced={n: Reason("forced") for n in names_in_choice(request.tool_choice) if n in tools},
            record=record,
            searchable=tools,
            is_plain=offer.is_plain,
            domains=None,
            out_of_play=frozenset(),
            failures=boundary.failures,
            _reader=self,
        )
        if not offer.is_plain:
            call = self._taken(call)
        return call if self.settings.domains is None else self._in_play(call)

    def catalog_of(self, call: Call) -> CatalogView:
        """Return what a search of the call may find: all that could be hidden, and all that is kept."""
        unsearched = self._offered.own.names | call.out_of_play
        tools = call.searchable.items()
        searched = (tool for name, tool in tools if name not in unsearched and isinstance(tool, BaseTool))
        if call.out_of_play:
            return self._index.sync(searched)
        return self._catalogs.get(call.searchable, lambda: self._index.sync(searched))

    def own_query(self, request: ModelRequest[Any]) -> tuple[Query | None, str]:
        """Return what `Search.query` asks for, and what failed."""
        ask = self.settings.search.query
        if ask is None:
            return None, ""
        try:
            asked = ask(request)
            return (asked if isinstance(asked, Query) else Query.of(asked or "")), ""
        except Exception as error:
            self._warn_once(*_raised("query", error, "The conversation is searched for instead."))
            return None, f"query= failed with {type(error).__name__}; searched for what was said"

    def _taken(self, call: Call) -> Call:
        """Return the call without the tools that its model's provider does not take."""
        limits, known = call.limits, self._refused.get(call.tools, dict[Limits, dict[str, str]])
        if (refused := known.get(limits)) is None:
            refused = {name: why for name, tool in call.tools.items() if (why := limits.why_not(tool))}
            known[limits] = refused
        for name, why in refused.items():
            self._warn_once(
                f"{name} {why}",
                "%r is left out for %s: %s. A request with it would be refused. Change its name or schema.",
                one_line(name, 80),
                call.traits.label,
                why,
            )
        if not refused:
            return call
        left = (
            {name: one for name, one in part.items() if name not in refused}
            for part in (call.tools, call.kept, call.forced)
        )
        tools, kept, forced = left
        return replace(call, tools=tools, kept=kept, forced=forced)

    def _in_play(self, call: Call) -> Call:
        """Return the call with the tools of the domains that `domains=` gives."""
        try:
            domains = self.settings.domains(call.request.state, call.request.runtime)  # type: ignore[misc]  # not None
            if domains is None:
                return call
            domains = check_names("what domains= returns", domains)
        except Exception as error:
            self._warn_once(*_raised("domains", error, "All domains are searched for this call."))
            failure = f"domains= failed with {type(error).__name__}; all domains are in play"
            return replace(call, failures=(*call.failures, failure))
        of_tools = {name: self._index.document_of(tool).domain for name, tool in call.tools.items()}
        self._warn_about_domains(domains, of_tools.values())
        kept = {**call.forced, **call.kept}
        out_of_play = frozenset(
            n for n, domain in of_tools.items() if n not in kept and domain not in domains
        )
        # Where what was shown stays, it stays through a change of domains too: it cannot be found any
        # more, but its place in the prompt is kept.
        stays = () if call.exposure is None else kept_by(call.exposure, call.record)
        tools = {n: tool for n, tool in call.tools.items() if n not in out_of_play or n in stays}
        return replace(call, tools=tools, domains=domains, out_of_play=out_of_play)

    def _warn_about_domains(self, domains: Collection[str], known: Iterable[str]) -> None:
        message = "domains= names %r, which no tool of this request belongs to; known domains: %s"
        for domain in sorted(frozenset(domains).difference(known)):
            self._warn_once(f"domain {domain}", message, domain, ", ".join(sorted(filter(None, {*known}))))


def _raised(setting: str, error: Exception, instead: str) -> tuple[str, str, Exception]:
    """Return what is said once of a setting's function that raised, with the key that it is said under."""
    return f"{setting} {type(error).__name__}", f"{setting}= raised %r. {instead}", error


def _holds_calls_to_schemas(request: ModelRequest[Any]) -> bool:
    """Whether tools are sent as strict ones: by setting, or for structured output on OpenAI's API."""
    by_provider = isinstance(request.response_format, ProviderStrategy | AutoStrategy)
    # OpenAI's client and its kin, which may be behind bound arguments.
    is_openai = hasattr(getattr(request.model, "bound", request.model), "use_responses_api")
    return bool(request.model_settings.get("strict")) or (by_provider and is_openai)
