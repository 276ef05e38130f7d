"""Labelled requests played with a model: `run_agent` in Python and `tool-selection run-agent`."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from typer.testing import CliRunner

from langchain_tool_selection import LLMRanker, ToolDocument, ToolHints
from langchain_tool_selection.cli import app
from langchain_tool_selection.evals import AgentReport, Case, FileError, read_tools, run_agent
from langchain_tool_selection.testing import (
    ModelCall,
    PayloadLog,
    ScriptedChatModel,
    call,
    calls,
    scripted_client,
)

from .exposures import claude
from .providers import JsonHandler

pytestmark = pytest.mark.slow

TOOLS = [
    {"name": "create_issue", "description": "Open an issue in a repository.", "domain": "github"},
    {"name": "close_issue", "description": "Close an issue that is solved.", "domain": "github"},
    {"name": "get_weather", "description": "Forecast for a city.", "domain": "sky"},
    {"name": "calculator", "description": "Evaluate arithmetic.", "domain": "math"},
]

AT_ONCE = "open an issue about the login"
SEARCHED = "do I need an umbrella?"
WRONG = "evaluate 2 + 2"
RAISING = "close the issue and cry"

CASES = [
    {"query": AT_ONCE, "relevant": ["create_issue"]},
    {"query": SEARCHED, "relevant": ["get_weather"]},
    {"query": WRONG, "relevant": ["calculator"]},
    {"query": RAISING, "relevant": ["close_issue"]},
]
"""One that is found at once, one that needs a search, one that the model gets wrong, and one that raises."""

WANTED = {AT_ONCE: "create_issue", SEARCHED: "get_weather", WRONG: "close_issue", RAISING: "close_issue"}

USAGE: Any = {
    "input_tokens": 100,
    "output_tokens": 5,
    "total_tokens": 105,
    "input_token_details": {"cache_read": 60, "cache_creation": 20},
}
"""What each model call reports."""

EXPOSURES = ["none", "auto", "per_turn", "grow", "append", "proxy", "stubs"]


def play(sent: ModelCall) -> AIMessage:
    """Answer as a model does that knows what it wants, and searches for it where it does not see it."""
    answer = _answer(sent)
    answer.usage_metadata = USAGE
    return answer


def _answer(sent: ModelCall) -> AIMessage:
    place = max(n for n, message in enumerate(sent.messages) if isinstance(message, HumanMessage))
    said, after = sent.messages[place].text, sent.messages[place + 1 :]
    wanted, results = WANTED[said], [message.text for message in after if isinstance(message, ToolMessage)]
    if results and results[-1].startswith("Success."):
        if said == RAISING:
            raise RuntimeError("no more\nquota")
        return AIMessage("Done.")
    if wanted not in sent.tools and not results:
        return call("discover_tools", names=[wanted])
    if wanted not in sent.tools and "call_tool" in sent.tools:
        return call("call_tool", name=wanted, arguments={})
    return call(wanted)


def report_on(model: Any, *exposures: Any, **settings: Any) -> AgentReport:
    return run_agent(TOOLS, CASES, model, exposures, **{"top_k": 1, **settings})


# -- in Python -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exposure", "shown_as", "discoveries"),
    [
        ("none", "everything", 0),
        ("auto", "per_turn", 2),  # a model that nothing is known about
        ("per_turn", "per_turn", 2),
        ("grow", "grow", 2),
        ("append", "grow", 2),  # and that cannot add tools in mid-conversation
        ("proxy", "proxy", 4),
        ("stubs", "stubs", 0),
    ],
)
def test_what_a_model_calls_is_counted(exposure: Any, shown_as: str, discoveries: int) -> None:
    report = report_on(ScriptedChatModel(script=play), exposure)
    found = report.measures[exposure]
    assert found.shown_as == shown_as
    # The third case takes another tool, and the fourth calls the right one and then fails.
    assert (found.accuracy, found.recall, found.first_right) == (2 / 4, 3 / 4, 3 / 4)
    assert (found.wrong, found.errors, found.discoveries) == (1, 1, discoveries)
    # Two calls a case, and one more for each search.
    assert found.model_calls == 8 + discoveries
    reported = found.model_calls - 1
    assert (found.usage.calls, found.usage.input_tokens) == (reported, 100 * reported)
    assert (found.usage.cache_read, found.usage.cache_write) == (60 * reported, 20 * reported)
    assert found.output_tokens == 5 * reported
    assert (found.cost, found.usd) == (None, None), "no prices are published for a scripted model"
    assert 0 < found.seconds["p50"] <= found.seconds["p99"]


def test_each_run_says_what_was_called_and_what_ended_it() -> None:
    report = report_on(ScriptedChatModel(script=play), "none", "per_turn")
    assert [(run.case, run.exposure) for run in report.runs] == [
        (case, exposure) for case in (1, 2, 3, 4) for exposure in ("none", "per_turn")
    ]
    found, searched, wrong, raising = report.runs[1::2]
    assert (found.called, found.discoveries, found.model_calls, found.is_right) == (
        ("create_issue",),
        0,
        2,
        True,
    )
    assert (searched.called, searched.discoveries, searched.model_calls) == (("get_weather",), 1, 3)
    assert (wrong.called, wrong.found, wrong.wrong, wrong.is_right) == (("close_issue",), 0, 1, False)
    assert (raising.called, raising.found, raising.is_right) == (("close_issue",), 1, False)
    assert raising.error == "RuntimeError: no more quota"
    assert (raising.model_calls, raising.usage.calls) == (2, 1)
    assert report.not_right == [*report.runs[4:]]


def test_several_tools_and_alternatives_count_as_in_eval() -> None:
    script = [calls(("get_weather", {}), ("close_issue", {})), call("get_weather"), "Done."]
    case = Case("both", ("create_issue", "calculator"), alternatives={"calculator": ("get_weather",)})
    (run,) = run_agent(TOOLS, [case], ScriptedChatModel(script=script), ["none"]).runs
    assert run.called == ("get_weather", "close_issue", "get_weather")
    assert (run.found, run.first_right, run.wrong, run.is_right) == (0.5, True, 1, False)


def test_a_model_that_never_ends_is_stopped_and_what_it_called_counts() -> None:
    model = ScriptedChatModel(script=lambda _: call("create_issue"))
    report = run_agent(TOOLS, CASES[:1], model, ["none"], max_calls=3)
    (run,) = report.runs
    assert (run.error, run.model_calls, len(run.called), run.found) == (
        "no answer after 3 model calls",
        3,
        3,
        1,
    )
    assert report.measures["none"].accuracy == 0
    assert report.measures["none"].seconds == {}
    last_moment = ScriptedChatModel(script=[call("create_issue"), call("create_issue"), "Done."])
    assert run_agent(TOOLS, CASES[:1], last_moment, ["none"], max_calls=3).runs[0].is_right


def test_what_was_said_before_is_played_with_an_answer_to_each_call() -> None:
    history = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "the login is broken"},
        {"role": "assistant", "content": "", "tool_calls": ["create_issue", "get_weather"]},
        {"role": "tool", "content": "issue 7"},
        {"role": "assistant", "content": [{"type": "text", "text": "It is issue 7."}]},
        {"type": "human", "content": "thanks"},
        {"role": "assistant", "content": ""},
    ]
    model = ScriptedChatModel(script=[call("close_issue"), "Done."])
    case = Case("now close it", ("close_issue",), history=tuple(history))
    (run,) = run_agent(TOOLS, [case], model, ["none"], system_prompt="Help.").runs
    assert (run.called, run.error) == (("close_issue",), "")
    system, *said, _ = model.calls[0].messages
    assert system.text == "Help."
    assert [(message.type, message.text) for message in said[:2]] == [
        ("human", "the login is broken"),
        ("ai", ""),
    ]
    first, second = said[1].tool_calls
    assert (first["name"], second["name"]) == ("create_issue", "get_weather")
    assert (said[2].tool_call_id, said[2].text) == (first["id"], "issue 7")
    assert said[3].tool_call_id == second["id"]
    assert said[3].text.startswith("Success.")
    assert [message.text for message in said[4:]] == ["It is issue 7.", "thanks"]


@tool(extras={"examples": ["crunch numbers"], "tags": ["sum"], "domain": "math"})
def evaluate_arithmetic(expression: str, digits: int = 2) -> str:
    """Evaluate an expression.

    Args:
        expression: Such as 2 + 2.
        digits: Behind the point.
    """
    RAN.append(expression)
    return "4"


@tool
async def look_up(word: str) -> str:
    """Look up a word in the dictionary."""
    RAN.append(word)
    return "found"


RAN: list[str] = []
RUNNABLE = [evaluate_arithmetic, look_up]


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


def test_a_rehearsed_tool_is_sent_and_found_as_the_real_one_is() -> None:
    sent = []
    for execute in (False, True):
        model = ScriptedChatModel(script=["Hello."])
        case = Case("hello", ("look_up",))
        run_agent(RUNNABLE, [case], model, ["none"], execute=execute)
        sent.append(model.calls[0].schemas)
    assert json.dumps(sent[0]) == json.dumps(sent[1])
    real = read_tools(RUNNABLE).documents
    catalog: list[Any] = []

    class Looking:
        def rank(self, query: Any, documents: Any, *, limit: Any = None) -> list[Any]:
            catalog.extend(documents)
            return []

    run_agent(RUNNABLE, [case], ScriptedChatModel(script=["Hello."]), ["auto"], top_k=1, ranker=Looking())
    assert tuple(catalog) == real
    assert isinstance(real[0], ToolDocument)
    assert real[0].examples == ("crunch numbers",)


@pytest.mark.parametrize("exposure", EXPOSURES)
def test_no_tool_runs_unless_it_is_asked_for(exposure: Any) -> None:
    def script(sent: ModelCall) -> Any:
        return WORK if sent.messages[-1].type == "human" else "Done."

    WORK = calls(("evaluate_arithmetic", {"expression": "2 + 2"}), ("look_up", {"word": "tool"}))
    case = Case("what is 2 + 2?", ("evaluate_arithmetic", "look_up"))
    settings: Any = {"top_k": 1}
    (run,) = run_agent(RUNNABLE, [case], ScriptedChatModel(script=script), [exposure], **settings).runs
    assert (run.is_right, RAN) == (True, [])
    report = run_agent(
        RUNNABLE, [case], ScriptedChatModel(script=script), [exposure], execute=True, **settings
    )
    assert (report.runs[0].is_right, sorted(RAN), report.executed) == (True, ["2 + 2", "tool"], True)


def test_descriptions_cannot_be_run() -> None:
    model = ScriptedChatModel(script=["Hello."])
    for tools in (TOOLS, read_tools(TOOLS)):
        with pytest.raises(FileError, match="tool 1: nothing runs behind an object; to run tools, give"):
            run_agent(tools, CASES, model, execute=True)


def test_settings_of_the_middleware_are_passed_on_and_checked() -> None:
    hints = {"get_weather": ToolHints(examples=[SEARCHED])}
    report = report_on(ScriptedChatModel(script=play), "auto", hints=hints)
    assert report.runs[1].discoveries == 0
    for settings, error, message in [
        (
            {"exposures": ["sometimes"]},
            ValueError,
            "exposures must be one of 'none', 'auto', .*, got 'sometimes'",
        ),
        ({"exposures": []}, ValueError, "exposures is empty; take some of none, auto"),
        ({"max_calls": 0}, ValueError, "max_calls must be 1 or more"),
        ({"concurrency": 0}, ValueError, "concurrency must be 1 or more"),
        ({"top_k": -1}, ValueError, "top_k must be 0 or more"),
        ({"nonsense": 1}, TypeError, "nonsense"),
        ({"cases": [{"query": "x", "relevant": ["z"]}]}, FileError, "'z', which is no tool"),
    ]:
        arguments: Any = {"cases": CASES, **settings}
        with pytest.raises(error, match=message):
            run_agent(TOOLS, model=ScriptedChatModel(script=play), **arguments)


def test_cases_played_at_the_same_time_come_out_in_their_order() -> None:
    together, done = threading.Barrier(4, timeout=20), list[int]()

    def script(sent: ModelCall) -> AIMessage:
        if sent.messages[-1].type == "human":
            together.wait()
        return play(sent)

    one = report_on(ScriptedChatModel(script=play), "none")
    four = report_on(ScriptedChatModel(script=script), "none", concurrency=4, progress=done.append)
    for run, same in zip(one.runs, four.runs, strict=True):
        assert {**run.to_dict(), "seconds": 0} == {**same.to_dict(), "seconds": 0}
    assert done == [1, 2, 3, 4]


def test_what_a_ranker_asks_of_a_model_is_counted() -> None:
    menu = AIMessage('["create_issue"]', usage_metadata=USAGE)
    ranker = LLMRanker(ScriptedChatModel(script=lambda _: menu))
    model = ScriptedChatModel(script=play)
    (plain,) = run_agent(TOOLS, CASES[:1], model, ["auto"], top_k=1).runs
    (asked,) = run_agent(TOOLS, CASES[:1], model, ["auto"], top_k=1, ranker=ranker).runs
    assert asked.model_calls == plain.model_calls + 1
    assert asked.usage.input_tokens == plain.usage.input_tokens + 100


def test_a_report_is_json_and_a_table() -> None:
    report = report_on(ScriptedChatModel(script=play), "none", "auto")
    values = json.loads(json.dumps(report.to_dict()))
    assert list(values) == ["tools", "cases", "model", "executed", "prices", "exposures", "runs"]
    auto = values["exposures"]["auto"]
    assert auto.pop("seconds").keys() == {"p50", "p99"}
    assert auto == {
        "shown_as": "per_turn", "accuracy": 0.5, "recall": 0.75, "first_right": 0.75, "wrong": 1,
        "discoveries": 2, "model_calls": 10, "input_tokens": 900, "cache_read": 540, "cache_write": 180,
        "output_tokens": 45, "cost": None, "usd": None, "errors": 1,
    }  # fmt: skip
    run = values["runs"][7]
    assert run.pop("seconds") >= 0
    assert run == {
        "case": 4, "query": RAISING, "exposure": "auto", "shown_as": "per_turn", "relevant": ["close_issue"],
        "called": ["close_issue"], "found": 1.0, "first_right": True, "wrong": 0, "discoveries": 0,
        "model_calls": 2, "error": "RuntimeError: no more quota", "input_tokens": 100, "cache_read": 60,
        "cache_write": 20, "output_tokens": 5,
    }  # fmt: skip
    rows = {cells[0]: cells[1:] for cells in report.table}
    assert rows["a case"] == ("none", "auto")
    assert rows["all tools called"] == ("50.0%", "50.0%")
    assert rows["model calls"] == ("2.00", "2.50")
    assert rows["input tokens"] == ("175", "225")
    assert rows["errors in all"] == ("1", "1")
    assert "input cost" not in rows
    assert "all tools called" in str(report)


def test_a_model_that_reports_no_tokens_has_none() -> None:
    report = run_agent(TOOLS, CASES[:1], ScriptedChatModel(script=["Hello."]), ["none"])
    assert report.to_dict()["exposures"]["none"]["input_tokens"] is None
    assert "input tokens" not in {cells[0] for cells in report.table}


# -- real clients --------------------------------------------------------------------------------------


class Provider(JsonHandler):
    """Answers over HTTP as Anthropic's Messages and OpenAI's Chat Completions do."""

    def do_POST(self) -> None:
        payload = json.loads(self.rfile.read(int(self.headers["content-length"])))
        asked = json.dumps(payload)
        if "cry" in asked:
            self.send_json(400, {"error": {"type": "invalid_request_error", "message": "too sad"}})
            return
        answered = "Success." in asked
        self.send_json(
            200, (self._message if "messages" in self.path else self._completion)(payload, answered)
        )

    def _message(self, payload: dict[str, Any], answered: bool) -> dict[str, Any]:
        use = {"type": "tool_use", "id": "toolu_1", "name": "create_issue", "input": {}}
        return {
            "id": "msg_1", "type": "message", "role": "assistant", "model": payload["model"],
            "content": [{"type": "text", "text": "Done."} if answered else use],
            "stop_reason": "end_turn" if answered else "tool_use", "stop_sequence": None,
            # What is read and written comes beside what is not cached: 1,000 tokens in all.
            "usage": {"input_tokens": 100, "cache_read_input_tokens": 700 if answered else 0,
                      "cache_creation_input_tokens": 200 if answered else 900, "output_tokens": 7},
        }  # fmt: skip

    def _completion(self, payload: dict[str, Any], answered: bool) -> dict[str, Any]:
        function = {"name": "create_issue", "arguments": "{}"}
        use = {"tool_calls": [{"id": "call_1", "type": "function", "function": function}], "content": None}
        message = {"role": "assistant", **({"content": "Done."} if answered else use)}
        return {
            "id": "1", "object": "chat.completion", "created": 0, "model": payload["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            # What is read is part of the whole.
            "usage": {"prompt_tokens": 1_000, "completion_tokens": 7, "total_tokens": 1_007,
                      "prompt_tokens_details": {"cached_tokens": 768 if answered else 0}},
        }  # fmt: skip


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


PLAYED = [CASES[0], CASES[3]]
"""A case that takes two calls, and one that the provider refuses."""


def test_what_anthropic_reports_of_its_cache_is_read_and_priced(address: str) -> None:
    model = claude("claude-opus-5-5", base_url=address, max_retries=0)
    report = run_agent(TOOLS, PLAYED, model, ["none", "auto"], top_k=1)
    assert report.model == "anthropic:claude-opus-5-5"
    for exposure, shown_as in (("none", "everything"), ("auto", "stubs")):
        found = report.measures[exposure]
        assert (found.shown_as, found.accuracy, found.errors) == (shown_as, 0.5, 1)
        assert (found.model_calls, found.usage.input_tokens, found.output_tokens) == (3, 2_000, 14)
        assert (found.usage.cache_read, found.usage.cache_write) == (700, 1_100)
        # 200 tokens at 1, 700 at 0.05, 1,100 at 1.25; a million is 4 dollars.
        assert found.cost == pytest.approx(200 + 35 + 1_375)
        assert found.usd == pytest.approx(1_610 * 4 / 1e6)
    assert "too sad" in report.runs[2].error
    rows = {cells[0]: cells[1:] for cells in report.table}
    assert rows["input cost"] == ("805", "805")
    assert rows["- to none"] == ("100%", "100%")
    assert rows["- in US$"] == ("0.0032", "0.0032")


def test_what_openai_reports_of_its_cache_is_read_and_priced(address: str) -> None:
    model = ChatOpenAI(model="gpt-5.5", base_url=f"{address}/v1", api_key="none", max_retries=0)  # type: ignore[arg-type]
    report = run_agent(TOOLS, PLAYED, model, ["none", "grow"], top_k=1)
    assert report.model == "openai:gpt-5.5"
    for exposure, shown_as in (("none", "everything"), ("grow", "grow")):
        found = report.measures[exposure]
        assert (found.shown_as, found.accuracy, found.errors) == (shown_as, 0.5, 1)
        assert (found.model_calls, found.usage.input_tokens, found.output_tokens) == (3, 2_000, 14)
        assert (found.usage.cache_read, found.usage.cache_write) == (768, 0)
        # 1,232 tokens at 1 and 768 at 0.1; what a million costs is not published in one number.
        assert found.cost == pytest.approx(1_232 + 76.8)
        assert found.usd is None
    assert "too sad" in report.runs[3].error


@pytest.mark.parametrize("exposure", EXPOSURES)
def test_each_exposure_is_played_on_a_providers_client(exposure: Any) -> None:
    log = PayloadLog()
    model = scripted_client(claude("claude-opus-5-5"), play, log)
    report = report_on(model, exposure)
    found = report.measures[exposure]
    assert found.shown_as == {"none": "everything", "auto": "append"}.get(exposure, exposure)
    assert (found.accuracy, found.recall, found.wrong, found.errors) == (2 / 4, 3 / 4, 1, 1)
    assert found.model_calls == len(log.payloads)
    reported = found.usage.calls
    assert reported == len(log.payloads) - 1
    # 20 tokens at 1, 60 at 0.05 and 20 at 1.25 a call.
    assert found.cost == pytest.approx(reported * (20 + 3 + 25))
    sent = {len(payload["tools"]) for payload in log.payloads}
    assert sent == {"none": {4}, "proxy": {2}, "stubs": {5}}.get(
        exposure, {1, 2} if found.shown_as == "append" else {1, 2, 3}
    )


# -- on the command line -------------------------------------------------------------------------------

MODULE = '''
from langchain_core.tools import tool
from langchain_tool_selection.testing import ScriptedChatModel, call
from tests.integration_tests.test_run_agent import play

def write(sent):
    return call("write_note", text="hello") if sent.messages[-1].type == "human" else "Done."

def fail(sent):
    raise RuntimeError("no key")

MODEL, WRITER, FAILING = (ScriptedChatModel(script=script) for script in (play, write, fail))

@tool
def write_note(text: str) -> str:
    """Write a note."""
    with open("note.txt", "w") as file:
        file.write(text)
    return text

NOTES = [write_note]
'''


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["run-agent", *arguments], env={"COLUMNS": "80"})


@pytest.fixture
def files(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Options that name tools and cases; the module `played` has models and a tool that leaves a trace."""
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS), "utf-8")
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in CASES), "utf-8")
    (tmp_path / "notes.jsonl").write_text(
        json.dumps({"query": "note it", "relevant": ["write_note"]}), "utf-8"
    )
    (tmp_path / "played.py").write_text(MODULE, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(root), *sys.path])
    monkeypatch.delitem(sys.modules, "played", raising=False)
    return ["--tools", "tools.json", "--cases", "cases.jsonl", "--model", "played:MODEL", "--top-k", "1"]


def test_the_command_prints_one_json_object_for_programs(files: list[str]) -> None:
    result = run(*files, "--exposure", "none, proxy,auto", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    values = json.loads(result.stdout)
    assert list(values) == ["tools", "cases", "model", "executed", "prices", "exposures", "runs", "gates"]
    assert [*values["exposures"]] == ["none", "proxy", "auto"]
    proxy = values["exposures"]["proxy"]
    assert (proxy["shown_as"], proxy["accuracy"], proxy["discoveries"], proxy["errors"]) == (
        "proxy",
        0.5,
        4,
        1,
    )
    assert len(values["runs"]) == 12
    assert (values["executed"], values["gates"]) == (False, [])


def test_the_command_shows_people_a_table_and_what_went_wrong(files: list[str]) -> None:
    result = run(*files)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("4 tools, 4 cases, ScriptedChatModel; no tool was run\n")
    rows = {
        cells[0].strip(): [cell.strip() for cell in cells[1:]]
        for cells in (line.strip("│").split("│") for line in result.stdout.splitlines() if "│" in line)
    }
    assert rows["shown as"] == ["everything", "per_turn"]
    assert rows["all tools called"] == ["50.0%", "50.0%"]
    assert rows["discoveries"] == ["0.00", "0.50"]
    assert rows["- cache reads"] == ["105", "135"]
    assert result.stdout.endswith(
        "not right under auto: 2\n"
        "  calculator: evaluate 2 + 2\n"
        "    called close_issue\n"
        "  close_issue: close the issue and cry\n"
        "    called close_issue\n"
        "    RuntimeError: no more quota\n"
    )


def test_a_limit_and_a_prompt_are_taken(files: list[str]) -> None:
    values = json.loads(run(*files, "--limit", "2", "--system-prompt", "Help.", "--json").stdout)
    assert (values["cases"], len(values["runs"])) == (2, 4)
    assert sys.modules["played"].MODEL.calls[0].messages[0].text == "Help."


def test_a_gate_holds_for_what_selects_and_not_for_the_reference(files: list[str]) -> None:
    assert run(*files, "--min-accuracy", "0.5").exit_code == 0
    failed = run(*files, "--min-accuracy", "0.9", "--json")
    assert (failed.exit_code, failed.stderr) == (1, "gate failed: accuracy under auto >= 0.9, found 0.5\n")
    assert json.loads(failed.stdout)["gates"] == [
        {"text": "accuracy under auto >= 0.9", "value": 0.5, "passed": False}
    ]


def test_tools_of_a_module_run_with_execute_alone(files: list[str]) -> None:
    options = ["--tools", "played:NOTES", "--cases", "notes.jsonl", "--model", "played:WRITER"]
    rehearsed = run(*options)
    assert (rehearsed.exit_code, Path("note.txt").exists()) == (0, False)
    executed = run(*options, "--execute", "--exposure", "auto")
    assert executed.exit_code == 0
    assert "ScriptedChatModel; tools were run" in executed.stdout
    assert Path("note.txt").read_text() == "hello"


SERVER = '''
from pathlib import Path
from mcp.server.fastmcp import FastMCP

server = FastMCP("notes")

@server.tool()
def write_note(text: str) -> str:
    """Write a note."""
    Path(__file__).with_name("note.txt").write_text(text)
    return text

server.run()
'''


@pytest.mark.mcp
@pytest.mark.process
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tools_of_mcp_servers_run_with_execute_alone(files: list[str], tmp_path: Path) -> None:
    # Ahead of the command, which has no real standard error for the servers' logs.
    pytest.importorskip("langchain_mcp_adapters.client")
    (tmp_path / "server.py").write_text(SERVER, "utf-8")
    spec = {"command": sys.executable, "args": [str(tmp_path / "server.py")]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"notes": spec}}), "utf-8")
    command = ["--tools", "mcp.json", "--cases", "notes.jsonl", "--model", "played:WRITER"]
    for options in ([], ["--execute"]):
        done = run(*command, "--exposure", "auto", "--json", *options)
        assert done.exit_code == 0, done.stderr
        assert [played["called"] for played in json.loads(done.stdout)["runs"]] == [["write_note"]]
        assert (tmp_path / "note.txt").exists() == bool(options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--exposure", "sometimes"],
            "exposures must be one of 'none', 'auto', 'per_turn', 'grow', 'append', ",
        ),
        (["--exposure", ""], "got ''"),
        (
            ["--exposure", "none", "--min-accuracy", "1"],
            "--min-accuracy is a gate for exposures other than none",
        ),
        (
            ["--execute"],
            "tools.json, tool 1: nothing runs behind an object; to run tools, give LangChain tools as",
        ),
        (["--model", "nonsense"], "making the model 'nonsense' failed with"),
        (["--model", "played:FAILING"], "all 8 conversations failed, the first with RuntimeError: no key"),
        (["--ranker", "magic"], "no ranker is called 'magic'"),
        (["--tools", "none.json"], "none.json: no such file"),
        (
            ["--cases", "notes.jsonl"],
            "notes.jsonl, line 1: field 'relevant' has 'write_note', which is no tool",
        ),
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_bad_usage_is_said_in_one_line(
    files: list[str], options: list[str], message: str, form: list[str]
) -> None:
    result = run(*files, *options, *form)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("tool-selection run-agent: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_help_says_that_no_tool_runs_by_itself() -> None:
    text = " ".join(re.sub("[│╭╰─]", " ", run("--help").stdout).split())
    assert "No tool is run" in text
    assert "REALLY RUN the tools" in text
