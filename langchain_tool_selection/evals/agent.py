"""Labelled requests played with a model: what it calls under each way of showing tools, and what that costs.

`evaluate` says whether a tool is among those shown, and needs no model for it. Whether a model then calls the
tool, and how often it has to search first, only the model can say. So each case is a conversation with
`create_agent`, once for each exposure, and once with all tools sent and no selection, to compare with.

No tool runs unless that is asked for. One that is called says that it succeeded, so that the model goes on.
"""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import wraps
from importlib.resources import files
from itertools import chain, repeat, takewhile
from statistics import fmean
from time import perf_counter
from typing import Any, Literal, TypeAlias, get_args

from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables.config import ContextThreadPoolExecutor
from langchain_core.tools import StructuredTool
from langgraph.errors import GraphRecursionError

from langchain_tool_selection._exposure.models import ModelTraits
from langchain_tool_selection._exposure.registry import ExposureName
from langchain_tool_selection._ground.messages import is_from_user, text_of, tool_calls
from langchain_tool_selection._ground.settings import check_choice, check_count
from langchain_tool_selection._ranking.llm import chat_model_of
from langchain_tool_selection._run.usage import CacheUsage
from langchain_tool_selection._tools.documents import ToolDocument
from langchain_tool_selection.cost.prices import Prices, prices_of
from langchain_tool_selection.evals._files import shortened
from langchain_tool_selection.evals._results import json_values, percentiles
from langchain_tool_selection.evals.cases import Case, Cases, read_cases, role_of
from langchain_tool_selection.evals.catalogs import Progress, Tools, read_tools, runnable_tools
from langchain_tool_selection.middleware import ToolSelectionMiddleware

AgentExposure: TypeAlias = Literal["none", "auto"] | ExposureName
"""How tools are shown: as `ToolSelectionMiddleware` has it, or all of them without it ("none")."""

EXPOSURES: tuple[AgentExposure, ...] = ("none", "auto", *get_args(ExposureName))

_TABLE = tomllib.loads(files(__package__).joinpath("agent.toml").read_text("utf-8"))

SYSTEM_PROMPT: str = _TABLE["system_prompt"]
"""What an agent is told, unless it is told something else."""

REHEARSED: str = _TABLE["rehearsed"]
"""What a tool answers that does not run."""

_SHOWN = "tool_selection"
"""The event in which the middleware says how it showed the tools of a call."""


@dataclass(frozen=True, kw_only=True)
class _Counts:
    """What is counted of a conversation, or summed up over several.

    Attributes:
        shown_as: How tools were shown: what "auto" came to, and "everything" where nothing was hidden;
            several ways are separated by commas.
        wrong: How many calls were neither of relevant tools nor of alternatives.
        discoveries: How often the model searched for tools.
        model_calls: All there were, also those that failed, and those of a ranker that asks a model.
        usage: Input tokens, as far as the provider reported them.
        output_tokens: Likewise.
    """

    shown_as: str
    wrong: int
    discoveries: int
    model_calls: int
    usage: CacheUsage
    output_tokens: int

    @property
    def tokens(self) -> dict[str, int | None]:
        """The tokens by kind: `None` where no model call reported any."""
        counts = {**vars(self.usage), "output_tokens": self.output_tokens}
        calls = counts.pop("calls")
        return {kind: count if calls else None for kind, count in counts.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON values; what is unknown is `None`."""
        counted = {key: value for key, value in vars(self).items() if key != "usage"}
        return {**json_values(counted), **self.tokens}


_ADDED_UP = ("wrong", "discoveries", "model_calls", "output_tokens")


@dataclass(frozen=True, kw_only=True)
class AgentRun(_Counts):
    """One case, played under one exposure.

    Attributes:
        case: The number of the case, from 1.
        query: Its newest message.
        exposure: How tools were to be shown.
        relevant: The tools that the case takes.
        called: The tools that the model called, in order, without its searches.
        found: The share of the relevant tools that were called, they or an alternative.
        first_right: Whether the first one called was relevant, or an alternative.
        seconds: From the request to the answer.
        error: What ended it early; empty if nothing did.
    """

    case: int
    query: str
    exposure: AgentExposure
    relevant: tuple[str, ...]
    called: tuple[str, ...]
    found: float
    first_right: bool
    seconds: float
    error: str = ""

    @property
    def is_right(self) -> bool:
        """Whether all relevant tools were called, and nothing went wrong."""
        return self.found == 1 and not self.error


@dataclass(frozen=True, kw_only=True)
class AgentMeasures(_Counts):
    """What the runs under one exposure come to. Counts and costs are sums over all cases.

    Attributes:
        accuracy: The share of cases in which all relevant tools were called. One that ended with an error
            has not called them.
        recall: The share of a case's relevant tools that were called, averaged over cases.
        first_right: The share of cases whose first call was of a relevant tool.
        cost: What the input costs, in uncached tokens; `None` where prices or tokens are unknown.
        usd: The same in US dollars; likewise.
        seconds: Median and 99th percentile of a case as "p50" and "p99"; empty if all ended with an error.
        errors: Cases that ended with one.
    """

    accuracy: float
    recall: float
    first_right: float
    cost: float | None
    usd: float | None
    seconds: Mapping[str, float]
    errors: int

    @classmethod
    def of(cls, runs: Sequence[AgentRun], prices: Prices | None) -> AgentMeasures:
        """Add up the runs of one exposure."""
        usage = sum((run.usage for run in runs), CacheUsage())
        cost = usd = None
        if prices and usage.calls:
            cost = _cost(usage, prices)
            usd = None if prices.input is None else cost * prices.input / 1e6
        ended = [run.seconds for run in runs if not run.error]
        return cls(
            shown_as=", ".join(sorted({run.shown_as for run in runs if run.shown_as})),
            accuracy=fmean(run.is_right for run in runs),
            recall=fmean(run.found for run in runs),
            first_right=fmean(run.first_right for run in runs),
            usage=usage,
            cost=cost,
            usd=usd,
            seconds=percentiles(ended) if ended else {},
            errors=len(runs) - len(ended),
            **{count: sum(getattr(run, count) for run in runs) for count in _ADDED_UP},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the measures as JSON values; what is unknown is `None`."""
        cost = None if self.cost is None else round(self.cost)
        usd = None if self.usd is None else round(self.usd, 6)
        return {**super().to_dict(), "cost": cost, "usd": usd, "seconds": json_values(self.seconds) or None}


@dataclass(frozen=True)
class AgentReport:
    """What `run_agent` found.

    Attributes:
        tools: How many there are.
        cases: How many there are.
        model: Its name, with the provider's.
        executed: Whether tools really ran.
        prices: What the model's input costs, as published; `None` if that is not known.
        exposures: What was asked for, in that order.
        runs: One for each case and exposure: all of the first case first.
    """

    tools: int
    cases: int
    model: str
    executed: bool
    prices: Prices | None
    exposures: tuple[AgentExposure, ...]
    runs: tuple[AgentRun, ...]

    @property
    def measures(self) -> dict[AgentExposure, AgentMeasures]:
        """What the runs under each exposure come to."""
        runs = {name: [run for run in self.runs if run.exposure == name] for name in self.exposures}
        return {name: AgentMeasures.of(of_it, self.prices) for name, of_it in runs.items()}

    @property
    def not_right(self) -> list[AgentRun]:
        """The runs in which a relevant tool was not called, or that ended with an error."""
        return [run for run in self.runs if not run.is_right]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            **vars(self),
            "prices": self.prices and asdict(self.prices),
            "exposures": {name: measures.to_dict() for name, measures in self.measures.items()},
            "runs": [run.to_dict() for run in self.runs],
        }

    @property
    def summary(self) -> str:
        """For people: what was played, in one line."""
        ran = "tools were run" if self.executed else "no tool was run"
        return f"{self.tools:,} tools, {self.cases:,} cases, {self.model}; {ran}"

    @property
    def table(self) -> list[tuple[str, ...]]:
        """For people: exposures as headings, then a row of text for each measure that is known.

        Counts, tokens and costs are those of a case on average.
        """
        rows = zip(_TABLE["rows"], *map(self._column, self.measures.values()), strict=True)
        return [("a case", *self.exposures), *(cells for cells in rows if {*cells[1:]} != {"-"})]

    def _column(self, of: AgentMeasures) -> list[str]:
        whole = self.measures["none"].cost if "none" in self.exposures else None
        values: dict[str, Any] = {**vars(of), **of.tokens, **of.seconds}
        values["to_none"] = of.cost / whole if of.cost is not None and whole else None
        return [self._cell(values.get(row["of"]), row) for row in _TABLE["rows"].values()]

    def _cell(self, value: Any, row: Mapping[str, Any]) -> str:
        if value in (None, ""):
            return "-"
        return format(value / self.cases if row.get("a_case") else value, row["form"])

    def __str__(self) -> str:
        """For people: the measures, a column for each exposure."""
        lines = [f"{title:<18}" + "".join(f"{cell:>12}" for cell in cells) for title, *cells in self.table]
        return "\n".join([self.summary, "", *lines])


def run_agent(
    tools: Tools,
    cases: Cases,
    model: str | BaseChatModel,
    exposures: Iterable[AgentExposure] = ("none", "auto"),
    *,
    execute: bool = False,
    system_prompt: str = SYSTEM_PROMPT,
    max_calls: int = 12,
    concurrency: int = 1,
    progress: Progress | None = None,
    **settings: Any,
) -> AgentReport:
    """Return what a model makes of labelled requests under each way of showing tools.

    It costs what a provider charges for `len(cases) * len(exposures)` conversations.

    Args:
        tools: The catalogue: as `read_tools` takes it. Its tools do not run.
        cases: A file of cases, or cases. What users, the model and tools said before is played.
        model: A chat model, or its name as `init_chat_model` takes it.
        exposures: How tools are shown: "none" sends all of them, without selection; the others are
            `exposure` of `ToolSelectionMiddleware`.
        execute: Whether tools really run, with all that they do. `tools` must then be LangChain tools, a
            `module:attribute` that names some, or an MCP configuration.
        system_prompt: What the agent is told.
        max_calls: Model calls that a case may take; one that takes more ends with an error.
        concurrency: How many cases are played at the same time.
        progress: Is called after each case with the number of conversations that are done.
        **settings: Of `ToolSelectionMiddleware`, such as `top_k`, `ranker`, `hints` or `prune`.

    Returns:
        The report. What a provider or a tool raises ends a case and not the run: it is the `error` there.

    Raises:
        FileError: tools or cases cannot be read, or a label is no tool of the catalogue.
        TypeError, ValueError: a setting is wrong.
        Exception: whatever making the model raises.
    """
    check_count("max_calls", max_calls, at_least=1)
    check_count("concurrency", concurrency, at_least=1)
    wanted = tuple(dict.fromkeys(exposures))
    for exposure in wanted:
        check_choice("exposures", exposure, EXPOSURES)
    if not wanted:
        raise ValueError(f"exposures is empty; take some of {', '.join(EXPOSURES)}")
    if execute:
        tools = [*map(_blocking, runnable_tools(tools))]
    toolset = read_tools(tools)
    played = tools if execute else [*map(_rehearsed, toolset.documents, toolset.definitions)]
    listed = read_cases(cases, toolset.names)
    chat_model = chat_model_of(model)
    agent = {"model": chat_model, "tools": played, "system_prompt": system_prompt}
    stages = [_Stage(exposure, agent, settings) for exposure in wanted]

    def play(numbered: tuple[int, Case]) -> list[AgentRun]:
        return [stage.play(*numbered, max_calls) for stage in stages]

    runs: list[AgentRun] = []
    # One case under all exposures before the next: a provider that is slow or full for a while is so for all.
    with ContextThreadPoolExecutor(concurrency) as pool:
        for of_case in pool.map(play, [*enumerate(listed, 1)]):
            runs += of_case
            if progress:
                progress(len(runs))
    traits = ModelTraits.of(chat_model)
    return AgentReport(
        tools=len(toolset.names),
        cases=len(listed),
        model=traits.full_name if traits.name else type(chat_model).__name__,
        executed=execute,
        prices=prices_of(traits.full_name),
        exposures=wanted,
        runs=tuple(runs),
    )


# -- tools -----------------------------------------------------------------------------------------------


def _rehearsed(document: ToolDocument, definition: Mapping[str, Any]) -> StructuredTool:
    """Return a tool that is shown and found as the real one is, and answers without doing anything."""
    return StructuredTool(
        name=document.name,
        description=document.description,
        args_schema=definition["parameters"],
        func=lambda **_: REHEARSED,
        metadata={"examples": document.examples, "tags": document.tags, "domain": document.domain},
    )


def _blocking(tool: Any) -> Any:
    """Return a tool that need not be awaited: those of MCP servers can only be."""
    if not isinstance(tool, StructuredTool) or tool.func is not None or tool.coroutine is None:
        return tool
    coroutine: Callable[..., Any] = tool.coroutine

    @wraps(coroutine)  # LangChain looks at the signature for what to pass in
    def run(*arguments: Any, **named: Any) -> Any:
        return asyncio.run(coroutine(*arguments, **named))  # in the thread that LangGraph runs a tool in

    return tool.model_copy(update={"func": run})


# -- one conversation ------------------------------------------------------------------------------------


class _Stage:
    """An agent under one exposure, for all cases."""

    def __init__(self, exposure: AgentExposure, agent: dict[str, Any], settings: dict[str, Any]) -> None:
        self.exposure = exposure
        selection = [] if exposure == "none" else [ToolSelectionMiddleware(exposure=exposure, **settings)]
        self.agent: Any = create_agent(**agent, middleware=selection)
        # Names of the middleware's own tools, empty where it has none.
        own = [tool.name for middleware in selection for tool in middleware.tools]
        self.search, self.proxy = [*own, "", ""][:2]

    def play(self, number: int, case: Case, max_calls: int) -> AgentRun:
        """Play one case; whatever is raised is noted."""
        meter = _Meter()
        before = _said_before(case)
        started = perf_counter()
        messages, shown_as, error = self._ended([*before, HumanMessage(case.query)], meter, max_calls)
        seconds = perf_counter() - started
        names = [*self._called(messages[len(before) + 1 :])]
        called = [name for name in names if name != self.search]
        return AgentRun(
            case=number,
            query=case.query,
            exposure=self.exposure,
            shown_as=shown_as,
            relevant=case.relevant,
            called=tuple(called),
            found=fmean(not case.wanted(name).isdisjoint(called) for name in case.relevant),
            first_right=bool(called) and called[0] in case.serving,
            wrong=sum(name not in case.serving for name in called),
            discoveries=names.count(self.search) if self.search else 0,
            model_calls=meter.calls,
            usage=CacheUsage.of(meter.answers),
            output_tokens=sum(a.usage_metadata["output_tokens"] for a in meter.answers if a.usage_metadata),
            seconds=seconds,
            error=error,
        )

    def _ended(self, said: list[AnyMessage], meter: _Meter, max_calls: int) -> tuple[list[Any], str, str]:
        """Return all messages of a conversation, how its tools were shown, and what ended it early."""
        messages: list[Any] = [*said]
        ways = {"everything"} if self.exposure == "none" else set[str]()
        # A model call and what it calls are two steps of the graph.
        config = {"callbacks": [meter], "recursion_limit": 2 * max_calls}
        error = ""
        try:
            for mode, what in self.agent.stream({"messages": said}, config, stream_mode=["values", "custom"]):
                if mode == "values":
                    messages = what["messages"]
                elif isinstance(what, Mapping) and what.get("type") == _SHOWN:
                    ways.add(what["exposure"])
            ways = ways or {"everything"}
        except GraphRecursionError:
            error = f"no answer after {max_calls} model calls"
        except Exception as raised:
            error = shortened(raised)
        return messages, ", ".join(sorted(ways)), error

    def _called(self, messages: Iterable[Any]) -> Iterator[str]:
        for message in messages:
            for name, arguments in tool_calls(message) if isinstance(message, AIMessage) else ():
                # A call by proxy that fits no tool still says which one was meant.
                yield str(arguments.get("name")) if self.proxy and name == self.proxy else name


class _Meter(BaseCallbackHandler):
    """Notes the model calls of one run, of which an agent that fails leaves no other trace."""

    def __init__(self) -> None:
        self.calls = 0
        self.answers: list[AIMessage] = []

    def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        self.calls += 1

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        for generation in response.generations[0][:1]:
            if isinstance(generation, ChatGeneration) and isinstance(generation.message, AIMessage):
                self.answers.append(generation.message)


def _said_before(case: Case) -> list[AnyMessage]:
    """Return the messages before the newest: each call of a tool with an answer, as providers demand."""
    messages: list[AnyMessage] = []
    for place, message in enumerate(case.history):
        text = text_of(message)
        if is_from_user(message) and text:
            messages.append(HumanMessage(text))
        elif role_of(message) in ("assistant", "ai"):
            calls = [
                ToolCall(name=name, args=dict(arguments), id=f"call_{place}_{number}")
                for number, (name, arguments) in enumerate(tool_calls(message))
            ]
            if text or calls:
                messages.append(AIMessage(text, tool_calls=calls))
            answers = takewhile(lambda later: role_of(later) == "tool", case.history[place + 1 :])
            texts = chain(map(text_of, answers), repeat(REHEARSED))
            messages += (ToolMessage(t, tool_call_id=c["id"]) for c, t in zip(calls, texts, strict=False))
    return messages


# -- numbers ---------------------------------------------------------------------------------------------


def _cost(usage: CacheUsage, prices: Prices) -> float:
    """Return what input costs, in uncached tokens of a short prompt. All calls count as if of one length."""
    uncached = usage.input_tokens - usage.cache_read - usage.cache_write
    cost = uncached + prices.read * usage.cache_read + prices.write * usage.cache_write
    return cost * prices.factor_at(usage.input_tokens / usage.calls)
