"""User experience: the share of answers with a summary, and the time to it."""

from grafana.panel import Panel, Query, heatmap, quantile_queries, rate_by
from grafana.promql import increase, quantile, rate, ratio

ARRIVED_OUTCOMES = 'outcome=~"ok|native|partial"'
DUE_OUTCOMES = 'outcome!="skipped"'
ANSWERED_OUTCOMES = 'outcome!="refused"'

SOON, LATE = 8, 15
"""Seconds to the first text of a summary that are usual and that are many: a model that writes 80
tokens a second has thought as much as `summary.part_chars` of them after some 5."""

USERS = (
    Panel(
        "Summaries that arrive: above 95 %",
        "The share of due summaries that arrived: ok, native (the model's own) or partial. If it "
        "is lower, the next row of panels shows what happened to the others.",
        "percentunit",
        [
            Query(
                ratio(
                    increase("summaries_total", ARRIVED_OUTCOMES),
                    increase("summaries_total", DUE_OUTCOMES),
                ),
                "arrived",
                instant=True,
            )
        ],
        kind="stat",
        steps={0.8: "yellow", 0.95: "green"},
        base="red",
        width=6,
        height=5,
    ),
    Panel(
        "With a summary: all requests that want one",
        "The share of requests not refused whose client saw text of a summary by Abridge. How "
        "many want one depends on the clients and on summary.default.",
        "percentunit",
        [
            Query(
                ratio(
                    increase("first_part_seconds_count"),
                    increase("requests_total", ANSWERED_OUTCOMES),
                ),
                "with a summary",
                instant=True,
            )
        ],
        kind="stat",
        width=6,
        height=5,
    ),
    Panel(
        f"First summary text: within {SOON} s",
        "The median time from a request to the first text of its summary. It depends on "
        "summary.part_chars, on how fast the model reasons and on how fast the summarizer begins.",
        "s",
        [Query(quantile(0.5, "first_part_seconds", function="increase"), "median", instant=True)],
        kind="stat",
        steps={SOON: "yellow", LATE: "red"},
        width=6,
        height=5,
    ),
    Panel(
        "First answer text: after the summary's",
        "The median time from a request to the first piece of its answer, including the model's "
        "reasoning. The delay that Abridge adds is in the seconds held.",
        "s",
        [Query(quantile(0.5, "first_answer_seconds", function="increase"), "median", instant=True)],
        kind="stat",
        width=6,
        height=5,
    ),
    Panel(
        "Summaries by outcome: ok and native, hardly anything else",
        "ok: all parts came. native: the model has a summary of its own. skipped: too little "
        "reasoning. partial: some parts came. failed, timeout, empty: the summarizer's doing. "
        "withheld: a review's. deadline: the grace ran out. shed: too many calls at once.",
        "ops",
        [rate_by("summaries_total", "outcome")],
        stacked=True,
        width=12,
        alerts=["AbridgeSummariesFail"],
    ),
    Panel(
        "Share of requests with a summary, by model: steady",
        "The same share as above over time. If a model's share falls to 0, it no longer shows its "
        "reasoning, or its server has moved it to another field.",
        "percentunit",
        [
            Query(
                ratio(
                    rate("first_part_seconds_count", by="model"),
                    rate("requests_total", ANSWERED_OUTCOMES, by="model"),
                ),
                "{{model}}",
            )
        ],
        width=12,
    ),
    Panel(
        f"Time to first summary text: p95 within {LATE} s",
        "From the request to the first text of its summary. Longer than the time to the answer's "
        "first text: summaries come too late to be of use; make summary.part_chars smaller.",
        "s",
        quantile_queries("first_part_seconds"),
        steps={LATE: "red"},
        width=12,
    ),
    Panel(
        "Time to first answer text: the model's own pace",
        "From the request to the first piece of its answer. If it grows and the seconds held do "
        "not, the model thinks longer.",
        "s",
        quantile_queries("first_answer_seconds"),
        width=12,
    ),
    heatmap(
        f"Times to first summary text: one warm band, within {LATE} s",
        "How many summaries began after how long. A second band above the first is a second kind "
        "of requests, or a summarizer that queues.",
        "first_part_seconds",
        width=12,
    ),
    heatmap(
        "Times to first answer text: one warm band, above the summaries'",
        "How many answers began after how long. Where this band is below the summaries' own, "
        "summaries come too late to be of use.",
        "first_answer_seconds",
        width=12,
    ),
)
