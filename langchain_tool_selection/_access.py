"""Which tools a run may use at all. Unlike selection, this is a boundary.

What is refused is taken out before anything else looks at the tools: it is not ranked, not counted, not
found, not named in any answer, and a call of it is answered as a call of a tool that does not exist.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from langchain_core.tools import BaseTool

from langchain_tool_selection._documents import ToolDocument
from langchain_tool_selection._request import name_of
from langchain_tool_selection._search import WarnOnce
from langchain_tool_selection._state import state_value

_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
"""What at least one provider takes as a tool's name."""


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
    def of(cls, runtime: Any, state: Any) -> AccessRuntime:
        """Read it from LangGraph's runtime, of a model call or of a tool."""
        return cls(getattr(runtime, "context", None), state, getattr(runtime, "store", None))


Predicate: TypeAlias = Callable[[Any, AccessRuntime], bool | Awaitable[bool]]
Allow: TypeAlias = Predicate | Mapping[str, Collection[str]] | None
OnChange: TypeAlias = Callable[[Any, str], bool]


class Access:
    """Decides which tools a run may use.

    Args:
        allow: See `ToolSelectionMiddleware`.
        document_of: Reads a tool; a role may go by a domain or tag that only hints have.
        fingerprints: What known tools' documents hash to, by name.
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
        self._document_of = document_of
        self._fingerprints = dict(fingerprints or {})
        self._on_change = on_change
        self._own = own
        self._warn_once = WarnOnce()

    def permitted(self, tools: Sequence[Any], runtime: AccessRuntime) -> Sequence[Any]:
        """Return the tools that may be used, in their order; the same object if all may."""
        kept = [tool for tool in tools if self.permits(tool, runtime)]
        return tools if len(kept) == len(tools) else kept

    async def apermitted(self, tools: Sequence[Any], runtime: AccessRuntime) -> Sequence[Any]:
        """As `permitted`, awaiting the rule where it is a coroutine function."""
        kept = [tool for tool in tools if await self.apermits(tool, runtime)]
        return tools if len(kept) == len(tools) else kept

    def permits(self, tool: Any, runtime: AccessRuntime) -> bool:
        """Whether a tool may be used. A rule that fails refuses."""
        if self._own(tool):
            return True
        if not self._is_sound(tool):
            return False
        try:
            verdict = True if self._allow is None else self._allow(tool, runtime)
        except Exception as error:
            return self._failed(error)
        if inspect.isawaitable(verdict):
            if inspect.iscoroutine(verdict):
                verdict.close()
            return self._failed(TypeError("allow= is a coroutine function, which invoke cannot await"))
        return bool(verdict)

    async def apermits(self, tool: Any, runtime: AccessRuntime) -> bool:
        """As `permits`, awaiting the rule where it is a coroutine function."""
        if self._own(tool):
            return True
        if not self._is_sound(tool):
            return False
        try:
            verdict = True if self._allow is None else self._allow(tool, runtime)
            return bool(await verdict if inspect.isawaitable(verdict) else verdict)
        except Exception as error:
            return self._failed(error)

    def _failed(self, error: Exception) -> bool:
        # The name of the tool stays out: logs may be where the user sees them.
        self._warn_once(
            f"allow {type(error).__name__}",
            "allow= failed, and what it was asked about is refused (said once for each kind of error): %r",
            error,
        )
        return False

    def _is_sound(self, tool: Any) -> bool:
        name = name_of(tool)
        if isinstance(tool, BaseTool) and not _NAME.fullmatch(tool.name):
            self._warn_once(f"name {name}", "no provider takes %r as a tool's name; it is not offered", name)
            return False
        known = self._fingerprints.get(name or "")
        if known is None or known == (found := self._document_of(tool).fingerprint):
            return True
        try:
            approved = self._on_change is not None and bool(self._on_change(tool, found))
        except Exception as error:
            return self._failed(error)
        if not approved:
            self._warn_once(
                f"changed {name} {found}",
                "the definition of %r is not the known one (%s instead of %s); it is not offered until "
                "fingerprints= or on_change= approves it",
                name,
                found,
                known,
            )
        return approved


def _by_role(roles: Mapping[str, Collection[str]], document_of: Callable[[Any], ToolDocument]) -> Predicate:
    def allow(tool: Any, runtime: AccessRuntime) -> bool:
        document = document_of(tool)
        told = {document.name, f"domain:{document.domain}", *(f"tag:{tag}" for tag in document.tags)}
        rules = [rule for role in _roles_in(runtime.context) for rule in roles.get(role, ())]
        return any(fnmatchcase(one, rule) for one in told for rule in rules)

    return allow


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
        if isinstance(rules, str) or not all(isinstance(rule, str) for rule in rules):
            msg = (
                f"allow[{role!r}] takes a collection of tool names, 'tag:...' and 'domain:...', got {rules!r}"
            )
            raise TypeError(msg)
