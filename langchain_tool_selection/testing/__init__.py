"""What tests need: scripted models, a record of each call, and the contracts of rankers and exposures.

Nothing here calls a provider. `ScriptedChatModel` is a real LangChain chat model (bound tools are
converted as a provider's client does it, streaming and async work), only its answers are written down
in advance or computed from what it was sent. `scripted_client` makes one of a provider's own client, and
keeps the requests that it would have sent; `prefix_report` says how much of each the provider could have
read from its prompt cache.
"""

from __future__ import annotations

import copy
import itertools
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.tool import tool_call
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr

from langchain_tool_selection._exposure.registry import ExposureSetting
from langchain_tool_selection._tools.shapes import name_of
from langchain_tool_selection.testing import _exposure_contract
from langchain_tool_selection.testing._answers import chunks_of, in_clients_form
from langchain_tool_selection.testing._prefix import PrefixReport, PrefixStep, TokenCounter, prefix_report
from langchain_tool_selection.testing._ranker_contract import check_ranker

__all__ = [
    "Answer", "CallRecorder", "ModelCall", "PayloadLog", "PrefixReport", "PrefixStep", "Script",
    "ScriptedChatModel", "TokenCounter", "call", "calls", "check_exposure", "check_ranker", "prefix_report",
    "schema_name", "schema_of", "scripted_client",
]  # fmt: skip


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


class _Scripted:
    """Answers from a script where a client would send a request, whole or in chunks."""

    # LangChain's own, which call what is below, and not the client's.
    _agenerate: Any = BaseChatModel._agenerate
    _astream: Any = BaseChatModel._astream

    def _answer(self, messages: list[BaseMessage], stop: Any, run: Any, bound: dict[str, Any]) -> AIMessage:
        raise NotImplementedError

    # Signatures are whole, because LangChain passes `run_manager` to those who name it.
    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        answer = self._answer(messages, stop, run_manager, kwargs)
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        kwargs.pop("stream_usage", None)  # goes to the client and not into the request
        answer = self._answer(messages, stop, run_manager, {**kwargs, "stream": True})
        for chunk in chunks_of(answer):
            yield ChatGenerationChunk(message=chunk)


class ScriptedChatModel(_Scripted, BaseChatModel):
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
        return self.bind(tools=[*map(schema_of, tools)], tool_choice=tool_choice, **kwargs)

    def _answer(self, messages: list[BaseMessage], stop: Any, run: Any, bound: dict[str, Any]) -> AIMessage:
        sent = _model_call(messages, bound)
        with self._lock:
            self._calls.append(sent)
            turn = len(self._calls) - 1
        return _answer_to(sent, self.script, turn)


def _model_call(messages: Sequence[BaseMessage], bound: dict[str, Any]) -> ModelCall:
    return ModelCall(tuple(messages), tuple(bound.get("tools") or ()), bound.get("tool_choice"))


def _answer_to(sent: ModelCall, script: Script, turn: int) -> AIMessage:
    if callable(script):
        answer = script(sent)
    elif turn < len(script):
        answer = script[turn]
    else:
        last = script[-1] if script else ""
        answer = last if isinstance(last, str) else last.text
    return AIMessage(answer) if isinstance(answer, str) else answer.model_copy(deep=True)


# -- a provider's own client ---------------------------------------------------------------------------


class PayloadLog:
    """The requests that scripted clients would have sent. Several may write to one log, from any thread.

    Attributes:
        payloads: The body of each request, in the order of the calls.
        calls: The same calls in LangChain's terms.
    """

    def __init__(self) -> None:
        self.payloads: list[dict[str, Any]] = []
        self.calls: list[ModelCall] = []
        self._thread_ids: list[str | None] = []
        self._lock = threading.Lock()

    def add(self, payload: dict[str, Any], call: ModelCall, thread_id: str | None = None) -> int:
        """Append one request and return its index; `thread_id` is that of the run's config, if it has one."""
        with self._lock:
            # Payloads share lists with messages and tools, and those live on.
            self.payloads.append(copy.deepcopy(payload))
            self.calls.append(call)
            self._thread_ids.append(thread_id)
            return len(self.payloads) - 1

    def of_thread(self, thread_id: str) -> list[dict[str, Any]]:
        """Return the payloads of one conversation, in order."""
        with self._lock:
            return [p for p, id_ in zip(self.payloads, self._thread_ids, strict=True) if id_ == thread_id]

    def prefix_report(
        self, thread_id: str | None = None, *, count_tokens: TokenCounter | None = None
    ) -> PrefixReport:
        """Return the `prefix_report` of one conversation; of the whole log, if no thread is named."""
        payloads = self.payloads if thread_id is None else self.of_thread(thread_id)
        return prefix_report(payloads, count_tokens)


Client = TypeVar("Client", bound=BaseChatModel)


def scripted_client(client: Client, script: Script, log: PayloadLog) -> Client:
    """Return a provider's client that answers from a script and sends nothing.

    It is still of the client's class, with its settings, profile and way of binding tools, so middleware
    that looks at the model finds what it would in production. Answers come in the form the client gives
    them, so that the next request is the one that would really be sent.

    Args:
        client: A chat model that builds its request in `_get_request_payload`, as `ChatAnthropic` and
            `ChatOpenAI` do, with their default `output_version`. It is not changed. Any key will do.
        script: As in `ScriptedChatModel`.
        log: Takes the request of each call.

    Raises:
        TypeError: the client builds its requests in another way.

    Example:
        >>> log = PayloadLog()
        >>> model = scripted_client(ChatOpenAI(model="gpt-5.5", api_key="none"), ["Done."], log)
        >>> create_agent(model, tools).invoke({"messages": [{"role": "user", "content": "find x"}]})
        >>> report = log.prefix_report()
        >>> assert report.intact, report
    """
    cls = type(client)
    if not hasattr(cls, "_get_request_payload"):
        raise TypeError(
            f"{cls.__name__} has no _get_request_payload to read a request from; "
            "pass a client such as ChatAnthropic or ChatOpenAI, or use ScriptedChatModel"
        )
    # The name stays, because LangChain takes the provider from it where a class does not say.
    body = {"__module__": cls.__module__, "_answer": _answering(script, log)}
    scripted = types.new_class(cls.__name__, (_Scripted, cls), exec_body=lambda names: names.update(body))
    copied = client.model_copy()
    object.__setattr__(copied, "__class__", scripted)
    return copied


def _answering(script: Script, log: PayloadLog) -> Callable[..., AIMessage]:
    """Return the `_answer` of one client, which keeps how far the script is."""
    turns, lock = itertools.count(), threading.Lock()

    def answer(client: Any, messages: list[BaseMessage], stop: Any, run: Any, bound: Any) -> AIMessage:
        payload = client._get_request_payload(messages, stop=stop, **bound)
        sent = _model_call(messages, bound)
        metadata = getattr(run, "metadata", None) or {}
        with lock:  # the log has the order of the script
            turn = next(turns)
            # Ids are made of the place in the log: another client may go on with the same conversation.
            number = log.add(payload, sent, metadata.get("thread_id"))
        return in_clients_form(_answer_to(sent, script, turn), payload, number)

    return answer


# -- contracts -----------------------------------------------------------------------------------------


def check_exposure(
    make: Callable[[], ExposureSetting], client: Callable[[], BaseChatModel] | None = None
) -> None:
    """Check that an exposure keeps what the middleware builds on; for the tests of an exposure of your own.

    It plays a conversation through an agent, twice: two searches, a change of topic, a restart from stored
    state, a tool that is gone. The agent runs in the calling thread; nothing calls a provider.

    Args:
        make: Returns what `exposure=` is given: a new exposure each time, always with the same settings, or
            the name of one of ours.
        client: Makes the client whose requests are looked at, as `scripted_client` takes it. `None` takes a
            model that binds tools as Chat Completions does.

    Raises:
        AssertionError: a promise is broken; the message says which, and by what call.

    Example:
        >>> def test_my_exposure_keeps_the_contract():
        ...     check_exposure(lambda: MyExposure())
    """

    def model(script: Script) -> tuple[BaseChatModel, _exposure_contract.Payloads]:
        if client is None:
            scripted = ScriptedChatModel(script=script)
            return scripted, lambda: [*map(_exposure_contract.payload_of, scripted.calls)]
        log = PayloadLog()
        return scripted_client(client(), script, log), lambda: log.payloads

    _exposure_contract.check(make, model)


# -- records and answers -------------------------------------------------------------------------------


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
        self.calls.append(_model_call(messages[0], kwargs.get("invocation_params") or {}))


def call(name: str, /, **arguments: Any) -> AIMessage:
    """Return a model's answer that calls one tool."""
    return calls((name, arguments))


def calls(*wanted: tuple[str, dict[str, Any]]) -> AIMessage:
    """Return a model's answer that calls several tools at once."""
    tool_calls = [tool_call(name=name, args=args, id=f"call_{next(_ids)}") for name, args in wanted]
    return AIMessage(content="", tool_calls=tool_calls)


def schema_of(tool: Any) -> dict[str, Any]:
    """Return a tool as it is bound: converted to an OpenAI function, or a provider's dict as it is."""
    is_providers = isinstance(tool, dict) and (
        tool.keys().isdisjoint(("function", "name")) or tool.get("type", "function") != "function"
    )
    return tool if is_providers else convert_to_openai_tool(tool)


def schema_name(schema: dict[str, Any]) -> str:
    """Return the name of a bound tool; a provider's nameless tool by its type."""
    return str(name_of(schema) or schema.get("type") or next(iter(schema)))


_ids = itertools.count(1)
