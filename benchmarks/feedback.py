"""`python -m benchmarks.feedback --data DIR`: what requests that were discovered bring as examples.

Discovery labels requests for free: one that missed its tool, and the tool that was found for it and called.
This simulates it with the labels of one half of a set's requests and measures on the other half, both ways
round, searching with the conversation as the middleware does. Three rankings of each measured half:

- `without`: the default ranker, no examples;
- `discovered`: examples from the requests of the other half whose tool was not among the 15 best, which is
  when an agent has to discover it;
- `all`: examples from every request of the other half, as from a log of calls that worked.

Sets differ in how alike their requests are, and where one template fills both halves, examples gain more than
they would elsewhere. The last column has what they cost: recall of the measured requests whose own tools have
no example, and which can only lose.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks import report
from benchmarks.datasets import Dataset, read_datasets
from benchmarks.metrics import percent
from langchain_tool_selection import ToolHints
from langchain_tool_selection.evals import Case, evaluate, hints_from, read_tools
from langchain_tool_selection.evals.catalogs import ToolSet
from langchain_tool_selection.evals.run import CaseResult

KS = (1, 5, 10, 15)
TOP_K = 15
_SEED = 13

Half = Sequence[Case]
Runs = list[tuple[Case, CaseResult, Collection[str]]]
"""Each measured case with its result and the names of the tools that have examples."""


def measure(data: Dataset, history: bool) -> dict[str, Any]:
    """Return recall of one set with and without examples, in percent over all its requests."""
    tools = read_tools(data.tools)
    cases = [
        Case(c.query, c.relevant, c.history if history else (), _tuples(c.alternatives)) for c in data.cases
    ]
    halves = _halves(cases)
    rows = {name: _both_ways(tools, halves, make) for name, make in SOURCES.items()}
    return {name: _row(runs, rows["without"], with_examples=rows[name]) for name, runs in rows.items()}


def without(tools: ToolSet, half: Half) -> dict[str, ToolHints]:
    """Return no examples."""
    return {}


def discovered(tools: ToolSet, half: Half) -> dict[str, ToolHints]:
    """Return examples from the requests that an agent would have had to discover a tool for."""
    results = evaluate(tools, half, ks=(TOP_K,)).results
    late = [
        Case(case.query, tuple(name for name, rank in result.ranks.items() if rank is None or rank > TOP_K))
        for case, result in zip(half, results, strict=True)
    ]
    return hints_from(case for case in late if case.relevant)


def everything(tools: ToolSet, half: Half) -> dict[str, ToolHints]:
    """Return examples from all requests."""
    return hints_from(half)


SOURCES: dict[str, Callable[[ToolSet, Half], dict[str, ToolHints]]] = {
    "without": without,
    "discovered": discovered,
    "all": everything,
}


def _halves(cases: Sequence[Case]) -> tuple[list[Case], list[Case]]:
    places = set(random.Random(_SEED).sample(range(len(cases)), len(cases) // 2))
    first = [case for place, case in enumerate(cases) if place in places]
    return first, [case for place, case in enumerate(cases) if place not in places]


def _both_ways(
    tools: ToolSet, halves: tuple[Half, Half], make: Callable[[ToolSet, Half], dict[str, ToolHints]]
) -> Runs:
    runs: Runs = []
    for labelled, measured in (halves, halves[::-1]):
        hints = make(tools, labelled)
        results = evaluate(tools, measured, ks=KS, hints=hints).results
        runs += [(case, result, hints) for case, result in zip(measured, results, strict=True)]
    return runs


def _row(runs: Runs, plain: Runs, with_examples: Runs) -> dict[str, Any]:
    pairs = list(zip(runs, plain, strict=True))
    bare = [(run, before) for run, before in pairs if not any(name in run[2] for name in run[0].relevant)]
    examples = sum(len(hint.examples) for hints in _distinct(runs) for hint in hints.values()) / 2
    return {
        "recall": _recall([run for run, _ in pairs]),
        "examples": round(examples),
        "requests_with_examples": percent([1 - len(bare) / len(pairs)]),
        "recall_of_the_others": _recall([run for run, _ in bare]) if bare else None,
        "the_others_without": _recall([before for _, before in bare]) if bare else None,
    }


def _distinct(runs: Runs) -> list[Mapping[str, ToolHints]]:
    return list({id(hints): hints for _, _, hints in runs}.values())  # type: ignore[misc]


def _recall(runs: Runs) -> dict[str, float]:
    return {str(k): percent(fmean(result.found(k)) for _, result, _ in runs) for k in KS}


def _tuples(alternatives: Mapping[str, Collection[str]]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(others) for name, others in alternatives.items()}


def main() -> None:
    """Measure every set, print a table and write one result file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.feedback", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of sets; see benchmarks/README.md")
    parser.add_argument("--sets", default="", help="sets to use, separated by commas (default: all)")
    parser.add_argument("--limit", type=int, help="requests of each set to use (default: all)")
    parser.add_argument("--no-history", action="store_true", help="search the newest message alone")
    parser.add_argument("--out", type=Path, default=report.RESULTS, help="folder for the result file")
    options = parser.parse_args()
    datasets = read_datasets(options.data, [s for s in options.sets.split(",") if s], options.limit)
    rows = {}
    for data in datasets:
        print(f"… {data.name}", file=sys.stderr, flush=True)
        rows[data.name] = measure(data, not options.no_history)
    content = report.provenance("benchmarks.feedback") | {
        "settings": {
            "limit": options.limit,
            "top_k": TOP_K,
            "seed": _SEED,
            "history": not options.no_history,
        },
        "sets": {
            data.name: {"tools": len(data.tools), "requests": len(data.cases), "digest": data.digest()}
            for data in datasets
        },
        "rows": rows,
        "average": {
            name: {k: round(fmean(row[name]["recall"][k] for row in rows.values()), 2) for k in map(str, KS)}
            for name in SOURCES
        },
    }
    print(_table(content))
    print(f"\n`{content['command']}` → {report.save('feedback', content, options.out).name}")


def _table(content: dict[str, Any]) -> str:
    header = ["R@1 / 5 / 10", *SOURCES, "examples, discovered / all", "others, without → all"]
    lines = []
    for name, row in content["rows"].items():
        cells = [report.recalls(row[source]) for source in SOURCES]
        bare = row["all"]
        others = "-"
        if bare["recall_of_the_others"]:
            share = f"{100 - bare['requests_with_examples']:.0f} %"
            others = (
                f"{bare['the_others_without']['10']:.1f} → {bare['recall_of_the_others']['10']:.1f} ({share})"
            )
        lines.append([name, *cells, f"{row['discovered']['examples']} / {bare['examples']}", others])
    average = [report.recalls({"recall": content["average"][source]}) for source in SOURCES]
    return report.table(header, [*lines, ["**average**", *average, "", ""]])


if __name__ == "__main__":
    main()
