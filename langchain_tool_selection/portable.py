"""The algorithm without a framework: rank tools by a request, keep some, find the rest.

Standard library only, and the same idea that the middleware applies to an agent:
show the `top_k` best tools plus those that must stay, and let a search reach what was cut.

It works on anything that has a name and a description: this module's `Tool`, a LangChain tool,
an MCP tool, or a tool dict as OpenAI or Anthropic take it.

Example:
    >>> tools = [Tool("weather", "Forecast for a city."), Tool("calculator", "Evaluate arithmetic.")]
    >>> select_tools(tools, "forecast for Paris", top_k=1)
    ['weather']
    >>> discover(tools, "evaluate 2 + 2").name
    'calculator'
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Tool:
    """A tool as far as ranking is concerned."""

    name: str
    description: str = ""


Scorer: TypeAlias = Callable[[Tool, Collection[str]], float]
"""Scores one tool against the tokens of a request; higher is better, zero or less is no match."""

_TOKEN = re.compile(r"[a-z0-9]+")


def tokenize(text: str) -> frozenset[str]:
    """Return the distinct lower-case runs of ASCII letters and digits in `text`.

    Raises:
        TypeError: `text` is no string.
    """
    if not isinstance(text, str):
        raise TypeError(f"the query must be a string, got {type(text).__name__}")
    return frozenset(_TOKEN.findall(text.lower()))


def as_tool(tool: Any) -> Tool:
    """Read name and description from any of the shapes that tools come in.

    Args:
        tool: A `Tool`; an object with `name` and `description` (LangChain, MCP); or a mapping with
            those keys, at its top level (Anthropic, MCP) or under `"function"` (OpenAI).

    Raises:
        TypeError: `tool` has no name of its own.
    """
    if isinstance(tool, Tool):
        return tool
    if isinstance(tool, Mapping):
        function = tool.get("function")
        fields = function if isinstance(function, Mapping) else tool
        name, description = fields.get("name"), fields.get("description")
    else:
        name, description = getattr(tool, "name", None), getattr(tool, "description", None)
    if not isinstance(name, str) or not name:
        raise TypeError(
            f"a tool needs a non-empty string as its name, got {name!r} in a {type(tool).__name__}; "
            "pass a Tool(name, description), a LangChain or MCP tool, or an OpenAI or Anthropic tool dict"
        )
    return Tool(name, description if isinstance(description, str) else "")


def lexical_score(tool: Any, query_tokens: Collection[str]) -> float:
    """Return the Jaccard similarity, 0.0 to 1.0, of a tool's words and a request's.

    |A and B| / |A or B|, where A are the distinct `[a-z0-9]+` tokens of name and description and B
    is `query_tokens` (Jaccard, 1912). 0.0 where either side is empty.
    """
    tool = as_tool(tool)
    if isinstance(query_tokens, str):
        query_tokens = tokenize(query_tokens)
    words = tokenize(f"{tool.name} {tool.description}")
    query = frozenset(query_tokens)
    union = words | query
    return len(words & query) / len(union) if union else 0.0


def select_tools(
    tools: Sequence[Any],
    query: str,
    *,
    top_k: int,
    always_include: Collection[str] = frozenset(),
    pinned: Collection[str] = frozenset(),
    scorer: Scorer = lexical_score,
) -> list[str]:
    """Choose which tools to show for a request.

    Args:
        tools: All tools, in registration order. Of two with one name the first counts.
        query: The request, in the user's words.
        top_k: How many tools to show beside the kept ones; 0 shows the kept ones alone.
        always_include: Names that are kept whatever they score. Names of no tool are ignored.
        pinned: Names that were found earlier and stay. Names of no tool are ignored.
        scorer: Scores a tool against the request's tokens; higher is better.

    Returns:
        Names in registration order: the kept tools and the `top_k` best of the others. Ties go to
        the tool registered first, so exactly `top_k` others are shown even where none matches.
        All names when there are no more than `top_k` tools.

    Raises:
        ValueError: `top_k` is negative, or the scorer returned something that is no finite number.
        TypeError: a tool has no name, or `top_k` or a collection of names has the wrong type.
    """
    check_top_k(top_k)
    kept = check_names("always_include", always_include) | check_names("pinned", pinned)
    by_name = _by_name(tools)
    if len(by_name) <= top_k:
        return list(by_name)
    others = [tool for name, tool in by_name.items() if name not in kept]
    scores = _scores(others, query, scorer)
    ranked = sorted(scores, key=lambda name: -scores[name])  # a stable sort: ties keep their order
    shown = kept.union(ranked[:top_k])
    return [name for name in by_name if name in shown]


def discover(tools: Sequence[Any], query: str, *, scorer: Scorer = lexical_score) -> Tool | None:
    """Find the one tool that fits a request best, among all of them.

    Returns:
        The best tool, the first registered among equals, or `None` when nothing scores above zero.

    Raises:
        ValueError: the scorer returned something that is no finite number.
        TypeError: a tool has no name.
    """
    by_name = _by_name(tools)
    scores = _scores(by_name.values(), query, scorer)
    best = max(scores, key=lambda name: scores[name], default=None)
    return by_name[best] if best is not None and scores[best] > 0 else None


def check_top_k(top_k: Any) -> None:
    """Raise a `TypeError` or `ValueError` that says what `top_k` must be, unless it is that."""
    if isinstance(top_k, bool) or not isinstance(top_k, int):
        raise TypeError(f"top_k must be an integer, got {top_k!r} of type {type(top_k).__name__}")
    if top_k < 0:
        raise ValueError(f"top_k must be 0 or more, got {top_k}")


def check_names(setting: str, names: Any, kind: str = "tool") -> frozenset[str]:
    """Return names of one kind as a set, or raise a `TypeError` that names the setting and the culprit."""
    if isinstance(names, str) or not isinstance(names, Collection):
        got = f"the string {names!r}; write [{names!r}]" if isinstance(names, str) else type(names).__name__
        raise TypeError(f"{setting} takes a collection of {kind} names, got {got}")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"{setting} takes {kind} names as strings, got {name!r} of type {type(name).__name__}"
            )
    return frozenset(names)


def finite_score(score: Any, tool: str) -> float:
    """Return `score` as a float, or raise a `ValueError` that names the tool it was made for."""
    try:
        value = float(score)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"the scorer returned {score!r} for tool {tool!r}; it must return a finite number")
    return value


def _by_name(tools: Sequence[Any]) -> dict[str, Tool]:
    by_name: dict[str, Tool] = {}
    for tool in map(as_tool, tools):
        by_name.setdefault(tool.name, tool)
    return by_name


def _scores(tools: Collection[Tool], query: str, scorer: Scorer) -> dict[str, float]:
    tokens = tokenize(query)
    return {tool.name: finite_score(scorer(tool, tokens), tool.name) for tool in tools}
