"""Which tools a run may use at all. Unlike selection, this is a boundary.

What is refused is taken out before anything else looks at the tools: it is not ranked, not counted, not
found, not named in any answer, and a call of it is answered as a call of a tool that does not exist.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import re
import traceback
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import translate
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.tools import BaseTool

from langchain_tool_selection._ground.errors import ends_the_run
from langchain_tool_selection._ground.log import WarnOnce
from langchain_tool_selection._ground.messages import state_value
from langchain_tool_selection._ground.untrusted import one_line
from langchain_tool_selection._tools.documents import ToolDocument, content_key, document_of
from langchain_tool_selection._tools.shapes import fields_of, name_of

_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
"""What at least one provider takes as a tool's name."""

_QUOTED = 80
"""Characters of a name that a warning quotes: whoever chose it may have chosen a megabyte."""


@dataclass(frozen=True)
class AccessRuntime:
    """What a rule may go by, the same before a model call, in a search and before a tool runs.

    Attributes:
        context: The run's context, as passed to `invoke(..., context=...)`; `None` without one.
        state: The agent's state at this moment.
        store: The run's store; `None` without one.
    """

    context: Any
    state: Any
    store: Any

    @classmethod
    def of(cls, request: Any) -> AccessRuntime:
        """Read it from LangChain's request, of a model call or of a tool call."""
        runtime = request.runtime
        return cls(getattr(runtime, "context", None), request.state, getattr(runtime, "store", None))


Predicate: TypeAlias = Callable[[Any, AccessRuntime], bool | Awaitable[bool]]
Allow: TypeAlias = Predicate | Mapping[str, Collection[str]] | None
OnChange: TypeAlias = Callable[[Any, str], bool]


def fingerprint_of(tool: Any) -> str:
    """Return 32 hex digits over a tool's whole definition, the same in every process.

    Over all that a model or a rule could be misled by: name, description, the schema with every nested
    description, value and default, the domain, tags and examples that the tool itself says it has, and its
    metadata, such as the hint of a server that a tool only reads. What `hints=` adds does not count.

    Raises:
        TypeError: `tool` has no name, or a schema that is no JSON.
    """
    # What came from a server is JSON. Anything else in the metadata came with the user's code.
    metadata = json.dumps(
        getattr(tool, "metadata", None), sort_keys=True, default=lambda one: type(one).__name__
    )
    definition = json.dumps([document_of(tool).fingerprint, _definition(tool), metadata], sort_keys=True)
    return hashlib.blake2b(definition.encode(), digest_size=16).hexdigest()


def _definition(tool: Any) -> Any:
    if isinstance(tool, Mapping):
        return dict(tool)
    if not isinstance(tool, BaseTool):
        return getattr(tool, "inputSchema", None)  # a tool of MCP's own
    # Not as LangChain converts it for a provider, which may change with its version.
    schema = tool.tool_call_schema
    if isinstance(schema, Mapping):
        return dict(schema)
    return schema.model_json_schema() if hasattr(schema, "model_json_schema") else schema.schema()


class Verdict(NamedTuple):
    """Whether a tool may be used, and what failed while that was found out; empty if nothing did."""

    permits: bool
    failure: str = ""


_YES, _NO = Verdict(True), Verdict(False)


class Permitted(NamedTuple):
    """What a run may use: the tools, in their order, and what failed while they were found out."""

    tools: Sequence[Any]
    failures: tuple[str, ...] = ()


class Access:
    """Decides which tools a run may use.

    Args:
        allow: See `ToolSelectionMiddleware`.
        document_of: Reads a tool; a role may go by a domain or tag that only hints have.
        fingerprints: What `fingerprint_of` gives for known tools, by name.
        on_change: Whether a tool whose definition is another than the known one may be used.
        own: Whether a tool is the middleware's own, which are always allowed.
    """

    def __init__(
        self,
        allow: Allow,
        *,
        document_of: Callable[[Any], ToolDocument],
        fingerprints: Mapping[str, str] | None,
        on_change: OnChange | None,
        own: Callable[[Any], bool],
    ) -> None:
        self._allow: Predicate | None = _by_role(allow, document_of) if isinstance(allow, Mapping) else allow
        self._fingerprints = _checked_fingerprints(fingerprints)
        self._found: dict[str, tuple[Any, ...]] = {}  # by name: what was hashed last, and what it came to
        self._on_change = on_change
        self._own = own
        self._warn_once = WarnOnce()

    def permitted(self, tools: Sequence[Any], runtime: AccessRuntime) -> Permitted:
        """Return the tools that may be used; the same object if all may."""
        if self._refuses_nothing and all(map(_is_offered, tools)):
            return Permitted(tools)  # nothing to ask about any of thousands of tools
        return _permitted(tools, [self._verdict(tool, runtime) for tool in tools])

    async def apermitted(self, tools: Sequence[Any], runtime: AccessRuntime) -> Permitted:
        """As `permitted`, awaiting the rule where it is a coroutine function, for all tools at once."""
        if self._refuses_nothing:
            return self.permitted(tools, runtime)
        said = [self._said(tool, runtime) for tool in tools]
        waiting = [place for place, one in enumerate(said) if not isinstance(one, Verdict)]
        settled = await asyncio.gather(*(self._awaited(tools[place], said[place]) for place in waiting))
        for place, verdict in zip(waiting, settled, strict=True):
            said[place] = verdict
        return _permitted(tools, said)

    def narrowed(self, request: ToolCallRequest, runtime: AccessRuntime) -> ToolCallRequest:
        """Return a tool call as middleware behind this one, and the tool itself, may see it.

        Its runtime lists only what may be used: there one looks for a tool to call, or for the one that a
        human has edited a call into. And nobody can make it a call of a tool that is refused.
        """
        if self._refuses_nothing:
            return request
        return self._guarded(request, runtime, self.permitted(request.runtime.tools, runtime).tools)

    async def anarrowed(self, request: ToolCallRequest, runtime: AccessRuntime) -> ToolCallRequest:
        """As `narrowed`, awaiting the rule where it is a coroutine function."""
        if self._refuses_nothing:
            return request
        permitted = await self.apermitted(request.runtime.tools, runtime)
        return self._guarded(request, runtime, permitted.tools)

    @property
    def _refuses_nothing(self) -> bool:
        return self._allow is None and not self._fingerprints

    def _guarded(self, request: ToolCallRequest, runtime: AccessRuntime, tools: Sequence[Any]) -> _Guarded:
        if tools is not request.runtime.tools:
            tools = _Narrowed.of(tools, request.runtime.tools)
            request = replace(request, runtime=replace(request.runtime, tools=tools))
        return _Guarded.of(request, lambda tool: self.permits(tool, runtime))

    # Nothing is said of a tool, not even that its name is wrong, before the rule has allowed it.

    def permits(self, tool: Any, runtime: AccessRuntime) -> bool:
        """Whether a tool may be used. A rule that fails refuses."""
        return self._verdict(tool, runtime).permits

    async def apermits(self, tool: Any, runtime: AccessRuntime) -> bool:
        """As `permits`, awaiting the rule where it is a coroutine function."""
        return bool((await self.apermitted([tool], runtime)).tools)

    def _verdict(self, tool: Any, runtime: AccessRuntime) -> Verdict:
        said = self._said(tool, runtime)
        return said if isinstance(said, Verdict) else self._cannot_await("allow", said)

    def _said(self, tool: Any, runtime: AccessRuntime) -> Any:
        """Return the verdict on a tool, or what has to be awaited before there is one."""
        if self._own(tool):
            return _YES
        try:
            verdict = True if self._allow is None else self._allow(tool, runtime)
            if inspect.isawaitable(verdict):
                return verdict
            return self._sound(tool) if verdict else _NO
        except Exception as error:
            return self._failed("allow", error)

    async def _awaited(self, tool: Any, verdict: Awaitable[bool]) -> Verdict:
        try:
            return self._sound(tool) if await verdict else _NO
        except (Exception, asyncio.CancelledError) as error:
            if ends_the_run(error):
                raise
            return self._failed("allow", error)

    def _cannot_await(self, setting: str, verdict: Any) -> Verdict:
        if inspect.iscoroutine(verdict):
            verdict.close()
        self._warn_once(
            f"{setting} await",
            "%s= has to be awaited, which can be done in ainvoke only, for a model call, a search or a "
            "registered tool; what it was asked about is refused",
            setting,
        )
        return Verdict(False, f"{setting}= has to be awaited; refused what it was asked about")

    def _failed(self, setting: str, error: BaseException) -> Verdict:
        # Without the tool's name, and without the error's message, which often is that name: logs may be
        # where the user sees them.
        kind, where = type(error).__name__, _raised_at(error)
        self._warn_once(
            f"{setting} {kind} {where}",
            "%s= failed with %s at %s, and what it was asked about is refused (said once for each place)",
            setting,
            kind,
            where,
        )
        return Verdict(False, f"{setting}= failed with {kind}; refused what it was asked about")

    def _sound(self, tool: Any) -> Verdict:
        name = name_of(tool)
        if name is None:
            return _YES  # a provider's own, known by its type
        if not _is_possible(name):
            quoted = one_line(name, _QUOTED)
            self._warn_once(f"name {quoted}", "no provider takes '%s' as a tool's name; not offered", quoted)
            return _NO
        return self._known(name, tool) if name in self._fingerprints else _YES

    def _known(self, name: str, tool: Any) -> Verdict:
        try:
            found = self._fingerprint(name, tool)
        except Exception as error:
            return self._failed("fingerprints", error)
        known = self._fingerprints[name]
        if known == found:
            return _YES
        try:
            verdict = self._on_change is not None and self._on_change(tool, found)
            if inspect.isawaitable(verdict):
                return self._cannot_await("on_change", verdict)
            approved = bool(verdict)
        except Exception as error:
            return self._failed("on_change", error)
        if not approved:
            self._warn_once(
                f"changed {name}",
                "the definition of %r is not the known one (%s instead of %s); it is not offered until "
                "fingerprints= or on_change= approves it (said once for each tool)",
                name,
                found,
                known,
            )
        return _YES if approved else _NO

    def _fingerprint(self, name: str, tool: Any) -> str:
        if not isinstance(tool, BaseTool):
            return fingerprint_of(tool)
        key, last = content_key(tool), self._found.get(name)
        if last is None or last[0] != key:
            # What counts by identity in the key has to stay alive as long as the key does.
            last = self._found[name] = key, fingerprint_of(tool), tool.args_schema, tool.metadata
        return str(last[1])


def _is_offered(tool: Any) -> bool:
    name = name_of(tool)
    return name is None or _is_possible(name)


def _is_possible(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def _permitted(tools: Sequence[Any], verdicts: Sequence[Verdict]) -> Permitted:
    kept = [tool for tool, verdict in zip(tools, verdicts, strict=True) if verdict.permits]
    failures = dict.fromkeys(verdict.failure for verdict in verdicts if verdict.failure)
    return Permitted(tools if len(kept) == len(tools) else kept, tuple(failures))


class _Narrowed(list[Any]):
    """The tools that may be used. Our own tools, which ask the rule themselves, get at all of them."""

    _registered: Sequence[Any]

    @classmethod
    def of(cls, tools: Iterable[Any], registered: Sequence[Any]) -> _Narrowed:
        narrowed = cls(tools)
        narrowed._registered = registered
        return narrowed


def registered_in(tools: Sequence[Any]) -> Sequence[Any]:
    """Return all registered tools, given those that a call may know of."""
    return tools._registered if isinstance(tools, _Narrowed) else tools


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


_KINDS = ("tag", "domain")
"""What a rule may name beside tools."""


def _by_role(roles: Mapping[str, Collection[str]], document_of: Callable[[Any], ToolDocument]) -> Predicate:
    compiled = {role: [_rule(rule) for rule in rules] for role, rules in roles.items()}

    def allow(tool: Any, runtime: AccessRuntime) -> bool:
        rules = [rule for role in _roles_in(runtime.context) for rule in compiled.get(role, ())]
        if name_of(tool) is None:
            told: dict[str, Iterable[str]] = {"name": [str(tool.get("type", ""))]}
        else:
            document = document_of(tool)
            told = {"name": [document.name], "tag": document.tags, "domain": [document.domain]}
        return any(pattern.match(one) for kind, pattern in rules for one in told.get(kind, ()) if one)

    return allow


def _rule(rule: str) -> tuple[str, re.Pattern[str]]:
    """Return what a rule is about, and its pattern. By kind, because a tool may be *named* `tag:safe`."""
    kind, colon, pattern = rule.partition(":")
    if not colon or kind not in _KINDS:
        kind, pattern = "name", rule
    return kind, re.compile(translate(pattern))


def _roles_in(context: Any) -> list[str]:
    """Return what the run's context says of roles, under `role` or `roles`."""
    said = [state_value(context, "role"), *_listed(state_value(context, "roles"))]
    return [role for role in said if isinstance(role, str)]


def _listed(value: Any) -> Iterable[Any]:
    return (
        [value]
        if isinstance(value, str)
        else value
        if isinstance(value, list | tuple | set | frozenset)
        else ()
    )


def _checked_fingerprints(fingerprints: Any) -> dict[str, str]:
    if fingerprints is None:
        return {}
    if not isinstance(fingerprints, Mapping):
        kind = type(fingerprints).__name__
        msg = f"fingerprints must map tool names to what fingerprint_of gives, got {kind}"
        raise TypeError(msg)
    for name, fingerprint in fingerprints.items():
        if not isinstance(fingerprint, str):
            msg = f"fingerprints[{name!r}] takes what fingerprint_of gives, got {fingerprint!r}"
            raise TypeError(msg)
    return dict(fingerprints)


def check_allow(allow: Any) -> None:
    """Check `allow`."""
    if allow is None or (callable(allow) and not isinstance(allow, Mapping)):
        return
    if not isinstance(allow, Mapping):
        msg = (
            "allow must be a function (tool, runtime) -> bool, or a mapping of roles to tool names, "
            f"'tag:...' and 'domain:...', got {type(allow).__name__}"
        )
        raise TypeError(msg)
    for role, rules in allow.items():
        listed = isinstance(rules, Collection) and not isinstance(rules, str | bytes)
        if not listed or not all(isinstance(rule, str) for rule in rules):
            msg = (
                f"allow[{role!r}] takes a collection of tool names, 'tag:...' and 'domain:...', got {rules!r}"
            )
            raise TypeError(msg)
