"""A report that people look at: one HTML file that needs no network, and its plots as SVG and PNG.

Everything in it that comes from tools or requests is escaped, and the page forbids scripts and connections,
because a description that somebody else wrote must not be able to do anything in a reader's browser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from langchain_tool_selection.cost import CostEstimate, Exposure, input_cost
from langchain_tool_selection.evals._charts import Chart, Line, round_steps, save_png, save_svg, svg
from langchain_tool_selection.evals.run import Change, Comparison, Report

_MISSES = 100
_CONFUSIONS = 25
_CHANGES = 100
_DOMAINS = 12
"""So many domains fit into a matrix; the most confused ones."""

_REQUEST = 120
"""Characters of a request in a line."""

_PART = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[_./-])")
"""Where a name may go on in the next line, so that two of them fit beside each other on a phone."""

_DRAWN: tuple[Exposure, ...] = ("everything", "per_turn", "grow", "append")
"""Ways of showing tools that are drawn: "proxy" lies on "append", and the others are no way to work."""

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --hot: 213 94 0; --good: #0072b2; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; }
p { margin: .3rem 0 .8rem; } .quiet { opacity: .7; font-size: .9rem; }
.figures { margin: 1rem 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .6rem; }
.figures div { border: 1px solid var(--line); border-radius: .5rem; padding: .5rem .7rem; }
.figures b { display: block; font-size: 1.5rem; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .6rem .25rem 0; }
th, td { text-align: left; vertical-align: top; }
td.n, th.n { text-align: right; } td.m { text-align: center; padding: .25rem .5rem; }
th.up { writing-mode: vertical-rl; padding: .3rem; }
th:first-child { background: Canvas; left: 0; position: sticky; }
code { font-size: .9em; } p, summary { overflow-wrap: anywhere; }
.request { min-width: 14rem; }
.bar { background: var(--line); border-radius: 3px; height: .7rem; min-width: 6rem; margin-top: .45rem; }
@media (max-width: 40rem) { .request { min-width: 8rem; } .bar { min-width: 2.5rem; } }
.bar i { background: var(--good); border-radius: 3px; display: block; height: 100%; }
details { border-bottom: 1px solid var(--line); padding: .4rem 0; } summary { cursor: pointer; }
figure { margin: 0; max-width: 40rem; } svg { height: auto; width: 100%; }
"""


def charts(report: Report, estimate: CostEstimate | None = None) -> dict[str, Chart]:
    """Return the report's plots by name: "recall", and with an estimate "cost"."""
    found = {
        "recall": Chart(
            title="Recall and payload saved, by the number of tools shown",
            x_label="tools shown (k)",
            lines=(
                Line("recall", [(at.k, at.recall) for at in report.curve]),
                Line("all tools found", [(at.k, at.complete) for at in report.curve]),
                Line("payload saved", [(at.k, at.payload_saved) for at in report.curve]),
            ),
            percent=True,
            mark=(report.top_k, f"top_k={report.top_k}"),
        )
    }
    if estimate:
        most = round_steps(2 * max(estimate.catalog, estimate.workload.shown, 10_000))[-1]
        shown = estimate.workload.shown  # from it on, tools are hidden
        steps = sorted([most * step / 40 for step in range(41)] + [shown, shown + 1])
        found["cost"] = Chart(
            title="Input of a thread in uncached tokens, by the tokens of all tools",
            x_label="tokens of all tools",
            lines=tuple(
                Line(way, [(x, input_cost(way, x, estimate.workload, estimate.prices)) for x in steps])
                for way in _DRAWN
            ),
            mark=(estimate.catalog, "these tools"),
        )
    return found


def save_plots(report: Report, folder: str | Path, *, estimate: CostEstimate | None = None) -> list[Path]:
    """Write the plots as SVG and, where matplotlib is installed, as PNG files, and return their paths."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    written = []
    for name, chart in charts(report, estimate).items():
        path = Path(folder) / f"{name}.svg"
        save_svg(chart, path)
        written.append(path)
        try:
            save_png(chart, path.with_suffix(".png"))
        except ImportError:
            continue
        written.append(path.with_suffix(".png"))
    return written


def save_html(
    report: Report,
    path: str | Path,
    *,
    estimate: CostEstimate | None = None,
    comparison: Comparison | None = None,
) -> None:
    """Write a report as one HTML file. Replaces a file."""
    page = render_html(report, estimate=estimate, comparison=comparison)
    Path(path).write_text(page, encoding="utf-8", newline="\n")


def render_html(
    report: Report, *, estimate: CostEstimate | None = None, comparison: Comparison | None = None
) -> str:
    """Return a report as a page of HTML that loads nothing and runs nothing.

    Args:
        report: What was measured.
        estimate: What the same tools cost, to draw it beside.
        comparison: What changed since an older report, to list it.
    """
    plots = charts(report, estimate)
    sections = [
        _figures(report),
        _section("How many tools to show", f"<figure>{svg(plots['recall'])}</figure>", _measures(report)),
        _comparison(comparison) if comparison else "",
        _domains(report),
        _matrix(report.domain_confusions),
        _confusions(report),
        _misses(report),
        _heaviest(report),
        _cost(estimate, plots["cost"]) if estimate else "",
    ]
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Tool selection: {report.recall[report.k]:.1%} recall@{report.k}</title>"
        f"<style>{_STYLE}</style></head><body>\n<h1>Tool selection report</h1>\n"
        f'<p class="quiet">{escape(report.summary)}</p>\n{"".join(filter(None, sections))}</body></html>\n'
    )


# -- sections ------------------------------------------------------------------------------------------


def _figures(report: Report) -> str:
    shown = report.at(report.top_k)
    figures = {
        f"recall@{report.k}": f"{report.recall[report.k]:.1%}",
        f"all tools found@{report.k}": f"{report.complete[report.k]:.1%}",
        f"payload saved at top_k={report.top_k}": f"{shown.payload_saved:.1%}",
        "mean reciprocal rank": f"{report.mrr:.2f}",
        "µs a search (p50)": f"{report.micros['p50']:,.0f}",
        f"misses at {report.k}": f"{len(report.misses):,}",
    }
    return _wrapped("figures", "".join(f"<div><b>{value}</b>{name}</div>" for name, value in figures.items()))


def _measures(report: Report) -> str:
    (head, *rows) = report.table
    return _table(head, [[escape(cell) for cell in row] for row in rows], numbers=range(len(head)))


def _comparison(comparison: Comparison) -> str:
    recall = f"recall@{comparison.k} {comparison.recall_before:.1%} → {comparison.recall_after:.1%}"
    said = f"<p>{recall} over {comparison.cases:,} cases that both reports have.</p>"
    parts = [_changes("stolen", "by", comparison.stolen), _changes("won", "from", comparison.won)]
    return _section("Since the baseline", said, *parts)


def _changes(what: str, who: str, changes: Sequence[Change]) -> str:
    if not changes:
        return f"<p>No case was {what}.</p>"
    rows = [
        [
            _code(change.tool),
            f"{_rank(change.before)} → {_rank(change.after)}",
            _code(change.by),
            _wrapped("request", _request(change.query)),
        ]
        for change in changes[:_CHANGES]
    ]
    return _table([what, "rank", who, "request"], rows) + _more(len(changes), _CHANGES)


def _misses(report: Report) -> str:
    if not report.misses:
        return _section("Misses", f"<p>Every tool was among the first {report.k}.</p>")
    shown = [
        f"<details><summary>{_code(miss.tool)} {_rank(miss.rank)} ← {_request(miss.query)}</summary>"
        f"<p>Above it: {', '.join(map(_code, miss.beaten_by)) or 'nothing'}.<br>{escape(miss.why)}</p>"
        f"{_whole(miss.query)}</details>"
        for miss in report.misses[:_MISSES]
    ]
    return _section(f"Misses at {report.k}", *shown, _more(len(report.misses), _MISSES))


def _confusions(report: Report) -> str:
    if not report.confusions:
        return ""
    rows = [
        [_code(row.tool), _code(row.thief), str(row.times), str(row.missed)]
        for row in report.confusions[:_CONFUSIONS]
    ]
    head = ["wanted", "stood above it", "cases", "of these missed"]
    table = _table(head, rows, numbers=(2, 3)) + _more(len(report.confusions), _CONFUSIONS)
    return _section("Who takes whose requests", table)


def _domains(report: Report) -> str:
    if not report.domains:
        return ""
    rows = [
        [_domain(row.domain), f"{row.labels:,}", f"{row.recall:.1%}", _bar(row.recall)]
        for row in sorted(report.domains, key=lambda row: row.recall)
    ]
    return _section("By domain", _table(["domain", "wanted", f"recall@{report.k}", ""], rows, numbers=(1, 2)))


def _matrix(pairs: Mapping[tuple[str, str], int]) -> str:
    confused: dict[str, int] = {}
    for (wanted, first), times in pairs.items():
        for domain in {wanted, first}:
            confused[domain] = confused.get(domain, 0) + (times if wanted != first else 0)
    names = sorted(sorted(confused, key=lambda name: -confused[name])[:_DOMAINS])
    if len(confused) < 2:
        return ""
    head = "".join(f'<th class="up">{_domain(name)}</th>' for name in names)
    lines = [f"<tr><th>wanted ↓ first →</th>{head}</tr>"]
    for wanted in names:
        whole = sum(times for (of, _), times in pairs.items() if of == wanted) or 1
        cells = "".join(_cell(pairs.get((wanted, first), 0), whole, wanted == first) for first in names)
        lines.append(f"<tr><th>{_domain(wanted)}</th>{cells}</tr>")
    table = _wrapped("wide", f"<table>{''.join(lines)}</table>")
    said = "How often a tool of the domain above the column stood first where one of the row's was wanted."
    left = f" The {_DOMAINS} most confused of {len(confused)}." if len(confused) > _DOMAINS else ""
    return _section("Confusions by domain", f'<p class="quiet">{said}{left}</p>', table)


def _cell(times: int, whole: int, own: bool) -> str:
    shade = f' style="background: rgb(var(--hot) / {min(1, times / whole):.2f})"' if times and not own else ""
    return f'<td class="m"{shade}>{times or ""}</td>'


def _heaviest(report: Report) -> str:
    most = max((tokens for _, tokens in report.heaviest), default=1)
    rows = [
        [_code(name), f"{tokens:,}", f"{tokens / max(1, report.tokens):.1%}", _bar(tokens / most)]
        for name, tokens in report.heaviest
    ]
    return _section("Heaviest definitions", _table(["tool", "tokens", "of all", ""], rows, numbers=(1, 2)))


def _cost(estimate: CostEstimate, chart: Chart) -> str:
    said = "<br>".join(escape(line) for line in estimate.assumptions.splitlines())
    best = f"<p>Cheapest for these tools: <b>{estimate.recommended}</b>.</p>"
    return _section("What it costs", f"<figure>{svg(chart)}</figure>", f'<p class="quiet">{said}</p>', best)


# -- pieces --------------------------------------------------------------------------------------------


def _section(title: str, *parts: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>\n"


def _wrapped(kind: str, inner: str) -> str:
    return f'<div class="{kind}">{inner}</div>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> str:
    """Return a table of headings, which are escaped, and of cells, which are HTML."""
    right = set(numbers)
    kind = [' class="n"' if place in right else "" for place in range(len(head))]
    titles = "".join(f"<th{kind[place]}>{escape(title)}</th>" for place, title in enumerate(head))
    lines = ["".join(f"<td{kind[place]}>{cell}</td>" for place, cell in enumerate(cells)) for cells in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return _wrapped("wide", f"<table><tr>{titles}</tr>{body}</table>")


def _bar(share: float) -> str:
    return f'<div class="bar"><i style="width: {min(1, share):.1%}"></i></div>'


def _code(name: str) -> str:
    parts = map(escape, _PART.split(name))
    return f"<code>{'<wbr>'.join(parts)}</code>" if name else "-"


def _request(query: str) -> str:
    line = " ".join(query.split())
    return escape(line if len(line) <= _REQUEST else f"{line[: _REQUEST - 1]}…")


def _whole(query: str) -> str:
    return f'<p class="quiet">{escape(query)}</p>' if len(query) > _REQUEST else ""


def _domain(name: str) -> str:
    return escape(name) or "<i>none</i>"


def _rank(rank: int | None) -> str:
    return f"#{rank}" if rank else "not found"


def _more(count: int, limit: int) -> str:
    return f'<p class="quiet">and {count - limit:,} more</p>' if count > limit else ""
