"""The service tier of a translated answer is upstream's own, or says that none is known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response

from abridge.apis.chat.api import CHAT
from abridge.apis.protocols import RequestEcho
from abridge.apis.registry import APIS
from abridge.apis.responses.api import RESPONSES
from tests.apis.gemini import scripts as gemini
from tests.apis.messages import scripts as messages
from tests.support.checker import check_responses
from tests.support.messages_checker import check_messages
from tests.support.pipeline import translating
from tests.support.streams import (
    CHAT_USAGE,
    DONE,
    chunk,
    completion,
    frame,
    message_item,
    response,
    responses_stream,
)

Json = dict[str, Any]

CLIENTS = {api.name: api for api in APIS}

NONE_KNOWN = {"chat": None, "responses": "auto", "messages": None}
"""What each API's clients read where upstream names no tier."""


def whole_answer(api: str, **tier: Any) -> Json:
    """Return an answer of an upstream that names its tier."""
    match api:
        case "chat":
            return completion({"role": "assistant", "content": "So."}, **tier)
        case "responses":
            return response([message_item(0, "So.")], **tier)
        case "messages":
            return messages.message([messages.text("So.")], usage={**messages.USAGE, **tier})
    return gemini.whole([gemini.text("So.")]) | {"usageMetadata": {**gemini.USAGE, **tier}}


def streamed_answer(api: str, **tier: Any) -> bytes:
    match api:
        case "chat":
            return chat_stream(tier, tier, tier)
        case "responses":
            started, *frames = responses_stream([message_item(0, "So.")])
            *_, ended = responses_stream([message_item(0, "So.")], **tier)
            return b"".join([started, *frames[:-1], ended])
        case "messages":
            begun = messages.event("message_start", message=whole_answer(api, **tier))
            *_, last, stop = messages.stream([messages.text("So.")])
            return b"".join([begun, last, stop])
    return frame(whole_answer(api, **tier))


def chat_stream(first: Json, second: Json, last: Json) -> bytes:
    return b"".join(
        [
            chunk({"role": "assistant", "content": "S"}, **first),
            chunk({"content": "o."}, **second),
            chunk({}, finish="stop"),
            chunk(None, usage=CHAT_USAGE, **last),
            DONE,
        ]
    )


def events(client: str, upstream: str, stream: bytes, **settings: Any) -> list[Json]:
    """Return what a client reads of a stream."""
    asked = {"stream_options": {"include_usage": True}, "service_tier": "scale"}
    written = translating(
        upstream, CLIENTS[client], echo=RequestEcho(asked, {}), **settings
    ).stream(stream)
    if client == "responses":
        check_responses(written)
    elif client == "messages":
        check_messages(written)
    datas = (line[6:] for line in written.decode().splitlines() if line.startswith("data: {"))
    return list(map(json.loads, datas))


def tiers(read: list[Json]) -> Iterator[str | None]:
    """Yield the tier of each event that has a place for it."""
    for event in read:
        message = event.get("message", {})
        for holder in (event.get("response"), event.get("usage"), message.get("usage"), event):
            if holder and "service_tier" in holder:
                yield holder["service_tier"]
                break
        else:
            yield None


def last_tier(client: str, upstream: str, stream: bytes, **settings: Any) -> str | None:
    read = events(client, upstream, stream, **settings)
    place = {"chat": -1, "responses": -1, "messages": -2}[client]  # before `message_stop`
    return list(tiers(read))[place]


def whole_tier(client: str, upstream: str, answer: Json, **settings: Any) -> str | None:
    pipeline = translating(upstream, CLIENTS[client], echo=RequestEcho({}, {}), **settings)
    body = json.loads(pipeline.whole(json.dumps(answer).encode()))
    tier: str | None = (body["usage"] if client == "messages" else body).get("service_tier")
    return tier


CARRIED = [
    ("responses", "chat", {"service_tier": "flex"}, "flex"),
    ("responses", "chat", {"service_tier": "on_demand"}, "default"),  # Groq's
    ("responses", "messages", {"service_tier": "standard"}, "default"),
    ("responses", "messages", {"service_tier": "priority"}, "priority"),
    ("responses", "gemini", {"serviceTier": "flex"}, "flex"),
    ("chat", "responses", {"service_tier": "priority"}, "priority"),
    ("chat", "messages", {"service_tier": "standard"}, "default"),
    ("chat", "gemini", {"serviceTier": "STANDARD"}, "default"),
    ("messages", "chat", {"service_tier": "default"}, "standard"),
    ("messages", "responses", {"service_tier": "priority"}, "priority"),
    ("messages", "gemini", {"serviceTier": "priority"}, "priority"),
]


@pytest.mark.parametrize("expose", ["auto", "none"])
@pytest.mark.parametrize(("client", "upstream", "said", "read"), CARRIED)
def test_upstreams_own_is_carried(
    client: str, upstream: str, said: Json, read: str, expose: str
) -> None:
    stream = streamed_answer(upstream, **said)
    assert last_tier(client, upstream, stream, expose=expose) == read
    assert whole_tier(client, upstream, whole_answer(upstream, **said), expose=expose) == read


@pytest.mark.parametrize(
    ("client", "upstream", "said"),
    [
        *((client, "chat", {}) for client in ("responses", "messages")),
        *((client, "responses", {"service_tier": None}) for client in ("chat", "messages")),
        *((client, "messages", {"service_tier": "batch"}) for client in ("chat", "responses")),
        *((client, "gemini", {"serviceTier": "unspecified"}) for client in CLIENTS),
        ("messages", "chat", {"service_tier": "flex"}),  # which is none of Anthropic's
        ("responses", "chat", {"service_tier": 7}),
        ("responses", "chat", {"service_tier": "warp"}),  # which clients do not know
        ("chat", "responses", {"service_tier": "auto"}),  # which names none
    ],
)
def test_none_is_made_up(client: str, upstream: str, said: Json) -> None:
    stream, none = streamed_answer(upstream, **said), NONE_KNOWN[client]
    assert last_tier(client, upstream, stream) == none
    assert whole_tier(client, upstream, whole_answer(upstream, **said)) == none


TIER: Json = {"service_tier": "priority"}


@pytest.mark.parametrize("client", ["responses", "messages"])
@pytest.mark.parametrize("place", range(3))
def test_a_chunk_may_name_it_at_any_time(client: str, place: int) -> None:
    first, second, last = [TIER if number == place else {} for number in range(3)]
    assert last_tier(client, "chat", chat_stream(first, second, last)) == "priority"


def test_a_later_one_outranks_an_earlier_one() -> None:
    stream = chat_stream({"service_tier": "auto"}, {"service_tier": "flex"}, TIER)
    assert last_tier("responses", "chat", stream) == "priority"


def test_what_is_known_at_the_start_is_told_at_the_start() -> None:
    begun = next(tiers(events("responses", "chat", chat_stream(TIER, TIER, TIER))))
    assert begun == "priority"
    begun = next(tiers(events("messages", "chat", chat_stream(TIER, TIER, TIER))))
    assert begun == "priority"
    chunks = events("chat", "messages", streamed_answer("messages", **TIER))
    assert set(tiers(chunks)) == {"priority"}
    begun = next(tiers(events("messages", "chat", chat_stream({}, {}, TIER))))
    assert begun is None


def test_openais_own_client_reads_either() -> None:
    for said in ({}, TIER):
        answer = json.dumps(whole_answer("chat", **said)).encode()
        read = Response.model_validate_json(translating("chat", RESPONSES).whole(answer))
        assert read.service_tier == said.get("service_tier", "auto")
        answer = json.dumps(whole_answer("responses", **said)).encode()
        completed = ChatCompletion.model_validate_json(translating("responses", CHAT).whole(answer))
        assert completed.service_tier == said.get("service_tier")
        for sent in events("chat", "responses", streamed_answer("responses", **said)):
            assert ChatCompletionChunk.model_validate(sent).service_tier in (None, "priority")
