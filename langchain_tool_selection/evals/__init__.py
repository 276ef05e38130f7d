"""Measuring tool selection on catalogues and requests of one's own.

`evaluate` says how well labelled requests find their tools, `lint` what is wrong with a catalogue, `explain`
why a tool ranks where it does: none of them needs a model or an agent. `run_agent` needs both and says what a
model makes of the requests. Names are imported when they are first used.
"""

from typing import TYPE_CHECKING

from langchain_tool_selection._ground.lazy import lazy_names

if TYPE_CHECKING:
    from langchain_tool_selection.evals._explain import Explanation, explain
    from langchain_tool_selection.evals._files import FileError
    from langchain_tool_selection.evals._lint import Finding, lint
    from langchain_tool_selection.evals._results import Comparison
    from langchain_tool_selection.evals.agent import AgentMeasures, AgentReport, AgentRun, run_agent
    from langchain_tool_selection.evals.cases import Case, hints_from, load_cases, save_cases
    from langchain_tool_selection.evals.catalogs import ToolSet, load_catalog, read_tools
    from langchain_tool_selection.evals.generate import generate_cases
    from langchain_tool_selection.evals.report import render_html, save_html, save_plots
    from langchain_tool_selection.evals.run import Report, evaluate

_HOME = {
    "_files": ("FileError",),
    "agent": ("AgentMeasures", "AgentReport", "AgentRun", "run_agent"),
    "cases": ("Case", "hints_from", "load_cases", "save_cases"),
    "catalogs": ("ToolSet", "load_catalog", "read_tools"),
    "_explain": ("Explanation", "explain"),
    "generate": ("generate_cases",),
    "_lint": ("Finding", "lint"),
    "report": ("render_html", "save_html", "save_plots"),
    "_results": ("Comparison",),
    "run": ("Report", "evaluate"),
}
__getattr__, __dir__ = lazy_names(__name__, _HOME)

__all__ = [
    "AgentMeasures", "AgentReport", "AgentRun", "Case", "Comparison", "Explanation", "FileError", "Finding",
    "Report", "ToolSet", "evaluate", "explain", "generate_cases", "hints_from", "lint", "load_cases",
    "load_catalog", "read_tools", "render_html", "run_agent", "save_cases", "save_html", "save_plots",
]  # fmt: skip
