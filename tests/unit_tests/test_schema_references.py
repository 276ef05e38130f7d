"""References in schemas: what a validator can follow within the schema is followed, and nothing is fetched."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from jsonschema.validators import validator_for

from langchain_tool_selection import prune_schema

NAME = {"type": "string", "title": "Name", "minLength": 2}
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_4 = "http://json-schema.org/draft-04/schema#"


def schema_with(a: Any, **keywords: Any) -> dict[str, Any]:
    optional = {name: {"type": "string"} for name in "bcd"}
    return {"type": "object", "properties": {"a": a, **optional}, "required": ["a"], **keywords}


FOLLOWED: dict[str, dict[str, Any]] = {
    "an anchor": schema_with({"$ref": "#name"}, **{"$defs": {"N": {**NAME, "$anchor": "name"}}}),
    "a dynamic anchor, referred to as any other": schema_with(
        {"$ref": "#name"}, **{"$defs": {"N": {**NAME, "$dynamicAnchor": "name"}}}
    ),
    "an id, by its address": schema_with(
        {"$ref": "https://example.invalid/name"},
        **{"$defs": {"N": {**NAME, "$id": "https://example.invalid/name"}}},
    ),
    "an id, relative to the root's": schema_with(
        {"$ref": "name.json"},
        **{"$id": "https://example.invalid/tool.json", "$defs": {"N": {**NAME, "$id": "name.json"}}},
    ),
    "a path within a part that has an id": schema_with(
        {"$ref": "part.json#/$defs/N"},
        **{
            "$id": "https://example.invalid/tool.json",
            "$defs": {"Part": {"$id": "part.json", "$defs": {"N": NAME}}},
        },
    ),
    "a path that is relative to the part it stands in": schema_with(
        {"$ref": "part.json"},
        **{
            "$id": "https://example.invalid/tool.json",
            "$defs": {
                "N": {"type": "integer"},
                "Part": {"$id": "part.json", "$ref": "#/$defs/N", "$defs": {"N": NAME}},
            },
        },
    ),
    "an anchor of draft 7": schema_with(
        {"$ref": "#name"}, **{"$schema": DRAFT_7, "definitions": {"N": {**NAME, "$id": "#name"}}}
    ),
    "an id of draft 4": schema_with(
        {"$ref": "#name"}, **{"$schema": DRAFT_4, "definitions": {"N": {**NAME, "id": "#name"}}}
    ),
}


@pytest.mark.parametrize("schema", FOLLOWED.values(), ids=FOLLOWED)
def test_a_reference_by_name_is_followed_like_one_by_path(schema):
    before = json.dumps(schema)
    pruned = prune_schema(schema)
    assert json.dumps(schema) == before
    assert "$ref" not in json.dumps(pruned)
    assert list(pruned["properties"]) == ["a"]
    assert pruned["properties"]["a"]["minLength"] == 2
    for value in ({"a": "x"}, {"a": "xy"}, {"a": 1}, {}, {"a": "xy", "b": "z"}):
        if validator_for(pruned)(pruned).is_valid(value):
            assert validator_for(schema)(schema).is_valid(value)
    assert prune_schema(pruned) == pruned


def test_a_reference_within_a_part_is_relative_to_that_part():
    part = {
        "$id": "part.json",
        "type": "object",
        "properties": {"name": {"$ref": "#/$defs/N"}},
        "required": ["name"],
        "$defs": {"N": NAME},
    }
    schema = schema_with(
        part, **{"$id": "https://example.invalid/tool.json", "$defs": {"N": {"type": "null"}}}
    )
    assert prune_schema(schema)["properties"]["a"]["properties"]["name"] == {"type": "string", "minLength": 2}


@pytest.mark.parametrize("reference", ["#node", "node.json", "#/$defs/Node"])
def test_a_recursive_definition_stays_one_however_it_refers_to_itself(reference):
    node = {
        "$id": "node.json" if reference == "node.json" else None,
        "$anchor": "node",
        "type": "object",
        "properties": {"value": NAME, "next": {"$ref": reference}},
        "required": ["value"],
    }
    node = {key: value for key, value in node.items() if value is not None}
    schema = schema_with({"$ref": reference}, **{"$defs": {"Node": node}})
    pruned = prune_schema(schema)
    (name,) = pruned["$defs"]
    assert pruned["properties"]["a"] == {"$ref": f"#/$defs/{name}"}
    assert pruned["$defs"][name]["properties"]["next"] == {"$ref": f"#/$defs/{name}"}
    for leaf, is_valid in ({"value": "xy"}, True), ({"value": "x"}, False), ({}, False):
        value = {"a": {"value": "xy", "next": leaf}}
        assert validator_for(pruned)(pruned).is_valid(value) is is_valid
        assert validator_for(schema)(schema).is_valid(value) is is_valid
    assert json.dumps(prune_schema(pruned)) == json.dumps(pruned)


@pytest.mark.parametrize(
    "reference",
    [
        "#missing",
        "other.json",
        "https://example.invalid/name",
        "file:///etc/passwd",
        "http://[",
        "#/$defs/0/x",
        "",
    ],
)
def test_what_is_not_in_the_schema_is_dropped_and_never_fetched(reference, monkeypatch):
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a connection was made")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    schema = schema_with({"$ref": reference, "description": "An A."}, **{"$defs": {"N": NAME}})
    assert prune_schema(schema)["properties"]["a"]["description"] == "An A."


@pytest.mark.parametrize(
    "broken",
    [{"$defs": {"N": NAME, "M": {"properties": ["a"]}}}, {"$id": 5, "$defs": {"N": NAME}}, {"$schema": ["x"], "$defs": {"N": NAME}}],
    ids=str,
)  # fmt: skip
def test_paths_are_followed_in_a_schema_that_is_malformed_elsewhere(broken):
    schema = schema_with({"$ref": "#/$defs/N"}, **broken)
    assert prune_schema(schema)["properties"]["a"] == {"type": "string", "minLength": 2}
