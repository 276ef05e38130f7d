"""`tool-selection cost`: what each way of showing tools costs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from typer import Option

from langchain_tool_selection.cli import _shared

if TYPE_CHECKING:
    from langchain_tool_selection.cost import CostEstimate

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
    from langchain_tool_selection.cost import DEFAULT_PRICES, Prices, estimate_cost, prices_of
    from langchain_tool_selection.evals.catalogs import load_catalog

    with _shared.errors_in_a_line("cost"):
        catalog = load_catalog(tools)
        given = {"read": read, "write": write, "input": usd}
        changed = {field: value for field, value in given.items() if value is not None}
        known = DEFAULT_PRICES if model is None else prices_of(model)
        if changed:
            known = replace(known or Prices(), **changed, source="", as_of="")
        estimate = estimate_cost(catalog, model=model, prices=known, top_k=top_k)
        workload = replace(estimate.workload, turns=turns, calls_per_turn=calls, reveals=reveals)
        estimate = replace(estimate, workload=workload)
    if as_json:
        typer.echo(json.dumps(estimate.to_dict()))
    else:
        _print_estimate(Console(), estimate)


def _print_estimate(console: Console, estimate: CostEstimate) -> None:
    headings, *lines = estimate.table
    table = _shared.new_table(*headings, "cost to scale", left=("exposure", "cost to scale"))
    dearest = max(row.cost for row in estimate.rows) or 1.0
    block = "#" if console.options.ascii_only else "█"
    for row, cells in zip(estimate.rows, lines, strict=True):
        bar = block * max(1, round(_BAR * row.cost / dearest))
        table.add_row(*cells, bar, style="bold green" if row.exposure == estimate.recommended else None)
    console.print(estimate.assumptions, highlight=False, markup=False, soft_wrap=True)
    console.print(table)
    console.print("cost: the thread's input in uncached tokens; pays from: tokens of all tools")
    console.print(f"recommended: [bold green]{estimate.recommended}[/]")
