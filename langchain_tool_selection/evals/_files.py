"""Files that people hand in, read so that what is wrong with one can be said in a line: file, line, field."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

MAX_BYTES = 100_000_000
"""Larger files are refused before they are parsed: 10,000 tools are 20 MB, and a wrong file may be a disk."""

_ATTRIBUTE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


class FileError(ValueError):
    """A file or module cannot be used. The message, one line, says where, why, and what to do."""

    def __init__(self, *parts: str) -> None:
        super().__init__(": ".join(parts))


def read_text(source: str, *, instead: str = "") -> str:
    """Return the text of a file in UTF-8, with or without a byte order mark.

    Args:
        source: Its path.
        instead: What else could be given, for the error about a file that is not there.

    Raises:
        FileError: there is none, it is empty, too large, or in another encoding.
    """
    try:
        with Path(source).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise FileError(source, f"no such file{instead}") from error
    except (OSError, ValueError) as error:
        raise FileError(source, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > MAX_BYTES:
        most = f"{MAX_BYTES // 1_000_000} MB"
        raise FileError(source, f"the file is larger than {most}; split it, or give the right one")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        why = f"byte 0x{data[error.start]:02x} is no UTF-8; save the file as UTF-8"
        raise FileError(f"{source}, line {line}", why) from error
    if not text.strip():
        raise FileError(source, "the file is empty")
    return text


def numbered_lines(text: str) -> list[tuple[int, str]]:
    """Return the lines that are not blank, with their numbers.

    Lines end where JSON lines end, so that a line separator inside a string is none.
    """
    return [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def parse_json(source: str, text: str, first_line: int = 1) -> Any:
    """Return the value of a JSON text.

    Args:
        source: The file that it is from.
        text: The JSON.
        first_line: The line of the file on which it begins.

    Raises:
        FileError: it is no JSON, or it nests too deep.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        cut = not text[error.pos :].strip() or error.msg.startswith("Unterminated string")
        why = "the JSON ends too early" if cut else f"no JSON: {error.msg}"
        where = f"{source}, line {line}, column {error.colno}"
        raise FileError(where, f"{why}; write the file anew or repair it") from error
    except (ValueError, RecursionError) as error:  # a number too long, or brackets too deep
        why = f"the JSON cannot be read: {shortened(error)}"
        raise FileError(f"{source}, line {first_line}", why) from error


def parse_lines(source: str, text: str) -> Iterator[tuple[str, Any]]:
    """Yield where each line of JSON lines stands, and its value.

    Raises:
        FileError: as `parse_json`.
    """
    for number, line in numbered_lines(text):
        yield f"{source}, line {number}", parse_json(source, line, number)


def numbered(what: str, items: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Yield where each item stands, counted from 1, and the item."""
    yield from ((f"{what} {number}", item) for number, item in enumerate(items, 1))


def field_of(where: str, fields: Mapping[str, Any], key: str, kind: type, expected: str) -> Any:
    """Return a field of an object, or `None` if it has none.

    Raises:
        FileError: it is of another type.
    """
    value = fields.get(key)
    if value is not None and not isinstance(value, kind):
        raise FileError(where, f"field {key!r} must be {expected}, found {kind_of(value)}")
    return value


def names_attribute(source: str) -> bool:
    """Whether a source has the form `module:attribute` and is no file."""
    return bool(_ATTRIBUTE.fullmatch(source)) and not Path(source).exists()


def load_module(source: str) -> tuple[Any, str]:
    """Return the module and the attribute's name of `module:attribute`.

    The module is imported, from the current folder too.

    Raises:
        FileError: importing it fails.
    """
    module_name, _, attribute = source.partition(":")
    _search_current_folder()
    try:
        return import_module(module_name), attribute
    except (Exception, SystemExit) as error:
        raise FileError(source, f"importing {module_name!r} failed with {shortened(error)}") from error


def names_module(source: str) -> bool:
    """Whether the module of `module:attribute` is there; it is not imported."""
    _search_current_folder()
    return find_spec(source.partition(":")[0].partition(".")[0]) is not None


def _search_current_folder() -> None:
    folder = str(Path.cwd())
    if folder not in sys.path:  # as `python -m` has it; an installed command does not
        sys.path.insert(0, folder)


def kind_of(value: Any) -> str:
    """Return what a JSON value is, for an error."""
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)


def shortened(error: BaseException) -> str:
    """Return an exception as one line of at most 200 characters; of a group, what it was first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
