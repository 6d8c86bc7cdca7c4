"""Draw the plot: the cost of passing through, and the time to a summary. Needs matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.benchmarks import live, passthrough, results
from tests.benchmarks.results import Row, middle, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FILE = results.FOLDER / "benchmarks.svg"
ALT = "CPU a request passed through, and seconds to the first summary text, compared with baselines"
OURS, OTHERS, FAINT = "#0b6e6e", "#8a8f98", "#e3e5e8"
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "abridge",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
}


def draw() -> None:
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        drawing, (left, right) = plt.subplots(1, 2, figsize=(10, 3), layout="constrained")
        _passthrough(left, results.read("passthrough"))
        _live(right, results.read("live"))
        drawing.savefig(FILE, metadata={"Date": None})


def _passthrough(axes: Axes, rows: list[Row]) -> None:
    names = [name for name in passthrough.NAMES if any(row["contender"] == name for row in rows)]
    cost = {name: middle(rows, "cpu_us", contender=name) for name in names}
    ranked = sorted(cost, key=lambda name: -cost[name])
    labels = [passthrough.NAMES[name].replace("`", "") for name in ranked]
    colours = [OURS if name == "abridge" else OTHERS for name in ranked]
    bars = axes.barh(labels, [cost[name] for name in ranked], color=colours)
    axes.bar_label(bars, [f" {short(cost[name])}" for name in ranked])
    axes.set(xscale="log", title="CPU a request passed through, µs")
    axes.margins(x=0.15)


def _live(axes: Axes, rows: list[Row]) -> None:
    """Draw each turn as a bar: reasoning, answer and, if there is one, a later call."""
    labels = {name: words.replace("`", "") for name, words in live.WORDS.items()}
    for name, label in reversed(labels.items()):
        summary, answer, end = (
            middle(rows, key, case=name) for key in ("first_summary", "first_answer", "end")
        )
        axes.barh(label, end, color=FAINT)
        axes.barh(label, end - answer, left=answer, color="#c4c8ce")
        axes.plot(summary, label, "o", color=OURS if name == "live" else OTHERS)
        axes.annotate(
            f"{short(summary)} s", (summary, label), (-6, 0), textcoords="offset points",
            ha="right", va="center",
        )  # fmt: skip
    axes.set(title="First summary text, seconds (dark: the answer)")
