"""Over 150 real tools: MCP servers from PyPI, started by stdio through langchain-mcp-adapters."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from langchain_core.tools import BaseTool

from langchain_tool_selection import (
    SchemaPruning,
    ToolIndex,
    ToolSelectionMiddleware,
    count_tokens,
    prune_tool,
)
from langchain_tool_selection.demo.mcp_servers import (
    Outcome,
    Workplace,
    install_servers,
    load_tools,
    play,
)
from langchain_tool_selection.testing import schema_of

pytestmark = pytest.mark.mcp

TOP_K = 15
CORE = ("git_status",)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    return Workplace.make(tmp_path_factory.mktemp("workplace"))


@pytest.fixture(scope="module")
def tools(workplace: Workplace, root: Path) -> list[BaseTool]:
    folder = Path(os.environ.get("TOOL_SELECTION_MCP_SERVERS", root / ".venv-mcp-servers"))
    return asyncio.run(load_tools(install_servers(folder), workplace))


@pytest.fixture(scope="module")
def outcomes(workplace: Workplace, tools: list[BaseTool]) -> list[Outcome]:
    middleware = ToolSelectionMiddleware(top_k=TOP_K, always_include=CORE)
    return asyncio.run(play(workplace.requests, tools, middleware))


def test_there_are_over_150_real_tools_of_five_servers(tools: list[BaseTool]) -> None:
    assert len(tools) > 150
    # Nobody has said so: it is what the servers are called in `MultiServerMCPClient`.
    assert {*ToolIndex().sync(tools).domains} == {"git", "time", "sqlite", "atlassian", "plane"}


def test_a_call_is_sent_no_more_than_top_k_and_the_core(outcomes: list[Outcome]) -> None:
    assert len(outcomes) == 20
    for outcome in outcomes:
        for number, sent in enumerate(outcome.calls):
            found = 5 if outcome.discovered and number else 0
            assert len(sent.tools) <= TOP_K + len(CORE) + len(["discover_tools"]) + found, outcome.request


def test_schemas_are_sent_whole(outcomes: list[Outcome], tools: list[BaseTool]) -> None:
    # To the last character: a sign of one of these servers has a variation selector, which belongs to it.
    whole = {tool.name: schema_of(tool) for tool in tools}
    for outcome in outcomes:
        for sent in outcome.calls:
            for schema in sent.schemas:
                name = schema["function"]["name"]
                assert name == "discover_tools" or schema == whole[name]


def test_the_right_tool_is_shown_or_found_with_the_requests_own_verb_and_object(
    outcomes: list[Outcome],
) -> None:
    assert [outcome.request.text for outcome in outcomes if not outcome.reached] == []


def test_git_time_and_sqlite_are_really_called(outcomes: list[Outcome], workplace: Workplace) -> None:
    answers = {
        outcome.request.tool: outcome.result for outcome in outcomes if outcome.request.arguments is not None
    }
    assert len(answers) >= 3
    assert "notes.txt" in str(answers["git_status"])
    assert "Add the notes" in str(answers["git_log"])
    assert "release" in str(answers["git_create_branch"])
    assert "Asia/Tokyo" in str(answers["get_current_time"])
    assert "22:30" in str(answers["convert_time"]) or "21:30" in str(answers["convert_time"])
    assert "2" in str(answers["read_query"])
    assert (workplace.repository / ".git" / "refs" / "heads" / "release").exists()


def test_most_of_what_is_hidden_is_found_by_one_search(workplace: Workplace, tools: list[BaseTool]) -> None:
    # With one tool shown by relevance, many requests need the search. Two of eleven are out of reach of words
    # alone ("log work" for a worklog entry, "change the status" for a transition).
    outcomes = asyncio.run(play(workplace.requests[9:], tools, ToolSelectionMiddleware(top_k=1)))
    assert sum(outcome.discovered for outcome in outcomes) >= 3
    assert sum(outcome.reached for outcome in outcomes) >= 9


@pytest.mark.parametrize("options", [SchemaPruning(), SchemaPruning(keep_if_none_required=True)])
def test_every_pruned_tool_is_sound_and_they_cost_half_at_most(
    tools: list[BaseTool], options: SchemaPruning
) -> None:
    pytest.importorskip("langchain_anthropic")
    pruning = pytest.importorskip("benchmarks.pruning")
    whole = [schema_of(tool) for tool in tools]
    pruned = [prune_tool(schema, options) for schema in whole]
    for before, after in zip(whole, pruned, strict=True):
        assert list(pruning.failures(before["function"], after["function"], options)) == [], before
    assert count_tokens(pruned).tokens < count_tokens(whole).tokens / 2
