"""A short hash of text, the same in every process."""

from __future__ import annotations

import hashlib


def digest(*parts: str) -> str:
    """Return 16 hex digits that stand for `parts` in their order, the same in every process."""
    state = hashlib.blake2b(digest_size=8)
    for part in parts:
        state.update(part.encode("utf-8", "surrogatepass"))
        state.update(b"\0")
    return state.hexdigest()
