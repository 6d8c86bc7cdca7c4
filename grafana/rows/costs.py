"""Costs: tokens, seconds and money of summaries, beside those of the models."""

from collections.abc import Callable, Iterable, Iterator

from grafana.panel import Column, Panel, Query, heatmap, quantile_queries
from grafana.promql import increase, over_window, quantile, rate, ratio, series

BILLED_TYPES = 'type=~"input|output"'
"""Reasoning tokens are part of the output."""

CURRENCY = "currencyUSD"
TOKENS_PER_SECOND = "suffix: tok/s"
OVERHEAD_BUDGET = 1.5
"""The upper bound of a healthy overhead, whatever the traffic: a summarizer reads the reasoning
once, with its prompts at a little more, and writes a few sentences a part. To set a lower budget
of your own, change this and the alert's threshold."""


def _cost_terms(function: str, price: str, metric: str, *matchers: str) -> Iterator[str]:
    """Yield an expression for each token type: tokens times their price."""
    for kind in ("input", "output"):
        selector = series(metric, f'type="{kind}"', *matchers)
        yield f"{over_window(function, selector)} * ${price}_{kind}"


def _sum_costs(terms: Iterable[str], by: str) -> str:
    """Return the sum of terms that have no series in common; prices are per million tokens."""
    grouped = f" by ({by})" if by else ""
    return f"sum{grouped} ({' or '.join(terms)}) / 1e6"


def _model_cost(function: str, by: str = "") -> str:
    """Return the cost of the models' own tokens."""
    return _sum_costs(_cost_terms(function, "model", "upstream_tokens_total"), by)


def _summary_cost(function: str, by: str = "") -> str:
    """Return the cost of summaries; the summarizer `upstream` has the model's own prices."""
    metric = "summarizer_tokens_total"
    at_summary_prices = _cost_terms(function, "summary", metric, 'summarizer!="upstream"')
    at_model_prices = _cost_terms(function, "model", metric, 'summarizer="upstream"')
    return _sum_costs([*at_summary_prices, *at_model_prices], by)


def _cost_columns(by: str) -> tuple[Column, ...]:
    """Return the columns on the cost of summaries, grouped by the labels in `by`."""
    metric = "summarizer_tokens_total"
    return (
        Column("requests", increase("held_seconds_count", by=by)),
        Column("tokens in", increase(metric, 'type="input"', by=by)),
        Column("tokens out", increase(metric, 'type="output"', by=by)),
        Column("money", _summary_cost("increase", by), CURRENCY),
        Column("held, all", increase("held_seconds_sum", by=by), "s"),
        Column("held, p95", quantile(0.95, "held_seconds", by, "increase"), "s"),
    )


def _overhead_ratio(function: Callable[..., str], by: str = "") -> str:
    """Return the summarizer's tokens as a share of the models' tokens.

    The models' tokens have no style label, so the variable `style` filters neither.
    """
    model_tokens = "upstream_tokens_total"
    return ratio(
        function("summarizer_tokens_total", by=by, filters_of=model_tokens),
        function(model_tokens, BILLED_TYPES, by=by),
    )


COSTS = (
    Panel(
        "Overhead: within its budget, 150 %",
        "The summarizers' input and output tokens as a share of the models' tokens, of all "
        "styles, in the same time. About 100 % is usual for short questions with long reasoning. "
        "summary.max_overhead limits it for each response.",
        "percentunit",
        [Query(_overhead_ratio(increase), "overhead", instant=True)],
        kind="stat",
        steps={OVERHEAD_BUDGET: "yellow", 2: "red"},
        width=6,
        height=5,
    ),
    Panel(
        "Held, p95: within half the grace, 2.5 s",
        "95 % of the answers waited at most this long for their summary. If it is close to the "
        "grace, the summarizer is too slow: use a faster one, or a smaller summary.grace.",
        "s",
        [Query(quantile(0.95, "held_seconds", function="increase"), "p95", instant=True)],
        kind="stat",
        steps={2.5: "yellow", 5: "red"},
        width=6,
        height=5,
    ),
    Panel(
        "Money: summaries far below the models",
        "The tokens in the time range at the prices above, which are per million tokens and 0 "
        "until you set them. It counts the answers that Abridge worked on and assumes no cached "
        "input. The summarizer `upstream` is the model itself and has its prices. If models have "
        "different prices, select one.",
        CURRENCY,
        [
            Query(_model_cost("increase"), "models", instant=True),
            Query(_summary_cost("increase"), "summaries", instant=True),
        ],
        kind="stat",
        width=6,
        height=5,
    ),
    Panel(
        "Seconds held: near 0 for each answer",
        "How long an answer waited for its summary, on average over all answers with a summary "
        "due, including those that did not wait.",
        "s",
        [
            Query(
                ratio(increase("held_seconds_sum"), increase("held_seconds_count")),
                "mean",
                instant=True,
            )
        ],
        kind="stat",
        steps={1: "yellow", 2.5: "red"},
        width=6,
        height=5,
    ),
    Panel(
        "Tokens side by side: the summarizers' far below the models'",
        "What the models and the summarizers reported. An upstream that reports no usage is "
        "missing here, which makes the overhead look larger than it is.",
        TOKENS_PER_SECOND,
        [
            Query(rate("upstream_tokens_total", BILLED_TYPES, by="type"), "model {{type}}"),
            Query(rate("summarizer_tokens_total", by="type"), "summary {{type}}"),
        ],
        width=12,
    ),
    Panel(
        "Overhead by upstream: within its budget, 150 %",
        "The summarizers' tokens as a share of the upstream's own. It is high for short "
        "reasoning, where the prompt is longer than the reasoning: raise summary.min_chars.",
        "percentunit",
        [Query(_overhead_ratio(rate, "upstream"), "{{upstream}}")],
        steps={OVERHEAD_BUDGET: "red"},
        width=12,
        alerts=["AbridgeOverheadAboveBudget"],
    ),
    Panel(
        "Seconds held: p95 below the grace, 5 s",
        "How long answers waited for their summary. An answer waits for the last part only, and "
        "never longer than summary.grace.",
        "s",
        quantile_queries("held_seconds"),
        steps={5: "red"},
        alerts=["AbridgeAnswersHeld"],
    ),
    heatmap(
        "Times held: nearly all at the bottom",
        "How many answers waited how long for their summary. A band at summary.grace is answers "
        "whose last part never came.",
        "held_seconds",
    ),
    Panel(
        "Money an hour: summaries far below the models",
        "The cost per hour at the current rate, at the prices above.",
        CURRENCY,
        [
            Query(f"3600 * {_model_cost('rate')}", "models"),
            Query(f"3600 * {_summary_cost('rate')}", "summaries"),
        ],
        stacked=True,
    ),
    Panel(
        "The ledger by style and summarizer: cost and hold of each",
        "What summaries cost in the time range: tokens, money at the prices above, and the "
        "seconds that answers waited. Extracts cost no tokens.",
        columns=_cost_columns("style, summarizer"),
        rows=("style", "summarizer"),
        kind="table",
        width=24,
    ),
    Panel(
        "The ledger by upstream and model: overhead within its budget, 150 %",
        "The models' own tokens and what their summaries added, in the time range.",
        columns=(
            Column(
                "model tokens in",
                increase("upstream_tokens_total", 'type="input"', by="upstream, model"),
            ),
            Column(
                "model tokens out",
                increase("upstream_tokens_total", 'type="output"', by="upstream, model"),
            ),
            Column("model money", _model_cost("increase", "upstream, model"), CURRENCY),
            *_cost_columns("upstream, model"),
            Column("overhead", _overhead_ratio(increase, "upstream, model"), "percentunit"),
        ),
        rows=("upstream", "model"),
        kind="table",
        width=24,
    ),
)
