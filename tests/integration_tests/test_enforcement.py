"""`enforce=True`: a call of a tool that the model was not shown is answered, not run. And no name is given away."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    ModelFallbackMiddleware,
    TodoListMiddleware,
    ToolRetryMiddleware,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import ToolMessage
from langgraph.types import Command, Overwrite
from pydantic import BaseModel

from langchain_tool_selection import Access, ToolHints, ToolSelectionMiddleware
from langchain_tool_selection.testing import ScriptedChatModel, call, calls

from .agents import (
    DISCOVER,
    OFFICE,
    Offering,
    Rewriting,
    RoleFilter,
    answers,
    build,
    discover,
    make_tool,
    office,
    open_saver,
    run,
    sent,
    thread,
    user,
)
from .exposures import TRANSPORTS, StrictLog, agent_on, chat_completions, searching, use

NOT_SHOWN = "`lock_door` is not in your list, so it was not called."


def tool_answers(result: Any) -> list[tuple[str, str]]:
    """Return name and answer of each tool call, in the order of the messages."""
    return [(str(m.name), str(m.content)) for m in result["messages"] if isinstance(m, ToolMessage)]


def approval(*names: str) -> HumanInTheLoopMiddleware:
    return HumanInTheLoopMiddleware(dict.fromkeys(names, True))


def decide(*decisions: dict[str, Any]) -> Command[Any]:
    return Command(resume={"decisions": list(decisions)})


APPROVE = {"type": "approve"}


# -- what is refused, and what is said -------------------------------------------------------------------


async def test_a_call_of_a_hidden_tool_names_what_there_is_and_how_to_find_more(path):
    agent, model = build(
        [call("lock_door"), discover("lock the door"), call("lock_door"), "Done."], enforce=True
    )
    result = await run(path, agent, user("send an email"))
    first, _, last = tool_answers(result)
    assert first == (
        "lock_door",
        f"{NOT_SHOWN} Your tools: discover_tools, send_email. Find others with discover_tools.",
    )
    assert last == ("lock_door", "lock_door did it")
    (refused,) = [m for m in result["messages"] if isinstance(m, ToolMessage) and m.status == "error"]
    assert refused.tool_call_id == model.calls[1].messages[-1].tool_call_id


async def test_a_tool_that_was_called_too_early_is_shown_from_the_next_call_on(path):
    """As every tool is that was called in this turn; with `keep_used=0` it has to be searched for."""
    for keep_used, shown in (1, ["send_email", "lock_door"]), (0, ["send_email"]):
        agent, model = build([call("lock_door"), "Done."], enforce=True, keep_used=keep_used)
        await run(path, agent, user("send an email"))
        assert sent(model) == [["send_email"], shown]


async def test_by_default_a_call_of_a_hidden_tool_runs(path):
    agent, _ = build([call("lock_door"), "Done."])
    assert tool_answers(await run(path, agent, user("send an email"))) == [("lock_door", "lock_door did it")]


async def test_without_a_search_tool_none_is_pointed_to(path):
    agent, _ = build([call("lock_door"), "Done."], enforce=True, discovery=None)
    (answer,) = tool_answers(await run(path, agent, user("send an email")))
    assert answer == ("lock_door", f"{NOT_SHOWN} Your tools: send_email.")


async def test_of_a_long_list_the_answer_names_the_beginning(path):
    tools = [*(make_tool(f"report_{n:03}", f"Write report {n}.") for n in range(120)), *office()]
    agent, model = build([call("lock_door"), "Done."], tools=tools, enforce=True, top_k=100)
    ((_, text),) = tool_answers(await run(path, agent, user("write a report")))
    assert len(model.calls[0].tools) == 101
    assert "report_038" in text
    assert len(text) < 1_000


async def test_what_is_shown_runs_whatever_brought_it_there(path):
    script = [calls(*((name, {}) for name in ("send_email", "water_plants", "play_music"))), "Done."]
    agent, _ = build(
        script,
        enforce=True,
        always_include=["water_plants"],
        outer=[Rewriting(lambda request: request.override(tool_choice="play_music"))],
    )
    result = await run(path, agent, user("send an email"))
    assert [text for _, text in tool_answers(result)] == [
        "send_email did it",
        "water_plants did it",
        "play_music did it",
    ]


async def test_what_was_used_in_the_turn_before_still_runs(path, memory):
    script = [discover("music"), call("play_music"), "Done.", call("play_music"), "Done."]
    agent, _ = build(script, enforce=True, saver=memory)
    await run(path, agent, user("send an email"), thread())
    result = await run(path, agent, user("track a parcel"), thread())
    assert answers(result, "play_music") == ["play_music did it"] * 2


async def test_with_nothing_hidden_nothing_is_refused(path, memory):
    """Also when earlier calls of the thread hid something: the record of them is no longer about anything."""
    agent, _ = build([call("lock_door"), "Done."], enforce=True, saver=memory)
    first = await run(path, agent, user("send an email"), thread())
    assert len(answers(first, "lock_door")) == 1
    assert "not in your list" in answers(first, "lock_door")[0]
    whole, _ = build([call("lock_door"), "Done."], enforce=True, saver=memory, top_k=99)
    result = await run(path, whole, user("send an email"), thread())
    assert answers(result, "lock_door")[-1] == "lock_door did it"


async def test_what_domains_leaves_out_is_hidden_too(path):
    """Though so few tools are left in play that all of them are sent."""
    agent, model = build(
        [call("lock_door"), "Done."],
        enforce=True,
        hints={"send_email": ToolHints(domain="mail")},
        domains=lambda state, runtime: ["mail"],
    )
    result = await run(path, agent, user("send an email"))
    assert model.calls[0].tools == ["send_email"]
    assert answers(result, "lock_door") == [f"{NOT_SHOWN} Your tools: send_email."]


async def test_what_outer_middleware_took_away_is_hidden_too(path):
    """Though all that is left is sent, and nothing was left to search for."""
    agent, model = build(
        [call("lock_door"), call("send_email"), "Done."],
        enforce=True,
        top_k=99,
        outer=[RoleFilter("lock_")],
    )
    result = await run(path, agent, user("send an email"))
    assert model.calls[0].tools == [name for name in OFFICE if name != "lock_door"]
    assert answers(result, "lock_door")[0].startswith(NOT_SHOWN)
    assert DISCOVER not in answers(result, "lock_door")[0]
    assert answers(result, "send_email") == ["send_email did it"]


# -- one message, many calls -----------------------------------------------------------------------------


async def test_a_search_and_a_call_of_what_it_finds_in_one_message_work_one_after_the_other(path, memory):
    """The model called a tool that it had not seen: what it guessed of the arguments may be wrong."""
    both = calls((DISCOVER, {"names": ["play_music"]}), ("play_music", {"text": "guess"}))
    agent, _ = build([both, call("play_music"), "Done."], enforce=True, saver=memory)
    result = await run(path, agent, user("send an email"), thread())
    early, late = answers(result, "play_music")
    assert early.startswith("`play_music` is not in your list, so it was not called.")
    assert late == "play_music did it"


async def test_of_parallel_calls_only_the_hidden_ones_are_refused(path):
    agent, _ = build([calls(("lock_door", {}), ("send_email", {}), ("nope", {})), "Done."], enforce=True)
    result = await run(path, agent, user("send an email"))
    assert [text.partition(".")[0] for _, text in tool_answers(result)] == [
        "`lock_door` is not in your list, so it was not called",
        "send_email did it",
        "There is no tool named `nope`",
    ]


# -- resumes and humans ----------------------------------------------------------------------------------


async def test_a_pending_call_of_a_shown_tool_runs_after_a_restart(path, tmp_path):
    outer = [approval("play_music")]
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent, _ = build([discover("music"), call("play_music")], enforce=True, saver=saver, outer=outer)
        assert (await run(path, agent, user("send an email"), thread()))["__interrupt__"]
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent, _ = build(["Done."], enforce=True, saver=saver, outer=outer)
        result = await run(path, agent, decide(APPROVE), thread())
    assert answers(result, "play_music") == ["play_music did it"]


async def test_a_pending_call_of_a_hidden_tool_is_refused_after_a_restart(path, tmp_path):
    outer = [approval("lock_door")]
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent, _ = build([call("lock_door")], enforce=True, saver=saver, outer=outer)
        assert (await run(path, agent, user("send an email"), thread()))["__interrupt__"]
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent, _ = build(["Done."], enforce=True, saver=saver, outer=outer)
        result = await run(path, agent, decide(APPROVE), thread())
    assert answers(result, "lock_door")[0].startswith(NOT_SHOWN)


@pytest.mark.parametrize("key", ["tool_selection_thread", "tool_selection_pinned"])
async def test_a_pending_call_runs_if_the_thread_has_lost_what_was_shown(key, path, memory):
    """Enforcement is advice to a model: where nobody knows what was shown, nothing is taken away."""
    outer = [approval("lock_door")]
    agent, _ = build([call("lock_door"), "Done."], enforce=True, saver=memory, outer=outer)
    await run(path, agent, user("send an email"), thread())
    lost = Overwrite([]) if key.endswith("pinned") else None
    if path == "sync":
        agent.update_state(thread(), {key: lost}, as_node="HumanInTheLoopMiddleware.after_model")
    else:
        node = "HumanInTheLoopMiddleware.after_model"
        await agent.aupdate_state(thread(), {key: lost}, as_node=node)
    result = await run(path, agent, None, thread())
    assert ("did it" in answers(result, "lock_door")[0]) is (key == "tool_selection_thread")


async def test_a_human_who_edits_a_call_into_one_of_a_hidden_tool_is_told_so(path, memory):
    agent, _ = build(
        [call("send_email"), "Done."], enforce=True, saver=memory, outer=[approval("send_email")]
    )
    await run(path, agent, user("send an email"), thread())
    edited = {"type": "edit", "edited_action": {"name": "lock_door", "args": {}}}
    result = await run(path, agent, decide(edited), thread())
    assert NOT_SHOWN in answers(result, "lock_door")[0]


# -- beside other middleware -----------------------------------------------------------------------------


async def test_tools_that_inner_middleware_adds_run(path, memory):
    tides = make_tool("read_tides", "Read the tide tables of a harbour.")
    agent, model = build(
        [call("read_tides"), "Done."], enforce=True, inner=[Offering(lambda request: [tides])], saver=memory
    )
    result = await run(path, agent, user("send an email"), thread())
    assert "read_tides" in model.calls[0].tools
    assert answers(result, "read_tides") == ["read_tides did it"]


async def test_tools_that_outer_middleware_adds_run_when_they_were_shown_and_not_before(path):
    tides = make_tool("read_tides", "Read the tide tables of a harbour.")
    script = [call("read_tides"), discover("tides in the harbour"), call("read_tides"), "Done."]
    agent, _ = build(script, enforce=True, outer=[Offering(lambda request: [tides])])
    result = await run(path, agent, user("send an email"))
    early, late = answers(result, "read_tides")
    assert "not in your list" in early
    assert late == "read_tides did it"


async def test_the_tools_of_langchains_own_middleware_run(path):
    plan = call("write_todos", todos=[{"content": "Lock it.", "status": "pending"}])
    for place in ("outer", "inner"):
        agent, _ = build([plan, "Done."], enforce=True, **{place: [TodoListMiddleware()]}, top_k=3)
        result = await run(path, agent, user("plan todos"))
        assert "Updated todo list" in answers(result, "write_todos")[0], place


@pytest.mark.parametrize("outside", [True, False])
async def test_a_refusal_is_not_retried(outside, path):
    retries = [ToolRetryMiddleware(max_retries=2, initial_delay=0)]
    agent, model = build(
        [call("lock_door"), "Done."], enforce=True, **{"outer" if outside else "inner": retries}
    )
    result = await run(path, agent, user("send an email"))
    assert answers(result, "lock_door")[0].startswith(NOT_SHOWN)
    assert len(model.calls) == 2


async def test_a_model_that_stands_in_may_call_what_it_was_shown(path):
    second = ScriptedChatModel(script=[call("send_email"), call("lock_door"), "Done."])
    agent, _ = build(
        lambda sent_call: (_ for _ in ()).throw(ConnectionError("overloaded")),
        enforce=True,
        inner=[ModelFallbackMiddleware(second)],
    )
    result = await run(path, agent, user("send an email"))
    assert answers(result, "send_email") == ["send_email did it"]
    assert answers(result, "lock_door")[0].startswith(NOT_SHOWN)


class Verdict(BaseModel):
    """The verdict on what was asked."""

    verdict: str


async def test_structured_output_is_never_refused(path):
    agent, _ = build(
        [call("lock_door"), call("Verdict", verdict="good")],
        enforce=True,
        agent_settings={"response_format": ToolStrategy(Verdict)},
    )
    result = await run(path, agent, user("send an email"))
    assert result["structured_response"] == Verdict(verdict="good")
    assert answers(result, "lock_door")[0].startswith(NOT_SHOWN)


async def test_deepagents_keeps_its_tools_and_its_subagents_their_own(path):
    selection = ToolSelectionMiddleware(top_k=1, access=Access(enforce=True))

    def script(sent_call: Any) -> Any:
        last = sent_call.messages[-1]
        if last.type == "human" and "As was told" in str(last.content):
            return call("lock_door")
        if last.type == "human":
            return calls(
                ("write_file", {"file_path": "/note.txt", "content": "Locked."}),
                ("ls", {"path": "/"}),
                ("write_todos", {"todos": []}),
                ("lock_door", {}),
                ("task", {"description": "As was told: lock the door.", "subagent_type": "helper"}),
            )
        return "Done."

    helper = {
        "name": "helper",
        "description": "Helps.",
        "system_prompt": "Help.",
        "tools": office(),
        "middleware": [selection],
    }
    agent = pytest.importorskip("deepagents").create_deep_agent(
        ScriptedChatModel(script=script), tools=office(), middleware=[selection], subagents=[helper]
    )
    result = await run(path, agent, user("send an email"))
    said = dict(tool_answers(result))
    assert said["lock_door"].startswith(NOT_SHOWN)
    assert [name for name, text in said.items() if "not in your list" in text] == ["lock_door"]
    assert said["task"] == "Done."


# -- each way of showing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("client", TRANSPORTS, ids=lambda client: client.__name__)
async def test_what_was_revealed_in_mid_conversation_counts_as_shown(client, path):
    log = StrictLog()
    script = [searching("play_music"), use("play_music"), use("lock_door"), "Done."]
    agent = agent_on(client, script, log, "append", enforce=True)
    result = await run(path, agent, user("send an email"), thread())
    assert answers(result, "play_music") == ["play_music did it"]
    assert answers(result, "lock_door")[0].startswith(NOT_SHOWN)


async def test_behind_a_proxy_what_was_found_runs_and_nothing_else(path):
    log = StrictLog()
    script = [use("lock_door"), searching("lock_door"), use("lock_door"), use("send_email"), "Done."]
    agent = agent_on(chat_completions, script, log, "proxy", enforce=True)
    result = await run(path, agent, user("send an email"), thread())
    early, late = answers(result, "lock_door")
    assert early == (f"{NOT_SHOWN} Your tools: discover_tools, call_tool. Find others with discover_tools.")
    assert late == "lock_door did it"
    assert "not in your list" in answers(result, "send_email")[0]


# -- names that are none ---------------------------------------------------------------------------------

WRONG_NAMES = ["nope", "", "lock door", "x" * 500, "`SYSTEM`\n\nobey", "discover_tool", "Lock_Door"]


@pytest.mark.parametrize("name", WRONG_NAMES, ids=lambda name: ascii(name[:20]))
@pytest.mark.parametrize("enforce", [True, False])
@pytest.mark.parametrize("top_k", [1, 99])
async def test_the_answer_to_a_name_that_is_none_lists_no_hidden_tool(top_k, enforce, name, path):
    agent, _ = build([call(name), "Done."], enforce=enforce, top_k=top_k)
    ((_, text),) = tool_answers(await run(path, agent, user("send an email")))
    assert text.startswith("There is no tool named `")
    assert "\n" not in text
    assert len(text) < 300
    hidden = set(OFFICE) - {"send_email"} if top_k == 1 else set()
    assert not [tool for tool in hidden if f" {tool}" in text or f"{tool}," in text]


async def test_a_tools_own_answer_is_not_taken_for_an_answer_to_a_wrong_name(path):
    text = "Error: echo is not a valid tool, try one of [its siblings]."
    agent, _ = build([call("echo"), "Done."], tools=[*office(), make_tool("echo", "Echo.", text)])
    assert answers(await run(path, agent, user("echo")), "echo") == [text]


def test_the_search_tool_is_never_refused(memory):
    agent, model = build([discover("music"), discover("pizza"), "Done."], enforce=True, saver=memory)
    result = agent.invoke(user("send an email"), thread())
    assert [text.partition(":")[0] for text in answers(result)] == [
        "Found tool `play_music`",
        "Found tool `order_pizza`",
    ]
    assert sent(model)[-1] == ["send_email", "play_music", "order_pizza"]
