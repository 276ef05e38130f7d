"""A pytest plugin that puts `ToolSelectionMiddleware` into every agent that a test builds.

It is loaded into the test run of another project, which knows nothing of this package. Three environment
variables tell it what to do, because the processes of pytest-xdist inherit them:

- `SELECTION_MODE`: the name of a mode below; empty for none, which only records what the tests do.
- `SELECTION_TESTS`: a file with the ids of the tests to run, one a line; empty for all.
- `SELECTION_OUTCOMES`: the JSON file to write, a `Outcome` for each test id.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypedDict

import pytest

EXPOSURES = ("per_turn", "grow", "append", "proxy", "stubs")


@dataclass(frozen=True)
class Mode:
    """One way to have the middleware in an agent.

    Attributes:
        name: Place, then how much is hidden, then the exposure: "last-all-proxy".
        is_first: Whether the middleware is put ahead of the test's own; otherwise it is put behind it.
        settings: Arguments of the middleware.
    """

    name: str
    is_first: bool
    settings: dict[str, Any] = field(default_factory=dict)


def _modes_at(place: Literal["first", "last"]) -> list[Mode]:
    # No test has more than fifteen tools, so that the default `top_k` hides nothing. Then each exposure is the
    # same but for the proxy, which brings a tool of its own.
    is_first = place == "first"
    return [
        Mode(f"{place}-none-auto", is_first),
        Mode(f"{place}-none-proxy", is_first, {"exposure": "proxy"}),
        *(
            Mode(f"{place}-all-{exposure}", is_first, {"top_k": 0, "exposure": exposure})
            for exposure in EXPOSURES
        ),
    ]


MODES = {mode.name: mode for mode in (*_modes_at("first"), *_modes_at("last"))}


class Outcome(TypedDict):
    """What became of one test.

    Attributes:
        outcome: The worst of its setup, call and teardown.
        builds_agents: Whether it called `create_agent`.
        error: The first line of what went wrong.
    """

    outcome: Literal["passed", "skipped", "failed"]
    builds_agents: bool
    error: str


_BUILDS_AGENTS = ("builds_agents", True)
_agents_built = 0
_modules_with_agents: set[str] = set()
_outcomes: dict[str, Outcome] = {}


def pytest_load_initial_conftests() -> None:
    """Replace `create_agent` before the first module of the other project imports it."""
    import langchain.agents
    import langchain.agents.factory

    mode = MODES.get(os.environ["SELECTION_MODE"])
    replacement = with_selection(langchain.agents.factory.create_agent, mode)
    langchain.agents.factory.create_agent = langchain.agents.create_agent = replacement


def with_selection(create_agent: Callable[..., Any], mode: Mode | None) -> Callable[..., Any]:
    """Return `create_agent` with the middleware of a mode in each agent, and a count of its calls.

    All agents share one instance: it holds caches only, and making one takes longer than most of the tests.
    """
    from langchain_tool_selection import Thread, ToolSelectionMiddleware

    ours = None if mode is None else ToolSelectionMiddleware(**mode.settings, thread=Thread(keep_used=0))

    @functools.wraps(create_agent)
    def create(model: Any, tools: Any = None, *, middleware: Any = (), **settings: Any) -> Any:
        global _agents_built  # noqa: PLW0603 - the plugin is a module
        _agents_built += 1
        if mode is not None:
            middleware = [ours, *middleware] if mode.is_first else [*middleware, ours]
        return create_agent(model, tools, middleware=middleware, **settings)

    return create


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that were asked for, and note which of them use agents of their module."""
    for item in items:
        if any(node.nodeid in _modules_with_agents for node in item.listchain()):
            item.user_properties.append(_BUILDS_AGENTS)
    if file := os.environ["SELECTION_TESTS"]:
        wanted = set(Path(file).read_text("utf-8").splitlines())
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in wanted])
        items[:] = [item for item in items if item.nodeid in wanted]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, Any]:
    """Note for all tests of a module that it builds agents while it is imported."""
    global _agents_built  # noqa: PLW0603 - the plugin is a module
    report = yield
    if _agents_built:
        _modules_with_agents.add(collector.nodeid)
    _agents_built = 0
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> None:
    """Note in the report of each phase whether the test has built an agent until then."""
    global _agents_built  # noqa: PLW0603 - the plugin is a module
    if _agents_built and _BUILDS_AGENTS not in item.user_properties:
        item.user_properties.append(_BUILDS_AGENTS)
    _agents_built = 0


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the worst outcome of the phases of a test."""
    test = _outcomes.setdefault(report.nodeid, Outcome(outcome="passed", builds_agents=False, error=""))
    test["builds_agents"] |= any(tuple(each) == _BUILDS_AGENTS for each in report.user_properties)
    if report.outcome != "passed" and test["outcome"] != "failed":
        test["outcome"] = report.outcome
        test["error"] = _first_line(report)


def _first_line(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash else report.longreprtext).splitlines()
    return lines[0] if lines else ""


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the outcomes, where they are all: not in a worker of pytest-xdist."""
    if not hasattr(session.config, "workerinput"):
        Path(os.environ["SELECTION_OUTCOMES"]).write_text(json.dumps(_outcomes), "utf-8")
