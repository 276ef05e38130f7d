"""What input tokens cost, for the models whose prices are published. Dated: prices move.

Only what decides which exposure is cheaper: how dear a cached read and a cache write are. A model that is
not here has no prices, rather than those of one with a similar name.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from langchain_tool_selection._ground.models import full_model_name, plain_name
from langchain_tool_selection._ground.settings import check_count, check_flag, check_number, check_type

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


@dataclass(frozen=True)
class Tier:
    """A higher price for long prompts. It is charged for the whole of such a prompt, cached or not.

    Attributes:
        above: The prompts that have more tokens than this pay it.
        factor: How many times the price of a short prompt; 1 or more.
    """

    above: int
    factor: float

    def __post_init__(self) -> None:
        check_count("Tier.above", self.above)
        check_number("Tier.factor", self.factor)
        if self.factor is None or not 1 <= self.factor < inf:
            raise ValueError(f"Tier.factor must be a finite number of 1 or more, got {self.factor!r}")


@dataclass(frozen=True)
class Prices:
    """What input tokens cost a model. The default is a model without prompt caching.

    Attributes:
        read: What a token read from the cache costs, in uncached ones. At most `write`.
        write: What a token written to the cache costs, in uncached ones; 1 where writing is free. For the
            provider's usual time of keeping it: five minutes with Anthropic.
        input: US dollars for a million uncached input tokens of a short prompt; `None` if unknown.
        source: Where the figures are published.
        as_of: The day they were read, as `YYYY-MM-DD`.
        tiers: Higher prices for long prompts, in any order. The highest that applies counts.
        long_write: What a token costs that is written to be kept for longer: an hour with Anthropic, twelve
            hours with OpenAI. `None` where no longer time is offered, or its price is unknown.
        keeps_changed: Whether a prompt whose tools array changed is read from the cache all the same, but
            for the array. Most providers read it anew, so no published prices say so.
    """

    read: float = 1.0
    write: float = 1.0
    input: float | None = None
    source: str = ""
    as_of: str = ""
    tiers: tuple[Tier, ...] = ()
    long_write: float | None = None
    keeps_changed: bool = False

    def __post_init__(self) -> None:
        for field in ("read", "write", "input", "long_write"):
            value = getattr(self, field)
            check_number(f"Prices.{field}", value)
            is_optional = field in ("input", "long_write")
            if (value is None and not is_optional) or (value is not None and not 0 <= value < inf):
                raise ValueError(f"Prices.{field} must be a finite number of 0 or more, got {value!r}")
        if self.read > self.write:
            raise ValueError(
                f"Prices.read must be at most Prices.write, got read={self.read} and write={self.write}"
            )
        check_flag("Prices.keeps_changed", self.keeps_changed)
        check_type("Prices.tiers", self.tiers, tuple)
        for tier in self.tiers:
            check_type("Prices.tiers", tier, Tier)

    def factor_at(self, prompt_tokens: float) -> float:
        """Return how many times the price of a short prompt one of this length costs."""
        return max((tier.factor for tier in self.tiers if prompt_tokens > tier.above), default=1.0)

    def at(self, prompt_tokens: float) -> Prices:
        """Return the prices of prompts of one length: with `input` as it is charged there, and no tiers."""
        price = None if self.input is None else self.input * self.factor_at(prompt_tokens)
        return replace(self, input=price, tiers=())

    @property
    def kept_long(self) -> Prices:
        """The prices where all that is written to the cache is kept for the longer time.

        Raises:
            ValueError: `long_write` is unknown.
        """
        if self.long_write is None:
            raise ValueError("no price is known for keeping a prompt in the cache for longer")
        return replace(self, write=self.long_write)


DEFAULT_PRICES = Prices(read=0.1, write=1.25)
"""For a model that is not named: what Claude models up to 5 and GPT-5.6 and 6 charge."""

_END = r"(?![.\d]|-\d{1,2}(?!\d))"
"""A version ends here: `-20261001` may follow, `.1` or `-1` would be another version."""


class _Row(NamedTuple):
    """A line of `prices.toml`: who bills like this, which models, and how."""

    through: frozenset[str]
    models: re.Pattern[str]
    prices: Prices


def _rows() -> Iterator[_Row]:
    table = tomllib.loads(Path(__file__).with_name("prices.toml").read_text("utf-8"))
    for provider in table["provider"]:
        published = {"source": provider["source"], "as_of": table["as_of"]}
        for model in provider["models"]:
            pattern = re.compile(model.pop("name") + _END)
            tiers = tuple(Tier(**tier) for tier in model.pop("tiers", ()))
            prices = Prices(**model, **published, tiers=tiers)
            yield _Row(frozenset(provider["through"]), pattern, prices)


_KNOWN = tuple(_rows())


def prices_of(model: str | BaseChatModel) -> Prices | None:
    """Return a model's published prices, or `None` if this package knows none, as for a local model.

    A cloud or a gateway has prices of its own. So a name with another provider in front has those of the
    model's maker only where that provider is known to charge the same: Azure, Amazon Bedrock and Vertex AI.

    Args:
        model: A name, with or without `init_chat_model`'s provider in front, or a chat model.
    """
    provider, name = _split(full_model_name(model).lower())
    return next((row.prices for row in _KNOWN if provider in row.through and row.models.match(name)), None)


def _split(full: str) -> tuple[str, str]:
    """Return who is named ahead of a model, and its plain name.

    That is the client's provider (`openai:`), or else the vendor in a route (`openai/`); `""` if nobody is.
    """
    provider, colon, rest = full.partition(":")
    if not colon or not _PROVIDER.fullmatch(provider):
        provider, rest = "", full
    vendor, slash, _ = rest.partition("/")
    if slash and not provider and not _OWN_ROUTE.match(vendor):
        provider = vendor
    return re.sub(r"[^a-z0-9]", "", provider), plain_name(rest)


_PROVIDER = re.compile(r"(?!arn$)[a-z][a-z0-9_-]*")
"""What may stand ahead of a colon as a provider. `anthropic.claude-opus-5-v1:0` has a revision behind it."""

_OWN_ROUTE = re.compile(r"(models|projects|publishers|arn:aws[\w-]*:bedrock.*)$")
"""How a route of Google or Amazon begins, which names no vendor there."""
