"""JSON Schemas of any draft read as 2020-12, the one that providers check tools against.

Tuples, bounds and dependencies of older drafts are rewritten; types that JSON Schema lacks (`str`, `int`,
`list(str)`) get their names; a keyword with a value of the wrong kind, for which a provider rejects the whole
request, is dropped. A schema that was valid keeps its meaning. References within a schema are followed by the
library `referencing`; nothing is ever fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from referencing import Registry
from referencing.jsonschema import DRAFT202012, specification_with

from langchain_tool_selection._tools.shapes import mapping_of

Schema: TypeAlias = dict[str, Any] | bool
"""A JSON schema: keywords, or `True` for anything and `False` for nothing."""

META = frozenset(
    {"title", "default", "example", "examples", "discriminator"}
    | {"$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"}
    | {"$comment", "$defs", "definitions"}
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
    for name, needs in mapping_of(dependencies).items():
        keyword = "dependentRequired" if isinstance(needs, list) else "dependentSchemas"
        fields[keyword] = {**mapping_of(fields.get(keyword)), name: needs}
    if "required" in fields or "properties" in fields:
        fields["required"] = _required(fields)
    return {key: value for key, value in fields.items() if _is_well_formed(key, value)}


def property_names(schema: Any) -> Iterator[str]:
    """Yield the names of all properties of a schema, at any depth, in definitions too."""
    if isinstance(schema, Mapping):
        yield from map(str, mapping_of(schema.get("properties")))
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from property_names(part)


def _json_type(value: Any) -> str | list[str] | None:
    """Return the JSON type, or types, that a type's name stands for; `None` if one of them is unknown."""
    if isinstance(value, list):
        types: dict[Any, None] = dict.fromkeys(
            _json_type(item) if isinstance(item, str) else None for item in value
        )
        return None if None in types else [*types]
    # `list(str)` and `List[str]` are arrays
    word = re.match(r"\w*", value.lower()) if isinstance(value, str) else None
    return _TYPES.get(word.group()) if word else None


def _required(fields: Mapping[str, Any]) -> list[str]:
    listed = fields.get("required")
    names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    for name, part in mapping_of(fields.get("properties")).items():
        if isinstance(part, Mapping) and part.get("required") is True:  # draft 3, and by mistake
            names.append(name)
    return list(dict.fromkeys(names))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_well_formed(key: str, value: Any) -> bool:
    """Whether a keyword has a value of its kind. Of a keyword that is unknown any value is."""
    if key in _NUMBERS:
        return _is_number(value) and (key != "multipleOf" or value > 0)
    if key in _COUNTS:
        return _is_number(value) and value >= 0 and value % 1 == 0
    if key == "dependentRequired":
        lists = value.values() if isinstance(value, Mapping) else [None]
        return all(isinstance(one, list) and all(isinstance(name, str) for name in one) for one in lists)
    return isinstance(value, _KINDS.get(key, object)) and (key not in _NEVER_EMPTY or bool(value))


_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_COUNTS = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains"}
    | {"minProperties", "maxProperties"}
)
_KINDS: dict[str, Any] = {
    **dict.fromkeys(("description", "pattern", "format", "$ref"), str),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), bool),
    **dict.fromkeys(SINGLE, Mapping | bool),
    **dict.fromkeys(LISTS | {"enum"}, list),
    **dict.fromkeys(NAMED, Mapping),
}
_NEVER_EMPTY = LISTS | {"type", "required"}


@dataclass(frozen=True)
class Scope:
    """Where a part of a schema stands, which is what its references are relative to.

    Attributes:
        specification: The draft that the schema names; 2020-12 if it names none that is known.
        resolver: Follows references from here.
        is_readable: Whether the whole schema is well-formed enough to be searched for anchors and `$id`s. If
            it is not, only paths from its root are followed.
        followed: Of the references that led here, the `id` of what each refers to.
    """

    specification: Any
    resolver: Any
    is_readable: bool = True
    followed: frozenset[int] = frozenset()

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Scope:
        """Return the scope of a schema's root."""
        specification: Any = specification_with(str(document.get("$schema")), default=DRAFT202012)
        try:
            resource = specification.create_resource(document)
            base = resource.id() or ""
            # Once for all references: a resolver would search the whole schema for each of them.
            registry: Any = Registry().with_resource(base, resource).crawl()
            return cls(specification, registry.resolver(base))
        except Exception:  # malformed in one of very many ways; referencing names none of them
            rest = {key: value for key, value in document.items() if key not in ("$id", "id")}
            registry = Registry().with_resource("", specification.create_resource(rest))
            return cls(specification, registry.resolver(), is_readable=False)

    def inside(self, part: Mapping[str, Any]) -> Scope:
        """Return the scope of a part that stands here: another one if the part has an `$id`."""
        if not self.is_readable:
            return self
        return replace(self, resolver=self.resolver.in_subresource(self.specification.create_resource(part)))

    def follow(self, reference: str) -> tuple[Any, Scope] | None:
        """Return what a reference refers to and the scope of that; `None` if that is not in the schema."""
        if not self.is_readable and reference.rstrip("#") and not reference.startswith("#/"):
            return None
        try:
            found = self.resolver.lookup(reference)
        except Exception:  # it leads nowhere, or it is no reference at all
            return None
        followed = self.followed | {id(found.contents)}
        return found.contents, replace(self, resolver=found.resolver, followed=followed)
