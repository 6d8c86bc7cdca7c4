"""What goes wrong with the summarizer, wherever it can: it never costs the answer, and is told."""

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
from tests.end_to_end.faults.turns import ANSWER, SUMMARY, TURN, Said

TRIALS = list(trials())
SILENT = [trial for trial in TRIALS if trial.what is What.NOTHING]
FAILING = [
    trial
    for trial in TRIALS
    if trial.case.streamed
    and not trial.harmless
    and (trial.on_failure, trial.short) in (("omit", ""), ("omit", "timeout"))
]
"""Calls that fail by themselves: at the end of the grace one is only given up."""


@pytest.mark.matrix(3)
@pytest.mark.parametrize("trial", [trial for trial in TRIALS if trial not in SILENT], ids=str)
async def test_a_failing_summarizer_never_costs_the_answer(trial: Trial) -> None:
    await play(trial)


@pytest.mark.parametrize("trial", SILENT, ids=str)
async def test_an_empty_summary_is_reported_and_billed(trial: Trial) -> None:
    await play(trial)


@pytest.mark.matrix(2)
@pytest.mark.parametrize("trial", FAILING, ids=str)
async def test_a_summarizer_that_fails_on_is_left_alone(trial: Trial) -> None:
    """`breaker_open`, once both parts of one summary have failed."""
    dialect = DIALECTS[trial.case.api]
    summarizer = Player.with_fault(trial.script, trial.case.fault)
    tables = {"summarizer": {"breaker_failures": PARTS, **trial.tables.get("summarizer", {})}}
    upstream = Player(Script.stream(dialect, TURN))
    async with stage(dialect, upstream, summarizer, **tables) as here:
        said, asked = [], []
        for _ in range(2):
            await here.ask(streamed=True)
            said.append(here.hear(await here.reply()))
            asked.append(summarizer.requests)
    assert [each.code for each in said] == [code_of(trial), "breaker_open"]
    assert said[1].answer == ANSWER
    assert asked[0] == asked[1]


async def play(trial: Trial) -> None:
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
    said = hear(trial, here, reply)
    assert said.answer == ANSWER
    assert said.code == code_of(trial)
    if said.usage is not None:
        check_usage(trial, here.dialect, said.usage)
    if trial.harmless:
        assert said.summary == "\n\n".join([SUMMARY] * PARTS)
    elif trial.spoke:
        assert said.summary.startswith("**Adding up**")
    else:
        assert bool(said.summary) == trial.extracted


def hear(trial: Trial, here: Stage, reply: Reply) -> Said:
    """What the client got, however it was told that the summary failed."""
    if not trial.case.streamed:
        header = next(word for fits, word in HEADER if fits(trial))
        assert reply.header(b"x-abridge-summary") == header.encode()
    if trial.failed and not trial.case.streamed:
        assert reply.status == 502
        problem = error_of(reply.body)
        assert problem["code"] == code_of(trial)
        return here.dialect.read(problem["response"])
    assert reply.status == 200
    said = here.hear(reply)
    assert (said.complete, said.failed) == (not trial.failed, trial.failed)
    return said


def check_usage(trial: Trial, dialect: Dialect, usage: Mapping[str, Any]) -> None:
    share = usage["reasoning_summary"]
    assert isinstance(share, dict)
    assert usage[dialect.tokens[1]] == SPENT + spent(trial)
    assert (share["output_tokens"] or 0) == spent(trial)
    assert share["parts"] == PARTS
    assert share["incomplete"] == (spent(trial) < PARTS * SPENT)
    assert ("extractive" in str(share["model"])) == trial.extracted
