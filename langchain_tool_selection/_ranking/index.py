"""`ToolIndex` keeps a ranker in step with tools that come and go; a `Catalog` is one state of them."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from operator import attrgetter
from typing import Any

from langchain_tool_selection._ground.digest import digest
from langchain_tool_selection._ground.untrusted import one_line
from langchain_tool_selection._ranking.choice import as_ranker
from langchain_tool_selection._ranking.duplicates import near_duplicates
from langchain_tool_selection._ranking.protocol import Hit, Query, Ranker, arank
from langchain_tool_selection._tools.documents import (
    ToolDocument,
    ToolHints,
    content_key,
    document_of,
    with_hints,
)

_CATALOG_DOCUMENTS = 200_000
"""Catalogues are kept up to so many documents in all: users and agents with tools of their own that take
turns on one index find theirs again."""

_DOCUMENTS = 20_000
"""Tools whose reading is remembered; with it their schemas stay alive. The oldest go first."""


@dataclass(frozen=True)
class Delta:
    """What a sync changed, as tool names in registration order."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything changed."""
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True, eq=False)
class Catalog:
    """The tools of one moment, searchable. Never changes, so threads share it freely.

    Attributes:
        documents: In registration order, names unique.
        before: The documents of the catalogue that was in use when this one was first seen.
    """

    documents: tuple[ToolDocument, ...]
    ranker: Ranker
    before: tuple[ToolDocument, ...] = ()

    @cached_property
    def delta(self) -> Delta:
        """What is different from the documents before; compared on first need, because few ask."""
        return _delta(self.before, self.documents)

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
        """About how many tokens all definitions take in a request, at four characters a token.

        Told from the documents, because asking thousands of tools for their schemas takes seconds. Within
        a fifth of the count over the schemas on nine of twelve catalogues; deeply nested parameters
        take more.
        """
        return sum(map(_characters, self.documents)) // 4

    @cached_property
    def alike(self) -> dict[str, str]:
        """For each tool that says the same as an earlier one: the first such tool."""
        return near_duplicates(self.documents)

    @cached_property
    def domains(self) -> dict[str, int]:
        """The domains there are, by plain name and in registration order, with their numbers of tools."""
        plain: Counter[str] = Counter()
        for domain, count in Counter(document.domain for document in self.documents).items():
            plain[plain_domain(domain)] += count
        return {domain: count for domain, count in plain.items() if domain}

    def document(self, name: str) -> ToolDocument:
        """Return the document of a tool.

        Raises:
            KeyError: there is no such tool.
        """
        return self.documents[self.names[name]]

    def search(
        self, query: Query, *, allowed: Collection[str] | None = None, limit: int | None = None
    ) -> list[Hit]:
        """Return what matches, best first; ties in registration order.

        Args:
            query: What to search for. An empty query matches nothing.
            allowed: Names to give back; `None` means all. A mask: it changes nobody's score.
            limit: At most this many hits.

        Raises:
            ValueError: the ranker returned a score that is not finite.
            Exception: whatever else the ranker raises.
        """
        if not query or not self.documents:
            return []
        hits = self.ranker.rank(query, self.documents, limit=limit if allowed is None else None)
        return self._checked(hits, allowed, limit)

    async def asearch(
        self, query: Query, *, allowed: Collection[str] | None = None, limit: int | None = None
    ) -> list[Hit]:
        """As `search`, awaiting the ranker where it can be awaited."""
        if not query or not self.documents:
            return []
        hits = await arank(self.ranker, query, self.documents, limit=limit if allowed is None else None)
        return self._checked(hits, allowed, limit)

    def _checked(self, hits: Iterable[Hit], allowed: Collection[str] | None, limit: int | None) -> list[Hit]:
        best: dict[str, Hit] = {}
        for name, score in hits:
            if not isfinite(score):
                msg = (
                    f"{type(self.ranker).__name__} scored tool {name!r} with {score!r}; scores must be finite"
                )
                raise ValueError(msg)
            if name in self.names and (allowed is None or name in allowed):
                best[name] = max(Hit(name, float(score)), best.get(name, Hit(name, float("-inf"))))
        return sorted(best.values(), key=lambda hit: (-hit.score, self.names[hit.name]))[:limit]


class ToolIndex:
    """Turns tools into searchable catalogues, reading each tool once for as long as it stays the same.

    Thread-safe: `sync` may be called with different tools from many threads, and each caller gets the
    catalogue of exactly the tools that it passed.

    Args:
        ranker: A `Ranker`, LangChain `Embeddings`, a scorer, or `None` for `LexicalRanker()`.
        hints: What tools are searched by beside their own text, by tool name.

    Example:
        >>> catalog = ToolIndex().sync([{"name": "get_weather", "description": "Forecast for a city."}])
        >>> catalog.search(Query.of("will it rain? show me the forecast"))[0].name
        'get_weather'
    """

    def __init__(self, ranker: Any = None, *, hints: Mapping[str, ToolHints] | None = None) -> None:
        check_hints(hints)
        self.ranker = as_ranker(ranker)
        self._hints = dict(hints or {})
        self._documents: dict[Any, tuple[Any, ToolDocument]] = {}
        self._catalogs: OrderedDict[tuple[str, ...], Catalog] = OrderedDict()  # by fingerprints, newest last
        self._size = 0  # documents in all catalogues
        self._lock = threading.Lock()

    def sync(self, tools: Iterable[Any]) -> Catalog:
        """Return the catalogue of `tools`; of two with one name the first counts.

        Args:
            tools: Anything that `document_of` reads.

        Raises:
            TypeError: one of them has no name.
        """
        documents = self._documents_of(tools)
        # Strings keep their hash; documents would compute theirs for each of the look-ups below.
        key = tuple(map(attrgetter("fingerprint"), documents))
        with self._lock:
            if (catalog := self._catalogs.get(key)) is not None:
                self._catalogs.move_to_end(key)
                return catalog
            newest = next(reversed(self._catalogs.values()), None)
            catalog = Catalog(documents, self.ranker, newest.documents if newest else ())
            self._catalogs[key] = catalog
            self._size += len(documents)
            while self._size > _CATALOG_DOCUMENTS and len(self._catalogs) > 1:
                self._size -= len(self._catalogs.popitem(last=False)[0])
            return catalog

    def catalog(self, fingerprint: str) -> Catalog | None:
        """Return the catalogue with this fingerprint if it is still known."""
        with self._lock:
            known = list(self._catalogs.values())
        return next((catalog for catalog in reversed(known) if catalog.fingerprint == fingerprint), None)

    def _read(self, tool: Any) -> ToolDocument:
        document = document_of(tool)
        return with_hints(document, self._hints.get(document.name))

    def _documents_of(self, tools: Iterable[Any]) -> tuple[ToolDocument, ...]:
        unique: dict[str, ToolDocument] = {}
        for document in map(self.document_of, tools):
            unique.setdefault(document.name, document)
        return tuple(unique.values())

    def document_of(self, tool: Any) -> ToolDocument:
        """Return a tool's document, with hints; read once for equal content."""
        if isinstance(tool, ToolDocument):  # the exception below would cost more than all the rest
            return self._read(tool)
        try:
            key = content_key(tool)
            known = self._documents.get(key)
        except (AttributeError, TypeError):  # no LangChain tool: reading it again is cheap enough
            return self._read(tool)
        if known is not None:
            return known[1]
        document = self._read(tool)
        with self._lock:
            # What counts by identity in the key has to stay alive as long as the key does.
            self._documents[key] = ((tool.args_schema, tool.metadata), document)
            if len(self._documents) > _DOCUMENTS:
                self._documents.pop(next(iter(self._documents)), None)
        return document


def check_hints(hints: Any) -> None:
    """Raise a `TypeError` that names the culprit unless `hints` maps tool names to `ToolHints`."""
    if not isinstance(hints, Mapping | None):
        msg = f"hints takes a mapping of tool names to ToolHints, got {type(hints).__name__}"
        raise TypeError(msg)
    for name, hint in (hints or {}).items():
        if not isinstance(hint, ToolHints):
            msg = f"hints takes ToolHints(...) for each tool, got {type(hint).__name__} for {name!r}"
            raise TypeError(msg)
        for part in ("examples", "tags"):
            if isinstance(getattr(hint, part), str):
                msg = f"ToolHints.{part} takes a list of strings, got a string for {name!r}"
                raise TypeError(msg)


def plain_domain(domain: str) -> str:
    """Return a domain's name as models and state get it: a server may call itself anything, of any length."""
    return one_line(domain, 40)


def _characters(document: ToolDocument) -> int:
    parameters = sum(len(name) + len(text) for name, text in document.parameters)
    # What JSON adds, as it came out on real catalogues: braces and keys of a tool, types of a parameter.
    return len(document.name) + len(document.description) + 118 + parameters + 52 * len(document.parameters)


def _delta(before: Sequence[ToolDocument], after: Sequence[ToolDocument]) -> Delta:
    old = {document.name: document for document in before}
    new = {document.name: document for document in after}
    return Delta(
        added=tuple(name for name in new if name not in old),
        changed=tuple(name for name in new if name in old and old[name] != new[name]),
        removed=tuple(name for name in old if name not in new),
    )
