"""What tool schemas cost: a count of tokens by the model's own tokenizer, or by LangChain's approximation.

A real tokenizer is used where one is on this machine: tiktoken for the names of OpenAI's models, if it is
installed and its vocabulary is in its cache. Nothing is downloaded, so a count never waits for a network; to
fill the cache, run `python -c "import tiktoken; tiktoken.encoding_for_model('gpt-5')"`. Everything else is
counted as LangChain does, at four characters a token. Neither counts what a provider adds around the schemas.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from hashlib import sha1
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from langchain_tool_selection._ground.digest import digest

_REMEMBERED = 50_000
"""Counts that are kept: a few megabytes, and more than the largest catalogues hold."""

_ENCODINGS = "https://openaipublic.blob.core.windows.net/encodings"
"""Where tiktoken gets its encodings from; its cache goes by their addresses."""

_counts: OrderedDict[tuple[str, str], int] = OrderedDict()
_lock = Lock()


class TokenCount(NamedTuple):
    """How many tokens, and who counted them.

    Attributes:
        tokens: The number of tokens.
        counter: `"tiktoken:o200k_base"` or the like, or `"approximate"`.
    """

    tokens: int
    counter: str


def count_tokens(schemas: Iterable[Mapping[str, Any]], model: Any = None) -> TokenCount:
    """Return what tool dicts cost together, each counted by itself as compact JSON.

    Counts are remembered by content, so what was counted before costs some microseconds.

    Args:
        schemas: Tool dicts, in the shape in which they are sent.
        model: The model's name, with or without a provider (`"openai:gpt-5.5"`), or a chat model. Whatever
            has no tokenizer here, `None` too, gets the approximation.

    Raises:
        TypeError: a tool dict holds something that JSON cannot, so it could not be sent either.
    """
    counter, count = _counter(_model_name(model))
    return TokenCount(sum(_remembered(schema, counter, count) for schema in schemas), counter)


def _remembered(schema: Mapping[str, Any], counter: str, count: Callable[[Mapping[str, Any]], int]) -> int:
    key = (counter, digest(_json(schema)))
    with _lock:
        if key in _counts:
            _counts.move_to_end(key)
            return _counts[key]
    tokens = count(schema)
    with _lock:
        _counts[key] = tokens
        if len(_counts) > _REMEMBERED:
            _counts.popitem(last=False)
    return tokens


def _json(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def _model_name(model: Any) -> str:
    if isinstance(model, str):
        return model
    for attribute in ("model_name", "model"):
        name = getattr(model, attribute, None)
        if isinstance(name, str):
            return name
    return ""


@lru_cache(maxsize=64)
def _counter(model: str) -> tuple[str, Callable[[Mapping[str, Any]], int]]:
    encoding = _openai_encoding(model)
    if encoding is None:
        return "approximate", _approximately

    def exactly(schema: Mapping[str, Any]) -> int:
        return len(encoding.encode_ordinary(_json(schema)))

    return f"tiktoken:{encoding.name}", exactly


def _approximately(schema: Mapping[str, Any]) -> int:
    from langchain_core.messages.utils import count_tokens_approximately  # noqa: PLC0415  # slow to import

    return count_tokens_approximately([], tools=[dict(schema)])


def _openai_encoding(model: str) -> Any:
    """Return tiktoken's encoding for a model of OpenAI, or `None` where there is none on this machine."""
    provider, _, name = model.rpartition("/")[2].partition(":")
    name = model if provider == "ft" else name or provider
    try:
        import tiktoken  # noqa: PLC0415  # optional

        encoding = tiktoken.encoding_name_for_model(name)
        return tiktoken.get_encoding(encoding) if _is_cached(encoding) else None
    except (ImportError, KeyError):  # not installed, or not a model of OpenAI
        return None


def _is_cached(encoding: str) -> bool:
    """Whether tiktoken has an encoding's file, by the rule of its `load.read_file_cached`.

    It has no function to ask for it; one that is not there would be downloaded.
    """
    default = Path(tempfile.gettempdir(), "data-gym-cache")
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR", str(default)))
    url = f"{_ENCODINGS}/{encoding}.tiktoken"
    # An empty folder's name is tiktoken's way to say: no cache.
    return bool(folder) and Path(folder, sha1(url.encode(), usedforsecurity=False).hexdigest()).is_file()
