"""Build PromQL expressions over Abridge's metrics.

Each is filtered by the dashboard variables for which its metric has a label.
"""

from __future__ import annotations

RANGE = "$__range"
WINDOWS = {"rate": "$__rate_interval", "increase": RANGE}
"""The windows of functions: a rate is about now, an increase over the whole time range shown."""

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
"""The variables that filter each metric; all other metrics are filtered by job alone."""

_FILTERS = {metric: names for names, metrics in FILTERS.items() for metric in metrics}
_PARTS = ("_bucket", "_count", "_sum")


def series(metric: str, *only: str, like: str = "") -> str:
    """Return a selector for a metric, filtered by the variables and by the matchers in `only`.

    With `like`, use the variables of that metric instead: a ratio needs the same filters above and
    below.
    """
    name = like or metric
    for part in _PARTS:
        name = name.removesuffix(part)
    chosen = [f'{label}=~"${label}"' for label in _FILTERS.get(name, ("job",))]
    return f"abridge_{metric}{{{', '.join([*chosen, *only])}}}"


def total(metric: str, by: str = "") -> str:
    """Return the sum of a gauge."""
    return _sum(by, series(metric))


def over(function: str, selected: str) -> str:
    return f"{function}({selected}[{WINDOWS[function]}])"


def rate(metric: str, *only: str, by: str = "", like: str = "") -> str:
    return _sum(by, over("rate", series(metric, *only, like=like)))


def increase(metric: str, *only: str, by: str = "", like: str = "") -> str:
    return _sum(by, over("increase", series(metric, *only, like=like)))


def quantile(share: float, metric: str, by: str = "", function: str = "rate") -> str:
    """Return a quantile of a histogram, without series for NaN.

    Grafana does not draw NaN, but does not leave it out of a mean either.
    """
    labels = ", ".join(filter(None, (by, "le")))
    buckets = _sum(labels, over(function, series(f"{metric}_bucket")))
    return f"histogram_quantile({share}, {buckets}) >= 0"


def share(part: str, whole: str) -> str:
    """Return the ratio `part / whole`: 0 if the part has no series, no series if the whole is 0."""
    return f"({part} or 0 * {whole}) / ({whole} > 0)"


def _sum(by: str, what: str) -> str:
    return f"sum by ({by}) ({what})" if by else f"sum({what})"
