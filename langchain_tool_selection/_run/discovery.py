# No `from __future__ import annotations` in this module. LangChain finds the runtime to inject by looking
# at the annotations of the tool's function; written as strings they are not always resolved, and then the
# tool fails when it is called, not when it is built.
"""`discover_tools`: the model's way to the tools that it is not shown.

It searches the catalogue of the last model call, which is what the middleware saw before it hid
anything: tools that other middleware added are in it, and tools that other middleware removed are not.
What it finds is pinned in graph state, and so visible from the next model call on.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.types import Command
from pydantic import BeforeValidator, Field

from langchain_tool_selection._access.audit import tell
from langchain_tool_selection._ground.messages import is_from_user, state_value, tool_calls
from langchain_tool_selection._ground.settings import check_count
from langchain_tool_selection._ground.untrusted import one_line
from langchain_tool_selection._ranking.index import Catalog, plain_domain
from langchain_tool_selection._ranking.protocol import Hit, Query
from langchain_tool_selection._run.search import Found
from langchain_tool_selection._run.shared import Registered, Shared
from langchain_tool_selection._selection.pins import PINS, pins_in
from langchain_tool_selection._selection.record import ThreadRecord
from langchain_tool_selection._tools.arguments import compact_parameters
from langchain_tool_selection._tools.definitions import definition_of
from langchain_tool_selection._tools.documents import ToolDocument

DESCRIPTION = (
    "Search all tools; your list shows only some of them. Call this when no listed tool fits, before you "
    "say that something cannot be done."
)

_LINE = 200
"""Characters of a description that are quoted; enough for its first sentence or two."""

_RELATIVE_SCORE = 0.5
"""A match that scores less than this share of the best one is not worth its tokens."""

_RELATIVE_SCORE_BY_PROXY = 0.3

_VISIBLE_NAMED = 3
"""How many tools that the model sees already are named when nothing hidden matches."""

_SCHEMAS = 3
"""How many tools come with their schema in one answer; real ones take up to 900 tokens."""

_OVERVIEW = 20
"""Domains that an overview names."""

_NAMES = 2_000
"""Characters of the names of a tool's parameters."""

_SHOWN_NAMES = 8
"""Names or domains listed in one sentence."""


@dataclass(frozen=True)
class Discovery:
    """Settings of the `discover_tools` tool.

    Attributes:
        name: What the model calls it.
        description: What the model is told about it.
        max_results: How many tools one search finds at most; twice as many behind a proxy, where most of
            them come without their schema.
        overview: Whether the description also names the domains that there are, with their numbers of
            tools: once for a thread, as they were when it began, until one of them is no longer there.
        max_discoveries: How many searches there are for one user message; then the model is told to go
            on with what it has.
        call_name: What the model calls `call_tool`, with which it calls what it found where the
            exposure is "proxy".
    """

    name: str = "discover_tools"
    description: str = DESCRIPTION
    max_results: int = 5
    max_discoveries: int = 12
    overview: bool = False
    call_name: str = "call_tool"

    def __post_init__(self) -> None:
        for setting in ("name", "call_name"):
            value = getattr(self, setting)
            if not isinstance(value, str) or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", value):
                msg = (
                    f"Discovery.{setting} must be 1 to 64 letters, digits, '_' or '-', as providers demand, "
                    f"got {value!r}"
                )
                raise ValueError(msg)
        if self.name == self.call_name:
            msg = f"Discovery.name and Discovery.call_name must differ, both are {self.name!r}"
            raise ValueError(msg)
        if not isinstance(self.description, str) or not self.description:
            msg = f"Discovery.description must be a non-empty string, got {self.description!r}"
            raise ValueError(msg)
        check_count("Discovery.max_results", self.max_results, at_least=1)
        check_count("Discovery.max_discoveries", self.max_discoveries, at_least=1)


def overview_of(domains: Mapping[str, int]) -> str:
    """Return domains with their numbers of tools on one line, the largest first; empty without any."""
    largest = sorted(domains.items(), key=lambda item: -item[1])[:_OVERVIEW]
    listed = ", ".join(f"{domain} ({count})" for domain, count in largest)
    more = f" and {len(domains) - _OVERVIEW} more" if len(domains) > _OVERVIEW else ""
    return f"There are tools for: {listed}{more}." if domains else ""


def _as_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " ".join(_as_list(value))
    return "" if value is None else str(value)


def _as_list(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, list | tuple):
        return [str(item) for item in value if item is not None]
    return str(value).replace(",", " ").split()


# Models send a string for a list, a list for a string, or null. A search is too cheap to refuse for that.
_QueryText = Annotated[
    str,
    BeforeValidator(_as_text),
    Field(description="Verb and object, e.g. 'send an email'."),
]
_Names = Annotated[list[str], BeforeValidator(_as_list), Field(description="Exact tool names, if known.")]
_Domain = Annotated[str, BeforeValidator(_as_text), Field(description="Only this server or group.")]


def make_discovery_tool(settings: Discovery, shared: Shared, max_pins: int) -> StructuredTool:
    """Build the tool that a middleware injects.

    Args:
        settings: How it is presented.
        shared: What it shares with the middleware.
        max_pins: How many pins a thread keeps. One search finds no more than that.
    """
    settings = replace(settings, max_results=min(settings.max_results, max_pins))

    def discover_tools(
        runtime: ToolRuntime[Any, Any], query: _QueryText = "", names: _Names = [], domain: _Domain = ""
    ) -> Command[Any]:
        call = _Call(settings, shared, runtime, query=query, names=names, domain=domain)
        catalog = call.catalog(shared.registered(runtime, call.own))
        return call.answer(catalog, shared.search.search(catalog, call.query))

    async def adiscover_tools(
        runtime: ToolRuntime[Any, Any], query: _QueryText = "", names: _Names = [], domain: _Domain = ""
    ) -> Command[Any]:
        call = _Call(settings, shared, runtime, query=query, names=names, domain=domain)
        catalog = call.catalog(await shared.aregistered(runtime, call.own))
        return call.answer(catalog, await shared.search.asearch(catalog, call.query))

    return StructuredTool.from_function(
        func=discover_tools,
        coroutine=adiscover_tools,
        name=settings.name,
        description=settings.description,
    )


class _Call:
    """One call of the tool: what was asked, and the answer in words."""

    def __init__(
        self,
        settings: Discovery,
        shared: Shared,
        runtime: ToolRuntime[Any, Any],
        *,
        query: str,
        names: list[str],
        domain: str,
    ) -> None:
        self.own = (settings.name, settings.call_name)
        self._settings = settings
        self._shared = shared
        self._runtime = runtime
        self._text = query.strip()
        self._names = [name.strip() for name in names if name.strip()]
        self._domain = plain_domain(domain)
        self.record = ThreadRecord.from_state(runtime.state)
        shown = self.record.shown if self.record else ()
        # Behind a proxy a pin is a name without a schema, which the model may have forgotten.
        self._is_proxied = self.record is not None and self.record.is_proxied
        self._visible = {*shown, *(() if self._is_proxied else pins_in(state_value(runtime.state, PINS)))}
        self._messages = state_value(runtime.state, "messages") or []
        self._registered: Mapping[str, BaseTool] = {}
        # A name that does not exist is a description of what was meant.
        self.query = Query(tuple((text, 1.0) for text in (self._text, " ".join(self._names)) if text))

    def catalog(self, registered: Registered) -> Catalog | None:
        """Return what may be searched, if anything is to be."""
        self._registered = registered.permitted
        return self._shared.catalog_of(self.record, registered) if self._is_in_bounds() else None

    def answer(self, catalog: Catalog | None, found: Found) -> Command[Any]:
        """Pin what was found and say so."""
        new: list[str] = []
        if self.record is None or not self.record.catalog:
            text = "Nothing is hidden: your list has all tools. Call one of them, or answer without a tool."
        elif not self._is_in_bounds():
            text = "No more searches for this request: use the tools that you have, or answer without one."
        elif catalog is None:
            text = "The tool catalogue has changed. Call this again with the same words."
        else:
            matches = self._matches(catalog, found.hits or ())
            new = [document.name for document in matches if document.name not in self._visible]
            text = self._sentences(catalog, matches, new)
        self._report(catalog, new, found.degraded)
        message = ToolMessage(
            content=text,
            name=self._settings.name,
            tool_call_id=self._runtime.tool_call_id,
            artifact={PINS: new},
        )
        return Command(update={PINS: new, "messages": [message]})

    def _report(self, catalog: Catalog | None, new: Sequence[str], degraded: str) -> None:
        tools = {name: catalog.document(name) for name in new} if catalog else {}
        self._shared.audit.tools("found", self._runtime, tools, call=self._runtime.tool_call_id)
        tell(self._runtime, "tool_selection_found", {"found": list(new), "degraded": degraded})

    def _matches(self, catalog: Catalog, hits: Sequence[Hit]) -> list[ToolDocument]:
        exact = dict.fromkeys(name for name in (*self._names, self._text) if name in catalog.names)
        if exact and (not self._text or self._text in exact):
            return [catalog.document(name) for name in exact][: self._settings.max_results]
        if self._domain and not self.query:
            # A domain alone asks what there is.
            hits = [Hit(name, 1.0) for name in catalog.names]
        inside = [hit for hit in hits if self._in_domain(catalog, hit.name)]
        # Behind a proxy a search is all that the model sees of the tools, and a name costs little there.
        share, most = _RELATIVE_SCORE, self._settings.max_results
        if self._is_proxied:
            share, most = _RELATIVE_SCORE_BY_PROXY, 2 * most
        floor = inside[0].score * share if inside and inside[0].score > 0 else float("-inf")
        good = dict.fromkeys([*exact, *(hit.name for hit in inside if hit.score >= floor)])
        # What the model sees already must not crowd out what it does not, nor a tool's twin other tools.
        distinct: dict[str, str] = {}
        for name in good:
            if name not in self._visible:
                distinct.setdefault(catalog.alike.get(name, name), name)
        hidden = [*distinct.values()][:most]
        visible = [name for name in good if name in self._visible][: 1 if hidden else _VISIBLE_NAMED]
        return [catalog.document(name) for name in (*hidden, *visible)]

    def _in_domain(self, catalog: Catalog, name: str) -> bool:
        domain = plain_domain(catalog.document(name).domain)
        return not self._domain or domain.casefold() == self._domain.casefold()

    def _sentences(self, catalog: Catalog, matches: Sequence[ToolDocument], found: Sequence[str]) -> str:
        if not matches:
            return self._no_match(catalog)
        visible = [document.name for document in matches if document.name not in found]
        repeated = self._times_asked() > 1
        parts = []
        if found:
            documents = [catalog.document(name) for name in found]
            parts.append(self._callable_by_proxy(documents) if self._is_proxied else _found(documents))
        if visible:
            names = ", ".join(f"`{one_line(name, _LINE)}`" for name in visible)
            are, one = ("is", "it") if len(visible) == 1 else ("are", "one")
            other = "" if found else " If that is not what you need, search with other words."
            parts.append(f"{names} {are} already available: call {one} directly.{other}")
        if repeated and not found:
            parts.append("Searching again with these words finds nothing else.")
        parts.extend(self._about_twins(catalog, found))
        parts.extend(self._about_names(catalog, matches))
        if self._names and self._shared.definitions.are_pruned and not self._is_proxied:
            parts.extend(self._in_full(matches))
        return "\n".join(parts)

    def _callable_by_proxy(self, documents: Sequence[ToolDocument]) -> str:
        lines = []
        for place, document in enumerate(documents):
            tool = self._registered.get(document.name)
            if place >= _SCHEMAS:
                takes = f"its parameters: ask for names=['{one_line(document.name, _LINE)}']"
            elif tool is None:  # other middleware brought it into the request
                takes = f"parameters: {_parameter_names(document)}"
            elif document.name in self._names:
                takes = f"parameters: {compact_parameters(definition_of(tool))}"
            else:
                takes = f"parameters: {compact_parameters(self._shared.definitions.of(tool))}"
                if '"properties":{}' in takes and document.parameters:  # all were pruned
                    takes += f"; it also takes {_parameter_names(document)}"
            lines.append(f"- {_line(document)}\n  {takes}")
        call = self._settings.call_name
        return f"Found {len(lines)}. Call by {call}(name, arguments), not directly:\n" + "\n".join(lines)

    def _about_twins(self, catalog: Catalog, found: Sequence[str]) -> Iterator[str]:
        for name in found:
            group = catalog.alike.get(name, name)
            twins = [n for n in catalog.names if n != name and catalog.alike.get(n, n) == group]
            if group in catalog.alike.values() and twins:
                yield f"`{one_line(name, _LINE)}` says the same as: {_listed(twins)}."

    def _in_full(self, matches: Sequence[ToolDocument]) -> Iterator[str]:
        for document in matches[:_SCHEMAS]:
            if (tool := self._registered.get(document.name)) is not None:
                whole = compact_parameters(definition_of(tool))
                yield f"All that `{one_line(document.name, _LINE)}` takes: {whole}"

    def _about_names(self, catalog: Catalog, matches: Sequence[ToolDocument]) -> Iterator[str]:
        matched = {document.name for document in matches}
        if unknown := _listed(name for name in self._names if name not in catalog.names):
            yield f"There is no tool named: {unknown}."
        if left := _listed(name for name in self._names if name in catalog.names and name not in matched):
            yield f"Not added, because one search adds {self._settings.max_results} at most: {left}."

    def _no_match(self, catalog: Catalog) -> str:
        asked = one_line(" ".join([self._text, *self._names]), 80)
        if not asked and not self._domain:
            return "Say what the tool should do: a verb and an object, such as 'send an email'."
        if not asked:
            return f"There are no tools in '{self._domain}'." + self._groups(catalog)
        if self._times_asked() > 1:
            return (
                f"Still no tool matches '{asked}', and searching again for it will not change that. "
                "Use other words, or answer without a tool."
            )
        where = f" in '{self._domain}'" if self._domain else ""
        return (
            f"No tool matches '{asked}'{where}. Try other words for it: what it does, and to what."
            f"{self._groups(catalog)} If nothing fits, answer without a tool."
        )

    def _groups(self, catalog: Catalog) -> str:
        domains = _listed(catalog.domains)
        return f" Tools are grouped by: {domains}." if domains else ""

    def _times_asked(self) -> int:
        """How often this was asked since the user last wrote, this call included."""
        asked = (self._text.casefold(), sorted(self._names), self._domain.casefold())
        return sum(
            asked
            == (
                _as_text(args.get("query")).strip().casefold(),
                sorted(_as_list(args.get("names"))),
                _as_text(args.get("domain")).strip().casefold(),
            )
            for args in self._searches()
        )

    def _is_in_bounds(self) -> bool:
        """Whether the model may search on: it has not done so too often since the user last wrote."""
        return sum(1 for _ in self._searches()) - self._later() <= self._settings.max_discoveries

    def _later(self) -> int:
        """How many searches the same message has behind this one."""
        for message in reversed(self._messages):
            searches = [
                one["id"]
                for one in getattr(message, "tool_calls", None) or ()
                if one["name"] == self._settings.name
            ]
            if searches.count(self._runtime.tool_call_id) == 1:
                return len(searches) - 1 - searches.index(self._runtime.tool_call_id)
        return 0

    def _searches(self) -> Iterator[Mapping[str, Any]]:
        """Yield the arguments of the searches since the user last wrote, this one included."""
        for message in reversed(self._messages):
            if is_from_user(message):
                return
            yield from (args for name, args in tool_calls(message) if name == self._settings.name)


def _found(documents: Sequence[ToolDocument]) -> str:
    lines = [_line(document) for document in documents]
    if len(lines) == 1:
        stop = "" if lines[0].endswith((".", "!", "?", "…")) else "."
        return f"Found tool {lines[0]}{stop} It is now available for the rest of this conversation."
    listed = "\n".join(f"- {line}" for line in lines)
    return f"Found {len(lines)} tools, now available for the rest of this conversation:\n{listed}"


def _line(document: ToolDocument) -> str:
    """Return a tool's name, where it comes from if that is known, and what it says of itself."""
    source = f" ({plain_domain(document.domain)})" if document.domain else ""
    return f"`{one_line(document.name, _LINE)}`{source}: {one_line(_summary(document.description), _LINE)}"


def _parameter_names(document: ToolDocument) -> str:
    return one_line(", ".join(name for name, _ in document.parameters), _NAMES)


def _summary(description: str) -> str:
    """Return the first paragraph: what follows in a docstring is about arguments and results."""
    return next((part for part in description.split("\n\n") if part.strip()), "")


def _listed(words: Any) -> str:
    distinct = [one_line(word, 40) for word in dict.fromkeys(words) if word]
    more = f" and {len(distinct) - _SHOWN_NAMES} more" if len(distinct) > _SHOWN_NAMES else ""
    return ", ".join(distinct[:_SHOWN_NAMES]) + more
