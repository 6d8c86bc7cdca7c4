"""Every summarizer fault at every place: it is reported and never costs the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.end_to_end.faults.cells import What
from tests.end_to_end.faults.dialects import DIALECTS, SPENT, Dialect, error_of
from tests.end_to_end.faults.players import Player, Script
from tests.end_to_end.faults.replies import Reply
from tests.end_to_end.faults.stage import Stage, stage
from tests.end_to_end.faults.trials import HEADER, PARTS, Trial, code_of, outcome_of, spent, trials
from tests.end_to_end.faults.turns import ANSWER, SUMMARY, TURN, ParsedAnswer

TRIALS = list(trials())
SILENT = [trial for trial in TRIALS if trial.what is What.NOTHING]
FAILING = [
    trial
    for trial in TRIALS
    if trial.case.streamed
    and not trial.harmless
    and (trial.on_failure, trial.short) in (("omit", ""), ("omit", "timeout"))
]
"""Calls that fail by themselves; one still running when the grace ends is only abandoned."""


@pytest.mark.matrix(2)
@pytest.mark.parametrize("trial", [trial for trial in TRIALS if trial not in SILENT], ids=str)
async def test_a_failing_summarizer_never_costs_the_answer(trial: Trial) -> None:
    await check_trial(trial)


@pytest.mark.parametrize("trial", SILENT, ids=str)
async def test_an_empty_summary_is_reported_and_billed(trial: Trial) -> None:
    await check_trial(trial)


@pytest.mark.matrix(2)
@pytest.mark.parametrize("trial", FAILING, ids=str)
async def test_a_summarizer_that_keeps_failing_is_not_called(trial: Trial) -> None:
    """The breaker opens once both parts of one summary have failed."""
    dialect = DIALECTS[trial.case.api]
    summarizer = Player.with_fault(trial.script, trial.case.fault)
    tables = {"summarizer": {"breaker_failures": PARTS, **trial.tables.get("summarizer", {})}}
    upstream = Player(Script.stream(dialect, TURN))
    async with stage(dialect, upstream, summarizer, **tables) as here:
        parsed, requests = [], []
        for _ in range(2):
            await here.ask(streamed=True)
            parsed.append(here.parse(await here.reply()))
            requests.append(summarizer.requests)
    assert [each.code for each in parsed] == [code_of(trial), "breaker_open"]
    assert parsed[1].answer == ANSWER
    assert requests[0] == requests[1]


async def check_trial(trial: Trial) -> None:
    case, dialect = trial.case, DIALECTS[trial.case.api]
    upstream = Player(Script.of(dialect, TURN, streamed=case.streamed))
    summarizer = Player.with_fault(trial.script, case.fault)
    async with stage(dialect, upstream, summarizer, **trial.tables) as here:
        await here.ask(streamed=case.streamed)
        reply = await here.reply()
    check_reply(trial, here, reply)
    assert here.count("requests_total", "outcome") == {"failed" if trial.failed else "ok": 1}
    assert here.count("summaries_total", "outcome") == {outcome_of(trial): 1}
    assert here.count("upstream_tokens_total", "type")["output"] == SPENT
    assert here.count("summarizer_tokens_total", "type").get("output", 0) == spent(trial)


def check_reply(trial: Trial, here: Stage, reply: Reply) -> None:
    parsed = parse_stream(trial, here, reply)
    assert parsed.answer == ANSWER
    assert parsed.code == code_of(trial)
    if parsed.usage is not None:
        check_usage(trial, here.dialect, parsed.usage)
    if trial.harmless:
        assert parsed.summary == "\n\n".join([SUMMARY] * PARTS)
    elif trial.began:
        assert parsed.summary.startswith("**Adding up**")
    else:
        assert bool(parsed.summary) == trial.extracted


def parse_stream(trial: Trial, here: Stage, reply: Reply) -> ParsedAnswer:
    """Parse the client's answer, in whichever form it reports a failed summary."""
    if not trial.case.streamed:
        header = next(word for fits, word in HEADER if fits(trial))
        assert reply.header(b"x-abridge-summary") == header.encode()
    if trial.failed and not trial.case.streamed:
        assert reply.status == 502
        problem = error_of(reply.body)
        if "code" in problem:  # Anthropic's errors have none
            assert problem["code"] == code_of(trial)
        return here.dialect.parse_body(problem["response"])
    assert reply.status == 200
    parsed = here.parse(reply)
    assert (parsed.complete, parsed.failed) == (not trial.failed, trial.failed)
    return parsed


def check_usage(trial: Trial, dialect: Dialect, usage: Mapping[str, Any]) -> None:
    share = usage["reasoning_summary"]
    assert isinstance(share, dict)
    assert usage[dialect.tokens[1]] == SPENT + spent(trial)
    assert (share["output_tokens"] or 0) == spent(trial)
    assert share["parts"] == PARTS
    assert share["incomplete"] == (spent(trial) < PARTS * SPENT)
    assert ("extractive" in str(share["model"])) == trial.extracted
