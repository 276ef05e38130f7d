"""In a deep agent with skills: what a skill counts on is there once it was read, and is not asked for by it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("deepagents")

from deepagents.backends import FilesystemBackend
from deepagents.middleware.skills import SkillsMiddleware, SkillsState
from deepagents.middleware.summarization import SummarizationMiddleware
from langgraph.types import Overwrite

from langchain_tool_selection import Access, ToolSelectionMiddleware
from langchain_tool_selection.testing import ScriptedChatModel, call, calls, scripted_client

from .agents import answers, discover, make_tool, office, open_saver, pins_of, run, thread, user
from .deep import asked, calls_about, needs_forks, of_the_office, selecting_agent, write_skill
from .exposures import (
    StrictLog,
    array,
    assert_nothing_moves,
    chat_completions,
    deferred,
    revealed,
    searching,
    steps,
    tool_addition,
    tool_reference,
    use,
    visible,
)

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:The feature `forked subagents`")]

READ = call("read_file", file_path="/skills/guests/SKILL.md")
TOOLS_OF_GUESTS = ["order_pizza", "lock_door"]

needs_pinned_skills = pytest.mark.skipif(
    "pinned_skills" not in SkillsState.__annotations__, reason="this version has no pinned skills"
)


@pytest.fixture
def files(tmp_path):
    write_skill(tmp_path, "guests", f"metadata:\n  include_tools: {' '.join(TOOLS_OF_GUESTS)} not_there\n")
    write_skill(tmp_path, "parties", "allowed-tools: play_music, read_file\n")
    write_skill(tmp_path, "tides", body="Track parcels, water plants, convert currency.")
    return FilesystemBackend(root_dir=tmp_path, virtual_mode=True)


def agent_with_skills(script: Any, files: Any, **arguments: Any) -> tuple[Any, ScriptedChatModel]:
    return selecting_agent(script, backend=files, skills=["/skills/"], **arguments)


def enforcing(**settings: Any) -> ToolSelectionMiddleware:
    return ToolSelectionMiddleware(top_k=1, access=Access(enforce=True), **settings)


# -- tools that a skill names ----------------------------------------------------------------------------


async def test_tools_that_a_skill_includes_are_there_once_it_was_read(path, files, memory):
    script = [READ, calls(("order_pizza", {}), ("lock_door", {})), "Done.", "Hello."]
    agent, model = agent_with_skills(script, files, middleware=[enforcing()], checkpointer=memory)
    result = await run(path, agent, user("send an email"), thread())
    assert of_the_office(model.calls[0]) == ["send_email"]
    assert of_the_office(model.calls[1]) == ["send_email", *TOOLS_OF_GUESTS]
    assert answers(result, "order_pizza") == ["order_pizza did it"]
    assert answers(result, "lock_door") == ["lock_door did it"]
    assert await pins_of(path, agent, thread()) == TOOLS_OF_GUESTS
    await run(path, agent, user("play music"), thread())
    assert {*TOOLS_OF_GUESTS} <= {*model.calls[3].tools}


async def test_tools_that_a_skill_allows_are_there_once_it_was_read(path, files, memory):
    script = [call("read_file", file_path="skills//parties/SKILL.md", limit=5), call("play_music"), "Done."]
    agent, _ = agent_with_skills(script, files, middleware=[enforcing()], checkpointer=memory)
    result = await run(path, agent, user("send an email"), thread())
    assert answers(result, "play_music") == ["play_music did it"]
    # A tool of the harness stays anyway, and takes no pin.
    assert await pins_of(path, agent, thread()) == ["play_music"]


@pytest.mark.parametrize(
    "wrong",
    ["/skills/guests/other.md", "/skills/nobody/SKILL.md", "/skills/../../etc/SKILL.md", 7, None],
)
async def test_what_is_no_read_of_a_skill_brings_nothing(wrong, path, files, memory):
    agent, model = agent_with_skills(
        [call("read_file", file_path=wrong), "Done."], files, checkpointer=memory
    )
    await run(path, agent, user("send an email"), thread())
    assert of_the_office(model.calls[1]) == ["send_email"]
    assert await pins_of(path, agent, thread()) == []


async def test_a_skill_that_could_not_be_read_brings_nothing(path, files, memory, tmp_path):
    agent, model = agent_with_skills(["Hello.", READ, "Done."], files, checkpointer=memory)
    await run(path, agent, user("hello"), thread())
    (tmp_path / "skills" / "guests" / "SKILL.md").unlink()
    await run(path, agent, user("send an email"), thread())
    assert of_the_office(model.calls[-1]) == ["send_email"]


async def test_what_the_run_may_not_use_a_skill_does_not_bring(path, files, memory):
    guarded = ToolSelectionMiddleware(top_k=1, allow=lambda tool, runtime: tool.name != "lock_door")
    script = [READ, call("lock_door"), "Done."]
    agent, model = agent_with_skills(script, files, middleware=[guarded], checkpointer=memory)
    result = await run(path, agent, user("send an email"), thread())
    assert of_the_office(model.calls[1]) == ["send_email", "order_pizza"]
    assert answers(result, "lock_door")[0].startswith("There is no tool named `lock_door`.")
    assert await pins_of(path, agent, thread()) == ["order_pizza"]


@needs_pinned_skills
async def test_a_pinned_skill_brings_its_tools_and_is_no_request(path, files, memory):
    agent, model = agent_with_skills(["Done."], files, checkpointer=memory)
    asking = {**user("send an email"), "pinned_skills": ["guests", "tides"]}
    await run(path, agent, asking, thread())
    assert [message.type for message in model.calls[0].messages] == ["system", "human", "human", "human"]
    assert of_the_office(model.calls[0]) == ["send_email", *TOOLS_OF_GUESTS]


@pytest.mark.parametrize("client", [tool_addition, tool_reference, chat_completions])
async def test_in_mid_conversation_a_skills_tools_come_without_a_change_of_what_was_sent(
    client, path, files, memory
):
    log = StrictLog()
    model = scripted_client(client(), steps(READ, use("lock_door"), "Done.", "Hello."), log)
    if client is tool_addition and not (model.profile or {}).get("mid_conversation_tools"):
        pytest.skip("this version of the client cannot add tools in mid-conversation")
    agent, _ = agent_with_skills(model, files, checkpointer=memory)
    result = await run(path, agent, user("send an email"), thread())
    await run(path, agent, user("hello"), thread())
    assert answers(result, "lock_door") == ["lock_door did it"]
    assert {*TOOLS_OF_GUESTS} <= {*visible(log.payloads[1])}
    if client is not chat_completions:
        assert revealed(log.payloads[-1]) == TOOLS_OF_GUESTS
        assert array(log.payloads[0]) == array(log.payloads[-1])
        assert_nothing_moves(log.payloads)
        report = log.prefix_report()
        assert report.intact, report
    assert not log.refused


async def test_a_tool_that_the_provider_loads_later_is_left_to_the_harness(path, tmp_path, memory):
    write_skill(tmp_path, "tides", "metadata:\n  include_tools: read_tides\n")
    files = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    tides = make_tool("read_tides", "Read the tide tables.", extras={"defer_loading": True})
    log = StrictLog()
    script = steps(call("read_file", file_path="/skills/tides/SKILL.md"), "Done.")
    agent, _ = agent_with_skills(
        scripted_client(tool_reference(), script, log), files, tools=[tides, *office()], checkpointer=memory
    )
    await run(path, agent, user("send an email"), thread())
    assert await pins_of(path, agent, thread()) == []
    assert "read_tides" in deferred(log.payloads[0])
    assert not log.refused


async def test_behind_a_proxy_a_skills_tools_are_found_by_name_and_run(path, files, memory):
    log = StrictLog()
    script = steps(READ, searching("lock_door"), use("lock_door"), "Done.")
    model = scripted_client(chat_completions(), script, log)
    selection = ToolSelectionMiddleware(top_k=1, exposure="proxy", access=Access(enforce=True))
    agent, _ = agent_with_skills(model, files, middleware=[selection], checkpointer=memory)
    result = await run(path, agent, user("send an email"), thread())
    assert answers(result, "lock_door") == ["lock_door did it"]
    assert all(array(payload) == array(log.payloads[0]) for payload in log.payloads)


async def test_pins_of_a_skill_survive_a_restart_and_the_end_of_its_message(path, files, tmp_path):
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent, _ = agent_with_skills([READ, "Done."], files, checkpointer=saver)
        await run(path, agent, user("send an email"), thread())
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent, model = agent_with_skills(["Hello."], files, checkpointer=saver)
        await run(path, agent, user("play music"), thread())
        assert of_the_office(model.calls[0]) == ["play_music", *TOOLS_OF_GUESTS]
        gone = {"messages": Overwrite([])}
        await agent.aupdate_state(thread(), gone) if path == "async" else agent.update_state(thread(), gone)
        await run(path, agent, user("play music"), thread())
        assert {*TOOLS_OF_GUESTS} <= {*model.calls[-1].tools}


async def test_compaction_takes_no_tool_of_a_skill_and_asks_for_none(path, files, memory):
    summaries = SummarizationMiddleware(
        model=ScriptedChatModel(script=["They talked of music and pizza."] * 9),
        backend=files,
        trigger=("messages", 6),
        keep=("messages", 2),
    )
    work = [call("track_parcel", text=str(n)) for n in range(4)]
    agent, model = agent_with_skills(
        [READ, *work, "Done."],
        files,
        middleware=[summaries, ToolSelectionMiddleware(top_k=1)],
        checkpointer=memory,
    )
    await run(path, agent, user("track all my parcels by number"), thread())
    compacted = [
        sent
        for sent in model.calls
        if any(m.additional_kwargs.get("lc_source") == "summarization" for m in sent.messages)
    ]
    assert compacted
    shown = [of_the_office(sent) for sent in model.calls[1:]]
    assert shown == [["track_parcel", *TOOLS_OF_GUESTS]] * len(shown)
    assert await pins_of(path, agent, thread()) == TOOLS_OF_GUESTS


# -- tools that only a skill has -------------------------------------------------------------------------


def gated(files: Any, *tools: Any) -> Any:
    if not hasattr(SkillsMiddleware, "wrap_tool_call") or SkillsMiddleware.wrap_tool_call is None:
        pytest.skip("skills of this version have no tools")
    try:
        return SkillsMiddleware(backend=files, sources=["/skills/"], tools=list(tools))
    except TypeError:
        pytest.skip("skills of this version have no tools")


async def test_tools_that_only_a_skill_has_run_when_what_was_not_shown_is_refused(path, tmp_path):
    write_skill(tmp_path, "tides", "metadata:\n  include_tools: read_tides\n")
    files = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    tides = make_tool("read_tides", "Read the tide tables of a harbour.")
    script = [
        call("read_tides"),
        discover("read the tide tables"),
        call("read_file", file_path="/skills/tides/SKILL.md"),
        calls(("read_tides", {}), ("play_music", {})),
        "Done.",
    ]
    agent, model = selecting_agent(script, backend=files, middleware=[gated(files, tides), enforcing()])
    result = await run(path, agent, user("send an email"))
    early, late = answers(result, "read_tides")
    assert early.startswith("There is no tool named `read_tides`.")
    assert late == "read_tides did it"
    assert all("read_tides" not in sent.tools for sent in model.calls[:3])
    assert "read_tides" in model.calls[3].tools
    assert "not in your list" in answers(result, "play_music")[0]


# -- subagents -------------------------------------------------------------------------------------------


def reading(kind: str) -> Any:
    """Play an agent that has a subagent read a skill and do what it says."""

    def answer(sent: Any) -> Any:
        results = [m.name for m in sent.messages if m.type == "tool"]
        if asked(sent) == "parent":
            return "Done." if results else call("task", description="prepare", subagent_type=kind)
        return READ if not results else call("order_pizza") if results == ["read_file"] else "Done."

    return answer


@pytest.mark.parametrize("kind", ["general-purpose", "worker", pytest.param("fork", marks=needs_forks)])
async def test_a_subagent_that_reads_a_skill_has_its_tools_and_the_agent_does_not(kind, path, files, memory):
    worker = {"name": "worker", "description": "d", "system_prompt": "p", "skills": ["/skills/"]}
    subagents = [worker, {"name": "fork", "description": "d", "mode": "fork"}]
    agent, model = agent_with_skills(
        reading(kind),
        files,
        subagents=subagents if kind == "fork" else subagents[:1],
        middleware=[enforcing()],
        checkpointer=memory,
    )
    await run(path, agent, user("parent"), thread())
    child = calls_about(model, "prepare")
    assert of_the_office(child[0]) == []
    assert of_the_office(child[1]) == TOOLS_OF_GUESTS
    (done,) = (m.text for m in child[2].messages if m.type == "tool" and m.name == "order_pizza")
    assert done == "order_pizza did it"
    assert (await pins_of(path, agent, thread())) == []
    assert of_the_office(model.calls[-1]) == []
