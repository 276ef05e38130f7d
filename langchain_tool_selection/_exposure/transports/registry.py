"""All transports there are, and which of them a model can carry."""

from __future__ import annotations

from typing import Any

from langchain_tool_selection._exposure.transports.additional_tools import AdditionalTools
from langchain_tool_selection._exposure.transports.base import Transport
from langchain_tool_selection._exposure.transports.deferred_tools import DeferredTools
from langchain_tool_selection._exposure.transports.tool_addition import ToolAddition
from langchain_tool_selection._exposure.transports.tool_reference import ToolReference

TRANSPORTS: tuple[Transport, ...] = (ToolAddition(), ToolReference(), AdditionalTools(), DeferredTools())
"""In the order in which a model is asked for them. A model that can carry two gets the first."""


def transport_of(model: Any, name: str) -> Transport | None:
    """Return how tools can be added in mid-conversation for this model; `None` if they cannot.

    Args:
        model: The chat model object, without arguments bound to it.
        name: Its plain name.
    """
    return next((transport for transport in TRANSPORTS if transport.can_carry(model, name)), None)
