"""Test that frames recognised by a pattern are read as if each were parsed."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate, count, groupby, pairwise
from math import inf
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.apis import sse
from abridge.apis.chat.api import CHAT
from abridge.apis.delta_patterns import MAX_FRAME, MAX_PATTERNS, MAX_UNUSED, FrameReader
from abridge.apis.display import Display
from abridge.apis.frames import parse_frame
from abridge.apis.messages.api import MESSAGES
from abridge.apis.obfuscation import PADDING_FIELDS
from abridge.apis.protocols import Continuation, Reader
from abridge.apis.responses.api import RESPONSES
from abridge.apis.responses.writer import ResponsesWriter
from abridge.apis.sse import FrameDecoder
from abridge.core.answer import Part
from abridge.core.events import (
    Alike,
    ContentDelta,
    DeltaRun,
    Event,
    ReasoningDelta,
    split_run,
)
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import Profile
from abridge.stages.thinking import Accepts
from tests.end_to_end.recordings.recordings import Recording, recordings
from tests.support.shared import needs_recordings
from tests.support.streams import chunk, frame

APIS = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES}
PLAIN, REPLACED = Display(style=None), Display(show_raw=False)
HIDDEN = Display(show_raw=False, hides_raw=True)
OBFUSCATED = Display(obfuscate=True)
AUTO = PROFILES["auto"]
PARSING = replace(AUTO, parses_text=True)
"""A profile with which hidden text need not be held back."""
UNTAGGED = PROFILES["xai"]
"""A profile with which no tags are looked for in shown text."""
LIMIT = 4096


# Patterns


class OneDelta:
    """A reader of one frame, which is a delta. It knows no other, so all patterns are forgotten."""

    dropped = 0

    def __init__(self, event: Event, continuation: Continuation) -> None:
        self._events = [event]
        self._given: Continuation | None = continuation
        self.continuation: Continuation | None = None

    def read(self, _: bytes) -> list[Event]:
        self.continuation, self._given = self._given, None
        events, self._events = self._events, []
        return events


class Learned(FrameReader):
    """What is learned of frames that were deltas."""

    def __init__(self) -> None:
        super().__init__(cast(Reader, None), PLAIN)
        self.kept: list[str] = []

    def learn(
        self,
        sent: bytes,
        key: str,
        text: str,
        carried: bytes | None = b"",
        accepts: Accepts | None = None,
    ) -> Learned:
        event = ContentDelta(0, sent if carried == b"" else carried, text)
        return self.reads(event, Continuation(key, text, (self.kept.append,), accepts), sent)

    def reads(self, event: Event, continuation: Continuation, sent: bytes) -> Learned:
        self._reader = cast(Reader, OneDelta(event, continuation))
        self._parse(sent)
        return self

    def told(self, *sent: bytes) -> list[Event] | None:
        """Return the event that a pattern tells of the first of these frames, if one fits."""
        return self.read(sent)[0] or None


def learned(sent: bytes, key: str, text: str, carried: bytes | None = b"") -> Learned:
    return Learned().learn(sent, key, text, carried)


LOOKALIKE = b'""text":"one" '.decode("utf-16-le")
"""A string whose bytes in UTF-16 look like a text under its key."""

DELTA = (
    b'data: {"n":"x","sequence_number":1,"delta":{"text":"one","z":null},"obfuscation":"ab"}\n\n'
)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (b"one", b"another", "another"),
        (b"one", rb"\"},{\n", '"},{\n'),
        (b"one", "ü€😀".encode(), "ü€😀"),
        (b'"sequence_number":1', b'"sequence_number":123456789', "one"),
        (b'"ab"', b'""', "one"),
        (b"one", b"", None),
        (b"one", rb"\ud800", None),
        (b"one", b"\xff", None),
        (b"one", b"a\nb", None),
        (b"one", b'a","text":"b', None),
        (b"one", b"a\\", None),
        (b'"sequence_number":1', b'"sequence_number":01', None),
        (b'"sequence_number":1', b'"sequence_number":1.5', None),
        (b'"sequence_number":1', b'"sequence_number":', None),
        (b'"ab"', b'"a"b"', None),
        (b'"ab"', b'"ab","x":"y"', None),
        (b'"x"', b'"y"', None),
        (b"}\n\n", b"}\n", None),
        (b"}\n\n", b"}\n\n\n", None),
        (b"}\n\n", b",\n\n", None),
    ],
)
def test_a_frame_fits_if_it_says_the_same_with_another_text(
    old: bytes, new: bytes, text: str | None
) -> None:
    assert DELTA.count(old) == 1
    sent = DELTA.replace(old, new)
    read = learned(DELTA, "text", "one").told(sent)
    assert read == (None if text is None else [ContentDelta(0, sent, text)])


@pytest.mark.parametrize(
    "sent",
    [
        rb'data: {"note":"\"","text":"one"}' + b"\n\n",
        rb'data: {"t\u0065xt":"two","text":"one"}' + b"\n\n",
        b'data: {"text":"two","text":"one"}\n\n',
        b'data: {"text":"one","text":"one"}\n\n',
        b'data: {"type":"text","text":"one"}\n\n',
        b'data: {"text":"other"}\n\n',
        b'data: {"text":1}\n\n',
        b'data: {"text":\ndata: "one"}\n\n',
        b': {"text":"one"}\ndata: {"text":"one"}\n\n',
        b"data: %b\n\n" % f'{{"note":"{LOOKALIKE}","text":"one"}}'.encode("utf-16-le"),
        b'data: {"text":"one","more":"%b"}\n\n' % (b"x" * 4096),
    ],
)
def test_nothing_is_learned_of_a_frame_that_might_say_something_else(sent: bytes) -> None:
    assert learned(sent, "text", "one").told(sent) is None


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
@pytest.mark.parametrize("head", [b"", b"event: x\n", b'event: "\n', b": y\nid: 1\n"])
def test_lines_around_the_data_are_the_same(head: bytes, end: bytes) -> None:
    first, second = (b'%bdata: {"text":"%b"}%b' % (head, text, end) for text in (b"a", b"b"))
    assert learned(first, "text", "a").told(second) == [ContentDelta(0, second, "b")]
    assert learned(first, "text", "a").told(b"id: 7\n" + second) is None


def test_blanks_between_closing_brackets_do_not_matter() -> None:
    first, second = b'data: {"d":{"text":"a"}  }\n\n', b'data: {"d":{"text":"b"}     }   \n\n'
    assert learned(first, "text", "a").told(second) == [ContentDelta(0, second, "b")]
    assert learned(first, "text", "a").told(second.replace(b"}", b"]", 1)) is None


def test_blanks_matter_in_frames_that_are_not_padded() -> None:
    first, second = b'data: {"text":"a"}\n\n', b'data: {"text":"b"} \n\n'
    assert learned(first, "text", "a").told(second) is None


def test_padding_of_frames_that_are_written_anew_stays_or_goes() -> None:
    first, second = b'data: {"n":1, "text":"a"} \n\n', b'data: {"n":1, "text":"b"}   \n\n'
    bare = learned(first, "text", "a", b'data: {"text":"a"}\n\n')
    assert bare.told(second) == [ContentDelta(0, b'data: {"text":"b"}\n\n', "b")]
    assert learned(first, "text", "a", b'data: {"text":"a"} \n\n').told(second) is None


def test_what_goes_out_follows_from_the_frame() -> None:
    first, second = b'data: {"text":"a"}\n\n', rb'data: {"text":"b\n"}' + b"\n\n"
    named = learned(first, "text", "a", b"event: x\n" + first)
    assert named.told(second) == [ContentDelta(0, b"event: x\n" + second, "b\n")]
    nothing = learned(first, "text", "a", None)
    assert nothing.told(second) == [ContentDelta(0, None, "b\n")]
    repaired = learned(first, "text", "a", b'data: {"more":1,"text":"a","id":""}\n\n')
    expected = rb'data: {"more":1,"text":"b\n","id":""}' + b"\n\n"
    assert repaired.told(second) == [ContentDelta(0, expected, "b\n")]
    assert repaired.told(rb'data: {"text":"\u0062"}' + b"\n\n") is None  # who spells it how?


@pytest.mark.parametrize(("spelled", "text"), [(rb"a\n", "a\n"), (rb"\"", '"'), (rb"\\", "\\")])
def test_a_text_with_escapes_is_learned_from(spelled: bytes, text: str) -> None:
    first, second = b'data: {"text":"%b"}\n\n' % spelled, b'data: {"text":"b"}\n\n'
    assert learned(first, "text", text).told(second) == [ContentDelta(0, second, "b")]


def test_an_empty_line_of_data_at_the_end_is_the_same() -> None:
    first, second = (b'data: {"text":"%b"}\ndata:\n\n' % text for text in (b"a", b"b"))
    assert learned(first, "text", "a").told(second) == [ContentDelta(0, second, "b")]


def test_obfuscation_of_abridges_own_is_drawn_for_each_frame() -> None:
    first = frame({"text": "a"})
    patterns = learned(first, "text", "a", frame({"text": "a", "obfuscation": "x" * 15}))
    paddings = []
    for text in ["a", "b", "four", "x" * 15, "x" * 16]:
        (event,) = patterns.told(frame({"text": text})) or ()
        paddings.append(json.loads((event.frame or b"").removeprefix(b"data: "))["obfuscation"])
    assert [len(padding) for padding in paddings] == [15, 15, 12, 1, 0]
    assert len({*paddings[:2], "x" * 15}) == 3


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"sequence_number":1,', b'"sequence_number":0,'),
        (b'"sequence_number":1,', b""),
    ],
)
def test_a_rewritten_frame_may_leave_out_or_set_what_varies(old: bytes, new: bytes) -> None:
    unpadded = DELTA.replace(b',"obfuscation":"ab"', b"")
    carried = unpadded.replace(old, new).replace(b"null", b"1")
    patterns = learned(unpadded, "text", "one", carried)
    second = unpadded.replace(b'"sequence_number":1', b'"sequence_number":27')
    expected = ContentDelta(0, carried.replace(b"one", b"two"), "two")
    assert patterns.told(second.replace(b"one", b"two")) == [expected]


@pytest.mark.parametrize("more", [b"", b',"n":{"sequence_number":2,"sequence_number":1}'])
def test_a_rewritten_frame_that_has_what_varies_has_no_pattern(more: bytes) -> None:
    carried = DELTA.replace(b"null", b"1" + more)
    assert learned(DELTA, "text", "one", carried).told(DELTA) is None


@pytest.mark.parametrize(
    ("padding", "text", "fits"),
    [
        (b'"xyz"', b"b", True),
        (b'""', b"b", True),
        (b"27", b"b", False),
        (rb'"\u0061"', b"b", False),
        ('"ü"'.encode(), b"b", False),
        (b'"xyz"', b"p", False),
    ],
)
def test_padding_of_upstreams_own_is_copied_into_what_goes_out_anew(
    padding: bytes, text: bytes, *, fits: bool
) -> None:
    sent = b'data: {"text":"%b","p":%b}\n\n'
    written = b'data: {"more":1,"text":"%b","p":%b,"z":2}\n\n'
    patterns = learned(sent % (b"a", b'"ab"'), "text", "a", written % (b"a", b'"ab"'))
    expected = [ContentDelta(0, written % (text, padding), text.decode())]
    assert patterns.told(sent % (text, padding)) == (expected if fits else None)


def test_few_patterns_are_kept() -> None:
    patterns = Learned()
    frames = [frame({"i": number, "text": "a"}) for number in range(MAX_PATTERNS + 1)]
    for each in frames:
        patterns.learn(each, "text", "a")
    assert all(map(patterns.told, frames[1:]))
    assert not patterns.told(frames[0])


def test_all_patterns_are_forgotten_with_a_frame_that_is_no_delta() -> None:
    patterns = Learned().learn(DELTA, "text", "one")
    assert patterns.told(DELTA)
    assert not patterns.told(b"data: {}\n\n")
    assert not patterns.told(DELTA)


@pytest.mark.parametrize("text", ["one", "x" * MAX_FRAME], ids=["", "too long to learn from"])
def test_a_pattern_is_forgotten_once_another_part_of_its_lane_says_something(text: str) -> None:
    patterns, other = Learned().learn(DELTA, "text", "one"), DELTA.replace(b'"x"', b'"y"')
    other = other.replace(b"one", text.encode())
    event = ContentDelta(0, other, text, part=Part("text"))
    patterns.reads(event, Continuation("text", text, ()), other)
    assert not patterns.told(DELTA)


def test_frames_that_come_together_are_one_event() -> None:
    texts = ["a", "b", "ü", "d"]
    frames = [frame({"text": text}) for text in texts]
    patterns = learned(frames[0], "text", "a")
    events, place = patterns.read([*frames, frame({"n": 1}), frames[0]], 1)
    assert place == len(frames)
    assert events == [ContentDelta(0, b"".join(frames[1:]), "büd")]
    assert events[0].run == DeltaRun(texts[1:], frames[1:])
    assert split_run(events[0], events[0].run) == [
        ContentDelta(0, sent, text) for sent, text in zip(frames[1:], texts[1:], strict=True)
    ]
    assert patterns.kept == ["büd"]


@pytest.mark.parametrize("end", sse.BLANK_LINES)
@pytest.mark.parametrize("padding", [b"", b"   "])
def test_what_is_like_a_frame_is_one(padding: bytes, end: bytes) -> None:
    sent = b'data: {"text":"%b"}' + padding + end
    patterns = learned(sent % b"a", "text", "a")
    assert patterns.read_alone(sent % b"b") == ([ContentDelta(0, sent % b"b", "b")], None)
    two, halves = [sent % b"c", sent % b"d"], (sent[:12] + end, sent[12:])
    for data in (b"".join(two), b"\n" + two[0], two[0] + end, *halves):
        assert patterns.read_alone(data) is None


def test_a_run_ends_before_a_text_that_is_not_accepted() -> None:
    frames = [frame({"text": text}) for text in ("a", "b", "<", "d")]
    patterns = Learned().learn(frames[0], "text", "a", accepts=lambda text: text != "<")
    assert patterns.read(frames) == ([ContentDelta(0, b"".join(frames[:2]), "ab")], 2)
    assert patterns.kept == ["ab"]
    assert not patterns.told(*frames[2:])


def test_only_a_text_that_is_told_by_its_pattern_is_looked_at() -> None:
    seen: list[str] = []
    sent, rewritten = b'data: {"text":"%b"}\n\n', b'data: {"more":1,"text":"a"}\n\n'
    patterns = Learned().learn(
        sent % b"a", "text", "a", rewritten, lambda text: not seen.append(text)
    )
    assert patterns.read([sent % b"b", sent % rb"\u0063"])[1] == 1  # who spells it how?
    assert seen == ["b"]


def test_no_more_is_learned_where_no_frame_fits() -> None:
    patterns = Learned()
    for number in range(MAX_UNUSED):
        patterns.learn(frame({"i": number, "text": "a"}), "text", "a", None)
    assert patterns.learn(DELTA, "text", "one").told(DELTA) is None


# Readers


def read_all(
    reader: Reader, frames: list[bytes], *, by_patterns: bool, display: Display = PLAIN
) -> list[Any]:
    """Return all that a reader makes of a stream."""
    return read_pieces(
        reader, frames, lambda frame: [frame], by_patterns=by_patterns, display=display
    )


def read_pieces(
    reader: Reader,
    pieces: list[bytes],
    split: Callable[[bytes], list[bytes]],
    *,
    by_patterns: bool,
    display: Display = PLAIN,
) -> list[Any]:
    """Return all that is made of a stream that comes in pieces."""
    with nothing_random(by_patterns=by_patterns):
        frame_reader = FrameReader(reader, display)
        events = [list(read_frames(frame_reader, split(piece))) for piece in pieces]
        known = [reader.faults, reader.dropped, reader.mismatches]
        return [*events, known, reader.end(), reader.recorded_turns(), reader.observed()]


@contextmanager
def nothing_random(*, by_patterns: bool) -> Iterator[None]:
    """Count the ids that are minted, and fill up with one letter; learn patterns or none."""
    with pytest.MonkeyPatch.context() as patch:
        minted = count()
        for module in ("obfuscation", "delta_patterns"):
            patch.setattr(f"abridge.apis.{module}.fill_up", lambda size: b"A" * (-size % 16))
        patch.setattr(secrets, "token_bytes", lambda size: next(minted).to_bytes(size, "big"))
        if not by_patterns:
            patch.setattr(FrameReader, "_learn", lambda *_: None)
        yield


def read_frames(reader: FrameReader, frames: list[bytes]) -> Iterator[Event]:
    """Yield the events of frames that came together, those of a run one by one."""
    for event in read_events(reader, frames):
        yield from [event] if event.run is None else split_run(event, event.run)


def read_events(reader: FrameReader, frames: list[bytes]) -> Iterator[Event]:
    """Yield the events of frames that came together, and first the delta that is told later."""
    alone = reader.read_alone(frames[0]) if len(frames) == 1 else None
    told, shown = alone or ([], None)
    yield from filter(None, [shown, *told])
    place = 0 if alone is None else 1
    while place < len(frames):
        events, place = reader.read(frames, place)
        yield from events


def chat_frame(kind: str, text: str) -> dict[str, Any]:
    fields = {"think": "reasoning_content", "say": "content", "refuse": "refusal"}
    delta: dict[str, Any] = {fields.get(kind, ""): text}
    if kind == "call":
        delta = {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}
    elif kind == "begin":
        delta = {"role": "assistant", "content": ""}
    elif kind == "begin call":
        function = {"name": "look", "arguments": ""}
        delta = {"tool_calls": [{"index": 0, "id": "call_1", "function": function}]}
    elif kind == "muse":
        delta = {"musing": text}
    elif kind == "end":
        delta = {}
    choice = {"index": 0, "delta": delta, "finish_reason": "stop" if kind == "end" else None}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": [choice], "usage": None}


RESPONSES_KINDS: dict[str, tuple[str, str, int]] = {
    "think": ("response.reasoning_text.delta", "rs_1", 0),
    "sum up": ("response.reasoning_summary_text.delta", "rs_1", 0),
    "say": ("response.output_text.delta", "msg_1", 1),
    "refuse": ("response.refusal.delta", "msg_1", 1),
    "call": ("response.function_call_arguments.delta", "fc_1", 2),
}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
ITEMS: dict[str, dict[str, Any]] = {
    "begin": {"id": "rs_1", "type": "reasoning", "summary": []},
    "begin text": MESSAGE,
    "begin call": {
        "id": "fc_1",
        "type": "function_call",
        "call_id": "c",
        "name": "look",
        "arguments": "",
    },
}


ODD_EVENTS: dict[str, dict[str, Any]] = {
    "muse": {
        "type": "response.output_item.added",
        "output_index": 1,
        "item": {"id": "msg_1", "type": "musing"},
    },
    "muse in a part": {
        "type": "response.content_part.added",
        "item_id": "msg_1",
        "output_index": 1,
        "content_index": 0,
        "part": {"type": "musing", "text": ""},
    },
    "end text": {"type": "response.output_item.done", "output_index": 1, "item": MESSAGE},
}


def responses_frame(kind: str, text: str) -> dict[str, Any]:
    number = {"sequence_number": len(text)}
    if kind in ODD_EVENTS:
        return {**ODD_EVENTS[kind], **number}
    if kind in ITEMS:
        index = list(ITEMS).index(kind)
        return {"type": "response.output_item.added", "output_index": index, "item": ITEMS[kind]}
    if kind == "end":
        return {"type": "response.completed", **number, "response": {"id": "resp_1", "output": []}}
    event_type, item_id, index = RESPONSES_KINDS[kind]
    place = {"summary_index" if kind == "sum up" else "content_index": 0}
    address = {"item_id": item_id, "output_index": index, **({} if kind == "call" else place)}
    padding = {"obfuscation": "x" * (len(text) % 4)}
    return {"type": event_type, **number, **address, "delta": text, **padding}


CREATED = [
    frame({"type": "response.created", "sequence_number": 0, "response": {"id": "r", "output": []}})
]
"""What an upstream begins with that numbers its events."""

BLOCKS = {"begin": "thinking", "begin text": "text", "begin call": "tool_use"}
DELTAS = {
    "think": ("thinking_delta", "thinking"),
    "say": ("text_delta", "text"),
    "call": ("input_json_delta", "partial_json"),
    "sign": ("signature_delta", "signature"),
}


def messages_frame(kind: str, text: str) -> dict[str, Any]:
    if kind in BLOCKS:
        index = list(BLOCKS).index(kind)
        empty = {"thinking": {"thinking": ""}, "text": {"text": ""}}
        more = empty.get(BLOCKS[kind], {"id": "call_1", "name": "look", "input": {}})
        block = {"type": BLOCKS[kind], **more}
        return {"type": "content_block_start", "index": index, "content_block": block}
    if kind == "muse":
        block = {"type": "musing"}
        return {"type": "content_block_start", "index": 1, "content_block": block}
    if kind == "end text":
        return {"type": "content_block_stop", "index": 1}
    if kind in ("end", "refuse"):
        return {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}
    delta_type, field = DELTAS[kind]
    index = list(DELTAS).index(kind) % 3
    return {
        "type": "content_block_delta",
        "index": index,
        "delta": {"type": delta_type, field: text},
    }


Make = Callable[[str, str], dict[str, Any]]
MAKERS: dict[str, tuple[Make, list[str]]] = {
    "chat": (chat_frame, ["begin", "begin call", "end", "think", "say", "call", "refuse", "muse"]),
    "responses": (responses_frame, [*ITEMS, *ODD_EVENTS, "end", *RESPONSES_KINDS]),
    "messages": (messages_frame, [*BLOCKS, "muse", "end text", "end", *DELTAS]),
}
TEXTS = st.one_of(
    st.text(min_size=1, max_size=5),
    st.sampled_from(["a", "b", "{", "}", '"}', '"}}\n\n', "\\", '\\"', "<think>", "</think>", "ü"]),
    st.sampled_from(["", " ", "\ud83d", "\0", "content", '","content":"']),
)
MUTATIONS: list[tuple[bytes, bytes]] = [
    (b"}\n\n", b"\n\n"),
    (b"}\n\n", b"  }\n\n"),
    (b"}\n\n", b"}  \n\n"),
    (b"\n\n", b"\r\n\r\n"),
    (b"data: ", b"data:"),
    (b"data: ", b": comment\ndata: "),
    (b"data: ", b"event: response.output_text.delta\ndata: "),
    (b"null", b"NaN"),
    (b'"delta"', b'"delta":"x","delta"'),
    (b'"text"', rb'"t\u0065xt"'),
    (b'"content"', b'"content":"dup","content"'),
    (b'"finish_reason":null', b'"finish_reason":"stop"'),
    (b'"usage":null', b'"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}'),
    (b'"usage":null', b'"usage":null,"error":{"message":"no"}'),
    (b'"object":"chat.completion.chunk",', b""),
    (b'"delta":{', b'"delta":{"role":"assistant",'),
    (b'"index":0,"function"', b'"function"'),
    (b'"index":0,"function"', b'"index":0,"id":"call_2","function":{"name":"x"},"function"'),
    (b'{"arguments"', b'{"name":"look","arguments"'),
    (b'"choices":[{"index":0,', b'"choices":[{'),
    (b'"index":0', b'"index":1'),
    (b'"output_index":1', b'"output_index":7'),
    (b'"item_id":"msg_1"', b'"item_id":"msg_2"'),
    (b'"choices":', b'"p":"abc","choices":'),
    (b'"type"', b'"more":1,"type"'),
    (b"a", b"\xff"),
    (b"e", b"E"),
    (b"{", b"["),
]


@st.composite
def streams(draw: st.DrawFn, api: str) -> list[bytes]:
    make, kinds = MAKERS[api]
    frames: list[bytes] = []
    runs = draw(st.lists(st.tuples(st.sampled_from(kinds), st.integers(1, 4)), max_size=6))
    everywhere = draw(st.lists(st.sampled_from(MUTATIONS), max_size=2))
    for kind, times in [("begin", 1), *runs]:
        for _ in range(times):
            fields, compact = make(kind, draw(TEXTS)), draw(st.integers(0, 4)) > 0
            separators = (",", ":") if compact else None
            is_ascii = draw(st.booleans())
            data = json.dumps(fields, ensure_ascii=is_ascii, separators=separators)
            sent = b"data: %b\n\n" % data.encode(errors="surrogatepass")
            once = [draw(st.sampled_from(MUTATIONS))] if draw(st.integers(0, 5)) == 0 else []
            for old, new in [*everywhere, *once]:
                sent = sent.replace(old, new, 1)
            frames.append(sent)
    return [*frames, *draw(st.sampled_from([[], [b"data: [DONE]\n\n", *frames[-2:]]]))]


@pytest.mark.parametrize("profile", [AUTO, UNTAGGED])
def test_reasoning_of_a_chat_is_learned_from_whether_or_not_tags_are_expected(
    profile: Profile,
) -> None:
    reader = APIS["chat"].reader(profile, PLAIN, LIMIT)
    for text in ("First", " I", " add"):
        reader.read(chunk({"reasoning_content": text}))
    assert reader.continuation is not None


@pytest.mark.parametrize("display", [PLAIN, HIDDEN])
@pytest.mark.parametrize("name", PADDING_FIELDS)
@pytest.mark.parametrize("api", APIS)
def test_padded_frames_have_a_pattern(api: str, name: str, display: Display) -> None:
    make, parsed = MAKERS[api][0], list[bytes]()
    kinds = ["begin", *["think"] * 6]
    frames = [frame({**make(kind, "I think."), name: "x" * at}) for at, kind in enumerate(kinds)]
    reader = FrameReader(APIS[api].reader(AUTO, display, LIMIT), display)
    with pytest.MonkeyPatch.context() as patch:
        parse = FrameReader._parse
        note = lambda self, sent: parsed.append(sent) or parse(self, sent)  # noqa: E731
        patch.setattr(FrameReader, "_parse", note)
        assert [*read_frames(reader, frames)]
    assert len(parsed) <= 3


@pytest.mark.parametrize("display", [PLAIN, REPLACED, HIDDEN, OBFUSCATED])
@pytest.mark.parametrize("api", APIS)
@given(data=st.data())
def test_patterns_change_nothing_of_a_stream(
    api: str, display: Display, data: st.DataObject
) -> None:
    frames, profile = data.draw(streams(api)), data.draw(st.sampled_from([AUTO, PARSING, UNTAGGED]))
    for make in (APIS[api].reader, APIS[api].upstream.translating_reader):
        slow, fast = (
            read_all(
                make(profile, display, LIMIT),
                frames,
                by_patterns=by_patterns,
                display=display,
            )
            for by_patterns in (False, True)
        )
        assert fast == slow


def test_reasoning_begins_again_after_a_fragment_of_a_call_that_says_no_name() -> None:
    thought = chunk({"reasoning_content": "0"})
    fragment = chunk({"tool_calls": [{"index": 0, "function": {"arguments": "0"}}]})
    frames = [chunk({"role": "assistant"}), thought, thought, fragment, thought, thought]
    make = APIS["chat"].upstream.translating_reader
    slow, fast = (
        read_all(make(AUTO, PLAIN, LIMIT), frames, by_patterns=way) for way in (False, True)
    )
    assert fast == slow


def write_all(
    frames: list[bytes],
    display: Display,
    *,
    by_patterns: bool,
    api: str = "chat",
    together: bool = False,
    room: float = 0,
) -> list[bytes]:
    """Return what goes out for each of these frames, or for all of them if they come together; with
    `room` for reasoning that is gathered."""
    reader = APIS[api].reader(AUTO, display, LIMIT)
    writer = APIS[api].writer(AUTO, display, None, LIMIT)
    with nothing_random(by_patterns=by_patterns):
        frame_reader = FrameReader(reader, display, lambda _: room)
        pieces = [frames] if together else [[sent] for sent in frames]
        read = [list(read_events(frame_reader, piece)) for piece in pieces]
        read += [frame_reader.release()] if room else []
        left = [[event for event in events if not event.is_written] for events in read]
        return [b"".join(map(writer.write, events)) for events in left]


@pytest.mark.parametrize("display", [PLAIN, REPLACED, HIDDEN])
@pytest.mark.parametrize("api", APIS)
@given(data=st.data())
def test_deltas_that_come_together_go_out_as_if_each_were_parsed(
    api: str, display: Display, data: st.DataObject
) -> None:
    frames, together = data.draw(streams(api)), data.draw(st.booleans())
    frames = [*CREATED, *frames] if api == "responses" else frames
    sent = [
        b"".join(write_all(frames, display, by_patterns=way, api=api, together=together and way))
        for way in (False, True)
    ]
    slow, fast = ([*map(parse_frame, FrameDecoder(1 << 20).feed(out))] for out in sent)
    assert fast == slow


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("display", [PLAIN, REPLACED, HIDDEN])
@given(data=st.data())
def test_reasoning_may_be_gathered(api: str, display: Display, data: st.DataObject) -> None:
    frames, room = data.draw(streams(api)), data.draw(st.sampled_from([1, 20, inf]))
    frames = [*CREATED, *frames] if api == "responses" else frames
    each, gathered = (
        b"".join(write_all(frames, display, by_patterns=True, api=api, room=one))
        for one in (0, room)
    )
    assert gathered == each


@pytest.mark.parametrize(
    ("room", "gathered"), [(8, [8, 8, 1]), (1, [1] * 17), (inf, [17]), (0, [])]
)
@pytest.mark.parametrize("display", [PLAIN, HIDDEN])
def test_reasoning_is_gathered_while_there_is_room(
    display: Display, room: float, gathered: list[int]
) -> None:
    frames = [chunk({"reasoning_content": "x"})] * 20
    reader = FrameReader(CHAT.reader(AUTO, display, LIMIT), display, lambda _: room)
    events = [event for sent in frames for event in read_events(reader, [sent])]
    events += reader.release()
    assert reader.release() == []
    said = [event for event in events if isinstance(event, ReasoningDelta)]
    late = [event for event in said if event.is_written]
    if display is PLAIN:
        assert [len(event.text) for event in late] == gathered
        assert "".join(event.text for event in said if event not in late) == "x" * 20
    else:
        assert [len(event.text) for event in said] == [1, 1, 1, *(gathered or [1] * 17)]
        assert not late


def test_what_is_gathered_of_a_choice_is_told_before_another_goes_on() -> None:
    turns = [(0, "abcdef"), (1, "uvwxyz"), (0, "ghij"), (1, "st")]
    frames = [
        chunk({"reasoning_content": letter}, index=lane) for lane, said in turns for letter in said
    ]
    reader = FrameReader(CHAT.reader(AUTO, HIDDEN, LIMIT), HIDDEN, lambda _: inf)
    events = [event for sent in frames for event in read_events(reader, [sent])]
    events += reader.release()
    said = [event for event in events if isinstance(event, ReasoningDelta)]
    assert len(said) < len(frames)
    told = groupby(said, key=lambda event: event.lane)
    assert [(lane, "".join(one.text for one in texts)) for lane, texts in told] == turns


def test_few_numbers_of_responses_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[bytes] = []
    look = ResponsesWriter._renumber

    def note(self: ResponsesWriter, sent: bytes, alike: Alike | None = None) -> bytes:
        looked_at.append(sent)
        return look(self, sent, alike)

    monkeypatch.setattr(ResponsesWriter, "_renumber", note)
    for together in (False, True):
        looked_at.clear()
        kinds = ["begin", *["think"] * 5, "begin text", *["say"] * 5]
        frames = [*CREATED, *(frame(responses_frame(kind, "I think on.")) for kind in kinds)]
        write_all(frames, PLAIN, by_patterns=True, api="responses", together=together)
        deltas = [sent for sent in looked_at if b'.delta"' in sent]
        assert len(deltas) == 4, together  # the first of each comes with the start of its part


PADDING = (None, '"ab"', '""', '"a.b-0_c"', '"\\u0070"', '"ü"', "7", "[7]")


@pytest.mark.parametrize("name", ["p", "obfuscation"])
def test_padding_spelled_with_an_escape_goes_out_as_if_each_frame_were_parsed(name: str) -> None:
    frames = [
        chunk({"reasoning_content": "0"}).replace(
            b"}\n\n", b',"%b":%b}\n\n' % (name.encode(), value)
        )
        for value in (b'"\\u0070"', b'"\\u0070"', b'"ab"', b'"abc"')
    ]
    slow, fast = (write_all(frames, Display(), by_patterns=way) for way in (False, True))
    assert fast == slow


@pytest.mark.parametrize("display", [Display(), Display(obfuscate=True)])
@given(data=st.data())
def test_reasoning_moves_to_another_field_as_if_each_frame_were_parsed(
    display: Display, data: st.DataObject
) -> None:
    frames = data.draw(streams("chat"))
    name = data.draw(st.sampled_from(["p", "obfuscation"]))
    for place, sent in enumerate(frames):
        padding = data.draw(st.sampled_from(PADDING))
        if padding is not None:
            frames[place] = sent.replace(b"}\n\n", f',"{name}":{padding}}}\n\n'.encode())
    slow, fast = (write_all(frames, display, by_patterns=way) for way in (False, True))
    assert fast == slow


def test_few_frames_whose_reasoning_moves_are_parsed() -> None:
    texts = ["I", " add", "p", "ab", " up"]
    sent = [frame(chat_frame("think", text) | {"p": "x" * len(text)}) for text in texts]
    parsed: list[bytes | None] = []
    with pytest.MonkeyPatch.context() as patch:
        parse = lambda each: parsed.append(each) or parse_frame(each)  # noqa: E731
        patch.setattr("abridge.apis.chat.writer.parse_frame", parse)
        begin = frame(chat_frame("begin", ""))
        _, *written = write_all([begin, *sent], Display(), by_patterns=True)
    said = [json.loads(each.removeprefix(b"data: ")) for each in written]
    assert [each["p"] for each in said] == ["x" * len(text) for text in texts]
    assert [each["choices"][0]["delta"] for each in said] == [{"reasoning": one} for one in texts]
    assert parsed == sent[:3:2]  # the third text is the name of the padding


def read_as_it_comes(
    reader: Reader, pieces: list[bytes], *, by_patterns: bool, display: Display
) -> list[Any]:
    """Return all that a reader makes of these reads, each of which may be a frame like an earlier
    one, or any part of the stream."""
    return read_pieces(
        reader, pieces, FrameDecoder(LIMIT).feed, by_patterns=by_patterns, display=display
    )


@pytest.mark.parametrize("display", [PLAIN, HIDDEN, OBFUSCATED])
@pytest.mark.parametrize("api", APIS)
@given(data=st.data())
def test_reads_that_are_not_split_into_frames_are_read_alike(
    api: str, display: Display, data: st.DataObject
) -> None:
    frames = data.draw(streams(api))
    if data.draw(st.booleans()):
        frames = [
            frame.replace(b"\n", data.draw(st.sampled_from([b"\r\n", b"\r"]))) for frame in frames
        ]
    for number in data.draw(st.lists(st.integers(0, len(frames) - 1), max_size=2)):
        frames[number] = data.draw(st.sampled_from([frames[number][:-1], b"\n", b"data:", b": x"]))
    stream = b"".join(frames)
    ends = [0, *accumulate(map(len, frames))]
    others = data.draw(st.lists(st.integers(0, len(stream)), max_size=5))
    cuts = {0, *data.draw(st.sampled_from([ends, ends[:-1:2], []])), *others, len(stream)}
    pieces = [stream[start:stop] for start, stop in pairwise(sorted(cuts))]
    for make in (APIS[api].reader, APIS[api].upstream.translating_reader):
        slow, fast = (
            read_as_it_comes(
                make(PROFILES["auto"], display, LIMIT),
                pieces,
                by_patterns=by_patterns,
                display=display,
            )
            for by_patterns in (False, True)
        )
        assert fast == slow


def frames_of(recording: Recording) -> list[bytes]:
    decoder = FrameDecoder(1 << 20)
    return [*decoder.feed(recording.data), *decoder.end()]


@needs_recordings
@pytest.mark.parametrize("display", [PLAIN, REPLACED, HIDDEN], ids=["plain", "replaced", "hidden"])
@pytest.mark.parametrize("recording", recordings(*APIS), ids=lambda recording: recording.name)
def test_patterns_change_nothing_of_a_recording(recording: Recording, display: Display) -> None:
    if not recording.streamed:
        return
    api, frames = APIS[recording.api or ""], frames_of(recording)
    for make in (api.reader, api.upstream.translating_reader):
        slow, fast = (
            read_all(
                make(PROFILES["auto"], display, 1 << 20),
                frames,
                by_patterns=by_patterns,
                display=display,
            )
            for by_patterns in (False, True)
        )
        assert fast == slow


@needs_recordings
@pytest.mark.parametrize("display", [REPLACED, HIDDEN], ids=["replaced", "hidden"])
def test_nearly_every_frame_of_a_long_recording_fits_a_pattern(
    display: Display, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[bytes] = []
    parse = FrameReader._parse

    def note(self: FrameReader, sent: bytes) -> list[Event]:
        parsed.append(sent)
        return parse(self, sent)

    monkeypatch.setattr(FrameReader, "_parse", note)
    for recording in recordings(*APIS):
        frames = frames_of(recording) if recording.streamed else []
        parsed.clear()
        reader = APIS[recording.api or ""].reader(PARSING, display, 1 << 20)
        list(read_frames(FrameReader(reader, display), frames))
        assert len(frames) < 200 or len(parsed) < 0.1 * len(frames), recording.name
