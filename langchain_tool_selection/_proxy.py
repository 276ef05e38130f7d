# No `from __future__ import annotations` in this module, for the reason given in `_discovery`.
"""`call_tool`: how a model calls a tool that is not in its tools array.

The model writes `call_tool(name=..., arguments=...)`. As soon as it has, the call becomes a call of the
tool itself, so that all that follows (approval, limits, retries, the tool's own runtime, traces) sees the
real one. When the model is shown the conversation again, it reads what it wrote. A call that fits no tool
stays a call of `call_tool`, whose answer says what is wrong.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from langchain.agents.middleware.types import ModelResponse
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from langchain_tool_selection._schema import SchemaPruning, prune_schema
from langchain_tool_selection._shared import Registered, Shared
from langchain_tool_selection._state import ThreadRecord
from langchain_tool_selection._text import one_line, visible

_SCHEMA = 6_000
"""Characters of a schema that are quoted; real ones seldom take half of that."""

_UNCHECKED = frozenset({"pattern", "$ref", "$dynamicRef", "$recursiveRef"})
"""Keywords with which a server's schema could stop the process that checks arguments against it, by a regular
expression that never ends, or have it fetch an address, as jsonschema does for a reference."""

_ERROR = 300
"""Characters of an error that are quoted: it may quote the argument in turn."""


def _as_arguments(value: Any) -> Any:
    """Return arguments as an object; models also write them as text, or leave them out."""
    if value is None:
        return {}
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


_Name = Annotated[str, BeforeValidator(str), Field(description="A tool that was found.")]
_Arguments = Annotated[Any, Field(description="An object, by the tool's parameters.")]


def make_call_tool(name: str, shared: Shared, search_tool: str) -> StructuredTool:
    """Build the tool that stands for all others. It runs only if its call named none of them rightly.

    Args:
        name: What the model calls it.
        shared: What it shares with the middleware.
        search_tool: The search tool's name.
    """

    def call_tool(runtime: ToolRuntime[Any, Any], name: _Name, arguments: _Arguments = None) -> ToolMessage:
        return answer(runtime, shared.registered(runtime, (own, search_tool)), name, arguments)

    async def acall_tool(
        runtime: ToolRuntime[Any, Any], name: _Name, arguments: _Arguments = None
    ) -> ToolMessage:
        return answer(runtime, await shared.aregistered(runtime, (own, search_tool)), name, arguments)

    def answer(runtime: Any, registered: Registered, name: str, arguments: Any) -> ToolMessage:
        catalog = shared.catalog_of(ThreadRecord.from_state(runtime.state), registered)
        if catalog is None:
            # Among the registered tools may be some that other middleware hides.
            text = f"The tool catalogue has changed. Find the tool once more with {search_tool}."
        else:
            text = _complaint(
                name, _as_arguments(arguments), catalog.names, registered.permitted, search_tool
            )
        return ToolMessage(text, name=own, tool_call_id=runtime.tool_call_id, status="error")

    own = name
    return StructuredTool.from_function(
        func=call_tool,
        coroutine=acall_tool,
        name=name,
        description=f"Call a tool that {search_tool} found and that is not in your list.",
    )


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


def compact_parameters(definition: Mapping[str, Any]) -> str:
    """Return the parameters of an OpenAI function dict for a model to read: a JSON schema on one line.

    One that is too long is pruned, and cut if that is not enough.
    """
    parameters = definition.get("function", {}).get("parameters") or {}
    text = '{"type":"object"} (nested too deeply to be shown)'
    with suppress(RecursionError):
        text = _on_one_line(parameters)
        if len(text) > _SCHEMA:
            text = _on_one_line(prune_schema(parameters, SchemaPruning()))
    return text if len(text) <= _SCHEMA else f"{text[:_SCHEMA]}… (too long, cut here)"


def _on_one_line(schema: Any) -> str:
    # Unicode knows more ends of a line than JSON escapes.
    text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return " ".join(visible(text).splitlines())


def _parameters(tool: BaseTool) -> Mapping[str, Any]:
    """Return the JSON schema of the arguments that a model gives to a tool."""
    return convert_to_openai_tool(tool)["function"].get("parameters") or {}


def _unwrapped(message: AIMessage, tools: Mapping[str, Any], call_tool: str) -> AIMessage:
    real = {}
    for call in message.tool_calls:
        if call["name"] == call_tool:
            name, arguments = call["args"].get("name"), _as_arguments(call["args"].get("arguments"))
            tool = tools.get(name) if isinstance(name, str) and name != call_tool else None
            if isinstance(tool, BaseTool) and not _mistake(tool, arguments):
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


def _mistake(tool: BaseTool, arguments: Any) -> str:
    """Return what is wrong with the arguments, naming the argument; empty if nothing is."""
    if not isinstance(arguments, dict):
        return "arguments is no object"
    if isinstance(tool.args_schema, type) and issubclass(tool.args_schema, BaseModel):
        # As the tool itself will read them: "3" is a number to pydantic.
        try:
            tool.tool_call_schema.model_validate(arguments)  # type: ignore[union-attr]
        except ValidationError as error:
            first = error.errors()[0]
            return f"argument {'.'.join(map(str, first['loc'])) or 'arguments'!r}: {first['msg']}"
        return ""
    try:
        schema = _parameters(tool)
        errors = Draft202012Validator(schema).iter_errors(arguments) if _is_checkable(schema) else ()
        wrong = best_match(errors)
    except Exception:
        return ""  # The schema is broken, which is not the model's mistake; the tool will say what it wants.
    if wrong is None:
        return ""
    where = ".".join(map(str, wrong.absolute_path))
    return f"argument {where!r}: {wrong.message}" if where else str(wrong.message)


def _is_checkable(schema: Any) -> bool:
    """Whether checking against a schema neither takes for ever nor leaves this process.

    What it cannot be checked for here is left to the tool. Only what has a text for its value is a keyword: a
    property may be called `pattern`, too.
    """
    if isinstance(schema, Mapping):
        return "patternProperties" not in schema and all(
            not (key in _UNCHECKED and isinstance(value, str)) and _is_checkable(value)
            for key, value in schema.items()
        )
    return all(map(_is_checkable, schema)) if isinstance(schema, list) else True


def _complaint(
    name: str, arguments: Any, known: Collection[str], registered: Mapping[str, BaseTool], search_tool: str
) -> str:
    quoted = one_line(name, 80)
    if name not in known:
        return (
            f"There is no tool named `{quoted}`. Find one with {search_tool}, and use the name that it gives."
        )
    tool = registered.get(name)
    if tool is None:
        # Other middleware brought it into the request; its schema is out of reach here.
        return f"`{quoted}` was not called: the arguments do not fit its parameters."
    mistake = _mistake(tool, arguments)
    if not mistake:
        return f"`{quoted}` was not called. Call it once more, with the same arguments."
    takes = compact_parameters(convert_to_openai_tool(tool))
    return f"`{quoted}` was not called: {one_line(mistake, _ERROR)}. It takes: {takes}"
