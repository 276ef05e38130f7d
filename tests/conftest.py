"""Shared by all tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import examples
import pytest
from xdist.scheduler import LoadScopeScheduling

pytest_plugins = ["pytester"]


collect_ignore = ["clients"]  # in an environment of their own: `make test-clients`

WAYS = ("async", "sync")


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--every-way",
        action="store_true",
        help="run each case on the sync and the async path, not in turn, and properties on all their examples",
    )


def pytest_configure(config: pytest.Config) -> None:
    examples.every_way = config.getoption("--every-way")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    dropped = set() if config.getoption("--every-way") else set(other_ways(items))
    if dropped:
        config.hook.pytest_deselected(items=[item for item in items if item in dropped])
        items[:] = [item for item in items if item not in dropped]
    for item in items:
        if parameters_of(item).get("path") == "async":
            item.add_marker(pytest.mark.twin)
        if needs_a_database(item):
            item.add_marker(pytest.mark.database)


def other_ways(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield what need not run: of a test with several cases, each runs on the sync or the async path, in turn.

    The two paths differ in who awaits only, so no case says on the one what it does not say on the other. A
    test of one case runs on both, and so does one that is marked `every_way`.
    """
    tests: dict[str, dict[str, dict[str, pytest.Item]]] = {}
    for item in items:
        way = parameters_of(item).get("path")
        if way in WAYS and item.get_closest_marker("every_way") is None:
            test, _, case = item.nodeid.partition("[")
            case = re.sub(rf"(^|-){way}(?=[]-])", r"\1", case, count=1)
            tests.setdefault(test, {}).setdefault(case, {})[way] = item
    for cases in tests.values():
        for number, ways in enumerate(cases.values()):
            if len(cases) > 1 and len(ways) > 1:
                yield ways[WAYS[number % 2]]


def parameters_of(item: pytest.Item) -> dict[str, Any]:
    return getattr(getattr(item, "callspec", None), "params", {})


def needs_a_database(item: pytest.Item) -> bool:
    return "postgres" in getattr(item, "fixturenames", ()) or "postgres" in parameters_of(item).values()


TOGETHER = {
    **dict.fromkeys(("test_persistence", "test_load", "test_injected_failures"), "database"),
    **dict.fromkeys(("test_mcp_servers", "test_every_process", "test_streaming", "test_api", "test_tokens")),
    **dict.fromkeys(("test_local", "test_local_embeddings", "test_run_agent")),
}
"""Files whose tests share what takes seconds to start. They go to one worker; files of one name to the same."""


class Scheduling(LoadScopeScheduling):
    """Gives each test to whichever worker is free, but those of `TOGETHER`, which come first, to one.

    By the names of files, because the process that schedules does not collect; and not by pytest-xdist's own
    groups, which with pytest 9.2 have no effect.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = Path(nodeid.partition("::")[0]).stem
        return TOGETHER[file] or file if file in TOGETHER else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    return Scheduling(config, log) if config.getvalue("dist") == "loadscope" else None
