"""How a selection reaches the model.

An exposure takes the request and what was selected and gives back the request to send. It is the only
place that decides what the `tools` array of a call holds, so that other ways of revealing a tool than
changing that array can take its place without the middleware noticing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from langchain.agents.middleware.types import ModelRequest

from langchain_tool_selection._policy import Selection


class Exposure(Protocol):
    """One way of showing selected tools to a model."""

    def apply(
        self, request: ModelRequest[Any], selection: Selection, tools: Mapping[str, Any]
    ) -> ModelRequest[Any]:
        """Return the request to send. Never changes `request`.

        Args:
            request: The call as it came.
            selection: What to show, in order.
            tools: The request's own tool objects by name. These must be bound and no others: other
                middleware may have put marks on them.
        """
        ...


class PerTurn:
    """The tools array holds what was selected for this user turn: simple, and cold for a cache."""

    def apply(
        self, request: ModelRequest[Any], selection: Selection, tools: Mapping[str, Any]
    ) -> ModelRequest[Any]:
        """See `Exposure.apply`."""
        return request.override(tools=[tools[name] for name in selection.names])


EXPOSURES: Mapping[str, type[Exposure]] = {"per_turn": PerTurn}
