"""`tool-selection cost`: what each way of showing tools costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer import Option

from langchain_tool_selection import evals
from langchain_tool_selection.cli import _shared
from langchain_tool_selection.cost import DEFAULT_PRICES, CostEstimate, Prices, estimate_cost, prices_of

_KEPT_LONG_HELP = "Prices of a cache that is kept for longer: an hour with Anthropic, twelve with OpenAI."
_KEEPS_CHANGED_HELP = (
    "A changed tools array leaves the rest of the prompt cached, as tool-selection verify found it."
)

_BAR = 20
"""Characters of the longest bar; leaves the table within 80 columns."""


def cost(
    *,
    tools: _shared.RequiredTools,
    model: Annotated[str | None, Option(help="Use this model's published prices.")] = None,
    read: Annotated[float | None, Option(help="Price of a cached read in uncached tokens.")] = None,
    write: Annotated[float | None, Option(help="Price of a cache write in uncached tokens.")] = None,
    usd: Annotated[float | None, Option(help="Dollars for a million uncached input tokens.")] = None,
    kept_long: Annotated[bool, Option("--kept-long", help=_KEPT_LONG_HELP)] = False,
    keeps_changed: Annotated[bool, Option("--keeps-changed", help=_KEEPS_CHANGED_HELP)] = False,
    top_k: Annotated[int, Option(help="How many tools are shown by selection.")] = 15,
    turns: Annotated[int, Option(help="User messages in the thread.")] = 10,
    calls: Annotated[int, Option(help="Model calls that answer a user message.")] = 3,
    reveals: Annotated[int, Option(help="Searches that reveal tools, in the thread.")] = 3,
    as_json: _shared.AsJson = False,
) -> None:
    """Estimate what each way of showing tools costs under prompt caching.

    Without --model, --read and --write: a cached read costs 0.1 and a write 1.25 of an uncached token.
    """
    with _shared.errors_in_a_line("cost"):
        catalog = evals.load_catalog(tools)
        known = _prices(model, kept_long, keeps_changed, {"read": read, "write": write, "input": usd})
        estimate = estimate_cost(catalog, model=model, prices=known, top_k=top_k)
        workload = replace(estimate.workload, turns=turns, calls_per_turn=calls, reveals=reveals)
        estimate = replace(estimate, workload=workload)
    legend = "cost: the thread's input in uncached tokens; pays from: tokens of all tools"
    best = Text.assemble("recommended: ", (estimate.recommended, "bold green"))
    _shared.tell(as_json, estimate.to_dict(), (estimate.assumptions, _table(estimate), legend, best))


def _prices(
    model: str | None, kept_long: bool, keeps_changed: bool, given: Mapping[str, float | None]
) -> Prices | None:
    known = DEFAULT_PRICES if model is None else prices_of(model)
    if known and kept_long:
        known = known.kept_long
    changed: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
    if changed:
        known = replace(known or Prices(), **changed, source="", as_of="")
    return replace(known, keeps_changed=keeps_changed) if known else None


def _table(estimate: CostEstimate) -> Table:
    headings, *lines = estimate.table
    dearest = max(row.cost for row in estimate.rows) or 1.0
    block = "#" if Console().options.ascii_only else "█"
    bars = (block * max(1, round(_BAR * row.cost / dearest)) for row in estimate.rows)
    return _shared.new_table(
        [*headings, "cost to scale"],
        [(*cells, bar) for cells, bar in zip(lines, bars, strict=True)],
        left=("exposure", "cost to scale"),
        styles=["bold green" if row.exposure == estimate.recommended else None for row in estimate.rows],
    )
