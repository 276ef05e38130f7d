"""`Report`: what `evaluate` found, as text, as HTML in a notebook, and as JSON to compare it with later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from langchain_tool_selection._ground.settings import check_count
from langchain_tool_selection.evals import _results
from langchain_tool_selection.evals._files import FileError, kind_of, parse_json, read_text

_MISSES = 5
"""Misses that are printed in a terminal."""

_MISSES_IN_HTML = 10

_VERSION = 1
"""Of the form that `to_dict` writes."""


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What is the same in a report and in its JSON.

    Attributes:
        tools: How many there are.
        cases: How many there are.
        recall: Recall at each k that was asked for, in increasing order.
        complete: Completeness at each of them.
        mrr: Mean reciprocal rank.
        payload_saved: The share of all definitions that is not sent, at each of them.
        micros: Median and 99th percentile of a search, in microseconds, as "p50" and "p99"; 0 where a
            stored baseline has none.
        misses: At the largest k, in the order of the cases.
        generated: How many of the cases a model proposed and nobody has marked as seen.
        ranker: What ranked.
        history: Whether earlier messages were part of a query.
        tokens: About how many tokens all definitions take.
        confusions: The most costly first: by `missed`, then by `times`.
        results: One for each case, in their order.
        shown: What is measured at `top_k`.
        curve: Measures at every k that was asked for, at `top_k`, and at some more for a drawing.
    """

    tools: int
    cases: int
    recall: Mapping[int, float]
    complete: Mapping[int, float]
    mrr: float
    payload_saved: Mapping[int, float]
    micros: Mapping[str, float] = field(default_factory=lambda: {"p50": 0.0, "p99": 0.0})
    misses: tuple[_results.Miss, ...]
    generated: int
    ranker: str
    history: bool
    tokens: int
    confusions: tuple[_results.Confusion, ...]
    results: tuple[_results.CaseResult, ...]
    shown: _results.Shown
    curve: Mapping[int, _results.Shares]


@dataclass(frozen=True, repr=False, kw_only=True)
class Report(_Found):
    """What `evaluate` found.

    Attributes:
        domains: By name; empty if no tool has a domain.
        domain_confusions: How often a tool of the second domain stood first where one of the first was
            wanted. The two are the same where it was the right tool, or one of its own domain.
        heaviest: The ten tools of the most tokens, with these.
    """

    domains: tuple[_results.DomainRecall, ...]
    domain_confusions: Mapping[tuple[str, str], int]
    heaviest: tuple[tuple[str, int], ...]

    @property
    def k(self) -> int:
        """The largest k that was asked for: at it, misses are counted."""
        return max(self.recall)

    @property
    def top_k(self) -> int:
        """How many tools the middleware would show."""
        return self.shown.top_k

    @property
    def thieves(self) -> dict[str, dict[str, int]]:
        """For each tool that was outranked, the tools that took its requests, with how many."""
        thieves: dict[str, dict[str, int]] = {}
        for confusion in self.confusions:
            thieves.setdefault(confusion.tool, {})[confusion.thief] = confusion.times
        return thieves

    @property
    def measured(self) -> dict[int, _results.Shares]:
        """The measures at each k that was asked for, and at `top_k`."""
        return {k: self.at(k) for k in sorted({*self.recall, self.top_k})}

    def at(self, k: int) -> _results.Shares:
        """Return the measures at one k.

        Raises:
            KeyError: it was not measured.
        """
        return self.curve[k]

    def compare(self, old: Report, *, k: int | None = None) -> _results.Comparison:
        """Return what changed since an older report, case by case.

        Args:
            old: The report of the catalogue, ranker or cases before.
            k: A case is lost if a tool of it is no longer among so many. By default the largest k of both.

        Raises:
            ValueError: the reports have no k in common, and none is given.
        """
        ks, old_ks = [*self.recall], [*old.recall]
        if k is None and not (common := {*ks} & {*old_ks}):
            raise ValueError(f"the reports have no k in common: {ks} and {old_ks}; pass k=")
        at = max(common) if k is None else k
        check_count("k", at, at_least=1)
        return _results.compare(old.results, self.results, at)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values; shares rounded to four decimals."""
        in_json = {
            "version": _VERSION,
            "domains": {row.domain: {"recall": row.recall, "labels": row.labels} for row in self.domains},
            "domain_confusions": [(*pair, times) for pair, times in self.domain_confusions.items()],
            "heaviest": dict(self.heaviest),
        }
        return {key: _results.json_values(value) for key, value in {**vars(self), **in_json}.items()}

    @classmethod
    def from_dict(cls, values: Any) -> Report:
        """Return the report of what `to_dict` returned; other keys are ignored.

        Raises:
            FileError: it is something else, or of another version.
        """
        no_report = "no report of `tool-selection eval --json`"
        if not isinstance(values, dict) or "results" not in values:
            what = "it has no 'results'" if isinstance(values, dict) else f"it is {kind_of(values)}"
            raise FileError(no_report, what)
        if (version := values.get("version")) != _VERSION:
            raise FileError(f"a report of version {version!r}, and this reads {_VERSION}; make it anew")
        try:
            stored = TypeAdapter(_Stored).validate_python(values)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"]))
            raise FileError(no_report, f"field {key!r}", " ".join(first["msg"].split())) from error
        return stored.report()

    def __repr__(self) -> str:
        """In a line: what an assertion that failed shows."""
        recalls = ", ".join(f"recall@{k}={value:.3f}" for k, value in self.recall.items())
        return f"Report({self.tools} tools, {self.cases} cases, {recalls}, {len(self.misses)} misses)"

    def __str__(self) -> str:
        """For people: the measures, and the first of the misses."""
        lines = [self.summary, ""]
        lines += ["    ".join(f"{cell:>9}" for cell in row) for row in self.table]
        if self.misses:
            lines += ["", f"{len(self.misses)} misses at {self.k}:"]
            lines += [f"  {_line(miss)}" for miss in self.misses[:_MISSES]]
        return "\n".join(lines)

    @property
    def summary(self) -> str:
        """For people: what was measured, in one line."""
        made = f" ({self.generated} of them generated, not reviewed)" if self.generated else ""
        said = "with" if self.history else "without"
        return (
            f"{self.tools:,} tools of {self.tokens:,} tokens, {self.cases:,} cases{made} {said} history, "
            f"ranked by {self.ranker}"
        )

    @property
    def table(self) -> list[tuple[str, ...]]:
        """For people: headings, then a row of text for each k that was asked for, and for `top_k`."""
        rows = [(str(k), *(f"{share:.1%}" for share in vars(at).values())) for k, at in self.measured.items()]
        return [("k", "recall", "complete", "saved"), *rows]

    def _repr_html_(self) -> str:
        cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in self.table)
        rows = "".join(f"<tr>{row}</tr>" for row in cells)
        missed = "".join(f"<li>{escape(_line(miss))}</li>" for miss in self.misses[:_MISSES_IN_HTML])
        misses = f"<p>{len(self.misses)} misses at {self.k}</p><ul>{missed}</ul>" if missed else ""
        return f"<p>{escape(self.summary)}</p><table>{rows}</table>{misses}"


# -- as JSON values ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _StoredDomain:
    recall: float
    labels: int


@dataclass(frozen=True, kw_only=True)
class _Stored(_Found):
    """A report in the form that `to_dict` writes. Other keys are ignored."""

    domains: dict[str, _StoredDomain]
    domain_confusions: tuple[tuple[str, str, int], ...]
    heaviest: dict[str, int]

    def report(self) -> Report:
        """Return the report."""
        in_python = {
            "domains": tuple(_results.DomainRecall(name, **vars(row)) for name, row in self.domains.items()),
            "domain_confusions": {(of, by): times for of, by, times in self.domain_confusions},
            "heaviest": tuple(self.heaviest.items()),
        }
        return Report(**{**vars(self), **in_python})


def load_report(path: Path) -> Report:
    """Return a report that is stored as JSON.

    Raises:
        FileError: it cannot be read, or is none.
    """
    values = parse_json(str(path), read_text(str(path)))
    try:
        return Report.from_dict(values)
    except FileError as error:
        raise FileError(str(path), str(error)) from error


def _line(miss: _results.Miss) -> str:
    behind = _results.listed(miss.beaten_by[:3]) or "none"
    return f"{miss.tool}: {miss.place}, behind {behind} <- {_results.in_a_line(miss.query)}"
