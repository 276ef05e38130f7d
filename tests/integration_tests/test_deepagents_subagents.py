"""`with_tool_selection`: every agent of a deep agent selects, each for itself, and is else what it was."""

from __future__ import annotations

import copy
from typing import Any

import pytest

pytest.importorskip("deepagents")

from deepagents import (
    FilesystemMiddleware,
    FilesystemPermission,
    GeneralPurposeSubagentProfile,
    HarnessProfile,
    create_deep_agent,
    register_harness_profile,
)
from deepagents.backends import FilesystemBackend, LocalShellBackend, StateBackend
from deepagents.middleware.skills import SkillsMiddleware
from deepagents.middleware.summarization import SummarizationMiddleware
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableLambda

from langchain_tool_selection import Discovery, ToolSelectionMiddleware
from langchain_tool_selection.deepagents import with_tool_selection
from langchain_tool_selection.testing import ScriptedChatModel, call, calls

from .agents import (
    DISCOVER,
    OFFICE,
    Rewriting,
    answers,
    discover,
    make_tools,
    office,
    open_saver,
    pins_of,
    run,
    thread,
    user,
)
from .deep import (
    FILES,
    asked,
    calls_about,
    facts_about,
    needs_forks,
    of_the_office,
    profiled,
    recorded_subagents,
    selecting_agent,
)

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:The feature `forked subagents`")]

GENERAL = "general-purpose"
WORKER = {"name": "worker", "description": "Does a job.", "system_prompt": "Do one job."}
FORK = {"name": "fork", "description": "Goes on from here.", "mode": "fork"}

WORKSHOP = {
    "saw_wood": "Saw a plank of wood to a length.",
    "drill_hole": "Drill a hole of a diameter.",
    "paint_wall": "Paint a wall in a colour.",
}
SPECIALIST = {**WORKER, "name": "specialist", "tools": make_tools(WORKSHOP)}


def delegating(*kinds: str, job: str = "play music") -> Any:
    """Play an agent that gives one job to a subagent of each kind, and the subagents, which do nothing."""

    def answer(sent: Any) -> Any:
        if asked(sent) == "parent" and sent.messages[-1].type == "human":
            tasks = ({"description": f"{job}", "subagent_type": kind} for kind in kinds)
            return calls(*(("task", task) for task in tasks))
        return "Done."

    return answer


# -- what each kind of subagent is sent ------------------------------------------------------------------


async def test_the_general_purpose_subagent_selects_without_being_named(path):
    agent, model = selecting_agent(delegating(GENERAL))
    await run(path, agent, user("parent"))
    parent, child = model.calls[0], calls_about(model, "play music")[0]
    assert sorted(parent.tools) == sorted([*FILES, "task", DISCOVER])
    assert sorted(child.tools) == sorted([*FILES, DISCOVER, "play_music"])


async def test_without_the_one_line_it_is_sent_everything(path):
    model = ScriptedChatModel(script=delegating(GENERAL))
    agent = create_deep_agent(model, office(), middleware=[ToolSelectionMiddleware(top_k=1)])
    await run(path, agent, user("parent"))
    assert of_the_office(calls_about(model, "play music")[0]) == list(OFFICE)


async def test_a_declared_subagent_selects_among_the_tools_that_it_inherits(path):
    agent, model = selecting_agent(delegating("worker"), subagents=[WORKER])
    await run(path, agent, user("parent"))
    (child,) = calls_about(model, "play music")
    assert sorted(child.tools) == sorted([*FILES, DISCOVER, "play_music"])


async def test_a_subagent_with_tools_of_its_own_selects_among_those(path):
    agent, model = selecting_agent(delegating("specialist", job="saw wood"), subagents=[SPECIALIST])
    await run(path, agent, user("parent"))
    (child,) = calls_about(model, "saw wood")
    assert sorted(child.tools) == sorted([*FILES, DISCOVER, "saw_wood"])


async def test_a_subagent_with_a_selection_of_its_own_keeps_it(path):
    own = ToolSelectionMiddleware(top_k=2, discovery=Discovery(name="find_tools"))
    picky = {**WORKER, "middleware": [own]}
    agent, model = selecting_agent(delegating("worker", job="play music or order pizza"), subagents=[picky])
    await run(path, agent, user("parent"))
    (child,) = calls_about(model, "play music or order pizza")
    assert sorted(child.tools) == sorted([*FILES, "find_tools", "play_music", "order_pizza"])


@needs_forks
async def test_a_fork_inherits_the_selection(path):
    agent, model = selecting_agent(delegating("fork"), subagents=[FORK])
    await run(path, agent, user("parent"))
    (child,) = calls_about(model, "play music")
    assert sorted(child.tools) == sorted([*FILES, "task", DISCOVER, "play_music"])


@needs_forks
async def test_a_fork_with_tools_of_its_own_selects_among_those(path):
    fork = {**FORK, "tools": make_tools(WORKSHOP)}
    agent, model = selecting_agent(delegating("fork", job="saw wood"), subagents=[fork])
    await run(path, agent, user("parent"))
    (child,) = calls_about(model, "saw wood")
    assert sorted(child.tools) == sorted([*FILES, "task", DISCOVER, "saw_wood"])


@pytest.mark.parametrize("selects", [True, False])
async def test_a_compiled_subagent_is_what_it_was_built_to_be(selects, path):
    model = ScriptedChatModel(script=delegating("compiled"))
    middleware = [ToolSelectionMiddleware(top_k=1)] if selects else []
    compiled = {
        "name": "compiled",
        "description": "Was built elsewhere.",
        "runnable": create_agent(model, office(), middleware=middleware),
    }
    agent, _ = selecting_agent(model, subagents=[compiled])
    await run(path, agent, user("parent"))
    (child,) = calls_about(model, "play music")
    assert child.tools == ([DISCOVER, "play_music"] if selects else list(OFFICE))


@pytest.mark.parametrize("mode", ["isolated", pytest.param("fork", marks=needs_forks)])
async def test_a_compiled_subagent_is_handed_nothing_of_ours(mode, path):
    handed = []

    def note(state: Any) -> Any:
        handed.extend(state)
        return {"messages": [AIMessage("Done.")]}

    compiled = {"name": "compiled", "description": "d", "runnable": RunnableLambda(note), "mode": mode}
    agent, _ = selecting_agent(delegating("compiled"), subagents=[compiled])
    await run(path, agent, user("parent"))
    assert "messages" in handed
    assert not [key for key in handed if "tool_selection" in key]


def test_an_async_subagent_comes_as_it_is():
    remote = {"name": GENERAL, "description": "Runs elsewhere.", "graph_id": "graph"}
    arguments = with_tool_selection(ScriptedChatModel(script=[]), subagents=[remote])
    assert [spec["name"] for spec in arguments["subagents"]] == [GENERAL, GENERAL]
    assert arguments["subagents"][1] == remote


@pytest.mark.parametrize("kind", ["state", "shell", "disk"])
async def test_on_any_backend_no_agent_misses_a_tool_of_the_harness(kind, path, tmp_path):
    backend = {
        "state": StateBackend,
        "shell": lambda: LocalShellBackend(root_dir=tmp_path, virtual_mode=True),
        "disk": lambda: FilesystemBackend(root_dir=tmp_path, virtual_mode=True),
    }[kind]()
    agent, model = selecting_agent(
        delegating(GENERAL, "worker", "specialist"), subagents=[WORKER, SPECIALIST], backend=backend
    )
    await run(path, agent, user("parent"))
    of_the_harness = {*FILES, *(["execute"] if kind == "shell" else [])}
    assert len(model.calls) == 5
    for sent in model.calls:
        extra = {"task"} if asked(sent) == "parent" else set()
        assert {*sent.tools} - {*OFFICE, *WORKSHOP} == {*of_the_harness, DISCOVER, *extra}


async def test_what_a_run_may_not_use_no_subagent_may_use(path):
    def answer(sent: Any) -> Any:
        if sent.messages[-1].type != "human":
            return "Done."
        if asked(sent) == "parent":
            return delegating(GENERAL, "worker")(sent)
        return calls(("lock_door", {}), ("play_music", {}))

    guarded = ToolSelectionMiddleware(top_k=1, allow=lambda tool, runtime: tool.name != "lock_door")
    agent, model = selecting_agent(answer, subagents=[WORKER], middleware=[guarded])
    await run(path, agent, user("parent"))
    said = [m for sent in model.calls for m in sent.messages if isinstance(m, ToolMessage)]
    assert [m.text for m in said if m.name == "play_music"] == ["play_music did it"] * 2
    assert all(m.text.startswith("There is no tool named") for m in said if m.name == "lock_door")


# -- the general-purpose subagent is the harness's own ---------------------------------------------------


class Nudge(Rewriting):
    """Stands for what a profile adds."""

    def __init__(self) -> None:
        super().__init__(lambda request: request, "Nudge")


def summaries() -> Any:
    return SummarizationMiddleware(
        model=ScriptedChatModel(script=["Summary."]), backend=StateBackend(), trigger=("messages", 9)
    )


ARGUMENTS: dict[str, dict[str, Any]] = {
    "nothing but tools": {},
    "skills": {"skills": ["/skills/", "/more/"]},
    "memory": {"memory": ["/AGENTS.md"]},
    "permissions": {"permissions": [FilesystemPermission(operations=["write"], paths=["/a"], mode="deny")]},
    "approvals": {"interrupt_on": {"send_email": True}},
    "a prompt": {"system_prompt": "Be brief."},
    "middleware of ones own": {"middleware": [Rewriting(lambda request: request)]},
    "another summarization": {"middleware": [summaries(), Rewriting(lambda request: request)]},
    "fewer file tools": {
        "middleware": [FilesystemMiddleware(backend=StateBackend(), tools=["ls", "read_file"])]
    },
    "skills with a middleware of their own": {
        "skills": ["/skills/"],
        "middleware": [SkillsMiddleware(backend=StateBackend(), sources=["/skills/"])],
    },
}
PROFILES: dict[str, dict[str, Any]] = {
    "none": {},
    "a description and a prompt": {
        "general_purpose_subagent": GeneralPurposeSubagentProfile(
            description="Does anything.", system_prompt="Do anything."
        ),
        "system_prompt_suffix": "Say please.",
    },
    "a prompt for all": {"base_system_prompt": "Be kind.", "system_prompt_suffix": "Say please."},
    "more middleware, replaced by the caller's": {"extra_middleware": [Nudge()]},
    "exclusions": {
        "excluded_tools": frozenset({"grep", "send_email"}),
        "excluded_middleware": frozenset({"PatchToolCallsMiddleware"}),
    },
    "descriptions": {"tool_description_overrides": {"ls": "List.", "send_email": "Send."}},
}


def assembled(monkeypatch: Any, arguments: Any) -> Any:
    with recorded_subagents(monkeypatch) as recorder:
        create_deep_agent(**arguments)
    return recorder.specs


@pytest.mark.parametrize(
    ("arguments", "profile"),
    [
        *((arguments, profile) for arguments in ARGUMENTS for profile in ("none", "exclusions")),
        *(("nothing but tools", profile) for profile in PROFILES),
    ],
)
def test_the_general_purpose_subagent_is_what_the_harness_makes_but_for_the_selection(
    arguments, profile, monkeypatch
):
    middleware = [Nudge()] if "replaced" in profile else []
    settings = {"middleware": middleware, **ARGUMENTS[arguments]}
    settings = {"model": profiled([], **PROFILES[profile]), "tools": office(), **settings}
    theirs = assembled(monkeypatch, settings)[GENERAL]
    ours = assembled(monkeypatch, with_tool_selection(**settings))[GENERAL]
    stack = ours["middleware"]
    (place,) = (i for i, one in enumerate(stack) if isinstance(one, ToolSelectionMiddleware))
    del stack[place - 1 : place + 1]
    assert [facts_about(one) for one in stack] == [facts_about(one) for one in theirs["middleware"]]
    for one, other in zip(stack, theirs["middleware"], strict=True):
        assert isinstance(one, type(other))
        # What was passed is taken over as it is, but for summarization, which is a copy.
        if other in settings["middleware"] and not isinstance(other, SummarizationMiddleware):
            assert one is other
    rest = [{k: v for k, v in spec.items() if k not in ("middleware", "skills")} for spec in (ours, theirs)]
    assert rest[0] == rest[1]


def test_what_takes_a_place_in_the_harnesss_own_subagent_takes_it_in_ours(monkeypatch):
    """All places, whatever a new version of the harness may have."""
    settings = {"model": profiled([]), "tools": office(), "skills": ["/skills/"]}
    names = [one.name for one in assembled(monkeypatch, settings)[GENERAL]["middleware"]]
    assert {"FilesystemMiddleware", "SkillsMiddleware"} <= {*names}
    for name in names:
        stand_in = Rewriting(lambda request: request, name)
        settings["middleware"] = [stand_in]
        theirs = assembled(monkeypatch, settings)[GENERAL]["middleware"]
        ours = assembled(monkeypatch, with_tool_selection(**settings))[GENERAL]["middleware"]
        assert stand_in in theirs
        assert stand_in in ours


def test_a_model_that_is_named_has_the_profile_of_its_name(monkeypatch):
    """A client may report another provider than the one that it was named by."""
    for key in ("AZURE_OPENAI_API_KEY", "OPENAI_API_VERSION"):
        monkeypatch.setenv(key, "none")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://nowhere.example")
    name = "azure_openai:gpt-profiled"
    edits = GeneralPurposeSubagentProfile(description="Knows it by name.")
    register_harness_profile(
        name, HarnessProfile(general_purpose_subagent=edits, system_prompt_suffix="Say please.")
    )
    theirs = assembled(monkeypatch, {"model": name, "tools": office()})[GENERAL]
    ours = assembled(monkeypatch, with_tool_selection(name, office()))[GENERAL]
    assert ours["description"] == theirs["description"] == "Knows it by name."
    assert ours["system_prompt"] == theirs["system_prompt"]
    assert ours["system_prompt"].endswith("Say please.")


async def test_a_profile_without_the_general_purpose_subagent_is_left_without(path):
    off = GeneralPurposeSubagentProfile(enabled=False)
    agent, model = selecting_agent(profiled(["Done."], general_purpose_subagent=off))
    await run(path, agent, user("parent"))
    assert "task" not in model.calls[0].tools


def test_a_general_purpose_subagent_of_ones_own_takes_the_harnesss_place():
    own = {**WORKER, "name": GENERAL}
    arguments = with_tool_selection(ScriptedChatModel(script=[]), subagents=[own])
    (spec,) = arguments["subagents"]
    assert spec["system_prompt"] == "Do one job."
    assert isinstance(spec["middleware"][-1], ToolSelectionMiddleware)


@pytest.mark.parametrize(
    ("profile", "what"),
    [
        (
            {
                "base_system_prompt": "Be kind.",
                "general_purpose_subagent": GeneralPurposeSubagentProfile(system_prompt="Do anything."),
            },
            "a prompt for this subagent beside a base_system_prompt",
        ),
        (
            {"excluded_middleware": frozenset({"MemoryMiddleware"})},
            "excluded_middleware that only the agent has, MemoryMiddleware",
        ),
    ],
)
def test_where_it_could_not_be_declared_it_is_left_alone_and_a_warning_says_why(
    profile, what, monkeypatch, caplog
):
    settings = {"model": profiled([], **profile), "tools": office(), "memory": ["/AGENTS.md"]}
    theirs = assembled(monkeypatch, settings)[GENERAL]
    ours = assembled(monkeypatch, with_tool_selection(**settings))[GENERAL]
    assert ours["system_prompt"] == theirs["system_prompt"]
    assert [one.name for one in ours["middleware"]] == [one.name for one in theirs["middleware"]]
    assert what in caplog.text


# -- nothing passes between agents -----------------------------------------------------------------------

WISHES = {"parent": "lock the door", "job one": "play music", "job two": "order pizza"}


def searching_team(*kinds: str) -> Any:
    """Play an agent and two subagents at once, each of which searches for a tool of its own."""

    def answer(sent: Any) -> Any:
        last, what = sent.messages[-1], asked(sent)
        if isinstance(last, HumanMessage):
            return discover(WISHES[what])
        if what == "parent" and isinstance(last, ToolMessage) and last.name == DISCOVER:
            jobs = zip(("job one", "job two"), kinds, strict=True)
            return calls(*(("task", {"description": j, "subagent_type": kind}) for j, kind in jobs))
        return "Done."

    return answer


TEAMS = [
    (GENERAL, GENERAL),
    ("worker", "worker"),
    (GENERAL, "worker"),
    pytest.param("fork", "fork", marks=needs_forks),
    pytest.param("worker", "fork", marks=needs_forks),
]


@pytest.mark.parametrize(("one", "two"), TEAMS)
async def test_pins_stay_with_the_agent_that_made_them_when_two_work_at_once(
    one, two, path, saver_kind, tmp_path
):
    forks = [FORK] if "fork" in (one, two) else []
    async with open_saver(saver_kind, path, tmp_path) as saver:
        agent, model = selecting_agent(
            searching_team(one, two), subagents=[WORKER, *forks], checkpointer=saver
        )
        result = await run(path, agent, user("parent"), thread())
        assert await pins_of(path, agent, thread()) == ["lock_door"]
    assert len(answers(result, "task")) == 2
    last = {asked(sent): of_the_office(sent) for sent in model.calls}
    # A fork goes on with the conversation of its parent, and with what that has found.
    found = {kind: ["lock_door"] if kind == "fork" else [] for kind in (one, two)}
    assert last == {
        "parent": ["lock_door"],
        "job one": [*found[one], "play_music"],
        "job two": [*found[two], "order_pizza"],
    }


async def test_after_a_restart_the_agent_has_its_pins_and_a_subagent_begins_anew(path, tmp_path):
    for restarted in (False, True):
        async with open_saver("sqlite", path, tmp_path) as saver:
            agent, model = selecting_agent(
                searching_team(GENERAL, "worker"), subagents=[WORKER], checkpointer=saver
            )
            await run(path, agent, user("parent"), thread())
            assert await pins_of(path, agent, thread()) == ["lock_door"]
        assert of_the_office(calls_about(model, "parent")[0]) == (["lock_door"] if restarted else [])
        assert of_the_office(calls_about(model, "job one")[0]) == []
        assert of_the_office(calls_about(model, "job one")[-1]) == ["play_music"]


# -- forks -----------------------------------------------------------------------------------------------


@needs_forks
async def test_what_the_harness_tells_every_fork_is_no_part_of_what_it_was_asked(path):
    told = {
        "list_facts": "List facts, figures and identifiers of a conversation.",
        "delegate_task": "Delegate a task to a subagent.",
        "answer_generically": "Answer generically without exact details.",
    }
    tools = [*office(), *make_tools(told)]
    agent, model = selecting_agent(delegating("fork"), tools, subagents=[FORK])
    await run(path, agent, user("parent"))
    (child,) = calls_about(model, "play music")
    assert not {*told} & {*child.tools}
    assert "play_music" in child.tools


@needs_forks
async def test_a_fork_that_talks_to_another_model_goes_by_the_profile_of_that_model(path):
    script = [discover("track a parcel"), "Done."]
    other = profiled(script, excluded_tools=frozenset({"glob", "track_parcel"}))
    parent = profiled(delegating("fork"), excluded_tools=frozenset({"grep", "play_music"}))
    agent, _ = selecting_agent(parent, subagents=[{**FORK, "model": other}])
    await run(path, agent, user("parent"))
    assert {"glob", "grep"} - {*parent.calls[0].tools} == {"grep"}
    assert {"glob", "grep"} - {*other.calls[0].tools} == {"glob"}
    assert of_the_office(other.calls[0]) == ["play_music"]
    (answer,) = (m.text for m in other.calls[1].messages if isinstance(m, ToolMessage))
    assert "track_parcel" not in answer


# -- arguments -------------------------------------------------------------------------------------------


def test_nothing_that_is_passed_is_changed():
    middleware, tools = [Rewriting(lambda request: request)], office()
    subagents = [{**WORKER, "middleware": [Nudge()]}, SPECIALIST, FORK]
    before = copy.copy(middleware), copy.copy(tools), [copy.copy(spec) for spec in subagents]
    stack = copy.copy(subagents[0]["middleware"])
    arguments = with_tool_selection(
        ScriptedChatModel(script=[]), tools, middleware=middleware, subagents=subagents, name="agent"
    )
    assert (middleware, tools, subagents) == before
    assert subagents[0]["middleware"] == stack
    assert arguments["tools"] is tools
    assert arguments["name"] == "agent"


def test_the_selection_is_last_or_where_it_was_put():
    first, last = Rewriting(lambda r: r, "First"), Rewriting(lambda r: r, "Last")
    own = ToolSelectionMiddleware(top_k=1)
    model = ScriptedChatModel(script=[])
    added = with_tool_selection(model, middleware=[first, last])["middleware"]
    assert [one for one in added if one in (first, last)] == [first, last]
    assert isinstance(added[-1], ToolSelectionMiddleware)
    placed = with_tool_selection(model, middleware=[first, own, last])["middleware"]
    assert [one for one in placed if one in (first, own, last)] == [first, own, last]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"model": None}, TypeError, "model must be a chat model or its name"),
        ({"top_k": 5}, TypeError, "no argument 'top_k'.*middleware=\\[ToolSelectionMiddleware"),
        ({"middleware": [ToolSelectionMiddleware]}, TypeError, "make one of it: ToolSelectionMiddleware"),
        ({"middleware": [ToolSelectionMiddleware() for _ in "ab"]}, ValueError, "more than one Tool"),
        ({"subagents": [WORKER, "helper"]}, TypeError, r"subagents\[1\] must be a dict with a 'name'"),
        ({"subagents": [{"description": "?"}]}, TypeError, r"subagents\[0\] must be a dict with a 'name'"),
        ({"subagents": [{**WORKER, "middleware": [int]}]}, TypeError, "the middleware of subagent 'worker'"),
    ],
)
def test_what_is_wrong_is_named_with_the_way_out(arguments, error, text):
    with pytest.raises(error, match=text):
        with_tool_selection(**{"model": ScriptedChatModel(script=[]), **arguments})


async def test_the_prompt_of_the_subagent_is_the_harnesss_own(path):
    agent, model = selecting_agent(delegating(GENERAL))
    await run(path, agent, user("parent"))
    (child,) = calls_about(model, "play music")
    (prompt,) = (m for m in child.messages if isinstance(m, SystemMessage))
    plain = ScriptedChatModel(script=delegating(GENERAL))
    await run(path, create_deep_agent(plain, office()), user("parent"))
    assert prompt == next(m for m in calls_about(plain, "play music")[0].messages if m.type == "system")


async def test_a_call_of_a_subagent_that_was_approved_runs(path, memory):
    """Approvals of the agent hold for the subagent that we declare."""

    def answer(sent: Any) -> Any:
        if sent.messages[-1].type != "human":
            return "Done."
        return delegating(GENERAL)(sent) if asked(sent) == "parent" else call("play_music")

    agent, _ = selecting_agent(answer, interrupt_on={"play_music": True}, checkpointer=memory)
    result = await run(path, agent, user("parent"), thread())
    assert result["__interrupt__"][0].value["action_requests"][0]["name"] == "play_music"
