"""One model call: what is known before the search, and what is sent and remembered after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage
from langgraph.types import Command

from langchain_tool_selection._access.audit import tell
from langchain_tool_selection._exposure.base import PerTurn, Rendered
from langchain_tool_selection._ranking.index import Catalog
from langchain_tool_selection._ranking.protocol import Query
from langchain_tool_selection._ranking.query import Turn
from langchain_tool_selection._run.state import USAGE
from langchain_tool_selection._run.usage import CacheUsage
from langchain_tool_selection._selection.policy import Limits, Selection, Situation
from langchain_tool_selection._selection.record import ThreadRecord


@dataclass(frozen=True)
class Plan:
    """What is known before the search. Without a situation there is nothing to hide."""

    request: ModelRequest[Any]
    tools: Mapping[str, Any]
    record: ThreadRecord | None
    exposure: PerTurn
    situation: Situation | None = None
    catalog: Catalog | None = None
    turns: Sequence[Turn] = ()
    key: str = ""
    ranked: bool = False
    query: Query = field(default_factory=Query)
    limit: int | None = None
    pins: Sequence[str] = ()
    evicted: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()
    start: str = ""
    limits: Limits = field(default_factory=Limits)

    @property
    def overview(self) -> Mapping[str, int]:
        """The domains that the search tool's description names: the same for a thread while all are there."""
        domains = self.catalog.domains if self.catalog else {}
        before = self.record.overview if self.record else None
        return domains if before is None or before.keys() - domains.keys() else before

    @property
    def starts_anew(self) -> bool:
        """Whether the thread's selection is due again, at a user message.

        So it is behind a compaction, when the conversation is cold anyhow and a new tools array costs
        nothing more; and when what has been shown has grown beyond the token budget.
        """
        if not self.exposure.is_dear or self.ranked or self.record is None:
            return False
        if self.record.start not in ("", self.start):
            return True
        shown = [name for name in self.record.visible if name in self.tools]
        return self.limits.budget is not None and sum(map(self.limits.tokens, shown)) > self.limits.budget

    def why_changed(self, selection: Selection, rendered: Rendered) -> str | None:
        """Return what changed the tools array; empty if nothing did, `None` if there was none before."""
        record = self.record
        if record is None or not record.exposure:
            return None
        before, now = record.last_array, rendered.bound or rendered.array
        if record.exposure != self.exposure.name:
            return f"another model: exposure {record.exposure!r} before, {self.exposure.name!r} now"
        if before == now:
            return "a domain is no longer there" if record.overview not in (None, self.overview) else ""
        if not self.exposure.keeps and record.key != self.key:
            return "a new user message"
        if gone := [name for name in before if name not in now]:
            return self._why_gone([name for name in gone if name not in self.tools])
        added = [f"{name} ({selection.reasons[name].kind})" for name in now if name not in before]
        return f"added {', '.join(added)}" if added else "another order"

    def _why_gone(self, missing: Sequence[str]) -> str:
        if missing:
            # Without their names: the run's role may have changed, and then they do not exist for it.
            return f"tools that are no longer there: {len(missing)}"
        compacted = self.record is not None and self.record.start not in ("", self.start)
        return "the conversation was compacted" if compacted else "over the token budget"

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
            # A compaction in mid-turn is made use of at the next user message.
            start=before.start if self.ranked and before.start else self.start,
            overview=before.overview,
        )
        if not self.exposure.keeps:
            return record  # A detour by another model changes nothing about what the thread keeps.
        unasked = sum(reason.kind == "rank" for reason in selection.reasons.values())
        added = 0 if situation.room is None else before.added + unasked
        return replace(record, array=rendered.array, reveals=rendered.reveals, added=added)


@dataclass(frozen=True)
class Step:
    """The request to send, and what to write to the state once it was answered."""

    request: ModelRequest[Any]
    update: Mapping[str, Any]
    plan: Plan

    def answer(
        self, response: ModelResponse[Any] | AIMessage
    ) -> ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]:
        response = self.plan.exposure.receive(response, self.plan.tools)
        usage = CacheUsage.of([response] if isinstance(response, AIMessage) else response.result)
        update = dict(self.update)
        if usage.calls:
            update[USAGE] = usage.to_state()
            tell(self.request.runtime, "tool_selection_usage", usage.to_state())
        if not update:
            return response
        if isinstance(response, AIMessage):
            response = ModelResponse(result=[response])
        return ExtendedModelResponse(response, Command(update=update))
