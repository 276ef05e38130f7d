"""Checks of settings: each raises an error that names the setting, the culprit and what is possible."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import iscoroutinefunction
from math import isnan
from typing import Any


def check_count(setting: str, value: Any, *, at_least: int = 0, optional: bool = False) -> None:
    """Check that `value` is an integer of at least `at_least`, or `None` where that is `optional`."""
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{setting} must be an integer{' or None' if optional else ''}, got {value!r}")
    if value < at_least:
        raise ValueError(f"{setting} must be {at_least} or more, got {value}")


def check_number(setting: str, value: Any) -> None:
    """Check that `value` is a number or `None`."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{setting} must be a number or None, got {value!r} of type {type(value).__name__}")
    if isnan(value):
        raise ValueError(f"{setting} must be a number or None, got nan, which nothing compares with")


def check_timeout(setting: str, value: Any) -> None:
    """Check that `value` is a number of seconds, more than 0, or `None`."""
    check_number(setting, value)
    if value is not None and value <= 0:
        raise ValueError(f"{setting} must be more than 0 seconds, or None to wait, got {value!r}")


def check_flag(setting: str, value: Any) -> None:
    """Check that `value` is `True` or `False`."""
    if not isinstance(value, bool):
        raise TypeError(f"{setting} must be True or False, got {value!r}")


def check_type(setting: str, value: Any, kind: type, *, optional: bool = False) -> None:
    """Check that `value` is a `kind`, or `None` where that is `optional`."""
    if not (isinstance(value, kind) or (optional and value is None)):
        raise TypeError(
            f"{setting} takes {kind.__name__}(...){' or None' if optional else ''}, got {value!r}"
        )


def check_choice(setting: str, value: Any, known: Sequence[Any]) -> None:
    """Check that `value` is one of the `known` ones."""
    if value not in known:
        raise ValueError(f"{setting} must be one of {', '.join(map(repr, known))}, got {value!r}")


def check_function(setting: str, value: Any, takes: str) -> None:
    """Check that `value` is an ordinary function, or `None`."""
    if value is None:
        return
    if not callable(value):
        raise TypeError(f"{setting} must be a callable that takes {takes}, got {type(value).__name__}")
    if iscoroutinefunction(value):
        raise TypeError(f"{setting} must be an ordinary function, got a coroutine function")
