"""Test that frames which come together are written as if each came by itself."""

from __future__ import annotations

from itertools import accumulate

import pytest

from abridge.apis.chat.api import CHAT
from abridge.apis.messages.api import MESSAGES
from abridge.apis.responses.api import RESPONSES
from abridge.core.events import DeltaRun, ReasoningDelta, held_size
from abridge.core.plan import SummaryPlan
from tests.benchmarks.scripts import script
from tests.end_to_end.chat_frames import arguments, contents
from tests.end_to_end.chat_frames import call as call_start
from tests.support.pipeline import EXPOSURES, Pipeline
from tests.support.streams import split_frames

APIS = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES}
PIECES = ["{", '"a"', ":", '"', "\ud83d", "\ude00", "ü", '\\"', "b", '"', "}"]
STREAMS = {
    **{api: split_frames(script(f"{api}-burst").steps[0][1]) for api in APIS},
    "chat calls": [*contents("I ", "look", ".", " So"), call_start(), *map(arguments, PIECES)],
}


def pipeline(stream: str, client: str, expose: str, *, details: bool) -> Pipeline:
    upstream = stream.split(maxsplit=1)[0]
    return Pipeline(
        APIS[client],
        expose=expose,  # type: ignore[arg-type]
        upstream=None if upstream == client else upstream,
        details=details,
        plan=SummaryPlan(live=False),
    )


@pytest.mark.parametrize("details", [False, True], ids=["", "details"])
@pytest.mark.parametrize("expose", EXPOSURES)
@pytest.mark.parametrize("client", APIS)
@pytest.mark.parametrize("stream", STREAMS)
def test_a_burst_is_written_as_if_frame_by_frame(
    stream: str, client: str, expose: str, *, details: bool
) -> None:
    frames = STREAMS[stream]
    single = pipeline(stream, client, expose, details=details)
    out = single.stream(b"".join(frames), list(accumulate(map(len, frames)))[:-1])
    burst = pipeline(stream, client, expose, details=details)
    assert burst.burst(b"".join(frames)) == out
    assert burst.recorded_turns() == single.recorded_turns()
    assert b"look" in out or b"sum" in out


def test_what_a_burst_occupies_while_it_waits_is_that_of_its_deltas() -> None:
    one, run = ReasoningDelta(0, None, 0, "ab"), ReasoningDelta(0, None, 0, "abcd")
    run.run = DeltaRun(["ab", "cd"], [None, None])
    assert held_size(run) == 2 * held_size(one)
