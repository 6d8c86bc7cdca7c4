"""Expressions over Abridge's metrics, each filtered by those of the dashboard's variables that its
metric has a label for."""

from __future__ import annotations

RANGE = "$__range"
WINDOWS = {"rate": "$__rate_interval", "increase": RANGE}
"""A rate is about now, an increase is over all the time that the dashboard shows."""

FILTERS = {
    ("job", "upstream", "model", "style"): (
        "summaries_total",
        "summarizer_tokens_total",
        "held_seconds",
    ),
    ("job", "upstream", "model"): (
        "requests_total",
        "upstream_tokens_total",
        "request_seconds",
        "first_summary_seconds",
        "first_answer_seconds",
        "chunk_seconds",
    ),
    ("job", "upstream"): (
        "upstream_responses_total",
        "upstream_failures_total",
        "upstream_seconds",
        "requests_in_flight",
        "reasoning_characters_total",
        "reasoning_restored_total",
        "reasoning_missed_total",
        "reasoning_dropped_total",
        "blobs_refused_total",
        "reader_faults_total",
    ),
}
"""Which variables choose among a metric's series; for any other, the job alone does."""

_FILTERS = {metric: names for names, metrics in FILTERS.items() for metric in metrics}
_PARTS = ("_bucket", "_count", "_sum")


def series(metric: str, *only: str, like: str = "") -> str:
    """A metric's series that the variables choose, and of these only those that match. `like` is
    another metric, by whose variables they are chosen: what is divided by it must be."""
    name = like or metric
    for part in _PARTS:
        name = name.removesuffix(part)
    chosen = [f'{label}=~"${label}"' for label in _FILTERS.get(name, ("job",))]
    return f"abridge_{metric}{{{', '.join([*chosen, *only])}}}"


def total(metric: str, by: str = "") -> str:
    """Of a gauge: the sum."""
    return _sum(by, series(metric))


def over(function: str, selected: str) -> str:
    return f"{function}({selected}[{WINDOWS[function]}])"


def rate(metric: str, *only: str, by: str = "", like: str = "") -> str:
    return _sum(by, over("rate", series(metric, *only, like=like)))


def increase(metric: str, *only: str, by: str = "", like: str = "") -> str:
    return _sum(by, over("increase", series(metric, *only, like=like)))


def quantile(share: float, metric: str, by: str = "", function: str = "rate") -> str:
    """Below how many seconds such a share of them was; nothing where there was none, since not a
    number is neither drawn nor left out of a mean."""
    labels = ", ".join(filter(None, (by, "le")))
    buckets = _sum(labels, over(function, series(f"{metric}_bucket")))
    return f"histogram_quantile({share}, {buckets}) >= 0"


def share(part: str, whole: str) -> str:
    """What share of the whole a part is: none where there is no such part yet, nothing where there
    is no whole."""
    return f"({part} or 0 * {whole}) / ({whole} > 0)"


def _sum(by: str, what: str) -> str:
    return f"sum by ({by}) ({what})" if by else f"sum({what})"
