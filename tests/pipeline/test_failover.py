"""Test a request that moves on to another upstream, with another API, and a conversation that does.

`tests/sidecar/proxy/test_failover.py` has the failures themselves, on real sockets.
"""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from abridge.errors import UpstreamBroken, UpstreamUnavailable
from tests.pipeline.test_renaming import PATHS, answer_of, body_of, models_in
from tests.support.asgi import Call, call
from tests.support.deployments import build_app
from tests.support.messages_checker import CHECKS
from tests.support.spans import Spans
from tests.support.streams import completion
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, ReceivedRequest, Upstream

BUSY = Answer.json({"error": {"message": "busy"}}, 503)
USER = {"role": "user", "content": "Hi"}


class Pair(Upstream):
    """Two upstreams by their host: `first.test`, which is busy where it is to be, and any other."""

    def __init__(self, first: Answer, second: Answer) -> None:
        super().__init__(second)
        self.first = first
        self.is_busy = True

    def answer(self, request: ReceivedRequest) -> Answer:
        if request.header("host") != "first.test":
            return super().answer(request)
        return BUSY if self.is_busy else self.first

    def heard(self, name: str) -> list[bytes]:
        return [each.body for each in self.requests if each.header("host") == f"{name}.test"]


def app_for(
    pair: Pair,
    first: dict[str, Any] | None = None,
    second: dict[str, Any] | None = None,
    **tables: Any,
) -> ASGIApp:
    upstreams = [
        {
            "name": "first",
            "base_url": "http://first.test/v1",
            "fallback": "second",
            **(first or {}),
        },
        {"name": "second", "base_url": "http://second.test/v1", **(second or {})},
    ]
    return build_app("sidecar", pair, writer=Scripted(), upstreams=upstreams, **tables)


@pytest.mark.parametrize("client", list(PATHS))
@pytest.mark.parametrize("first", ["chat", "responses", "messages", "gemini", "interactions"])
@pytest.mark.parametrize("second", ["chat", "responses", "messages", "gemini", "interactions"])
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_every_client_is_answered_by_a_fallback_with_any_api(
    client: str, first: str, second: str, *, stream: bool
) -> None:
    pair = Pair(BUSY, answer_of(second, stream=stream))
    registry = CollectorRegistry()
    app = app_for(
        pair,
        {"api": first, "rename": {"say-m": "mine"}},
        {"api": second, "rename": {"say-*": "up/{}"}},
        registry=registry,
    )
    body = body_of(client, stream=stream)
    answer = await call(app, PATHS[client], body, {"x-abridge-summary": "auto"})
    assert answer.status == 200
    assert b"Hello." in answer.data
    assert models_in(answer) == {"say-m"}
    if stream:
        CHECKS[client](answer.data)
    assert [len(pair.heard("first")), len(pair.heard("second"))] == [1, 1]
    assert registry.get_sample_value("abridge_streams_open", {"api": client}) == 0


async def test_a_request_that_the_fallback_does_not_take_may_be_tried_again() -> None:
    pair = Pair(BUSY, answer_of("responses", stream=False))
    app = app_for(pair, None, {"api": "responses"})
    answer = await call(app, PATHS["chat"], body_of("chat", stop=["x"]))
    error = answer.json["error"]
    assert (answer.status, error["code"], error["param"]) == (503, "upstream_unavailable", "stop")
    assert "retry-after" in answer.headers
    assert pair.heard("second") == []


async def test_nothing_is_kept_of_the_first_attempt_while_the_fallback_answers() -> None:
    """The failure, were it still being handled, would keep the first request in its traceback; and
    would be told as the context of whatever fails next."""
    pair = Pair(BUSY, Answer([b"data: {}\n\n", ConnectionResetError()]))
    with pytest.raises(UpstreamBroken) as broken:
        await call(app_for(pair), PATHS["chat"], body_of("chat"))
    error: BaseException | None = broken.value
    while error is not None:
        assert not isinstance(error, UpstreamUnavailable)
        error = error.__context__


async def test_spans_say_why_a_request_moved_on() -> None:
    spans = Spans()
    pair = Pair(BUSY, answer_of("chat", stream=False))
    app = app_for(pair, tracing={"enabled": True}, tracer_provider=spans.provider)
    await call(app, PATHS["chat"], body_of("chat"))
    assert [span.error for span in spans.below(spans.request)] == ["503", None]


@pytest.mark.parametrize("fails", [True, False])
async def test_tokens_are_counted_by_the_fallback(*, fails: bool) -> None:
    pair = Pair(Answer.json({"input_tokens": 1}), Answer.json({"input_tokens": 2}))
    pair.is_busy = fails
    app = app_for(pair, {"api": "messages"}, {"api": "messages"})
    answer = await call(app, "/v1/messages/count_tokens", body_of("messages"))
    assert answer.json == {"input_tokens": 2 if fails else 1}


async def test_a_conversation_goes_on_at_the_fallback_and_comes_back() -> None:
    """Each upstream hears its own reasoning again, and nobody hears a summary."""
    thoughts = {name: f"What {name} thought of it. " * 20 for name in ("first", "second")}
    first, second = (
        Answer.json(completion({"reasoning_content": thought, "content": f"{name} said."}))
        for name, thought in thoughts.items()
    )
    pair = Pair(first, second)
    history = {"keep": "all", "restore": "always"}
    app = app_for(pair, {"profile": "vllm"}, {"profile": "vllm"}, history=history)

    async def ask(messages: list[Any]) -> Any:
        answer: Call = await call(
            app,
            PATHS["chat"],
            {"model": "m", "messages": messages, "reasoning": {"summary": "auto"}},
            {"authorization": "Bearer k"},
        )
        return answer.json["choices"][0]["message"]

    pair.is_busy = False
    messages: list[Any] = [USER]
    messages += [await ask(messages), USER]
    pair.is_busy = True
    messages += [await ask(messages), USER]
    pair.is_busy = False
    await ask(messages)
    summaries = [each["reasoning_content"].encode() for each in (messages[1], messages[3])]
    to_second, to_first = pair.heard("second")[-1], pair.heard("first")[-1]
    assert b"first said." in to_second
    assert b"second said." in to_first
    assert thoughts["first"].encode() in to_first
    assert thoughts["first"].encode() not in to_second
    assert thoughts["second"].encode() not in to_first
    assert not any(summary in body for summary in summaries for body in (to_second, to_first))
