"""Runs inside a peer's environment: ranks one catalogue with one package and writes what came out.

    python worker.py PEER JOB.json RESULT.json

The job is `{"tools": [...], "queries": [...], "limit": N}`; the result `{"rankings": [[names]],
"seconds": [...], "build_seconds": s}`. Needs nothing but the peer itself. Each adapter uses the peer's
default ranker, offline, with the largest result count that the benchmark looks at, and gives it name,
description and JSON schema of every tool, which is what each of these packages reads from an MCP server.
"""

# ruff: noqa: PLC0415  (each adapter imports the one package that its environment has)
from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

Tools = list[dict[str, Any]]
Search = Callable[[str], list[str]]

_EMPTY_SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


def fastmcp(tools: Tools, limit: int) -> Search:
    """`BM25SearchTransform`: the search behind its search tool, without the transport around it."""
    from fastmcp.server.transforms.search import BM25SearchTransform
    from fastmcp.tools.base import Tool

    transform = BM25SearchTransform(max_results=limit)
    catalog = [
        Tool(name=tool["name"], description=tool["description"], parameters=tool["parameters"])
        for tool in tools
    ]

    def search(query: str) -> list[str]:
        return [tool.name for tool in _run(transform._search(catalog, query))]

    return search


def ratel_ai(tools: Tools, limit: int) -> Search:
    """`ToolRegistry` with its default method, BM25."""
    from ratel_ai import Tool, ToolRegistry

    registry = ToolRegistry()
    batch = [Tool(t["name"], t["name"], t["description"], input_schema=t["parameters"]) for t in tools]

    async def register() -> None:
        await registry.register(batch)

    _run(register())
    return lambda query: [hit.tool_id for hit in registry.search(query, limit)]


def toolpicker(tools: Tools, limit: int) -> Search:
    """`ToolPicker` without an embedder, which needs a key."""
    from toolpicker import FunctionSchemaSource, ToolPicker

    picker = ToolPicker(FunctionSchemaSource(tools))
    return lambda query: [tool.id for tool in picker.select(query, k=limit)]


def graph_tool_call(tools: Tools, limit: int) -> Search:
    """`ToolGraph.add_tools`, which detects dependencies by default, and `retrieve`."""
    from graph_tool_call import ToolGraph

    graph = ToolGraph()
    graph.add_tools([_mcp(tool) for tool in tools])
    return lambda query: [tool.name for tool in graph.retrieve(query, top_k=limit)]


def dehydrator(tools: Tools, limit: int) -> Search:
    """`ToolIndex`, BM25L without its paid re-ranker."""
    from dehydrator import ToolIndex

    return ToolIndex([_mcp(tool) for tool in tools], top_k=limit).search


def toolhunch(tools: Tools, limit: int) -> Search:
    """`ToolSearchPipeline` over `BM25Retriever`, without a decider, which needs a model."""
    from toolhunch import BM25Retriever, ToolCard, ToolCatalog, ToolSearchPipeline

    catalog = ToolCatalog(
        ToolCard(name=tool["name"], description=tool["description"], parameters=tool["parameters"])
        for tool in tools
    )
    pipeline = ToolSearchPipeline(BM25Retriever(), k=limit)

    def search(query: str) -> list[str]:
        return _run(pipeline.search([query], catalog)).names

    return search


ADAPTERS: dict[str, Callable[[Tools, int], Search]] = {
    "fastmcp": fastmcp,
    "ratel-ai": ratel_ai,
    "toolpicker": toolpicker,
    "graph-tool-call": graph_tool_call,
    "dehydrator": dehydrator,
    "toolhunch": toolhunch,
}


def _mcp(tool: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": tool["name"],
        "description": tool["description"],
        "inputSchema": tool["parameters"],
    }


def _cleaned(tool: dict[str, Any]) -> dict[str, Any]:
    schema = tool.get("parameters") or _EMPTY_SCHEMA
    return {"name": tool["name"], "description": tool.get("description") or "", "parameters": schema}


_LOOP = asyncio.new_event_loop()


def _run(awaitable: Any) -> Any:
    # One loop for all requests: a new one for each would be most of the time measured.
    return _LOOP.run_until_complete(awaitable)


def main(peer: str, job_path: str, result_path: str) -> None:
    """Rank every query of a job and write the result."""
    logging.disable(logging.WARNING)
    job = json.loads(Path(job_path).read_text(encoding="utf-8"))
    tools = [_cleaned(tool) for tool in job["tools"]]
    ADAPTERS[peer](tools[:1], job["limit"])  # imports the package, which is not part of building an index
    started = perf_counter()
    search = ADAPTERS[peer](tools, job["limit"])
    search(job["queries"][0])
    build_seconds = perf_counter() - started
    rankings, seconds = [], []
    for query in job["queries"]:
        started = perf_counter()
        rankings.append(list(search(query)))
        seconds.append(perf_counter() - started)
    result = {"rankings": rankings, "seconds": seconds, "build_seconds": build_seconds}
    Path(result_path).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
