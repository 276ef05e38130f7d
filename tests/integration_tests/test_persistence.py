"""One contract for every checkpointer: what a thread found outlives turns, rebuilt agents and a dead server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.types import Command, Overwrite

from langchain_tool_selection.testing import PayloadLog, call, calls

from .agents import DISCOVER, PINS, answers, discover, open_saver, pins_of, run, state_of, thread, user
from .exposures import agent_on, assert_nothing_moves, chat_completions, searching, tool_addition, visible
from .postgres import Postgres

pytestmark = pytest.mark.slow

RECORD = "tool_selection_thread"
FOUR = ["order_pizza", "play_music", "book_flight", "lock_door"]
CLIENTS = {"per_turn": chat_completions, "append": tool_addition}

Storage = Callable[[], AbstractAsyncContextManager[Any]]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def storage(request: pytest.FixtureRequest, path: str, tmp_path: Path) -> Storage:
    """What opens the checkpointer of one test, as often as the test says, like one process after the other."""
    if request.param == "postgres":
        return on_postgres(request.getfixturevalue("postgres").new_database(), path)
    return on_disk_or_in_memory(request.param, path, tmp_path)


def on_postgres(url: str, path: str) -> Storage:
    from langgraph.checkpoint.postgres import PostgresSaver  # noqa: PLC0415 - may be absent
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver  # noqa: PLC0415

    @asynccontextmanager
    async def opened():
        if path == "sync":
            with PostgresSaver.from_conn_string(url) as saver:
                saver.setup()
                yield saver
        else:
            async with AsyncPostgresSaver.from_conn_string(url) as saver:
                await saver.setup()
                yield saver

    return opened


def on_disk_or_in_memory(kind: str, path: str, directory: Path) -> Storage:
    kept: list[Any] = []

    @asynccontextmanager
    async def opened():
        async with open_saver(kind, path, directory) as saver:
            kept.append(saver)
            yield kept[0] if kind == "memory" else saver

    return opened


class Talk:
    """A conversation on one exposure: each `agent` is a rebuilt one that goes on with it."""

    def __init__(self, exposure: str, path: str) -> None:
        self.path, self.log = path, PayloadLog()
        self._exposure = exposure

    def agent(self, saver: Any, *script: Any, **settings: Any) -> Any:
        client = CLIENTS[self._exposure]
        return agent_on(client, script, self.log, self._exposure, saver=saver, keep_used=0, **settings)

    async def say(self, agent: Any, what: Any, config: Any = None) -> Any:
        what = user(what) if isinstance(what, str) else what
        return await run(self.path, agent, what, config or thread())

    async def pins(self, agent: Any, config: Any = None) -> list[str]:
        return await pins_of(self.path, agent, config or thread())

    async def update(self, agent: Any, values: dict[str, Any]) -> None:
        if self.path == "sync":
            await asyncio.to_thread(agent.update_state, thread(), values)
        else:
            await agent.aupdate_state(thread(), values)

    async def history(self, agent: Any) -> list[Any]:
        if self.path == "sync":
            return list(agent.get_state_history(thread()))
        return [snapshot async for snapshot in agent.aget_state_history(thread())]

    @property
    def shown(self) -> list[list[str]]:
        """What each call's model could see."""
        return list(map(visible, self.log.payloads))


@pytest.fixture(params=CLIENTS)
def talk(request: pytest.FixtureRequest, path: str) -> Talk:
    return Talk(request.param, path)


async def test_what_was_found_is_shown_in_later_turns_and_by_a_rebuilt_agent(talk, storage):
    async with storage() as saver:
        agent = talk.agent(saver, discover("play some music"), call("play_music"), "It plays.", "Sent.")
        await talk.say(agent, "track my parcel")
        await talk.say(agent, "thank you")
    async with storage() as saver:
        agent = talk.agent(saver, "Watered.")
        assert await talk.pins(agent) == ["play_music"]
        await talk.say(agent, "water the plants")
        assert await talk.pins(agent) == ["play_music"]
    assert talk.shown[0] == ["track_parcel"]
    assert all("play_music" in names for names in talk.shown[1:])
    assert "water_plants" in talk.shown[-1]


async def test_a_restart_in_mid_conversation_keeps_the_prefix_of_a_model_that_caches(storage, path):
    talk = Talk("append", path)
    script = [[discover("music"), "Ok.", "Ok."], [searching(*FOUR[:2]), call("order_pizza"), "Ok."], ["Ok."]]
    texts = [["send an email", "and another"], ["lock the front door"], ["track a parcel by its number"]]
    for answers_, said in zip(script, texts, strict=True):
        async with storage() as saver:
            agent = talk.agent(saver, *answers_)
            for text in said:
                await talk.say(agent, text)
    report = talk.log.prefix_report()
    assert len(report) == 7
    assert report.intact, report
    assert_nothing_moves(talk.log.payloads)
    assert {"play_music", "order_pizza"} <= {*talk.shown[-1]}


async def test_discoveries_in_one_message_all_count_and_come_back_in_their_order(talk, storage):
    async with storage() as saver:
        result = await talk.say(talk.agent(saver, searching(*FOUR), "Done."), "send an email")
    async with storage() as saver:
        agent = talk.agent(saver, "Done.")
        assert await talk.pins(agent) == FOUR
        await talk.say(agent, "thank you")
    assert len(answers(result)) == 4
    assert {*FOUR} <= {*talk.shown[-1]}


async def test_a_fork_from_history_has_the_pins_of_its_moment_and_goes_its_own_way(talk, storage):
    script = [discover("music"), "Ok.", discover("pizza"), "Ok.", discover("lock the door"), "Ok.", "Ok."]
    async with storage() as saver:
        agent = talk.agent(saver, *script)
        for text in "send an email", "and another":
            await talk.say(agent, text)
        assert await talk.pins(agent) == ["play_music", "order_pizza"]
        # The newest moment at which the first turn was over.
        before = next(
            s for s in await talk.history(agent) if s.values.get(PINS) == ["play_music"] and not s.next
        )
    async with storage() as saver:
        agent = talk.agent(saver, *script[4:])
        await talk.say(agent, "and a third", before.config)
        assert await talk.pins(agent) == ["play_music", "lock_door"]
        await talk.say(agent, "thank you")
    assert {"play_music", "lock_door"} <= {*talk.shown[-1]}
    assert "order_pizza" not in talk.shown[-1]


async def test_overwrite_empties_the_pins_for_good(talk, storage):
    async with storage() as saver:
        agent = talk.agent(saver, discover("music"), "Done.")
        await talk.say(agent, "send an email")
        await talk.update(agent, {PINS: Overwrite([])})
    async with storage() as saver:
        agent = talk.agent(saver, "Done.")
        assert await talk.pins(agent) == []
        await talk.say(agent, "track a parcel by its number")
        assert await talk.pins(agent) == []


async def test_a_person_approves_a_found_tool_after_a_restart(talk, storage):
    human = {"inner": [HumanInTheLoopMiddleware(interrupt_on={"play_music": True})]}
    # Beside the call that has to wait there is a search, which is over and pinned when the run stops.
    both = calls(("play_music", {"text": "Bach"}), (DISCOVER, {"names": ["order_pizza"]}))
    async with storage() as saver:
        agent = talk.agent(saver, discover("music"), both, **human)
        result = await talk.say(agent, "send an email")
        assert result["__interrupt__"]
        assert (await talk.pins(agent))[:1] == ["play_music"]
    async with storage() as saver:
        agent = talk.agent(saver, "It plays.", "Done.", **human)
        result = await talk.say(agent, Command(resume={"decisions": [{"type": "approve"}]}))
        assert answers(result, "play_music") == ["play_music did it"]
        assert await talk.pins(agent) == ["play_music", "order_pizza"]
        await talk.say(agent, "thank you")
    assert {"play_music", "order_pizza"} <= {*talk.shown[-1]}


async def test_the_state_is_json_and_the_same_when_it_comes_back(talk, storage):
    async with storage() as saver:
        agent = talk.agent(saver, searching(*FOUR[:2]), "Done.")
        await talk.say(agent, "send an email")
        before = await state_of(talk.path, agent, thread())
    async with storage() as saver:
        after = await state_of(talk.path, talk.agent(saver, "Done."), thread())
    assert after[PINS] == before[PINS] == FOUR[:2]
    assert after[RECORD] == before[RECORD]
    for key in PINS, RECORD:
        assert json.loads(json.dumps(after[key])) == after[key]


async def test_two_threads_in_one_storage_keep_their_own(talk, storage):
    async with storage() as saver:
        agent = talk.agent(saver, discover("music"), "Done.", discover("pizza"), "Done.")
        for name in "ada", "bob":
            await talk.say(agent, "send an email", thread(name))
    async with storage() as saver:
        agent = talk.agent(saver, "Done.")
        assert await talk.pins(agent, thread("ada")) == ["play_music"]
        assert await talk.pins(agent, thread("bob")) == ["order_pizza"]


# -- a server that dies ----------------------------------------------------------------------------------


@pytest.mark.parametrize("exposure", CLIENTS)
async def test_a_server_killed_in_mid_run_ends_the_run_and_the_thread_goes_on_with_its_pins(
    exposure, path, postgres: Postgres
):
    psycopg = pytest.importorskip("psycopg")
    talk, storage = Talk(exposure, path), on_postgres(postgres.new_database(), path)

    def dying(_: Any) -> str:
        postgres.kill()
        return "This is not kept."

    async with storage() as saver:
        await talk.say(talk.agent(saver, discover("music"), "Done."), "send an email")

    async def until_it_dies() -> None:
        async with storage() as saver:
            await run_durably(path, talk.agent(saver, discover("pizza"), dying), "and another")

    with pytest.raises(psycopg.OperationalError):
        await until_it_dies()
    postgres.start()
    async with storage() as saver:
        agent = talk.agent(saver, "Done.", "Done.")
        assert await talk.pins(agent) == ["play_music", "order_pizza"]
        result = await talk.say(agent, None)
        assert [m.text for m in result["messages"] if m.type == "ai"][-1] == "Done."
        await talk.say(agent, "thank you")
        assert await talk.pins(agent) == ["play_music", "order_pizza"]
    assert {"play_music", "order_pizza"} <= {*talk.shown[-1]}
    if exposure == "append":
        assert talk.log.prefix_report().intact


async def run_durably(path: str, agent: Any, text: str) -> None:
    """Run with each step written before the next begins, so that it is known what the server had."""
    if path == "sync":
        await asyncio.to_thread(agent.invoke, user(text), thread(), durability="sync")
    else:
        await agent.ainvoke(user(text), thread(), durability="sync")
