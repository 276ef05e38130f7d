"""JSON Schemas of any draft read as 2020-12, the one that providers check tools against.

Tuples, bounds and dependencies of older drafts are rewritten; types that JSON Schema lacks (`str`, `int`,
`list(str)`) get their names; a keyword with a value of the wrong kind, for which a provider rejects the whole
request, is dropped. A schema that was valid keeps its meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias
from urllib.parse import unquote

Schema: TypeAlias = dict[str, Any] | bool
"""A JSON schema: keywords, or `True` for anything and `False` for nothing."""

META = frozenset(
    {"title", "default", "example", "examples", "discriminator"}
    | {"$schema", "$id", "$comment", "$defs", "definitions"}
)
"""Keywords about a schema, which are never held against a value."""

SINGLE = frozenset(
    {"items", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
LISTS = frozenset({"anyOf", "allOf", "oneOf", "prefixItems"})
NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
"""Keywords whose value is a schema, a list of schemas, a mapping from names to schemas. What stands anywhere
else is no schema, so a property, a constant or an unknown keyword may be called `title`."""

_TYPES = {
    **{name: name for name in ("string", "integer", "number", "boolean", "array", "object", "null")},
    **dict.fromkeys(("str", "text"), "string"),
    **dict.fromkeys(("int", "long"), "integer"),
    **dict.fromkeys(("float", "double"), "number"),
    **dict.fromkeys(("list", "tuple", "set"), "array"),
    **dict.fromkeys(("dict", "map"), "object"),
    "bool": "boolean",
    "none": "null",
}


class NamedReferenceError(ValueError):
    """A reference is to an anchor, not to a place, so only a validator can follow it."""


def modern(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of a schema in the form of 2020-12, without those in `META` and malformed ones.

    Subschemas stay as they are.
    """
    fields = {key: value for key, value in node.items() if key not in META}
    if "type" in fields:
        fields["type"] = _json_type(fields["type"])
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if fields.get(exclusive) is True and _is_number(fields.get(bound)):  # draft 4
            fields[exclusive] = fields.pop(bound)
    rest = fields.pop("additionalItems", None)
    if isinstance(fields.get("items"), list):  # up to 2019-09
        fields["prefixItems"] = fields.pop("items")
        if rest is not None:
            fields["items"] = rest
    dependencies = fields.pop("dependencies", None)  # up to draft 7
    for name, needs in _mapping(dependencies).items():
        keyword = "dependentRequired" if isinstance(needs, list) else "dependentSchemas"
        fields[keyword] = {**_mapping(fields.get(keyword)), name: needs}
    if "required" in fields or "properties" in fields:
        fields["required"] = _required(fields)
    return {key: value for key, value in fields.items() if _WELL_FORMED.get(key, _is_anything)(value)}


def referred(document: Mapping[str, Any], reference: str) -> Mapping[str, Any] | None:
    """Return the schema of a document that a `$ref` refers to; `None` if there is none.

    Raises:
        NamedReferenceError: it names an anchor.
    """
    base, _, fragment = reference.partition("#")
    if base and base != str(document.get("$id", "")).partition("#")[0]:
        return None
    if fragment and not fragment.startswith("/"):
        raise NamedReferenceError(reference)
    part: Any = document
    for step in unquote(fragment).split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(part, Mapping) and key in part:
            part = part[key]
        elif isinstance(part, list) and key.isdecimal() and int(key) < len(part):
            part = part[int(key)]
        else:
            return None
    if isinstance(part, bool):
        return {} if part else {"not": {}}
    return part if isinstance(part, Mapping) else None


def property_names(schema: Any) -> Iterator[str]:
    """Yield the names of all properties of a schema, at any depth, in definitions too."""
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key == "properties" and isinstance(value, Mapping):
                yield from map(str, value)
            yield from property_names(value)
    elif isinstance(schema, list):
        for part in schema:
            yield from property_names(part)


def _json_type(value: Any) -> str | list[str] | None:
    """Return the JSON type, or types, that a type's name stands for; `None` if one of them is unknown."""
    if isinstance(value, list):
        types = [_json_type(item) for item in value]
        known = list(dict.fromkeys(name for name in types if isinstance(name, str)))
        return known if all(isinstance(name, str) for name in types) else None
    # `list(str)` and `List[str]` are arrays
    word = re.match(r"\w*", value.lower()) if isinstance(value, str) else None
    return _TYPES.get(word.group()) if word else None


def _required(fields: Mapping[str, Any]) -> list[str]:
    listed = fields.get("required")
    names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    for name, part in _mapping(fields.get("properties")).items():
        if isinstance(part, Mapping) and part.get("required") is True:  # draft 3, and by mistake
            names.append(name)
    return list(dict.fromkeys(names))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_anything(value: Any) -> bool:
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_schema(value: Any) -> bool:
    return isinstance(value, Mapping | bool)


def _are_schemas(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _are_name_lists(value: Any) -> bool:
    lists = value.values() if isinstance(value, Mapping) else [None]
    return all(isinstance(names, list) and all(isinstance(name, str) for name in names) for names in lists)


_WELL_FORMED: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains"), _is_count
    ),
    **dict.fromkeys(("minProperties", "maxProperties"), _is_count),
    **dict.fromkeys(("description", "pattern", "format", "$ref"), lambda value: isinstance(value, str)),
    **dict.fromkeys(
        ("uniqueItems", "deprecated", "readOnly", "writeOnly"), lambda value: value in (True, False)
    ),
    **dict.fromkeys(SINGLE, _is_schema),
    **dict.fromkeys(LISTS, _are_schemas),
    **dict.fromkeys(NAMED, lambda value: isinstance(value, Mapping)),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "enum": lambda value: isinstance(value, list),
    "type": bool,
    "required": bool,
    "dependentRequired": _are_name_lists,
}
