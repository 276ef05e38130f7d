"""What a provider does with tools that change, measured with a key of your own.

Whether a changed tools array costs the cached prompt, and whether tools can be added in mid-conversation, is
documented by few providers, and a gateway in between may do otherwise. `verify_model` holds a short
conversation through the real client and reads from the provider's own usage what each change did:

1. Two calls begin a conversation that is long enough to be cached. The second says how much is read from the
   cache while nothing changes. All other calls are compared with it.
2. Each other call goes on from there with one change: a new client, a tool added to the conversation, a tool
   more or less in the array.

A conversation begins with words that no other one has, so that nothing is found that an earlier run left in
the cache. A cache that works at its best effort may miss by chance: run it twice before you rely on a "lost".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from glob import escape
from pathlib import Path
from time import sleep
from typing import Any, Literal, TypeAlias
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langchain_tool_selection._exposure.models import ModelFacts, ModelTraits
from langchain_tool_selection._exposure.transports.base import Place, Transport, is_instance_of
from langchain_tool_selection._exposure.transports.registry import TRANSPORTS
from langchain_tool_selection._ground.models import host_of
from langchain_tool_selection._ground.settings import check_count
from langchain_tool_selection._ranking.llm import chat_model_of
from langchain_tool_selection._run.usage import CacheUsage
from langchain_tool_selection.cost.prices import prices_of
from langchain_tool_selection.evals._files import (
    FileError,
    field_of,
    kind_of,
    parse_json,
    read_text,
    shortened,
)
from langchain_tool_selection.evals.catalogs import Progress

ModelSource: TypeAlias = str | BaseChatModel | Callable[[], BaseChatModel]
"""A name as `init_chat_model` takes it, a chat model, or a function that makes one."""

Result = Literal["kept", "partly", "lost", "unknown", "ignored", "refused", "not sent", "failed"]

PROMPT_TOKENS = 6_000
"""What a prompt has at least. Providers cache none of fewer than 1,024 tokens, and some none below 4,096."""

_KEPT, _LOST = 0.9, 0.1
"""Shares of what is read while nothing changes. Providers round what they read to blocks of tokens."""

_TRIES = 3
"""Calls without a change until one is read from the cache: a provider may take seconds to have it there."""

_OTHER_TROUBLE = frozenset({401, 403, 408, 409, 429})
"""Status codes from 400 to 499 that say nothing about what was sent."""

_SEARCH = "find_tools"
_ADDED = "echo_word"
_FIXED_CALLS = 5  # the first one, the unchanged one, a restart, and one for each changed array


@dataclass(frozen=True)
class VerifyCheck:
    """What a provider did with one change.

    Attributes:
        name: "unchanged", "restart", "array: added", "array: removed", or "wire: " with a wire's name.
        result: "kept" if what was cached was read, "lost" if not, "partly" in between, "unknown" where the
            provider reports nothing that was read. "refused" if the provider answered with an error,
            "ignored" if it took a wire and the model did not call the tool that was added, "not sent" if the
            client would not send it, and "failed" for other trouble, such as a rate limit.
        input_tokens: The tokens of the prompt; 0 without an answer.
        cache_read: Those that were read from the cache.
        cache_write: Those that were written to it.
        message: What the provider or the client said of an error, in one line.
    """

    name: str
    result: Result
    input_tokens: int = 0
    cache_read: int = 0
    cache_write: int = 0
    message: str = ""


@dataclass(frozen=True)
class VerifyReport:
    """What a provider did with a model's tools.

    Attributes:
        model: The model, with its provider.
        client: The class of its client.
        host: Where the requests went; empty where the client leaves that to its provider's package.
        as_of: The day, as `YYYY-MM-DD`.
        thought: Whether an answer ahead of the changes held the model's thinking.
        checks: One for each change, in the order of the calls.
    """

    model: str
    client: str
    host: str
    as_of: str
    thought: bool
    checks: tuple[VerifyCheck, ...]

    @property
    def facts(self) -> ModelFacts:
        """What this says about the model, for `ByModel`; `None` where it says nothing."""
        return ModelFacts(wire=self._wire, caches=self._caches, checks_prefix=self._checks_prefix)

    @property
    def _wire(self) -> str | None:
        results = {check.name: check.result for check in self.checks if check.name.startswith("wire: ")}
        works = ("kept",) if self._result("unchanged") == "kept" else ("kept", "unknown")
        for transport in TRANSPORTS:
            if results.get(f"wire: {transport.name}") in works:
                return transport.name
        return "none" if results and "failed" not in results.values() else None

    @property
    def _caches(self) -> bool | None:
        added = self._result("array: added")
        if self._result("unchanged") != "kept" or added == "failed":
            return None
        return added != "kept"

    @property
    def _checks_prefix(self) -> bool | None:
        arrays = [check.result for check in self.checks if check.name.startswith("array: ")]
        if not self.thought or "failed" in arrays:
            return None
        return "refused" in arrays

    def _result(self, name: str) -> Result | None:
        return next((check.result for check in self.checks if check.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values, as `load_model_facts` reads them."""
        facts = {key: getattr(self.facts, key) for key in ("wire", "caches", "checks_prefix")}
        return {**vars(self), "checks": [vars(check) for check in self.checks], "facts": facts}

    def save(self, path: str | Path) -> None:
        """Write the report to a file, in the place of one that is there."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=2) + "\n", "utf-8")

    @property
    def table(self) -> list[tuple[str, ...]]:
        """For people: the headings, then a row of text for each check."""
        rows: list[tuple[str, ...]] = [("what changed", "prefix", "tokens", "from cache", "what was said")]
        for check in self.checks:
            counts = (
                (f"{check.input_tokens:,}", f"{check.cache_read:,}") if check.input_tokens else ("-", "-")
            )
            rows.append((check.name, check.result, *counts, check.message))
        return rows


@dataclass(frozen=True)
class VerifyPlan:
    """What `verify_model` would send.

    Attributes:
        model: The model, with its provider.
        host: Where the requests would go; empty where the client leaves that to its provider's package.
        wires: The forms of adding tools that would be tried.
        calls: Model calls, without repeated ones where the cache takes its time.
        input_tokens: About how many tokens their prompts have, all together.
        usd: About what they cost at most, if all of it is written to the cache; `None` without a known price.
    """

    model: str
    host: str
    wires: tuple[str, ...]
    calls: int
    input_tokens: int
    usd: float | None

    @classmethod
    def of(cls, model: ModelSource, *, prompt_tokens: int = PROMPT_TOKENS) -> VerifyPlan:
        """Return the plan for a model. Nothing is sent.

        Args:
            model: The model, as in `verify_model`.
            prompt_tokens: Likewise.

        Raises:
            Exception: whatever making the model raises.
        """
        client = _clients(model)()
        name, wires = ModelTraits.of(client).full_name, _wires(client)
        # A wire that lives in searches needs a conversation of its own.
        calls = _FIXED_CALLS + sum(1 + wire.lives_in_searches for wire in wires)
        tokens, prices = calls * prompt_tokens, prices_of(name)
        price = prices.at(prompt_tokens).input if prices else None
        usd = None if prices is None or price is None else tokens * prices.write * price / 1e6
        return cls(name, host_of(client), tuple(wire.name for wire in wires), calls, tokens, usd)

    def __str__(self) -> str:
        """For people: what is sent, and what it costs."""
        to = f" at {self.host}" if self.host else ""
        cost = "price unknown" if self.usd is None else f"at most about {100 * self.usd:,.1f} cents"
        wires = ", ".join(self.wires) or "none that this client can send"
        return (
            f"{self.calls} calls of {self.model}{to}, about {self.input_tokens:,} input tokens ({cost}) and "
            f"short answers. Wires: {wires}"
        )


def verify_model(
    model: ModelSource,
    *,
    prompt_tokens: int = PROMPT_TOKENS,
    pause: float = 2.0,
    progress: Progress | None = None,
) -> VerifyReport:
    """Ask a provider what it does with tools that change. It charges for that: see `VerifyPlan`.

    Args:
        model: The model. A name or a function gives a new client for the restart, a chat model a copy.
        prompt_tokens: About how long the prompts are. Below the provider's minimum nothing is cached.
        pause: Seconds to wait before a call is repeated that was not read from the cache.
        progress: Is called with the number of calls that were made.

    Raises:
        ValueError: the conversation cannot begin: the first calls failed.
        Exception: whatever making the model raises.

    Example:
        >>> report = verify_model("openai:gpt-5.5")  # doctest: +SKIP
        >>> ToolSelectionMiddleware(exposure=ByModel({report.model: report.facts}))  # doctest: +SKIP
    """
    check_count("prompt_tokens", prompt_tokens, at_least=1)
    clients = _clients(model)
    client = clients()
    traits = ModelTraits.of(client)
    probe = _Probe(client, prompt_tokens, pause, progress or (lambda _: None))
    checks = tuple(probe.checks(clients))
    return VerifyReport(
        model=traits.full_name or traits.client,
        client=traits.client,
        host=host_of(client),
        as_of=datetime.now(UTC).date().isoformat(),
        thought=probe.thought,
        checks=checks,
    )


def load_model_facts(*paths: str | Path) -> dict[str, ModelFacts]:
    """Return what reports of `tool-selection verify` say about their models, as `ByModel` takes it.

    Args:
        paths: The files that `--out` or `VerifyReport.save` wrote. A later one about the same model counts.

    Raises:
        FileError: a file cannot be read, or is no such report.

    Example:
        >>> ByModel(load_model_facts("report.json"))  # doctest: +SKIP
    """
    return dict(_facts_in(str(path)) for path in paths)


def _facts_in(source: str) -> tuple[str, ModelFacts]:
    report = parse_json(source, read_text(source))
    if not isinstance(report, dict):
        raise FileError(source, f"a report of `tool-selection verify` is an object, found {kind_of(report)}")
    model = field_of(source, report, "model", str, "a string")
    facts = field_of(source, report, "facts", dict, "an object")
    if not model or facts is None:
        raise FileError(source, "no report of `tool-selection verify`: it has no 'model' or no 'facts'")
    kinds = {"wire": (str, "a string"), "caches": (bool, "a boolean"), "checks_prefix": (bool, "a boolean")}
    known = {key: field_of(source, facts, key, *kind) for key, kind in kinds.items()}
    try:
        return escape(model), ModelFacts(**known)
    except ValueError as error:
        raise FileError(source, str(error)) from error


def _clients(model: ModelSource) -> Callable[[], BaseChatModel]:
    """Return what makes a client of the model, a new one each time."""
    if isinstance(model, BaseChatModel):
        return model.model_copy
    if callable(model):
        return model
    return lambda: chat_model_of(model)


def _wires(client: Any) -> list[Transport]:
    return [transport for transport in TRANSPORTS if transport.can_send(client)]


# -- the calls -------------------------------------------------------------------------------------------


class _NoAnswerError(Exception):
    """A call that has no answer: what came of it instead, and what was said."""

    def __init__(self, result: Result, message: str) -> None:
        super().__init__(message)
        self.result: Result = result


class _Probe:
    """Makes the calls, and compares each with the one in which nothing changed."""

    def __init__(self, client: BaseChatModel, prompt_tokens: int, pause: float, progress: Progress) -> None:
        self._client = client
        self._prompt_tokens = prompt_tokens
        self._pause = pause
        self._progress = progress
        self._calls = 0
        self._unchanged = VerifyCheck("unchanged", "unknown")
        self.thought = False

    def checks(self, clients: Callable[[], BaseChatModel]) -> Iterator[VerifyCheck]:
        """Yield the checks as they are made.

        Args:
            clients: Makes a new client.
        """
        begun = self._begin()
        yield self._unchanged
        again = [*begun, HumanMessage("Reply with the single word: three.")]
        yield self._check("restart", _reloaded(again), _TOOLS, client=clients())
        yield from (self._wire(wire, begun) for wire in _wires(self._client))
        yield self._check("array: added", again, [*_TOOLS, _ECHO])
        yield self._check("array: removed", again, _TOOLS[:-1])

    def _begin(self) -> list[AnyMessage]:
        """Return the conversation that all changes go on from, after the first call and an unchanged one."""
        messages = self._opening("Reply with the single word: one.")
        try:
            messages = _answered(messages, self._call(messages, _TOOLS))
            messages.append(HumanMessage("Reply with the single word: two."))
            for again in range(_TRIES):
                sleep(self._pause if again else 0)
                answer = self._call(messages, _TOOLS)
                usage = CacheUsage.of([answer])
                if usage.cache_read:
                    break
        except _NoAnswerError as error:
            raise ValueError(f"the conversation could not begin: {error}") from error
        result: Result = "kept" if usage.cache_read else "unknown"
        self._unchanged = _with_usage(VerifyCheck("unchanged", result), usage)
        messages = _answered(messages, answer)
        self.thought = any(map(_holds_thought, messages))
        return messages

    def _wire(self, wire: Transport, begun: Sequence[AnyMessage]) -> VerifyCheck:
        if wire.lives_in_searches:
            return self._wire_in_searches(wire)
        asked = [*begun, HumanMessage(f"Call the tool {_ADDED} with the word ok.")]
        return self._addition(wire, asked, _TOOLS)

    def _wire_in_searches(self, wire: Transport) -> VerifyCheck:
        """Return the check of a wire that needs a search, in a conversation of its own."""
        request = (
            f"Call the tool {_SEARCH} with the query echo. Then call the tool {_ADDED} with the word ok."
        )
        tools, messages = [*wire.deferred([_ECHO]), *_TOOLS], self._opening(request)
        try:
            answer = self._call(messages, tools)
        except _NoAnswerError as error:
            return VerifyCheck(f"wire: {wire.name}", error.result, message=str(error))
        messages = _answered(messages, answer)
        if not answer.tool_calls:
            messages.append(HumanMessage(f"Call the tool {_ADDED} with the word ok."))
        return self._addition(wire, messages, tools)

    def _addition(
        self, wire: Transport, messages: Sequence[AnyMessage], tools: Sequence[BaseTool]
    ) -> VerifyCheck:
        last = len(messages) - 1
        bound: Any = self._client.bind_tools([_ECHO])
        written = wire.write(messages, [Place(last, last, [_ECHO], bound.kwargs["tools"])], _SEARCH)
        return self._check(f"wire: {wire.name}", written, tools, expects_call=True)

    def _check(
        self,
        name: str,
        messages: Sequence[AnyMessage],
        tools: Sequence[BaseTool],
        *,
        client: BaseChatModel | None = None,
        expects_call: bool = False,
    ) -> VerifyCheck:
        try:
            answer = self._call(messages, tools, client)
        except _NoAnswerError as error:
            return VerifyCheck(name, error.result, message=str(error))
        usage = CacheUsage.of([answer])
        check = _with_usage(VerifyCheck(name, self._compared(usage)), usage)
        if expects_call and not any(call["name"] == _ADDED for call in answer.tool_calls):
            said = "the model did not call the tool that was added: it may never have reached it"
            return replace(check, result="ignored", message=said)
        return check

    def _compared(self, usage: CacheUsage) -> Result:
        expected = self._unchanged.cache_read
        if not expected or not usage.calls:
            return "unknown"
        share = usage.cache_read / expected
        return "kept" if share >= _KEPT else "lost" if share < _LOST else "partly"

    def _opening(self, request: str) -> list[AnyMessage]:
        """Return the first messages of a conversation that no other one begins like."""
        # The definitions of the tools are short, so nearly all of the prompt stands behind them.
        notes = _filler(self._prompt_tokens // 2)
        system = SystemMessage(
            f"Conversation {uuid4().hex}. Answer briefly. These notes are not needed.\n{notes}"
        )
        return [system, HumanMessage(f"{notes}\n{request}")]

    def _call(
        self, messages: Sequence[AnyMessage], tools: Sequence[BaseTool], client: BaseChatModel | None = None
    ) -> AIMessage:
        model = client or self._client
        self._calls += 1
        try:
            answer = model.bind_tools(tools).invoke(list(messages), **_cache_mark(model))
        except Exception as error:
            raise _NoAnswerError(_result_of(error), _said(error)) from error
        finally:
            self._progress(self._calls)
        if not isinstance(answer, AIMessage):
            raise _NoAnswerError("failed", f"the answer is a {type(answer).__name__}")
        return answer


def _cache_mark(model: Any) -> dict[str, Any]:
    """Return what asks for the prompt to be cached, where that has to be asked for."""
    is_claude = is_instance_of(model, "langchain_anthropic.chat_models", "ChatAnthropic")
    return {"cache_control": {"type": "ephemeral"}} if is_claude else {}


def _with_usage(check: VerifyCheck, usage: CacheUsage) -> VerifyCheck:
    counts = {key: count for key, count in vars(usage).items() if key != "calls"}
    return replace(check, **counts)


def _answered(messages: Sequence[AnyMessage], answer: AIMessage) -> list[AnyMessage]:
    """Return the conversation with an answer, and a result for each tool that it calls."""
    results = [ToolMessage("Done.", tool_call_id=call["id"], name=call["name"]) for call in answer.tool_calls]
    return [*messages, answer, *results]


def _reloaded(messages: Sequence[AnyMessage]) -> list[Any]:
    """Return the messages as a checkpointer gives them back to a program that was started anew."""
    serializer = JsonPlusSerializer()
    return list(serializer.loads_typed(serializer.dumps_typed(list(messages))))


def _holds_thought(message: AnyMessage) -> bool:
    blocks = message.content if isinstance(message, AIMessage) and isinstance(message.content, list) else ()
    kinds = {block.get("type") for block in blocks if isinstance(block, Mapping)}
    return bool(kinds & {"thinking", "redacted_thinking", "reasoning"})


# -- what is sent ----------------------------------------------------------------------------------------


def _tool(name: str, description: str, argument: str) -> StructuredTool:
    schema = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return StructuredTool(name=name, description=description, args_schema=schema, func=lambda **_: "Done.")


_TOOLS: list[BaseTool] = [
    _tool(_SEARCH, "Find more tools.", "query"),
    _tool("count_letters", "Count the letters of a word.", "word"),
    _tool("spell_word", "Spell a word letter by letter.", "word"),
]
_ECHO = _tool(_ADDED, "Say a word back.", "word")


def _filler(tokens: int) -> str:
    """Return text of at least so many tokens, at four characters each."""
    line = "Note {:05d}: the parcel from the harbour was weighed, listed and put on the shelf.\n"
    return "".join(line.format(number) for number in range(4 * tokens // len(line) + 1))


# -- errors ----------------------------------------------------------------------------------------------


def _result_of(error: BaseException) -> Result:
    status = _status_of(error)
    if status is None:
        # The client looks at what it is given before it sends anything.
        return "not sent" if isinstance(error, ValueError | TypeError | NotImplementedError) else "failed"
    return "refused" if 400 <= status < 500 and status not in _OTHER_TROUBLE else "failed"


def _status_of(error: BaseException | None) -> int | None:
    """Return the HTTP status that an error is about: its own, or that of what caused it."""
    while error is not None:
        response = getattr(error, "response", None)
        for holder, attribute in ((error, "status_code"), (error, "code"), (response, "status_code")):
            if isinstance(status := getattr(holder, attribute, None), int):
                return status
        if isinstance(response, Mapping):  # botocore's
            status = (response.get("ResponseMetadata") or {}).get("HTTPStatusCode")
            if isinstance(status, int):
                return status
        error = error.__cause__ or error.__context__
    return None


def _said(error: BaseException) -> str:
    """Return what a provider says of an error, in one line of at most 200 characters."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    message = inner.get("message") if isinstance(inner, Mapping) else None
    status = _status_of(error)
    if not isinstance(message, str) or not message.strip():
        return shortened(error)
    return " ".join(f"{status or type(error).__name__}: {message}".split())[:200]
