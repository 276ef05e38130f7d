"""Catalogues of tools, read from what people have: files of several formats, or a list in a module."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from langchain_tool_selection._tools import shapes
from langchain_tool_selection._tools.documents import ToolDocument, document_of
from langchain_tool_selection._tools.tokens import approximate_tokens, characters_of
from langchain_tool_selection.evals import _files
from langchain_tool_selection.evals._files import FileError, field_of, kind_of, numbered, shortened

CatalogError = FileError
"""A catalogue cannot be read. The message, one line, says where, why, and what to do."""

_SERVER_SECONDS = 60
"""How long an MCP server may take to start and list its tools; some fetch their package first."""


@dataclass(frozen=True, eq=False)
class ToolSet:
    """Tools as they are searched and as they are sent, in their order; of two with one name the first.

    Attributes:
        documents: What is indexed of each.
        definitions: `name`, `description`, `parameters` (a JSON schema), and `domain` where known, of each.
        repeated: For each later tool of a name that was there before: where it stands, and the name.
    """

    documents: tuple[ToolDocument, ...]
    definitions: tuple[dict[str, Any], ...]
    repeated: tuple[tuple[str, str], ...] = ()

    @cached_property
    def names(self) -> list[str]:
        """The names of the tools."""
        return [document.name for document in self.documents]

    @cached_property
    def characters(self) -> dict[str, int]:
        """How many characters each tool takes in a request, as an OpenAI tool in JSON."""
        keys = ("name", "description", "parameters")
        sent = ({key: tool[key] for key in keys} for tool in self.definitions)
        return {tool["name"]: characters_of(shapes.openai_tool(tool)) for tool in sent}

    def tokens(self, names: Iterable[str] | None = None) -> int:
        """About how many tokens the named tools, or all, take.

        Raises:
            KeyError: there is no such tool.
        """
        wanted = self.characters if names is None else names
        return sum(approximate_tokens(self.characters[name]) for name in wanted)


Tools: TypeAlias = str | Path | Iterable[Any] | ToolSet
"""A catalogue, as `read_tools` takes it."""

Progress: TypeAlias = Callable[[int], None]
"""Is called with the number of what is done."""


def load_catalog(source: str) -> list[dict[str, Any]]:
    """Return the tools of a catalogue, in its order.

    Args:
        source: A file in UTF-8, or `module:attribute`, which names a list of LangChain tools; the module
            is imported, from the current folder too. A file holds a JSON array of tools, an object with
            such an array as `tools` (what MCP's `tools/list` returns, its JSON-RPC envelope or not), or
            one tool a line. A tool is an object with `name`, `description`, a JSON schema as
            `parameters`, `input_schema` or `inputSchema`, and perhaps its `domain`; or the same as
            `function` of an object, as OpenAI has it. Or a file is an MCP configuration, an object with
            `mcpServers`: its servers are started or connected to, and asked for their tools.

    Returns:
        `name`, `description` (empty if it has none), `parameters` (a JSON schema), and `domain` where known:
        that of an MCP configuration's tool is its server.

    Raises:
        CatalogError: there is no such file or list, or something in it is no tool.
    """
    return list(read_tools(source).definitions)


def read_tools(tools: Tools, *, unique: bool | None = None) -> ToolSet:
    """Return tools as they are searched and as they are sent.

    Args:
        tools: A source as `load_catalog` takes it, or LangChain tools, functions, tool dicts of any provider,
            MCP tools or `ToolDocument`s. What a LangChain tool carries for search only (`examples`, `tags`)
            is in its document. A `ToolSet` is returned as it is.
        unique: Whether two tools of one name are an error; by default in a file, and not in a list.

    Raises:
        CatalogError: something is no tool, or there is none at all; or a source cannot be read.
    """
    if isinstance(tools, ToolSet):
        return tools
    is_source = isinstance(tools, str | Path)
    source = str(tools) if is_source else "tools"
    in_file = is_source and not _files.names_attribute(source)
    found: dict[str, tuple[ToolDocument, dict[str, Any]]] = {}
    repeated = []
    for where, item in _located(tools):
        document, definition = _read(where, item, in_file)
        name = definition["name"]
        if name not in found:
            found[name] = document, definition
        elif is_source if unique is None else unique:
            raise FileError(where, f"there is another tool named {name!r} before it; rename one of them")
        else:
            repeated.append((where, name))
    if not found:
        raise FileError(source, "there are no tools in it")
    documents, definitions = zip(*found.values(), strict=True)
    return ToolSet(documents, definitions, tuple(repeated))


def runnable_tools(tools: Tools) -> list[Any]:
    """Return the tools of a catalogue to run them: LangChain tools and functions.

    Args:
        tools: A list of these, `module:attribute` that names one, or an MCP configuration, whose servers are
            started or connected to, now and for each call.

    Raises:
        CatalogError: a source cannot be read, or nothing runs behind a tool in it.
    """
    found = []
    for where, item in _located(tools.definitions if isinstance(tools, ToolSet) else tools, to_run=True):
        if isinstance(item, type) or not (callable(item) or hasattr(item, "invoke")):
            instead = "to run tools, give LangChain tools as module:attribute, or an MCP configuration"
            raise FileError(where, f"nothing runs behind {kind_of(item)}; {instead}")
        found.append(item)
    return found


# -- where the entries are -----------------------------------------------------------------------------


def _located(tools: str | Path | Iterable[Any], to_run: bool = False) -> Iterator[tuple[str, Any]]:
    """Return each entry with where it stands; of MCP servers their tools to run, or what describes them."""
    if not isinstance(tools, str | Path):
        return numbered("tool", tools)
    source = str(tools)
    if _files.names_attribute(source):
        return numbered(f"{source}, tool", _from_module(source))
    text = _files.read_text(source, instead="; give one, or a list of LangChain tools as module:attribute")
    return _from_text(source, text, to_run)


def _from_module(source: str) -> Iterable[Any]:
    module, attribute = _files.load_module(source)
    tools = getattr(module, attribute, None)
    if isinstance(tools, list | tuple):
        return tools
    wrong = f"the module has no {attribute!r}"
    if hasattr(module, attribute):
        wrong = f"{attribute!r} is no list of tools but {type(tools).__name__}"
    lists = [name for name, value in sorted(vars(module).items()) if isinstance(value, list | tuple)]
    public = ", ".join(name for name in lists if not name.startswith("_"))
    raise FileError(source, f"{wrong}; its lists are: {public or 'none'}")


def _from_text(source: str, text: str, to_run: bool) -> Iterator[tuple[str, Any]]:
    lines = _files.numbered_lines(text)
    if len(lines) > 1 and (source.endswith((".jsonl", ".ndjson")) or _is_object(lines[0][1])):
        return _files.parse_lines(source, text)
    whole = _files.parse_json(source, text)
    if isinstance(whole, dict) and isinstance(whole.get("mcpServers"), dict):
        return _from_servers(source, whole["mcpServers"], to_run)
    if isinstance(whole, dict) and ("name" in whole or "function" in whole):
        return iter([(f"{source}, line {lines[0][0]}", whole)])
    return numbered(f"{source}, tool", _array(source, whole))


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _array(source: str, whole: Any) -> list[Any]:
    if isinstance(whole, dict) and isinstance(whole.get("result"), dict):
        whole = whole["result"]
    if isinstance(whole, list):
        return whole
    fields = whole if isinstance(whole, dict) else {}
    if not isinstance(fields.get("tools"), list):
        keys = f" with the fields {', '.join(map(repr, [*fields][:5]))}" if fields else ""
        expected = "expected an array of tools, an object with one as 'tools', or a tool a line"
        raise FileError(source, f"{expected}; found {kind_of(whole)}{keys}")
    if fields.get("nextCursor"):
        raise FileError(source, "field 'nextCursor' says that tools are missing; join all pages in one array")
    return list(fields["tools"])


def _from_servers(source: str, servers: Mapping[str, Any], to_run: bool) -> Iterator[tuple[str, Any]]:
    try:
        from langchain_mcp_adapters.client import MultiServerMCPClient  # noqa: PLC0415  # optional
    except ImportError as error:
        install = "install it with: pip install 'langchain-tool-selection[mcp]'"
        needed = "an MCP configuration needs the package langchain-mcp-adapters"
        raise FileError(source, f"{needed}; {install}") from error
    for server, spec in servers.items():
        where = f"{source}, server {server!r}"
        if not isinstance(spec, dict):
            raise FileError(where, f"expected an object with 'command' or 'url', found {kind_of(spec)}")
        try:
            listing = MultiServerMCPClient({server: _connection(spec)}).get_tools(server_name=server)
            tools = asyncio.run(asyncio.wait_for(listing, _SERVER_SECONDS))
        except Exception as error:
            raise FileError(where, f"its tools cannot be listed: {shortened(error)}") from error
        yield from numbered(f"{where}, tool", tools if to_run else [_described(t, server) for t in tools])


def _connection(spec: Mapping[str, Any]) -> Any:
    """Return a server of a configuration in the adapters' terms, which have the transport spelled out."""
    kept = {key: value for key, value in spec.items() if key not in ("type", "disabled")}
    if "command" in spec:
        return {"args": [], **kept, "transport": "stdio"}
    kind = spec.get("transport") or spec.get("type") or "streamable_http"
    return {**kept, "transport": "streamable_http" if kind == "http" else kind}


def _described(tool: Any, server: str) -> dict[str, Any]:
    says = {"name": tool.name, "description": tool.description, "inputSchema": tool.args_schema}
    return {**says, "domain": server}


# -- what an entry is ----------------------------------------------------------------------------------


def _read(where: str, item: Any, in_file: bool) -> tuple[ToolDocument, dict[str, Any]]:
    if in_file or isinstance(item, Mapping):
        definition = _definition(where, item)
        return document_of(definition), definition
    try:
        tool = shapes.as_openai_tool(item)
        document = document_of(item if shapes.name_of(item) else tool)
    except Exception as error:
        what = f"{type(item).__name__} is no tool to LangChain: {shortened(error)}"
        raise FileError(where, what) from error
    return document, _definition(where, {**tool, "domain": document.domain})


def _definition(where: str, item: Any) -> dict[str, Any]:
    if not isinstance(item, Mapping):
        raise FileError(where, f"expected an object with 'name' and 'description', found {kind_of(item)}")
    fields = shapes.unwrapped(item)
    name = field_of(where, fields, "name", str, "a string")
    if not name:
        raise FileError(where, "field 'name' is missing or empty; each tool needs one, as the model calls it")
    where = f"{where} ({name!r})"
    schemas = (field_of(where, fields, key, dict, "an object, a JSON schema") for key in shapes.SCHEMA_KEYS)
    tool = {
        "name": name,
        "description": field_of(where, fields, "description", str, "a string") or "",
        "parameters": next(filter(None, schemas), {"type": "object", "properties": {}}),
    }
    domain = field_of(where, item, "domain", str, "a string")
    return {**tool, "domain": domain} if domain else tool
