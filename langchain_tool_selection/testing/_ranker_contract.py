"""The contract that every ranker keeps, as a check that the tests of any ranker can call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import isclose, isfinite
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from langchain_tool_selection._ranking.index import CatalogView, ToolIndex
from langchain_tool_selection._ranking.protocol import Hit, Query, Ranker
from langchain_tool_selection._tools.documents import ToolDocument

_DATA = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
_TOOLS = tuple(TypeAdapter(list[ToolDocument]).validate_python(_DATA["tools"]))
# One request ends with half an emoji, as text that was cut off does.
_REQUESTS = (*_DATA["requests"], "city " * 500)


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
    _nothing_comes_of_nothing(make)
    for text in _REQUESTS:
        _any_text_is_ranked(make, text)
        _scores_are_finite_and_descending(make, text)
        _equal_input_gives_equal_hits(make, text)
        _a_limit_only_cuts_the_list(make, text)
        _allowed_is_only_a_mask(make, text)
        _syncing_again_changes_nothing(make, text)
        _a_removed_tool_leaves_no_trace(make, text)
        _a_changed_tool_is_ranked_as_it_is_now(make, text)
        _the_async_path_gives_the_same(make, text)
    _twins_come_in_the_order_of_registration(make)


def _nothing_comes_of_nothing(make: Callable[[], Ranker]) -> None:
    for text in ("", " \n"):
        _expect(not _search(_catalog(make()), text), "an empty request has no hits", text)
    _expect(not _search(_catalog(make(), ()), "weather"), "an empty catalogue has no hits", "weather")


def _any_text_is_ranked(make: Callable[[], Ranker], text: str) -> None:
    try:
        list(make().rank(Query.of(text), _TOOLS))
    except Exception as error:
        _expect(False, f"any text in any script is ranked, but it raised {error!r}", text, error)


def _scores_are_finite_and_descending(make: Callable[[], Ranker], text: str) -> None:
    catalog = _catalog(make())
    raw = list(catalog.ranker.rank(Query.of(text), catalog.documents))
    _expect(all(isfinite(score) for _, score in raw), "scores are finite", text)
    _expect({name for name, _ in raw} <= set(catalog.names), "hits name tools that were passed", text)
    scores = [hit.score for hit in _search(catalog, text)]
    _expect(scores == sorted(scores, reverse=True), "scores are descending", text)


def _equal_input_gives_equal_hits(make: Callable[[], Ranker], text: str) -> None:
    catalog = _catalog(make())
    hits = _search(catalog, text)
    _expect(_search(catalog, text) == hits, "the same request twice has the same hits", text)
    _expect(_search(_catalog(make()), text) == hits, "two rankers made alike give the same hits", text)


def _a_limit_only_cuts_the_list(make: Callable[[], Ranker], text: str) -> None:
    catalog = _catalog(make())
    hits = _search(catalog, text)
    for limit in (0, 1, 3, len(_TOOLS) + 1):
        same = _search(catalog, text, limit=limit) == hits[:limit]
        _expect(same, "a limit gives the beginning of the whole list, with the same scores", text)


def _allowed_is_only_a_mask(make: Callable[[], Ranker], text: str) -> None:
    catalog = _catalog(make())
    hits = _search(catalog, text)
    for allowed in (set(), {_TOOLS[0].name, _TOOLS[3].name}, {_TOOLS[-1].name}):
        rest = [hit for hit in hits if hit.name in allowed]
        for limit in (None, 1):
            same = _search(catalog, text, allowed=allowed, limit=limit) == rest[:limit]
            _expect(same, "`allowed` hides tools and changes no score of the others", text)


def _syncing_again_changes_nothing(make: Callable[[], Ranker], text: str) -> None:
    index = ToolIndex(make())
    hits = _search(index.sync(_TOOLS), text)
    copies = [replace(tool) for tool in _TOOLS]
    same = _search(index.sync(list(_TOOLS)), text) == hits == _search(index.sync(copies), text)
    _expect(same, "syncing the same tools again changes no hits", text)


def _a_removed_tool_leaves_no_trace(make: Callable[[], Ranker], text: str) -> None:
    same = _is_as_new(make, text, _TOOLS[1:4] + _TOOLS[5:])
    _expect(same, "a removed tool leaves no trace in the scores of the others", text)


def _a_changed_tool_is_ranked_as_it_is_now(make: Callable[[], Ranker], text: str) -> None:
    # The two swap their descriptions, so whatever hits the one has to hit the other now.
    first, second, *rest = _TOOLS
    swapped = [(first, second.description), (second, first.description)]
    changed = [replace(tool, description=description) for tool, description in swapped]
    _expect(_is_as_new(make, text, [*changed, *rest]), "a tool with a new description is ranked by it", text)


def _is_as_new(make: Callable[[], Ranker], text: str, tools: Sequence[ToolDocument]) -> bool:
    """Whether tools have the same hits after others as they have alone."""
    index = ToolIndex(make())
    _search(index.sync(_TOOLS), text)
    return _alike(_search(index.sync(tools), text), _search(_catalog(make(), tools), text))


def _the_async_path_gives_the_same(make: Callable[[], Ranker], text: str) -> None:
    query = Query(((text, 1.0), ("weather", 0.3)))
    with ThreadPoolExecutor(1) as thread:  # an event loop may be running in this one
        awaited = thread.submit(asyncio.run, _catalog(make()).asearch(query)).result()
    _expect(_alike(awaited, _catalog(make()).search(query)), "the async path gives the same hits", text)


def _twins_come_in_the_order_of_registration(make: Callable[[], Ranker]) -> None:
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
        msg = f"the ranker breaks a promise: {promise} (request {text[:60]!r})"
        raise AssertionError(msg) from cause
