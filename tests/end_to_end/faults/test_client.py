"""Client faults at every place of an answer: when the client leaves, everything stops."""

from __future__ import annotations

import pytest

from tests.end_to_end.faults.cells import Case, What, Where, Who, faults
from tests.end_to_end.faults.dialects import DIALECTS
from tests.end_to_end.faults.loop import pause
from tests.end_to_end.faults.players import NO_HTTP, Player, Script
from tests.end_to_end.faults.stage import Stage, stage
from tests.end_to_end.faults.turns import ANSWER, NOTE, SUMMARY, TURN
from tests.support.servers import soon

CASES = [
    Case(api, streamed, fault)
    for api in DIALECTS
    for streamed in (True, False)
    for fault in faults(Who.CLIENT, streamed=streamed)
]
LEAVING = [case for case in CASES if case.fault.what is not What.STALL]
STALLING = [case for case in CASES if case.fault.what is What.STALL]


async def disconnect(here: Stage, what: What) -> None:
    """Disconnect in one of three ways; a server hangs up on a half-closed or non-HTTP client."""
    if what is What.RESET:
        here.client.reset()
    elif what is What.HALF_CLOSE:
        here.client.writer.write_eof()
    else:
        await here.client.send(NO_HTTP)


@pytest.mark.matrix(2)
@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("case", LEAVING, ids=str)
async def test_when_the_client_leaves_everything_stops(case: Case, client: str) -> None:
    """Upstream and the summarizer both stall; `stage` asserts that both are abandoned."""
    ours, where = DIALECTS[client], case.fault.where
    script = Script.of(DIALECTS[case.api], TURN, streamed=case.streamed)
    upstream = Player(script, What.STALL, max(where, Where.HEADERS))
    summarizer = Player(Script.stream(ours, NOTE), What.STALL, Where.ANSWER)
    async with stage(ours, upstream, summarizer, upstream={"api": case.api}) as here:
        if where > Where.CONNECT:
            await here.ask(streamed=case.streamed)
            await soon(upstream.reached.wait())
            await pause()
        await disconnect(here, case.fault.what)
        await soon(here.client.left())
    requests = where > Where.CONNECT
    assert upstream.requests == requests
    thought = where >= (Where.THINKING if case.streamed else Where.AFTER)
    assert bool(summarizer.requests) == thought
    assert here.count("requests_total", "outcome") == ({"left": 1} if requests else {})
    assert here.count("summarizer_tokens_total", "type") == {}


@pytest.mark.parametrize("case", STALLING, ids=str)
async def test_a_client_that_pauses_misses_nothing(case: Case) -> None:
    dialect, where = DIALECTS[case.api], case.fault.where
    script = Script.of(dialect, TURN, streamed=case.streamed)
    upstream = Player(script, None, max(where, Where.HEADERS))
    async with stage(dialect, upstream, Player(Script.stream(dialect, NOTE))) as here:
        if where is Where.CONNECT:
            await pause()
        await here.ask(streamed=case.streamed)
        await soon(upstream.reached.wait())
        here.client.writer.transport.pause_reading()
        for _ in range(2):  # after one, upstream itself continues
            await pause()
        here.client.writer.transport.resume_reading()
        parsed = here.parse(await here.reply())
    assert parsed.answer == ANSWER
    assert parsed.summary == "\n\n".join([SUMMARY] * 2)
    assert (parsed.complete, parsed.failed, parsed.code) == (True, False, None)
    assert here.count("requests_total", "outcome") == {"ok": 1}
    assert here.count("summaries_total", "outcome") == {"ok": 1}
