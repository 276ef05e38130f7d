"""The command line: `tool-selection`, or `python -m langchain_tool_selection`. One module for each command.

Exit codes are 0 if all is fine, 1 if a gate failed, and 2 for bad usage or a bad file.
"""

import typer

from langchain_tool_selection.cli._agent import run_agent
from langchain_tool_selection.cli._cost import cost
from langchain_tool_selection.cli._demo import demo
from langchain_tool_selection.cli._eval import evaluate
from langchain_tool_selection.cli._generate import generate_cases
from langchain_tool_selection.cli._lint import lint
from langchain_tool_selection.cli._search import search
from langchain_tool_selection.cli._verify import verify

app = typer.Typer(
    help="Show an agent only the tools that matter now, and let it find the rest.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # joins the lines of a docstring's paragraphs
)
app.command()(search)
app.command("eval")(evaluate)
for command in (lint, cost, verify, generate_cases, run_agent, demo):
    app.command()(command)
