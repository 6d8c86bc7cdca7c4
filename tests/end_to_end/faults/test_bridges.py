"""Upstream faults under another API: the client sees and metrics count the same as without one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import permutations

import pytest

from abridge.apis.registry import APIS
from tests.end_to_end.faults.cells import STATUSES, Case, Where, Who, faults
from tests.end_to_end.faults.dialects import DIALECTS, SERVER_ERRORS, SPENT, error_of
from tests.end_to_end.faults.players import REFUSAL, Player, Script
from tests.end_to_end.faults.replies import Reply
from tests.end_to_end.faults.stage import Stage, stage
from tests.end_to_end.faults.test_upstream import End, end_of, limits, parts_due
from tests.end_to_end.faults.turns import NOTE, TURN, ParsedAnswer

STATUSES_BY_API = {(api.name, there): here for api in APIS for there, here in api.statuses.items()}
"""The statuses of clients' APIs for those of upstreams that they do not know."""


@dataclass(frozen=True)
class Bridge:
    """A case of upstream's API, and the client's API."""

    client: str
    case: Case

    def __str__(self) -> str:
        return f"{self.client} <- {self.case}"

    @property
    def script(self) -> Script:
        return Script.of(DIALECTS[self.case.api], TURN, streamed=self.case.streamed)

    @property
    def end(self) -> End:
        """An unreadable body passes unchanged on one API, and never across two."""
        if self.case.fault.where >= Where.FIRST and not self.case.streamed:
            whole = self.script.complete(self.case.fault.what, self.case.fault.where)
            if whole and self.case.fault.where is not Where.AFTER:
                return End.GATEWAY
        return end_of(self.case)

    @property
    def outcome(self) -> str:
        if self.case.fault.where < Where.FIRST:
            return "error"
        return "ok" if self.end is End.WHOLE else "failed"

    @property
    def upstream_answer(self) -> ParsedAnswer:
        """Upstream's answer up to the fault."""
        dialect, where = DIALECTS[self.case.api], self.case.fault.where
        if self.case.streamed:
            return dialect.parse_stream(self.script.body(where))
        return dialect.parse_body(dialect.whole(TURN)) if self.end is End.WHOLE else ParsedAnswer()


def bridges(who: Who) -> list[Bridge]:
    return [
        Bridge(client, Case(upstream, streamed, fault))
        for client, upstream in permutations(DIALECTS, 2)
        for streamed in (True, False)
        for fault in faults(who, streamed=streamed)
    ]


def plain(parsed: ParsedAnswer) -> tuple[str, object]:
    """Return the answer with complete arguments parsed, as they are re-encoded."""
    whole = parsed.arguments.endswith("}")
    return parsed.text, json.loads(parsed.arguments) if whole else parsed.arguments


@pytest.mark.matrix(2)
@pytest.mark.parametrize("bridge", bridges(Who.UPSTREAM), ids=str)
async def test_a_broken_upstream_looks_broken(bridge: Bridge) -> None:
    case, before = bridge.case, bridge.upstream_answer
    theirs, ours = DIALECTS[case.api], DIALECTS[bridge.client]
    parts = parts_due(before.thought)
    upstream = Player.with_fault(bridge.script, case.fault)
    summarizer = Player(Script.stream(ours, NOTE))
    tables = {"limits": limits(case), "upstream": {"api": case.api}}
    async with stage(ours, upstream, summarizer, **tables) as here:
        await here.ask(streamed=case.streamed)
        reply = await here.reply()
    check_reply(bridge, here, reply)
    assert here.count("requests_total", "outcome") == {bridge.outcome: 1}
    assert here.count("summaries_total", "outcome") == ({"ok": 1} if parts else {})
    assert here.summarizer.requests == parts
    assert here.count("summarizer_tokens_total", "type").get("output", 0) == parts * SPENT
    used = (before.usage or {}).get(theirs.tokens[1])
    assert here.count("upstream_tokens_total", "type").get("output") == used


def check_reply(bridge: Bridge, here: Stage, reply: Reply) -> None:
    assert reply.complete
    match bridge.end:
        case End.REFUSED:
            status = int(STATUSES[bridge.case.fault.what].split()[0])
            assert reply.status == STATUSES_BY_API.get((bridge.client, status), status)
            assert error_of(reply.body)["message"] == json.loads(REFUSAL)["error"]["message"]
            assert reply.header(b"retry-after") == b"7"
        case End.GATEWAY | End.TIMEOUT:
            assert reply.status == bridge.end.value
            assert error_of(reply.body)["type"] in SERVER_ERRORS
        case _:
            parsed, failed = here.parse(reply), bridge.end is End.FAILED
            assert plain(parsed) == plain(bridge.upstream_answer)
            assert (parsed.failed, parsed.complete) == (failed, not failed)
            assert parsed.code is None
