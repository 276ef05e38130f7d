"""`tool-selection cost`: what each way of showing tools costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer import Option

from langchain_tool_selection import evals
from langchain_tool_selection.cli import _shared
from langchain_tool_selection.cost import DEFAULT_PRICES, CostEstimate, Prices, estimate_cost, prices_of

_BAR = 20
"""Characters of the longest bar; leaves the table within 80 columns."""


def cost(
    *,
    tools: _shared.RequiredTools,
    model: Annotated[str | None, Option(help="Use this model's published prices.")] = None,
    read: Annotated[float | None, Option(help="Price of a cached read in uncached tokens.")] = None,
    write: Annotated[float | None, Option(help="Price of a cache write in uncached tokens.")] = None,
    usd: Annotated[float | None, Option(help="Dollars for a million uncached input tokens.")] = None,
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
        given = {"read": read, "write": write, "input": usd}
        changed = {field: value for field, value in given.items() if value is not None}
        known = DEFAULT_PRICES if model is None else prices_of(model)
        if changed:
            known = replace(known or Prices(), **changed, source="", as_of="")
        estimate = estimate_cost(catalog, model=model, prices=known, top_k=top_k)
        workload = replace(estimate.workload, turns=turns, calls_per_turn=calls, reveals=reveals)
        estimate = replace(estimate, workload=workload)
    legend = "cost: the thread's input in uncached tokens; pays from: tokens of all tools"
    best = Text.assemble("recommended: ", (estimate.recommended, "bold green"))
    _shared.tell(as_json, estimate.to_dict(), (estimate.assumptions, _table(estimate), legend, best))


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
