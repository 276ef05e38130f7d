"""Shown, found, remembered: the three turns of the package's promise, exactly."""

from __future__ import annotations

import pytest
from langchain_core.messages import ToolMessage

from .agents import answers, in_new_process, open_saver, run, state_of, thread, user
from .walkthrough import ALL, FOUND, SCRIPTS, SELECTED, TURNS, UNFILTERED_SCRIPTS, agent_of, sorted_tools


async def test_the_model_is_sent_what_matters_finds_the_rest_and_keeps_it(path, tmp_path):
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent, model = agent_of(saver, [answer for script in SCRIPTS for answer in script])
        for text in TURNS:
            result = await run(path, agent, user(text), thread())
        assert sorted_tools(model) == [tools for turn in SELECTED for tools in turn]
        assert answers(result) == [FOUND]
        assert answers(result, "calculator") == ["42"]
        assert answers(result, "translate_text") == ["bonjour"]
        assert (await state_of(path, agent, thread()))["tool_selection_pinned"] == ["calculator"]


async def test_without_the_middleware_every_call_is_sent_all_four_tools(path, tmp_path):
    async with open_saver("sqlite", path, tmp_path) as saver:
        script = [answer for script in UNFILTERED_SCRIPTS for answer in script]
        agent, model = agent_of(saver, script, filtered=False)
        for text in TURNS:
            await run(path, agent, user(text), thread())
        assert sorted_tools(model) == [ALL] * 6


async def test_an_agent_rebuilt_for_each_turn_on_the_same_file_goes_on_where_it_was(path, tmp_path):
    for text, script, expected in zip(TURNS, SCRIPTS, SELECTED, strict=True):
        async with open_saver("sqlite", path, tmp_path) as saver:
            agent, model = agent_of(saver, script)
            result = await run(path, agent, user(text), thread())
            assert sorted_tools(model) == expected
            state = await state_of(path, agent, thread())
    assert state["tool_selection_pinned"] == ["calculator"]
    assert answers(result) == [FOUND]
    assert not any(m.status == "error" for m in result["messages"] if isinstance(m, ToolMessage))


@pytest.mark.process
def test_a_new_process_on_the_same_file_goes_on_where_it_was(tmp_path):
    file = str(tmp_path / "threads.db")
    for turn, expected in enumerate(SELECTED):
        played = in_new_process("walkthrough", file, str(turn))
        assert played == {"tools": expected, "pins": ["calculator"] if turn else []}
