"""What is in the request that reaches the model: which tools, in which order, and whose objects."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.tools import BaseTool

from langchain_tool_selection import Discovery
from langchain_tool_selection.testing import call, calls

from .agents import (
    DISCOVER,
    OFFICE,
    Rewriting,
    Watching,
    answers,
    build,
    discover,
    make_tool,
    make_tools,
    office,
    run,
    sent,
    thread,
    user,
)


def as_bytes(sent_call: Any) -> bytes:
    return json.dumps(sent_call.schemas).encode()


# -- order and bytes -------------------------------------------------------------------------------------


async def test_the_tools_are_the_same_bytes_on_every_call_of_a_turn(path):
    steps = [call("book_flight"), call("order_pizza"), calls(("book_flight", {}), ("order_pizza", {}))]
    agent, model = build([*steps, "Done."], top_k=3)
    await run(path, agent, user("book a flight and order a pizza"))
    assert len(model.calls) == 4
    assert len({as_bytes(c) for c in model.calls}) == 1


async def test_what_was_sent_is_the_beginning_of_what_is_sent_after_a_discovery(path, memory):
    steps = [discover("send an email"), call("book_flight"), discover("plants in the garden"), "Done."]
    agent, model = build(steps, saver=memory, top_k=2)
    await run(path, agent, user("book a flight and order a pizza"), thread())
    lists = [c.schemas for c in model.calls]
    for before, after in pairwise(lists):
        assert after[: len(before)] == before
    # In the order they came, not that of registration, where the email tool is the first.
    assert model.calls[-1].tools == [DISCOVER, "book_flight", "order_pizza", "send_email", "water_plants"]


def test_tools_come_in_the_order_of_registration_however_they_rank(memory):
    agent, model = build(["Done."], saver=memory, top_k=3)
    agent.invoke(user("lock the front door of the house, order pizza, email"), thread())
    agent.invoke(user("email, order pizza, lock the front door of the house"), thread("other"))
    assert sent(model) == [["send_email", "order_pizza", "lock_door"]] * 2


def test_pins_come_last_in_the_order_they_came_on_a_later_turn(memory):
    agent, model = build(
        [discover("plants"), discover("send an email"), "Done.", "Done."], saver=memory, keep_used=0
    )
    agent.invoke(user("play music"), thread())
    agent.invoke(user("lock the door"), thread())
    assert sent(model)[-1] == ["lock_door", "water_plants", "send_email"]


def test_turns_on_one_topic_are_sent_the_same_bytes(memory):
    agent, model = build(["Done."], saver=memory, top_k=2)
    for text in ("book a flight and convert currency", "yes", "do it", "and in Berlin?", "go on", "ok"):
        agent.invoke(user(text), thread())
    assert len({as_bytes(c) for c in model.calls}) == 1


# -- tool_choice -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "choice",
    [
        "lock_door",
        {"type": "function", "function": {"name": "lock_door"}},
        {"type": "tool", "name": "lock_door"},
        {"type": "function", "name": "lock_door"},
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "lock_door"}]},
    ],
)
async def test_the_tool_that_tool_choice_names_is_never_hidden(choice, path):
    forcing = Rewriting(lambda request: request.override(tool_choice=choice))
    agent, model = build(["Done."], outer=[forcing])
    await run(path, agent, user("send an email"))
    assert sent(model) == [["send_email", "lock_door"]]
    assert model.calls[0].tool_choice == choice


@pytest.mark.parametrize(
    "choice", ["auto", "any", "none", "required", {"type": "any"}, {"type": "auto"}, None]
)
async def test_a_tool_choice_without_a_name_changes_nothing(choice, path):
    forcing = Rewriting(lambda request: request.override(tool_choice=choice))
    agent, model = build(["Done."], outer=[forcing])
    await run(path, agent, user("send an email"))
    assert sent(model) == [["send_email"]]
    assert model.calls[0].tool_choice == choice


# -- tools that are dicts --------------------------------------------------------------------------------

PROVIDER_TOOLS: list[dict[str, Any]] = [
    {"type": "web_search_preview"},
    {"type": "web_search_20250305", "name": "web_search"},
    {"type": "mcp", "server_label": "one", "server_url": "https://one.example"},
    {"type": "mcp", "server_label": "two", "server_url": "https://two.example"},
    {"google_search": {}},
    {"type": "tool_search"},
    {"type": "function", "function": {"name": "own_function", "description": "x", "parameters": {}}},
]


async def test_provider_tools_are_all_sent_whole(path):
    agent, model = build(["Done."], tools=[*office(), *PROVIDER_TOOLS])
    await run(path, agent, user("send an email"))
    schemas = model.calls[0].schemas
    assert [s for s in schemas if s in PROVIDER_TOOLS[:-1]] == PROVIDER_TOOLS[:-1]
    assert model.calls[0].tools[:2] == [DISCOVER, "send_email"]
    assert model.calls[0].tools[-1] == "own_function"


async def test_provider_tools_keep_their_place_between_the_others(path):
    def mix(request: Any) -> Any:
        first, second, third = PROVIDER_TOOLS[:3]
        tools = request.tools
        return request.override(tools=[first, *tools[:4], second, *tools[4:], third])

    agent, model = build(["Done."], outer=[Rewriting(mix)], top_k=2)
    await run(path, agent, user("create an invoice for the customer and lock the front door"))
    assert model.calls[0].tools == [
        "web_search_preview",
        DISCOVER,
        "create_invoice",
        "web_search",
        "lock_door",
        "mcp",
    ]


def test_provider_tools_do_not_count_as_tools_to_choose_from():
    agent, model = build(["Done."], tools=[*office()[:2], *PROVIDER_TOOLS], top_k=2)
    agent.invoke(user("hello"))
    assert model.calls[0].tools[:2] == ["send_email", "create_invoice"]
    assert len(model.calls[0].tools) == 2 + len(PROVIDER_TOOLS)


# -- duplicates and clashes ------------------------------------------------------------------------------


@pytest.mark.parametrize("top_k", [1, 99])
async def test_of_two_tools_with_one_name_one_is_sent_and_it_is_said_once(top_k, path, caplog):
    twin = {
        "type": "function",
        "function": {"name": "send_email", "description": "Another.", "parameters": {}},
    }
    agent, model = build(["Done."], tools=[*office(), twin], top_k=top_k)
    for _ in range(2):
        await run(path, agent, user("send an email"))
    for sent_call in model.calls:
        assert sent_call.tools.count("send_email") == 1
        (schema,) = [s for s in sent_call.schemas if s["function"]["name"] == "send_email"]
        assert schema["function"]["description"] == OFFICE["send_email"]
    warnings = [r for r in caplog.records if r.levelname == "WARNING" and "send_email" in r.getMessage()]
    assert len(warnings) == 1


async def test_two_registered_tools_with_one_name_are_sent_once(path):
    twins = [*office(), make_tool("send_email", "Send a fax.", "fax")]
    agent, model = build([call("send_email"), "Done."], tools=twins)
    result = await run(path, agent, user("send an email or a fax"))
    assert model.calls[0].tools.count("send_email") == 1
    sent_text = model.calls[0].schemas[1]["function"]["description"]
    # What is shown is what runs.
    assert answers(result, "send_email") == ["fax" if sent_text == "Send a fax." else "send_email did it"]


@pytest.mark.parametrize("top_k", [1, 99])
async def test_a_tool_of_the_users_named_like_ours_is_a_clear_error(top_k, path):
    agent, _ = build(["Done."], tools=[*office(), make_tool(DISCOVER, "Mine.")], top_k=top_k)
    with pytest.raises(ValueError, match=r"discover_tools.*rename.*Discovery\(name="):
        await run(path, agent, user("send an email"))


async def test_the_search_tool_goes_by_the_name_and_description_it_was_given(path, memory):
    agent, model = build(
        [call("find_tools", query="music"), call(DISCOVER), "Done."],
        tools=[*office(), make_tool(DISCOVER, "Mine.", "mine")],
        saver=memory,
        discovery=Discovery(name="find_tools", description="Look for more tools."),
    )
    result = await run(path, agent, user("send an email"), thread())
    assert [c.tools[0] for c in model.calls] == ["find_tools"] * 3
    assert model.calls[0].schemas[0]["function"]["description"] == "Look for more tools."
    assert "play_music" in answers(result, "find_tools")[0]
    assert answers(result) == ["mine"]
    assert "play_music" in model.calls[1].tools


# -- how many --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 11, 12])
async def test_with_nothing_to_hide_the_request_is_as_without_us(count, path):
    before, after = Watching("before"), Watching("after")
    settings = {"outer": [before], "inner": [after], "top_k": 12}
    agent, _ = build(["Done."], tools=office()[:count], discovery=None, **settings)
    await run(path, agent, user("hello"))
    assert after.requests[0] is before.requests[0]
    # The search tool is in each request that the framework makes. It has nothing to find here.
    agent, model = build(["Done."], tools=office()[:count], **settings)
    await run(path, agent, user("hello"))
    assert model.calls[0].tools == list(OFFICE)[:count]
    assert after.requests[1].tools == before.requests[1].tools[1:]


def test_with_one_tool_more_than_top_k_one_is_hidden():
    agent, model = build(["Done."], top_k=11, on_no_match="fill")
    agent.invoke(user("hello"))
    assert sent(model) == [list(OFFICE)[:11]]


def test_tools_that_always_stay_take_no_place_of_the_others(memory):
    core = ["send_email", "lock_door", "play_music"]
    agent, model = build(["Done."], always_include=core, top_k=2)
    agent.invoke(user("book a flight, order a pizza and water the plants; play music; send an email"))
    shown = sent(model)[0]
    assert set(core) <= set(shown)
    assert len(set(shown) - set(core)) == 2
    assert [name for name in OFFICE if name in shown] == shown


def test_a_list_below_activate_above_passes_through():
    agent, model = build(["Done."], top_k=2, activate_above=12)
    agent.invoke(user("hello"))
    assert sent(model) == [list(OFFICE)]
    agent, model = build(["Done."], top_k=2, activate_above=11)
    agent.invoke(user("send an email"))
    assert sent(model) == [["send_email"]]


@pytest.mark.parametrize("top_k", [0, 1, 3])
@pytest.mark.parametrize("on_no_match", ["previous", "fill"])
async def test_the_list_is_never_empty_while_there_are_tools(top_k, on_no_match, path):
    agent, model = build(["Done."], top_k=top_k, on_no_match=on_no_match, discovery=None)
    await run(path, agent, user("hello"))
    assert 1 <= len(model.calls[0].tools) <= max(1, top_k)


async def test_an_agent_without_tools_still_runs(path):
    agent, model = build(["Done."], tools=[])
    result = await run(path, agent, user("hello"))
    assert result["messages"][-1].content == "Done."
    assert len(model.calls) == 1


async def test_a_missing_core_tool_is_said_once_and_the_run_goes_on(path, caplog):
    agent, model = build(["Done."], always_include=["lock_door", "no_such_tool"])
    for _ in range(3):
        await run(path, agent, user("send an email"))
    assert sent(model) == [["send_email", "lock_door"]] * 3
    assert len([r for r in caplog.records if "no_such_tool" in r.getMessage()]) == 1


# -- whose objects ---------------------------------------------------------------------------------------


async def test_the_tools_bound_are_the_objects_that_came_marks_and_all(path):
    def mark(request: Any) -> Any:
        tools = [
            t.model_copy(update={"extras": {"cache_control": {"type": "ephemeral"}}})
            if isinstance(t, BaseTool)
            else t
            for t in request.tools
        ]
        return request.override(tools=tools)

    before, after = Watching("before"), Watching("after")
    agent, _ = build([discover("music"), "Done."], outer=[Rewriting(mark), before], inner=[after], top_k=2)
    await run(path, agent, user("send an email"))
    for came, went in zip(before.requests, after.requests, strict=True):
        ids = {id(tool) for tool in came.tools}
        assert all(id(tool) in ids for tool in went.tools)
        assert all(tool.extras["cache_control"] for tool in went.tools)
    assert [t.name for t in after.requests[1].tools] == [DISCOVER, "send_email", "play_music"]


async def test_neither_the_requests_list_nor_a_tool_is_changed(path, memory):
    watching = Watching()
    tools = make_tools(OFFICE)
    dumped = [repr(tool) for tool in tools]
    agent, _ = build(
        [discover("music"), call("play_music"), "Done."], tools=tools, outer=[watching], saver=memory
    )
    await run(path, agent, user("send an email"), thread())
    names = [DISCOVER, *OFFICE]
    assert [[t.name for t in request.tools] for request in watching.requests] == [names] * 3
    assert [id(t) for t in watching.requests[0].tools[1:]] == [id(t) for t in tools]
    assert [repr(tool) for tool in tools] == dumped


async def test_only_the_tools_of_the_request_are_changed(path):
    before, after = Watching("before"), Watching("after")
    agent, _ = build(["Done."], outer=[before], inner=[after])
    await run(path, agent, user("send an email"))
    came, went = before.requests[0], after.requests[0]
    for field in ("model", "messages", "system_message", "tool_choice", "response_format", "model_settings"):
        assert getattr(came, field) is getattr(went, field)
