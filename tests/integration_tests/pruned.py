"""What the tests of pruned schemas share: a tool with many parameters, and readers of what was sent of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import Field

from langchain_tool_selection import SchemaPruning

from .agents import office

Text = Annotated[str, Field(description="Some text. It may be long.", examples=["text"])]

PRUNED = {
    "type": "object",
    "properties": {"service": {"type": "string", "description": "Name of the service."}},
    "required": ["service"],
    "additionalProperties": False,
}
"""What is left of the schemas of `deploy` and `served`."""

KEEP = SchemaPruning(keep=["region", "replicas", "dry_run", "note"])


@cache
def deploy() -> BaseTool:
    """Return a tool that requires one parameter of five."""

    def run(
        service: Annotated[str, Field(description="Name of the service. As in the registry.")],
        region: Text = "eu",
        replicas: int = 1,
        dry_run: bool = False,
        note: Text = "",
    ) -> str:
        return f"{service} in {region}, {replicas} of it"

    text = "Deploy a service to production.\n\nRolls back if the probes of the new version fail."
    return StructuredTool.from_function(func=run, name="deploy", description=text)


@cache
def served() -> BaseTool:
    """Return the same tool as an MCP server describes it."""

    def run(**arguments: Any) -> str:
        return json.dumps(arguments)

    text = {"type": "string", "title": "Text", "default": ""}
    properties = {
        "service": {**text, "description": "Name of the service. As in the registry."},
        **dict.fromkeys(("region", "note", "owner"), text),
        "replicas": {"type": "integer", "minimum": 1},
    }
    schema = {"type": "object", "title": "run", "properties": properties, "required": ["service"]}
    return StructuredTool(
        name="deploy_remotely", description="Deploy a service remotely.", args_schema=schema, func=run
    )


def tools() -> list[BaseTool]:
    return [*office(), deploy(), served()]


def definitions(sent: Any, name: str) -> list[Mapping[str, Any]]:
    """Return what a request has of a tool's definition, wherever it has it."""
    return [found for found in _mappings(sent) if found.get("name") == name and _schema(found) is not None]


def schema(sent: Any, name: str) -> Any:
    """Return the only schema of a tool in a request."""
    (definition,) = definitions(sent, name)
    return _schema(definition)


def _schema(definition: Mapping[str, Any]) -> Any:
    return definition.get("parameters", definition.get("input_schema"))


def _mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
    for part in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _mappings(part)
