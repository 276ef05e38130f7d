"""What tools cost in tokens: counted by the model's own tokenizer, approximated, or estimated from documents.

A real tokenizer is used where one is on this machine: tiktoken for the names of OpenAI's models, if it is
installed and its vocabulary is in its cache. Nothing is downloaded, so a count never waits for a network; to
fill the cache, run `python -c "import tiktoken; tiktoken.encoding_for_model('gpt-5')"`. Everything else is
counted as LangChain's `count_tokens_approximately` does, at four characters of JSON a token, rounded up for
each tool. Neither counts what a provider adds around the schemas.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import sha1
from pathlib import Path
from typing import Any, NamedTuple

from langchain_tool_selection._ground.digest import digest
from langchain_tool_selection._ground.models import full_model_name
from langchain_tool_selection._tools.documents import ToolDocument
from langchain_tool_selection._tools.shapes import as_openai_tool, name_of

_REMEMBERED = 50_000
"""Counts that are kept: a few megabytes, and more than the largest catalogues hold."""

_ENCODINGS = "https://openaipublic.blob.core.windows.net/encodings"
"""Where tiktoken gets its encodings from; its cache goes by their addresses."""

_CHARACTERS_PER_TOKEN = 4
"""As LangChain's `count_tokens_approximately` has it."""

_counts: dict[tuple[str, str], int] = {}


class TokenCount(NamedTuple):
    """How many tokens, and who counted them.

    Attributes:
        tokens: The number of tokens.
        counter: `"tiktoken:o200k_base"` or the like, or `"approximate"`.
    """

    tokens: int
    counter: str


def count_tokens(tools: Iterable[Any], model: Any = None) -> TokenCount:
    """Return what tools cost together, each counted by itself as JSON.

    Counts are remembered by content, so what was counted before costs some microseconds.

    Args:
        tools: Tool dicts in the shape in which they are sent, of any provider. LangChain tools, functions,
            MCP tools and `ToolDocument`s are counted as OpenAI tool dicts.
        model: The model's name, with or without a provider (`"openai:gpt-5.5"`), or a chat model. Whatever
            has no tokenizer here, `None` too, gets the approximation.

    Raises:
        TypeError: something is no tool, or holds what JSON cannot, so that it could not be sent either.
    """
    if isinstance(tools, str | Mapping):
        raise TypeError(f"count_tokens takes a list of tools, got {type(tools).__name__}")
    counter, count = _counter(full_model_name(model))
    return TokenCount(sum(_remembered(_as_sent(tool), counter, count) for tool in tools), counter)


def characters_of(tool: Mapping[str, Any]) -> int:
    """Return how many characters a tool dict takes in a request, as JSON that is escaped to ASCII."""
    return len(json.dumps(tool))


def approximate_tokens(characters: int) -> int:
    """Return about how many tokens so many characters of JSON are."""
    return -(-characters // _CHARACTERS_PER_TOKEN)


def estimated_tokens(documents: Iterable[ToolDocument]) -> int:
    """Return about how many tokens the definitions of all these tools take in a request.

    Told from the documents, because asking thousands of tools for their schemas takes seconds. Within a fifth
    of the count over the schemas on nine of twelve catalogues; deeply nested parameters take more.
    """
    return sum(map(_estimated_characters, documents)) // _CHARACTERS_PER_TOKEN


def _estimated_characters(document: ToolDocument) -> int:
    parameters = sum(len(name) + len(text) for name, text in document.parameters)
    # What JSON adds, as it came out on real catalogues: braces and keys of a tool, types of a parameter.
    return len(document.name) + len(document.description) + 118 + parameters + 52 * len(document.parameters)


def _as_sent(tool: Any) -> Mapping[str, Any]:
    if isinstance(tool, Mapping):
        return tool
    if name_of(tool) is None and not callable(tool):
        raise TypeError(
            "count_tokens takes LangChain tools, functions, MCP tools, ToolDocuments and tool dicts, got "
            f"{tool!r:.100} of type {type(tool).__name__}"
        )
    try:
        return as_openai_tool(tool)
    except Exception as error:
        name = name_of(tool) or getattr(tool, "__name__", type(tool).__name__)
        raise TypeError(
            f"{name!r} cannot be counted, because it cannot be read as a tool: {error}"
        ) from error


def _remembered(schema: Mapping[str, Any], counter: str, count: Callable[[Mapping[str, Any]], int]) -> int:
    try:
        key = (counter, digest(_json(schema)))
    except TypeError as error:
        raise TypeError(
            f"{name_of(schema)!r} cannot be counted, because it cannot be sent: {error}"
        ) from error
    if (tokens := _counts.get(key)) is None:
        if len(_counts) >= _REMEMBERED:
            _counts.clear()
        tokens = _counts[key] = count(schema)
    return tokens


def _json(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


@lru_cache(maxsize=64)
def _counter(model: str) -> tuple[str, Callable[[Mapping[str, Any]], int]]:
    encoding = _openai_encoding(model)
    if encoding is None:
        return "approximate", lambda schema: approximate_tokens(characters_of(schema))
    return f"tiktoken:{encoding.name}", lambda schema: len(encoding.encode_ordinary(_json(schema)))


def _openai_encoding(model: str) -> Any:
    """Return tiktoken's encoding for a model of OpenAI, or `None` where there is none on this machine."""
    provider, _, name = model.rpartition("/")[2].partition(":")
    name = model if provider == "ft" else name or provider
    with suppress(ImportError, KeyError):  # not installed, or not a model of OpenAI
        import tiktoken  # noqa: PLC0415  # optional

        encoding = tiktoken.encoding_name_for_model(name)
        return tiktoken.get_encoding(encoding) if _is_cached(encoding) else None
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
