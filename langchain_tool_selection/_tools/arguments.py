"""Arguments of a call: read, checked against a tool's schema, and the schema in words for a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ValidationError

from langchain_tool_selection._ground.untrusted import visible
from langchain_tool_selection._tools.schema import SchemaPruning, prune_schema
from langchain_tool_selection._tools.shapes import parameters_of, schema_of

_SCHEMA = 6_000
"""Characters of a schema that are quoted; real ones seldom take half of that."""

_UNCHECKED = frozenset({"pattern", "$ref", "$dynamicRef", "$recursiveRef"})
"""Keywords with which a server's schema could stop the process that checks arguments against it, by a regular
expression that never ends, or have it fetch an address, as jsonschema does for a reference."""


_INJECTED = ("runtime",)
"""LangGraph passes a tool's runtime to a parameter of this name, whatever its annotation says."""

_SAYS_MORE = frozenset({"patternProperties", "$ref", "allOf", "anyOf", "oneOf"})
"""Keywords at a schema's root behind which there may be other arguments than its properties."""


def as_arguments(value: Any) -> Any:
    """Return arguments as an object; models also write them as text, or leave them out."""
    if isinstance(value, str):
        with suppress(ValueError):
            return json.loads(value)
    return {} if value is None else value


def mistake_in(tool: BaseTool, arguments: Any) -> str:
    """Return what is wrong with the arguments, naming the argument; empty if nothing is."""
    if not isinstance(arguments, dict):
        return "arguments is no object"
    if isinstance(tool.args_schema, type) and issubclass(tool.args_schema, BaseModel):
        # As the tool itself will read them: "3" is a number to pydantic.
        try:
            tool.tool_call_schema.model_validate(arguments)  # type: ignore[union-attr]
        except ValidationError as error:
            wrong = (one for one in error.errors() if one["loc"][:1] != _INJECTED)
            if (first := next(wrong, None)) is not None:
                return f"argument {'.'.join(map(str, first['loc'])) or 'arguments'!r}: {first['msg']}"
        return ""
    try:
        schema = parameters_of(tool)
        errors = Draft202012Validator(schema).iter_errors(arguments) if _is_checkable(schema) else ()
        mistake = best_match(errors)
    except Exception:
        return ""  # The schema is broken, which is not the model's mistake; the tool will say what it wants.
    if mistake is None:
        return ""
    where = ".".join(map(str, mistake.absolute_path))
    return f"argument {where!r}: {mistake.message}" if where else str(mistake.message)


def unknown_in(tool: BaseTool, arguments: Mapping[str, Any]) -> str:
    """Return which argument the schema does not name, where it says what there is; empty if it names all.

    A tool passes such an argument over without a word, and what the model meant by it is lost.
    """
    try:
        schema = parameters_of(tool)
    except Exception:
        return ""  # as in `mistake_in`
    takes_more = schema.get("additionalProperties") or not _SAYS_MORE.isdisjoint(schema)
    named = schema.get("properties")
    if takes_more or not isinstance(named, Mapping):
        return ""
    unknown = next((name for name in arguments if name not in named), None)
    return "" if unknown is None else f"there is no argument {unknown!r}"


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


def compact_parameters(definition: Mapping[str, Any]) -> str:
    """Return the parameters of an OpenAI function dict for a model to read: a JSON schema on one line.

    One that is too long is pruned, and cut if that is not enough.
    """
    parameters = schema_of(definition) or {}
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
