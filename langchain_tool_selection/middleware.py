"""`ToolSelectionMiddleware`: show the model the tools that matter now, and let it find the rest.

A model call goes through three steps: *plan* (what is there, what must stay, what to search for; pure),
*search* (the only I/O, with an async twin), *apply* (choose, and hand the choice to the exposure; pure).
Everything that must be the same on a later call of the same user turn, or after a restart, is in graph
state; the instance holds caches only, so any number of threads and agents may share it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from langchain.agents.middleware.types import (
    AgentMiddleware,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    TracePolicy,
    omit_payload,
)
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.types import Command, Overwrite
from langsmith.run_helpers import get_current_run_tree

from langchain_tool_selection._activation import Activation, Threshold, check_threshold
from langchain_tool_selection._discovery import Discovery, make_discovery_tool
from langchain_tool_selection._documents import ToolHints, digest
from langchain_tool_selection._exposure import ADDITION_SHARE, Append, Grow, PerTurn, Proxy, Rendered
from langchain_tool_selection._index import Catalog
from langchain_tool_selection._models import ExposureName, ModelTraits, automatic
from langchain_tool_selection._policy import (
    NEAR_MISSES,
    OnNoMatch,
    Reason,
    Selection,
    SelectionPolicy,
    Situation,
)
from langchain_tool_selection._proxy import make_call_tool
from langchain_tool_selection._query import (
    Turn,
    conversation_query,
    is_topic_shift,
    message_mark,
    read_turns,
    summary_query,
)
from langchain_tool_selection._ranking import Query
from langchain_tool_selection._request import (
    HARNESS_TOOLS,
    is_deferred,
    names_in_choice,
    tools_by_name,
)
from langchain_tool_selection._reveal import has_thinking
from langchain_tool_selection._search import Found, SafeSearch, WarnOnce
from langchain_tool_selection._settings import check_choice, check_count, check_function, check_number
from langchain_tool_selection._state import (
    PINS,
    THREAD,
    USAGE,
    ThreadRecord,
    ToolSelectionState,
    current_pins,
    state_value,
)
from langchain_tool_selection._usage import CacheUsage
from langchain_tool_selection.portable import check_names, check_top_k

logger = logging.getLogger("langchain_tool_selection")


class ToolSelectionMiddleware(AgentMiddleware[ToolSelectionState, Any, Any]):
    """Shows a model the best tools for what the user wants, and `discover_tools` to find others.

    For agents with more tools than a request should carry. It is not access control: a hidden tool is
    one that the model is not shown, and a call that names it still runs.

    Args:
        top_k: How many tools to show by relevance, beside those that must stay. With no more than
            this to choose from, requests pass through untouched.
        always_include: Names of tools that are never hidden; they do not count against `top_k`.
        ranker: A `Ranker`; LangChain `Embeddings`, fused with the default; or a scorer
            `(tool, query_tokens) -> float`. `None` means words: no model, no key, no download.
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
        hints: Mapping[str, ToolHints] | None = None,
        query: Callable[[ModelRequest[Any]], str | Query | None] | None = None,
        min_score: float | None = None,
        keep_used: int | None = 1,
        on_no_match: OnNoMatch = "previous",
        max_pins: int = 32,
        activate_above: Threshold = None,
        exposure: ExposureName | Literal["auto"] = "auto",
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
        check_function("query", query, "the model request")
        if discovery is not None and not isinstance(discovery, Discovery):
            msg = f"discovery takes Discovery(...) or None, got {discovery!r}"
            raise TypeError(msg)
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
        self._search = SafeSearch(ranker, hints)
        self._discovery = discovery
        self._warn_once = WarnOnce()
        self._search_name = discovery.name if discovery else None
        self.tools: list[StructuredTool] = []
        if discovery is not None:
            self.tools.append(make_discovery_tool(discovery, self._search, max_pins))
        if discovery is not None and exposure == "proxy":
            self.tools.append(make_call_tool(discovery.call_name, self._search, discovery.name))
        self._own = frozenset(tool.name for tool in self.tools)

    # -- the model call ------------------------------------------------------------------------------

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]:
        """Select the tools for this call, then make it."""
        plan = self._plan(request)
        step = self._apply(plan, self._search.search(plan.catalog, plan.query, limit=plan.limit))
        return step.answer(handler(step.request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]:
        """Select the tools for this call, then make it."""
        plan = self._plan(request)
        step = self._apply(plan, await self._search.asearch(plan.catalog, plan.query, limit=plan.limit))
        return step.answer(await handler(step.request))

    def _plan(self, request: ModelRequest[Any]) -> _Plan:
        traits = ModelTraits.of(request.model, request.model_settings)
        exposure = self._exposure_for(traits, request)
        tools = self._tools_of(request)
        record = ThreadRecord.from_state(request.state)
        kept = self._never_hidden(tools)
        candidates = len(tools) - len(kept)

        def sync() -> Catalog:
            return self._search.sync(tool for tool in tools.values() if self._is_searchable(tool))

        if exposure is None or self._activation.is_small(candidates, sync, exposure.name, traits.full_name):
            return _Plan(request, tools, record, exposure or PerTurn())
        self._warn_about_missing(tools)
        kept = {**self._forced(request, tools), **kept}
        catalog = sync()
        self._activation.compare(catalog, exposure.name, traits.full_name)
        turns = self._turns(request)
        own_query = self._own_query(request)
        key = _key(turns, own_query)
        pins, evicted = current_pins(request.state, record, tools, self._max_pins)
        plan = _Plan(
            request,
            tools,
            record,
            exposure,
            catalog=catalog,
            turns=turns,
            key=key or (record.key if record else ""),
            pins=pins,
            evicted=evicted,
            start=message_mark(request.messages[0]) if request.messages else "",
        )
        situation = Situation(tuple(tools), kept, previous=record.matched if record else ())
        if not exposure.ranks:
            return replace(
                plan, situation=replace(situation, shown=record.array if record else (), matched=())
            )
        situation = replace(situation, pinned=pins, used=self._used(turns))
        # A turn is ranked once. Its later calls show the same and search for nothing.
        ranked = record is not None and record.was_ranked and (record.key == key or not key)
        if record is not None and ranked:
            situation = replace(situation, matched=record.matched, shown=record.shown)
        if record is not None and record.array and exposure.keeps and not plan.starts_anew(ranked):
            room = 0 if ranked else exposure.room(record)
            situation = replace(situation, shown=record.visible, room=room, share=ADDITION_SHARE)
        counted = (kept, pins, situation.used, situation.shown)
        return replace(
            plan,
            situation=situation,
            query=Query() if ranked else _query(request, turns, own_query),
            limit=self._policy.top_k + sum(map(len, counted)) + NEAR_MISSES,
        )

    def _apply(self, plan: _Plan, found: Found) -> _Step:
        situation, hits, exposure = plan.situation, found.hits or (), plan.exposure
        if situation is None or plan.catalog is None:
            return self._pass_through(plan)
        if found.hits is None and situation.matched is None and not situation.previous:
            # Nothing could rank, and there is nothing to fall back on: hide nothing.
            situation = replace(situation, kept={name: Reason("fill") for name in situation.names})
        if situation.room and exposure.is_dear:
            best = [hit.name for hit in hits if hit.score >= ADDITION_SHARE * hits[0].score]
            if not is_topic_shift(plan.turns, best, situation.shown):
                situation = replace(situation, room=0)
        selection = self._policy.select(situation, hits)
        rendered = exposure.render(plan.request, selection, plan.tools, plan.record or ThreadRecord())
        why = plan.why_changed(selection, rendered)
        selection = replace(
            selection,
            exposure=exposure.name,
            changed=None if why is None else bool(why),
            why=why or "",
            revealed=rendered.revealed,
            degraded=found.degraded,
            evicted=plan.evicted,
        )
        record = plan.record_of(situation, selection, rendered)
        update: dict[str, Any] = {} if record == plan.record else {THREAD: record.to_state()}
        if list(plan.pins) != (state_value(plan.request.state, PINS) or []):
            update[PINS] = Overwrite(list(plan.pins))
        self._report(plan.request, selection)
        return _Step(rendered.request, update, plan)

    def _pass_through(self, plan: _Plan) -> _Step:
        """Send what would be sent without this middleware: its search tool has nothing to find."""
        tools = [tool for tool in plan.tools.values() if not self._is_own(tool)]
        same = len(tools) == len(plan.request.tools)
        request = plan.request if same else plan.request.override(tools=tools)
        # The record of an earlier call says that something is hidden, and that is over.
        hid = plan.record is not None and plan.record.catalog
        return _Step(request, {THREAD: ThreadRecord().to_state()} if hid else {}, plan)

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
        if name == "append" and traits.transport is not None:
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

    def _tools_of(self, request: ModelRequest[Any]) -> dict[str, Any]:
        def on_duplicate(name: str, tool: Any) -> None:
            self._check_own_name(name, tool)
            self._warn_once(f"duplicate {name}", "two tools are named %r; only the first is sent", name)

        tools = tools_by_name(request.tools, on_duplicate)
        for name in self._own & tools.keys():
            self._check_own_name(name, tools[name])
        return tools

    def _is_own(self, tool: Any) -> bool:
        # Compared by function, because other middleware may have sent a marked copy of our tool.
        function = getattr(tool, "func", None)
        return function is not None and any(function is own.func for own in self.tools)

    def _check_own_name(self, name: str, tool: Any) -> None:
        """Check that what has the name of one of our tools is that tool."""
        if name in self._own and not self._is_own(tool):
            setting = "name" if name == self._search_name else "call_name"
            msg = (
                f"this agent has another tool named {name!r}, the name of a tool of ToolSelectionMiddleware; "
                f"rename one of them, e.g. with ToolSelectionMiddleware(discovery=Discovery({setting}=...))"
            )
            raise ValueError(msg)

    def _is_searchable(self, tool: Any) -> bool:
        return isinstance(tool, BaseTool) and not self._is_own(tool)

    def _never_hidden(self, tools: Mapping[str, Any]) -> dict[str, Reason]:
        kept: dict[str, Reason] = {}
        # Middleware ahead of this one registers its tools ahead of ours; what follows is the user's.
        ahead = self._search_name in tools
        for name, tool in tools.items():
            if not isinstance(tool, BaseTool):
                kept[name] = Reason("provider")
            elif self._is_own(tool):
                kept[name], ahead = Reason("discovery"), False
            elif name in self._always_include or (ahead and name in HARNESS_TOOLS):
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

    def _own_query(self, request: ModelRequest[Any]) -> Query | None:
        """Return what `query=` asks for; `None` without it, or if it failed."""
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

    # -- reporting -----------------------------------------------------------------------------------

    def _report(self, request: ModelRequest[Any], selection: Selection) -> None:
        for name in selection.evicted:
            logger.info("pin of %r dropped: more than max_pins=%d", name, self._max_pins)
        if selection.why and selection.exposure != "per_turn":
            logger.info("the tools array has changed, which no cache survives: %s", selection.why)
        _tell(request, "tool_selection", selection.to_dict())


@dataclass(frozen=True)
class _Plan:
    """What is known before the search. Without a situation there is nothing to hide."""

    request: ModelRequest[Any]
    tools: Mapping[str, Any]
    record: ThreadRecord | None
    exposure: PerTurn
    situation: Situation | None = None
    catalog: Catalog | None = None
    turns: Sequence[Turn] = ()
    key: str = ""
    query: Query = field(default_factory=Query)
    limit: int | None = None
    pins: Sequence[str] = ()
    evicted: tuple[str, ...] = ()
    start: str = ""

    def starts_anew(self, ranked: bool) -> bool:
        """Whether the thread's selection is due again: at a user message behind a compaction.

        The conversation is cold then anyhow, so that a new tools array costs nothing more.
        """
        before = self.record.start if self.record else ""
        return self.exposure.is_dear and not ranked and before not in ("", self.start)

    def why_changed(self, selection: Selection, rendered: Rendered) -> str | None:
        """Return what changed the tools array; empty if nothing did, `None` if there was none before."""
        record = self.record
        if record is None or not record.exposure:
            return None
        before, now = record.last_array, rendered.array
        if record.exposure != self.exposure.name:
            return f"another model: exposure {record.exposure!r} before, {self.exposure.name!r} now"
        if before == now:
            return ""
        if not self.exposure.keeps and record.key != self.key:
            return "a new user message"
        if gone := [name for name in before if name not in now]:
            missing = [name for name in gone if name not in self.tools]
            return f"no longer there: {', '.join(missing)}" if missing else "the conversation was compacted"
        added = [f"{name} ({selection.reasons[name].kind})" for name in now if name not in before]
        return f"added {', '.join(added)}" if added else "another order"

    def record_of(self, situation: Situation, selection: Selection, rendered: Rendered) -> ThreadRecord:
        """Return what later calls of the thread need to know."""
        before = self.record or ThreadRecord()
        record = ThreadRecord(
            key=self.key,
            matched=selection.matched,
            shown=selection.names,
            catalog=self.catalog.fingerprint if self.catalog else "",
            exposure=self.exposure.name,
            array=before.array,
            reveals=before.reveals,
            added=before.added,
            start=self.start,
        )
        if not self.exposure.keeps:
            return record  # A detour by another model changes nothing about what the thread keeps.
        unasked = sum(reason.kind == "rank" for reason in selection.reasons.values())
        added = 0 if situation.room is None else before.added + unasked
        return replace(record, array=rendered.array, reveals=rendered.reveals, added=added)


@dataclass(frozen=True)
class _Step:
    """The request to send, and what to write to the state once it was answered."""

    request: ModelRequest[Any]
    update: Mapping[str, Any]
    plan: _Plan

    def answer(
        self, response: ModelResponse[Any] | AIMessage
    ) -> ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]:
        response = self.plan.exposure.receive(response, self.plan.tools)
        usage = CacheUsage.of([response] if isinstance(response, AIMessage) else response.result)
        update = dict(self.update)
        if usage.calls:
            update[USAGE] = usage.to_state()
            _tell(self.request, "tool_selection_usage", usage.to_state())
        if not update:
            return response
        if isinstance(response, AIMessage):
            response = ModelResponse(result=[response])
        return ExtendedModelResponse(response, Command(update=update))


def _tell(request: ModelRequest[Any], kind: str, facts: Mapping[str, Any]) -> None:
    """Report to whoever listens: the log, a stream of custom events, the trace."""
    logger.debug("%s: %s", kind, facts)
    if request.runtime is not None and request.runtime.stream_writer is not None:
        request.runtime.stream_writer({"type": kind, **facts})
    if (run := get_current_run_tree()) is not None:
        run.add_metadata({kind: facts})


def _key(turns: Sequence[Turn], own_query: Query | None) -> str:
    """Return what identifies this user turn; empty if no user wrote anything and nobody asks for it."""
    key = next((turn.key for turn in turns if turn.key), "")
    return key if own_query is None else digest(key, repr(own_query.parts))


def _query(request: ModelRequest[Any], turns: Sequence[Turn], own_query: Query | None) -> Query:
    if own_query is not None:
        return own_query
    if any(turn.key for turn in turns):
        return conversation_query(turns)
    return summary_query(request.messages)


def _messages(state: Any) -> Sequence[Any]:
    messages = state_value(state, "messages")
    return messages if isinstance(messages, list) else []
