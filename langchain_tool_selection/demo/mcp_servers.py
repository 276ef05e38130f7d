"""Selection over real MCP servers: over 200 tools of five servers, twenty requests.

The servers come from PyPI into an environment of their own and are started by stdio. None needs a key
to list its tools; git, time and SQLite are really called, on a repository and a database made for it.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_mcp_adapters.client import MultiServerMCPClient

from langchain_tool_selection import ToolSelectionMiddleware
from langchain_tool_selection.testing import ModelCall, ScriptedChatModel, call

PACKAGES = ("mcp-server-git", "mcp-server-time", "mcp-server-sqlite", "mcp-atlassian", "plane-mcp-server")


@dataclass(frozen=True)
class Request:
    """A request and what a good agent does with it.

    Attributes:
        text: What the user writes.
        tool: The tool that it takes.
        search: The verb and object of the request, as a model would search for them.
        arguments: What to call the tool with; `None` where that would need an account.
    """

    text: str
    tool: str
    search: str
    arguments: dict[str, Any] | None = None


@dataclass(frozen=True)
class Outcome:
    """What happened to a request.

    Attributes:
        request: The request.
        calls: What each call of the model was sent.
        discovered: Whether the model had to search for the tool.
        result: What the tool answered; `None` if it was not called.
    """

    request: Request
    calls: tuple[ModelCall, ...]
    discovered: bool
    result: str | None

    @property
    def reached(self) -> bool:
        """Whether the right tool was before the model in the end."""
        return self.request.tool in self.calls[-1].tools


@dataclass(frozen=True)
class Workplace:
    """A git repository and a database for the servers to work on."""

    repository: Path
    database: Path
    requests: tuple[Request, ...] = field(default=())

    @classmethod
    def make(cls, directory: Path) -> Workplace:
        """Make both in an existing directory."""
        repository, database = directory / "repository", directory / "shop.db"
        repository.mkdir()
        (repository / "notes.txt").write_text("first\n")
        author = ("-c", "user.name=Demo", "-c", "user.email=demo@example.invalid")
        for arguments in (("init", "-q"), ("add", "."), (*author, "commit", "-q", "-m", "Add the notes")):
            subprocess.run(["git", "-C", str(repository), *arguments], check=True)  # noqa: S603, S607
        (repository / "notes.txt").write_text("first\nsecond\n")
        with sqlite3.connect(database) as connection:
            connection.execute("create table customers (id integer primary key, name text)")
            connection.execute("insert into customers (name) values ('Ada'), ('Grace')")
        connection.close()
        return cls(repository, database, _requests(repository))


def _requests(repository: Path) -> tuple[Request, ...]:
    at = {"repo_path": str(repository)}
    berlin = {"source_timezone": "America/New_York", "target_timezone": "Europe/Berlin", "time": "16:30"}
    count = {"query": "select count(*) as customers from customers"}
    branch = {**at, "branch_name": "release"}
    return (
        Request("Is my working tree clean?", "git_status", "show working tree status", at),
        Request("Show me the last commits of this repository", "git_log", "show commits", at),
        Request("Make a branch called release", "git_create_branch", "make a branch", branch),
        Request("Stage notes.txt for the next commit", "git_add", "stage a file", {**at, "files": ["notes.txt"]}),
        Request("What time is it in Tokyo?", "get_current_time", "get the current time", {"timezone": "Asia/Tokyo"}),
        Request("When it is 16:30 in New York, how late is it in Berlin?", "convert_time", "convert time", berlin),
        Request("Which tables does the database have?", "list_tables", "list tables", {}),
        Request("Run a select query: how many customers are there?", "read_query", "run a select query", count),
        Request("Describe the columns of the customers table", "describe_table", "describe a table", {"table_name": "customers"}),
        Request("File a bug in Jira: the login button does nothing", "jira_create_issue", "create a jira issue"),
        Request("Put PROJ-12 into the current sprint", "jira_add_issues_to_sprint", "add an issue to a sprint"),
        Request("Log two hours of work on the Jira issue PROJ-12", "jira_add_worklog", "log work on a jira issue"),
        Request("Who is watching PROJ-7?", "jira_get_issue_watchers", "get the watchers of an issue"),
        Request("Move PROJ-3 to the status Done", "jira_transition_issue", "change the status of a jira issue"),
        Request("Write a Confluence page with our meeting notes", "confluence_create_page", "write a confluence page"),
        Request("Who is allowed to edit this Confluence page?", "confluence_get_page_restrictions", "get edit restrictions of a page"),
        Request("How often was the onboarding page viewed?", "confluence_get_page_views", "get page views"),
        Request("Start a new cycle for the next two weeks", "create_cycle", "create a cycle"),
        Request("Take the work items out of the beta milestone", "remove_work_items_from_milestone", "remove work items from a milestone"),
        Request("Archive the mobile module", "archive_module", "archive a module"),
    )  # fmt: skip


def install_servers(directory: Path) -> Path:
    """Install the servers into an environment of their own, unless they are there already.

    Returns:
        The folder with their commands.

    Raises:
        subprocess.CalledProcessError: they could not be installed; the installer's output says why.
    """
    programs = directory / ("Scripts" if os.name == "nt" else "bin")
    marker = directory / "installed.txt"
    if not marker.exists() or marker.read_text().split() != list(PACKAGES):
        venv.create(directory, with_pip=True, clear=True)
        python = str(programs / "python")
        # Their dependencies overlap in narrow ranges: uv resolves them in seconds, pip in minutes.
        for command in (
            [python, "-m", "pip", "install", "--quiet", "uv"],
            [python, "-m", "uv", "pip", "install", "--quiet", "--python", python, *PACKAGES],
        ):
            subprocess.run(command, check=True, stdout=sys.stderr)  # noqa: S603
        marker.write_text("\n".join(PACKAGES))
    return programs


async def load_tools(programs: Path, workplace: Workplace) -> list[BaseTool]:
    """List the tools of all servers."""
    # No server gets an address that exists: listing tools needs none, and nothing is called there.
    atlassian = {
        "JIRA_URL": "https://jira.invalid", "JIRA_USERNAME": "demo", "JIRA_API_TOKEN": "none",
        "CONFLUENCE_URL": "https://wiki.invalid", "CONFLUENCE_USERNAME": "demo", "CONFLUENCE_API_TOKEN": "none",
    }  # fmt: skip
    plane = {
        "PLANE_API_KEY": "none",
        "PLANE_WORKSPACE_SLUG": "demo",
        "PLANE_BASE_URL": "https://plane.invalid",
    }
    servers: dict[str, tuple[list[str], dict[str, str]]] = {
        "git": (["mcp-server-git", "--repository", str(workplace.repository)], {}),
        "time": (["mcp-server-time"], {}),
        "sqlite": (["mcp-server-sqlite", "--db-path", str(workplace.database)], {}),
        "atlassian": (["mcp-atlassian"], atlassian),
        "plane": (["plane-mcp-server", "stdio"], plane),
    }
    connections: Any = {
        name: {
            "transport": "stdio",
            "command": str(programs / program),
            "args": arguments,
            "env": {"PATH": os.environ["PATH"], **environment},
        }
        for name, ((program, *arguments), environment) in servers.items()
    }
    return await MultiServerMCPClient(connections).get_tools()


async def play(
    requests: Sequence[Request], tools: Sequence[BaseTool], middleware: ToolSelectionMiddleware
) -> list[Outcome]:
    """Send each request through an agent of its own thread, and note what its model was sent."""
    outcomes = []
    for request in requests:
        model = ScriptedChatModel(script=partial(_answer, request))
        agent = create_agent(model, list(tools), middleware=[middleware])
        state = await agent.ainvoke({"messages": [{"role": "user", "content": request.text}]})
        answers = {m.name: m.text for m in state["messages"] if isinstance(m, ToolMessage)}
        found = "discover_tools" in answers
        outcomes.append(Outcome(request, tuple(model.calls), found, answers.get(request.tool)))
    return outcomes


def _answer(request: Request, sent: ModelCall) -> AIMessage | str:
    last = sent.messages[-1]
    if isinstance(last, ToolMessage) and last.name != "discover_tools":
        return last.text
    if request.tool in sent.tools:
        return "Ready to call." if request.arguments is None else call(request.tool, **request.arguments)
    if isinstance(last, ToolMessage):
        return "There is no tool for that."
    return call("discover_tools", query=request.search)
