"""Forms of answers and failures of their summaries, for each pair of APIs."""

from __future__ import annotations

import gzip

import pytest

from abridge.apis.registry import APIS
from tests.end_to_end.translation.google import PNG
from tests.end_to_end.translation.images import images_of
from tests.end_to_end.translation.test_translation import bridge
from tests.end_to_end.translation.turn import (
    ALL_BRIDGES,
    PATHS,
    WORDS,
    answer,
    read_answer,
    request_body,
)
from tests.support.answers import read_said
from tests.support.asgi import Call, call
from tests.support.streams import (
    DONE,
    THOUGHT,
    chunk,
    completion,
    message_item,
    response,
    responses_stream,
)
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

API = {api.name: api for api in APIS}
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
EACH = pytest.mark.parametrize(("client", "upstream"), ALL_BRIDGES)


async def ask(client: str, upstream: str, played: Answer, *, stream: bool, **how: str) -> Call:
    failing = Scripted("", error=ValueError("no")) if how else Scripted()
    app = bridge(Upstream(played), upstream, writer=failing, summary=how)
    return await call(app, PATHS[client], request_body(client, stream=stream))


@BOTH
@EACH
async def test_an_answer_that_is_said_not_to_be_encoded_is_read(
    client: str, upstream: str, *, stream: bool
) -> None:
    plain = answer(upstream, stream=stream)
    said = Answer(plain.steps, headers={**plain.headers, "content-encoding": "identity"})
    reply = await ask(client, upstream, said, stream=stream)
    assert read_answer(client, reply, stream=stream).text == WORDS


@BOTH
@EACH
async def test_an_encoded_answer_is_decoded(client: str, upstream: str, *, stream: bool) -> None:
    plain = answer(upstream, stream=stream)
    data = gzip.compress(b"".join(step for step in plain.steps if isinstance(step, bytes)))
    headers = {**plain.headers, "content-encoding": "gzip"}
    packed = Answer([data[:40], data[40:]], headers=headers)
    reply = await ask(client, upstream, packed, stream=stream)
    assert read_answer(client, reply, stream=stream).text == WORDS
    assert "content-encoding" not in reply.headers


@BOTH
@EACH
async def test_the_answer_streams_if_upstreams_does(
    client: str, upstream: str, *, stream: bool
) -> None:
    """Whatever the client requested."""
    reply = await ask(client, upstream, answer(upstream, stream=not stream), stream=stream)
    assert read_answer(client, reply, stream=not stream).text == WORDS


@BOTH
async def test_an_image_of_chat_completions_reaches_a_client_of_responses(*, stream: bool) -> None:
    url = f"data:image/png;base64,{PNG}"
    said = {"content": WORDS, "images": [{"type": "image_url", "image_url": {"url": url}}]}
    streamed = [chunk(said), chunk({}, finish="stop"), DONE]
    played = Answer(streamed) if stream else Answer.json(completion(said))
    reply = await ask("responses", "chat", played, stream=stream)
    assert read_answer("responses", reply, stream=stream).text == WORDS
    assert images_of("responses", reply, stream=stream) == [url]


@BOTH
async def test_an_image_of_responses_reaches_a_client_or_fails_the_answer(*, stream: bool) -> None:
    image = {"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": PNG}
    for output in ([image], [message_item(0, WORDS), image]):
        played = Answer(responses_stream(output)) if stream else Answer.json(response(output))
        reply = await ask("chat", "responses", played, stream=stream)
        assert images_of("chat", reply, stream=stream) == [f"data:image/png;base64,{PNG}"]
        assert b"hosted_calls" not in reply.data
        reply = await ask("messages", "responses", played, stream=stream)
        assert b"an image, which this API cannot represent" in reply.data
    unmade = {**image, "status": "failed", "result": None}
    played = Answer(responses_stream([unmade])) if stream else Answer.json(response([unmade]))
    assert b"hosted_calls" in (await ask("chat", "responses", played, stream=stream)).data


@BOTH
@EACH
async def test_an_extract_replaces_a_failed_summary(
    client: str, upstream: str, *, stream: bool
) -> None:
    played = answer(upstream, stream=stream)
    reply = await ask(client, upstream, played, stream=stream, on_failure="extract")
    received = read_answer(client, reply, stream=stream)
    assert received.text == WORDS
    title, _, body = received.summary.partition("\n\n")
    assert title.startswith("**")
    assert body
    assert set(body.split()) <= set(THOUGHT.split())


@EACH
async def test_the_failure_ends_the_stream_after_the_answer(client: str, upstream: str) -> None:
    played = answer(upstream, stream=True)
    reply = await ask(client, upstream, played, stream=True, on_failure="fail")
    said = read_said(API[client], reply.data)
    assert said.text == WORDS
    assert said.failure is not None


@EACH
async def test_a_failed_summary_of_a_whole_answer_is_a_bad_gateway_with_the_answer(
    client: str, upstream: str
) -> None:
    played = answer(upstream, stream=False)
    reply = await ask(client, upstream, played, stream=False, on_failure="fail")
    assert reply.status == 502
    whole = reply.json["error"]["response"]
    assert WORDS in str(whole)
    assert max(whole["usage"].get(name, 0) for name in ("output_tokens", "completion_tokens")) >= 70
