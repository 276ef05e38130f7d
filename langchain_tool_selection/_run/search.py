"""Searching a catalogue so that nothing that goes wrong on the way ends a run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any, NamedTuple

from langchain_tool_selection._access.boundary import Boundary
from langchain_tool_selection._ground.errors import ends_the_run
from langchain_tool_selection._ground.log import WarnOnce
from langchain_tool_selection._ranking.index import CatalogView, ToolIndex
from langchain_tool_selection._ranking.lexical import LexicalRanker
from langchain_tool_selection._ranking.protocol import Hit, Query, blocks
from langchain_tool_selection._selection.policy import Plan
from langchain_tool_selection._selection.record import ThreadRecord
from langchain_tool_selection._tools.documents import ToolHints

_HANGING = 64
"""Searches that may be under way at once; a service that hangs must not fill the machine with threads."""


class SearchResult(NamedTuple):
    """What a search came to.

    Attributes:
        hits: Best first; `None` if no ranker works.
        degraded: What failed and was worked around; empty if nothing did.
    """

    hits: list[Hit] | None
    degraded: str = ""


class SafeSearch:
    """Searches with the ranker that was asked for, and with words where that fails.

    Shared by all threads and agents of a middleware: it holds caches, no conversation.

    Attributes:
        index: Reads tools and keeps their catalogues.
    """

    def __init__(
        self, ranker: Any, hints: Mapping[str, ToolHints] | None = None, *, timeout: float | None = None
    ) -> None:
        self.index = ToolIndex(ranker, hints=hints)
        # Words are ranked in this process and cannot hang.
        self._timeout = None if isinstance(self.index.ranker, LexicalRanker) else timeout
        self._threads = threading.BoundedSemaphore(_HANGING)
        self._by_words = ToolIndex(LexicalRanker())
        self._warn_once = WarnOnce()

    def catalog_of(self, record: ThreadRecord, boundary: Boundary) -> CatalogView | None:
        """Return what may be searched on behalf of a run: all that its last model call could have shown.

        The record holds that catalogue's fingerprint. If this process never saw it, because it was
        restarted between model call and tool call, the registered tools are the same catalogue unless
        other middleware adds, removes or rewrites some; in that case nothing is searched until the
        next model call has brought the catalogue back.
        """
        if not record.hides:
            return None
        catalog = self.index.catalog(record.catalog)
        if catalog is None:
            catalog = self.index.sync(boundary.by_name.values())
            if catalog.fingerprint != record.catalog:
                return None
        if any(map(boundary.refuses, catalog.names)):
            # The run's role has changed since the model was called.
            return self.index.sync(one for one in catalog.documents if not boundary.refuses(one.name))
        return catalog

    def search(self, plan: Plan | None) -> SearchResult:
        """Return what matches the query of a plan; nothing without a catalogue. Never raises."""
        if plan is None or (catalog := plan.catalog) is None or not plan.query:
            return SearchResult([])
        try:
            return SearchResult(self._in_time(lambda: catalog.search(plan.query, limit=plan.limit)))
        except Exception as error:
            return self._search_by_words(catalog, plan.query, plan.limit, error)

    async def asearch(self, plan: Plan | None) -> SearchResult:
        """As `search`, awaiting the ranker."""
        if plan is None or (catalog := plan.catalog) is None or not plan.query:
            return SearchResult([])
        try:
            searching = self._asearched(catalog, plan.query, plan.limit)
            return SearchResult(await asyncio.wait_for(searching, self._timeout))
        except (Exception, asyncio.CancelledError) as error:
            if ends_the_run(error):
                raise
            return self._search_by_words(catalog, plan.query, plan.limit, error)

    async def _asearched(self, catalog: CatalogView, query: Query, limit: int | None) -> list[Hit]:
        if self._timeout is None or not blocks(catalog.ranker):
            return await catalog.asearch(query, limit=limit)
        return await asyncio.wrap_future(self._in_thread(lambda: catalog.search(query, limit=limit)))

    def _in_time(self, search: Callable[[], list[Hit]]) -> list[Hit]:
        return search() if self._timeout is None else self._in_thread(search).result(self._timeout)

    def _in_thread(self, search: Callable[[], list[Hit]]) -> Future[list[Hit]]:
        """Search in a thread that nobody has to wait for, not even at the end of the program.

        None of the event loop's own: a few searches that hang there would leave no thread for its tools.
        """
        if not self._threads.acquire(blocking=False):
            raise TimeoutError(f"{_HANGING} earlier searches have not come back yet")
        answer: Future[list[Hit]] = Future()
        answer.set_running_or_notify_cancel()  # who stops waiting for it does not stop it
        context = copy_context()

        def run() -> None:
            try:
                answer.set_result(context.run(search))
            except BaseException as error:
                answer.set_exception(error)
            finally:
                self._threads.release()

        try:
            threading.Thread(target=run, daemon=True, name="tool-selection").start()
        except RuntimeError:  # the machine has no more
            self._threads.release()
            raise
        return answer

    def _search_by_words(
        self, catalog: CatalogView, query: Query, limit: int | None, error: BaseException
    ) -> SearchResult:
        ranker, kind = type(catalog.ranker).__name__, type(error).__name__
        message = "%s failed, ranking by words instead (said once for each kind of error): %r"
        self._warn_once(f"{ranker} {kind}", message, ranker, error)
        degraded = f"{ranker} failed with {kind}; ranked by words"
        try:
            return SearchResult(self._by_words.sync(catalog.documents).search(query, limit=limit), degraded)
        except Exception as defect:
            self._warn_once("words", "ranking by words failed, which is a defect of this package: %r", defect)
            return SearchResult(None, f"{degraded}, which failed too")
