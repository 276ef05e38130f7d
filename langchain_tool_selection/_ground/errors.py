"""Errors that end a run, and those that do not."""

from __future__ import annotations

import asyncio


def ends_the_run(error: BaseException) -> bool:
    """Whether an error says that the run itself was cancelled.

    A service that shares its work among runs may cancel that, too, and then only its answer is missing.
    """
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
