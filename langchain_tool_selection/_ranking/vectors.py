"""`ToolVectors`: the embeddings of tools, each made once and kept as long as its catalogue is in use.

Searches come from threads and from event loops, many at once after a start. The first that misses a vector
makes it, in one *batch* with all others that it misses. The rest wait for that batch. Nobody waits for ever,
because a service may hang and a search may be cancelled: a batch that is cancelled, or takes longer than
`_PATIENCE`, is taken over by one of those who wait. A batch that fails, fails for all who wait.

One wait is impossible. Code that blocks an event loop cannot wait for a task of that loop, nor for a task
whose own loop may be blocked in the same way. Such a search makes its vectors itself.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from langchain_core.embeddings import Embeddings

from langchain_tool_selection._ranking.protocol import Documents
from langchain_tool_selection._tools.documents import ToolDocument

Matrix: TypeAlias = npt.NDArray[np.float32]

_VECTORS = 200_000
"""So many vectors are kept. Those of the catalogues that were used least recently go first."""

_MATRICES = 8
"""Catalogues whose vectors stand ready as one matrix: as many roles or agents can share one ranker."""

_PATIENCE = 30.0
"""Seconds after which a batch is taken over by somebody else. Large catalogues take a service this long."""

_Rows: TypeAlias = dict[str, Matrix]  # vectors of length 1, by the documents' fingerprints


class _Batch:
    """Documents that are being embedded.

    Attributes:
        documents: Those that nobody had embedded, by fingerprint.
        is_task: Whether an event loop has to run for it to end.
        result: Their vectors, once done; none of them if it was cancelled.
    """

    def __init__(self, documents: dict[str, ToolDocument], *, is_task: bool) -> None:
        self.documents = documents
        self.is_task = is_task
        self.result: Future[_Rows] = Future()
        self.result.set_running_or_notify_cancel()  # who stops waiting for it does not stop it
        self._until = monotonic() + _PATIENCE

    @property
    def patience(self) -> float:
        """Seconds for which to wait for it."""
        return max(0.0, self._until - monotonic())

    @property
    def texts(self) -> list[str]:
        """What to embed."""
        return [_text(document) for document in self.documents.values()]


class ToolVectors:
    """The embeddings of tools. A copy, and one that was pickled, begins with none.

    Args:
        embeddings: Makes them.
    """

    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings
        self._rows: OrderedDict[str, Matrix] = OrderedDict()  # by fingerprint, the last used last
        self._batches: dict[str, _Batch] = {}  # by the fingerprint of each of their documents
        self._newest: tuple[tuple[Documents, Matrix], ...] = ()  # newest first; replaced, never changed
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return ToolVectors, (self._embeddings,)

    def matrix(self, documents: Documents) -> Matrix:
        """Return the vectors of documents as rows in their order, embedding those that are new.

        Raises:
            ValueError: the embeddings returned something else than one finite vector for each text.
            Exception: whatever else the embeddings raise, here or in a search that has the same to embed.
        """
        rows: _Rows = {}
        for batch, is_ours in self._batches_for(documents, rows, is_task=False):
            if is_ours:
                with self._making(batch):
                    self._keep(batch, self._embeddings.embed_documents(batch.texts))
            else:
                with suppress(TimeoutError):  # it is taken over
                    batch.result.result(batch.patience)
        return self._stacked(documents, rows)

    async def amatrix(self, documents: Documents) -> Matrix:
        """As `matrix`, through the embeddings' async method."""
        rows: _Rows = {}
        for batch, is_ours in self._batches_for(documents, rows, is_task=True):
            if is_ours:
                with self._making(batch):
                    self._keep(batch, await self._embeddings.aembed_documents(batch.texts))
            else:
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.wrap_future(batch.result), batch.patience)
        return self._stacked(documents, rows)

    def _known(self, documents: Documents) -> Matrix | None:
        return next((matrix for known, matrix in self._newest if known is documents), None)

    def _batches_for(
        self, documents: Documents, rows: _Rows, *, is_task: bool
    ) -> Iterator[tuple[_Batch, bool]]:
        """Yield batches until `rows` has all vectors: one to make, with `True`, then those to wait for."""
        may_wait_for_tasks = is_task or not _blocks_a_loop()
        while self._known(documents) is None:
            others, ours = set[_Batch](), _Batch({}, is_task=is_task)
            with self._lock:
                for document in documents:
                    key = document.fingerprint
                    batch = self._batches.get(key)
                    if key in self._rows:
                        rows[key] = self._rows[key]
                    elif key in rows:
                        continue
                    elif batch and batch.patience and (may_wait_for_tasks or not batch.is_task):
                        others.add(batch)
                    else:
                        ours.documents[key] = document
                self._batches |= dict.fromkeys(ours.documents, ours)
            batches = [ours, *others] if ours.documents else [*others]
            if not batches:
                return
            for batch in batches:  # others wait for ours from now on
                yield batch, batch is ours
                if batch.result.done():  # with no vectors if it was cancelled
                    rows |= batch.result.result()

    @contextmanager
    def _making(self, batch: _Batch) -> Iterator[None]:
        """Tell whoever waits for a batch what became of it."""
        try:
            yield
        except Exception as error:
            batch.result.set_exception(error)
            raise
        finally:
            with self._lock:
                self._batches = {key: other for key, other in self._batches.items() if other is not batch}
            if not batch.result.done():  # it was cancelled
                batch.result.set_result({})

    def _keep(self, batch: _Batch, vectors: Any) -> None:
        rows = dict(zip(batch.documents, normalized(vectors, len(batch.documents)), strict=True))
        with self._lock:
            self._rows |= rows
        batch.result.set_result(rows)

    def _stacked(self, documents: Documents, rows: _Rows) -> Matrix:
        """Return the vectors of documents as one matrix, which is among the newest from now on."""
        if (known := self._known(documents)) is not None:
            return known
        documents = tuple(documents)
        keys = [document.fingerprint for document in documents]
        with self._lock:
            matrix = next((matrix for other, matrix in self._newest if other == documents), None)
            if matrix is None:
                matrix = np.stack([rows[key] for key in keys]) if keys else np.zeros((0, 0), np.float32)
            newest = [(documents, matrix), *(entry for entry in self._newest if entry[1] is not matrix)]
            self._newest = tuple(newest[:_MATRICES])
            for key, row in zip(keys, matrix, strict=True):
                self._rows[key] = row  # a view of the matrix, so that memory holds it once
                self._rows.move_to_end(key)
            for older, matrix_of_older in newest[_MATRICES:]:
                self._detach(older, matrix_of_older)
            while len(self._rows) > _VECTORS:
                self._rows.popitem(last=False)
            return matrix

    def _detach(self, documents: Documents, matrix: Matrix) -> None:
        """Copy the vectors that are views of a matrix, so that they do not keep it alive."""
        for document in documents:
            row = self._rows.get(document.fingerprint)
            if row is not None and row.base is matrix:
                self._rows[document.fingerprint] = row.copy()


def _blocks_a_loop() -> bool:
    """Whether this thread runs an event loop, which stands still while this code runs."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _text(document: ToolDocument) -> str:
    # Parameter names help a small encoder; their descriptions drown the sentence that matters.
    parameters = ", ".join(name for name, _ in document.parameters)
    text = f"{document.name}: {document.description}"
    return f"{text} Parameters: {parameters}" if parameters else text


def normalized(vectors: Any, expected: int) -> Matrix:
    """Return vectors as rows of length 1; those of length 0 stay what they are.

    Raises:
        ValueError: they are not as many as expected, empty, of unequal length, or not finite.
    """
    try:
        matrix = np.asarray(vectors, np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "the embeddings returned vectors of unequal length or with something that is no number"
        ) from error
    if matrix.ndim != 2 or len(matrix) != expected or not matrix.shape[1]:
        raise ValueError(f"the embeddings returned an array of shape {matrix.shape} for {expected} texts")
    if not np.isfinite(matrix).all():
        raise ValueError("the embeddings returned a vector that is not finite")
    length = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit: Matrix = np.divide(matrix, length, out=np.zeros_like(matrix), where=length > 0)
    return unit
