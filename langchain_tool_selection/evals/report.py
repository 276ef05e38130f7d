"""A report that people look at: one HTML file that needs no network, and its plots as SVG and PNG.

Everything in it that comes from tools or requests is escaped, and the page forbids scripts and connections,
because a description that somebody else wrote must not be able to do anything in a reader's browser.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from langchain_tool_selection.cost import CostEstimate, Exposure, input_cost
from langchain_tool_selection.evals._charts import Chart, Line, round_steps, save_png, save_svg, svg
from langchain_tool_selection.evals._report import Report
from langchain_tool_selection.evals._results import Change, Comparison, in_a_line

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

_PAGE = Template(files(__package__).joinpath("report.html").read_text("utf-8"))


def charts(report: Report, estimate: CostEstimate | None = None) -> dict[str, Chart]:
    """Return the report's plots by name: "recall", and with an estimate "cost"."""
    found = {
        "recall": Chart(
            title="Recall and payload saved, by the number of tools shown",
            x_label="tools shown (k)",
            lines=(
                Line("recall", [(k, at.recall) for k, at in report.curve.items()]),
                Line("all tools found", [(k, at.complete) for k, at in report.curve.items()]),
                Line("payload saved", [(k, at.payload_saved) for k, at in report.curve.items()]),
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
        for suffix, save in ((".svg", save_svg), (".png", save_png)):
            path = Path(folder, name + suffix)
            with suppress(ImportError):
                save(chart, path)
                written.append(path)
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
    drawn = {name: f"<figure>{svg(chart)}</figure>" for name, chart in charts(report, estimate).items()}
    sections = {
        "": _figures(report),
        "How many tools to show": drawn["recall"] + _measures(report),
        "Since the baseline": _comparison(comparison) if comparison else "",
        "By domain": _domains(report),
        "Confusions by domain": _matrix(report.domain_confusions),
        "Who takes whose requests": _confusions(report),
        f"Misses at {report.k}": _misses(report),
        "Heaviest definitions": _heaviest(report),
        "What it costs": drawn["cost"] + _cost(estimate) if estimate else "",
    }
    told = {title and f"<h2>{title}</h2>": inner for title, inner in sections.items() if inner}
    shown = "".join(f"<section>{heading}{inner}</section>\n" for heading, inner in told.items())
    recall = f"{report.recall[report.k]:.1%}"
    return _PAGE.substitute(recall=recall, k=report.k, summary=escape(report.summary), sections=shown)


# -- sections ------------------------------------------------------------------------------------------


def _figures(report: Report) -> str:
    figures = {
        f"recall@{report.k}": f"{report.recall[report.k]:.1%}",
        f"all tools found@{report.k}": f"{report.complete[report.k]:.1%}",
        f"payload saved at top_k={report.top_k}": f"{report.shown.payload_saved:.1%}",
        "mean reciprocal rank": f"{report.mrr:.2f}",
        "µs a search (p50)": f"{report.micros['p50']:,.0f}",
        f"misses at {report.k}": f"{len(report.misses):,}",
    }
    return _wrapped("figures", "".join(f"<div><b>{value}</b>{name}</div>" for name, value in figures.items()))


def _measures(report: Report) -> str:
    return _table(report.table[0], [(k, *vars(at).values()) for k, at in report.measured.items()])


def _comparison(comparison: Comparison) -> str:
    recall = f"recall@{comparison.k} {comparison.recall_before:.1%} → {comparison.recall_after:.1%}"
    said = f"<p>{recall} over {comparison.cases:,} cases that both reports have.</p>"
    return said + _changes("stolen", "by", comparison.stolen) + _changes("won", "from", comparison.won)


def _changes(what: str, who: str, changes: Sequence[Change]) -> str:
    if not changes:
        return f"<p>No case was {what}.</p>"
    return _table((what, "rank", who, "request"), [*map(_change, changes)], _CHANGES)


def _change(change: Change) -> tuple[str, ...]:
    ranks = f"{_rank(change.before)} → {_rank(change.after)}"
    request = _wrapped("request", _request(change.query))
    return _code(change.tool), ranks, _code(change.by), request


def _misses(report: Report) -> str:
    if not report.misses:
        return f"<p>Every tool was among the first {report.k}.</p>"
    shown = [
        f"<details><summary>{_code(miss.tool)} {_rank(miss.rank)} ← {_request(miss.query)}</summary>"
        f"<p>Above it: {', '.join(map(_code, miss.beaten_by)) or 'nothing'}.<br>{escape(miss.why)}</p>"
        f"{_quiet(miss.query) if len(miss.query) > _REQUEST else ''}</details>"
        for miss in report.misses[:_MISSES]
    ]
    return "".join(shown) + _more(len(report.misses), _MISSES)


def _confusions(report: Report) -> str:
    rows = [(_code(row.tool), _code(row.thief), row.times, row.missed) for row in report.confusions]
    return _table(("wanted", "stood above it", "cases", "of these missed"), rows, _CONFUSIONS)


def _domains(report: Report) -> str:
    worst_first = sorted(report.domains, key=lambda row: row.recall)
    rows = [(_domain(row.domain), row.labels, row.recall, _bar(row.recall)) for row in worst_first]
    return _table(("domain", "wanted", f"recall@{report.k}", ""), rows)


def _matrix(pairs: Mapping[tuple[str, str], int]) -> str:
    confused, wanted_in_all = Counter[str](), Counter[str]()
    for (wanted, first), times in pairs.items():
        wanted_in_all[wanted] += times
        confused.update(dict.fromkeys((wanted, first), times if wanted != first else 0))
    if len(confused) < 2:
        return ""
    names = sorted(name for name, _ in confused.most_common(_DOMAINS))
    head = "".join(f'<th class="up">{_domain(name)}</th>' for name in names)
    lines = [f"<tr><th>wanted ↓ first →</th>{head}</tr>"]
    for wanted in names:
        whole, row = wanted_in_all[wanted] or 1, {name: pairs.get((wanted, name), 0) for name in names}
        cells = [_cell(times, 0 if name == wanted else times / whole) for name, times in row.items()]
        lines.append(f"<tr><th>{_domain(wanted)}</th>{''.join(cells)}</tr>")
    said = "How often a tool of the domain above the column stood first where one of the row's was wanted."
    left = f" The {_DOMAINS} most confused of {len(confused)}." if len(confused) > _DOMAINS else ""
    return _quiet(said + left) + _wrapped("wide", f"<table>{''.join(lines)}</table>")


def _cell(times: int, heat: float) -> str:
    shade = f' style="background: rgb(var(--hot) / {heat:.2f})"' if heat else ""
    return f'<td class="m"{shade}>{times or ""}</td>'


def _heaviest(report: Report) -> str:
    most, whole = max((tokens for _, tokens in report.heaviest), default=1), max(1, report.tokens)
    rows = [(_code(name), tokens, tokens / whole, _bar(tokens / most)) for name, tokens in report.heaviest]
    return _table(("tool", "tokens", "of all", ""), rows)


def _cost(estimate: CostEstimate) -> str:
    best = f"<p>Cheapest for these tools: <b>{estimate.recommended}</b>.</p>"
    return _quiet(estimate.assumptions).replace("\n", "<br>") + best


# -- pieces --------------------------------------------------------------------------------------------


def _wrapped(kind: str, inner: str) -> str:
    return f'<div class="{kind}">{inner}</div>'


def _quiet(text: str) -> str:
    return f'<p class="quiet">{escape(text)}</p>'


def _table(head: Sequence[str], rows: Sequence[Sequence[str | float]], limit: int | None = None) -> str:
    """Return a table of headings and of the first rows: of HTML, and of numbers, which stand to the right."""
    if not rows:
        return ""
    kinds = ["" if isinstance(value, str) else ' class="n"' for value in rows[0]]

    def line(tag: str, cells: Iterable[str]) -> str:
        told = (f"<{tag}{kind}>{cell}</{tag}>" for cell, kind in zip(cells, kinds, strict=True))
        return f"<tr>{''.join(told)}</tr>"

    lines = [line("th", map(escape, head)), *(line("td", map(_told, row)) for row in rows[:limit])]
    return _wrapped("wide", f"<table>{''.join(lines)}</table>") + _more(len(rows), limit or len(rows))


def _told(value: str | float) -> str:
    """Return HTML as it is, a count with separators, and a share in percent."""
    if isinstance(value, str):
        return value
    return f"{value:.1%}" if isinstance(value, float) else f"{value:,}"


def _bar(share: float) -> str:
    return f'<div class="bar"><i style="width: {min(1, share):.1%}"></i></div>'


def _code(name: str) -> str:
    parts = map(escape, _PART.split(name))
    return f"<code>{'<wbr>'.join(parts)}</code>" if name else "-"


def _request(query: str) -> str:
    return escape(in_a_line(query, _REQUEST))


def _domain(name: str) -> str:
    return escape(name) or "<i>none</i>"


def _rank(rank: int | None) -> str:
    return f"#{rank}" if rank else "not found"


def _more(number: int, limit: int) -> str:
    return _quiet(f"and {number - limit:,} more") if number > limit else ""
