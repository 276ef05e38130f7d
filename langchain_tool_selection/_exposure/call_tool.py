"""Calls of `call_tool` become calls of the tools that they name, and back; see `_exposure.proxy`."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool

from langchain_tool_selection._exposure.base import Answer, Tools
from langchain_tool_selection._tools.arguments import as_arguments, mistake_in

_Calls: TypeAlias = Mapping[str | None, dict[str, Any]]
"""Names and arguments of calls, by their ids."""

_ARGUMENTS = {"function_call": "arguments", "tool_use": "input", "tool_call": "args"}
"""Where a block of the content has the arguments of a call, by its type. OpenAI, Anthropic and LangChain's
standard repeat a call there, each in a form of its own."""


def unwrap_calls(response: Answer, tools: Tools, call_tool: str) -> Answer:
    """Turn calls of `call_tool` into calls of the tools that they name, where these can take them."""
    if isinstance(response, AIMessage):
        unwrapped: AIMessage = _unwrapped(response, tools, call_tool)
        return unwrapped
    return replace(response, result=[_unwrapped(one, tools, call_tool) for one in response.result])


def wrap_calls(messages: Sequence[Any], hidden: Collection[str], call_tool: str) -> list[Any]:
    """Turn calls of `hidden` tools into calls of `call_tool`, as the model wrote them."""
    return [_wrapped(message, hidden, call_tool) for message in messages]


def _unwrapped(message: Any, tools: Tools, call_tool: str) -> Any:
    if not isinstance(message, AIMessage):
        return message
    real: dict[str | None, dict[str, Any]] = {}
    for call in message.tool_calls:
        if call["name"] == call_tool:
            name, arguments = call["args"].get("name"), as_arguments(call["args"].get("arguments"))
            tool = tools.get(name) if isinstance(name, str) and name != call_tool else None
            if isinstance(tool, BaseTool) and not mistake_in(tool, arguments):
                real[call["id"]] = {"name": tool.name, "args": arguments}
    return _with_calls(message, real)


def _wrapped(message: Any, hidden: Collection[str], call_tool: str) -> Any:
    if isinstance(message, ToolMessage) and message.name in hidden:
        return message.model_copy(update={"name": call_tool})
    if not isinstance(message, AIMessage):
        return message
    calls = [call for call in message.tool_calls if call["name"] in hidden]
    inner = {call["id"]: {"name": call["name"], "arguments": call["args"]} for call in calls}
    return _with_calls(message, {id_: {"name": call_tool, "args": args} for id_, args in inner.items()})


def _with_calls(message: AIMessage, calls: _Calls) -> AIMessage:
    """Return the message with other names and arguments for the calls with these ids."""
    if not calls:
        return message
    tool_calls = [{**call, **calls.get(call["id"], {})} for call in message.tool_calls]
    content = message.content
    if isinstance(content, list):
        content = [_with_call(block, calls) if isinstance(block, dict) else block for block in content]
    return message.model_copy(update={"tool_calls": tool_calls, "content": content})


def _with_call(block: dict[str, Any], calls: _Calls) -> dict[str, Any]:
    call = calls.get(block.get("call_id") or block.get("id"))
    key = _ARGUMENTS.get(str(block.get("type")))
    if call is None or key is None:
        return block
    is_text = key == "arguments"
    written = json.dumps(call["args"], ensure_ascii=False) if is_text else call["args"]
    return {**block, "name": call["name"], key: written}
