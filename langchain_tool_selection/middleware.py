"""`ToolSelectionMiddleware`: show the model the tools that matter now, and let it find the rest.

A model call goes through three steps: *plan* (what is there, what must stay, what to search for; pure),
*search* (the only I/O, with an async twin), *apply* (choose, and hand the choice to the exposure; pure).
Everything that must be the same on a later call of the same user turn, or after a restart, is in graph
state; the instance holds caches only, so any number of threads and agents may share it.
"""

from __future__ import annotations

import operator
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any, Literal, get_args

from langchain.agents.middleware.types import (
    AgentMiddleware,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    ToolCallRequest,
    TracePolicy,
    omit_payload,
)
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.types import Command, Overwrite

from langchain_tool_selection._access.audit import Audit, AuditLevel, tell
from langchain_tool_selection._access.boundary import (
    Access,
    AccessRuntime,
    Allow,
    OnChange,
    Permitted,
    check_allow,
)
from langchain_tool_selection._exposure.base import ADDITION_SHARE, Append, Grow, PerTurn, Proxy
from langchain_tool_selection._exposure.models import ExposureName, ModelTraits, automatic
from langchain_tool_selection._exposure.reveal import has_thinking
from langchain_tool_selection._ground.digest import digest
from langchain_tool_selection._ground.log import WarnOnce, logger
from langchain_tool_selection._ground.messages import message_mark, state_value
from langchain_tool_selection._ground.settings import (
    check_budget,
    check_choice,
    check_count,
    check_function,
    check_number,
    check_timeout,
    check_type,
)
from langchain_tool_selection._ranking.index import Catalog
from langchain_tool_selection._ranking.protocol import Query
from langchain_tool_selection._ranking.query import (
    Turn,
    conversation_query,
    is_topic_shift,
    read_turns,
    summary_query,
)
from langchain_tool_selection._run.activation import Activation, Threshold, check_threshold
from langchain_tool_selection._run.call_tool import make_call_tool
from langchain_tool_selection._run.collect import Collect, Collector
from langchain_tool_selection._run.discovery import Discovery, make_discovery_tool, overview_of
from langchain_tool_selection._run.planner import Plan, Step
from langchain_tool_selection._run.search import Found, SafeSearch
from langchain_tool_selection._run.shared import Shared
from langchain_tool_selection._run.state import ToolSelectionState
from langchain_tool_selection._run.tool_call import ToolCall
from langchain_tool_selection._selection.pins import PINS, current_pins
from langchain_tool_selection._selection.policy import (
    NEAR_MISSES,
    Limits,
    OnNoMatch,
    Reason,
    Selection,
    SelectionPolicy,
    Situation,
)
from langchain_tool_selection._selection.record import THREAD, ThreadRecord
from langchain_tool_selection._tools.definitions import Bound, Definitions
from langchain_tool_selection._tools.documents import ToolHints
from langchain_tool_selection._tools.schema import SchemaPruning
from langchain_tool_selection._tools.shapes import (
    is_deferred,
    is_harness_tool,
    name_of,
    names_in_choice,
    tools_by_name,
)
from langchain_tool_selection.portable import check_names, check_top_k


class ToolSelectionMiddleware(AgentMiddleware[ToolSelectionState, Any, Any]):
    """Shows a model the best tools for what the user wants, and `discover_tools` to find others.

    For agents with more tools than a request should carry. Hiding a tool is not access control: a call
    that names it still runs, unless `enforce` says otherwise. Access control is `allow`.

    Args:
        top_k: How many tools to show by relevance, beside those that must stay. With no more than
            this to choose from, requests pass through untouched.
        always_include: Names of tools that are never hidden; they do not count against `top_k`.
        ranker: A `Ranker`; LangChain `Embeddings`, fused with the default; or a scorer
            `(tool, query_tokens) -> float`. `None` means words: no model, no key, no download.
        ranker_timeout: Seconds that `ranker` may take for one search; then words rank. `None` waits.
        hints: Examples, tags and domains that tools are searched by, by tool name; never sent.
        query: Gives the text (or `Query`) to search for, from the request; `None` from it means
            nothing to search for. By default it is read from the conversation.
        min_score: Tools that score less are no match; `None` takes every hit of the ranker. What a
            score is worth depends on the ranker.
        keep_used: Tools called in the current user turn and so many turns before it stay. `None`
            keeps all whose calls are in the messages; 0 keeps none for having been called.
        on_no_match: What to show by relevance when nothing matches: what the turn before showed
            (`"previous"`; nothing, on the first), or the first `top_k` by registration (`"fill"`).
        max_pins: How many discovered tools a thread remembers; the least recently used go first.
        activate_above: Requests pass through untouched unless there is more than this to choose from: so
            many tools (`top_k` or more), so many `Tokens(...)` of their definitions, or `"break_even"`,
            from where on selection is cheaper than sending everything, by the cost model and the
            published prices of the model at hand. `None` means `top_k`.
        exposure: How a selection reaches the model; providers cache a prompt by its beginning, and
            the tools array comes first. `"per_turn"` selects the array anew for each user message.
            `"grow"` selects it once and then only appends. `"append"` selects it once and adds to the
            conversation instead, where the model allows it (otherwise as `"grow"`). `"proxy"` sends
            what is always included, the search tool and `call_tool`. `"auto"` takes what suits the
            model of each call: see `docs/exposure.md`.
        prune: What is left of each tool's schema when it is sent; `None` sends schemas whole. The tool
            that runs is the original.
        token_budget: What shown tools may take together: a number of tokens, or a share of the model's
            input limit, above 0 and below 1, which counts where the model's profile knows that limit.
            What must stay stays. `None` sets no limit.
        domains: Gives the domains whose tools are in play, from state and runtime; `None` from it means
            all. Tools of others are neither shown nor found, except those always included.
        allow: Which tools a run may use: a function `(tool, AccessRuntime) -> bool`, sync or async, or a
            mapping of roles (`role` or `roles` of the run's context) to tool names, `"tag:..."` and
            `"domain:..."`, with `*` as a wildcard. What it refuses does not exist for the run: it is not
            shown, found, named, or run. A rule that fails refuses. `None` allows all.
        enforce: Whether a call of a tool that the model was not shown is refused. By default it runs.
        fingerprints: What `fingerprint_of(tool)` gave for each known tool, by name. A tool whose definition
            has changed is not offered, unless `on_change` approves.
        on_change: Called with such a tool and its new fingerprint; whether it may be used.
        audit: Whether to log what was shown, found, pinned, called and refused, one JSON object a record, to
            the logger `langchain_tool_selection.audit`; without arguments of calls, unless `"arguments"`.
        collect: Where to write requests whose tool had to be searched for, with the tool that was then
            called without an error: cases for `tool-selection eval`. `None` writes nothing.
        discovery: Settings of the search tool; `None` leaves it out, and what is hidden stays so.

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
        ranker: Any = None,
        ranker_timeout: float | None = 10.0,
        hints: Mapping[str, ToolHints] | None = None,
        query: Callable[[ModelRequest[Any]], str | Query | None] | None = None,
        min_score: float | None = None,
        keep_used: int | None = 1,
        on_no_match: OnNoMatch = "previous",
        max_pins: int = 32,
        activate_above: Threshold = None,
        exposure: ExposureName | Literal["auto"] = "auto",
        prune: SchemaPruning | None = None,
        token_budget: float | None = 0.15,
        domains: Callable[[Any, Any], Collection[str] | None] | None = None,
        allow: Allow = None,
        enforce: bool = False,
        fingerprints: Mapping[str, str] | None = None,
        on_change: OnChange | None = None,
        audit: AuditLevel = False,
        collect: Collect | None = None,
        discovery: Discovery | None = Discovery(),  # noqa: B008 - frozen
    ) -> None:
        super().__init__()
        check_top_k(top_k)
        check_count("keep_used", keep_used, optional=True)
        check_threshold(activate_above, top_k)
        check_count("max_pins", max_pins, at_least=1)
        check_choice("on_no_match", on_no_match, get_args(OnNoMatch))
        check_choice("exposure", exposure, ("auto", *get_args(ExposureName)))
        check_number("min_score", min_score)
        check_timeout(ranker_timeout)
        check_function("query", query, "the model request")
        check_function("domains", domains, "state and runtime")
        check_function("on_change", on_change, "a tool and its fingerprint")
        check_choice("audit", audit, (False, True, "arguments"))
        check_budget(token_budget)
        check_allow(allow)
        check_type("collect", collect, Collect)
        check_type("prune", prune, SchemaPruning)
        check_type("discovery", discovery, Discovery)
        if discovery is None and exposure == "proxy":
            msg = (
                "exposure='proxy' shows tools in search results and needs discovery=Discovery(...), got None"
            )
            raise ValueError(msg)
        self._always_include = check_names("always_include", always_include)
        self._policy = SelectionPolicy(top_k, min_score, on_no_match)
        self._activation = Activation(activate_above, top_k)
        self._keep_used = keep_used
        self._max_pins = max_pins
        self._query = query
        self._exposure = exposure
        self._token_budget = token_budget
        self._domains = domains
        self._enforce = enforce
        self._definitions = Definitions(prune)
        self._search = SafeSearch(ranker, hints, timeout=ranker_timeout)
        self._access = Access(
            allow,
            document_of=self._search.document_of,
            fingerprints=fingerprints,
            on_change=on_change,
            own=self._is_own,
        )
        self._audit = Audit(audit, lambda tool: self._search.document_of(tool).domain)
        self._collector = None if collect is None else Collector(collect)
        self._discovery = discovery
        self._warn_once = WarnOnce()
        self._search_name = discovery.name if discovery else None
        self.tools: list[StructuredTool] = []
        if discovery is not None:
            shared = Shared(self._search, self._access, self._definitions, self._audit)
            self.tools.append(make_discovery_tool(discovery, shared, max_pins))
            if exposure == "proxy":
                self.tools.append(make_call_tool(discovery.call_name, shared, discovery.name))
        self._own = frozenset(tool.name for tool in self.tools)
        self._own_functions = frozenset(id(tool.func) for tool in self.tools)

    @property
    def name(self) -> str:
        """The same for subclasses: two in one agent would share one state, and LangChain refuses them."""
        return ToolSelectionMiddleware.__name__

    # -- the model call ------------------------------------------------------------------------------

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]:
        """Select the tools for this call, then make it."""
        plan = self._plan(request, self._access.permitted(request.tools, AccessRuntime.of(request)))
        step = self._apply(plan, self._search.search(plan.catalog, plan.query, limit=plan.limit))
        return step.answer(handler(step.request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]:
        """Select the tools for this call, then make it."""
        plan = self._plan(request, await self._access.apermitted(request.tools, AccessRuntime.of(request)))
        step = self._apply(plan, await self._search.asearch(plan.catalog, plan.query, limit=plan.limit))
        return step.answer(await handler(step.request))

    # -- the tool call -------------------------------------------------------------------------------

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Run a tool, unless this run may not use it, or the model was not shown it and that is enforced."""
        runtime = AccessRuntime.of(request)
        permitted = request.tool is None or self._access.permits(request.tool, runtime)
        narrowed = self._access.narrowed(request, runtime)
        call = ToolCall(request, narrowed.runtime.tools, self._search_name)
        if (refusal := self._refusal(call, permitted)) is not None:
            return refusal
        with self._audited(request):
            answer = handler(narrowed)
        result = self._ran(call, answer)
        if self._collector is not None:
            self._collector.note(call.found_for(result), call.name)
        return result

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """As `wrap_tool_call`, awaiting rule and tool."""
        runtime = AccessRuntime.of(request)
        permitted = request.tool is None or await self._access.apermits(request.tool, runtime)
        narrowed = await self._access.anarrowed(request, runtime)
        call = ToolCall(request, narrowed.runtime.tools, self._search_name)
        if (refusal := self._refusal(call, permitted)) is not None:
            return refusal
        with self._audited(request):
            answer = await handler(narrowed)
        result = self._ran(call, answer)
        if self._collector is not None:
            await self._collector.anote(call.found_for(result), call.name)
        return result

    @contextmanager
    def _audited(self, request: ToolCallRequest) -> Iterator[None]:
        # Before it runs: a tool that fails half way has done half of its work.
        if request.tool is not None:
            self._audit.call("called", request)
        try:
            yield
        except BaseException:
            if request.tool is None:  # as below: what is no tool at all raises nothing
                self._audit.call("called", request)
            raise

    def _refusal(self, call: ToolCall, permitted: bool) -> ToolMessage | None:
        if not permitted:
            self._audit.call("refused", call.request, "access")
            return call.unknown()
        own = call.request.tool is None or self._is_own(call.request.tool)
        if not self._enforce or own or call.was_shown():
            return None
        self._audit.call("refused", call.request, "not shown")
        return call.not_shown()

    def _ran(self, call: ToolCall, result: ToolMessage | Command[Any]) -> ToolMessage | Command[Any]:
        if call.is_unknown(result):
            # LangGraph's own answer lists all registered tools, those that are hidden or refused too.
            self._audit.call("refused", call.request, "unknown")
            return call.unknown()
        if call.request.tool is None:  # other middleware knew what to run
            self._audit.call("called", call.request)
        return result

    # -- the three steps -----------------------------------------------------------------------------

    def _plan(self, request: ModelRequest[Any], permitted: Permitted) -> Plan:
        degraded = [*permitted.failures]
        traits = ModelTraits.of(request.model, request.model_settings)
        exposure = self._exposure_for(traits, request)
        tools = self._tools_of(permitted.tools)
        record = ThreadRecord.from_state(request.state)
        kept = self._never_hidden(tools)
        forced = self._forced(request, tools)
        domains = self._domains_in_play(request, degraded)
        out_of_play: frozenset[str] = frozenset()
        if domains is not None:
            out_of_play = self._out_of_play(tools, domains, {**forced, **kept})
            # Where what was shown stays, it stays through a change of domains too: it cannot be found any
            # more, but its place in the prompt is kept.
            stays = record.visible if record and exposure and exposure.keeps else ()
            tools = {n: tool for n, tool in tools.items() if n not in out_of_play or n in stays}
        candidates = len(tools) - len(kept)

        self._warn_about_keep(tools)

        def sync() -> Catalog:
            unsearched = self._own | out_of_play
            return self._search.sync(
                tool for name, tool in tools.items() if name not in unsearched and isinstance(tool, BaseTool)
            )

        if exposure is None or self._activation.is_small(candidates, sync, exposure.name, traits.full_name):
            # Where that is enforced, what `domains=` or other middleware left out is known by what is shown.
            catalog = sync() if self._enforce else None
            return Plan(
                request, tools, record, exposure or PerTurn(), catalog=catalog, degraded=tuple(degraded)
            )
        self._warn_about_missing(tools)
        kept = {**forced, **kept}
        catalog = sync()
        self._activation.compare(catalog, exposure.name, traits.full_name)
        turns = self._turns(request)
        own_query = self._own_query(request, degraded)
        key = _key(turns, own_query, domains)
        pins, evicted = current_pins(request.state, record is not None, tools, self._max_pins)
        plan = Plan(
            request,
            tools,
            record,
            exposure,
            catalog=catalog,
            turns=turns,
            key=key or (record.key if record else ""),
            # A turn is ranked once. Its later calls show the same and search for nothing.
            ranked=record is not None and record.was_ranked and (record.key == key or not key),
            pins=pins,
            evicted=evicted,
            degraded=tuple(degraded),
            start=message_mark(request.messages[0]) if request.messages else "",
            limits=self._limits(tools, catalog, traits),
        )
        situation = self._situation(plan, kept)
        if plan.ranked or not exposure.ranks:
            return replace(plan, situation=situation)
        counted = (kept, pins, situation.used, situation.shown)
        return replace(
            plan,
            situation=situation,
            query=_query(request, turns, own_query),
            # Of tools that are alike one is shown, however many there are.
            limit=self._policy.top_k + sum(map(len, counted)) + NEAR_MISSES + len(catalog.alike),
        )

    def _situation(self, plan: Plan, kept: Mapping[str, Reason]) -> Situation:
        record, exposure = plan.record or ThreadRecord(), plan.exposure
        situation = Situation(tuple(plan.tools), kept, previous=record.matched, limits=plan.limits)
        self._warn_about_budget(situation)
        if not exposure.ranks:
            return replace(situation, shown=record.array, matched=())
        situation = replace(situation, pinned=plan.pins, used=self._used(plan.turns))
        if plan.ranked:
            situation = replace(situation, matched=record.matched, shown=record.shown)
        if record.array and exposure.keeps and not plan.starts_anew:
            room = 0 if plan.ranked else exposure.room(record)
            situation = replace(situation, shown=record.visible, room=room, share=ADDITION_SHARE)
        return situation

    def _apply(self, plan: Plan, found: Found) -> Step:
        situation, hits, exposure = plan.situation, found.hits or [], plan.exposure
        if situation is None or plan.catalog is None:
            return self._pass_through(plan)
        if found.hits is None and situation.matched is None and not situation.previous:
            # Nothing could rank, and there is nothing to fall back on: hide nothing.
            situation = replace(situation, kept={name: Reason("fill") for name in situation.names})
        best = [hit.name for hit in hits]
        if situation.room and exposure.is_dear and not is_topic_shift(plan.turns, best, situation.shown):
            situation = replace(situation, room=0)
        selection = self._policy.select(situation, hits)
        rendered = exposure.render(plan.request, selection, self._bound(plan), plan.record or ThreadRecord())
        why = plan.why_changed(selection, rendered)
        selection = replace(
            selection,
            exposure=exposure.name,
            changed=None if why is None else bool(why),
            why=why or "",
            revealed=rendered.revealed,
            degraded="; ".join(filter(None, (*plan.degraded, found.degraded))),
            evicted=plan.evicted,
        )
        record = plan.record_of(situation, selection, rendered)
        if self._discovery is not None and self._discovery.overview:
            record = replace(record, overview=plan.overview)
        due = record.to_state()
        # Compared as it is stored: garbage that reads as what is due is repaired as well.
        update: dict[str, Any] = {} if due == state_value(plan.request.state, THREAD) else {THREAD: due}
        if list(plan.pins) != (state_value(plan.request.state, PINS) or []):
            update[PINS] = Overwrite(list(plan.pins))
        self._report(plan, selection)
        return Step(rendered.request, update, plan)

    def _bound(self, plan: Plan) -> Mapping[str, Any]:
        """Return the tools as they are to be bound."""
        described = {}
        if self._discovery is not None and (self._discovery.overview or self._definitions.are_pruned):
            overview = overview_of(plan.overview) if self._discovery.overview else ""
            described[self._discovery.name] = f"{self._discovery.description} {overview}".strip()
        return Bound(plan.tools, self._definitions, described)

    def _pass_through(self, plan: Plan) -> Step:
        """Send what would be sent without this middleware: its search tool has nothing to find."""
        shown = {name: tool for name, tool in plan.tools.items() if name not in self._own}
        tools = [self._definitions.bound(tool) for tool in shown.values()]
        before = plan.request.tools
        same = len(tools) == len(before) and all(map(operator.is_, tools, before))
        request = plan.request if same else plan.request.override(tools=tools)
        self._audit.tools("shown", plan.request.runtime, shown, exposure="all")
        if plan.degraded:
            reasons = dict.fromkeys(shown, Reason("all"))
            selection = Selection(tuple(shown), reasons, exposure="all", degraded="; ".join(plan.degraded))
            tell(plan.request.runtime, "tool_selection", selection.to_dict())
        known = plan.record or ThreadRecord()
        # The record of an earlier call may say that something is hidden, and that is over.
        record = replace(known, catalog="")
        if plan.catalog is not None:
            fingerprint = plan.catalog.fingerprint
            record = replace(known, key="", matched=(), shown=tuple(shown), catalog=fingerprint)
        return Step(request, {} if record == known else {THREAD: record.to_state()}, plan)

    # -- planning: how to show, what is there, what must stay, what to search for ------------------------

    def _exposure_for(self, traits: ModelTraits, request: ModelRequest[Any]) -> PerTurn | None:
        """Return how to show a selection to the model of this call; `None` if there is no way to."""
        name = automatic(traits) if self._exposure == "auto" else self._exposure
        model = traits.name or type(request.model).__name__
        if name is None:
            self._warn_once(
                f"auto {model}",
                "all tools are sent to %s: it answers with an error (400) when the tools array changes after "
                "it has thought, and this client cannot add tools in mid-conversation; exposure='proxy' can",
                model,
            )
            return None
        if name == "proxy" and self._discovery is not None:
            return Proxy(self._discovery.call_name)
        # References live in the answers of searches, and without a search tool there are none.
        is_blind = traits.transport == "tool_reference" and self._search_name is None
        if name == "append" and traits.transport is not None and not is_blind:
            return Append(
                traits.transport, self._search_name, traits.thinks or has_thinking(request.messages)
            )
        if name == "append":
            self._warn_once(
                f"append {model}",
                "exposure='append' is 'grow' for %s: this client cannot add tools in mid-conversation",
                model,
            )
        if traits.checks_prefix and traits.thinks:
            self._warn_once(
                f"prefix {model}",
                "%s answers with an error (400) when the tools array changes after it has thought, as "
                "exposure=%r lets it; set exposure='auto', or switch thinking off",
                model,
                name,
            )
        return PerTurn() if name == "per_turn" else Grow()

    def _domains_in_play(self, request: ModelRequest[Any], degraded: list[str]) -> Collection[str] | None:
        """Return the domains that `domains=` gives; `None` for all. A failure is added to `degraded`."""
        if self._domains is None:
            return None
        try:
            domains = self._domains(request.state, request.runtime)
            return None if domains is None else check_names("what domains= returns", domains)
        except Exception as error:
            self._warn_once(
                f"domains {type(error).__name__}", "domains= failed, all domains are in play: %r", error
            )
            degraded.append(f"domains= failed with {type(error).__name__}; all domains are in play")
            return None

    def _out_of_play(
        self, tools: Mapping[str, Any], domains: Collection[str], kept: Collection[str]
    ) -> frozenset[str]:
        """Return the tools of other domains than these, but for those that are kept anyway."""
        return frozenset(
            name
            for name, tool in tools.items()
            if name not in kept and self._search.document_of(tool).domain not in domains
        )

    def _limits(self, tools: Mapping[str, Any], catalog: Catalog, traits: ModelTraits) -> Limits:
        budget = self._token_budget
        if budget is not None and budget < 1:
            budget = budget * traits.input_limit if traits.input_limit else None
        return Limits(
            budget=None if budget is None else int(budget),
            tokens=lambda name: self._definitions.tokens(tools[name], traits.full_name),
            alike=catalog.alike,
        )

    def _warn_about_budget(self, situation: Situation) -> None:
        limits = situation.limits
        if limits.budget is not None and (needed := sum(map(limits.tokens, situation.kept))) > limits.budget:
            self._warn_once(
                "budget",
                "what is always included takes %d tokens, more than the token_budget of %d; it stays",
                needed,
                limits.budget,
            )

    def _tools_of(self, permitted: Sequence[Any]) -> dict[str, Any]:
        def on_duplicate(name: str, _tool: Any) -> None:
            self._warn_once(f"duplicate {name}", "two tools are named %r; only the first is sent", name)

        tools = tools_by_name(permitted, on_duplicate)
        for name in self._own & tools.keys():
            # A server that names a tool as one of ours takes nothing away from the agent but that tool.
            same_name = (tool for tool in permitted if name_of(tool) == name)
            ours = next(filter(self._is_own, chain([tools[name]], same_name)), None)
            if ours is None:
                setting = "name" if name == self._search_name else "call_name"
                msg = (
                    f"this agent has another tool named {name!r}, the name of a tool of "
                    "ToolSelectionMiddleware; rename one of them, e.g. with "
                    f"ToolSelectionMiddleware(discovery=Discovery({setting}=...))"
                )
                raise ValueError(msg)
            tools[name] = ours
        return tools

    def _is_own(self, tool: Any) -> bool:
        # Compared by function, because other middleware may have sent a marked copy of our tool.
        return id(getattr(tool, "func", self)) in self._own_functions

    def _never_hidden(self, tools: Mapping[str, Any]) -> dict[str, Reason]:
        kept: dict[str, Reason] = {}
        for name, tool in tools.items():
            if not isinstance(tool, BaseTool):
                kept[name] = Reason("provider")
            elif name in self._own:
                kept[name] = Reason("discovery")
            elif name in self._always_include or is_harness_tool(tool):
                kept[name] = Reason("core")
            elif is_deferred(tool):
                kept[name] = Reason("deferred")
        return kept

    def _forced(self, request: ModelRequest[Any], tools: Mapping[str, Any]) -> dict[str, Reason]:
        return {name: Reason("forced") for name in names_in_choice(request.tool_choice) if name in tools}

    def _turns(self, request: ModelRequest[Any]) -> list[Turn]:
        # The state has what users wrote. A request may have more, such as reminders that other middleware
        # adds to every call in the user's role, or less, after a compaction.
        turns = read_turns(_messages(request.state))
        return turns if any(turn.key for turn in turns) else read_turns(request.messages)

    def _own_query(self, request: ModelRequest[Any], degraded: list[str]) -> Query | None:
        """Return what `query=` asks for; `None` without it, or if it failed, which is added to `degraded`."""
        if self._query is None:
            return None
        try:
            asked = self._query(request)
            return asked if isinstance(asked, Query) else Query.of(asked or "")
        except Exception as error:
            self._warn_once(
                f"query {type(error).__name__}",
                "query= failed, searching for what the conversation says: %r",
                error,
            )
            degraded.append(f"query= failed with {type(error).__name__}; searched for what was said")
            return None

    def _used(self, turns: Sequence[Turn]) -> frozenset[str]:
        if self._keep_used == 0:
            return frozenset()
        recent = turns if self._keep_used is None else turns[: 1 + self._keep_used]
        return frozenset(name for turn in recent for name in turn.calls)

    def _warn_about_missing(self, tools: Mapping[str, Any]) -> None:
        for name in sorted(self._always_include.difference(tools)):
            self._warn_once(
                f"missing {name}",
                "always_include names %r, which is no tool of this request; known tools: %s",
                name,
                ", ".join([*tools][:20]),
            )

    def _warn_about_keep(self, tools: Mapping[str, Any]) -> None:
        for name in self._definitions.unknown_in_keep(tools.values()):
            self._warn_once(
                f"keep {name}", "SchemaPruning.keep names %r, which no tool of this request has", name
            )

    # -- reporting -----------------------------------------------------------------------------------

    def _report(self, plan: Plan, selection: Selection) -> None:
        for name in selection.evicted:
            logger.info("pin of %r dropped: more than max_pins=%d", name, self._max_pins)
        if selection.why and selection.exposure != "per_turn":
            logger.info("the tools array has changed, which no cache survives: %s", selection.why)
        runtime = plan.request.runtime
        shown = {name: plan.tools[name] for name in selection.names}
        pins = {"pinned": [*plan.pins], "evicted": [*selection.evicted]}
        self._audit.tools("shown", runtime, shown, exposure=selection.exposure, **pins)
        tell(runtime, "tool_selection", selection.to_dict())


def _key(turns: Sequence[Turn], own_query: Query | None, domains: Collection[str] | None) -> str:
    """Return what identifies this user turn; empty if no user wrote anything and nobody asks for it.

    A phase with other domains is a turn of its own, because nothing of it was ranked before.
    """
    key = next((turn.key for turn in turns if turn.key), "")
    if own_query is not None:
        key = digest(key, repr(own_query.parts))
    return key if domains is None else digest(key, *sorted(domains))


def _query(request: ModelRequest[Any], turns: Sequence[Turn], own_query: Query | None) -> Query:
    if own_query is not None:
        return own_query
    if any(turn.key for turn in turns):
        return conversation_query(turns)
    return summary_query(request.messages)


def _messages(state: Any) -> Sequence[Any]:
    messages = state_value(state, "messages")
    return messages if isinstance(messages, list) else []
