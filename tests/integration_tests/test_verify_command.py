"""`tool-selection verify` and `verify_model`, on real clients and a provider on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from typer.testing import CliRunner

from langchain_tool_selection import ByModel, ModelFacts, ToolSelectionMiddleware
from langchain_tool_selection.cli import app
from langchain_tool_selection.evals import (
    FileError,
    VerifyCheck,
    VerifyPlan,
    VerifyReport,
    load_model_facts,
    verify_model,
)
from langchain_tool_selection.testing import ScriptedChatModel

from .agents import office
from .exposures import additional_tools, claude
from .providers import Behaviour, serving

pytestmark = pytest.mark.slow


def responses(address: str) -> Any:
    additional_tools()  # skips where the client is too old to add tools in mid-conversation
    return ChatOpenAI(
        model="gpt-5.5", api_key="none", base_url=address, use_responses_api=True, max_retries=0
    )


def completions(address: str) -> Any:
    return ChatOpenAI(
        model="gpt-5.5", api_key="none", base_url=address, use_responses_api=False, max_retries=0
    )


def opus(address: str) -> Any:
    return claude("claude-opus-5-5", base_url=address, max_retries=0)


def sonnet(address: str) -> Any:
    return claude("claude-sonnet-4-5", base_url=address, max_retries=0)


def asked(client: Callable[[str], Any], **behaviour: Any) -> tuple[VerifyReport, Behaviour]:
    provider = Behaviour(**behaviour)
    with serving(provider) as address:
        return verify_model(client(address), pause=0), provider


def results(report: VerifyReport) -> dict[str, str]:
    return {check.name: check.result for check in report.checks}


# -- what is measured ----------------------------------------------------------------------------------

ARRAYS_LOST = {"array: added": "lost", "array: removed": "lost"}


@pytest.mark.parametrize(
    ("client", "wires", "facts"),
    [
        (completions, {}, ModelFacts(caches=True)),
        (
            responses,
            {"wire: additional_tools": "kept"},
            ModelFacts(wire="additional_tools", caches=True),
        ),
        (
            opus,
            {"wire: tool_addition": "kept", "wire: tool_reference": "kept"},
            ModelFacts(wire="tool_addition", caches=True),
        ),
        (
            sonnet,
            {"wire: tool_addition": "not sent", "wire: tool_reference": "kept"},
            ModelFacts(wire="tool_reference", caches=True),
        ),
    ],
)
def test_a_provider_as_it_is_documented(client, wires, facts):
    report, provider = asked(client)
    assert results(report) == {"unchanged": "kept", "restart": "kept", **wires, **ARRAYS_LOST}
    assert report.facts == facts
    assert report.host == "127.0.0.1"
    unchanged = report.checks[0]
    assert unchanged.cache_read > 0.9 * 6_000
    assert unchanged.input_tokens >= unchanged.cache_read
    # No more than is planned, but for what the client did not send.
    unsent = [*results(report).values()].count("not sent")
    with serving(Behaviour()) as address:
        assert len(provider.requests) == VerifyPlan.of(client(address)).calls - unsent


def test_where_the_conversation_is_cached_apart_from_the_tools_a_changed_array_costs_nothing():
    report, _ = asked(completions, tools_first=False)
    assert results(report)["array: added"] == results(report)["array: removed"] == "kept"
    assert report.facts.caches is False


def test_a_model_that_binds_its_thinking_refuses_a_changed_array_in_one_line():
    report, _ = asked(opus, thinks=True)
    assert report.thought
    assert results(report)["array: added"] == results(report)["array: removed"] == "refused"
    assert report.checks[-1].message == "400: messages.1: the thinking was made behind another prefix"
    assert report.facts == ModelFacts(wire="tool_addition", caches=True, checks_prefix=True)


@pytest.mark.parametrize(
    ("client", "block"),
    [
        (responses, "additional_tools"),
        (opus, "tool_addition"),
        (sonnet, "tool_reference"),
    ],
)
@pytest.mark.parametrize("gateway", ["refuses", "drops"])
def test_a_gateway_that_does_not_know_a_wire_is_found_out(client, block, gateway):
    report, _ = asked(client, **{gateway: (block,)})
    check = next(check for check in report.checks if check.name == f"wire: {block}")
    if gateway == "refuses":
        assert (check.result, check.message) == ("refused", f"400: unknown type: {block} (of a gateway)")
    else:
        assert check.result == "ignored"
        assert "did not call the tool that was added" in check.message
    assert report.facts.wire == ("tool_reference" if client is opus else "none")


def test_a_wire_that_works_is_taken_though_the_one_ahead_of_it_does_not():
    report, _ = asked(opus, refuses=("tool_addition",))
    assert report.facts.wire == "tool_reference"


def test_where_no_cache_is_reported_nothing_is_said_of_it_and_the_wire_is():
    report, provider = asked(responses, caches=False)
    assert set(results(report).values()) == {"unknown"}
    assert report.facts == ModelFacts(wire="additional_tools")
    assert len(provider.requests) == 8, "the unchanged call is repeated twice"


def test_a_rate_limit_in_the_middle_says_nothing_about_the_provider():
    report, _ = asked(completions, fails_at=(4, 5))
    assert results(report)["array: added"] == "failed"
    assert report.checks[-1].message == "429: slow down"
    assert report.facts == ModelFacts()


def test_a_prompt_below_the_minimum_is_not_taken_for_one_that_lost_its_cache():
    with serving(Behaviour()) as address:
        report = verify_model(completions(address), prompt_tokens=100, pause=0)
    assert set(results(report).values()) == {"unknown"}
    assert report.facts.caches is None


def test_no_two_conversations_begin_alike_so_that_an_earlier_run_is_not_measured():
    provider = Behaviour()
    with serving(provider) as address:
        for _ in range(2):
            report = verify_model(completions(address), pause=0)
            assert results(report)["array: added"] == "lost"


def test_what_is_sent_is_known_before():
    with serving(Behaviour()) as address:
        plan = VerifyPlan.of(opus(address), prompt_tokens=2_000)
    assert plan.wires == ("tool_addition", "tool_reference")
    assert (plan.calls, plan.input_tokens) == (8, 16_000)
    assert plan.usd == pytest.approx(16_000 * 1.25 * 4 / 1e6)
    assert "8 calls of anthropic:claude-opus-5-5 at 127.0.0.1, about 16,000 input tokens" in str(plan)
    assert "at most about 8.0 cents" in str(plan)
    assert "price unknown" in str(VerifyPlan.of(ScriptedChatModel(script=[])))


TOOL = {"name": "a", "input_schema": {"type": "object"}}
HELLO = {"role": "user", "content": "hello"}
ADDED = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": TOOL}}
BETA = {"anthropic-beta": "inline-tools-2026-09-15"}


@pytest.mark.parametrize(
    ("path", "payload", "message"),
    [
        (
            "/v1/messages",
            {
                "tools": [
                    TOOL,
                    {**TOOL, "name": "b", "defer_loading": True, "cache_control": {"type": "ephemeral"}},
                ]
            },
            "a tool with defer_loading cannot have cache_control",
        ),
        ("/v1/messages", {"tools": [{**TOOL, "defer_loading": True}]}, "All tools have defer_loading set"),
        (
            "/v1/messages",
            {"tools": [TOOL], "messages": [HELLO, {"role": "system", "content": [ADDED]}]},
            "the name a is not unique",
        ),
        (
            "/v1/messages",
            {"messages": [{"role": "user", "content": [{"type": "additional_tools"}]}]},
            "unknown type: additional_tools",
        ),
        (
            "/v1/responses",
            {"tools": [TOOL], "input": [HELLO, {"type": "additional_tools", "tools": [TOOL]}]},
            "the name a is not unique",
        ),
        ("/v1/chat/completions", {"messages": [{**HELLO, "content": [ADDED]}]}, "Invalid content type"),
    ],
)
def test_the_provider_on_this_machine_refuses_what_is_documented_to_be_refused(path, payload, message):
    with serving(Behaviour()) as address:
        answer = httpx.post(address + path, json={"model": "m", "messages": [HELLO], **payload}, headers=BETA)
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


# -- the setting ---------------------------------------------------------------------------------------


def report_of(model: str, **results: Any) -> VerifyReport:
    checks = tuple(VerifyCheck(name.replace("_", ": ", 1), result) for name, result in results.items())
    return VerifyReport(model, "ChatOpenAI", "", "2026-12-01", False, checks)


def exposure_in(agent: Any) -> str:
    events = agent.stream({"messages": [("user", "send an email")]}, stream_mode="custom")
    return next(event["exposure"] for event in events if event["type"] == "tool_selection")


def test_a_report_is_a_setting_that_shows_tools_as_the_provider_takes_them(tmp_path):
    path = tmp_path / "report.json"
    with serving(Behaviour()) as address:
        verify_model(responses(address), pause=0).save(path)
        settings: list[Any] = ["auto", ByModel(load_model_facts(path))]
        shown = []
        for exposure in settings:
            middleware = ToolSelectionMiddleware(top_k=1, exposure=exposure)
            shown.append(exposure_in(create_agent(responses(address), office(), middleware=[middleware])))
    assert shown == ["grow", "append"], "behind an address of one's own nothing native is sent unasked"


def test_reports_of_several_models_are_read_together(tmp_path):
    files = [tmp_path / "one.json", tmp_path / "other.json"]
    report_of("openai:gpt-[x]", unchanged="kept", array_added="kept").save(files[0])
    report_of("openai:gpt-5.5", unchanged="kept", array_added="lost").save(files[1])
    facts = load_model_facts(*files)
    assert facts["openai:gpt-5.5"] == ModelFacts(caches=True)
    assert facts["openai:gpt-[[]x]"] == ModelFacts(caches=False), "a name is no pattern"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no such file"),
        ("[]", "a report of `tool-selection verify` is an object, found an array"),
        ("{}", "no report of `tool-selection verify`: it has no 'model' or no 'facts'"),
        ('{"model": "a", "facts": {"caches": "yes"}}', "field 'caches' must be a boolean, found a string"),
        ('{"model": "a", "facts": {"wire": "smoke"}}', "ModelFacts.wire must be one of 'none'"),
    ],
)
def test_a_file_that_is_no_report_is_named(tmp_path, text, message):
    path = tmp_path / "report.json"
    if text is not None:
        path.write_text(text, "utf-8")
    with pytest.raises(FileError) as raised:
        load_model_facts(path)
    assert message in str(raised.value)
    assert str(path) in str(raised.value)


# -- the command ---------------------------------------------------------------------------------------


def run(*arguments: str, **options: Any) -> Any:
    environment = {
        "COLUMNS": "100",
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": None,
        "ANTHROPIC_API_KEY": None,
    }
    options["env"] = {**environment, **options.get("env", {})}
    return CliRunner().invoke(app, ["verify", *arguments], **options)


@pytest.fixture
def provider() -> Behaviour:
    return Behaviour()


@pytest.fixture
def openai(provider: Behaviour) -> Iterator[list[str]]:
    """The options of the command for a model of OpenAI's."""
    additional_tools()
    with serving(provider) as address:
        yield [
            "--model", "openai:gpt-5.5", "--option", f"base_url={address}", "--option", "use_responses_api=true",
            "--option", "max_retries=0",
        ]  # fmt: skip


def test_people_see_what_is_sent_a_table_and_the_setting(openai, tmp_path):
    path = tmp_path / "report.json"
    result = run(*openai, "--yes", "--out", str(path))
    assert result.exit_code == 0, result.output
    assert result.stderr == (
        "6 calls of openai:gpt-5.5 at 127.0.0.1, about 36,000 input tokens (price unknown) and short answers. "
        "Wires: additional_tools\n"
    )
    rows = [line.split("│") for line in result.stdout.splitlines() if line.startswith("│")]
    shown = {row[1].strip(): row[2].strip() for row in rows}
    assert shown == {
        "unchanged": "kept", "restart": "kept", "wire: additional_tools": "kept", **ARRAYS_LOST,
    }  # fmt: skip
    assert "so: ModelFacts(wire='additional_tools', caches=True, checks_prefix=None)" in result.stdout
    assert f"load_model_facts({str(path)!r})" in result.stdout
    assert load_model_facts(path) == {"openai:gpt-5.5": ModelFacts(wire="additional_tools", caches=True)}


def test_a_program_gets_one_json_object(openai, tmp_path):
    path = tmp_path / "report.json"
    result = run(*openai, "--yes", "--json", "--out", str(path))
    values = json.loads(result.stdout)
    assert values == json.loads(path.read_text("utf-8"))
    assert list(values) == ["model", "client", "host", "as_of", "thought", "checks", "facts"]
    assert values["client"] == "ChatOpenAI"
    assert values["facts"] == {"wire": "additional_tools", "caches": True, "checks_prefix": None}
    assert values["checks"][0]["name"] == "unchanged"


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_without_a_yes_nothing_is_sent(openai, provider, answer):
    result = run(*openai, input=answer)
    assert result.exit_code == 1
    assert "6 calls of openai:gpt-5.5" in result.stderr
    assert provider.requests == []


def test_a_yes_is_enough(openai, provider):
    assert run(*openai, "--json", input="y\n").exit_code == 0
    assert len(provider.requests) == 6


def test_a_model_of_anthropic_is_asked_through_its_client(provider):
    pytest.importorskip("langchain_anthropic", reason="is not in the environment of oldest versions")
    with serving(provider) as address:
        model = ["--model", "anthropic:claude-opus-5-5", "--option", f"base_url={address}"]
        result = run(*model, "--yes", "--json", env={"ANTHROPIC_API_KEY": "none"})
    assert json.loads(result.stdout)["facts"]["wire"] == "tool_addition"


def test_a_model_of_a_module_is_asked_too(provider, tmp_path, monkeypatch):
    with serving(provider) as address:
        text = (
            f"from langchain_openai import ChatOpenAI\nMODEL = ChatOpenAI(model='m', base_url={address!r})\n"
        )
        (tmp_path / "verified_models.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        result = run("--model", "verified_models:MODEL", "--yes", "--json")
    assert json.loads(result.stdout)["model"] == "openai:m"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "nobody:nothing"], "making the model 'nobody:nothing' failed with ValueError"),
        (["--model", "openai:gpt-5.5", "--option", "base_url"], "--option takes KEY=VALUE, got 'base_url'"),
        (
            ["--model", "openai:gpt-5.5", "--out", "no/such/folder/report.json"],
            "there is no folder no/such/folder",
        ),
    ],
)
def test_a_bad_option_is_said_in_one_line_before_anything_else(arguments, message):
    result = run(*arguments, "--yes")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("tool-selection verify: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_without_a_key_the_client_says_so_in_one_line():
    result = run("--model", "openai:gpt-5.5", "--yes", env={"OPENAI_API_KEY": None})
    assert (result.exit_code, result.stdout) == (2, "")
    assert "making the model 'openai:gpt-5.5' failed with OpenAIError" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (401, "401: Incorrect API key provided"),
        (404, "404: The model does not exist"),
        (500, "500: out of order"),
    ],
)
def test_a_conversation_that_cannot_begin_is_one_line(openai, provider, status, message):
    provider.fails_at, provider.status, provider.message = (1,), status, message.partition(": ")[2]
    result = run(*openai, "--yes")
    assert (result.exit_code, result.stdout) == (2, "")
    planned, error = result.stderr.splitlines()
    assert planned.startswith("6 calls")
    assert error == f"tool-selection verify: the conversation could not begin: {message}"


def test_without_a_network_the_error_is_one_line():
    options = ["--option", "base_url=http://127.0.0.1:9/v1", "--option", "max_retries=0"]
    result = run("--model", "openai:gpt-5.5", "--yes", *options)
    assert result.exit_code == 2
    assert "the conversation could not begin: " in result.stderr
    assert "Connection error." in result.stderr
    assert result.stderr.count("\n") == 2
