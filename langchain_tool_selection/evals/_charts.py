"""Line charts: as SVG without any package, and as PNG with matplotlib from the same description."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import cycle
from math import ceil, floor, log10
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

_WIDTH, _HEIGHT = 480, 330
"""In SVG units. Narrow, so that text stays legible where the whole is as wide as a phone."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 16, 70, 42
"""Margins. At the top are the title and two lines of labels."""

# Told apart without colour too, by their dashes. Okabe and Ito's palette, for people who see few colours.
_STYLES = {"#0072b2": "", "#d55e00": "7 4", "#009e73": "2 4", "#cc79a7": "10 3 2 3", "#e69f00": "1 0"}

_SVG = Template(files(__package__).joinpath("chart.svg").read_text("utf-8").strip())


class Line(NamedTuple):
    """A line through points, in the order of x."""

    label: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Chart:
    """A chart of lines over a common x, both axes from 0.

    Attributes:
        title: What it shows; also what a screen reader says.
        x_label: What x is.
        lines: Up to five.
        percent: Whether y is a share, shown as 0 % to 100 %.
        mark: An x to point out, with what it is.
    """

    title: str
    x_label: str
    lines: tuple[Line, ...]
    percent: bool = False
    mark: tuple[float, str] | None = None


def svg(chart: Chart, ground: str = "") -> str:
    """Return a chart as an SVG element that is as wide as what it stands in.

    Args:
        chart: The chart.
        ground: An element to draw it on.
    """
    x_ticks, y_ticks = _ticks(chart)
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM

    def to_x(value: float) -> float:
        return _LEFT + (right - _LEFT) * value / x_ticks[-1]

    def to_y(value: float) -> float:
        return bottom - (bottom - _TOP) * value / y_ticks[-1]

    x_labels = [_text(to_x(value), bottom + 18, _label(value)) for value in x_ticks]
    y_labels = [_text(_LEFT - 6, to_y(value) + 5, _label(value, chart.percent)) for value in y_ticks]
    lines, mark = [], ""
    if chart.mark:
        at, what = to_x(chart.mark[0]), chart.mark[1]
        mark = _segment(at, _TOP, at, bottom)
        place, anchor = (at - 4, "end") if at > _WIDTH * 0.7 else (at + 4, "start")
        lines.append(f'<g text-anchor="{anchor}">{_text(place, bottom - 6, what)}</g>')
    for number, (line, (colour, dashes)) in enumerate(zip(chart.lines, cycle(_STYLES.items()), strict=False)):
        points = " ".join(f"{to_x(x):.1f},{to_y(y):.1f}" for x, y in line.points)
        x, y = number % 3 * 160, 38 + number // 3 * 19
        drawn = f'<polyline points="{points}"/>{_segment(x, y - 5, x + 26, y - 5)}'
        style = f'fill="none" stroke="{colour}" stroke-width="2.5" stroke-dasharray="{dashes}"'
        lines.append(f"<g {style}>{drawn}</g>{_text(x + 32, y, line.label)}")
    return _SVG.substitute(
        width=_WIDTH,
        height=_HEIGHT,
        title=escape(chart.title),
        ground=ground,
        grid="".join(_segment(_LEFT, to_y(value), right, to_y(value)) for value in y_ticks),
        x_labels="".join([*x_labels, _text((_LEFT + right) / 2, _HEIGHT - 6, chart.x_label)]),
        y_labels="".join(y_labels),
        mark=mark,
        lines="".join(lines),
    )


def save_svg(chart: Chart, path: Path) -> None:
    """Write a chart as an SVG file with a white ground, which reads on any page."""
    ground = f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>'
    path.write_text(f"{svg(chart, ground)}\n", encoding="utf-8", newline="\n")


def save_png(chart: Chart, path: Path) -> None:
    """Write a chart as a PNG file.

    Raises:
        ImportError: matplotlib is not installed.
    """
    # Without pyplot, which would look for a display.
    from matplotlib.figure import Figure  # noqa: PLC0415  # optional

    figure = Figure(figsize=(_WIDTH / 75, _HEIGHT / 75), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    for line, (colour, dashes) in zip(chart.lines, cycle(_STYLES.items()), strict=False):
        pattern = tuple(float(length) / 2 for length in dashes.split())
        style: Any = (0, pattern) if pattern else "solid"
        axes.plot(*zip(*line.points, strict=True), label=line.label, color=colour, linestyle=style)
    if chart.mark:
        axes.axvline(chart.mark[0], color="0.5", linestyle=":")
        axes.annotate(chart.mark[1], (chart.mark[0], 0.02), xycoords=("data", "axes fraction"))
    x_ticks, y_ticks = _ticks(chart)
    axes.set(title=chart.title, xlabel=chart.x_label, xlim=(0, x_ticks[-1]), ylim=(0, y_ticks[-1] * 1.02))
    axes.set_yticks(y_ticks, [_label(value, chart.percent) for value in y_ticks])
    axes.set_xticks(x_ticks, [_label(value) for value in x_ticks])
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path)


def _ticks(chart: Chart) -> tuple[list[float], list[float]]:
    points = [point for line in chart.lines for point in line.points]
    y_ticks = [0, 0.25, 0.5, 0.75, 1] if chart.percent else round_steps(max(y for _, y in points))
    return round_steps(max(x for x, _ in points)), y_ticks


def round_steps(highest: float) -> list[float]:
    """Return about five round numbers from 0 to the first one that is not below `highest`."""
    rough = max(highest, 1) / 5
    size = 10 ** floor(log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough)
    step = max(1, step)
    return [step * count for count in range(ceil(max(highest, 1) / step) + 1)]


def _label(value: float, percent: bool = False) -> str:
    if percent:
        return f"{value:.0%}"
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


def _segment(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'
