"""The scenario on a real provider client, `ChatOpenAI`, with its HTTP requests answered by the script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
from langchain_core.messages import convert_to_messages
from langchain_openai import ChatOpenAI

from langchain_tool_selection.demo.three_turns import run, scripted_answer
from langchain_tool_selection.testing import ModelCall


def answer(request: httpx.Request) -> httpx.Response:
    payload = json.loads(request.content)
    sent = ModelCall(tuple(_with_tool_names(payload["messages"])), tuple(payload.get("tools", ())))
    message = scripted_answer(sent)
    content: dict[str, Any] = {"role": "assistant", "content": message if isinstance(message, str) else None}
    if not isinstance(message, str):
        content["tool_calls"] = [
            {
                "id": c["id"],
                "type": "function",
                "function": {"name": c["name"], "arguments": json.dumps(c["args"])},
            }
            for c in message.tool_calls
        ]
    choice = {"index": 0, "finish_reason": "stop", "message": content}
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "gpt-4.1", "choices": [choice]}
    return httpx.Response(200, json=body)


def _with_tool_names(messages: list[dict[str, Any]]) -> list[Any]:
    names = {call["id"]: call["function"]["name"] for m in messages for call in m.get("tool_calls") or ()}
    named = [{**m, "name": names[m["tool_call_id"]]} if m["role"] == "tool" else m for m in messages]
    return convert_to_messages(named)


def test_the_three_turns_run_on_chat_openai(tmp_path: Path) -> None:
    client = httpx.Client(transport=httpx.MockTransport(answer))
    model = ChatOpenAI(model="gpt-4.1", api_key="none", http_client=client)  # type: ignore[arg-type]
    result = run(tmp_path / "threads.db", selection=True, model=model)
    assert [sorted(call.tools) for turn in result.calls for call in turn] == [
        ["discover_tools", "weather_lookup"],
        ["discover_tools", "weather_lookup"],
        ["discover_tools", "weather_lookup"],
        ["calculator", "discover_tools", "weather_lookup"],
        ["calculator", "discover_tools", "weather_lookup"],
        # OpenAI caches prompts, so the list only grows.
        ["calculator", "discover_tools", "translate_text", "weather_lookup"],
        ["calculator", "discover_tools", "translate_text", "weather_lookup"],
    ]
    assert result.pins == ("calculator",)
