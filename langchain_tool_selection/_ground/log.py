"""The package's logger, and warnings that are logged once."""

from __future__ import annotations

import logging
from typing import Any

logger = logging.getLogger("langchain_tool_selection")

_WARNINGS = 100
"""Warnings of one kind; names of tools are a stranger's text, and there is no end of them."""


class WarnOnce:
    """Logs a warning the first time that its key comes up, and never again in its lifetime.

    There is an end to those of one kind, because what a stranger can choose, such as a tool's name, must not
    fill a log, nor silence what else there is to say.
    """

    def __init__(self) -> None:
        self._said: dict[str, set[str]] = {}

    def __call__(self, key: str, message: str, *values: Any, level: int = logging.WARNING) -> None:
        """Log `message % values`, unless there was a warning with this `key` before.

        Args:
            key: What it is about.
            message: What is said, which makes its kind.
            values: What is put into the message.
            level: The level that it is logged at.
        """
        said = self._said.setdefault(message, set())
        if key not in said and len(said) < _WARNINGS:
            said.add(key)
            logger.log(level, message, *values)
            if len(said) == _WARNINGS:
                logger.log(level, "these were %d warnings; no more of this kind are logged", _WARNINGS)
