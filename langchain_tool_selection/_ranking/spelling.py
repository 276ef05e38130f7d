"""`Spellings`: the indexed word that a misspelled one stands for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Set
from difflib import SequenceMatcher

_SHORTEST = 5
"""Shorter words have too many neighbours: `list` is one letter from `last`, `know` from `now`."""

_CANDIDATES = 20
"""So many words with the most letter triples in common are compared letter by letter."""

_RATIO = 0.85
"""How alike two spellings must be, as the share of matching letters (Ratcliff/Obershelp)."""


class Spellings:
    """Index terms by the letter triples in them.

    Args:
        words: Index terms. Those that begin with "=" are the same words as they stand, and are left out.
    """

    def __init__(self, words: Iterable[str]) -> None:
        by_triple: defaultdict[str, list[str]] = defaultdict(list)
        for word in words:
            if word[0] != "=" and len(word) >= _SHORTEST - 1:
                for triple in _triples(word):
                    by_triple[triple].append(word)
        self._by_triple = dict(by_triple)

    def nearest(self, word: str, others: Set[str], frequency: Callable[[str], int]) -> str | None:
        """Return the word that is spelled most like `word`, or `None` if none is alike.

        Args:
            word: The word to look for.
            others: Words to compare beside those that are indexed here.
            frequency: How many documents have a word; one that none has is not returned.
        """
        if len(word) < _SHORTEST or not word.isalpha():
            return None
        triples = _triples(word)
        shared = Counter(other for triple in triples for other in self._by_triple.get(triple, ()))
        for other in others - shared.keys():
            shared[other] = len(triples & _triples(other))
        # Too few common triples cannot make a close enough spelling; most candidates end here.
        candidates = [
            other
            for other, common in shared.items()
            if common * 3 >= len(word) and other[0] != "=" and frequency(other)
        ]
        candidates.sort(key=lambda other: (-shared[other], other))
        return _most_alike(word, candidates[:_CANDIDATES])


def _most_alike(word: str, candidates: Iterable[str]) -> str | None:
    """Return the first of the candidates whose letters match best, if they match well enough."""
    matcher = SequenceMatcher(None, "", word, autojunk=False)
    ratios = {}
    for other in candidates:
        matcher.set_seq1(other)
        ratios[other] = matcher.ratio() if matcher.real_quick_ratio() >= _RATIO else 0.0
    best = max(ratios, key=ratios.__getitem__, default="")
    return best if ratios.get(best, 0.0) >= _RATIO else None


def _triples(word: str) -> set[str]:
    padded = f"^{word}$"
    return {padded[i : i + 3] for i in range(len(padded) - 2)}
