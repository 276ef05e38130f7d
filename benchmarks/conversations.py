"""Conversations of many turns, made of single labelled requests, and a model that plays the other side.

No published set has long conversations over large catalogues with a label for every turn. So one is put
together: a topic (the server that a request's tools belong to) stays for two to four requests, then
another takes over, and topics may come back. What is said is a person's, what follows what is drawn with a
seed. Every conversation has a catalogue of its own for each size, the smaller ones within the larger.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr

from benchmarks.datasets import Case, Dataset
from langchain_tool_selection._tools.shapes import schema_of
from langchain_tool_selection.testing import ModelCall, schema_name

SYSTEM_PROMPT = "\n".join(
    [
        "You are the assistant of a small company and work through its tools.",
        *(
            f"{number}. {rule}"
            for number, rule in enumerate(
                (
                    "Read the whole message before you act, and do what it asks, no more.",
                    "Call a tool whenever one can answer; never guess what a tool could tell you.",
                    "Before you delete, send, publish or pay for anything, make sure that it was asked for.",
                    "If an argument is missing and cannot be looked up, ask one short question for it.",
                    "If a tool fails, read its message, correct the call once, and say so if it fails again.",
                    "Dates are ISO 8601, times are in the zone of the user, amounts carry their currency.",
                    "Names, numbers and links are given back exactly as the tools gave them.",
                    "Lists of more than ten entries are summed up, with the number of what was left out.",
                    "Personal data of third parties stays out of answers unless it was asked for.",
                    "Answer in the language of the user, in plain sentences, without headings.",
                    "Close with what was done and, if anything is left open, what that is.",
                )
            )
        ),
    ]
)
"""About 230 tokens: short for an agent, so nothing is made of caching it."""

RESULT = json.dumps(
    {
        "ok": True,
        "items": [
            {
                "id": f"obj_{number:06d}",
                "title": f"Entry {number}",
                "state": "open" if number % 3 else "closed",
                "owner": {"id": f"usr_{number * 7:05d}", "display": f"Person {number}"},
                "updated": f"2026-03-{number:02d}T09:{number * 4:02d}:00Z",
            }
            for number in range(1, 9)
        ],
        "next_page": None,
    }
)
"""What every tool answers, about 500 tokens: a page of eight records."""

ANSWER = (
    "That is done. The tool gave back eight entries, of which six are open and two are closed; the latest "
    "was changed on 8 March at 09:32. Nothing else was touched, and no message was sent to anybody. "
)
"""What the model says at the end of each turn, about 50 tokens, before it repeats what it was asked."""

_RUN = (2, 3, 4)
"""How many requests a topic stays for."""

_QUERY_CHARACTERS = 160
"""A search by a model is a line, not a page."""

_PART_WORDS = 3
_PURPOSE_WORDS = 8

_LISTED = re.compile(r"^- `([^`]+)`.*\n  (parameters:)?", re.MULTILINE)
"""A tool in the answer of a search behind a proxy, and whether its parameters are given."""


@dataclass(frozen=True)
class Conversation:
    """One user's requests, in order.

    Attributes:
        name: Tells it from the others.
        cases: The requests with the tools that they need.
        tools: All tools of the set, those first that a smaller catalogue must have: the labelled ones, then
            the others of the same servers, then whole servers in an order of their own.
    """

    name: str
    cases: tuple[Case, ...]
    tools: tuple[Mapping[str, Any], ...]

    def catalog(self, size: int, order: Mapping[str, int]) -> list[BaseTool]:
        """Return its first `size` tools in the order of the set."""
        chosen = sorted(self.tools[:size], key=lambda tool: order[tool["name"]])
        return [_as_tool(tool) for tool in chosen]


def conversations(data: Dataset, count: int, turns: int, seed: int) -> list[Conversation]:
    """Put conversations together. The first ones are the same for any larger `count`.

    Requests that came with a history of their own are left out, and within a conversation none comes twice.
    """
    domain = {tool["name"]: str(tool.get("domain") or "") for tool in data.tools}
    topics: dict[str, list[Case]] = defaultdict(list)
    for case in data.cases:
        if not case.history and all(name in domain for name in case.relevant):
            for topic in dict.fromkeys(domain[name] for name in case.relevant):
                topics[topic].append(case)
    made = []
    for number in range(count):
        draw = random.Random(f"{seed} {data.name} {number}")
        cases = tuple(_cases(topics, turns, draw))
        made.append(Conversation(f"{data.name}-{number}", cases, _by_need(data, cases, domain, draw)))
    return made


def _cases(topics: Mapping[str, Sequence[Case]], turns: int, draw: random.Random) -> Iterator[Case]:
    said: list[Case] = []
    last = ""
    while len(said) < turns:
        left = {topic: [case for case in cases if case not in said] for topic, cases in topics.items()}
        open_topics = sorted(topic for topic, cases in left.items() if cases and topic != last)
        # A topic with one request left is no topic; where no other is, it must do.
        last = draw.choice([topic for topic in open_topics if len(left[topic]) > 1] or open_topics)
        for case in draw.sample(left[last], min(draw.choice(_RUN), len(left[last]), turns - len(said))):
            said.append(case)
            yield case


def _by_need(
    data: Dataset, cases: Sequence[Case], domain: Mapping[str, str], draw: random.Random
) -> tuple[Mapping[str, Any], ...]:
    labelled = {name for case in cases for name in case.relevant}
    near = {domain[name] for name in labelled}
    servers = sorted(set(domain.values()))
    draw.shuffle(servers)
    place = {server: position for position, server in enumerate(servers)}

    def need(tool: Mapping[str, Any]) -> tuple[bool, bool, int]:
        name = tool["name"]
        return name not in labelled, domain[name] not in near, place[domain[name]]

    return tuple(sorted(data.tools, key=need))


# -- tools ---------------------------------------------------------------------------------------------


def sendable(name: str) -> str:
    """Return a name as providers take it."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64]


class _CatalogTool(StructuredTool):
    """A tool that remembers its input schema, for which each new agent asks every one of its tools."""

    _input_schema: Any = PrivateAttr(default=None)

    def get_input_schema(self, config: Any = None) -> Any:
        if self._input_schema is None:
            self._input_schema = super().get_input_schema(config)
        return self._input_schema


def _as_tool(tool: Mapping[str, Any]) -> BaseTool:
    schema = {"type": "object", "properties": {}, **(tool.get("parameters") or {})}
    return _CatalogTool(
        name=sendable(tool["name"]),
        description=tool["description"] or tool["name"],
        args_schema=schema,
        func=_run,
        metadata={"domain": str(tool.get("domain") or "")},
    )


def _run(**_: Any) -> str:
    return RESULT


def arguments_for(schema: Mapping[str, Any]) -> Any:
    """Return the shortest arguments that a JSON schema takes: what it requires, one of each."""
    if "const" in schema or schema.get("enum"):
        return schema["const"] if "const" in schema else schema["enum"][0]
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return arguments_for(schema[key][0])
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            properties = schema.get("properties") or {}
            return {name: arguments_for(properties.get(name) or {}) for name in schema.get("required") or ()}
        case "array":
            return [arguments_for(schema.get("items") or {})] * max(1, schema.get("minItems", 1))
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "null":
            return None
    return "2026-03-08" if "date" in str(schema.get("description", "")).lower() else "example"


# -- the model -----------------------------------------------------------------------------------------


@dataclass
class Player:
    """A model's side of a conversation: an object to pass as a script.

    For each tool that a request needs, in the order of the labels: if it is shown, it is called; if not, and
    there is a search, the model searches once; if that was no use, the tool counts as unreachable. A search
    says what the user said, cut to a line. A second one in the same turn, for another tool, says a part of
    it: the next sentence or clause of three words or more. Calls come one at a time, and text comes last.

    A tool that is shown without its schema is first called without arguments, which is wrong if it requires
    any. A model guesses better than that, so that what such calls cost is an upper bound.

    Attributes:
        conversation: What the user says, and what is needed for it.
        tools: Every tool in the catalogue, by name.
        by_purpose: Whether a search says instead what the needed tool is for: the first eight words of its
            description, which no model can know. An upper bound, as the user's words are a lower one.
        search: The name of the search tool.
        proxy: The name of the tool that calls those that a search found.
    """

    conversation: Conversation
    tools: Mapping[str, BaseTool]
    by_purpose: bool = False
    search: str = "discover_tools"
    proxy: str = "call_tool"
    needed: int = 0
    reached: int = 0
    unasked: int = 0
    searches: int = 0
    tasks: int = 0
    written: list[str] = field(default_factory=list)
    """What the model wrote, calls and text, to count its tokens."""
    selected: list[str] = field(default_factory=list)
    """What a selecting model wrote."""

    _turn: int = -1
    _calls: int = 0
    _open: list[frozenset[str]] = field(default_factory=list)
    _parts: list[str] = field(default_factory=list)
    _searched: bool = False
    _asked: bool = False
    _failed: bool = False

    def __call__(self, sent: ModelCall) -> AIMessage:
        """Return the model's next message."""
        bound = [schema_name(schema) for schema in sent.schemas if not schema.get("defer_loading")]
        visible = {*bound, *_revealed(sent.messages)}
        stubs = {schema_name(schema) for schema in sent.schemas if _is_open(schema)}
        turn = sum(isinstance(message, HumanMessage) for message in sent.messages) - 1
        if turn != self._turn:
            self._begin(turn, visible)
        while self._open:
            wanted = self._open[0]
            if here := sorted(wanted & visible):
                is_known = here[0] not in stubs or self._is_answered(here[0], sent.messages)
                return self._call(here[0]) if is_known else self._guess(here[0])
            if self.proxy in bound and (found := _found(sent.messages)):
                if here := sorted(wanted & {name for name, has_schema in found.items() if has_schema}):
                    return self._call(here[0], by_proxy=True)
                if (here := sorted(wanted & found.keys())) and not self._asked:
                    self._asked = True
                    return self._say(self.search, {"names": [here[0]]}, searching=True)
            if self.search in bound and not self._searched and (words := self._words()):
                self._searched = True
                return self._say(self.search, {"query": words}, searching=True)
            self._close(reached=False)
        self.tasks += not self._failed
        text = f"{ANSWER}You asked for this: {self.conversation.cases[turn].query[:200]}"
        self.written.append(text)
        return AIMessage(text)

    def _begin(self, turn: int, visible: set[str]) -> None:
        case = self.conversation.cases[turn]
        self._turn, self._searched, self._asked, self._failed = turn, False, False, False
        self._open = [
            frozenset({sendable(name), *map(sendable, case.alternatives.get(name, ()))})
            for name in case.relevant
        ]
        self._parts = [_line(case.query), *_clauses(case.query)]
        self.needed += len(self._open)
        self.unasked += sum(bool(wanted & visible) for wanted in self._open)

    def _words(self) -> str:
        if self.by_purpose:
            name = sendable(self.conversation.cases[self._turn].relevant[-len(self._open)])
            return " ".join(self.tools[name].description.split()[:_PURPOSE_WORDS])
        return self._parts.pop(0) if self._parts else ""

    @staticmethod
    def _is_answered(name: str, messages: Sequence[Any]) -> bool:
        """Whether the conversation has what the tool said, or its schema."""
        said = any(isinstance(message, ToolMessage) and message.name == name for message in messages)
        return said or _found(messages).get(name, False)

    def _guess(self, name: str) -> AIMessage:
        return self._say(name, {}) if self._arguments(name) else self._call(name)

    def _arguments(self, name: str) -> Any:
        function = convert_to_openai_tool(self.tools[name])["function"]
        return arguments_for(function.get("parameters") or {})

    def _call(self, name: str, *, by_proxy: bool = False) -> AIMessage:
        self._close(reached=True)
        arguments = self._arguments(name)
        if by_proxy:
            return self._say(self.proxy, {"name": name, "arguments": arguments})
        return self._say(name, arguments)

    def _close(self, *, reached: bool) -> None:
        self.reached += reached
        self._failed |= not reached
        self._open.pop(0)
        self._searched = self._asked = False

    def _say(self, name: str, arguments: dict[str, Any], *, searching: bool = False) -> AIMessage:
        self.searches += searching
        self._calls += 1
        self.written.append(json.dumps([name, arguments], ensure_ascii=False))
        # Ids of one length, so that the same conversation has the same tokens every time.
        id_ = f"call_{self._turn:02d}_{self._calls:04d}"
        return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": id_, "type": "tool_call"}])


def _revealed(messages: Sequence[Any]) -> Iterator[str]:
    """Yield what the conversation shows of tools, in any provider's form."""
    for message in messages:
        if isinstance(message, SystemMessage | ToolMessage) and isinstance(message.content, list):
            for block in message.content:
                match block:
                    case {"type": "tool_addition", "tool": {"definition": {"name": name}}}:
                        yield name
                    case {"type": "additional_tools", "tools": tools}:
                        yield from (tool["name"] for tool in tools)
                    case {"type": "tool_reference", "tool_name": name}:
                        yield name


def _found(messages: Sequence[Any]) -> dict[str, bool]:
    """Return what searches behind a proxy found, and whether with its parameters."""
    found: dict[str, bool] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            for name, has_schema in re.findall(
                r"^- `([^`]+)`.*\n  (parameters:)?", message.text, re.MULTILINE
            ):
                found[name] = found.get(name, False) or bool(has_schema)
    return found


def _is_open(schema: Mapping[str, Any]) -> bool:
    """Whether a tool is shown without its schema."""
    shown = schema_of(schema) or {}
    return shown.get("additionalProperties") is True and not shown.get("properties")


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _QUERY_CHARACTERS else line[:_QUERY_CHARACTERS].rsplit(" ", 1)[0]


def _clauses(text: str) -> list[str]:
    parts = re.split(r"[.;:!?,\n]+\s|\band\b|\bthen\b|[\u3002\uff0c\uff1b]", text)
    return [_line(part) for part in parts if len(part.split()) >= _PART_WORDS]
