"""Two thousand tokens of reasoning at a hundred a second, then two hundred of answer: when the
summary arrives, and how long the answer waits for it.

The summarizer model takes 0.3 s to its first token and 0.7 s more. The baselines are one summary at
the reasoning's end (`summary.live = false`), and one made by a second call after the answer.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks import contenders
from tests.benchmarks.load import Job
from tests.benchmarks.options import Options
from tests.benchmarks.results import Finding, Row, middle
from tests.benchmarks.rounds import Result, run_jobs
from tests.benchmarks.scripts import reasoning
from tests.benchmarks.turns import ENGAGED, PATHS, body

PATH = PATHS["responses"]
MARKS = {"first_summary": "reasoning_summary_text.delta", "first_answer": "output_text.delta"}
SUMMARIZER = {"first_summary": '"content":"*'}
CALL = 1.0
TIMES = ("first_summary", "first_answer", "end", "held")


def run(options: Options) -> Iterator[Row]:
    """Run all cases concurrently, since they mostly wait."""
    with contenders.upstream() as upstream:
        model = contenders.summarizer_model(upstream.port)
        late = {**model, "ABRIDGE_SUMMARY__LIVE": "false"}
        streams = options.rounds(5, 2)
        with (
            contenders.abridge(upstream.port, model) as live,
            contenders.abridge(upstream.port, late) as at_end,
        ):
            cases = {
                "live": _job(live.port, "live", streams, ENGAGED),
                "tail390": _job(live.port, "tail390", streams, ENGAGED),
                "tail100": _job(live.port, "tail100", streams, ENGAGED),
                "at_end": _job(at_end.port, "live", streams, ENGAGED),
                "afterwards": _job(upstream.port, "live", streams, {}),
            }
            answers = dict(zip(cases, run_jobs(*cases.values()), strict=True))
        second = Job(
            upstream.port,
            PATHS["chat"],
            body("chat", reasoning("live")),
            "summarizer",
            connections=streams,
            each=1,
            marks=SUMMARIZER,
        )
        [summaries] = run_jobs(second)
    for case, result in answers.items():
        yield from _rows(case, result, summaries)


def _job(port: int, scenario: str, streams: int, headers: dict[str, str]) -> Job:
    return Job(
        port,
        PATH,
        body("responses"),
        f"responses-{scenario}",
        connections=streams,
        each=1,
        spread=1.0,
        headers=headers,
        marks=MARKS,
    )


def _rows(case: str, result: Result, summaries: Result) -> Iterator[Row]:
    """The second call's times are added to the answer's end."""
    for number, (marks, held) in enumerate(zip(result["marks"], result["delays"], strict=True)):
        end = marks["end"]
        if case == "afterwards":
            second = summaries["marks"][number]
            marks["first_summary"], end = end + second["first_summary"], end + second["end"]
        yield {"case": case, "round": number, **marks, "end": end, "held": held}


WORDS = {
    "live": "live",
    "at_end": "`summary.live = false`",
    "afterwards": "a second call after the answer",
}


def findings(rows: list[Row]) -> Iterator[Finding]:
    thinking = middle(rows, "first_answer", case="afterwards")
    share = middle(rows, "first_summary", case="live") / thinking
    label = "first summary text, as a share of the reasoning's time"
    yield Finding(label, share, "×", most=0.15, before="0.22")
    for case, words in WORDS.items():
        for name in ("first_summary", "first_answer", "end"):
            label = f"{words}: {name.replace('_', ' ')}"
            yield Finding(label, middle(rows, name, case=case), "s")
    held = middle(rows, "held", case="live")
    yield Finding("live: the answer was held", held, "s", most=CALL + 0.1)
    yield Finding("`summary.live = false`: held", middle(rows, "held", case="at_end"), "s")
    for tail, most in ((390, 0.1), (100, CALL - 0.25 + 0.1)):
        held = middle(rows, "held", case=f"tail{tail}")
        label = f"live, reasoning ends {tail} characters after a cut: held"
        yield Finding(label, held, "s", most=most)
