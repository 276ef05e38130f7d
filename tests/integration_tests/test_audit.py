"""The audit log: one JSON object for all that was shown, found, called and refused, without what was in it."""

from __future__ import annotations

import json
import logging
import math
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import StructuredTool
from langgraph.types import Command

from langchain_tool_selection import ToolHints
from langchain_tool_selection.testing import call, calls

from .agents import DISCOVER, Offering, build, discover, make_tool, office, run, thread, user

AUDIT = "langchain_tool_selection.audit"
SECRET = "the-secret-argument"


class Lines(logging.Handler):
    """Keeps what a handler would write to a file, as text."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += self.format(record) + "\n"

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]

    def of(self, event: str) -> list[dict[str, Any]]:
        return [record for record in self.records if record["event"] == event]


@pytest.fixture
def audit() -> Iterator[Lines]:
    lines, logger = Lines(), logging.getLogger(AUDIT)
    logger.addHandler(lines)
    logger.setLevel(logging.INFO)
    yield lines
    logger.removeHandler(lines)
    logger.setLevel(logging.NOTSET)


def id_of(answer: Any, place: int = 0) -> str:
    return answer.tool_calls[place]["id"]


def may_not_lock(tool: Any, runtime: Any) -> bool:
    return tool.name != "lock_door"


async def test_each_step_of_a_conversation_is_one_record_with_thread_run_and_call(path, memory, audit):
    search, play, lock, order = (
        discover("play music"),
        call("play_music", text="Bach"),
        call("lock_door"),
        call("order_pizza"),
    )
    agent, model = build(
        [search, play, lock, order, "Done."], saver=memory, audit=True, enforce=True, allow=may_not_lock
    )
    run_id = uuid.uuid4()
    await run(path, agent, user("send an email"), {**thread("ada"), "run_id": run_id})
    assert all(record["thread"] == "ada" for record in audit.records)
    assert all(record["run"] == str(run_id) for record in audit.records)
    assert [record["event"] for record in audit.records if record["event"] != "found"] == [
        "shown",
        *("called", "shown") * 2,
        *("refused", "shown") * 2,
    ]
    assert [record["tools"] for record in audit.of("shown")] == [sent.tools for sent in model.calls]
    assert {record["exposure"] for record in audit.of("shown")} == {"per_turn"}
    assert [record["pinned"] for record in audit.of("shown")] == [[], *[["play_music"]] * 4]
    (found,) = audit.of("found")
    assert (found["tools"], found["call"]) == (["play_music"], id_of(search))
    assert [(record["tool"], record["call"]) for record in audit.of("called")] == [
        (DISCOVER, id_of(search)),
        ("play_music", id_of(play)),
    ]
    assert [(record["tool"], record["call"], record["why"]) for record in audit.of("refused")] == [
        ("lock_door", id_of(lock), "access"),
        ("order_pizza", id_of(order), "not shown"),
    ]


async def test_a_pin_that_is_dropped_is_in_it(path, memory, audit):
    agent, _ = build([discover("music"), discover("pizza"), "Done."], saver=memory, audit=True, max_pins=1)
    await run(path, agent, user("send an email"), thread())
    shown = [(record["pinned"], record["evicted"]) for record in audit.of("shown")]
    assert shown == [([], []), (["play_music"], []), (["order_pizza"], ["play_music"])]


async def test_parallel_calls_are_told_apart_by_their_ids(path, memory, audit):
    both = calls(("send_email", {"text": "one"}), ("send_email", {"text": "two"}))
    agent, _ = build([both, "Done."], saver=memory, audit=True)
    await run(path, agent, user("send an email"), thread())
    assert {record["call"] for record in audit.of("called")} == {id_of(both), id_of(both, 1)}


@pytest.mark.parametrize("exposure", ["per_turn", "proxy"])
async def test_no_value_of_any_argument_is_in_it(exposure, path, memory, audit):
    script = [
        call(DISCOVER, query=f"{SECRET} play music", names=[f"{SECRET}"], domain=f"{SECRET}"),
        call("play_music", text=SECRET),
        call("lock_door", text=SECRET),
        call("nope", text=SECRET),
        call("call_tool", name="play_music", arguments={"text": SECRET}),
        "Done.",
    ]
    agent, _ = build(script, saver=memory, audit=True, allow=may_not_lock, exposure=exposure)
    await run(path, agent, user(f"send an email {SECRET}"), thread())
    assert len(audit.records) > 8
    assert SECRET not in audit.text


async def test_a_call_that_fails_was_still_called(path, memory, audit):
    """What it has done until then it has done."""

    def fail(text: str = "") -> str:
        raise ConnectionError("half of it is done")

    tool = StructuredTool.from_function(func=fail, name="wipe", description="Wipe the disks.")
    agent, _ = build([call("wipe")], tools=[*office(), tool], saver=memory, audit=True)
    with pytest.raises(ConnectionError):
        await run(path, agent, user("wipe the disks"), thread())
    assert [record["tool"] for record in audit.of("called")] == ["wipe"]


async def test_a_call_that_fails_of_a_tool_that_other_middleware_brought_was_called_too(path, audit):
    def fail(text: str = "") -> str:
        raise ConnectionError("half of it is done")

    tool = StructuredTool.from_function(func=fail, name="wipe", description="Wipe the disks.")
    agent, _ = build([call("wipe")], inner=[Offering(lambda request: [tool])], audit=True)
    with pytest.raises(ConnectionError):
        await run(path, agent, user("wipe the disks"))
    assert [record["tool"] for record in audit.of("called")] == ["wipe"]


async def test_a_call_that_waits_for_a_human_is_called_once_it_runs(path, memory, audit):
    outer = [HumanInTheLoopMiddleware({"send_email": True})]
    agent, _ = build([call("send_email"), "Done."], saver=memory, audit=True, outer=outer)
    await run(path, agent, user("send an email"), thread())
    assert audit.of("called") == []
    await run(path, agent, Command(resume={"decisions": [{"type": "approve"}]}), thread())
    assert [record["tool"] for record in audit.of("called")] == ["send_email"]


async def test_where_nothing_is_hidden_all_that_is_sent_is_shown(path, memory, audit):
    agent, model = build(["Done."], top_k=99, saver=memory, audit=True)
    await run(path, agent, user("send an email"), thread())
    assert [record["tools"] for record in audit.of("shown")] == [model.calls[0].tools]


FORGED = 'x"}\n{"event": "called", "tool": "forged"}\u2028{"event": "forged"}\x85\r\u202e\ud800\x1b[2J'


async def test_no_name_can_forge_a_record_or_hide_one(path, memory, audit):
    agent, _ = build(
        [call(FORGED), call(DISCOVER, query=FORGED, names=[FORGED]), "Done."], audit=True, enforce=True
    )
    config = {"configurable": {"thread_id": FORGED.replace("\ud800", "")}}
    await run(path, agent, user("send an email"), config)
    assert audit.text.isascii()
    assert "forged" not in {record["event"] for record in audit.records}
    assert "forged" not in {record.get("tool") for record in audit.records}


async def test_what_is_asked_for_is_in_it_too(path, memory, audit):
    agent, _ = build([call("send_email", text=SECRET), "Done."], saver=memory, audit="arguments")
    await run(path, agent, user("send an email"), thread())
    assert [record["arguments"] for record in audit.of("called")] == [{"text": SECRET}]


@pytest.mark.parametrize("odd", [math.nan, math.inf, {(1, 2): 3}], ids=str)
async def test_arguments_that_json_cannot_hold_neither_end_a_run_nor_lose_its_record(odd, path, audit):
    agent, _ = build([call("send_email", text="x", odd=odd), "Done."], audit="arguments")
    await run(path, agent, user("send an email"))
    assert [(record["tool"], record["arguments"]) for record in audit.of("called")] == [
        ("send_email", "no JSON")
    ]
    assert "NaN" not in audit.text


async def test_each_tool_comes_with_its_domain(path, memory, audit):
    hints = {"play_music": ToolHints(domain="house"), "lock_door": ToolHints(domain="house")}
    script = [discover("play music"), call("play_music"), call("lock_door"), "Done."]
    agent, _ = build(script, saver=memory, audit=True, hints=hints, allow=may_not_lock)
    await run(path, agent, user("send an email"), thread())
    assert [record["domains"] for record in audit.of("shown")] == [{}, *[{"play_music": "house"}] * 3]
    assert [record["domains"] for record in audit.of("found")] == [{"play_music": "house"}]
    assert [record["domain"] for record in audit.of("called")] == ["", "house"]
    assert [record["domain"] for record in audit.of("refused")] == ["house"]


async def test_a_call_of_what_there_is_not_is_refused_as_unknown(path, memory, audit):
    agent, _ = build([call("nope"), "Done."], saver=memory, audit=True)
    await run(path, agent, user("send an email"), thread())
    assert [(record["tool"], record["why"]) for record in audit.of("refused")] == [("nope", "unknown")]


async def test_without_being_asked_for_nothing_is_written(path, audit):
    agent, _ = build([discover("music"), call("play_music"), "Done."])
    await run(path, agent, user("send an email"))
    assert audit.text == ""


async def test_what_is_refused_is_named_in_the_audit_log_and_in_no_other(path, memory, audit, caplog):
    agent, _ = build(
        [call("lock_door"), discover("lock the door"), "Done."], saver=memory, audit=True, allow=may_not_lock
    )
    with caplog.at_level(logging.DEBUG):
        await run(path, agent, user("send an email"), thread())
    assert [record["tool"] for record in audit.of("refused")] == ["lock_door"]
    rest = [r for r in caplog.records if r.name.startswith("langchain_tool_selection") and r.name != AUDIT]
    assert rest
    assert not [r for r in rest if "lock_door" in r.getMessage()]


def test_a_log_that_nobody_reads_costs_nothing_and_ends_no_run(memory):
    logging.getLogger(AUDIT).setLevel(logging.WARNING)
    try:
        agent, _ = build([call("odd"), "Done."], tools=[*office(), make_tool("odd", "Odd.")], audit=True)
        assert agent.invoke(user("odd"))["messages"][-1].content == "Done."
    finally:
        logging.getLogger(AUDIT).setLevel(logging.NOTSET)
