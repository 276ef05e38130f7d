"""`tool-selection search`, `eval`, `lint` and `generate-cases`, as people and programs run them."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks.registry61_data import TOOLS
from langchain_tool_selection.cli import app
from langchain_tool_selection.evals import load_cases

ISSUES = [
    {"name": "create_issue", "description": "Open an issue in a repository.", "domain": "github"},
    {"name": "close_issue", "description": "Close an issue that is solved.", "domain": "github"},
    {"name": "get_weather", "description": "Forecast for a city.", "domain": "sky"},
    {"name": "calculator", "description": "Evaluate arithmetic.", "domain": "math"},
]
CASES = [
    {"query": "open an issue about the login", "relevant": ["create_issue"]},
    {"query": "close it", "relevant": ["close_issue"], "history": [{"role": "user", "content": "the issue"}]},
    {"query": "do I need an umbrella?", "relevant": ["get_weather"]},
]
FORM = ["tools", "cases", "recall", "complete", "mrr", "payload_saved", "micros", "misses"]


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, [*arguments], env={"COLUMNS": "80"})


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def tools(tmp_path: Path) -> str:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(ISSUES), "utf-8")
    return str(path)


@pytest.fixture
def cases(tmp_path: Path) -> str:
    path = tmp_path / "cases.jsonl"
    path.write_text(lines(CASES), "utf-8")
    return str(path)


# -- eval ----------------------------------------------------------------------------------------------


def test_eval_prints_one_json_object_of_the_promised_form(tools: str, cases: str) -> None:
    result = run("eval", "--tools", tools, "--cases", cases, "--json")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    values = json.loads(result.stdout)
    assert list(values)[: len(FORM)] == FORM
    assert (values["tools"], values["cases"]) == (4, 3)
    assert values["recall"] == {"1": 0.6667, "5": 0.6667, "10": 0.6667}
    assert list(values["complete"]) == list(values["payload_saved"]) == ["1", "5", "10"]
    assert set(values["micros"]) == {"p50", "p99"}
    (miss,) = values["misses"]
    assert (miss["tool"], miss["rank"], miss["beaten_by"]) == ("get_weather", None, [])
    assert "no tool has" in miss["why"]


def test_eval_shows_people_the_measures_and_each_miss_with_its_reason(tools: str, cases: str) -> None:
    result = run("eval", "--tools", tools, "--cases", cases, "--k", "1,3")
    assert result.exit_code == 0, result.output
    assert "4 tools of" in result.stdout
    assert "3 cases with history" in result.stdout
    assert re.search(r"│ +3 │ +66.7% │", result.stdout)
    assert "get_weather, not found: do I need an umbrella?" in result.stdout


def test_without_history_the_newest_message_stands_alone(tools: str, tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    history = [{"role": "user", "content": "forecast for the city of Oslo"}]
    path.write_text(lines([{"query": "tomorrow?", "relevant": ["get_weather"], "history": history}]), "utf-8")
    recall = {}
    for options in ([], ["--no-history"]):
        result = run("eval", "--tools", tools, "--cases", str(path), "--json", *options)
        recall[bool(options)] = json.loads(result.stdout)["recall"]["1"]
    assert recall == {False: 1.0, True: 0.0}


def test_a_gate_that_fails_is_named_and_exits_with_1(tools: str, cases: str) -> None:
    command = ["eval", "--tools", tools, "--cases", cases, "--min-recall"]
    assert run(*command, "0.6@3").exit_code == 0
    failed = run(*command, "0.9@3", "--json")
    assert failed.exit_code == 1
    assert failed.stderr == "gate failed: recall@3 >= 0.9, found 0.6667\n"
    gates = json.loads(failed.stdout)["gates"]
    assert gates == [{"text": "recall@3 >= 0.9", "value": pytest.approx(2 / 3), "passed": False}]


def test_a_baseline_names_the_cases_that_a_new_tool_steals(tools: str, cases: str, tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    command = ["--cases", cases, "--k", "1"]
    old.write_text(run("eval", "--tools", tools, *command, "--json").stdout, "utf-8")
    thief = {"name": "open_login_issue", "description": "Open an issue about the login.", "domain": "auth"}
    grown = tmp_path / "grown.json"
    grown.write_text(json.dumps([*ISSUES, thief]), "utf-8")
    compared = ["eval", "--tools", str(grown), *command, "--baseline", str(old)]
    shown = run(*compared)
    assert shown.exit_code == 0
    assert (
        "stolen: create_issue (1 -> 2), by open_login_issue <- open an issue about the login" in shown.stdout
    )
    gated = run(*compared, "--max-stolen", "0", "--json")
    assert gated.exit_code == 1
    assert gated.stderr == "gate failed: stolen cases <= 0, found 1\n"
    (stolen,) = json.loads(gated.stdout)["comparison"]["stolen"]
    assert (stolen["tool"], stolen["by"]) == ("create_issue", "open_login_issue")


RANKERS = """
from langchain_tool_selection import Hit

class Backwards:
    def rank(self, query, documents, *, limit=None):
        return [Hit(d.name, float(n)) for n, d in enumerate(documents)]

class Broken:
    def rank(self, query, documents, *, limit=None):
        raise RuntimeError("no\\nservice")

ranker, broken, number = Backwards(), Broken(), 3

def scorer(tool, tokens):
    return len(tokens & {"umbrella"}) if tool.name == "get_weather" else 0.0
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"rankers_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{name}.py").write_text(RANKERS, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    return name


def test_a_ranker_of_ones_own_is_measured(tools: str, cases: str, module: str) -> None:
    command = ["eval", "--tools", tools, "--cases", cases, "--json", "--ranker"]
    values = json.loads(run(*command, f"{module}:ranker").stdout)
    assert (values["ranker"], values["recall"]["5"]) == ("Backwards", 1.0)
    scored = json.loads(run(*command, f"{module}:scorer").stdout)
    assert scored["recall"]["1"] == pytest.approx(1 / 3, abs=1e-3)
    failed = run(*command, f"{module}:broken")
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert failed.stderr == "tool-selection eval: the ranker failed with RuntimeError: no service\n"


def test_the_local_hybrid_is_measured(tools: str, cases: str) -> None:
    pytest.importorskip("wordllama")
    result = run("eval", "--tools", tools, "--cases", cases, "--ranker", "hybrid:local", "--json")
    assert json.loads(result.stdout)["ranker"] == "HybridRanker"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--k", "0"], "--k takes numbers from 1 on, separated by commas, such as 1,5,10; got '0'"),
        (["--k", "ten"], "--k takes numbers"),
        (["--k", ""], "--k takes numbers"),
        (["--min-recall", "0.9"], "--min-recall takes a share from 0 to 1 and a k, such as 0.9@10"),
        (["--min-recall", "90@10"], "--min-recall takes a share"),
        (["--min-recall", "1.5@10"], "--min-recall takes a share"),
        (["--max-stolen", "0"], "--max-stolen needs a --baseline"),
        (["--ranker", "magic"], "no ranker is called 'magic'; take words, hybrid:local or module:attribute"),
        (["--ranker", "nowhere_:x"], "nowhere_:x: importing 'nowhere_' failed with ModuleNotFoundError"),
        (["--ranker", "json:nothing"], "json:nothing: the module has no such attribute"),
        (["--ranker", "sys:maxsize"], "ranker takes a Ranker, LangChain Embeddings or a scorer"),
        (["--baseline", "none.json"], "none.json: no such file"),
        (["--html", "no/such/folder/report.html"], "No such file or directory"),
    ],
)
def test_a_bad_option_is_said_in_one_line(tools: str, cases: str, options: list[str], message: str) -> None:
    result = run("eval", "--tools", tools, "--cases", cases, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, ": no such file"),
        (b"", ": the file is empty"),
        (b'{"query": "a", "rele', ", line 1, column 16: the JSON ends too early"),
        (b'{"query": "caf\xe9"}', ", line 1: byte 0xe9 is no UTF-8"),
        ('{"query": "a"}'.encode("utf-16"), ", line 1: byte 0xff is no UTF-8"),
        (
            b'{"query": "a", "relevant": ["clculator"]}',
            "has 'clculator', which is no tool of the catalogue; did",
        ),
    ],
    ids=["missing", "empty", "truncated", "latin-1", "utf-16", "no tool"],
)
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_bad_file_of_cases_is_said_in_one_line(
    tools: str, tmp_path: Path, content: bytes | None, message: str, options: list[str]
) -> None:
    path = tmp_path / "bad.jsonl"
    if content is not None:
        path.write_bytes(content)
    result = run("eval", "--tools", tools, "--cases", str(path), *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"tool-selection eval: {path}")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("role", ["tools", "cases", "baseline"])
def test_a_file_of_200_megabytes_is_refused_at_once(
    tools: str, cases: str, tmp_path: Path, role: str
) -> None:
    huge = tmp_path / "huge.json"
    with huge.open("wb") as file:
        file.truncate(200_000_000)
    files = {"tools": tools, "cases": cases, role: str(huge)}
    started = time.perf_counter()
    result = run("eval", *(part for key, path in files.items() for part in (f"--{key}", path)))
    assert time.perf_counter() - started < 5
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{huge}: the file is larger than 100 MB" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [("[]", "it is an array"), ("{}", "it has no 'results'"), ('{"results": [], "version": 9}', "version 9")],
)
def test_a_file_that_is_no_baseline_is_said_in_one_line(
    tools: str, cases: str, tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "old.json"
    path.write_text(content, "utf-8")
    result = run("eval", "--tools", tools, "--cases", cases, "--baseline", str(path))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"tool-selection eval: {path}: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


# -- search, lint, generate-cases ----------------------------------------------------------------------


def test_search_shows_the_words_their_fields_and_what_would_be_sent(tools: str) -> None:
    result = run("search", tools, "open an issue", "--top-k", "1")
    assert result.exit_code == 0, result.output
    assert "create_issue" in result.stdout
    assert re.search(r"name \d+%", result.stdout)
    assert re.search(r"sent: 1 of 4 tools, \d+ of \d+ tokens, \d+% saved; 2 tools match", result.stdout)
    assert run("search", "--tools", tools, "open an issue", "--top-k", "1").stdout == result.stdout


def test_search_as_json_has_hits_with_shares_that_add_up(tools: str) -> None:
    values = json.loads(run("search", tools, "open an isssue", "--json").stdout)
    hit = values["hits"][0]
    assert (hit["tool"], hit["rank"], hit["sent"]) == ("create_issue", 1, True)
    by_word = {word["word"]: word for word in hit["words"]}
    assert by_word["isssue"]["how"] == "spelling"
    assert by_word["isssue"]["found"] == "issu"
    for word in hit["words"]:
        assert sum(word["fields"].values()) == pytest.approx(1, abs=0.01)
    assert hit["score"] == pytest.approx(sum(word["score"] for word in hit["words"]) + hit["other"], abs=0.01)


def test_one_tool_is_explained_wherever_it_ranks(tools: str) -> None:
    result = run("search", tools, "open the pod bay doors", "--tool", "get_weather")
    assert result.stdout == "get_weather: no match\n  lacks: open\n  in no tool: pod, bay, doors\n"
    unknown = run("search", tools, "open", "--tool", "nonsense")
    assert (unknown.exit_code, unknown.stderr.count("\n")) == (2, 1)
    assert "there is no tool 'nonsense' among the 4" in unknown.stderr


def test_a_request_that_nothing_matches_says_so(tools: str) -> None:
    result = run("search", tools, "zzz")
    assert result.exit_code == 0
    assert result.stdout.startswith("sent: 0 of 4 tools, 0 of ")


@pytest.mark.parametrize(
    "arguments",
    [["search"], ["search", "t.json"], ["search", "t.json", " "], ["lint"], ["lint", "a", "--tools", "b"]],
)
def test_tools_or_a_request_that_is_missing_is_said_in_one_line(arguments: list[str]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1


def test_lint_is_a_gate_where_it_is_asked_to_be_one(tools: str, tmp_path: Path) -> None:
    assert run("lint", tools, "--strict").exit_code == 0
    path = tmp_path / "bad.json"
    path.write_text(json.dumps([*ISSUES, {"name": "calculator"}, {"name": "x.y"}]), "utf-8")
    shown = run("lint", "--tools", str(path))
    assert shown.exit_code == 0
    assert shown.stdout.endswith("5 tools: 3 errors, 0 warnings\n")
    strict = run("lint", str(path), "--strict", "--json")
    assert strict.exit_code == 1
    values = json.loads(strict.stdout)
    assert values["counts"] == {"error": 3, "warning": 0}
    assert [finding["check"] for finding in values["findings"]] == [
        "duplicate-name",
        "rejected-name",
        "empty-description",
    ]
    assert all(finding["advice"] for finding in values["findings"])
    ignored = ["duplicate-name", "rejected-name", "empty-description"]
    options = [part for check in ignored for part in ("--ignore", check)]
    assert run("lint", str(path), "--strict", *options).exit_code == 0


def test_lint_of_a_bad_file_or_an_unknown_check_is_one_line(tools: str, tmp_path: Path) -> None:
    (tmp_path / "none.json").write_bytes(b'[{"name": ')
    for arguments in (["lint", str(tmp_path / "none.json")], ["lint", tools, "--ignore", "style"]):
        result = run(*arguments)
        assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)


def test_what_a_tool_is_called_cannot_reach_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "evil.json"
    path.write_text(
        json.dumps([{"name": "a\x1b[2Jb\x07", "description": "[bold]Open[/bold] \x1b[31man issue"}])
    )
    for arguments in (["search", str(path), "open an issue"], ["lint", str(path)]):
        shown = run(*arguments).output
        assert "\x1b" not in shown
        assert "\x07" not in shown


MODELS = '''
from langchain_tool_selection.testing import ScriptedChatModel

def answer(sent):
    if "calculator" in sent.messages[-1].text and "Only the JSON" not in sent.messages[-1].text:
        return "I would rather chat."
    return """Sure! [
      {"tool": "create_issue", "direct": ["open an issue", "open an issue"], "indirect": ["the login is broken: é"]},
      {"tool": "calculator", "direct": ["evaluate 2 + 2"], "indirect": []},
      {"tool": "invented", "direct": ["x"], "indirect": ["y"]},
      {"tool": "get_weather", "direct": "no list", "indirect": [3, ""]}]"""

def fails(sent):
    raise RuntimeError("quota")

MODEL = ScriptedChatModel(script=answer)
FAILING = ScriptedChatModel(script=fails)
'''


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"models_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{name}.py").write_text(MODELS, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    return name


def test_a_model_proposes_cases_that_are_marked_and_can_be_evaluated(
    tools: str, models: str, tmp_path: Path
) -> None:
    out = tmp_path / "new.jsonl"
    command = ["generate-cases", tools, "--model", f"{models}:MODEL", "--per-tool", "2"]
    result = run(*command, "--out", str(out))
    assert result.exit_code == 0, result.output
    assert (result.stdout, result.stderr.count("\n")) == ("", 1)
    assert "3 generated cases" in result.stderr
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert rows[1] == {
        "query": "the login is broken: é",
        "relevant": ["create_issue"],
        "source": "generated/indirect",
    }
    report = json.loads(run("eval", "--tools", tools, "--cases", str(out), "--json").stdout)
    assert (report["cases"], report["generated"]) == (3, 3)
    values = json.loads(run(*command, "--json").stdout)
    assert values["left_out"] == ["close_issue", "get_weather"]
    again = run(*command, "--out", str(out))
    assert (again.exit_code, again.stderr.count("\n")) == (2, 1)
    assert "the file exists" in again.stderr


@pytest.mark.parametrize("model", ["{models}:FAILING", "{models}:NOTHING", "nowhere:at-all", "nonsense"])
def test_a_model_that_cannot_be_used_is_said_in_one_line(tools: str, models: str, model: str) -> None:
    result = run("generate-cases", tools, "--model", model.format(models=models))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("tool-selection generate-cases: ")
    assert result.stderr.count("\n") == 1


# -- files for people ----------------------------------------------------------------------------------


class Page(HTMLParser):
    """The text of a page, and what it would load or run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text, self.loads, self.open = "", [], list[str]()
        self.feed(text.replace("<wbr>", ""))  # where a name may go on in the next line

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)
        found = [name for name, _ in attrs if name in ("src", "href") or name.startswith("on")]
        self.loads += found + ([tag] if tag in ("script", "link", "img", "iframe") else [])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f" {data}" if not self.open or self.open[-1] != "style" else ""


@pytest.fixture
def page(tools: str, cases: str, tmp_path: Path) -> Path:
    """A report with a baseline, over tools whose names and requests are HTML."""
    old = tmp_path / "old.json"
    old.write_text(run("eval", "--tools", tools, "--cases", cases, "--json", "--k", "1").stdout, "utf-8")
    script = {"name": "<script>alert(1)</script>", "description": 'Open an "issue" <b>', "domain": "<i>evil"}
    more = tmp_path / "more.json"
    more.write_text(json.dumps([*ISSUES, script]), "utf-8")
    asked = tmp_path / "asked.jsonl"
    evil = {
        "query": "<img src=x onerror=alert(1)> tell my fortune " + "x" * 300,
        "relevant": [script["name"]],
    }
    asked.write_text(lines([*CASES, evil]), "utf-8")
    html = tmp_path / "report.html"
    options = ["--baseline", str(old), "--html", str(html), "--k", "1"]
    result = run("eval", "--tools", str(more), "--cases", str(asked), *options)
    assert result.exit_code == 0, result.output
    return html


def test_the_report_is_one_file_that_loads_and_runs_nothing(page: Path) -> None:
    text = page.read_text("utf-8")
    read = Page(text)
    assert read.loads == []
    assert read.open == []
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    for said in ("recall@1", "By domain", "Confusions by domain", "Misses at 1", "Since the baseline"):
        assert said in read.text
    for said in ("Heaviest definitions", "What it costs", "top_k=15", "<script>alert(1)</script>"):
        assert said in read.text
    assert text.count("<svg") == 2
    assert text.count("Input of a thread in uncached tokens, by the tokens of all tools</text>") == 1
    heaviest = text.partition("Heaviest definitions")[2]
    assert re.findall(r"width: ([\d.]+)%", heaviest)[0] == "100.0", "bars are to scale with the heaviest"


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.mark.process
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_the_report_reads_well_in_a_browser_as_wide_as_a_phone(page: Path, tmp_path: Path) -> None:
    # A frame, because a window cannot be as narrow; the script measures from outside, for the page allows none.
    frame = tmp_path / "phone.html"
    source = page.read_text("utf-8").replace("&", "&amp;").replace('"', "&quot;")
    frame.write_text(
        f'<meta charset="utf-8"><iframe width="390" height="844" srcdoc="{source}"></iframe><p id="width"></p>'
        "<script>onload = () => { const page = document.querySelector('iframe').contentDocument;"
        "document.getElementById('width').textContent = 'width ' + page.documentElement.scrollWidth + "
        "' text ' + page.body.innerText; }</script>",
        "utf-8",
    )
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    shot = tmp_path / "report.png"

    def browse(*arguments: str) -> str:
        return subprocess.run(
            [str(CHROMIUM), *flags, *arguments], capture_output=True, text=True, timeout=120, check=True
        ).stdout

    seen = browse("--dump-dom", frame.as_uri())
    assert int(re.findall(r">width (\d+)", seen)[0]) <= 390
    assert "Who takes whose requests" in seen or "Misses at 1" in seen
    assert "recall@1" in seen
    browse(f"--screenshot={shot}", "--window-size=800,2000", page.as_uri())
    assert shot.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert shot.stat().st_size > 20_000


@pytest.mark.slow
def test_plots_are_written_as_svg_and_png(tools: str, cases: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = run("eval", "--tools", tools, "--cases", cases, "--plots", str(tmp_path / "plots"))
    assert (result.exit_code, result.stderr) == (0, "")
    written = sorted(path.name for path in (tmp_path / "plots").iterdir())
    assert written == ["cost.png", "cost.svg", "recall.png", "recall.svg"]
    assert (tmp_path / "plots" / "recall.svg").read_text("utf-8").startswith("<svg")
    assert (tmp_path / "plots" / "recall.png").read_bytes()[:4] == b"\x89PNG"


def test_without_matplotlib_there_are_svg_plots_and_a_hint(
    tools: str, cases: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("eval", "--tools", tools, "--cases", cases, "--plots", str(tmp_path / "plots"))
    assert result.exit_code == 0
    assert "pip install 'langchain-tool-selection[eval]'" in result.stderr
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == ["cost.svg", "recall.svg"]


# -- an MCP configuration, and speed -------------------------------------------------------------------

SERVER = '''
from mcp.server.fastmcp import FastMCP

server = FastMCP("tickets")

@server.tool()
def open_ticket(title: str) -> str:
    """Open a support ticket."""
    return title

server.run()
'''


@pytest.mark.mcp
@pytest.mark.process
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_servers_of_an_mcp_configuration_are_asked_for_their_tools(tmp_path: Path) -> None:
    # Ahead of the command, which has no real standard error for the servers' logs.
    pytest.importorskip("langchain_mcp_adapters.client")
    (tmp_path / "server.py").write_text(SERVER, "utf-8")
    config = tmp_path / "mcp.json"

    def configure(script: str) -> None:
        spec = {"command": sys.executable, "args": [str(tmp_path / script)]}
        config.write_text(json.dumps({"mcpServers": {"tickets": spec}}), "utf-8")

    command = ["search", str(config), "open a ticket", "--json"]
    configure("server.py")
    done = run(*command)
    assert [hit["tool"] for hit in json.loads(done.stdout)["hits"]] == ["open_ticket"]
    configure("none.py")
    failed = run(*command)
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert f"tool-selection search: {config}, server 'tickets': its tools cannot be listed" in failed.stderr


@pytest.mark.slow
def test_ten_thousand_tools_and_a_thousand_cases_take_less_than_20_seconds(tmp_path: Path) -> None:
    verbs = ["create", "list", "delete", "update", "search", "export", "share", "archive", "approve", "merge"]
    nouns = [
        f"{a}{b}"
        for a in ("invoice", "ticket", "order", "page", "event")
        for b in ("", "batch", "note", "log")
    ]
    tools = [
        {
            "name": f"{verb}_{noun}_{system}",
            "description": f"{verb.capitalize()} one {noun} of the system {system}, or several of one owner.",
            "parameters": {
                "type": "object",
                "properties": {"owner": {"description": f"Who owns the {noun}."}},
            },
        }
        for verb in verbs
        for noun in nouns
        for system in (f"s{number}x" for number in range(50))
    ]
    (tmp_path / "tools.jsonl").write_text(lines(tools), "utf-8")
    asked = [
        # Half of them name no system, so that their tool is one of fifty and most are misses.
        {"query": f"please {' '.join(tool['name'].split('_')[: 3 - place % 2])}", "relevant": [tool["name"]]}
        for place, tool in enumerate(tools[::10])
    ]
    (tmp_path / "cases.jsonl").write_text(lines(asked), "utf-8")
    started = time.perf_counter()
    result = run(
        "eval", "--tools", str(tmp_path / "tools.jsonl"), "--cases", str(tmp_path / "cases.jsonl"), "--json"
    )
    spent = time.perf_counter() - started
    values = json.loads(result.stdout)
    assert (values["tools"], values["cases"]) == (10_000, 1_000)
    assert spent < 20, f"{spent:.1f} s"


@pytest.mark.process
def test_nothing_is_drawn_on_standard_error_when_it_is_piped(tools: str, cases: str) -> None:
    command = [sys.executable, "-m", "langchain_tool_selection", "eval", "--tools", tools, "--cases", cases]
    done = subprocess.run(command, capture_output=True, timeout=120, check=True)
    assert done.stderr == b""


# -- pytest --------------------------------------------------------------------------------------------


SUITE = """
import pytest

def measured(measure, baseline, tools="tools.json"):
    report = measure(tools, "cases.jsonl", baseline=baseline)
    assert report.recall[10] >= 0.6

def test_same(tool_selection_recall):
    measured(tool_selection_recall, "same.json")

def test_missing(tool_selection_recall):
    measured(tool_selection_recall, "missing.json")

def test_broken(tool_selection_recall):
    measured(tool_selection_recall, "cases.jsonl")

def test_stolen(tool_selection_recall):
    measured(tool_selection_recall, "same.json", "grown.json")

def test_allowed(tool_selection_recall):
    tool_selection_recall("grown.json", "cases.jsonl", baseline="same.json", max_stolen=1)
"""


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    others = [
        part for name in ("cacheprovider", "anyio", "langsmith_plugin") for part in ("-p", f"no:{name}")
    ]
    command = [sys.executable, "-m", "pytest", "-q", *others, *options]
    environment = {**os.environ, "PYTEST_ADDOPTS": ""}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False, env=environment
    )


@pytest.mark.process
def test_a_stored_baseline_lives_in_somebodys_tests(tools: str, cases: str, tmp_path: Path) -> None:
    (tmp_path / "test_recall.py").write_text(SUITE, "utf-8")
    stored = run_pytest(tmp_path, "--tool-selection-update", "-k", "same or missing")
    assert stored.returncode == 0, stored.stdout
    assert (tmp_path / "same.json").read_bytes() == (tmp_path / "missing.json").read_bytes()
    assert "micros" not in json.loads((tmp_path / "same.json").read_text("utf-8"))
    (tmp_path / "missing.json").unlink()
    thieves = [{"name": f"open_issue_{n}", "description": CASES[0]["query"]} for n in range(12)]
    (tmp_path / "grown.json").write_text(json.dumps([*ISSUES, *thieves]), "utf-8")
    done = run_pytest(tmp_path)
    assert "3 failed, 2 passed" in done.stdout
    assert "there is no baseline yet; run pytest --tool-selection-update" in done.stdout
    assert "cases.jsonl: " in done.stdout
    assert "stolen: create_issue" in done.stdout
    assert "by open_issue_0" in done.stdout
    assert "tool selection" in done.stdout, "a failing test shows the report"


@pytest.mark.process
def test_the_plugin_is_silent_and_cheap_unless_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n"
        "def test_nothing():\n"
        "    assert 'langchain_tool_selection.evals.pytest_plugin' in sys.modules\n"
        "    assert not {'langchain_core', 'numpy', 'langchain_tool_selection.evals.run'} & {*sys.modules}\n",
        "utf-8",
    )
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout
    assert "tool selection" not in done.stdout


# -- the page that shows it ----------------------------------------------------------------------------

_BLOCK = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)


def _masked(text: str) -> str:
    text = re.sub(r"[\d,]+ µs", "N µs", text)
    return re.sub(r"(│ seconds, p\d\d +).*", r"\1", text)


def _play(block: str, folder: Path) -> str:
    """Return a block of the page with what its commands print."""
    shown = ""
    for line in (line for line in block.splitlines() if line.startswith("$ ")):
        command, _, tail = line[2:].partition(" | tail -n ")
        command, _, target = command.partition(" > ")
        result = run(*shlex.split(command)[1:])
        assert result.exit_code == 0, result.output
        if target:
            (folder / target).write_text(result.stdout, "utf-8")
        printed = "" if target else result.output
        if tail:
            printed = "".join(printed.splitlines(keepends=True)[-int(tail) :])
        shown += f"{line}\n{printed}"
    return shown


@pytest.fixture
def example(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the page's commands find its examples, and may write."""
    shutil.copytree(root / "docs" / "examples", tmp_path / "docs" / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(root)
    return tmp_path


def test_the_commands_in_the_documentation_print_what_is_shown(root: Path, example: Path) -> None:
    # To bring the page up to date: UPDATE_DOCS=1 pytest -k documentation_print
    page = root / "docs" / "evaluation.md"
    text = page.read_text("utf-8")
    blocks = _BLOCK.findall(text)
    assert len(blocks) >= 6
    played = [_play(block, example) for block in blocks]
    if os.environ.get("UPDATE_DOCS"):
        for block, fresh in zip(blocks, played, strict=True):
            if _masked(block) != _masked(fresh):
                text = text.replace(f"```console\n{block}```", f"```console\n{fresh}```")
        page.write_text(text, "utf-8")
    assert [*map(_masked, played)] == [*map(_masked, _BLOCK.findall(page.read_text("utf-8")))]


@pytest.mark.process
def test_the_python_of_the_documentation_runs(root: Path, example: Path) -> None:
    page = (root / "docs" / "evaluation.md").read_text("utf-8")
    block, suite = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    exec(block, {"tools": TOOLS})
    (example / "test_page.py").write_text(suite, "utf-8")
    (example / "tools.json").write_text(json.dumps(TOOLS), "utf-8")
    shutil.copy(example / "docs" / "examples" / "cases.jsonl", example)
    done = run_pytest(example, "--tool-selection-update", "test_page.py")
    assert done.returncode == 0, done.stdout
    assert (example / "recall.json").exists()


def test_the_case_in_the_documentation_is_one(root: Path, tmp_path: Path) -> None:
    page = (root / "docs" / "evaluation.md").read_text("utf-8")
    (line,) = re.findall(r"^```json\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "case.jsonl").write_text(line, "utf-8")
    (case,) = load_cases(tmp_path / "case.jsonl")
    assert case.wanted("weather_current") == {"weather_current", "weather_forecast"}
