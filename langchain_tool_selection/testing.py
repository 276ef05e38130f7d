"""What tests need: a scripted chat model, a record of each call, and the contract that every ranker keeps.

Nothing here calls a provider. `ScriptedChatModel` is a real LangChain chat model (bound tools are
converted as a provider's client does it, streaming and async work), only its answers are written down
in advance or computed from what it was sent.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import isclose, isfinite
from typing import Any, TypeAlias

from langchain_core.callbacks import BaseCallbackHandler, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr

from langchain_tool_selection._documents import ToolDocument
from langchain_tool_selection._index import Catalog, ToolIndex
from langchain_tool_selection._ranking import Hit, Query, Ranker


@dataclass(frozen=True)
class ModelCall:
    """What one call of the model was sent.

    Attributes:
        messages: The messages, the system message included.
        schemas: The tools as they were bound: OpenAI function dicts, provider dicts as they came.
        tool_choice: As it was bound; `None` if it was not.
    """

    messages: tuple[BaseMessage, ...]
    schemas: tuple[dict[str, Any], ...] = ()
    tool_choice: Any = None

    @property
    def tools(self) -> list[str]:
        """Names of the tools sent, in the order sent; a provider's nameless tool by its type."""
        return [schema_name(schema) for schema in self.schemas]


Answer: TypeAlias = str | AIMessage
Script: TypeAlias = Sequence[Answer] | Callable[[ModelCall], Answer]


class ScriptedChatModel(BaseChatModel):
    """A chat model that answers from a script and remembers what it was sent.

    Example:
        >>> model = ScriptedChatModel(script=[call("search", query="x"), "Done."])
        >>> agent = create_agent(model, tools)
        >>> agent.invoke({"messages": [{"role": "user", "content": "find x"}]})
        >>> [c.tools for c in model.calls]

    Attributes:
        script: The answers in order, or a function from a `ModelCall` to its answer. A sequence that
            is used up repeats its last answer without tool calls.
    """

    script: Script = Field(repr=False)
    _calls: list[ModelCall] = PrivateAttr(default_factory=list)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @property
    def calls(self) -> list[ModelCall]:
        """What each call was sent, in the order of the calls."""
        return self._calls

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: Any = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools as a provider's client does: converted one by one, provider dicts as they are."""
        schemas = [schema_of(tool) for tool in tools]
        return self.bind(tools=schemas, tool_choice=tool_choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages, kwargs))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        answer = self._answer(messages, kwargs)
        calls = [
            tool_call_chunk(name=c["name"], args=json.dumps(c["args"]), id=c["id"], index=i)
            for i, c in enumerate(answer.tool_calls)
        ]
        for word in str(answer.content).split(" "):
            yield ChatGenerationChunk(message=AIMessageChunk(content=f"{word} " if word else ""))
        yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=calls))

    def _answer(self, messages: Sequence[BaseMessage], bound: dict[str, Any]) -> AIMessage:
        sent = ModelCall(tuple(messages), tuple(bound.get("tools") or ()), bound.get("tool_choice"))
        with self._lock:
            self._calls.append(sent)
            turn = len(self._calls) - 1
        if callable(self.script):
            answer = self.script(sent)
        elif turn < len(self.script):
            answer = self.script[turn]
        else:
            last = self.script[-1] if self.script else ""
            answer = last if isinstance(last, str) else str(last.content)
        if isinstance(answer, str):
            return AIMessage(answer)
        return answer.model_copy(deep=True)


class CallRecorder(BaseCallbackHandler):
    """A callback handler that notes what every chat model call was sent, whatever the model.

    Pass it in a run's config: `agent.invoke(input, {"callbacks": [recorder]})`.

    Attributes:
        calls: What each call was sent, in order.
    """

    def __init__(self) -> None:
        self.calls: list[ModelCall] = []

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **kwargs: Any
    ) -> None:
        """Note one call."""
        bound = kwargs.get("invocation_params") or {}
        self.calls.append(
            ModelCall(tuple(messages[0]), tuple(bound.get("tools") or ()), bound.get("tool_choice"))
        )


def call(name: str, /, **arguments: Any) -> AIMessage:
    """Return a model's answer that calls one tool."""
    return calls((name, arguments))


def calls(*wanted: tuple[str, dict[str, Any]]) -> AIMessage:
    """Return a model's answer that calls several tools at once."""
    with _ids_lock:
        first = _ids[0]
        _ids[0] += len(wanted)
    return AIMessage(
        content="",
        tool_calls=[
            {"name": name, "args": arguments, "id": f"call_{first + i}", "type": "tool_call"}
            for i, (name, arguments) in enumerate(wanted)
        ],
    )


def schema_of(tool: Any) -> dict[str, Any]:
    """Return a tool as it is bound: converted to an OpenAI function, or a provider's dict as it is."""
    if isinstance(tool, dict) and "function" not in tool and "name" not in tool:
        return tool
    if isinstance(tool, dict) and "type" in tool and tool["type"] != "function":
        return tool
    return convert_to_openai_tool(tool)


def schema_name(schema: dict[str, Any]) -> str:
    """Return the name of a bound tool; a provider's nameless tool by its type."""
    function = schema.get("function")
    name = function.get("name") if isinstance(function, dict) else schema.get("name")
    return str(name or schema.get("type") or next(iter(schema)))


_ids = [1]
_ids_lock = threading.Lock()


# -- the contract of a ranker --------------------------------------------------------------------------

_TOOLS = (
    ToolDocument("weather_lookup", "Get the weather forecast for a city.", (("city", "City name."),)),
    ToolDocument("translate_text", "Translate text to another language.", examples=("say it in French",)),
    ToolDocument("calculator", "Evaluate a basic arithmetic expression."),
    ToolDocument("create_issue", "Open an issue in the tracker.", tags=("bug",), domain="tracker"),
    ToolDocument("create_issue_comment", "Comment on an issue in the tracker.", domain="tracker"),
    ToolDocument("search_law", "日本の法令を検索する"),
    ToolDocument("buscar_café", "Busca un café cercano. 👩‍👩‍👧 \u202e \x00"),
    ToolDocument("undescribed"),
)
_REQUESTS = (
    "weather forecast for a city",
    "evaluate this expression and open an issue in the tracker",
    "un CAFE\u0301 cercano",
    "法令を検索",
    "!?",
    "city " * 500,
    "👩‍👩‍👧 \ufdfa \u202eABC \x00 \ud83d",  # it ends with half an emoji, as text that was cut off does
)


def check_ranker(make: Callable[[], Ranker]) -> None:
    """Check that a ranker keeps what the middleware builds on; for the tests of a ranker of your own.

    It ranks a few requests over a few tools again and again, and does not judge which tool comes first.
    May be called with an event loop running, and blocks it.

    Args:
        make: Returns a new ranker each time, always with the same settings.

    Raises:
        AssertionError: a promise is broken; the message says which, and by what request.

    Example:
        >>> def test_my_ranker_keeps_the_contract():
        ...     check_ranker(lambda: MyRanker(weight=0.5))
    """
    _nothing_comes_of_nothing(make)
    for text in _REQUESTS:
        _any_text_is_ranked(make, text)
        _scores_are_finite_and_descending(make, text)
        _equal_input_gives_equal_hits(make, text)
        _a_limit_only_cuts_the_list(make, text)
        _allowed_is_only_a_mask(make, text)
        _syncing_again_changes_nothing(make, text)
        _a_removed_tool_leaves_no_trace(make, text)
        _a_changed_tool_is_ranked_as_it_is_now(make, text)
        _the_async_path_gives_the_same(make, text)
    _twins_come_in_the_order_of_registration(make)


def _nothing_comes_of_nothing(make: Callable[[], Ranker]) -> None:
    for text in ("", " \n"):
        _expect(not _search(_catalog(make()), text), "an empty request has no hits", text)
    _expect(not _search(_catalog(make(), ()), "weather"), "an empty catalogue has no hits", "weather")


def _any_text_is_ranked(make: Callable[[], Ranker], text: str) -> None:
    try:
        list(make().rank(Query.of(text), _TOOLS))
    except Exception as error:
        _expect(False, f"any text in any script is ranked, but it raised {error!r}", text, error)


def _scores_are_finite_and_descending(make: Callable[[], Ranker], text: str) -> None:
    catalog = _catalog(make())
    raw = list(catalog.ranker.rank(Query.of(text), catalog.documents))
    _expect(all(isfinite(score) for _, score in raw), "scores are finite", text)
    _expect({name for name, _ in raw} <= set(catalog.names), "hits name tools that were passed", text)
    scores = [hit.score for hit in _search(catalog, text)]
    _expect(scores == sorted(scores, reverse=True), "scores are descending", text)


def _equal_input_gives_equal_hits(make: Callable[[], Ranker], text: str) -> None:
    catalog = _catalog(make())
    hits = _search(catalog, text)
    _expect(_search(catalog, text) == hits, "the same request twice has the same hits", text)
    _expect(_search(_catalog(make()), text) == hits, "two rankers made alike give the same hits", text)


def _a_limit_only_cuts_the_list(make: Callable[[], Ranker], text: str) -> None:
    catalog = _catalog(make())
    hits = _search(catalog, text)
    for limit in (0, 1, 3, len(_TOOLS) + 1):
        same = _search(catalog, text, limit=limit) == hits[:limit]
        _expect(same, "a limit gives the beginning of the whole list, with the same scores", text)


def _allowed_is_only_a_mask(make: Callable[[], Ranker], text: str) -> None:
    catalog = _catalog(make())
    hits = _search(catalog, text)
    for allowed in (set(), {_TOOLS[0].name, _TOOLS[3].name}, {_TOOLS[-1].name}):
        rest = [hit for hit in hits if hit.name in allowed]
        for limit in (None, 1):
            same = _search(catalog, text, allowed=allowed, limit=limit) == rest[:limit]
            _expect(same, "`allowed` hides tools and changes no score of the others", text)


def _syncing_again_changes_nothing(make: Callable[[], Ranker], text: str) -> None:
    index = ToolIndex(make())
    hits = _search(index.sync(_TOOLS), text)
    copies = [replace(tool) for tool in _TOOLS]
    same = _search(index.sync(list(_TOOLS)), text) == hits == _search(index.sync(copies), text)
    _expect(same, "syncing the same tools again changes no hits", text)


def _a_removed_tool_leaves_no_trace(make: Callable[[], Ranker], text: str) -> None:
    index = ToolIndex(make())
    _search(index.sync(_TOOLS), text)
    rest = _TOOLS[1:4] + _TOOLS[5:]
    same = _alike(_search(index.sync(rest), text), _search(_catalog(make(), rest), text))
    _expect(same, "a removed tool leaves no trace in the scores of the others", text)


def _a_changed_tool_is_ranked_as_it_is_now(make: Callable[[], Ranker], text: str) -> None:
    index = ToolIndex(make())
    _search(index.sync(_TOOLS), text)
    # The two swap their descriptions, so whatever hits the one has to hit the other now.
    first, second, *rest = _TOOLS
    changed = (
        replace(first, description=second.description),
        replace(second, description=first.description),
        *rest,
    )
    same = _alike(_search(index.sync(changed), text), _search(_catalog(make(), changed), text))
    _expect(same, "a tool with a new description is ranked by it", text)


def _the_async_path_gives_the_same(make: Callable[[], Ranker], text: str) -> None:
    query = Query(((text, 1.0), ("weather", 0.3)))
    with ThreadPoolExecutor(1) as thread:  # an event loop may be running in this one
        awaited = thread.submit(asyncio.run, _catalog(make()).asearch(query)).result()
    _expect(_alike(awaited, _catalog(make()).search(query)), "the async path gives the same hits", text)


def _twins_come_in_the_order_of_registration(make: Callable[[], Ranker]) -> None:
    # Names cannot be equal, so a ranker may tell twins apart by them; by nothing else.
    twins = (ToolDocument("parcel_send", "Send a parcel."), ToolDocument("send_parcel", "Send a parcel."))
    text, orders = "send a parcel", []
    for registered in (twins, twins[::-1]):
        hits = _search(_catalog(make(), (*registered, *_TOOLS)), text)
        orders.append([hit.name for hit in hits if hit.name in {twin.name for twin in twins}])
    one, other = orders
    tied = one == other[::-1] == [twin.name for twin in twins]
    _expect(tied or one == other, "tools of equal text come in the order of registration", text)


def _catalog(ranker: Ranker, tools: Sequence[ToolDocument] = _TOOLS) -> Catalog:
    return ToolIndex(ranker).sync(tools)


def _search(catalog: Catalog, text: str, **options: Any) -> list[Hit]:
    return catalog.search(Query.of(text), **options)


def _alike(found: Sequence[Hit], expected: Sequence[Hit]) -> bool:
    # What grew step by step may round otherwise than what was made at once.
    return [hit.name for hit in found] == [hit.name for hit in expected] and all(
        _close(one.score, other.score) for one, other in zip(found, expected, strict=True)
    )


def _close(one: float, other: float) -> bool:
    return isclose(one, other, rel_tol=1e-5, abs_tol=1e-5)


def _expect(kept: bool, promise: str, text: str, cause: Exception | None = None) -> None:
    if not kept:
        msg = f"the ranker breaks a promise: {promise} (request {text[:60]!r})"
        raise AssertionError(msg) from cause
