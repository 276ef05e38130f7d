"""What a stream and a trace show of tool selection, and what they do not."""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests
from langchain_core.messages import AIMessage, ToolMessage
from langsmith import Client
from langsmith.run_helpers import tracing_context

from langchain_tool_selection.testing import call

from .agents import DISCOVER, PINS, build, discover, make_tool, run, thread, user

SCRIPT = [discover("play music"), call("play_music"), "It is playing now."]


async def stream(path: str, agent: Any, what: Any, config: Any = None, **options: Any) -> list[Any]:
    if path == "sync":
        return list(agent.stream(what, config, **options))
    return [item async for item in agent.astream(what, config, **options)]


# -- streams ---------------------------------------------------------------------------------------------


async def test_updates_come_from_the_model_and_the_tools_and_from_no_step_of_ours(path, memory):
    agent, _ = build(SCRIPT, saver=memory)
    updates = await stream(path, agent, user("send an email"), thread(), stream_mode="updates")
    steps = [node for update in updates for node in update]
    assert set(steps) == {"model", "tools"}
    assert steps == ["model", "tools", "model", "tools", "model"]
    assert updates[1]["tools"][PINS] == ["play_music"]
    assert [m.name for m in updates[1]["tools"]["messages"]] == [DISCOVER]


async def test_messages_hold_what_the_model_and_the_tools_said_and_nothing_of_ours(path):
    agent, _ = build(SCRIPT)
    items = await stream(path, agent, user("send an email"), stream_mode="messages")
    messages = [message for message, _ in items]
    said = "".join(str(m.content) for m in messages if isinstance(m, AIMessage))
    assert said.strip() == "It is playing now."
    assert [m.name for m in messages if isinstance(m, ToolMessage)] == [DISCOVER, "play_music"]
    assert all(isinstance(m, AIMessage | ToolMessage) for m in messages)


async def test_a_custom_event_for_each_model_call_says_what_is_shown_and_why(path, memory):
    agent, model = build(SCRIPT, saver=memory, always_include=["lock_door"])
    events = await stream(path, agent, user("send an email"), thread(), stream_mode="custom")
    assert json.loads(json.dumps(events)) == events
    kinds = [event["type"] for event in events]
    assert kinds == ["tool_selection", "tool_selection_found", "tool_selection", "tool_selection"]
    assert events.pop(1) == {"type": "tool_selection_found", "found": ["play_music"], "degraded": ""}
    assert [list(event["shown"]) for event in events] == [c.tools for c in model.calls]
    first, second, third = events
    assert first["shown"]["lock_door"] == {"kind": "core", "turn": 1}
    assert first["shown"][DISCOVER] == {"kind": "discovery", "turn": 1}
    assert (first["shown"]["send_email"]["kind"], first["shown"]["send_email"]["rank"]) == ("rank", 1)
    assert second["shown"]["play_music"] == {"kind": "pinned", "turn": 1}
    assert [event["hidden"] for event in events] == [10, 9, 9]
    assert [event["changed"] for event in events] == [None, True, False]
    assert third["degraded"] == ""


async def test_a_custom_event_names_the_near_misses(path):
    agent, _ = build(["Done."])
    (event,) = await stream(path, agent, user("send an email, play music"), stream_mode="custom")
    assert {DISCOVER, "send_email", "play_music"} <= set(event["shown"]) | set(event["near_misses"])


async def test_values_hold_the_pins(path, memory):
    agent, _ = build(SCRIPT, saver=memory)
    values = await stream(path, agent, user("send an email"), thread(), stream_mode="values")
    assert values[-1][PINS] == ["play_music"]


async def test_all_modes_together_come_from_one_run(path, memory):
    agent, model = build(SCRIPT, saver=memory)
    modes = ["updates", "messages", "custom", "values"]
    items = await stream(path, agent, user("send an email"), thread(), stream_mode=modes)
    assert {mode for mode, _ in items} == set(modes)
    assert len(model.calls) == 3


async def test_a_request_that_passes_through_streams_no_event(path):
    agent, _ = build(["Done."], top_k=99)
    assert await stream(path, agent, user("send an email"), stream_mode="custom") == []


# -- traces ----------------------------------------------------------------------------------------------


class Wire(requests.Session):
    """Takes what a LangSmith client sends, and sends nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: dict[str, dict[str, Any]] = {}
        self.bytes = 0

    def request(self, method: Any, url: Any, *args: Any, **kwargs: Any) -> requests.Response:
        body = kwargs.get("data") or b"{}"
        self.bytes += len(body)
        run = json.loads(body)
        key = run.get("id") or str(url).rpartition("/")[2]
        known = self.runs.setdefault(key, {"size": 0})
        known["size"] += len(body)
        known.update({name: value for name, value in run.items() if value is not None})
        response = requests.Response()
        response.status_code = 200
        response._content = b"{}"
        return response

    def named(self, name: str) -> list[dict[str, Any]]:
        return [run for run in self.runs.values() if run.get("name") == name]


@pytest.fixture(scope="module")
def thousand() -> list[Any]:
    return [
        make_tool("send_email", "Send an email message to a recipient."),
        make_tool("play_music", "Play music by an artist."),
        *(make_tool(f"hidden_{n:04}", f"Secretly does job number {n}, unlike the rest.") for n in range(998)),
    ]


@pytest.mark.slow
async def test_the_span_of_a_model_call_does_not_hold_a_thousand_tools(path, thousand, memory):
    wire = Wire()
    client = Client(
        api_url="http://localhost:9", api_key="none", session=wire, auto_batch_tracing=False, info={}
    )
    agent, model = build(SCRIPT, tools=thousand, saver=memory, top_k=2)
    with tracing_context(enabled=True, client=client, project_name="test"):
        await run(path, agent, user("send an email"), thread())
    hook = "wrap_model_call" if path == "sync" else "awrap_model_call"
    spans = wire.named(f"ToolSelectionMiddleware.{hook}")
    assert len(spans) == 3
    for span, sent_call in zip(spans, model.calls, strict=True):
        text = json.dumps(span)
        assert "Secretly" not in text
        assert "hidden_0500" not in text
        assert span["size"] < 20_000
        shown = span["extra"]["metadata"]["tool_selection"]["shown"]
        assert list(shown) == sent_call.tools
        assert all(why["kind"] for why in shown.values())
    # Nor does any other span of the run.
    assert not [run_ for run_ in wire.runs.values() if "Secretly" in json.dumps(run_)]
    assert wire.bytes < 300_000
