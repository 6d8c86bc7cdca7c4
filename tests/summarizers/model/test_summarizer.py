"""Test an OpenAI-compatible model as a summarizer."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from abridge.apis.chat.api import CHAT
from abridge.config.tables import SummarizerSettings
from abridge.core.plan import Passage
from abridge.core.usage import SummarizerUsage, Tokens
from abridge.errors import SummarizerError
from abridge.summarizers.guard import Guard
from abridge.summarizers.model.answer import MAX_BYTES
from abridge.summarizers.model.summarizer import ModelSummarizer
from tests.apis.messages import scripts as messages
from tests.support.streams import (
    CHAT_USAGE,
    DONE,
    chat_stream,
    chunk,
    completion,
    frame,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)

BASE = "http://small.example/v1"
TEXT = "**Adding up**\n\nI add the numbers."
TOKENS = Tokens(11, 70, 81, 50, 0, 0)


class Stream(httpx.AsyncByteStream):
    """A body in pieces; an exception among them is raised in its place."""

    def __init__(self, *pieces: bytes | Exception) -> None:
        self.pieces = pieces
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def aclose(self) -> None:
        self.closed = True


class Upstream(httpx.AsyncBaseTransport):
    """A transport that answers every request alike and records the last."""

    def __init__(
        self, stream: Stream, *, status: int = 200, kind: str = "text/event-stream"
    ) -> None:
        self.stream, self.status, self.kind = stream, status, kind
        self.request: httpx.Request | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.request = request
        headers = {"content-type": self.kind, "set-cookie": "a=b", "location": "http://x.example"}
        return httpx.Response(self.status, headers=headers, stream=self.stream)

    @property
    def body(self) -> dict[str, Any]:
        assert self.request is not None
        body: dict[str, Any] = json.loads(self.request.content)
        return body


Transport = httpx.AsyncBaseTransport


def summarizer_for(upstream: Transport, key: str | None = None, **more: Any) -> ModelSummarizer:
    settings = SummarizerSettings(kind="model", base_url=BASE, model="small-1", **more)
    return ModelSummarizer.from_settings(settings, upstream, key)


async def summarize_once(upstream: Transport, **more: Any) -> tuple[str, SummarizerUsage]:
    *texts, spent = [
        piece async for piece in summarizer_for(upstream, **more).summarize(Passage("why"))
    ]
    assert isinstance(spent, SummarizerUsage)
    assert all(isinstance(text, str) and text for text in texts)
    return "".join(map(str, texts)), spent


async def failure(upstream: Transport, **more: Any) -> tuple[str, SummarizerError]:
    """Return the text before the failure, and the failure."""
    text = ""
    try:
        async for piece in summarizer_for(upstream, **more).summarize(
            Passage("why", before="secret")
        ):
            text += str(piece)
    except SummarizerError as error:
        return text, error
    pytest.fail(f"It did not fail, but said {text!r}.")


async def shown(upstream: Transport, **more: Any) -> tuple[str, str]:
    """Return what a client is shown of a part, and the code of its failure."""
    guard, text = Guard(SummarizerSettings()), ""
    try:
        async for piece in guard.summarize(summarizer_for(upstream, **more), Passage("why")):
            text += piece if isinstance(piece, str) else ""
    except SummarizerError as error:
        return text, error.code
    return text, ""


STREAMS: dict[str, Callable[[str], list[bytes]]] = {
    "chat": lambda text: chat_stream("", text),
    "responses": lambda text: responses_stream([message_item(0, text)]),
}


@pytest.mark.parametrize("kind", ["text/plain", "application/json", ""])
async def test_a_stream_of_another_type_is_read_as_it_comes(kind: str) -> None:
    pieces = [piece for frame in chat_stream("", "Why not.") for piece in (frame[:3], frame[3:])]
    text, spent = await summarize_once(Upstream(Stream(*pieces), kind=kind))
    assert text == "Why not."
    assert spent.tokens is not None


async def test_a_stream_that_comes_at_once_may_be_longer_than_one_event() -> None:
    comments = b": wait\n\n" * (MAX_BYTES // 8 + 1)
    text, _ = await summarize_once(Upstream(Stream(comments + b"".join(chat_stream("", "So.")))))
    assert text == "So."


# The request


async def test_a_request_on_chat_completions() -> None:
    upstream = Upstream(Stream(*chat_stream("", TEXT)))
    await summarize_once(upstream, key="sk-1")
    assert upstream.request is not None
    assert str(upstream.request.url) == f"{BASE}/chat/completions"
    headers = upstream.request.headers
    assert headers["authorization"] == "Bearer sk-1"
    assert headers["content-type"] == "application/json"
    assert headers["x-abridge-call"] == "summary"
    assert set(headers) == {
        *("host", "authorization", "content-type", "content-length"),
        *("accept", "accept-encoding", "x-abridge-call"),
    }
    body = upstream.body
    system, user = body.pop("messages")
    assert (system["role"], user["role"]) == ("system", "user")
    assert "why" in user["content"]
    assert body == {
        "model": "small-1",
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.3,
        "max_tokens": 300,
    }


async def test_a_request_on_responses() -> None:
    upstream = Upstream(Stream(*responses_stream([message_item(0, TEXT)])))
    await summarize_once(upstream, api="responses")
    assert upstream.request is not None
    assert str(upstream.request.url) == f"{BASE}/responses"
    body = upstream.body
    system, user = body.pop("input")
    assert (system["role"], user["role"]) == ("system", "user")
    assert "why" in user["content"]
    assert body == {
        "model": "small-1",
        "stream": True,
        "store": False,
        "temperature": 0.3,
        "max_output_tokens": 300,
    }


async def test_a_request_on_messages() -> None:
    upstream = Upstream(Stream(*messages.stream([messages.text(TEXT)])))
    text, spent = await summarize_once(upstream, key="sk-1", api="messages", temperature=None)
    assert (text, spent.tokens is not None) == (TEXT, True)
    assert upstream.request is not None
    assert str(upstream.request.url) == f"{BASE}/messages"
    headers = upstream.request.headers
    assert (headers["x-api-key"], headers["anthropic-version"]) == ("sk-1", "2023-06-01")
    assert "authorization" not in headers
    body = upstream.body
    (user,) = body.pop("messages")
    assert "why" in user["content"][0]["text"]
    assert body.pop("system")
    thinking = {"type": "disabled"}
    assert body == {"model": "small-1", "stream": True, "max_tokens": 300, "thinking": thinking}


async def test_usage_that_was_reported_before_the_connection_broke_is_billed() -> None:
    *frames, _ = messages.stream([messages.text(TEXT)])
    upstream = Upstream(Stream(*frames, httpx.ReadError("reset")))
    _, error = await failure(upstream, api="messages")
    assert error.spent is not None
    assert error.spent.output == messages.USAGE["output_tokens"]


async def test_without_a_key_there_is_no_credential() -> None:
    upstream = Upstream(Stream(*chat_stream("", TEXT)))
    await summarize_once(upstream)
    assert upstream.request is not None
    assert "authorization" not in upstream.request.headers


async def test_a_temperature_of_none_is_not_sent() -> None:
    upstream = Upstream(Stream(*chat_stream("", TEXT)))
    await summarize_once(upstream, temperature=None)
    assert "temperature" not in upstream.body


async def test_extra_fields_have_the_last_word_and_null_takes_one_out() -> None:
    upstream = Upstream(Stream(*chat_stream("", TEXT)))
    extra = {"top_p": 0.5, "temperature": 0.9, "stream_options": None}
    await summarize_once(upstream, extra_body=extra, profile="qwen")
    body = upstream.body
    assert (body["top_p"], body["temperature"], body["enable_thinking"]) == (0.5, 0.9, False)
    assert "stream_options" not in body


async def test_ogx_trap_each_call_has_a_marker_of_its_own() -> None:
    upstream, markers = Upstream(Stream(*chat_stream("", TEXT))), set()
    for _ in range(3):
        await summarize_once(upstream)
        markers.add(upstream.body["messages"][1]["content"].split()[0])
    assert len(markers) == 3
    assert all(re.fullmatch(r"\[[0-9a-f]{6}", marker) for marker in markers)


@pytest.mark.parametrize(("model", "asked_for"), [("gpt-5-mini", None), ("gpt-4.1-mini", 0.3)])
async def test_fields_the_model_rejects_are_not_sent(model: str, asked_for: float | None) -> None:
    upstream = Upstream(Stream(*chat_stream("", TEXT)))
    settings = SummarizerSettings(kind="model", base_url=BASE, model=model, profile="openai")
    summarizer = ModelSummarizer.from_settings(settings, upstream, None)
    assert [piece async for piece in summarizer.summarize(Passage("why"))]
    assert upstream.body.get("temperature") == asked_for


@pytest.mark.parametrize(
    ("api", "more"),
    [("chat", {"temperature": 0.5, "max_tokens": 9}), ("messages", {"max_tokens": 9})],
)
def test_a_clients_request_is_written_for_the_model_that_gets_it(
    api: str, more: dict[str, Any]
) -> None:
    """It is not stored, whatever the client wants, and a null takes a field out here as well."""
    asked: dict[str, Any] = {
        "model": "thinker-1",
        "messages": [{"role": "user", "content": "why"}],
        "max_completion_tokens": 700,
        "temperature": 0.5,
        "store": True,
        "user": "u_1",
    }
    settings = SummarizerSettings(
        kind="model", base_url=BASE, model="claude-opus-4-8", api=api, extra_body={"user": None}
    )
    summarizer = ModelSummarizer.from_settings(settings, Upstream(Stream()))
    body = summarizer.translate(asked, CHAT, 9)
    known = ("model", "messages", "stream", "stream_options", "metadata")
    assert body["model"] == "claude-opus-4-8"
    assert {key: value for key, value in body.items() if key not in known} == more


async def test_the_key_is_in_no_representation() -> None:
    summarizer = summarizer_for(Upstream(Stream()), key="sk-secret")
    assert "sk-secret" not in repr(summarizer)


# The response


def one_by_one(frames: list[bytes]) -> list[bytes]:
    """Yield the frames a byte at a time."""
    whole = b"".join(frames)
    return [whole[place : place + 1] for place in range(len(whole))]


@pytest.mark.parametrize("split", [list, one_by_one])
async def test_a_chat_stream_is_passed_on_as_it_arrives(
    split: Callable[[list[bytes]], list[bytes]],
) -> None:
    upstream = Upstream(Stream(*split(chat_stream("", TEXT))))
    assert await summarize_once(upstream) == (TEXT, SummarizerUsage(TOKENS, "thinker-1"))
    assert upstream.stream.closed


class PlainStream(Stream):
    """One whose iterator cannot be closed, as a user's transport may have it."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        return Plain(super().__aiter__())


class Plain:
    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces

    def __aiter__(self) -> Plain:
        return self

    def __anext__(self) -> Awaitable[bytes]:
        return self._pieces.__anext__()


async def test_only_the_response_is_closed_where_its_iterator_cannot_be() -> None:
    upstream = Upstream(PlainStream(*chat_stream("", TEXT)))
    assert (await summarize_once(upstream))[0] == TEXT
    assert upstream.stream.closed


async def test_a_responses_stream_is_passed_on_as_it_arrives() -> None:
    upstream = Upstream(Stream(*responses_stream([message_item(0, TEXT)])))
    result = await summarize_once(upstream, api="responses")
    assert result == (TEXT, SummarizerUsage(TOKENS, "thinker-1"))


THINKING = [
    pytest.param("chat", chat_stream("I think.", TEXT), id="reasoning_content"),
    pytest.param("chat", chat_stream("I think.", TEXT, field="reasoning"), id="reasoning"),
    pytest.param("chat", chat_stream("", f"<think>I think.</think>\n\n{TEXT}"), id="inline"),
    pytest.param("chat", chat_stream("", f"<thought>I think.</thought>{TEXT}"), id="Gemini"),
    pytest.param(
        "chat",
        [
            chunk({"content": [{"type": "thinking", "thinking": [{"text": "I think."}]}]}),
            chunk({"content": TEXT}, finish="stop"),
            chunk(usage=CHAT_USAGE),
            DONE,
        ],
        id="Mistral",
    ),
    pytest.param(
        "chat",
        [
            chunk({"reasoning_details": [{"type": "reasoning.text", "text": "I think."}]}),
            chunk({"content": TEXT}, finish="stop"),
            chunk(usage=CHAT_USAGE),
            DONE,
        ],
        id="OpenRouter",
    ),
    pytest.param(
        "responses",
        responses_stream([reasoning_item(0, "I think."), message_item(1, TEXT)]),
        id="reasoning item",
    ),
    pytest.param(
        "responses",
        responses_stream(
            [
                reasoning_item(0, "", summary=[{"type": "summary_text", "text": "I think."}]),
                message_item(1, TEXT),
            ]
        ),
        id="reasoning summary",
    ),
    pytest.param(
        "responses",
        responses_stream([message_item(0, f"<think>I think.</think>{TEXT}")]),
        id="inline on Responses",
    ),
]


@pytest.mark.parametrize(
    ("api", "frames"),
    [
        ("chat", chat_stream("", f"I think.</think>{TEXT}")),
        ("responses", responses_stream([message_item(0, f"I think.</think>{TEXT}")])),
        ("messages", messages.stream([messages.text(f"I think.</think>{TEXT}")])),
    ],
)
async def test_only_the_first_block_of_an_answer_is_one_that_the_prompt_opened(
    api: str, frames: list[bytes]
) -> None:
    text, _ = await summarize_once(Upstream(Stream(*frames)), api=api, profile="prefilled")
    assert text == TEXT


@pytest.mark.parametrize(("api", "frames"), THINKING)
async def test_the_summarizers_own_reasoning_never_shows(api: str, frames: list[bytes]) -> None:
    text, spent = await summarize_once(Upstream(Stream(*frames)), api=api)
    assert text == TEXT
    assert spent.tokens == TOKENS


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_text_that_only_begins_like_a_tag_is_text(api: str) -> None:
    frames = STREAMS[api]("<thin")
    assert (await summarize_once(Upstream(Stream(*frames)), api=api))[0] == "<thin"


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_reasoning_whose_tag_the_template_opened_never_shows(api: str) -> None:
    frames = STREAMS[api](f"I think.</think>\n\n{TEXT}")
    text, _ = await summarize_once(Upstream(Stream(*frames)), api=api, profile="prefilled")
    assert text.strip() == TEXT


WHOLE = [
    pytest.param("chat", completion({"content": TEXT}), id="chat"),
    pytest.param("chat", completion({"content": TEXT, "reasoning": "I think."}), id="reasoning"),
    pytest.param("chat", completion({"content": f"<think>I think.</think>{TEXT}"}), id="inline"),
    pytest.param(
        "responses",
        response([reasoning_item(0, "I think."), message_item(1, TEXT)]),
        id="responses",
    ),
]


@pytest.mark.parametrize(("api", "answer"), WHOLE)
async def test_a_whole_body_instead_of_a_stream_is_read(api: str, answer: dict[str, Any]) -> None:
    data = json.dumps(answer).encode()
    upstream = Upstream(Stream(data[:50], data[50:]), kind="application/json; charset=utf-8")
    assert await summarize_once(upstream, api=api) == (TEXT, SummarizerUsage(TOKENS, "thinker-1"))


STOPPED: dict[str, Callable[[str], list[bytes]]] = {
    "chat": lambda text: chat_stream("", text, finish="length"),
    "responses": lambda text: responses_stream(
        [message_item(0, text)],
        status="incomplete",
        incomplete_details={"reason": "max_output_tokens"},
    ),
}


@pytest.mark.parametrize("api", STOPPED)
@pytest.mark.parametrize("at_once", [1, 3, 100])
async def test_after_a_length_stop_the_last_whole_sentence_is_the_end(
    api: str, at_once: int
) -> None:
    frames = STOPPED[api](f"{TEXT} Then I look at")
    groups = (frames[start : start + at_once] for start in range(0, len(frames), at_once))
    assert await shown(Upstream(Stream(*map(b"".join, groups))), api=api) == (TEXT, "")


@pytest.mark.parametrize("api", STREAMS)
async def test_an_ordinary_end_leaves_nothing_out(api: str) -> None:
    text = f"{TEXT} Then I look at"
    assert await shown(Upstream(Stream(*STREAMS[api](text))), api=api) == (text, "")


@pytest.mark.parametrize("api", STOPPED)
async def test_a_whole_body_that_was_stopped_ends_with_a_whole_sentence(api: str) -> None:
    answers: dict[str, dict[str, Any]] = {
        "chat": completion({"content": f"{TEXT} Then I"}),
        "responses": response(
            [message_item(0, f"{TEXT} Then I")],
            status="incomplete",
            incomplete_details={"reason": "max_output_tokens"},
        ),
    }
    answers["chat"]["choices"][0]["finish_reason"] = "length"
    upstream = Upstream(Stream(json.dumps(answers[api]).encode()), kind="application/json")
    assert await shown(upstream, api=api) == (TEXT, "")


REFUSAL = [chunk({"refusal": "No."}), chunk({}, finish="stop"), chunk(usage=CHAT_USAGE), DONE]


@pytest.mark.parametrize("said", [f"{TEXT} Then I look at", ""])
async def test_one_that_is_filtered_or_refused_fails_and_keeps_what_it_said(said: str) -> None:
    filtered = chat_stream("", said, finish="content_filter")
    refused = [*([chunk({"content": said})] if said else []), *REFUSAL]
    for frames in (filtered, refused):
        told = TEXT if said else ""
        assert await shown(Upstream(Stream(*frames))) == (told, "not_a_summary")


async def test_usage_that_is_not_reported_is_not_invented() -> None:
    upstream = Upstream(Stream(*chat_stream("", TEXT, usage=None)))
    assert await summarize_once(upstream) == (TEXT, SummarizerUsage(None, "thinker-1"))


async def test_an_unnamed_model_is_the_one_requested() -> None:
    frames = [
        frame({"choices": [{"index": 0, "delta": {"content": TEXT}, "finish_reason": "stop"}]})
    ]
    assert await summarize_once(Upstream(Stream(*frames, DONE))) == (
        TEXT,
        SummarizerUsage(None, "small-1"),
    )


async def test_a_stream_without_its_last_line_is_whole_once_it_has_finished() -> None:
    upstream = Upstream(Stream(*chat_stream("", TEXT)[:-1]))
    assert await summarize_once(upstream) == (TEXT, SummarizerUsage(TOKENS, "thinker-1"))


async def test_data_after_the_end_is_not_waited_for() -> None:
    class Endless(Stream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in self.pieces:
                assert isinstance(piece, bytes)
                yield piece
            await never.wait()

    never = asyncio.Event()
    upstream = Upstream(Endless(*chat_stream("", TEXT)))
    assert (await summarize_once(upstream))[0] == TEXT
    assert upstream.stream.closed


async def test_data_that_follows_at_once_is_read_to_keep_the_connection() -> None:
    class Counted(Stream):
        exhausted = False

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in super().__aiter__():
                yield piece
            self.exhausted = True

    stream = Counted(*chat_stream("", TEXT), b": goodbye\n\n")
    await summarize_once(Upstream(stream))
    assert stream.exhausted


async def test_leaving_early_closes_the_response() -> None:
    upstream = Upstream(Stream(*chat_stream("", TEXT)))
    pieces = summarizer_for(upstream).summarize(Passage("why"))
    assert await anext(pieces)
    async with aclosing(pieces):  # type: ignore[type-var]
        pass
    assert upstream.stream.closed


# Failures


@pytest.mark.parametrize("status", [302, 400, 401, 404, 429, 500, 503])
async def test_an_error_names_the_status_and_nothing_of_the_body(status: int) -> None:
    body = b'{"error": {"message": "secret prompt"}}'
    upstream = Upstream(Stream(body), status=status, kind="application/json")
    text, error = await failure(upstream)
    assert (text, error.code) == ("", "upstream_error")
    assert str(error) == f"The summarizer model answered with status {status}."
    assert upstream.stream.closed


HTML = Stream(b"<html><body>Welcome, secret</body></html>")
ERROR = frame({"error": {"message": "secret", "code": 500}})
FAILED = response([message_item(0, TEXT)], status="failed", error={"message": "secret"})
BROKEN = [
    pytest.param(Upstream(HTML, kind="text/html"), {}, "", None, id="HTML"),
    pytest.param(
        Upstream(Stream(b'{"error": {"message": "secret"}}'), kind="application/json"),
        {}, "", None, id="an error with status 200",
    ),
    pytest.param(
        Upstream(Stream(*chat_stream("", TEXT)[:3])), {}, TEXT[:14], None, id="chat cut short"
    ),
    pytest.param(
        Upstream(Stream(chunk({"content": "So "}), httpx.ReadError("secret"))),
        {}, "So ", None, id="connection broken",
    ),
    pytest.param(
        Upstream(Stream(chunk({"content": "So "}), ERROR, DONE)), {}, "So ", None, id="chat error"
    ),
    pytest.param(
        Upstream(Stream(*responses_stream([message_item(0, TEXT)])[:6])),
        {"api": "responses"}, TEXT[:14], None, id="responses cut short",
    ),
    pytest.param(
        Upstream(
            Stream(
                frame({"type": "error", "error": {"message": "secret"}}, "error"),
                frame({"type": "response.failed", "response": FAILED}, "response.failed"),
            )
        ),
        {"api": "responses"}, TEXT, TOKENS, id="responses error",
    ),
    pytest.param(
        Upstream(Stream(b"data: " + b"x" * (MAX_BYTES + 1))), {}, "", None, id="an endless event"
    ),
    pytest.param(
        Upstream(Stream(b"x" * (MAX_BYTES + 1)), kind="application/json"),
        {},
        "",
        None,
        id="endless",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("upstream", "how", "before", "spent"), BROKEN)
async def test_a_broken_answer_is_an_error_that_quotes_nothing(
    upstream: Upstream, how: dict[str, Any], before: str, spent: Tokens | None
) -> None:
    text, error = await failure(upstream, **how)
    assert (text, error.code, error.spent) == (before, "upstream_error", spent)
    assert "secret" not in str(error)
    assert str(error).startswith("The ")
    assert upstream.stream.closed


@pytest.mark.parametrize(
    ("raised", "code", "words"),
    [
        (httpx.ConnectError("secret"), "upstream_error", "could not be reached"),
        (httpx.ReadError("secret"), "upstream_error", "broke off"),
        (httpx.ConnectTimeout("secret"), "timeout", "took too long"),
        (httpx.ReadTimeout("secret"), "timeout", "took too long"),
    ],
)
async def test_a_call_that_cannot_be_made(raised: Exception, code: str, words: str) -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise raised

    text, error = await failure(httpx.MockTransport(refuse))
    assert (text, error.code, error.model) == ("", code, "small-1")
    assert words in str(error)
    assert error.__notes__ == [f"{urlsplit(BASE).netloc}: {type(raised).__name__}"]
    assert "secret" not in str(error)


EMPTY = [
    pytest.param("chat", chat_stream("", ""), id="nothing"),
    pytest.param("chat", chat_stream("", " \n"), id="blanks"),
    pytest.param("chat", chat_stream("I think and think.", ""), id="all thinking"),
    pytest.param("chat", chat_stream("", "<think>I think and"), id="all thinking, inline"),
    pytest.param("responses", responses_stream([reasoning_item(0, "I think.")]), id="no message"),
    pytest.param(
        "responses", responses_stream([message_item(0, "<think>I think")]), id="inline, Responses"
    ),
]


@pytest.mark.parametrize(("api", "frames"), EMPTY)
async def test_an_answer_without_text_is_empty_and_still_cost(
    api: str, frames: list[bytes]
) -> None:
    text, error = await failure(Upstream(Stream(*frames)), api=api)
    assert (text.strip(), error.code) == ("", "empty")
    assert (error.spent, error.model) == (TOKENS, "thinker-1")


async def test_a_transport_for_synchronous_use_is_refused() -> None:
    class Synchronous(httpx.SyncByteStream):
        pass

    transport = httpx.MockTransport(lambda request: httpx.Response(200, stream=Synchronous()))
    with pytest.raises((TypeError, RuntimeError)):
        await summarize_once(transport)


async def test_mock_transports_are_accepted() -> None:
    answer = completion({"content": TEXT})
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=answer))
    assert (await summarize_once(transport))[0] == TEXT
