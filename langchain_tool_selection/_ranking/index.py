"""`ToolIndex` keeps a ranker in step with tools that come and go; a `CatalogView` is one state of them."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import islice
from math import isfinite
from operator import attrgetter
from typing import Any

from langchain_tool_selection._ground.digest import digest
from langchain_tool_selection._ground.untrusted import one_line
from langchain_tool_selection._ranking.choice import as_ranker
from langchain_tool_selection._ranking.protocol import Hit, Query, Ranker, arank
from langchain_tool_selection._ranking.text import split, terms
from langchain_tool_selection._tools.documents import ToolDocument, ToolHints, with_hints
from langchain_tool_selection._tools.remembered import Reading, ToolFacts, documents_of
from langchain_tool_selection._tools.tokens import estimated_tokens

_DOCUMENTS = 200_000
"""Catalogues are kept up to so many documents in all: users and agents with tools of their own that take
turns on one index find theirs again."""

_READ = 8
"""Newest catalogues whose tools' schemas stay alive, even if the tools do not. Some middleware copies all
tools for each request: the schemas are the same objects, and need not be read again."""


@dataclass(frozen=True, eq=False)
class CatalogView:
    """The tools of one moment, searchable. Never changes, so threads share it freely.

    Attributes:
        documents: In registration order, names unique.
        ranker: Ranks them.
    """

    documents: tuple[ToolDocument, ...]
    ranker: Ranker

    @cached_property
    def names(self) -> dict[str, int]:
        """Each name with its position in registration order."""
        return {document.name: position for position, document in enumerate(self.documents)}

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits over all documents in their order."""
        return digest(*(document.fingerprint for document in self.documents))

    @cached_property
    def tokens(self) -> int:
        """About how many tokens all definitions take in a request."""
        return estimated_tokens(self.documents)

    @cached_property
    def alike(self) -> dict[str, str]:
        """For each tool that says the same as an earlier one: the first such tool."""
        return near_duplicates(self.documents)

    @cached_property
    def domains(self) -> dict[str, int]:
        """The domains there are, by plain name and in registration order, with their numbers of tools."""
        tools = Counter(plain_domain(document.domain) for document in self.documents)
        return {domain: count for domain, count in tools.items() if domain}

    def document(self, name: str) -> ToolDocument:
        """Return the document of a tool.

        Raises:
            KeyError: there is no such tool.
        """
        return self.documents[self.names[name]]

    def search(
        self, query: Query | str, *, allowed: Collection[str] | None = None, limit: int | None = None
    ) -> list[Hit]:
        """Return what matches, best first; ties in registration order.

        Args:
            query: What to search for; a text is a query of one part. An empty one matches nothing.
            allowed: Names to give back; `None` means all. A mask: it changes nobody's score.
            limit: At most this many hits.

        Raises:
            TypeError: `query` is neither a `Query` nor a string.
            ValueError: the ranker returned a score that is not finite.
            Exception: whatever else the ranker raises.
        """
        query = _query(query)
        if not query or not self.documents:
            return []
        hits = self.ranker.rank(query, self.documents, limit=limit if allowed is None else None)
        return self._checked(hits, allowed, limit)

    async def asearch(
        self, query: Query | str, *, allowed: Collection[str] | None = None, limit: int | None = None
    ) -> list[Hit]:
        """As `search`, awaiting the ranker where it can be awaited."""
        query = _query(query)
        if not query or not self.documents:
            return []
        hits = await arank(self.ranker, query, self.documents, limit=limit if allowed is None else None)
        return self._checked(hits, allowed, limit)

    def _checked(self, hits: Iterable[Hit], allowed: Collection[str] | None, limit: int | None) -> list[Hit]:
        best: dict[str, Hit] = {}
        for name, score in hits:
            if not isfinite(score):
                raise ValueError(
                    f"{type(self.ranker).__name__} scored tool {name!r} with {score!r}; scores must be finite"
                )
            if name in self.names and (allowed is None or name in allowed):
                best[name] = max(Hit(name, float(score)), best.get(name, Hit(name, float("-inf"))))
        return sorted(best.values(), key=lambda hit: (-hit.score, self.names[hit.name]))[:limit]


@dataclass
class _InUse:
    """A catalogue that is in use, and what is kept alive for it.

    Attributes:
        view: The catalogue.
        readings: The newest reading of each tool, which spares reading copies that are made for each request.
        facts: What was made of the tools, once the readings are let go.
    """

    view: CatalogView
    readings: Sequence[Reading]
    facts: Sequence[ToolFacts] = ()

    def release_schemas(self) -> None:
        """Keep what was made of the tools, and not what it was made of."""
        if self.readings:
            self.facts = [reading.facts for reading in self.readings if reading.facts is not None]
            self.readings = ()


class ToolIndex:
    """Turns tools into searchable catalogues, reading each tool once for as long as it stays the same.

    Thread-safe: `sync` may be called with different tools from many threads, and each caller gets the
    catalogue of exactly the tools that it passed. A copy, and one that was pickled, begins with no catalogue.

    Args:
        ranker: A `Ranker`, LangChain `Embeddings`, a scorer, or `None` for `LexicalRanker()`.
        hints: What tools are searched by beside their own text, by tool name.

    Example:
        >>> view = ToolIndex().sync([{"name": "get_weather", "description": "Forecast for a city."}])
        >>> view.search("will it rain? show me the forecast")[0].name
        'get_weather'
    """

    def __init__(self, ranker: Any = None, *, hints: Mapping[str, ToolHints] | None = None) -> None:
        check_hints(hints)
        self.ranker = as_ranker(ranker)
        self._hints = known = dict(hints or {})
        self._in_use: OrderedDict[tuple[str, ...], _InUse] = OrderedDict()  # by fingerprints, newest last
        self._size = 0  # documents in all catalogues
        # Remembered, so that a document that stays the same is the same object.
        self._with_hints = lru_cache(_DOCUMENTS)(lambda one: with_hints(one, known.get(one.name)))
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), hints=self._hints), (self.ranker,)

    def sync(self, tools: Iterable[Any]) -> CatalogView:
        """Return the catalogue of `tools`; of two with one name the first counts.

        Args:
            tools: Anything that `document_of` reads.

        Raises:
            TypeError: one of them has no name.
        """
        documents, readings = self._read(tools)
        # Strings keep their hash; documents would compute theirs for each of the look-ups below.
        key = tuple(map(attrgetter("fingerprint"), documents))
        with self._lock:
            if (in_use := self._in_use.get(key)) is not None:
                self._in_use.move_to_end(key)
                in_use.readings = readings
            else:
                in_use = _InUse(CatalogView(tuple(documents), self.ranker), readings)
                self._in_use[key] = in_use
                self._size += len(documents)
                while self._size > _DOCUMENTS and len(self._in_use) > 1:
                    self._size -= len(self._in_use.popitem(last=False)[0])
            for older in islice(reversed(self._in_use.values()), _READ, _READ + 1):
                older.release_schemas()
            return in_use.view

    def catalog(self, fingerprint: str) -> CatalogView | None:
        """Return the catalogue with this fingerprint if it is still known."""
        with self._lock:
            known = [in_use.view for in_use in self._in_use.values()]
        return next((view for view in reversed(known) if view.fingerprint == fingerprint), None)

    def _read(self, tools: Iterable[Any]) -> tuple[Collection[ToolDocument], list[Reading]]:
        """Return the documents of tools, with hints, and the readings of those that are LangChain tools."""
        documents, readings = documents_of(tools)
        unique = {document.name: document for document in documents}
        if len(unique) < len(documents):  # of two with one name the first counts
            unique |= {document.name: document for document in reversed(documents)}
        for name in self._hints.keys() & unique.keys():
            unique[name] = self._with_hints(unique[name])
        return unique.values(), readings

    def document_of(self, tool: Any) -> ToolDocument:
        """Return a tool's document, with hints."""
        return next(iter(self._read([tool])[0]))


def check_hints(hints: Any) -> None:
    """Raise a `TypeError` that names the culprit unless `hints` maps tool names to `ToolHints`."""
    if not isinstance(hints, Mapping | None):
        raise TypeError(f"hints takes a mapping of tool names to ToolHints, got {type(hints).__name__}")
    for name, hint in (hints or {}).items():
        if not isinstance(hint, ToolHints):
            raise TypeError(
                f"hints takes ToolHints(...) for each tool, got {type(hint).__name__} for {name!r}"
            )
        for part in ("examples", "tags"):
            if isinstance(getattr(hint, part), str):
                raise TypeError(f"ToolHints.{part} takes a list of strings, got a string for {name!r}")


def _query(query: Query | str) -> Query:
    if isinstance(query, str):
        return Query.of(query)
    if not isinstance(query, Query):
        raise TypeError(f"a search takes a Query or a string, got {type(query).__name__}")
    return query


@lru_cache
def plain_domain(domain: str) -> str:
    """Return a domain's name as models and state get it: a server may call itself anything, of any length."""
    return one_line(domain, 40)


_ARTICLES = frozenset({"a", "an", "the"})


def near_duplicates(documents: Iterable[ToolDocument]) -> dict[str, str]:
    """Return, for each tool that says almost the same as earlier ones, the name of the first of them.

    So tools that share a value, and the one of that name, are one group, of which to show the best ranked.
    Groups have the same parameter names, in any order, and near-identical descriptions. 10,000 tools take
    0.2 s.

    How alike two descriptions are says little: of the pairs with the same parameters whose words overlap by
    90 % and more (Jaccard) but not wholly, in twelve real and made-up catalogues, not one was a pair of
    duplicates. They differ in the one word that matters: delete and query, next and previous, albums and
    tracks. The same holds where one description contains the words of the other, and order matters in "from
    USD to EUR". So two descriptions are near-identical here if they say the same words in the same order, up
    to what never matters: case, punctuation, articles, and the form of the leading verb ("Gets the user" and
    "Get user").
    """
    first: dict[Hashable, str] = {}
    repeated = {}
    for document in documents:
        key = _gist(document)
        if key is not None and first.setdefault(key, document.name) != document.name:
            repeated[document.name] = first[key]
    return repeated


def _gist(document: ToolDocument) -> Hashable | None:
    words = [word for word in map(str.casefold, split(document.description)) if word not in _ARTICLES]
    if not words:
        return None
    return frozenset(name for name, _ in document.parameters), tuple(terms(words[0])), tuple(words[1:])
