"""A ranker that notes what it is asked, in a real agent: what the middleware reads from a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from langchain.agents import create_agent
from langchain_core.tools import StructuredTool

from langchain_tool_selection import Hit, LexicalRanker, Query, Thread, ToolDocument, ToolSelectionMiddleware
from langchain_tool_selection.testing import ScriptedChatModel

TOOLS = {
    "weather_lookup": "Get the weather forecast for a city.",
    "create_issue": "Open an issue in the tracker.",
    "send_email": "Send an email to a person.",
    "translate_text": "Translate text to another language.",
    **{f"filler_{number}": f"Does unrelated job number {number}." for number in range(10)},
}


class Recording:
    """Ranks by words, and notes each query."""

    def __init__(self) -> None:
        self.queries: list[Query] = []
        self._words = LexicalRanker()

    def rank(
        self, query: Query, documents: Sequence[ToolDocument], *, limit: int | None = None
    ) -> Sequence[Hit]:
        self.queries.append(query)
        return self._words.rank(query, documents, limit=limit)


def tool(name: str, description: str) -> Any:
    return StructuredTool.from_function(func=lambda text="": "", name=name, description=description)


@cache
def _agent() -> tuple[Any, Recording, ScriptedChatModel]:
    ranker, model = Recording(), ScriptedChatModel(script=lambda _: "Done.")
    tools = [tool(*item) for item in TOOLS.items()]
    selection = ToolSelectionMiddleware(top_k=1, thread=Thread(keep_used=0), ranker=ranker, discovery=None)
    return create_agent(model, tools, middleware=[selection]), ranker, model


def searched_for(*messages: Any) -> Query:
    """Return what a call that ends with these messages searches for; an empty query if nothing."""
    agent, ranker, _ = _agent()
    ranker.queries.clear()
    agent.invoke({"messages": list(messages)})
    return ranker.queries[0] if ranker.queries else Query()


def shown_for(*messages: Any) -> list[str]:
    """Return the tools that such a call is sent."""
    agent, _, model = _agent()
    agent.invoke({"messages": list(messages)})
    return model.calls[-1].tools
