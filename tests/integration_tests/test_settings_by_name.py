"""Names and patterns mean the same in every setting, and one that matches nothing is said once."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from langchain.agents import AgentState
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver

from langchain_tool_selection import Access, ToolHints, ToolSelectionMiddleware, fingerprint_of
from langchain_tool_selection.testing import calls

from .agents import build, discover, make_tool, run, sent, state_of, thread, user


def crm() -> list[BaseTool]:
    return [
        make_tool("git_log", "Show commits."),
        make_tool("git_diff", "Show changes."),
        make_tool("find_deal", "Find a deal.", metadata={"domain": "crm"}),
        make_tool("pay_bill", "Pay a bill.", tags=["money"]),
        make_tool("send_email", "Send an email."),
    ]


@pytest.mark.parametrize(
    ("pattern", "kept"),
    [
        ("git_log", ["git_log"]),
        ("git_*", ["git_log", "git_diff"]),
        ("*_?il*", ["pay_bill"]),
        ("domain:crm", ["find_deal"]),
        ("domain:c*", ["find_deal"]),
        ("tag:money", ["pay_bill"]),
    ],
)
async def test_always_include_takes_what_a_role_takes(pattern, kept, path):
    core, model = build(["Done."], tools=crm(), always_include=[pattern], discovery=None)
    await run(path, core, user("send an email"))
    assert sent(model) == [[*kept, "send_email"]]
    agent, model = build(["Done."], tools=crm(), allow={"guest": [pattern]}, top_k=99)
    agent.invoke(user("send an email"), context={"role": "guest"})
    assert sent(model) == [kept]


def test_a_hint_may_bring_the_tag_that_a_pattern_is_about():
    hints = {"git_log": ToolHints(tags=["core"])}
    agent, model = build(["Done."], tools=crm(), always_include=["tag:core"], hints=hints, discovery=None)
    agent.invoke(user("send an email"))
    assert sent(model) == [["git_log", "send_email"]]


@pytest.mark.parametrize(
    ("settings", "culprit"),
    [
        ({"always_include": ["git_lgo"]}, "always_include names 'git_lgo'"),
        ({"always_include": ["gti_*"]}, "always_include names 'gti_*'"),
        ({"hints": {"git_lgo": ToolHints(tags=["history"])}}, "hints names 'git_lgo'"),
        ({"allow": {"guest": ["git_*", "domain:cmr"]}}, "allow['guest'] names 'domain:cmr'"),
        ({"access": Access(fingerprints={"git_lgo": "0"})}, "fingerprints= names 'git_lgo'"),
        ({"domains": lambda state, runtime: ["crm", "cmr"]}, "domains= names 'cmr'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_name_that_matches_nothing_is_said_once_with_what_is_known(settings, culprit, caplog):
    agent, _ = build(["Done.", "Done."], tools=crm(), **settings)
    for _ in range(2):
        agent.invoke(user("send an email"), context={"role": "guest"})
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [text for text in warnings if text.startswith(culprit)] == warnings[:1]
    known = "crm" if culprit.startswith("domains") else "git_diff"
    assert known in warnings[0]


def test_names_that_match_are_not_spoken_of(caplog):
    tools = crm()
    agent, _ = build(
        ["Done."],
        tools=tools,
        always_include=["git_*", "domain:crm"],
        hints={"git_log": ToolHints(tags=["core"])},
        allow={"guest": ["*"], "admin": ["no_such_tool"]},
        domains=lambda state, runtime: ["crm", ""],
        access=Access(fingerprints={"git_log": fingerprint_of(tools[0])}),
    )
    agent.invoke(user("send an email"), context={"role": "guest"})
    assert [record for record in caplog.records if record.levelno == logging.WARNING] == []


class TestAStateSchemaOfTheCallers:
    class WithoutReducer(AgentState[Any]):
        tool_selection_pinned: list[str]

    class Other(AgentState[Any]):
        tenant: str

    async def test_that_declares_the_pins_again_is_an_error_that_says_what_to_do(self, path):
        script = [
            calls(("discover_tools", {"query": "a deal"}), ("discover_tools", {"query": "a bill"})),
            "Done.",
        ]
        settings = {"state_schema": self.WithoutReducer}
        agent, _ = build(script, tools=crm(), saver=InMemorySaver(), agent_settings=settings)
        with pytest.raises(ValueError, match=r"state_schema declares 'tool_selection_pinned'.*Leave it out"):
            await run(path, agent, user("send an email"), thread())

    async def test_with_keys_of_its_own_changes_nothing(self, path):
        saver = InMemorySaver()
        agent, _ = build(
            [discover("find a deal"), "Done."],
            tools=crm(),
            saver=saver,
            agent_settings={"state_schema": self.Other},
        )
        await run(path, agent, {**user("send an email"), "tenant": "acme"}, thread())
        state = await state_of(path, agent, thread())
        assert state["tool_selection_pinned"] == ["find_deal"]
        assert state["tenant"] == "acme"


def reasons(agent: Any, text: str) -> list[dict[str, Any]]:
    events = agent.stream(user(text), thread(), stream_mode="custom")
    return [event["shown"] for event in events if event["type"] == "tool_selection"]


def test_a_tool_keeps_why_and_since_when_it_is_shown():
    agent, _ = build(
        [discover("find a deal"), "Found.", "Done."], tools=crm(), saver=InMemorySaver(), exposure="grow"
    )
    first, second = reasons(agent, "send an email")
    (third,) = reasons(agent, "and what about it?")
    email = first["send_email"]
    assert (email["kind"], email["rank"], email["turn"]) == ("rank", 1, 1)
    assert email["score"] > 0
    assert second["send_email"] == third["send_email"] == email
    assert second["find_deal"] == third["find_deal"] == {"kind": "pinned", "turn": 1}
    assert third["discover_tools"] == {"kind": "discovery", "turn": 1}


def test_the_record_says_which_definition_a_thread_was_sent_and_a_changed_one_is_a_changed_array():
    saver, tools = InMemorySaver(), crm()
    agent, _ = build(["Done."], tools=tools, saver=saver, exposure="grow")
    agent.invoke(user("send an email"), thread())
    sent_of = agent.get_state(thread()).values["tool_selection_thread"]["definitions"]
    assert sorted(sent_of) == ["discover_tools", "send_email"]
    edited = [*tools[:4], make_tool("send_email", "Send an email, or a letter.")]
    later, _ = build(["Done."], tools=edited, saver=saver, exposure="grow")
    (event,) = [
        one for one in later.stream(user("and again"), thread(), stream_mode="custom") if "changed" in one
    ]
    assert event["changed"] is True
    assert event["why"] == "another definition of send_email"
    now = later.get_state(thread()).values["tool_selection_thread"]["definitions"]
    assert now["send_email"] != sent_of["send_email"]
    assert now["discover_tools"] == sent_of["discover_tools"]


def test_bad_patterns_are_errors_in_the_constructor():
    with pytest.raises(TypeError, match="always_include takes a collection of tool names, got the string"):
        ToolSelectionMiddleware(always_include="git_*")
