"""Cases from traffic: requests whose tool had to be searched for."""

from __future__ import annotations

import json

import pytest
from langgraph.store.memory import InMemoryStore

from langchain_tool_selection import Collect, ToolSelectionMiddleware
from langchain_tool_selection.evals import load_cases
from langchain_tool_selection.testing import call, calls

from .agents import build, discover, office, run, thread, user

SEARCHED = [discover("plants in the garden"), call("water_plants"), "Done."]


def cases_of(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


async def test_a_request_whose_tool_was_searched_for_and_called_is_a_case(path, tmp_path):
    file = tmp_path / "cases.jsonl"
    agent, _ = build(SEARCHED, collect=Collect(file))
    await run(path, agent, user("my ficus looks dry"))
    assert cases_of(file) == [
        {"query": "my ficus looks dry", "relevant": ["water_plants"], "history": [], "source": "collected"}
    ]
    (case,) = load_cases(file, [tool.name for tool in office()])
    assert (case.query, list(case.relevant)) == ("my ficus looks dry", ["water_plants"])


async def test_what_was_said_before_is_its_history(path, tmp_path, memory):
    file = tmp_path / "cases.jsonl"
    agent, _ = build(["Hello.", *SEARCHED], collect=Collect(file), saver=memory)
    await run(path, agent, user("hello there"), thread())
    await run(path, agent, user("my ficus looks dry"), thread())
    (case,) = cases_of(file)
    assert case["history"] == [{"role": "user", "content": "hello there"}]


@pytest.mark.parametrize(
    "script",
    [
        [call("send_email"), "Sent."],
        [discover("plants in the garden"), "Found it."],
        [discover("plants in the garden"), call("no_such_tool"), "Hm."],
        [calls(("discover_tools", {"query": "plants"}), ("water_plants", {})), "Done."],
    ],
    ids=["shown", "not called", "another one", "called before it was found"],
)
async def test_other_requests_are_none(path, tmp_path, script):
    file = tmp_path / "cases.jsonl"
    agent, _ = build(script, collect=Collect(file))
    await run(path, agent, user("send an email"))
    assert not file.exists()


async def test_a_store_takes_cases_too(path):
    store = InMemoryStore()
    agent, _ = build(SEARCHED, collect=Collect(store))
    await run(path, agent, user("my ficus looks dry"))
    (item,) = store.search(())
    assert item.value["relevant"] == ["water_plants"]


async def test_what_is_redacted_is_written_as_redacted_or_not_at_all(path):
    kept = []

    def redact(case):
        return None if "secret" in case["query"] else {**case, "query": "***"}

    for text in ("my ficus looks dry", "my secret ficus looks dry"):
        agent, _ = build(SEARCHED, collect=Collect(kept.append, redact=redact))
        await run(path, agent, user(text))
    assert [case["query"] for case in kept] == ["***"]


async def test_a_place_that_cannot_be_written_ends_no_run(path, tmp_path, caplog):
    agent, _ = build(SEARCHED, collect=Collect(tmp_path / "missing" / "cases.jsonl"))
    for _ in range(2):
        result = await run(path, agent, user("my ficus looks dry"))
        assert result["messages"][-1].content == "Done."
    assert [r.getMessage() for r in caplog.records if "could not be collected" in r.getMessage()] != []


@pytest.mark.parametrize(
    ("settings", "says"),
    [({"collect": "cases.jsonl"}, r"collect takes Collect\(\.\.\.\)"), (None, "Collect.to takes a file")],
)
def test_a_wrong_setting_is_an_error_that_names_it(settings, says):
    with pytest.raises(TypeError, match=says):
        Collect(5) if settings is None else ToolSelectionMiddleware(**settings)
