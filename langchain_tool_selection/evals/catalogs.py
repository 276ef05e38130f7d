"""Catalogues of tools, read from what people have: files of several formats, or a list in a module."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from langchain_tool_selection._tools.documents import ToolDocument, document_of
from langchain_tool_selection.evals._files import (
    FileError,
    kind_of,
    load_module,
    names_attribute,
    numbered_lines,
    parse_json,
    parse_lines,
    read_text,
    shortened,
)

CatalogError = FileError
"""A catalogue cannot be read. The message, one line, says where, why, and what to do."""

_SERVER_SECONDS = 60
"""How long an MCP server may take to start and list its tools; some fetch their package first."""

_Listed: TypeAlias = Callable[[Any, str], Coroutine[Any, Any, list[Any]]]
"""Asks an adapter's client for the tools of a server: for their descriptions, or to run them."""


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
    def characters(self) -> dict[str, int]:
        """How many characters each tool takes in a request, as an OpenAI tool in JSON."""
        return {tool["name"]: len(json.dumps(_as_sent(tool))) for tool in self.definitions}

    def tokens(self, names: Iterable[str] | None = None) -> int:
        """About how many tokens the named tools, or all, take: four characters each, as LangChain counts.

        Raises:
            KeyError: there is no such tool.
        """
        wanted = self.characters if names is None else names
        return -(-sum(self.characters[name] for name in wanted) // 4)


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


def read_tools(tools: str | Path | Iterable[Any], *, unique: bool | None = None) -> ToolSet:
    """Return tools as they are searched and as they are sent.

    Args:
        tools: A source as `load_catalog` takes it, or LangChain tools, functions, tool dicts of any provider,
            MCP tools or `ToolDocument`s. What a LangChain tool carries for search only (`examples`, `tags`)
            is in its document.
        unique: Whether two tools of one name are an error; by default in a file, and not in a list.

    Raises:
        CatalogError: something is no tool, or there is none at all; or a source cannot be read.
    """
    is_source = isinstance(tools, str | Path)
    source = str(tools) if is_source else "tools"
    if unique is None:
        unique = is_source
    in_file = is_source and not names_attribute(source)
    documents: dict[str, ToolDocument] = {}
    definitions, repeated = [], []
    for where, item in _located(tools, _described):
        definition, document = _read(where, item, in_file)
        name = definition["name"]
        if name not in documents:
            documents[name] = document
            definitions.append(definition)
            continue
        if unique:
            msg = f"{where}: there is another tool named {name!r} before it; rename one of them"
            raise FileError(msg)
        repeated.append((where, name))
    if not documents:
        msg = f"{source}: there are no tools in it"
        raise FileError(msg)
    return ToolSet(tuple(documents.values()), tuple(definitions), tuple(repeated))


def runnable_tools(tools: str | Path | Iterable[Any] | ToolSet) -> list[Any]:
    """Return the tools of a catalogue to run them: LangChain tools and functions.

    Args:
        tools: A list of these, `module:attribute` that names one, or an MCP configuration, whose servers are
            started or connected to, now and for each call.

    Raises:
        CatalogError: a source cannot be read, or nothing runs behind a tool in it.
    """
    found = []
    located = tools.definitions if isinstance(tools, ToolSet) else tools
    for where, item in _located(located, _connected):
        if isinstance(item, type) or not (callable(item) or hasattr(item, "invoke")):
            msg = (
                f"{where}: nothing runs behind {kind_of(item)}; to run tools, give LangChain tools as "
                "module:attribute, or an MCP configuration"
            )
            raise FileError(msg)
        found.append(item)
    return found


# -- where the entries are -----------------------------------------------------------------------------


def _located(tools: str | Path | Iterable[Any], listed: _Listed) -> Iterator[tuple[str, Any]]:
    if not isinstance(tools, str | Path):
        return ((f"tool {number}", tool) for number, tool in enumerate(tools, 1))
    source = str(tools)
    return _from_module(source) if names_attribute(source) else _from_text(source, _text(source), listed)


def _text(source: str) -> str:
    return read_text(source, instead="; give one, or a list of LangChain tools as module:attribute")


def _from_module(source: str) -> Iterator[tuple[str, Any]]:
    module, attribute = load_module(source)
    tools = getattr(module, attribute, None)
    if not isinstance(tools, list | tuple):
        lists = [name for name in dir(module) if isinstance(getattr(module, name), list | tuple)]
        public = [name for name in lists if not name.startswith("_")]
        msg = (
            f"{source}: {attribute!r} is no list of tools but {type(tools).__name__}"
            if hasattr(module, attribute)
            else f"{source}: the module has no {attribute!r}"
        )
        raise FileError(f"{msg}; its lists are: {', '.join(public) or 'none'}")
    for number, tool in enumerate(tools, 1):
        yield f"{source}, tool {number}", tool


def _from_text(source: str, text: str, listed: _Listed) -> Iterator[tuple[str, Any]]:
    lines = numbered_lines(text)
    if len(lines) > 1 and (source.endswith((".jsonl", ".ndjson")) or _is_object(lines[0][1])):
        yield from parse_lines(source, text)
        return
    whole = parse_json(source, text)
    if isinstance(whole, dict) and isinstance(whole.get("mcpServers"), dict):
        yield from _from_servers(source, whole["mcpServers"], listed)
    elif isinstance(whole, dict) and ("name" in whole or "function" in whole):
        yield f"{source}, line {lines[0][0]}", whole
    else:
        for number, item in enumerate(_array(source, whole), 1):
            yield f"{source}, tool {number}", item


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _array(source: str, whole: Any) -> Iterable[Any]:
    if isinstance(whole, dict) and isinstance(whole.get("result"), dict):
        whole = whole["result"]
    if isinstance(whole, dict) and isinstance(whole.get("tools"), list):
        if whole.get("nextCursor"):
            msg = f"{source}: field 'nextCursor' says that tools are missing; join all pages in one array"
            raise FileError(msg)
        return list(whole["tools"])
    if isinstance(whole, list):
        return whole
    keys = (
        f" with the fields {', '.join(map(repr, [*whole][:5]))}" if whole and isinstance(whole, dict) else ""
    )
    msg = (
        f"{source}: expected an array of tools, an object with one as 'tools', or a tool a line; "
        f"found {kind_of(whole)}{keys}"
    )
    raise FileError(msg)


def _from_servers(source: str, servers: Mapping[str, Any], listed: _Listed) -> Iterator[tuple[str, Any]]:
    try:
        from langchain_mcp_adapters.client import MultiServerMCPClient  # noqa: PLC0415  # optional
    except ImportError as error:
        msg = (
            f"{source}: an MCP configuration needs the package langchain-mcp-adapters; "
            "install it with: pip install 'langchain-tool-selection[mcp]'"
        )
        raise FileError(msg) from error
    for server, spec in servers.items():
        where = f"{source}, server {server!r}"
        if not isinstance(spec, dict):
            msg = f"{where}: expected an object with 'command' or 'url', found {kind_of(spec)}"
            raise FileError(msg)
        try:
            client = MultiServerMCPClient({server: _connection(spec)})
            tools = asyncio.run(asyncio.wait_for(listed(client, server), _SERVER_SECONDS))
        except Exception as error:
            msg = f"{where}: its tools cannot be listed: {shortened(error)}"
            raise FileError(msg) from error
        for number, tool in enumerate(tools, 1):
            yield f"{where}, tool {number}", tool


def _connection(spec: Mapping[str, Any]) -> Any:
    """Return a server of a configuration in the adapters' terms, which have the transport spelled out."""
    kept = {key: value for key, value in spec.items() if key not in ("type", "disabled")}
    if "command" in spec:
        return {"args": [], **kept, "transport": "stdio"}
    kind = spec.get("transport") or spec.get("type") or "streamable_http"
    return {**kept, "transport": "streamable_http" if kind == "http" else kind}


async def _described(client: Any, server: str) -> list[Any]:
    tools, cursor = list[Any](), None
    async with client.session(server) as session:
        while True:
            page = await session.list_tools(cursor)
            fields = {"name", "description", "inputSchema"}
            tools += [
                {**tool.model_dump(mode="json", include=fields), "domain": server} for tool in page.tools
            ]
            cursor = page.nextCursor
            if not cursor:
                return tools


async def _connected(client: Any, server: str) -> list[Any]:
    tools: list[Any] = await client.get_tools(server_name=server)
    return tools


# -- what an entry is ----------------------------------------------------------------------------------


def _read(where: str, item: Any, in_file: bool) -> tuple[dict[str, Any], ToolDocument]:
    if isinstance(item, ToolDocument):
        return _definition(where, _plain(item)), item
    if in_file or isinstance(item, Mapping):
        definition = _definition(where, item)
        return definition, document_of(definition)
    if hasattr(item, "inputSchema"):  # MCP's own class
        plain = {"name": item.name, "description": item.description, "inputSchema": item.inputSchema}
        return _definition(where, plain), document_of(item)
    from langchain_core.utils.function_calling import convert_to_openai_function  # noqa: PLC0415  # slow

    try:
        function = convert_to_openai_function(item)
        document = document_of(item if hasattr(item, "name") else function)
    except Exception as error:
        msg = f"{where}: {type(item).__name__} is no tool to LangChain: {shortened(error)}"
        raise FileError(msg) from error
    return _definition(where, {**function, "domain": document.domain}), document


def _plain(document: ToolDocument) -> dict[str, Any]:
    texts = {name: {"type": "string", "description": text} for name, text in document.parameters}
    return {
        "name": document.name,
        "description": document.description,
        "parameters": {"type": "object", "properties": texts},
        "domain": document.domain,
    }


def _definition(where: str, item: Any) -> dict[str, Any]:
    if not isinstance(item, Mapping):
        msg = f"{where}: expected an object with 'name' and 'description', found {kind_of(item)}"
        raise FileError(msg)
    function = item.get("function")
    fields = function if isinstance(function, Mapping) else item
    name = _field(where, fields, "name", str)
    if not name:
        msg = f"{where}: field 'name' is missing or empty; each tool needs one, as the model calls it"
        raise FileError(msg)
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
        msg = f"{where}: field {key!r} must be {expected}, found {kind_of(value)}"
        raise FileError(msg)
    return value


def _as_sent(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = {key: tool[key] for key in ("name", "description", "parameters")}
    return {"type": "function", "function": function}
