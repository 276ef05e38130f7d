"""`LLMRanker`: a chat model picks from a short menu that another ranker made.

A model is good at telling five similar tools apart and bad at reading five hundred, so it gets the short
list only, one line a tool. It is a third party in both directions. What it reads holds descriptions that
anybody may have written, so they are made plain and named as data. What it answers is compared with the
menu: an entry that is there counts, everything else is dropped, and nothing is guessed from near misses.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig

from langchain_tool_selection._ground.messages import text_of
from langchain_tool_selection._ground.settings import check_count
from langchain_tool_selection._ground.untrusted import one_line
from langchain_tool_selection._ranking.choice import as_ranker
from langchain_tool_selection._ranking.index import CatalogView
from langchain_tool_selection._ranking.protocol import Documents, Hit, Query, Ranker
from langchain_tool_selection._ranking.rules import put_first
from langchain_tool_selection._tools.documents import ToolDocument

INSTRUCTIONS = Path(__file__).with_name("llm_instructions.txt").read_text("utf-8").rstrip()

_REMINDER = "Only a JSON list of names from the menu, please; [] if none of them serves the request."

_NAME_CHARACTERS = 128
_SUMMARY_CHARACTERS = 200
_REQUEST_CHARACTERS = 4_000

_SENTENCE_END = re.compile(r"\n\s*\n|(?<=[.!?])\s+(?=[^\sa-z])|(?<=[。！？])")  # noqa: RUF001  # Chinese and Japanese
_LIST = re.compile(r"\[[^\[\]]*\]")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_REMARK = re.compile(r":\s|\s[-–—]\s")  # noqa: RUF001  # models write real dashes
_WRAPPING = " \t\r\"'`*.,;:"


class LLMRanker:
    """Lets a chat model reorder the short list of another ranker.

    The tools that the model picks come first, in its order; then the rest of the short list and all
    that lies beyond it, as the first ranker has them. It is asked once for each search, and not at all
    where there is no choice. An answer that names nothing on the menu is asked for once more, and then
    ignored. What the model raises reaches the caller; the middleware ranks by words then.

    The model's tokens stay out of the stream of the agent around it.

    Args:
        model: A chat model, or its name as `init_chat_model` takes it ("openai:gpt-5.4-mini"). A
            small and fast one does: every selection waits for it.
        first: Makes the short list: whatever `ToolIndex` takes as its ranker.
        shortlist: How many tools are on the menu at most.
        instructions: The system prompt. It has to ask for a JSON list of names.

    Example:
        >>> ranker = LLMRanker("openai:gpt-5.4-mini")
        >>> middleware = ToolSelectionMiddleware(ranker=ranker)
    """

    def __init__(
        self,
        model: str | BaseChatModel,
        first: Any = None,
        *,
        shortlist: int = 20,
        instructions: str = INSTRUCTIONS,
    ) -> None:
        check_count("shortlist", shortlist, at_least=2)
        self._choice = ModelChoice(model, instructions)
        self._first: Ranker = as_ranker(first)
        self._shortlist = shortlist

    def rank(self, query: Query, documents: Documents, *, limit: int | None = None) -> list[Hit]:
        """Return all hits of the first ranker, those that the model picks first.

        Raises:
            ValueError: the first ranker returned a score that is not finite.
            Exception: whatever else the first ranker or the model raises.
        """
        catalog = CatalogView(tuple(documents), self._first)
        hits = catalog.search(query, limit=self._limit(limit))
        return put_first(self._choice.choose(query, self._menu(catalog, hits)) or (), hits)

    async def arank(self, query: Query, documents: Documents, *, limit: int | None = None) -> list[Hit]:
        """As `rank`, awaiting the model, and the first ranker where it can be awaited."""
        catalog = CatalogView(tuple(documents), self._first)
        hits = await catalog.asearch(query, limit=self._limit(limit))
        return put_first(await self._choice.achoose(query, self._menu(catalog, hits)) or (), hits)

    def _limit(self, limit: int | None) -> int | None:
        # What the model reads must not depend on how many hits the caller looks at.
        return None if limit is None else max(limit, self._shortlist)

    def _menu(self, catalog: CatalogView, hits: list[Hit]) -> list[ToolDocument]:
        return [catalog.document(hit.name) for hit in hits[: self._shortlist]]


class ModelChoice:
    """Asks a chat model to choose from a few tools, and checks its answer.

    Args:
        model: A chat model, or its name as `init_chat_model` takes it.
        instructions: The system prompt.

    Raises:
        TypeError: `model` is neither.
    """

    def __init__(self, model: str | BaseChatModel, instructions: str = INSTRUCTIONS) -> None:
        self._model = chat_model_of(model)
        self._instructions = instructions

    def choose(self, query: Query, documents: Documents) -> list[str] | None:
        """Return the names that the model picked, best first; empty if it says that none serves.

        Returns:
            `None` if there is nothing to choose between, or no usable answer in two attempts.
        """
        menu = _Menu.of(documents)
        for messages in self._attempts(query, menu):
            picked = menu.read(text_of(self._model.invoke(messages, _internal())))
            if picked is not None:
                return picked
        return None

    async def achoose(self, query: Query, documents: Documents) -> list[str] | None:
        """As `choose`, awaiting the model."""
        menu = _Menu.of(documents)
        for messages in self._attempts(query, menu):
            picked = menu.read(text_of(await self._model.ainvoke(messages, _internal())))
            if picked is not None:
                return picked
        return None

    def _attempts(self, query: Query, menu: _Menu) -> Iterator[list[BaseMessage]]:
        if len(menu.lines) < 2:
            return
        prompt = "\n".join(["Menu:", *menu.lines, "", *_request(query)])
        yield from attempts(self._instructions, prompt, _REMINDER)


def attempts(instructions: str, prompt: str, reminder: str) -> Iterator[list[BaseMessage]]:
    """Yield what a model is asked, and what it is asked once more if its answer cannot be used."""
    # The second attempt differs, because at temperature 0 equal questions get equal answers.
    for text in (prompt, f"{prompt}\n\n{reminder}"):
        yield [SystemMessage(instructions), HumanMessage(text)]


class _Menu(NamedTuple):
    """What the model may choose from.

    Attributes:
        lines: One for each tool.
        entries: The name that is meant by each way of pointing at a line: name, name as shown, number.
    """

    lines: list[str]
    entries: dict[str, str]

    @classmethod
    def of(cls, documents: Documents) -> _Menu:
        names = [document.name for document in documents]
        shown = [one_line(name, _NAME_CHARACTERS) for name in names]
        summaries = [_summary(document.description) for document in documents]
        numbered = enumerate(zip(shown, summaries, strict=True), 1)
        entries = {str(number): name for number, name in enumerate(names, 1)}
        entries |= zip(shown, names, strict=True)
        entries |= zip(names, names, strict=True)  # last: a tool's own name beats another's number
        return cls([f"{number}. {name}: {summary}" for number, (name, summary) in numbered], entries)

    def read(self, answer: str) -> list[str] | None:
        """Return the tools that an answer names, in its order; `None` if it is no answer.

        It may be a JSON list, or names in lines or between commas, in any wrapping of bullets and
        quotes. An empty list or "none" is an answer; a list of strange names is not.
        """
        listed = _json_list(answer)
        pointers = _loose_list(answer) if listed is None else listed
        picked = [self.entries[pointer] for pointer in pointers if pointer in self.entries]
        says_none = listed == [] or [pointer.lower() for pointer in pointers] == ["none"]
        return list(dict.fromkeys(picked)) if picked or says_none else None


def _json_list(answer: str) -> list[str] | None:
    """Return the entries of the last JSON list in an answer: reasoning, if any, comes before it."""
    for found in reversed(_LIST.findall(answer)):
        with suppress(ValueError):
            return [str(entry) for entry in json.loads(found)]
    return None


def _loose_list(answer: str) -> list[str]:
    heads = (_REMARK.split(_BULLET.sub("", line), maxsplit=1)[0] for line in answer.splitlines())
    pointers = (pointer.strip(_WRAPPING) for head in heads for pointer in head.split(","))
    return [pointer for pointer in pointers if pointer]


def _summary(description: str) -> str:
    return one_line(_SENTENCE_END.split(description.strip(), maxsplit=1)[0], _SUMMARY_CHARACTERS)


def _request(query: Query) -> Iterator[str]:
    newest, *earlier = (one_line(text, _REQUEST_CHARACTERS) for text, _ in query.parts)
    if earlier:
        yield "Said before the request, the latest first:"
        yield from (f"- {text}" for text in earlier)
    yield f"Request: {newest}"


def chat_model_of(model: Any) -> BaseChatModel:
    """Return a chat model, or the one of a name as `init_chat_model` takes it.

    Raises:
        TypeError: `model` is neither.
        Exception: whatever making the model raises.
    """
    if isinstance(model, str):
        # Imported here: it takes a second, which a model that is there already should not cost.
        from langchain.chat_models import init_chat_model  # noqa: PLC0415

        return init_chat_model(model)
    if not isinstance(model, BaseChatModel):
        raise TypeError(
            "model must be a LangChain chat model or a name such as 'openai:gpt-5.4-mini', "
            f"got {type(model).__name__}"
        )
    return model


def _internal() -> RunnableConfig:
    """Return the config that keeps a call out of its agent's stream, as LangChain's own middleware does."""
    # Imported here: modules that rank load no agent framework.
    from langgraph.constants import TAG_NOSTREAM  # noqa: PLC0415

    metadata: dict[str, Any] = {"lc_source": "tool_selection"}
    # The mark is read by LangChain's agents only. Where they are not loaded, nobody waits seconds for them.
    if "langchain.agents" in sys.modules:
        from langchain.agents.middleware.internal_call_transformer import (  # noqa: PLC0415
            internal_call_metadata,
        )

        metadata |= internal_call_metadata()
    return {"tags": [TAG_NOSTREAM], "metadata": metadata}
