"""Which part of each request a provider could read from its prompt cache, on the providers' own clients."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from langchain_tool_selection import ToolSelectionMiddleware
from langchain_tool_selection.testing import (
    ModelCall,
    PayloadLog,
    PrefixReport,
    call,
    calls,
    prefix_report,
    scripted_client,
)

from .agents import Rewriting, discover, office, run, thread, user

pytestmark = pytest.mark.slow


def anthropic() -> Any:
    module = pytest.importorskip("langchain_anthropic", reason="is not in the environment of oldest versions")
    return module.ChatAnthropic(model="claude-opus-5-5", api_key="none")


def chat_completions() -> Any:
    return ChatOpenAI(model="gpt-5.5", api_key="none", use_responses_api=False)


def responses() -> Any:
    return ChatOpenAI(model="gpt-5.5", api_key="none", use_responses_api=True)


def responses_by_itself() -> Any:
    return ChatOpenAI(model="gpt-5.5", api_key="none", reasoning={"effort": "low"})


CLIENTS = [anthropic, chat_completions, responses, responses_by_itself]


@pytest.fixture(params=CLIENTS, ids=lambda make: make.__name__)
def client(request: pytest.FixtureRequest) -> Any:
    return request.param()


TURNS = ["send an email", "play music", "order a pizza", "water the plants"]
SCRIPT = [
    call("send_email", text="Hello"),
    "It is sent.",
    calls(("play_music", {"text": "Bach"}), ("lock_door", {})),
    "It plays.",
    "Which pizza?",
    call("water_plants"),
    "They are wet.",
]


async def converse(
    client: Any, path: str, *middleware: Any, script: Any = None, tools: Any = None, stream: bool = False
) -> PayloadLog:
    """Play four user turns and return what was sent."""
    log = PayloadLog()
    agent = create_agent(
        scripted_client(client, SCRIPT if script is None else script, log),
        office() if tools is None else tools,
        system_prompt="You run an office.",
        middleware=middleware,
        checkpointer=InMemorySaver(),
    )
    for text in TURNS:
        if not stream:
            await run(path, agent, user(text), thread())
        elif path == "sync":
            list(agent.stream(user(text), thread(), stream_mode="messages"))
        else:
            [_ async for _ in agent.astream(user(text), thread(), stream_mode="messages")]
    return log


def user_turn(request: ModelRequest) -> int:
    return sum(isinstance(message, HumanMessage) for message in request.messages)


def from_turn(number: int, change: Callable[[ModelRequest], ModelRequest]) -> Rewriting:
    return Rewriting(lambda request: change(request) if user_turn(request) >= number else request)


# -- whole conversations ---------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["invoke", "stream"])
async def test_an_agent_without_selection_keeps_the_whole_prefix_on_every_call(client, path, stream):
    log = await converse(client, path, stream=stream)
    report = log.prefix_report()
    assert len(report) == len(SCRIPT) == len(log.calls)
    assert report.intact, report
    assert [step.kept for step in report[1:]] == [step.previous for step in report[1:]]
    assert [step.previous for step in report[1:]] == [step.tokens for step in report[:-1]]
    assert all(one.tokens < other.tokens for one, other in pairwise(report))
    assert report[0].intact
    assert (report[0].kept, report[0].previous) == (0, 0)


async def test_tools_in_another_order_lose_the_whole_prefix_once(client, path):
    reversed_from_turn_2 = from_turn(2, lambda request: request.override(tools=request.tools[::-1]))
    report = (await converse(client, path, reversed_from_turn_2)).prefix_report()
    assert [step.changed_in for step in report] == [None, None, "tools", None, None, None, None]
    assert (report[2].kept, report[2].changed_at, report[2].changed_tool) == (0, 0, "lock_door")
    assert not report.intact


async def test_a_changed_system_prompt_keeps_the_tools(client, path):
    other = from_turn(3, lambda request: request.override(system_message=SystemMessage("You run a bakery.")))
    report = (await converse(client, path, other)).prefix_report()
    assert [step.changed_in for step in report] == [None, None, None, None, "system", None, None]
    assert report[4].changed_at == 0
    assert "office" in report[4].was
    assert "bakery" in report[4].now
    assert 0.5 * report[4].previous < report[4].kept < report[4].previous


async def test_a_changed_message_keeps_what_is_before_it(client, path):
    def shouting(request: ModelRequest) -> ModelRequest:
        return request.override(messages=[HumanMessage("SEND AN EMAIL"), *request.messages[1:]])

    report = (await converse(client, path, from_turn(2, shouting))).prefix_report()
    assert [step.changed_in for step in report] == [None, None, "messages", None, None, None, None]
    assert report[2].changed_at == (0 if "langchain_anthropic" in type(client).__module__ else 1)
    assert "SEND AN EMAIL" in report[2].now


async def test_selecting_for_each_user_turn_changes_the_prefix_at_most_once_a_turn(client, path):
    script = [
        call("send_email"),
        "Sent.",
        call("play_music"),
        "It plays.",
        "Which?",
        call("water_plants"),
        "Wet.",
    ]
    log = await converse(client, path, ToolSelectionMiddleware(top_k=2, exposure="per_turn"), script=script)
    turns = [sum(isinstance(m, HumanMessage) for m in call.messages) for call in log.calls]
    changed = [turn for turn, step in zip(turns, log.prefix_report(), strict=True) if not step.intact]
    assert changed == sorted(set(changed))
    assert changed, "the turns ask for different tools"
    assert {step.changed_in for step in log.prefix_report()} == {None, "tools"}


async def test_a_discovery_changes_the_prefix_where_the_found_tool_comes_in(client, path):
    script = [discover("water the plants"), call("water_plants"), "Done."]
    log = await converse(client, path, ToolSelectionMiddleware(top_k=1, exposure="per_turn"), script=script)
    first, second, third = log.prefix_report()[:3]
    assert (first.changed_in, second.changed_in, third.changed_in) == (None, "tools", None)
    assert third.kept == third.previous == second.tokens


# -- what a client keeps of itself -----------------------------------------------------------------------


def test_a_scripted_client_is_still_what_it_was(client):
    model = scripted_client(client, ["Hello."], PayloadLog())
    assert isinstance(model, type(client))
    assert type(model).__name__ == type(client).__name__
    assert model.profile == client.profile
    assert model._get_ls_params() == client._get_ls_params()
    assert model.lc_id() == client.lc_id()
    assert getattr(model, "use_responses_api", None) == getattr(client, "use_responses_api", None)
    assert model._get_request_payload("Hi") == client._get_request_payload("Hi")
    assert type(client) is not type(model), "the client that was passed stays what it was"


def test_a_model_that_builds_its_request_elsewhere_is_refused():
    with pytest.raises(TypeError, match="_get_request_payload"):
        scripted_client(FakeModel(), [], PayloadLog())


async def test_every_way_to_call_sends_the_same_prefix_and_says_the_same(client):
    log = PayloadLog()
    answer = calls(("send_email", {"text": "Hello"}), ("lock_door", {}))
    answer.content = "I send  it.\nThen I lock."
    bound = scripted_client(client, lambda _: answer, log).bind_tools(office())
    whole = [bound.invoke("Hi"), await bound.ainvoke("Hi")]
    chunks = [list(bound.stream("Hi")), [chunk async for chunk in bound.astream("Hi")]]
    streamed = [add(parts) for parts in chunks]
    assert {message.text for message in [*whole, *streamed]} == {answer.content}
    for message in [*whole, *streamed]:
        assert [(c["name"], c["args"], c["id"]) for c in message.tool_calls] == [
            (c["name"], c["args"], c["id"]) for c in answer.tool_calls
        ]
    report = log.prefix_report()
    assert len(report) == 4
    assert {step.tokens for step in report} == {report[0].tokens}
    assert report.intact, report


def add(chunks: list[AIMessageChunk]) -> AIMessageChunk:
    assert len(chunks) > 1
    total = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    return total


@pytest.mark.parametrize("stream", [False, True], ids=["invoke", "stream"])
async def test_the_next_request_has_the_calls_and_their_results(client, path, stream):
    payload = (await converse(client, path, stream=stream)).payloads[3]
    text = json.dumps(payload)
    ids = [c["id"] for c in SCRIPT[2].tool_calls]  # type: ignore[union-attr]
    assert [text.count(json.dumps(id_)) for id_ in ids] == [2, 2]
    if "input" in payload:
        kinds = [item["type"] for item in payload["input"] if "role" not in item]
        assert kinds[2:] == ["function_call"] * 2 + ["function_call_output"] * 2
        said = [item for item in payload["input"] if item.get("role") == "assistant"]
        assert [block["text"] for item in said for block in item["content"]] == ["It is sent."]
    elif "system" in payload:
        assert [b["type"] for b in payload["messages"][-2]["content"]] == ["tool_use"] * 2
        assert [b["type"] for b in payload["messages"][-1]["content"]] == ["tool_result"] * 2
        assert payload["messages"][-2]["content"][0]["input"] == {"text": "Bach"}
    else:
        assert [m["role"] for m in payload["messages"][-3:]] == ["assistant", "tool", "tool"]


@pytest.mark.parametrize("stream", [False, True], ids=["invoke", "stream"])
async def test_thinking_stays_in_front_of_the_calls(path, stream):
    thinking = {"type": "thinking", "thinking": "An email it is.", "signature": "c2lnbmVk"}
    answer = call("send_email", text="Hello")
    answer.content = [thinking, {"type": "text", "text": "I send it."}]
    log = await converse(anthropic(), path, script=[answer, "Done."], stream=stream)
    assert log.prefix_report().intact
    blocks = log.payloads[1]["messages"][1]["content"]
    assert [block["type"] for block in blocks] == ["thinking", "text", "tool_use"]
    assert blocks[0] == thinking


@pytest.mark.parametrize("stream", [False, True], ids=["invoke", "stream"])
async def test_reasoning_stays_in_front_of_the_calls(path, stream):
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    answer = call("send_email", text="Hello")
    answer.content = [reasoning]
    log = await converse(responses(), path, script=[answer, "Done."], stream=stream)
    assert log.prefix_report().intact
    assert [item["type"] for item in log.payloads[1]["input"][2:4]] == ["reasoning", "function_call"]


async def test_a_function_answers_from_what_was_sent(client, path):
    seen: list[ModelCall] = []

    def answer(sent: ModelCall) -> str | AIMessage:
        seen.append(sent)
        if isinstance(sent.messages[-1], ToolMessage):
            return "Done."
        return call(sent.tools[0])

    log = await converse(client, path, script=answer)
    assert log.calls == seen
    assert len(seen) == 2 * len(TURNS)
    assert seen[0].tools == [tool.name for tool in office()]
    assert log.prefix_report().intact


@pytest.mark.parametrize("concurrently", ["threads", "tasks"])
@pytest.mark.slow
async def test_conversations_at_the_same_time_are_told_apart(client, concurrently):
    log = PayloadLog()

    def answer(sent: ModelCall) -> str | AIMessage:
        return "Done." if isinstance(sent.messages[-1], ToolMessage) else call("play_music")

    model = scripted_client(client, answer, log)
    agent = create_agent(model, office(), checkpointer=InMemorySaver())
    names = [f"thread {i}" for i in range(4)]

    def play(name: str) -> None:
        for text in TURNS:
            agent.invoke(user(f"{name}: {text}"), thread(name))

    async def aplay(name: str) -> None:
        for text in TURNS:
            await agent.ainvoke(user(f"{name}: {text}"), thread(name))

    if concurrently == "threads":
        with ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(play, names))
    else:
        await asyncio.gather(*map(aplay, names))
    assert len(log.payloads) == len(names) * len(TURNS) * 2
    for name in names:
        report = log.prefix_report(name)
        assert len(report) == len(TURNS) * 2
        assert report.intact, report
        assert name in json.dumps(log.of_thread(name)[0])


async def test_a_script_is_used_up_once_by_many_threads(client):
    log = PayloadLog()
    model = scripted_client(client, [f"answer {i}" for i in range(20)], log)
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda _: model.invoke("Hi").text, range(20)))
    assert sorted(said) == sorted(f"answer {i}" for i in range(20))
    assert len(log.payloads) == len(log.calls) == 20


def test_a_log_keeps_a_request_as_it_was_sent():
    log = PayloadLog()
    message = HumanMessage([{"type": "text", "text": "Hi"}])
    scripted_client(chat_completions(), ["Hello."], log).invoke([message])
    message.content[0]["text"] = "changed"  # type: ignore[index]
    assert log.payloads[0]["messages"][0]["content"][0]["text"] == "Hi"


# -- Anthropic: marks and deferred tools -----------------------------------------------------------------


async def test_a_mark_that_moves_is_no_change(path):
    client = anthropic()
    from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware  # noqa: PLC0415

    caching = AnthropicPromptCachingMiddleware(min_messages_to_cache=3)
    log = await converse(client, path, caching)
    marked = ["cache_control" in json.dumps(payload["tools"]) for payload in log.payloads]
    assert marked == [False] + [True] * 6
    assert log.prefix_report().intact, log.prefix_report()


def deferred(tool: BaseTool) -> BaseTool:
    return tool.model_copy(update={"extras": {"defer_loading": True}})


def finding(sent: ModelCall) -> str | AIMessage:
    return "Done." if isinstance(sent.messages[-1], ToolMessage) else call("find", text="music")


@tool
def find(text: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[None]:
    """Find a tool."""
    # In a command, because LangGraph writes blocks out as text that it does not know from other tools.
    reference = {"type": "tool_reference", "tool_name": "play_music"}
    return Command(update={"messages": [ToolMessage([reference], tool_call_id=tool_call_id)]})


async def test_a_deferred_tool_counts_where_it_is_referenced(path):
    tools = [find, *map(deferred, office())]
    log = await converse(anthropic(), path, script=finding, tools=tools)
    report = log.prefix_report(count_tokens=len)
    assert report.intact, report
    sent = {tool["name"]: json.dumps(tool) for tool in log.payloads[0]["tools"]}
    assert report[0].tokens < len(sent["find"]) + len(sent["play_music"]) + 200
    first_tool_result = report[1].tokens - report[0].tokens
    later_tool_result = report[3].tokens - report[2].tokens
    assert first_tool_result - later_tool_result == pytest.approx(len(sent["play_music"]), abs=2)


@pytest.mark.parametrize(("changed", "part"), [("order_pizza", None), ("play_music", "messages")])
async def test_a_changed_deferred_tool_breaks_the_prefix_only_if_it_is_referenced(path, changed, part):
    def edit(request: ModelRequest) -> ModelRequest:
        edited = [
            tool.model_copy(update={"description": "Another one."}) if tool.name == changed else tool
            for tool in request.tools
        ]
        return request.override(tools=edited)

    tools = [find, *map(deferred, office())]
    log = await converse(anthropic(), path, from_turn(2, edit), script=finding, tools=tools)
    report = log.prefix_report()
    assert report[2].changed_in == part
    assert [step.intact for step in report] == [True, True, part is None, *[True] * 5]


async def test_more_deferred_tools_are_no_change(path):
    tools = [*map(deferred, office()), find]
    fewer = Rewriting(lambda r: r.override(tools=r.tools[-1:]) if user_turn(r) == 1 else r)
    log = await converse(anthropic(), path, fewer, tools=tools, script=finding_nothing())
    assert [len(payload["tools"]) for payload in log.payloads] == [1, *[13] * 3]
    assert log.prefix_report().intact, log.prefix_report()


def finding_nothing() -> list[str]:
    return ["Done."] * len(TURNS)


async def test_a_tool_that_becomes_deferred_is_a_change(path):
    hide = from_turn(
        2, lambda request: request.override(tools=[request.tools[0], deferred(request.tools[1])])
    )
    log = await converse(anthropic(), path, hide, tools=office()[:2], script=finding_nothing())
    step = log.prefix_report()[1]
    assert (step.changed_in, step.changed_at, step.changed_tool) == ("tools", 1, "create_invoice")


# -- the report ------------------------------------------------------------------------------------------


def chat(*texts: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text} for text in texts], **more}


def claude(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"max_tokens": 1, "messages": [{"role": "user", "content": m} for m in messages], **more}


def function(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": name, **more}}


def test_a_report_reads_as_a_table_with_both_sides_of_a_difference():
    tools = [function("search"), function("look_up", parameters={"x": "a" * 200 + "old" + "b" * 200})]
    other = [tools[0], function("look_up", parameters={"x": "a" * 200 + "new" + "b" * 200})]
    report = prefix_report([chat("Hi", tools=tools), chat("Hi", tools=tools), chat("Hi", tools=other)])
    text = str(report)
    assert text == repr(report)
    assert "tools[1] look_up" in text
    assert "100 %" in text
    step = report[2]
    assert len(step.was) == len(step.now) == 80
    assert "aaaold" in step.was
    assert "aaanew" in step.now
    assert repr(step.was) in text
    assert repr(step.now) in text


def test_no_payloads_have_an_empty_intact_report():
    assert prefix_report([]).intact
    assert prefix_report([]) == PrefixReport()


def test_the_order_of_keys_counts():
    swapped = {"function": {"description": "a", "name": "a"}, "type": "function"}
    report = prefix_report([chat("Hi", tools=[function("a")]), chat("Hi", tools=[swapped])])
    assert report[1].changed_in == "tools"


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        (["a", "b"], ["a"], ("tools", 1, "b")),
        (["a"], ["a", "b"], ("tools", 1, "b")),
        ([], ["a"], ("tools", 0, "a")),
        (["a"], [], ("tools", 0, "a")),
    ],
)
def test_a_tool_more_or_less_is_a_change_of_the_tools(before, after, place):
    report = prefix_report(
        [chat("Hi", tools=[function(name) for name in names]) for names in (before, after)]
    )
    assert (report[1].changed_in, report[1].changed_at, report[1].changed_tool) == place


def test_a_shorter_request_is_intact_and_keeps_all_of_itself():
    step = prefix_report([chat("Hi", "Ho"), chat("Hi")])[1]
    assert step.intact
    assert step.kept == step.tokens < step.previous


def test_a_changed_tool_choice_is_noted_and_keeps_the_prefix():
    step = prefix_report([chat("Hi"), chat("Hi", tool_choice="required")])[1]
    assert step.intact
    assert step.tool_choice_changed
    assert "tool_choice" in str(PrefixReport([step]))


def test_a_message_of_anthropic_may_grow_by_a_block():
    text = [{"type": "text", "text": text} for text in ("Hi", "Ho")]
    report = prefix_report([claude("Hi"), claude(text)])
    assert report[1].intact, "a string is short for one block of text"
    assert report[1].kept == report[1].previous
    assert not prefix_report([chat("Hi"), {"messages": [{"role": "user", "content": text}]}]).intact


def test_a_mark_is_not_counted():
    block = {"type": "text", "text": "Hi"}
    marked = {**block, "cache_control": {"type": "ephemeral"}}
    one, other = (
        prefix_report([claude([block], system=[block])]),
        prefix_report([claude([marked], system=[marked])]),
    )
    assert one[0] == other[0]
    assert prefix_report([claude([marked], system=[block]), claude([block], system=[marked])]).intact


def test_a_mid_conversation_addition_by_reference_brings_the_definition_in():
    tool = {"name": "play", "input_schema": {}, "defer_loading": True}
    addition = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "play"}}
    without = claude("Hi", [{**addition, "tool": {"type": "tool_reference", "name": "other"}}], tools=[tool])
    report = prefix_report([claude("Hi", tools=[tool]), claude("Hi", [addition], tools=[tool])], len)
    assert report.intact
    assert report[1].tokens - prefix_report([without], len)[0].tokens == len(json.dumps(tool)) - 1


def test_of_a_deferred_openai_tool_the_parameters_do_not_count():
    def request(parameters: str, inner: str) -> dict[str, Any]:
        flat = {"type": "function", "name": "a", "description": "A.", "parameters": {"x": parameters}}
        hidden = {"type": "function", "name": inner, "defer_loading": True}
        space = {"type": "namespace", "name": "n", "description": "N.", "tools": [hidden]}
        return {"input": [], "tools": [{**flat, "defer_loading": True}, space, {"type": "tool_search"}]}

    assert prefix_report([request("one", "b"), request("other", "c")]).intact
    named = request("one", "b")
    named["tools"][0]["description"] = "Another."
    assert prefix_report([request("one", "b"), named])[1].changed_tool == "a"


def test_instructions_come_before_the_input():
    report = prefix_report([{"instructions": text, "input": "Hi"} for text in ("Be kind.", "Be brief.")])
    assert (report[1].changed_in, report[1].kept) == ("system", 0)


def test_a_request_whose_prefix_is_at_the_provider_is_refused():
    with pytest.raises(ValueError, match="use_previous_response_id=False"):
        prefix_report([{"input": [], "previous_response_id": "resp_1"}])


def test_tokens_are_counted_as_asked_and_each_text_once():
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return 1

    report = prefix_report([chat("Hi"), chat("Hi", "Ho"), chat("Hi", "Ho", "Ha")], count)
    assert [(step.tokens, step.kept) for step in report] == [(1, 0), (2, 1), (3, 2)]
    assert len(counted) == 3
    assert replace(report[1], tokens=9).tokens == 9


class FakeModel:
    """Has nothing of a provider's client."""
