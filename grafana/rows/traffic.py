"""Traffic: requests, their outcomes and their times."""

from grafana.panel import Panel, Query, quantile_queries
from grafana.promql import rate, sum_of

TRAFFIC = (
    Panel(
        "Requests by outcome: ok, untouched, passed",
        "ok: answered, with Abridge at work. untouched: nothing to do. passed: an answer that was "
        "no turn. error: upstream's own error. failed: the answer broke off. left: the client did. "
        "refused: Abridge would not.",
        "reqps",
        [Query(rate("requests_total", by="outcome"), "{{outcome}}")],
        stacked=True,
        width=12,
    ),
    Panel(
        "Errors by cause: none",
        "What Abridge refused, by its code; what an upstream did not answer, by its cause; and "
        "what upstreams answered with a status of 400 or more. Mounted in another app, Abridge "
        "knows the first of these only.",
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
    ),
    Panel(
        "Upstreams' answers by status: 200",
        "The status of each response to a request that was forwarded, to whatever path.",
        "reqps",
        [Query(rate("upstream_responses_total", by="upstream, status"), "{{upstream}} {{status}}")],
        stacked=True,
    ),
    Panel(
        "Under way: well below the limit",
        "Requests that are being forwarded, and the answers among them that Abridge works on, "
        "beside limits.in_flight, past which clients get a 503 `overloaded`.",
        "short",
        [
            Query(sum_of("requests_in_flight", by="upstream"), "{{upstream}}"),
            Query(sum_of("streams_open", by="api"), "at work, {{api}}"),
            Query(sum_of("requests_in_flight_limit"), "limit"),
        ],
    ),
    Panel(
        "Tokens by type: as the traffic is",
        "What the models reported for answers that Abridge worked on. Reasoning is a part of the "
        "output.",
        "suffix: tok/s",
        [Query(rate("upstream_tokens_total", by="type"), "{{type}}")],
    ),
    Panel(
        "Duration of a request: p95 steady",
        "From the request to the end of its answer, for those that Abridge worked on.",
        "s",
        quantile_queries("request_seconds"),
    ),
    Panel(
        "Time per chunk: p95 below 100 ms",
        "The mean time between two pieces of a streamed answer, one figure a stream. It is what "
        "reads as fluent or not; mostly the model server's load.",
        "s",
        quantile_queries("chunk_seconds"),
        steps={0.1: "yellow", 0.3: "red"},
    ),
    Panel(
        "Upstream's headers: p95 within 1 s",
        "From the forwarded request to the response's headers. Where it grows, requests queue at "
        "the model server; past limits.headers they fail.",
        "s",
        quantile_queries("upstream_seconds"),
        steps={1: "yellow", 10: "red"},
    ),
    Panel(
        "What Abridge adds before upstream is asked: p99 below 10 ms",
        "Reading the request, and putting back what its history lacks. A remote store that is slow "
        "shows here.",
        "s",
        quantile_queries("overhead_seconds"),
        steps={0.01: "yellow", 0.1: "red"},
        width=12,
    ),
    Panel(
        "Reasoning read: as the traffic is",
        "Characters of raw reasoning, which are what summaries are made of. None, with traffic "
        "there: the model does not think, or its server keeps it to itself.",
        "suffix: char/s",
        [Query(rate("reasoning_characters_total", by="upstream"), "{{upstream}}")],
        width=12,
    ),
)
