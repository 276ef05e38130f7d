"""A cache of one value: the one made for the newest object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class ForNewest(Generic[T]):
    """Remembers what was made of the newest object, for as long as that very object comes back.

    For objects that do not change. Threads may share it: who comes with another object makes the value anew.
    """

    def __init__(self) -> None:
        self._newest: tuple[object, T] | None = None

    def get(self, of: object, make: Callable[[], T]) -> T:
        """Return the value for the object `of`."""
        newest = self._newest
        if newest is None or newest[0] is not of:
            self._newest = newest = (of, make())
        return newest[1]
