"""The shapes that tools come in, told apart here and nowhere else.

| shape | name and description | schema |
|---|---|---|
| OpenAI, Chat Completions | under `"function"` | `"parameters"` there |
| OpenAI, Responses | at the top | `"parameters"` |
| Anthropic | at the top | `"input_schema"` |
| MCP, as a dict or as an object | at the top | `inputSchema` |
| LangChain tool | attributes | `args_schema`: a dict or a pydantic class |
| `ToolDocument` | attributes | `input_schema`, made from its parameters |
| a tool that a provider runs itself | perhaps none: `{"type": "web_search"}` | none |

Reading is cheap, except by `as_openai_tool`, which has LangChain make a JSON schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from langchain_tool_selection._ground.untrusted import visible

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema")
"""Where the JSON schema of a tool dict is, by provider."""

_SCHEMA_ATTRIBUTES = ("args_schema", "inputSchema", "input_schema", "parameters")

_CHOICE_WORDS = frozenset({"auto", "any", "none", "required"})

_HARNESSES = (
    "deepagents.",
    "langchain.agents.middleware.",
    "langchain_anthropic.middleware.",
    "langchain_quickjs.",
)
"""Where middleware of LangChain and deepagents is written."""


def tools_by_name(tools: Sequence[Any], on_duplicate: Callable[[str, Any], None]) -> dict[str, Any]:
    """Key a request's tools by name, in their order. Of two with one name the first counts.

    A provider's tool may have no name; it is keyed by its type in angle brackets, which no tool's name
    has, so that it is nobody's duplicate.

    Args:
        tools: LangChain tools and provider dicts.
        on_duplicate: Called with the name and the tool that is left out.
    """
    by_name: dict[str, Any] = {}
    for tool in tools:
        name = name_of(tool)
        if name is None:
            kind = f"<{visible(str(tool.get('type') or next(iter(tool), 'tool')))}>"
            by_name[kind if kind not in by_name else f"{kind[:-1]} {len(by_name)}>"] = tool
        elif name in by_name:
            on_duplicate(name, tool)
        else:
            by_name[name] = tool
    return by_name


def names_in_choice(choice: Any) -> Iterator[str]:
    """Yield the tool names in any provider's form of `tool_choice`."""
    if isinstance(choice, str) and choice not in _CHOICE_WORDS:
        yield choice
    if isinstance(choice, Mapping):
        choice = [choice.get(key) for key in ("name", "function", "tools")]
    if isinstance(choice, list | tuple):
        for item in choice:
            yield from names_in_choice(item)


def is_deferred(tool: BaseTool) -> bool:
    """Whether the provider loads this tool on demand, so that hiding it would break its own search."""
    return bool(tool.extras and tool.extras.get("defer_loading"))


def is_harness_tool(tool: BaseTool) -> bool:
    """Whether middleware of LangChain or deepagents brought this tool along, and its prompts lean on it.

    Known by where the code that it runs is written, which a marked or described copy shares: its name and
    place say little, because users name tools `task` and `read_file`, too.
    """
    runs = getattr(tool, "func", None) or getattr(tool, "coroutine", None) or type(tool)
    return (getattr(runs, "__module__", None) or "").startswith(_HARNESSES)


def mapping_of(value: Any) -> Mapping[str, Any]:
    """Return a value that is a mapping; an empty one for anything else, as strangers may send."""
    return value if isinstance(value, Mapping) else {}


def unwrapped(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a tool dict that has the name, the description and the schema."""
    function = tool.get("function")
    return function if isinstance(function, Mapping) else tool


def openai_tool(function: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool dict for OpenAI's Chat Completions, from name, description and parameters."""
    return {"type": "function", "function": function}


def name_of(tool: Any) -> str | None:
    """Return the name of a tool of any shape; `None` where it has none."""
    name = getattr(tool, "name", None)  # before the look at its type: most tools are LangChain's
    if name is None and isinstance(tool, Mapping):
        name = unwrapped(tool).get("name")
    return name if isinstance(name, str) else None


def required_name_of(tool: Any) -> str:
    """Return the name of a tool of any shape.

    Raises:
        TypeError: it has none.
    """
    if name := name_of(tool):
        return name
    raise TypeError(
        f"a tool needs a non-empty string as its name, got {name!r} in a {type(tool).__name__}; pass a "
        "LangChain tool, an MCP tool, an OpenAI or Anthropic tool dict, or a ToolDocument"
    )


def description_of(tool: Any) -> str:
    """Return the description of a tool of any shape; empty where it has none."""
    is_dict = isinstance(tool, Mapping)
    description = unwrapped(tool).get("description") if is_dict else getattr(tool, "description", None)
    return description if isinstance(description, str) else ""


def schema_of(tool: Any) -> Any:
    """Return the schema of a tool as it stands: a dict, a pydantic class, or `None`. Makes none."""
    if isinstance(tool, Mapping):
        fields = unwrapped(tool)
        return next((fields[key] for key in SCHEMA_KEYS if fields.get(key)), None)
    schemas = (getattr(tool, attribute, None) for attribute in _SCHEMA_ATTRIBUTES)
    return next((schema for schema in schemas if schema is not None), None)


def as_openai_tool(tool: Any) -> dict[str, Any]:
    """Return a tool of any shape, or a function, as a tool dict for OpenAI's Chat Completions.

    A tool that its provider runs, a dict with a type of its own and without a schema, comes back as it is.

    Raises:
        TypeError: it has no name.
        Exception: whatever LangChain raises about a schema that it cannot read.
    """
    from langchain_core.tools import BaseTool  # noqa: PLC0415  # slow to import
    from langchain_core.utils.function_calling import convert_to_openai_tool  # noqa: PLC0415  # likewise

    if isinstance(tool, BaseTool) or callable(tool):
        return convert_to_openai_tool(tool)
    is_run_by_provider = isinstance(tool, Mapping) and tool.get("type", "function") != "function"
    schema = schema_of(tool)
    if is_run_by_provider and schema is None:
        return dict(tool)
    said = {"name": required_name_of(tool), "description": description_of(tool)}
    return openai_tool({**said, "parameters": schema or {"type": "object", "properties": {}}})


def parameters_of(tool: BaseTool) -> Mapping[str, Any]:
    """Return the JSON schema of the arguments that a model gives to a LangChain tool."""
    return unwrapped(as_openai_tool(tool)).get("parameters") or {}


def fields_of(request: Any) -> dict[str, Any]:
    """Return the fields of one of LangChain's requests by name, for a request of a subclass."""
    return {field.name: getattr(request, field.name) for field in fields(request)}
