"""What `ranker=` takes, turned into a ranker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.embeddings import Embeddings

from langchain_tool_selection._ranking.lexical import LexicalRanker
from langchain_tool_selection._ranking.protocol import Documents, Hit, Query, Ranker
from langchain_tool_selection._ranking.semantic import EmbeddingRanker, HybridRanker
from langchain_tool_selection.portable import Scorer, Tool, finite_score, tokenize


def as_ranker(ranker: Any) -> Ranker:
    """Turn whatever `ranker=` takes into a ranker.

    Args:
        ranker: `None` for the default `LexicalRanker`; a `Ranker`; LangChain `Embeddings`, fused with
            the default ranker; or a scorer `(tool, query_tokens) -> float` as `portable` takes it.

    Raises:
        TypeError: it is none of these.
    """
    if ranker is None:
        return LexicalRanker()
    if isinstance(ranker, type):
        raise TypeError(
            f"ranker takes an instance, got the class {ranker.__name__}; write {ranker.__name__}()"
        )
    if isinstance(ranker, Ranker):
        return ranker
    if isinstance(ranker, Embeddings):
        return HybridRanker(LexicalRanker(), EmbeddingRanker(ranker, min_cosine=None))
    if callable(ranker):
        return ScorerRanker(ranker)
    raise TypeError(
        f"ranker takes a Ranker, LangChain Embeddings or a scorer (tool, query_tokens) -> float, "
        f"got {type(ranker).__name__}"
    )


class ScorerRanker:
    """A ranker over any scorer of `portable`: one call for each tool and part of the query."""

    def __init__(self, scorer: Scorer | Callable[..., float]) -> None:
        self._scorer = scorer

    def rank(self, query: Query, documents: Documents, *, limit: int | None = None) -> list[Hit]:
        """Return the tools that score above zero, by the weighted sum over the query's parts.

        Raises:
            ValueError: the scorer returned something that is no finite number.
        """
        parts = [(tokenize(text), weight) for text, weight in query.parts]
        hits = []
        for document in documents:
            tool = Tool(document.name, document.description)
            score = sum(w * finite_score(self._scorer(tool, tokens), tool.name) for tokens, w in parts)
            if score > 0:
                hits.append(Hit(tool.name, score))
        return hits
