"""A middleware can be copied and pickled, as LangChain's own can."""

import copy
import pickle

import pytest

from langchain_tool_selection import (
    Access,
    Collect,
    Discovery,
    LexicalRanker,
    Thread,
    ToolSelectionMiddleware,
)

from .agents import build, discover, run, sent, thread, user

SETTINGS = {
    "default": {},
    "with a ranker": {"ranker": LexicalRanker(), "always_include": ["play_music"]},
    "proxy": {"exposure": "proxy"},
    "stubs": {"exposure": "stubs"},
    "records": {
        "thread": Thread(keep_used=0),
        "access": Access(enforce=True, fingerprints={"send_email": "0"}, audit=True),
        "collect": Collect("cases.jsonl"),
        "discovery": Discovery(name="find_tools"),
    },
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_a_copy_has_the_settings_and_parts_of_its_own(settings, copied):
    original = ToolSelectionMiddleware(top_k=2, **settings)
    other = copied(original)
    assert [tool.name for tool in other.tools] == [tool.name for tool in original.tools]
    assert all(one is not its for one, its in zip(other.tools, original.tools, strict=True))


async def test_an_agent_with_a_copy_finds_and_pins(path, memory):
    selection = pickle.loads(pickle.dumps(ToolSelectionMiddleware(top_k=1)))
    agent, model = build([discover("play music"), "Done."], selection=selection, saver=memory)
    await run(path, agent, user("send an email"), thread())
    assert "play_music" in sent(model)[-1]


def test_a_subclass_keeps_what_it_added():
    other = copy.deepcopy(Labelled("crm"))
    assert other.label == "crm"
    assert [tool.name for tool in other.tools] == ["discover_tools"]


class Labelled(ToolSelectionMiddleware):
    def __init__(self, label: str) -> None:
        super().__init__(top_k=1)
        self.label = label
