"""What a ranker is, and how rankers combine.

A ranker reads a request and documents and gives back names with scores, best first, and nothing for
what does not match. It never sees a tool object, so nothing that it keeps can be stale or leak; and it
is stateless as far as callers can tell: whatever it prepares from documents is a cache of its own.
That makes one method the whole protocol, and every combination of rankers a ranker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from langchain_tool_selection._tools.documents import ToolDocument

Documents: TypeAlias = Sequence[ToolDocument]
"""The tools of a catalogue, in registration order."""


class Hit(NamedTuple):
    """A tool that matches, and how well: higher is better, comparable within one search only."""

    name: str
    score: float


@dataclass(frozen=True)
class Query:
    """What to search for: texts with weights, the newest first.

    Scores of the parts are added by their weights. The texts are not pasted together, because a long
    earlier message would drown a short new one.

    Attributes:
        parts: `(text, weight)` pairs; weights are positive, the newest text has weight 1.
    """

    parts: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        for part in self.parts:
            text, weight = part if isinstance(part, tuple) and len(part) == 2 else (None, 0)
            if not isinstance(text, str) or not weight > 0:
                raise ValueError(
                    f"a part of a Query is a (text, weight) pair with a weight above 0, got {part!r}"
                )

    @classmethod
    def of(cls, text: str) -> Query:
        """Return the query for one text; an empty query if the text is blank."""
        return cls(((text, 1.0),) if text.strip() else ())

    @property
    def text(self) -> str:
        """The newest text, or an empty string."""
        return self.parts[0][0] if self.parts else ""

    def __bool__(self) -> bool:
        """Whether there is anything to search for."""
        return bool(self.parts)


@runtime_checkable
class Ranker(Protocol):
    """Ranks documents against a query. The one method to write for a ranker of your own.

    A ranker that waits for something (a service, a model) also has `arank`, with the same signature
    and result, which is awaited on the async path. Without it `rank` is called there too; a middleware that
    has a `Search.timeout` calls it in a thread.

    Example:
        >>> class ByLength:
        ...     def rank(self, query, documents, *, limit=None):
        ...         return [Hit(d.name, 1 / (1 + len(d.description))) for d in documents]
    """

    def rank(self, query: Query, documents: Documents, *, limit: int | None = None) -> Iterable[Hit]:
        """Return hits for the documents that match, and none for those that don't.

        Args:
            query: What to search for; never empty.
            documents: All candidates, in registration order, names unique. The same tuple comes
                again for as long as nothing changes, so it serves as a cache key by identity.
            limit: How many hits the caller will look at; `None` means all. More are allowed.

        Returns:
            Hits with finite scores, in any order; ties are broken by registration order.
        """
        ...


async def arank(
    ranker: Ranker, query: Query, documents: Documents, *, limit: int | None = None
) -> Iterable[Hit]:
    """Await a ranker's `arank`, or call its `rank` where it has none."""
    if not hasattr(ranker, "arank"):
        return ranker.rank(query, documents, limit=limit)
    hits: Iterable[Hit] = await ranker.arank(query, documents, limit=limit)
    return hits


def blocks(ranker: Ranker) -> bool:
    """Whether a ranker has nothing to await, so that while it waits, other runs of the event loop wait too.

    One that never waits, or that asks others, says so by an attribute of this name.
    """
    return bool(getattr(ranker, "blocks", not hasattr(ranker, "arank")))
