# No `from __future__ import annotations` in this module, for the reason given in `discovery`.
"""`call_tool`: the tool that a call of a hidden tool goes through where the exposure is "proxy".

A right call becomes a call of the tool itself before anything runs (see `_exposure.proxy`). What runs here
are the calls that named no tool rightly: the answer says what is wrong.
"""

from typing import Annotated, Any

from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool
from pydantic import BeforeValidator, Field

from langchain_tool_selection._access.boundary import Access, Boundary
from langchain_tool_selection._run.answers import answer_to_call_tool
from langchain_tool_selection._run.own_tool import own_tool
from langchain_tool_selection._run.search import SafeSearch
from langchain_tool_selection._run.settings import Discovery
from langchain_tool_selection._selection.record import ThreadRecord
from langchain_tool_selection._tools.arguments import as_arguments

_Name = Annotated[str, BeforeValidator(str), Field(description="A tool that was found.")]
_Arguments = Annotated[Any, Field(description="An object, by the tool's parameters.")]


def make_call_tool(settings: Discovery, access: Access, search: SafeSearch) -> StructuredTool:
    """Build the tool that stands for all others. It runs only if its call named none of them rightly.

    Args:
        settings: Those of the search tool, which have the name of this one.
        access: Says what the run may call.
        search: Knows what the run can find.
    """
    own = (settings.name, settings.call_name)

    def call_tool(runtime: ToolRuntime[Any, Any], name: _Name, arguments: _Arguments = None) -> ToolMessage:
        return answer(runtime, access.boundary(access.of_own_tool(runtime, own)), name, arguments)

    async def acall_tool(runtime: ToolRuntime[Any, Any], **given: Any) -> ToolMessage:
        return answer(runtime, await access.aboundary(access.of_own_tool(runtime, own)), **given)

    def answer(runtime: Any, boundary: Boundary, name: str, arguments: Any = None) -> ToolMessage:
        catalog = search.catalog_of(ThreadRecord.from_state(runtime.state), boundary)
        if catalog is None:
            # Among the registered tools may be some that other middleware hides.
            text = f"The tool catalogue has changed. Find the tool once more with {settings.name}."
        else:
            text = answer_to_call_tool(
                name, as_arguments(arguments), catalog.names, boundary.by_name, settings.name
            )
        return ToolMessage(text, name=settings.call_name, tool_call_id=runtime.tool_call_id, status="error")

    return own_tool(
        call_tool,
        acall_tool,
        name=settings.call_name,
        description=f"Call a tool that {settings.name} found and that is not in your list.",
    )
