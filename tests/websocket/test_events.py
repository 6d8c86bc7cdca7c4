"""The events of a WebSocket, and one request's answer, as pure as they are."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.apis.json import dumps
from abridge.client_shares import ClientShares
from abridge.errors import RequestError
from abridge.websocket.call import Call, http_scope
from abridge.websocket.conversations import (
    Conversation,
    Conversations,
    with_input,
    with_output,
    write_body,
)
from abridge.websocket.events import (
    Create,
    error_event,
    http_error_event,
    read_message,
    with_stream_id,
)
from abridge.work import LIGHT_BYTES, Work
from tests.support.asgi import scope_for
from tests.support.streams import (
    THOUGHT,
    call_item,
    frame,
    message_item,
    reasoning_item,
    responses_stream,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
START = {"type": "http.response.start", "status": 200}
EVENT_STREAM = [(b"content-type", b"text/event-stream; charset=utf-8")]
FRAMES = responses_stream([reasoning_item(0, THOUGHT), message_item(1, "Hello.")])
EVENTS = [json.loads(data.split(b"data: ", 1)[1]) for data in FRAMES]


def create(**fields: Any) -> bytes:
    return json.dumps({"type": "response.create", "model": "m", **fields}).encode()


class TestMessages:
    @given(st.dictionaries(st.text(), JSON))
    def test_fields_of_a_request_stay_as_they_are(self, fields: dict[str, Any]) -> None:
        own = {"type", "stream_id", "generate", "stream", "stream_options", "background"}
        fields = {key: value for key, value in fields.items() if key not in own}
        read = read_message(create(**fields))
        assert isinstance(read, Create)
        told = json.loads(dumps(read.fields))  # a number too large for a float keeps its digits
        assert told == {"model": "m", **fields, "stream": True}

    @given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
    def test_anything_else_is_an_error_that_can_be_told(self, data: bytes) -> None:
        with pytest.raises(RequestError) as refused:
            read_message(data)
        told = json.loads(error_event(refused.value))
        assert told["error"]["message"] == str(refused.value)

    @pytest.mark.parametrize("stream_id", ["", "a b", "ä", "x" * 257, 7, ["a"], 'a"b'])
    def test_a_stream_is_named_in_letters_that_need_no_escape(self, stream_id: Any) -> None:
        with pytest.raises(RequestError, match="stream_id"):
            read_message(create(stream_id=stream_id))

    @given(st.dictionaries(st.text(), JSON))
    def test_an_event_is_marked_with_its_stream(self, event: dict[str, Any]) -> None:
        event.pop("stream_id", None)
        data = json.dumps(event).encode()
        assert json.loads(with_stream_id(data, None)) == event
        assert json.loads(with_stream_id(data + b" \n", "a")) == {**event, "stream_id": "a"}


class TestErrors:
    @given(st.integers(400, 599), st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
    def test_any_body_makes_an_event(self, status: int, body: bytes) -> None:
        event = json.loads(http_error_event(status, (), body))
        assert event["status"] == status
        assert event["error"].keys() == {"message", "type", "param", "code"}

    def test_a_response_that_is_not_found_has_the_code_that_clients_know(self) -> None:
        error = {"message": "Unknown.", "param": "previous_response_id", "code": "unsupported"}
        event = json.loads(http_error_event(404, (), json.dumps({"error": error}).encode()))
        assert event["error"]["code"] == "previous_response_not_found"

    def test_headers_of_rate_limits_are_told_and_no_others(self) -> None:
        headers = [
            (b"X-RateLimit-Remaining-Tokens", b"0"),
            (b"retry-after", b"1"),
            (b"set-cookie", b"secret"),
            (b"server", b"x"),
        ]
        event = json.loads(http_error_event(429, headers, b""))
        assert event["headers"] == {"x-ratelimit-remaining-tokens": "0", "retry-after": "1"}


class Client:
    """Takes the events of one call."""

    def __init__(self, limit: int = 1 << 20) -> None:
        self.events: list[dict[str, Any]] = []
        self.remembered: list[dict[str, Any]] = []
        self.before: list[int] = []  # how many events had been sent when it was remembered
        self.call = Call(b"{}", limit, self.send, self.remember)

    async def send(self, event: bytes) -> None:
        self.events.append(json.loads(event))

    async def remember(self, response: dict[str, Any], work: Work) -> None:
        self.is_heavy = work.is_heavy
        self.remembered.append(response)
        self.before.append(len(self.events))

    async def take(self, *pieces: bytes, headers: Any = EVENT_STREAM, status: int = 200) -> None:
        try:
            await self.call.send({**START, "status": status, "headers": headers})
            for piece in pieces:
                message = {"type": "http.response.body", "body": piece, "more_body": True}
                await self.call.send(message)
            await self.call.send({"type": "http.response.body"})
            await self.call.finish()
        finally:
            self.call.close()


class TestAnswers:
    @given(st.lists(st.integers(0, sum(map(len, FRAMES))), max_size=20))
    async def test_events_are_the_same_however_the_stream_is_split(self, cuts: list[int]) -> None:
        data, client = b"".join(FRAMES), Client()
        ends = [0, *sorted(cuts), len(data)]
        await client.take(*(data[a:b] for a, b in pairwise(ends)))
        assert client.events == EVENTS
        assert [response["output"] for response in client.remembered] == [
            EVENTS[-1]["response"]["output"]
        ]
        assert client.before == [len(EVENTS) - 1]  # who has the response may continue it

    @pytest.mark.parametrize("whole", [False, True])
    @pytest.mark.parametrize("size", [1, LIGHT_BYTES + 1])
    async def test_a_large_response_is_remembered_with_heavy_work(
        self, size: int, *, whole: bool
    ) -> None:
        client = Client()
        response = {"status": "completed", "output": [{"text": "a" * size}]}
        event: dict[str, Any] = {
            "type": "response.completed",
            "sequence_number": 0,
            "response": response,
        }
        if whole:
            await client.take(
                json.dumps(response).encode(), headers=[(b"content-type", b"application/json")]
            )
        else:
            await client.take(frame(event, event["type"]))
        assert client.events == [event]
        assert client.is_heavy is (size > LIGHT_BYTES)

    async def test_events_need_no_names_and_comments_are_not_sent(self) -> None:
        client = Client()
        unnamed = [frame(event) for event in EVENTS]
        await client.take(b": hello\n\n", *unnamed, b"data: [DONE]\n\n")
        assert client.events == EVENTS
        assert client.remembered

    async def test_an_output_that_is_left_out_at_the_end_is_that_of_its_items(self) -> None:
        bare = {**EVENTS[-1], "response": {**EVENTS[-1]["response"], "output": []}}
        client = Client()
        await client.take(*FRAMES[:-1], frame(bare, bare["type"]))
        assert client.remembered[0]["output"] == EVENTS[-1]["response"]["output"]

    @pytest.mark.parametrize("kept", [0, 5, len(FRAMES) - 1])
    async def test_a_stream_without_an_end_gets_one(self, kept: int) -> None:
        client = Client()
        await client.take(*FRAMES[:kept])
        assert client.events[:kept] == EVENTS[:kept]
        assert client.events[kept]["error"]["code"] == "upstream_broken"
        assert not client.remembered

    async def test_an_error_of_the_stream_is_told_in_both_forms(self) -> None:
        error = {"type": "error", "code": "bad", "message": "No.", "param": None}
        client = Client()
        await client.take(*FRAMES[:2], frame({**error, "sequence_number": 2}, "error"))
        told = client.events[-1]
        assert told.items() >= error.items()
        assert (told["error"]["code"], told["error"]["message"]) == ("bad", "No.")
        assert len(client.events) == 3

    async def test_a_whole_response_is_one_event(self) -> None:
        response = EVENTS[-1]["response"]
        client = Client()
        json_body = [(b"content-type", b"application/json")]
        await client.take(json.dumps(response).encode(), headers=json_body)
        assert client.events == [
            {"type": "response.completed", "sequence_number": 0, "response": response}
        ]
        assert client.remembered == [response]

    async def test_after_the_client_left_nothing_is_taken(self) -> None:
        client = Client()
        assert (await client.call.receive())["body"] == b"{}"
        client.call.leave()
        assert await client.call.receive() == {"type": "http.disconnect"}
        with pytest.raises(OSError, match="left"):
            await client.take(*FRAMES)


def test_a_request_has_the_headers_of_the_upgrade_but_those_that_are_its_own() -> None:
    headers = [
        (b"Host", b"here"),
        (b"Authorization", b"Bearer k"),
        (b"Upgrade", b"websocket"),
        (b"Accept-Encoding", b"gzip"),
        (b"sec-websocket-key", b"x"),
        (b"OpenAI-Beta", b"responses_websockets=2026-02-06"),
    ]
    scope = {**scope_for("/v1/responses"), "type": "websocket", "scheme": "wss", "headers": headers}
    request = http_scope(scope, 12)
    assert (request["type"], request["method"], request["scheme"]) == ("http", "POST", "https")
    assert dict(request["headers"]) == {
        b"host": b"here",
        b"authorization": b"Bearer k",
        b"accept": b"text/event-stream",
        b"content-type": b"application/json",
        b"content-length": b"12",
    }


class TestTurns:
    def conversation(self, *items: bytes) -> Conversation:
        return Conversation(items)

    def test_a_turn_that_continues_another_is_sent_whole(self) -> None:
        first = read_message(create(input="Hi", previous_response_id="resp_stored"))
        assert isinstance(first, Create)
        conversation = with_input(first, None)
        assert json.loads(write_body(first, conversation, continued=False)) == first.fields
        ended = with_output(conversation, [message_item(0, "Hello.")])
        second = read_message(create(input=[{"role": "user", "content": "More"}]))
        assert isinstance(second, Create)
        body = json.loads(write_body(second, with_input(second, ended), continued=True))
        assert body["previous_response_id"] == "resp_stored"
        assert body["input"] == [
            {"role": "user", "content": "Hi"},
            message_item(0, "Hello."),
            {"role": "user", "content": "More"},
        ]

    def test_reasoning_that_only_upstream_has_is_left_out_with_the_ids_after_it(self) -> None:
        call = call_item(1, "add", "{}")
        bare = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": None}
        ended = with_output(Conversation(), [bare, call])
        assert [json.loads(item) for item in ended.items] == [
            {key: value for key, value in call.items() if key != "id"}
        ]

    @pytest.mark.parametrize(
        "item", [reasoning_item(0, THOUGHT), reasoning_item(0, "", encrypted_content="x")]
    )
    def test_reasoning_that_upstream_can_read_stays(self, item: dict[str, Any]) -> None:
        ended = with_output(Conversation(), [item])
        assert [json.loads(kept) for kept in ended.items] == [item]

    def test_memory_is_shared_and_given_back(self) -> None:
        shares = ClientShares(100, 100)
        first, second = Conversations(shares, "a", 60), Conversations(shares, "b", 60)
        first.remember(None, "resp_1", self.conversation(b"x" * 60))
        second.remember(None, "resp_2", self.conversation(b"x" * 60))
        assert first.find("resp_1") is not None
        assert second.find("resp_2") is None
        first.remember(None, "resp_3", self.conversation(b"x" * 61))  # too large to be sent again
        assert first.find("resp_3") is None
        assert first.find("resp_1") is None
        second.remember(None, "resp_4", self.conversation(b"x" * 60))
        second.close()
        assert shares.take("a", 100)

    def test_no_id_finds_nothing(self) -> None:
        turns = Conversations(ClientShares(100, 100), "a", 60)
        turns.remember(None, "", self.conversation(b"x"))
        assert turns.find("") is None
