"""The two pure steps around the search: from a call to a plan, and from plan and hits to what is sent."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage
from langgraph.types import Command

from langchain_tool_selection._access.audit import emit
from langchain_tool_selection._exposure.base import ADDITION_SHARE, Exposure
from langchain_tool_selection._exposure.history import remembered, state_update, why_changed
from langchain_tool_selection._exposure.stubs import Stubs
from langchain_tool_selection._ground.log import WarnOnce
from langchain_tool_selection._ground.newest import ForNewest
from langchain_tool_selection._ranking.query import is_topic_shift
from langchain_tool_selection._run.activation import Activation
from langchain_tool_selection._run.answers import overview_of
from langchain_tool_selection._run.call import Call
from langchain_tool_selection._run.search import SearchResult
from langchain_tool_selection._run.settings import Discovery, Settings
from langchain_tool_selection._run.state import USAGE
from langchain_tool_selection._run.usage import CacheUsage
from langchain_tool_selection._selection.policy import NEAR_MISSES, Plan, Reason, Selection, SelectionPolicy
from langchain_tool_selection._selection.record import THREAD, ThreadRecord
from langchain_tool_selection._tools.definitions import BoundTools, Definitions
from langchain_tool_selection._tools.limits import FEWEST


@dataclass(frozen=True)
class Outcome:
    """The request to send, and what becomes of its answer.

    Attributes:
        request: What the model is sent.
        selection: What it shows, and why; `None` where nothing is hidden and nothing failed.
        tools: The tools that the request could show, by name.
        update: What is written to the state once the request was answered.
        exposure: Reads the model's answer; `None` where it is taken as it is.
    """

    request: ModelRequest[Any]
    selection: Selection | None
    tools: Mapping[str, Any]
    update: Mapping[str, Any] = field(default_factory=dict)
    exposure: Exposure | None = None

    def answer(
        self, response: ModelResponse[Any] | AIMessage
    ) -> ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]:
        """Return the model's answer as the agent is to see it, with what is written to the state."""
        if self.exposure is not None:
            response = self.exposure.receive(response, self.tools)
        usage = CacheUsage.of([response] if isinstance(response, AIMessage) else response.result)
        update = dict(self.update)
        if usage.calls:
            update[USAGE] = usage.to_state()
            emit(self.request.runtime, "tool_selection_usage", usage.to_state())
        if not update:
            return response
        if isinstance(response, AIMessage):
            response = ModelResponse(result=[response])
        return ExtendedModelResponse(response, Command(update=update))


class Planner:
    """Decides what a call shows. It holds settings and caches, no conversation.

    Args:
        settings: The settings of the middleware.
        definitions: What is sent of each tool.
        own: Names of the middleware's own tools.
    """

    def __init__(self, settings: Settings, definitions: Definitions, own: frozenset[str]) -> None:
        search, thread = settings.search, settings.thread
        self._settings = settings
        self._definitions = definitions
        self._own = own
        self._policy = SelectionPolicy(settings.top_k, search.min_score, search.on_no_match)
        self._activation = Activation(thread.activate_above, settings.top_k)
        self._whole = ForNewest[tuple[dict[str, Any], list[Any]]]()
        self._warn_once = WarnOnce()

    def plan(self, call: Call) -> Plan | None:
        """Return what stays and what to search for; `None` if all tools are to be sent."""
        too_many = len(call.tools) > FEWEST and len(call.tools) > (call.limits.most or len(call.tools))
        exposure = None if call.candidates <= self._activation.least and not too_many else call.exposure
        if exposure is None:
            return None
        model = call.traits.full_name
        if not too_many and self._activation.is_small(lambda: call.catalog, exposure, model):
            return None
        self._activation.compare(call.catalog, exposure, model)
        plan = self._what_stays(call, exposure)
        if isinstance(exposure, Stubs):
            plan = exposure.planned(plan, call.record)
            return plan if plan.limit is None else replace(plan, query=call.first_query)
        if call.is_ranked or not exposure.ranks:
            return plan
        if exposure.keeps and call.is_forgotten:
            self._warn_once("forgotten", _FORGOTTEN, exposure.name)
        counted = (plan.kept, plan.pinned, plan.used, plan.shown)
        # Of tools that are alike one is shown, however many there are.
        limit = self._policy.top_k + sum(map(len, counted)) + NEAR_MISSES + len(plan.alike)
        return replace(plan, query=call.query, limit=limit)

    def apply(self, call: Call, plan: Plan | None, result: SearchResult) -> Outcome:
        """Return what to send for a call.

        Args:
            call: The call.
            plan: What `plan` gave for it.
            result: What the search for `plan.query` came to.
        """
        exposure = call.exposure if plan is not None else None
        if plan is None or exposure is None:
            return self._pass_through(call)
        bound = self._bound(call, exposure)
        plan = self._settled(call, plan, exposure, result)
        # Where all tools are shown, what matches is nothing to fall back on.
        hits = () if isinstance(exposure, Stubs) else result.hits or ()
        selection = self._policy.select(plan, hits)
        rendered = exposure.render(call.request, selection, bound, call.record)
        unasked = sum(
            reason.kind == "rank" and name not in plan.shown for name, reason in selection.reasons.items()
        )
        begun = self._begun(call)
        record = remembered(
            begun,
            exposure,
            selection=selection,
            rendered=rendered,
            added=0 if plan.max_additions is None else call.record.added + unasked,
            fingerprint_of=lambda name: self._fingerprint(call, exposure, name),
        )
        why = why_changed(
            exposure, call.record, record, selection=selection, rendered=rendered, present=call.tools
        )
        update = state_update(record, call.request.state, call.pins.kept)
        selection = replace(
            selection,
            exposure=exposure.name,
            changed=None if why is None else bool(why),
            why=why or "",
            revealed=rendered.revealed,
            degraded="; ".join(filter(None, (*call.failures, call.query_failure, result.degraded))),
            evicted=call.pins.evicted,
        )
        return Outcome(rendered.request, selection, call.tools, update, exposure)

    # -- what is known before the search -----------------------------------------------------------------

    def _what_stays(self, call: Call, exposure: Exposure) -> Plan:
        record = call.record
        budget = self._token_budget(call)
        plan = Plan(
            names=tuple(call.tools),
            kept={**call.forced, **call.kept},
            recorded=_reasons_in(record),
            previous=record.matched,
            turn=call.turn,
            token_budget=budget,
            tokens=lambda name: self._tokens(call, exposure, name),
            can_be_sent=lambda name: self._can_be_sent(call, exposure, name),
            most=call.limits.most,
            alike=call.catalog.alike,
            catalog=call.catalog,
        )
        self._warn_about_budget(plan)
        if not exposure.ranks:
            return replace(plan, shown=record.array, matched=())
        plan = replace(plan, pinned=call.pins.kept, used=call.used)
        if call.is_ranked:
            plan = replace(plan, matched=record.matched, shown=record.shown)
        if record.array and exposure.keeps and not _starts_anew(call, plan, exposure):
            most = 0 if call.is_ranked else exposure.max_additions(record)
            plan = replace(plan, shown=record.visible, max_additions=most, min_share=ADDITION_SHARE)
        return plan

    def _token_budget(self, call: Call) -> int | None:
        budget = self._settings.token_budget
        if budget is not None and budget < 1:
            budget = budget * call.traits.input_limit if call.traits.input_limit else None
        return None if budget is None else int(budget)

    def _warn_about_budget(self, plan: Plan) -> None:
        budget = plan.token_budget
        if budget is not None and (needed := sum(map(plan.tokens, plan.kept))) > budget:
            message = (
                "always_include needs %d tokens, more than token_budget=%d. These tools are sent anyway; no "
                "other tool fits."
            )
            self._warn_once("budget", message, needed, budget)

    # -- what is sent ------------------------------------------------------------------------------------

    @staticmethod
    def _settled(call: Call, plan: Plan, exposure: Exposure, result: SearchResult) -> Plan:
        """Return the plan as it is once the search came back."""
        if result.hits is None and plan.matched is None and not plan.previous:
            # Nothing could rank, and there is nothing to fall back on: hide nothing.
            plan = replace(plan, kept={name: Reason("fill") for name in plan.names})
        best = [hit.name for hit in result.hits or ()]
        if isinstance(exposure, Stubs):
            return exposure.settled(plan, best)
        resets = plan.max_additions and exposure.additions_reset_cache
        if resets and not is_topic_shift(call.turns, best, plan.shown):
            plan = replace(plan, max_additions=0)
        return plan

    def _begun(self, call: Call) -> ThreadRecord:
        """Return the thread's record with what is new of the user turn."""
        before = call.record
        has_overview = self._settings.discovery is not None and self._settings.discovery.overview
        return replace(
            before,
            key=call.key,
            catalog=call.catalog.fingerprint,
            # A compaction in mid-turn is made use of at the next user message.
            start=before.start if call.is_ranked and before.start else call.start,
            overview=call.overview if has_overview else before.overview,
            turn=call.turn,
            limits=call.traits.limits,
        )

    def _can_be_sent(self, call: Call, exposure: Exposure, name: str) -> bool:
        """Whether a client can send a tool: as a stub it can always."""
        return _is_stub(call, exposure, name) or self._definitions.is_readable(call.tools[name])

    def _tokens(self, call: Call, exposure: Exposure, name: str) -> int:
        """Return what a tool costs, as it would be shown."""
        is_stub = _is_stub(call, exposure, name)
        count = self._definitions.stub_tokens if is_stub else self._definitions.tokens
        return count(call.tools[name], call.traits.full_name)

    def _fingerprint(self, call: Call, exposure: Exposure, name: str) -> str:
        """Return the fingerprint of what is sent of a tool; empty if there is no such tool any more."""
        is_stub = _is_stub(call, exposure, name)
        of = self._definitions.stub_fingerprint if is_stub else self._definitions.fingerprint
        return of(call.tools.get(name))

    def _bound(self, call: Call, exposure: Exposure) -> Mapping[str, Any]:
        """Return the tools as they are to be bound."""
        discovery = self._settings.discovery
        longest, is_stubbed = call.limits.description, isinstance(exposure, Stubs)
        if discovery is None or not (discovery.overview or self._definitions.are_pruned or is_stubbed):
            return BoundTools(call.tools, self._definitions, longest=longest)
        described = {discovery.name: partial(_description, discovery, call, is_stubbed=is_stubbed)}
        return BoundTools(call.tools, self._definitions, described, longest=longest)

    def _pass_through(self, call: Call) -> Outcome:
        """Send what would be sent without this middleware: its search tool has nothing to find."""
        make = partial(self._all_of, call)
        shown, tools = self._whole.get(call.tools, make) if call.is_plain else make()
        before = call.request.tools
        same = len(tools) == len(before) and all(map(operator.is_, tools, before))
        request = call.request if same else call.request.override(tools=tools)
        selection = None
        if call.failures:
            reasons = dict.fromkeys(shown, Reason("all"))
            selection = Selection(tuple(shown), reasons, exposure="all", degraded="; ".join(call.failures))
        record = call.record
        if record.hides:  # an earlier call of the thread hid something, and that is over
            record = replace(record, catalog="")
        if self._settings.access.enforce:
            # What `domains=` or other middleware left out is known by what is shown.
            record = replace(record, key="", matched=(), shown=tuple(shown), catalog=call.catalog.fingerprint)
        update = {} if record is call.record or record == call.record else {THREAD: record.to_state()}
        exposure = call.exposure if call.reads_answers else None
        return Outcome(request, selection, shown, update, exposure)

    def _all_of(self, call: Call) -> tuple[dict[str, Any], list[Any]]:
        """Return all tools but our own, by name, and as they are to be bound."""
        longest = None if call.is_plain else call.limits.description
        bound = BoundTools(call.tools, self._definitions, longest=longest)
        shown = {name: tool for name, tool in call.tools.items() if name not in self._own}
        return shown, [bound[name] for name in shown]


def _is_stub(call: Call, exposure: Exposure, name: str) -> bool:
    """Whether a tool is shown without its schema."""
    return isinstance(exposure, Stubs) and name not in call.kept


def _reasons_in(record: ThreadRecord) -> Mapping[str, Reason]:
    """Return why tools were shown with their schemas; that one was a stub is no reason to go on."""
    if record.exposure != Stubs.name:
        return record.reasons
    return {name: why for name, why in record.reasons.items() if why.kind != "stub"}


_FORGOTTEN = (
    "this conversation has earlier turns, and nothing is remembered of them, so that its tools are selected "
    "anew and nothing of the prompt is read from the provider's cache. exposure=%r keeps a prompt from one "
    "run to the next only with a checkpointer: create_agent(..., checkpointer=...) and a thread_id"
)


def _starts_anew(call: Call, plan: Plan, exposure: Exposure) -> bool:
    """Whether the thread's selection is due again, at a user message.

    So it is behind a compaction, when the conversation is cold anyhow and a new tools array costs
    nothing more; and when what has been shown has grown beyond the token budget.
    """
    record = call.record
    if not exposure.additions_reset_cache or call.is_ranked or record.is_new:
        return False
    if record.start not in ("", call.start):
        return True
    shown = [name for name in record.visible if name in call.tools]
    return plan.token_budget is not None and sum(map(plan.tokens, shown)) > plan.token_budget


def _description(discovery: Discovery, call: Call, *, is_stubbed: bool) -> str:
    """Return what the model is told of the search tool."""
    said = discovery.description_beside_stubs if is_stubbed else discovery.description
    overview = overview_of(call.overview) if discovery.overview else ""
    return f"{said} {overview}".strip()
