"""In a deep agent: its own tools stay, profiles hold, compaction and the cache lose nothing."""

from __future__ import annotations

import re
from typing import Any

import pytest
from grouped import grouped

pytest.importorskip("deepagents")

from deepagents import create_deep_agent
from deepagents.backends import LocalShellBackend, StateBackend
from deepagents.middleware.summarization import (
    SummarizationMiddleware,
    SummarizationToolMiddleware,
    create_summarization_middleware,
)
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_tool_selection import ToolSelectionMiddleware
from langchain_tool_selection.testing import ScriptedChatModel, call, calls, scripted_client

from .agents import (
    DISCOVER,
    PINS,
    answers,
    discover,
    make_tool,
    make_tools,
    office,
    open_saver,
    pins_of,
    run,
    thread,
    user,
)
from .deep import FILES, asked, needs_forks, of_the_office, profiled, selecting_agent
from .exposures import (
    StrictLog,
    array,
    assert_nothing_moves,
    searching,
    steps,
    tool_addition,
    tool_reference,
    use,
)

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:The feature `forked subagents`")]

BUILT_IN = ["ls", "read_file", "write_file", "edit_file", "delete", "glob", "grep", "execute", "task"]


def selection(**settings: Any) -> ToolSelectionMiddleware:
    return ToolSelectionMiddleware(top_k=1, **grouped(**settings))


def deep_agent(script: Any, **settings: Any) -> tuple[Any, ScriptedChatModel]:
    model = ScriptedChatModel(script=script)
    settings = {"middleware": [selection()], **settings}
    return create_deep_agent(model, office(), **settings), model


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


async def test_without_a_search_tool_the_built_in_tools_are_there_as_well(path):
    agent, model = deep_agent(["Done."], middleware=[selection(discovery=None)])
    await run(path, agent, user("send an email"))
    assert sorted(model.calls[0].tools) == sorted([*FILES, "task", "send_email"])


async def test_a_shell_a_background_and_compaction_keep_their_tools(path, tmp_path):
    model = ScriptedChatModel(script=["Done."])
    backend = LocalShellBackend(root_dir=tmp_path, virtual_mode=True)
    compaction = SummarizationToolMiddleware(create_summarization_middleware(model, backend))
    remote = {"name": "remote", "description": "Runs elsewhere.", "graph_id": "graph", "url": "http://x"}
    agent = create_deep_agent(
        model, office(), backend=backend, subagents=[remote], middleware=[compaction, selection()]
    )
    tasks = [f"{verb}_async_task" for verb in ("start", "check", "update", "cancel")]
    await run(path, agent, user("send an email"))
    assert {*model.calls[0].tools} == {
        *FILES, *tasks, "list_async_tasks", "execute", "task", "compact_conversation", DISCOVER, "send_email",
    }  # fmt: skip


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


# -- profiles --------------------------------------------------------------------------------------------


async def test_what_a_profile_excludes_is_not_found_not_pinned_and_not_named(path, memory):
    excluded = frozenset({"play_music", "grep"})
    script = [discover("music by an artist"), discover(names=["play_music"]), "Done."]
    agent, model = selecting_agent(profiled(script, excluded_tools=excluded), checkpointer=memory)
    result = await run(path, agent, user("send an email"), thread())
    by_words, by_name = answers(result)
    assert "play_music" not in by_words
    assert "There is no tool named: play_music." in by_name
    assert not excluded & {*await pins_of(path, agent, thread())}
    assert all(not {*sent.tools} & excluded for sent in model.calls)


async def test_what_a_profile_excludes_takes_no_place_of_what_is_shown(path):
    agent, model = selecting_agent(profiled(["Done."], excluded_tools=frozenset({"book_flight"})))
    await run(path, agent, user("book a flight, or send an email"))
    assert of_the_office(model.calls[0]) == ["send_email"]


async def test_by_hand_it_would_be_found_though_it_cannot_be_shown(path, memory):
    """What `with_tool_selection` is for: the harness takes it out behind the selection."""
    model = profiled([discover("play music"), "Done."], excluded_tools=frozenset({"play_music"}))
    agent = create_deep_agent(model, office(), middleware=[selection()], checkpointer=memory)
    await run(path, agent, user("send an email"), thread())
    assert await pins_of(path, agent, thread()) == ["play_music"]
    assert "play_music" not in model.calls[-1].tools


async def test_a_tool_is_found_by_the_description_that_its_profile_gives_it(path, memory):
    model = profiled(
        [discover("zebra crossing"), "Done."],
        tool_description_overrides={
            "play_music": "Paint a zebra crossing.",
            "ls": "List.",
            "task": "Delegate.",
        },
    )
    agent, _ = selecting_agent(model, checkpointer=memory)
    await run(path, agent, user("send an email"), thread())
    assert await pins_of(path, agent, thread()) == ["play_music"]
    assert {*FILES, "task"} <= {*model.calls[0].tools}
    schemas = [schema["function"] for schema in model.calls[1].schemas]
    described = {schema["name"]: schema["description"] for schema in schemas}
    assert described["play_music"] == "Paint a zebra crossing."
    assert described["ls"] == "List."


# -- compaction ------------------------------------------------------------------------------------------

TALK = [message for n in range(6) for message in (HumanMessage(f"Hello {n}."), AIMessage(f"Hi {n}."))]


MANY = {f"tool_{n}": f"Do the thing {n}. " + "And so on. " * 2_000 for n in range(40)}
"""220,000 tokens of tools. The harness compacts at 170,000."""


@pytest.mark.parametrize("kind", ["general-purpose", "worker"])
async def test_tools_that_are_not_sent_do_not_make_a_conversation_too_long(kind, path):
    def answer(sent: Any) -> Any:
        results = sum(message.type == "tool" for message in sent.messages)
        if not sent.tools:
            return "They said hello."
        if asked(sent) == "do it":
            return call("ls", path="/") if results < 9 else "It is done."
        return "Done." if results else call("task", description="do it", subagent_type=kind)

    worker = {"name": "worker", "description": "Does a job.", "system_prompt": "Do one job."}
    agent, model = selecting_agent(answer, make_tools(MANY), subagents=[worker])
    await run(path, agent, {"messages": [*TALK, HumanMessage("do the thing")]})
    assert all(sent.tools for sent in model.calls)
    assert [len(sent.messages) for sent in model.calls if asked(sent) == "do the thing"] == [14, 16]
    assert max(len(sent.messages) for sent in model.calls if asked(sent) == "do it") > 18


async def test_by_hand_all_tools_count_and_each_call_is_compacted(path):
    """What `with_tool_selection` is for: summarization stands ahead of the selection."""
    model = ScriptedChatModel(script=["They said hello.", "Done."])
    agent = create_deep_agent(model, make_tools(MANY), middleware=[selection()])
    await run(path, agent, {"messages": [*TALK, HumanMessage("do the thing")]})
    assert [bool(sent.tools) for sent in model.calls] == [False, True]


async def test_tools_that_are_sent_count(path):
    dear = make_tool("write_poem", "Write a poem. " + "And so on. " * 4_000)
    summaries = SummarizationMiddleware(
        model=ScriptedChatModel(script=["They said hello."]),
        backend=StateBackend(),
        trigger=("tokens", 11_000),
        keep=("messages", 2),
    )
    agent, model = selecting_agent(
        [call("ls", path="/"), "Done."],
        [dear, *office()],
        middleware=[summaries, ToolSelectionMiddleware(top_k=1, token_budget=None)],
    )
    await run(path, agent, {"messages": [*TALK, HumanMessage("write a poem")]})
    first, second = model.calls
    assert "write_poem" in first.tools
    assert [m.additional_kwargs.get("lc_source") for m in second.messages][1] == "summarization"


async def test_a_conversation_that_is_too_long_is_compacted_as_ever(path, memory):
    talk = [HumanMessage("word " * 150_000), *TALK]
    agent, model = selecting_agent(
        lambda sent: "Done." if sent.tools else "They said hello.", checkpointer=memory
    )
    await run(path, agent, {"messages": [*talk, HumanMessage("send an email")]}, thread())
    summary, answered = model.calls
    assert not summary.tools
    assert any(m.additional_kwargs.get("lc_source") == "summarization" for m in answered.messages)
    assert of_the_office(answered) == ["send_email"]


@pytest.mark.parametrize(
    "mark",
    [{"deepagents_notification": {"task_id": "1"}}, {"read_file_media_result": True}],
    ids=["a background task has ended", "the frames of a video"],
)
async def test_what_the_harness_says_in_the_users_name_is_no_request(mark, path, memory):
    said = HumanMessage("Book a flight, play music, order a pizza.", additional_kwargs=mark)
    agent, model = selecting_agent(["Done."], checkpointer=memory)
    await run(path, agent, user("send an email"), thread())
    await run(path, agent, {"messages": [said]}, thread())
    assert [of_the_office(sent) for sent in model.calls] == [["send_email"]] * 2


# -- the prompt cache ------------------------------------------------------------------------------------

ON_CLAUDE = [
    (tool_addition, "per_turn"),
    (tool_addition, "grow"),
    (tool_addition, "append"),
    (tool_addition, "proxy"),
    (tool_addition, "auto"),
    (tool_reference, "append"),
    (tool_reference, "proxy"),
    (tool_reference, "stubs"),
    (tool_reference, "auto"),
]
on_claude = pytest.mark.parametrize(
    ("client", "exposure"), ON_CLAUDE, ids=[f"{client.__name__}-{exposure}" for client, exposure in ON_CLAUDE]
)


def marks(payload: Any) -> list[str]:
    """Return the tools that have a cache mark."""
    return [tool["name"] for tool in payload["tools"] if "cache_control" in tool]


@on_claude
async def test_the_harnesss_cache_mark_is_on_the_last_tool_that_is_loaded(client, exposure, path, memory):
    """In the agent and in its subagents, while tools are discovered, called, and a topic changes."""
    log, job = StrictLog(), "track a parcel by its number"
    script = steps(
        searching("play_music"),
        use("play_music"),
        call("task", description=job, subagent_type="general-purpose"),
        searching("lock_door"),
        use("lock_door"),
        "The job is done.",
        "It plays.",
        "It grows.",
    )
    agent, _ = selecting_agent(
        scripted_client(client(), script, log),
        middleware=[ToolSelectionMiddleware(top_k=1, exposure=exposure)],
        memory=["/AGENTS.md"],
        checkpointer=memory,
    )
    result = await run(path, agent, user("send an email"), thread())
    await run(path, agent, user("water the plants in the garden"), thread())
    assert answers(result, "play_music") == ["play_music did it"]
    assert answers(result, "task") == ["The job is done."]
    for payload in log.payloads:
        assert marks(payload) == [array(payload)[-1]]
        assert payload["tools"][-1]["name"] == array(payload)[-1]
        assert "cache_control" in payload["system"][-1]
    of_the_agent, of_the_subagent = [*log.payloads[:3], *log.payloads[6:]], log.payloads[3:6]
    assert len(of_the_subagent) == 3
    if exposure in ("append", "proxy", "stubs", "auto"):
        for payloads in (of_the_agent, of_the_subagent):
            assert all(payload["tools"] == payloads[0]["tools"] for payload in payloads)
            assert_nothing_moves(payloads)
    assert not log.refused


@needs_forks
@pytest.mark.parametrize("client", [tool_addition, tool_reference])
async def test_a_fork_goes_on_in_the_cache_of_the_agent(client, path, memory):
    log = StrictLog()
    script = steps(
        searching("play_music"),
        call("task", description="lock the front door", subagent_type="fork"),
        use("play_music"),
        "It is locked.",
        "Done.",
    )
    fork = {"name": "fork", "description": "Goes on from here.", "mode": "fork"}
    agent, _ = selecting_agent(
        scripted_client(client(), script, log),
        subagents=[fork],
        system_prompt="Be brief.",
        checkpointer=memory,
    )
    await run(path, agent, user("send an email"), thread())
    before, forked = log.payloads[1:3]
    assert forked["tools"] == before["tools"]
    assert forked["system"] == before["system"]
    # What it was asked is in one message with the last result, behind it.
    assert forked["messages"][:2] == before["messages"][:2]
    assert forked["messages"][2]["content"][0] == before["messages"][2]["content"][0]
    assert not log.refused


# -- the document ----------------------------------------------------------------------------------------


def test_the_code_blocks_of_the_document_run_from_top_to_bottom(root):
    text = (root / "docs" / "deepagents.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 3
    scope: dict[str, object] = {}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"docs/deepagents.md block {number}", "exec"), scope)
