"""What may be a tool's name, by provider.

The default answer is for any provider: an agent may change its model, and a name that no provider takes is of
no use to it.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple


class NameRule(NamedTuple):
    """The names of tools that a provider takes, as its reference has it.

    Attributes:
        provider: The provider, as people write it.
        pattern: Matches the whole name.
    """

    provider: str
    pattern: re.Pattern[str]


NAME_RULES = {
    "openai": NameRule("OpenAI", re.compile(r"[a-zA-Z0-9_-]{1,64}")),
    "anthropic": NameRule("Anthropic", re.compile(r"[a-zA-Z0-9_-]{1,128}")),
    "bedrock": NameRule("Bedrock", re.compile(r"[a-zA-Z0-9_-]{1,64}")),
    "gemini": NameRule("Gemini", re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")),
}
"""The rules, one line a provider."""

_ANY = re.compile("|".join(rule.pattern.pattern for rule in NAME_RULES.values()))

POSSIBLE = "1 to 128 ASCII letters, digits, '_' or '-'; with '.' or ':' up to 64, a letter or '_' first"
"""What at least one provider takes, in words."""

PORTABLE = "1 to 64 ASCII letters, digits, '_' or '-', a letter or '_' first"
"""What every provider takes, in words."""


def is_possible_name(name: object, provider: str | None = None) -> bool:
    """Whether a provider takes a tool's name.

    Args:
        name: The name. What is no string is no name.
        provider: A key of `NAME_RULES`; `None` asks whether there is any provider that takes it.
    """
    pattern = _ANY if provider is None else NAME_RULES[provider].pattern
    return isinstance(name, str) and pattern.fullmatch(name) is not None


def is_portable_name(name: object) -> bool:
    """Whether every provider takes a tool's name."""
    return isinstance(name, str) and not refused_by(name)


def refused_by(name: str) -> list[str]:
    """Return the providers that refuse a tool's name, as people write them."""
    return [rule.provider for rule in NAME_RULES.values() if not rule.pattern.fullmatch(name)]


def portable_name(name: str) -> str:
    """Return a name like this one that every provider takes."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    valid = re.sub(r"[^a-zA-Z0-9_-]+", "_", plain).strip("_-")
    return (valid if valid[:1].isalpha() else f"tool_{valid}")[:64].rstrip("_-")
