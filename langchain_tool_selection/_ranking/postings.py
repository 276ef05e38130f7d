"""`Postings`: which tools have which words, as arrays that are never changed once made.

Documents stand in *slots*, numbered from 0. A word's *posting* is two arrays of equal length: the slots of
the documents that have the word, ascending, and for each of them how often the word stands in each field.

    slots    int32, (n,)        n documents have the word
    counts   uint8, (n, 7)      one column for each of `FIELDS`; 255 stands for 255 and more

A *segment* keeps the postings of all words of some documents in one such pair, one word's rows after the
other's, and tells by word where its rows begin and end. All segments of a catalogue share these:

    lengths  int32, (slots, 7)      the number of words in each field of the document in each slot
    order    int32, (documents,)    the slot of each document, in registration order
    position int32, (slots,)        the place in registration order of the document in each slot, -1 for none

A catalogue that differs little from the one before shares its segments and adds one for what is new, so that
one changed tool costs that tool. A new document stands in a slot behind the last. A removed one leaves its
slot empty: its rows stay in their segment and are passed over.

Example:
    Three tools make three slots. Two of them say "issue", so its posting has two rows.

    >>> one = ToolDocument("create_issue", "Open an issue.")
    >>> two = ToolDocument("close_issue")
    >>> three = ToolDocument("send_mail", "Send a mail.", (("to", "Who gets it."),), domain="mail")
    >>> first = Postings.of((one, two, three))
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

    >>> first.lengths[:, 0].tolist(), sorted(first.segments[0].offsets)[:4]
    ([4, 4, 4], ['=a', '=an', '=close', '=create'])

    The second tool goes and another comes. Only the words of the new one are counted.

    >>> another = ToolDocument("close_door")
    >>> rest = tuple(ToolDocument(f"tool_{number}") for number in range(8))
    >>> before = Postings.of((one, two, three, *rest))
    >>> after = Postings.of((one, another, three, *rest), before)
    >>> after.segments[0] is before.segments[0], sorted(after.segments[1].offsets)
    (True, ['=close', '=door', 'close', 'door'])
    >>> after.order[:3].tolist(), after.posting("door")[0].tolist(), after.posting("issu")[0].tolist()
    ([0, 11, 2], [11], [0])
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

_SEGMENTS = 16
"""Segments of a catalogue. With one more, all that was added since the first is counted again as one."""


@dataclass(frozen=True, eq=False)
class Postings:
    """The postings of one catalogue. Most are an earlier one with a few tools changed.

    Attributes:
        documents: In registration order.
        segments: The first has a whole catalogue, each other what was added to it at one time.
        order: The slot of each document.
        position: The place in registration order of the document in each slot, -1 for none.
        lengths: The number of words in each field of each slot.
        servers: The server of each slot as a number, 0 for none.
        server_numbers: Those numbers by the server's name.
        root: The earlier catalogue that has the first segment only; `None` if this is one.
    """

    documents: tuple[ToolDocument, ...]
    segments: tuple[_Segment, ...]
    order: Slots
    position: Slots
    lengths: npt.NDArray[np.int32]
    servers: npt.NDArray[np.intp]
    server_numbers: Mapping[str, int]
    root: Postings | None = None

    @classmethod
    def of(cls, documents: tuple[ToolDocument, ...], base: Postings | None = None) -> Postings:
        """Index `documents`, from the start or from what `base` has of them."""
        added: Sequence[ToolDocument] = documents
        if base is None:
            root, base, order = None, _NOTHING, np.arange(len(documents), dtype=np.int32)
        else:
            root = base.root or base
            base = root if len(base.segments) == _SEGMENTS else base
            order, added = base._slots_of(documents)
            slots = len(base.lengths) + len(added)
            empty, later = slots - len(documents), slots - len(root.lengths)
            if empty + later > len(documents) // 4:
                return cls.of(documents)
        segment, lengths = _index(added, len(base.lengths))
        numbers = dict(base.server_numbers)
        servers = np.array([numbers.setdefault(one.domain, len(numbers)) for one in added], np.intp)
        lengths, servers = np.concatenate([base.lengths, lengths]), np.concatenate([base.servers, servers])
        position = np.full(len(lengths), -1, np.int32)
        position[order] = np.arange(len(documents))
        lengths[position < 0] = servers[position < 0] = 0
        segments = (*base.segments, segment)
        return cls(documents, segments, order, position, lengths, servers, numbers, root)

    def _slots_of(self, documents: tuple[ToolDocument, ...]) -> tuple[Slots, Sequence[ToolDocument]]:
        """Return the slot that each document has or is to have, and the documents that have none yet."""
        head, tail = _common_ends(self.documents, documents)
        old_end, new_end = len(self.documents) - tail, len(documents) - tail
        old = (document.fingerprint for document in self.documents[head:old_end])
        new = {document.fingerprint: document for document in documents[head:new_end]}
        slots = dict(zip(old, self.order[head:old_end].tolist(), strict=True))
        come = [key for key in new if key not in slots]
        slots |= zip(come, count(len(self.lengths)))
        middle = np.array([slots[key] for key in new], np.int32)
        order = np.concatenate([self.order[:head], middle, self.order[old_end:]])
        return order, [new[key] for key in come]

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
        found = [one.posting(term) for one in self.segments if term in one.offsets] or [_NOWHERE]
        slots, counts = found[0] if len(found) == 1 else map(np.concatenate, zip(*found, strict=True))
        is_there = self.position[slots] >= 0
        return (slots, counts) if is_there.all() else (slots[is_there], counts[is_there])

    def frequency(self, term: str) -> int:
        """Return how many documents have a word."""
        found = [one.posting(term)[0] for one in self.segments if term in one.offsets]
        return sum(int(np.count_nonzero(self.position[slots] >= 0)) for slots in found)

    def nearest(self, word: str) -> str | None:
        """Return the indexed word that is spelled most like one that is not indexed, if any is alike."""
        first, *later = self.segments
        return first.spellings.nearest(word, set().union(*(one.offsets for one in later)), self.frequency)


def _common_ends(old: Sequence[ToolDocument], new: Sequence[ToolDocument]) -> tuple[int, int]:
    """Return how many documents two catalogues share at the beginning, and how many more at the end.

    In C, because it looks at every tool where nothing else does when one of thousands changes.
    """
    shortest = min(len(old), len(new))
    head = next(compress(count(), map(is_not, old, new)), shortest)
    tail = next(compress(count(), map(is_not, reversed(old), reversed(new))), shortest)
    return head, min(tail, shortest - head)


@dataclass(frozen=True, eq=False)
class _Segment:
    """Postings of some documents in three arrays, one word's after the other's."""

    offsets: Mapping[str, tuple[int, int]]
    slots: Slots
    counts: Counts

    @cached_property
    def spellings(self) -> Spellings:
        """All words by their letters; made on first need, because few requests are misspelled."""
        return Spellings(self.offsets)

    def posting(self, term: str) -> Posting:
        start, end = self.offsets[term]
        return self.slots[start:end], self.counts[start:end]


_NOWHERE = (np.zeros(0, np.int32), np.zeros((0, len(FIELDS)), np.uint8))
_NOTHING = Postings(
    (), (), _NOWHERE[0], _NOWHERE[0], np.zeros((0, len(FIELDS)), np.int32), np.zeros(0, np.intp), {"": 0}
)
"""What an index begins with."""


class _Vocabulary(dict[str, tuple[int, ...]]):
    """Numbers the terms of runs of text. Catalogues repeat few runs often, and each is looked at once."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: dict[str, int] = {}

    def __missing__(self, run: str) -> tuple[int, ...]:
        numbers = self.numbers
        self[run] = found = tuple(numbers.setdefault(term, len(numbers)) for term in index_terms(run))
        return found


def _index(documents: Sequence[ToolDocument], slot: int) -> tuple[_Segment, npt.NDArray[np.int32]]:
    """Count the words of documents, which stand in slots from `slot` on; also return field lengths."""
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
    offsets = dict(zip(vocabulary.numbers, pairwise(starts), strict=True))
    segment = _Segment(offsets, (terms_and_slots % slots_of_term + slot).astype(np.int32), counts)
    return segment, lengths.reshape(-1, width)


def _field_texts(document: ToolDocument) -> tuple[str, ...]:
    return (
        document.name,
        document.domain,
        document.description,
        " ".join(name for name, _ in document.parameters),
        " ".join(text for _, text in document.parameters),
        " ".join(document.examples),
        " ".join(document.tags),
    )
