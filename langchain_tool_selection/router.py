"""`ToolRouter`: which one tool a request is for, outside any agent.

Three tiers, each asked only if the one before it leaves the question open: rules, which cost nothing and
are never wrong about what they were written for; a ranker, whose short list is often a list of one, or
empty; and a chat model, which tells apart what a ranker cannot.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, TypeAlias

from langchain_core.language_models import BaseChatModel

from langchain_tool_selection._ground.settings import check_count, check_number
from langchain_tool_selection._ranking.index import ToolIndex
from langchain_tool_selection._ranking.llm import ModelChoice
from langchain_tool_selection._ranking.protocol import Hit, Query
from langchain_tool_selection._ranking.rules import RuleRanker, Rules
from langchain_tool_selection._tools.documents import ToolDocument

Tier: TypeAlias = Literal["rule", "shortlist", "model", "none"]

_CONTENDER = 0.25
"""A tool that scores less than this share of the best one is no contender. By words, the tools that share
one common word with a request score about a third of the one that it names: the model should see those."""


@dataclass(frozen=True)
class Route:
    """Where a request goes.

    Attributes:
        tool: The name of the tool; `None` to answer without tools.
        tier: What decided: a `"rule"`; the `"shortlist"`, which had one tool only, or several of which
            the best was taken for want of a model's answer; the `"model"`; or `"none"`, since nothing
            matched.
        shortlist: What it was decided between, best first, in the scores of the tier that made it: the
            tools of the matching rules, or the ranker's contenders.
    """

    tool: str | None
    tier: Tier
    shortlist: tuple[Hit, ...] = ()


class ToolRouter:
    """Routes a request to one tool, or to none.

    It decides and does not run anything, and it looks at one request alone, without the conversation
    before it. What a rule, the ranker or the model raises reaches the caller. Thread-safe if they are.

    Args:
        tools: Whatever `ToolIndex.sync` takes. Read once; other tools need another router.
        rules: As `RuleRanker` takes them. The first tool of the first rule that matches is the answer.
        ranker: As `ToolIndex` takes it.
        model: A chat model, or its name as `init_chat_model` takes it, which decides where several
            tools are left, and may decide for none of them. Without it the best one is the answer.
        threshold: The least score that counts as a match, in the ranker's own units: a cosine for an
            `EmbeddingRanker`; for the default ranker, where one common word is worth about 1 to 2 and a
            tool's whole name 5 and more, something around 2. `None` takes every hit.
        shortlist: How many tools to decide between at most. Tools that score less than a quarter of
            the best one are never among them, so that a tool which is far ahead needs no model.

    Example:
        >>> router = ToolRouter(tools, rules={ARITHMETIC: "calculator"}, threshold=2.0)
        >>> router.route("23 * 4").tool
        'calculator'
        >>> router.route("tell me a joke").tool is None
        True
    """

    def __init__(
        self,
        tools: Iterable[Any],
        *,
        rules: Rules | None = None,
        ranker: Any = None,
        model: str | BaseChatModel | None = None,
        threshold: float | None = None,
        shortlist: int = 5,
    ) -> None:
        check_number("threshold", threshold)
        check_count("shortlist", shortlist, at_least=1)
        self._catalog = ToolIndex(ranker).sync(tools)
        self._ruled = ToolIndex(RuleRanker(rules or {})).sync(self._catalog.documents)
        self._choice = None if model is None else ModelChoice(model)
        self._threshold = -inf if threshold is None else threshold
        self._shortlist = shortlist

    def route(self, query: str) -> Route:
        """Return the tool that serves a request; none for a blank one."""
        request = Query.of(query)
        if route := self._by_rule(request):
            return route
        hits = self._contenders(self._catalog.search(request, limit=self._shortlist))
        picked = self._choice.choose(request, self._documents(hits)) if self._choice else None
        return _chosen(picked, hits)

    async def aroute(self, query: str) -> Route:
        """As `route`, awaiting the ranker and the model."""
        request = Query.of(query)
        if route := self._by_rule(request):
            return route
        hits = self._contenders(await self._catalog.asearch(request, limit=self._shortlist))
        picked = await self._choice.achoose(request, self._documents(hits)) if self._choice else None
        return _chosen(picked, hits)

    def _by_rule(self, request: Query) -> Route | None:
        hits = self._ruled.search(request)
        return Route(hits[0].name, "rule", tuple(hits)) if hits else None

    def _contenders(self, hits: list[Hit]) -> tuple[Hit, ...]:
        if not hits:
            return ()
        # A share of a negative score would lie above it; there the best hit stands alone.
        best = hits[0].score
        least = max(self._threshold, min(best, best * _CONTENDER))
        return tuple(hit for hit in hits if hit.score >= least)

    def _documents(self, hits: Iterable[Hit]) -> list[ToolDocument]:
        return [self._catalog.document(hit.name) for hit in hits]


def _chosen(picked: list[str] | None, hits: tuple[Hit, ...]) -> Route:
    """Return the route to the model's first pick; to the best hit if there was no usable answer."""
    if picked is not None:
        return Route(picked[0] if picked else None, "model", hits)
    return Route(hits[0].name, "shortlist", hits) if hits else Route(None, "none")
