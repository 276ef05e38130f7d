"""What a search by the model comes to: which tools match, which of them it sees already, what else to say.

Finding only. `answers` says it in words, `discovery` is the tool.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from langchain_tool_selection._access.boundary import Boundary
from langchain_tool_selection._exposure.registry import quotes_schemas, was_stub
from langchain_tool_selection._ground.messages import is_from_user, state_value, tool_calls
from langchain_tool_selection._ranking.index import CatalogView, plain_domain
from langchain_tool_selection._ranking.protocol import Hit, Query
from langchain_tool_selection._run.search import SafeSearch
from langchain_tool_selection._run.settings import Discovery
from langchain_tool_selection._selection.pins import PINS, pins_in
from langchain_tool_selection._selection.policy import Plan
from langchain_tool_selection._selection.record import ThreadRecord
from langchain_tool_selection._tools.definitions import Definitions
from langchain_tool_selection._tools.documents import ToolDocument
from langchain_tool_selection._tools.limits import limits_of

_RELATIVE_SCORE = 0.5
"""A match that scores less than this share of the best one is not worth its tokens."""

_RELATIVE_SCORE_BY_PROXY = 0.3

_VISIBLE_NAMED = 3
"""How many tools that the model sees already are named when nothing hidden matches."""

Status = Literal["possible", "nothing hidden", "too many searches"]


@dataclass(frozen=True)
class Asked:
    """What the model asked for.

    Attributes:
        text: The words to search for.
        names: Exact names of tools.
        domain: The domain to stay in, by its plain name; empty for all.
    """

    text: str
    names: tuple[str, ...]
    domain: str

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Asked:
        """Read the arguments of a call; models send a string for a list, a list for a string, or null."""
        names = (name.strip() for name in as_list(arguments.get("names")))
        return cls(
            as_text(arguments.get("query")).strip(),
            tuple(filter(None, names)),
            plain_domain(as_text(arguments.get("domain"))),
        )

    @property
    def query(self) -> Query:
        """What to search for. A name that does not exist is a description of what was meant."""
        return Query(tuple((text, 1.0) for text in (self.text, " ".join(self.names)) if text))

    @property
    def gist(self) -> tuple[Any, ...]:
        """What makes two searches the same."""
        return self.text.casefold(), sorted(self.names), self.domain.casefold()


class Search:
    """One call of the search tool, on its way to the findings.

    Args:
        settings: Those of the search tool.
        asked: What the model asked for.
        runtime: The tool's runtime.
        boundary: What of the registered tools the run may use.
        search: Finds the catalogue of the last model call.
        definitions: Knows which tools can be sent.

    Attributes:
        registered: The tools whose schemas can be quoted, by name.
    """

    def __init__(
        self,
        settings: Discovery,
        asked: Asked,
        runtime: Any,
        boundary: Boundary,
        *,
        search: SafeSearch,
        definitions: Definitions,
    ) -> None:
        self.asked = asked
        self.settings = settings
        self.registered = boundary.by_name
        self._runtime = runtime
        self._boundary = boundary
        self._search = search
        self._definitions = definitions
        self._record = ThreadRecord.from_state(runtime.state)
        self._messages = state_value(runtime.state, "messages") or []

    @cached_property
    def catalog(self) -> CatalogView | None:
        """What is searched; `None` if no search is possible, or it is not known what the model was shown."""
        if self.status != "possible":
            return None
        return self._search.catalog_of(self._record, self._boundary)

    @property
    def plan(self) -> Plan:
        """What to search the catalogue for."""
        return Plan(catalog=self.catalog, query=self.asked.query)

    def findings(self, hits: Sequence[Hit]) -> Findings:
        """Return what the search came to, given what ranking found, best first."""
        matches = [] if self.catalog is None else self._matches(self.catalog, hits)
        unusable = {document.name: why for document in matches if (why := self._why_not(document.name))}
        usable = [document for document in matches if document.name not in unusable]
        found = tuple(document for document in usable if document.name not in self._visible)
        visible = tuple(document for document in usable if document.name in self._visible)
        return Findings(self, found, visible, unusable)

    def _why_not(self, name: str) -> str:
        tool, limits = self.registered.get(name), limits_of(self._record.limits)
        if tool is None:
            return ""
        # Where answers quote schemas, none has to be sent.
        return limits.why_not(tool) if self.quotes_schemas else self._definitions.why_not(tool, limits)

    @cached_property
    def is_repeated(self) -> bool:
        """Whether the same was asked before since the user last wrote."""
        return sum(asked.gist == self.asked.gist for asked in self._searches()) > 1

    def needs_call_tool(self, name: str) -> bool:
        """Whether only `call_tool` can call a tool, and the model has it."""
        return self.settings.call_name in self._record.shown and name not in self._record.shown

    @property
    def quotes_schemas(self) -> bool:
        """Whether the model reads the schemas of what it finds in the answer."""
        return quotes_schemas(self._record)

    @property
    def status(self) -> Status:
        """Whether the model may search, or why not."""
        if not self._record.hides:
            return "nothing hidden"
        return "possible" if self._is_in_bounds else "too many searches"

    @cached_property
    def _visible(self) -> frozenset[str]:
        shown = (name for name in self._record.shown if not was_stub(self._record, name))
        # Where answers quote schemas, a pin is a name without one, which the model may have forgotten.
        pins = [] if self.quotes_schemas else pins_in(state_value(self._runtime.state, PINS))
        return frozenset([*shown, *pins])

    def _matches(self, catalog: CatalogView, hits: Sequence[Hit]) -> list[ToolDocument]:
        asked, most, share = self.asked, self.settings.max_results, _RELATIVE_SCORE
        exact = dict.fromkeys(name for name in (*asked.names, asked.text) if name in catalog.names)
        if exact and (not asked.text or asked.text in exact):
            return [catalog.document(name) for name in exact][:most]
        if asked.domain and not asked.query:
            # A domain alone asks what there is.
            hits = [Hit(name, 1.0) for name in catalog.names]
        inside = [hit for hit in hits if self._is_in_domain(catalog, hit.name)]
        if self.quotes_schemas:
            # There a search is all that the model sees of the schemas, and a name costs little.
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

    def _is_in_domain(self, catalog: CatalogView, name: str) -> bool:
        domain = plain_domain(catalog.document(name).domain)
        return not self.asked.domain or domain.casefold() == self.asked.domain.casefold()

    @cached_property
    def _is_in_bounds(self) -> bool:
        """Whether the model may search on: it has not done so too often since the user last wrote."""
        return sum(1 for _ in self._searches()) - self._later() <= self.settings.max_discoveries

    def _later(self) -> int:
        """How many searches the same message has behind this one."""
        for message in reversed(self._messages):
            calls = getattr(message, "tool_calls", None) or ()
            searches = [call["id"] for call in calls if call["name"] == self.settings.name]
            if searches.count(self._runtime.tool_call_id) == 1:
                return len(searches) - 1 - searches.index(self._runtime.tool_call_id)
        return 0

    def _searches(self) -> Iterator[Asked]:
        """Yield the searches since the user last wrote, this one included."""
        for message in reversed(self._messages):
            if is_from_user(message):
                return
            yield from (Asked.of(args) for name, args in tool_calls(message) if name == self.settings.name)


@dataclass(frozen=True, eq=False)
class Findings:
    """What one search came to.

    Attributes:
        search: The search.
        found: The matches that the model does not see yet, best first.
        visible: The matches that it sees already, best first.
        unusable: Why other matches cannot be used with this model, by their names.
    """

    search: Search
    found: tuple[ToolDocument, ...]
    visible: tuple[ToolDocument, ...]
    unusable: Mapping[str, str]

    @property
    def by_call_tool(self) -> frozenset[str]:
        """What of the found the model calls through `call_tool`, by name."""
        return frozenset(one.name for one in self.found if self.search.needs_call_tool(one.name))

    @property
    def matches(self) -> tuple[ToolDocument, ...]:
        """All matches: those found, and behind them those that the model sees."""
        return (*self.found, *self.visible)


def as_text(value: Any) -> str:
    """Return what a model gave for a text, as a text."""
    if isinstance(value, list | tuple):
        return " ".join(as_list(value))
    return "" if value is None else str(value)


def as_list(value: Any) -> list[str]:
    """Return what a model gave for a list of names, as a list."""
    if value is None:
        return []
    if isinstance(value, list | tuple):
        return [str(item) for item in value if item is not None]
    return str(value).replace(",", " ").split()
