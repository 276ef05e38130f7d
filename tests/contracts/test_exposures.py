"""What every exposure promises, whatever it is made of: `check_exposure`, and that it finds broken promises."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI

from langchain_tool_selection import Rendered
from langchain_tool_selection.testing import check_exposure


def claude(name: str) -> Any:
    module = pytest.importorskip("langchain_anthropic", reason="is not in the environment of oldest versions")
    return module.ChatAnthropic(model=name, api_key="none")


def gpt(**settings: Any) -> Any:
    client = ChatOpenAI(model="gpt-5.5", api_key="none", **settings)
    if settings["use_responses_api"] and not (client.profile or {}).get("mid_conversation_tools"):
        pytest.skip("this version of the client cannot add tools in mid-conversation")
    return client


CLIENTS = {
    "tool_addition": lambda: claude("claude-opus-5-5"),
    "tool_reference": lambda: claude("claude-sonnet-4-5"),
    "additional_tools": lambda: gpt(use_responses_api=True),
    "chat completions": lambda: gpt(use_responses_api=False),
    "scripted": None,
}


@pytest.mark.parametrize(
    "client",
    # The scripted model keeps the suite fast; a real client takes half a second to make and to convert for.
    [pytest.param(make, marks=[pytest.mark.slow] if make else [], id=id_) for id_, make in CLIENTS.items()],
)
@pytest.mark.parametrize("exposure", ["auto", "per_turn", "grow", "append", "proxy", "stubs"])
def test_each_of_ours_keeps_the_contract_on_each_client(exposure, client):
    check_exposure(lambda: exposure, client)


class Shown:
    """An exposure of a user's own: the array is what was selected, and nothing is kept."""

    name = "shown"
    keeps = False
    ranks = True
    additions_reset_cache = True

    def max_additions(self, record):
        return 0

    def names(self, selection, record):
        return list(selection.names)

    def bound(self, names, tools):
        return [tools[name] for name in names]

    def render(self, request, selection, tools, record):
        names = self.names(selection, record)
        return Rendered(request.override(tools=self.bound(names, tools)), tuple(names))

    def receive(self, response, tools):
        return response


def test_one_of_a_users_own_keeps_the_contract():
    check_exposure(Shown)


class Empty(Shown):
    def bound(self, names, tools):
        return []


class Twice(Shown):
    def bound(self, names, tools):
        return [tools[name] for name in [*names, names[0]]]


class Remembering(Shown):
    """Binds the objects that it saw first, with another call's marks on them."""

    def __init__(self):
        self.seen = {}

    def bound(self, names, tools):
        return [self.seen.setdefault(name, tools[name]) for name in names]


class Changing(Shown):
    """Takes what it hides out of the request that it was given."""

    def render(self, request, selection, tools, record):
        request.tools[:] = [tool for tool in request.tools if tool.name in selection.names]
        return super().render(request, selection, tools, record)


class Backwards(Shown):
    def names(self, selection, record):
        return list(selection.names)[::-1]


class Wordy(Shown):
    """Describes each tool in other words each time."""

    def bound(self, names, tools):
        bound = super().bound(names, tools)
        return [tool.model_copy(update={"description": f"{random.random()}"}) for tool in bound]


numbers = itertools.count()


class Numbered(Shown):
    """Describes each tool in the words of its object."""

    def __init__(self):
        self.number = next(numbers)

    def bound(self, names, tools):
        bound = super().bound(names, tools)
        return [tool.model_copy(update={"description": f"{self.number}"}) for tool in bound]


class Forgetful(Shown):
    """Says that it keeps the array, and keeps it in memory, where no restart leaves it."""

    keeps = True
    additions_reset_cache = False

    def __init__(self):
        self.first = ()

    def names(self, selection, record):
        self.first = self.first or selection.names
        return list(self.first)

    def bound(self, names, tools):
        return [tools[name] for name in names if name in tools]


class Rewriting(Shown):
    """Says in each message how many there are."""

    def render(self, request, selection, tools, record):
        rendered = super().render(request, selection, tools, record)
        there = len(request.messages)
        messages = [m.model_copy(update={"content": f"{m.text} (of {there})"}) for m in request.messages]
        return rendered._replace(request=rendered.request.override(messages=messages))


class Deaf(Shown):
    """Gives the agent an answer without the calls in it."""

    def receive(self, response, tools):
        return replace(response, result=[AIMessage("I called it.") for _ in response.result])


class Renaming(Shown):
    """Gives the agent calls of tools that there are not."""

    def receive(self, response, tools):
        def renamed(message):
            calls = [{**call, "name": f"{call['name']}_"} for call in message.tool_calls]
            return message.model_copy(update={"tool_calls": calls})

        return replace(response, result=[renamed(message) for message in response.result])


class Renumbering(Shown):
    """Gives each call an id of its own."""

    def receive(self, response, tools):
        def renumbered(message):
            calls = [{**call, "id": f"{call['id']}_"} for call in message.tool_calls]
            return message.model_copy(update={"tool_calls": calls})

        return replace(response, result=[renumbered(message) for message in response.result])


class Stubborn(Shown):
    """Binds what the thread was shown before, also where it is gone."""

    def names(self, selection, record):
        return list(dict.fromkeys([*selection.names, *record.shown]))


class Inventing(Shown):
    def bound(self, names, tools):
        made_up = tools[names[0]].model_copy(update={"name": "made_up"})
        return [*super().bound(names, tools), made_up]


@pytest.mark.parametrize(
    ("broken", "promise"),
    [
        (Empty, "the tools array is never empty"),
        (Twice, "no two tools have one name"),
        (Remembering, "the objects of this request"),
        (Changing, "the request is not changed"),
        (Backwards, "the first array has the order of the request"),
        (Wordy, "only appended to"),
        (Numbered, "the same input gives the same bytes"),
        (Forgetful, "keep their bytes for the thread"),
        (Rewriting, "earlier messages keep their bytes"),
        (Deaf, "what the model calls is run"),
        (Renaming, "what the model calls is run"),
        (Renumbering, "keeps its calls, with their ids"),
        (Stubborn, "it raised KeyError"),
        (Inventing, "only tools of the request are sent"),
    ],
)
def test_a_broken_promise_is_found_and_named(broken, promise):
    with pytest.raises(AssertionError, match=promise):
        check_exposure(broken)
