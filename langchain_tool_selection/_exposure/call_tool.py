"""Calls of `call_tool` become calls of the tools that they name, and back; see `_exposure.proxy`."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain.agents.middleware.types import ModelResponse
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool

from langchain_tool_selection._tools.arguments import as_arguments, mistake_in


def unwrap_calls(
    response: ModelResponse[Any] | AIMessage, tools: Mapping[str, Any], call_tool: str
) -> ModelResponse[Any] | AIMessage:
    """Turn calls of `call_tool` into calls of the tools that they name, where these can take them."""
    if isinstance(response, AIMessage):
        return _unwrapped(response, tools, call_tool)
    result = [
        _unwrapped(one, tools, call_tool) if isinstance(one, AIMessage) else one for one in response.result
    ]
    return replace(response, result=result)


def wrap_calls(messages: Sequence[Any], hidden: Collection[str], call_tool: str) -> list[Any]:
    """Turn calls of `hidden` tools into calls of `call_tool`, as the model wrote them."""
    return [_wrapped(message, hidden, call_tool) for message in messages]


def _unwrapped(message: AIMessage, tools: Mapping[str, Any], call_tool: str) -> AIMessage:
    real = {}
    for call in message.tool_calls:
        if call["name"] == call_tool:
            name, arguments = call["args"].get("name"), as_arguments(call["args"].get("arguments"))
            tool = tools.get(name) if isinstance(name, str) and name != call_tool else None
            if isinstance(tool, BaseTool) and not mistake_in(tool, arguments):
                real[call["id"]] = (tool.name, arguments)
    return _with_calls(message, real)


def _wrapped(message: Any, hidden: Collection[str], call_tool: str) -> Any:
    if isinstance(message, ToolMessage) and message.name in hidden:
        return message.model_copy(update={"name": call_tool})
    if not isinstance(message, AIMessage):
        return message
    return _with_calls(
        message,
        {
            call["id"]: (call_tool, {"name": call["name"], "arguments": call["args"]})
            for call in message.tool_calls
            if call["name"] in hidden
        },
    )


def _with_calls(message: AIMessage, calls: Mapping[str | None, tuple[str, dict[str, Any]]]) -> AIMessage:
    """Return the message with other names and arguments for the calls with these ids."""
    if not calls:
        return message
    tool_calls = [
        {**call, "name": calls[call["id"]][0], "args": calls[call["id"]][1]} if call["id"] in calls else call
        for call in message.tool_calls
    ]
    content = message.content
    if isinstance(content, list):
        content = [_with_call(block, calls) if isinstance(block, dict) else block for block in content]
    return message.model_copy(update={"tool_calls": tool_calls, "content": content})


def _with_call(
    block: dict[str, Any], calls: Mapping[str | None, tuple[str, dict[str, Any]]]
) -> dict[str, Any]:
    # Providers repeat a call in their own form in the content: OpenAI, Anthropic, LangChain's standard.
    name, arguments = calls.get(block.get("call_id") or block.get("id"), ("", {}))
    if not name:
        return block
    match block.get("type"):
        case "function_call":
            return {**block, "name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
        case "tool_use":
            return {**block, "name": name, "input": arguments}
        case "tool_call":
            return {**block, "name": name, "args": arguments}
    return block
