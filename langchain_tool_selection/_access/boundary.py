"""Which tools a run may use at all. Unlike selection, this is a boundary.

What is refused is taken out before anything else looks at the tools: it is not ranked, not counted, not
found, not named in any answer, and a call of it is answered as a call of a tool that does not exist.

`Access` asks the rule; a `Boundary` is what it answered at one moment. A tool call takes its boundary along
in `runtime.tools`, for whoever looks there for a tool to call.
"""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import attrgetter, is_
from pathlib import Path
from typing import Any, NamedTuple

from langchain.agents.middleware.types import ModelRequest, ToolCallRequest

from langchain_tool_selection._access.fingerprints import Fingerprints
from langchain_tool_selection._access.rules import AccessRuntime, Allow, OnChange, Predicate, Roles
from langchain_tool_selection._ground.errors import ends_the_run
from langchain_tool_selection._ground.log import WarnOnce
from langchain_tool_selection._ground.untrusted import one_line
from langchain_tool_selection._tools.documents import ToolDocument
from langchain_tool_selection._tools.names import is_possible_name
from langchain_tool_selection._tools.patterns import Patterns
from langchain_tool_selection._tools.shapes import fields_of, name_of

_QUOTED = 80
"""Characters of a name that a warning quotes: whoever chose it may have chosen a megabyte."""

_KNOWN = 20
"""Names that a warning lists."""


_NAME = attrgetter("name")


@dataclass(frozen=True, eq=False)
class Boundary:
    """What a run may use, as the rule said at one moment.

    Attributes:
        tools: The tools that it may use, in their order; the very object that was asked about if that is all.
        refused: Names of the others.
        failures: What failed while the rule was asked.
        is_whole: Whether the rule was asked about all registered tools. If not, `refuses` is true of each
            tool that is not among those permitted.
    """

    tools: Sequence[Any]
    refused: frozenset[str] = frozenset()
    failures: tuple[str, ...] = ()
    is_whole: bool = True

    def refuses(self, name: str) -> bool:
        """Whether the run may not use the tool of this name."""
        return name in self.refused or not (self.is_whole or name in self.by_name)

    def permits(self, tool: Any) -> bool:
        """Whether this very tool was asked about and permitted."""
        return id(tool) in self._identities

    @cached_property
    def _identities(self) -> frozenset[int]:
        return frozenset(map(id, self.tools))

    @cached_property
    def by_name(self) -> dict[str, Any]:
        """The permitted tools that have a name, by it."""
        return {name: tool for tool in self.tools if (name := name_of(tool)) is not None}


class Question(NamedTuple):
    """A question: which of these tools may a run use?

    Attributes:
        tools: The tools.
        runtime: The run's, of LangGraph.
        state: The agent's state at this moment.
        are_all: Whether these are all registered tools, as far as that matters.
        known: The answer, where an earlier step has asked.
        is_request: Whether these are the tools of a model call, which settings should match.
    """

    tools: Sequence[Any]
    runtime: Any
    state: Any
    are_all: bool = True
    known: Boundary | None = None
    is_request: bool = False

    @property
    def goes_by(self) -> AccessRuntime:
        """What the rule may go by. Most runs have no rule, so that nobody asks for it."""
        return AccessRuntime.of(self.runtime, self.state)


class Access:
    """Decides which tools a run may use.

    Args:
        allow: See `ToolSelectionMiddleware`.
        document_of: Reads a tool; a role may go by a domain or tag that only hints have.
        fingerprints: What `fingerprint_of` gives for known tools, by name.
        on_change: Whether a tool whose definition is another than the known one may be used.
        is_own: Whether a tool is the middleware's own, which are always permitted.
    """

    def __init__(
        self,
        allow: Allow,
        *,
        document_of: Callable[[Any], ToolDocument],
        fingerprints: Mapping[str, str] | None,
        on_change: OnChange | None,
        is_own: Callable[[Any], bool],
    ) -> None:
        self._allow: Predicate | None = Roles(allow, document_of) if isinstance(allow, Mapping) else allow
        self._fingerprints = Fingerprints(fingerprints or {})
        self._on_change = on_change
        self._is_own = is_own
        self._document_of = document_of
        self._warn_once = WarnOnce()
        self._checked: set[str] = set()  # settings whose names were held against the tools
        self._possible_names: list[str | None] = []  # those of the newest request, checked

    @property
    def refuses_nothing(self) -> bool:
        """Whether there is no rule, so that only a tool whose name is impossible is refused."""
        return self._allow is None and not self._fingerprints

    def boundary(self, question: Question) -> Boundary:
        """Return what of the tools the run may use. A rule that fails refuses."""
        if (known := question.known or self._unasked(question.tools)) is not None:
            return known
        runtime = question.goes_by
        answers = [self._answer(tool, runtime) for tool in question.tools]
        return self._bounded(question, [self._settled("allow", answer) for answer in answers])

    async def aboundary(self, question: Question) -> Boundary:
        """As `boundary`, awaiting the rule where it is a coroutine function, for all tools at once."""
        if question.known is not None or self.refuses_nothing:
            return self.boundary(question)
        runtime = question.goes_by
        answers = [self._answer(tool, runtime) for tool in question.tools]
        waiting = [place for place, one in enumerate(answers) if inspect.isawaitable(one)]
        awaited = (self._awaited(question.tools[place], answers[place]) for place in waiting)
        for place, answer in zip(waiting, await asyncio.gather(*awaited), strict=True):
            answers[place] = answer
        return self._bounded(question, answers)

    def _bounded(self, question: Question, answers: Sequence[Any]) -> Boundary:
        """Return the boundary that the answers about each tool make."""
        if question.is_request:
            self._warn_about_unmatched(question.tools, question.goes_by)
        answered = [*zip(question.tools, answers, strict=True)]
        kept = [tool for tool, answer in answered if answer is True]
        if len(kept) == len(question.tools):
            return Boundary(question.tools, is_whole=question.are_all)
        failures = dict.fromkeys(answer for answer in answers if isinstance(answer, str))
        unkept = (tool for tool, answer in answered if answer is not True)
        refused = {name for tool in unkept if (name := name_of(tool)) is not None}
        refused.difference_update(map(name_of, kept))
        return Boundary(kept, frozenset(refused), tuple(failures), question.are_all)

    def _unasked(self, tools: Sequence[Any]) -> Boundary | None:
        """Return the boundary if there is nothing to ask about any of thousands of tools."""
        if not self.refuses_nothing:
            return None
        try:
            names = [*map(_NAME, tools)]
        except AttributeError:  # with a provider's dict
            names = [*map(name_of, tools)]
        if names != self._possible_names:
            if not all(name is None or is_possible_name(name) for name in names):
                return None
            self._possible_names = names
        return Boundary(tools)

    # -- what is asked ---------------------------------------------------------------------------------

    def of_request(self, request: ModelRequest[Any]) -> Question:
        """Ask which of its tools the run of a model call may use."""
        return Question(request.tools, request.runtime, request.state, is_request=True)

    def of_call(self, request: ToolCallRequest) -> Question:
        """Ask about the registered tools on behalf of a tool call, and about the tool to call."""
        called = [] if request.tool is None else [request.tool]
        # Where nothing is narrowed, nothing need be known of the others.
        tools: Sequence[Any] = () if self.refuses_nothing else request.runtime.tools
        is_registered = any(map(partial(is_, request.tool), tools))
        tools = tools if is_registered else [*tools, *called]
        return Question(tools, request.runtime, request.state)

    def of_own_tool(self, runtime: Any, own: Sequence[str]) -> Question:
        """Ask what a tool of ours may find: its call brought that along, or the rule says it now.

        Args:
            runtime: The tool's runtime.
            own: Names of our own tools, which are never found.
        """
        tools = [tool for tool in runtime.tools if tool.name not in own]
        question = Question(tools, runtime, runtime.state)
        if isinstance(runtime.tools, PermittedTools):
            return question._replace(known=replace(runtime.tools.boundary, tools=tools))
        # Somebody handed on a copy of the tools, maybe of those alone that are permitted. So nothing is known
        # of the others, and what is not there is taken for refused.
        return question._replace(are_all=self.refuses_nothing)

    # -- a tool call -----------------------------------------------------------------------------------

    def narrowed(self, request: ToolCallRequest, boundary: Boundary) -> ToolCallRequest:
        """Return a tool call as middleware behind this one, and the tool itself, may see it.

        Its runtime lists only what may be used: there one looks for a tool to call, or for the one that a
        human has edited a call into. And nobody can make it a call of a tool that is refused.
        """
        if self.refuses_nothing:
            return request
        tools = PermittedTools(filter(boundary.permits, request.runtime.tools), boundary)
        request = replace(request, runtime=replace(request.runtime, tools=tools))
        runtime, state = request.runtime, request.state
        return _Guarded.of(request, lambda tool: bool(self.boundary(Question([tool], runtime, state)).tools))

    # -- one tool --------------------------------------------------------------------------------------
    # An answer is True, False, an awaitable of either, or what failed, in words.

    def _answer(self, tool: Any, runtime: AccessRuntime) -> Any:
        """Return whether the run may use the tool, an awaitable of that, or what failed."""
        if self._is_own(tool):
            return True
        try:
            permits = True if self._allow is None else self._allow(tool, runtime)
            if inspect.isawaitable(permits):
                return permits
            # Nothing is said of a tool, not even that its name is wrong, before the rule has permitted it.
            return bool(permits) and self._is_sound(tool)
        except Exception as error:
            return self._failed("allow", error)

    async def _awaited(self, tool: Any, permits: Awaitable[bool]) -> Any:
        try:
            return bool(await permits) and self._is_sound(tool)
        except (Exception, asyncio.CancelledError) as error:
            if ends_the_run(error):
                raise
            return self._failed("allow", error)

    def _settled(self, setting: str, answer: Any) -> Any:
        """Return an answer on the sync path, where nothing can be awaited."""
        if not inspect.isawaitable(answer):
            return answer
        if inspect.iscoroutine(answer):
            answer.close()
        message = (
            "%s= has to be awaited, which can be done in ainvoke only, for a model call, a search or a "
            "registered tool; what it was asked about is refused"
        )
        self._warn_once(f"{setting} await", message, setting)
        return f"{setting}= has to be awaited; refused what it was asked about"

    def _failed(self, setting: str, error: BaseException) -> str:
        # Without the tool's name, and without the error's message, which often is that name: logs may be
        # where the user sees them.
        kind, where = type(error).__name__, _raised_at(error)
        message = (
            "%s= failed with %s at %s, and what it was asked about is refused (said once for each place)"
        )
        self._warn_once(f"{setting} {kind} {where}", message, setting, kind, where)
        return f"{setting}= failed with {kind}; refused what it was asked about"

    def _is_sound(self, tool: Any) -> Any:
        """Return whether a tool that the rule permits has a possible name and an approved definition."""
        name = name_of(tool)
        if name is None:
            return True  # a provider's own, known by its type
        if not is_possible_name(name):
            quoted = one_line(name, _QUOTED)
            self._warn_once(f"name {quoted}", "no provider takes '%s' as a tool's name; not offered", quoted)
            return False
        return self._is_approved(name, tool) if name in self._fingerprints else True

    def _is_approved(self, name: str, tool: Any) -> Any:
        setting, approved = "fingerprints", self._fingerprints[name]
        try:
            found = self._fingerprints.of(name, tool)
            if approved == found:
                return True
            setting = "on_change"
            answer = self._on_change is not None and self._settled(setting, self._on_change(tool, found))
        except Exception as error:
            return self._failed(setting, error)
        if not answer:
            message = (
                "tool %r changed since it was approved (fingerprint %s, approved %s). It is hidden; approve "
                "it with fingerprints= or on_change=. (Said once for each tool.)"
            )
            self._warn_once(f"changed {name}", message, name, found, approved)
        return answer if isinstance(answer, str) else bool(answer)

    # -- all tools -------------------------------------------------------------------------------------

    def _warn_about_unmatched(self, tools: Sequence[Any], runtime: AccessRuntime) -> None:
        """Say once which fingerprints, and which patterns of the run's roles, match no tool there is."""
        settings: dict[str, Patterns] = {}
        if self._fingerprints and "fingerprints=" not in self._checked:
            settings["fingerprints="] = Patterns(self._fingerprints)
        if isinstance(self._allow, Roles):
            patterns = self._allow.patterns_of(runtime)
            settings |= {f"allow[{role!r}]": one for role, one in patterns.items()}
        message = "%s names %r, which matches no tool of this request; known tools: %s"
        for setting in settings.keys() - self._checked:
            self._checked.add(setting)
            named = {name: tool for tool in tools if (name := name_of(tool)) is not None}
            known = ", ".join(one_line(name, _QUOTED) for name in [*named][:_KNOWN])
            for name in sorted(settings[setting].unmatched(named, self._document_of)):
                self._warn_once(f"{setting} {name}", message, setting, name, known)


class PermittedTools(list[Any]):
    """The tools of a call's runtime that the run may use, with the boundary that says so."""

    def __init__(self, tools: Iterable[Any], boundary: Boundary) -> None:
        super().__init__(tools)
        self.boundary = boundary


class _Guarded(ToolCallRequest):
    """A tool call that does not become one of a tool that is refused."""

    _permits: Callable[[Any], bool]

    @classmethod
    def of(cls, request: ToolCallRequest, permits: Callable[[Any], bool]) -> _Guarded:
        guarded = cls(**fields_of(request))
        object.__setattr__(guarded, "_permits", permits)  # a request warns of any other way
        return guarded

    def override(self, **changes: Any) -> ToolCallRequest:
        """Return the call with changes. LangGraph answers one without a tool, if its name is none either."""
        tool = changes.get("tool")
        if tool is not None and not self._permits(tool):
            tool_call = changes.get("tool_call", self.tool_call)
            changes = {**changes, "tool": None, "tool_call": {**tool_call, "name": ""}}
        return _Guarded.of(super().override(**changes), self._permits)


def _raised_at(error: BaseException) -> str:
    """Return file and line of the outermost function that is not this module's."""
    frames = traceback.extract_tb(error.__traceback__)
    frame = next((frame for frame in frames if frame.filename != __file__), frames[-1])
    return f"{Path(frame.filename).name}:{frame.lineno}"
