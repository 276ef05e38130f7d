"""`WeightedPostings`: what a word of a request brings each tool that has it, by BM25F.

And what the tools of one server bring each other, and how many of them may stand together at the top.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from math import log
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from langchain_tool_selection._ranking.postings import Counts, Postings, Slots
from langchain_tool_selection._ranking.text import terms

Floats: TypeAlias = npt.NDArray[np.float32]


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

_WORDS_KEPT = 10_000
"""Words of requests that are looked up once: a conversation repeats its own for many turns."""


class WeightedPostings:
    """The postings of one catalogue with what they come to, each computed when a request first asks.

    Attributes:
        postings: The counts.
        documents: In registration order.
        frequency: Returns how many documents have a word.
        nearest: Returns the indexed word that is spelled most like one that is not indexed, if any is alike.
        gain: Returns the slots of the documents that have a word, and what each gains if a request says it.
        idf: Returns the weight of an indexed word: positive, higher the fewer documents have it.
        name: Returns the words of the name in a slot, each once, and the sum of their weights. The sum of no
            words, as of the name `_`, is 1, so that it can be divided by.
        size: The number of slots.
    """

    def __init__(self, postings: Postings, weights: Floats) -> None:
        """Weigh `postings` with one weight for each field."""
        self.postings = postings
        self.documents = postings.documents
        self.frequency = lru_cache(_WORDS_KEPT)(postings.frequency)
        self.nearest = lru_cache(_WORDS_KEPT)(postings.nearest)
        # Over functions and not over methods: no circle of references keeps an old catalogue alive.
        self.idf = cache(partial(_idf, self.frequency, len(self.documents)))
        self.name = cache(partial(_name, postings, self.idf))
        self.size = len(postings.lengths)
        self._weights = weights
        average = np.clip(
            postings.lengths.sum(0) / max(1, len(self.documents)), _LEAST_AVERAGE, _MOST_AVERAGE
        )
        self._length_factors = (1 / (1 - _B + _B * postings.lengths / average)).astype(np.float32)
        self.gain = cache(partial(_gain, postings, self.idf, self._length_factors, weights))

    def gain_by_field(self, term: str, share: float, slot: int) -> Floats:
        """Return which field brings how much of `share` of a word's gain to the document in a slot."""
        slots, counts = self.postings.posting(term)
        row = int(np.searchsorted(slots, slot))
        if row == len(slots) or slots[row] != slot:
            return np.zeros(len(self._weights), np.float32)
        # The whole saturates, not each field: what it comes to is shared out as it was before.
        tf: Floats = _by_length(self._length_factors, slots[row], counts[row]) * self._weights
        whole = float(tf.sum())
        gain = share * float(self.gain(term)[1][row]) if whole else 0.0
        return tf * np.float32(gain / (whole or 1.0))


def _by_length(factors: Floats, slots: Slots | np.int32, counts: Counts) -> Floats:
    """Return what counts of words in documents come to for the lengths of their fields."""
    tf: Floats = counts * factors.take(slots, 0)
    return np.minimum(tf, _CEILING, out=tf)


def _gain(
    postings: Postings, idf: Callable[[str], float], factors: Floats, weights: Floats, term: str
) -> tuple[Slots, Floats]:
    slots, counts = postings.posting(term)
    tf: Floats = _by_length(factors, slots, counts).dot(weights)
    tf *= np.float32(idf(term) * (_K1 + 1)) / (tf + np.float32(_K1))
    return slots, tf


def _idf(frequency: Callable[[str], int], documents: int, term: str) -> float:
    count = frequency(term)
    return log(1 + (documents - count + 0.5) / (count + 0.5))


def _name(postings: Postings, idf: Callable[[str], float], slot: int) -> tuple[tuple[str, ...], float]:
    words = _words_of(postings.document(slot).name)
    return words, sum(map(idf, words)) or 1.0


@lru_cache(_WORDS_KEPT)
def _words_of(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(terms(name)))


# -- servers

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


def with_neighbours(postings: Postings, scores: Floats) -> Floats:
    """Return the scores by slot, each with its share of the best score on the tool's own server."""
    # Where nearly every tool has a server to itself, sharing one is chance. The square, measured.
    weight = np.float32(_SERVER_WEIGHT * postings.shared_servers**2)
    if not weight:
        return scores
    best = np.zeros(len(postings.server_numbers), np.float32)
    np.maximum.at(best, postings.servers, scores)
    # A tool of no known server is a server of its own; a tool without a hit stays without one.
    neighbour = np.where(postings.servers > 0, best[postings.servers], scores) * (scores > 0)
    # The best score stays what it was: thresholds on scores keep their meaning.
    return np.asarray((scores + weight * neighbour) / (1 + weight), np.float32)


def best_slots(postings: Postings, total: Floats, limit: int | None) -> npt.NDArray[np.intp]:
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
        crowds = set(_crowds(postings, best)) - thinned
        if not crowds:
            return best[_order(postings, total, best)]
        for server in crowds:
            members = np.flatnonzero(postings.servers == server)
            later = members[_order(postings, total, members)][_SERVER_TOOLS:]
            left = 1 - _SERVER_LOSS * np.arange(1, len(later) + 1, dtype=np.float32)
            total[later] *= np.maximum(left, np.float32(_SERVER_LEAST))
        thinned |= crowds


def _crowds(postings: Postings, slots: npt.NDArray[np.intp]) -> list[int]:
    """Return the servers of more tools among `slots` than count in full; none if all tools share one."""
    if not postings.shared_servers:
        return []
    return np.flatnonzero(np.bincount(postings.servers[slots]) > _SERVER_TOOLS).tolist()


def _order(postings: Postings, total: Floats, slots: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    return np.lexsort((postings.position[slots], -total[slots]))
