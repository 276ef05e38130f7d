"""`ToolSelectionMiddleware`: show the model the tools that matter now, and let it find the rest.

A model call goes through three steps: *plan* (what is there, what must stay, what to search for; pure),
*search* (the only I/O, with an async twin), *apply* (choose, and hand the choice to the exposure; pure).
Everything that must be the same on a later call of the same user turn, or after a restart, is in graph
state; the instance holds caches only, so any number of threads and agents may share it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
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
from langchain_tool_selection._documents import digest
from langchain_tool_selection._exposure import EXPOSURES
from langchain_tool_selection._index import Catalog, ToolIndex
from langchain_tool_selection._lexical import LexicalRanker
from langchain_tool_selection._policy import OnNoMatch, Reason, Selection, SelectionPolicy, Situation
from langchain_tool_selection._query import (
    Turn,
    conversation_query,
    read_turns,
    summary_query,
    tool_calls,
)
from langchain_tool_selection._ranking import Hit, Query
from langchain_tool_selection._state import PINS, TURN, ToolSelectionState, TurnRecord, pins_in, state_value
from langchain_tool_selection.portable import check_names, check_top_k

logger = logging.getLogger("langchain_tool_selection")

_CHOICE_WORDS = frozenset({"auto", "any", "none", "required"})


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
        query: Gives the text (or `Query`) to search for, from the request; `None` from it means
            nothing to search for. By default it is read from the conversation.
        min_score: Tools that score less are no match; `None` takes every hit of the ranker. What a
            score is worth depends on the ranker.
        keep_used: Tools called in the current user turn and so many turns before it stay. `None`
            keeps all that were ever called in the conversation; 0 keeps none for having been called.
        on_no_match: What to show by relevance when nothing matches: what the turn before showed
            (`"previous"`; nothing, on the first), or the first `top_k` by registration (`"fill"`).
        max_pins: How many discovered tools a thread remembers; the least recently used go first.
        activate_above: Requests pass through untouched unless there are more tools than this to
            choose from. `None` means more than `top_k`.
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
        *,
        top_k: int = 15,
        always_include: Collection[str] = (),
        ranker: Any = None,
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
        _check_count("keep_used", keep_used, optional=True)
        _check_count("activate_above", activate_above, optional=True)
        _check_count("max_pins", max_pins, at_least=1)
        _check_choice("on_no_match", on_no_match, get_args(OnNoMatch))
        _check_choice("exposure", exposure, tuple(EXPOSURES))
        if isinstance(min_score, bool) or not isinstance(min_score, int | float | None):
            msg = f"min_score must be a number or None, got {min_score!r} of type {type(min_score).__name__}"
            raise TypeError(msg)
        if min_score is not None and isnan(min_score):
            msg = "min_score must be a number or None, got nan, which no score reaches"
            raise ValueError(msg)
        if query is not None and not callable(query):
            msg = f"query must be a callable that takes the model request, got {type(query).__name__}"
            raise TypeError(msg)
        if discovery is not None and not isinstance(discovery, Discovery):
            msg = f"discovery takes Discovery(...) or None, got {discovery!r}"
            raise TypeError(msg)
        self._always_include = check_names("always_include", always_include)
        self._policy = SelectionPolicy(top_k, min_score, on_no_match)
        self._activate_above = max(top_k, activate_above or 0)
        self._keep_used = keep_used
        self._max_pins = max_pins
        self._query = query
        self._exposure = EXPOSURES[exposure]()
        self._index = ToolIndex(ranker)
        self._by_words = ToolIndex(LexicalRanker())
        self._warned: set[str] = set()
        self._discovery = discovery
        self._discovery_tool = make_discovery_tool(discovery, self) if discovery else None
        self.tools = [self._discovery_tool] if self._discovery_tool else []

    # -- the model call ------------------------------------------------------------------------------

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]:
        """Select the tools for this call, then make it."""
        plan = self._plan(request)
        step = self._apply(plan, *self.search(plan.catalog, plan.query, plan.limit))
        return step.answer(handler(step.request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]:
        """Select the tools for this call, then make it."""
        plan = self._plan(request)
        step = self._apply(plan, *await self.asearch(plan.catalog, plan.query, plan.limit))
        return step.answer(await handler(step.request))

    def _plan(self, request: ModelRequest[Any]) -> _Plan:
        tools = self._tools_by_name(request.tools)
        kept = self._kept(request, tools)
        hideable = [name for name in tools if name not in kept or kept[name].kind == "forced"]
        record = TurnRecord.from_state(request.state)
        if len(hideable) <= self._activate_above:
            return _Plan(request, tools, record=record, passes=True)
        self._warn_about_missing(tools)
        catalog = self._index.sync(tool for tool in tools.values() if self._is_searchable(tool))
        turns = read_turns(request.messages)
        if not any(turn.key for turn in turns):
            # Compaction may have cut the user's words from the request; the state has them still.
            turns = read_turns(_messages(request.state))
        key, query = self._what_to_search(request, turns)
        same_turn = record is not None and bool(record.catalog) and (record.key == key or not key)
        pins, evicted = self._pins(request.state, record, tools)
        situation = Situation(
            names=tuple(tools),
            kept=kept,
            pinned=pins,
            used=self._used(turns),
            shown=record.shown if record and same_turn else (),
            ranked=record.ranked if record and same_turn else None,
            previous=record.ranked if record else (),
        )
        return _Plan(
            request,
            tools,
            situation,
            record,
            TurnRecord(key or (record.key if record else ""), catalog=catalog.fingerprint),
            catalog,
            # A turn is ranked once. Its later calls show the same and search for nothing.
            Query() if same_turn else query,
            self._policy.top_k + len(kept) + len(pins) + len(situation.used) + 5,
            evicted,
        )

    def _apply(self, plan: _Plan, hits: list[Hit] | None, degraded: str) -> _Step:
        if plan.passes:
            # As without this middleware: its search tool has nothing to find.
            tools = [tool for tool in plan.tools.values() if not self._is_own(tool)]
            same = len(tools) == len(plan.request.tools)
            request = plan.request if same else plan.request.override(tools=tools)
            hid = plan.record is not None and plan.record.catalog
            return _Step(request, {TURN: TurnRecord().to_state()} if hid else None)
        situation = plan.situation
        if hits is None and situation.ranked is None and not situation.previous:
            # Nothing could rank, and there is nothing to fall back on: hide nothing.
            situation = replace(situation, kept={name: Reason("fill") for name in situation.names})
        selection = self._policy.select(situation, hits or ())
        changed = selection.names != plan.record.shown if plan.record else None
        selection = replace(selection, changed=changed, degraded=degraded, evicted=plan.evicted)
        record = replace(plan.next_record, ranked=selection.ranked, shown=selection.names)
        update: dict[str, Any] = {} if record == plan.record else {TURN: record.to_state()}
        if list(situation.pinned) != (state_value(plan.request.state, PINS) or []):
            update[PINS] = Overwrite(list(situation.pinned))
        self._report(plan.request, selection)
        return _Step(self._exposure.apply(plan.request, selection, plan.tools), update)

    # -- planning: what is there, what must stay, what to search for -----------------------------------

    def _tools_by_name(self, tools: Sequence[Any]) -> dict[str, Any]:
        """Key the request's tools by name, in their order; a second tool of one name is left out."""
        by_name: dict[str, Any] = {}
        for tool in tools:
            name, anonymous = _name_of(tool)
            if anonymous:
                # In brackets, which no tool's name has, so that it is nobody's duplicate.
                name = f"<{name}>" if f"<{name}>" not in by_name else f"<{name} {len(by_name)}>"
            if name not in by_name:
                by_name[name] = tool
            else:
                self._warn_once(f"duplicate {name}", "two tools are named %r; only the first is sent", name)
        self._check_own_tool(by_name)
        return by_name

    def _check_own_tool(self, tools: Mapping[str, Any]) -> None:
        if self._discovery is None:
            return
        tool = tools.get(self._discovery.name)
        if tool is not None and not self._is_own(tool):
            msg = (
                f"this agent has another tool named {self._discovery.name!r}, which would replace the search "
                "tool of ToolSelectionMiddleware; rename one of them, e.g. with "
                "ToolSelectionMiddleware(discovery=Discovery(name='find_tools'))"
            )
            raise ValueError(msg)

    def _is_searchable(self, tool: Any) -> bool:
        return isinstance(tool, BaseTool) and not self._is_own(tool)

    def _is_own(self, tool: Any) -> bool:
        # Compared by function, because other middleware may have sent a marked copy of our tool.
        own = self._discovery_tool
        return own is not None and getattr(tool, "func", None) is own.func

    def _kept(self, request: ModelRequest[Any], tools: Mapping[str, Any]) -> dict[str, Reason]:
        kept: dict[str, Reason] = {}
        forced = set(_names_in_choice(request.tool_choice))
        for name, tool in tools.items():
            if not isinstance(tool, BaseTool):
                kept[name] = Reason("provider")
            elif name in self._always_include:
                kept[name] = Reason("core")
            elif self._is_own(tool):
                kept[name] = Reason("discovery")
            elif tool.extras and tool.extras.get("defer_loading"):
                kept[name] = Reason("deferred")
            elif name in forced:
                kept[name] = Reason("forced")
        return kept

    def _what_to_search(self, request: ModelRequest[Any], turns: Sequence[Turn]) -> tuple[str, Query]:
        """Return what identifies this user turn, and the query for it."""
        if self._query is not None:
            try:
                query = self._query(request)
            except Exception:
                logger.exception("query= failed; searching for what the conversation says")
            else:
                query = query if isinstance(query, Query) else Query.of(query or "")
                return digest(repr(query.parts)), query
        key = next((turn.key for turn in turns if turn.key), "")
        if key:
            return key, conversation_query(turns)
        return "", summary_query(request.messages)

    def _used(self, turns: Sequence[Turn]) -> frozenset[str]:
        if self._keep_used == 0:
            return frozenset()
        recent = turns if self._keep_used is None else turns[: 1 + self._keep_used]
        return frozenset(name for turn in recent for name in turn.calls)

    def _pins(
        self, state: Any, record: TurnRecord | None, tools: Mapping[str, Any]
    ) -> tuple[list[str], tuple[str, ...]]:
        """Return the pins to go on with, in order, and those that were one too many."""
        pins = pins_in(state_value(state, PINS))
        messages = _messages(state)
        if not pins and record is None:
            # An agent without memory of its own (a subgraph, or an app that passes the history along)
            # still has the answers of its searches in the messages.
            pins = _pins_in_history(messages)
        pins = list(dict.fromkeys(pins))
        if len(pins) <= self._max_pins:
            return pins, ()
        seen: dict[str, int] = {}
        for position, message in enumerate(messages):
            for name in [*_pins_in_history([message]), *(name for name, _ in tool_calls(message))]:
                seen[name] = position
        # Tools that this request lacks go first, then the least recently found or used, then the oldest.
        order = sorted(pins, key=lambda name: (name in tools, seen.get(name, -1), pins.index(name)))
        evicted = tuple(order[: len(pins) - self._max_pins])
        return [name for name in pins if name not in evicted], evicted

    def _warn_about_missing(self, tools: Mapping[str, Any]) -> None:
        for name in sorted(self._always_include.difference(tools)):
            self._warn_once(
                f"missing {name}",
                "always_include names %r, which is no tool of this request; known tools: %s",
                name,
                ", ".join([*tools][:20]),
            )

    # -- searching: never fails ----------------------------------------------------------------------

    def search(
        self, catalog: Catalog | None, query: Query, limit: int | None
    ) -> tuple[list[Hit] | None, str]:
        """Return hits, `None` if nothing can rank, and what failed on the way, empty if nothing did."""
        if catalog is None or not query:
            return [], ""
        try:
            return catalog.search(query, limit=limit), ""
        except Exception as error:
            return self._search_by_words(catalog, query, limit, error)

    async def asearch(
        self, catalog: Catalog | None, query: Query, limit: int | None
    ) -> tuple[list[Hit] | None, str]:
        """As `search`, awaiting the ranker."""
        if catalog is None or not query:
            return [], ""
        try:
            return await catalog.asearch(query, limit=limit), ""
        except Exception as error:
            return self._search_by_words(catalog, query, limit, error)

    def _search_by_words(
        self, catalog: Catalog, query: Query, limit: int | None, error: Exception
    ) -> tuple[list[Hit] | None, str]:
        ranker = type(catalog.ranker).__name__
        self._warn_once(
            f"ranker {type(error).__name__}",
            "%s failed, ranking by words instead (said once for each kind of error): %r",
            ranker,
            error,
        )
        degraded = f"{ranker} failed with {type(error).__name__}; ranked by words"
        try:
            return self._by_words.sync(catalog.documents).search(query, limit=limit), degraded
        except Exception:  # pragma: no cover - a defect of ours must not end a run either
            logger.exception("ranking by words failed; keeping the previous selection")
            return None, f"{degraded}, which failed too"

    def catalog_of(self, record: TurnRecord | None, registered: Sequence[BaseTool]) -> Catalog | None:
        """Return what `discover_tools` may search: all that the last model call could have shown.

        The state holds that catalogue's fingerprint. If this process never saw it, because it was
        restarted between model call and tool call, the registered tools are the same catalogue unless
        other middleware adds, removes or rewrites some; in that case nothing is searched until the
        next model call has brought the catalogue back.
        """
        if record is None or not record.catalog:
            return None
        known = self._index.catalog(record.catalog)
        if known is not None:
            return known
        catalog = self._index.sync(tool for tool in registered if self._is_searchable(tool))
        return catalog if catalog.fingerprint == record.catalog else None

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

    def _warn_once(self, key: str, message: str, *args: Any) -> None:
        if key not in self._warned:
            self._warned.add(key)
            logger.warning(message, *args)


@dataclass(frozen=True)
class _Plan:
    """What is known before the search. `passes`: nothing to hide, the rest is empty."""

    request: ModelRequest[Any]
    tools: Mapping[str, Any]
    situation: Situation = field(default_factory=Situation)
    record: TurnRecord | None = None
    next_record: TurnRecord = field(default_factory=TurnRecord)
    catalog: Catalog | None = None
    query: Query = field(default_factory=Query)
    limit: int | None = None
    evicted: tuple[str, ...] = ()
    passes: bool = False


@dataclass(frozen=True)
class _Step:
    """The request to send, and what to write to the state once it was answered."""

    request: ModelRequest[Any]
    update: Mapping[str, Any] | None = None

    def answer(
        self, response: ModelResponse[Any] | AIMessage
    ) -> ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]:
        if not self.update:
            return response
        if isinstance(response, AIMessage):
            response = ModelResponse(result=[response])
        return ExtendedModelResponse(response, Command(update=dict(self.update)))


def _name_of(tool: Any) -> tuple[str, bool]:
    """Return a tool's name, and whether it is one that we made up for a provider's nameless tool."""
    if isinstance(tool, BaseTool):
        return tool.name, False
    function = tool.get("function")
    name = tool.get("name") or (function.get("name") if isinstance(function, Mapping) else None)
    if isinstance(name, str):
        return name, False
    kind = tool.get("type")
    return kind if isinstance(kind, str) else next(iter(tool), "tool"), True


def _names_in_choice(choice: Any) -> Iterator[str]:
    """Yield the tool names in any provider's form of `tool_choice`."""
    if isinstance(choice, str) and choice not in _CHOICE_WORDS:
        yield choice
    elif isinstance(choice, Mapping):
        for key in ("name", "function", "tools"):
            yield from _names_in_choice(choice.get(key))
    elif isinstance(choice, list | tuple):
        for item in choice:
            yield from _names_in_choice(item)


def _pins_in_history(messages: Sequence[Any]) -> list[str]:
    artifacts = (getattr(message, "artifact", None) for message in messages)
    return [name for found in artifacts if isinstance(found, Mapping) for name in pins_in(found.get(PINS))]


def _messages(state: Any) -> Sequence[Any]:
    messages = state_value(state, "messages")
    return messages if isinstance(messages, list) else []


def _check_count(setting: str, value: Any, *, at_least: int = 0, optional: bool = False) -> None:
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        msg = f"{setting} must be an integer{' or None' if optional else ''}, got {value!r}"
        raise TypeError(msg)
    if value < at_least:
        msg = f"{setting} must be {at_least} or more, got {value}"
        raise ValueError(msg)


def _check_choice(setting: str, value: Any, known: Sequence[str]) -> None:
    if value not in known:
        msg = f"{setting} must be one of {', '.join(map(repr, known))}, got {value!r}"
        raise ValueError(msg)
