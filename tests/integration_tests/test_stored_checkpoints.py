"""Threads that an earlier version stored go on: see `tests/stored/make.py`."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
from contextlib import asynccontextmanager
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from stored.make import DATABASE, MAX_PINS, SENT, THREADS, agent_for, config, said, use

from langchain_tool_selection.testing import call, prefix_report

from .agents import DISCOVER, PINS, answers, state_of
from .exposures import (
    StrictLog,
    additional_tools,
    array,
    assert_nothing_moves,
    tool_addition,
    tool_reference,
    visible,
)

pytestmark = [pytest.mark.slow, pytest.mark.every_way]

ALL = [name for name in THREADS if name != "more pins than allowed"]
CLIENTS = {
    "additional_tools": additional_tools,
    "tool_addition": tool_addition,
    "tool_reference": tool_reference,
}


class Later(StrictLog):
    """Numbers its answers beyond those that are stored: messages of one id replace each other."""

    def add(self, *sent: Any) -> int:
        return super().add(*sent) + 100


@asynccontextmanager
async def stored_threads(path: str, directory: Any) -> Any:
    """Open a copy of the stored checkpoints."""
    file = str(shutil.copy(DATABASE, directory))
    if path == "sync":
        with SqliteSaver.from_conn_string(file) as saver:
            yield saver
    else:
        async with AsyncSqliteSaver.from_conn_string(file) as saver:
            yield saver


def needed_client(name: str) -> None:
    """Skip a thread whose client is not installed, or cannot do here what it did then."""
    CLIENTS.get(name, lambda: None)()


def sent_last(name: str) -> dict[str, Any]:
    return json.loads(SENT.read_text("utf-8"))[name]


async def go_on(path: str, agent: Any, what: Any, name: str) -> dict[str, Any]:
    if path == "sync":
        return await asyncio.to_thread(agent.invoke, what, config(name))
    return await agent.ainvoke(what, config(name))


@pytest.mark.parametrize("name", ALL)
async def test_a_stored_thread_goes_on_with_its_pins_and_what_it_was_shown(name, path, tmp_path):
    needed_client(name)
    exposure, log = THREADS[name].exposure, Later()
    script = [
        "You are welcome.",
        use(exposure, "lock_door"),
        "Locked.",
        call(DISCOVER, query="order a pizza"),
        "Yes.",
    ]
    async with stored_threads(path, tmp_path) as saver:
        agent = agent_for(name, script, log, saver)
        before = await state_of(path, agent, config(name))
        for text in ("thank you", "lock the front door again", "what else is there?"):
            result = await go_on(path, agent, said(text), name)
        after = await state_of(path, agent, config(name))
    assert before[PINS] == ["play_music", "lock_door"]
    assert after[PINS] == [*before[PINS], "order_pizza"]
    assert answers(result, "lock_door") == ["lock_door did it"] * 2
    assert "order_pizza" in answers(result)[-1]
    assert not log.refused
    if exposure != "proxy":
        assert {*before[PINS]} <= {*visible(log.payloads[0])}
    if exposure not in ("proxy", "per_turn"):
        assert visible(log.payloads[0])[: len(visible(sent_last(name)))] == visible(sent_last(name))
        assert_nothing_moves(log.payloads)


@pytest.mark.parametrize("name", [name for name in ALL if THREADS[name].exposure in ("append", "proxy")])
async def test_a_stored_thread_whose_array_is_constant_is_read_from_the_cache_but_for_one_call_at_most(
    name, path, tmp_path
):
    needed_client(name)
    log, script = Later(), ["One.", call(DISCOVER, query="order a pizza"), "Two.", "Three."]
    async with stored_threads(path, tmp_path) as saver:
        agent = agent_for(name, script, log, saver)
        for text in ("thank you", "something to eat", "and water the plants"):
            await go_on(path, agent, said(text), name)
    payloads = [sent_last(name), *log.payloads]
    steps = list(prefix_report(payloads))
    assert sum(step.changed_in is not None for step in steps[1:]) <= 1
    assert prefix_report(log.payloads).intact
    assert len({json.dumps(array(payload)) for payload in log.payloads}) == 1


@pytest.mark.parametrize("name", ["grow", "more pins than allowed"])
async def test_a_stored_array_that_grows_changes_once_at_most_beyond_what_is_added(name, path, tmp_path):
    log, script = Later(), ["One.", "Two.", call(DISCOVER, query="order a pizza"), "Three."]
    async with stored_threads(path, tmp_path) as saver:
        agent = agent_for(name, script, log, saver)
        for text in ("thank you", "thanks again", "something to eat"):
            await go_on(path, agent, said(text), name)
    arrays = [array(payload) for payload in (sent_last(name), *log.payloads)]
    breaks = [now[: len(before)] != before for before, now in itertools.pairwise(arrays)]
    assert sum(breaks) <= 1
    assert not any(breaks[1:])


async def test_a_thread_stored_with_more_pins_than_allowed_keeps_the_newest(path, tmp_path):
    name, log = "more pins than allowed", Later()
    async with stored_threads(path, tmp_path) as saver:
        agent = agent_for(name, [call("order_pizza"), "Ordered."], log, saver)
        before = await state_of(path, agent, config(name))
        result = await go_on(path, agent, None, name)
        after = await state_of(path, agent, config(name))
    assert before[PINS] == ["play_music", "lock_door", "order_pizza", "water_plants"]
    assert after[PINS] == before[PINS][-MAX_PINS:]
    assert visible(log.payloads[0])[-MAX_PINS:] == after[PINS]
    assert answers(result, "order_pizza") == ["order_pizza did it"]


@pytest.mark.parametrize("name", ALL)
async def test_a_stored_thread_goes_on_on_another_exposure(name, path, tmp_path):
    needed_client(name)
    other, log = ("grow" if name == "proxy" else "proxy"), Later()
    async with stored_threads(path, tmp_path) as saver:
        script = [use(other, "play_music"), AIMessage("It plays.")]
        agent = agent_for(name, script, log, saver, exposure=other)
        result = await go_on(path, agent, said("once more the music"), name)
        after = await state_of(path, agent, config(name))
    assert answers(result, "play_music") == ["play_music did it"] * 2
    assert after[PINS] == ["play_music", "lock_door"]
