"""`ToolSelectionMiddleware`: show the model the tools that matter now, and let it find the rest.

A model call is *read* (what is there and what may be used), *planned* (what must stay, what to search for),
*searched* for, and the selection *applied* to the request. Reading, planning and applying are pure but for
what the user's own rules do; searching may wait, and has an async twin. Everything that must be the same on
a later call of the same user turn, or after a restart, is in graph state; the instance holds settings and
caches only, so any number of threads and agents may share it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import fields, replace
from typing import Any

from langchain.agents.middleware.types import (
    AgentMiddleware,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    ToolCallRequest,
    TracePolicy,
    omit_payload,
)
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.types import Command

from langchain_tool_selection._access.audit import Audit
from langchain_tool_selection._access.boundary import Access as Rules
from langchain_tool_selection._access.rules import Allow
from langchain_tool_selection._exposure.registry import ExposureChoice, ExposureSetting
from langchain_tool_selection._ranking.protocol import Ranker
from langchain_tool_selection._run.call import CallReader
from langchain_tool_selection._run.call_tool import make_call_tool
from langchain_tool_selection._run.collect import Collect, Collector
from langchain_tool_selection._run.discovery import make_discovery_tool
from langchain_tool_selection._run.planner import Planner
from langchain_tool_selection._run.report import report
from langchain_tool_selection._run.search import SafeSearch
from langchain_tool_selection._run.settings import Access, Discovery, Search, Settings, Thread
from langchain_tool_selection._run.state import ToolSelectionState
from langchain_tool_selection._run.tool_call import ToolCallReader
from langchain_tool_selection._tools.definitions import Definitions
from langchain_tool_selection._tools.documents import ToolHints
from langchain_tool_selection._tools.offered import OfferedTools, OwnTools
from langchain_tool_selection._tools.schema import SchemaPruning
from langchain_tool_selection.portable import Scorer

_PARTS = frozenset(
    {"_search", "_rules", "tools", "_calls", "_planner", "_audit", "_tool_calls", "_collector"}
)
"""What `_build` makes of the settings."""


class ToolSelectionMiddleware(AgentMiddleware[ToolSelectionState, Any, Any]):
    """Shows a model the best tools for what the user wants, and `discover_tools` to find others.

    For agents with more tools than a request should carry. Hiding a tool is not access control: a call
    that names it still runs, unless `Access(enforce=True)` says otherwise. Access control is `allow`.

    All settings name tools in the same way: exactly, with wildcards (`git_*`), by tag (`tag:billing`) or by
    domain (`domain:crm`).

    Args:
        top_k: How many tools to show by relevance, beside those that must stay. With no more than
            this to choose from, requests pass through untouched.
        always_include: Names and patterns of tools that are never hidden; they do not count against `top_k`.
        ranker: A `Ranker`; LangChain `Embeddings`, fused with the default; or a scorer
            `(tool, query_tokens) -> float`. `None` means words: no model, no key, no download.
        hints: Examples, tags and domains that tools are searched by, by tool name; never sent.
        exposure: How a selection reaches the model; most providers cache a prompt by its beginning, and
            the tools array comes first. `"per_turn"` selects the array anew for each user message.
            `"grow"` selects it once and then only appends. `"append"` selects it once and adds to the
            conversation instead, where the model allows it (otherwise as `"grow"`). `"proxy"` sends
            what is always included, the search tool and `call_tool`. `"stubs"` sends all tools by name and
            one line; a call that does not fit is answered with the schema. `"auto"` takes what suits the
            model of each call: see `docs/exposure.md`. An `Exposure` of your own is taken as it is.
        discovery: Settings of the search tool; `None` leaves it out, and what is hidden stays so.
        allow: Which tools a run may use: a function `(tool, AccessRuntime) -> bool`, sync or async, or a
            mapping of roles (`role` or `roles` of the run's context) to names and patterns. What it refuses
            does not exist for the run: it is not shown, found, named, or run. A rule that fails refuses.
            `None` allows all.
        prune: What is left of each tool's schema when it is sent; `None` sends schemas whole. The tool
            that runs is the original.
        token_budget: What shown tools may take together: a number of tokens, or a share of the model's
            input limit, above 0 and below 1, which counts where the model's profile knows that limit.
            What must stay stays. `None` sets no limit.
        domains: Gives the domains whose tools are in play, from state and runtime; `None` from it means
            all. Tools of others are neither shown nor found, except those always included.
        search: How tools are searched for: time limit, query, thresholds.
        thread: What a thread keeps, and from where on anything is hidden.
        access: Enforcement, approved definitions, the audit log.
        collect: Where to write requests whose tool had to be searched for, with the tool that was then
            called without an error: cases for `tool-selection eval`. `None` writes nothing.

    Raises:
        TypeError: a setting has the wrong type.
        ValueError: a setting has no possible value.

    Example:
        >>> agent = create_agent(model, tools, middleware=[ToolSelectionMiddleware(top_k=15)])
    """

    state_schema = ToolSelectionState
    # Without this, tracing writes every tool of the catalogue into the span of every model call.
    trace_policy = TracePolicy(process_inputs=omit_payload)

    def __init__(
        self,
        top_k: int = 15,
        always_include: Collection[str] = (),
        *,
        ranker: Ranker | Embeddings | Scorer | None = None,
        hints: Mapping[str, ToolHints] | None = None,
        exposure: ExposureSetting = "auto",
        discovery: Discovery | None = Discovery(),  # noqa: B008 - frozen, as are those below
        allow: Allow = None,
        prune: SchemaPruning | None = None,
        token_budget: float | None = 0.15,
        domains: Callable[[Any, Any], Collection[str] | None] | None = None,
        search: Search = Search(),  # noqa: B008
        thread: Thread = Thread(),  # noqa: B008
        access: Access = Access(),  # noqa: B008
        collect: Collect | None = None,
    ) -> None:
        given = locals()
        super().__init__()
        self._settings = Settings(**{setting.name: given[setting.name] for setting in fields(Settings)})
        self._build()

    def _build(self) -> None:
        """Make the parts, each with what it needs of the settings. None of them holds a conversation."""
        settings, discovery = self._settings, self._settings.discovery
        search_tool = discovery.name if discovery else None
        exposures = ExposureChoice(
            settings.exposure, search_tool=search_tool, call_tool=discovery.call_name if discovery else None
        )
        self._search = SafeSearch(settings.ranker, settings.hints, timeout=settings.search.timeout)
        index, definitions = self._search.index, Definitions(settings.prune)
        self._rules = Rules(
            settings.allow,
            document_of=index.document_of,
            fingerprints=settings.access.fingerprints,
            on_change=settings.access.on_change,
            is_own=lambda tool: tool in own,
        )
        self._audit = audit = Audit(settings.access.audit, lambda tool: index.document_of(tool).domain)
        self.tools: list[StructuredTool] = []
        if discovery is not None:
            # One search finds no more than a thread keeps.
            most = min(discovery.max_results, settings.thread.max_pins)
            discovery = replace(discovery, max_results=most)
            self.tools += [make_discovery_tool(discovery, self._rules, self._search, definitions, audit)]
            if exposures.uses_call_tool:
                self.tools += [make_call_tool(discovery, self._rules, self._search)]
        own = OwnTools(self.tools)
        offered = OfferedTools(own, settings.always_include, settings.hints or (), index.document_of)
        self._calls = CallReader(settings, index, exposures, offered)
        self._planner = Planner(settings, definitions, own.names)
        self._tool_calls = ToolCallReader(
            self._rules, audit, offered, definitions, index.document_of, search_tool, settings.access.enforce
        )
        self._collector = None if settings.collect is None else Collector(settings.collect)

    # Parts hold caches and locks, and the search tool is made by a function: a copy makes its own.

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _PARTS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._build()

    @property
    def name(self) -> str:
        """The same for subclasses: two in one agent would share one state, and LangChain refuses them."""
        return ToolSelectionMiddleware.__name__

    # -- the model call ------------------------------------------------------------------------------

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]:
        """Select the tools for this call, then make it."""
        boundary = self._rules.boundary(self._rules.of_request(request))
        call = self._calls.read_model_call(request, boundary)
        plan = self._planner.plan(call)
        outcome = self._planner.apply(call, plan, self._search.search(plan))
        report(call, outcome, self._audit)
        return outcome.answer(handler(outcome.request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]:
        """Select the tools for this call, then make it."""
        boundary = await self._rules.aboundary(self._rules.of_request(request))
        call = self._calls.read_model_call(request, boundary)
        plan = self._planner.plan(call)
        outcome = self._planner.apply(call, plan, await self._search.asearch(plan))
        report(call, outcome, self._audit)
        return outcome.answer(await handler(outcome.request))

    # -- the tool call -------------------------------------------------------------------------------

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Run a tool, unless this run may not use it, or the model was not shown it and that is enforced."""
        boundary = self._rules.boundary(self._rules.of_call(request))
        call = self._tool_calls.read_tool_call(request, boundary)
        if (refusal := call.refusal()) is not None:
            return refusal
        with call.audited():
            answer = handler(call.request)
        result = call.result(answer)
        if self._collector is not None:
            self._collector.note(call.found_for(result), call.name)
        return result

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """As `wrap_tool_call`, awaiting rule and tool."""
        boundary = await self._rules.aboundary(self._rules.of_call(request))
        call = self._tool_calls.read_tool_call(request, boundary)
        if (refusal := call.refusal()) is not None:
            return refusal
        with call.audited():
            answer = await handler(call.request)
        result = call.result(answer)
        if self._collector is not None:
            await self._collector.anote(call.found_for(result), call.name)
        return result
