"""Every upstream fault at every place: what the client sees, and what metrics count."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import pytest

from abridge.core.plan import SummaryPlan
from abridge.pipeline.exchange_plan import FIRST_SHARE
from tests.end_to_end.faults.cells import STATUSES, Case, What, Where, Who, faults
from tests.end_to_end.faults.dialects import DIALECTS, SERVER_ERRORS, SPENT, error_of
from tests.end_to_end.faults.players import REFUSAL, Player, Script
from tests.end_to_end.faults.replies import Reply
from tests.end_to_end.faults.stage import PART, SHORT, Stage, stage
from tests.end_to_end.faults.turns import NOTE, TURN, ParsedAnswer


def script_of(case: Case) -> Script:
    return Script.of(DIALECTS[case.api], TURN, streamed=case.streamed)


def complete(case: Case) -> bool:
    return script_of(case).complete(case.fault.what, case.fault.where)


class End(Enum):
    """How the client's answer ends."""

    REFUSED = "with upstream's own status and error, as they came"
    GATEWAY = 502
    TIMEOUT = 504
    BROKEN = "broken off, as upstream broke off"
    FAILED = "saying that it failed, with what was said before kept"
    AS_IT_CAME = "byte for byte"
    WHOLE = "as if nothing had happened"


Rule = tuple[Callable[[Case], bool], End]

BEFORE_THE_RESPONSE: tuple[Rule, ...] = (
    (lambda case: case.fault.what in STATUSES, End.REFUSED),
    (lambda case: case.fault.what is What.STALL, End.TIMEOUT),
    (lambda case: True, End.GATEWAY),
)
UNTOUCHED: tuple[Rule, ...] = (
    (lambda case: case.fault.what is What.ERROR_EVENT, End.AS_IT_CAME),
    (complete, End.AS_IT_CAME),
    (lambda case: True, End.BROKEN),
)
ENGAGED: tuple[Rule, ...] = (
    (lambda case: case.fault.where is Where.AFTER, End.WHOLE),
    (lambda case: case.streamed, End.FAILED),
    (complete, End.AS_IT_CAME),  # although it is not JSON
    (lambda case: case.fault.what is What.STALL, End.TIMEOUT),
    (lambda case: True, End.GATEWAY),
)


def end_of(case: Case) -> End:
    """Return the end that the first matching rule names."""
    began = case.fault.where >= Where.FIRST
    rules = BEFORE_THE_RESPONSE if not began else ENGAGED if case.engaged else UNTOUCHED
    return next(end for fits, end in rules if fits(case))


def outcome_of(case: Case) -> str:
    if not case.engaged:
        return "failed" if end_of(case) is End.BROKEN else "untouched"
    if case.fault.where < Where.FIRST:
        return "error"
    return {End.WHOLE: "ok", End.AS_IT_CAME: "passed"}.get(end_of(case), "failed")


CASES = [
    Case(api, streamed, fault, engaged)
    for api in DIALECTS
    for streamed in (True, False)
    for engaged in (True, False)
    for fault in faults(Who.UPSTREAM, streamed=streamed)
]


def limits(case: Case) -> dict[str, float]:
    """Shorten only the limit that the stall runs into."""
    if case.fault.what is not What.STALL:
        return {}
    limit = {Where.CONNECT: "connect", Where.HEADERS: "headers"}.get(case.fault.where, "idle")
    return {limit: SHORT}


def upstream_answer(case: Case) -> ParsedAnswer:
    """Return upstream's answer up to the fault."""
    script, dialect = script_of(case), DIALECTS[case.api]
    if case.streamed:
        return dialect.parse_stream(script.body(case.fault.where))
    return dialect.parse_body(dialect.whole(TURN)) if end_of(case) is End.WHOLE else ParsedAnswer()


def parts_due(thought: str) -> int:
    """Return the number of summary parts that this reasoning fills."""
    plan = SummaryPlan(part_chars=PART, first_share=FIRST_SHARE)
    return len(plan.new_segmenter().feed(thought))


@pytest.mark.matrix(2)
@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_broken_upstream_looks_broken(case: Case) -> None:
    dialect, before = DIALECTS[case.api], upstream_answer(case)
    parts = parts_due(before.thought) if case.engaged else 0
    upstream = Player.with_fault(script_of(case), case.fault)
    summarizer = Player(Script.stream(dialect, NOTE))
    async with stage(dialect, upstream, summarizer, limits=limits(case)) as here:
        await here.ask(streamed=case.streamed, summary=case.engaged)
        reply = await here.reply()
    check_reply(case, here, reply)
    assert here.count("requests_total", "outcome") == {outcome_of(case): 1}
    assert here.count("summaries_total", "outcome") == ({"ok": 1} if parts else {})
    assert here.summarizer.requests == parts
    assert here.count("summarizer_tokens_total", "type").get("output", 0) == parts * SPENT
    used = (before.usage or {}) if case.engaged else {}
    assert here.count("upstream_tokens_total", "type").get("output") == used.get(dialect.tokens[1])


def check_reply(case: Case, here: Stage, reply: Reply) -> None:
    end, script, fault = end_of(case), script_of(case), case.fault
    assert reply.complete == (end is not End.BROKEN)
    match end:
        case End.REFUSED:
            assert reply.status == int(STATUSES[fault.what].split()[0])
            assert (reply.body, reply.header(b"retry-after")) == (REFUSAL, b"7")
        case End.GATEWAY | End.TIMEOUT:
            assert reply.status == end.value
            assert error_of(reply.body)["type"] in SERVER_ERRORS
        case End.BROKEN:
            assert reply.body == script.body(fault.where)
        case End.AS_IT_CAME:
            extra = script.error if case.streamed else script.garbage(fault.where)
            whole = script.body(fault.where) + extra
            assert reply.body == whole[: None if case.streamed else len(script.body())]
        case End.FAILED | End.WHOLE:
            parsed = here.parse(reply)
            assert parsed.answer == upstream_answer(case).answer
            assert (parsed.failed, parsed.complete) == (end is End.FAILED, end is End.WHOLE)
            assert parsed.code is None
