"""`Postings`: which tools have which words, as arrays that are never changed once made.

Documents stand in *slots*, numbered from 0. A word's *posting* is two arrays of equal length: the slots of
the documents that have the word, ascending, and for each of them how often the word stands in each field.

    slots    int32, (n,)        n documents have the word
    counts   uint8, (n, 7)      one column for each of `FIELDS`; 255 stands for 255 and more

`bulk` keeps the postings of all words in one such pair, one word's rows after the other's, and tells by word
where its rows begin and end. `lengths` has the number of words in each field of the document in each slot:

    lengths  int32, (slots, 7)
    order    int32, (documents,)    the slot of each document, in registration order
    position int32, (slots,)        the place in registration order of the document in each slot

A catalogue that differs little from the one before shares its `bulk` and holds only the postings of the words
that the change touched, so that one changed tool costs that tool. A removed document frees its slot; a new
one takes a free slot, or one behind the last.

Example:
    Three tools make three slots. Two of them say "issue", so its posting has two rows.

    >>> one = ToolDocument("create_issue", "Open an issue.")
    >>> two = ToolDocument("close_issue")
    >>> three = ToolDocument("send_mail", "Send a mail.", (("to", "Who gets it."),), domain="mail")
    >>> first = Postings((one, two, three))
    >>> slots, counts = first.posting("issu")
    >>> slots.tolist()
    [0, 1]
    >>> [dict(zip(FIELDS, row)) for row in counts[:, :3].tolist()]
    [{'name': 1, 'domain': 0, 'description': 1}, {'name': 1, 'domain': 0, 'description': 0}]
    >>> first.posting("mail")[0].tolist(), first.posting("mail")[1].tolist()
    ([2], [[1, 1, 1, 0, 0, 0, 0]])
    >>> first.frequency("issu"), first.frequency("gone")
    (2, 0)

    A name is counted by its parts, as stems and, with "=" before them, as they stand.

    >>> first.lengths[:, 0].tolist(), sorted(first.bulk.offsets)[:4]
    ([4, 4, 4], ['=a', '=an', '=close', '=create'])

    The second tool goes and another takes its slot. Only the postings of their words are new.

    >>> another = ToolDocument("close_door")
    >>> rest = tuple(ToolDocument(f"tool_{number}") for number in range(8))
    >>> before = Postings((one, two, three, *rest))
    >>> after = Postings((one, another, three, *rest), before)
    >>> after.bulk is before.bulk, sorted(after.touched)
    (True, ['=door', '=issue', 'door', 'issu'])
    >>> after.order[:3].tolist(), after.posting("door")[0].tolist(), after.posting("issu")[0].tolist()
    ([0, 1, 2], [1], [0])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, compress, count, pairwise
from operator import is_not
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from langchain_tool_selection._ranking.spelling import Spellings
from langchain_tool_selection._ranking.text import index_terms, split
from langchain_tool_selection._tools.documents import ToolDocument

Slots: TypeAlias = npt.NDArray[np.int32]
Counts: TypeAlias = npt.NDArray[np.uint8]
Posting: TypeAlias = tuple[Slots, Counts]

FIELDS = ("name", "domain", "description", "parameter_names", "parameter_descriptions", "examples", "tags")
"""The fields of a document that are indexed, in the order of the columns."""


class Postings:
    """The postings of one catalogue. Most are an earlier one with a few tools changed.

    Attributes:
        documents: In registration order.
        order: The slot of each document.
        position: The place in registration order of the document in each slot.
        lengths: The number of words in each field of each slot.
        bulk: The postings of all words of an earlier catalogue, or of this one.
        touched: Those that are other than in `bulk`.
        changes: How many documents were added or removed since `bulk` was made.
        servers: The server of each slot as a number, 0 for none.
        server_numbers: Those numbers by the server's name.
    """

    def __init__(self, documents: tuple[ToolDocument, ...], base: Postings | None = None) -> None:
        """Index `documents`, from the start or from what `base` has of them."""
        self.documents = documents
        self.order: Slots
        self.touched: dict[str, Posting]
        self.changes: int
        self.servers: npt.NDArray[np.intp]
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
        self.position = np.zeros(len(self.lengths), np.int32)
        self.position[self.order] = np.arange(len(documents))

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

    def posting(self, term: str) -> Posting:
        """Return the slots of the documents that have a word, and its counts."""
        return self.touched.get(term) or self.bulk.posting(term)

    def frequency(self, term: str) -> int:
        """Return how many documents have a word."""
        touched = self.touched.get(term)
        return self.bulk.frequency(term) if touched is None else len(touched[0])

    def nearest(self, word: str) -> str | None:
        """Return the indexed word that is spelled most like one that is not indexed, if any is alike."""
        return self.bulk.spellings.nearest(word, self.touched.keys(), self.frequency)

    def _servers_of(self, documents: Sequence[ToolDocument]) -> npt.NDArray[np.intp]:
        numbers = self.server_numbers
        return np.array([numbers.setdefault(d.domain, len(numbers)) for d in documents], np.intp)

    def _take_over(self, base: Postings, change: _Change) -> None:
        self.bulk, self.touched = base.bulk, dict(base.touched)
        self.changes = base.changes + change.size
        self.order = change.order
        grown = max(0, len(change.taken) - len(change.freed))
        self.lengths = np.concatenate([base.lengths, np.zeros((grown, len(FIELDS)), np.int32)])
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
    freed: Slots
    taken: Slots
    order: Slots

    @property
    def size(self) -> int:
        return len(self.removed) + len(self.added)

    @property
    def kept(self) -> int:
        return len(self.order) - len(self.added)

    @classmethod
    def between(cls, base: Postings, documents: tuple[ToolDocument, ...]) -> _Change:
        """Return what makes the catalogue of `documents` of that of `base`."""
        head, tail = _common_ends(base.documents, documents)
        old_end, new_end = len(base.documents) - tail, len(documents) - tail
        old = {document.fingerprint: document for document in base.documents[head:old_end]}
        new = {document.fingerprint: document for document in documents[head:new_end]}
        slots = dict(zip(old, base.order[head:old_end].tolist(), strict=True))
        freed = [slots[key] for key in old if key not in new]
        come = [key for key in new if key not in old]
        # Slots that a smaller catalogue freed for good stay empty until the next full indexing.
        taken = [*freed, *range(len(base.lengths), len(base.lengths) + len(come))][: len(come)]
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


def _same(one: Posting, other: Posting) -> bool:
    return one[0].tobytes() == other[0].tobytes() and one[1].tobytes() == other[1].tobytes()


def _spliced(old: Posting, gone: Slots, new: Posting) -> Posting:
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
    slots: Slots
    counts: Counts

    @cached_property
    def spellings(self) -> Spellings:
        """All words by their letters; made on first need, because few requests are misspelled."""
        return Spellings(self.offsets)

    def posting(self, term: str) -> Posting:
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
    width, cells = len(FIELDS), max(1, len(fields))
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
