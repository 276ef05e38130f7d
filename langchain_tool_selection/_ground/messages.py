"""What messages and graph state hold, in any of the forms that LangChain takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from langchain_tool_selection._ground.digest import digest
from langchain_tool_selection._ground.untrusted import MAX_CHARACTERS


def state_value(state: Any, key: str) -> Any:
    """Return a key of graph state, which may be a mapping or a model; `None` if it is not there."""
    return state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)


def message_mark(message: Any) -> str:
    """Return what identifies a message on every later call: its id, or else what it says."""
    return str(field_of(message, "id") or field_of(message, "tool_call_id") or digest(text_of(message)))


def is_from_user(message: Any) -> bool:
    """Whether a user wrote this, and not a middleware in the user's name."""
    if not has_user_role(message):
        return False
    extra = field_of(message, "additional_kwargs")
    # LangChain and deepagents mark what they put in: summaries, pinned skills, rubric feedback.
    return not (isinstance(extra, Mapping) and extra.get("lc_source"))


def text_of(message: Any) -> str:
    """Return the words of a message, its text blocks on lines of their own.

    Of a message of more than 20,000 characters the beginning and the end: people ask before or after
    what they paste.
    """
    content = field_of(message, "content")
    if not isinstance(content, str):
        content = "\n".join(_block_texts(content)) if isinstance(content, Iterable) else ""
    if len(content) <= MAX_CHARACTERS:
        return content
    half = MAX_CHARACTERS // 2
    return f"{content[: half - 1]}\n{content[-half:]}"


def tool_calls(message: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and arguments of each tool call in a message, complete or not."""
    for attribute in ("tool_calls", "invalid_tool_calls"):
        calls = field_of(message, attribute)
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, str):
                yield call, {}
                continue
            function = field_of(call, "function") or call  # OpenAI's own form, in dicts, has one level more
            name, args = field_of(function, "name"), field_of(function, "args")
            if isinstance(name, str):
                yield name, args if isinstance(args, Mapping) else {}


def has_thinking(messages: Iterable[Any]) -> bool:
    """Whether a model has thought in this conversation, and its provider gave the thoughts back."""
    return any(
        isinstance(block, Mapping) and block.get("type") in ("thinking", "redacted_thinking")
        for message in messages
        if is_from_model(message) and isinstance(content := field_of(message, "content"), list)
        for block in content
    )


def _block_texts(content: Iterable[Any]) -> Iterator[str]:
    for block in content:
        text = block.get("text") if isinstance(block, Mapping) else block
        if isinstance(text, str):
            yield text


_USER_ROLES = frozenset({"human", "user", "HumanMessageChunk"})
_MODEL_ROLES = frozenset({"ai", "assistant", "AIMessageChunk"})


def is_from_model(message: Any) -> bool:
    """Whether a model wrote this."""
    return _has_role(message, _MODEL_ROLES)


def has_user_role(message: Any) -> bool:
    """Whether this is in the user's role, whoever wrote it."""
    return _has_role(message, _USER_ROLES)


def _has_role(message: Any, roles: frozenset[str]) -> bool:
    # "chat" messages of LangChain have a role of their own, beside their type.
    return not roles.isdisjoint((field_of(message, "type"), field_of(message, "role")))


def field_of(message: Any, key: str) -> Any:
    """Return a field of a message or of a part of one; `None` if it is not there."""
    return message.get(key) if isinstance(message, Mapping) else getattr(message, key, None)
