"""In a deep agent: its own tools stay, subagents keep to themselves, compaction changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("deepagents")

from deepagents import create_deep_agent
from deepagents.backends import StateBackend
from deepagents.middleware.summarization import SummarizationMiddleware
from langchain_core.messages import HumanMessage, ToolMessage

from langchain_tool_selection import ToolSelectionMiddleware
from langchain_tool_selection.testing import ScriptedChatModel, call, calls

from .agents import DISCOVER, OFFICE, PINS, answers, discover, office, open_saver, pins_of, run, thread, user

BUILT_IN = ["ls", "read_file", "write_file", "edit_file", "delete", "glob", "grep", "execute", "task"]


def selection(**settings: Any) -> ToolSelectionMiddleware:
    return ToolSelectionMiddleware(top_k=1, **settings)


def deep_agent(script: Any, **settings: Any) -> tuple[Any, ScriptedChatModel]:
    model = ScriptedChatModel(script=script)
    settings = {"middleware": [selection()], **settings}
    return create_deep_agent(model, office(), **settings), model


def of_the_office(sent_call: Any) -> list[str]:
    return [name for name in sent_call.tools if name in OFFICE]


def test_the_pins_channel_has_its_reducer():
    agent, _ = deep_agent(["Done."])
    assert type(agent.channels[PINS]).__name__ == "BinaryOperatorAggregate"


@pytest.mark.parametrize("count", [2, 5])
async def test_parallel_discoveries_in_one_message_all_count(count, path, saver_kind, tmp_path):
    wanted = ["order_pizza", "play_music", "book_flight", "lock_door", "water_plants"][:count]
    async with open_saver(saver_kind, path, tmp_path) as saver:
        script = [calls(*((DISCOVER, {"names": [name]}) for name in wanted)), "Done."]
        agent, model = deep_agent(script, checkpointer=saver)
        await run(path, agent, user("send an email"), thread())
        assert await pins_of(path, agent, thread()) == wanted
    assert of_the_office(model.calls[1]) == ["send_email", *wanted]


REQUESTS = [
    "send an email", "book a flight", "hello", "order a pizza", "play music", "water the plants",
    "track a parcel", "lock the door", "resize the image", "what can you do?",
]  # fmt: skip


async def test_the_built_in_tools_are_there_whatever_is_asked(path, memory):
    agent, model = deep_agent(["Done."], checkpointer=memory)
    for text in REQUESTS:
        await run(path, agent, user(text), thread())
    # `execute` needs a sandbox, which this backend is not: deepagents takes it away before we see it.
    expected = [name for name in BUILT_IN if name != "execute"]
    for sent_call in model.calls:
        assert [name for name in sent_call.tools if name in BUILT_IN] == [
            name for name in model.calls[0].tools if name in BUILT_IN
        ]
        assert set(expected) <= set(sent_call.tools)
        assert len(of_the_office(sent_call)) <= 1


async def test_what_deepagents_took_away_is_not_found(path, memory):
    agent, model = deep_agent([discover("execute a shell command"), "Done."], checkpointer=memory)
    await run(path, agent, user("send an email"), thread())
    assert "execute" not in await pins_of(path, agent, thread())
    assert "execute" not in model.calls[1].tools


def by_role(sent_call: Any) -> Any:
    """Play the parent and its two subagents, told apart by what they were asked."""
    last, first = sent_call.messages[-1], next(m for m in sent_call.messages if isinstance(m, HumanMessage))
    wish = {"parent": "lock the door", "job one": "play music", "job two": "order pizza"}[first.content]
    if isinstance(last, HumanMessage):
        return discover(wish)
    if first.content == "parent" and isinstance(last, ToolMessage) and last.name == DISCOVER:
        tasks = [{"description": job, "subagent_type": "worker"} for job in ("job one", "job two")]
        return calls(*(("task", task) for task in tasks))
    return "Done."


@pytest.mark.parametrize("shared", [True, False])
async def test_pins_do_not_pass_between_a_parent_and_two_subagents_at_once(shared, path, memory):
    parents = selection()
    model = ScriptedChatModel(script=by_role)
    worker = {
        "name": "worker",
        "description": "Does a job.",
        "system_prompt": "You do one job.",
        "model": model,
        "tools": office(),
        "middleware": [parents if shared else selection()],
    }
    agent = create_deep_agent(model, office(), middleware=[parents], subagents=[worker], checkpointer=memory)
    result = await run(path, agent, user("parent"), thread())
    assert len([m for m in result["messages"] if isinstance(m, ToolMessage) and m.name == "task"]) == 2
    assert await pins_of(path, agent, thread()) == ["lock_door"]
    last_of = {}
    for sent_call in model.calls:
        first = next(m for m in sent_call.messages if isinstance(m, HumanMessage))
        last_of[first.content] = of_the_office(sent_call)
    assert last_of == {"parent": ["lock_door"], "job one": ["play_music"], "job two": ["order_pizza"]}


@pytest.mark.parametrize(
    ("trigger", "keep"), [(6, 2), (7, 4)], ids=["cuts the request", "keeps the request, cuts the turn before"]
)
async def test_compaction_in_the_middle_of_a_task_does_not_change_what_is_shown(trigger, keep, path, memory):
    summaries = SummarizationMiddleware(
        model=ScriptedChatModel(script=["They talked of music and pizza."] * 9),
        backend=StateBackend(),
        trigger=("messages", trigger),
        keep=("messages", keep),
    )
    steps = [call("track_parcel", text=str(n)) for n in range(5)]
    agent, model = deep_agent(
        [call("send_email"), "Sent.", *steps, discover("lock the door"), "Done."],
        middleware=[summaries, selection()],
        checkpointer=memory,
    )
    await run(path, agent, user("send an email"), thread())
    await run(path, agent, user("track all my parcels by number"), thread())
    turn = model.calls[2:]
    compacted = [
        c for c in turn if any(m.additional_kwargs.get("lc_source") == "summarization" for m in c.messages)
    ]
    assert compacted
    assert [of_the_office(c) for c in turn[:-1]] == [["send_email", "track_parcel"]] * 6
    assert of_the_office(turn[-1]) == ["send_email", "track_parcel", "lock_door"]


async def test_a_discovered_tool_is_called_in_the_same_turn(path, memory):
    agent, _ = deep_agent([discover("music"), call("play_music"), "Done."], checkpointer=memory)
    result = await run(path, agent, user("send an email"), thread())
    assert answers(result, "play_music") == ["play_music did it"]
