"""Test hiding raw reasoning in every place where upstreams put it on Responses."""

from __future__ import annotations

import json
from functools import partial
from itertools import product
from typing import Any, ClassVar

import pytest

from abridge.apis.chat.api import CHAT
from abridge.apis.display import Exposure
from abridge.providers.catalog import PROFILES
from tests.support.checker import ResponsesStream, check_chat, check_responses, frames
from tests.support.matrix import each_in_turn
from tests.support.pipeline import Pipeline, responses, translating
from tests.support.streams import (
    RESPONSES_USAGE,
    call_item,
    frame,
    message_item,
    numbered,
    reasoning_item,
    response,
    responses_stream,
)

THOUGHT = 'First I recall the rule.\n\nIt says "n squared", so the sum of ten is a hundred — done.'
SECRETS = ("recall the rule", "n squared", "is a hundred")
BARE = {"id": "rs_0", "type": "reasoning", "summary": []}
FULL = {**BARE, "content": [{"type": "reasoning_text", "text": THOUGHT}]}
MESSAGE = message_item(1, "One hundred.")
BLOB = "gAAAAABo" + "q3Jd-_8h" * 40

CREATED = {"type": "response.created", "response": response([], status="in_progress", usage=None)}
ADDED = {"type": "response.output_item.added", "output_index": 0, "item": BARE}
DONE = {"type": "response.output_item.done", "output_index": 0, "item": FULL}
ANSWER = (
    {"type": "response.output_item.added", "output_index": 1, "item": {**MESSAGE, "content": []}},
    {"type": "response.output_item.done", "output_index": 1, "item": MESSAGE},
)
COMPLETED = {"type": "response.completed", "response": response([FULL, MESSAGE])}
HIDING: list[Exposure] = ["summary", "none"]

pytestmark = pytest.mark.parametrize("expose", HIDING)


def of_item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "output_index": 0, "item_id": "rs_0", "content_index": 0, **fields}


RAW = of_item("response.reasoning_text.delta", delta=THOUGHT)


def check_hidden(out: bytes) -> ResponsesStream:
    """Return the stream, having checked that it has no reasoning, however it is encoded."""
    for secret in SECRETS:
        assert secret.encode() not in out
    return check_responses(out)


def run(expose: Exposure, *events: dict[str, Any], ended: bool = True) -> ResponsesStream:
    ending = (DONE, *ANSWER, COMPLETED) if ended else ()
    return check_hidden(
        responses(expose=expose).stream(b"".join(numbered(CREATED, *events, *ending)))
    )


CLEAR = {
    "as it is": THOUGHT,
    "its parts joined": f"Note:\n{THOUGHT}\n\nEnd.",
    "json": json.dumps({"thinking": THOUGHT}),
    "json in utf-8": json.dumps([{"type": "thinking", "thinking": THOUGHT}], ensure_ascii=False),
    "no text at all": {"thinking": THOUGHT},
}


@pytest.mark.parametrize("state", CLEAR.values(), ids=CLEAR)
@pytest.mark.parametrize("parts", [(THOUGHT,), tuple(THOUGHT.splitlines())], ids=["one", "several"])
def test_opaque_state_that_is_in_the_clear_is_hidden(
    expose: Exposure, parts: tuple[str, ...], state: Any
) -> None:
    content = [{"type": "reasoning_text", "text": text} for text in parts]
    item = {**BARE, "content": content, "encrypted_content": state}
    stream = b"".join(responses_stream([item, MESSAGE]))
    seen = check_hidden(responses(expose=expose).stream(stream))
    assert "encrypted_content" not in seen.response["output"][0]
    whole = responses(expose=expose).whole(json.dumps(response([item, MESSAGE])).encode())
    assert not any(secret.encode() in whole for secret in SECRETS)


def test_opaque_state_without_spaces_that_is_in_the_clear_is_hidden(expose: Exposure) -> None:
    state = "so-the-sum-of-ten-is-a-hundred"
    output = [reasoning_item(0, state, encrypted_content=f"v1:{state}"), MESSAGE]
    for out in (
        responses(expose=expose).stream(b"".join(responses_stream(output))),
        responses(expose=expose).whole(json.dumps(response(output)).encode()),
    ):
        assert state.encode() not in out


@pytest.mark.parametrize("thought", [THOUGHT, "Hm", "gAAA", "q3Jd\n\nSo it is."])
def test_opaque_state_stays_though_a_short_word_is_in_it_by_chance(
    expose: Exposure, thought: str
) -> None:
    stream = responses_stream([reasoning_item(0, thought, encrypted_content=BLOB), MESSAGE])
    seen = check_responses(responses(expose=expose).stream(b"".join(stream)))
    assert seen.response["output"][0]["encrypted_content"] == BLOB


def test_a_known_field_is_hidden_unless_its_value_has_the_right_type(
    expose: Exposure,
) -> None:
    item = {**FULL, "status": {"reasoning": THOUGHT}}
    check_hidden(responses(expose=expose).stream(b"".join(responses_stream([item, MESSAGE]))))


@pytest.mark.parametrize("state", ["queued", "in_progress"])
def test_a_snapshot_of_the_response_holds_no_more_than_is_shown(
    expose: Exposure, state: str
) -> None:
    messages = [{"content": THOUGHT}]
    snapshot = response([FULL], status=state, input_messages=messages, output_messages=messages)
    seen = run(expose, ADDED, RAW, {"type": f"response.{state}", "response": snapshot})
    snapshot = next(event for event in seen.events if event["type"] == f"response.{state}")
    assert snapshot["response"]["output"] == [{**BARE, "content": []}]


def test_an_error_that_carries_the_response_carries_no_more_than_is_shown(
    expose: Exposure,
) -> None:
    error = {"type": "error", "error": {"message": "Quota."}, "response": response([FULL])}
    failed = {"type": "response.failed", "response": response([FULL], status="failed")}
    seen = run(expose, ADDED, RAW, error, failed, ended=False)
    assert seen.errors[0]["response"]["output"][0]["content"] == []


def test_a_keep_alive_repeats_no_more_than_is_shown(expose: Exposure) -> None:
    pipeline = responses(expose=expose)
    snapshot = {"type": "response.in_progress", "response": response([FULL], status="in_progress")}
    for raw in numbered(CREATED, ADDED, snapshot):
        pipeline.frame(raw)
    pipeline.out += pipeline.writer.keep_alive()
    assert check_hidden(bytes(pipeline.out)).kinds.count("response.in_progress") == 2


def test_a_snapshot_shows_no_native_summary_that_is_not_to_be_shown(expose: Exposure) -> None:
    item = {**BARE, "summary": [{"type": "summary_text", "text": "Theirs."}]}
    pipeline = responses(expose=expose, profile=PROFILES["openai"])
    snapshot = {"type": "response.in_progress", "response": response([item], status="in_progress")}
    for raw in numbered(CREATED, ADDED, snapshot):
        pipeline.frame(raw)
    assert (b"Theirs." in pipeline.out) == (expose == "summary")


class TestOfAnyKind:
    """Any event of a reasoning item may contain raw reasoning."""

    EVENTS = (
        of_item("response.content_part.added", part={"type": "text", "text": THOUGHT}),
        of_item("response.content_part.done", part={"type": "output_text", "text": THOUGHT}),
        of_item("response.output_text.delta", delta=THOUGHT),
        of_item("response.output_text.done", text=THOUGHT),
        of_item("response.refusal.delta", delta=THOUGHT),
        of_item("response.thinking.delta", delta=THOUGHT),
        of_item("vendor:trace", trace=[THOUGHT]),
    )

    @pytest.mark.parametrize("event", EVENTS, ids=lambda event: event["type"])
    def test_it_is_hidden(self, expose: Exposure, event: dict[str, Any]) -> None:
        kinds = run(expose, ADDED, event, RAW).kinds
        assert kinds.count(event["type"]) == run(expose, ADDED, RAW).kinds.count(event["type"])

    @pytest.mark.parametrize("event", EVENTS, ids=lambda event: event["type"])
    def test_it_is_hidden_under_another_id(self, expose: Exposure, event: dict[str, Any]) -> None:
        kinds = run(expose, ADDED, {**event, "item_id": "odd"}, RAW).kinds
        assert kinds.count(event["type"]) == run(expose, ADDED, RAW).kinds.count(event["type"])

    @pytest.mark.parametrize("event", EVENTS, ids=lambda event: event["type"])
    def test_after_its_done_it_is_counted(self, expose: Exposure, event: dict[str, Any]) -> None:
        pipeline = responses(expose=expose)
        stream = numbered(CREATED, ADDED, RAW, DONE, event, *ANSWER, COMPLETED)
        check_hidden(pipeline.stream(b"".join(stream)))
        assert (pipeline.reader.faults, pipeline.reader.dropped > 0) in ((1, False), (0, True))

    def test_a_second_beginning_is_a_fault(self, expose: Exposure) -> None:
        pipeline = responses(expose=expose)
        again = {**ADDED, "item": FULL}
        stream = numbered(CREATED, ADDED, again, RAW, DONE, *ANSWER, COMPLETED)
        check_hidden(pipeline.stream(b"".join(stream)))
        assert pipeline.reader.faults == 1

    def test_an_end_that_is_another_items_is_a_fault(self, expose: Exposure) -> None:
        other = {**DONE, "item": {**MESSAGE, "content": FULL["content"]}}
        pipeline = responses(expose=expose)
        stream = numbered(CREATED, ADDED, RAW, other, *ANSWER, COMPLETED)
        check_hidden(pipeline.stream(b"".join(stream)))
        assert pipeline.reader.faults == 1


NO_OBJECTS = (json.dumps([RAW]), json.dumps(THOUGHT))
HALF_AN_EVENT = '{"type": "response.reasoning_text.delta", "delta": "' + THOUGHT.splitlines()[0]


def interrupted(expose: Exposure, raw: bytes) -> Pipeline:
    pipeline = responses(expose=expose)
    stream = numbered(CREATED, ADDED, RAW, DONE, *ANSWER, COMPLETED)
    pipeline.stream(b"".join([*stream[:3], raw, *stream[3:]]))
    return pipeline


@pytest.mark.parametrize("data", NO_OBJECTS)
def test_data_that_is_no_json_object_is_a_fault(expose: Exposure, data: str) -> None:
    pipeline = interrupted(expose, frame(data))
    assert pipeline.reader.faults == 1
    assert check_hidden(bytes(pipeline.out)).response["status"] == "completed"


def test_an_event_that_cannot_be_read_is_not_shown(expose: Exposure) -> None:
    pipeline = interrupted(expose, frame(HALF_AN_EVENT))
    assert check_hidden(bytes(pipeline.out)).response["status"] == "failed"


@pytest.mark.parametrize("line", [b": %s", b"id: %s", b"event: %s", b"retry: %s", b"%s"])
@pytest.mark.parametrize("rest", [b"", b'data: {"type": "response.output_text.delta"}\n'])
def test_only_the_data_of_a_frame_passes(expose: Exposure, line: bytes, rest: bytes) -> None:
    odd_line = line % THOUGHT.splitlines()[0].encode() + b"\n"
    check_hidden(bytes(interrupted(expose, odd_line + rest + b"\n").out))


def test_a_comment_is_no_fault(expose: Exposure) -> None:
    assert interrupted(expose, b": waiting\n\n").reader.faults == 0


def test_a_frame_cut_in_its_middle_is_not_shown(expose: Exposure) -> None:
    stream = b"".join(numbered(CREATED, ADDED, RAW))
    seen = check_hidden(responses(expose=expose).stream(stream[:-12]))
    assert seen.response["status"] == "failed"


@pytest.mark.parametrize("more", [{}, {"content": []}, {"content": None}])
def test_reasoning_that_was_only_streamed_is_recognized_in_opaque_state(
    expose: Exposure, more: dict[str, Any]
) -> None:
    item = {**BARE, **more, "encrypted_content": json.dumps(THOUGHT)}
    done = {**DONE, "item": item}
    completed = {"type": "response.completed", "response": response([item, MESSAGE])}
    stream = numbered(CREATED, ADDED, RAW, done, *ANSWER, completed)
    seen = check_hidden(responses(expose=expose).stream(b"".join(stream)))
    assert "encrypted_content" not in seen.response["output"][0]


class TestASummaryThatIsTheReasoning:
    """Ollama does so, and no profile says so."""

    MASKED: ClassVar = {
        **BARE,
        "summary": [{"type": "summary_text", "text": THOUGHT}],
        "encrypted_content": THOUGHT,
    }
    TEXT_EVENTS = (
        of_item("response.reasoning_summary_text.delta", summary_index=0, delta=THOUGHT[:30]),
        of_item("response.reasoning_summary_text.delta", summary_index=0, delta=THOUGHT[30:]),
        of_item("response.reasoning_summary_text.done", summary_index=0, text=THOUGHT),
    )

    def stream(self, item: dict[str, Any], *inside: dict[str, Any]) -> bytes:
        final = {"type": "response.completed", "response": response([item, MESSAGE])}
        events = (CREATED, ADDED, *inside, {**DONE, "item": item}, *ANSWER, final)
        return b"".join(numbered(*events))

    @pytest.mark.parametrize("count", [0, 2, 3])
    def test_it_is_recognized_by_the_same_text_in_opaque_state(
        self, expose: Exposure, count: int
    ) -> None:
        pipeline = responses(expose=expose)
        seen = check_hidden(pipeline.stream(self.stream(self.MASKED, *self.TEXT_EVENTS[:count])))
        assert [passage.text for passage in pipeline.passages] == [THOUGHT] * (expose == "summary")
        assert pipeline.recorded_turns()[0].original[0]["encrypted_content"] == THOUGHT
        assert pipeline.reader.faults == 0
        assert len(seen.summary) == (expose == "summary")

    def test_it_is_shown_as_raw_reasoning(self, expose: Exposure) -> None:
        pipeline = responses()
        seen = check_responses(pipeline.stream(self.stream(self.MASKED, *self.TEXT_EVENTS)))
        assert seen.raw == THOUGHT
        assert seen.summary == [f"**Part**\n\nSaid of {len(THOUGHT)} characters."]

    def test_it_is_recognized_in_a_whole_response_too(self, expose: Exposure) -> None:
        body = json.dumps(response([self.MASKED, MESSAGE])).encode()
        whole = responses(expose=expose).whole(body)
        assert not any(secret.encode() in whole for secret in SECRETS)

    def test_a_summary_beside_true_opaque_state_is_native(self, expose: Exposure) -> None:
        item = {**self.MASKED, "encrypted_content": BLOB}
        pipeline = responses(expose=expose, profile=PROFILES["openai"])
        seen = check_responses(pipeline.stream(self.stream(item, *self.TEXT_EVENTS)))
        assert seen.summary == [THOUGHT] * (expose == "summary")
        assert not pipeline.passages

    def test_it_is_not_shown_if_the_stream_is_cut_before_it_is_recognized(
        self, expose: Exposure
    ) -> None:
        check_hidden(
            responses(expose=expose).stream(b"".join(numbered(CREATED, ADDED, *self.TEXT_EVENTS)))
        )


class TestOnlyWhatIsKnownPasses:
    """Each stream and body has the thought in one more place."""

    CALL: ClassVar = call_item(2, "add", '{"a": 1}')
    TEXT: ClassVar = {"output_index": 1, "item_id": "msg_1", "content_index": 0}
    UNKNOWN_ITEM: ClassVar = {"type": "musing", "id": "mu_1", "content": [{"text": THOUGHT}]}

    IN_RESPONSE: ClassVar[dict[str, dict[str, Any]]] = {
        "an unknown key": {"thoughts": THOUGHT},
        "a transcript": {"output_messages": [{"content": THOUGHT}]},
        "an unknown key of usage": {"usage": {**RESPONSES_USAGE, "note": THOUGHT}},
        "a sentence as a key of usage": {"usage": {**RESPONSES_USAGE, THOUGHT: 1}},
        "an unknown key of reasoning": {"reasoning": {"effort": None, "trace": THOUGHT}},
        "a sentence as a name": {"service_tier": THOUGHT, "status": THOUGHT},
        "an error": {"error": {"code": "server_error", "message": THOUGHT}},
        "an error's code": {"error": {"code": THOUGHT, "message": ""}},
        "an error as text": {"error": THOUGHT},
        "details": {"incomplete_details": {"reason": THOUGHT, "more": THOUGHT}},
        "instructions": {"instructions": [{"type": "musing", "text": THOUGHT}, FULL]},
        "its text": {"output_text": THOUGHT},
    }
    IN_MESSAGE: ClassVar[dict[str, dict[str, Any]]] = {
        "an unknown key": {"reasoning_content": THOUGHT},
        "a sentence as an id": {"id": THOUGHT},
        "a string as content": {"content": THOUGHT},
        "an unknown part": {"content": [*MESSAGE["content"], {"type": "musing", "text": THOUGHT}]},
        "a part of reasoning": {"content": [*MESSAGE["content"], *FULL["content"]]},
        "an unknown key of a part": {"content": [{**MESSAGE["content"][0], "trace": THOUGHT}]},
        "an unknown annotation": {
            "content": [{**MESSAGE["content"][0], "annotations": [{"type": "m", "text": THOUGHT}]}]
        },
        "an unknown key of an annotation": {
            "content": [
                {
                    **MESSAGE["content"][0],
                    "annotations": [
                        {"type": "file_path", "file_id": "f", "index": 1, "x": THOUGHT}
                    ],
                }
            ]
        },
        "log probabilities": {
            "content": [{**MESSAGE["content"][0], "logprobs": [{"token": THOUGHT, "logprob": 0}]}]
        },
    }
    IN_ITEM: ClassVar[dict[str, dict[str, Any]]] = {
        "an unknown item": UNKNOWN_ITEM,
        "an item of no type": {"id": "mu_1", "content": [{"type": "output_text", "text": THOUGHT}]},
        "an unknown key of a call": {**CALL, "thought": THOUGHT},
        "an unknown key of reasoning": {**BARE, "id": "rs_2", "thinking": THOUGHT},
        "a sentence as an id of reasoning": {**FULL, "id": THOUGHT},
        "a sentence in place of an id": {"type": "reasoning", "summary": [], "call_id": THOUGHT},
        "a sentence as a state": {**BARE, "id": "rs_2", "status": THOUGHT},
        "an unknown key of a summary": {
            **BARE,
            "id": "rs_2",
            "summary": [{"type": "summary_text", "text": "So.", "draft": THOUGHT}],
        },
        "an unknown part of a summary": {
            **BARE,
            "id": "rs_2",
            "summary": [{"type": "draft", "text": THOUGHT}],
        },
        "state that can be read": {**BARE, "id": "rs_2", "encrypted_content": THOUGHT + "!"},
        "an unknown key of an action": {
            "type": "web_search_call",
            "id": "ws_2",
            "status": "completed",
            "action": {"type": "search", "query": "q", "why": THOUGHT},
        },
        "media that can be read": {
            "type": "image_generation_call",
            "id": "ig_2",
            "status": "completed",
            "result": THOUGHT,
        },
    }
    EVENTS: ClassVar[dict[str, tuple[dict[str, Any], ...]]] = {
        "an unknown key": (
            {"type": "response.output_text.delta", **TEXT, "delta": "On", "t": RAW},
        ),
        "an unknown type": ({"type": "response.musing.delta", **TEXT, "delta": THOUGHT},),
        "a type of another form": ({"type": "keepalive", "text": THOUGHT},),
        "no type": ({"type": "", "text": THOUGHT},),
        "log probabilities": (
            {
                "type": "response.output_text.delta",
                **TEXT,
                "delta": "On",
                "logprobs": [{"token": THOUGHT, "logprob": 0}],
            },
        ),
        "obfuscation": (
            {"type": "response.output_text.delta", **TEXT, "delta": "On", "obfuscation": THOUGHT},
        ),
        "an unknown part": (
            {
                "type": "response.content_part.added",
                **TEXT,
                "part": {"type": "musing", "text": THOUGHT},
            },
        ),
        "a known part of an unknown item": (
            {"type": "response.output_item.added", "output_index": 3, "item": UNKNOWN_ITEM},
            {
                "type": "response.content_part.added",
                "output_index": 3,
                "item_id": "mu_1",
                "content_index": 0,
                "part": {"type": "output_text", "text": THOUGHT},
            },
            {
                "type": "response.output_text.delta",
                "output_index": 3,
                "item_id": "mu_1",
                "content_index": 0,
                "delta": THOUGHT,
            },
            {"type": "response.output_item.done", "output_index": 3, "item": UNKNOWN_ITEM},
        ),
        "a lifecycle event of unknown type": (
            {"type": "response.paused", "response": response([FULL], text=THOUGHT)},
        ),
        "an error": ({"type": "error", "code": "quota", "message": THOUGHT, "param": THOUGHT},),
        "an error body": ({"type": "error", "error": {"type": "quota", "message": THOUGHT}},),
        "an unknown key of an error": ({"type": "error", "message": "", "detail": THOUGHT},),
    }

    def pipelines(self, expose: Exposure) -> list[Pipeline]:
        vouched = PROFILES["openai"]  # so that native summaries are shown
        return [
            make(expose=expose, profile=profile)
            for profile in (vouched, PROFILES["auto"])
            for make in (responses, partial(translating, "responses", CHAT))
        ]

    def check(self, expose: Exposure, *events: dict[str, Any], body: dict[str, Any]) -> None:
        for pipeline in self.pipelines(expose):
            out = pipeline.stream(b"".join(numbered(*events)))
            assert not any(secret.encode() in out for secret in SECRETS)
            if pipeline.upstream is None:
                check_responses(out)
            else:
                check_chat(out)
        for pipeline in self.pipelines(expose):
            out = pipeline.whole(json.dumps(body).encode())
            assert not any(secret.encode() in out for secret in SECRETS)

    def check_output(self, expose: Exposure, output: list[dict[str, Any]], **more: Any) -> None:
        body = response(output, **more)
        events = [
            event
            for place, item in enumerate(output)
            for event in (
                {"type": "response.output_item.added", "output_index": place, "item": item},
                {"type": "response.output_item.done", "output_index": place, "item": item},
            )
        ]
        begun = {"type": "response.created", "response": {**body, "output": []}}
        ended = {"type": "response.completed", "response": body}
        self.check(expose, begun, *events, ended, body=body)

    @pytest.mark.parametrize("more", IN_RESPONSE.values(), ids=IN_RESPONSE)
    def test_in_a_response(self, expose: Exposure, more: dict[str, Any]) -> None:
        self.check_output(expose, [FULL, MESSAGE], **more)

    @pytest.mark.parametrize("more", IN_MESSAGE.values(), ids=IN_MESSAGE)
    def test_in_a_message(self, expose: Exposure, more: dict[str, Any]) -> None:
        self.check_output(expose, [FULL, {**MESSAGE, **more}, self.CALL])

    @pytest.mark.parametrize("item", IN_ITEM.values(), ids=IN_ITEM)
    def test_in_an_item(self, expose: Exposure, item: dict[str, Any]) -> None:
        self.check_output(expose, [FULL, MESSAGE, item])
        self.check_output(expose, [FULL, item, MESSAGE])

    @pytest.mark.parametrize("events", EVENTS.values(), ids=EVENTS)
    def test_in_an_event(self, expose: Exposure, events: tuple[dict[str, Any], ...]) -> None:
        stream = (CREATED, ADDED, RAW, DONE, ANSWER[0], *events, ANSWER[1], COMPLETED)
        self.check(expose, *stream, body=COMPLETED["response"])

    def test_an_item_of_unknown_type_leaves_no_gap(self, expose: Exposure) -> None:
        output = [FULL, self.UNKNOWN_ITEM, MESSAGE, self.CALL]
        pipeline = responses(expose=expose)
        seen = check_hidden(pipeline.stream(b"".join(responses_stream(output))))
        indexes = [event["output_index"] for event in seen.events if "item" in event]
        assert indexes == [0, 0, 1, 1, 2, 2]
        assert [item["id"] for item in seen.response["output"]] == ["rs_0", "msg_1", "fc_2"]
        assert pipeline.reader.dropped == 3

    def test_duplicate_keys(self, expose: Exposure) -> None:
        delta = {"type": "response.output_text.delta", "sequence_number": 5, **self.TEXT}
        delta["delta"] = "On"
        data = json.dumps(delta).replace("{", f'{{"delta": {json.dumps(THOUGHT)}, ', 1)
        stream = numbered(CREATED, ADDED, RAW, DONE, ANSWER[0], ANSWER[1], COMPLETED)
        stream.insert(5, frame(data))
        check_hidden(responses(expose=expose).stream(b"".join(stream)))

    def test_an_error_is_told_in_other_words(self, expose: Exposure) -> None:
        error = {"code": "rate_limit_exceeded", "message": THOUGHT}
        failed = {"type": "response.failed", "response": response([], status="failed", error=error)}
        seen = run(expose, ADDED, RAW, {"type": "error", **error}, failed, ended=False)
        for told in (seen.errors[0], seen.response["error"]):
            assert told["code"] == "rate_limit_exceeded"
            assert told["message"] == "Upstream reported an error."

    def test_a_body_that_is_an_error_is_not_repeated(self, expose: Exposure) -> None:
        for pipeline in self.pipelines(expose):
            out = pipeline.whole(json.dumps({"error": {"message": THOUGHT}}).encode())
            assert not any(secret.encode() in out for secret in SECRETS)
            assert pipeline.end.error is not None
            assert pipeline.end.error.message == "Upstream reported an error."


NATIVE_EVENTS = {
    "today's": TestASummaryThatIsTheReasoning.TEXT_EVENTS,
    "early": (
        of_item("response.reasoning_summary.delta", summary_index=0, delta=THOUGHT),
        of_item("response.reasoning_summary.done", summary_index=0, text=THOUGHT),
    ),
    "announced": (
        of_item(
            "response.reasoning_summary_part.added",
            summary_index=0,
            part={"type": "summary_text", "text": ""},
        ),
        *TestASummaryThatIsTheReasoning.TEXT_EVENTS,
        of_item(
            "response.reasoning_summary_part.done",
            summary_index=0,
            part={"type": "summary_text", "text": THOUGHT},
        ),
    ),
    "none": (),
}


@pytest.mark.parametrize("name", NATIVE_EVENTS)
def test_a_native_summary_is_shown_only_where_the_profile_vouches_for_it(
    expose: Exposure, name: str
) -> None:
    item = {**BARE, "summary": [{"type": "summary_text", "text": THOUGHT}]}
    final = {"type": "response.completed", "response": response([item, MESSAGE])}
    events = CREATED, ADDED, *NATIVE_EVENTS[name], {**DONE, "item": item}, *ANSWER, final
    stream, body = b"".join(numbered(*events)), json.dumps(response([item, MESSAGE])).encode()
    turn = list(NATIVE_EVENTS).index(name) + (expose == "summary")
    for profile, make in product(
        each_in_turn(PROFILES.values(), turn, 2),
        (responses, partial(translating, "responses", CHAT)),
    ):
        is_shown = profile.makes_summaries and expose == "summary"
        out = make(expose=expose, profile=profile).stream(stream)
        whole = make(expose=expose, profile=profile).whole(body)
        for secret in SECRETS:
            assert (secret in json.dumps(decoded(out))) is is_shown, profile
            assert (secret in json.dumps(json.loads(whole))) is is_shown, profile


def decoded(stream: bytes) -> list[Any]:
    return [json.loads(data) for _, data in frames(stream) if data != "[DONE]"]


def test_what_was_taken_for_reasoning_is_given_back_as_it_was_sent(expose: Exposure) -> None:
    native = [{"type": "summary_text", "text": "I add."}]
    item = {**FULL, "summary": native, "encrypted_content": BLOB, "vendor": {"cost": 1}}
    for make in (responses, partial(translating, "responses", CHAT)):
        for whole in (True, False):
            pipeline = make(expose=expose)
            if whole:
                pipeline.whole(json.dumps(response([item, MESSAGE])).encode())
            else:
                pipeline.stream(b"".join(responses_stream([item, MESSAGE])))
            (turn,) = pipeline.recorded_turns()
            assert turn.original == [item]
            assert turn.raw == THOUGHT + "I add."


def test_a_native_summary_that_an_item_begins_with_is_shown_only_if_summaries_are(
    expose: Exposure,
) -> None:
    native = {**BARE, "summary": [{"type": "summary_text", "text": "I recall it."}]}
    added = {**ADDED, "item": native}
    stream = numbered(
        CREATED,
        added,
        {**DONE, "item": native},
        *ANSWER,
        {**COMPLETED, "response": response([native, MESSAGE])},
    )
    out = responses(expose=expose, profile=PROFILES["openai"]).stream(b"".join(stream))
    assert (b"I recall it." in out) == (expose == "summary")
