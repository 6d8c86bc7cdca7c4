"""Messages from translated events: what each event becomes, one by one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.display import Display
from abridge.apis.errors import ANSWER_TOO_LONG
from abridge.apis.messages.tools import client_call_id, unwrap_invalid, upstream_call_id
from abridge.apis.protocols import RequestEcho, Writer
from abridge.core.envelope import UNSEALED, UNSEALED_RAW, Envelope
from abridge.core.events import (
    ContentDelta,
    ErrorDetail,
    ErrorReported,
    Event,
    Finished,
    ItemSummary,
    NativeSummary,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ResponseEnded,
    ResponseStarted,
    SummaryTextDelta,
    ToolCallDelta,
    UsageReported,
)
from abridge.core.model_request import Tool
from abridge.core.usage import SummaryShare, Tokens
from abridge.providers.catalog import PROFILES
from tests.support.messages_checker import MessagesStream, check_message, check_messages
from tests.support.pipeline import LIMIT, TRANSLATING_WRITERS, Minting

REQUEST = RequestEcho({"model": "m"})
END = ResponseEnded(None, None, ok=True)
TIMEOUT = ErrorDetail("timeout", "The summarizer took too long.")
SHARE = SummaryShare(Tokens(10, 5, 15), ("mini",), 1, incomplete=False)
BOTH, SUMMARY = Display(style="auto"), Display(show_raw=False, style="auto")
RAW = Display(show_summary=False)
NOTHING = Display(show_raw=False, show_summary=False)


def make_writer(
    display: Display = SUMMARY, echo: RequestEcho = REQUEST, limit: int = LIMIT
) -> Writer:
    return TRANSLATING_WRITERS["messages"](PROFILES["auto"], display, echo, limit, Minting())


def streamed(*events: Event, end: ResponseEnded = END, **how: Any) -> MessagesStream:
    return check_messages(b"".join(map(make_writer(**how).write, [*events, end])))


def whole(*events: Event, end: ResponseEnded = END, **how: Any) -> dict[str, Any]:
    writer = make_writer(**how)
    for event in events:
        writer.note(event)
    return check_message(json.loads(writer.write_whole(end)))


def sealing(display: Display) -> tuple[Display, list[Envelope]]:
    """A display that seals, and the envelopes it sealed."""
    sealed: list[Envelope] = []

    def seal(envelope: Envelope) -> str:
        sealed.append(envelope)
        return f"abr1.{len(sealed)}"

    return Display(
        show_raw=display.show_raw, show_summary=display.show_summary, style="auto", seal=seal
    ), sealed


def stretch(*events: Event, error: ErrorDetail | None = None) -> list[Event]:
    return [
        ReasoningStarted(0, None, 0),
        *events,
        ReasoningEnded(0, None, 0, ItemSummary(error=error)),
    ]


def raw(text: str) -> Event:
    return ReasoningDelta(0, None, 0, text)


def summary(text: str, part: int = 0) -> Event:
    return SummaryTextDelta(0, None, 0, part, text)


def state(data: str, *, signs: bool = False) -> Event:
    return ProviderState(0, None, 0, data, signs)


def say(text: str, message: int = 0) -> Event:
    return ContentDelta(0, None, text, message_index=message)


def call_piece(number: int, arguments: str = "", name: str = "", **more: Any) -> Event:
    id_ = f"call_{number}" if name else ""
    return ToolCallDelta(
        0, None, call_index=number, **{"id": id_, "name": name, "arguments": arguments, **more}
    )


def raw_thinking(text: str) -> dict[str, Any]:
    return thinking(text, UNSEALED_RAW)


def thinking(text: str, signature: str | None = None) -> dict[str, Any]:
    unsealed = UNSEALED if text else ""
    return {"type": "thinking", "thinking": text, "signature": signature or unsealed}


THOUGHTS = [raw("I add "), raw("the odds."), summary("Adding"), summary(" odds.")]


class TestLifecycle:
    def test_a_whole_lifecycle_in_anthropics_order(self) -> None:
        started = ResponseStarted(0, None, "chatcmpl-1", "thinker", 1_700_000_000)
        seen = streamed(started, *stretch(*THOUGHTS), say("100."), Finished(0, None, "stop"))
        block = ["content_block_start", *["content_block_delta"] * 3, "content_block_stop"]
        assert seen.kinds == [
            *("message_start", *block),
            *("content_block_start", "content_block_delta", "content_block_stop"),
            *("message_delta", "message_stop"),
        ]
        assert seen.pings == 1
        assert seen.message["id"] == "msg_1"
        assert seen.message["model"] == "thinker"
        assert seen.blocks == [thinking("Adding odds."), {"type": "text", "text": "100."}]
        assert (seen.stop_reason, seen.message["stop_sequence"]) == ("end_turn", None)

    def test_an_answer_of_nothing_is_a_message_without_content(self) -> None:
        assert streamed().blocks == whole()["content"] == []
        assert whole()["model"] == "m"

    @pytest.mark.parametrize(
        ("named", "told"), [("END", ("stop_sequence", "END")), ("", ("end_turn", None))]
    )
    def test_a_stop_sequence_of_the_request_is_told(self, named: str, told: object) -> None:
        echo = RequestEcho({"stop_sequences": ["END"]})
        for finished in (Finished(0, None, "stop", named), Finished(0, None, "stop", "other")):
            message = streamed(say("A"), finished, echo=echo).message
            expected = told if finished.stop_sequence == named else ("end_turn", None)
            assert (message["stop_reason"], message["stop_sequence"]) == expected

    def test_each_message_of_upstreams_is_a_block(self) -> None:
        seen = streamed(say("One "), say("message."), say("Another.", 1))
        assert [block["text"] for block in seen.blocks] == ["One message.", "Another."]

    def test_a_message_has_one_choice(self) -> None:
        seen = streamed(say("A"), ContentDelta(1, None, "x"), Finished(1, None, "length"))
        assert (seen.text, seen.stop_reason) == ("A", "end_turn")

    def test_no_block_is_begun_for_an_empty_text(self) -> None:
        assert streamed(say(""), say("A"), say("")).blocks == [{"type": "text", "text": "A"}]

    def test_the_keep_alive_is_a_ping(self) -> None:
        assert make_writer().keep_alive() == b'event: ping\ndata: {"type":"ping"}\n\n'


class TestReasoning:
    @pytest.mark.parametrize(
        ("display", "blocks"),
        [
            (SUMMARY, [thinking("Adding odds.")]),
            (RAW, [raw_thinking("I add the odds.")]),
            (BOTH, [raw_thinking("I add the odds."), thinking("Adding odds.")]),
            (NOTHING, [thinking("")]),
            (Display(drops_reasoning=True), []),
        ],
        ids=["summary", "raw", "both", "none", "dropped"],
    )
    def test_what_is_shown_of_a_stretch(
        self, display: Display, blocks: list[dict[str, Any]]
    ) -> None:
        events = stretch(*(THOUGHTS if display.show_summary else THOUGHTS[:2]))
        assert streamed(*events, display=display).blocks == blocks
        assert whole(*events, display=display)["content"] == blocks

    def test_blank_lines_separate_parts(self) -> None:
        events = stretch(raw("x"), summary("One."), summary("Two.", 1), summary(" Yes.", 1))
        assert streamed(*events).thinking == ["One.\n\nTwo. Yes."]

    def test_the_summary_of_the_next_stretch_begins_without_one(self) -> None:
        seen = streamed(*stretch(summary("One.")), *stretch(summary("Two.", 1)))
        assert seen.thinking == ["One.", "Two."]

    def test_the_summary_waits_until_the_raw_text_is_whole(self) -> None:
        events = stretch(raw("A "), summary("S"), raw("B"), summary("T"))
        assert streamed(*events, display=BOTH).thinking == ["A B", "ST"]

    def test_a_summary_that_comes_first_waits_for_the_raw_text(self) -> None:
        """As where the raw text was queued behind an answer that waited for a summary."""
        events = stretch(summary("S"), raw("A"), summary("T", 1))
        blocks = [raw_thinking("A"), thinking("S\n\nT")]
        assert streamed(*events, display=BOTH).blocks == blocks
        assert whole(*events, display=BOTH)["content"] == blocks
        alone = streamed(*stretch(summary("S"), error=TIMEOUT), display=BOTH).blocks
        assert alone == [{**thinking("S"), "summary_error": TIMEOUT.as_dict()}]

    def test_a_native_summary_is_shown_as_one(self) -> None:
        parts = [
            NativeSummary(0, None, 0, part, "delta", text)
            for part, text in enumerate(("One.", "Two."))
        ]
        assert streamed(*stretch(*parts)).thinking == ["One.\n\nTwo."]
        assert streamed(*stretch(*parts), display=BOTH).thinking == ["One.\n\nTwo."]
        assert streamed(*stretch(*parts), display=RAW).thinking == [""]

    def test_what_upstream_signed_goes_out_as_it_was_signed(self) -> None:
        events = stretch(raw("A"), state("sigA", signs=True), raw("B"), state("sigB", signs=True))
        for display in (RAW, sealing(RAW)[0]):
            assert streamed(*events, display=display).blocks == [
                thinking("A", "sigA"),
                thinking("B", "sigB"),
            ]

    def test_a_summary_is_never_signed_with_upstreams_signature(self) -> None:
        events = stretch(raw("A"), state("sigA", signs=True), summary("S"))
        assert streamed(*events).blocks == [thinking("S")]

    def test_an_envelope_of_the_reasoning_signs_the_summary(self) -> None:
        display, sealed = sealing(SUMMARY)
        events = stretch(raw("A"), state("sigA", signs=True), summary("S"), state("opaque"))
        assert streamed(*events, display=display).blocks == [thinking("S", "abr1.1")]
        (envelope,) = sealed
        assert envelope.reasoning == [
            thinking("A", "sigA"),
            {"type": "redacted_thinking", "data": "opaque"},
        ]

    def test_beside_raw_reasoning_an_empty_envelope_marks_the_summary(self) -> None:
        display, sealed = sealing(BOTH)
        seen = streamed(*stretch(*THOUGHTS), display=display)
        assert [block["signature"] for block in seen.blocks] == ["abr1.1", "abr1.2"]
        raw = {**thinking("I add the odds."), "signature": ""}
        assert [envelope.reasoning for envelope in sealed] == [[raw], []]

    def test_nothing_is_sealed_of_a_stretch_that_says_nothing(self) -> None:
        display, sealed = sealing(SUMMARY)
        assert streamed(*stretch(), display=display).blocks == [thinking("")]
        assert not sealed

    def test_unsealed_opaque_state_follows_as_redacted_thinking(self) -> None:
        seen = streamed(*stretch(summary("S"), state("one"), state("two")))
        redacted = [{"type": "redacted_thinking", "data": data} for data in ("one", "two")]
        assert seen.blocks == [thinking("S"), *redacted]

    def test_an_error_of_the_summary_is_told_where_the_block_stops(self) -> None:
        told = {"code": "timeout", "message": "The summarizer took too long."}
        events = [*stretch(raw("x"), error=TIMEOUT), *stretch(raw("y"))]
        for blocks in (streamed(*events).blocks, whole(*events)["content"]):
            assert blocks == [{**thinking(""), "summary_error": told}, thinking("")]

    def test_beside_raw_reasoning_it_is_told_with_what_there_is_of_the_summary(self) -> None:
        partial = streamed(*stretch(raw("x"), summary("S"), error=TIMEOUT), display=BOTH)
        assert ["summary_error" in block for block in partial.blocks] == [False, True]
        nothing = streamed(*stretch(raw("x"), error=TIMEOUT), display=BOTH)
        assert ["summary_error" in block for block in nothing.blocks] == [True]
        signed = stretch(raw("x"), state("sig", signs=True), error=TIMEOUT)
        assert streamed(*signed, display=BOTH).blocks[0] == thinking("x", "sig")


class TestCalls:
    def test_arguments_stream_as_they_come(self) -> None:
        pieces = [call_piece(0, name="add"), call_piece(0, '{"a"'), call_piece(0, ": 1}")]
        seen = streamed(*pieces, Finished(0, None, "tool_calls"))
        deltas = [event["delta"] for event in seen.events if "delta" in event][:-1]
        assert deltas == [
            {"type": "input_json_delta", "partial_json": text} for text in ('{"a"', ": 1}")
        ]
        assert seen.calls == [
            {"type": "tool_use", "id": "call_0", "name": "add", "input": {"a": 1}}
        ]
        assert seen.stop_reason == "tool_use"

    @pytest.mark.parametrize(
        ("arguments", "given"),
        [
            ("", {}),
            (" \n", {}),
            ("{}", {}),
            ("[1]", {"INVALID_JSON": "[1]"}),
            ("null", {"INVALID_JSON": "null"}),
            ("rm -rf", {"INVALID_JSON": "rm -rf"}),
        ],
    )
    def test_the_input_is_always_an_object(self, arguments: str, given: dict[str, Any]) -> None:
        pieces = [call_piece(0, name="f"), *(call_piece(0, piece) for piece in arguments)]
        assert streamed(*pieces).calls[0]["input"] == given
        assert whole(*pieces)["content"][0]["input"] == given
        assert unwrap_invalid(given) == given.get("INVALID_JSON")

    def test_a_character_that_is_split_between_deltas_is_put_together(self) -> None:
        pieces = [call_piece(0, '{"a": "\ud83d', name="f"), call_piece(0, '\ude42"}')]
        assert streamed(*pieces).calls[0]["input"] == {"a": "\U0001f642"}

    def test_arguments_that_are_cut_stay_so_in_a_stream(self) -> None:
        cut = [call_piece(0, '{"a": "lo', name="f"), Finished(0, None, "length")]
        out = b"".join(map(make_writer().write, [*cut, END]))
        assert b'"partial_json":"{\\"a\\": \\"lo"' in out
        assert whole(*cut)["content"][0]["input"] == {"INVALID_JSON": '{"a": "lo'}

    def test_names_are_those_that_the_client_gave(self) -> None:
        tools = {"fs_read": Tool("fs_read", client_name="fs.read")}
        echo = RequestEcho({}, tools)
        assert streamed(call_piece(0, name="fs_read"), echo=echo).calls[0]["name"] == "fs.read"

    def test_free_text_is_the_input_of_a_function(self) -> None:
        pieces = [call_piece(0, name="run", custom=True)]
        pieces += [call_piece(0, text, custom=True) for text in ('say "', 'hi"')]
        assert streamed(*pieces).calls[0]["input"] == {"input": 'say "hi"'}

    @pytest.mark.parametrize(
        "given", ["call_1", "functions.run:0", "é", "toolu_b64_", "toolu_b64_Zm9v", "a b", "\ud800"]
    )
    def test_an_id_comes_back_as_upstream_gave_it(self, given: str) -> None:
        seen = streamed(call_piece(0, name="f", id=given))
        assert seen.calls[0]["id"] == client_call_id(given)
        assert upstream_call_id(seen.calls[0]["id"]) == given

    def test_an_id_is_minted_where_upstream_gave_none(self) -> None:
        assert streamed(call_piece(0, name="f", id="")).calls[0]["id"] == "toolu_2"

    def test_an_id_is_minted_for_another_call_of_one_id(self) -> None:
        pieces = [call_piece(number, name="f", id="k") for number in range(2)]
        assert [call["id"] for call in streamed(*pieces).calls] == ["k", "toolu_2"]


class TestUsage:
    def test_input_tokens_exclude_what_a_cache_holds(self) -> None:
        usage = Tokens(11, 70, 81, 50, 3, 2)
        seen = streamed(say("A"), end=ResponseEnded(None, None, ok=True, usage=usage))
        assert seen.usage == {
            "input_tokens": 6,
            "cache_read_input_tokens": 3,
            "cache_creation_input_tokens": 2,
            "output_tokens": 70,
            "output_tokens_details": {"thinking_tokens": 50},
        }

    @pytest.mark.parametrize(
        ("tokens", "output"),
        [
            (Tokens(4, 5, 12, 3), 8),
            (Tokens(4, 5, 12), 8),  # Gemini's endpoint for OpenAI's clients
            (Tokens(4, 5, 9, 3), 5),
            (Tokens(4, 5, None, 3), 5),
        ],
        ids=["beside", "beside, untold", "within", "unknown"],
    )
    def test_output_tokens_include_thinking(self, tokens: Tokens, output: int) -> None:
        end = ResponseEnded(None, None, ok=True, usage=tokens)
        assert streamed(end=end).usage["output_tokens"] == output

    def test_usage_that_comes_before_the_end_is_written(self) -> None:
        reported = UsageReported(None, None, Tokens(4, 5))
        assert streamed(reported).usage == {"input_tokens": 4, "output_tokens": 5}

    @pytest.mark.parametrize(("merged", "figures"), [(True, (14, 10)), (False, (4, 5))])
    def test_the_summarizers_share_is_merged_or_stands_apart(
        self, *, merged: bool, figures: tuple[int, int]
    ) -> None:
        end = ResponseEnded(None, None, ok=True, usage=Tokens(4, 5), share=SHARE)
        display = Display(show_raw=False, style="auto", merge_usage=merged)
        written = [
            streamed(end=end, display=display).usage,
            whole(end=end, display=display)["usage"],
        ]
        for usage in written:
            assert (usage["input_tokens"], usage["output_tokens"]) == figures
            assert usage["reasoning_summary"] == SHARE.as_dict()

    @pytest.mark.parametrize("tokens", [None, Tokens(total=9)])
    def test_the_share_is_not_added_to_what_nobody_reported(self, tokens: Tokens | None) -> None:
        end = ResponseEnded(None, None, ok=True, usage=tokens, share=SHARE)
        usage = whole(end=end)["usage"]
        share = {"reasoning_summary": SHARE.as_dict()}
        assert usage == {"input_tokens": 0, "output_tokens": 0, **share}


class TestFailures:
    def test_the_error_that_upstream_reported_is_told(self) -> None:
        reported = ErrorReported(None, None, ErrorDetail("overloaded_error", "Overloaded."))
        seen = streamed(say("A"), reported, end=ResponseEnded(None, None, ok=False))
        assert seen.error == {"type": "overloaded_error", "message": "Overloaded."}

    def test_a_call_that_is_cut_is_not_stopped(self) -> None:
        """Clients run a call as soon as its block stops."""
        failed = ResponseEnded(None, None, ok=False)
        seen = streamed(call_piece(0, '{"a"', name="f"), say("B"), end=failed)
        assert seen.kinds[-2:] == ["content_block_delta", "error"]
        assert seen.open_block == 0

    def test_a_summary_that_fails_fails_the_whole_answer(self) -> None:
        end = ResponseEnded(None, None, ok=True, usage=Tokens(4, 5), error=TIMEOUT)
        seen = streamed(say("A"), Finished(0, None, "stop"), end=end)
        assert seen.kinds[-2:] == ["content_block_stop", "error"]
        assert seen.error == {"type": "api_error", "message": TIMEOUT.message}
        writer = make_writer()
        writer.note(say("A"))
        body = json.loads(writer.write_whole(end))
        assert body["error"]["type"] == "api_error"
        assert check_message(body["error"]["response"])["content"][0]["text"] == "A"

    @pytest.mark.parametrize(
        "event",
        [say("x" * 10), raw("x" * 10), summary("x" * 10), call_piece(0, "x" * 10, "f", id="a")],
        ids=lambda event: type(event).__name__,
    )
    def test_a_stream_that_is_longer_than_allowed_fails(self, event: Event) -> None:
        writer = make_writer(limit=2000)
        events = [ReasoningStarted(0, None, 0), *[event] * 1000, END]
        out = b"".join(map(writer.write, events))
        seen = check_messages(out)
        assert seen.error is not None
        assert seen.error["message"] == ANSWER_TOO_LONG.message
        assert len(out) < 200_000
