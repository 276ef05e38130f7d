"""`LocalEmbeddings`: sentence embeddings without a key, a service or a download at run time.

They come from the package `wordllama`, which carries its weights and its tokenizer in its wheel. It is an
extra, imported when the embeddings are made: `pip install 'langchain-tool-selection[local]'`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

_MAX_CHARACTERS = 8_000
"""More of a text is not read: it takes a kilobyte a token while it is embedded, and the average of a
thousand words points nowhere."""


class LocalEmbeddings(Embeddings):
    """A small static encoder: 256 dimensions, the average of the vectors of a text's word pieces.

    A wheel of 19 MB, about 100 MB of memory, and well under a millisecond for a request, on one core and
    without a network. Thread-safe: nothing changes after it is made.

    It helps where requests and tools say the same in different words ("Where is my package?" and
    `track_parcel`). How much it adds to the default ranker, with which `ranker=LocalEmbeddings()` fuses
    it, differs from one catalogue to the next, with losses among the gains: see the benchmark
    (`python -m benchmarks.ranking --data DIR --rankers lexical_hist,wordllama_hybrid_hist`). Alone it
    ranks far worse than words do. It does not read sentences: word order and negation are lost on it,
    names and codes mean nothing to it, and it knows little beside English. Where a better encoder can
    be had, local or from a provider, pass that one.

    Needs numpy 2. There are wheels for Linux on x86-64, macOS and Windows.

    Raises:
        ImportError: the package `wordllama` is not installed.

    Example:
        >>> middleware = ToolSelectionMiddleware(ranker=LocalEmbeddings())
    """

    def __init__(self) -> None:
        self._model = _load()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector of length one for each text; of zeros for a text without words."""
        # One text a batch: in a larger one all are padded to the longest, which takes its memory for
        # each of them, and rounds a text's vector by the company that it is in.
        vectors = self._model.embed([_readable(text) for text in texts], norm=False, batch_size=1)
        return [_unit(vector) for vector in vectors]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of one text, the same as in a batch."""
        return self.embed_documents([text])[0]


def _load() -> Any:
    try:
        with _root_logger_kept():
            import wordllama  # noqa: PLC0415
    except ImportError as error:
        raise ImportError(
            "LocalEmbeddings needs the package wordllama; "
            "install it with: pip install 'langchain-tool-selection[local]'"
        ) from error
    # A plain load() does not find the tokenizer in the package's own folder and asks a hub for it.
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)


@contextmanager
def _root_logger_kept() -> Iterator[None]:
    # The package calls logging.basicConfig() on import, after which an application's own call of it
    # does nothing.
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def _readable(text: str) -> str:
    # The tokenizer raises on half a surrogate pair, which cut-off text ends with.
    return text[:_MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


def _unit(vector: Any) -> list[float]:
    length = float((vector @ vector) ** 0.5)
    unit: list[float] = (vector / length if length else vector).tolist()
    return unit
