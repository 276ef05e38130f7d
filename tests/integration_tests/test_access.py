"""`allow=`: what a run may not use does not exist for it, from the first ranking to the last tool call."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.agents.middleware.types import TracePolicy, omit_payload
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as tool_decorator
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from langsmith import Client
from langsmith.run_helpers import tracing_context
from pydantic import BaseModel

from langchain_tool_selection import Access, AccessRuntime, Discovery, ToolHints, ToolSelectionMiddleware
from langchain_tool_selection.testing import ScriptedChatModel, call, calls

from .agents import (
    DISCOVER,
    OFFICE,
    Offering,
    Rewriting,
    answers,
    build,
    discover,
    make_tool,
    office,
    open_saver,
    pins_of,
    thread,
    user,
)
from .exposures import (
    StrictLog,
    additional_tools,
    agent_on,
    chat_completions,
    said,
    say,
    tool_addition,
    tool_reference,
)
from .test_streaming import Wire

ROLES = {"clerk": ["send_*", "play_music", "tag:public", "domain:garden"], "boss": ["*"]}
"""Two roles over the office; the rules are by name, wildcard, tag and domain."""

HINTS = {
    "order_pizza": ToolHints(tags=["public"]),
    "water_plants": ToolHints(domain="garden"),
}
CLERKS = {"send_email", "play_music", "order_pizza", "water_plants"}

BACK_DOORS = [call(DISCOVER, query="lock the front door"), call(DISCOVER, names=["lock_door"])]


def may_not_lock(tool: Any, runtime: AccessRuntime) -> bool:
    return getattr(tool, "name", "") != "lock_door"


async def awaited_may_not_lock(tool: Any, runtime: AccessRuntime) -> bool:
    await asyncio.sleep(0)
    return may_not_lock(tool, runtime)


async def ask(path: str, agent: Any, what: Any, role: Any = None, config: Any = None) -> dict[str, Any]:
    """Invoke an agent in a role; anything but a string is the run's whole context."""
    context = {"role": role} if isinstance(role, str) else role
    what = user(what) if isinstance(what, str) else what
    if path == "sync":
        return await asyncio.to_thread(agent.invoke, what, config, context=context)
    return await agent.ainvoke(what, config, context=context)


def said_to(model: ScriptedChatModel) -> str:
    """Return all that the model was sent, as one text."""
    return repr([(sent.messages, sent.schemas) for sent in model.calls])


def noting(name: str = "lock_door", **settings: Any) -> tuple[BaseTool, list[str]]:
    """Return a tool and the list that it writes to when it really runs."""
    ran: list[str] = []
    tool = make_tool(name, OFFICE.get(name, "Does something."), **settings)
    function = tool.func
    tool.func = lambda **arguments: ran.append(name) or function(**arguments)
    return tool, ran


def office_with(tool: BaseTool) -> list[BaseTool]:
    return [tool if other.name == tool.name else other for other in office()]


# -- rules -----------------------------------------------------------------------------------------------


@dataclass
class Desk:
    role: str = ""
    roles: list[str] = field(default_factory=list)


class Badge(BaseModel):
    role: str | None = None
    roles: tuple[str, ...] = ()


CLERK = [
    {"role": "clerk"},
    {"roles": ["clerk", "unheard of"]},
    {"roles": "clerk"},
    {"roles": {"clerk"}},
    Desk("clerk"),
    Desk(roles=["clerk"]),
    Badge(role="clerk"),
    Badge(roles=("clerk",)),
]

NOBODY = [None, {}, {"role": None}, {"role": "unheard of"}, {"role": ["boss"]}, {"roles": 5}, Desk(), Badge()]


@pytest.mark.parametrize("context", CLERK, ids=repr)
async def test_a_role_of_the_context_may_use_its_tools_by_name_wildcard_tag_and_domain(context, path):
    agent, model = build(["Done."], allow=ROLES, hints=HINTS, top_k=99)
    await ask(path, agent, "lock the door and send an email", context)
    assert set(model.calls[0].tools) == CLERKS


@pytest.mark.parametrize("context", NOBODY, ids=repr)
async def test_without_a_known_role_nothing_may_be_used(context, path):
    agent, model = build([call("send_email"), "Done."], allow=ROLES, hints=HINTS)
    result = await ask(path, agent, "send an email", context)
    assert [sent.tools for sent in model.calls] == [[], []]
    assert answers(result, "send_email") == ["There is no tool named `send_email`."]


async def test_several_roles_add_up(path):
    agent, model = build(["Done."], allow={"a": ["send_email"], "b": ["lock_*"]}, top_k=99)
    await ask(path, agent, "hello", {"role": "a", "roles": ["b"]})
    assert model.calls[0].tools == ["send_email", "lock_door"]


@pytest.mark.parametrize("role", ["clerk", "boss"])
async def test_a_tool_cannot_name_itself_into_a_tag_or_a_domain(role, path):
    crafty = [make_tool("tag:public", "Sing."), make_tool("domain:garden", "Dance.")]
    agent, model = build(["Done."], tools=[*office(), *crafty], allow=ROLES, hints=HINTS, top_k=99)
    await ask(path, agent, "hello", role)
    assert (
        ("tag:public" in model.calls[0].tools)
        == ("domain:garden" in model.calls[0].tools)
        == (role == "boss")
    )


async def test_a_wildcard_for_domains_takes_no_tool_without_one(path):
    agent, model = build(["Done."], allow={"clerk": ["domain:*"]}, hints=HINTS, top_k=99)
    await ask(path, agent, "hello", "clerk")
    assert model.calls[0].tools == ["water_plants"]


async def test_a_tool_of_the_provider_is_ruled_by_its_type(path):
    tools = [*office(), {"type": "web_search_preview"}]
    for rules, sent in (["send_email", "web_search*"], ["web_search_preview"]), (["send_email"], []):
        agent, model = build(["Done."], tools=tools, allow={"clerk": rules}, top_k=99)
        await ask(path, agent, "hello", "clerk")
        assert model.calls[0].tools == ["send_email", *sent]


@pytest.mark.parametrize("allow", [may_not_lock, awaited_may_not_lock])
async def test_a_function_decides_whether_it_is_awaited_or_not(allow):
    agent, model = build([*BACK_DOORS, call("lock_door"), "Done."], allow=allow)
    result = await ask("async", agent, "lock the front door")
    assert "lock_door" not in model.calls[0].tools
    assert OFFICE["lock_door"] not in said_to(model)
    assert answers(result, "lock_door")[0].startswith("There is no tool named `lock_door`.")


async def test_a_function_sees_context_state_and_store_before_each_model_call_search_and_tool_call(path):
    seen = []

    def allow(tool: Any, runtime: AccessRuntime) -> bool:
        seen.append((runtime.context, len(runtime.state["messages"]), runtime.store))
        return True

    script = [calls((DISCOVER, {"query": "music"}), ("send_email", {})), "Done."]
    agent, _ = build(script, allow=allow)
    await ask(path, agent, "send an email", {"user": "ada"})
    assert set(map(repr, seen)) == {repr(({"user": "ada"}, messages, None)) for messages in (1, 2, 4)}


# -- rules that fail -------------------------------------------------------------------------------------


class Odd:
    """A verdict that cannot be read."""

    def __bool__(self) -> bool:
        raise ValueError("lock_door")


def raising(error: Exception) -> Any:
    def allow(tool: Any, runtime: AccessRuntime) -> bool:
        if getattr(tool, "name", "") == "lock_door":
            raise error
        return True

    return allow


FAILING = {
    "KeyError": raising(KeyError("lock_door")),
    "PermissionError": raising(PermissionError("lock_door is for bosses")),
    "ValueError": lambda tool, runtime: Odd() if tool.name == "lock_door" else True,
}


@pytest.mark.parametrize("kind", FAILING)
async def test_a_rule_that_fails_refuses_and_the_log_says_where_without_naming_the_tool(kind, path, caplog):
    tool, ran = noting("lock_door")
    script = [*BACK_DOORS, call("lock_door"), "Done."]
    agent, model = build(script, tools=office_with(tool), allow=FAILING[kind])
    with caplog.at_level(logging.INFO):
        result = await ask(path, agent, "lock the front door")
    assert not ran
    assert len(model.calls) == 4
    assert all("lock_door" not in sent.tools for sent in model.calls)
    assert answers(result, "lock_door")[0].startswith("There is no tool named `lock_door`.")
    (said,) = [r.getMessage() for r in caplog.records if r.name == "langchain_tool_selection"]
    assert said.startswith(
        f"allow= failed with {kind} at test_access.py:" if kind != "ValueError" else "allow="
    )
    assert "lock_door" not in said


async def test_a_rule_that_has_to_be_awaited_refuses_everything_where_it_cannot_be(caplog):
    agent, model = build([call("send_email"), "Done."], allow=awaited_may_not_lock)
    with caplog.at_level(logging.WARNING):
        result = await ask("sync", agent, "send an email")
    assert [sent.tools for sent in model.calls] == [[], []]
    assert answers(result, "send_email") == ["There is no tool named `send_email`."]
    assert [r.getMessage() for r in caplog.records if "in ainvoke only" in r.getMessage()]
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "allow",
    [True, "boss", ["send_email"], {"boss": "send_email"}, {"boss": [5]}, {"boss": None}, {"boss": 5}],
    ids=repr,
)
def test_a_rule_that_can_be_none_is_an_error_when_the_middleware_is_made(allow):
    with pytest.raises(TypeError, match=r"^allow"):
        ToolSelectionMiddleware(allow=allow)


# -- before the model, in searches, through a proxy ------------------------------------------------------


async def test_what_is_refused_takes_no_place_among_the_best(path):
    tools = [*(make_tool(f"lock_door_{n}", "Lock the front door of the house.") for n in range(5)), *office()]
    agent, model = build(
        ["Done."],
        tools=tools,
        allow=lambda tool, runtime: not tool.name.startswith("lock_door_"),
        top_k=1,
    )
    await ask(path, agent, "lock the front door")
    assert model.calls[0].tools == [DISCOVER, "lock_door"]


async def test_with_nothing_hidden_but_what_is_refused_there_is_nothing_to_search(path):
    agent, model = build(["Done."], allow={"clerk": ["send_email", "play_music"]}, top_k=2)
    await ask(path, agent, "lock the front door", "clerk")
    assert model.calls[0].tools == ["send_email", "play_music"]


async def test_always_include_and_tool_choice_do_not_open_what_is_refused(path):
    agent, model = build(["Done."], allow=may_not_lock, always_include=["lock_door"])
    await ask(path, agent, "lock the front door")
    assert "lock_door" not in model.calls[0].tools


SEARCHES = [
    {"query": "lock the front door of the house"},
    {"query": "lock_door"},
    {"names": ["lock_door"]},
    {"names": ["lock_door", "play_music"]},
    {"domain": "security"},
    {"query": "door", "domain": "security"},
    {"query": "quantum chromodynamics"},
]


@pytest.mark.parametrize("arguments", SEARCHES, ids=repr)
async def test_a_search_answers_as_if_what_is_refused_did_not_exist(arguments, path, memory):
    domains = {name: ToolHints(domain="security" if name == "lock_door" else "office") for name in OFFICE}
    said = []
    for tools in office(), [tool for tool in office() if tool.name != "lock_door"]:
        script = [call(DISCOVER, **arguments), "Done."]
        agent, _ = build(
            script, tools=tools, allow=may_not_lock, hints=domains, discovery=Discovery(overview=True)
        )
        said.append(answers(await ask(path, agent, "send an email")))
    assert said[0] == said[1]
    assert "security" not in said[0][0] or arguments.get("domain") == "security"
    assert OFFICE["lock_door"] not in said[0][0]


async def test_nothing_is_called_through_a_proxy_that_is_refused(path):
    tool, ran = noting("lock_door")
    wrong, right = {"nonsense": 1}, {"text": "now"}
    script = [
        *(call("call_tool", name="lock_door", arguments=arguments) for arguments in (wrong, right, None)),
        discover("lock the front door"),
        call("call_tool", name="play_music", arguments=right),
        "Done.",
    ]
    agent, _ = build(script, tools=office_with(tool), allow=may_not_lock, exposure="proxy")
    result = await ask(path, agent, "lock the front door")
    assert not ran
    assert {text.partition(".")[0] for text in answers(result, "call_tool")} == {
        "There is no tool named `lock_door`"
    }
    assert answers(result, "play_music") == ["play_music did it"]


async def test_tools_that_outer_middleware_adds_are_ruled_like_all_others(path):
    secret, ran = noting("read_diary")
    tides = make_tool("read_tides", "Read the tide tables of a harbour.")
    agent, model = build(
        [
            discover("read the diary"),
            discover(names=["read_diary"]),
            call("read_diary"),
            call("read_tides"),
            "Done.",
        ],
        outer=[Offering(lambda request: [secret, tides])],
        allow=lambda tool, runtime: tool.name != "read_diary",
    )
    result = await ask(path, agent, "read the diary")
    assert not ran
    assert all("read_diary" not in sent.tools for sent in model.calls)
    assert answers(result, "read_diary")[0].startswith("There is no tool named `read_diary`.")
    assert answers(result, "read_tides") == ["read_tides did it"]


# -- at execution ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("exposure", ["per_turn", "grow", "proxy", "stubs"])
@pytest.mark.parametrize("top_k", [1, 99])
async def test_a_call_of_what_is_refused_runs_nothing_and_is_answered_like_a_call_of_what_is_not_there(
    exposure, top_k, path
):
    tool, ran = noting("lock_door")
    script = [call("lock_door"), call("no_such_tool"), "Done."]
    agent, _ = build(script, tools=office_with(tool), allow=may_not_lock, exposure=exposure, top_k=top_k)
    result = await ask(path, agent, "send an email")
    refused, missing = [m for m in result["messages"] if isinstance(m, ToolMessage)]
    assert not ran
    assert refused.content.replace("lock_door", "no_such_tool") == missing.content
    assert refused.status == missing.status == "error"
    assert refused.name == "lock_door"


async def test_the_answer_to_a_refused_call_names_nothing_else_that_is_refused_since(path, memory):
    """The model was shown it in another role, and the user was never told of it."""
    settings = {"allow": {"boss": ["*"], "clerk": ["send_*"]}, "saver": memory, "top_k": 3}
    agent, model = build([call("lock_door"), "Done."], **settings, **approval(True, "lock_door"))
    await ask(path, agent, "send an email, lock the door, play music", "boss", thread())
    assert {"send_email", "lock_door", "play_music"} < {*model.calls[0].tools}
    result = await ask(path, agent, decide({"type": "approve"}), "clerk", thread())
    (text,) = answers(result, "lock_door")
    assert text.startswith("There is no tool named `lock_door`. Your tools: discover_tools, send_email.")


async def test_of_parallel_calls_only_the_refused_one_is_stopped(path, memory):
    tool, ran = noting("lock_door")
    script = [calls(("send_email", {}), ("lock_door", {}), (DISCOVER, {"query": "music"})), "Done."]
    agent, _ = build(script, tools=office_with(tool), allow=may_not_lock, saver=memory)
    result = await ask(path, agent, "send an email", config=thread())
    assert not ran
    assert answers(result, "send_email") == ["send_email did it"]
    assert len(answers(result, "lock_door")) == 1
    assert await pins_of(path, agent, thread()) == ["play_music"]


def decide(*decisions: Mapping[str, Any]) -> Command[Any]:
    return Command(resume={"decisions": list(decisions)})


def approval(outside: bool, *names: str) -> dict[str, Any]:
    return {"outer" if outside else "inner": [HumanInTheLoopMiddleware(dict.fromkeys(names, True))]}


@pytest.mark.parametrize("outside", [True, False])
async def test_a_pending_call_is_refused_when_the_role_has_changed_before_the_resume(outside, path, tmp_path):
    tool, ran = noting("lock_door")
    settings = {"tools": office_with(tool), "allow": ROLES, "hints": HINTS, **approval(outside, "lock_door")}
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent, _ = build([call("lock_door"), "Done."], saver=saver, **settings)
        result = await ask(path, agent, "lock the front door", "boss", thread())
        assert result["__interrupt__"]
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent, model = build(["Done."], saver=saver, **settings)
        result = await ask(path, agent, decide({"type": "approve"}), "clerk", thread())
    assert not ran
    assert answers(result, "lock_door") == [
        "There is no tool named `lock_door`. Your tools: discover_tools. Find others with discover_tools."
    ]
    assert "lock_door" not in model.calls[-1].tools


async def test_a_human_cannot_edit_a_call_into_one_that_is_refused(path, memory):
    tool, ran = noting("lock_door")
    settings = {"tools": office_with(tool), "allow": may_not_lock, "saver": memory}
    agent, _ = build([call("send_email"), "Done."], **settings, **approval(True, "send_email"))
    await ask(path, agent, "send an email", config=thread())
    edit = {"type": "edit", "edited_action": {"name": "lock_door", "args": {}}}
    result = await ask(path, agent, decide(edit), config=thread())
    assert not ran
    assert "There is no tool named `lock_door`." in answers(result, "lock_door")[0]


@pytest.mark.parametrize("edited", ["lock_door", "no_such_tool"])
@pytest.mark.parametrize("called", ["send_email", DISCOVER])
async def test_to_a_human_behind_this_middleware_what_is_refused_is_not_there_either(
    called, edited, path, memory
):
    """There LangChain ends the run, with a list of the tools that it looked for the edited name in.

    Older versions edit the model's message instead, and the run goes on.
    """
    tool, ran = noting("lock_door")
    settings = {"tools": office_with(tool), "allow": may_not_lock, "saver": memory}
    agent, _ = build([call(called), "Done."], **settings, **approval(False, called))
    await ask(path, agent, "send an email", config=thread())
    said = ""
    try:
        edit = {"type": "edit", "edited_action": {"name": edited, "args": {}}}
        await ask(path, agent, decide(edit), config=thread())
    except ValueError as error:
        said = str(error)
    assert not ran
    assert "lock_door" not in said.replace(f"to '{edited}'", "")


class Swapping(Rewriting):
    """Makes each call one of another tool, which it holds on to."""

    def __init__(self, tool: BaseTool) -> None:
        super().__init__(lambda request: request, "Swapping")
        self._tool = tool

    def _swapped(self, request: Any) -> Any:
        named = {**request.tool_call, "name": self._tool.name}
        return request.override(tool=self._tool, tool_call=named)

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return handler(self._swapped(request))

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await handler(self._swapped(request))


@pytest.mark.parametrize("called", ["send_email", DISCOVER, "no_such_tool"])
async def test_inner_middleware_that_makes_a_call_one_of_what_is_refused_ends_no_run(called, path):
    """LangGraph fails at a call that has the name of a registered tool, and no tool."""
    tool, ran = noting("lock_door")
    agent, model = build(
        [call(called), "Done."], tools=office_with(tool), allow=may_not_lock, inner=[Swapping(tool)]
    )
    result = await ask(path, agent, "send an email")
    assert not ran
    assert answers(result, called)[0].startswith(f"There is no tool named `{called}`.")
    assert len(model.calls) == 2


async def test_a_tool_that_looks_for_others_to_call_finds_none_that_is_refused(path):
    @tool_decorator
    def report(runtime: ToolRuntime[Any, Any]) -> str:
        """Report what there is."""
        return ",".join(sorted(tool.name for tool in runtime.tools))

    agent, _ = build([call("report"), "Done."], tools=[*office(), report], allow=may_not_lock)
    result = await ask(path, agent, "report what there is")
    assert "send_email" in answers(result, "report")[0]
    assert "lock_door" not in answers(result, "report")[0]


async def test_what_inner_middleware_brings_is_shown_by_it_and_does_not_run(path):
    """It is bound behind this middleware, so that the model sees it. Its call is one of no tool."""
    diary, ran = noting("read_diary")
    tides = make_tool("read_tides", "Read the tide tables of a harbour.")
    agent, model = build(
        [calls(("read_diary", {}), ("read_tides", {})), "Done."],
        inner=[Offering(lambda request: [diary, tides])],
        allow=lambda tool, runtime: tool.name != "read_diary",
    )
    result = await ask(path, agent, "send an email")
    assert "read_diary" in model.calls[0].tools
    assert not ran
    assert answers(result, "read_diary")[0].startswith("There is no tool named `read_diary`.")
    assert answers(result, "read_tides") == ["read_tides did it"]


async def test_the_tools_that_a_skill_of_deepagents_brings_are_ruled_when_they_are_called(path, tmp_path):
    """deepagents puts skills behind the caller's middleware, whatever the order."""
    deepagents = pytest.importorskip("deepagents")
    from deepagents.backends import FilesystemBackend  # noqa: PLC0415
    from deepagents.middleware.skills import SkillsMiddleware  # noqa: PLC0415

    skill = tmp_path / "skills" / "tides" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    head = "name: tides\ndescription: Reads tides.\nmetadata:\n  include_tools: read_tides read_diary"
    skill.write_text(f"---\n{head}\n---\nRead tides.\n")
    diary, ran = noting("read_diary")
    tides = make_tool("read_tides", "Read the tide tables of a harbour.")
    files = FilesystemBackend(root_dir=str(tmp_path), virtual_mode=True)
    script = [
        call("read_file", file_path="/skills/tides/SKILL.md"),
        calls(("read_diary", {}), ("read_tides", {})),
        "Done.",
    ]
    selection = ToolSelectionMiddleware(
        top_k=1, access=Access(enforce=True), allow=lambda tool, runtime: tool.name != "read_diary"
    )
    skills = SkillsMiddleware(backend=files, sources=["/skills/"], tools=[tides, diary])
    model = ScriptedChatModel(script=script)
    agent = deepagents.create_deep_agent(model, tools=office(), backend=files, middleware=[selection, skills])
    result = await ask(path, agent, "send an email")
    assert not ran
    assert answers(result, "read_diary")[0].startswith("There is no tool named `read_diary`.")
    assert answers(result, "read_tides") == ["read_tides did it"]


# -- roles that change during a thread -------------------------------------------------------------------


@pytest.mark.parametrize("exposure", ["per_turn", "grow"])
async def test_pins_of_what_is_no_longer_allowed_are_dormant_and_come_back(
    exposure, path, saver_kind, tmp_path
):
    script = [discover(names=["lock_door"]), "Done.", call("lock_door"), "No.", call("lock_door"), "Done."]
    async with open_saver(saver_kind, path, tmp_path) as saver:
        agent, model = build(
            script, allow=ROLES, hints=HINTS, saver=saver, keep_used=0, exposure=exposure, top_k=1
        )
        await ask(path, agent, "send an email", "boss", thread())
        assert "lock_door" in model.calls[-1].tools
        demoted = await ask(path, agent, "send an email", "clerk", thread())
        assert all("lock_door" not in sent.tools for sent in model.calls[2:4])
        assert answers(demoted, "lock_door")[0].startswith("There is no tool named `lock_door`.")
        assert await pins_of(path, agent, thread()) == ["lock_door"]
        again = await ask(path, agent, "send an email", "boss", thread())
        assert "lock_door" in model.calls[-1].tools
    assert answers(again, "lock_door")[-1] == "lock_door did it"


async def test_dormant_pins_make_no_room_for_others(path, memory):
    script = [
        discover(names=["lock_door"]),
        "Done.",
        *[discover(names=["play_music", "order_pizza"]), "Done."],
    ]
    agent, _ = build(script, allow=ROLES, hints=HINTS, saver=memory, max_pins=2)
    await ask(path, agent, "send an email", "boss", thread())
    await ask(path, agent, "send an email", "clerk", thread())
    await ask(path, agent, "send an email", "clerk", thread())
    assert set(await pins_of(path, agent, thread())) == {"lock_door", "play_music", "order_pizza"}


async def test_an_overview_names_no_domain_that_the_role_of_the_moment_has_nothing_of(path, memory):
    domains = {name: ToolHints(domain="security" if name == "lock_door" else "garden") for name in OFFICE}
    agent, model = build(
        ["Done.", "Done."], allow=ROLES, hints=domains, saver=memory, discovery=Discovery(overview=True)
    )
    for role in "boss", "clerk":
        await ask(path, agent, "send an email", role, thread())
    assert "security" in repr(model.calls[0].schemas)
    assert "security" not in repr(model.calls[1].schemas)


async def test_a_search_goes_by_the_role_of_its_own_moment(path, memory):
    """The model was called in one role, the search that it asked for runs in another."""
    settings = {"allow": ROLES, "hints": HINTS, "saver": memory, **approval(True, DISCOVER)}
    search = calls((DISCOVER, {"query": "lock the front door"}))
    for role, found in ("clerk", False), ("boss", True):
        agent, _ = build([search, "Done."], **settings)
        await ask(path, agent, "send an email", "boss", thread(role))
        result = await ask(path, agent, decide({"type": "approve"}), role, thread(role))
        assert ("lock_door" in answers(result)[0].replace("'lock the front door'", "")) is found
        assert await pins_of(path, agent, thread(role)) == (["lock_door"] if found else [])


async def test_a_search_after_a_restart_goes_by_the_role_of_its_own_moment(path, tmp_path):
    """Then nobody knows any more what the model could have been shown but by asking the rule again."""
    settings = {"allow": ROLES, "hints": HINTS, **approval(True, DISCOVER)}
    for before, after, found in ("boss", "boss", True), ("boss", "clerk", False), ("clerk", "clerk", False):
        name = f"{before} {after}"
        async with open_saver("sqlite", path, tmp_path) as saver:
            agent, _ = build([discover("lock the front door")], saver=saver, **settings)
            await ask(path, agent, "send an email", before, thread(name))
        async with open_saver("sqlite", path, tmp_path) as saver:
            agent, model = build(["Done."], saver=saver, **settings)
            result = await ask(path, agent, decide({"type": "approve"}), after, thread(name))
            assert await pins_of(path, agent, thread(name)) == (["lock_door"] if found else [])
        assert ("lock_door" in answers(result)[0]) is found
        assert ("lock_door" in model.calls[0].tools) is found


async def test_users_of_different_roles_at_once_on_one_instance_see_their_own(memory):
    script = lambda sent: discover("lock the front door") if sent.messages[-1].type == "human" else "Done."  # noqa: E731
    agent, _ = build(script, allow=ROLES, hints=HINTS, saver=memory)
    roles = ["clerk", "boss"] * 12

    async def talk(number: int, role: str) -> list[str]:
        await ask("async", agent, "send an email", role, thread(str(number)))
        return await pins_of("async", agent, thread(str(number)))

    found = await asyncio.gather(*(talk(number, role) for number, role in enumerate(roles)))
    assert [("lock_door" in pins) for pins in found] == [role == "boss" for role in roles]


OWN = {"clerk": "desk", "boss": "vault"}


WORDS = ["".join("bdfgklmnpr"[int(digit)] for digit in f"{7919 * number:07}") for number in range(500)]


@pytest.fixture(scope="module")
def thousand() -> list[BaseTool]:
    """Of each ledger there are two, which no search could tell apart."""
    return [make_tool(f"{place}_{word}", f"Read ledger {word}.") for word in WORDS for place in OWN.values()]


@pytest.mark.slow
async def test_over_a_thousand_tools_two_roles_at_once_find_call_and_keep_their_own_over_a_restart(
    path, thousand, tmp_path
):
    def answer(sent: Any) -> Any:
        first, last = sent.messages[0], sent.messages[-1]
        if last.type == "human":
            return discover(f"read ledger {last.id}") if last is first else call(f"{last.id}_{first.id}")
        if last.name == DISCOVER:
            return calls(*((f"{place}_{first.id}", {}) for place in OWN.values()))
        return "Done."

    users = list(zip(WORDS[::61], ["clerk", "boss"] * 4, strict=False))
    rules = {role: [f"{place}_*"] for role, place in OWN.items()}
    results: list[dict[str, Any]] = []
    for again in False, True:
        async with open_saver("sqlite", path, tmp_path) as saver:
            agent, model = build(answer, tools=thousand, allow=rules, saver=saver)
            lines = [said("Hello.", OWN[role] if again else word) for word, role in users]
            talks = zip(lines, users, strict=True)
            results = await asyncio.gather(
                *(ask(path, agent, line, role, thread(word)) for line, (word, role) in talks)
            )
            pins = [await pins_of(path, agent, thread(word)) for word, _ in users]
        assert pins == [[f"{OWN[role]}_{word}"] for word, role in users]
        assert all(len({name[:4] for name in sent.tools} - {DISCOVER[:4]}) <= 1 for sent in model.calls)
    for (word, role), result in zip(users, results, strict=True):
        own, other = OWN[role], ({*OWN.values()} - {OWN[role]}).pop()
        assert answers(result, f"{own}_{word}") == [f"{own}_{word} did it"] * 2
        (refused,) = answers(result, f"{other}_{word}")
        assert refused.startswith(f"There is no tool named `{other}_{word}`.")
        assert other not in answers(result)[0]


# -- subagents -------------------------------------------------------------------------------------------


def delegating(sent: Any) -> Any:
    last = sent.messages[-1]
    if last.type != "human":
        return "Done."
    if "As was told" in str(last.content):
        return call("lock_door")
    return call("task", description="As was told: lock it.", subagent_type="general-purpose")


def deep(selection: ToolSelectionMiddleware, tools: list[BaseTool], covered: bool) -> Any:
    helper = {
        "name": "general-purpose",
        "description": "Helps.",
        "system_prompt": "Help.",
        "middleware": [selection],
    }
    return pytest.importorskip("deepagents").create_deep_agent(
        ScriptedChatModel(script=delegating),
        tools=tools,
        middleware=[selection],
        subagents=[helper] if covered else [],
        context_schema=dict,
    )


@pytest.mark.parametrize("covered", [True, False])
async def test_a_subagent_is_bound_by_the_rule_only_with_a_middleware_of_its_own(covered, path):
    """deepagents gives its own general-purpose subagent all tools and none of the caller's middleware."""
    tool, ran = noting("lock_door")
    contexts = []

    def allow(tool: Any, runtime: AccessRuntime) -> bool:
        contexts.append(runtime.context)
        return tool.name != "lock_door"

    agent = deep(ToolSelectionMiddleware(top_k=1, allow=allow), office_with(tool), covered)
    await ask(path, agent, "lock the front door", "clerk")
    assert ran == ([] if covered else ["lock_door"])
    assert all(context == {"role": "clerk"} for context in contexts)


# -- byte for byte ---------------------------------------------------------------------------------------
#
# The same conversation is played twice: with refused tools among the registered ones, and without them. All
# that reaches the model, the user, the log and the traces has to be the same. What cannot be is not in here:
#
# - how long it takes: a rule is asked about every tool, and what is refused never gets as far as the tools
#   of inner middleware, which a call of a name that nobody has registered does;
# - `return_direct`: LangChain ends a run behind a call of such a tool, whoever answered it;
# - what stands ahead of this middleware and sees the registered tools: `runtime.tools` in its hooks, and the
#   traces of hooks that wrap this one, unless they leave out their inputs; and which of two tools that have
#   one name LangChain registers;
# - the audit log, whose readers are to know, and that a rule has failed, which is logged without a name.

REFUSED = {
    "delete_database_cluster": "Delete a whole cluster of databases, at once and for good.",
    "send_email_to_everybody": "Send an email message to a recipient, to all recipients.",
    "play_music_by_an_artist": "Play music by an artist.",  # the twin of a tool that is allowed
    "send_email_": "Send an email message to a recipient. Play music by an artist. Lock the front door.",
    "lock_door now!": "No provider takes this name.",
    "everything": " ".join([*OFFICE.values(), "quantum chromodynamics parcel tracking zzz"]),
    "artefact": "Sends emials, plais musik.",  # near what the users misspell
}


def refused_tools() -> list[Any]:
    domains = dict(zip(REFUSED, ["secrets", "office", "", "secrets", "", "", ""], strict=True))
    named = [
        make_tool(name, text, metadata={"domain": domains[name]} if domains[name] else None)
        for name, text in REFUSED.items()
    ]
    schema = {"type": "object", "properties": {"recipient": {"type": "string"}}}
    function = {"name": "raw_secret", "description": "Send an email.", "parameters": schema}
    return [*named, {"type": "function", "function": function}]


class Lending(Offering):
    """Adds a tool to each request, or none, and knows no others."""

    # It wraps this middleware, and its spans would hold the requests as they were before anything was refused.
    trace_policy = TracePolicy(process_inputs=omit_payload)

    def _with_tool(self, request: Any) -> Any:
        lent = self._offered.get(request.tool_call["name"])
        return request if request.tool or not lent else request.override(tool=lent)


HIDDEN_NAMES = {*REFUSED, "raw_secret", "lent_secret"}


def not_hidden(tool: Any, runtime: AccessRuntime) -> bool:
    return name_of(tool) not in HIDDEN_NAMES


def name_of(tool: Any) -> str:
    return tool.name if isinstance(tool, BaseTool) else tool["function"]["name"]


async def awaited_not_hidden(tool: Any, runtime: AccessRuntime) -> bool:
    return not_hidden(tool, runtime)


LINES = [
    "delete the database cluster and send an email to a recipient",
    "send an emial, plai musik and lock the front door",
    "quantum chromodynamics",
    "track a parcel by its number",
]


def numbered(number: int, *wanted: tuple[str, dict[str, Any]]) -> AIMessage:
    """Return an answer that calls tools, with ids that are the same in each conversation."""
    return AIMessage(
        "",
        id=f"answer-{number}",
        tool_calls=[
            {"name": name, "args": arguments, "id": f"call_{number}_{place}", "type": "tool_call"}
            for place, (name, arguments) in enumerate(wanted)
        ],
    )


STEPS: list[list[list[tuple[str, dict[str, Any]]]]] = [
    [
        [(DISCOVER, {"query": "delete a database cluster"})],
        [("delete_database_cluster", {"text": "all"})],
        [(DISCOVER, {"names": ["delete_database_cluster", "play_music", "lent_secret"]})],
        [("no_such_tool", {}), ("send_email", {}), ("everything", {"wrong": 1}), ("lent_secret", {})],
        [("send_email_", {}), ("raw_secret", {}), ("lock_door now!", {})],
    ],
    [
        [(DISCOVER, {"domain": "secrets"}), (DISCOVER, {"query": "play music by an artist"})],
        [(DISCOVER, {"query": "everything"}), (DISCOVER, {"query": "everything"})],
        [("call_tool", {"name": "everything", "arguments": {}}), ("call_tool", {"name": "no_such_tool"})],
    ],
    [[(DISCOVER, {"query": "quantum chromodynamics"})], [("lock_door", {})], [(DISCOVER, {})]],
    [],
]
"""What the model calls at each line: hits, misses, domains, names that are refused and names of nothing."""


def script(turns: Any, first: int = 0) -> Iterator[AIMessage]:
    for turn, batches in enumerate(turns, first):
        for step, batch in enumerate(batches):
            yield numbered(10 * turn + step, *batch)
        yield AIMessage("Done.", id=f"done-{turn}")


VOLATILE = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"  # ids of runs and messages
    r"|\d{8}T\d{12}Z"  # the order of spans
    r"|\d{4}-\d\d-\d\dT[\d:.]+(?:\+00:00|Z)?"
    r"|0x[0-9a-f]+"
    r"|toolu_[0-9a-f]{16}"  # of a staged search, which goes by the id of a message
)


def lasting(value: Any) -> str:
    """Return a value as text, without what is new each time."""
    return VOLATILE.sub("-", value if isinstance(value, str) else json.dumps(value, default=plain))


def plain(value: Any) -> Any:
    return value.model_dump() if isinstance(value, BaseMessage) else repr(value)


class Collecting(logging.Handler):
    """Keeps all that is logged, in the order of the messages' texts: parallel tools log in any order."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name != "langchain_tool_selection.audit":
            self.lines.append(lasting(f"{record.name} {record.levelname} {record.getMessage()}"))


async def transcript(client: Any, exposure: str, path: str, allow: Any, registered: bool) -> dict[str, Any]:
    """Play the conversation and return all that left the agent."""
    secrets = refused_tools() if registered else []
    lent = [make_tool("lent_secret", "Send an email, or delete a cluster.")] if registered else []
    # Among the others, so that order and position would tell.
    tools = [*secrets[:2], *office()[:5], *secrets[2:4], *office()[5:], *secrets[4:]]
    log, wire, logged, rest = StrictLog(), Wire(), Collecting(), script(STEPS)
    agent = agent_on(
        client,
        lambda sent: next(rest),
        log,
        exposure,
        tools=tools,
        outer=[Lending(lambda request: lent)],
        allow=allow,
        audit=True,
        always_include=["water_plants", "everything"],
        hints={"lock_door": ToolHints(domain="house")},
        discovery=Discovery(overview=True, max_discoveries=5),
    )
    tracer = Client(
        api_url="http://localhost:9", api_key="none", session=wire, auto_batch_tracing=False, info={}
    )
    streamed: list[Any] = []
    modes = ["updates", "messages", "custom", "values"]
    root = logging.getLogger()
    level = root.level
    root.addHandler(logged)
    root.setLevel(logging.DEBUG)
    try:
        with tracing_context(enabled=True, client=tracer, project_name="test"):
            for number, line in enumerate(LINES):
                streamed += await say(path, agent, said(line, f"line-{number}"), mode=modes)  # type: ignore[arg-type]
    finally:
        root.removeHandler(logged)
        root.setLevel(level)
    spans = [
        {key: value for key, value in span.items() if key not in ("size", "dotted_order", "extra")}
        | {"metadata": (span.get("extra") or {}).get("metadata")}
        for span in wire.runs.values()
    ]
    assert len(spans) > 30
    return {
        "model": [lasting(payload) for payload in log.payloads],
        "values": [lasting(part) for mode, part in streamed if mode == "values"],
        # Parallel calls stream in the order in which they end.
        "user": sorted(lasting([mode, part]) for mode, part in streamed if mode != "values"),
        "state": lasting(dict((await agent.aget_state(thread())).values)),
        "log": sorted(line for line in logged.lines if line.startswith("langchain_tool_selection")),
        "trace": sorted(map(lasting, spans)),
    }


PLAYED = [
    (tool_addition, "append", "sync"),
    (tool_addition, "append", "async"),
    (tool_reference, "append", "async"),
    (additional_tools, "append", "sync"),
    (chat_completions, "grow", "async"),
    (chat_completions, "per_turn", "sync"),
    (chat_completions, "proxy", "async"),
    (tool_addition, "proxy", "sync"),
    (chat_completions, "stubs", "sync"),
    (tool_addition, "stubs", "async"),
]
"""Each exposure on the clients that have it, each on one of the two paths, which differ in who awaits only."""


def named(value: Any) -> str:
    return getattr(value, "__name__", value)


@pytest.mark.parametrize(("client", "exposure", "path"), PLAYED, ids=named)
@pytest.mark.slow
async def test_what_is_refused_leaves_no_trace_in_any_byte(client, exposure, path):
    allow = not_hidden if path == "sync" else awaited_not_hidden
    there = await transcript(client, exposure, path, allow, registered=True)
    gone = await transcript(client, exposure, path, allow, registered=False)
    assert len(there["model"]) == sum(map(len, STEPS)) + len(STEPS)
    for kind, seen in there.items():
        assert seen == gone[kind], kind
    # The twin of what is played is a conversation in which something happened.
    assert any("Found" in line for line in there["user"])
    assert any("There is no tool named `delete_database_cluster`." in line for line in there["user"])
    assert not any(text in repr(there) for text in REFUSED.values() if text not in OFFICE.values())


# What a role may use in the middle of a thread is taken away twice: by the rule, and by registering it no more.

BEFORE: list[list[list[tuple[str, dict[str, Any]]]]] = [
    [
        [(DISCOVER, {"names": ["everything", "artefact"]})],
        [("everything", {}), (DISCOVER, {"query": "delete a database cluster"})],
        [("delete_database_cluster", {})],
    ],
    [[("artefact", {})], [(DISCOVER, {"domain": "secrets"})]],
]
"""What the model calls while all is allowed: it sees, finds, pins and uses what is refused later."""


async def transcript_since(client: Any, exposure: str, path: str, taken_away_by: str) -> dict[str, Any]:
    """Play a conversation in which tools go, and return what left the agent since."""
    is_boss, log, saver = True, StrictLog(), InMemorySaver()

    def allow(tool: Any, runtime: AccessRuntime) -> bool:
        return is_boss or not_hidden(tool, runtime)

    async def awaited(tool: Any, runtime: AccessRuntime) -> bool:
        return allow(tool, runtime)

    def agent_of(tools: list[Any], batches: Any, number: int) -> Any:
        rest = script(batches, number)
        return agent_on(
            client,
            lambda sent: next(rest),
            log,
            exposure,
            tools=tools,
            saver=saver,
            allow=allow if path == "sync" else awaited,
            always_include=["water_plants", "everything"],
            max_pins=3,
            discovery=Discovery(overview=True),
        )

    # One of them nobody may use, because no provider takes its name.
    secrets = [tool for tool in refused_tools() if name_of(tool) != "lock_door now!"]
    agent = agent_of([*secrets[:2], *office(), *secrets[2:]], BEFORE, 10)
    for number in range(len(BEFORE)):
        await say(path, agent, said(LINES[number], f"before-{number}"))
    before = len(log.payloads)
    assert "delete_database_cluster did it" in lasting(log.payloads[-1])

    is_boss = False
    tools = [*secrets[:2], *office(), *secrets[2:]] if taken_away_by == "rule" else office()
    agent = agent_of(tools, STEPS, 20)
    events = []
    for number, line in enumerate(LINES):
        events += await say(path, agent, said(line, f"line-{number}"))
    return {
        "model": [lasting(payload) for payload in log.payloads[before:]],
        "events": sorted(map(lasting, events)),
        "state": lasting(dict((await agent.aget_state(thread())).values)),
    }


@pytest.mark.parametrize(("client", "exposure", "path"), PLAYED, ids=named)
@pytest.mark.slow
async def test_what_is_refused_from_now_on_is_as_if_it_were_gone_from_now_on(client, exposure, path):
    refused = await transcript_since(client, exposure, path, "rule")
    gone = await transcript_since(client, exposure, path, "nobody")
    assert len(refused["model"]) == sum(map(len, STEPS)) + len(STEPS)
    for kind, seen in refused.items():
        assert seen == gone[kind], kind
