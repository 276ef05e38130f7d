"""What tests of an agent with tool selection need: a scripted chat model, and a record of each call.

Nothing here calls a provider. `ScriptedChatModel` is a real LangChain chat model (bound tools are
converted as a provider's client does it, streaming and async work), only its answers are written down
in advance or computed from what it was sent.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from langchain_core.callbacks import BaseCallbackHandler, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr


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
