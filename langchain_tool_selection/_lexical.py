"""`LexicalRanker`: fielded BM25 over the words of tools. No model, no key, no download.

Why not the textbook formula on the whole text: a tool is named by three words that say what it does
and described by one sentence or three pages that also say what it does not. So every field has its own
weight and its own length, repeated words saturate over all fields together (BM25F: Robertson, Zaragoza
and Taylor, CIKM 2004), and the share of the *name* that a request covers counts extra, because
`create_issue` and `create_issue_comment` share all their words but one.

The index is a snapshot: postings of raw counts, never changed once made. A changed catalogue makes a
new snapshot that shares all postings of the unchanged words, so that one changed tool costs that tool,
and threads search whichever snapshot they hold without a lock. Document frequencies and lengths enter
at query time, hence removal leaves no trace.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import SequenceMatcher
from itertools import count, islice
from math import log
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from langchain_tool_selection._documents import ToolDocument
from langchain_tool_selection._ranking import Hit, Query
from langchain_tool_selection._text import query_terms, terms

_Floats: TypeAlias = npt.NDArray[np.float32]
_Posting: TypeAlias = tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]


@dataclass(frozen=True)
class FieldWeights:
    """How much a word counts by where it stands in the tool, relative to its description.

    The defaults were chosen on labelled requests over real catalogues; `benchmarks/` has the
    ablation that switches each of them off.
    """

    name: float = 3.0
    domain: float = 1.0
    description: float = 1.0
    parameter_names: float = 1.0
    parameter_descriptions: float = 0.5
    examples: float = 1.0
    tags: float = 2.0


_FIELDS = tuple(field.name for field in fields(FieldWeights))
_NAME = _FIELDS.index("name")

_K1 = 1.2
"""Saturation: how soon a repeated word stops counting. The textbook value; tuning it gained nothing."""

_B = np.array([0.0, 0.0, 0.6, 0.6, 0.6, 0.6, 0.0], np.float32)
"""Length normalisation by field. None for name, domain and tags: their length says nothing about fit."""

_NAME_COVERAGE = 0.5
"""A tool whose whole name is in the request gains this share of its score."""

_COVERAGE_DEPTH = 100
"""Coverage re-orders the best candidates only; below them it cannot lift a tool into any top K."""

_TYPO_WEIGHT = 0.6
"""A word found through its spelling counts less than the word itself."""

_TYPO_LENGTH = 4
"""Shorter words have too many neighbours: `list` is one letter from `last`."""

_TYPO_RATIO = 0.8
"""How alike two spellings must be, as the share of matching letters (Ratcliff/Obershelp)."""

_SNAPSHOTS = 8
"""Catalogues kept ready: as many roles or agents can share one ranker without rebuilding."""


class LexicalRanker:
    """The default ranker: fielded BM25 with stemming, any script, and a second look at typos.

    Thread-safe. A request that shares no word with any tool gets no hits.

    Args:
        weights: How much each field counts.

    Example:
        >>> ranker = LexicalRanker()
        >>> tools = (ToolDocument("create_issue", "Open an issue."), ToolDocument("get_user"))
        >>> [hit.name for hit in ranker.rank(Query.of("file two issues"), tools)]
        ['create_issue']
    """

    def __init__(self, *, weights: FieldWeights | None = None) -> None:
        weights = weights or FieldWeights()
        self._weights = np.array([getattr(weights, field) for field in _FIELDS], np.float32)
        self._snapshots: tuple[_Snapshot, ...] = ()  # most recently used first; replaced, never changed
        self._lock = threading.Lock()
        self._spelling = _Spelling()

    def rank(self, query: Query, documents: Sequence[ToolDocument], *, limit: int | None = None) -> list[Hit]:
        """Return the documents that share a word with the query, best first."""
        snapshot = self._snapshot(documents)
        total = np.zeros(snapshot.size, np.float32)
        for text, weight in query.parts:
            total += np.float32(weight) * self._score(snapshot, query_terms(text))
        found = np.flatnonzero(total > 0)
        if limit is not None and limit < len(found):
            # Keep everything that ties with the last one wanted: order among ties is decided below.
            threshold = np.partition(total[found], len(found) - limit)[len(found) - limit]
            found = found[total[found] >= threshold]
        order = np.lexsort((snapshot.position[found], -total[found]))
        return [Hit(snapshot.names[slot], float(total[slot])) for slot in found[order][:limit]]

    def _score(self, snapshot: _Snapshot, words: list[str]) -> _Floats:
        scores = np.zeros(snapshot.size, np.float32)
        idf: dict[str, float] = {}
        for word in words:
            for term, share in self._readings(snapshot, word):
                slots, counts = snapshot.postings[term]
                idf[term] = snapshot.idf(term) * share
                tf = (counts * snapshot.length_factors[slots]) @ self._weights
                scores[slots] += np.float32(idf[term] * (_K1 + 1)) * tf / (tf + np.float32(_K1))
        self._add_name_coverage(snapshot, scores, idf)
        return scores

    def _readings(self, snapshot: _Snapshot, word: str) -> Iterable[tuple[str, float]]:
        if word in snapshot.postings:
            return ((word, 1.0),)
        neighbour = self._spelling.nearest(word, snapshot.postings)
        return ((neighbour, _TYPO_WEIGHT),) if neighbour else ()

    @staticmethod
    def _add_name_coverage(snapshot: _Snapshot, scores: _Floats, idf: dict[str, float]) -> None:
        if len(scores) > _COVERAGE_DEPTH:
            top = np.argpartition(scores, -_COVERAGE_DEPTH)[-_COVERAGE_DEPTH:]
        else:
            top = np.arange(len(scores))
        for slot in top[scores[top] > 0]:
            name = snapshot.name_terms[slot]
            whole = sum(snapshot.idf(term) for term in name)
            covered = sum(idf.get(term, 0.0) for term in name)
            if whole:
                scores[slot] *= 1 + _NAME_COVERAGE * covered / whole

    def _snapshot(self, documents: Sequence[ToolDocument]) -> _Snapshot:
        for snapshot in self._snapshots:
            if snapshot.documents is documents:
                return snapshot
        with self._lock:
            documents = tuple(documents)
            kept = self._snapshots
            snapshot = next((s for s in kept if s.documents == documents), None) or _Snapshot(
                documents, base=kept[0] if kept else None
            )
            self._snapshots = (snapshot, *(s for s in kept if s is not snapshot))[:_SNAPSHOTS]
            return snapshot


class _Snapshot:
    """The postings of one catalogue. Documents stand in slots; the slots of removed ones are reused."""

    def __init__(self, documents: tuple[ToolDocument, ...], base: _Snapshot | None = None) -> None:
        """Index `documents`, starting from what `base` has of them."""
        self.documents = documents
        wanted = {document.fingerprint: document for document in documents}
        self.slots: dict[str, int] = {}  # fingerprint -> slot
        self.postings: dict[str, _Posting] = {}
        self.name_terms: dict[int, frozenset[str]] = {}
        self.lengths = np.zeros((0, len(_FIELDS)), np.int32)
        if base and len(wanted.keys() & base.slots.keys()) > len(base.slots) // 2:
            self._keep(base, wanted)
        self._add([document for key, document in wanted.items() if key not in self.slots])
        self.size = len(self.lengths)
        self.names = {self.slots[document.fingerprint]: document.name for document in documents}
        self.position = np.zeros(self.size, np.int32)
        self.position[list(self.names)] = np.arange(len(documents))
        average = np.maximum(self.lengths.sum(0) / max(1, len(documents)), 1)
        self.length_factors = (1 / (1 - _B + _B * self.lengths / average)).astype(np.float32)

    def idf(self, term: str) -> float:
        """Return the weight of an indexed word: positive, higher the fewer documents have it."""
        frequency = len(self.postings[term][0])
        return log(1 + (len(self.documents) - frequency + 0.5) / (frequency + 0.5))

    def _keep(self, base: _Snapshot, wanted: Mapping[str, ToolDocument]) -> None:
        self.slots = {key: slot for key, slot in base.slots.items() if key in wanted}
        self.postings = dict(base.postings)
        self.name_terms = dict(base.name_terms)
        self.lengths = base.lengths.copy()
        removed = [document for document in base.documents if document.fingerprint not in wanted]
        gone = np.zeros(base.size, bool)
        gone[[base.slots[document.fingerprint] for document in removed]] = True
        self.lengths[gone] = 0
        for term in {term for document in removed for field in _field_terms(document) for term in field}:
            slots, counts = self.postings[term]
            left = ~gone[slots]
            if left.any():
                self.postings[term] = (slots[left], counts[left])
            else:
                del self.postings[term]

    def _add(self, documents: list[ToolDocument]) -> None:
        used = set(self.slots.values())
        free = islice((slot for slot in count() if slot not in used), len(documents))
        lengths: dict[int, list[int]] = {}
        entries: defaultdict[str, list[tuple[int, bytes]]] = defaultdict(list)
        for slot, document in zip(free, documents, strict=False):
            words = _field_terms(document)
            self.slots[document.fingerprint] = slot
            self.name_terms[slot] = frozenset(words[_NAME])
            lengths[slot] = [len(field) for field in words]
            for term, counts in _counts(words).items():
                entries[term].append((slot, bytes(counts)))
        grown = np.zeros((max([*self.slots.values()], default=-1) + 1, len(_FIELDS)), np.int32)
        grown[: len(self.lengths)] = self.lengths[: len(grown)]
        for slot, row in lengths.items():
            grown[slot] = row
        self.lengths = grown
        for term, found in entries.items():
            posting = (
                np.array([slot for slot, _ in found], np.int32),
                np.frombuffer(b"".join(row for _, row in found), np.uint8).reshape(-1, len(_FIELDS)),
            )
            old = self.postings.get(term)
            self.postings[term] = (
                posting
                if old is None
                else (np.concatenate([old[0], posting[0]]), np.concatenate([old[1], posting[1]]))
            )


def _field_terms(document: ToolDocument) -> tuple[list[str], ...]:
    return (
        terms(document.name),
        terms(document.domain),
        terms(document.description),
        terms(" ".join(name for name, _ in document.parameters)),
        terms(" ".join(text for _, text in document.parameters)),
        terms(" ".join(document.examples)),
        terms(" ".join(document.tags)),
    )


def _counts(field_terms: Iterable[list[str]]) -> dict[str, bytearray]:
    counts: dict[str, bytearray] = {}
    for index, words in enumerate(field_terms):
        for word, times in Counter(words).items():
            counts.setdefault(word, bytearray(len(_FIELDS)))[index] = min(times, 255)
    return counts


class _Spelling:
    """Finds the known word that an unknown one was meant to be, by shared letter triples.

    Grows with the words of all catalogues seen; which of them are in use now, the caller says.
    """

    def __init__(self) -> None:
        self._learned: Mapping[str, object] = {}
        self._by_triple: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._lock = threading.Lock()

    def nearest(self, word: str, known: Mapping[str, object]) -> str | None:
        """Return the word of `known` that is spelled most like `word`, or `None` if none is alike."""
        if len(word) < _TYPO_LENGTH or not word.isalpha():
            return None
        self._learn(known)
        shared = Counter(
            other for triple in _triples(word) for other in list(self._by_triple.get(triple, ()))
        )
        candidates = sorted(shared.keys() & known.keys(), key=lambda other: (-shared[other], other))[:20]
        ratios = {other: SequenceMatcher(None, word, other).ratio() for other in candidates}
        best = max(ratios, key=lambda other: ratios[other], default=None)
        return best if best is not None and ratios[best] >= _TYPO_RATIO else None

    def _learn(self, known: Mapping[str, object]) -> None:
        # On first need and not when indexing: most of the time goes into words nobody misspells.
        if self._learned is known:
            return
        with self._lock:
            for word in known.keys() - self._learned.keys():
                if len(word) >= _TYPO_LENGTH - 1:
                    for triple in _triples(word):
                        self._by_triple[triple][word] = None
            self._learned = known


def _triples(word: str) -> set[str]:
    padded = f"^{word}$"
    return {padded[i : i + 3] for i in range(len(padded) - 2)}
