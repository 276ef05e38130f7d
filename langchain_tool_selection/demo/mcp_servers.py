"""Selection over real MCP servers: over 200 tools of five servers, twenty requests.

The servers come from PyPI into an environment of their own and are started by stdio. None needs a key
to list its tools; git, time and SQLite are really called, on a repository and a database made for it.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from string import Template
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
    """A git repository and a database, the servers that work on them, and what is asked of them.

    No server gets an address that exists: listing tools needs none, and nothing is called there.
    """

    repository: Path
    requests: tuple[Request, ...]
    servers: Mapping[str, dict[str, Any]]

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
        template = Template(files(__package__).joinpath("workplace.json").read_text("utf-8"))
        places = {"repository": str(repository), "database": str(database)}
        quoted = {name: json.dumps(path)[1:-1] for name, path in places.items()}
        values = json.loads(template.substitute(quoted))
        requests = tuple(Request(**request) for request in values["requests"])
        return cls(repository, requests, values["servers"])


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
    connections: Any = {
        name: {
            "transport": "stdio",
            "args": [],
            **server,
            "command": str(programs / server["command"]),
            "env": {"PATH": os.environ["PATH"], **server.get("env", {})},
        }
        for name, server in workplace.servers.items()
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
