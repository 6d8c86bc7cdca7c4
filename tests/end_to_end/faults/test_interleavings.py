"""Any turn, split anywhere, with any fault of upstream and of the summarizer at once."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.end_to_end.faults.cells import STATUSES, Fault, What, Where, Who, faults
from tests.end_to_end.faults.dialects import DIALECTS, MESSAGES, SPENT, Dialect, error_of
from tests.end_to_end.faults.loop import Loop
from tests.end_to_end.faults.players import REFUSAL, Player, Script
from tests.end_to_end.faults.replies import Reply
from tests.end_to_end.faults.stage import SHORT, Stage, stage
from tests.end_to_end.faults.turns import NOTE, SILENCE, Kind, ParsedAnswer, Turn
from tests.support.matrix import some

TIMES: dict[str, dict[str, Any]] = {
    "summarizer": {"timeout": 3 * SHORT},
    "limits": {"connect": 4 * SHORT, "headers": 4 * SHORT, "idle": 4 * SHORT},
}
PATIENCE = {"first_token": SHORT, "grace": 2 * SHORT}


@dataclass(frozen=True)
class Play:
    """One case. `fault` is upstream's; `script` and `Where.ANSWER` are split and set anywhere."""

    dialect: Dialect
    turn: Turn
    script: Script
    fault: Fault | None
    summarizer_fault: Fault | None
    on_failure: str

    @property
    def where(self) -> Where:
        return Where.AFTER if self.fault is None else self.fault.where

    @property
    def whole(self) -> bool:
        return self.script.body(self.where) == self.script.body()

    @property
    def upstream_answer(self) -> ParsedAnswer:
        """Upstream's whole events before its fault."""
        data = self.script.body(self.where)
        return self.dialect.parse_stream(data[: data.rfind(b"\n\n") + 2 if b"\n\n" in data else 0])

    @property
    def summarized(self) -> bool:
        return self.summarizer_fault is None or self.summarizer_fault.where is Where.AFTER


words = st.text("ab \n.*<&é", min_size=1, max_size=12)
texts = st.lists(words, max_size=30).map(lambda found: "".join(["I", *found]))
"""Texts that begin as no tag could, which a reader would hold back."""
objects = texts.map(lambda text: json.dumps({"text": text}))
"""Arguments that are whole where they come as an object rather than its JSON."""


def turns(arguments: st.SearchStrategy[str]) -> st.SearchStrategy[Turn]:
    said = st.tuples(st.sampled_from([Kind.THOUGHT, Kind.TEXT]), texts)
    steps = st.lists(said | st.tuples(st.just(Kind.CALL), arguments), max_size=6)
    return steps.map(tuple).map(Turn)


def any_fault(who: Who, *, streamed: bool) -> st.SearchStrategy[Fault | None]:
    """Draw a fault or none. One place in upstream's body stands for all."""
    everywhere = (Where.CONNECT, Where.HEADERS, Where.ANSWER, Where.AFTER)
    found = faults(who, streamed=streamed)
    places = Where if who is Who.SUMMARIZER else everywhere
    return st.none() | st.sampled_from([fault for fault in found if fault.where in places])


@st.composite
def plays(draw: st.DrawFn) -> Play:
    dialect = draw(st.sampled_from(list(DIALECTS.values())))
    turn = draw(turns(objects if dialect is MESSAGES else texts))
    streamed = draw(st.booleans())
    fault = draw(any_fault(Who.UPSTREAM, streamed=streamed))
    frames = dialect.stream(turn) if streamed else [json.dumps(dialect.whole(turn)).encode()]
    data, ends = b"".join(frames), list(accumulate(map(len, frames), initial=0))
    at_an_event = fault is not None and fault.what is What.ERROR_EVENT
    place = draw(st.sampled_from(ends) if at_an_event else st.integers(0, len(data)))
    cuts = draw(st.sets(st.integers(0, len(data)), max_size=20))
    edges = sorted({0, place, len(data), *cuts})
    pieces = [data[start:end] for start, end in pairwise(edges)]
    before = {Where.ANSWER: edges.index(place), Where.AFTER: len(pieces)}
    return Play(
        dialect,
        turn,
        Script(pieces, before, streamed, dialect.error),
        fault,
        draw(any_fault(Who.SUMMARIZER, streamed=True)),
        draw(st.sampled_from(["omit", "extract", "fail"])),
    )


@settings(max_examples=some(120), deadline=None)
@given(plays())
def test_any_turn_with_any_faults(play: Play) -> None:
    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(check_play(play))


async def check_play(play: Play) -> None:
    silent = play.summarizer_fault is not None and play.summarizer_fault.what is What.NOTHING
    note = Script.stream(play.dialect, SILENCE if silent else NOTE)
    upstream = Player.with_fault(play.script, play.fault, paced=True)
    summarizer = Player.with_fault(note, play.summarizer_fault)
    summary = {"on_failure": play.on_failure, **PATIENCE}
    async with stage(play.dialect, upstream, summarizer, summary=summary, **TIMES) as here:
        await here.ask(streamed=play.script.streamed)
        reply = await here.reply()
    assert reply.complete
    assert sum(here.count("requests_total", "outcome").values()) == 1
    spent = here.count("summarizer_tokens_total", "type").get("output", 0)
    assert spent <= SPENT * summarizer.requests
    if play.where < Where.FIRST:
        check_no_answer(play, reply)
    elif play.script.streamed:
        check_stream(play, here, reply, spent)
    else:
        check_body(play, here, reply)


def check_no_answer(play: Play, reply: Reply) -> None:
    if play.fault is not None and play.fault.what in STATUSES:
        assert reply.body == REFUSAL
    else:
        assert reply.status in (502, 504)
        error_of(reply.body)


def check_stream(play: Play, here: Stage, reply: Reply, spent: float) -> None:
    parsed, upstream_answer = here.parse(reply), play.upstream_answer
    assert parsed.answer == upstream_answer.answer
    given_up = play.on_failure == "fail" and parsed.code is not None
    assert parsed.failed == (not play.whole or given_up)
    assert parsed.complete == (play.whole and not given_up)
    assert sum(here.count("summaries_total", "outcome").values()) == upstream_answer.items
    if play.whole and play.summarized:
        assert parsed.code is None
        assert bool(parsed.summary) == bool(upstream_answer.items)
    used = (upstream_answer.usage or {}).get(play.dialect.tokens[1])
    assert here.count("upstream_tokens_total", "type").get("output") == used
    if parsed.complete and parsed.usage is not None:
        assert parsed.usage[play.dialect.tokens[1]] == SPENT + spent


def check_body(play: Play, here: Stage, reply: Reply) -> None:
    if not play.whole:
        unread = play.fault is not None and play.fault.what is What.GARBAGE
        assert reply.status in ((200,) if unread else (502, 504))
        return
    failed = reply.status == 502 and play.on_failure == "fail"
    body = error_of(reply.body)["response"] if failed else reply.json
    parsed, upstream_answer = (
        play.dialect.parse_body(body),
        play.dialect.parse_body(play.dialect.whole(play.turn)),
    )
    assert parsed.answer == upstream_answer.answer
    assert failed == (play.on_failure == "fail" and parsed.code is not None)
    assert sum(here.count("summaries_total", "outcome").values()) == upstream_answer.items
