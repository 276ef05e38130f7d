"""`python -m benchmarks.multiturn_figure RESULT`: the figure in the README, from a result of `multiturn`.

Needs matplotlib. The background is opaque, so that the same picture reads on a dark page; text is set for the
width of a phone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt

from benchmarks import report

COLOURS = {
    "everything": "#57606a",
    "LLMToolSelector": "#b35900",
    "per-call top-k": "#a40e26",
    "per_turn": "#8250df",
    "grow": "#0969da",
    "append": "#116329",
    "proxy": "#1b7c83",
    "stubs": "#7d4e00",
}
"""One line each; all have a contrast of more than 4.5 to 1 on white. The other forms of append lie on it."""

OURS = {"per_turn", "grow", "append", "proxy", "stubs"}

_PANEL_TITLES = {
    "arcade": "Arcade: one tool a request",
    "livemcpbench": "LiveMCPBench: several tools a request",
}


def draw(content: dict[str, Any], profile: str, path: Path) -> None:
    """Write the figure: a panel for each set, cost over tools in the catalogue, one line for each way."""
    mpl.rcParams.update(
        {"svg.hashsalt": "multiturn", "svg.fonttype": "path", "font.size": 13, "font.family": "DejaVu Sans"}
    )
    sets = content["sets"]
    figure, panels = plt.subplots(len(sets), 1, figsize=(6.6, 4.7 * len(sets)), squeeze=False)
    for panel, (name, sizes) in zip(panels[:, 0], sets.items(), strict=True):
        _panel(panel, sizes, profile)
        panel.set_title(_PANEL_TITLES.get(name, name), loc="left", fontsize=14, fontweight="bold")
    panels[-1, 0].set_xlabel("tools in the catalogue")
    read, write = content["settings"]["prices"][profile]
    figure.text(
        0.02,
        0.995,
        f"Input cost of {content['settings']['turns']} turns, in thousands of uncached tokens\n"
        f"(cached read {read:g}, write {write:g}). In brackets: requests whose tools\n"
        "were all in reach of a model that never picks a wrong one.",
        va="top",
        fontsize=12,
    )
    figure.tight_layout(rect=(0, 0, 1, 0.93))
    figure.savefig(path, format="svg", facecolor="white", metadata={"Date": None, "Creator": None})


def _panel(panel: Any, sizes: Sequence[dict[str, Any]], profile: str) -> None:
    tools = [row["tools"] for row in sizes]
    ends, top = [], 0.0
    for name, colour in COLOURS.items():
        costs = [row["strategies"][name]["cost_k"][profile] for row in sizes]
        ours = name in OURS
        panel.plot(
            tools, costs, color=colour, marker="o", markersize=5,
            linewidth=2.6 if ours else 1.6, linestyle="-" if ours else "--",
        )  # fmt: skip
        reach = sizes[-1]["strategies"][name]["tasks_percent"]
        ends.append((costs[-1], f"{name} {costs[-1]:.0f} ({reach:.0f} %)", colour))
        top = max(top, *costs)
    top *= 1.05
    panel.set(ylim=(0, top), xticks=tools)
    panel.set_xlim(0, tools[-1] * 1.01)
    panel.grid(axis="y", color="#d0d7de", linewidth=0.8)
    panel.spines[["top", "right"]].set_visible(False)
    for (_, text, colour), (place, cost) in zip(
        sorted(ends), _apart([cost for cost, _, _ in sorted(ends)], top * 0.068), strict=True
    ):
        panel.annotate(
            text, (tools[-1], cost), (tools[-1] * 1.06, place), color=colour, va="center", fontsize=12,
            annotation_clip=False, arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.7},
        )  # fmt: skip


def _apart(values: Sequence[float], gap: float) -> list[tuple[float, float]]:
    """Return a place for a label beside each of the ascending values, none closer than `gap` to another."""
    places = list(values)
    for _ in range(200):
        for i in range(1, len(places)):
            overlap = gap - (places[i] - places[i - 1])
            if overlap > 0:
                places[i - 1] -= overlap / 2
                places[i] += overlap / 2
        places[0] = max(places[0], gap / 2)
    return list(zip(places, values, strict=True))


def main() -> None:
    """Draw the figure of a result file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.multiturn_figure", description=__doc__)
    parser.add_argument("result", type=Path, help="a file that benchmarks.multiturn wrote")
    parser.add_argument("--profile", default="claude", help="the prices to show")
    parser.add_argument("--out", type=Path, default=report.RESULTS / "multiturn.svg")
    options = parser.parse_args()
    draw(json.loads(options.result.read_text(encoding="utf-8")), options.profile, options.out)


if __name__ == "__main__":
    main()
