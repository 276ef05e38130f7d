"""Catalogues of tools, read from what people have: files of several formats, or a list in a module."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from langchain_tool_selection._documents import document_of

_ATTRIBUTE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


class CatalogError(ValueError):
    """A catalogue cannot be read. The message, one line, says where, why, and what to do."""


def load_catalog(source: str) -> list[dict[str, Any]]:
    """Return the tools of a catalogue, in its order.

    Args:
        source: A file in UTF-8, or `module:attribute`, which names a list of LangChain tools; the module
            is imported, from the current folder too. A file holds a JSON array of tools, an object with
            such an array as `tools` (what MCP's `tools/list` returns, its JSON-RPC envelope or not), or
            one tool a line. A tool is an object with `name`, `description`, a JSON schema as
            `parameters`, `input_schema` or `inputSchema`, and perhaps its `domain`; or the same as
            `function` of an object, as OpenAI has it.

    Returns:
        `name`, `description` (empty if it has none), `parameters` (a JSON schema), and `domain` where known.

    Raises:
        CatalogError: there is no such file or list, or something in it is no tool.
    """
    if _ATTRIBUTE.fullmatch(source) and not Path(source).exists():
        located = _from_module(source)
    else:
        located = _from_text(source, _read(source))
    tools: dict[str, dict[str, Any]] = {}
    for where, item in located:
        tool = _tool(where, item)
        if tool["name"] in tools:
            msg = f"{where}: there is another tool named {tool['name']!r} before it; rename one of them"
            raise CatalogError(msg)
        tools[tool["name"]] = tool
    if not tools:
        msg = f"{source}: there are no tools in it"
        raise CatalogError(msg)
    return list(tools.values())


# -- where the entries are -----------------------------------------------------------------------------


def _from_module(source: str) -> Iterator[tuple[str, Any]]:
    from langchain_core.utils.function_calling import convert_to_openai_function  # noqa: PLC0415  # slow

    module_name, _, attribute = source.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:  # as `python -m` has it; an installed command does not
        sys.path.insert(0, folder)
    try:
        module = import_module(module_name)
    except (Exception, SystemExit) as error:
        msg = f"{source}: importing {module_name!r} failed with {_short(error)}"
        raise CatalogError(msg) from error
    tools = getattr(module, attribute, None)
    if not isinstance(tools, list | tuple):
        lists = [name for name in dir(module) if isinstance(getattr(module, name), list | tuple)]
        public = [name for name in lists if not name.startswith("_")]
        msg = (
            f"{source}: {attribute!r} is no list of tools but {type(tools).__name__}"
            if hasattr(module, attribute)
            else f"{source}: the module has no {attribute!r}"
        )
        raise CatalogError(f"{msg}; its lists are: {', '.join(public) or 'none'}")
    for number, tool in enumerate(tools, 1):
        where = f"{source}, tool {number}"
        if isinstance(tool, Mapping):
            yield where, tool
            continue
        try:
            function = convert_to_openai_function(tool)
            domain = document_of(tool).domain if hasattr(tool, "name") else ""
        except Exception as error:
            msg = f"{where}: {type(tool).__name__} is no tool to LangChain: {_short(error)}"
            raise CatalogError(msg) from error
        yield where, {**function, "domain": domain}


def _read(source: str) -> str:
    try:
        data = Path(source).read_bytes()
    except FileNotFoundError as error:
        msg = f"{source}: no such file; give one, or a list of LangChain tools as module:attribute"
        raise CatalogError(msg) from error
    except (OSError, ValueError) as error:
        msg = f"{source}: cannot be read: {getattr(error, 'strerror', None) or error}"
        raise CatalogError(msg) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        msg = f"{source}, line {line}: byte 0x{data[error.start]:02x} is no UTF-8; save the file as UTF-8"
        raise CatalogError(msg) from error
    if not text.strip():
        msg = f"{source}: the file is empty"
        raise CatalogError(msg)
    return text


def _from_text(source: str, text: str) -> Iterator[tuple[str, Any]]:
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if len(lines) > 1 and (source.endswith((".jsonl", ".ndjson")) or _is_object(lines[0][1])):
        for number, line in lines:
            yield f"{source}, line {number}", _parse(source, line, number)
        return
    whole = _parse(source, text, 1)
    if isinstance(whole, dict) and ("name" in whole or "function" in whole):
        yield f"{source}, line {lines[0][0]}", whole
        return
    for number, item in enumerate(_array(source, whole), 1):
        yield f"{source}, tool {number}", item


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _parse(source: str, text: str, first_line: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        cut = not text[error.pos :].strip() or error.msg.startswith("Unterminated string")
        why = "the JSON ends too early" if cut else f"no JSON: {error.msg}"
        msg = f"{source}, line {line}, column {error.colno}: {why}; write the file anew or repair it"
    except (ValueError, RecursionError) as error:  # a number too long, or brackets too deep
        msg = f"{source}, line {first_line}: the JSON cannot be read: {_short(error)}"
    raise CatalogError(msg)


def _array(source: str, whole: Any) -> Iterable[Any]:
    if isinstance(whole, dict) and isinstance(whole.get("result"), dict):
        whole = whole["result"]
    if isinstance(whole, dict) and isinstance(whole.get("tools"), list):
        if whole.get("nextCursor"):
            msg = f"{source}: field 'nextCursor' says that tools are missing; join all pages in one array"
            raise CatalogError(msg)
        return list(whole["tools"])
    if isinstance(whole, list):
        return whole
    keys = (
        f" with the fields {', '.join(map(repr, [*whole][:5]))}" if whole and isinstance(whole, dict) else ""
    )
    msg = (
        f"{source}: expected an array of tools, an object with one as 'tools', or a tool a line; "
        f"found {_kind(whole)}{keys}"
    )
    raise CatalogError(msg)


# -- what an entry is ----------------------------------------------------------------------------------


def _tool(where: str, item: Any) -> dict[str, Any]:
    if not isinstance(item, Mapping):
        msg = f"{where}: expected an object with 'name' and 'description', found {_kind(item)}"
        raise CatalogError(msg)
    function = item.get("function")
    fields = function if isinstance(function, Mapping) else item
    name = _field(where, fields, "name", str)
    if not name:
        msg = f"{where}: field 'name' is missing or empty; each tool needs one, as the model calls it"
        raise CatalogError(msg)
    where = f"{where} ({name!r})"
    schemas = (_field(where, fields, key, dict) for key in ("parameters", "input_schema", "inputSchema"))
    tool = {
        "name": name,
        "description": _field(where, fields, "description", str) or "",
        "parameters": next(filter(None, schemas), {"type": "object", "properties": {}}),
    }
    domain = _field(where, item, "domain", str)
    return {**tool, "domain": domain} if domain else tool


def _field(where: str, fields: Mapping[str, Any], key: str, type_: type[str] | type[dict[str, Any]]) -> Any:
    value = fields.get(key)
    if value is not None and not isinstance(value, type_):
        expected = "a string" if type_ is str else "an object, a JSON schema"
        msg = f"{where}: field {key!r} must be {expected}, found {_kind(value)}"
        raise CatalogError(msg)
    return value


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)


def _short(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
