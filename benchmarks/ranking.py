"""`python -m benchmarks.ranking --data DIR`: every ranker over every set, in one run.

Three parts: rankers of this repository and baselines over all requests; with `--peers-env`, other
packages' rankers over a sample of the requests, next to the default ranker on the same sample and without
history, which the peers do not read; with `--ablation`, the default ranker with one ingredient off at a
time.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.ablation import ablate
from benchmarks.datasets import Dataset, read_datasets
from benchmarks.metrics import DEPTH, KS
from benchmarks.peers.runner import PEERS, PeerError, installed_version, measure_peer
from benchmarks.rankers import factories, macro, measure

DEFAULT_RANKERS = (
    "lexical", "lexical_hist", "lexical_score", "wordllama_hybrid_hist", "minilm_hybrid_hist",
    "bm25s", "bm25s_full", "rank_bm25",
)  # fmt: skip
"""Rankers of the first part unless `--rankers` says otherwise."""

BESIDE_PEERS = ("lexical", "lexical_score", "bm25s", "bm25s_full", "rank_bm25")
"""What the peers are compared with: rankers that read the newest message and need no model."""

Rows = dict[str, dict[str, dict[str, Any]]]
"""Measures by ranker and set; `{"error": reason}` where there are none."""


def run(rankers: list[str], datasets: list[Dataset], cache: Path | None) -> Rows:
    """Measure rankers over sets."""
    known = factories(cache)
    rows: Rows = {}
    for name in rankers:
        _say(name)
        try:
            make = known[name]()
        except ImportError as error:
            rows[name] = {data.name: {"error": str(error)} for data in datasets}
            continue
        rows[name] = {data.name: measure(make, data) for data in datasets}
    return rows


def run_peers(environments: Path, datasets: list[Dataset], timeout: float) -> Rows:
    """Measure every peer over sets; what cannot run keeps its reason."""
    rows: Rows = {}
    for peer in PEERS:
        rows[peer] = {}
        for data in datasets:
            _say(f"{peer}: {data.name}")
            try:
                rows[peer][data.name] = measure_peer(environments, peer, data, timeout)
            except PeerError as error:
                rows[peer][data.name] = {"error": str(error)}
    return rows


def recall_table(rows: Rows, names: list[str]) -> str:
    """Return recall@1/5/10 of each ranker on each set, and the average over the sets that it ranked."""
    lines = []
    for ranker, by_set in rows.items():
        measured = [by_set[name] for name in names if "recall" in by_set[name]]
        cells = [report.recalls(by_set[name]) if "recall" in by_set[name] else "n/a" for name in names]
        average = report.recalls(macro(measured)) if measured else "n/a"
        note = "" if len(measured) == len(names) else f" ({len(measured)} of {len(names)} sets)"
        lines.append([ranker, *cells, average + note])
    return report.table(["R@1 / 5 / 10", *names, "average"], lines)


def macro_table(rows: Rows, names: list[str]) -> str:
    """Return averages over sets: recall at every cut-off, completeness, reciprocal rank and time."""
    lines = []
    for ranker, by_set in rows.items():
        measured = [by_set[name] for name in names if "recall" in by_set[name]]
        if measured:
            mean = macro(measured)
            times = [
                f"{sum(row[key] for row in measured) / len(measured):.0f}" for key in ("p50_us", "p99_us")
            ]
            lines.append(
                [
                    ranker,
                    *(f"{mean['recall'][str(k)]:.1f}" for k in KS),
                    f"{mean['complete']['10']:.1f}",
                    f"{mean['mrr']:.3f}",
                    *times,
                    f"{sum(row['build_ms'] for row in measured) / len(measured):.1f}",
                ]
            )
    header = [*(f"R@{k}" for k in KS), "all@10", "MRR", "µs p50", "µs p99", "build ms"]
    return report.table(["ranker", *header], lines)


def errors(rows: Rows) -> list[str]:
    """Return a line for everything that could not be measured."""
    return [
        f"- {ranker} on {name}: {row['error']}"
        for ranker, by_set in rows.items()
        for name, row in by_set.items()
        if "error" in row
    ]


def show(title: str, rows: Rows, names: list[str]) -> None:
    """Print a part's tables."""
    parts = [f"\n## {title}\n", recall_table(rows, names), "", macro_table(rows, names)]
    print("\n".join([*parts, *errors(rows)]), flush=True)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranking", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of sets; see benchmarks/README.md")
    parser.add_argument("--sets", default="", help="sets to use, separated by commas (default: all)")
    parser.add_argument(
        "--rankers",
        default=",".join(DEFAULT_RANKERS),
        help=f"separated by commas, of: {', '.join(factories(None))}; 'none' for none",
    )
    parser.add_argument("--limit", type=int, help="requests of each set to use (default: all)")
    parser.add_argument("--peers-env", type=Path, help="folder made by python -m benchmarks.peers")
    parser.add_argument("--sample", type=int, default=200, help="requests of each set for the peers")
    parser.add_argument("--timeout", type=float, default=300, help="seconds a peer may take for a set")
    parser.add_argument("--ablation", action="store_true", help="also switch ingredients off")
    parser.add_argument("--cache", type=Path, help="folder for an encoder's vectors")
    parser.add_argument("--out", type=Path, default=report.RESULTS, help="folder for the result file")
    return parser.parse_args()


def main() -> None:
    """Run what the command line asks for, print tables and write one result file."""
    options = arguments()
    datasets = read_datasets(options.data, [s for s in options.sets.split(",") if s], options.limit)
    names = [data.name for data in datasets]
    content = report.provenance("benchmarks.ranking") | {
        "settings": {"limit": options.limit, "sample": options.sample, "depth": DEPTH},
        "sets": {
            data.name: {"tools": len(data.tools), "requests": len(data.cases), "digest": data.digest()}
            for data in datasets
        },
    }
    rankers = [name for name in options.rankers.split(",") if name not in ("", "none")]
    if rankers:
        content["rankers"] = run(rankers, datasets, options.cache)
        show("Rankers, all requests", content["rankers"], names)
    if options.peers_env:
        content["peers"] = _with_peers(options, datasets)
        show(f"Peers, {options.sample} requests of each set, no history", content["peers"], names)
        content["peer_versions"] = {peer: installed_version(options.peers_env, peer) for peer in PEERS}
    if options.ablation:
        content["ablation"] = ablate(datasets, _say)
        show("Default ranker, one ingredient off at a time", content["ablation"], names)
    print(f"\n`{content['command']}` → {report.save('ranking', content, options.out).name}")


def _with_peers(options: argparse.Namespace, datasets: list[Dataset]) -> Rows:
    sampled = [data.sample(options.sample) for data in datasets]
    ours = run(list(BESIDE_PEERS), sampled, options.cache)
    return ours | run_peers(options.peers_env, sampled, options.timeout)


def _say(text: str) -> None:
    print(f"… {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
