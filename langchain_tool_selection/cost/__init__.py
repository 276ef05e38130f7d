"""What each way of showing tools costs under prompt caching, and from which catalogue on it pays.

Most providers cache an exact prefix, and tools stand before the conversation in it. A call whose tools are
those of the call before reads the prefix at a fraction of its price and pays in full for what is new; a
call whose tools changed pays again for everything, the conversation included. So sending fewer tools can
cost more. This module plays one thread (`Workload`) through, call by call, and adds up what a model
with given `Prices` charges. Where a changed array keeps the rest of the prompt cached, set
`Prices.keeps_changed`: then only the array is paid for again.

Costs are in uncached input tokens of a short prompt: one that is read from the cache counts `Prices.read`,
one that is written to it `Prices.write`, and those of a long prompt count `Tier.factor` times as much. Left
out are output, latency, caches that expire, prompts too short to be cached, and prefixes that several
threads share.

Example:
    >>> prices = Prices(read=0.1, write=1.25)
    >>> round(input_cost("per_turn", 15_000, Workload(), prices))
    195162
    >>> round(break_even("per_turn", Workload(), prices))
    33798
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from html import escape
from math import inf, isclose, isfinite
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from langchain_tool_selection._exposure.base import Exposure as ExposureObject
from langchain_tool_selection._exposure.base import OwnExposure
from langchain_tool_selection._exposure.registry import EXPOSURES, ExposureName
from langchain_tool_selection._exposure.stubs import Stubs
from langchain_tool_selection._ground.models import full_model_name
from langchain_tool_selection._ground.settings import check_choice, check_count, check_function
from langchain_tool_selection._tools.shapes import as_openai_tool
from langchain_tool_selection._tools.tokens import count_tokens as approximate_count
from langchain_tool_selection.cost.prices import DEFAULT_PRICES, Prices, Tier, prices_of

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

__all__ = [
    "DEFAULT_PRICES", "CostEstimate", "CostRow", "Exposure", "Prices", "Tier", "Workload", "break_even",
    "estimate_cost", "input_cost", "prices_of",
]  # fmt: skip

Exposure = Literal["everything", "once", "per_call", ExposureName]
"""A way of showing tools to a model: the exposures of the middleware, and three to compare them with.

- "everything": all tools in every call.
- "once": selected for the first call, never changed, never searched. A lower bound, not a way to work.
- "per_call", "per_turn": selected anew for each model call, or each user message; never searched.
- "grow": selected once; what a search reveals is added to the tools, so the prefix changes.
- "append": selected once; what a search reveals is added to the conversation, so the prefix stays.
- "stubs": all tools by name and one line; a call that does not fit is answered with the tool's schema.
- "proxy": as "append", by a search tool and a call tool that are always there. It costs the same here: the
  schemas are read from the conversation either way, and the call tool itself is about 100 tokens.
"""

_REVEALED = 5
"""How many tools a search reveals at most: `Discovery.max_results`."""

_STUB = 60
"""Tokens of a stub: a name, a sentence, an open schema. In twelve sets of tools the mean is 52 to 70, at four
characters a token."""


@dataclass(frozen=True)
class Workload:
    """One thread of an agent, in numbers. All but the first three are tokens.

    Attributes:
        turns: User messages.
        calls_per_turn: Model calls that answer one of them, without those that search.
        reveals: Searches, where tools are searched: one in each turn from the first on, and round again
            if there are more of them than turns. A search takes one model call more, right after
            the turn's first; the call after that reads what it revealed.
        system: The system prompt.
        message: What the first call of a turn adds to the conversation.
        step: What each later call adds: a tool's call and its result.
        search: What a search adds: the query, and the names that it found.
        shown: The tools that are shown by selection.
        reveal: The tools that one search reveals.
        stubs: All tools by name and one line, under "stubs": 60 tokens each, up to 120 tools.
        wrong_calls: Calls of stubs that do not fit, in the thread; not tokens. Each takes a model call more,
            and the one after that reads the tool's schema. By default every second call of a tool is one, as
            in `benchmarks.multiturn`, where a model that guesses nothing is wrong that often.
    """

    turns: int = 10
    calls_per_turn: int = 3
    reveals: int = 3
    system: int = 2_000
    message: int = 150
    step: int = 800
    search: int = 150
    shown: int = 2_000
    reveal: int = 1_200
    stubs: int = 7_200
    wrong_calls: int = 10

    @property
    def schema(self) -> int:
        """Tokens of one tool, of average size."""
        return round(self.reveal / _REVEALED)

    def __post_init__(self) -> None:
        for field, value in vars(self).items():
            check_count(f"Workload.{field}", value, at_least=int(field in ("turns", "calls_per_turn")))


class _Way(NamedTuple):
    """What a way of showing tools does to the prompt.

    Attributes:
        searches: Whether the model searches for tools, and is shown more of them.
        changes_at: When the tools array is selected anew.
        changes_array: Whether what a search reveals changes the tools array, so that nothing of the prompt
            is read from the cache. Otherwise it is added to the conversation, and paid there.
        stubs: Whether all tools are shown by name and one line, and wrong calls stand for searches.
    """

    searches: bool = False
    changes_at: Literal["never", "turn", "call"] = "never"
    changes_array: bool = False
    stubs: bool = False

    def lookups(self, workload: Workload) -> tuple[int, int]:
        """Return how often the model is shown more of the tools in a thread, and the tokens of one time."""
        if self.stubs:
            return workload.wrong_calls, workload.schema
        return workload.reveals if self.searches else 0, workload.reveal

    @classmethod
    def of(cls, exposure: ExposureObject | type[OwnExposure]) -> _Way:
        # One that selects anew finds the tools by rank, so its searches are left out.
        if not exposure.keeps:
            return cls(changes_at="turn")
        is_stubs = getattr(exposure, "name", "") == Stubs.name
        return cls(searches=True, changes_array=exposure.additions_reset_cache, stubs=is_stubs)


_WAYS: Mapping[str, _Way] = {
    "everything": _Way(),
    "once": _Way(),
    "per_call": _Way(changes_at="call"),
    **{name: _Way.of(exposure) for name, exposure in EXPOSURES.items()},
}

_WORKABLE: tuple[Any, ...] = ("everything", *EXPOSURES)  # a literal's values, which mypy cannot tell
"""What may be recommended, the first of those that cost the same first."""


def input_cost(
    exposure: Exposure | ExposureObject, catalog: float, workload: Workload, prices: Prices
) -> float:
    """Return what the input of a thread costs, in uncached input tokens.

    With no more in the catalogue than would be shown, nothing is hidden, and all exposures cost the same.

    Args:
        exposure: How tools are shown: by name, or an exposure object of your own.
        catalog: Tokens of the definitions of all tools.
        workload: The thread.
        prices: What a token costs.

    Raises:
        ValueError: `exposure` is unknown, or `catalog` is negative.
    """
    way = _way(exposure)
    if not catalog >= 0:
        raise ValueError(f"catalog must be 0 tokens or more, got {catalog!r}")
    hides = exposure != "everything" and catalog > workload.shown
    shown = workload.stubs if way.stubs else workload.shown
    way, tools = (way, shown) if hides else (_Way(), catalog)
    return sum(_cost_of(call, prices) for call in _calls(way, tools, workload))


class _Call(NamedTuple):
    """What a model call is sent, in tokens.

    Attributes:
        tools: The tools array.
        history: The system prompt, and what earlier calls added to the conversation.
        new: What this call adds.
        is_first: Whether nothing of it can be in the cache.
        is_changed: Whether the tools array differs from the last call's.
    """

    tools: float
    history: int
    new: int
    is_first: bool
    is_changed: bool


def _cost_of(call: _Call, prices: Prices) -> float:
    tools = prices.write if call.is_first or call.is_changed else prices.read
    is_cold = call.is_first or (call.is_changed and not prices.keeps_changed)
    history = prices.write if is_cold else prices.read
    cost = tools * call.tools + history * call.history + prices.write * call.new
    return cost * prices.factor_at(call.tools + call.history + call.new)


def _way(exposure: Exposure | ExposureObject) -> _Way:
    if not isinstance(exposure, str) and isinstance(exposure, ExposureObject):
        return _Way.of(exposure)
    check_choice("exposure", exposure, get_args(Exposure))
    return _WAYS[exposure]


def _calls(way: _Way, tools: float, workload: Workload) -> Iterator[_Call]:
    history = workload.system
    lookups, reveal = way.lookups(workload)
    every_turn, once_more = divmod(lookups, workload.turns)
    revealed = False
    for turn in range(workload.turns):
        searches = every_turn + (turn < once_more)
        steps = [workload.search] * searches + [workload.step] * (workload.calls_per_turn - 1)
        for position, added in enumerate([workload.message, *steps]):
            changed = way.changes_at == "call" or (way.changes_at == "turn" and position == 0)
            new = added
            if revealed and way.changes_array:
                tools += reveal
                changed = True
            elif revealed:
                new += reveal
            yield _Call(tools, history, new, turn == position == 0, changed)
            history += new
            revealed = 0 < position <= searches


def break_even(exposure: Exposure | ExposureObject, workload: Workload, prices: Prices) -> float:
    """Return the tokens of tool definitions from which on `exposure` is cheaper than "everything".

    `inf` where it never is: for "everything" itself, and where input costs nothing.

    Raises:
        ValueError: `exposure` is unknown.
    """
    if exposure == "everything":
        return inf
    # Without tiers the cost of "everything" is a straight line over the catalogue. The others are flat.
    cost, flat = input_cost(exposure, inf, workload, prices), replace(prices, tiers=())
    base = input_cost("everything", 0, workload, flat)
    slope = (input_cost("everything", 1e6, workload, flat) - base) / 1e6
    if not slope:
        return inf
    most = (cost - base) / slope
    return _crossing(cost, most, workload, prices) if prices.tiers else most


def _crossing(cost: float, most: float, workload: Workload, prices: Prices) -> float:
    """Return up to which catalogue "everything" costs no more than `cost`; `most` is enough."""
    low, high = 0.0, max(most, 0.0)
    if isclose(input_cost("everything", high, workload, prices), cost):
        return most
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_dearer = input_cost("everything", middle, workload, prices) > cost
        low, high = (low, middle) if is_dearer else (middle, high)
    return high


_HALVINGS = 40
"""Enough to find a catalogue of 10**9 tokens to a thousandth of one."""


# -- people's own tools --------------------------------------------------------------------------------


def average_workload(catalog: int, tools: int, top_k: int) -> Workload:
    """Return a thread whose tools have the average size of a catalogue of `catalog` tokens.

    Args:
        catalog: Tokens of the definitions of all tools.
        tools: How many there are; 1 or more.
        top_k: How many are shown by selection. A search reveals five.
    """
    shown, reveal = (round(catalog * min(count, tools) / tools) for count in (top_k, _REVEALED))
    stubs = min(catalog, _STUB * min(tools, Stubs.most))
    return Workload(shown=shown, reveal=reveal, stubs=stubs)


@dataclass(frozen=True)
class CostRow:
    """One exposure in an estimate.

    Attributes:
        exposure: How tools are shown.
        cost: The thread's input, in uncached input tokens.
        ratio: The same as a share of what "everything" costs; 1 where both cost nothing.
        usd: The same in US dollars; `None` where the price is unknown.
        break_even: Tokens of tool definitions from which on it is cheaper than "everything".
    """

    exposure: Exposure
    cost: float
    ratio: float
    usd: float | None
    break_even: float


@dataclass(frozen=True)
class CostEstimate:
    """What a thread with these tools costs, by exposure. Use `dataclasses.replace` for another thread.

    Attributes:
        tools: How many there are.
        catalog: Tokens of their definitions.
        workload: The thread.
        prices: What a token costs.
        model: Whose prices these are; empty if no model was named.
    """

    tools: int
    catalog: int
    workload: Workload
    prices: Prices
    model: str = ""

    @property
    def rows(self) -> tuple[CostRow, ...]:
        """One row for each exposure, in the order of `Exposure`."""
        return tuple(self._row(exposure) for exposure in get_args(Exposure))

    @property
    def recommended(self) -> Exposure:
        """The cheapest exposure that an agent can work with. Whether its provider takes it is not known."""
        return min(_WORKABLE, key=lambda exposure: self._row(exposure).cost)

    def _row(self, exposure: Exposure) -> CostRow:
        cost = input_cost(exposure, self.catalog, self.workload, self.prices)
        everything = input_cost("everything", self.catalog, self.workload, self.prices)
        return CostRow(
            exposure=exposure,
            cost=cost,
            ratio=cost / everything if everything else 1.0,
            usd=None if self.prices.input is None else cost * self.prices.input / 1e6,
            break_even=break_even(exposure, self.workload, self.prices),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as JSON values; a break-even that is never reached is `None`."""
        rows = {
            row.exposure: {
                "cost": round(row.cost),
                "ratio": round(row.ratio, 4),
                "usd": None if row.usd is None else round(row.usd, 6),
                "break_even": round(row.break_even) if isfinite(row.break_even) else None,
            }
            for row in self.rows
        }
        return {**asdict(self), "recommended": self.recommended, "exposures": rows}

    @property
    def assumptions(self) -> str:
        """For people: what was counted and assumed, in two lines."""
        load, prices = self.workload, self.prices
        name = f"{self.model}, prices of {prices.as_of}" if self.model and prices.as_of else self.model
        return (
            f"{self.tools:,} tools, {self.catalog:,} tokens; a cached read costs {prices.read:.3g} and a "
            f"write {prices.write:.3g} of an uncached token{f' ({name})' if name else ''}\n"
            f"{load.turns} turns of {load.calls_per_turn} model calls; {load.shown:,} tokens of tools shown, "
            f"{load.reveals} searches that reveal {load.reveal:,} each"
        )

    @property
    def table(self) -> list[tuple[str, ...]]:
        """For people: the headings, then a row of text for each exposure."""
        table: list[tuple[str, ...]] = [("exposure", "cost", "share", "US$", "pays from")]
        for row in self.rows:
            usd = "-" if row.usd is None else f"{row.usd:,.4f}"
            pays = f"{row.break_even:,.0f}" if isfinite(row.break_even) else "-"
            table.append((row.exposure, f"{row.cost:,.0f}", f"{row.ratio:.0%}", usd, pays))
        return table

    def __str__(self) -> str:
        """For people: the assumptions, the table, the recommendation."""
        lines = [f"{name:<10}" + "".join(f"{cell:>12}" for cell in cells) for name, *cells in self.table]
        return "\n".join([self.assumptions, "", *lines, "", f"recommended: {self.recommended}"])

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>" for cells in self.table
        )
        return f"<p>{escape(self.assumptions)}</p><table>{rows}</table><p>recommended: {self.recommended}</p>"


def estimate_cost(
    tools: Iterable[Any],
    *,
    model: str | BaseChatModel | None = None,
    prices: Prices | None = None,
    workload: Workload | None = None,
    top_k: int = 15,
    count_tokens: Callable[[list[dict[str, Any]]], int] | None = None,
) -> CostEstimate:
    """Return what a thread with these tools costs, by exposure.

    Args:
        tools: LangChain tools, functions, OpenAI, Anthropic or MCP tool dicts, MCP tools, `ToolDocument`s.
        model: Whose prices apply.
        prices: Prices to use instead of the model's. Without a model either: `DEFAULT_PRICES`.
        workload: The thread. By default `Workload()`, but with `top_k` tools of average size shown, and five
            of them revealed by a search.
        top_k: How many tools are shown by selection. Not used beside a `workload`.
        count_tokens: Counts the tokens of tool definitions, which it is given as OpenAI tool dicts. By
            default the package's `count_tokens`, about four characters a token.

    Raises:
        TypeError: a tool has no name, or a setting has the wrong type.
        ValueError: there is no tool, a number is out of range, or the model's prices are unknown.
    """
    check_count("top_k", top_k, at_least=1)
    check_function("count_tokens", count_tokens, "a list of tool dicts")
    schemas = [as_openai_tool(tool) for tool in tools]
    if not schemas:
        raise ValueError("tools is empty, and costs are estimated for one tool or more")
    catalog = count_tokens(schemas) if count_tokens else approximate_count(schemas).tokens
    check_count("what count_tokens returns", catalog)
    return CostEstimate(
        tools=len(schemas),
        catalog=catalog,
        workload=workload or average_workload(catalog, len(schemas), top_k),
        prices=prices or _prices_or_error(model),
        model=full_model_name(model) if model is not None else "",
    )


def _prices_or_error(model: str | BaseChatModel | None) -> Prices:
    prices = DEFAULT_PRICES if model is None else prices_of(model)
    if prices is None:
        raise ValueError(
            f"no prices are known for the model {full_model_name(model or '')!r}; give them yourself, read=1 "
            "and write=1 for one without prompt caching (known: models of Anthropic, OpenAI, Google, "
            "Mistral, xAI, DeepSeek and Groq, also through Azure, Amazon Bedrock and Vertex AI)"
        )
    return prices
