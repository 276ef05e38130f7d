"""What ranking knows of a tool: `ToolDocument`, read from every shape that tools come in.

Reading is cheap by contract. Asking LangChain for a tool's JSON schema costs milliseconds a tool, so
parameters come from `model_fields` or from the schema dict as it stands, never from a schema getter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import getclosurevars, isfunction
from typing import Any, get_origin

from langchain_tool_selection._ground.digest import digest
from langchain_tool_selection._tools.shapes import description_of, mapping_of, required_name_of, schema_of


@dataclass(frozen=True)
class ToolDocument:
    """The text of one tool, as rankers see it. Never sent to a model.

    Attributes:
        name: The tool's name, as the model would call it.
        description: The tool's own description, whole.
        parameters: `(name, description)` of each top-level parameter, in the schema's order.
        examples: Requests that this tool answers, in users' words.
        tags: Words that people use for it and the description does not.
        domain: The server or group that the tool belongs to; empty where unknown.
    """

    name: str
    description: str = ""
    parameters: tuple[tuple[str, str], ...] = ()
    examples: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    domain: str = ""

    def __hash__(self) -> int:
        # Catalogues of thousands of documents are looked up by their documents at every model call.
        return hash(self.fingerprint)

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits over everything above: equal text, equal fingerprint, in every process."""
        return digest(
            repr((self.name, self.description, self.parameters, self.examples, self.tags, self.domain))
        )

    @property
    def input_schema(self) -> dict[str, Any]:
        """The parameters as a JSON schema. A document knows no types, so each parameter is a string."""
        texts = {name: {"type": "string", "description": text} for name, text in self.parameters}
        return {"type": "object", "properties": texts}


@dataclass(frozen=True)
class ToolHints:
    """What a tool is searched by beside its own text. Indexed, never sent to a model.

    A tool may carry its own hints, under `examples`, `tags` and `domain` in its `extras` or `metadata`
    and as its `tags`; these are for tools that others wrote.

    Attributes:
        examples: Requests that this tool answers, in users' words.
        tags: Words that people use for it and its description does not.
        domain: The server or group that the tool belongs to; empty leaves what the tool says.
    """

    examples: Sequence[str] = ()
    tags: Sequence[str] = ()
    domain: str = ""


def with_hints(document: ToolDocument, hints: ToolHints | None) -> ToolDocument:
    """Return a document with hints added to its own."""
    if hints is None:
        return document
    return replace(
        document,
        examples=document.examples + tuple(hints.examples),
        tags=document.tags + tuple(hints.tags),
        domain=hints.domain or document.domain,
    )


def index_text(document: ToolDocument) -> str:
    """Return what of a tool is indexed, one field a line, for people who wonder why it is not found."""
    parameters = ", ".join(f"{name} ({text})" if text else name for name, text in document.parameters)
    fields = [("name", document.name), ("domain", document.domain), ("description", document.description)]
    fields += [("parameters", parameters), ("examples", "; ".join(document.examples))]
    fields += [("tags", ", ".join(document.tags))]
    return "\n".join(f"{field}: {text}" for field, text in fields if text)


def document_of(tool: Any) -> ToolDocument:
    """Return the document of a tool of any kind.

    Args:
        tool: A `ToolDocument` (returned as it is), a LangChain tool, an MCP tool, an OpenAI or
            Anthropic tool dict, or anything else with a name and a description.

    Raises:
        TypeError: `tool` has no name.
    """
    if isinstance(tool, ToolDocument):
        return tool
    hints = _hints(tool)
    return ToolDocument(
        name=required_name_of(tool),
        description=description_of(tool),
        parameters=tuple(_parameters(schema_of(tool))),
        examples=_strings(hints.get("examples")),
        tags=_strings(getattr(tool, "tags", None)) + _strings(hints.get("tags")),
        domain=_domain(tool, hints),
    )


def content_key(tool: Any) -> tuple[Any, ...]:
    """Return a key that changes whenever `document_of(tool)` may change; costs well under 1 µs.

    The schema and the metadata count by identity, because they are expensive to compare, so the caller
    must keep them alive for as long as it keeps the key.
    """
    return (
        tool.name,
        tool.description,
        id(tool.args_schema),
        repr(tool.extras) if tool.extras else None,
        id(tool.metadata),
        tuple(tool.tags) if tool.tags else None,
        type(tool),
    )


def _parameters(schema: Any) -> Iterable[tuple[str, str]]:
    if isinstance(schema, dict):
        for name, spec in mapping_of(schema.get("properties")).items():
            text = mapping_of(spec).get("description")
            yield str(name), text if isinstance(text, str) else ""
        return
    # pydantic 2 models have model_fields; a pydantic 1 model, still allowed as args_schema, __fields__
    is_pydantic_2 = hasattr(schema, "model_fields")
    fields = schema.model_fields if is_pydantic_2 else getattr(schema, "__fields__", None)
    for name, field in mapping_of(fields).items():
        if not _is_injected(field):
            info = getattr(field, "field_info", field)
            yield str(name), getattr(info, "description", None) or ""


def _is_injected(field: Any) -> bool:
    # The runtime, state or store that LangGraph passes in is no parameter to the model.
    marks = [getattr(field, "annotation", None), *getattr(field, "metadata", ())]
    kinds = (get_origin(mark) or mark for mark in marks)
    types = (kind if isinstance(kind, type) else type(kind) for kind in kinds)
    # By name, because the base of `ToolRuntime` is private to LangChain.
    return any("InjectedToolArg" in base.__name__ for type_ in types for base in type_.__mro__)


def _hints(tool: Any) -> dict[str, Any]:
    """Merge what a tool carries for search only: its `metadata`, then its `extras`."""
    domain = mapping_of(tool).get("domain")
    said = {"domain": domain} if isinstance(domain, str) else {}
    return {
        **mapping_of(getattr(tool, "metadata", None)),
        **mapping_of(getattr(tool, "extras", None)),
        **said,
    }


def _domain(tool: Any, hints: Mapping[str, Any]) -> str:
    extras = mapping_of(getattr(tool, "extras", None))
    server = mapping_of(mapping_of(hints.get("mcp")).get("server"))
    # What a user says comes before what the metadata says, where a server can write what it likes.
    said = (extras.get("domain"), _connection(tool), hints.get("domain"), server.get("name"))
    return next((domain for domain in said if isinstance(domain, str) and domain), "")


def _connection(tool: Any) -> Any:
    """Return the name of the server in `MultiServerMCPClient`, for a tool of langchain-mcp-adapters.

    No field of the tool has it. The function that calls the server does.
    """
    function = getattr(tool, "coroutine", None)
    if not isfunction(function) or function.__module__ != "langchain_mcp_adapters.tools":
        return None
    return getclosurevars(function).nonlocals.get("server_name")


def _strings(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Iterable) and not isinstance(value, Mapping):
        return tuple(item for item in value if isinstance(item, str))
    return ()
