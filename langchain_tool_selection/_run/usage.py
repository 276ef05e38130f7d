"""What a thread's prompts cost, as the provider reports it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from langchain_core.messages import AIMessage


@dataclass(frozen=True)
class CacheUsage:
    """Input tokens of model calls, by what the provider's cache did with them.

    Attributes:
        calls: Model calls whose provider reported usage.
        input_tokens: All input tokens.
        cache_read: Those that were read from the cache.
        cache_write: Those that were written to it.
    """

    calls: int = 0
    input_tokens: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @classmethod
    def of(cls, messages: Iterable[Any]) -> CacheUsage:
        """Add up what the model's messages report; messages without a report count nothing."""
        total = _NOTHING
        for message in messages:
            if isinstance(message, AIMessage) and (reported := message.usage_metadata):
                details: Mapping[str, Any] = reported.get("input_token_details") or {}
                total += cls(1, reported["input_tokens"], _sum(details, _READ), _sum(details, _WRITTEN))
        return total

    def __add__(self, other: CacheUsage) -> CacheUsage:
        return CacheUsage(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @classmethod
    def from_state(cls, value: Any) -> CacheUsage:
        """Read totals from graph state, whatever it holds."""
        if not isinstance(value, Mapping):
            return cls()
        counts = (value.get(field.name) for field in fields(cls))
        return cls(*(n if isinstance(n, int) and 0 <= n < _MOST else 0 for n in counts))

    def to_state(self) -> dict[str, int]:
        """Return the totals as JSON values."""
        return asdict(self)


_NOTHING = CacheUsage()

_MOST = 2**53
"""No thread gets there; a checkpointer that is handed more than 64 bits ends the run."""

_READ = ("cache_read",)
# Anthropic's client splits what was written by how long it is kept, and then leaves the sum at 0. OpenAI's
# puts its service tier ahead of the names.
_WRITTEN = ("cache_creation", "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")


def _sum(details: Mapping[str, Any], names: tuple[str, ...]) -> int:
    return sum(count for key, count in details.items() if key.endswith(names) and isinstance(count, int))
