"""Nothing of an answer is lost or changed on its way: numbers, bytes that are no text, events that
cannot be read. On every pair of APIs, streamed and whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.errors import UNREADABLE
from abridge.apis.messages.api import MESSAGES
from abridge.apis.responses.api import RESPONSES
from abridge.core.events import ErrorReported, Event, ResponseEnded
from tests.apis.messages import scripts
from tests.support.checker import check_chat, check_responses
from tests.support.checker import frames as frames_of
from tests.support.messages_checker import check_messages
from tests.support.pipeline import Pipeline, all_clients
from tests.support.streams import (
    CHAT_USAGE,
    DONE,
    THOUGHT,
    call,
    call_item,
    chat_stream,
    chunk,
    completion,
    frame,
    message_item,
    numbered,
    pieces,
    reasoning_item,
    response,
    responses_stream,
)

TEXT = "[A][B@][C]"
NUMBERS = b"[12345678901234567890123,NaN,-Infinity,1E400,0.1000000000000000000001]"
ARGUMENTS = {"to": "bob", "dry_run": True, "sum": 5}
CALL = json.dumps(ARGUMENTS)

UPSTREAMS = ("chat", "responses", "messages")
EXPOSURES = ("auto", "both", "summary", "none")


def pipeline_of(upstream: str, client: Api, **settings: Any) -> Pipeline:
    translated = None if upstream == client.name else upstream
    return Pipeline(client, upstream=translated, **settings)


def streamed(upstream: str) -> list[bytes]:
    match upstream:
        case "chat":
            return chat_stream(THOUGHT, TEXT)
        case "responses":
            return responses_stream([reasoning_item(0, THOUGHT), message_item(1, TEXT)])
    return scripts.stream([scripts.thinking(THOUGHT), scripts.text(TEXT)])


def whole(upstream: str) -> bytes:
    match upstream:
        case "chat":
            body = completion({"reasoning": THOUGHT, "content": TEXT})
        case "responses":
            body = response([reasoning_item(0, THOUGHT), message_item(1, TEXT)])
        case _:
            body = scripts.message([scripts.thinking(THOUGHT), scripts.text(TEXT)])
    return json.dumps(body).encode()


def calling(upstream: str) -> list[bytes]:
    """Return a stream that calls a function, its arguments in several pieces."""
    match upstream:
        case "chat":
            first, *more = pieces(CALL)
            fragments = [{"index": 0, "function": {"arguments": piece}} for piece in more]
            return chat_stream(THOUGHT, calls=[call("f", first), *fragments], finish="tool_calls")
        case "responses":
            return responses_stream([reasoning_item(0, THOUGHT), call_item(1, "f", CALL)])
    return scripts.stream([scripts.tool_use(0, "f", **ARGUMENTS)], "tool_use")


def text_of(client: Api, out: bytes, *, stream: bool) -> str:
    if stream:
        if client is MESSAGES:
            return check_messages(out).text
        return check_chat(out).choices[0].text if client is CHAT else check_responses(out).text
    body = json.loads(out)
    if client is MESSAGES:
        return str(body["content"][-1]["text"])
    if client is CHAT:
        return str(body["choices"][0]["message"]["content"])
    return str(body["output"][-1]["content"][0]["text"])


def arguments_of(client: Api, out: bytes) -> list[str]:
    if client is CHAT:
        choices = check_chat(out).choices.values()
        return [call["arguments"] for choice in choices for call in choice.calls.values()]
    if client is MESSAGES:
        deltas = [json.loads(data).get("delta", {}) for _, data in frames_of(out)]
        return ["".join(delta.get("partial_json", "") for delta in deltas)]
    items = check_responses(out).response["output"]
    return [item["arguments"] for item in items if item["type"] == "function_call"]


def error_of(client: Api, out: bytes) -> dict[str, Any] | None:
    if client is CHAT:
        return check_chat(out).error
    if client is MESSAGES:
        return check_messages(out).error
    return check_responses(out).response["error"]


all_pairs = pytest.mark.parametrize("upstream", UPSTREAMS)


@all_pairs
@all_clients
class TestHalfACharacter:
    @pytest.mark.parametrize("expose", EXPOSURES)
    def test_in_a_stream_it_is_replaced_in_its_place(
        self, upstream: str, client: Api, expose: str
    ) -> None:
        data = b"".join(streamed(upstream)).replace(b"@", b"\xf0\x9f")
        out = pipeline_of(upstream, client, expose=expose).stream(data)
        assert text_of(client, out, stream=True) == "[A][B\ufffd][C]"
        assert "[C]" in out.decode()

    def test_in_a_body_it_is_replaced(self, upstream: str, client: Api) -> None:
        body = whole(upstream).replace(b"@", b"\xf0\x9f")
        out = pipeline_of(upstream, client).whole(body)
        assert text_of(client, out, stream=False) == "[A][B\ufffd][C]"


def test_half_a_character_in_an_event_without_a_blank_line_after_it_is_replaced() -> None:
    stream = [chunk({"role": "assistant", "content": "So"}), chunk({"content": "@"}, finish="stop")]
    out = Pipeline(CHAT).stream(b"".join(stream).replace(b"@", b"\xf0\x9f")[:-2])
    assert check_chat(out).choices[0].text == "So\ufffd"


@all_pairs
@all_clients
class TestUnreadableEvents:
    @pytest.mark.parametrize("expose", EXPOSURES)
    @pytest.mark.parametrize("broken", [b"data: %s\n\n", b"data:  \t%s\n\n", b"data:%s\r\n\r\n"])
    def test_a_call_that_lacks_a_piece_fails(
        self, upstream: str, client: Api, expose: str, broken: bytes
    ) -> None:
        """It must not arrive as another call."""
        frames = calling(upstream)
        place = next(n for n, each in enumerate(frames) if b"dry" in each)
        half = broken % frames[place].split(b"data: ")[1].strip()[:-1]
        pipeline = pipeline_of(upstream, client, expose=expose)
        out = pipeline.stream(b"".join([*frames[:place], half, *frames[place + 1 :]]))
        assert not pipeline.end.ok
        assert (error_of(client, out) or {})["message"] == UNREADABLE.message
        assert all(map(CALL[:20].startswith, arguments_of(client, out)))
        assert half not in out

    def test_nothing_is_read_after_it(self, upstream: str, client: Api) -> None:
        frames = streamed(upstream)
        pipeline = pipeline_of(upstream, client)
        out = pipeline.stream(b"".join([*frames[:2], b'data: {"a\n\n', *frames]))
        assert error_of(client, out) is not None
        assert b"[C]" not in out

    @pytest.mark.parametrize("odd", [b"data: ping\n\n", b"data: [1\n\n", b'data: "a\n\n'])
    def test_data_that_is_no_object_is_no_event(
        self, upstream: str, client: Api, odd: bytes
    ) -> None:
        frames = streamed(upstream)
        pipeline = pipeline_of(upstream, client, expose="none")
        out = pipeline.stream(b"".join([*frames[:2], odd, *frames[2:]]))
        assert pipeline.end.ok
        assert text_of(client, out, stream=True) == TEXT


def with_numbers(data: bytes) -> bytes:
    return data.replace(b'"numbers"', NUMBERS)


class TestNumbersInChat:
    @pytest.mark.parametrize("expose", ["auto", "both"])
    @pytest.mark.parametrize(
        "change",
        [
            lambda chunk: chunk,
            lambda chunk: {key: value for key, value in chunk.items() if key != "created"},
        ],
        ids=["as it is", "repaired"],
    )
    def test_a_chunk_that_is_rewritten_keeps_them(
        self, expose: str, change: Callable[[Any], Any]
    ) -> None:
        delta = {"role": "assistant", "reasoning": THOUGHT, "content": "So."}
        both = change(json.loads(chunk(delta, citations="numbers")[6:]))
        ending = chunk({}, finish="stop", usage={**CHAT_USAGE, "cost": "numbers"})
        stream = with_numbers(b"".join([frame(both), ending, DONE]))
        out = Pipeline(CHAT, expose=expose).stream(stream)  # type: ignore[arg-type]
        assert out.replace(b", ", b",").count(NUMBERS) == 2
        assert check_chat(out).choices[0].text == "So."

    def test_a_chunk_that_is_composed_has_the_header_as_it_was(self) -> None:
        header = frame({**json.loads(chunk({"content": "So."})[6:]), "created": 7})
        header = header.replace(b'"created": 7', b'"created":12345678901234567890123')
        out = Pipeline(CHAT).stream(b"".join([chunk({"role": "assistant"}), header, DONE]))
        composed = out.split(b"data: ")[-2]
        assert b'"finish_reason":"stop"' in composed
        assert b'"created":12345678901234567890123,' in composed

    def test_a_body_keeps_them(self) -> None:
        body = completion({"reasoning": THOUGHT, "content": "So."}, citations="numbers")
        assert NUMBERS in Pipeline(CHAT).whole(with_numbers(json.dumps(body).encode()))


class TestNumbersInResponses:
    @pytest.mark.parametrize("whole", [True, False])
    def test_a_response_that_is_rewritten_keeps_them(self, *, whole: bool) -> None:
        stream = responses_stream([reasoning_item(0, THOUGHT), message_item(1, TEXT)], n="numbers")
        data = with_numbers(b"".join(stream if whole else stream[:-1]))
        out = Pipeline(RESPONSES).stream(data)
        ending = out.split(b"data: ")[-1]
        assert (b"response.completed" if whole else b"response.failed") in ending
        assert NUMBERS in ending

    def test_an_item_that_is_closed_for_upstream_keeps_them(self) -> None:
        item = {**message_item(0, TEXT), "n": "numbers"}
        stream = [each for each in responses_stream([item]) if b"output_item.done" not in each]
        events = [json.loads(each.split(b"data: ")[1]) for each in stream]
        out = Pipeline(RESPONSES).stream(with_numbers(b"".join(numbered(*events))))
        done = out.split(b"event: response.output_item.done")[1]
        assert NUMBERS in done.split(b"\n\n")[0]

    def test_a_body_keeps_them(self) -> None:
        body = response([reasoning_item(0, THOUGHT), message_item(1, TEXT)], n="numbers")
        assert NUMBERS in Pipeline(RESPONSES).whole(with_numbers(json.dumps(body).encode()))


class TestNumbersInMessages:
    @pytest.mark.parametrize("more", [{}, {"signature": "c2ln"}], ids=["text", "text and state"])
    @pytest.mark.parametrize("expose", ["auto", "both", "raw"])
    def test_a_delta_that_is_rewritten_keeps_them(self, expose: str, more: dict[str, str]) -> None:
        delta = scripts.delta(0, "thinking", thinking=THOUGHT, **more, n="numbers")
        begun = [scripts.begin(), scripts.start(0, scripts.thinking("", ""))]
        data = with_numbers(b"".join([*begun, delta, scripts.stop(0), *scripts.finish_at_once()]))
        assert Pipeline(MESSAGES, expose=expose).stream(data).count(NUMBERS) == 1  # type: ignore[arg-type]

    def test_a_delta_of_a_block_that_was_not_started_keeps_them(self) -> None:
        delta = scripts.delta(0, "text", text=TEXT, n="numbers")
        data = with_numbers(b"".join([scripts.begin(), delta, *scripts.finish_at_once()]))
        out = Pipeline(MESSAGES).stream(data)
        assert out.count(NUMBERS) == 1
        assert check_messages(out).text == TEXT

    def test_a_body_keeps_them(self) -> None:
        body = scripts.message([scripts.thinking(THOUGHT), scripts.text(TEXT)], n="numbers")
        assert NUMBERS in Pipeline(MESSAGES).whole(with_numbers(json.dumps(body).encode()))


@all_clients
@pytest.mark.parametrize("stream", [True, False])
def test_arguments_that_messages_gives_as_an_object_keep_their_numbers(
    client: Api, *, stream: bool
) -> None:
    block = scripts.tool_use(0, "f", n="numbers")
    pipeline = pipeline_of("messages", client)
    if stream:
        frames = [scripts.begin(), scripts.start(0, block), scripts.stop(0)]
        out = pipeline.stream(
            with_numbers(b"".join([*frames, *scripts.finish_at_once("tool_use")]))
        )
        assert arguments_of(client, out) == [f'{{"n":{NUMBERS.decode()}}}']
    else:
        body = json.dumps(scripts.message([block])).encode()
        assert NUMBERS in pipeline.whole(with_numbers(body))


class Noting(Pipeline):
    """A pipeline that keeps its events."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)
        super().emit(event)

    def check_failed_once(self) -> None:
        errors = [event for event in self.events if isinstance(event, ErrorReported)]
        told = "Upstream reported an error." if self.display.hides_raw else "Overloaded"
        assert [error.error.message for error in errors] == [told]
        assert isinstance(self.events[-1], ResponseEnded)
        assert not self.events[-1].ok


OVERLOADED = {"message": "Overloaded", "code": 529}


@all_clients
class TestErrors:
    @pytest.mark.parametrize("expose", EXPOSURES)
    @pytest.mark.parametrize("text", ["", "So."])
    def test_a_choice_that_finishes_with_an_error_fails(
        self, client: Api, expose: str, text: str
    ) -> None:
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": "error"}
        ending = {**json.loads(chunk()[6:]), "choices": [{**choice, "error": OVERLOADED}]}
        pipeline = Noting(client, upstream=None if client is CHAT else "chat", expose=expose)  # type: ignore[arg-type]
        stream = [*chat_stream(THOUGHT, "Hm. ")[:-3], frame(ending), frame(ending), DONE]
        out = pipeline.stream(b"".join(stream))
        pipeline.check_failed_once()
        assert (b"Overloaded" in out) != pipeline.display.hides_raw

    @pytest.mark.parametrize("upstream", UPSTREAMS)
    def test_a_second_error_is_not_reported(self, client: Api, upstream: str) -> None:
        error: dict[str, Any] = {"error": OVERLOADED}
        again: dict[str, Any] = {"error": {"message": "Again"}}
        if upstream != "chat":
            error, again = {"type": "error", **error}, {"type": "error", **again}
        pipeline = Noting(client, upstream=None if client.name == upstream else upstream)
        begun = streamed(upstream)[:2]
        stream = [*begun, *(frame(each, each.get("type")) for each in (error, again))]
        out = pipeline.stream(b"".join(stream))
        pipeline.check_failed_once()
        assert error_of(client, out) is not None
        if client.name != upstream:
            assert b"Again" not in out
            assert out.count(b"Overloaded") == 1


FIGURES = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


@pytest.mark.parametrize("client", [CHAT, RESPONSES], ids=lambda api: api.name)
class TestEarlyUsage:
    """Usage that comes before the last choice has finished."""

    def run(self, client: Api, *frames: bytes) -> tuple[Noting, bytes]:
        pipeline = Noting(client, upstream=None if client is CHAT else "chat")
        return pipeline, pipeline.stream(b"".join([chunk({"role": "assistant"}), *frames]))

    @pytest.mark.parametrize(
        "usage",
        [chunk(usage=FIGURES), chunk({"content": "S"}, usage=FIGURES)],
        ids=["alone", "beside"],
    )
    def test_it_reaches_the_record(self, client: Api, usage: bytes) -> None:
        ending = chunk({}, finish="stop"), DONE
        pipeline, out = self.run(client, usage, chunk({"content": "So."}), *ending)
        assert pipeline.end.usage is not None
        assert pipeline.end.usage.total == 3
        if client is CHAT:
            assert out.count(b'"total_tokens": 3') == 1
        else:
            assert check_responses(out).response["usage"]["total_tokens"] == 3

    @pytest.mark.parametrize(
        "ending",
        [(), (chunk({"content": "So."}),), (frame({"error": OVERLOADED}), DONE)],
        ids=["at once", "later", "with an error"],
    )
    def test_a_stream_that_breaks_off_after_it_has_it(
        self, client: Api, ending: tuple[bytes, ...]
    ) -> None:
        pipeline, out = self.run(client, chunk(usage=FIGURES), *ending)
        assert (pipeline.end.ok, pipeline.end.usage is not None) == (False, True)
        assert b'"total_tokens"' in out
        assert error_of(client, out) is not None

    def test_the_last_figures_count(self, client: Api) -> None:
        later = {**FIGURES, "total_tokens": 9}
        frames = chunk(usage=FIGURES), chunk({"content": "So."}), chunk(usage=later)
        pipeline, out = self.run(client, *frames, chunk({}, finish="stop"), DONE)
        assert pipeline.end.usage is not None
        assert pipeline.end.usage.total == 9
        if client is CHAT:
            assert out.index(b'"total_tokens": 3') < out.index(b'"total_tokens": 9')
        else:
            assert check_responses(out).response["usage"]["total_tokens"] == 9
