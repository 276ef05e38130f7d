"""What a middleware shares with the tools that it injects: all of it caches and settings, no conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from langchain_core.tools import BaseTool

from langchain_tool_selection._access.audit import Audit
from langchain_tool_selection._access.boundary import Access, AccessRuntime, registered_in
from langchain_tool_selection._ranking.index import Catalog
from langchain_tool_selection._run.search import SafeSearch
from langchain_tool_selection._selection.record import ThreadRecord
from langchain_tool_selection._tools.definitions import Definitions


class Registered(NamedTuple):
    """The registered tools, at the moment of a call, by whether the run may use them.

    Attributes:
        permitted: Those that it may, by name.
        refused: Names of those that it may not.
    """

    permitted: dict[str, BaseTool]
    refused: frozenset[str]


class Shared(NamedTuple):
    """The parts of a middleware that a tool call needs."""

    search: SafeSearch
    access: Access
    definitions: Definitions
    audit: Audit

    def registered(self, runtime: Any, own: Sequence[str]) -> Registered:
        """Sort the registered tools, without our `own`, by what the run may use."""
        tools = [tool for tool in registered_in(runtime.tools) if tool.name not in own]
        return _sorted(tools, self.access.permitted(tools, _access_runtime(runtime)).tools)

    async def aregistered(self, runtime: Any, own: Sequence[str]) -> Registered:
        """As `registered`, awaiting the rule."""
        tools = [tool for tool in registered_in(runtime.tools) if tool.name not in own]
        permitted = await self.access.apermitted(tools, _access_runtime(runtime))
        return _sorted(tools, permitted.tools)

    def catalog_of(self, record: ThreadRecord | None, registered: Registered) -> Catalog | None:
        """Return what the run may search now; `None` if the last model call's catalogue is not known."""
        catalog = self.search.catalog_of(record, registered.permitted.values())
        if catalog is None or registered.refused.isdisjoint(catalog.names):
            return catalog
        # The run's role has changed since the model was called.
        return self.search.sync(d for d in catalog.documents if d.name not in registered.refused)


def _access_runtime(runtime: Any) -> AccessRuntime:
    return AccessRuntime(runtime.context, runtime.state, runtime.store)


def _sorted(tools: Sequence[BaseTool], permitted: Sequence[BaseTool]) -> Registered:
    by_name = {tool.name: tool for tool in permitted}
    return Registered(by_name, frozenset(tool.name for tool in tools if tool.name not in by_name))
