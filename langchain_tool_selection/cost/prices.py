"""What input tokens cost, for the models whose prices are published. Dated: prices move.

Only what decides which exposure is cheaper: how dear a cached read and a cache write are. A model that is
not here has no prices, rather than those of one with a similar name.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_tool_selection._ground.models import full_model_name
from langchain_tool_selection._ground.settings import check_number

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


@dataclass(frozen=True)
class Prices:
    """What input tokens cost a model. The default is a model without prompt caching.

    Attributes:
        read: What a token read from the cache costs, in uncached ones. At most `write`.
        write: What a token written to the cache costs, in uncached ones; 1 where writing is free.
        input: US dollars for a million uncached input tokens; `None` if unknown.
        source: Where the figures are published.
        as_of: The day they were read, as `YYYY-MM-DD`.
    """

    read: float = 1.0
    write: float = 1.0
    input: float | None = None
    source: str = ""
    as_of: str = ""

    def __post_init__(self) -> None:
        for field in ("read", "write", "input"):
            value = getattr(self, field)
            check_number(f"Prices.{field}", value)
            if (value is None and field != "input") or (value is not None and not 0 <= value < inf):
                raise ValueError(f"Prices.{field} must be a finite number of 0 or more, got {value!r}")
        if self.read > self.write:
            raise ValueError(
                f"Prices.read must be at most Prices.write, got read={self.read} and write={self.write}"
            )


DEFAULT_PRICES = Prices(read=0.1, write=1.25)
"""For a model that is not named: what Claude models up to 5 and GPT-5.6 and later charge."""

_END = r"(?![.\d]|-\d{1,2}(?!\d))"
"""A version ends here: `-20261001` may follow, `.1` or `-1` would be another version."""


def _known() -> Iterator[tuple[str, Prices]]:
    """Yield the pattern of each name in `prices.toml`, with its prices."""
    table = tomllib.loads(Path(__file__).with_name("prices.toml").read_text("utf-8"))
    for provider in table["provider"]:
        for model in provider["models"]:
            yield model.pop("name"), Prices(**model, source=provider["source"], as_of=table["as_of"])


_KNOWN = tuple(_known())


def prices_of(model: str | BaseChatModel) -> Prices | None:
    """Return a model's published prices, or `None` if this package knows none, as for a local model.

    Args:
        model: A name, with or without `init_chat_model`'s provider in front, or a chat model.
    """
    name = full_model_name(model).lower()
    return next((prices for pattern, prices in _KNOWN if re.match(pattern + _END, name)), None)
