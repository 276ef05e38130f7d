"""How many examples a property is tried on: all of them with `--every-way`, and else a quarter."""

from __future__ import annotations

every_way = False


def examples(count: int) -> int:
    """Return how many of `count` examples to try."""
    return count if every_way else max(10, count // 4)
