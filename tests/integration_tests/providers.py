"""A provider on this machine: answers over HTTP as OpenAI and Anthropic document it, and caches prompts.

It serves Chat Completions, Responses and Messages. A prompt is rendered to parts (tools, system, messages), and
what is cached is a beginning of these parts:

- OpenAI's keep what is in any prompt by itself, and round what they read down to 128 tokens.
- Anthropic's keep a prompt up to a cache mark, and only read what was marked.

What the documentation says is refused is answered with a 400. The model in it is obedient: it calls the tools
that the newest message of the user names, if it can see them, and else repeats the word that it is asked for.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MINIMUM = 1_024
"""Tokens below which no prompt is cached."""

_BLOCK = 128
_LOOK_BACK = 20


class RefusedError(Exception):
    """What is answered with an error."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Behaviour:
    """How the provider, or a gateway ahead of it, differs from what the documentation says.

    `refuses` and `drops` are types of blocks that a gateway answers with a 400, or leaves out. `tools_first`
    is false where the conversation is cached apart from the tools. `thinks` has the model think, and refuses
    a conversation whose thoughts stand behind other tools or messages than they were made behind. `fails_at`
    numbers the requests that are answered with `status`.
    """

    refuses: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()
    tools_first: bool = True
    caches: bool = True
    thinks: bool = False
    fails_at: tuple[int, ...] = ()
    status: int = 429
    message: str = "slow down"
    requests: list[dict[str, Any]] = field(default_factory=list)
    prompts: set[tuple[str, ...]] = field(default_factory=set)


@dataclass
class Prompt:
    """A request as the model reads it: its parts, the tools it can call, and what was said last."""

    parts: list[str]
    tools: list[str]
    newest: str
    called: list[str]

    @property
    def tokens(self) -> int:
        return tokens_of(self.parts)

    @property
    def wanted(self) -> str | None:
        named = re.findall(r"the tool (\w+)", self.newest)
        return next((name for name in named if name in self.tools and name not in self.called), None)

    @property
    def text(self) -> str:
        word = re.search(r"single word: (\w+)", self.newest)
        return word[1] if word else "There is no such tool."


def tokens_of(parts: Sequence[str]) -> int:
    return sum(map(len, parts)) // 4


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many tokens two prompts begin with alike."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += len(mine)
    return count // 4


# -- what is common ------------------------------------------------------------------------------------


class Provider:
    """Answers requests. One of it is one account: what one request cached the next ones read."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self._lock = threading.Lock()

    def answer(self, path: str, payload: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        with self._lock:
            self.behaviour.requests.append(payload)
            if len(self.behaviour.requests) in self.behaviour.fails_at:
                raise RefusedError(self.behaviour.message, self.behaviour.status)
            if words := [word for word in self.behaviour.refuses if f'"{word}"' in json.dumps(payload)]:
                raise RefusedError(f"unknown type: {words[0]}\n(of a gateway)")
            payload = without(payload, self.behaviour.drops)
            for ending, form in FORMS.items():
                if path.endswith(ending):
                    return form(self, payload, headers)
            raise RefusedError(f"no such path: {path}", 404)

    def _completions(self, payload: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        tools, messages = payload.get("tools", []), payload["messages"]
        refuse_twice([tool["function"]["name"] for tool in tools])
        for message in messages:
            for block in blocks_of(message):
                if block["type"] not in ("text", "image_url"):
                    raise RefusedError(f"Invalid content type: {block['type']}")
        called = [
            call["function"]["name"]
            for message in behind_newest_user(messages)
            for call in message.get("tool_calls") or ()
        ]
        prompt = Prompt(
            parts=self._parts(tools, [], messages),
            tools=[tool["function"]["name"] for tool in tools],
            newest=newest_text(messages),
            called=called,
        )
        message: dict[str, Any] = {"role": "assistant", "content": prompt.text}
        if prompt.wanted:
            function = {"name": prompt.wanted, "arguments": json.dumps({"word": "ok"})}
            use = {"id": f"call_{len(self.behaviour.requests)}", "type": "function", "function": function}
            message |= {"content": None, "tool_calls": [use]}
        return {
            "id": "1", "object": "chat.completion", "created": 0, "model": payload["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": prompt.tokens, "completion_tokens": 3, "total_tokens": prompt.tokens + 3,
                      "prompt_tokens_details": {"cached_tokens": self._read_by_itself(prompt)}},
        }  # fmt: skip

    def _responses(self, payload: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        tools, items = payload.get("tools", []), payload["input"]
        known = [tool["name"] for tool in tools]
        for item in items:
            kind = item.get("type", "message")
            if kind not in ("message", "function_call", "function_call_output", "additional_tools"):
                raise RefusedError(f"Invalid value: '{kind}'")
            if kind == "additional_tools":
                known += [tool["name"] for tool in item["tools"]]
        refuse_twice(known)
        behind = behind_newest_user(items)
        prompt = Prompt(
            parts=self._parts(tools, [], items),
            tools=known,
            newest=newest_text(items),
            called=[item["name"] for item in behind if item.get("type") == "function_call"],
        )
        number = len(self.behaviour.requests)
        text = {"type": "output_text", "text": prompt.text, "annotations": []}
        output: dict[str, Any] = {
            "type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed",
            "content": [text],
        }  # fmt: skip
        if prompt.wanted:
            output = {
                "type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}",
                "name": prompt.wanted, "arguments": json.dumps({"word": "ok"}), "status": "completed",
            }  # fmt: skip
        return {
            "id": f"resp_{number}", "object": "response", "created_at": 0, "model": payload["model"],
            "output": [output], "status": "completed", "parallel_tool_calls": True, "tool_choice": "auto",
            "tools": [], "error": None, "incomplete_details": None, "instructions": None, "metadata": {},
            "usage": {"input_tokens": prompt.tokens, "output_tokens": 3, "total_tokens": prompt.tokens + 3,
                      "input_tokens_details": {"cached_tokens": self._read_by_itself(prompt)},
                      "output_tokens_details": {"reasoning_tokens": 0}},
        }  # fmt: skip

    def _messages(self, payload: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        messages, tools = payload["messages"], payload.get("tools", [])
        refuse_as_anthropic(payload, headers)
        shown = [tool for tool in tools if not tool.get("defer_loading")]
        known = [tool["name"] for tool in shown]
        for message in messages:
            for block in blocks_of(message):
                known += added_by(block, tools)
        refuse_twice(known)
        system = payload.get("system", "")
        prompt = Prompt(
            parts=self._parts(shown, [json.dumps(unmarked(system))], map(unmarked, messages)),
            tools=known,
            newest=newest_text(messages),
            called=[
                block["name"]
                for message in behind_newest_user(messages)
                for block in blocks_of(message)
                if block["type"] == "tool_use"
            ],
        )
        if self.behaviour.thinks:
            self._refuse_other_thoughts(prompt, messages)
        read = written = 0
        if payload.get("cache_control") and self.behaviour.caches and prompt.tokens >= MINIMUM:
            read = self._read_at_marks(prompt)
            written = prompt.tokens - read
            self.behaviour.prompts.add(tuple(prompt.parts))
        number = len(self.behaviour.requests)
        content: list[dict[str, Any]] = [{"type": "text", "text": prompt.text}]
        if prompt.wanted:
            use = {
                "type": "tool_use",
                "id": f"toolu_{number}",
                "name": prompt.wanted,
                "input": {"word": "ok"},
            }
            content = [use]
        if self.behaviour.thinks:
            content.insert(0, {"type": "thinking", "thinking": "Hm.", "signature": signature(prompt.parts)})
        return {
            "id": f"msg_{number}", "type": "message", "role": "assistant", "model": payload["model"],
            "content": content, "stop_reason": "tool_use" if prompt.wanted else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": prompt.tokens - read - written, "output_tokens": 3,
                      "cache_read_input_tokens": read, "cache_creation_input_tokens": written},
        }  # fmt: skip

    # -- caches ------------------------------------------------------------------------------------------

    def _parts(self, tools: Sequence[Any], system: Sequence[str], messages: Any) -> list[str]:
        rendered = [json.dumps(unmarked(tool)) for tool in tools]
        said = [*system, *map(json.dumps, messages)]
        return [*rendered, *said] if self.behaviour.tools_first else [*said, *rendered]

    def _read_by_itself(self, prompt: Prompt) -> int:
        known, self.behaviour.prompts = self.behaviour.prompts, {*self.behaviour.prompts, tuple(prompt.parts)}
        most = max((common(prompt.parts, other) for other in known), default=0) // _BLOCK * _BLOCK
        return most if most >= MINIMUM and self.behaviour.caches else 0

    def _read_at_marks(self, prompt: Prompt) -> int:
        for end in range(len(prompt.parts), max(0, len(prompt.parts) - _LOOK_BACK), -1):
            if tuple(prompt.parts[:end]) in self.behaviour.prompts:
                return tokens_of(prompt.parts[:end])
        return 0

    def _refuse_other_thoughts(self, prompt: Prompt, messages: Sequence[Mapping[str, Any]]) -> None:
        ahead = len(prompt.parts) - len(messages)
        for place, message in enumerate(messages):
            for block in blocks_of(message):
                made_behind = signature(prompt.parts[: ahead + place])
                if block["type"] == "thinking" and block["signature"] != made_behind:
                    raise RefusedError(f"messages.{place}: the thinking was made behind another prefix")


FORMS = {
    "/chat/completions": Provider._completions,
    "/responses": Provider._responses,
    "/messages": Provider._messages,
}

# -- reading requests ----------------------------------------------------------------------------------


def signature(parts: Sequence[str]) -> str:
    return sha256("".join(parts).encode()).hexdigest()


def without(value: Any, kinds: Sequence[str]) -> Any:
    """Return a request as a gateway passes it on that leaves out blocks of some types."""
    if isinstance(value, list):
        kept = [one for one in value if not (isinstance(one, dict) and one.get("type") in kinds)]
        return [without(one, kinds) for one in kept]
    if isinstance(value, dict):
        return {key: without(one, kinds) for key, one in value.items()}
    return value


def unmarked(value: Any) -> Any:
    """Return a value without cache marks, which are no part of what the model reads."""
    if isinstance(value, list):
        return [unmarked(one) for one in value]
    if isinstance(value, dict):
        return {key: unmarked(one) for key, one in value.items() if key != "cache_control"}
    return value


def blocks_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def text_in(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return " ".join(block.get("text", "") for block in blocks_of(message))


def is_from_user(message: Mapping[str, Any]) -> bool:
    results = any(block.get("type") == "tool_result" for block in blocks_of(message))
    return message.get("role") == "user" and not results


def behind_newest_user(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    last = max((place for place, message in enumerate(messages) if is_from_user(message)), default=-1)
    return list(messages[last + 1 :])


def newest_text(messages: Sequence[dict[str, Any]]) -> str:
    return next((text_in(message) for message in reversed(messages) if is_from_user(message)), "")


def added_by(block: Mapping[str, Any], tools: Sequence[Mapping[str, Any]]) -> list[str]:
    if block["type"] == "tool_addition":
        return [block["tool"]["definition"]["name"]]
    content = block.get("content") if block["type"] == "tool_result" else None
    references = (
        [b["tool_name"] for b in content if b.get("type") == "tool_reference"]
        if isinstance(content, list)
        else []
    )
    deferred = [tool["name"] for tool in tools if tool.get("defer_loading")]
    if unknown := [name for name in references if name not in deferred]:
        raise RefusedError(f"Tool reference '{unknown[0]}' not found in available tools")
    return references


def refuse_twice(names: Sequence[str]) -> None:
    if twice := [name for name in names if names.count(name) > 1]:
        raise RefusedError(f"tools: the name {twice[0]} is not unique")


BLOCKS = frozenset({"text", "thinking", "tool_use", "tool_result", "tool_addition"})


def refuse_as_anthropic(payload: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    tools, messages = payload.get("tools", []), payload["messages"]
    deferred = [tool for tool in tools if tool.get("defer_loading")]
    if any(tool.get("cache_control") for tool in deferred):
        raise RefusedError("tools: a tool with defer_loading cannot have cache_control")
    if tools and len(deferred) == len(tools):
        raise RefusedError("All tools have defer_loading set")
    betas = headers.get("anthropic-beta", "")
    for place, message in enumerate(messages):
        kinds = {block["type"] for block in blocks_of(message)}
        if unknown := kinds - BLOCKS:
            raise RefusedError(f"messages.{place}: unknown type: {sorted(unknown)[0]}")
        if message["role"] == "system" and (not place or messages[place - 1]["role"] != "user"):
            raise RefusedError(f"messages.{place}: a system message must follow a user message")
        if "tool_addition" in kinds and "inline-tools" not in betas:
            raise RefusedError(f"messages.{place}: tool_addition needs a beta header, got {betas!r}")
        used = {block["id"] for block in blocks_of(message) if block["type"] == "tool_use"}
        following = blocks_of(messages[place + 1]) if place + 1 < len(messages) else []
        if used - {block.get("tool_use_id") for block in following}:
            raise RefusedError(f"messages.{place}: tool_use without a tool_result right behind it")


# -- the server ----------------------------------------------------------------------------------------


class JsonHandler(BaseHTTPRequestHandler):
    """Answers in JSON, and writes no line for each request."""

    def send_json(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


class _Handler(JsonHandler):
    provider: Provider

    def do_POST(self) -> None:
        payload = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            status, body = 200, self.provider.answer(self.path.partition("?")[0], payload, self.headers)
        except RefusedError as error:
            status, body = (
                error.status,
                {"type": "error", "error": {"type": "invalid", "message": str(error)}},
            )
        self.send_json(status, body)


@contextmanager
def serving(behaviour: Behaviour) -> Iterator[str]:
    """Serve a provider for as long as the block runs, and yield its address."""
    handler = type("Handler", (_Handler,), {"provider": Provider(behaviour)})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
