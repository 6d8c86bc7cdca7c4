"""What is written of a delta by itself is what would be encoded anew of the whole event."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from abridge.apis import sse
from abridge.apis.chat.chunks import encode_chunk
from abridge.apis.chat.writer import MAX_FRAMES, ChatWriter, ChoiceWriter, TextPlace
from abridge.apis.display import Display
from abridge.apis.frames import HOLE, DeltaFrame, encode_event, parse_frame
from abridge.apis.json import dumps
from abridge.apis.messages.writer import TranslatedMessagesWriter
from abridge.apis.obfuscation import obfuscate_chunk, obfuscate_event
from abridge.apis.responses.writer import ResponsesWriter, with_part_index
from abridge.core.envelope import Envelope
from abridge.core.events import (
    ContentDelta,
    Event,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    SummaryPartAdded,
    SummaryPartDone,
    SummaryTextDelta,
    ToolCallDelta,
)
from abridge.providers.catalog import PROFILES
from tests.apis.test_translating_writers_laws import REQUEST, turns
from tests.core.test_sequencer_laws import sequenced
from tests.support.pipeline import LIMIT, Minting

BOOLEANS = st.booleans()
PADDING = re.compile(rb'"obfuscation":"([\w-]*)"')


def measured(data: bytes) -> bytes:
    """The bytes, with only the length of what is random in them."""
    return PADDING.sub(lambda found: b"padding of %d" % len(found[1]), data)


def seal(envelope: Envelope) -> str:
    return f"abr1.{len(envelope.reasoning)}"


@st.composite
def displays(draw: st.DrawFn) -> Display:
    summary = draw(st.booleans())
    return Display(
        show_raw=draw(st.booleans()),
        show_summary=summary,
        style="auto" if summary else None,
        add_details=draw(st.booleans()),
        obfuscate=draw(st.booleans()),
        seal=draw(st.sampled_from([None, seal])),
    )


@st.composite
def summarized_turns(draw: st.DrawFn) -> list[Event]:
    """The events of a turn as they are written, with a summary of Abridge's among them."""
    return sequenced(draw(turns()), draw(st.data()))


TEXTS = st.text() | st.text('"\\\ud83d\udca1é', max_size=20)


class TestDeltaFrame:
    @given(TEXTS, st.integers(0, 1 << 70), st.text())
    def test_an_event_of_responses(self, text: str, number: int, item: str) -> None:
        kind = "response.output_text.delta"
        event = {"type": kind, "sequence_number": number, "item_id": item, "delta": text}
        frame = DeltaFrame({**event, "sequence_number": HOLE, "delta": HOLE}, kind)
        digits = b"%d" % number
        assert frame.write(text, digits) == sse.encode_frame(dumps(event), kind)
        whole = sse.encode_frame(dumps(obfuscate_event(event)), kind)
        assert measured(frame.write_obfuscated(text, digits)) == measured(whole)

    @given(TEXTS.filter(bool), st.text())
    def test_a_chunk(self, text: str, name: str) -> None:
        def chunk(text: Any) -> dict[str, Any]:
            return {"id": name, "choices": [{"index": 0, "delta": {"content": text}}]}

        frame = DeltaFrame(chunk(HOLE))
        assert frame.write(text) == encode_chunk(chunk(text), obfuscate=False)
        whole = sse.encode_frame(dumps(obfuscate_chunk(chunk(text))))
        assert measured(frame.write_obfuscated(text)) == measured(whole)


class EncodingChatWriter(ChatWriter):
    """Encodes each chunk by itself."""

    def _write_texts(self, choice: ChoiceWriter, place: TextPlace, texts: list[str]) -> bytes:
        return self._encode([_choice(choice, place, text) for text in texts])


def _choice(choice: ChoiceWriter, place: TextPlace, text: str) -> dict[str, Any]:
    delta = choice.build_delta(place, text)
    return {"index": choice.lane, "delta": delta, "finish_reason": None}


@st.composite
def reasoning_chunks(draw: st.DrawFn) -> tuple[bytes, int, str]:
    """A chunk with reasoning, the choice that it is of, and its text."""
    text = draw(st.sampled_from(["a", "b", '"', "é", "m", "", "reasoning_content", "I think on"]))
    beside = draw(st.sampled_from([{}, {}, {"content": None}, {"content": ""}, {"x": "a"}]))
    lane = draw(st.sampled_from([0, 0, 0, 1]))
    delta = {**beside, "reasoning_content": text}
    choice = {"index": lane, "delta": delta, "finish_reason": None}
    padding = draw(st.sampled_from([{}, {}, {"obfuscation": "ab"}]))
    data = json.dumps({"model": "m", "choices": [choice], **padding}, ensure_ascii=draw(BOOLEANS))
    return sse.encode_frame(data.encode()), lane, text


class TestChat:
    @given(summarized_turns(), displays(), st.booleans())
    def test_every_chunk_is_as_if_encoded_by_itself(
        self,
        events: list[Event],
        display: Display,
        translated: bool,  # noqa: FBT001 -- drawn
    ) -> None:
        def writer(kind: type[ChatWriter]) -> ChatWriter:
            echo = REQUEST if translated else None
            return kind(PROFILES["auto"], display, echo, LIMIT, Minting())

        short, encoding = writer(ChatWriter), writer(EncodingChatWriter)
        for event in events:
            assert measured(short.write(event)) == measured(encoding.write(event))

    @given(st.lists(reasoning_chunks(), min_size=2, max_size=8), st.booleans(), st.booleans())
    def test_a_frame_is_patched_as_if_by_itself(
        self,
        deltas: list[tuple[bytes, int, str]],
        obfuscate: bool,  # noqa: FBT001 -- drawn
        details: bool,  # noqa: FBT001 -- drawn
    ) -> None:
        display = Display(obfuscate=obfuscate, add_details=details)
        short, alone = (ChatWriter(PROFILES["auto"], display) for _ in range(2))
        for frame, lane, text in deltas:
            event = ReasoningDelta(lane, frame, 0, text)
            alone._patched = None
            assert measured(short.write(event)) == measured(alone.write(event))

    def test_frames_are_kept_of_so_many_calls(self) -> None:
        display = Display()
        writer = ChatWriter(PROFILES["auto"], display, REQUEST, LIMIT, Minting())
        numbers = [*range(MAX_FRAMES + 1), 0]
        for number in numbers:
            writer.write(ToolCallDelta(0, None, call_index=number, id=f"c{number}", name="f"))
            written = writer.write(ToolCallDelta(0, None, call_index=number, arguments="x"))
            assert b'[{"index":%d,"function":{"arguments":"x"}}]' % number in written


def delta_frame(number: object, text: object, *, spaced: bool = False, **fields: Any) -> bytes:
    event = {
        "type": "response.output_text.delta",
        "sequence_number": number,
        "item_id": "msg_1",
        "delta": text,
        **fields,
    }
    data = dumps(event)
    return sse.encode_frame(data.replace(b'":', b'": ') if spaced else data, event["type"])


NUMBERS = st.integers(-1, 99) | st.floats() | st.sampled_from([None, "7", [7], "sequence_number"])
RAW_ITEM = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "Hm"}]}
ODD_FIELDS = st.dictionaries(
    st.sampled_from(["response", "item", "reasoning", "sequence_number", "x"]),
    st.sampled_from(
        [
            *(1, "sequence_number", "response", {"sequence_number": 3}),
            *(RAW_ITEM, {"output": [RAW_ITEM]}),
        ]
    ),
    max_size=2,
)


@st.composite
def delta_frames(draw: st.DrawFn) -> bytes:
    frame = delta_frame(draw(NUMBERS), draw(st.text('a"\\{}:, re', max_size=9)))
    if draw(st.booleans()):
        frame = delta_frame(
            draw(st.integers(0, 99)),
            draw(st.sampled_from(["a", "sequence_number", 'say "response"', "reasoning_text"])),
            spaced=draw(st.booleans()),
            **draw(ODD_FIELDS),
        )
    if draw(st.integers(0, 3)) == 0:
        at, cut = draw(st.integers(0, len(frame))), draw(st.integers(0, 30))
        more = draw(st.sampled_from([b"", b"\r", b"\n", b'"', b',"sequence_number":5', b"}", b" "]))
        frame = frame[:at] + more + frame[at + cut :]
    return frame


class TestResponses:
    @given(st.lists(delta_frames(), max_size=8), BOOLEANS, BOOLEANS)
    @example([delta_frame(1, "a"), delta_frame(2, "b", item=RAW_ITEM)], False, False)
    @example(
        [delta_frame(1, "a"), delta_frame(2, "b", response={"output": [RAW_ITEM]})], False, False
    )
    def test_a_number_is_put_where_parsing_would_put_it(
        self,
        frames: list[bytes],
        raw: bool,  # noqa: FBT001 -- drawn
        thinks: bool,  # noqa: FBT001 -- drawn
    ) -> None:
        short, parsing = (ResponsesWriter(Display(show_raw=raw)) for _ in range(2))
        for frame in [delta_frame(0, "-"), *filter(parse_frame, frames)]:
            event: Event = ReasoningDelta(0, frame, 0, "") if thinks else ContentDelta(0, frame)
            written = short.write(event)
            parsing._is_numbered = None
            assert parse_frame(written) == parse_frame(parsing.write(event))

    @given(
        st.integers(0, 20),
        st.lists(st.sampled_from([b'"summary_index"', b":", b": ", b"1", b"12", b",", b'"', b"x"])),
    )
    @example(1, [b'"summary_index"', b":", b"1", b","])
    @example(1, [b'"summary_index"', b":", b"1", b",", b'"summary_index"', b":", b"12"])
    def test_the_index_of_a_part_is_put_in_each_place(
        self, index: int, pieces: list[bytes]
    ) -> None:
        frame = b"".join(pieces)
        everywhere = re.sub(rb'("summary_index"\s*:\s*)\d+', rb"\g<1>%d" % index, frame)
        assert with_part_index(frame, index) == everywhere

    @given(summarized_turns(), displays(), st.integers(0, 400))
    def test_every_translated_event_is_as_if_built_anew(
        self, events: list[Event], display: Display, limit: int
    ) -> None:
        short = ResponsesWriter(display, REQUEST, limit, Minting())
        building = BuildingWriter(display, REQUEST, limit, Minting())
        for event in events:
            assert measured(short.write(event)) == measured(building.write(event))
        assert short.final_response == building.final_response

    @given(summarized_turns(), displays())
    def test_a_summary_beside_upstreams_events_is_as_if_built_anew(
        self, events: list[Event], display: Display
    ) -> None:
        short, building = ResponsesWriter(display), BuildingWriter(display)
        for event in events:
            if isinstance(event, ReasoningStarted):
                item = {"id": f"rs_{event.item}", "type": "reasoning", "summary": []}
                fields = {"output_index": event.item, "item": item}
                event.frame = encode_event("response.output_item.added", fields)
            elif not isinstance(event, SummaryPartAdded | SummaryTextDelta | SummaryPartDone):
                continue
            assert measured(short.write(event)) == measured(building.write(event))

    @pytest.mark.parametrize("upstream", [True, False])
    def test_each_part_of_each_item_has_its_own_address(self, *, upstream: bool) -> None:
        display = Display(show_raw=False, style="auto")
        bridge = None if upstream else REQUEST
        writer = ResponsesWriter(display, bridge, LIMIT, Minting())
        seen: list[tuple[str, int]] = []
        for item in (0, 1):
            fields = {"output_index": item, "item": {"id": f"rs_{item}", "type": "reasoning"}}
            frame = encode_event("response.output_item.added", fields) if upstream else None
            writer.write(ReasoningStarted(0, frame, item))
            for part in (0, 1):
                writer.write(SummaryPartAdded(0, None, item, part))
                for text in ("a", "b"):
                    delta = parse_frame(writer.write(SummaryTextDelta(0, None, item, part, text)))
                    assert delta["delta"] == text
                    seen.append((delta["output_index"], delta["summary_index"]))
                writer.write(SummaryPartDone(0, None, item, part, "ab", complete=True))
            if not upstream:
                writer.write(ReasoningEnded(0, None, item))
        assert seen == [(item, part) for item in (0, 1) for part in (0, 1) for _ in "ab"]


class BuildingWriter(ResponsesWriter):
    """Builds each event anew."""

    def add_text(self, _: Event) -> None:
        return None


class TestMessages:
    @given(summarized_turns(), displays(), st.integers(0, 400))
    def test_every_translated_event_is_as_if_built_anew(
        self, events: list[Event], display: Display, limit: int
    ) -> None:
        def writer(kind: type[TranslatedMessagesWriter]) -> TranslatedMessagesWriter:
            return kind(display, REQUEST, limit, Minting())

        short, building = writer(TranslatedMessagesWriter), writer(BuildingMessage)
        for event in events:
            assert short.write(event) == building.write(event)


class BuildingMessage(TranslatedMessagesWriter):
    """Builds each event anew."""

    def add_text(self, _: Event) -> None:
        return None
