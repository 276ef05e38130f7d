"""How a selection reaches the model.

An exposure takes the request and what was selected, and gives back the request to send. It is the only
place that decides what the `tools` array of a call holds and what else of the request tells the model
about tools. Most providers render tools ahead of all messages and cache by exact prefix, so a changed array
makes them read the whole conversation anew, at full price. Exposures differ in how often they let
that happen, and in what they ask of the provider instead.

`Exposure` is what the middleware needs of one. Those of this package stand one in a file, and in
`_exposure.registry`; `testing.check_exposure` is the contract that each of them keeps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias, runtime_checkable

from langchain_tool_selection._selection.policy import ReasonKind, Selection
from langchain_tool_selection._selection.record import Reveal, ThreadRecord

# The cost model reads what exposures say of themselves, and loads no framework. So their modules import what
# needs LangChain for type checkers, or where it is used.
if TYPE_CHECKING:
    from langchain.agents.middleware.types import ModelRequest, ModelResponse
    from langchain_core.messages import AIMessage

    from langchain_tool_selection._exposure.models import ModelTraits

Request: TypeAlias = "ModelRequest[Any]"
Answer: TypeAlias = "ModelResponse[Any] | AIMessage"
Tools: TypeAlias = Mapping[str, Any]

ADDITION_SHARE = 0.5
"""What a tool must score to be added unasked, as a share of the best match."""

IN_THE_ARRAY: frozenset[ReasonKind] = frozenset({"core", "provider", "deferred", "discovery", "forced"})
"""Reasons that require a tool to be in the tools array, because it cannot be added later."""


class Rendered(NamedTuple):
    """A request as it is sent, and what later calls of the thread must know of it.

    Attributes:
        request: The request.
        array: The names in its tools array, in order; tools that the provider loads later left out.
        reveals: What is added to the conversation, in order: what earlier calls added, then what this one
            does. Later calls find it in their record.
        revealed: The names of what this call is the first to add.
        bound: All names in the tools array, in order, where `array` is only what it began with; `None`
            where they are the same.
    """

    request: Request
    array: tuple[str, ...]
    reveals: tuple[Reveal, ...] = ()
    revealed: tuple[str, ...] = ()
    bound: tuple[str, ...] | None = None


@runtime_checkable
class Exposure(Protocol):
    """A way of showing a selection to a model.

    One object serves many calls of many threads at once, so it keeps nothing of a call. What a thread was
    sent is in its record, which outlives the process. The same input must give the same bytes.

    To write one of your own, give an object with these members as `exposure=`, and hold it to
    `testing.check_exposure`.
    """

    @property
    def name(self) -> str:
        """What events, records and logs call it. Another name than those of the package's own exposures."""

    @property
    def keeps(self) -> bool:
        """Whether what a thread has been shown stays for the thread.

        If so, a later user message adds tools, up to `max_additions`, and takes none away. If not, each user
        message selects anew. Within one user turn, what is shown only grows in either case.
        """

    @property
    def ranks(self) -> bool:
        """Whether tools are shown for what the user wants; otherwise only by a search of the model."""

    @property
    def additions_reset_cache(self) -> bool:
        """Whether an addition makes the provider read the whole prompt anew, at the full input price.

        If so, a later user message adds tools only when it changes the topic. After a compaction nothing of
        the conversation is cached anyhow, and the next user message selects anew.
        """

    def max_additions(self, record: ThreadRecord) -> int:
        """Return how many tools the next user message may add by rank to those that the thread keeps.

        Args:
            record: What the thread has been sent so far. `record.added` counts its earlier additions.
        """

    def render(self, request: Request, selection: Selection, tools: Tools, record: ThreadRecord) -> Rendered:
        """Return the request to send.

        Never changes `request`, its lists, its messages or a tool: a retry must find them as they were.

        Args:
            request: The call as it came.
            selection: What to show, in order. All of it must be shown, and nothing else.
            tools: The request's own tools by name: LangChain tools, and providers' dicts. These objects must
                be bound and no others, because other middleware may have put marks on them.
            record: What earlier calls of the thread were sent. Names in it may be gone from `tools`.
        """

    def receive(self, response: Answer, tools: Tools) -> Answer:
        """Return the model's answer as the rest of the agent is to see it, with calls that it can run.

        Never changes `response`. Calls keep their ids and their order.

        Args:
            response: What the model answered to the request that `render` gave.
            tools: As in `render`.
        """


@dataclass(frozen=True)
class CallContext:
    """What an exposure may depend on when it is chosen for a model call.

    Attributes:
        traits: What is known of the model.
        messages: The conversation as it is sent.
        search_tool: The search tool's name; `None` without one.
        call_tool: The name of the tool that calls others; `None` if the agent has none.
        is_strict: Whether tools are sent as strict ones, so that a call has the arguments of the schema that
            was sent and no others.
    """

    traits: ModelTraits
    messages: Sequence[Any] = ()
    search_tool: str | None = None
    call_tool: str | None = None
    is_strict: bool = False


@dataclass(frozen=True)
class OwnExposure(Exposure):
    """An exposure of this package, with what most of them have in common.

    Attributes:
        uses_call_tool: Whether the model calls what it finds, if it is not in the array, through `call_tool`,
            which the middleware then registers with the agent.
        quotes_schemas: Whether the model reads the schema of what it finds in the search's answer.
        budget: How many tools a user message, and a thread, may add unasked.
    """

    name: ClassVar[str]
    keeps: ClassVar[bool] = True
    ranks: ClassVar[bool] = True
    additions_reset_cache: ClassVar[bool] = False
    uses_call_tool: ClassVar[bool] = False
    quotes_schemas: ClassVar[bool] = False
    budget: ClassVar[tuple[int, int]] = (0, 0)

    @classmethod
    def suits(cls, context: CallContext) -> bool:
        """Whether `exposure="auto"` may take it for this call: it works and is not refused."""
        return False

    @classmethod
    def of(cls, context: CallContext) -> OwnExposure | None:
        """Return the exposure for this call; `None` if it cannot work there."""
        return cls()

    def max_additions(self, record: ThreadRecord) -> int:
        """See `Exposure`."""
        per_message, per_thread = self.budget
        return max(0, min(per_message, per_thread - record.added))

    def receive(self, response: Answer, tools: Tools) -> Answer:
        """See `Exposure`."""
        return response

    @staticmethod
    def constant_array(
        selection: Selection,
        tools: Tools,
        record: ThreadRecord,
        kinds: frozenset[ReasonKind] = IN_THE_ARRAY,
        elsewhere: Collection[str] = (),
    ) -> tuple[str, ...]:
        """Return the names of the thread's constant array, and behind them what must be in it since.

        Args:
            selection: What the call shows.
            tools: The tools of the request.
            record: What earlier calls of the thread were sent.
            kinds: Reasons that put a tool into the array also later.
            elsewhere: Tools that stand in the conversation. A provider refuses a tool that is there twice.
        """
        if not record.array:
            return selection.names
        later = [name for name in selection.names if name not in elsewhere]
        bound = [name for name in later if selection.reasons[name].kind in kinds]
        # Ahead, because a cache mark goes on the last tool and must not be on a deferred one.
        ahead = [name for name in bound if selection.reasons[name].kind == "deferred"]
        return tuple(dict.fromkeys([*ahead, *(name for name in record.array if name in tools), *bound]))
