"""Made-up JSON schemas, and values for them: of every kind that a tool's schema may be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

# Names of keywords too: a property may be called like one.
NAMES = ("a", "b", "c", "d", "e", "title", "default", "examples", "properties", "required", "enum", "$ref")
DEFINITIONS = ("First", "Second")
TEXTS = ("", "One. Two.", "Use e.g. Berlin. Or not.", "Eins\n\nZwei", "(first 2 of 9 values)")


def _annotations() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "title": st.just("A Title"),
            "description": st.sampled_from(TEXTS),
            "default": st.just(None),
            "examples": st.just([{"title": "x"}]),
            "$comment": st.just("internal"),
        },
    )


def _leaves() -> st.SearchStrategy[Any]:
    return st.one_of(
        st.booleans(),
        st.just({}),
        st.just({"type": "string"}),
        st.just({"type": "boolean"}),
        st.just({"type": ["integer", "null"]}),
        st.just({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}),
        st.integers(1, 6).map(lambda n: {"enum": [f"v{i}" for i in range(n)]}),
        st.just({"const": {"title": "x"}}),
        st.just({"type": "integer", "minimum": 1, "maximum": 3}),
        st.just({"type": "string", "minLength": 1, "maxLength": 2}),
        st.sampled_from([{"$ref": f"#/$defs/{name}"} for name in DEFINITIONS]),
        st.just({"$ref": "#/$defs/First", "description": "Overridden. Twice."}),
        st.just({"$ref": "#/$defs/First", "minProperties": 1}),
        st.just({"$ref": "#"}),
    )


@st.composite
def _objects(draw: Any, parts: st.SearchStrategy[Any]) -> dict[str, Any]:
    properties = draw(st.dictionaries(st.sampled_from(NAMES), parts, max_size=6))
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if draw(st.booleans()):
        pool = sorted(properties) + (["undeclared"] if draw(st.integers(0, 9)) == 0 else [])
        schema["required"] = draw(st.lists(st.sampled_from(pool), unique=True)) if pool else []
    extra = draw(st.integers(0, 11))
    if extra == 0:
        schema["additionalProperties"] = draw(parts)
    elif extra <= 3:
        schema["additionalProperties"] = draw(st.booleans())
    elif extra == 4:
        schema["patternProperties"] = {"^[ab]$": draw(parts)}
    elif extra == 5:
        schema["minProperties"] = 2
    elif extra == 6:
        schema["dependentRequired"] = {"a": ["b"]}
    elif extra == 7:
        schema["dependentSchemas"] = {"a": draw(parts)}
    return schema


@st.composite
def _combined(draw: Any, parts: st.SearchStrategy[Any]) -> dict[str, Any]:
    schema: dict[str, Any] = draw(st.one_of(st.just({}), _objects(parts)))
    keyword = draw(st.sampled_from(["anyOf", "oneOf", "allOf", "not", "if", "unevaluatedProperties"]))
    if keyword == "not":
        return {**schema, "not": draw(parts)}
    if keyword == "if":
        return {**schema, "if": draw(parts), "then": draw(parts), "else": draw(parts)}
    if keyword == "unevaluatedProperties":
        return {**schema, "allOf": [draw(parts)], "unevaluatedProperties": False}
    return {**schema, keyword: draw(st.lists(parts, min_size=1, max_size=3))}


@st.composite
def _arrays(draw: Any, parts: st.SearchStrategy[Any]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array"}
    if draw(st.booleans()):
        schema["items"] = draw(parts)
    if draw(st.integers(0, 3)) == 0:
        schema["prefixItems"] = draw(st.lists(parts, min_size=1, max_size=2))
    if draw(st.integers(0, 5)) == 0:
        schema["contains"] = draw(parts)
    return schema


def _with_annotations(schema: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(schema, _annotations()).map(
        lambda pair: {**pair[1], **pair[0]} if isinstance(pair[0], dict) else pair[0]
    )


PARTS = st.recursive(
    _with_annotations(_leaves()),
    lambda parts: _with_annotations(
        st.one_of(_objects(parts), _objects(parts), _combined(parts), _arrays(parts))
    ),
    max_leaves=12,
)


@st.composite
def tool_schemas(draw: Any) -> dict[str, Any]:
    """Schemas of tools' arguments in 2020-12, some recursive, some that nothing is valid for."""
    root = draw(_with_annotations(st.one_of(_objects(PARTS), _objects(PARTS), _combined(PARTS))))
    definitions = {name: draw(PARTS) for name in DEFINITIONS}
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **root, "$defs": definitions}
    starts = ("#", *(f"#/$defs/{name}" for name in DEFINITIONS))
    assume(not any(_is_circular(start, schema) for start in starts))
    return schema


def _is_circular(reference: str, root: dict[str, Any], seen: frozenset[str] = frozenset()) -> bool:
    """Whether a definition says of a value only what it says of that value: no validator ends on it."""
    return reference in seen or any(
        _is_circular(other, root, seen | {reference}) for other in _in_place(_referred(reference, root))
    )


def _in_place(schema: Any) -> Iterator[str]:
    """Yield the references of a schema that are to hold for the value itself, not for a part of it."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"]
        for keyword in ("not", "if", "then", "else"):
            yield from _in_place(schema.get(keyword))
        for keyword in ("anyOf", "oneOf", "allOf"):
            for part in schema.get(keyword, ()):
                yield from _in_place(part)
        for part in schema.get("dependentSchemas", {}).values():
            yield from _in_place(part)


@st.composite
def values_for(draw: Any, schema: dict[str, Any]) -> Any:
    """Values that aim at being valid for a schema; some are not, so check them."""
    return _value(draw, schema, schema, 0)


def _value(draw: Any, schema: Any, root: dict[str, Any], depth: int) -> Any:
    if depth > 6 or not isinstance(schema, dict) or not schema:
        return draw(st.sampled_from([None, True, 1, "v0", "", [], {}, {"a": 1}, [1, "x"]]))
    if "$ref" in schema:
        schema = {**_referred(schema["$ref"], root), **{k: v for k, v in schema.items() if k != "$ref"}}
    for keyword in ("anyOf", "oneOf", "allOf"):
        if schema.get(keyword):
            branch = draw(st.sampled_from(schema[keyword]))
            rest = {k: v for k, v in schema.items() if k != keyword}
            merged = {**branch, **rest} if isinstance(branch, dict) else rest
            return _value(draw, merged, root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return draw(st.sampled_from(schema["enum"]))
    kind = schema.get("type", "object" if "properties" in schema else "any")
    kind = draw(st.sampled_from(kind)) if isinstance(kind, list) else kind
    if kind == "object":
        return _object(draw, schema, root, depth)
    if kind == "array":
        items = schema.get("items", {})
        prefix = [_value(draw, part, root, depth + 1) for part in schema.get("prefixItems", ())]
        return prefix + [_value(draw, items, root, depth + 1) for _ in range(draw(st.integers(0, 2)))]
    simple = {
        "string": st.sampled_from(["v0", "x", ""]),
        "integer": st.sampled_from([1, 2, 0]),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return draw(simple[kind]) if kind in simple else _value(draw, {}, root, depth)


def _object(draw: Any, schema: dict[str, Any], root: dict[str, Any], depth: int) -> dict[str, Any]:
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    chosen = [*required, *(name for name in properties if name not in required and draw(st.booleans()))]
    value = {name: _value(draw, properties.get(name, {}), root, depth + 1) for name in chosen}
    for part in schema.get("patternProperties", {}).values():
        value |= {
            name: _value(draw, part, root, depth + 1) for name in draw(st.sampled_from(["", "a", "ab"]))
        }
    more = schema.get("additionalProperties", {})
    if more is not False and draw(st.booleans()):
        value[draw(st.sampled_from([*NAMES, "other"]))] = _value(draw, more, root, depth + 1)
    return value


def _referred(reference: str, root: dict[str, Any]) -> dict[str, Any]:
    part: Any = root
    for step in reference.split("/")[1:]:
        part = part[step]
    return part if isinstance(part, dict) else {}
