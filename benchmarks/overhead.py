"""What an agent step costs with this middleware, and without it.

    python -m benchmarks.overhead --out benchmarks/results

One process, one agent, a real `ChatOpenAI` whose requests are answered on the spot instead of by the
network: tools are converted and the request is encoded as in production. "First call" is the first model
call with new tools, "warm" the median of the later ones. Machines are noisy: compare the ratios, which
come from interleaved runs, not the milliseconds.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import statistics
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
from langchain.agents import create_agent
from langchain_core.tools import BaseTool, StructuredTool
from langchain_openai import ChatOpenAI
from pydantic import Field, create_model

from langchain_tool_selection import ToolSelectionMiddleware
from langchain_tool_selection.testing import CallRecorder

VERBS = ("create", "list", "update", "delete", "search", "export", "archive", "assign", "merge", "share")
NOUNS = (
    "invoice", "ticket", "customer", "branch", "calendar", "message", "report", "folder", "contract",
    "sprint", "milestone", "payment", "server", "backup", "contact", "policy", "dataset", "article",
    "campaign", "device",
)  # fmt: skip
SERVERS = ("crm", "git", "desk", "cloud", "wiki")
CASES = ((1000, "function"), (1000, "mcp"), (200, "function"), (200, "mcp"), (20, "function"), (20, "mcp"))


def make_tools(count: int, kind: str) -> list[BaseTool]:
    """Return `count` different tools: "function" (pydantic schemas) or "mcp" (JSON schema dicts)."""
    return [_make_tool(number, kind) for number in range(count)]


def _make_tool(number: int, kind: str) -> BaseTool:
    verb, noun = VERBS[number % 10], NOUNS[number // 10 % 20]
    server = SERVERS[number // 200 % 5]
    name = f"{server}_{verb}_{noun}"
    description = (
        f"{verb.capitalize()} a {noun} in the {server} system. Use this when somebody asks to {verb} "
        f"one {noun} or several of them; it answers with their identifiers and their state."
    )
    fields = {
        f"{noun}_id": (str, f"Identifier of the {noun}."),
        "limit": (int, "How many results to give back at most."),
        "fields": (str, f"Which columns of the {noun} to return, separated by commas."),
        "dry_run": (bool, f"Whether only to check if the {verb} would succeed."),
    }
    if kind == "function":
        model_fields: Any = {key: (type_, Field(description=text)) for key, (type_, text) in fields.items()}
        schema: Any = create_model(name, **model_fields)
    else:
        names = {str: "string", int: "integer", bool: "boolean"}
        properties = {
            key: {"type": names[type_], "description": text} for key, (type_, text) in fields.items()
        }
        schema = {"type": "object", "properties": properties, "required": [f"{noun}_id"]}
    return StructuredTool(name=name, description=description, args_schema=schema, func=_ignore)


def _ignore(**_: Any) -> str:
    return "done"


def measure(count: int, kind: str, repeats: int, rounds: int = 7) -> dict[str, Any]:
    """Time first and warm calls of the two agents, interleaved. With 20 tools nothing is hidden."""
    first: dict[str, list[float]] = {"without": [], "with": []}
    warm: dict[str, list[float]] = {"without": [], "with": []}
    sent: dict[str, int] = {}
    for _ in range(rounds):
        agents = {}
        for name in ("without", "with"):
            # New tools each time: their schemas are made on first use and then remembered.
            middleware = [ToolSelectionMiddleware(top_k=max(15, count if count <= 20 else 0))]
            tools = make_tools(count, kind)
            agents[name] = create_agent(_model(), tools, middleware=middleware if name == "with" else [])
            gc.collect()  # what earlier rounds left behind is nobody's cost here
            first[name].append(_timed(agents[name]))
        for name, agent in agents.items():
            recorder = CallRecorder()
            _timed(agent, recorder)
            sent[name] = len(recorder.calls[0].tools)
        for _ in range(repeats):
            for name, agent in agents.items():
                warm[name].append(_timed(agent))
    return {
        "tools": count,
        "schemas": kind,
        "sent": sent,
        **{f"first_{key}": value for key, value in _compared(first).items()},
        **{f"warm_{key}": value for key, value in _compared(warm).items()},
    }


def _compared(times: dict[str, list[float]]) -> dict[str, Any]:
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {
        "ms": {name: round(value * 1000, 2) for name, value in medians.items()},
        "ratio": round(medians["with"] / medians["without"], 3),
    }


def _model() -> ChatOpenAI:
    answer = {
        "id": "1", "object": "chat.completion", "created": 0, "model": "none",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}],
    }  # fmt: skip
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=answer))
    return ChatOpenAI(model="gpt-4.1", api_key="none", http_client=httpx.Client(transport=transport))


def _timed(agent: Any, *callbacks: Any) -> float:
    request = {"messages": [{"role": "user", "content": "please archive the old invoices of the crm"}]}
    start = time.perf_counter()
    agent.invoke(request, {"callbacks": list(callbacks)})
    return time.perf_counter() - start


def main() -> None:
    """Run the benchmark, print a table and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the result file")
    parser.add_argument("--repeats", type=int, default=30, help="warm calls for each agent and round")
    options = parser.parse_args()
    measure(2, "mcp", 1, 1)  # imports and first-time set-up, once
    print("| tools | schemas | sent | first call, without / with | ratio | warm, without / with | ratio |")
    print("|---|---|---|---|---|---|---|")
    rows = []
    for count, kind in CASES:
        row = measure(count, kind, options.repeats)
        rows.append(row)
        cells = [
            f"{row[f'{phase}_ms']['without']} / {row[f'{phase}_ms']['with']} ms | {row[f'{phase}_ratio']}"
            for phase in ("first", "warm")
        ]
        print(f"| {count} | {kind} | {row['sent']['with']} | {' | '.join(cells)} |", flush=True)
    if options.out:
        packages = {
            name: version(name)
            for name in ("langchain", "langgraph", "langchain-core", "langchain-openai", "numpy")
        }
        result = {
            "command": "python -m benchmarks.overhead",
            "python": platform.python_version(),
            "packages": packages,
            "rows": rows,
        }
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "overhead.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
