# No `from __future__ import annotations` in this module, for the reason given in `discovery`.
"""`call_tool`: the tool that a call of a hidden tool goes through where the exposure is "proxy".

A right call becomes a call of the tool itself before anything runs (see `_exposure.proxy`). What runs here
are the calls that named no tool rightly: the answer says what is wrong.
"""

from collections.abc import Collection, Mapping
from typing import Annotated, Any

from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BeforeValidator, Field

from langchain_tool_selection._ground.untrusted import one_line
from langchain_tool_selection._run.shared import Registered, Shared
from langchain_tool_selection._selection.record import ThreadRecord
from langchain_tool_selection._tools.arguments import as_arguments, compact_parameters, mistake_in

_ERROR = 300
"""Characters of an error that are quoted: it may quote the argument in turn."""


_Name = Annotated[str, BeforeValidator(str), Field(description="A tool that was found.")]
_Arguments = Annotated[Any, Field(description="An object, by the tool's parameters.")]


def make_call_tool(name: str, shared: Shared, search_tool: str) -> StructuredTool:
    """Build the tool that stands for all others. It runs only if its call named none of them rightly.

    Args:
        name: What the model calls it.
        shared: What it shares with the middleware.
        search_tool: The search tool's name.
    """

    def call_tool(runtime: ToolRuntime[Any, Any], name: _Name, arguments: _Arguments = None) -> ToolMessage:
        return answer(runtime, shared.registered(runtime, (own, search_tool)), name, arguments)

    async def acall_tool(
        runtime: ToolRuntime[Any, Any], name: _Name, arguments: _Arguments = None
    ) -> ToolMessage:
        return answer(runtime, await shared.aregistered(runtime, (own, search_tool)), name, arguments)

    def answer(runtime: Any, registered: Registered, name: str, arguments: Any) -> ToolMessage:
        catalog = shared.catalog_of(ThreadRecord.from_state(runtime.state), registered)
        if catalog is None:
            # Among the registered tools may be some that other middleware hides.
            text = f"The tool catalogue has changed. Find the tool once more with {search_tool}."
        else:
            text = _complaint(name, as_arguments(arguments), catalog.names, registered.permitted, search_tool)
        return ToolMessage(text, name=own, tool_call_id=runtime.tool_call_id, status="error")

    own = name
    return StructuredTool.from_function(
        func=call_tool,
        coroutine=acall_tool,
        name=name,
        description=f"Call a tool that {search_tool} found and that is not in your list.",
    )


def _complaint(
    name: str, arguments: Any, known: Collection[str], registered: Mapping[str, BaseTool], search_tool: str
) -> str:
    quoted = one_line(name, 80)
    if name not in known:
        return (
            f"There is no tool named `{quoted}`. Find one with {search_tool}, and use the name that it gives."
        )
    tool = registered.get(name)
    if tool is None:
        # Other middleware brought it into the request; its schema is out of reach here.
        return f"`{quoted}` was not called: the arguments do not fit its parameters."
    mistake = mistake_in(tool, arguments)
    if not mistake:
        return f"`{quoted}` was not called. Call it once more, with the same arguments."
    takes = compact_parameters(convert_to_openai_tool(tool))
    return f"`{quoted}` was not called: {one_line(mistake, _ERROR)}. It takes: {takes}"
