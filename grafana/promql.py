"""Build PromQL expressions over Abridge's metrics.

Each is filtered by the dashboard variables for which its metric has a label.
"""

from __future__ import annotations

RANGE = "$__range"
WINDOWS = {"rate": "$__rate_interval", "increase": RANGE}
"""The windows of functions: a rate is about now, an increase over the whole time range shown."""

EVERY_METRIC = ("job", "instance")
"""Prometheus gives every series these labels."""

FILTERS = {
    ("job", "instance", "upstream", "model", "style"): (
        "summaries_total",
        "summarizer_tokens_total",
        "held_seconds",
    ),
    ("job", "instance", "upstream", "model"): (
        "requests_total",
        "upstream_tokens_total",
        "request_seconds",
        "first_part_seconds",
        "first_answer_seconds",
        "chunk_seconds",
    ),
    ("job", "instance", "upstream"): (
        "upstream_responses_total",
        "upstream_failures_total",
        "upstream_failovers_total",
        "upstream_up",
        "state_refused_total",
        "upstream_seconds",
        "requests_in_flight",
        "reasoning_characters_total",
        "reasoning_restored_total",
        "reasoning_missed_total",
        "reasoning_dropped_total",
        "blobs_refused_total",
        "reader_faults_total",
        "final_text_mismatches_total",
    ),
}
"""The variables that filter each metric; all others are filtered by those of `EVERY_METRIC`."""

_METRIC_FILTERS = {metric: names for names, metrics in FILTERS.items() for metric in metrics}
_HISTOGRAM_SUFFIXES = ("_bucket", "_count", "_sum")


def series(metric: str, *matchers: str, filters_of: str = "") -> str:
    """Return a selector for a metric, filtered by the variables and by the matchers in `only`.

    With `like`, use the variables of that metric instead: a ratio needs the same filters above and
    below.
    """
    name = filters_of or metric
    for suffix in _HISTOGRAM_SUFFIXES:
        name = name.removesuffix(suffix)
    filters = [f'{label}=~"${label}"' for label in _METRIC_FILTERS.get(name, EVERY_METRIC)]
    return f"abridge_{metric}{{{', '.join([*filters, *matchers])}}}"


def sum_of(metric: str, by: str = "") -> str:
    """Return the sum of a gauge."""
    return _sum(by, series(metric))


def worst(metric: str, by: str) -> str:
    """Return the least value among processes."""
    return f"min by ({by}) ({series(metric)})"


def over_window(function: str, selector: str) -> str:
    return f"{function}({selector}[{WINDOWS[function]}])"


def rate(metric: str, *matchers: str, by: str = "", filters_of: str = "") -> str:
    return _sum(by, over_window("rate", series(metric, *matchers, filters_of=filters_of)))


def increase(metric: str, *matchers: str, by: str = "", filters_of: str = "") -> str:
    return _sum(by, over_window("increase", series(metric, *matchers, filters_of=filters_of)))


def quantile(q: float, metric: str, by: str = "", function: str = "rate") -> str:
    """Return a quantile of a histogram, without series for NaN.

    Grafana does not draw NaN, but does not leave it out of a mean either.
    """
    labels = ", ".join(filter(None, (by, "le")))
    buckets = _sum(labels, over_window(function, series(f"{metric}_bucket")))
    return f"histogram_quantile({q}, {buckets}) >= 0"


def ratio(part: str, whole: str) -> str:
    """Return the ratio `part / whole`: 0 if the part has no series, no series if the whole is 0."""
    return f"({part} or 0 * {whole}) / ({whole} > 0)"


def _sum(by: str, expression: str) -> str:
    return f"sum by ({by}) ({expression})" if by else f"sum({expression})"
