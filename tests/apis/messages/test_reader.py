"""Test reading Anthropic Messages answers: streams, bodies and failures."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.apis import sse
from abridge.apis.display import Display
from abridge.apis.errors import CONNECTION_LOST, TURN_PAUSED
from abridge.core.events import (
    STRAY_ARGUMENTS,
    ErrorReported,
    ProviderState,
    ResponseStarted,
    ToolCallDelta,
)
from abridge.core.usage import Tokens
from tests.apis.messages.legality import ReadAnswer, check_events
from tests.apis.messages.scripts import (
    Block,
    begin,
    delta,
    event,
    finish,
    finish_at_once,
    message,
    read_frames,
    reader,
    redacted,
    search,
    start,
    stop,
    stream,
    text,
    thinking,
    tool_use,
)
from tests.support.shared import RECORDINGS, needs_recordings
from tests.support.streams import THOUGHT

CONTENT = [
    thinking(THOUGHT, "c2lnbmVk"),
    redacted("b3BhcXVl"),
    text("I look. "),
    tool_use(0, city="Paris", days=[1, 2]),
    tool_use(1),
]


def whole(content: list[Block], stop: str | None = "end_turn", **more: Any) -> ReadAnswer:
    return check_events(reader().read_whole(json.dumps(message(content, stop, **more)).encode()))


def streamed(frames: list[bytes]) -> ReadAnswer:
    return check_events(read_frames(frames))


class TestEvents:
    def test_thinking_text_and_calls(self) -> None:
        seen = streamed(stream(CONTENT, "tool_use"))
        assert seen.lines == [
            ("opened", "0"),
            ("raw", THOUGHT),
            ("signed", "c2lnbmVk"),
            ("closed",),
            ("opened", "1"),
            ("sealed", "b3BhcXVl"),
            ("closed",),
            ("text", "I look. "),
            ("call", "0"),
            ("call", "1"),
        ]
        first, second = seen.calls
        assert [*first[:2], json.loads(first[2])] == [
            "toolu_0",
            "look",
            {"city": "Paris", "days": [1, 2]},
        ]
        assert second == ["toolu_1", "look", "{}"]
        assert seen.reason == "tool_calls"

    def test_the_answer_is_named_first(self) -> None:
        first = reader().read(begin())
        assert first == [ResponseStarted(None, None, "msg_1", "claude-opus-4-5", 0)]

    def test_a_call_is_reported_before_its_arguments_arrive(self) -> None:
        by = reader()
        by.read(begin())
        assert by.read(start(0, tool_use(3, "look"))) == [
            ToolCallDelta(0, None, call_index=0, id="toolu_3", name="look")
        ]

    def test_thinking_is_passed_on_as_it_comes(self) -> None:
        by = reader()
        by.read(begin())
        by.read(start(0, thinking("", "")))
        events = by.read(delta(0, "thinking", thinking="So."))
        assert [type(event).__name__ for event in events] == ["ReasoningStarted", "ReasoningDelta"]

    def test_empty_thinking_is_no_item(self) -> None:
        seen = streamed(stream([thinking("", ""), text("Hi")]))
        assert seen.lines == [("text", "Hi")]

    def test_thinking_that_is_left_out_still_has_its_signature(self) -> None:
        seen = streamed(stream([thinking("", "b25seQ"), text("Hi")]))
        assert seen.lines[:3] == [("opened", "0"), ("signed", "b25seQ"), ("closed",)]

    def test_redacted_thinking_without_data_makes_nothing(self) -> None:
        for block in (redacted(""), {"type": "redacted_thinking"}):
            assert whole([block, text("Hi")]).lines == [("text", "Hi")]

    def test_text_blocks_are_one_text(self) -> None:
        assert streamed(stream([text("One, "), text("two.")])).lines == [("text", "One, two.")]

    def test_the_tools_of_the_server_are_skipped_and_counted(self) -> None:
        by = reader()
        content = [thinking("One."), *search(), thinking("Two."), text("So."), tool_use()]
        seen = check_events(read_frames(stream(content, "tool_use"), by))
        assert seen.raw == ["One.", "Two."]
        assert [call[0] for call in seen.calls] == ["toolu_0"]
        assert seen.items == 2
        assert (by.dropped, by.faults) == (2, 0)

    def test_unknown_events_blocks_and_deltas_are_ignored(self) -> None:
        by = reader()
        frames = stream([{"type": "hologram", "light": 1}, text("Hi")])
        frames[3:3] = [delta(0, "hologram", light=2), event("weather", sun=True)]
        seen = check_events(read_frames(frames, by))
        assert seen.lines == [("text", "Hi")]
        assert seen.end.ok
        assert (by.dropped, by.faults) == (1, 0)


class TestStops:
    def test_a_paused_turn_is_an_error_that_says_so(self) -> None:
        for seen in streamed(stream([text("Hi")], "pause_turn")), whole([text("Hi")], "pause_turn"):
            assert (seen.text, seen.reason) == ("Hi", None)
            assert (seen.end.ok, seen.end.error) == (False, TURN_PAUSED)

    @pytest.mark.parametrize(
        ("given", "reason"),
        [
            ("end_turn", "stop"),
            ("stop_sequence", "stop"),
            ("tool_use", "stop"),
            ("max_tokens", "length"),
            ("model_context_window_exceeded", "length"),
            ("refusal", "content_filter"),
            ("a reason of tomorrow", "stop"),
        ],
    )
    def test_the_finish_is_mapped(self, given: str, reason: str) -> None:
        seen = streamed(stream([text("Hi")], given))
        assert seen.reason == whole([text("Hi")], given).reason == reason
        assert seen.text == "Hi"

    @pytest.mark.parametrize("given", ["tool_use", "end_turn", None])
    def test_with_calls_a_loop_goes_on(self, given: str | None) -> None:
        assert whole([tool_use()], given).reason == "tool_calls"

    def test_a_call_cut_short_by_the_bound_is_a_length_stop(self) -> None:
        frames = [begin(), start(0, tool_use()), delta(0, "input_json", partial_json='{"a')]
        seen = streamed([*frames, stop(0), *finish("max_tokens")])
        assert seen.reason == "length"
        assert seen.calls[0][2] == '{"a'


class TestUsage:
    def test_figures_are_cumulative_and_include_the_cache(self) -> None:
        seen = streamed(stream([text("Hi")])).end
        assert seen.usage == Tokens(23, 70, 93, 50, cached=7, cache_written=5)

    def test_unreported_usage_is_unknown(self) -> None:
        seen = whole([text("Hi")], usage=None).end
        assert seen.usage is None
        bare = whole([text("Hi")], usage={"output_tokens": 3}).end
        assert bare.usage == Tokens(output=3)

    def test_a_cut_stream_reports_nothing_final(self) -> None:
        seen = streamed(stream([text("Hi")])[:4]).end
        assert seen.usage is None


class TestRepairs:
    def test_a_block_without_its_start(self) -> None:
        frames = [
            begin(),
            delta(0, "thinking", thinking="Hm."),
            delta(0, "signature", signature="czE"),
            stop(0),
            delta(1, "text", text="Hi"),
            *finish(),
        ]
        assert streamed(frames).lines == [
            ("opened", "0"),
            ("raw", "Hm."),
            ("signed", "czE"),
            ("closed",),
            ("text", "Hi"),
        ]

    def test_a_call_without_its_start_is_a_fault(self) -> None:
        by = reader()
        frames = [begin(), delta(0, "input_json", partial_json="{}"), *finish()]
        seen = check_events(read_frames(frames, by))
        assert seen.calls == []
        assert seen.end.error == STRAY_ARGUMENTS
        assert by.faults == 1

    def test_thinking_without_its_stop_ends_when_something_else_begins(self) -> None:
        frames = [frame for frame in stream(CONTENT, "tool_use") if b"block_stop" not in frame]
        assert streamed(frames).lines == streamed(stream(CONTENT, "tool_use")).lines
        assert streamed(frames).calls[1][2] == "{}"

    def test_thinking_that_comes_after_its_blocks_end_is_a_block_of_its_own(self) -> None:
        by = reader()
        frames = stream([thinking("One."), text("Hi")])
        late = frames.index(stop(0)) + 1
        frames[late:late] = [delta(0, "thinking", thinking="late"), stop(0)]
        assert check_events(read_frames(frames, by)).raw == ["One.", "late"]
        assert by.faults == 1

    def test_thinking_is_over_when_another_block_goes_on(self) -> None:
        by = reader()
        frames = [
            begin(),
            start(0, text("")),
            start(1, thinking("", "")),
            delta(1, "thinking", thinking="Hm."),
            delta(0, "text", text="Hi"),
            delta(1, "thinking", thinking="late"),
            *finish(),
        ]
        assert check_events(read_frames(frames, by)).raw == ["Hm.", "late"]
        assert by.faults == 0

    def test_an_index_used_again_is_another_block(self) -> None:
        frames = [begin(), start(0, text("One, ")), start(0, tool_use(0)), start(0, text("two."))]
        seen = streamed([*frames, *finish()])
        assert seen.lines == [("text", "One, "), ("call", "0"), ("text", "two.")]
        assert seen.calls[0][2] == "{}"

    def test_the_end_of_a_call_ends_thinking_first(self) -> None:
        frames = [begin(), start(0, tool_use(0)), start(1, thinking("Hm.")), stop(0), stop(1)]
        seen = streamed([*frames, *finish("tool_use")])
        assert seen.lines[1:] == [("opened", "0"), ("raw", "Hm."), ("signed", "c2ln"), ("closed",)]
        assert seen.calls[0][2] == "{}"

    def test_a_call_left_open_ends_after_thinking_left_open(self) -> None:
        frames = [begin(), start(0, tool_use(0)), start(1, thinking("Hm.")), *finish("tool_use")]
        assert streamed(frames).lines[-1] == ("closed",)

    def test_a_tool_of_the_servers_does_not_end_thinking(self) -> None:
        frames = [begin(), start(0, thinking("H", "")), start(1, search()[0])]
        seen = streamed([*frames, delta(0, "thinking", thinking="m."), *finish()])
        assert seen.raw == ["Hm."]

    def test_a_signature_is_whole_each_time(self) -> None:
        frames = [begin(), start(0, thinking("Hm.", ""))]
        frames += [delta(0, "signature", signature=signature) for signature in ("czE", "czI")]
        assert ("signed", "czI") in streamed([*frames, *finish()]).lines

    def test_a_late_end_of_a_text_does_not_end_thinking(self) -> None:
        frames = [begin(), start(0, text("A")), start(1, thinking("H", "")), stop(0)]
        seen = streamed([*frames, delta(1, "thinking", thinking="m."), stop(1), *finish()])
        assert seen.raw == ["Hm."]

    def test_what_a_call_is_begun_with_stands_where_no_delta_comes(self) -> None:
        frames = [begin(), start(0, tool_use(0, a=1)), stop(0), *finish("tool_use")]
        assert json.loads(streamed(frames).calls[0][2]) == {"a": 1}

    def test_after_the_stop_no_event_follows(self) -> None:
        by = reader()
        frames = [*stream([text("Hi")]), start(1, text("more")), delta(0, "text", text="more")]
        assert check_events(read_frames(frames, by)).text == "Hi"
        assert by.faults == 2
        assert by.read(event("ping")) == []
        assert by.faults == 3

    def test_without_a_beginning_it_has_no_name(self) -> None:
        seen = read_frames(stream([text("Hi")])[1:])
        assert seen[0] == ResponseStarted(None, None, "", "", 0)
        assert check_events(seen).text == "Hi"

    def test_the_mark_that_gateways_send_at_the_end_is_no_fault(self) -> None:
        by = reader()
        check_events(read_frames([*stream([text("Hi")]), b"data: [DONE]\n\n", b": bye\n\n"], by))
        assert by.faults == 0

    @pytest.mark.parametrize(
        "odd",
        [
            b"data: not json\n\n",
            event("content_block_start", index=[1], content_block=None),
            event("content_block_delta", index=7, delta="x"),
            event("content_block_stop"),
            event("message_start", message=7),
        ],
    )
    def test_malformed_events_are_counted_and_dropped(self, odd: bytes) -> None:
        by = reader()
        frames = stream([text("Hi")])
        frames.insert(3, odd)
        assert check_events(read_frames(frames, by)).text == "Hi"
        assert by.faults == 1

    def test_structured_content_where_a_string_was_expected(self) -> None:
        content = [
            {"type": "thinking", "thinking": ["x"], "signature": {}},
            {"type": "text", "text": None},
            {"type": ["text"]},
            text("Hi"),
        ]
        assert whole(content).lines == [("text", "Hi")]


class TestFailures:
    OVERLOADED = event("error", error={"type": "overloaded_error", "message": "Overloaded"})

    def test_an_error_in_the_stream_is_reported_once_and_ends_it(self) -> None:
        seen = streamed([*stream(CONTENT)[:6], self.OVERLOADED])
        assert seen.failures == ["Overloaded"]
        assert not seen.end.ok
        assert seen.end.error is not None
        assert seen.end.error.message == "Overloaded"

    def test_an_error_is_no_success_though_a_stop_follows(self) -> None:
        seen = streamed([begin(), self.OVERLOADED, event("message_stop")]).end
        assert not seen.ok

    @pytest.mark.parametrize("length", range(1, len(stream(CONTENT)) - 2))
    def test_a_cut_stream_ends_failed_wherever_it_is_cut(self, length: int) -> None:
        seen = streamed(stream(CONTENT, "tool_use")[:length])
        assert seen.end.error == CONNECTION_LOST
        assert seen.reason is None

    def test_a_call_that_was_cut_does_not_become_whole(self) -> None:
        seen = streamed([begin(), start(0, tool_use(0, a=1))])
        assert seen.calls == [["toolu_0", "look", ""]]

    def test_an_error_body_and_an_invalid_body_are_failures(self) -> None:
        error = {"error": {"type": "api_error", "message": "Oops"}}
        for told in ({"type": "error", **error}, error):  # some gateways leave out the type
            seen = check_events(reader().read_whole(json.dumps(told).encode())).end
            assert seen.error is not None
            assert seen.error.message == "Oops"
        for body in (b"<html>", b"[]", b'{"content": "x"}'):
            nothing = check_events(reader().read_whole(body)).end
            assert not nothing.ok


class TestRecordedTurns:
    def test_the_original_blocks_are_recorded_byte_for_byte(self) -> None:
        for by, events in self.read(CONTENT):
            (recorded,) = by.recorded_turns()
            assert recorded.original == CONTENT[:2]
            assert recorded.raw == THOUGHT
            assert recorded.item_keys == ((0, 0), (0, 1))
            assert recorded.turn.text == "I look. "
            assert [call.name for call in recorded.turn.calls] == ["look", "look"]
            assert check_events(events).items == 2

    def test_without_reasoning_a_turn_is_recorded_as_bare(self) -> None:
        for by, _ in self.read([text("Hi"), thinking("", "")]):
            (recorded,) = by.recorded_turns()
            assert recorded.is_bare
            assert recorded.turn.text == "Hi"

    def test_over_the_limit_no_turn_is_recorded_and_all_events_come(self) -> None:
        for content in ([thinking("x" * 60)], [thinking("x", "s" * 60)], [redacted("d" * 60)]):
            for by, events in self.read([*content, text("Hi")], limit=50):
                assert by.recorded_turns() == []
                assert check_events(events).text == "Hi"

    def test_arguments_past_the_limit_are_not_made_up(self) -> None:
        for _, events in self.read([tool_use(0, a="x" * 60)], limit=10):
            assert json.loads(check_events(events).calls[0][2]) == {"a": "x" * 60}

    def test_arguments_after_the_limit_come(self) -> None:
        content = [text("x" * 60), tool_use(0, a="b")]
        unfolded = [event("message_start", message=message(content)), event("message_stop")]
        for events in (
            reader(10).read_whole(json.dumps(message(content)).encode()),
            read_frames(unfolded, reader(10)),
            read_frames(stream(content), reader(10)),
        ):
            assert json.loads(check_events(events).calls[0][2]) == {"a": "b"}

    def read(self, content: list[Block], limit: int = 1 << 20) -> Any:
        one, other = reader(limit), reader(limit)
        yield one, read_frames(stream(content), one)
        yield other, other.read_whole(json.dumps(message(content)).encode())


BLOCKS = st.lists(
    st.one_of(
        st.builds(thinking, st.text(max_size=20), st.sampled_from(["", "c2ln"])),
        st.builds(redacted, st.sampled_from(["", "ZGF0YQ"])),
        st.builds(text, st.text(max_size=20)),
        st.builds(tool_use, st.integers(0, 9), a=st.text(max_size=5)),
        st.sampled_from(search()),
    ),
    max_size=5,
)


@given(BLOCKS)
def test_whole_and_streamed_agree(content: list[Block]) -> None:
    one, other = whole(content), streamed(stream(content))
    assert (one.lines, one.reason, one.end) == (other.lines, other.reason, other.end)
    assert [(*call[:2], json.loads(call[2])) for call in one.calls] == [
        (*call[:2], json.loads(call[2])) for call in other.calls
    ]


def test_text_that_comes_after_its_end_is_told_before_the_finish() -> None:
    frames = stream([text("<")])
    deltas = [each for each in frames if b"content_block_delta" in each]
    others = [each for each in frames if each not in deltas]
    seen = check_events(read_frames([*others[:-2], *deltas, *others[-2:]]))
    assert seen.text == "<"


@given(BLOCKS, st.data())
def test_events_are_legal_in_whatever_order_blocks_come(
    content: list[Block], data: st.DataObject
) -> None:
    """Events may be lost, repeated and out of order."""
    frames = stream(content)
    check_events(read_frames(data.draw(st.lists(st.sampled_from(frames), max_size=40))))
    check_events(read_frames(data.draw(st.permutations(frames))))


@needs_recordings
@pytest.mark.parametrize(
    "name", [path.name for path in sorted(RECORDINGS.glob("anthropic*.response.*"))]
)
def test_recordings_are_read_as_they_are(name: str) -> None:
    data, by = (RECORDINGS / name).read_bytes(), reader()
    if name.endswith(".json"):
        content = json.loads(data)["content"]
        seen = check_events(by.read_whole(data))
    else:
        decoder = sse.FrameDecoder(1 << 20)
        frames = [*decoder.feed(data), *decoder.end()]
        content = contents([json.loads(sse.frame_data(frame) or b"") for frame in frames])
        seen = check_events(read_frames(frames, by))
    kinds = {kind: [block for block in content if block["type"] == kind] for kind in KINDS}
    assert seen.raw == [block["thinking"] for block in kinds["thinking"]]
    assert seen.text == "".join(block["text"] for block in kinds["text"])
    assert [call[0] for call in seen.calls] == [block["id"] for block in kinds["tool_use"]]
    length = [block for recorded in by.recorded_turns() for block in recorded.original]
    assert length == [block for block in content if block["type"] in KINDS[:2]]
    assert seen.end.ok
    assert (by.faults, by.dropped) == (0, 0)


KINDS = ("thinking", "redacted_thinking", "text", "tool_use")


def contents(events: list[dict[str, Any]]) -> list[Block]:
    """Assemble a stream's blocks independently of the reader."""
    blocks: list[Block] = []
    for each in events:
        if each["type"] == "content_block_start":
            blocks.append(dict(each["content_block"]))
        elif each["type"] == "content_block_delta":
            for key, value in each["delta"].items():
                if key != "type":
                    blocks[each["index"]][key] += value
    return blocks


@pytest.mark.parametrize(
    ("display", "text", "withheld"),
    [
        (Display(), "I add.\n", False),
        (Display(show_raw=False), "I add.", True),
        (Display(show_raw=False), "", False),
        (Display(show_raw=False, native=True), "I add.", False),
        (Display(show_raw=False, native=True), "I add.\n", True),
        (Display(show_raw=False, native=True, show_summary=False), "I add.", True),
    ],
)
def test_a_signature_is_shown_only_with_its_text(
    display: Display, text: str, *, withheld: bool
) -> None:
    events = read_frames(stream([thinking(text)]), reader(display=display))
    (state,) = [event for event in events if isinstance(event, ProviderState)]
    assert (state.data, state.withheld) == ("c2ln", withheld)


def test_a_text_that_goes_on_once_it_is_signed_is_none_that_is_shown_whole() -> None:
    display = Display(show_raw=False, native=True)
    signed = delta(0, "signature", signature="c2ln")
    said = [start(0, thinking("", "")), *[delta(0, "thinking", thinking="I add."), signed] * 2]
    events = read_frames([begin(), *said, stop(0), *finish_at_once()], reader(display=display))
    states = [event for event in events if isinstance(event, ProviderState)]
    assert [state.withheld for state in states] == [False, True]


class TestHidden:
    """Thinking inside the texts of an answer, where reasoning is hidden."""

    DISPLAY = Display(show_raw=False, hides_raw=True)

    def test_what_is_no_name_and_no_ciphertext_is_left_out(self) -> None:
        hiding = reader(display=self.DISPLAY)
        content = [
            {"type": "redacted_thinking", "data": "an odd thought"},
            {"type": "thinking", "thinking": "x", "signature": "an odd thought"},
            {"type": "tool_use", "id": "an odd thought", "name": "an odd thought", "input": {}},
        ]
        body = {"type": "message", "model": "an odd thought", "content": content}
        events = hiding.read_whole(json.dumps(body).encode())
        states = [event for event in events if isinstance(event, ProviderState)]
        assert [(state.data, state.withheld) for state in states] == [("an odd thought", True)] * 2
        assert "odd" not in str([event for event in events if event not in states])
        assert hiding.dropped == 5
        assert [event.name for event in events if isinstance(event, ToolCallDelta)][:1] == [""]

    def test_an_error_is_told_in_other_words(self) -> None:
        hiding = reader(display=self.DISPLAY)
        error = {"type": "error", "error": {"type": "api_error", "message": "odd"}}
        (reported,) = hiding.read(b"data: %s\n\n" % json.dumps(error).encode())
        assert isinstance(reported, ErrorReported)
        assert reported.error.message == "Upstream reported an error."
