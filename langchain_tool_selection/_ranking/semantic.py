"""`EmbeddingRanker` over any LangChain `Embeddings`, and `HybridRanker`, which fuses two rankers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from langchain_core.embeddings import Embeddings

from langchain_tool_selection._ranking.protocol import Documents, Hit, Query, Ranker, arank, blocks
from langchain_tool_selection._ranking.vectors import Matrix, ToolVectors, normalized


class EmbeddingRanker:
    """Ranks by the cosine between the embeddings of a request and of each tool.

    A tool is embedded once for each text that it has, in one call for all that are new, however many searches
    ask at once; see `ToolVectors`. Thread-safe. A copy, and one that was pickled, begins without vectors. It
    does not catch what the embeddings raise: the middleware does, and carries on with words alone.

    Args:
        embeddings: Any LangChain `Embeddings`. On the async path its `aembed_*` are awaited.
        min_cosine: Tools below this cosine, -1 to 1, are no hits; `None` makes every tool a hit. What
            counts as close differs from one model to the next; 0.3 fits most sentence encoders.
    """

    def __init__(self, embeddings: Embeddings, *, min_cosine: float | None = 0.3) -> None:
        if not isinstance(embeddings, Embeddings):
            raise TypeError(f"embeddings must be LangChain Embeddings, got {type(embeddings).__name__}")
        self._embeddings = embeddings
        self._min_cosine = float("-inf") if min_cosine is None else min_cosine
        self._tools = ToolVectors(embeddings)

    @property
    def blocks(self) -> bool:
        """Whether the embeddings have no async methods of their own: LangChain's share the loop's threads."""
        return type(self._embeddings).aembed_query is Embeddings.aembed_query

    def rank(self, query: Query, documents: Documents, *, limit: int | None = None) -> list[Hit]:
        """Return documents at or above the cosine threshold.

        Raises:
            ValueError: the embeddings returned the wrong number of vectors, or vectors that are
                empty, of unequal length, or not finite.
        """
        tools = self._tools.matrix(documents)
        vectors = [self._embeddings.embed_query(text) for text, _ in query.parts]
        return self._hits(query, documents, tools, vectors)

    async def arank(self, query: Query, documents: Documents, *, limit: int | None = None) -> list[Hit]:
        """As `rank`, through the embeddings' async methods."""
        tools = await self._tools.amatrix(documents)
        vectors = [await self._embeddings.aembed_query(text) for text, _ in query.parts]
        return self._hits(query, documents, tools, vectors)

    def _hits(
        self, query: Query, documents: Documents, tools: Matrix, vectors: list[list[float]]
    ) -> list[Hit]:
        if not documents:
            return []
        weights = np.array([weight for _, weight in query.parts], np.float32)
        cosines = (weights / weights.sum()) @ (normalized(vectors, len(weights)) @ tools.T)
        pairs = zip(documents, cosines.tolist(), strict=True)
        return [Hit(document.name, cosine) for document, cosine in pairs if cosine >= self._min_cosine]


_WEIGHT = 0.4
"""Share of the second ranker unless the caller gives one. Gains with good and with small encoders alike."""

_FULL_SIZE = 128
"""Tools from which on the second ranker has that share; below, in proportion.

A few dozen tools mostly share their subject, so that cosines lie close together. Standardising blows what is
left up to the spread of the first ranker's scores, and what words tell apart gets lost. Recall@5 gains by the
smaller share, and recall@1 pays a little (`benchmarks/README.md`).
"""

_LEAST_SIZE = 32
"""Tools under which the share falls no further: no catalogue that it was measured on has fewer than 40."""


class HybridRanker:
    """Fuses two rankers by score: `weight` of the second, the rest of the first.

    Scores of different rankers have different scales, so each side is standardised over the whole
    catalogue before it is added (z-scores); fusing ranks instead loses to the better side where one is
    weak. A tool that a side does not find counts there as 0.

    Args:
        first: Usually a `LexicalRanker`.
        second: Usually an `EmbeddingRanker` with `min_cosine=None`: it should score every tool.
        weight: Share of the second ranker, 0 to 1. `None` means 0.4 for 128 tools and more, and in
            proportion less for fewer, down to 0.1 for 32
            (`python -m benchmarks.ranking --rankers minilm_hybrid_hist,wordllama_hybrid_hist`).
        min_second: A tool that the first ranker does not find needs at least this score of the second
            to be a hit; `None` takes all. Keeps a request that means nothing from matching everything.

    Raises:
        ValueError: `weight` is outside 0 to 1.
    """

    def __init__(
        self, first: Ranker, second: Ranker, *, weight: float | None = None, min_second: float | None = 0.2
    ) -> None:
        if weight is not None and not 0 <= weight <= 1:
            raise ValueError(f"weight must be between 0 and 1, got {weight!r}")
        self._first, self._second, self._weight = first, second, weight
        self._min_second = float("-inf") if min_second is None else min_second

    @property
    def blocks(self) -> bool:
        """Whether either ranker does; see `_ranking.blocks`."""
        return blocks(self._first) or blocks(self._second)

    def rank(self, query: Query, documents: Documents, *, limit: int | None = None) -> list[Hit]:
        """Return the hits of either ranker, by their fused score."""
        return self._fuse(documents, self._first.rank(query, documents), self._second.rank(query, documents))

    async def arank(self, query: Query, documents: Documents, *, limit: int | None = None) -> list[Hit]:
        """As `rank`, awaiting rankers that can be awaited."""
        first = await arank(self._first, query, documents)
        return self._fuse(documents, first, await arank(self._second, query, documents))

    def _fuse(self, documents: Documents, first: Iterable[Hit], second: Iterable[Hit]) -> list[Hit]:
        found, similar = dict(first), dict(second)
        names = [document.name for document in documents]
        of_first, of_second = _standardised(names, found), _standardised(names, similar)
        weight = self._weight
        if weight is None:
            weight = _WEIGHT * min(max(len(names), _LEAST_SIZE), _FULL_SIZE) / _FULL_SIZE
        scores = (1 - weight) * of_first + weight * of_second
        return [
            Hit(name, score)
            for name, score in zip(names, scores.tolist(), strict=True)
            if name in found or (name in similar and similar[name] >= self._min_second)
        ]


def _standardised(names: Sequence[str], scores: Mapping[str, float]) -> npt.NDArray[np.float64]:
    values = np.array([scores.get(name, 0.0) for name in names])
    spread = values.std() if len(values) else 0.0
    return (values - values.mean()) / spread if spread > 0 else np.zeros(len(values))
