"""What is measured: rankers of this repository and textbook baselines, behind one small interface."""

# ruff: noqa: PLC0415  (a baseline or encoder is imported only when it is measured)
from __future__ import annotations

import atexit
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

from benchmarks.datasets import Case, Dataset
from benchmarks.metrics import DEPTH, measures, timings
from langchain_tool_selection import (
    EmbeddingRanker,
    HybridRanker,
    LexicalRanker,
    Ranker,
    ToolDocument,
    ToolIndex,
    lexical_score,
)
from langchain_tool_selection._ranking.choice import as_ranker


class Subject(Protocol):
    """Something that ranks the tools of one catalogue."""

    def search(self, case: Case, limit: int) -> Iterable[str]:
        """Return names of tools, best first."""
        ...


@dataclass
class Ours:
    """A ranker of the package, through `CatalogView.search` as the middleware calls it."""

    ranker: Ranker
    documents: tuple[ToolDocument, ...]
    history: bool = False

    def __post_init__(self) -> None:
        self._catalog = ToolIndex(self.ranker).sync(self.documents)

    def search(self, case: Case, limit: int) -> list[str]:
        """Return names, best first."""
        query = case.conversation() if self.history else case.plain()
        return [hit.name for hit in self._catalog.search(query, limit=limit)]


_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def words(text: str) -> list[str]:
    """Return lower-case runs of letters and digits: what a plain BM25 indexes."""
    return _WORD.findall(text.lower())


def plain_texts(tools: Iterable[dict[str, Any]]) -> list[str]:
    """Return name and description of each tool."""
    return [f"{tool['name']} {tool.get('description') or ''}" for tool in tools]


def full_texts(tools: Iterable[dict[str, Any]]) -> list[str]:
    """Return name, description, parameter names and parameter descriptions of each tool."""
    texts = []
    for tool, text in zip(tools, plain_texts(tools), strict=True):
        properties = ((tool.get("parameters") or {}).get("properties") or {}).items()
        spoken = [
            f"{key} {spec.get('description', '') if isinstance(spec, dict) else ''}"
            for key, spec in properties
        ]
        texts.append(" ".join([text, *spoken]))
    return texts


class Bm25s:
    """The package bm25s, k1 1.5, b 0.75: plain words, or with all that is commonly added.

    Args:
        dataset: What to index.
        full: Parameters are indexed too; camelCase is split, English stop words go, words are stemmed.
    """

    def __init__(self, dataset: Dataset, *, full: bool = False) -> None:
        import bm25s

        self._full = full
        if full:
            from Stemmer import Stemmer

            self._stemmer = Stemmer("english")
            self._stop = frozenset(bm25s.stopwords.STOPWORDS_EN)
        texts = (full_texts if full else plain_texts)(dataset.tools)
        self._names = [tool["name"] for tool in dataset.tools]
        self._index = bm25s.BM25(k1=1.5, b=0.75)
        self._index.index([self._words(text) or [""] for text in texts], show_progress=False)

    def _words(self, text: str) -> list[str]:
        if not self._full:
            return words(text)
        split = words(_CAMEL.sub(" ", text))
        return self._stemmer.stemWords([word for word in split if word not in self._stop])

    def search(self, case: Case, limit: int) -> list[str]:
        """Return names, best first."""
        query = self._words(case.query) or [""]
        best = self._index.retrieve(
            [query], k=min(limit, len(self._names)), show_progress=False, return_as="tuple"
        )
        pairs = zip(best.documents[0], best.scores[0], strict=True)
        return [self._names[position] for position, score in pairs if score > 0]


class RankBm25:
    """The package rank_bm25 with plain words, k1 1.5, b 0.75."""

    def __init__(self, dataset: Dataset) -> None:
        from rank_bm25 import BM25Okapi

        self._names = [tool["name"] for tool in dataset.tools]
        self._index = BM25Okapi([words(text) or [""] for text in plain_texts(dataset.tools)], k1=1.5, b=0.75)

    def search(self, case: Case, limit: int) -> list[str]:
        """Return names, best first."""
        scores = self._index.get_scores(words(case.query))
        best = sorted(range(len(scores)), key=lambda position: -scores[position])[:limit]
        return [self._names[position] for position in best if scores[position] > 0]


Factory = Callable[[Dataset], Subject]


def factories(cache: Path | None) -> dict[str, Callable[[], Factory]]:
    """Return what can be measured, by name. Encoders are loaded when their entry is called."""
    return {
        "lexical": lambda: lambda data: Ours(LexicalRanker(), data.documents()),
        "lexical_hist": lambda: lambda data: Ours(LexicalRanker(), data.documents(), history=True),
        "lexical_score": lambda: lambda data: Ours(as_ranker(lexical_score), data.documents()),
        "wordllama_hybrid_hist": lambda: _hybrid(_wordllama()),
        "minilm_hybrid_hist": lambda: _hybrid(_minilm(cache)),
        "wordllama_alone_hist": lambda: _alone(_wordllama()),
        "minilm_alone_hist": lambda: _alone(_minilm(cache)),
        "bm25s": lambda: Bm25s,
        "bm25s_full": lambda: lambda data: Bm25s(data, full=True),
        "rank_bm25": lambda: RankBm25,
    }


def _hybrid(embeddings: Any) -> Factory:
    def make(data: Dataset) -> Subject:
        ranker = HybridRanker(LexicalRanker(), EmbeddingRanker(embeddings, min_cosine=None))
        return Ours(ranker, data.documents(), history=True)

    return make


def _alone(embeddings: Any) -> Factory:
    return lambda data: Ours(EmbeddingRanker(embeddings), data.documents(), history=True)


def _wordllama() -> Any:
    from benchmarks.encoders import WordLlamaEmbeddings

    return WordLlamaEmbeddings()


def _minilm(cache: Path | None) -> Any:
    from benchmarks.encoders import MiniLMEmbeddings

    embeddings = MiniLMEmbeddings(cache)
    atexit.register(embeddings.save)
    return embeddings


def rank_all(make: Factory, dataset: Dataset) -> tuple[list[list[str]], dict[str, float]]:
    """Rank every case; return the rankings, and build time and time per request.

    Build time includes a first request, because indexes here are made when they are first needed.
    """
    started = perf_counter()
    subject = make(dataset)
    list(subject.search(dataset.cases[0], DEPTH))
    built = perf_counter() - started
    rankings, seconds = [], []
    for case in dataset.cases:
        started = perf_counter()
        rankings.append(list(subject.search(case, DEPTH)))
        seconds.append(perf_counter() - started)
    return rankings, {"build_ms": round(1e3 * built, 2), **timings(seconds)}


def measure(make: Factory, dataset: Dataset) -> dict[str, Any]:
    """Return all measures of one ranker over one set."""
    rankings, spent = rank_all(make, dataset)
    return {**measures(dataset.cases, rankings), **spent}


def macro(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the average of measures over sets, each set counting the same."""
    mean = lambda values: round(sum(values) / len(rows), 2)  # noqa: E731
    return {
        kind: {k: mean([row[kind][k] for row in rows]) for k in rows[0][kind]}
        for kind in ("recall", "complete")
    } | {"mrr": round(sum(row["mrr"] for row in rows) / len(rows), 4)}
