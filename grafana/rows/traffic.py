"""Traffic: requests, their outcomes and their times."""

from grafana.panel import Panel, Query, heatmap, quantile_queries, rate_by
from grafana.promql import rate, sum_of, worst

TRAFFIC = (
    Panel(
        "Requests by outcome: ok, untouched, passed",
        "ok: answered, with Abridge engaged. untouched: nothing to do. passed: the answer was no "
        "turn of a model. error: upstream's own error. failed: the answer was cut off. left: the "
        "client disconnected. refused: refused by Abridge.",
        "reqps",
        [rate_by("requests_total", "outcome")],
        stacked=True,
        width=12,
        alerts=["AbridgeAnswersFail"],
    ),
    Panel(
        "Errors by cause: none",
        "Requests that Abridge refused, by code; requests that an upstream did not answer, by "
        "cause; and upstream responses with a status of 400 or more. Mounted in another app, "
        "Abridge knows only the first.",
        "reqps",
        [
            Query(rate("refusals_total", by="code"), "refused: {{code}}"),
            Query(rate("upstream_failures_total", by="cause"), "upstream: {{cause}}"),
            Query(
                rate("upstream_responses_total", 'status=~"[45].."', by="status"),
                "upstream: {{status}}",
            ),
        ],
        width=12,
        alerts=["AbridgeUpstreamFails"],
    ),
    Panel(
        "Upstream responses by status: 200",
        "The status of each response to a forwarded request, on any path.",
        "reqps",
        [Query(rate("upstream_responses_total", by="upstream, status"), "{{upstream}} {{status}}")],
        stacked=True,
    ),
    Panel(
        "In flight: well below the limit",
        "Requests being forwarded, the answers among them that Abridge works on, "
        "open WebSockets, whether or not a request is in progress, background responses "
        "that Abridge runs, and limits.in_flight, beyond which clients get a 503 `overloaded`.",
        "short",
        [
            Query(sum_of("requests_in_flight", by="upstream"), "{{upstream}}"),
            Query(sum_of("streams_open", by="api"), "at work, {{api}}"),
            Query(sum_of("websockets_open"), "WebSockets"),
            Query(sum_of("background_running"), "in the background"),
            Query(sum_of("requests_in_flight_limit"), "limit"),
        ],
        alerts=["AbridgeNearlyFull", "AbridgeRefusesRequests"],
    ),
    Panel(
        "Tokens by type: as the traffic is",
        "What the models reported for answers that Abridge worked on. Reasoning is a part of the "
        "output.",
        "suffix: tok/s",
        [rate_by("upstream_tokens_total", "type")],
    ),
    Panel(
        "Duration of a request: p95 steady",
        "From the request to the end of its answer, for those that Abridge worked on.",
        "s",
        quantile_queries("request_seconds"),
    ),
    heatmap(
        "Times of requests: bands that stay where they are",
        "How many requests took how long. Several bands are several kinds of requests.",
        "request_seconds",
    ),
    Panel(
        "Time per chunk: p95 below 100 ms",
        "The mean time between two pieces of a streamed answer, one figure per stream. It "
        "determines how fluent an answer looks, and mostly depends on the model server's load.",
        "s",
        quantile_queries("chunk_seconds"),
        steps={0.1: "yellow", 0.3: "red"},
    ),
    Panel(
        "Time to upstream's headers: p95 within 1 s",
        "From the forwarded request to the response's headers. If it grows, requests queue at the "
        "model server; after limits.headers they fail.",
        "s",
        quantile_queries("upstream_seconds"),
        steps={1: "yellow", 10: "red"},
    ),
    heatmap(
        "Times to upstream's headers: one warm band, below 1 s",
        "How many responses began after how long. A band that rises is a queue at the model "
        "server.",
        "upstream_seconds",
    ),
    Panel(
        "Delay before the upstream request: p99 below 10 ms",
        "Reading the request, and putting back what its history lacks. A remote store that is slow "
        "shows here.",
        "s",
        quantile_queries("overhead_seconds"),
        steps={0.01: "yellow", 0.1: "red"},
    ),
    Panel(
        "Requests sent again: none",
        "Those that went on to a fallback of their upstream, by cause: a connection that failed, a "
        "status of 429, 503 or 529, or `down`, where upstream was known to be; and those whose "
        "reasoning state upstream refused, which were sent again without it.",
        "reqps",
        [
            Query(
                rate("upstream_failovers_total", by="upstream, fallback, cause"),
                "{{upstream}} to {{fallback}}: {{cause}}",
            ),
            Query(rate("state_refused_total", by="upstream"), "without state: {{upstream}}"),
        ],
        width=12,
    ),
    Panel(
        "Upstreams up: 1 each",
        "0: it failed several times in a row, as far as any process knows. Requests that have a "
        "fallback skip it.",
        "short",
        [Query(worst("upstream_up", by="upstream"), "{{upstream}}")],
        width=12,
        alerts=["AbridgeUpstreamDown"],
    ),
    Panel(
        "Reasoning read: as the traffic is",
        "Characters of raw reasoning, from which summaries are made. If there are none despite "
        "traffic, the model does not reason, or its server does not show it.",
        "suffix: char/s",
        [rate_by("reasoning_characters_total", "upstream")],
        width=12,
    ),
    Panel(
        "Requests by key: none refused",
        "Requests that used a key of server.keys_file, by its name and by outcome. Refused ones "
        "exceeded its rate limit or budget, or asked for a model that it does not allow. "
        "Empty if clients need no such key.",
        "reqps",
        [
            Query(rate("key_requests_total", by="key, outcome"), "{{key}}: {{outcome}}"),
            Query(rate("team_requests_total", by="team, outcome"), "team {{team}}: {{outcome}}"),
        ],
        width=12,
    ),
    Panel(
        "Tokens by key: within their budgets",
        "What counts against a key's budget, tokens of summaries included. For a key without a "
        "budget, only answers that Abridge worked on are counted.",
        "suffix: tok/s",
        [rate_by("key_tokens_total", "key")],
        width=12,
    ),
    Panel(
        "Tokens by team: within their limits",
        "What the keys of a team used together, tokens of summaries included. Empty where no key "
        "names a team.",
        "suffix: tok/s",
        [rate_by("team_tokens_total", "team")],
        width=12,
    ),
    Panel(
        "Cost by key and team: within their limits",
        "Money spent per day at this rate, in the currency of `prices`. Empty where no prices are "
        "set.",
        "none",
        [
            Query(f"{rate('key_cost_total', by='key, currency')} * 86400", "{{key}}: {{currency}}"),
            Query(
                f"{rate('team_cost_total', by='team, currency')} * 86400",
                "team {{team}}: {{currency}}",
            ),
        ],
        width=12,
    ),
    Panel(
        "Requests refused for a limit: few",
        "By the limit's holder (key or team) and its name. Empty where no key has limits.",
        "reqps",
        [Query(rate("limit_refusals_total", by="holder, limit"), "{{holder}}: {{limit}}")],
        width=12,
    ),
    Panel(
        "Limits counted together: none failed",
        "Round trips that report how much of the limits is used. failed: a process could not "
        "reach the others, and counts alone, with its share. Empty where no key has limits.",
        "ops",
        [rate_by("limit_rounds_total", "result")],
        width=12,
        alerts=["AbridgeLimitsAlone"],
    ),
    Panel(
        "Background responses by status: completed",
        "Those that Abridge ran, by the status in which they ended. `failed`: upstream failed, a "
        "limit of `background` was reached, or the server was shut down.",
        "reqps",
        [rate_by("background_responses_total", "status")],
        width=24,
    ),
)
