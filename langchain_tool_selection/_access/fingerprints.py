"""Fingerprints of tools, and whether a tool whose definition changed may be used."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from langchain_core.tools import BaseTool

from langchain_tool_selection._tools.documents import content_key, document_of


def fingerprint_of(tool: Any) -> str:
    """Return 32 hex digits over a tool's whole definition, the same in every process.

    Over all that a model or a rule could be misled by: name, description, the schema with every nested
    description, value and default, the domain, tags and examples that the tool itself says it has, and its
    metadata, such as the hint of a server that a tool only reads. What `hints=` adds does not count.

    Raises:
        TypeError: `tool` has no name, or a schema that is no JSON.
    """
    # What came from a server is JSON. Anything else in the metadata came with the user's code.
    metadata = json.dumps(
        getattr(tool, "metadata", None), sort_keys=True, default=lambda one: type(one).__name__
    )
    definition = json.dumps([document_of(tool).fingerprint, _definition(tool), metadata], sort_keys=True)
    return hashlib.blake2b(definition.encode(), digest_size=16).hexdigest()


def _definition(tool: Any) -> Any:
    if isinstance(tool, Mapping):
        return dict(tool)
    if not isinstance(tool, BaseTool):
        return getattr(tool, "inputSchema", None)  # a tool of MCP's own
    # Not as LangChain converts it for a provider, which may change with its version.
    schema = tool.tool_call_schema
    if isinstance(schema, Mapping):
        return dict(schema)
    return schema.model_json_schema() if hasattr(schema, "model_json_schema") else schema.schema()


class Fingerprints(dict[str, str]):
    """The fingerprints that were approved, by tool name.

    Args:
        approved: What `fingerprint_of` gave for each tool.
    """

    def __init__(self, approved: Mapping[str, str]) -> None:
        super().__init__(approved)
        self._found: dict[str, tuple[Any, ...]] = {}  # by name: what was hashed last, and what it came to

    def of(self, name: str, tool: Any) -> str:
        """Return a tool's fingerprint; hashed once for as long as the tool stays the same.

        Raises:
            TypeError: the tool has a schema that is no JSON.
        """
        if not isinstance(tool, BaseTool):
            return fingerprint_of(tool)
        key, last = content_key(tool), self._found.get(name)
        if last is None or last[0] != key:
            # What counts by identity in the key has to stay alive as long as the key does.
            last = self._found[name] = key, fingerprint_of(tool), tool.args_schema, tool.metadata
        return str(last[1])


def check_fingerprints(fingerprints: Any) -> None:
    """Check `fingerprints`.

    Raises:
        TypeError: it does not map names to strings.
    """
    if fingerprints is None:
        return
    if not isinstance(fingerprints, Mapping):
        kind = type(fingerprints).__name__
        raise TypeError(f"fingerprints must map tool names to what fingerprint_of gives, got {kind}")
    for name, fingerprint in fingerprints.items():
        if not isinstance(fingerprint, str):
            raise TypeError(f"fingerprints[{name!r}] takes what fingerprint_of gives, got {fingerprint!r}")
