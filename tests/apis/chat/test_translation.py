"""Test reading Chat Completions for clients of other APIs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.core.events import (
    ContentDelta,
    ErrorReported,
    Event,
    Finished,
    ImageDelta,
    ProviderState,
    ResponseStarted,
    ToolCallDelta,
)
from abridge.providers.catalog import PROFILES
from tests.support.streams import DONE, call, chat_stream, chunk, completion, frame
from tests.support.translated import Call, TranslatedTurn, read_events, read_turn, turn_of


def translate(*chunks: bytes, **options: Any) -> TranslatedTurn:
    return turn_of(read_events("chat", b"".join(chunks), **options))


def fragment(index: int | None = None, **fields: Any) -> bytes:
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    at = {} if index is None else {"index": index}
    return chunk({"tool_calls": [{**at, **fields, "function": function}]})


END = chunk({}, finish="stop"), DONE


def test_the_response_keeps_its_id_and_model() -> None:
    (started,) = [
        event for event in read_events("chat", b"".join(chat_stream("", "Yes"))) if _starts(event)
    ]
    assert started == ResponseStarted(None, None, "chatcmpl-1", "thinker-1", 1_700_000_000)


def _starts(event: object) -> bool:
    return isinstance(event, ResponseStarted)


@pytest.mark.parametrize(
    ("finish", "calls", "stop"),
    [
        ("stop", 0, "stop"),
        ("stop", 1, "tool_calls"),
        ("tool_calls", 1, "tool_calls"),
        ("function_call", 1, "tool_calls"),
        ("tool_calls", 0, "stop"),
        ("length", 1, "length"),
        ("content_filter", 0, "content_filter"),
        ("eos", 0, "stop"),
    ],
)
def test_finish_reasons_are_translated(finish: str, calls: int, stop: str) -> None:
    stream = chat_stream("", "Yes", calls=[call("add", "{}")] * calls, finish=finish)
    assert translate(*stream).answer.stop == stop


def test_an_end_without_a_finish_is_a_stop() -> None:
    assert translate(chunk({"content": "Yes"}), DONE).answer.stop == "stop"


def test_a_finish_that_is_an_error_is_a_failure() -> None:
    error = {"choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]}
    error["choices"][0]["error"] = {"message": "The provider broke."}
    events = read_events("chat", b"".join([chunk({"content": "Y"}), frame(error), DONE]))
    assert any(isinstance(event, ErrorReported) for event in events)
    assert not any(isinstance(event, Finished) for event in events)
    turn = turn_of(events)
    assert turn.ok is False
    assert turn.error is not None
    assert turn.error.message == "The provider broke."


@pytest.mark.parametrize("reason", ["abort", "insufficient_system_resource"])
def test_an_answer_that_broke_off_is_a_failure(reason: str) -> None:
    for streamed in (True, False):
        whole = completion({"role": "assistant", "content": "Y"})
        whole["choices"][0]["finish_reason"] = reason
        stream = b"".join([chunk({"content": "Y"}), chunk({}, finish=reason), DONE])
        data = stream if streamed else json.dumps(whole).encode()
        turn = turn_of(read_events("chat", data, streamed=streamed))
        assert (turn.ok, turn.answer.text) == (False, "Y")
        assert turn.error is not None
        assert turn.error.message == f"The model's answer broke off: {reason}."


def test_a_cut_is_a_failure() -> None:
    turn = translate(chunk({"reasoning": "Hm"}))
    assert turn.ok is False
    assert not turn.answer.open


class TestCalls:
    def test_fragments_are_joined_by_their_index_which_may_have_gaps(self) -> None:
        turn = translate(
            fragment(3, id="a", name="f", arguments="{"),
            fragment(5, id="b", name="g", arguments=""),
            fragment(3, arguments="}"),
            fragment(5, arguments="[]"),
            *END,
        )
        assert turn.answer.calls == [Call("a", "f", "{}"), Call("b", "g", "[]")]

    def test_fragments_without_an_index_belong_to_their_id_or_the_last_call(self) -> None:
        turn = translate(
            fragment(id="a", name="f", arguments="{"),
            fragment(arguments='"x":'),
            fragment(id="b", name="g", arguments="{}"),
            fragment(id="a", arguments="1}"),
            *END,
        )
        assert turn.answer.calls == [Call("a", "f", '{"x":1}'), Call("b", "g", "{}")]

    def test_whole_calls_in_one_delta_are_separate_calls(self) -> None:
        both = [
            {"id": "a", "function": {"name": "f", "arguments": "{}"}},
            {"id": "b", "function": {"name": "f", "arguments": "[]"}},
        ]
        turn = translate(chunk({"tool_calls": both}), *END)
        assert turn.answer.calls == [Call("a", "f", "{}"), Call("b", "f", "[]")]

    @pytest.mark.parametrize("at", [{}, {"index": 0}])
    def test_calls_of_a_whole_message_are_separate_whatever_their_ids(self, at: Any) -> None:
        both = [
            {**at, "id": "a", "function": {"name": "f", "arguments": arguments}}
            for arguments in ("{}", "[]")
        ]
        body = json.dumps(completion({"tool_calls": both})).encode()
        read = read_turn("chat", body, streamed=False)
        assert read.answer.calls == [Call("a", "f", "{}"), Call("a", "f", "[]")]

    def test_an_index_that_comes_again_with_another_id_begins_another_call(self) -> None:
        turn = translate(
            fragment(0, id="a", name="f", arguments="{}"),
            fragment(0, id="b", name="g", arguments="[]"),
            *END,
        )
        assert [call.id for call in turn.answer.calls] == ["a", "b"]

    def test_an_id_that_changes_with_each_fragment_begins_no_other_call(self) -> None:
        turn = translate(
            fragment(0, id="a", name="f", arguments="{"), fragment(0, id="b", arguments="}"), *END
        )
        assert turn.answer.calls == [Call("a", "f", "{}")]

    def test_a_call_waits_for_a_name_that_comes_late(self) -> None:
        turn = translate(
            fragment(0, id="a", arguments="{"), fragment(0, name="f", arguments="}"), *END
        )
        assert turn.answer.calls == [Call("a", "f", "{}")]

    def test_missing_arguments_are_an_empty_object(self) -> None:
        calls = [fragment(0, id="a", name="f", arguments=""), fragment(1, id="b", name="g")]
        assert translate(*calls, *END).answer.calls == [Call("a", "f", "{}"), Call("b", "g", "{}")]

    def test_arguments_that_were_cut_short_stay_as_they_are(self) -> None:
        turn = translate(
            fragment(0, id="a", name="f", arguments=""), chunk({}, finish="length"), DONE
        )
        assert turn.answer.calls == [Call("a", "f", "")]

    def test_a_legacy_function_call_is_a_call(self) -> None:
        turn = translate(
            chunk({"function_call": {"name": "f", "arguments": "{"}}),
            chunk({"function_call": {"arguments": "}"}}),
            chunk({}, finish="function_call"),
            DONE,
        )
        assert turn.answer.calls == [Call("", "f", "{}")]
        assert turn.answer.stop == "tool_calls"

    def test_the_empty_payload_of_the_other_kind_is_ignored(self) -> None:
        function = {"name": "f", "arguments": "{}"}
        both = {"id": "a", "function": function, "custom": {"input": "", "name": ""}}
        turn = translate(chunk({"tool_calls": [both]}), *END)
        assert turn.answer.calls == [Call("a", "f", "{}")]

    def test_arguments_that_are_an_object_are_written_as_json(self) -> None:
        turn = translate(fragment(0, id="a", name="f", arguments={"x": 1}), *END)
        assert turn.answer.calls[0].arguments == '{"x":1}'

    def test_a_chunk_with_reasoning_text_calls_and_the_finish_loses_nothing(self) -> None:
        delta = {"reasoning": "Hm.", "content": "Yes.", "tool_calls": [call("f", "{}")]}
        turn = translate(chunk(delta, finish="tool_calls"), DONE)
        assert turn.answer.order == ["think", "say", "call 0"]
        assert turn.answer.stop == "tool_calls"


class TestOpaqueState:
    def test_a_signature_comes_after_what_it_signs(self) -> None:
        thinking = {"type": "thinking", "thinking": "Hm", "index": 0}
        signing = {"type": "thinking", "thinking": "", "signature": "s1", "index": 0}
        turn = translate(
            chunk({"reasoning_content": "Hm", "thinking_blocks": [thinking]}),
            chunk({"thinking_blocks": [signing]}),
            chunk({"content": "Yes"}),
            *END,
        )
        assert turn.answer.raw == "Hm"
        assert turn.answer.sealed == [("s1", True)]
        assert len(turn.answer.stretches) == 1

    def test_each_block_of_a_whole_message_has_its_signature(self) -> None:
        blocks = [
            {"type": "thinking", "thinking": "One.", "signature": "s1"},
            {"type": "redacted_thinking", "data": "opaque"},
            {"type": "thinking", "thinking": "Two.", "signature": "s2"},
        ]
        given = {"reasoning_content": "One.Two.", "thinking_blocks": blocks, "content": "Yes"}
        events = read_events("chat", frame(completion(given))[6:], streamed=False)
        texts = [
            event.data if isinstance(event, ProviderState) else getattr(event, "text", "")
            for event in events
            if not isinstance(event, ResponseStarted)
        ]
        assert [text for text in texts if text] == ["One.", "s1", "opaque", "Two.", "s2", "Yes"]

    def test_opaque_state_alone_opens_a_stretch(self) -> None:
        detail = {"type": "reasoning.encrypted", "data": "opaque", "index": 0}
        turn = translate(chunk({"reasoning_details": [detail]}), chunk({"content": "Yes"}), *END)
        assert turn.answer.sealed == [("opaque", False)]
        assert turn.answer.raw == ""
        assert turn.answer.text == "Yes"

    def test_opaque_state_may_come_with_the_finish(self) -> None:
        detail = {"type": "reasoning.encrypted", "data": "opaque", "index": 0}
        turn = translate(
            chunk({"content": "Yes"}), chunk({"reasoning_details": [detail]}, finish="stop"), DONE
        )
        assert turn.answer.sealed == [("opaque", False)]
        assert not turn.answer.open

    def test_entries_without_data_are_ignored(self) -> None:
        blocks = [{"type": "redacted_thinking"}, {"type": "thinking", "thinking": ""}, None]
        turn = translate(chunk({"thinking_blocks": blocks}), chunk({"content": "Yes"}), *END)
        assert turn.answer.stretches == []


class TestReasoning:
    def test_inline_reasoning_is_separated_from_the_answer(self) -> None:
        turn = translate(chunk({"content": "<thi"}), chunk({"content": "nk>Hm</think>Yes"}), *END)
        assert (turn.answer.raw, turn.answer.text) == ("Hm", "Yes")

    def test_text_held_back_as_a_tag_is_released_at_a_cut(self) -> None:
        assert translate(chunk({"content": "<thi"})).answer.text == "<thi"

    def test_a_native_summary_is_translated_as_one(self) -> None:
        detail = {"type": "reasoning.summary", "summary": "In short.", "index": 0}
        turn = translate(
            chunk({"reasoning": "In short.", "reasoning_details": [detail]}),
            chunk({"content": "Yes"}),
            *END,
        )
        assert (turn.answer.native, turn.answer.raw) == (["In short."], "")

    def test_hidden_reasoning_is_translated_for_the_summarizer(self) -> None:
        assert translate(*chat_stream("I think.", "Yes"), raw=False).answer.raw == "I think."

    def test_blanks_before_reasoning_open_nothing(self) -> None:
        turn = translate(chunk({"reasoning": "\n"}), chunk({"content": "Yes"}), *END)
        assert turn.answer.stretches == []

    def test_reasoning_after_the_finish_is_dropped(self) -> None:
        turn = translate(
            chunk({"content": "Yes"}), chunk({}, finish="stop"), chunk({"reasoning": "Hm"})
        )
        assert turn.answer.stretches == []
        assert turn.ok


class TestAnswer:
    def test_log_probabilities_go_with_their_text(self) -> None:
        entry = {"token": "Yes", "logprob": -0.1, "bytes": [89], "top_logprobs": []}
        choice = {"index": 0, "delta": {"content": "Yes"}, "finish_reason": None}
        given = {"choices": [{**choice, "logprobs": {"content": [entry], "refusal": None}}]}
        events = read_events("chat", b"".join([chunk({"role": "assistant"}), frame(given), *END]))
        (said_event,) = [event for event in events if isinstance(event, ContentDelta)]
        assert said_event.logprobs == [entry]

    def test_log_probabilities_of_reasoning_are_dropped(self) -> None:
        tokens = [{"token": token, "logprob": -0.1} for token in ("Hm", "Yes")]
        choice = {
            "index": 0,
            "delta": {"reasoning": "Hm", "content": "Yes"},
            "logprobs": {"content": tokens},
            "finish_reason": None,
        }
        turn = translate(frame({"choices": [choice]}), *END)
        assert turn.answer.text == "Yes"
        assert turn.answer.tokens == []

    def test_choices_are_lanes(self) -> None:
        turn = translate(
            chunk({"content": "A"}, index=1),
            chunk({"content": "B"}),
            chunk({}, index=1, finish="length"),
            *END,
        )
        assert [turn.lanes[lane].text for lane in (0, 1)] == ["B", "A"]
        assert [turn.lanes[lane].stop for lane in (0, 1)] == ["stop", "length"]

    def test_structured_content_is_read(self) -> None:
        content = [{"type": "text", "text": "Yes"}, {"type": "image"}, None, "x"]
        assert translate(chunk({"content": content}), *END).answer.text == "Yes"

    @pytest.mark.parametrize("data", [b": hello\n\n", b"event: ping\n\n", b"data: oops\n\n"])
    def test_empty_deltas_are_dropped(self, data: bytes) -> None:
        assert translate(chunk({"content": "Yes"}), data, *END).answer.text == "Yes"

    def test_usage_beside_choices_is_reported(self) -> None:
        usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
        turn = translate(chunk({"content": "Yes"}, finish="stop", usage=usage), DONE)
        assert turn.usage is not None
        assert turn.usage.total == 3

    def test_a_body_without_choices_is_a_failure(self) -> None:
        assert read_turn("chat", b'{"error": "oops"}', streamed=False).ok is False


def test_a_prefilled_template_begins_inside_reasoning() -> None:
    stream = b"".join([chunk({"content": "Hm</think>Yes"}), *END])
    turn = turn_of(read_events("chat", stream, profile=PROFILES["prefilled"]))
    assert (turn.answer.raw, turn.answer.text) == ("Hm", "Yes")


def test_only_a_calls_first_piece_names_it() -> None:
    stream = b"".join([fragment(0, id="a", name="f"), fragment(0, id="a", arguments="{}"), *END])
    first, second = (
        event for event in read_events("chat", stream) if isinstance(event, ToolCallDelta)
    )
    assert (first.id, first.name) == ("a", "f")
    assert (second.id, second.name, second.arguments) == ("", "", "{}")


@pytest.mark.parametrize("kind", ["reasoning", "thinking", "redacted", None])
def test_content_of_unknown_type_is_no_answer(kind: str | None) -> None:
    content = [{"type": kind or ["x"], "text": "I think."}, {"type": "text", "text": "I say."}]
    assert translate(chunk({"content": content}), *END).answer.text == "I say."
    body = json.dumps(completion({"content": content})).encode()
    assert read_turn("chat", body, streamed=False).answer.text == "I say."


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


EMBEDDED, REMOTE = image("data:image/png;base64,iVBO"), image("https://a.example/b.png")
AUDIO = {"audio": {"id": "audio_1", "data": "AAEC", "transcript": "Yes"}}
SAID = {"content": "Yes", "tool_calls": [{"index": 0, **call("add", "{}")}]}


class TestMedia:
    @staticmethod
    def read(said: dict[str, Any], *, streamed: bool, **display: bool) -> list[Event]:
        stream = b"".join([chunk(said), chunk({"content": " And no."}), *END])
        body = stream if streamed else json.dumps(completion(said)).encode()
        return read_events("chat", body, streamed=streamed, **display)

    @pytest.mark.parametrize("streamed", [True, False])
    @pytest.mark.parametrize("hides_raw", [True, False])
    @pytest.mark.parametrize("media", [{"images": [EMBEDDED]}, {"content": [EMBEDDED]}])
    def test_images_are_told_to_a_client_that_has_a_form_for_them(
        self, media: dict[str, Any], *, streamed: bool, hides_raw: bool
    ) -> None:
        events = self.read(
            {**SAID, **media}, streamed=streamed, carries_images=True, hides_raw=hides_raw
        )
        kinds = list(map(type, events))
        assert kinds.index(ImageDelta) < kinds.index(ToolCallDelta)
        (told,) = [event for event in events if isinstance(event, ImageDelta)]
        assert (told.media_type, told.data, turn_of(events).ok) == ("image/png", "iVBO", True)

    @pytest.mark.parametrize("streamed", [True, False])
    @pytest.mark.parametrize(
        ("media", "carries_images", "words"),
        [
            ({"images": [EMBEDDED]}, False, "an image"),
            ({"images": [REMOTE]}, True, "an image"),
            (AUDIO, True, "audio"),
        ],
    )
    def test_an_answer_with_what_the_clients_api_cannot_carry_fails(
        self, media: dict[str, Any], words: str, *, carries_images: bool, streamed: bool
    ) -> None:
        said = {**SAID, **media}
        turn = turn_of(self.read(said, streamed=streamed, carries_images=carries_images))
        assert turn.error is not None
        assert turn.error.message == (
            f"The answer contains {words}, which this API cannot represent."
        )
        assert "And no" not in turn.answer.text

    @pytest.mark.parametrize(
        "media",
        [
            {"images": []},
            {"audio": None},
            {"audio": {"data": "", "expires_at": 0, "id": "", "transcript": ""}},
            {"images": [image("")]},
        ],
    )
    def test_an_empty_field_is_no_medium(self, media: dict[str, Any]) -> None:
        assert turn_of(self.read({**SAID, **media}, streamed=True)).ok
