"""`LexicalRanker`: fielded BM25 over the words of tools. No model, no key, no download.

Why not the textbook formula on the whole text: a tool is named by three words that say what it does
and described by one sentence or three pages that also say what it does not. So every field has its own
weight and its own length, repeated words saturate over all fields together (BM25F: Robertson, Zaragoza
and Taylor, CIKM 2004), and the share of the *name* that a request covers counts extra, because
`create_issue` and `create_issue_comment` share all their words but one.

Who writes a tool decides what it matches, so nothing here pays for saying more: a word has a ceiling however
often a description repeats it, texts of any length count by density, and a server's tools count less and less
beyond the first few. What is left to whoever knows a request is to say each of its words once.

The index is a snapshot: postings of raw counts, never changed once made. A changed catalogue makes a
new snapshot that shares all postings of the unchanged words, so that one changed tool costs that tool,
and threads search whichever snapshot they hold without a lock. Document frequencies and lengths enter
at query time, hence removal leaves no trace.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from langchain_tool_selection._ranking import weighting
from langchain_tool_selection._ranking.knowledge import FAMILIES, FAMILY_WEIGHT
from langchain_tool_selection._ranking.postings import FIELDS, Postings
from langchain_tool_selection._ranking.protocol import Documents, Hit, Query
from langchain_tool_selection._ranking.text import Word, query_words, sentences
from langchain_tool_selection._ranking.weighting import FieldWeights, Floats, WeightedPostings

_NAME_COVERAGE = 0.5
"""A tool whose whole name is in the request gains this share of its score."""

_WHOLE_NAME = 0.99
"""The share from which on a name counts as said in whole, whatever its weights add up to."""

_BEHIND = 0.999
"""How near a tool without a word of the request in its name may come to one whose name is said in whole, by
words that it alone has.

Else a description that says all words of a request, also those that are about no tool, such as names of
people, would come before the tool that the request names. Names of one word are too common for that, and
words that several tools have are what a request is about.
"""

_COVERAGE_DEPTH = 100
"""Coverage re-orders the best candidates only; below them it cannot lift a tool into any top K."""

_SURFACE_WEIGHT = 0.4
"""What a word counts extra in a tool that has it in the same form, and not only its stem."""

_SENTENCE_WEIGHT = 0.3
"""Share of a tool's score for its best sentence, beside 1 for the request as a whole.

A request of several sentences often needs a tool for each, and the wordiest one would fill the list. So
every sentence's best tool gets the same share, however few words the sentence has. 0.2 to 0.5 do alike.
"""

_SENTENCES = 12
"""More sentences than this are something pasted, and not a list of wishes."""

_TYPO_WEIGHT = 0.6
"""A word found through its spelling counts less than the word itself."""

_SNAPSHOTS = 8
"""Catalogues kept ready: as many roles or agents can share one ranker without rebuilding."""


class Match(NamedTuple):
    """What one word of a request brings one tool.

    Attributes:
        word: The word.
        term: The indexed word that it was found as; empty if the tool has none that it may stand for.
        fields: The part of the tool's score that comes from each field, without the bonus for its name.
        idf: The weight of `term`: the fewer tools have it, the higher.
        tools: How many tools have the word, or another that it may stand for.
        weight: That of the text which the word stands in.
    """

    word: Word
    term: str
    fields: Mapping[str, float]
    idf: float
    tools: int
    weight: float


class LexicalRanker:
    """The default ranker: fielded BM25 with stemming, any script, and a second look at typos.

    Thread-safe. A request that shares no word with any tool gets no hits.

    Args:
        weights: How much each field counts.

    Example:
        >>> from langchain_tool_selection import ToolDocument
        >>> ranker = LexicalRanker()
        >>> tools = (ToolDocument("create_issue", "Open an issue."), ToolDocument("get_user"))
        >>> [hit.name for hit in ranker.rank(Query.of("file two issues"), tools)]
        ['create_issue']
    """

    blocks = False  # see `_ranking.blocks`: it waits for nothing

    def __init__(self, *, weights: FieldWeights | None = None) -> None:
        weights = weights or FieldWeights()
        self._weights: Floats = np.array([getattr(weights, field) for field in FIELDS], np.float32)
        self._snapshots: tuple[WeightedPostings, ...] = ()  # the newest first; replaced, never changed
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (), {"_weights": self._weights}  # a copy indexes for itself

    def rank(self, query: Query, documents: Documents, *, limit: int | None = None) -> list[Hit]:
        """Return the documents that share a word with the query, best first."""
        snapshot = self._snapshot(documents)
        total = self._total(snapshot, query)
        best = weighting.best_slots(snapshot.postings, total, limit)
        return [Hit(snapshot.postings.document(slot).name, float(total[slot])) for slot in best[:limit]]

    def explain(
        self, query: Query, documents: Documents, names: Sequence[str]
    ) -> dict[str, tuple[float, list[Match]]]:
        """Return the score of each named tool, as `rank` has it, and what each word of the query brings it.

        The matches add up to the score, but for what the share of its name that the query covers and its
        best sentence bring, and what its server brings or takes.

        Raises:
            KeyError: there is no tool of that name.
        """
        snapshot = self._snapshot(documents)
        slots = snapshot.postings.slots
        total = self._total(snapshot, query)
        weighting.best_slots(snapshot.postings, total, None)
        found: dict[str, tuple[float, list[Match]]] = {
            name: (float(total[slots[name]]), []) for name in names
        }
        for text, weight in query.parts:
            words = query_words(text)
            for name, (_, matches) in found.items():
                matches += [self._match(snapshot, word, slots[name], weight) for word in words]
        return found

    def _total(self, snapshot: WeightedPostings, query: Query) -> Floats:
        total = np.zeros(snapshot.size, np.float32)
        for text, weight in query.parts:
            # Earlier turns complete the newest; their single sentences only distract.
            score = self._score_by_sentence if text == query.text else self._score
            total += np.float32(weight) * score(snapshot, text)
        return weighting.with_neighbours(snapshot.postings, total)

    def _match(self, snapshot: WeightedPostings, word: Word, slot: int, weight: float) -> Match:
        """As `_score` counts one word for one tool: its best reading, and its surface form on top."""
        best, term = np.zeros(len(FIELDS), np.float32), ""
        readings = list(self._readings(snapshot, word))
        for reading, share in readings:
            gains = snapshot.gain_by_field(reading, share, slot)
            if gains.sum() > best.sum():
                best, term = gains, reading
        if snapshot.frequency(word.surface):
            best = best + snapshot.gain_by_field(word.surface, _SURFACE_WEIGHT * word.weight, slot)
        by_field = zip(FIELDS, (weight * best).tolist(), strict=True)
        return Match(
            word=word,
            term=term,
            fields={field: gain for field, gain in by_field if gain},
            idf=snapshot.idf(term) if term else 0.0,
            tools=max((snapshot.frequency(reading) for reading, _ in readings), default=0),
            weight=weight,
        )

    def _score_by_sentence(self, snapshot: WeightedPostings, text: str) -> Floats:
        whole = self._score(snapshot, text)
        parts = sentences(text)
        if not 1 < len(parts) <= _SENTENCES:
            return whole
        by_sentence = [self._score(snapshot, part) for part in parts]
        # Each on the scale of the whole, so that the scores of a search stay comparable.
        scaled = [scores * (whole.max() / scores.max()) for scores in by_sentence if scores.any()]
        best = np.maximum.reduce([np.zeros_like(whole), *scaled])
        return np.asarray((whole + _SENTENCE_WEIGHT * best) / (1 + _SENTENCE_WEIGHT), np.float32)

    def _score(self, snapshot: WeightedPostings, text: str) -> Floats:
        scores = np.zeros(snapshot.size, np.float32)
        alone = np.zeros(snapshot.size, np.float32)  # what comes from words that no other tool has
        found: dict[str, float] = {}  # the weight of each stem that the request hits
        for word in query_words(text):
            readings = list(self._readings(snapshot, word))
            if not readings:  # as for most guesses: two words are seldom one
                continue
            gains = np.zeros(snapshot.size, np.float32)
            for term, share in readings:
                slots, gain = snapshot.gain(term)
                # The best reading counts, not their sum: a tool that both gets and lists is no better.
                gains[slots] = np.maximum(gains[slots], np.float32(share) * gain)
                found[term] = max(found.get(term, 0.0), snapshot.idf(term) * share)
            if snapshot.frequency(word.surface):
                slots, gain = snapshot.gain(word.surface)
                gains[slots] += np.float32(_SURFACE_WEIGHT * word.weight) * gain
            scores += gains
            if sum(snapshot.frequency(term) for term, _ in readings) == 1:
                alone += gains
        _add_name_coverage(snapshot, scores, alone, found)
        return scores

    def _readings(self, snapshot: WeightedPostings, word: Word) -> Iterator[tuple[str, float]]:
        """Yield the indexed words that a word of a request may stand for, each with its weight."""
        if snapshot.frequency(word.term):
            yield word.term, word.weight
        elif not word.guess and (neighbour := snapshot.nearest(word.term)):
            yield neighbour, _TYPO_WEIGHT * word.weight
        for relative in FAMILIES.get(word.term, ()):
            if snapshot.frequency(relative):
                yield relative, FAMILY_WEIGHT * word.weight

    def _snapshot(self, documents: Documents) -> WeightedPostings:
        for snapshot in self._snapshots:
            if snapshot.documents is documents:
                return snapshot
        with self._lock:
            documents = tuple(documents)
            kept = self._snapshots
            known = next((s for s in kept if s.documents == documents), None)
            base = kept[0].postings if kept else None
            snapshot = known or WeightedPostings(Postings.of(documents, base), self._weights)
            self._snapshots = (snapshot, *(s for s in kept if s is not snapshot))[:_SNAPSHOTS]
            return snapshot


def _add_name_coverage(
    snapshot: WeightedPostings, scores: Floats, alone: Floats, hit: dict[str, float]
) -> None:
    found = np.flatnonzero(scores > 0)
    if len(found) > _COVERAGE_DEPTH:
        # All that tie with the last one are in: equal tools must stay equal.
        found = found[scores[found] >= np.partition(scores[found], -_COVERAGE_DEPTH)[-_COVERAGE_DEPTH]]
    names = [snapshot.name(slot) for slot in found.tolist()]
    shares = np.array(
        [sum([hit[term] for term in name if term in hit]) / whole for name, whole in names], np.float32
    )
    scores[found] *= 1 + _NAME_COVERAGE * shares
    is_whole = (shares > _WHOLE_NAME) & np.array([len(name) > 1 for name, _ in names], bool)
    named, unnamed = found[is_whole], found[shares == 0]
    if len(named) and len(unnamed):
        lifted = np.maximum(_BEHIND * scores[named].max(), scores[unnamed] - alone[unnamed])
        scores[unnamed] = np.minimum(scores[unnamed], lifted)
