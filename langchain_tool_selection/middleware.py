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
from langchain_core.tools import BaseTool
from langgraph.types import Command, Overwrite
from langsmith.run_helpers import get_current_run_tree

from langchain_tool_selection._discovery import Discovery, make_discovery_tool
from langchain_tool_selection._documents import ToolHints, digest
from langchain_tool_selection._exposure import EXPOSURES
from langchain_tool_selection._index import Catalog
from langchain_tool_selection._policy import (
    NEAR_MISSES,
    OnNoMatch,
    Reason,
    Selection,
    SelectionPolicy,
    Situation,
)
from langchain_tool_selection._query import Turn, conversation_query, read_turns, summary_query
from langchain_tool_selection._ranking import Query
from langchain_tool_selection._request import HARNESS_TOOLS, is_deferred, names_in_choice, tools_by_name
from langchain_tool_selection._search import Found, SafeSearch, WarnOnce
from langchain_tool_selection._settings import check_choice, check_count, check_function, check_number
from langchain_tool_selection._state import (
    PINS,
    TURN,
    ToolSelectionState,
    TurnRecord,
    current_pins,
    state_value,
)
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
        activate_above: Requests pass through untouched unless there are more tools than this to
            choose from; `top_k` or more. `None` means `top_k`.
        exposure: How a selection reaches the model. `"per_turn"`: the tools array is selected anew
            for each user message and stays the same in between, but for what is discovered.
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
        activate_above: int | None = None,
        exposure: Literal["per_turn"] = "per_turn",
        discovery: Discovery | None = Discovery(),  # noqa: B008 - frozen
    ) -> None:
        super().__init__()
        check_top_k(top_k)
        check_count("keep_used", keep_used, optional=True)
        check_count("activate_above", activate_above, at_least=top_k, optional=True)
        check_count("max_pins", max_pins, at_least=1)
        check_choice("on_no_match", on_no_match, get_args(OnNoMatch))
        check_choice("exposure", exposure, tuple(EXPOSURES))
        check_number("min_score", min_score)
        check_function("query", query, "the model request")
        if discovery is not None and not isinstance(discovery, Discovery):
            msg = f"discovery takes Discovery(...) or None, got {discovery!r}"
            raise TypeError(msg)
        self._always_include = check_names("always_include", always_include)
        self._policy = SelectionPolicy(top_k, min_score, on_no_match)
        self._activate_above = top_k if activate_above is None else activate_above
        self._keep_used = keep_used
        self._max_pins = max_pins
        self._query = query
        self._exposure = EXPOSURES[exposure]()
        self._search = SafeSearch(ranker, hints)
        self._discovery = discovery
        self._discovery_tool = make_discovery_tool(discovery, self._search, max_pins) if discovery else None
        self._warn_once = WarnOnce()
        self.tools = [self._discovery_tool] if self._discovery_tool else []

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
        tools = tools_by_name(request.tools, self._on_duplicate)
        self._check_own_name(tools.get(self._discovery.name) if self._discovery else None)
        record = TurnRecord.from_state(request.state)
        kept = self._never_hidden(tools)
        if len(tools) - len(kept) <= self._activate_above:
            return _Plan(request, tools, record=record)
        self._warn_about_missing(tools)
        kept = {**self._forced(request, tools), **kept}
        catalog = self._search.sync(tool for tool in tools.values() if self._is_searchable(tool))
        turns = self._turns(request)
        own_query = self._own_query(request)
        key = _key(turns, own_query)
        same_turn = record is not None and bool(record.catalog) and (record.key == key or not key)
        pins, evicted = current_pins(request.state, record, tools, self._max_pins)
        situation = Situation(
            names=tuple(tools),
            kept=kept,
            pinned=pins,
            used=self._used(turns),
            shown=record.shown if record and same_turn else (),
            matched=record.matched if record and same_turn else None,
            previous=record.matched if record else (),
        )
        return _Plan(
            request,
            tools,
            record=record,
            situation=situation,
            catalog=catalog,
            key=key or (record.key if record else ""),
            # A turn is ranked once. Its later calls show the same and search for nothing.
            query=Query() if same_turn else _query(request, turns, own_query),
            limit=self._policy.top_k + len(kept) + len(pins) + len(situation.used) + NEAR_MISSES,
            evicted=evicted,
        )

    def _apply(self, plan: _Plan, found: Found) -> _Step:
        if plan.situation is None or plan.catalog is None:
            return self._pass_through(plan)
        situation = plan.situation
        if found.hits is None and situation.matched is None and not situation.previous:
            # Nothing could rank, and there is nothing to fall back on: hide nothing.
            situation = replace(situation, kept={name: Reason("fill") for name in situation.names})
        selection = self._policy.select(situation, found.hits or ())
        changed = selection.names != plan.record.shown if plan.record else None
        selection = replace(selection, changed=changed, degraded=found.degraded, evicted=plan.evicted)
        record = TurnRecord(plan.key, selection.matched, selection.names, plan.catalog.fingerprint)
        update: dict[str, Any] = {} if record == plan.record else {TURN: record.to_state()}
        if list(situation.pinned) != (state_value(plan.request.state, PINS) or []):
            update[PINS] = Overwrite(list(situation.pinned))
        self._report(plan.request, selection)
        return _Step(self._exposure.apply(plan.request, selection, plan.tools), update)

    def _pass_through(self, plan: _Plan) -> _Step:
        """Send what would be sent without this middleware: its search tool has nothing to find."""
        tools = [tool for tool in plan.tools.values() if not self._is_own(tool)]
        same = len(tools) == len(plan.request.tools)
        request = plan.request if same else plan.request.override(tools=tools)
        # The record of an earlier call says that something is hidden, and that is over.
        hid = plan.record is not None and plan.record.catalog
        return _Step(request, {TURN: TurnRecord().to_state()} if hid else {})

    # -- planning: what is there, what must stay, what to search for -----------------------------------

    def _is_own(self, tool: Any) -> bool:
        # Compared by function, because other middleware may have sent a marked copy of our tool.
        own = self._discovery_tool
        return own is not None and getattr(tool, "func", None) is own.func

    def _is_searchable(self, tool: Any) -> bool:
        return isinstance(tool, BaseTool) and not self._is_own(tool)

    def _on_duplicate(self, name: str, tool: Any) -> None:
        if self._discovery is not None and name == self._discovery.name:
            self._check_own_name(tool)
        self._warn_once(f"duplicate {name}", "two tools are named %r; only the first is sent", name)

    def _check_own_name(self, tool: Any) -> None:
        """Check that what has the name of our search tool is our search tool."""
        if self._discovery is not None and tool is not None and not self._is_own(tool):
            msg = (
                f"this agent has another tool named {self._discovery.name!r}, the name of the search tool "
                "of ToolSelectionMiddleware; rename one of them, e.g. with "
                "ToolSelectionMiddleware(discovery=Discovery(name='find_tools'))"
            )
            raise ValueError(msg)

    def _never_hidden(self, tools: Mapping[str, Any]) -> dict[str, Reason]:
        kept: dict[str, Reason] = {}
        # Middleware ahead of this one registers its tools ahead of ours; what follows is the user's.
        ahead = self._discovery is not None and self._discovery.name in tools
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
        summary = selection.to_dict()
        logger.debug("tools shown: %s", summary)
        for name in selection.evicted:
            logger.info("pin of %r dropped: more than max_pins=%d", name, self._max_pins)
        if request.runtime is not None and request.runtime.stream_writer is not None:
            request.runtime.stream_writer({"type": "tool_selection", **summary})
        if (run := get_current_run_tree()) is not None:
            run.add_metadata({"tool_selection": summary})


@dataclass(frozen=True)
class _Plan:
    """What is known before the search. Without a situation there is nothing to hide."""

    request: ModelRequest[Any]
    tools: Mapping[str, Any]
    record: TurnRecord | None
    situation: Situation | None = None
    catalog: Catalog | None = None
    key: str = ""
    query: Query = field(default_factory=Query)
    limit: int | None = None
    evicted: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Step:
    """The request to send, and what to write to the state once it was answered."""

    request: ModelRequest[Any]
    update: Mapping[str, Any]

    def answer(
        self, response: ModelResponse[Any] | AIMessage
    ) -> ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]:
        if not self.update:
            return response
        if isinstance(response, AIMessage):
            response = ModelResponse(result=[response])
        return ExtendedModelResponse(response, Command(update=dict(self.update)))


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
