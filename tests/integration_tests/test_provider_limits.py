"""What a provider does not take is left out for it: no request fails because of a tool that it had no need of."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
from langchain.agents.middleware import wrap_model_call
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel, ConfigDict, RootModel

from langchain_tool_selection import ByModel, ModelFacts, ToolSelectionMiddleware
from langchain_tool_selection.testing import PayloadLog

from .agents import DISCOVER, discover, make_tool, thread
from .exposures import (
    CLIENTS,
    additional_tools,
    agent_on,
    chat_completions,
    claude,
    said,
    say,
    searching,
    tool_addition,
    tool_reference,
)

ROOT = {"type": "object", "properties": {"id": {"type": "string"}}, "allOf": [{"required": ["id"]}]}
ODD = {"weigh.gold": "Weigh gold on the scale.", "w" * 70: "Weigh silver on the scale."}


def names_sent(payload: dict[str, Any]) -> set[str]:
    return set(re.findall(r"'name': '([^']+)'", str(payload)))


def many(count: int) -> list[BaseTool]:
    return [make_tool(f"tool_{number}", f"Handle thing{number}.") for number in range(count)]


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_name_that_the_provider_refuses_is_never_sent(client, path, caplog):
    log = PayloadLog()
    script = [discover("weigh gold"), discover("weigh silver"), "Done.", "Done."]
    tools = [*many(5), *(make_tool(name, text) for name, text in ODD.items())]
    agent = agent_on(client, script, log, tools=tools)
    config = thread()
    for text in ("handle thing1", "weigh some gold"):
        await say(path, agent, text, config)
    longest = 128 if client in (tool_addition, tool_reference) else 64
    refused = {name for name in ODD if not re.fullmatch(rf"[a-zA-Z0-9_-]{{1,{longest}}}", name)}
    assert refused
    for payload in log.payloads:
        assert not refused & names_sent(payload)
    state = (await agent.aget_state(config)).values
    assert not refused & {*state["tool_selection_pinned"]}
    answers = [message.text for message in state["messages"] if isinstance(message, ToolMessage)]
    assert "`weigh.gold` cannot be used with this model" in answers[0]
    assert sum("'weigh.gold' is left out" in line for line in caplog.messages) == 1


@pytest.mark.parametrize("client", CLIENTS)
def test_a_schema_that_the_provider_refuses_at_its_root_is_never_sent(client):
    class Forms(RootModel[dict[str, str] | list[str]]):
        pass

    forms = make_tool("forms", "Fill in forms.", args_schema=ROOT)
    listed = make_tool("listed_forms", "List forms.", args_schema=Forms)
    log = PayloadLog()
    agent = agent_on(client, [searching("forms"), "Done."], log, tools=[*many(5), forms, listed])
    agent.invoke(said("handle thing1"), thread())
    for payload in log.payloads:
        assert not {"forms", "listed_forms"} & names_sent({"tools": payload["tools"]})


def test_where_nothing_is_hidden_it_is_left_out_as_well():
    log = PayloadLog()
    tools = [*many(2), make_tool("weigh.gold", "Weigh gold.")]
    agent_on(chat_completions, ["Done."], log, tools=tools, top_k=10).invoke(said("hello"), thread())
    assert [tool["function"]["name"] for tool in log.payloads[0]["tools"]] == ["tool_0", "tool_1"]


def test_another_provider_takes_it():
    log = PayloadLog()
    tools = [*many(2), make_tool("w" * 70, "Weigh silver.")]
    agent_on(tool_addition, ["Done."], log, tools=tools, top_k=10).invoke(said("hello"), thread())
    assert len(log.payloads[0]["tools"]) == 3


def test_whoever_knows_better_says_so():
    log = PayloadLog()
    tools = [*many(2), make_tool("weigh.gold", "Weigh gold.")]
    exposure: Any = ByModel({"*gpt-5.5": ModelFacts(limits="")})
    agent_on(chat_completions, ["Done."], log, exposure, tools=tools, top_k=10).invoke(
        said("hello"), thread()
    )
    assert len(log.payloads[0]["tools"]) == 3


async def test_a_tool_that_no_client_can_send_ends_no_run_of_the_thread(path, caplog):
    class Repo: ...

    class Arguments(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        repo: Repo

    bisect = StructuredTool(
        name="bisect", description="Bisect a repository.", args_schema=Arguments, func=lambda **_: ""
    )
    date = make_tool("date", "Tell a date.", args_schema={"type": "object", "default": object()})
    log = PayloadLog()
    script = [discover("bisect a repository"), "Done.", discover("tell a date"), "Done.", "Done."]
    agent = agent_on(chat_completions, script, log, tools=[*many(5), bisect, date])
    config = thread()
    for text in ("handle thing1", "handle thing2", "handle thing3"):
        await say(path, agent, text, config)
    state = (await agent.aget_state(config)).values
    assert not {"bisect", "date"} & {*state.get("tool_selection_pinned", ())}
    answers = [message.text for message in state["messages"] if isinstance(message, ToolMessage)]
    assert all("its schema cannot be sent" in text for text in answers)
    assert sum("'bisect' is left out" in line for line in caplog.messages) == 1


def test_an_array_never_grows_beyond_what_the_provider_takes():
    found, log = iter(range(0, 400, 5)), PayloadLog()

    def script(sent: Any) -> Any:
        if not isinstance(sent.messages[-1], HumanMessage):
            return "Done."
        first = next(found)
        return searching(*(f"tool_{number}" for number in range(first, first + 5)))

    agent = agent_on(chat_completions, script, log, tools=many(400), saver=InMemorySaver(), max_pins=32)
    for turn in range(34):
        agent.invoke(said(f"now thing{5 * turn}"), thread())
        newest = {f"tool_{number}" for number in range(5 * turn, 5 * turn + 5)}
        assert newest <= names_sent({"tools": log.payloads[-1]["tools"]})
    assert max(len(payload["tools"]) for payload in log.payloads) <= 128


def test_a_top_k_beyond_the_limit_hides_what_does_not_fit():
    log = PayloadLog()
    agent_on(chat_completions, ["Done."], log, tools=many(150), top_k=200).invoke(said("thing7"), thread())
    assert len(log.payloads[0]["tools"]) <= 128


def test_azure_gets_no_description_beyond_its_limit():
    long = "Handle it. " * 300
    log = PayloadLog()
    exposure: Any = ByModel({"*": ModelFacts(limits="azure")})
    tools = [*many(2), make_tool("wordy", long)]
    agent_on(chat_completions, ["Done."], log, exposure, tools=tools, top_k=10).invoke(
        said("hello"), thread()
    )
    (wordy,) = [t["function"] for t in log.payloads[0]["tools"] if t["function"]["name"] == "wordy"]
    assert len(wordy["description"]) == 1024


@pytest.mark.parametrize("exposure", ["auto", "append"])
def test_behind_a_gateway_nothing_native_is_sent_and_that_is_said_once(exposure, caplog):
    log = PayloadLog()
    client = additional_tools(base_url="https://gateway.example.com/v1")
    agent = agent_on(client, [searching("tool_3"), "Done.", "Done."], log, exposure, tools=many(5))
    for text in ("handle thing1", "handle thing2"):
        agent.invoke(said(text), thread())
    assert "additional_tools" not in str(log.payloads)
    assert sum("gateway.example.com" in line for line in caplog.messages) == 1


def test_behind_a_gateway_that_passes_it_on_the_native_form_is_sent():
    log = PayloadLog()
    client = additional_tools(base_url="https://gateway.example.com/v1")
    exposure: Any = ByModel({"gateway.example.com": ModelFacts(wire="additional_tools")})
    agent = agent_on(client, [searching("tool_3"), "Done."], log, exposure, tools=many(5))
    agent.invoke(said("handle thing1"), thread())
    assert "additional_tools" in str(log.payloads[-1])


async def test_baseten_gets_deferred_tools_on_chat_completions(path):
    log = PayloadLog()
    client = ChatOpenAI(model="zai-org/GLM-5", api_key="none", base_url="https://inference.baseten.co/v1")  # type: ignore[arg-type]
    marked = make_tool("marked", "Do.", extras={"defer_loading": True})
    if "defer_loading" not in str(client.bind_tools([marked])):
        pytest.skip("this version of the client does not pass it on")
    agent = agent_on(client, [discover("thing3"), "Done.", "Done."], log, tools=many(6))
    config = thread()
    for text in ("handle thing1", "go on"):
        await say(path, agent, text, config)
    assert log.prefix_report().intact
    assert "{'type': 'tool_reference', 'tool_name': 'tool_3'}" in str(log.payloads[-1]["messages"])
    assert sum(bool(tool.get("defer_loading")) for tool in log.payloads[-1]["tools"]) == 5


def test_a_client_that_could_append_is_told_so_once(caplog):
    client = ChatOpenAI(model="gpt-5.5", api_key="none", use_responses_api=False)  # type: ignore[arg-type]
    if (client.profile or {}).get("mid_conversation_tools") is None:
        pytest.skip("this version of the client says nothing of it")
    caplog.set_level(logging.INFO)
    agent = agent_on(client, ["Done.", "Done."], PayloadLog(), tools=many(5))
    for text in ("handle thing1", "handle thing2"):
        agent.invoke(said(text), thread())
    assert sum("use_responses_api=True" in line for line in caplog.messages) == 1


@pytest.mark.parametrize(("exposure", "lines"), [("grow", 1), ("append", 1), ("per_turn", 0)])
def test_a_conversation_that_nobody_remembers_is_said_once_with_what_it_costs(exposure, lines, caplog):
    agent = agent_on(additional_tools, ["Done."] * 4, PayloadLog(), exposure, tools=many(6), saver=False)
    messages: list[Any] = []
    for text in ("handle thing1", "handle thing2", "handle thing3"):
        messages = agent.invoke({"messages": [*messages, HumanMessage(text)]})["messages"]
    assert sum("with a checkpointer" in line for line in caplog.messages) == lines


async def test_what_was_added_stays_where_it_is_if_it_is_always_included_later(path):
    log, saver = PayloadLog(), InMemorySaver()
    first = agent_on(tool_addition, [searching("tool_3"), "Done."], log, tools=many(6), saver=saver)
    await say(path, first, "handle thing1", thread())
    later = agent_on(
        tool_addition, ["Done."], log, tools=many(6), saver=saver, always_include=["tool_3", "tool_4"]
    )
    await say(path, later, "go on", thread())
    last = log.payloads[-1]
    assert last["tools"] == log.payloads[0]["tools"]
    assert str(last["messages"]).count("'name': 'tool_3', ") == 1
    assert "'name': 'tool_4'" in str(last["messages"])


async def test_what_the_provider_has_compacted_away_is_added_again(path):
    log = PayloadLog()
    compacted = AIMessage(
        [{"type": "compaction", "content": "So far: nothing."}, {"type": "text", "text": "Done."}]
    )
    agent = agent_on(tool_addition, [searching("tool_3"), compacted, "Done."], log, tools=many(6))
    config = thread()
    for text in ("handle thing1", "go on"):
        await say(path, agent, text, config)
    behind = str(log.payloads[-1]["messages"]).partition("So far: nothing.")[2]
    assert "'name': 'tool_3'" in behind


@pytest.mark.parametrize("client", [additional_tools, tool_addition])
def test_what_is_added_is_as_strict_as_what_is_bound(client):
    @wrap_model_call
    def strict(request: Any, handler: Any) -> Any:
        return handler(request.override(model_settings={**request.model_settings, "strict": True}))

    log = PayloadLog()
    tools = [make_tool(f"tool_{n}", f"Handle thing{n}.", args_schema=dict(CLOSABLE)) for n in range(6)]
    agent = agent_on(client, [searching("tool_3"), "Done."], log, tools=tools, outer=[strict])
    agent.invoke(said("handle thing1"), thread())
    assert str(log.payloads[-1]).count("'strict': True") == len(log.payloads[-1]["tools"]) + 1


CLOSABLE = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}


def test_a_claude_that_has_only_references_and_refuses_changes_keeps_its_array():
    log, saver = PayloadLog(), InMemorySaver()
    first = agent_on(
        claude("claude-fable-5-2"), [searching("tool_3"), "Done."], log, tools=many(6), saver=saver
    )
    first.invoke(said("handle thing1"), thread())
    later = agent_on(
        claude("claude-fable-5-2"), ["Done."], log, tools=many(6), saver=saver, always_include=["tool_4"]
    )
    later.invoke(said("go on"), thread())
    assert log.payloads[-1]["tools"] == log.payloads[0]["tools"]
    assert DISCOVER in names_sent({"tools": log.payloads[0]["tools"]})


def test_settings_of_models_check_themselves():
    with pytest.raises(ValueError, match=r"ModelFacts\.wire must be one of 'none', 'tool_addition'"):
        ModelFacts(wire="smoke signals")
    with pytest.raises(ValueError, match=r"ModelFacts\.limits must be one of"):
        ModelFacts(limits="nobody")
    with pytest.raises(TypeError, match=r"ByModel\.models\['x'\] takes ModelFacts"):
        ByModel({"x": "append"})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match=r"ByModel\.exposure must be one of"):
        ByModel({}, exposure="loud")  # type: ignore[arg-type]
    ToolSelectionMiddleware(exposure=ByModel({}, exposure="grow"))
