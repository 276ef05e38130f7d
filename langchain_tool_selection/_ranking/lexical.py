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
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import SequenceMatcher
from functools import cached_property
from itertools import chain, compress, count, pairwise
from math import log
from operator import is_not
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from langchain_tool_selection._ranking.knowledge import FAMILIES, FAMILY_WEIGHT
from langchain_tool_selection._ranking.protocol import Hit, Query
from langchain_tool_selection._ranking.text import Word, index_terms, query_words, sentences, split, terms
from langchain_tool_selection._tools.documents import ToolDocument

_Floats: TypeAlias = npt.NDArray[np.float32]
_Slots: TypeAlias = npt.NDArray[np.int32]
_Posting: TypeAlias = tuple[_Slots, npt.NDArray[np.uint8]]  # sorted by slot, a row of counts for each


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
    parameter_descriptions: float = 0.65
    examples: float = 1.0
    tags: float = 2.0


_FIELDS = tuple(field.name for field in fields(FieldWeights))

_K1 = 1.2
"""Saturation: how soon a repeated word stops counting. The textbook value; tuning it gained nothing."""

_B = 0.6
"""Length normalisation: how far a word counts by its share of a field, and not by its being there."""

_LEAST_AVERAGE = np.array([15, 30, 1, 1, 1, 1, 30])
_MOST_AVERAGE = np.array([15, 30, 200, 100, 600, 200, 30])
"""What the average length of a field is taken for at least and at most.

Names, domains and tags are short: up to seven words of a name or fifteen of the others, length says nothing.
The other averages stay below the most in real catalogues. Without it, whoever adds many tools that say all
words of a dictionary makes that the normal length.
"""

_CEILING = np.array([1.0, 1.0, 1.4, 1.4, 1.4, 1.4, 1.0], np.float32)
"""What a word counts at most in a field, however often it is there; 1 is once in a text of average length.

Long descriptions say the words of their subject again and again, which makes up for their length. Beyond
that, repetition brings nothing. 1.3 to 1.5 do alike; 1 costs recall, as does counting each word once.
"""

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

_TYPO_LENGTH = 5
"""Shorter words have too many neighbours: `list` is one letter from `last`, `know` from `now`."""

_TYPOS_KEPT = 10_000
"""Unknown words whose neighbour is remembered: a conversation repeats its own for many turns."""

_TYPO_CANDIDATES = 20
"""So many words with the most letter triples in common are compared letter by letter."""

_TYPO_RATIO = 0.85
"""How alike two spellings must be, as the share of matching letters (Ratcliff/Obershelp)."""

_SERVER_WEIGHT = 0.2
"""Share that a tool gets of the best score on its own server, beside 1 for its own.

The tools of a task tend to stand together: whoever wants slides added needs the presentation created as
well, which no word of the request says. The best tool of each server gains as much as any other, so that the
first place does not change. 0.05 to 0.3 do alike.
"""

_SERVER_TOOLS = 5
"""So many tools of one server count in full."""

_SERVER_LOSS = 0.07
"""Share of its score that the next tool of the server loses; the one behind it loses twice that, and so on.

Else a server of many tools that match everything would fill the list and hide the one that is asked for.
Where no other server matches, or only poorly, the order stays.
"""

_SERVER_LEAST = 0.3
"""What is left of a score at least: from the fifteenth tool of a server on."""

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
        >>> ranker = LexicalRanker()
        >>> tools = (ToolDocument("create_issue", "Open an issue."), ToolDocument("get_user"))
        >>> [hit.name for hit in ranker.rank(Query.of("file two issues"), tools)]
        ['create_issue']
    """

    blocks = False  # see `_ranking.blocks`: it waits for nothing

    def __init__(self, *, weights: FieldWeights | None = None) -> None:
        weights = weights or FieldWeights()
        self._weights: _Floats = np.array([getattr(weights, field) for field in _FIELDS], np.float32)
        self._snapshots: tuple[_Snapshot, ...] = ()  # the newest first; replaced, never changed
        self._lock = threading.Lock()

    def rank(self, query: Query, documents: Sequence[ToolDocument], *, limit: int | None = None) -> list[Hit]:
        """Return the documents that share a word with the query, best first."""
        snapshot = self._snapshot(documents)
        total = self._total(snapshot, query)
        best = _best(snapshot, total, limit)
        return [Hit(snapshot.document(slot).name, float(total[slot])) for slot in best[:limit]]

    def explain(
        self, query: Query, documents: Sequence[ToolDocument], names: Sequence[str]
    ) -> dict[str, tuple[float, list[Match]]]:
        """Return the score of each named tool, as `rank` has it, and what each word of the query brings it.

        The matches add up to the score, but for what the share of its name that the query covers and its
        best sentence bring, and what its server brings or takes.

        Raises:
            KeyError: there is no tool of that name.
        """
        snapshot = self._snapshot(documents)
        slots = snapshot.slots
        total = self._total(snapshot, query)
        _best(snapshot, total, None)
        found: dict[str, tuple[float, list[Match]]] = {
            name: (float(total[slots[name]]), []) for name in names
        }
        for text, weight in query.parts:
            words = query_words(text)
            for name, (_, matches) in found.items():
                matches += [self._match(snapshot, word, slots[name], weight) for word in words]
        return found

    def _total(self, snapshot: _Snapshot, query: Query) -> _Floats:
        total = np.zeros(snapshot.size, np.float32)
        for text, weight in query.parts:
            # Earlier turns complete the newest; their single sentences only distract.
            score = self._score_by_sentence if text == query.text else self._score
            total += np.float32(weight) * score(snapshot, text)
        return self._with_servers(snapshot, total)

    def _match(self, snapshot: _Snapshot, word: Word, slot: int, weight: float) -> Match:
        """As `_score` counts one word for one tool: its best reading, and its surface form on top."""
        best, term = np.zeros(len(_FIELDS), np.float32), ""
        readings = list(self._readings(snapshot, word))
        for reading, share in readings:
            gains = self._gain_by_field(snapshot, reading, share, slot)
            if gains.sum() > best.sum():
                best, term = gains, reading
        if snapshot.frequency(word.surface):
            best = best + self._gain_by_field(snapshot, word.surface, _SURFACE_WEIGHT * word.weight, slot)
        by_field = zip(_FIELDS, (weight * best).tolist(), strict=True)
        return Match(
            word=word,
            term=term,
            fields={field: gain for field, gain in by_field if gain},
            idf=snapshot.idf(term) if term else 0.0,
            tools=max((snapshot.frequency(reading) for reading, _ in readings), default=0),
            weight=weight,
        )

    def _gain_by_field(self, snapshot: _Snapshot, term: str, share: float, slot: int) -> _Floats:
        slots, counts = snapshot.posting(term)
        row = int(np.searchsorted(slots, slot))
        if row == len(slots) or slots[row] != slot:
            return np.zeros(len(_FIELDS), np.float32)
        # The whole saturates, not each field: what it comes to is shared out as it was before.
        tf: _Floats = snapshot.by_length(slots[row], counts[row]) * self._weights
        whole = float(tf.sum())
        gain = share * float(snapshot.gain(term)[1][row]) if whole else 0.0
        return tf * np.float32(gain / (whole or 1.0))

    def _score_by_sentence(self, snapshot: _Snapshot, text: str) -> _Floats:
        whole = self._score(snapshot, text)
        parts = sentences(text)
        if not 1 < len(parts) <= _SENTENCES:
            return whole
        by_sentence = [self._score(snapshot, part) for part in parts]
        # Each on the scale of the whole, so that the scores of a search stay comparable.
        scaled = [scores * (whole.max() / scores.max()) for scores in by_sentence if scores.any()]
        best = np.maximum.reduce([np.zeros_like(whole), *scaled])
        return np.asarray((whole + _SENTENCE_WEIGHT * best) / (1 + _SENTENCE_WEIGHT), np.float32)

    def _score(self, snapshot: _Snapshot, text: str) -> _Floats:
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
        self._add_name_coverage(snapshot, scores, alone, found)
        return scores

    def _readings(self, snapshot: _Snapshot, word: Word) -> Iterator[tuple[str, float]]:
        """Yield the indexed words that a word of a request may stand for, each with its weight."""
        if snapshot.frequency(word.term):
            yield word.term, word.weight
        elif not word.guess and (neighbour := snapshot.nearest(word.term)):
            yield neighbour, _TYPO_WEIGHT * word.weight
        for relative in FAMILIES.get(word.term, ()):
            if snapshot.frequency(relative):
                yield relative, FAMILY_WEIGHT * word.weight

    @staticmethod
    def _with_servers(snapshot: _Snapshot, scores: _Floats) -> _Floats:
        # Where nearly every tool has a server to itself, sharing one is chance. The square, measured.
        weight = np.float32(_SERVER_WEIGHT * snapshot.shared_servers**2)
        if not weight:
            return scores
        best = np.zeros(len(snapshot.server_numbers), np.float32)
        np.maximum.at(best, snapshot.servers, scores)
        # A tool of no known server is a server of its own; a tool without a hit stays without one.
        neighbour = np.where(snapshot.servers > 0, best[snapshot.servers], scores) * (scores > 0)
        # The best score stays what it was: thresholds on scores keep their meaning.
        return np.asarray((scores + weight * neighbour) / (1 + weight), np.float32)

    @staticmethod
    def _add_name_coverage(
        snapshot: _Snapshot, scores: _Floats, alone: _Floats, hit: dict[str, float]
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

    def _snapshot(self, documents: Sequence[ToolDocument]) -> _Snapshot:
        for snapshot in self._snapshots:
            if snapshot.documents is documents:
                return snapshot
        with self._lock:
            documents = tuple(documents)
            kept = self._snapshots
            snapshot = next((s for s in kept if s.documents == documents), None) or _Snapshot(
                documents, self._weights, base=kept[0] if kept else None
            )
            self._snapshots = (snapshot, *(s for s in kept if s is not snapshot))[:_SNAPSHOTS]
            return snapshot


def _best(snapshot: _Snapshot, total: _Floats, limit: int | None) -> npt.NDArray[np.intp]:
    """Return the slots of the best tools in their order, a few more than `limit` where scores are equal.

    Servers that crowd there lose first, in `total`, until none does. What a server has further down can lose
    without a change of the best, so that most requests pay for no server at all.
    """
    found = np.flatnonzero(total > 0)
    thinned = {0}  # tools of no known server are of none
    while True:
        best = found
        if limit is not None and 0 < limit < len(found):
            # Keep everything that ties with the last one wanted: order among ties is decided below.
            threshold = np.partition(total[found], len(found) - limit)[len(found) - limit]
            best = found[total[found] >= threshold]
        crowds = set(_crowds(snapshot, best)) - thinned
        if not crowds:
            return best[_order(snapshot, total, best)]
        for server in crowds:
            members = np.flatnonzero(snapshot.servers == server)
            later = members[_order(snapshot, total, members)][_SERVER_TOOLS:]
            left = 1 - _SERVER_LOSS * np.arange(1, len(later) + 1, dtype=np.float32)
            total[later] *= np.maximum(left, np.float32(_SERVER_LEAST))
        thinned |= crowds


def _crowds(snapshot: _Snapshot, slots: npt.NDArray[np.intp]) -> list[int]:
    """Return the servers of more tools among `slots` than count in full; none if all tools share one."""
    if not snapshot.shared_servers:
        return []
    return np.flatnonzero(np.bincount(snapshot.servers[slots]) > _SERVER_TOOLS).tolist()


def _order(snapshot: _Snapshot, total: _Floats, slots: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    return np.lexsort((snapshot.position[slots], -total[slots]))


class _Snapshot:
    """The postings of one catalogue. Documents stand in slots; the slots of removed ones are reused.

    Most snapshots are an earlier one with a few tools changed. They share its `bulk` and hold only the
    postings that the change touched.
    """

    def __init__(
        self, documents: tuple[ToolDocument, ...], weights: _Floats, base: _Snapshot | None = None
    ) -> None:
        """Index `documents` for fields of these `weights`, starting from what `base` has of them."""
        self.documents = documents
        self._weights = weights
        self.order: _Slots  # those of the documents, in their order
        self.touched: dict[str, _Posting]
        self.changes: int  # documents added or removed since `bulk` was made
        self.servers: npt.NDArray[np.intp]  # the server of each slot as a number, 0 for none
        self.server_numbers: dict[str, int]
        change = _Change.between(base, documents) if base else None
        if base and change and base.changes + change.size <= change.kept // 4:
            self._take_over(base, change)
        else:
            self.bulk, self.lengths = _index(documents)
            self.order = np.arange(len(documents), dtype=np.int32)
            self.touched, self.changes = {}, 0
            self.server_numbers = {"": 0}
            self.servers = self._servers_of(documents)
        self.size = len(self.lengths)
        self.position = np.zeros(self.size, np.int32)
        self.position[self.order] = np.arange(len(documents))
        average = np.clip(self.lengths.sum(0) / max(1, len(documents)), _LEAST_AVERAGE, _MOST_AVERAGE)
        self._length_factors = (1 / (1 - _B + _B * self.lengths / average)).astype(np.float32)
        self._gains: dict[str, tuple[_Slots, _Floats]] = {}
        self._idf: dict[str, float] = {}
        self._names: dict[int, tuple[tuple[str, ...], float]] = {}
        self._nearest: dict[str, str | None] = {}

    def document(self, slot: int) -> ToolDocument:
        """Return the document that stands in a slot."""
        return self.documents[int(self.position[slot])]

    @cached_property
    def slots(self) -> dict[str, int]:
        """The slot of each document by its name; made on first need, because only explanations ask."""
        names = (document.name for document in self.documents)
        return dict(zip(names, self.order.tolist(), strict=True))

    @cached_property
    def shared_servers(self) -> float:
        """The share of tools that join another tool's server; 0 if all of them stand on one."""
        tools = np.bincount(self.servers[self.order], minlength=1)
        alone = int(tools[0]) + np.count_nonzero(tools[1:])
        # One server for all tools tells none from another.
        return 1 - alone / len(self.documents) if alone > 1 else 0.0

    def nearest(self, word: str) -> str | None:
        """Return the indexed word that is spelled most like one that is not indexed, if any is alike."""
        if word not in self._nearest:
            if len(self._nearest) >= _TYPOS_KEPT:
                self._nearest = {}
            self._nearest[word] = _nearest(word, self)
        return self._nearest.get(word)

    def posting(self, term: str) -> _Posting:
        """Return the slots of the documents that have a word, and its counts."""
        return self.touched.get(term) or self.bulk.posting(term)

    def frequency(self, term: str) -> int:
        """Return how many documents have a word."""
        touched = self.touched.get(term)
        return self.bulk.frequency(term) if touched is None else len(touched[0])

    def by_length(self, slots: _Slots | np.int32, counts: npt.NDArray[np.uint8]) -> _Floats:
        """Return what counts of words in documents come to for the lengths of their fields."""
        tf: _Floats = counts * self._length_factors.take(slots, 0)
        return np.minimum(tf, _CEILING, out=tf)

    def gain(self, term: str) -> tuple[_Slots, _Floats]:
        """Return the slots of the documents that have a word, and what each gains if a request says it."""
        if (known := self._gains.get(term)) is None:
            slots, counts = self.posting(term)
            tf = self.by_length(slots, counts).dot(self._weights)
            tf *= np.float32(self.idf(term) * (_K1 + 1)) / (tf + np.float32(_K1))
            known = self._gains[term] = slots, tf
        return known

    def idf(self, term: str) -> float:
        """Return the weight of an indexed word: positive, higher the fewer documents have it."""
        if (known := self._idf.get(term)) is None:
            frequency = self.frequency(term)
            known = log(1 + (len(self.documents) - frequency + 0.5) / (frequency + 0.5))
            self._idf[term] = known
        return known

    def name(self, slot: int) -> tuple[tuple[str, ...], float]:
        """Return the words of a document's name, each once, and the sum of their weights.

        The sum of no words, as of the name `_`, is 1, so that it can be divided by.
        """
        if (known := self._names.get(slot)) is None:
            words = tuple(dict.fromkeys(terms(self.document(slot).name)))
            known = self._names[slot] = words, sum(map(self.idf, words)) or 1.0
        return known

    def _servers_of(self, documents: Sequence[ToolDocument]) -> npt.NDArray[np.intp]:
        numbers = self.server_numbers
        return np.array([numbers.setdefault(d.domain, len(numbers)) for d in documents], np.intp)

    def _take_over(self, base: _Snapshot, change: _Change) -> None:
        self.bulk, self.touched = base.bulk, dict(base.touched)
        self.changes = base.changes + change.size
        self.order = change.order
        grown = max(0, len(change.taken) - len(change.freed))
        self.lengths = np.concatenate([base.lengths, np.zeros((grown, len(_FIELDS)), np.int32)])
        before, _ = _index(change.removed)
        after, lengths = _index(change.added)
        self.lengths[change.freed] = 0
        self.lengths[change.taken] = lengths
        self.server_numbers = dict(base.server_numbers)
        self.servers = np.concatenate([base.servers, np.zeros(grown, np.intp)])
        self.servers[change.freed] = 0
        self.servers[change.taken] = self._servers_of(change.added)
        for term in before.offsets.keys() | after.offsets.keys():
            old, new = before.posting(term), after.posting(term)
            # A changed tool takes the slot of what it was: the words it still has need no change.
            if not _same(old, new):
                gone, come = change.freed[old[0]], change.taken[new[0]]
                self.touched[term] = _spliced(base.posting(term), gone, (come, new[1]))


@dataclass(frozen=True, eq=False)
class _Change:
    """What makes one catalogue of another, with slots for what is new.

    Attributes:
        removed: The documents that go. One that changed goes, and comes as what it is now.
        added: The documents that come.
        freed: The slots of `removed`.
        taken: The slots of `added`: the freed ones in their order, then others behind the last one.
        order: The slots of all documents, once changed.
    """

    removed: Sequence[ToolDocument]
    added: Sequence[ToolDocument]
    freed: _Slots
    taken: _Slots
    order: _Slots

    @property
    def size(self) -> int:
        return len(self.removed) + len(self.added)

    @property
    def kept(self) -> int:
        return len(self.order) - len(self.added)

    @classmethod
    def between(cls, base: _Snapshot, documents: tuple[ToolDocument, ...]) -> _Change:
        """Return what makes the catalogue of `documents` of that of `base`."""
        head, tail = _common_ends(base.documents, documents)
        old_end, new_end = len(base.documents) - tail, len(documents) - tail
        old = {document.fingerprint: document for document in base.documents[head:old_end]}
        new = {document.fingerprint: document for document in documents[head:new_end]}
        slots = dict(zip(old, base.order[head:old_end].tolist(), strict=True))
        freed = [slots[key] for key in old if key not in new]
        come = [key for key in new if key not in old]
        # Slots that a smaller catalogue freed for good stay empty until the next full indexing.
        taken = [*freed, *range(base.size, base.size + len(come))][: len(come)]
        slots |= zip(come, taken, strict=True)
        middle = np.array([slots[key] for key in new], np.int32)
        return cls(
            removed=[document for key, document in old.items() if key not in new],
            added=[new[key] for key in come],
            freed=np.array(freed, np.int32),
            taken=np.array(taken, np.int32),
            order=np.concatenate([base.order[:head], middle, base.order[old_end:]]),
        )


def _common_ends(old: Sequence[ToolDocument], new: Sequence[ToolDocument]) -> tuple[int, int]:
    """Return how many documents two catalogues share at the beginning, and how many more at the end.

    In C, because it looks at every tool where nothing else does when one of thousands changes.
    """
    shortest = min(len(old), len(new))
    head = next(compress(count(), map(is_not, old, new)), shortest)
    tail = next(compress(count(), map(is_not, reversed(old), reversed(new))), shortest)
    return head, min(tail, shortest - head)


def _same(one: _Posting, other: _Posting) -> bool:
    return one[0].tobytes() == other[0].tobytes() and one[1].tobytes() == other[1].tobytes()


def _spliced(old: _Posting, gone: _Slots, new: _Posting) -> _Posting:
    """Return a posting without the slots that are `gone`, all of which it has, and with those of `new`.

    Postings are sorted by slot, so that the few rows that change are found without a look at the others.
    """
    slots, counts = old
    if len(gone):
        rows = np.searchsorted(slots, gone)
        slots, counts = np.delete(slots, rows), np.delete(counts, rows, 0)
    if len(new[0]):
        order = np.argsort(new[0])
        rows = np.searchsorted(slots, new[0][order])
        slots, counts = np.insert(slots, rows, new[0][order]), np.insert(counts, rows, new[1][order], 0)
    return slots, counts


@dataclass(frozen=True, eq=False)
class _Bulk:
    """Postings of many documents in three arrays, one word's after the other's."""

    offsets: Mapping[str, tuple[int, int]]
    slots: _Slots
    counts: npt.NDArray[np.uint8]

    @cached_property
    def by_triple(self) -> dict[str, list[str]]:
        """Words by the letter triples in them; made on first need, because few requests are misspelled."""
        by_triple: defaultdict[str, list[str]] = defaultdict(list)
        for word in self.offsets:
            if word[0] != "=" and len(word) >= _TYPO_LENGTH - 1:
                for triple in _triples(word):
                    by_triple[triple].append(word)
        return dict(by_triple)

    def posting(self, term: str) -> _Posting:
        start, end = self.offsets.get(term, (0, 0))
        return self.slots[start:end], self.counts[start:end]

    def frequency(self, term: str) -> int:
        start, end = self.offsets.get(term, (0, 0))
        return end - start


class _Vocabulary(dict[str, tuple[int, ...]]):
    """Numbers the terms of runs of text. Catalogues repeat few runs often, and each is looked at once."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: dict[str, int] = {}

    def __missing__(self, run: str) -> tuple[int, ...]:
        numbers = self.numbers
        self[run] = found = tuple(numbers.setdefault(term, len(numbers)) for term in index_terms(run))
        return found


def _index(documents: Sequence[ToolDocument]) -> tuple[_Bulk, npt.NDArray[np.int32]]:
    """Count the words of documents, which stand in slots 0, 1, 2, ...; also return field lengths."""
    vocabulary = _Vocabulary()
    fields = [
        [number for run in split(text) for number in vocabulary[run]]
        for document in documents
        for text in _field_texts(document)
    ]
    lengths = np.array([len(field) for field in fields], np.int32)
    # One number for each occurrence, which sorts by term, then slot, then field. Equal ones are counted.
    width, cells = len(_FIELDS), max(1, len(fields))
    occurrences = np.fromiter(chain.from_iterable(fields), np.int64) * cells
    keys, times = np.unique(occurrences + np.repeat(np.arange(len(fields)), lengths), return_counts=True)
    rows = keys // width
    first = np.flatnonzero(np.diff(rows, prepend=-1))
    counts = np.zeros((len(first), width), np.uint8)
    counts[np.cumsum(np.diff(rows, prepend=-1) > 0) - 1, keys % width] = np.minimum(times, 255)
    terms_and_slots = rows[first]
    slots_of_term = cells // width or 1
    starts = np.searchsorted(terms_and_slots, np.arange(len(vocabulary.numbers) + 1) * slots_of_term).tolist()
    bulk = _Bulk(
        dict(zip(vocabulary.numbers, pairwise(starts), strict=True)),
        (terms_and_slots % slots_of_term).astype(np.int32),
        counts,
    )
    return bulk, lengths.reshape(-1, width)


def _field_texts(document: ToolDocument) -> tuple[str, ...]:
    names, descriptions = zip(*document.parameters, strict=True) if document.parameters else ((), ())
    return (
        document.name,
        document.domain,
        document.description,
        " ".join(names),
        " ".join(descriptions),
        " ".join(document.examples),
        " ".join(document.tags),
    )


def _nearest(word: str, snapshot: _Snapshot) -> str | None:
    """Return the indexed word that is spelled most like `word`, or `None` if none is alike."""
    if len(word) < _TYPO_LENGTH or not word.isalpha():
        return None
    triples = _triples(word)
    shared = Counter(other for triple in triples for other in snapshot.bulk.by_triple.get(triple, ()))
    for other in snapshot.touched.keys() - shared.keys():
        shared[other] = len(triples & _triples(other))
    # Too few common triples cannot make a close enough spelling; most candidates end here.
    candidates = [
        other
        for other, common in shared.items()
        if common * 3 >= len(word) and other[0] != "=" and snapshot.frequency(other)
    ]
    candidates.sort(key=lambda other: (-shared[other], other))
    best, best_ratio = None, _TYPO_RATIO
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(word)
    for other in candidates[:_TYPO_CANDIDATES]:
        matcher.set_seq1(other)
        ratio = matcher.ratio() if matcher.real_quick_ratio() >= best_ratio else 0.0
        if ratio > best_ratio or (ratio == best_ratio and best is None):
            best, best_ratio = other, ratio
    return best


def _triples(word: str) -> set[str]:
    padded = f"^{word}$"
    return {padded[i : i + 3] for i in range(len(padded) - 2)}
