"""A scripted answer in the form in which a provider's client gives it back, whole or in chunks.

The next request is built from that form, so an answer that had another would test another request:
Anthropic and OpenAI Responses keep tool calls as blocks of the content, OpenAI Chat Completions does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, ToolCall
from langchain_core.messages.tool import tool_call_chunk

from langchain_tool_selection.testing._prefix import Payload, api_of


def in_clients_form(answer: AIMessage, payload: Payload, number: int) -> AIMessage:
    """Return the answer as the client that sent `payload` would give it.

    Blocks that the answer has already (thinking, reasoning, calls) stay as they are, and in front.

    Args:
        answer: What the script says.
        payload: The request that it answers.
        number: Which answer of its model it is; the ids of OpenAI Responses are made of it.
    """
    api = api_of(payload)
    provider = "anthropic" if api == "messages" else "openai"
    metadata = {"model_provider": provider, "model_name": payload.get("model")}
    content = answer.content
    if api == "messages":
        blocks = [*_blocks(answer), *map(_tool_use, _missing(answer, "id"))]
        content = blocks if answer.tool_calls or isinstance(content, list) else content
    elif api == "responses":
        metadata["id"] = f"resp_{number}"
        content = [_with_id(block, number) for block in _blocks(answer)]
        calls = enumerate(_missing(answer, "call_id"))
        content += [_function_call(call, f"fc_{number}_{i}") for i, call in calls]
    metadata |= answer.response_metadata
    return answer.model_copy(update={"content": content, "response_metadata": metadata}, deep=True)


def chunks_of(message: AIMessage) -> Iterator[AIMessageChunk]:
    """Yield a message in chunks that add up to it: word by word or block by block, then its calls."""
    content: str | list[Any] = message.content
    if isinstance(content, str):
        for word in re.findall(r"\S+\s*|\s+", content):
            yield AIMessageChunk(content=word)
    else:
        for i, block in enumerate(content):
            # Chunks of a list are merged by index; without one a block would be appended.
            yield AIMessageChunk(content=[{**block, "index": i} if isinstance(block, dict) else block])
    calls = [
        tool_call_chunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=i)
        for i, call in enumerate(message.tool_calls)
    ]
    yield AIMessageChunk(
        content="" if isinstance(content, str) else [],
        tool_call_chunks=calls,
        additional_kwargs=message.additional_kwargs,
        response_metadata=message.response_metadata,
        usage_metadata=message.usage_metadata,
        id=message.id,
    )


def _blocks(answer: AIMessage) -> list[Any]:
    if isinstance(answer.content, list):
        return list(answer.content)
    return [{"type": "text", "text": answer.content}] if answer.content else []


def _missing(answer: AIMessage, key: str) -> list[ToolCall]:
    there = {block.get(key) for block in answer.content if isinstance(block, dict)}
    return [call for call in answer.tool_calls if call["id"] not in there]


def _tool_use(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]}


def _function_call(call: ToolCall, id_: str) -> dict[str, Any]:
    said = {"name": call["name"], "arguments": json.dumps(call["args"])}
    return {"type": "function_call", **said, "id": id_, "call_id": call["id"], "status": "completed"}


def _with_id(block: Any, number: int) -> Any:
    if isinstance(block, dict) and block.get("type") == "text":
        return {"annotations": [], "id": f"msg_{number}", **block}
    return block
