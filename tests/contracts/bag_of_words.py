"""Embeddings for tests: a bag of words. Equal text gives an equal vector, in every process."""

import hashlib
import re

from langchain_core.embeddings import Embeddings

_DIMENSIONS = 1024


class BagOfWords(Embeddings):
    """Counts words in 1,024 buckets, and remembers which texts it was asked to embed."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.queries: list[str] = []
        self.awaited = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed each text, and note the batch."""
        self.batches.append(texts)
        return [_vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Embed one text, and note it."""
        self.queries.append(text)
        return _vector(text)

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed each text, awaited."""
        self.awaited += 1
        return self.embed_documents(texts)

    async def aembed_query(self, text: str) -> list[float]:
        """Embed one text, awaited."""
        self.awaited += 1
        return self.embed_query(text)


def _vector(text: str) -> list[float]:
    counts = [0.0] * _DIMENSIONS
    for word in re.findall(r"[^\W_]+", text.casefold()):
        bucket = int.from_bytes(
            hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=4).digest(), "big"
        )
        counts[bucket % _DIMENSIONS] += 1.0
    return counts
