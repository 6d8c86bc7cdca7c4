"""Health: shed work, the store, and the processes."""

from grafana.panel import Panel, Query, heatmap, quantile_queries, rate_by
from grafana.promql import increase, quantile, rate, ratio, series, sum_of

HEALTH = (
    Panel(
        "Breakers open: none",
        "How many processes have stopped calling their summarizer because it failed "
        "summarizer.breaker_failures times in a row. Answers pass without a summary meanwhile.",
        "short",
        [Query(sum_of("breaker_open"), "open")],
        kind="stat",
        steps={1: "red"},
        width=6,
        alerts=["AbridgeBreakerOpen"],
    ),
    Panel(
        "Shed: nothing",
        "Summaries left out because summarizer.max_in_flight calls were in flight; requests "
        "refused because of limits.in_flight or limits.bodies (overloaded).",
        "ops",
        [
            Query(rate("summaries_total", 'outcome="shed"'), "summaries shed"),
            Query(rate("refusals_total", 'code="overloaded"'), "requests overloaded"),
        ],
        steps={0.01: "red"},
        width=9,
        alerts=["AbridgeSheds", "AbridgeRefusesRequests"],
    ),
    Panel(
        "Summarizer calls in flight: well below the limit",
        "Calls for a summary part, and summarizer.max_in_flight, beyond which summaries are shed.",
        "short",
        [
            Query(sum_of("summarizer_in_flight"), "in flight"),
            Query(sum_of("summarizer_in_flight_limit"), "limit"),
        ],
        width=9,
        alerts=["AbridgeSummarizerNearlyFull"],
    ),
    Panel(
        "Summarizer calls by outcome: ok",
        "Each call is for one part. cancelled: the answer could not wait, or its client "
        "disconnected. loop, language, not_a_summary, echo: the model did not write a summary; "
        "use another one. other: a code of your own summarizer.",
        "ops",
        [
            Query(
                rate("summarizer_seconds_count", by="summarizer, outcome"),
                "{{summarizer}} {{outcome}}",
            )
        ],
        stacked=True,
    ),
    Panel(
        "Duration of a summarizer call: p95 within 2 s",
        "How long a call for one part takes. An answer waits for the call for its last part; "
        "after summarizer.timeout a call is given up.",
        "s",
        [Query(quantile(0.95, "summarizer_seconds", "summarizer"), "{{summarizer}} p95")],
        steps={2: "yellow", 5: "red"},
    ),
    heatmap(
        "Times of summarizer calls: one warm band, below 2 s",
        "How many calls took how long. A band at summarizer.timeout is calls that were given up.",
        "summarizer_seconds",
    ),
    Panel(
        "Reviews of parts by outcome: passed",
        "With a review, each part of a summary is reviewed before it is shown. withheld: it was "
        "flagged. failed, timeout: there was no verdict, and review.on_failure decided about the "
        "part. cancelled: the answer could not wait, or its client disconnected.",
        "ops",
        [rate_by("review_seconds_count", "outcome")],
        stacked=True,
        width=12,
        alerts=["AbridgeReviewsFail"],
    ),
    Panel(
        "Duration of a review: p95 within 0.5 s",
        "How long the review of a part takes. A part is shown that much later, and an answer waits "
        "for the review of its last part; after review.timeout a review is given up.",
        "s",
        [Query(quantile(0.95, "review_seconds"), "p95")],
        steps={0.5: "yellow", 2: "red"},
        width=12,
    ),
    Panel(
        "Store hits: as many as conversations continue",
        "The share of lookups of earlier answers that found one. Misses are normal: most "
        "histories hold nothing from Abridge.",
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
        "An error means that the store could not be reached or was too slow: a lookup then counts "
        "as a miss, and a write is lost.",
        "ops",
        [Query(rate("store_operations_total", by="operation, result"), "{{operation}} {{result}}")],
        stacked=True,
    ),
    Panel(
        "Ledger: no failure, nothing lost",
        "Attempts to write the ledger that failed, and entries that are lost: more waited than "
        "ledger.waiting, or the process ended. What waits is written once the ledger is back.",
        "short",
        [
            Query(sum_of("ledger_waiting"), "entries that wait"),
            Query(increase("ledger_failures_total"), "failures"),
            Query(increase("ledger_lost_total"), "entries lost"),
        ],
        alerts=["AbridgeLedgerFails"],
    ),
    Panel(
        "Duration of store operations: p99 below 10 ms",
        "How long an operation takes. A request waits for it before upstream is asked.",
        "s",
        quantile_queries("store_seconds"),
        steps={0.01: "yellow", 0.1: "red"},
    ),
    Panel(
        "Reasoning restored: none missed",
        "Turns whose reasoning was restored for upstream, by source, and turns whose reasoning "
        "upstream wanted but was not found. Missed: it expired (history.ttl), was evicted "
        "(history.bytes), is in another process, or the client edited its history.",
        "ops",
        [
            Query(rate("reasoning_restored_total", by="source"), "restored: {{source}}"),
            Query(rate("reasoning_missed_total", by="upstream"), "missed: {{upstream}}"),
        ],
        width=12,
        alerts=["AbridgeReasoningMissed", "AbridgeReasoningDemanded"],
    ),
    Panel(
        "Reasoning left out, by reason: policy only",
        "policy: because of history.keep. spelling: this upstream has no field for it. foreign, "
        "expired, edited, oversize: a client returned an envelope that could not be used.",
        "ops",
        [rate_by("reasoning_dropped_total", "reason")],
        width=12,
    ),
    Panel(
        "Irregularities in requests and answers: few",
        "Abridge's own summaries removed from later requests (always intended); unknown fields "
        "dropped where reasoning is hidden or in translation; pieces of answers left out where "
        "reasoning is hidden, by reason; events that an upstream sent out of "
        "order, and answers that it ended without a reason; final texts that are not the sum of "
        "their deltas; damaged encrypted_content that was refused.",
        "ops",
        [
            Query(rate("marks_removed_total"), "own summaries taken out"),
            Query(rate("dropped_fields_total", by="api"), "fields dropped, {{api}}"),
            Query(rate("hidden_total", by="kind"), "hidden, {{kind}}"),
            Query(rate("reader_faults_total", by="upstream"), "irregular, {{upstream}}"),
            Query(
                rate("final_text_mismatches_total", by="upstream"),
                "unlike its deltas, {{upstream}}",
            ),
            Query(rate("blobs_refused_total", by="upstream"), "blobs refused, {{upstream}}"),
        ],
        width=12,
    ),
    Panel(
        "Event loop lag: p99 below 50 ms",
        "How late the event loop runs. It delays all streams of a process: add workers "
        "(server.workers) or replicas.",
        "s",
        quantile_queries("loop_lag_seconds"),
        steps={0.05: "yellow", 0.1: "red"},
        width=12,
        alerts=["AbridgeEventLoopLate"],
    ),
    Panel(
        "CPU per worker: below 0.8 of a core",
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
        alerts=["AbridgeProcessorBusy"],
    ),
    Panel(
        "Memory: level",
        "Resident memory of an instance. Answers that wait (limits.held) and remembered reasoning "
        "(history.bytes) are part of it.",
        "bytes",
        [
            Query(sum_of("memory_bytes", by="instance"), "{{instance}}"),
            Query(sum_of("held_bytes"), "answers that wait"),
            Query(sum_of("store_bytes"), "remembered"),
        ],
    ),
    Panel(
        "Workers and versions: all running, all the same",
        "Worker processes by instance, and instances by version.",
        "short",
        [
            Query(sum_of("workers", by="instance"), "workers, {{instance}}"),
            Query(rate("worker_start_failures_total"), "failed starts"),
            Query(f"count by (version) ({series('build_info')})", "version {{version}}"),
        ],
        alerts=["AbridgeDown"],
    ),
    Panel(
        "Settings: all the same, none refused",
        "How many different settings are in force; instances that could not use their latest ones; "
        "changes by outcome.",
        "short",
        [
            Query(f'count(count_values("hash", {series("settings_hash")}))', "in force"),
            Query(sum_of("settings_refused"), "refused"),
            Query(rate("reloads_total", by="outcome"), "changes {{outcome}}"),
        ],
        alerts=["AbridgeSettingsRefused"],
    ),
)
