"""The public names, and where each is: read by type checkers, and by Python when one is first used."""

from langchain_tool_selection.evals._explain import Explanation as Explanation
from langchain_tool_selection.evals._explain import explain as explain
from langchain_tool_selection.evals._files import FileError as FileError
from langchain_tool_selection.evals._lint import Finding as Finding
from langchain_tool_selection.evals._lint import lint as lint
from langchain_tool_selection.evals._results import Comparison as Comparison
from langchain_tool_selection.evals.agent import AgentMeasures as AgentMeasures
from langchain_tool_selection.evals.agent import AgentReport as AgentReport
from langchain_tool_selection.evals.agent import AgentRun as AgentRun
from langchain_tool_selection.evals.agent import run_agent as run_agent
from langchain_tool_selection.evals.cases import Case as Case
from langchain_tool_selection.evals.cases import hints_from as hints_from
from langchain_tool_selection.evals.cases import load_cases as load_cases
from langchain_tool_selection.evals.cases import save_cases as save_cases
from langchain_tool_selection.evals.catalogs import ToolSet as ToolSet
from langchain_tool_selection.evals.catalogs import load_catalog as load_catalog
from langchain_tool_selection.evals.catalogs import read_tools as read_tools
from langchain_tool_selection.evals.generate import generate_cases as generate_cases
from langchain_tool_selection.evals.report import render_html as render_html
from langchain_tool_selection.evals.report import save_html as save_html
from langchain_tool_selection.evals.report import save_plots as save_plots
from langchain_tool_selection.evals.run import Report as Report
from langchain_tool_selection.evals.run import evaluate as evaluate
