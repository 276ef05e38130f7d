"""One instance, many threads and agents: nobody sees what belongs to another."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_tool_selection import ToolSelectionMiddleware
from langchain_tool_selection.testing import ScriptedChatModel

from .agents import OFFICE, Offering, answers, build, discover, make_tools, office, pins, thread, user

pytestmark = pytest.mark.slow

NAMES = list(OFFICE)


def finding_what_the_user_names(sent_call: Any) -> Any:
    last = sent_call.messages[-1]
    return discover(names=[last.content.split()[-1]]) if isinstance(last, HumanMessage) else "Done."


def test_two_threads_that_take_turns_keep_their_own_pins(memory):
    agent, model = build(finding_what_the_user_names, saver=memory, top_k=0)
    wanted = {"ada": ["play_music", "order_pizza"], "bob": ["lock_door", "book_flight"]}
    for turn in range(2):
        for name, tools in wanted.items():
            agent.invoke(user(f"I want {tools[turn]}"), thread(name))
            other = {"ada": "bob", "bob": "ada"}[name]
            assert not set(model.calls[-1].tools) & set(wanted[other])
    assert {name: pins(agent, thread(name)) for name in wanted} == wanted


def test_eight_threads_at_once_on_one_instance_keep_their_own_pins(memory):
    agent, _ = build(finding_what_the_user_names, saver=memory, top_k=0)

    def talk(number: int) -> list[str]:
        for offset in range(3):
            agent.invoke(user(f"I want {NAMES[(number + offset) % 12]}"), thread(str(number)))
        return pins(agent, thread(str(number)))

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(talk, range(8)))
    assert found == [[NAMES[(number + offset) % 12] for offset in range(3)] for number in range(8)]


async def test_gathered_runs_on_one_instance_keep_their_own_pins(memory):
    agent, _ = build(finding_what_the_user_names, saver=memory, top_k=0)

    async def talk(number: int) -> list[str]:
        for offset in range(3):
            await agent.ainvoke(user(f"I want {NAMES[(number + offset) % 12]}"), thread(str(number)))
        return (await agent.aget_state(thread(str(number)))).values["tool_selection_pinned"]

    found = await asyncio.gather(*map(talk, range(8)))
    assert found == [[NAMES[(number + offset) % 12] for offset in range(3)] for number in range(8)]


def test_one_instance_in_two_agents_reads_same_named_tools_of_each_on_their_own():
    selection = ToolSelectionMiddleware(top_k=1)
    texts = {"weather": "Forecast rain for a city.", "stocks": "Shares of a listed company."}
    agents = {}
    for name, text in texts.items():
        tools = [*make_tools({"lookup": text}), *office()]
        model = ScriptedChatModel(script=finding_rain)
        agents[name] = create_agent(model, tools, middleware=[selection], checkpointer=InMemorySaver()), model

    def talk(name: str, round_: int) -> list[str]:
        agent, _ = agents[name]
        config = thread(f"{name}-{round_}")
        result = agent.invoke(user("will there be rain?"), config)
        first = answers(result)[0]
        assert ("lookup" in first) == (name == "weather"), first
        return pins(agent, config)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(talk, ["weather", "stocks"] * 6, range(12)))
    shown = {name: {tuple(c.tools) for c in model.calls} for name, (_, model) in agents.items()}
    assert shown == {"weather": {("discover_tools", "lookup")}, "stocks": {("discover_tools",)}}


def finding_rain(sent_call: Any) -> Any:
    return discover("rain") if isinstance(sent_call.messages[-1], HumanMessage) else "Done."


def test_one_instance_in_two_agents_keeps_their_pins_apart():
    selection = ToolSelectionMiddleware(top_k=1)
    first, _ = build([discover("music"), "Done."], selection=selection, saver=InMemorySaver())
    second, second_model = build(["Done."], selection=selection, saver=InMemorySaver())
    first.invoke(user("send an email"), thread())
    second.invoke(user("send an email"), thread())
    assert pins(first, thread()) == ["play_music"]
    assert pins(second, thread()) == []
    assert second_model.calls[0].tools == ["discover_tools", "send_email"]


async def test_a_hundred_users_at_once_each_with_tools_of_their_own_find_theirs(memory):
    def of_this_user(request: Any) -> Any:
        number = len(request.messages[0].content)
        return make_tools({f"own_{number}": f"Reads the diary of user{number}."})

    agent, _ = build(finding_the_diary, saver=memory, outer=[Offering(of_this_user)])

    async def talk(number: int) -> list[str]:
        # No words, so that the tool is not in sight before it is searched for.
        await agent.ainvoke(user("?" * number), thread(str(number)))
        return (await agent.aget_state(thread(str(number)))).values["tool_selection_pinned"]

    found = await asyncio.gather(*map(talk, range(1, 101)))
    assert found == [[f"own_{number}"] for number in range(1, 101)]


def finding_the_diary(sent_call: Any) -> Any:
    return discover("read the diary") if isinstance(sent_call.messages[-1], HumanMessage) else "Done."
