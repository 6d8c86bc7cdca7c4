"""Test what a client of Messages sees of a stream whose upstream speaks Messages, too."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abridge.apis.display import Exposure
from abridge.core.envelope import UNSEALED, Envelope
from abridge.core.plan import SummaryPlan
from tests.apis.messages.scripts import (
    begin,
    delta,
    event,
    finish_at_once,
    redacted,
    search,
    start,
    stop,
    stream,
    text,
    thinking,
    tool_use,
)
from tests.core.sequencer_driver import SequencerDriver
from tests.core.test_sequencer_laws import drain, summarize
from tests.support.matrix import some
from tests.support.messages_checker import MessagesStream, check_messages
from tests.support.pipeline import messages
from tests.support.shared import RECORDINGS, needs_recordings
from tests.support.streams import THOUGHT

PLAN = SummaryPlan(style="auto", part_chars=60, tail_chars=5, min_chars=0)
EXPOSURES: tuple[Exposure, ...] = ("auto", "both", "summary", "raw", "none")
CONTENT = [
    thinking(THOUGHT, "c2lnbmVk"),
    redacted("b3BhcXVl"),
    text("I look. "),
    tool_use(0, city="Paris", days=[1, 2]),
    thinking(THOUGHT, "YWdhaW4="),
    *search(),
    tool_use(1),
    text("Done."),
]
STREAM = b"".join(stream(CONTENT, "tool_use"))


def shown(frames: list[bytes] | bytes = STREAM, **given: Any) -> MessagesStream:
    data = frames if isinstance(frames, bytes) else b"".join(frames)
    return check_messages(messages(plan=PLAN, **given).stream(data))


def seal(envelope: Envelope) -> str:
    """Return a readable blob."""
    return "abr1." + "".join(block["thinking"] for block in envelope.reasoning)


def kinds(answer: MessagesStream) -> list[str]:
    return [block["type"] for block in answer.blocks]


@needs_recordings
@pytest.mark.parametrize("name", sorted(path.name for path in RECORDINGS.glob("anthropic*.sse")))
@given(data=st.data())
def test_recordings_pass_byte_for_byte_however_they_are_split(name: str, data: Any) -> None:
    recording = (RECORDINGS / name).read_bytes()
    cuts = data.draw(st.lists(st.integers(0, len(recording)), max_size=5))
    assert messages(expose="raw").stream(recording, cuts) == recording


@needs_recordings
@pytest.mark.parametrize("expose", EXPOSURES)
@pytest.mark.parametrize("name", sorted(path.name for path in RECORDINGS.glob("anthropic*.sse")))
def test_of_recordings_only_thinking_is_changed(name: str, expose: Exposure) -> None:
    recording = (RECORDINGS / name).read_bytes()
    before, after = check_messages(recording), shown(recording, expose=expose)
    assert after.text == before.text
    assert after.calls == before.calls
    assert after.stop_reason == before.stop_reason


def test_what_is_shown_passes_byte_for_byte() -> None:
    assert messages(expose="raw").stream(STREAM) == STREAM


@pytest.mark.parametrize("expose", EXPOSURES)
def test_any_exposure_gives_a_legal_stream_with_the_whole_answer(expose: Exposure) -> None:
    answer = shown(expose=expose)
    kept = [block for block in answer.blocks if block["type"] != "thinking"]
    assert kept == [block for block in CONTENT if block["type"] != "thinking"]
    assert answer.stop_reason == "tool_use"


def test_a_summary_takes_the_place_of_thinking() -> None:
    answer = shown()
    assert kinds(answer) == [block["type"] for block in CONTENT]
    assert THOUGHT not in str(answer.blocks)
    assert all("**Part**\n\nSaid of" in text for text in answer.thinking)
    assert "characters.\n\n**Part**" in answer.thinking[0]


def test_both_are_shown_in_blocks_of_their_own() -> None:
    answer = shown(expose="both")
    raw, summary = answer.blocks[:2]
    assert raw == CONTENT[0]
    assert summary["thinking"].startswith("**Part**")
    assert [text for text in answer.thinking if text == THOUGHT] == [THOUGHT, THOUGHT]


def test_without_any_text_the_block_stays() -> None:
    answer = shown(expose="none")
    assert [block for block in answer.blocks if block["type"] == "thinking"] == [
        {"type": "thinking", "thinking": "", "signature": UNSEALED}
    ] * 2


def test_the_signature_seals_what_is_not_shown() -> None:
    first = shown(seal=seal).blocks[0]
    assert first["signature"] == f"abr1.{THOUGHT}"


def test_thinking_that_upstream_omits_keeps_its_signature() -> None:
    frames = stream([thinking("", "b3du"), text("So.")])
    data = b"".join(frames)
    assert messages(plan=PLAN, seal=seal).stream(data) == data


def test_a_failed_summary_is_told_at_the_end_of_its_block() -> None:
    answer = shown(write=None)
    assert answer.blocks[0]["summary_error"]["code"] == "upstream_error"
    assert answer.text == "I look. Done."


def test_the_summarizers_usage_is_added_to_the_last() -> None:
    usage = shown().usage
    assert usage["reasoning_summary"]["parts"] > 1
    assert usage["output_tokens"] == 70 + usage["reasoning_summary"]["output_tokens"]
    assert usage["input_tokens"] == 11 + usage["reasoning_summary"]["input_tokens"]


@pytest.mark.parametrize(
    ("told", "known"),
    [
        ({}, 11),
        ({"input_tokens": None, "cache_read_input_tokens": None}, 11),
        ({"input_tokens": 0}, 0),
    ],
)
def test_an_input_that_only_the_start_told_grows_as_well(told: dict[str, Any], known: int) -> None:
    frames = [
        *stream([thinking(THOUGHT), text("So.")])[:-3],
        event(
            "message_delta", delta={"stop_reason": "end_turn"}, usage={**told, "output_tokens": 70}
        ),
        event("message_stop"),
    ]
    usage = shown(frames).usage
    assert usage["input_tokens"] == known + usage["reasoning_summary"]["input_tokens"]
    assert usage.keys() >= told.keys()


class TestUnknown:
    """What Abridge does not know passes where nothing is hidden."""

    def test_unknown_events_blocks_and_deltas_pass(self) -> None:
        unknown = [
            event("new_event", odd=1),
            start(0, {"type": "new_block", "odd": 1}),
            delta(0, "odd", odd="x"),
            delta(0, "text", text="of a block that is not known"),
            stop(0),
        ]
        frames = [begin(), *unknown, *finish_at_once()]
        data = b"".join(frames)
        assert messages(plan=PLAN).stream(data) == data

    def test_an_event_of_no_block_gets_no_index_beside_a_text_that_moves(self) -> None:
        unknown = event("odd_event", odd=True)
        thought, said = stream([thinking(THOUGHT), text("So.")]), b"".join
        place = next(at for at, frame in enumerate(thought) if b"text_delta" in frame)
        out = messages(expose="both", plan=PLAN).stream(
            said([*thought[:place], unknown, *thought[place:]])
        )
        assert unknown in out
        assert said([start(2, text("")), unknown, delta(2, "text", text="So.")]) in out

    def test_citations_and_what_explains_the_stop_pass(self) -> None:
        citation = {"type": "char_location", "cited_text": "x", "document_index": 0}
        details = {"type": "refusal", "category": "cyber", "explanation": "No."}
        frames = [
            begin(),
            start(0, {"type": "text", "text": "", "citations": []}),
            delta(0, "text", text="So."),
            delta(0, "citations", citation=citation),
            stop(0),
            event(
                "message_delta",
                delta={"stop_reason": "refusal", "stop_details": details, "container": None},
                usage={"output_tokens": 1},
                context_management={"applied_edits": []},
            ),
            event("message_stop"),
        ]
        data = b"".join(frames)
        assert messages(plan=PLAN).stream(data) == data


BLOCKS = st.lists(
    st.sampled_from(
        [
            thinking(THOUGHT, "c2ln"),
            thinking("", "b21pdHRlZA=="),
            redacted("b3BhcXVl"),
            text("So it is."),
            tool_use(0, city="Paris"),
            tool_use(1),
        ]
    ),
    max_size=5,
    unique_by=str,
)


@settings(max_examples=some(100))
@given(
    content=BLOCKS,
    expose=st.sampled_from(EXPOSURES),
    cut=st.integers(0, 60),
    data=st.data(),
)
def test_every_interleaving_of_upstream_and_summarizer_gives_a_legal_stream(
    content: list[Any], expose: Exposure, cut: int, data: st.DataObject
) -> None:
    frames = stream(content)
    pipeline = messages(expose=expose, seal=seal if data.draw(st.booleans()) else None)
    style = pipeline.display.style
    plan = SummaryPlan(style=style, part_chars=10, tail_chars=5, min_chars=0, max_parts=3)
    driver = SequencerDriver(plan)
    upstream = iter([*frames[: max(0, len(frames) - cut)], None])
    for frame in upstream:
        events = pipeline.reader.end() if frame is None else pipeline.reader.read(frame)
        for read in events:
            driver.upstream(read)
            for _ in range(data.draw(st.integers(0, 2))):
                if driver.requested:
                    summarize(driver, data)
    drain(driver)
    seen = check_messages(b"".join(map(pipeline.writer.write, driver.emitted)))
    assert seen.stopped == (cut < 2)
    assert (seen.error is None) == (cut < 2)
    if cut < 2:
        kept = [block for block in content if block["type"] != "thinking"]
        assert [block for block in seen.blocks if block["type"] != "thinking"] == kept


@pytest.mark.parametrize(
    "pieces",
    [
        [("thinking", THOUGHT), ("signature", ""), ("signature", "c2ln")],
        [("thinking", THOUGHT), ("signature", "b2xk"), ("signature", "c2ln")],
        [("signature", "c2ln"), ("thinking", THOUGHT)],
    ],
)
def test_the_last_signature_is_sealed_with_the_whole_text(pieces: list[tuple[str, str]]) -> None:
    """A later signature replaces an earlier one, as in Anthropic's own clients."""
    sealed: list[Envelope] = []

    def note(envelope: Envelope) -> str:
        sealed.append(envelope)
        return seal(envelope)

    deltas = [delta(0, kind, **{kind: piece}) for kind, piece in pieces]
    frames = [begin(), start(0, thinking("", "")), *deltas, stop(0), *finish_at_once()]
    messages(plan=PLAN, seal=note).stream(b"".join(frames))
    assert [envelope.reasoning for envelope in sealed] == [[thinking(THOUGHT, "c2ln")]]
