"""What the middleware keeps in graph state, and how writes to it are merged.

Two traps make this module look the way it does:

- LangGraph takes a reducer from the *last* item of `Annotated` only. One place further left, it is
  ignored without a word, and two discoveries in one message end the run.
- LangChain and deepagents resolve these annotations at run time. A name that only a type checker can
  see would silently turn a private key into one that leaks to subagents. Hence no postponed
  annotations here, and no import under TYPE_CHECKING.
"""

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware.types import AgentState, PrivateStateAttr

from langchain_tool_selection._ground.messages import state_value
from langchain_tool_selection._run.usage import CacheUsage
from langchain_tool_selection._selection.pins import PINS, merge_pins

USAGE = "tool_selection_usage"


def last_write(_current: Any, update: Any) -> Any:
    """Keep the newest write."""
    return update


def add_usage(current: Any, update: Any) -> dict[str, int]:
    """Add what a model call used to what the thread has used."""
    return (CacheUsage.from_state(current) + CacheUsage.from_state(update)).to_state()


def thread_usage(state: Any) -> CacheUsage:
    """Return what the model calls of a thread used, as far as the provider reported it.

    Args:
        state: Values of graph state, such as `agent.get_state(config).values`. What a compaction took out
            of the messages still counts.
    """
    return CacheUsage.from_state(state_value(state, USAGE))


class ToolSelectionState(AgentState[Any]):
    """The agent's state with what tool selection remembers. Private: no input, no output, no subagent."""

    tool_selection_pinned: NotRequired[Annotated[list[str], PrivateStateAttr, merge_pins]]
    tool_selection_thread: NotRequired[Annotated[dict[str, Any], PrivateStateAttr, last_write]]
    tool_selection_usage: NotRequired[Annotated[dict[str, Any], PrivateStateAttr, add_usage]]


def check_channels(state: Any) -> None:
    """Check that the agent's state has the pins as this module declares them.

    A channel with a reducer has a value from the start. One that the caller's `state_schema` declares without
    it has none before it is written, and would lose pins.

    Raises:
        ValueError: there are no pins, where our other keys are.
    """
    if isinstance(state, Mapping) and PINS not in state and USAGE in state:
        raise ValueError(
            f"the agent's state_schema declares {PINS!r} without its reducer, so that pins would be lost. "
            "Leave it out of your schema: ToolSelectionMiddleware declares it."
        )
