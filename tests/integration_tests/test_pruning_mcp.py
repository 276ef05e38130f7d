"""Pruned schemas of over 150 real tools, by the same checks as the benchmark's."""

from __future__ import annotations

import pytest
from langchain_core.tools import BaseTool

from langchain_tool_selection._schema import SchemaPruning, prune_tool
from langchain_tool_selection._tokens import count_tokens
from langchain_tool_selection.testing import schema_of

from .test_mcp_servers import tools, workplace  # noqa: F401  # fixtures

pytest.importorskip("langchain_anthropic")

from benchmarks.pruning import failures  # needs langchain_anthropic


@pytest.mark.parametrize("options", [SchemaPruning(), SchemaPruning(keep_if_none_required=True)])
def test_every_pruned_tool_is_sound_and_they_cost_half_at_most(
    tools: list[BaseTool],  # noqa: F811  # the fixture
    options: SchemaPruning,
) -> None:
    assert len(tools) > 150
    whole = [schema_of(tool) for tool in tools]
    pruned = [prune_tool(schema, options) for schema in whole]
    for before, after in zip(whole, pruned, strict=True):
        assert list(failures(before["function"], after["function"], options)) == [], before
    assert count_tokens(pruned).tokens < count_tokens(whole).tokens / 2
