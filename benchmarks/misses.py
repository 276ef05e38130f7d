"""`python -m benchmarks.misses --data DIR --sets arcade`: what a ranker misses, and what stood above it.

Prints for each request that misses a tool at `--k`: the tool, its rank with this ranker and with another
one, and the tools that came first. For people who tune a ranker; writes no file.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.datasets import Case, Dataset, read_datasets
from benchmarks.rankers import Factory, factories


def rankings(make: Factory, dataset: Dataset) -> list[list[str]]:
    """Return the whole ranking of every request."""
    subject = make(dataset)
    return [list(subject.search(case, len(dataset.tools))) for case in dataset.cases]


def rank_of(case: Case, name: str, ranking: Sequence[str]) -> int | None:
    """Return the rank of a tool or of its best alternative."""
    wanted = {name, *case.alternatives.get(name, ())}
    return next((rank for rank, found in enumerate(ranking, 1) if found in wanted), None)


def misses(dataset: Dataset, first: Factory, second: Factory, k: int) -> list[str]:
    """Return a few lines for each request that misses a tool with the first ranker."""
    lines: list[str] = []
    for case, one, two in zip(
        dataset.cases, rankings(first, dataset), rankings(second, dataset), strict=True
    ):
        for name in case.relevant:
            mine, theirs = rank_of(case, name, one), rank_of(case, name, two)
            if mine is None or mine > k:
                won = "+" if theirs is not None and theirs <= k else " "
                query = " ".join(case.query.split())[:160]
                lines.append(f"{won} {name}: {mine} (other {theirs}) of {len(one)} hits <- {query}")
                lines.append(f"      first: {', '.join(one[:4])}")
    return lines


def main() -> None:
    """Print the misses of each set; `+` marks those that the other ranker does not share."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.misses", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", default="", help="separated by commas (default: all)")
    parser.add_argument("--ranker", default="lexical_hist")
    parser.add_argument("--against", default="bm25s_full")
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--cache", type=Path, help="folder for an encoder's vectors")
    options = parser.parse_args()
    known = factories(options.cache)
    first, second = known[options.ranker](), known[options.against]()
    for dataset in read_datasets(options.data, [s for s in options.sets.split(",") if s]):
        lines = misses(dataset, first, second, options.k)
        print(f"\n## {dataset.name}: {len(lines) // 2} misses at {options.k}")
        print("\n".join(lines))


if __name__ == "__main__":
    main()
