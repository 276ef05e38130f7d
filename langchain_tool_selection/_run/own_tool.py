"""Builds the tools that the middleware brings along."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.tools import StructuredTool

_schemas: dict[tuple[str, str], Any] = {}
"""Arguments by function and tool name. To infer them takes LangChain longer than all else in a middleware."""


def own_tool(
    func: Callable[..., Any], coroutine: Callable[..., Awaitable[Any]], *, name: str, description: str
) -> StructuredTool:
    """Build a tool.

    Args:
        func: What runs it, under `invoke`. Each function of its qualified name has the same parameters.
        coroutine: What runs it under `ainvoke`.
        name: What the model calls it.
        description: What the model reads of it.
    """
    key = func.__qualname__, name
    tool = StructuredTool.from_function(
        func=func, coroutine=coroutine, name=name, description=description, args_schema=_schemas.get(key)
    )
    _schemas[key] = tool.args_schema
    return tool
