"""Recall, completeness, reciprocal rank and timings of rankings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

from benchmarks.datasets import Case

KS = (1, 3, 5, 10, 15, 20, 30)
"""Cut-offs that are reported; rankings are asked for the largest."""

DEPTH = max(KS)


def found(case: Case, ranking: Sequence[str], k: int) -> list[bool]:
    """Tell for each relevant tool whether it or one of its alternatives is among the first `k`."""
    top = set(ranking[:k])
    return [name in top or not top.isdisjoint(case.alternatives.get(name, ())) for name in case.relevant]


def reciprocal_rank(case: Case, ranking: Sequence[str]) -> float:
    """Return 1 / rank of the first relevant tool or alternative; 0 if there is none."""
    wanted = set(case.relevant).union(*case.alternatives.values())
    return next((1 / rank for rank, name in enumerate(ranking, 1) if name in wanted), 0.0)


def measures(cases: Sequence[Case], rankings: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return recall@k and completeness@k in percent, and the mean reciprocal rank, over all cases."""
    pairs = list(zip(cases, rankings, strict=True))
    hits = {k: [found(case, ranking, k) for case, ranking in pairs] for k in KS}
    return {
        "recall": {str(k): percent(fmean(row) for row in rows) for k, rows in hits.items()},
        "complete": {str(k): percent(all(row) for row in rows) for k, rows in hits.items()},
        "mrr": round(fmean(reciprocal_rank(case, ranking) for case, ranking in pairs), 4),
    }


def percent(values: Iterable[float]) -> float:
    """Return the mean as a percentage with two decimals."""
    return round(100 * fmean(values), 2)


def timings(seconds: Sequence[float]) -> dict[str, float]:
    """Return median and 99th percentile in microseconds."""
    ordered = sorted(seconds)
    return {
        "p50_us": round(1e6 * ordered[len(ordered) // 2], 1),
        "p99_us": round(1e6 * ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))], 1),
    }
