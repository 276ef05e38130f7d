"""What input tokens cost, for the models whose prices are published. Dated: prices move.

Only what decides which exposure is cheaper: how dear a cached read and a cache write are. A model that is
not here has no prices, rather than those of one with a similar name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

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
                msg = f"Prices.{field} must be a finite number of 0 or more, got {value!r}"
                raise ValueError(msg)
        if self.read > self.write:
            msg = f"Prices.read must be at most Prices.write, got read={self.read} and write={self.write}"
            raise ValueError(msg)


_READ_ON = "2026-11-29"
_ANTHROPIC = "https://platform.claude.com/docs/en/about-claude/pricing"
_BEDROCK = "https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html"
_DEEPSEEK = "https://api-docs.deepseek.com/quick_start/pricing"
_GOOGLE = "https://ai.google.dev/gemini-api/docs/caching"
_OPENAI = "https://developers.openai.com/api/docs/guides/prompt-caching"

DEFAULT_PRICES = Prices(read=0.1, write=1.25)
"""For a model that is not named: what Claude models up to 5 and GPT-5.6 and later charge."""

_END = r"(?![.\d]|-\d{1,2}(?!\d))"
"""A version ends here: `-20261001` may follow, `.1` or `-1` would be another version."""

# Names as providers and `init_chat_model` write them, lower case. Claude's caches are those of five minutes.
_KNOWN: tuple[tuple[str, Prices], ...] = (
    (r"(anthropic:)?claude-opus-5-5", Prices(0.05, 1.25, 4.0, _ANTHROPIC, _READ_ON)),
    (r"(anthropic:)?claude-sonnet-5-5", Prices(0.05, 1.25, 2.0, _ANTHROPIC, _READ_ON)),
    (r"(anthropic:)?claude-(fable|mythos)-5-1", Prices(0.025, 1.25, 10.0, _ANTHROPIC, _READ_ON)),
    (r"(anthropic:)?claude-haiku-5-5", Prices(0.1, 1.25, 0.1, _ANTHROPIC, _READ_ON)),  # to 100k a prompt
    (
        r"(anthropic:)?claude-(opus-(4-[5-8]|5)|sonnet-(4-[56]|[45])|fable-5|haiku-4-5)",
        Prices(0.1, 1.25, None, _ANTHROPIC, _READ_ON),
    ),
    # Published as "up to 90 % off" a read.
    (r"(\w*bedrock\w*:)?([a-z]+\.)?anthropic\.claude-\S+", Prices(0.1, 1.25, None, _BEDROCK, _READ_ON)),
    (r"(openai:)?gpt-(5\.([6-9]|\d\d)|[6-9](\.\d+)?)", Prices(0.1, 1.25, None, _OPENAI, _READ_ON)),
    (r"(openai:)?gpt-5(\.[0-5])?", Prices(0.1, 1.0, None, _OPENAI, _READ_ON)),
    # Published as 0.25 to 0.5; the dear end, so that nothing looks better than it is.
    (r"(openai:)?(gpt-4o|gpt-4\.1|o\d)", Prices(0.5, 1.0, None, _OPENAI, _READ_ON)),
    (r"(google_\w+:)?(models/)?gemini-(2\.5|3(\.\d+)?)", Prices(0.1, 1.0, None, _GOOGLE, _READ_ON)),
    (r"(deepseek:)?deepseek-(v4\.1-)?flash", Prices(0.02, 1.0, 0.15, _DEEPSEEK, _READ_ON)),
    (r"(deepseek:)?deepseek-(v4-)?pro", Prices(1 / 30, 1.0, 0.66, _DEEPSEEK, _READ_ON)),
)


def prices_of(model: str | BaseChatModel) -> Prices | None:
    """Return a model's published prices, or `None` if this package knows none, as for a local model.

    Args:
        model: A name, with or without `init_chat_model`'s provider in front, or a chat model.
    """
    name = model_name(model).lower()
    return next((prices for pattern, prices in _KNOWN if re.match(pattern + _END, name)), None)


def model_name(model: str | BaseChatModel) -> str:
    """Return a name as it is, and a chat model's as `provider:name`, as LangChain's traces write it."""
    if isinstance(model, str):
        return model
    params = model._get_ls_params()  # no public way leads to both
    return f"{params.get('ls_provider', '')}:{params.get('ls_model_name', '')}"
