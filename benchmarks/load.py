"""One middleware, one agent, many threads at once: what it costs, and that no pin is lost or mixed up.

    python -m benchmarks.load

Each thread is a conversation in which every fifth user message needs a tool that only a search finds. All
that is shown, pinned and found is checked while it happens. "Our part" is the time inside the middleware,
without the model, the graph and the checkpointer around it. `--trace` measures memory, and is slow.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import gc
import itertools
import os
import random
import threading
import time
import tracemalloc
from array import array
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES

import langchain_tool_selection
from benchmarks import report
from benchmarks.overhead import NOUNS, SERVERS, VERBS, make_tools
from langchain_tool_selection import Thread, ToolSelectionMiddleware
from langchain_tool_selection.testing import ModelCall, ScriptedChatModel, call

PINS, DISCOVER = "tool_selection_pinned", "discover_tools"

SEARCH_EVERY = 5
"""Turns from one that needs a search to the next."""

MAX_PINS = 32
KEPT_MESSAGES = 12
"""Conversations are cut to so many messages at each turn, as a long one has to be."""

WARM = 0.25
"""Share of a run after which memory must not grow any more."""


# -- what is measured --------------------------------------------------------------------------------------


class Times:
    """Seconds of our part, by what it was: of the clock, and of the processor."""

    def __init__(self) -> None:
        self.wall = {"model call": array("d"), "search": array("d")}
        self.cpu = {"model call": array("d"), "search": array("d")}

    def add(self, kind: str, wall: float, cpu: float) -> None:
        """Note one."""
        self.wall[kind].append(wall)
        self.cpu[kind].append(cpu)

    def to_dict(self) -> dict[str, Any]:
        """Return medians and 99th percentiles in milliseconds."""
        return {
            kind: {
                "count": len(self.wall[kind]),
                "ms": {
                    f"{clock}_{name}": round(1000 * _quantile(times[kind], share), 3)
                    for clock, times in (("wall", self.wall), ("cpu", self.cpu))
                    for name, share in (("p50", 0.5), ("p99", 0.99))
                },
            }
            for kind in self.wall
            if self.wall[kind]
        }


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


class _Stopwatch:
    """Runs while our part does, and stands still in what it calls."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0
        self.start()

    def start(self) -> None:
        self._since = time.perf_counter(), time.thread_time()

    def stop(self) -> None:
        self.wall += time.perf_counter() - self._since[0]
        self.cpu += time.thread_time() - self._since[1]


class Timed(ToolSelectionMiddleware):
    """Notes how long its own part of a call takes."""

    def __init__(self, times: Times, **settings: Any) -> None:
        super().__init__(**settings)
        self._times = times
        (tool,) = self.tools
        tool.func = self._timed(tool.func)
        tool.coroutine = self._atimed(tool.coroutine)
        self._tool_calls.offered.own._functions = frozenset([id(tool.func)])

    @property
    def name(self) -> str:
        """The name that it has in graphs and traces."""
        return "ToolSelectionMiddleware"

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """See `ToolSelectionMiddleware`."""
        watch = _Stopwatch()

        def inner(changed: Any) -> Any:
            watch.stop()
            try:
                return handler(changed)
            finally:
                watch.start()

        result = super().wrap_model_call(request, inner)
        watch.stop()
        self._times.add("model call", watch.wall, watch.cpu)
        return result

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """See `ToolSelectionMiddleware`."""
        watch = _Stopwatch()

        async def inner(changed: Any) -> Any:
            watch.stop()
            try:
                return await handler(changed)
            finally:
                watch.start()

        result = await super().awrap_model_call(request, inner)
        watch.stop()
        self._times.add("model call", watch.wall, watch.cpu)
        return result

    def _timed(self, function: Any) -> Any:
        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            watch = _Stopwatch()
            try:
                return function(*args, **kwargs)
            finally:
                watch.stop()
                self._times.add("search", watch.wall, watch.cpu)

        return timed

    def _atimed(self, function: Any) -> Any:
        @functools.wraps(function)
        async def timed(*args: Any, **kwargs: Any) -> Any:
            watch = _Stopwatch()
            try:
                return await function(*args, **kwargs)
            finally:
                watch.stop()
                self._times.add("search", watch.wall, watch.cpu)

        return timed


def resident() -> int:
    """Return the process's memory in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def traced() -> int:
    """Return what is alive of all that the package's own lines have allocated, in bytes."""
    gc.collect()
    folder = Path(langchain_tool_selection.__file__).parent
    kept = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, f"{folder}/*")])
    return sum(statistic.size for statistic in kept.statistics("filename"))


@dataclass
class Memory:
    """Memory by the share of a run that was over."""

    turns: int
    measure: Callable[[], int] = resident
    samples: dict[float, int] = field(default_factory=dict)
    _done: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def turn(self) -> None:
        """Note that a turn is over."""
        done = next(self._done)
        if done % max(1, self.turns // 8) == 0:
            self.samples[round(done / self.turns, 3)] = self.measure()

    @property
    def growth(self) -> float:
        """How much larger the largest sample is than the one at the end of the warm-up."""
        warm = next(size for share, size in self.samples.items() if share >= WARM)
        return max(self.samples.values()) / warm - 1


class Trimming(AgentMiddleware):
    """Cuts the conversation at the beginning of each turn."""

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Keep the newest messages."""
        messages = state["messages"]
        if len(messages) <= KEPT_MESSAGES:
            return None
        kept = messages[-KEPT_MESSAGES:]
        while isinstance(kept[0], ToolMessage):
            kept = kept[1:]
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *kept]}


# -- where threads are kept --------------------------------------------------------------------------------


class NewestOnly(InMemorySaver):
    """Keeps one checkpoint of each thread, so that what grows is not the history."""

    def __init__(self) -> None:
        super().__init__()
        self._versions: dict[tuple[str, str], dict[str, Any]] = {}

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """Write a checkpoint and drop those before it."""
        written = super().put(config, checkpoint, metadata, new_versions)
        where = config["configurable"]
        thread, namespace = where["thread_id"], where["checkpoint_ns"]
        for old in [id_ for id_ in self.storage[thread][namespace] if id_ != checkpoint["id"]]:
            del self.storage[thread][namespace][old]
            self.writes.pop((thread, namespace, old), None)
        before = self._versions.setdefault((thread, namespace), {})
        for channel, version in new_versions.items():
            if channel in before:
                self.blobs.pop((thread, namespace, channel, before[channel]), None)
            before[channel] = version
        return written


@asynccontextmanager
async def saver_of(kind: str, path: str, url: str = "") -> AsyncIterator[Any]:
    """Open a checkpointer: `kind` is memory or postgres, `path` sync or async."""
    if kind == "memory":
        yield NewestOnly()
        return
    from langgraph.checkpoint.postgres import PostgresSaver  # noqa: PLC0415
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver  # noqa: PLC0415
    from psycopg.rows import dict_row  # noqa: PLC0415
    from psycopg_pool import AsyncConnectionPool, ConnectionPool  # noqa: PLC0415

    settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    if path == "sync":
        with ConnectionPool(url, max_size=16, kwargs=settings, timeout=120) as pool:
            saver = PostgresSaver(pool)
            saver.setup()
            yield saver
    else:
        async with AsyncConnectionPool(url, max_size=16, kwargs=settings, timeout=120) as pool:
            saver = AsyncPostgresSaver(pool)
            await saver.setup()
            yield saver


async def talk_all(
    path: str, agent: Any, threads: int, turns: int, text: Any, after: Callable[[], None]
) -> None:
    """Play all threads at once, each turn after turn."""

    def config(number: int) -> dict[str, Any]:
        return {"configurable": {"thread_id": str(number)}}

    def talk(number: int) -> None:
        for turn in range(turns):
            agent.invoke({"messages": [HumanMessage(text(number, turn))]}, config(number))
            after()

    async def atalk(number: int) -> None:
        for turn in range(turns):
            await agent.ainvoke({"messages": [HumanMessage(text(number, turn))]}, config(number))
            after()

    if path == "async":
        await asyncio.gather(*map(atalk, range(threads)))
        return
    with ThreadPoolExecutor(threads) as pool:
        await asyncio.gather(
            *(asyncio.get_running_loop().run_in_executor(pool, talk, n) for n in range(threads))
        )


async def pins_of(path: str, agent: Any, number: int) -> list[str]:
    """Return the pins of a thread."""
    config = {"configurable": {"thread_id": str(number)}}
    state = agent.get_state(config) if path == "sync" else await agent.aget_state(config)
    return list(state.values.get(PINS, ()))


# -- one catalogue, many threads -----------------------------------------------------------------------------


class Conversations:
    """What users ask and models do, and what must come of it."""

    def __init__(self, tools: Sequence[BaseTool]) -> None:
        self._names = [tool.name for tool in tools]
        self._found: dict[int, list[str]] = defaultdict(list)
        self.wrong: list[str] = []

    def text(self, thread: int, turn: int) -> str:
        """Return what the user writes: no words in a turn that needs a search."""
        if turn % SEARCH_EVERY == 0:
            return f"[{thread} {turn}]"
        server, verb, noun = self._asked(thread, turn).split("_")
        return f"[{thread} {turn}] please {verb} the {noun} in the {server} system"

    def answer(self, sent: ModelCall) -> Any:
        """Return what the model answers, and note what should not be."""
        last = sent.messages[-1]
        asked = next(m for m in reversed(sent.messages) if isinstance(m, HumanMessage))
        thread, turn = map(int, asked.text.partition("]")[0][1:].split())
        if missing := {*self.pins(thread)}.difference(sent.tools):
            self.wrong.append(f"thread {thread}, turn {turn}: pinned and not shown: {sorted(missing)}")
        if turn % SEARCH_EVERY:
            if self._asked(thread, turn) not in sent.tools:
                self.wrong.append(f"thread {thread}, turn {turn}: asked for and not shown")
            return "Done."
        if isinstance(last, HumanMessage):
            # What is in sight already would not be pinned.
            start = (thread * 37 + turn * 13) % len(self._names)
            target = next(n for n in self._names[start:] + self._names if n not in sent.tools)
            self._found[thread].append(target)
            return call(DISCOVER, names=[target])
        return call(self._found[thread][-1]) if last.name == DISCOVER else "Done."

    def pins(self, thread: int) -> list[str]:
        """Return what a thread has found and must not have forgotten."""
        return self._found[thread][-MAX_PINS:]

    def _asked(self, thread: int, turn: int) -> str:
        return self._names[(thread * 101 + turn * 7) % len(self._names)]


def _forgetful(script: Callable[[ModelCall], Any]) -> ScriptedChatModel:
    """Return a model that does not remember what it was sent."""

    def answer(sent: ModelCall) -> Any:
        model.calls.clear()
        return script(sent)

    model = ScriptedChatModel(script=answer)
    return model


async def load(
    kind: str, path: str, *, threads: int, turns: int, tools: int, url: str = "", trace: bool = False
) -> dict[str, Any]:
    """Play many threads over one catalogue and return the figures; `wrong` lists what went wrong."""
    catalogue = make_tools(tools, "mcp")
    talks, times = Conversations(catalogue), Times()
    memory = Memory(threads * turns, traced if trace else resident)
    async with saver_of(kind, path, url) as saver:
        agent = create_agent(
            _forgetful(talks.answer),
            catalogue,
            middleware=[Trimming(), Timed(times, thread=Thread(max_pins=MAX_PINS))],
            checkpointer=saver,
        )
        start = time.perf_counter()
        await talk_all(path, agent, threads, turns, talks.text, memory.turn)
        seconds = time.perf_counter() - start
        for number in range(threads):
            if (found := await pins_of(path, agent, number)) != (due := talks.pins(number)):
                talks.wrong.append(f"thread {number}: pins are {found} and not {due}")
    return {
        "saver": kind,
        "path": path,
        "threads": threads,
        "turns": turns,
        "tools": tools,
        "turns_per_second": round(threads * turns / seconds, 1),
        "ours": times.to_dict(),
        "memory": {
            "of": "what the package's lines allocated" if trace else "the process",
            "megabytes": {str(share): round(size / 1e6, 1) for share, size in memory.samples.items()},
            "growth_after_warm_up": round(memory.growth, 3) if len(memory.samples) > 1 else None,
        },
        "wrong": talks.wrong,
    }


# -- a catalogue that changes meanwhile --------------------------------------------------------------------

_SEEN: ContextVar[dict[str, BaseTool]] = ContextVar("seen")
"""The catalogue of the model call at hand, as other middleware put it into the request."""


class Registry:
    """Tools that are added, removed and edited, each version with a word of its own in its description."""

    def __init__(self, count: int) -> None:
        self._random = random.Random(7)
        self._versions = itertools.count()
        self.tools: dict[str, BaseTool] = {}
        self.edits = 0
        for _ in range(count):
            self._add()

    def edit(self) -> None:
        """Add, remove and change one tool each."""
        tools = dict(self.tools)
        gone, changed = self._random.sample([*tools], k=2)
        del tools[gone]
        tools[changed] = self._make(changed)
        self.tools = tools
        self._add()
        self.edits += 3

    def _add(self) -> None:
        tool = self._make()
        self.tools = {**self.tools, tool.name: tool}

    def _make(self, name: str = "") -> BaseTool:
        number = next(self._versions)
        verb, noun, server = (words[number % len(words)] for words in (VERBS, NOUNS, SERVERS))
        return StructuredTool(
            name=name or f"{server}_{verb}_{noun}_{number}",
            description=f"Works on the {_word(number)} of a {noun}.",
            args_schema={"type": "object", "properties": {}},
            func=lambda: "done",
        )


def _word(number: int) -> str:
    """Return a word that is like no other and that no stemmer shortens."""
    letters = "bcfghjklmnpqrtvwxz"
    return "".join(letters[number // len(letters) ** place % len(letters)] for place in range(6))


def word_of(tool: BaseTool) -> str:
    """Return the word of a tool's version."""
    return tool.description.split()[3]


class Moving(AgentMiddleware):
    """Brings the registry's tools into each request, as they are at that moment, and runs them."""

    def __init__(self, registry: Registry) -> None:
        super().__init__()
        self._registry = registry

    def _moved(self, request: Any) -> Any:
        tools = self._registry.tools
        _SEEN.set(tools)
        return request.override(tools=[*request.tools, *tools.values()])

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Bring them."""
        return handler(self._moved(request))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Bring them."""
        return await handler(self._moved(request))


class Checking(AgentMiddleware):
    """Compares what is sent with what the request had."""

    def __init__(self, wrong: list[str]) -> None:
        super().__init__()
        self._wrong = wrong
        self.seen = 0

    def _check(self, request: Any) -> None:
        seen, shown = _SEEN.get(), {tool.name: tool for tool in request.tools if tool.name != DISCOVER}
        stale = [name for name, tool in shown.items() if seen.get(name) is not tool]
        words = {word_of(tool): name for name, tool in seen.items()}
        pinned = [name for name in request.state.get(PINS, ()) if name in seen]
        asked = next(m for m in reversed(request.messages) if isinstance(m, HumanMessage)).text
        due = [words[word] for word in asked.split() if word in words]
        missing = [name for name in (*pinned, *due) if name not in shown]
        self.seen += len(due)
        if stale or missing:
            self._wrong.append(f"stale: {stale}; missing: {missing}")

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Compare."""
        self._check(request)
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Compare."""
        self._check(request)
        return await handler(request)


class Searches:
    """A model that searches for a hidden tool of its last call's catalogue, in every second turn."""

    def __init__(self, wrong: list[str]) -> None:
        self._wrong = wrong
        self._looked_for: dict[str, str] = {}
        self.found = self.asked_again = 0

    def answer(self, sent: ModelCall) -> Any:
        """Return the model's answer, and note a search that did not find what was there."""
        last = sent.messages[-1]
        if isinstance(last, HumanMessage):
            if "search" not in last.text:
                return "Done."
            hidden = [tool for name, tool in _SEEN.get().items() if name not in sent.tools]
            tool = random.choice(hidden)
            answer = call(DISCOVER, query=word_of(tool))
            self._looked_for[answer.tool_calls[0]["id"]] = tool.name
            return answer
        target = self._looked_for.pop(last.tool_call_id)
        if "catalogue has changed" in last.text:
            self.asked_again += 1
        elif f"`{target}`" in last.text:
            self.found += 1
        else:
            self._wrong.append(f"{target} was there and not found: {last.text[:200]}")
        return "Done."


async def churn(path: str, *, threads: int, turns: int, tools: int, pause: float = 0.01) -> dict[str, Any]:
    """Play many threads over a catalogue that changes all the time, and return the figures."""
    registry, wrong, times = Registry(tools), list[str](), Times()
    checking, searches, over = Checking(wrong), Searches(wrong), threading.Event()

    def edit() -> None:
        while not over.wait(pause):
            registry.edit()

    def text(thread: int, turn: int) -> str:
        if turn % 2:
            return f"[{thread} {turn}] search"
        return f"[{thread} {turn}] {word_of(random.choice([*registry.tools.values()]))} please"

    agent = create_agent(
        _forgetful(searches.answer),
        [],
        middleware=[Trimming(), Moving(registry), Timed(times, thread=Thread(max_pins=MAX_PINS)), checking],
        checkpointer=NewestOnly(),
    )
    memory = Memory(threads * turns)
    editor = threading.Thread(target=edit)
    editor.start()
    start = time.perf_counter()
    try:
        await talk_all(path, agent, threads, turns, text, memory.turn)
    finally:
        over.set()
        editor.join()
    seconds = time.perf_counter() - start
    return {
        "path": path,
        "threads": threads,
        "turns": turns,
        "tools": tools,
        "edits": registry.edits,
        "turns_per_second": round(threads * turns / seconds, 1),
        "asked_for_and_there": checking.seen,
        "found": searches.found,
        "asked_again": searches.asked_again,
        "ours": times.to_dict(),
        "memory": {
            "of": "the process",
            "megabytes": {str(share): round(size / 1e6, 1) for share, size in memory.samples.items()},
            "growth_after_warm_up": round(memory.growth, 3) if len(memory.samples) > 1 else None,
        },
        "wrong": wrong,
    }


# -- running -----------------------------------------------------------------------------------------------


def _row(label: str, row: dict[str, Any]) -> list[Any]:
    ours = row["ours"]["model call"]["ms"]
    found = row["ours"].get("search", {}).get("ms", {})
    return [
        label,
        row["path"],
        row["turns_per_second"],
        f"{ours['wall_p50']} / {ours['wall_p99']}",
        f"{ours['cpu_p50']} / {ours['cpu_p99']}",
        f"{found.get('cpu_p50')} / {found.get('cpu_p99')}",
        row["memory"]["growth_after_warm_up"],
        len(row["wrong"]),
    ]


async def _run(options: argparse.Namespace) -> dict[str, Any]:
    from tests.integration_tests.postgres import Postgres  # noqa: PLC0415 - only where it is used

    size = {"threads": options.threads, "turns": options.turns, "tools": options.tools}
    header = (
        "saver",
        "path",
        "turns/s",
        "ours, ms (p50 / p99)",
        "of the processor",
        "search",
        "growth",
        "wrong",
    )
    rows: list[dict[str, Any]] = []
    moving: list[dict[str, Any]] = []
    postgres = Postgres() if "postgres" in options.savers else None
    try:
        if postgres is not None:
            postgres.start()
        for kind in options.savers:
            for path in options.paths:
                url = postgres.new_database() if postgres is not None and kind == "postgres" else ""
                row = await load(kind, path, **size, url=url, trace=options.trace)
                rows.append({**row, "wrong": row["wrong"][:20]})
                print(report.table(header, [_row(kind, row)]), *row["wrong"][:5], sep="\n", flush=True)
    finally:
        if postgres is not None:
            postgres.stop()
    for path in () if options.trace else options.paths:
        row = await churn(path, **size)
        moving.append({**row, "wrong": row["wrong"][:20]})
        print(
            report.table(header, [_row("changing catalogue", row)]), *row["wrong"][:5], sep="\n", flush=True
        )
    return {"load": rows, "changing_catalogue": moving}


def main() -> None:
    """Run the benchmark, print tables and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", type=int, default=64)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--tools", type=int, default=1000)
    parser.add_argument("--savers", type=lambda text: text.split(","), default=["memory", "postgres"])
    parser.add_argument("--paths", type=lambda text: text.split(","), default=["sync", "async"])
    parser.add_argument("--trace", action="store_true", help="measure what the package allocates")
    parser.add_argument("--save", action="store_true", help="write a result file")
    options = parser.parse_args()
    if options.trace:
        tracemalloc.start()
    content = {**report.provenance("benchmarks.load"), **asyncio.run(_run(options))}
    if options.save:
        print(report.save("load", content))


if __name__ == "__main__":
    main()
