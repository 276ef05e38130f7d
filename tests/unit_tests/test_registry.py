from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from langchain_tool_selection import SchemaPruning, ToolRegistry, count_tokens


def parameters(*names: str, required: tuple[str, ...] = ()) -> dict[str, Any]:
    text = {"type": "string", "title": "Text", "description": "Some text. It may be long."}
    return {"type": "object", "properties": dict.fromkeys(names, text), "required": list(required)}


def developer_tools() -> ToolRegistry:
    """Return the registry of the example in the documentation."""
    registry = ToolRegistry()
    registry.register(
        "git_diff",
        "Show changes between commits or the working tree.",
        parameters("path", "commit"),
        tags=["git", "changes"],
    )
    registry.register(
        "run_pytest",
        "Run unit tests with pytest.\n\nCollects tests under a path.",
        parameters("path", "keyword", "markers", "workers", "failfast", required=("path",)),
        tags=["test"],
    )
    registry.register("sql_query", "Run a SQL query on the database.", parameters("sql", required=("sql",)))
    registry.register("s3_upload", "Upload a file to an S3 bucket.", parameters("file", "bucket"))
    registry.register("slack_alert", "Send an alert to a Slack channel.", parameters("channel", "text"))
    return registry


PROMPT = "Run unit test suite on auth module and check git diff on failure"


class TestRoute:
    def test_the_five_tools(self) -> None:
        active = developer_tools().route_tools(PROMPT, top_k=2, pinned_tools=["git_diff"])
        assert active == ["git_diff", "run_pytest"]

    def test_the_five_tools_without_a_pin(self) -> None:
        assert developer_tools().route_tools(PROMPT, top_k=2) == ["git_diff", "run_pytest"]
        assert developer_tools().route_tools("run the unit tests", top_k=1) == ["run_pytest"]

    def test_more_pins_than_top_k_all_stay(self) -> None:
        pins = ["slack_alert", "git_diff", "s3_upload"]
        assert developer_tools().route_tools(PROMPT, 2, pins) == ["git_diff", "s3_upload", "slack_alert"]

    def test_a_pin_takes_a_place(self) -> None:
        active = developer_tools().route_tools("run the unit tests", 2, {"slack_alert"})
        assert active == ["run_pytest", "slack_alert"]

    def test_pins_of_unknown_tools_are_ignored_and_take_no_place(self) -> None:
        assert developer_tools().route_tools(PROMPT, 2, ["gone"]) == ["git_diff", "run_pytest"]

    @pytest.mark.parametrize("prompt", ["", "   ", "???", "quantum chromodynamics"])
    def test_what_matches_nothing_leaves_the_pins(self, prompt: str) -> None:
        assert developer_tools().route_tools(prompt, 2, ["s3_upload"]) == ["s3_upload"]
        assert developer_tools().route_tools(prompt) == []

    def test_an_empty_registry_has_nothing(self) -> None:
        assert ToolRegistry().route_tools(PROMPT) == []
        assert len(ToolRegistry()) == 0

    def test_tags_examples_and_domains_are_searched(self) -> None:
        registry = ToolRegistry()
        registry.register("a", "Does one thing.", tags=["invoice"])
        registry.register("b", "Does one more thing.", examples=["book me a flight"])
        registry.register("c", "Does another thing.", domain="calendar")
        assert registry.route_tools("invoice", 1) == ["a"]
        assert registry.route_tools("book a flight", 1) == ["b"]
        assert registry.route_tools("calendar", 1) == ["c"]

    def test_a_ranker_of_ones_own(self) -> None:
        registry = ToolRegistry(lambda tool, tokens: float(len(tool.name)))
        for name in ("a", "bbb", "cc"):
            registry.register(name, "Do it.")
        assert registry.route_tools("do it", 2) == ["bbb", "cc"]

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"top_k": -1}, ValueError, "top_k"),
            ({"top_k": 1.5}, TypeError, "top_k"),
            ({"top_k": True}, TypeError, "top_k"),
            ({"pinned_tools": "git_diff"}, TypeError, "pinned_tools"),
            ({"pinned_tools": [1]}, TypeError, "pinned_tools"),
        ],
    )
    def test_bad_arguments_are_refused(self, arguments: Any, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            developer_tools().route_tools(PROMPT, **arguments)

    @given(
        st.lists(
            st.tuples(st.text("abcd_", min_size=1, max_size=3), st.sampled_from(["run it", "", "go on"]))
        ),
        st.sampled_from(["run it", "go", "", "a b c d", "实行"]),
        st.integers(1, 6),
        st.lists(st.text("abcd_", min_size=1, max_size=3), max_size=6),
    )
    @settings(max_examples=examples(150))
    def test_it_returns_top_k_names_or_the_pins_at_most(
        self, tools: list[tuple[str, str]], prompt: str, top_k: int, pins: list[str]
    ) -> None:
        registry = ToolRegistry()
        names = list(dict(tools))
        for name, description in dict(tools).items():
            registry.register(name, description)
        active = registry.route_tools(prompt, top_k, pins)
        pinned = set(pins) & set(names)
        assert len(active) <= max(top_k, len(pinned))
        assert pinned <= set(active)
        assert active == [name for name in names if name in active], "registration order, each once"
        assert active == registry.route_tools(prompt, top_k, pins[::-1])


class TestSerialize:
    def test_openai(self) -> None:
        payload = developer_tools().serialize(["sql_query"])
        function = {
            "name": "sql_query",
            "description": "Run a SQL query on the database.",
            "parameters": parameters("sql", required=("sql",)),
        }
        assert payload.tools == [{"type": "function", "function": function}]
        flat = developer_tools().serialize(["sql_query"], "openai_responses")
        assert flat.tools == [{"type": "function", **function}]

    def test_anthropic(self) -> None:
        payload = developer_tools().serialize(["sql_query"], "anthropic")
        assert payload.tools == [
            {
                "name": "sql_query",
                "description": "Run a SQL query on the database.",
                "input_schema": parameters("sql", required=("sql",)),
            }
        ]

    @pytest.mark.parametrize("provider", ["openai", "openai_responses", "anthropic"])
    def test_what_it_costs_stands_beside_what_the_whole_catalogue_would(self, provider: Any) -> None:
        registry = developer_tools()
        every = ["git_diff", "run_pytest", "sql_query", "s3_upload", "slack_alert"]
        payload = registry.serialize(["run_pytest", "git_diff"], provider)
        assert payload.tokens == count_tokens(payload.tools).tokens
        assert payload.catalog_tokens == registry.serialize(every, provider).tokens
        assert payload.counter == "approximate"
        assert payload.saved == pytest.approx(1 - payload.tokens / payload.catalog_tokens)
        assert 0.3 < payload.saved < 0.8
        assert registry.serialize([], provider).saved == 1.0

    def test_pruned_it_costs_less_and_is_a_valid_schema(self) -> None:
        registry = developer_tools()
        whole = registry.serialize(["run_pytest"])
        pruned = registry.serialize(["run_pytest"], prune=SchemaPruning())
        (tool,) = pruned.tools
        assert tool["function"]["description"] == "Run unit tests with pytest."
        assert list(tool["function"]["parameters"]["properties"]) == ["path"]
        Draft202012Validator.check_schema(tool["function"]["parameters"])
        assert pruned.tokens < whole.tokens
        assert pruned.catalog_tokens == whole.catalog_tokens, "the whole catalogue is not pruned"
        kept = registry.serialize(["run_pytest"], prune=SchemaPruning(keep={"run_pytest": ["workers"]}))
        assert list(kept.tools[0]["function"]["parameters"]["properties"]) == ["path", "workers"]

    def test_the_order_is_that_of_registration_whatever_was_asked(self) -> None:
        for active in (["slack_alert", "git_diff"], {"git_diff", "slack_alert"}, ("git_diff", "slack_alert")):
            tools = developer_tools().serialize(active).tools
            assert [tool["function"]["name"] for tool in tools] == ["git_diff", "slack_alert"]

    def test_an_empty_registry_costs_nothing(self) -> None:
        payload = ToolRegistry().serialize([])
        assert (payload.tools, payload.tokens, payload.catalog_tokens, payload.saved) == ([], 0, 0, 0.0)

    def test_nothing_is_shared_with_the_caller(self) -> None:
        registry, schema = ToolRegistry(), parameters("a")
        before = deepcopy(schema)
        registry.register("t", "Do it.", schema)
        schema["properties"]["a"]["type"] = "integer"
        for prune in (None, SchemaPruning()):
            sent = registry.serialize(["t"], prune=prune).tools[0]["function"]
            sent["parameters"]["properties"].clear()
        assert registry.serialize(["t"]).tools[0]["function"]["parameters"] == before

    def test_a_tool_without_parameters_has_an_empty_schema(self) -> None:
        registry = ToolRegistry()
        registry.register("ping")
        assert registry.serialize(["ping"], "anthropic").tools == [
            {"name": "ping", "description": "", "input_schema": {"type": "object", "properties": {}}}
        ]

    def test_an_unknown_name_is_an_error_that_names_the_known_ones(self) -> None:
        with pytest.raises(ValueError, match="no tool is registered under gone, run; known tools: git_diff,"):
            developer_tools().serialize(["run", "gone", "git_diff"])

    def test_an_unknown_provider_is_an_error_that_names_the_known_ones(self) -> None:
        with pytest.raises(ValueError, match=r"provider must be one of 'openai', .*got 'google'"):
            developer_tools().serialize(["git_diff"], "google")  # type: ignore[arg-type]


class TestRegister:
    def test_a_name_is_taken_once(self) -> None:
        registry = developer_tools()
        with pytest.raises(ValueError, match="a tool named 'git_diff' is registered already"):
            registry.register("git_diff", "Another one.")
        assert len(registry) == 5

    def test_an_unregistered_tool_is_gone_and_its_name_is_free(self) -> None:
        registry = developer_tools()
        registry.unregister("run_pytest")
        assert "run_pytest" not in registry
        assert registry.route_tools(PROMPT, 1) != ["run_pytest"]
        with pytest.raises(KeyError, match="run_pytest"):
            registry.unregister("run_pytest")
        registry.register("run_pytest", "Water the plants.")
        assert registry.route_tools("water the plants", 1) == ["run_pytest"]
        assert [t["function"]["name"] for t in registry.serialize(["run_pytest", "git_diff"]).tools] == [
            "git_diff",
            "run_pytest",
        ]

    @pytest.mark.parametrize(
        ("tool", "message"),
        [
            ({"name": 3}, "name"),
            ({"name": None}, "name"),
            ({"name": ""}, "name"),
            (
                {"name": "t", "parameters": ["path"]},
                "parameters of 't' must be a JSON schema as a dict, got list",
            ),
            ({"name": "t", "tags": "git"}, "tags of 't' takes a list of strings, got 'git'"),
            ({"name": "t", "examples": "run it"}, "examples of 't' takes a list of strings, got 'run it'"),
        ],
    )
    def test_what_is_no_tool_is_refused_and_leaves_no_trace(self, tool: Any, message: str) -> None:
        registry = ToolRegistry()
        with pytest.raises(TypeError, match=message):
            registry.register(**tool)
        assert len(registry) == 0
        assert registry.serialize([]).catalog_tokens == 0

    def test_other_scripts_are_found_and_sent_as_they_are(self) -> None:
        registry = ToolRegistry()
        registry.register("tianqi", "查询城市的天气。", parameters("城市", required=("城市",)))
        registry.register("pochta", "Отправить письмо.", parameters("кому"), tags=["✉️"])
        assert registry.route_tools("今天天气怎么样", 1) == ["tianqi"]
        assert registry.route_tools("отправь письма", 1) == ["pochta"]
        payload = registry.serialize(["tianqi"], prune=SchemaPruning())
        assert "城市" in json.dumps(payload.tools, ensure_ascii=False)
        assert payload.tokens > 10
