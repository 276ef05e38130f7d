"""The pytest plugin: recall on labelled requests as a test, with a stored baseline.

It is loaded wherever this package is installed, so it imports nothing until its fixture is used.

    def test_tools_are_found(tool_selection_recall):
        report = tool_selection_recall("tools.json", "cases.jsonl", baseline="recall.json")
        assert report.recall[10] >= 0.95
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from langchain_tool_selection.evals._report import Report


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that stores baselines."""
    parser.getgroup("tool selection").addoption(
        "--tool-selection-update",
        action="store_true",
        help="store the baselines of tool_selection_recall anew",
    )


@pytest.fixture
def tool_selection_recall(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """Measure how well labelled requests find their tools: `(tools, cases, baseline=None) -> Report`.

    Takes:
        tools: The catalogue; of a path, one that is relative to the test's own file, or to the current
            folder, or `module:attribute`.
        cases: A file of cases, likewise, or cases.
        baseline: A stored report, relative to the test's own file. If more than `max_stolen` cases are
            lost since it was stored, the test fails and names them. `pytest --tool-selection-update`
            stores it anew.
        max_stolen: How many cases may be lost; 0 by default.
        **settings: Passed on to `evaluate`: `ranker`, `ks`, `history`, `top_k`, `hints`.

    Returns the report of `evaluate`, which a failing test shows too.
    """
    folder, update = request.path.parent, request.config.getoption("--tool-selection-update")

    def located(source: Any) -> Any:
        beside = folder / source if isinstance(source, str | Path) else None
        return beside if beside and beside.exists() else source

    def measure(
        tools: Any, cases: Any, *, baseline: str | Path | None = None, max_stolen: int = 0, **settings: Any
    ) -> Report:
        from langchain_tool_selection.evals.run import evaluate  # noqa: PLC0415  # see the module's docstring

        report = evaluate(located(tools), located(cases), **settings)
        request.node.add_report_section("call", "tool selection", str(report))
        if baseline is not None:
            _compare(report, folder / baseline, max_stolen, update=update)
        return report

    return measure


def _compare(report: Report, path: Path, max_stolen: int, *, update: bool) -> None:
    from langchain_tool_selection.evals._report import Report  # noqa: PLC0415  # likewise

    if update:
        # Timings differ from run to run, and would make a new file of an equal one.
        values = {key: value for key, value in report.to_dict().items() if key != "micros"}
        text = json.dumps(values, indent=1, ensure_ascii=False)
        path.write_text(f"{text}\n", encoding="utf-8", newline="\n")
        return
    if not path.exists():
        pytest.fail(f"{path}: there is no baseline yet; run pytest --tool-selection-update", pytrace=False)
    try:
        comparison = report.compare(Report.from_dict(json.loads(path.read_text("utf-8"))))
    except ValueError as error:
        pytest.fail(f"{path}: {error}; run pytest --tool-selection-update", pytrace=False)
    if len(comparison.stolen) > max_stolen:
        pytest.fail(f"cases were stolen since {path.name}\n{comparison}", pytrace=False)
