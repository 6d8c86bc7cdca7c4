"""Draw plots: costs beside baselines, against streams and against history. Needs matplotlib."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from tests.benchmarks import history as histories
from tests.benchmarks import live, passthrough, results
from tests.benchmarks.results import Row, middle, short
from tests.benchmarks.turns import APIS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FILES = {
    "benchmarks.svg": "CPU a request passed through, and time to the first summary, by contender",
    "scaling.svg": "Cost against open streams and against history; dashed is what is proportional",
}
"""What each shows."""

OURS, OTHERS, FAINT = "#0b6e6e", "#8a8f98", "#e3e5e8"
STYLE: Any = {
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
        for name, fill in zip(FILES, (_compare, _scale), strict=True):
            drawing = plt.figure(figsize=(10, 3), layout="constrained")
            fill(drawing)
            drawing.savefig(results.FOLDER / name, metadata={"Date": None})


def _compare(drawing: Figure) -> None:
    left, right = drawing.subplots(1, 2)
    _passthrough(left, results.read("passthrough"))
    _live(right, results.read("live"))


def _scale(drawing: Figure) -> None:
    """Draw what more streams and longer histories cost, beside what is proportional."""
    history = results.read("history")
    streams = [{**row, "added_mib": _added(row)} for row in results.read("open")]
    share, memory, request = drawing.subplots(1, 3)
    for axes, key in ((share, "cpu_share"), (memory, "added_mib")):
        for api, name in APIS.items():
            _line(axes, name, _points(streams, "streams", key, case=f"{api}-rewritten"))
    for api, way in product(APIS, histories.WAYS):
        label = f"{APIS[api]}, {way}"
        _line(request, label, _points(history, "size", "cpu_ms", api=api, way=way))
    share.set(title="Open streams: share of a core", xlabel="streams")
    memory.set(title="Open streams: MiB they add", xlabel="streams")
    request.set(title="A request: CPU, ms", xlabel="bytes of history")
    for axes in (share, memory, request):
        axes.set(xscale="log", yscale="log")
        axes.legend(frameon=False, fontsize=7)


def _added(row: Row) -> float:
    return float(row["streams"]) * float(row["kib_each"]) / 1024


def _points(rows: list[Row], across: str, key: str, **where: str) -> dict[float, float]:
    """Return the median of a column for each value of another."""
    chosen = [row for row in rows if all(row[name] == value for name, value in where.items())]
    found = {str(row[across]) for row in chosen}
    return {_number(at): middle(chosen, key, **{across: at}) for at in sorted(found, key=_number)}


def _number(text: str) -> float:
    """Return a count, or a size as in `100KB`."""
    units = {"KB": 1e3, "MB": 1e6}
    return float(text.rstrip("KMB")) * units.get(text[-2:], 1)


def _line(axes: Axes, label: str, points: dict[float, float]) -> None:
    """Draw points, and dashed through the last of them what is proportional."""
    if not points:
        return
    [drawn] = axes.plot(list(points), list(points.values()), "o-", markersize=3, label=label)
    last, value = [*points.items()][-1]
    proportional = [value * at / last for at in points]
    axes.plot(list(points), proportional, "--", color=drawn.get_color(), alpha=0.4)


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
