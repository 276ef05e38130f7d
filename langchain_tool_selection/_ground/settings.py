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
        msg = f"{setting} must be an integer{' or None' if optional else ''}, got {value!r}"
        raise TypeError(msg)
    if value < at_least:
        msg = f"{setting} must be {at_least} or more, got {value}"
        raise ValueError(msg)


def check_number(setting: str, value: Any) -> None:
    """Check that `value` is a number or `None`."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        msg = f"{setting} must be a number or None, got {value!r} of type {type(value).__name__}"
        raise TypeError(msg)
    if isnan(value):
        msg = f"{setting} must be a number or None, got nan, which nothing compares with"
        raise ValueError(msg)


def check_budget(value: Any) -> None:
    """Check `token_budget`: a number of tokens, a share, or `None`."""
    check_number("token_budget", value)
    is_share = isinstance(value, float) and 0 < value < 1
    if value is not None and not is_share and not (isinstance(value, int) and value > 0):
        msg = f"token_budget must be a share between 0 and 1 or a whole number of tokens, got {value!r}"
        raise ValueError(msg)


def check_timeout(value: Any) -> None:
    """Check `ranker_timeout`: seconds, more than 0, or `None`."""
    check_number("ranker_timeout", value)
    if value is not None and value <= 0:
        msg = f"ranker_timeout must be more than 0 seconds, or None to wait, got {value!r}"
        raise ValueError(msg)


def check_type(setting: str, value: Any, kind: type) -> None:
    """Check that `value` is a `kind`, or `None`."""
    if value is not None and not isinstance(value, kind):
        msg = f"{setting} takes {kind.__name__}(...) or None, got {value!r}"
        raise TypeError(msg)


def check_choice(setting: str, value: Any, known: Sequence[Any]) -> None:
    """Check that `value` is one of the `known` ones."""
    if value not in known:
        msg = f"{setting} must be one of {', '.join(map(repr, known))}, got {value!r}"
        raise ValueError(msg)


def check_function(setting: str, value: Any, takes: str) -> None:
    """Check that `value` is an ordinary function, or `None`."""
    if value is None:
        return
    if not callable(value):
        msg = f"{setting} must be a callable that takes {takes}, got {type(value).__name__}"
        raise TypeError(msg)
    if iscoroutinefunction(value):
        msg = f"{setting} must be an ordinary function, got a coroutine function"
        raise TypeError(msg)
