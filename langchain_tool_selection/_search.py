"""Searching a catalogue so that nothing that goes wrong on the way ends a run."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from langchain_tool_selection._documents import ToolDocument, ToolHints
from langchain_tool_selection._index import Catalog, ToolIndex
from langchain_tool_selection._lexical import LexicalRanker
from langchain_tool_selection._ranking import Hit, Query
from langchain_tool_selection._state import ThreadRecord

logger = logging.getLogger("langchain_tool_selection")


class Found(NamedTuple):
    """What a search came to.

    Attributes:
        hits: Best first; `None` if no ranker works.
        degraded: What failed and was worked around; empty if nothing did.
    """

    hits: list[Hit] | None = None
    degraded: str = ""


class WarnOnce:
    """Logs a warning the first time that its key comes up, and never again in its lifetime."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(self, key: str, message: str, *values: Any) -> None:
        """Log `message % values`, unless there was a warning with this `key` before."""
        if key not in self._said:
            self._said.add(key)
            logger.warning(message, *values)


class SafeSearch:
    """Searches with the ranker that was asked for, and with words where that fails.

    Shared by all threads and agents of a middleware: it holds caches, no conversation.
    """

    def __init__(self, ranker: Any, hints: Mapping[str, ToolHints] | None = None) -> None:
        self._index = ToolIndex(ranker, hints=hints)
        self._by_words = ToolIndex(LexicalRanker())
        self._warn_once = WarnOnce()

    def sync(self, tools: Iterable[Any]) -> Catalog:
        """Return the catalogue of `tools`."""
        return self._index.sync(tools)

    def document_of(self, tool: Any) -> ToolDocument:
        """Return what is indexed of a tool."""
        return self._index.document_of(tool)

    def catalog_of(self, record: ThreadRecord | None, registered: Iterable[Any]) -> Catalog | None:
        """Return what may be searched on behalf of a run: all that its last model call could have shown.

        The record holds that catalogue's fingerprint. If this process never saw it, because it was
        restarted between model call and tool call, the registered tools are the same catalogue unless
        other middleware adds, removes or rewrites some; in that case nothing is searched until the
        next model call has brought the catalogue back.
        """
        if record is None or not record.catalog:
            return None
        known = self._index.catalog(record.catalog)
        if known is not None:
            return known
        catalog = self._index.sync(registered)
        return catalog if catalog.fingerprint == record.catalog else None

    def search(self, catalog: Catalog | None, query: Query, *, limit: int | None = None) -> Found:
        """Return what matches; nothing without a catalogue. Never raises."""
        if catalog is None:
            return Found([])
        try:
            return Found(catalog.search(query, limit=limit))
        except Exception as error:
            return self._search_by_words(catalog, query, limit, error)

    async def asearch(self, catalog: Catalog | None, query: Query, *, limit: int | None = None) -> Found:
        """As `search`, awaiting the ranker."""
        if catalog is None:
            return Found([])
        try:
            return Found(await catalog.asearch(query, limit=limit))
        except Exception as error:
            return self._search_by_words(catalog, query, limit, error)

    def _search_by_words(self, catalog: Catalog, query: Query, limit: int | None, error: Exception) -> Found:
        ranker, kind = type(catalog.ranker).__name__, type(error).__name__
        self._warn_once(
            f"{ranker} {kind}",
            "%s failed, ranking by words instead (said once for each kind of error): %r",
            ranker,
            error,
        )
        degraded = f"{ranker} failed with {kind}; ranked by words"
        try:
            return Found(self._by_words.sync(catalog.documents).search(query, limit=limit), degraded)
        except Exception as defect:
            self._warn_once("words", "ranking by words failed, which is a defect of this package: %r", defect)
            return Found(None, f"{degraded}, which failed too")
