# No `from __future__ import annotations` in this module. LangChain finds the runtime to inject by looking
# at the annotations of the tool's function; written as strings they are not always resolved, and then the
# tool fails when it is called, not when it is built.
"""`discover_tools`: the model's way to the tools that it is not shown.

It searches the catalogue of the last model call, which is what the middleware saw before it hid
anything: tools that other middleware added are in it, and tools that other middleware removed are not.
What it finds is pinned in graph state, and so visible from the next model call on.
"""

from typing import Annotated, Any

from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.types import Command
from pydantic import BeforeValidator, Field

from langchain_tool_selection._access.audit import Audit, emit
from langchain_tool_selection._access.boundary import Access, Boundary
from langchain_tool_selection._run.answers import answer_to_search, quoted
from langchain_tool_selection._run.finding import Asked, Search, as_list, as_text
from langchain_tool_selection._run.own_tool import own_tool
from langchain_tool_selection._run.search import SafeSearch, SearchResult
from langchain_tool_selection._run.settings import Discovery
from langchain_tool_selection._selection.pins import PINS, SCHEMAS
from langchain_tool_selection._tools.definitions import Definitions

# Models send a string for a list, a list for a string, or null. A search is too cheap to refuse for that.
_QueryText = Annotated[
    str, BeforeValidator(as_text), Field(description="Verb and object, e.g. 'send an email'.")
]
_Names = Annotated[list[str], BeforeValidator(as_list), Field(description="Exact tool names, if known.")]
_Domain = Annotated[str, BeforeValidator(as_text), Field(description="Only this server or group.")]


def make_discovery_tool(
    settings: Discovery, access: Access, search: SafeSearch, definitions: Definitions, audit: Audit
) -> StructuredTool:
    """Build the tool that a middleware injects.

    Args:
        settings: How it is presented.
        access: Says what the run may find.
        search: Finds it.
        definitions: Has the schemas that answers quote.
        audit: Is told what was found.
    """
    own = (settings.name, settings.call_name)

    def discover_tools(
        runtime: ToolRuntime[Any, Any], query: _QueryText = "", names: _Names = [], domain: _Domain = ""
    ) -> Command[Any]:
        boundary = access.boundary(access.of_own_tool(runtime, own))
        started = start(runtime, boundary, query=query, names=names, domain=domain)
        return finish(runtime, started, search.search(started.plan))

    async def adiscover_tools(runtime: ToolRuntime[Any, Any], **arguments: Any) -> Command[Any]:
        boundary = await access.aboundary(access.of_own_tool(runtime, own))
        started = start(runtime, boundary, **arguments)
        return finish(runtime, started, await search.asearch(started.plan))

    def start(runtime: Any, boundary: Boundary, **arguments: Any) -> Search:
        return Search(
            settings, Asked.of(arguments), runtime, boundary, search=search, definitions=definitions
        )

    def finish(runtime: Any, started: Search, result: SearchResult) -> Command[Any]:
        findings = started.findings(result.hits or ())
        found = {document.name: document for document in findings.found}
        audit.tools("found", runtime, found, call=runtime.tool_call_id)
        emit(runtime, "tool_selection_found", {"found": [*found], "degraded": result.degraded})
        message = ToolMessage(
            content=answer_to_search(findings, definitions),
            name=settings.name,
            tool_call_id=runtime.tool_call_id,
            artifact={PINS: [*found], **({SCHEMAS: schemas} if (schemas := quoted(findings)) else {})},
        )
        return Command(update={PINS: [*found], "messages": [message]})

    return own_tool(discover_tools, adiscover_tools, name=settings.name, description=settings.description)
