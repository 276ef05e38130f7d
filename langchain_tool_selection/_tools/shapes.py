"""What a model request holds: its tools by name, and the tools that it must not lose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from langchain_core.tools import BaseTool

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
            kind = f"<{tool.get('type') or next(iter(tool), 'tool')}>"
            by_name[kind if kind not in by_name else f"{kind[:-1]} {len(by_name)}>"] = tool
        elif name in by_name:
            on_duplicate(name, tool)
        else:
            by_name[name] = tool
    return by_name


def names_in_choice(choice: Any) -> Iterator[str]:
    """Yield the tool names in any provider's form of `tool_choice`."""
    if isinstance(choice, str):
        if choice not in _CHOICE_WORDS:
            yield choice
    elif isinstance(choice, Mapping):
        for key in ("name", "function", "tools"):
            yield from names_in_choice(choice.get(key))
    elif isinstance(choice, list | tuple):
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


def name_of(tool: Any) -> str | None:
    """Return the name of a tool, or of a provider's dict if it has one."""
    if isinstance(tool, BaseTool):
        return tool.name
    function = tool.get("function")
    name = tool.get("name") or (function.get("name") if isinstance(function, Mapping) else None)
    return name if isinstance(name, str) else None


def fields_of(request: Any) -> dict[str, Any]:
    """Return the fields of one of LangChain's requests by name, for a request of a subclass."""
    return {field.name: getattr(request, field.name) for field in fields(request)}
