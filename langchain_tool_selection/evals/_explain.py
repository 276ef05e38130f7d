"""Why a tool ranks where it does: the words that matched, where they stand, and what it lacks.

What is explained is ranking by words. Of another ranker the rank and the score are its own, and the words
are what the default ranker would have seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_tool_selection._ranking.index import CatalogView, ToolIndex
from langchain_tool_selection._ranking.knowledge import FAMILIES
from langchain_tool_selection._ranking.lexical import LexicalRanker, Match
from langchain_tool_selection._ranking.protocol import Hit, Query
from langchain_tool_selection._ranking.text import Word, query_words, terms
from langchain_tool_selection._tools.documents import ToolDocument
from langchain_tool_selection.evals._results import json_values, listed
from langchain_tool_selection.evals.catalogs import Tools, read_tools

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_ROUNDING = 1e-4
"""Scores are counted in single precision; less than this share of one is nothing else."""

OTHER = "name, sentences and server"
"""What `Explanation.other` is, for people."""

How = Literal["word", "near-synonym", "spelling"]
"""How a word of a request was found: as itself or its stem, by a relative, or by a similar spelling."""


@dataclass(frozen=True)
class WordShare:
    """What one word of a request brings a tool.

    Attributes:
        word: The word, as it stands in the request.
        found: The indexed stem that it was found as.
        how: In which way.
        score: What it adds to the tool's score.
        fields: The share of `score` that comes from each field of the tool; 1 in all.
        idf: The weight of the stem: `log(1 + (N - n + 0.5) / (n + 0.5))` if n of N tools have it.
        earlier: Whether it stands in an earlier message, and counts less for that.
    """

    word: str
    found: str
    how: How
    score: float
    fields: Mapping[str, float]
    idf: float
    earlier: bool = False


@dataclass(frozen=True)
class Explanation:
    """Why a tool ranks where it does for one request.

    Attributes:
        tool: Its name.
        rank: 1 is the best; `None` if it is no hit.
        score: The ranker's score; 0 if it is no hit.
        words: What matched, what brings the most first.
        other: What the score is above the sum of its words, or below it: the default ranker also counts how
            much of a tool's name the request covers, single sentences, and how well its server does. 0 for
            other rankers, whose scores do not come from words.
        lacking: Words of the newest message that this tool lacks and another tool has.
        unknown: Words of it that no tool has.
    """

    tool: str
    rank: int | None
    score: float
    words: tuple[WordShare, ...]
    other: float
    lacking: tuple[str, ...]
    unknown: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON values, rounded."""
        return {key: json_values(value, digits=3) for key, value in vars(self).items()}

    def __str__(self) -> str:
        """For people: where it ranks, one line for each word, and what it lacks."""
        lines = [f"{self.tool}: {f'rank {self.rank} at {self.score:.2f}' if self.rank else 'no match'}"]
        lines += [f"  {word.score:6.2f}  {described(word)}" for word in self.words]
        if self.other:
            lines.append(f"  {self.other:6.2f}  {OTHER}")
        absent = {"lacks": self.lacking, "in no tool": self.unknown}
        return "\n".join(lines + [f"  {what}: {', '.join(words)}" for what, words in absent.items() if words])


def explain(query: str | Query, tool: str, tools: Tools, *, ranker: Any = None) -> Explanation:
    """Return why a tool ranks where it does.

    Args:
        query: A request, or all that is searched for, as `Case.search_query` has it.
        tool: Its name.
        tools: The catalogue, as `read_tools` takes it.
        ranker: As `ToolIndex` takes it.

    Raises:
        KeyError: there is no such tool.
    """
    catalog = ToolIndex(ranker).sync(read_tools(tools).documents)
    wanted = query if isinstance(query, Query) else Query.of(query)
    return Explainer(catalog)(wanted, [tool])[tool]


class Explainer:
    """Explains many requests over one catalogue.

    Args:
        catalog: The catalogue, with the ranker whose ranks are explained.
    """

    def __init__(self, catalog: CatalogView) -> None:
        self._catalog = catalog
        self._by_words = catalog.ranker if isinstance(catalog.ranker, LexicalRanker) else LexicalRanker()
        self._exact = self._by_words is catalog.ranker

    def __call__(
        self, query: Query, names: Sequence[str], hits: Iterable[Hit] | None = None
    ) -> dict[str, Explanation]:
        """Return the explanation of each named tool.

        Args:
            query: What was searched for.
            names: The tools.
            hits: What a search found, the best first, where that is known already.

        Raises:
            KeyError: there is no such tool.
        """
        ranked = enumerate(self._catalog.search(query) if hits is None else hits, 1)
        ranks = {hit.name: (rank, hit.score) for rank, hit in ranked}
        found = self._by_words.explain(query, self._catalog.documents, names)
        return {name: self._explanation(name, *found[name], ranks.get(name)) for name in names}

    def _explanation(
        self, name: str, by_words: float, matches: Sequence[Match], ranked: tuple[int, float] | None
    ) -> Explanation:
        words = [_share(match) for match in matches if match.fields]
        absent = [m for m in matches if not m.fields and m.weight == 1 and not m.word.guess]
        rank, score = ranked or (None, 0.0)
        other = by_words - sum(word.score for word in words) if self._exact and ranked else 0.0
        return Explanation(
            tool=name,
            rank=rank,
            score=score,
            words=tuple(sorted(words, key=lambda word: -word.score)),
            other=other if abs(other) > _ROUNDING * by_words else 0.0,
            lacking=tuple(_spoken(match.word) for match in absent if match.tools),
            unknown=tuple(_spoken(match.word) for match in absent if not match.tools),
        )


def described(word: WordShare) -> str:
    """Return in words how a word matched: `invoice (name 80%, description 20%)`."""
    found = {"word": "", "near-synonym": f" as {word.found}", "spelling": f" spelled {word.found}"}[word.how]
    fields = sorted(word.fields.items(), key=lambda field: -field[1])
    where = ", ".join(f"{name.replace('_', ' ')} {share:.0%}" for name, share in fields)
    return f"{word.word}{found} ({where}{'; earlier message' if word.earlier else ''})"


def why(wanted: Explanation, rival: Explanation | None = None) -> str:
    """Return in a line what a tool that was missed lacks, and by which words another one is ahead."""
    has = {word.word for word in wanted.words}
    ahead = [word.word for word in rival.words if word.word not in has] if rival else []
    parts = [f"matches {listed(word.word for word in wanted.words)}" if has else "matches no word"]
    if rival and ahead:
        parts.append(f"{rival.tool} has {listed(ahead)}{' too' if has else ''}")
    elif rival and rival.words:
        mine = {word.word: word for word in wanted.words}
        most = max(rival.words, key=lambda word: word.score - mine[word.word].score)
        less = mine[most.word]
        parts.append(
            f"{most.word} counts {most.score:.1f} in {rival.tool} ({_where(most)}) "
            f"and {less.score:.1f} here ({_where(less)})"
        )
    if wanted.unknown:
        parts.append(f"no tool has {listed(wanted.unknown)}")
    return "; ".join(parts)


def _where(word: WordShare) -> str:
    return listed(name.replace("_", " ") for name in sorted(word.fields, key=word.fields.__getitem__)[::-1])


def telling_words(document: ToolDocument, other: ToolDocument) -> list[str]:
    """Return the words of one tool's name and description that another tool does not say, in their order."""
    theirs = set(terms(_said(other)))
    mine = dict.fromkeys(_spoken(word) for word in query_words(_said(document)) if not word.guess)
    return [word for word in mine if not theirs.issuperset(terms(word))]


def _said(document: ToolDocument) -> str:
    # Camel case is taken apart here, because its whole would count as a word of its own.
    return f"{_CAMEL.sub(' ', document.name)} {document.description}"


def _spoken(word: Word) -> str:
    return word.surface.removeprefix("=") or word.term


def _share(match: Match) -> WordShare:
    score = sum(match.fields.values())
    how: How = "word"
    if match.term and match.term != match.word.term:
        how = "near-synonym" if match.term in FAMILIES.get(match.word.term, ()) else "spelling"
    return WordShare(
        word=_spoken(match.word),
        found=match.term or match.word.term,
        how=how,
        score=score,
        fields={field: gain / score for field, gain in match.fields.items()},
        idf=match.idf,
        earlier=match.weight < 1,
    )
