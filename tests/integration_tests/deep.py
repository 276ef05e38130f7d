"""What the tests of deep agents share. Import it behind `pytest.importorskip("deepagents")`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from deepagents import HarnessProfile, SubAgent, create_deep_agent, register_harness_profile
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage

from langchain_tool_selection import ToolSelectionMiddleware
from langchain_tool_selection.deepagents import with_tool_selection
from langchain_tool_selection.testing import ModelCall, ScriptedChatModel

from .agents import OFFICE, office

FILES = ["ls", "read_file", "write_file", "edit_file", "delete", "glob", "grep"]
"""What a deep agent brings along on any backend, beside `task` and `execute`."""

needs_forks = pytest.mark.skipif(
    "mode" not in get_type_hints(SubAgent), reason="this version of deepagents has no forks"
)


class ProfiledModel(ScriptedChatModel):
    """A scripted model that harness profiles can be registered for."""

    model_name: str

    def _get_ls_params(self, stop: Any = None, **kwargs: Any) -> Any:
        return {"ls_provider": "profiled", "ls_model_name": self.model_name, "ls_model_type": "chat"}


_numbers = itertools.count()


def profiled(script: Any, **profile: Any) -> ProfiledModel:
    """Return a scripted model with a harness profile that no other model has."""
    name = f"model-{next(_numbers)}"
    register_harness_profile(f"profiled:{name}", HarnessProfile(**profile))
    return ProfiledModel(script=script, model_name=name)


def selecting_agent(script: Any, tools: Sequence[Any] | None = None, **arguments: Any) -> tuple[Any, Any]:
    """Return a deep agent `with_tool_selection` over the office, one tool shown by rank, and its model."""
    model = script if isinstance(script, BaseChatModel) else ScriptedChatModel(script=script)
    middleware = arguments.pop("middleware", [ToolSelectionMiddleware(top_k=1)])
    tools = office() if tools is None else tools
    return create_deep_agent(**with_tool_selection(model, tools, middleware=middleware, **arguments)), model


def of_the_office(sent: ModelCall) -> list[str]:
    return [name for name in sent.tools if name in OFFICE]


def asked(sent: ModelCall) -> str:
    """Return what the agent that made a call was last asked: its own words, without what a fork is told."""
    last = [message for message in sent.messages if isinstance(message, HumanMessage)][-1]
    return str(last.content).rpartition("\n")[2]


def calls_about(model: ScriptedChatModel, text: str) -> list[ModelCall]:
    return [sent for sent in model.calls if asked(sent) == text]


class Recorder:
    """The subagents that the harness assembled, by name."""

    def __init__(self) -> None:
        self.specs: dict[str, Any] = {}


@contextmanager
def recorded_subagents(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """Watch what the harness assembles while a deep agent is made."""
    from deepagents import graph  # noqa: PLC0415

    recorder, real = Recorder(), graph.SubAgentMiddleware

    class Watched(real):  # type: ignore[misc, valid-type]
        def __init__(self, *, subagents: Any, **settings: Any) -> None:
            recorder.specs = {spec["name"]: spec for spec in subagents}
            super().__init__(subagents=subagents, **settings)

        @property
        def name(self) -> str:
            return real.__name__

    with monkeypatch.context() as patch:
        patch.setattr(graph, "SubAgentMiddleware", Watched)
        yield recorder


def facts_about(middleware: AgentMiddleware) -> Any:
    """Return what tells two instances of one middleware apart, as far as it is plain data."""
    plain = str | int | float | bool | None | list | tuple | dict | frozenset
    facts = {k: repr(v) for k, v in vars(middleware).items() if k != "tools" and isinstance(v, plain)}
    return middleware.name, {k: re.sub(r" at 0x[0-9a-f]+", "", v) for k, v in facts.items()}


def write_skill(folder: Path, name: str, head: str = "", body: str = "Do it.") -> None:
    """Write a skill to disk; `head` is what its frontmatter says beside its name and description."""
    file = folder / "skills" / name / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text(f"---\nname: {name}\ndescription: How to do {name}.\n{head}---\n{body}\n")
