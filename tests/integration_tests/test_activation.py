"""When a catalogue is small enough to be sent whole."""

from __future__ import annotations

import logging

import pytest
from grouped import grouped
from langchain.agents import create_agent
from langchain_core.messages.utils import count_tokens_approximately
from langchain_openai import ChatOpenAI

from langchain_tool_selection import Thread, Tokens, ToolIndex, ToolSelectionMiddleware
from langchain_tool_selection.testing import PayloadLog, call, schema_of, scripted_client

from .agents import build, office, run, user

TOOLS = len(office())


def caching_client(log: PayloadLog):
    return scripted_client(ChatOpenAI(model="gpt-5.5", api_key="none"), ["Done."], log)


def sent_to(client_of, **settings) -> int:
    log = PayloadLog()
    agent = create_agent(
        client_of(log), office(), middleware=[ToolSelectionMiddleware(top_k=2, **grouped(**settings))]
    )
    agent.invoke(user("send an email"))
    return len(log.payloads[0]["tools"])


@pytest.mark.parametrize(
    ("above", "is_whole"),
    [
        (None, False),
        (TOOLS - 1, False),
        (TOOLS, True),
        (Tokens(0), False),
        (Tokens(100), False),
        (Tokens(10_000), True),
        ("break_even", False),  # a model that nobody publishes prices of: nothing to compare with
    ],
    ids=str,
)
async def test_up_to_a_number_of_tools_or_tokens_everything_is_sent(path, above, is_whole):
    agent, model = build(["Done."], top_k=2, activate_above=above)
    await run(path, agent, user("send an email"))
    assert model.calls[0].tools == (
        [tool.name for tool in office()] if is_whole else ["discover_tools", "send_email"]
    )


@pytest.mark.parametrize(("above", "tools"), [("break_even", TOOLS), (None, 2)], ids=str)
def test_below_the_break_even_of_a_priced_model_everything_is_sent(above, tools):
    assert sent_to(caching_client, activate_above=above) == tools


def test_what_sending_everything_would_cost_is_said_once(caplog):
    caplog.set_level(logging.INFO, "langchain_tool_selection")
    log = PayloadLog()
    agent = create_agent(caching_client(log), office(), middleware=[ToolSelectionMiddleware(top_k=2)])
    for _ in range(3):
        agent.invoke(user("send an email"))
    (line,) = [record.getMessage() for record in caplog.records if "break_even" in record.getMessage()]
    assert line.startswith(f"{TOOLS} tools of about ")
    assert "exposure='grow' pays from" in line
    assert "openai:gpt-5.5" in line


def test_nothing_is_said_of_a_model_without_prices(caplog):
    caplog.set_level(logging.INFO, "langchain_tool_selection")
    agent, _ = build(["Done."], top_k=2)
    agent.invoke(user("send an email"))
    assert not caplog.records


@pytest.mark.parametrize(
    ("above", "error", "says"),
    [
        (1, ValueError, "activate_above must be top_k=2 or more, got 1"),
        ("always", ValueError, r"Tokens\(\.\.\.\), 'break_even' or None, got 'always'"),
        (2.5, TypeError, "activate_above must be an integer"),
    ],
)
def test_a_threshold_that_is_none_is_refused(above, error, says):
    with pytest.raises(error, match=says):
        ToolSelectionMiddleware(top_k=2, thread=Thread(activate_above=above))


@pytest.mark.parametrize("count", [-1, 1.5, "many"])
def test_tokens_are_a_count(count):
    with pytest.raises((TypeError, ValueError), match=r"Tokens\.count"):
        Tokens(count)


def test_tokens_told_from_documents_are_about_those_of_the_schemas():
    counted = count_tokens_approximately([], tools=[schema_of(tool) for tool in office()])
    assert ToolIndex(None).sync(office()).tokens == pytest.approx(counted, rel=0.3)


async def test_a_thread_that_was_sent_everything_goes_on_when_tools_are_hidden(path, memory):
    script = [call("play_music"), "It plays.", "Done."]
    agent, model = build(script, top_k=2, activate_above=TOOLS, saver=memory)
    config = {"configurable": {"thread_id": "1"}}
    await run(path, agent, user("play music"), config)
    again, model = build(["Done."], top_k=2, saver=memory)
    await run(path, again, user("send an email"), config)
    assert {"discover_tools", "send_email", "play_music"} <= set(model.calls[0].tools)
    assert len(model.calls[0].tools) < TOOLS
