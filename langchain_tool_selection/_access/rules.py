"""What a rule of access goes by, and rules by role."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from langchain_tool_selection._ground.messages import state_value
from langchain_tool_selection._tools.documents import ToolDocument
from langchain_tool_selection._tools.patterns import Patterns
from langchain_tool_selection._tools.shapes import name_of


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
        """Read it from LangGraph's runtime, or that of a tool."""
        return cls(getattr(runtime, "context", None), state, getattr(runtime, "store", None))


Predicate: TypeAlias = Callable[[Any, AccessRuntime], bool | Awaitable[bool]]
Allow: TypeAlias = Predicate | Mapping[str, Collection[str]] | None
OnChange: TypeAlias = Callable[[Any, str], bool]


class Roles:
    """A rule from a mapping of roles to names and patterns.

    Args:
        roles: Names and patterns (see `_tools.patterns`) by role.
        document_of: Reads a tool; a pattern may go by a domain or tag that only hints have.
    """

    def __init__(
        self, roles: Mapping[str, Collection[str]], document_of: Callable[[Any], ToolDocument]
    ) -> None:
        self._roles = {role: Patterns(patterns) for role, patterns in roles.items()}
        self._document_of = document_of

    def __call__(self, tool: Any, runtime: AccessRuntime) -> bool:
        """Whether a role of the run permits a tool."""
        document = self._document(tool)
        return any(patterns.match(document) for patterns in self.patterns_of(runtime).values())

    def patterns_of(self, runtime: AccessRuntime) -> dict[str, Patterns]:
        """Return what the roles of a run permit, by role; unknown roles are left out."""
        return {role: self._roles[role] for role in _roles_in(runtime.context) if role in self._roles}

    def _document(self, tool: Any) -> ToolDocument:
        if name_of(tool) is None:  # a provider's own tool goes by its type
            return ToolDocument(str(tool.get("type", "")))
        return self._document_of(tool)


def check_allow(allow: Any) -> None:
    """Check `allow`.

    Raises:
        TypeError: it is neither a function nor a mapping of roles to collections of names.
    """
    if allow is None or (callable(allow) and not isinstance(allow, Mapping)):
        return
    if not isinstance(allow, Mapping):
        raise TypeError(
            "allow must be a function (tool, runtime) -> bool, or a mapping of roles to tool names, "
            f"'tag:...' and 'domain:...', got {type(allow).__name__}"
        )
    for role, rules in allow.items():
        listed = isinstance(rules, Collection) and not isinstance(rules, str | bytes)
        if not listed or not all(isinstance(rule, str) for rule in rules):
            raise TypeError(
                f"allow[{role!r}] takes a collection of tool names, 'tag:...' and 'domain:...', got {rules!r}"
            )


def _roles_in(context: Any) -> list[str]:
    """Return what the run's context says of roles, under `role` or `roles`."""
    said = [state_value(context, "role"), *_listed(state_value(context, "roles"))]
    return [role for role in said if isinstance(role, str)]


def _listed(value: Any) -> Iterable[Any]:
    if isinstance(value, str):
        return [value]
    return value if isinstance(value, list | tuple | set | frozenset) else ()
