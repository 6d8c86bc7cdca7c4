"""Health: shed work, the store, and the processes."""

from grafana.panel import Panel, Query, quantile_queries
from grafana.promql import quantile, rate, ratio, series, sum_of

HEALTH = (
    Panel(
        "Breakers open: none",
        "How many processes leave their summarizer alone, since it failed "
        "summarizer.breaker_failures times in a row. Answers pass without a summary meanwhile.",
        "short",
        [Query(sum_of("breaker_open"), "open")],
        kind="stat",
        steps={1: "red"},
        width=6,
    ),
    Panel(
        "Shed: nothing",
        "Summaries left out since summarizer.max_in_flight calls were under way (shed), or since "
        "too much of an answer waited (pressed, limits.held); requests refused since "
        "limits.in_flight were under way, or limits.bodies full (overloaded).",
        "ops",
        [
            Query(
                rate("summaries_total", 'outcome=~"shed|pressed"', by="outcome"),
                "summaries {{outcome}}",
            ),
            Query(rate("refusals_total", 'code="overloaded"'), "requests overloaded"),
        ],
        steps={0.01: "red"},
        width=9,
    ),
    Panel(
        "Summarizer's calls under way: well below the limit",
        "Calls for a part, beside summarizer.max_in_flight, past which summaries are shed.",
        "short",
        [
            Query(sum_of("summarizer_in_flight"), "under way"),
            Query(sum_of("summarizer_in_flight_limit"), "limit"),
        ],
        width=9,
    ),
    Panel(
        "Summarizer's calls by outcome: ok",
        "Each call is for one part. cancelled: the answer could not wait, or its client left.",
        "ops",
        [
            Query(
                rate("summarizer_seconds_count", by="summarizer, outcome"),
                "{{summarizer}} {{outcome}}",
            )
        ],
        stacked=True,
        width=12,
    ),
    Panel(
        "A summarizer's call: p95 within 2 s",
        "How long a call for one part takes. The last part's is what an answer waits for; past "
        "summarizer.timeout it is given up.",
        "s",
        [Query(quantile(0.95, "summarizer_seconds", "summarizer"), "{{summarizer}} p95")],
        steps={2: "yellow", 5: "red"},
        width=12,
    ),
    Panel(
        "Store hits: as many as clients come back",
        "Of all that was looked up of earlier answers, what was there. Misses are no fault in "
        "themselves: most histories hold nothing of Abridge's.",
        "percentunit",
        [
            Query(
                ratio(
                    rate("store_operations_total", 'result="hit"', by="operation"),
                    rate("store_operations_total", 'result=~"hit|miss"', by="operation"),
                ),
                "{{operation}}",
            )
        ],
    ),
    Panel(
        "Store operations by result: no error",
        "An error is a store that could not be reached, or was too slow: what was there is taken "
        "for missing, and what was to be kept is lost.",
        "ops",
        [Query(rate("store_operations_total", by="operation, result"), "{{operation}} {{result}}")],
        stacked=True,
    ),
    Panel(
        "Time of the store: p99 below 10 ms",
        "How long an operation takes. A request waits for it before upstream is asked.",
        "s",
        quantile_queries("store_seconds"),
        steps={0.01: "yellow", 0.1: "red"},
    ),
    Panel(
        "Reasoning put back: restored, and none missed",
        "Turns whose reasoning upstream got, by where it came from, beside those whose reasoning "
        "was wanted and not found. Missed: the time was up (history.ttl), the room full "
        "(history.bytes), another process has it, or the client edited its history.",
        "ops",
        [
            Query(rate("reasoning_restored_total", by="source"), "restored: {{source}}"),
            Query(rate("reasoning_missed_total", by="upstream"), "missed: {{upstream}}"),
        ],
        width=12,
    ),
    Panel(
        "Reasoning left out, by why: policy alone",
        "policy: history.keep says so. spelling: this upstream has no place for it. foreign, "
        "expired, edited, oversize: what a client returned sealed and could not be used.",
        "ops",
        [Query(rate("reasoning_dropped_total", by="reason"), "{{reason}}")],
        width=12,
    ),
    Panel(
        "Odd things in requests and answers: few",
        "Summaries of Abridge's own taken out of later requests (each is right); unknown fields "
        "dropped beside hidden reasoning, or that a bridge cannot carry; what an upstream said out "
        "of order; damaged encrypted_content, refused.",
        "ops",
        [
            Query(rate("marks_removed_total"), "own summaries taken out"),
            Query(rate("dropped_fields_total", by="api"), "fields dropped, {{api}}"),
            Query(rate("reader_faults_total", by="upstream"), "out of order, {{upstream}}"),
            Query(rate("blobs_refused_total", by="upstream"), "blobs refused, {{upstream}}"),
        ],
        width=12,
    ),
    Panel(
        "Lag of the event loop: p99 below 50 ms",
        "How late the event loop is. All streams of a process wait for it: more workers "
        "(server.workers), or more replicas.",
        "s",
        quantile_queries("loop_lag_seconds"),
        steps={0.05: "yellow", 0.1: "red"},
        width=12,
    ),
    Panel(
        "Processor per worker: below 0.8 of a core",
        "CPU seconds a second, for each worker of an instance. A worker is one thread: at 1 it is "
        "full.",
        "percentunit",
        [
            Query(
                ratio(rate("cpu_seconds_total", by="instance"), sum_of("workers", by="instance")),
                "{{instance}}",
            )
        ],
        steps={0.8: "yellow", 0.95: "red"},
    ),
    Panel(
        "Memory: level",
        "Resident memory of an instance, and what of it is answers that wait and reasoning that is "
        "remembered, which limits.held and history.bytes bound.",
        "bytes",
        [
            Query(sum_of("memory_bytes", by="instance"), "{{instance}}"),
            Query(sum_of("held_bytes"), "answers that wait"),
            Query(sum_of("store_bytes"), "remembered"),
        ],
    ),
    Panel(
        "Workers and versions: all there, all the same",
        "Worker processes by instance, and instances by version.",
        "short",
        [
            Query(sum_of("workers", by="instance"), "workers, {{instance}}"),
            Query(f"count by (version) ({series('build_info')})", "version {{version}}"),
        ],
    ),
)
