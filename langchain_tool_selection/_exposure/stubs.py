"""`"stubs"`: the tools array holds every tool by its name and one line, with a schema that takes anything.

For providers that cache and have no way to add a tool in mid-conversation. The model knows all tools by name,
and reads a schema when it needs one: in the answer to a call that does not fit, or to a search. The array
never changes, so the conversation stays cached. A call that fits runs at once, and it is the registered tool
that runs: a stub is only what the model is shown of it.

An array has an end. What is beyond it is found by a search and called through `call_tool`, as by "proxy".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar

from langchain_tool_selection._exposure.base import Answer, CallContext, OwnExposure, Rendered, Request, Tools
from langchain_tool_selection._ground.messages import state_value
from langchain_tool_selection._selection.pins import PINS, pins_in
from langchain_tool_selection._selection.policy import Plan, Reason, ReasonKind, Selection
from langchain_tool_selection._selection.record import ThreadRecord

_WHOLE: frozenset[ReasonKind] = frozenset({"core", "provider", "deferred", "discovery"})
"""Reasons of tools that are sent with their schemas. A tool that `tool_choice` names is not among them: its
bytes would change when it is named."""


@dataclass(frozen=True)
class Stubs(OwnExposure):
    """Shows all tools by name and one line. See `Exposure` for each member.

    A thread's array is `ThreadRecord.shown`. `ThreadRecord.array` may be another exposure's, to which the
    thread goes back from a fallback model, and is left as it is.

    Attributes:
        call_tool: The name of the tool that calls what is beyond the array; `None` where the agent has none.
            Then the array has no end, because nothing beyond it could be called.
    """

    call_tool: str | None = None

    name = "stubs"
    ranks = False
    uses_call_tool = True
    quotes_schemas = True

    most: ClassVar[int] = 120
    """Tools in the array beside `call_tool`, whole ones included. OpenAI refuses a request with more than
    128, and behind this middleware LangChain adds the tools of structured output."""

    @classmethod
    def suits(cls, context: CallContext) -> bool:
        # Elsewhere "grow" can send the schemas that are needed, and no call has to be guessed.
        return context.traits.refuses_changes and cls.of(context) is not None

    @classmethod
    def of(cls, context: CallContext) -> Stubs | None:
        return None if context.is_strict else cls(context.call_tool)

    def array_in(self, record: ThreadRecord) -> tuple[str, ...]:
        """Return the array of the thread's last call; empty if that was none of stubs."""
        return record.shown if record.exposure == self.name and record.hides else ()

    def planned(self, plan: Plan, record: ThreadRecord) -> Plan:
        """Return the plan with the thread's array; with a limit of hits if a new one has to be chosen.

        Args:
            plan: What is there and what must stay.
            record: What the thread has been sent.
        """
        known = {n: why for n, why in record.reasons.items() if why.kind == "stub"}
        plan = replace(
            plan,
            shown=self.array_in(record),
            recorded={name: known.get(name, Reason("stub")) for name in plan.names},
            matched=(),
            max_additions=0,
        )
        is_chosen = plan.shown or len(self._fitting(plan, plan.names)) == len(plan.names)
        return plan if is_chosen else replace(plan, limit=self.most)

    def settled(self, plan: Plan, best: Sequence[str]) -> Plan:
        """Return the plan with the array that is sent, in the order of registration if it is new.

        Args:
            plan: What `planned` gave.
            best: The tools that match what the user wrote first, best first. Others fill the room they leave.
        """
        array = plan.shown
        if not array:
            fitting = self._fitting(plan, dict.fromkeys([*best, *plan.names]))
            array = tuple(name for name in plan.names if name in fitting)
        reached = {*array, *plan.kept}
        if self.call_tool not in plan.shown and reached.issuperset(plan.names):
            plan = self._without_call_tool(plan)
        present = frozenset(plan.names)
        return replace(plan, shown=[name for name in array if name in present])

    def _fitting(self, plan: Plan, names: Iterable[str]) -> set[str]:
        """Return those of the names that there is room for. What must stay takes its room first."""
        if self.call_tool is None:
            return {*names}
        kept = plan.kept.keys() - {self.call_tool}
        room, left = self.most - len(kept), inf
        if plan.token_budget is not None:
            left = plan.token_budget - sum(map(plan.tokens, kept))
        fitting, present = {*plan.kept}, frozenset(plan.names)
        for name in names:
            if room > 0 and name in present and name not in fitting and plan.tokens(name) <= left:
                fitting.add(name)
                room, left = room - 1, left - plan.tokens(name)
        return fitting

    def _without_call_tool(self, plan: Plan) -> Plan:
        """Return the plan without the tool that calls others: all of them are in the array."""
        names = [name for name in plan.names if name != self.call_tool]
        kept = {name: why for name, why in plan.kept.items() if name != self.call_tool}
        return replace(plan, names=names, kept=kept)

    def render(self, request: Request, selection: Selection, tools: Tools, record: ThreadRecord) -> Rendered:
        from langchain_tool_selection._exposure.call_tool import wrap_calls  # noqa: PLC0415 - see `base`
        from langchain_tool_selection._tools.definitions import stub_in  # noqa: PLC0415 - likewise

        names, reasons = selection.names, selection.reasons
        array = [tools[name] if reasons[name].kind in _WHOLE else stub_in(tools, name) for name in names]
        sent = request.override(tools=array)
        if self.call_tool is not None and self.call_tool in names:
            beyond = {*tools, *pins_in(state_value(request.state, PINS))}.difference(names)
            sent = sent.override(messages=wrap_calls(request.messages, beyond, self.call_tool))
        return Rendered(sent, record.array, record.reveals, bound=names)

    def receive(self, response: Answer, tools: Tools) -> Answer:
        from langchain_tool_selection._exposure.call_tool import unwrap_calls  # noqa: PLC0415 - see `base`

        return response if self.call_tool is None else unwrap_calls(response, tools, self.call_tool)


def was_whole(record: ThreadRecord, name: str) -> bool:
    """Whether the last call of a thread under "stubs" was sent a tool's schema in the tools array."""
    reason = record.reasons.get(name)
    return name in record.shown and reason is not None and reason.kind in _WHOLE
