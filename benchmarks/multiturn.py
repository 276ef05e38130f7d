"""`python -m benchmarks.multiturn --data DIR`: what showing tools costs over a conversation that is cached.

Conversations of ten user turns (`conversations.py`) run through `create_agent` with a checkpointer, once for
each way of showing tools. Models are the providers' own clients; what they would send is cut into the
segments that a prompt cache works on, and counted with a real tokenizer. Nothing is called over a network.

A cache is simulated per conversation: what a call shares at its beginning with *any* earlier call of the
conversation is read, the rest is written. That is the most that a cache can give: none expires, none has a
shortest prefix, and none needs a mark where the shared part ends.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from math import ceil
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, LLMToolSelectorMiddleware, ModelRequest
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from benchmarks import report
from benchmarks.conversations import SYSTEM_PROMPT, Conversation, Player, conversations
from benchmarks.datasets import Dataset, read_datasets
from langchain_tool_selection import ToolIndex, ToolSelectionMiddleware
from langchain_tool_selection._exposure.stubs import Stubs
from langchain_tool_selection._ranking.index import CatalogView
from langchain_tool_selection._ranking.protocol import Query
from langchain_tool_selection.cost import Prices
from langchain_tool_selection.testing import ModelCall, PayloadLog, schema_name, scripted_client
from langchain_tool_selection.testing._prefix import _Request

SIZES = {"arcade": (30, 100, 250), "livemcpbench": (100, 250, 527)}
"""Catalogues of each set. Livemcpbench needs 28 tools for ten turns, so one of 30 would hide nothing."""

CONVERSATIONS = {"arcade": 20, "livemcpbench": 10}
"""How many of each set: livemcpbench has 54 requests, and so says each of them twice."""

TOP_K = 15

PROFILES = {
    "claude": Prices(0.1, 1.25),
    "claude-5.5": Prices(0.05, 1.25),
    "openai": Prices(0.1, 1.0),
    "no cache": Prices(),
}
"""What a read and a write cost in uncached tokens: Claude up to 5; Opus, Sonnet 5.5; GPT-5 to 5.5; none."""

_PACKAGES = ("langchain", "langgraph", "langchain-anthropic", "langchain-openai")

Row = dict[str, Any]
Job = tuple[Conversation, int, Mapping[str, int], bool, Sequence[str]]
"""What to play: the size of the catalogue, the order of the set's tools, how to search, which strategies."""


# -- measuring -----------------------------------------------------------------------------------------


class Meter(PayloadLog):
    """Counts each request of one conversation as it is sent, and keeps none of them."""

    def __init__(self, count_tokens: Callable[[str], int]) -> None:
        super().__init__()
        self._count = count_tokens
        self._seen: set[bytes] = set()
        self._warm: set[bytes] = set()
        self.sent: list[int] = []
        self.read: list[int] = []
        self.read_warm: list[int] = []
        self.arrays: list[int] = []
        self.tool_tokens: list[int] = []

    def add(self, payload: dict[str, Any], call: ModelCall, thread_id: str | None = None) -> int:
        """Take the place of `PayloadLog.add`, which copies."""
        request = _Request.of(payload, self._count)
        so_far, hashed = 0, hashlib.sha256()
        ends: list[tuple[bytes, int]] = []
        for segment, tokens in zip(request.segments, request.tokens, strict=True):
            hashed.update(f"{segment.part}\0{segment.text}\0".encode())
            so_far += tokens
            ends.append((hashed.digest(), so_far))
        fixed = sum(segment.part != "messages" for segment in request.segments)
        if not self.sent:
            # What another conversation with the same tools would have left behind.
            self._warm = {end for end, _ in ends[:fixed]}
        self.sent.append(so_far)
        self.read.append(max((size for end, size in ends if end in self._seen), default=0))
        self.read_warm.append(
            max((size for end, size in ends if end in self._seen or end in self._warm), default=0)
        )
        self.arrays.append(sum(segment.part == "tools" for segment in request.segments))
        parts = zip(request.segments, request.tokens, strict=True)
        self.tool_tokens.append(sum(tokens for segment, tokens in parts if segment.part == "tools"))
        self._seen.update(end for end, _ in ends)
        return len(self.sent) - 1


def tokenizer() -> tuple[str, Callable[[str], int]]:
    """Return tiktoken's o200k_base if it is here, with its vocabulary; else four characters a token."""
    try:
        import tiktoken  # noqa: PLC0415  # needs not be there

        encoding = tiktoken.get_encoding("o200k_base")
    except Exception as error:
        print(f"no tiktoken ({type(error).__name__}): counting four characters a token", file=sys.stderr)
        return "four characters", lambda text: ceil(len(text) / 4)
    return "tiktoken o200k_base", lambda text: len(encoding.encode(text, disallowed_special=()))


# -- ways of showing tools -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Stage:
    """What a strategy is made of, for one conversation."""

    catalog: CatalogView
    player: Player
    meter: Meter
    selector_meter: Meter

    def claude(self, name: str = "claude-opus-5-5") -> ChatAnthropic:
        """Return Anthropic's client with this player at the other end."""
        # Thinking is off, because with it this model refuses a changed array, and half of the ways change it.
        client = ChatAnthropic(model=name, api_key="none", thinking={"type": "disabled"})
        return scripted_client(client, self.player, self.meter)

    def gpt(self) -> ChatOpenAI:
        """Return OpenAI's client for Responses, likewise."""
        client = ChatOpenAI(model="gpt-5.5", api_key="none", use_responses_api=True)
        return scripted_client(client, self.player, self.meter)

    def selector(self) -> LLMToolSelectorMiddleware:
        """Return LangChain's selector. Its model picks what this package's ranker finds for the message."""

        def answer(sent: ModelCall) -> AIMessage:
            said = next(m.text for m in reversed(sent.messages) if isinstance(m, HumanMessage))
            names = [hit.name for hit in self.catalog.search(Query.of(said), limit=TOP_K)]
            self.player.selected.append(str(names))
            chosen = {"name": schema_name(sent.schemas[0]), "args": {"tools": names}, "id": "toolu_selection"}
            return AIMessage("", tool_calls=[chosen])

        client = ChatAnthropic(model="claude-sonnet-4-5", api_key="none")
        return LLMToolSelectorMiddleware(
            model=scripted_client(client, answer, self.selector_meter), max_tools=TOP_K
        )


class PerCallTopK(AgentMiddleware):
    """An afternoon's middleware: before each call, the best tools for what was said in this turn."""

    def __init__(self, catalog: CatalogView) -> None:
        super().__init__()
        self._catalog = catalog

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Any]) -> Any:
        """Bind the best tools, best first."""
        by_name = {tool.name: tool for tool in request.tools}
        last = max(i for i, message in enumerate(request.messages) if isinstance(message, HumanMessage))
        said = "\n".join(message.text for message in request.messages[last:])
        hits = self._catalog.search(Query.of(said), limit=TOP_K)
        return handler(request.override(tools=[by_name[hit.name] for hit in hits]))


def _ours(exposure: str) -> list[AgentMiddleware]:
    return [ToolSelectionMiddleware(TOP_K, exposure=exposure)]


Strategy = Callable[[Stage], tuple[Any, list[AgentMiddleware]]]

STRATEGIES: dict[str, Strategy] = {
    "everything": lambda stage: (stage.claude(), []),
    "LLMToolSelector": lambda stage: (stage.claude(), [stage.selector()]),
    "per-call top-k": lambda stage: (stage.claude(), [PerCallTopK(stage.catalog)]),
    "per_turn": lambda stage: (stage.claude(), _ours("per_turn")),
    "grow": lambda stage: (stage.claude(), _ours("grow")),
    "append": lambda stage: (stage.claude(), _ours("append")),
    "append (tool_reference)": lambda stage: (stage.claude("claude-sonnet-4-5"), _ours("append")),
    "append (additional_tools)": lambda stage: (stage.gpt(), _ours("append")),
    "proxy": lambda stage: (stage.claude(), _ours("proxy")),
    "stubs": lambda stage: (stage.claude(), _ours("stubs")),
}

SHARED = {"everything", "proxy", "stubs"}
"""Ways whose tools array does not depend on what the user says: other conversations can have cached it."""


# -- running -------------------------------------------------------------------------------------------


def play(name: str, player: Player, count: Callable[[str], int]) -> Row:
    """Run one conversation one way, and return its totals."""
    conversation, tools = player.conversation, list(player.tools.values())
    stage = Stage(ToolIndex().sync(tools), player, Meter(count), Meter(count))
    model, middleware = STRATEGIES[name](stage)
    agent = create_agent(
        model, tools, system_prompt=SYSTEM_PROMPT, middleware=middleware, checkpointer=InMemorySaver()
    )
    config = {"configurable": {"thread_id": conversation.name}, "recursion_limit": 200}
    for turn, case in enumerate(conversation.cases):
        agent.invoke({"messages": [HumanMessage(case.query, id=f"user_{turn:02d}")]}, config)
    main, selector = stage.meter, stage.selector_meter
    is_chosen = name == "stubs" and len(tools) > Stubs.most
    warm = main.read_warm if name in SHARED and not is_chosen else main.read
    return {
        "calls": len(main.sent),
        "selector_calls": len(selector.sent),
        "tools_in_array": statistics.mean(main.arrays),
        "tool_tokens": statistics.mean(main.tool_tokens),
        "sent": sum(main.sent),
        "selector_sent": sum(selector.sent),
        "read": sum(main.read) + sum(selector.read),
        "read_warm": sum(warm) + sum(selector.read_warm),
        "last_prompt": main.sent[-1],
        "output": sum(map(count, [*player.written, *player.selected])),
        "needed": player.needed,
        "reached": player.reached,
        "unasked": player.unasked,
        "searches": player.searches,
        "tasks": player.tasks,
        "turns": len(conversation.cases),
    }


def summary(rows: Sequence[Row]) -> Row:
    """Return means per conversation, shares in percent, and costs in thousands of uncached tokens."""
    mean = {key: statistics.mean(row[key] for row in rows) for key in rows[0]}
    total = {key: sum(row[key] for row in rows) for key in rows[0]}
    sent = mean["sent"] + mean["selector_sent"]
    costs, warm = (
        {
            profile: round((prices.read * mean[read] + prices.write * (sent - mean[read])) / 1000, 2)
            for profile, prices in PROFILES.items()
        }
        for read in ("read", "read_warm")
    )
    return {
        **{key: round(mean[key], 1) for key in ("calls", "selector_calls", "searches", "tools_in_array")},
        **{key: round(mean[key]) for key in ("tool_tokens", "sent", "selector_sent", "read", "output")},
        "written": round(sent - mean["read"]),
        "last_prompt": round(mean["last_prompt"]),
        "cost_k": costs,
        "cost_k_warm_start": warm,
        "tasks_percent": round(100 * total["tasks"] / total["turns"], 1),
        "reached_percent": round(100 * total["reached"] / total["needed"], 1),
        "unasked_percent": round(100 * total["unasked"] / total["needed"], 1),
    }


@cache
def _counter() -> Callable[[str], int]:
    return cache(tokenizer()[1])


def play_all(job: Job) -> tuple[int, dict[str, Row]]:
    """Run one conversation over one catalogue in every way; returns tokens of the catalogue, and totals."""
    conversation, size, order, by_purpose, names = job
    warnings.simplefilter("ignore")
    gc.disable()  # a third of the time otherwise; what a conversation leaves behind is collected below
    tools = conversation.catalog(size, order)
    by_name = {tool.name: tool for tool in tools}
    rows = {name: play(name, Player(conversation, by_name, by_purpose), _counter()) for name in names}
    everything = ChatAnthropic(model="claude-opus-5-5", api_key="none").bind_tools(tools).kwargs["tools"]
    meter = Meter(_counter())
    meter.add({"max_tokens": 1, "tools": everything, "messages": []}, ModelCall(()))
    gc.collect()
    return meter.tool_tokens[0], rows


def measure(data: Dataset, size: int, options: argparse.Namespace, names: Sequence[str], run: Any) -> Row:
    """Run all conversations of a set over catalogues of one size."""
    order = {tool["name"]: position for position, tool in enumerate(data.tools)}
    count = options.conversations or CONVERSATIONS.get(data.name, 10)
    made = conversations(data, count, options.turns, options.seed)
    jobs: list[Job] = [(each, size, order, options.search == "purpose", names) for each in made]
    done = list(run(play_all, jobs))
    return {
        "tools": min(size, len(data.tools)),
        "conversations": count,
        "catalog_tokens": round(statistics.mean(tokens for tokens, _ in done)),
        "needed_per_turn": round(
            statistics.mean(len(case.relevant) for conversation in made for case in conversation.cases), 2
        ),
        "strategies": {name: summary([rows[name] for _, rows in done]) for name in names},
    }


# -- showing -------------------------------------------------------------------------------------------


def cost_table(content: Row, profile: str) -> str:
    """Return the cost of a conversation by way and catalogue, with the requests that were within reach."""
    catalogs = [(name, row) for name, rows in content["sets"].items() for row in rows]
    header = ["thousand tokens (requests in reach)"]
    header += [f"{name} {row['tools']} ({row['catalog_tokens'] / 1000:.0f}k)" for name, row in catalogs]
    lines = []
    for strategy in catalogs[0][1]["strategies"]:
        cells = [row["strategies"][strategy] for _, row in catalogs]
        lines.append(
            [strategy, *(f"{cell['cost_k'][profile]:.0f} ({cell['tasks_percent']:.0f} %)" for cell in cells)]
        )
    return report.table(header, lines)


def detail_table(row: Row) -> str:
    """Return everything about one catalogue, one line for each way."""
    lines = []
    for strategy, cells in row["strategies"].items():
        selecting = f" + {cells['selector_calls']:.1f}" if cells["selector_calls"] else ""
        sent = cells["sent"] + cells["selector_sent"]
        lines.append(
            [
                strategy,
                f"{cells['calls']:.1f}{selecting}",
                f"{cells['searches']:.1f}",
                f"{cells['tools_in_array']:.0f}",
                *(f"{tokens / 1000:.0f}k" for tokens in (sent, cells["read"], cells["written"])),
                *(f"{cost:.0f}" for cost in cells["cost_k"].values()),
                f"{cells['cost_k_warm_start']['claude']:.0f}",
                f"{cells['unasked_percent']:.0f}",
                f"{cells['reached_percent']:.0f}",
                f"{cells['tasks_percent']:.0f}",
            ]
        )
    header = ["", "model calls", "searches", "tools a call", "sent", "read", "written", *PROFILES]
    header += ["claude, warm start", "tools shown unasked, %", "tools in reach, %", "requests in reach, %"]
    return report.table(header, lines)


def show(content: Row) -> None:
    """Print all tables."""
    for profile, prices in PROFILES.items():
        print(f"\n## Cost, {profile}: read {prices.read:g}, write {prices.write:g}\n")
        print(cost_table(content, profile))
    for name, rows in content["sets"].items():
        for row in rows:
            print(f"\n## {name}, {row['tools']} tools, {row['catalog_tokens']:,} tokens\n")
            print(detail_table(row), flush=True)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.multiturn", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of sets; see benchmarks/README.md")
    parser.add_argument("--sets", default=",".join(SIZES), help="sets to use, separated by commas")
    parser.add_argument("--strategies", default=",".join(STRATEGIES), help="ways to run, likewise")
    parser.add_argument("--conversations", type=int, help=f"of each set (default: {CONVERSATIONS})")
    parser.add_argument("--turns", type=int, default=10, help="user messages in each")
    parser.add_argument(
        "--search",
        choices=("request", "purpose"),
        default="request",
        help="what a search says: the user's words, or what the tool's description begins with",
    )
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--out", type=Path, default=report.RESULTS, help="folder for the result file")
    return parser.parse_args()


def main() -> None:
    """Run everything, print a table and write one result file."""
    options = arguments()
    names = options.strategies.split(",")
    content = report.provenance("benchmarks.multiturn") | {
        "settings": {
            "turns": options.turns,
            "seed": options.seed,
            "search": options.search,
            "top_k": TOP_K,
            "tokens": tokenizer()[0],
            "prices": {name: [prices.read, prices.write] for name, prices in PROFILES.items()},
        },
        "sets": {},
    }
    content["packages"] |= {name: version(name) for name in _PACKAGES}
    with ProcessPoolExecutor(options.jobs) as pool:
        for data in read_datasets(options.data, options.sets.split(",")):
            content["sets"][data.name] = []
            for size in SIZES.get(data.name, (len(data.tools),)):
                started = time.perf_counter()
                content["sets"][data.name].append(measure(data, size, options, names, pool.map))
                seconds = time.perf_counter() - started
                print(f"… {data.name}, {size} tools: {seconds:.0f} s", file=sys.stderr, flush=True)
    show(content)
    print(f"\n`{content['command']}` → {report.save('multiturn', content, options.out).name}")


if __name__ == "__main__":
    main()
