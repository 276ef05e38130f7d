"""What middleware of LangChain and deepagents brings along stays, wherever it stands and whatever it is called."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents.middleware import (
    AgentMiddleware,
    FilesystemFileSearchMiddleware,
    ShellToolMiddleware,
    TodoListMiddleware,
)
from langchain_core.tools import BaseTool, StructuredTool

from langchain_tool_selection import Discovery

from .agents import DISCOVER, Rewriting, build, make_tool, make_tools, office, run, user


class Bringing(AgentMiddleware):
    """Middleware of one's own with tools of its own."""

    def __init__(self, *tools: BaseTool) -> None:
        super().__init__()
        self.tools = [*tools]


def todo_list() -> Any:
    return TodoListMiddleware(), ["write_todos"]


def file_search(tmp_path: Any) -> Any:
    return FilesystemFileSearchMiddleware(root_path=str(tmp_path)), ["glob_search", "grep_search"]


def shell(tmp_path: Any) -> Any:
    return ShellToolMiddleware(workspace_root=str(tmp_path), tool_name="terminal"), ["terminal"]


@pytest.mark.parametrize("discovery", [Discovery(), None], ids=["with a search tool", "without"])
@pytest.mark.parametrize("side", ["outer", "inner"])
async def test_langchains_middleware_keeps_its_tools_on_either_side(side, discovery, path, tmp_path):
    brought = [todo_list(), file_search(tmp_path), shell(tmp_path)]
    middleware, names = [m for m, _ in brought], [name for _, names in brought for name in names]
    agent, model = build(["Done."], discovery=discovery, **{side: middleware})
    await run(path, agent, user("send an email"))
    (sent,) = model.calls
    assert {*names, "send_email"} == {*sent.tools} - {DISCOVER}


@pytest.mark.parametrize("side", ["outer", "inner"])
async def test_anthropics_middleware_keeps_its_tools_on_either_side(side, path):
    pytest.importorskip("langchain_anthropic", reason="is not in the environment of oldest versions")
    from langchain_anthropic.middleware import (  # noqa: PLC0415
        StateClaudeMemoryMiddleware,
        StateClaudeTextEditorMiddleware,
    )

    both = [StateClaudeMemoryMiddleware(), StateClaudeTextEditorMiddleware()]
    agent, model = build(["Done."], **{side: both})
    await run(path, agent, user("send an email"))
    assert {"memory", "str_replace_based_edit_tool", "send_email"} == {*model.calls[0].tools} - {DISCOVER}


async def test_a_marked_and_described_copy_of_such_a_tool_stays(path):
    def marked(request: Any) -> Any:
        changes = {"description": "Plan.", "extras": {"cache_control": {"type": "ephemeral"}}}
        tools = [t.model_copy(update=changes) if t.name == "write_todos" else t for t in request.tools]
        return request.override(tools=tools)

    agent, model = build(["Done."], outer=[TodoListMiddleware(), Rewriting(marked)])
    await run(path, agent, user("send an email"))
    assert "write_todos" in model.calls[0].tools


async def test_tools_of_ones_own_middleware_are_selected_as_any_others(path):
    agent, model = build(["Done."], [], outer=[Bringing(*office())])
    await run(path, agent, user("send an email"))
    assert sorted(model.calls[0].tools) == [DISCOVER, "send_email"]


USER_TOOLS = {
    "task": "Create a task in the tracker.",
    "read_file": "Read a file of the customer.",
    "execute": "Execute a query on the database.",
    "write_todos": "Write todos into the tracker.",
}


def as_function(name: str, description: str) -> BaseTool:
    return make_tool(name, description)


def as_coroutine(name: str, description: str) -> BaseTool:
    async def run(text: str = "") -> str:
        return name

    return StructuredTool.from_function(coroutine=run, name=name, description=description)


class Own(BaseTool):
    """A tool that is a class."""

    def _run(self, text: str = "") -> str:
        return self.name


def as_class(name: str, description: str) -> BaseTool:
    return Own(name=name, description=description)


@pytest.mark.parametrize("make", [as_function, as_coroutine, as_class])
@pytest.mark.parametrize("first", [True, False])
async def test_tools_of_ones_own_with_such_names_are_selected_as_any_others(first, make, path):
    own = [make(name, description) for name, description in USER_TOOLS.items()]
    agent, model = build(["Done."], [*own, *office()] if first else [*office(), *own])
    await run(path, agent, user("send an email"))
    assert [name for name in model.calls[0].tools if name != DISCOVER] == ["send_email"]


async def test_a_tool_of_ones_own_in_the_place_of_one_of_the_harness_is_ones_own(path):
    """LangChain keeps the later of two tools with one name, and that is the user's."""
    tools = [*make_tools({"write_todos": "Write todos into the tracker."}), *office()]
    agent, model = build(["Done."], tools, outer=[TodoListMiddleware()])
    await run(path, agent, user("send an email"))
    assert [name for name in model.calls[0].tools if name != DISCOVER] == ["send_email"]
