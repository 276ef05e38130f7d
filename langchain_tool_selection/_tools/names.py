"""What may be a tool's name, whichever provider it is sent to.

The answers are for any provider: an agent may change its model, and a name that no provider takes is of no
use to it. `limits` has the rules of each.
"""

from __future__ import annotations

import re
import unicodedata

from langchain_tool_selection._tools.limits import LIMITS

_ANY = re.compile("|".join(limits.names.pattern for limits in LIMITS.values()))

POSSIBLE = "1 to 128 ASCII letters, digits, '_' or '-'; with '.' or ':' up to 64, a letter or '_' first"
"""What at least one provider takes, in words."""

PORTABLE = "1 to 64 ASCII letters, digits, '_' or '-', a letter or '_' first"
"""What every provider takes, in words."""


def is_possible_name(name: object) -> bool:
    """Whether any provider takes a tool's name. What is no string is no name."""
    return isinstance(name, str) and _ANY.fullmatch(name) is not None


def refused_by(name: str) -> list[str]:
    """Return the providers that refuse a tool's name, as people write them."""
    # Azure takes what OpenAI takes.
    rules = [limits for key, limits in LIMITS.items() if key != "azure"]
    return [limits.provider for limits in rules if not limits.names.fullmatch(name)]


def portable_name(name: str) -> str:
    """Return a name like this one that every provider takes."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    valid = re.sub(r"[^a-zA-Z0-9_-]+", "_", plain).strip("_-")
    return (valid if valid[:1].isalpha() else f"tool_{valid}")[:64].rstrip("_-")
