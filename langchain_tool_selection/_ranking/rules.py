"""`RuleRanker`: patterns that name tools, for requests whose words say nothing to a search.

"23 * 4" shares no word with a calculator, and "order #445566" none with the tool that looks orders up by
their number. Whoever runs the agent knows such shapes; a rule writes one down.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from langchain_tool_selection._ground.settings import check_function
from langchain_tool_selection._ranking.choice import as_ranker
from langchain_tool_selection._ranking.protocol import Documents, Hit, Query, arank, blocks

Pattern: TypeAlias = str | re.Pattern[str] | Callable[[str], Any]
"""What a rule looks for: a regular expression anywhere in the text, or a predicate on the text."""

# A mapping's keys are invariant to a type checker: with `Pattern` it would refuse a `dict[str, str]`.
Rules: TypeAlias = Mapping[Any, str | Sequence[str]] | Iterable[tuple[Pattern, str | Sequence[str]]]
"""Patterns with the tool, or the tools in their order, that each of them names."""

# People paste real minus and times signs. Possessive quantifiers, so that a pasted table of numbers is not
# read again from each of its blanks.
ARITHMETIC: re.Pattern[str] = re.compile(r"\A(?=\D*+\d)[\d\s.()+\-−–*/×·÷:%^]++[=?\s]*+\Z")  # noqa: RUF001
"""A rule's pattern for sums: digits, operators, brackets and blanks only, at least one digit, and at most
`=` or `?` after them. A date or a telephone number alone has that shape too."""


class RuleRanker:
    r"""Puts the tools that a matching rule names first, before all that another ranker finds.

    Only the newest text of a query is matched: an order number of three turns ago is no reason to look
    it up again. Rules may name tools that do not exist at the moment; those wait for their tool. What a
    predicate raises reaches the caller.

    Args:
        rules: A mapping, or pairs, of a pattern and the names of one or more tools. A pattern is a
            regular expression, searched anywhere in the text and without regard to case if it is
            given as a string, or a function of the text. Where several match, the earlier rule's
            tools come first.
        then: Ranks the rest: whatever `ToolIndex` takes as its ranker, except that `None` means
            nothing beyond the rules.

    Raises:
        ValueError: a pattern is no valid regular expression, or a rule names no tool.
        TypeError: a pattern or a name is of another kind.

    Example:
        >>> from langchain_tool_selection import ToolDocument
        >>> ranker = RuleRanker({ARITHMETIC: "calculator", r"order\s*#\d+": "order_lookup"})
        >>> tools = (ToolDocument("order_lookup"), ToolDocument("calculator"))
        >>> ranker.rank(Query.of("23 * 4"), tools)
        [Hit(name='calculator', score=1.0)]
    """

    def __init__(self, rules: Rules, then: Any = None) -> None:
        pairs = rules.items() if isinstance(rules, Mapping) else rules
        self._rules = [(_predicate(pattern), _names(pattern, names)) for pattern, names in pairs]
        self._then = None if then is None else as_ranker(then)

    @property
    def blocks(self) -> bool:
        """Whether the other ranker does; see `_ranking.blocks`."""
        return self._then is not None and blocks(self._then)

    def rank(self, query: Query, documents: Documents, *, limit: int | None = None) -> list[Hit]:
        """Return the tools of all matching rules, then the other ranker's hits with their own scores."""
        hits = [] if self._then is None else self._then.rank(query, documents, limit=limit)
        return put_first(self._named(query, documents), hits)

    async def arank(self, query: Query, documents: Documents, *, limit: int | None = None) -> list[Hit]:
        """As `rank`, awaiting the other ranker where it can be awaited."""
        hits = [] if self._then is None else await arank(self._then, query, documents, limit=limit)
        return put_first(self._named(query, documents), hits)

    def _named(self, query: Query, documents: Documents) -> list[str]:
        wanted = [name for matches, names in self._rules if matches(query.text) for name in names]
        if not wanted:
            return []
        known = {document.name for document in documents}
        return [name for name in dict.fromkeys(wanted) if name in known]


def put_first(names: Collection[str], hits: Iterable[Hit]) -> list[Hit]:
    """Return hits for `names`, in that order, and `hits` for other tools after them as they are.

    Scores go up by one from the best of `hits`, or from zero, so that the last of `names` is one ahead.
    """
    hits = list(hits)
    best = max((hit.score for hit in hits), default=0.0)
    first = [Hit(name, best + len(names) - place) for place, name in enumerate(names)]
    return first + [hit for hit in hits if hit.name not in names]


def _predicate(pattern: Any) -> Callable[[str], Any]:
    if isinstance(pattern, str):
        try:
            return re.compile(pattern, re.IGNORECASE).search
        except re.error as error:
            raise ValueError(
                f"rule {pattern!r} is no regular expression: {error}; to match it as it is, use re.escape()"
            ) from error
    if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str):
        return pattern.search
    check_function(f"rule {pattern!r}", pattern, "the text of a request, or a regular expression on text")
    return pattern  # type: ignore[no-any-return]  # checked above


def _names(pattern: Any, names: Any) -> tuple[str, ...]:
    found = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, Sequence) else (names,)
    if not found:
        raise ValueError(f"rule {pattern!r} names no tool; give it a name or several")
    for name in found:
        if not isinstance(name, str):
            raise TypeError(
                f"rule {pattern!r} must give names of tools, got {name!r} of type {type(name).__name__}"
            )
    return found
