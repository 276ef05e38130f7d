from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for
from langchain_core.utils.function_calling import convert_to_openai_tool
from schemas import tool_schemas, values_for

from langchain_tool_selection import SchemaPruning, count_tokens, prune_schema, prune_tool


def text(description: str = "", **more: Any) -> dict[str, Any]:
    return {"type": "string", "title": "Text", "description": description, "default": "", **more}


def tool_schema(*names: str, required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    described = {name: text(f"The {name}. It may be empty.") for name in names} | properties
    return {"type": "object", "properties": described, "required": list(required)}


DOCKER_RUN = {
    "name": "docker_run",
    "description": (
        "Run a command in a new container.\n\n"
        "Pulls the image if it is not there yet, creates a writable container layer over it, and then starts "
        "it using the given command. A stopped container can be started again with all its previous changes "
        "intact by `docker start`."
    ),
    "parameters": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "docker_runArguments",
        "type": "object",
        "properties": {
            "image": {
                "type": "string",
                "title": "Image",
                "description": "Name of the image to run, with an optional tag. Example: python:3.12-slim.",
                "examples": ["python:3.12-slim", "nginx"],
            },
            "command": {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "title": "Command",
                "description": "Command to run in place of the image's own. Passed to the entry point.",
                "default": None,
            },
            "name": {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "title": "Name",
                "description": "Name of the container. Docker invents one if it is not given.",
                "default": None,
            },
            "env": {
                "type": "object",
                "title": "Env",
                "additionalProperties": {"type": "string"},
                "description": "Environment variables of the container.",
                "default": {},
            },
            "ports": {
                "type": "object",
                "title": "Ports",
                "additionalProperties": {"type": "integer"},
                "description": "Ports to publish, from container to host.",
                "default": {},
            },
            "volumes": {
                "type": "array",
                "title": "Volumes",
                "items": {"type": "string"},
                "description": "Volumes to mount, as host:container.",
                "default": [],
            },
            "detach": {
                "type": "boolean",
                "title": "Detach",
                "description": "Whether to run in the background.",
                "default": False,
            },
            "remove": {
                "type": "boolean",
                "title": "Remove",
                "description": "Whether to remove the container when it exits.",
                "default": True,
            },
        },
        "required": ["image"],
    },
}


def test_a_docker_run_tool_with_seven_optional_parameters_shrinks_to_under_a_third() -> None:
    whole = {"type": "function", "function": DOCKER_RUN}
    pruned = prune_tool(whole)
    assert pruned == {
        "type": "function",
        "function": {
            "name": "docker_run",
            "description": "Run a command in a new container.",
            "parameters": {
                "type": "object",
                "properties": {
                    "image": {
                        "type": "string",
                        "description": "Name of the image to run, with an optional tag.",
                    }
                },
                "required": ["image"],
                "additionalProperties": False,
            },
        },
    }
    assert 350 < count_tokens([whole]).tokens < 600
    assert count_tokens([pruned]).tokens < 110
    assert count_tokens([prune_tool(whole, SchemaPruning(keep=["ports", "volumes", "detach"]))]).tokens < 200


class TestParameters:
    def test_all_are_kept_up_to_three(self) -> None:
        pruned = prune_schema(tool_schema("a", "b", "c"))
        assert list(pruned["properties"]) == ["a", "b", "c"]
        assert "additionalProperties" not in pruned, "nothing was dropped, so it stays as open as it was"

    def test_from_four_on_the_optional_ones_are_dropped(self) -> None:
        assert list(prune_schema(tool_schema("a", "b", "c", "d", required=("c",)))["properties"]) == ["c"]
        assert prune_schema(tool_schema("a", "b", "c", "d"))["properties"] == {}

    def test_required_ones_are_kept_however_many_there_are(self) -> None:
        names = [f"p{i}" for i in range(30)]
        pruned = prune_schema(tool_schema(*names, "optional", required=tuple(reversed(names))))
        assert list(pruned["properties"]) == names
        assert pruned["required"] == names[::-1]

    def test_those_named_in_keep_stay_in_their_place(self) -> None:
        schema = tool_schema("a", "b", "c", "d", "e", required=("c",))
        assert list(prune_schema(schema, SchemaPruning(keep=["e", "a"]))["properties"]) == ["a", "c", "e"]

    def test_keep_may_go_by_tool(self) -> None:
        options = SchemaPruning(keep={"run": ["a"]})
        tools = [
            {"name": name, "parameters": tool_schema("a", "b", "c", "d", required=("d",))}
            for name in ("run", "stop")
        ]
        assert [list(prune_tool(tool, options)["parameters"]["properties"]) for tool in tools] == [
            ["a", "d"],
            ["d"],
        ]

    def test_nested_objects_keep_what_they_require_too(self) -> None:
        inner = tool_schema("x", "y", "z", "w", required=("y",))
        schema = tool_schema(
            "a", required=("filter", "rows"), filter=inner, rows={"type": "array", "items": inner}
        )
        pruned = prune_schema(schema)["properties"]
        for part in (pruned["filter"], pruned["rows"]["items"]):
            assert list(part["properties"]) == part["required"] == ["y"]
            assert part["additionalProperties"] is False

    def test_a_nested_object_that_requires_nothing_keeps_all_rather_than_becoming_useless(self) -> None:
        schema = tool_schema(required=("filter",), filter=tool_schema("x", "y", "z", "w"))
        assert list(prune_schema(schema)["properties"]["filter"]["properties"]) == ["x", "y", "z", "w"]

    def test_a_tool_that_requires_nothing_keeps_all_if_told_so(self) -> None:
        schema = tool_schema("a", "b", "c", "d")
        options = SchemaPruning(keep_if_none_required=True)
        assert list(prune_schema(schema, options)["properties"]) == ["a", "b", "c", "d"]
        named = SchemaPruning(keep_if_none_required=True, keep=["b"])
        assert list(prune_schema(schema, named)["properties"]) == ["b"]

    @pytest.mark.parametrize("description", ["List pods.\n\nAt length.", "List pods.", "", None])
    def test_a_tool_left_without_any_parameter_says_what_they_are_called(self, description: Any) -> None:
        tool = {"name": "pods", "parameters": tool_schema("a", "b\n\nb", "c", "d")}
        whole = tool if description is None else {**tool, "description": description}
        pruned = prune_tool(whole)
        first = "List pods.\n" if description else ""
        assert pruned["description"] == f"{first}Also takes: a, b b, c, d."
        assert pruned["parameters"]["properties"] == {}
        assert prune_tool(pruned) == pruned

    @pytest.mark.parametrize(
        "schema",
        [None, {}, tool_schema(), tool_schema("a"), tool_schema("a", "b", "c", "d", required=("d",))],
        ids=str,
    )
    def test_a_tool_that_keeps_some_or_had_none_does_not(self, schema: Any) -> None:
        tool = {"name": "pods", "description": "List pods.", "parameters": schema}
        assert prune_tool(tool)["description"] == "List pods."

    def test_a_nullable_parameter_keeps_both_alternatives(self) -> None:
        inner = tool_schema("x", "y", "z", "w", required=("y",))
        schema = tool_schema(required=("a",), a={"title": "A", "anyOf": [inner, {"type": "null"}]})
        first, second = prune_schema(schema)["properties"]["a"]["anyOf"]
        assert list(first["properties"]) == ["y"]
        assert second == {"type": "null"}

    @pytest.mark.parametrize(
        "more",
        [
            {"minProperties": 2},
            {"patternProperties": {"^x": {}}},
            {"dependentRequired": {"a": ["b"]}},
            {"dependencies": {"a": ["b"]}},
            {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"allOf": [{"required": ["a"]}]},
            {"not": {"required": ["a", "b"]}},
            {"if": {"required": ["a"]}, "then": {"required": ["b"]}},
            {"additionalProperties": {"type": "string"}},
            {"required": ["d", "undeclared"]},
        ],
        ids=lambda more: next(iter(more)),
    )
    def test_nothing_is_dropped_beside_a_keyword_that_may_need_it(self, more: dict[str, Any]) -> None:
        schema = tool_schema("a", "b", "c", "d", required=("d",)) | more
        pruned = prune_schema(schema)
        assert list(pruned["properties"]) == ["a", "b", "c", "d"]
        assert "default" not in pruned["properties"]["a"]
        assert (
            "additionalProperties" not in pruned
            or pruned["additionalProperties"] == more["additionalProperties"]
        )


class TestCounterexamples:
    """Each is wrong by the original, and would pass if the part at hand were pruned like any other."""

    wide = tool_schema("a", "b", "c", "d", required=("d",))

    @pytest.mark.parametrize(
        ("schema", "arguments"),
        [
            (wide | {"additionalProperties": False}, {"d": "x", "e": 1}),
            (wide, {"d": "x", "a": 1}),
            (wide | {"patternProperties": {"^a": {}}}, {"d": "x", "a": 1}),
            (tool_schema(required=("x",), x={"not": wide}), {"x": {"d": "x", "a": "x"}}),
            (
                tool_schema(required=("x",), x={"oneOf": [wide, {"required": ["a"]}]}),
                {"x": {"d": "x", "a": "x"}},
            ),
            (
                tool_schema(required=("x",), x={"if": wide, "then": {"maxProperties": 1}}),
                {"x": {"d": "x", "a": "x"}},
            ),
            (
                tool_schema(required=("x",), x={"type": "array", "contains": wide, "maxContains": 0}),
                {"x": [{"d": "x", "a": "x"}]},
            ),
            (
                tool_schema(required=("x",), x={"allOf": [{"type": "array"}], "unevaluatedItems": False}),
                {"x": [1]},
            ),
            (tool_schema(required=("x",), x={"not": {"enum": list(range(30))}}), {"x": 29}),
        ],
    )
    def test_what_the_original_refuses_is_refused(self, schema: Any, arguments: Any) -> None:
        assert not Draft202012Validator(schema).is_valid(arguments)
        assert not Draft202012Validator(prune_schema(schema)).is_valid(arguments)


class TestKeywords:
    def test_what_no_agent_reads_is_dropped(self) -> None:
        noise = {"title": "T", "default": 1, "examples": [1], "example": 1, "$comment": "c"}
        schema = {
            **noise,
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$id": "https://example.invalid/tool",
            **tool_schema(required=("a",), a={**noise, "type": "integer", "minimum": 0, "unit": "m/s"}),
        }
        assert prune_schema(schema) == {
            "type": "object",
            "properties": {"a": {"type": "integer", "minimum": 0, "unit": "m/s"}},
            "required": ["a"],
        }

    def test_a_property_may_be_called_like_a_keyword(self) -> None:
        names = ("title", "default", "examples", "$schema", "description", "properties", "required", "enum")
        schema = tool_schema(*names, required=names, items={"type": "array", "items": tool_schema("title")})
        pruned = prune_schema(schema)
        assert tuple(pruned["properties"]) == names
        assert pruned["properties"]["title"] == {"type": "string", "description": "The title."}

    def test_values_are_not_schemas(self) -> None:
        value = {"title": "x", "default": {"examples": [1]}}
        schema = tool_schema(required=("a", "b"), a={"const": value}, b={"enum": [value]})
        assert prune_schema(schema)["properties"] == {"a": {"const": value}, "b": {"enum": [value]}}

    def test_booleans_tuples_and_lists_of_types_are_schemas(self) -> None:
        parts = {
            "any": True,
            "none": False,
            "pair": {"type": "array", "prefixItems": [text("One. Two."), True], "items": False},
            "mixed": {"type": ["string", "null"], "title": "M"},
        }
        pruned = prune_schema(tool_schema(required=tuple(parts), **parts))["properties"]
        assert pruned == {
            "any": True,
            "none": False,
            "pair": {
                "type": "array",
                "prefixItems": [{"type": "string", "description": "One."}, True],
                "items": False,
            },
            "mixed": {"type": ["string", "null"]},
        }

    def test_a_long_list_of_values_is_cut_with_a_note(self) -> None:
        zones = [f"Zone/{i}" for i in range(169)]
        schema = tool_schema(
            required=("zone", "bare"), zone=text("The zone. Of time.", enum=zones), bare={"enum": zones}
        )
        pruned = prune_schema(schema)
        assert pruned["properties"]["zone"] == {
            "type": "string",
            "description": "The zone. (first 20 of 169 values)",
            "enum": zones[:20],
        }
        assert pruned["properties"]["bare"]["description"] == "(first 20 of 169 values)"
        assert prune_schema(pruned) == pruned
        whole = prune_schema(schema, SchemaPruning(longest_enum=169))["properties"]["zone"]
        assert whole == {"type": "string", "description": "The zone.", "enum": zones}

    def test_a_list_of_values_is_whole_where_leaving_some_out_would_allow_others(self) -> None:
        values = list(range(50))
        schema = tool_schema(required=("a",), a={"not": {"enum": values}})
        assert prune_schema(schema)["properties"]["a"]["not"]["enum"] == values

    def test_the_root_always_says_that_arguments_are_an_object(self) -> None:
        assert prune_schema({}) == {"type": "object", "properties": {}}
        assert prune_schema({"properties": {"a": {}}}) == {"type": "object", "properties": {"a": {}}}


class TestReferences:
    def test_they_are_resolved_and_definitions_dropped(self) -> None:
        schema = {
            **tool_schema(required=("a", "b", "c")),
            "properties": {
                "a": {"$ref": "#/$defs/Color", "description": "The paint. Wet."},
                "b": {"$ref": "#/definitions/with~1slash%20and%20space"},
                "c": {"type": "array", "items": {"$ref": "#/properties/a"}},
            },
            "$defs": {"Color": {"title": "Color", "description": "A color.", "enum": ["red"]}, "Unused": {}},
            "definitions": {"with/slash and space": {"type": "boolean", "title": "B"}},
        }
        assert prune_schema(schema) == {
            "type": "object",
            "properties": {
                "a": {"description": "The paint.", "enum": ["red"]},
                "b": {"type": "boolean"},
                "c": {"type": "array", "items": {"description": "The paint.", "enum": ["red"]}},
            },
            "required": ["a", "b", "c"],
        }

    def test_constraints_beside_a_reference_hold_as_well(self) -> None:
        schema = tool_schema(required=("a",), a={"$ref": "#/$defs/Name", "maxLength": 5})
        schema["$defs"] = {"Name": {"type": "string", "minLength": 2}}
        pruned = prune_schema(schema)["properties"]["a"]
        assert pruned == {"maxLength": 5, "allOf": [{"type": "string", "minLength": 2}]}

    def test_the_root_may_be_one(self) -> None:
        schema = {"$ref": "#/definitions/Args", "definitions": {"Args": tool_schema("a", required=("a",))}}
        assert list(prune_schema(schema)["properties"]) == ["a"]

    def test_a_recursive_definition_stays_one_and_means_the_same(self) -> None:
        node = {
            "type": "object",
            "title": "Node",
            "properties": {
                "value": text("A value. Of it."),
                "children": {"type": "array", "items": {"$ref": "#/definitions/Node"}},
            },
            "required": ["value"],
            "additionalProperties": False,
        }
        schema = tool_schema(required=("tree",), tree={"$ref": "#/definitions/Node"})
        schema["definitions"] = {"Node": node, "Unused": {"type": "string"}}
        pruned = prune_schema(schema)
        assert pruned["properties"]["tree"] == {"$ref": "#/$defs/Node"}
        assert pruned["$defs"]["Node"]["properties"]["value"] == {"type": "string", "description": "A value."}
        assert list(pruned["$defs"]) == ["Node"]
        for leaf, valid in ({"value": "x"}, True), ({"value": 1}, False), ({"value": "x", "more": 1}, False):
            tree = {"tree": {"value": "a", "children": [{"value": "b", "children": [leaf]}]}}
            assert Draft202012Validator(schema).is_valid(tree) == valid
            assert Draft202012Validator(pruned).is_valid(tree) == valid
        assert json.dumps(prune_schema(pruned)) == json.dumps(pruned)

    @pytest.mark.parametrize(
        "schema",
        [
            {"$ref": "#"},
            {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}},
            {"properties": {"a": {"$ref": "#"}}, "required": ["a"]},
            {"properties": {"a": {"$ref": "#/properties/a"}}},
            {
                "properties": {"a": {"$ref": "#/$defs/A"}},
                "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}},
            },
            {
                "properties": {
                    "a": {"items": {"$ref": "#/properties/a"}},
                    "b": {"items": {"$ref": "#/$defs/a"}},
                },
                "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}},
            },
        ],
    )
    def test_every_cycle_ends(self, schema: dict[str, Any]) -> None:
        pruned = prune_schema(schema)
        Draft202012Validator.check_schema(pruned)
        assert prune_schema(pruned) == pruned

    def test_a_cycle_that_only_dropped_parameters_are_in_does_not_matter(self) -> None:
        schema = tool_schema("a", "b", "c", required=("a",), tree={"$ref": "#/$defs/Node"})
        schema["$defs"] = {"Node": {"items": {"$ref": "#/$defs/Node"}}}
        assert "$defs" not in prune_schema(schema)

    def test_references_that_would_explode_stay_references(self) -> None:
        twice = [{"$ref": f"#/$defs/D{i + 1}"} for i in range(60)]
        definitions: dict[str, Any] = {
            f"D{i}": {"type": "object", "properties": {"x": part, "y": part}} for i, part in enumerate(twice)
        }
        schema = tool_schema(required=("a",), a={"$ref": "#/$defs/D0"})
        schema["$defs"] = {**definitions, "D60": {"type": "string"}}
        pruned = prune_schema(schema)
        assert len(json.dumps(pruned)) < 10_000
        assert json.dumps(prune_schema(pruned)) == json.dumps(pruned)

    @pytest.mark.parametrize(
        "reference", ["#/$defs/Missing", "other.json#/a", "https://example.invalid/s.json"]
    )
    def test_one_into_nowhere_is_dropped(self, reference: str) -> None:
        schema = tool_schema(required=("a",), a={"$ref": reference, "description": "An A."})
        assert prune_schema(schema)["properties"]["a"] == {"description": "An A."}

    def test_one_that_spells_out_the_schemas_own_address_is_followed(self) -> None:
        schema = tool_schema(required=("a",), a={"$ref": "https://example.invalid/s#/$defs/A"})
        schema |= {"$id": "https://example.invalid/s#", "$defs": {"A": {"type": "null"}}}
        assert prune_schema(schema)["properties"]["a"] == {"type": "null"}

    @pytest.mark.parametrize("part", [{"$dynamicRef": "#name"}, {"$recursiveRef": "#"}])
    def test_a_schema_with_dynamic_references_stays_whole(self, part: dict[str, Any]) -> None:
        schema = tool_schema("b", "c", "d", required=("a",), a=part)
        schema["$defs"] = {"Named": {"$anchor": "name", "title": "N"}}
        assert prune_schema(schema) == schema


class TestDialects:
    """What comes out is 2020-12, whatever goes in."""

    @pytest.mark.parametrize(
        ("part", "pruned"),
        [
            ({"type": "str"}, {"type": "string"}),
            ({"type": "INTEGER"}, {"type": "integer"}),
            ({"type": "float"}, {"type": "number"}),
            ({"type": "list(str)"}, {"type": "array", "items": {}}),
            ({"type": "array"}, {"type": "array", "items": {}}),
            ({"type": "any"}, {}),
            ({"type": ["str", "None"]}, {"type": ["string", "null"]}),
            ({"type": ["str", "Decimal"]}, {}),
            ({"type": 3}, {}),
            (
                {"type": "array", "items": [{"type": "string", "title": "S"}], "additionalItems": False},
                {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
            ),
            ({"minimum": 0, "exclusiveMinimum": True}, {"exclusiveMinimum": 0}),
            ({"maximum": 9, "exclusiveMaximum": False}, {"maximum": 9}),
            (
                {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}},
                {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}},
            ),
            ({"enum": "a, b"}, {}),
            ({"minimum": "0", "minLength": -1, "pattern": 3, "anyOf": [], "multipleOf": 0}, {}),
            ({"items": "string", "properties": ["a"], "required": "a", "description": 5}, {}),
            ("string", {}),
            (None, {}),
        ],
        ids=str,
    )
    def test_old_and_malformed_keywords_are_rewritten_or_dropped(self, part: Any, pruned: Any) -> None:
        result = prune_schema(tool_schema(required=("a",), a=part))
        assert result["properties"]["a"] == pruned
        Draft202012Validator.check_schema(result)

    def test_required_said_at_the_parameter_counts(self) -> None:
        schema = {"type": "object", "properties": {name: text() for name in "abcd"}}
        schema["properties"]["c"]["required"] = True
        pruned = prune_schema(schema)
        assert pruned["properties"] == {"c": {"type": "string"}}
        assert pruned["required"] == ["c"]


class TestTools:
    schema = tool_schema("a", "b", "c", "d", required=("d",))

    @pytest.mark.parametrize("key", ["parameters", "input_schema", "inputSchema"])
    def test_every_shape_comes_back_as_it_came(self, key: str) -> None:
        tool = {
            "name": "t",
            "description": "First.\n\nSecond.",
            key: self.schema,
            "cache_control": {"type": "ephemeral"},
            "input_examples": [{"a": "x", "d": "y"}],
        }
        assert prune_tool(tool) == {
            "name": "t",
            "description": "First.",
            key: prune_schema(self.schema),
            "cache_control": {"type": "ephemeral"},
        }
        wrapped = {"type": "function", "function": {"name": "t", "parameters": self.schema, "strict": False}}
        assert prune_tool(wrapped)["function"] == {
            "name": "t",
            "parameters": prune_schema(self.schema),
            "strict": False,
        }

    @pytest.mark.parametrize(
        "tool",
        [{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}, {"google_search": {}}],
        ids=["named", "nameless"],
    )
    def test_a_providers_own_tool_comes_back_equal(self, tool: dict[str, Any]) -> None:
        assert prune_tool(tool) == tool
        assert prune_tool(tool) is not tool

    def test_a_tool_without_a_schema_gets_one_without_parameters(self) -> None:
        pruned = prune_tool({"name": "t", "description": "d", "parameters": None})
        assert pruned["parameters"] == {"type": "object", "properties": {}}
        assert convert_to_openai_tool(pruned)["function"] == pruned

    def test_what_is_no_dict_is_refused(self) -> None:
        with pytest.raises(TypeError, match="a tool to prune must be a dict, got str"):
            prune_tool("docker_run")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="parameters must be a JSON schema as a dict, got list"):
            prune_schema([])  # type: ignore[arg-type]

    def test_the_result_shares_nothing_with_the_input(self) -> None:
        tool = {"name": "t", "parameters": deepcopy(self.schema), "extra": {"nested": []}}
        tool["parameters"]["properties"]["d"] = {"enum": [{"x": []}], "required": ["x"]}
        before = deepcopy(tool)
        pruned = prune_tool(tool)
        pruned["extra"]["nested"].append(1)
        pruned["parameters"]["required"].append("x")
        pruned["parameters"]["properties"]["d"]["enum"][0]["x"].append(1)
        assert tool == before


class TestOptions:
    def test_they_are_values(self) -> None:
        first, second = SchemaPruning(keep=["a", "b"]), SchemaPruning(keep=("b", "a"))
        assert first == second
        assert len({first, second, SchemaPruning(keep={"t": ["a"]}), SchemaPruning(keep={"t": ("a",)})}) == 2
        names = ["a"]
        options = SchemaPruning(keep=names)
        names.append("b")
        assert options.kept("t") == {"a"}

    @pytest.mark.parametrize(
        ("settings", "error", "message"),
        [
            (
                {"keep": "limit"},
                TypeError,
                "keep takes a collection of parameter names, got the string 'limit'",
            ),
            ({"keep": 3}, TypeError, "keep takes a collection of parameter names, got int"),
            ({"keep": ["a", 1]}, TypeError, "keep takes parameter names as strings, got 1 of type int"),
            ({"keep": {"run": "ports"}}, TypeError, r"keep\['run'\] takes a collection of parameter names"),
            ({"keep": {1: ["ports"]}}, TypeError, "keep takes tool names as strings, got 1"),
            ({"keep_all_up_to": -1}, ValueError, "keep_all_up_to must be 0 or more, got -1"),
            ({"keep_all_up_to": 2.5}, TypeError, "keep_all_up_to must be an integer"),
            ({"longest_enum": 0}, ValueError, "longest_enum must be 1 or more, got 0"),
            ({"keep_if_none_required": "yes"}, TypeError, "keep_if_none_required must be True or False"),
        ],
    )
    def test_bad_ones_are_refused(self, settings: Any, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            SchemaPruning(**settings)

    def test_names_in_keep_that_no_tool_has_can_be_listed(self) -> None:
        inner = tool_schema("nested")
        tools = [
            {
                "name": "run",
                "parameters": tool_schema("ports", filter={"$ref": "#/$defs/F"}) | {"$defs": {"F": inner}},
            },
            {"type": "function", "function": {"name": "stop", "parameters": None}},
        ]
        assert SchemaPruning(keep=["ports", "nested", "prots", "a"]).unknown(tools) == ["a", "prots"]
        by_tool = SchemaPruning(keep={"run": ["ports", "prots"], "stop": ["force"], "start": ["x"]})
        assert by_tool.unknown(tools) == ["run.prots", "start", "stop.force"]


def first_sentence(text: str) -> str:
    """Return what is left of a parameter's description."""
    parameter = {"type": "string", "description": text}
    schema = {"type": "object", "properties": {"a": parameter}, "required": ["a"]}
    return prune_schema(schema)["properties"]["a"].get("description", "")


def first_paragraph(text: str) -> str:
    """Return what is left of a tool's description."""
    return prune_tool({"name": "t", "description": text, "parameters": {}})["description"]


class TestText:
    @pytest.mark.parametrize(
        ("whole", "first"),
        [
            ("The city. Defaults to Lisbon.", "The city."),
            ("A city, e.g. Berlin, i.e. a place. More.", "A city, e.g. Berlin, i.e. a place."),
            ("See https://example.invalid/a.html?x=1. More.", "See https://example.invalid/a.html?x=1."),
            ("Needs version 1.2.3 or later. More.", "Needs version 1.2.3 or later."),
            ("Needs Node.js 20. More.", "Needs Node.js 20."),
            ("Is it urgent? Then say so.", "Is it urgent?"),
            ("Wait... Then go.", "Wait..."),
            ('Write "Stop." Then go.', 'Write "Stop."'),
            ("The state (open. Or closed.) of it. More.", "The state (open. Or closed.) of it."),
            (
                "Owner, by J. Doe of the U.S. Army vs. Navy. More.",
                "Owner, by J. Doe of the U.S. Army vs. Navy.",
            ),
            ("Min. 1, max. 100. Defaults to 50.", "Min. 1, max. 100."),
            ("1. First do this. 2. Then that.", "1. First do this."),
            ("the id. defaults to none", "the id. defaults to none"),
            ("First line\nsecond line. More.", "First line\nsecond line."),
            ("No full stop\n\nNew paragraph.", "No full stop"),
            ("搜索关键词。默认为5。", "搜索关键词。"),
            ("検索語（例。東京）を指定。省略可。", "検索語（例。東京）を指定。"),
            ("「はい。」と答える", "「はい。」"),
            ("शहर का नाम। वैकल्पिक।", "शहर का नाम।"),
            ("ما هي المدينة؟ اختياري.", "ما هي المدينة؟"),
            ("Город. Необязательно.", "Город."),
            ("Город, т.е. место. Ещё.", "Город, т.е. место."),
            ("... and so on. More.", "... and so on."),
            ("  The city.  ", "The city."),
            ("", ""),
            ("...", "..."),
        ],
    )
    def test_the_first_sentence(self, whole: str, first: str) -> None:
        assert first_sentence(whole) == first
        assert first_sentence(first) == first

    @pytest.mark.parametrize(
        ("whole", "first"),
        [
            ("One. Two.\nThree.\n\nFour.", "One. Two.\nThree."),
            ("\n\n  One.\n \t\nTwo.", "One."),
            ("One.\r\n\r\nTwo.", "One."),
            ("", ""),
        ],
    )
    def test_the_first_paragraph(self, whole: str, first: str) -> None:
        assert first_paragraph(whole) == first

    @given(st.text(alphabet="aB1.。!? \n(）)e,g", max_size=40))
    def test_the_first_sentence_of_a_first_sentence_is_itself(self, whole: str) -> None:
        first = first_sentence(whole)
        assert whole.strip().startswith(first)
        assert first_sentence(first) == first
        assert bool(first) == bool(whole.strip())


PROPERTY = settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
OPTIONS = st.sampled_from(
    [
        SchemaPruning(),
        SchemaPruning(keep=["e"], keep_all_up_to=1, longest_enum=2),
        SchemaPruning(keep_all_up_to=0),
    ]
)


def is_valid(schema: Any, value: Any) -> bool:
    return Draft202012Validator(schema).is_valid(value)


@pytest.mark.slow
class TestPromises:
    @given(st.data(), tool_schemas(), OPTIONS)
    @PROPERTY
    def test_what_is_valid_for_the_pruned_schema_is_valid_for_the_original(
        self, data: Any, schema: dict[str, Any], options: SchemaPruning
    ) -> None:
        pruned = prune_schema(schema, options)
        for source in (pruned, schema):
            value = data.draw(values_for(source))
            if is_valid(pruned, value):
                assert is_valid(schema, value)

    @given(tool_schemas(), OPTIONS)
    @PROPERTY
    def test_the_result_is_valid_final_and_the_input_untouched(
        self, schema: dict[str, Any], options: SchemaPruning
    ) -> None:
        before = json.dumps(schema)
        pruned = prune_schema(schema, options)
        assert json.dumps(schema) == before
        Draft202012Validator.check_schema(pruned)
        assert json.dumps(prune_schema(pruned, options)) == json.dumps(pruned)
        assert set(schema.get("required", ())) <= set(pruned.get("required", ()))
        assert {n for n in schema.get("required", ()) if n in schema.get("properties", {})} <= set(
            pruned["properties"]
        )

    @given(
        st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(-1, 3), st.text("a", max_size=2)),
            lambda parts: st.one_of(
                st.lists(parts, max_size=3),
                st.dictionaries(
                    st.sampled_from(
                        "type properties items required enum anyOf allOf not additionalProperties $ref $defs "
                        "dependencies minimum exclusiveMinimum description title pattern a b c d".split()
                    ),
                    parts,
                    max_size=5,
                ),
            ),
            max_leaves=20,
        )
    )
    @PROPERTY
    def test_no_nonsense_in_makes_an_invalid_schema_come_out(self, nonsense: Any) -> None:
        schema = nonsense if isinstance(nonsense, dict) else {"properties": {"a": nonsense}}
        pruned = prune_schema(schema)
        assert validator_for(pruned, Draft202012Validator) is Draft202012Validator
        Draft202012Validator.check_schema(pruned)
        assert prune_schema(pruned) == pruned
