"""The contract that every ranker keeps, as a check that the tests of any ranker can call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import isclose, isfinite
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import TypeAdapter

from langchain_tool_selection._ranking.index import CatalogView, ToolIndex
from langchain_tool_selection._ranking.protocol import Hit, Query, Ranker
from langchain_tool_selection._tools.documents import ToolDocument

_DATA = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
_TOOLS = tuple(TypeAdapter(list[ToolDocument]).validate_python(_DATA["tools"]))
# One request ends with half an emoji, as text that was cut off does.
_REQUESTS = (*_DATA["requests"], "city " * 500)

Make: TypeAlias = Callable[[], Ranker]
Promises: TypeAlias = Iterator[tuple[str, bool]]
"""What a ranker promises, and whether it keeps it."""


def check_ranker(make: Callable[[], Ranker]) -> None:
    """Check that a ranker keeps what the middleware builds on; for the tests of a ranker of your own.

    It ranks a few requests over a few tools again and again, and does not judge which tool comes first.
    May be called with an event loop running, and blocks it.

    Args:
        make: Returns a new ranker each time, always with the same settings.

    Raises:
        AssertionError: a promise is broken; the message says which, and by what request.

    Example:
        >>> def test_my_ranker_keeps_the_contract():
        ...     check_ranker(lambda: MyRanker(weight=0.5))
    """
    for text in ("", " \n"):
        _expect(not _search(_catalog(make()), text), "an empty request has no hits", text)
    _expect(not _search(_catalog(make(), ()), "weather"), "an empty catalogue has no hits", "weather")
    for text in _REQUESTS:
        _any_text_is_ranked(make, text)
        for promises in (_of_scores, _of_searches, _of_changes, _of_the_async_path):
            for promise, kept in promises(make, text):
                _expect(kept, promise, text)
    _twins_come_in_the_order_of_registration(make)


def _any_text_is_ranked(make: Make, text: str) -> None:
    try:
        list(make().rank(Query.of(text), _TOOLS))
    except Exception as error:
        _expect(False, f"any text in any script is ranked, but it raised {error!r}", text, error)


def _of_scores(make: Make, text: str) -> Promises:
    catalog = _catalog(make())
    raw = list(catalog.ranker.rank(Query.of(text), catalog.documents))
    yield "scores are finite", all(isfinite(score) for _, score in raw)
    yield "hits name tools that were passed", {name for name, _ in raw} <= set(catalog.names)
    scores = [hit.score for hit in _search(catalog, text)]
    yield "scores are descending", scores == sorted(scores, reverse=True)


def _of_searches(make: Make, text: str) -> Promises:
    catalog = _catalog(make())
    hits = _search(catalog, text)
    yield "the same request twice has the same hits", _search(catalog, text) == hits
    yield "two rankers made alike give the same hits", _search(_catalog(make()), text) == hits
    for limit in (0, 1, 3, len(_TOOLS) + 1):
        found = _search(catalog, text, limit=limit)
        yield "a limit gives the beginning of the whole list, with the same scores", found == hits[:limit]
    for allowed in (set(), {_TOOLS[0].name, _TOOLS[3].name}, {_TOOLS[-1].name}):
        rest = [hit for hit in hits if hit.name in allowed]
        for most in (None, 1):
            found = _search(catalog, text, allowed=allowed, limit=most)
            yield "`allowed` hides tools and changes no score of the others", found == rest[:most]


def _of_changes(make: Make, text: str) -> Promises:
    index = ToolIndex(make())
    hits = _search(index.sync(_TOOLS), text)
    for again in ([*_TOOLS], [replace(tool) for tool in _TOOLS]):
        yield "syncing the same tools again changes no hits", _search(index.sync(again), text) == hits
    removed = _is_as_new(make, text, _TOOLS[1:4] + _TOOLS[5:])
    yield "a removed tool leaves no trace in the scores of the others", removed
    # The two swap their descriptions, so whatever hits the one has to hit the other now.
    first, second, *rest = _TOOLS
    swapped = [(first, second.description), (second, first.description)]
    changed = [replace(tool, description=description) for tool, description in swapped]
    yield "a tool with a new description is ranked by it", _is_as_new(make, text, [*changed, *rest])


def _is_as_new(make: Make, text: str, tools: Sequence[ToolDocument]) -> bool:
    """Whether tools have the same hits after others as they have alone."""
    index = ToolIndex(make())
    _search(index.sync(_TOOLS), text)
    return _alike(_search(index.sync(tools), text), _search(_catalog(make(), tools), text))


def _of_the_async_path(make: Make, text: str) -> Promises:
    query = Query(((text, 1.0), ("weather", 0.3)))
    with ThreadPoolExecutor(1) as thread:  # an event loop may be running in this one
        awaited = thread.submit(asyncio.run, _catalog(make()).asearch(query)).result()
    yield "the async path gives the same hits", _alike(awaited, _catalog(make()).search(query))


def _twins_come_in_the_order_of_registration(make: Make) -> None:
    # Names cannot be equal, so a ranker may tell twins apart by them; by nothing else.
    twins = (ToolDocument("parcel_send", "Send a parcel."), ToolDocument("send_parcel", "Send a parcel."))
    text, orders = "send a parcel", []
    for registered in (twins, twins[::-1]):
        hits = _search(_catalog(make(), (*registered, *_TOOLS)), text)
        orders.append([hit.name for hit in hits if hit.name in {twin.name for twin in twins}])
    one, other = orders
    tied = one == other[::-1] == [twin.name for twin in twins]
    _expect(tied or one == other, "tools of equal text come in the order of registration", text)


def _catalog(ranker: Ranker, tools: Sequence[ToolDocument] = _TOOLS) -> CatalogView:
    return ToolIndex(ranker).sync(tools)


def _search(catalog: CatalogView, text: str, **options: Any) -> list[Hit]:
    return catalog.search(Query.of(text), **options)


def _alike(found: Sequence[Hit], expected: Sequence[Hit]) -> bool:
    # What grew step by step may round otherwise than what was made at once.
    return [hit.name for hit in found] == [hit.name for hit in expected] and all(
        isclose(one.score, other.score, rel_tol=1e-5, abs_tol=1e-5)
        for one, other in zip(found, expected, strict=True)
    )


def _expect(kept: bool, promise: str, text: str, cause: Exception | None = None) -> None:
    if not kept:
        raise AssertionError(f"the ranker breaks a promise: {promise} (request {text[:60]!r})") from cause
