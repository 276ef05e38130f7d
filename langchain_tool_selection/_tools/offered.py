"""The tools of one request by name, and which of them are never hidden."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain
from operator import eq, is_
from typing import Any, Literal

from langchain_core.tools import BaseTool

from langchain_tool_selection._ground.log import WarnOnce
from langchain_tool_selection._tools.documents import ToolDocument
from langchain_tool_selection._tools.limits import FEWEST, is_plain
from langchain_tool_selection._tools.patterns import Patterns
from langchain_tool_selection._tools.shapes import is_deferred, is_harness_tool, name_of, tools_by_name

NeverHidden = Literal["provider", "discovery", "core", "deferred"]
"""Why a tool is never hidden, as `Reason.kind` has it."""

_KNOWN = 20
"""Names that a warning lists."""


class OwnTools:
    """The tools that the middleware brought along.

    Args:
        tools: The tools: the search tool, and `call_tool` where there is one.
    """

    def __init__(self, tools: Sequence[Any]) -> None:
        self.names = frozenset(tool.name for tool in tools)
        self._functions = frozenset(id(tool.func) for tool in tools)

    def __contains__(self, tool: Any) -> bool:
        # Compared by function, because other middleware may have sent a marked copy of our tool.
        return id(getattr(tool, "func", self)) in self._functions


@dataclass(frozen=True, eq=False)
class Offer:
    """The tools of one request.

    Attributes:
        tools: The tools by name, in their order.
        never_hidden: Those that are never hidden, and why.
        is_plain: Whether every provider takes all of them.
        read: All tools of the request.
        held: What each of them held then; empty if that is not known.
    """

    tools: Mapping[str, Any]
    never_hidden: Mapping[str, NeverHidden]
    is_plain: bool = True
    read: Sequence[Any] = ()
    held: Sequence[dict[str, Any]] = ()

    def is_of(self, tools: Sequence[Any]) -> bool:
        """Whether these are the tools that were read, and none has changed since."""
        if not len(tools) == len(self.read) == len(self.held) or not all(map(is_, tools, self.read)):
            return False
        try:
            return all(map(eq, map(vars, tools), self.held))
        except Exception:  # metadata may hold what cannot be compared, such as arrays
            return False


class OfferedTools:
    """Reads the tools of requests.

    Most requests bring the very tools of the one before, unchanged. Those are not read again.

    Args:
        own: The middleware's own tools.
        always_include: Names and patterns of tools that are never hidden.
        hints: Names that `hints=` is about.
        document_of: Reads a tool; a pattern may go by a domain or tag that only hints have.

    Attributes:
        latest: The tools of the newest request, whichever thread it came from.
    """

    def __init__(
        self,
        own: OwnTools,
        always_include: Iterable[str],
        hints: Iterable[str],
        document_of: Callable[[Any], ToolDocument],
    ) -> None:
        self.own = own
        self.latest = Offer({}, {})
        self._always_include = Patterns([*always_include])
        self._hints = Patterns([*hints])
        self._document_of = document_of
        self._is_checked = False
        self._warn_once = WarnOnce()

    def read(self, permitted: Sequence[Any]) -> Offer:
        """Return the tools of a request. Of two with one name the first counts, or ours.

        Raises:
            ValueError: the agent has another tool by the name of one of ours, and ours is not there.
        """
        latest = self.latest
        if latest.is_of(permitted):
            return latest
        tools = self._by_name(permitted)
        held = []
        with suppress(Exception):  # a provider's dict holds nothing by attribute; others cannot be copied
            held = [*map(_held_by, permitted)]
        self.latest = offer = Offer(
            tools,
            self._never_hidden(tools),
            is_plain=len(tools) <= FEWEST and all(map(is_plain, tools.values())),
            read=tuple(permitted),
            held=held,
        )
        return offer

    def _by_name(self, permitted: Sequence[Any]) -> dict[str, Any]:
        tools = tools_by_name(permitted, self._warn_about_duplicate)
        for name in self.own.names & tools.keys():
            # A server that names a tool as one of ours takes nothing away from the agent but that tool.
            same_name = (tool for tool in permitted if name_of(tool) == name)
            ours = next((tool for tool in chain([tools[name]], same_name) if tool in self.own), None)
            if ours is None:
                raise ValueError(
                    f"this agent has another tool named {name!r}, the name of a tool of "
                    "ToolSelectionMiddleware; rename one of them, e.g. with "
                    "ToolSelectionMiddleware(discovery=Discovery(name=..., call_name=...))"
                )
            tools[name] = ours
        if not (self._is_checked and self._always_include.names <= tools.keys()):
            self._warn_about_unmatched(tools)
        return tools

    def _never_hidden(self, tools: Mapping[str, Any]) -> dict[str, NeverHidden]:
        kept: dict[str, NeverHidden] = {}
        for name, tool in tools.items():
            if not isinstance(tool, BaseTool):
                kept[name] = "provider"
            elif name in self.own.names:
                kept[name] = "discovery"
            elif self._is_core(name, tool) or is_harness_tool(tool):
                kept[name] = "core"
            elif is_deferred(tool):
                kept[name] = "deferred"
        return kept

    def _is_core(self, name: str, tool: BaseTool) -> bool:
        patterns = self._always_include
        return name in patterns.names or (not patterns.are_exact and patterns.match(self._document_of(tool)))

    def _warn_about_duplicate(self, name: str, _tool: Any) -> None:
        self._warn_once(f"duplicate {name}", "two tools are named %r; only the first is sent", name)

    def _warn_about_unmatched(self, tools: Mapping[str, Any]) -> None:
        """Say once which names and patterns of settings match no tool of this request."""
        self._is_checked = True
        searched = {name: tool for name, tool in tools.items() if isinstance(tool, BaseTool)}
        for setting, patterns in (("always_include", self._always_include), ("hints", self._hints)):
            for name in patterns.unmatched(searched, self._document_of):
                self._warn_once(
                    f"{setting} {name}",
                    "%s names %r, which matches no tool of this request; known tools: %s",
                    setting,
                    name,
                    ", ".join([*tools][:_KNOWN]),
                )


def _held_by(tool: Any) -> dict[str, Any]:
    """Return what a tool holds, as it is at this moment.

    Extras and tags are small, and people change them in place, so they are copied. All else counts as changed
    if it is replaced.
    """
    held = dict(vars(tool))
    return held | {key: deepcopy(held[key]) for key in ("extras", "tags") if held.get(key)}
