"""`python -m benchmarks.registry61`: recall and payload over a registry of 61 tools.

A registry like those of a dozen real servers, with a file-system core that is always included, and 30
labelled requests. Reports for each top_k how many requests keep their tool among the shown ones, and how
many characters of tool definitions are sent. A published figure for token overlap over such a registry:
67 % recall with 84 % less payload (5,523 characters sent) at top_k = 10, 13 points more at 30.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks import report
from benchmarks.datasets import Case, Dataset
from benchmarks.rankers import Factory, factories
from benchmarks.registry61_data import CORE, REQUESTS, TOOLS

KS = (3, 5, 10, 15, 20, 30)
RANKERS = ("lexical", "lexical_score", "bm25s", "bm25s_full", "rank_bm25")


def registry() -> Dataset:
    """Return the tools that compete, without the core, and the requests."""
    ranked = tuple(tool for tool in TOOLS if tool["name"] not in CORE)
    return Dataset("registry61", ranked, tuple(Case(r.text, (r.relevant,)) for r in REQUESTS))


def payload(names: Sequence[str]) -> int:
    """Return the characters of the named tools as they go to a model: name, description, schema."""
    wanted = set(names)
    return sum(len(json.dumps(_definition(tool))) for tool in TOOLS if tool["name"] in wanted)


def _definition(tool: dict[str, Any]) -> dict[str, Any]:
    return {key: tool[key] for key in ("name", "description", "parameters")}


def measure(make: Factory) -> dict[str, Any]:
    """Return recall, payload and misses at each top_k.

    Payload is that of exactly top_k tools and the core: a shorter ranking is filled up in registration
    order, as `select_tools` does it. Recall counts only what the ranker found, not what filled it up.
    """
    dataset = registry()
    subject = make(dataset)
    full = payload([tool["name"] for tool in TOOLS])
    names = [tool["name"] for tool in dataset.tools]
    rankings = [list(subject.search(case, len(names))) for case in dataset.cases]
    row: dict[str, Any] = {"payload_all": full, "ranks": _late(dataset, rankings), "by_k": {}}
    for k in KS:
        sent = fmean(payload([*CORE, *filled(ranking, names, k)]) for ranking in rankings)
        misses = [
            i
            for i, (case, ranking) in enumerate(zip(dataset.cases, rankings, strict=True))
            if case.relevant[0] not in ranking[:k]
        ]
        row["by_k"][str(k)] = {
            "recall": round(100 * (1 - len(misses) / len(rankings)), 1),
            "recall_direct": _share(misses, direct=True),
            "recall_indirect": _share(misses, direct=False),
            "payload": round(sent),
            "payload_without_core": round(sent) - payload(CORE),
            "saved_percent": round(100 * (1 - sent / full), 1),
            "misses": [_label(i) for i in misses],
        }
    return row


def filled(ranking: Sequence[str], names: Sequence[str], k: int) -> list[str]:
    """Return the first `k` of a ranking, filled up in registration order where it is shorter."""
    return list(dict.fromkeys([*ranking, *names]))[:k]


def _late(dataset: Dataset, rankings: Sequence[Sequence[str]]) -> dict[str, int | None]:
    """Return where each tool was found that is not among the first few; `None` if it was not."""
    late = {}
    for i, (case, ranking) in enumerate(zip(dataset.cases, rankings, strict=True)):
        rank = ranking.index(case.relevant[0]) + 1 if case.relevant[0] in ranking else None
        if rank is None or rank > KS[0]:
            late[_label(i)] = rank
    return late


def _label(position: int) -> str:
    return f"{REQUESTS[position].text} → {REQUESTS[position].relevant}"


def _share(misses: list[int], *, direct: bool) -> float:
    chosen = [i for i, request in enumerate(REQUESTS) if request.direct == direct]
    return round(100 * sum(i not in misses for i in chosen) / len(chosen), 1)


def main() -> None:
    """Print the table and the misses, and write the result file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.registry61", description=__doc__)
    parser.add_argument("--rankers", default=",".join(RANKERS), help="as for benchmarks.ranking")
    parser.add_argument("--cache", type=Path, help="folder for an encoder's vectors")
    parser.add_argument("--out", type=Path, default=report.RESULTS, help="folder for the result file")
    options = parser.parse_args()
    known = factories(options.cache)
    rows = {name: measure(known[name]()) for name in options.rankers.split(",")}
    full = next(iter(rows.values()))["payload_all"]
    print(
        f"{len(TOOLS)} tools ({len(CORE)} always included), {len(REQUESTS)} requests, {full:,} characters\n"
    )
    cells = [[name, *(_cell(row["by_k"][str(k)]) for k in KS)] for name, row in rows.items()]
    print(report.table(["recall (direct/indirect), payload saved", *(f"K={k}" for k in KS)], cells))
    for name, row in rows.items():
        print(f"\n{name}, not among the first {KS[0]} (rank, if it has one):")
        print("\n".join(f"- {miss} ({rank or 'none'})" for miss, rank in row["ranks"].items()) or "- none")
    content = report.provenance("benchmarks.registry61") | {"rankers": rows}
    print(f"\n`{content['command']}` → {report.save('registry61', content, options.out).name}")


def _cell(row: dict[str, Any]) -> str:
    return (
        f"{row['recall']:.1f} ({row['recall_direct']:.0f}/{row['recall_indirect']:.0f}), "
        f"{row['payload']:,} chars, −{row['saved_percent']:.0f}%"  # noqa: RUF001
    )


if __name__ == "__main__":
    main()
