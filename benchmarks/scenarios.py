"""Eight scenarios over eight everyday tools: is the right tool shown, or found by one search?

    python -m benchmarks.scenarios --out benchmarks/results

Requests of the kinds that deepagents evaluates tool selection with (direct, indirect, and chains), run
through `create_deep_agent` with the eight tools alone and among 16, 60 and 250. The model is scripted: it
calls the tool that it needs as soon as it sees it, and otherwise searches, once, with the words beside the
step. So what is measured is what this package adds or takes away, and not how well a model chooses. Each run
is checked: the right tools ran, with the right arguments, in the right order, and nothing else ran.

Tools, requests, searches and hints were written before anything was run on them, and are not revised after
results. The searches are what a model would say that knows the request and the search tool's description,
and no other tool: a verb and an object.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from deepagents import create_deep_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool

from benchmarks import report
from benchmarks.registry61_data import CORE
from benchmarks.registry61_data import TOOLS as REGISTRY
from langchain_tool_selection import ToolHints, ToolSelectionMiddleware
from langchain_tool_selection.local import LocalEmbeddings
from langchain_tool_selection.testing import Answer, CallRecorder, ModelCall, ScriptedChatModel, call

SIZES = (8, 16, 60, 250)
TOP_KS = (15, 5)
DISCOVER = "discover_tools"

_PACKAGES = ("langchain", "langgraph", "deepagents")


# -- tools ---------------------------------------------------------------------------------------------

EIGHT = {
    "slack_message_user": ("Send a private message to one Slack user.", "user text"),
    "slack_message_channel": ("Write a message into a Slack channel.", "channel text"),
    "github_open_issue": ("Open an issue in a GitHub repository.", "repository title text"),
    "github_open_pull_request": (
        "Open a pull request in a GitHub repository.",
        "repository source target title",
    ),
    "linear_open_issue": ("Open an issue for a Linear team.", "team title text"),
    "gmail_send": ("Send a mail with Gmail.", "recipient subject text"),
    "web_search": ("Search the web.", "query"),
    "calendar_create_event": ("Create a calendar event.", "title start attendees"),
}
"""The tools that the scenarios need, described as tersely as many are: one line, and parameters by name."""

_SAME_JOB = """
slack_send_dm slack_post_message github_create_issue github_create_pull_request linear_create_issue
gmail_send_email web_search calendar_create_event
""".split()
"""Tools of the registry that do what one of the eight does, and would be right as well."""

_SERVERS = {
    "salesforce": "lead opportunity account quote campaign",
    "gitlab": "issue pipeline runner snippet milestone",
    "zendesk": "ticket macro article organization view",
    "asana": "task project section portfolio goal",
    "confluence": "page space comment attachment template",
    "mailchimp": "audience subscriber campaign template report",
    "zoom": "recording webinar room user poll",
    "aws": "bucket instance function queue alarm",
}
"""Servers that keep records of five kinds each, for catalogues beyond the registry."""

_VERBS = {"create": "name fields", "get": "id", "update": "id fields", "delete": "id", "list": "filter limit"}
"""What each of them does with a record, and its parameters."""


@cache
def catalog(size: int) -> tuple[BaseTool, ...]:
    """Return `size` tools. The eight come last, so that they win no tie by their place."""
    eight = [_tool(name, text, _schema(parameters)) for name, (text, parameters) in EIGHT.items()]
    return (*[*_registry(), *_records()][: size - len(eight)], *eight)


def _registry() -> Iterator[BaseTool]:
    """Yield the tools of the 61-tool registry that double none of the eight, their siblings first."""
    for tool in REGISTRY:
        if tool["name"] not in (*CORE, *_SAME_JOB):
            yield _tool(tool["name"], tool["description"], tool["parameters"])


def _records() -> Iterator[BaseTool]:
    for server, kinds in _SERVERS.items():
        for kind in kinds.split():
            for verb, parameters in _VERBS.items():
                what = f"{kind}s" if verb == "list" else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
                text = f"{verb.capitalize()} {what} in {server.capitalize()}."
                yield _tool(f"{server}_{verb}_{kind}", text, _schema(parameters))


def _schema(parameters: str) -> dict[str, Any]:
    names = parameters.split()
    return {"type": "object", "properties": {n: {"type": "string"} for n in names}, "required": names}


def _tool(name: str, description: str, schema: dict[str, Any]) -> BaseTool:
    """Return a tool whose answer has what it ran with as its artifact."""

    def run(**arguments: Any) -> tuple[str, dict[str, Any]]:
        return result_of(name), arguments

    return StructuredTool(
        name=name,
        description=description,
        args_schema=schema,
        func=run,
        response_format="content_and_artifact",
    )


def result_of(name: str) -> str:
    """Return what a tool answers."""
    return f"{name}-1"


# -- scenarios -----------------------------------------------------------------------------------------


class Step(NamedTuple):
    """A tool that a request needs.

    Attributes:
        tool: Its name.
        arguments: What it must run with; `{result}` stands for what the step before gave back.
        searches: What a model says to find it: at first, and if that finds nothing of use.
    """

    tool: str
    arguments: dict[str, str]
    searches: tuple[str, str]


class Scenario(NamedTuple):
    """A request, and the steps that it takes, in their order."""

    name: str
    request: str
    steps: tuple[Step, ...]


SCENARIOS = (
    Scenario(
        "direct: private message",
        "Send Priya a private message on Slack saying that the staging key expires tonight.",
        (
            Step(
                "slack_message_user",
                {"user": "Priya", "text": "The staging key expires tonight."},
                ("send a private message", "message a Slack user"),
            ),
        ),
    ),
    Scenario(
        "direct: pull request",
        "Open a pull request in acme/shop from retry-payments to main, titled 'Retry failed payments'.",
        (
            Step(
                "github_open_pull_request",
                {
                    "repository": "acme/shop",
                    "source": "retry-payments",
                    "target": "main",
                    "title": "Retry failed payments",
                },
                ("open a pull request", "create a GitHub pull request"),
            ),
        ),
    ),
    Scenario(
        "direct: two siblings",
        "Open an issue titled 'Checkout fails on an empty cart' for the Linear team WEB, and one with the "
        "same title in the GitHub repository acme/shop.",
        (
            Step(
                "linear_open_issue",
                {"team": "WEB", "title": "Checkout fails on an empty cart", "text": "As titled."},
                ("open a Linear issue", "create an issue"),
            ),
            Step(
                "github_open_issue",
                {"repository": "acme/shop", "title": "Checkout fails on an empty cart", "text": "As titled."},
                ("open a GitHub issue", "create an issue in a repository"),
            ),
        ),
    ),
    Scenario(
        "indirect: standup",
        "Schedule a team standup for tomorrow at 10am with Ana and Raj.",
        (
            Step(
                "calendar_create_event",
                {"title": "Team standup", "start": "tomorrow at 10am", "attendees": "Ana, Raj"},
                ("schedule a meeting", "add an event to the calendar"),
            ),
        ),
    ),
    Scenario(
        "indirect: announcement",
        "Let the #releases channel know that version 2.4 is out.",
        (
            Step(
                "slack_message_channel",
                {"channel": "releases", "text": "Version 2.4 is out."},
                ("notify a channel", "post a message to Slack"),
            ),
        ),
    ),
    Scenario(
        "indirect: figures by mail",
        "Mail the sales figures of week 12 to dana@acme.example, with the subject 'Week 12'.",
        (
            Step(
                "gmail_send",
                {"recipient": "dana@acme.example", "subject": "Week 12", "text": "The sales figures"},
                ("send an email", "send a mail"),
            ),
        ),
    ),
    Scenario(
        "chain: look up, mail",
        "Look up what is new in Python 3.14 and mail a summary to dev@acme.example with the subject "
        "'Python 3.14'.",
        (
            Step(
                "web_search",
                {"query": "what is new in Python 3.14"},
                ("search the web", "look something up online"),
            ),
            Step(
                "gmail_send",
                {"recipient": "dev@acme.example", "subject": "Python 3.14", "text": "In short: {result}"},
                ("send an email", "send a mail"),
            ),
        ),
    ),
    Scenario(
        "chain: issue, post, call",
        "Open an issue in the GitHub repository acme/api titled 'Worker leaks memory', then post its number "
        "in #oncall, and put a call about it with Ana and Raj into the calendar for Friday at 9.",
        (
            Step(
                "github_open_issue",
                {"repository": "acme/api", "title": "Worker leaks memory", "text": "As titled."},
                ("open a GitHub issue", "create an issue in a repository"),
            ),
            Step(
                "slack_message_channel",
                {"channel": "oncall", "text": "Filed as {result}"},
                ("post a message to a channel", "send a Slack message"),
            ),
            Step(
                "calendar_create_event",
                {"title": "Worker leaks memory", "start": "Friday at 9", "attendees": "Ana, Raj"},
                ("add a calendar event", "schedule a call"),
            ),
        ),
    ),
)

_BY_REQUEST = {scenario.request: scenario for scenario in SCENARIOS}


# -- setups --------------------------------------------------------------------------------------------

HINTS = {
    "slack_message_user": ToolHints(examples=["DM Tom", "ping Lena on Slack"]),
    "slack_message_channel": ToolHints(examples=["announce it in #general", "notify the team"]),
    "github_open_issue": ToolHints(examples=["file a bug", "report a problem with the API"]),
    "github_open_pull_request": ToolHints(examples=["open a PR", "get my branch reviewed"]),
    "linear_open_issue": ToolHints(examples=["add it to the backlog", "file a ticket for the web team"]),
    "gmail_send": ToolHints(examples=["email Tom", "write to the customer"]),
    "web_search": ToolHints(examples=["google it", "find out who won"]),
    "calendar_create_event": ToolHints(
        examples=["schedule a meeting with the design team on Monday", "book an hour with Tom"]
    ),
}
"""What people who own the tools would add: two things that users say, for each."""


class Setup(NamedTuple):
    """Settings of the middleware beside `top_k`, and how often the model searches for a tool."""

    settings: Callable[[], dict[str, Any]] = dict
    searches: int = 1


SETUPS = {
    "default": Setup(),
    "default, two searches": Setup(searches=2),
    "hints": Setup(lambda: {"hints": HINTS}),
    "always_include": Setup(lambda: {"always_include": ("calendar_create_event",)}),
    "local embeddings": Setup(lambda: {"ranker": LocalEmbeddings()}),
}


def available() -> dict[str, Setup]:
    """Return the setups whose packages are here, and say which are not."""
    found = {}
    for name, setup in SETUPS.items():
        try:
            setup.settings()
        except ImportError as error:
            print(f"not measured, {name}: {error}", file=sys.stderr)
        else:
            found[name] = setup
    return found


# -- the model -----------------------------------------------------------------------------------------


def answer(sent: ModelCall, searches: int) -> Answer:
    """Return what the model does next: call the tool of the next step, search for it, or go on without."""
    scenario = next(_BY_REQUEST[m.text] for m in sent.messages if isinstance(m, HumanMessage))
    results = [m for m in sent.messages if isinstance(m, ToolMessage) and m.name != DISCOVER]
    last = results[-1] if results else None
    tools = [step.tool for step in scenario.steps]
    asked = _queries(sent.messages).values()
    for step in scenario.steps[tools.index(last.name) + 1 if last else 0 :]:
        if step.tool in sent.tools:
            return call(step.tool, **_arguments(step, last.text if last else ""))
        left = [words for words in step.searches[:searches] if words not in asked]
        if left and DISCOVER in sent.tools:
            return call(DISCOVER, query=left[0])
    return "Done."


def _queries(messages: Sequence[BaseMessage]) -> dict[str | None, str]:
    """Return what was searched for, by the id of the call."""
    calls = (c for message in messages if isinstance(message, AIMessage) for c in message.tool_calls)
    return {c["id"]: c["args"]["query"] for c in calls if c["name"] == DISCOVER}


def _arguments(step: Step, result: str) -> dict[str, str]:
    return {key: value.format(result=result) for key, value in step.arguments.items()}


# -- playing -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Played:
    """What came of one scenario.

    Attributes:
        outcomes: For each tool that was needed: `shown` on the first model call, `found` by searching, or
            `missed`.
        shown: The tools of the catalogue that the first model call had.
        searches: What was searched for, and what the answer was.
        wrong: What should not be; empty if all is well.
    """

    outcomes: dict[str, str]
    shown: list[str]
    searches: dict[str, str]
    wrong: list[str]


class Stage:
    """A deep agent over a catalogue, for any number of scenarios."""

    def __init__(self, size: int, top_k: int, setup: Setup) -> None:
        settings = setup.settings()
        self._names = {tool.name for tool in catalog(size)}
        self._most = top_k + len(settings.get("always_include", ()))
        self._agent = create_deep_agent(
            ScriptedChatModel(script=lambda sent: answer(sent, setup.searches)),
            catalog(size),
            middleware=[ToolSelectionMiddleware(top_k, **settings)],
        )

    def play(self, scenario: Scenario) -> Played:
        """Run a scenario."""
        recorder = CallRecorder()
        result = self._agent.invoke(_input(scenario), {"callbacks": [recorder]})
        return self._played(scenario, recorder.calls, result["messages"])

    async def aplay(self, scenario: Scenario) -> Played:
        """Run a scenario on the async path."""
        recorder = CallRecorder()
        result = await self._agent.ainvoke(_input(scenario), {"callbacks": [recorder]})
        return self._played(scenario, recorder.calls, result["messages"])

    def _played(
        self, scenario: Scenario, sent: Sequence[ModelCall], messages: Sequence[BaseMessage]
    ) -> Played:
        answers = [message for message in messages if isinstance(message, ToolMessage)]
        ran = [(m.name, m.artifact) for m in answers if m.name != DISCOVER]
        called = {name for name, _ in ran}
        outcomes = {
            step.tool: "shown" if step.tool in sent[0].tools else "found" if step.tool in called else "missed"
            for step in scenario.steps
        }
        queries = _queries(messages)
        searches = {queries[m.tool_call_id]: m.text for m in answers if m.name == DISCOVER}
        shown = [name for name in sent[0].tools if name in self._names]
        expected = list(_expected(scenario, outcomes))
        wrong = [f"{message.name} failed: {message.text}" for message in answers if message.status == "error"]
        if ran != expected:
            wrong.append(f"ran {ran}, and not {expected}")
        if len(sent) != len(answers) + 1:
            wrong.append(f"{len(sent)} model calls for {len(answers)} tool calls")
        if len(shown) > self._most:
            wrong.append(f"{len(shown)} tools shown, and not at most {self._most}")
        return Played(outcomes, shown, searches, wrong)


def _input(scenario: Scenario) -> dict[str, Any]:
    return {"messages": [HumanMessage(scenario.request)]}


def _expected(scenario: Scenario, outcomes: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the calls that a scenario takes, without those of tools that were missed."""
    result = ""
    for step in scenario.steps:
        if outcomes[step.tool] != "missed":
            yield step.tool, _arguments(step, result)
            result = result_of(step.tool)


def measure(size: int, top_k: int, setup: Setup) -> dict[str, Any]:
    """Return what came of each scenario, and how many of the tools that they need were reached how."""
    stage = Stage(size, top_k, setup)
    played = {scenario.name: asdict(stage.play(scenario)) for scenario in SCENARIOS}
    outcomes = [outcome for row in played.values() for outcome in row["outcomes"].values()]
    return {
        **{outcome: outcomes.count(outcome) for outcome in ("shown", "found", "missed")},
        "scenarios": played,
    }


# -- showing -------------------------------------------------------------------------------------------


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Print how many tools were reached how, and then each that was not shown."""
    sizes = sorted({row["tools"] for row in rows})
    cells: dict[tuple[int, str], list[str]] = {}
    for row in sorted(rows, key=lambda row: row["tools"]):
        text = f"{row['shown']} / {row['found']} / {row['missed']}"
        cells.setdefault((row["top_k"], row["setup"]), []).append(text)
    print(
        report.table(
            ["top_k", "shown / found / missed", *(f"{size} tools" for size in sizes)],
            [[*key, *texts] for key, texts in cells.items()],
        )
    )
    for row in rows:
        print(f"\n{row['setup']}, top_k={row['top_k']}, {row['tools']} tools:")
        for name, played in row["scenarios"].items():
            late = [f"{tool} {how}" for tool, how in played["outcomes"].items() if how != "shown"]
            searches = [f"'{words}' → {' '.join(text.split())}" for words, text in played["searches"].items()]
            for line in (*late, *searches, *played["wrong"]):
                print(f"- {name}: {line}")


def main() -> None:
    """Run everything, print tables and write the result file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scenarios", description=__doc__)
    parser.add_argument("--out", type=Path, default=report.RESULTS, help="folder for the result file")
    options = parser.parse_args()
    setups = available()
    rows = [
        {"setup": name, "top_k": top_k, "tools": size, **measure(size, top_k, setup)}
        for top_k in TOP_KS
        for name, setup in setups.items()
        for size in SIZES
    ]
    show(rows)
    content = report.provenance("benchmarks.scenarios") | {"rows": rows}
    content["packages"] |= {name: version(name) for name in _PACKAGES}
    print(f"\n`{content['command']}` → {report.save('scenarios', content, options.out).name}")


if __name__ == "__main__":
    main()
