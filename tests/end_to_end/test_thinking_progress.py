"""A client of Messages that is shown no thinking is told how far it is, if it asks for that."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types.beta import BetaThinkingDelta

from tests.end_to_end.translation.test_translation import bridge
from tests.end_to_end.translation.turn import ALL_UPSTREAMS, PATHS, WORDS, answer
from tests.support.asgi import Call, call
from tests.support.messages_checker import check_messages
from tests.support.streams import thinking
from tests.support.upstream import Answer, Upstream

THOUGHT = thinking(4000)
OMITTED = {"type": "adaptive", "display": "omitted"}
BETA = {"x-api-key": "sk-anna", "anthropic-beta": "x-2026, thinking-token-count-2026-05-13"}
APIS = pytest.mark.parametrize("api", ALL_UPSTREAMS)


async def ask(
    upstream: Upstream, api: str, headers: Any = None, wish: Any = None, **tables: Any
) -> Call:
    app = bridge(upstream, api, **tables)
    body = {
        "model": "m",
        "max_tokens": 4096,
        "stream": True,
        "messages": [{"role": "user", "content": "Hi"}],
        "thinking": wish or OMITTED,
    }
    return await call(app, PATHS["messages"], body, headers or BETA)


def progress(reply: Call) -> list[int]:
    """Return what the deltas of thinking say of its tokens, each without a text."""
    lines = [line[6:] for line in reply.data.split(b"\n") if line.startswith(b"data: ")]
    deltas = [event["delta"] for event in map(json.loads, lines) if "delta" in event]
    told = [delta for delta in deltas if "estimated_tokens" in delta]
    for delta in told:
        BetaThinkingDelta.model_validate(delta, strict=True)
        assert delta["thinking"] == ""
    return [delta["estimated_tokens"] for delta in told]


@APIS
async def test_omitted_thinking_tells_of_its_progress(api: str) -> None:
    reply = await ask(Upstream(answer(api, stream=True, thought=THOUGHT)), api)
    first, *_, last = check_messages(reply.data).blocks
    assert (first["thinking"], last["text"]) == ("", WORDS)
    steps = progress(reply)
    assert all(step > 0 and step % 50 == 0 for step in steps)
    assert len(THOUGHT) / 4 - 50 < sum(steps) <= len(THOUGHT) / 4


@APIS
async def test_so_does_thinking_that_is_hidden(api: str) -> None:
    upstream = Upstream(answer(api, stream=True, thought=THOUGHT))
    wish = {"type": "enabled", "budget_tokens": 2048}
    reply = await ask(upstream, api, wish=wish, expose="none")
    assert sum(progress(reply)) > 0
    assert THOUGHT[:40].encode() not in reply.data


async def test_it_comes_while_the_model_thinks() -> None:
    """Not at the end, when it is of no use."""
    upstream = Upstream(answer("chat", stream=True, thought=THOUGHT))
    reply = await ask(upstream, "chat")
    frames = [
        message["body"] for message in reply.sent if b"estimated_tokens" in message.get("body", b"")
    ]
    assert len(frames) > 3


@APIS
@pytest.mark.parametrize(
    ("headers", "wish"),
    [
        ({"x-api-key": "sk-anna"}, OMITTED),
        ({**BETA, "anthropic-beta": "interleaved-thinking-2025-05-14"}, OMITTED),
        (BETA, {"type": "enabled", "budget_tokens": 2048}),
        (BETA, {"type": "disabled"}),
    ],
    ids=["no beta", "another beta", "summarized", "off"],
)
async def test_it_is_told_only_where_it_was_asked_for_and_nothing_is_shown(
    api: str, headers: Any, wish: Any
) -> None:
    upstream = Upstream(answer(api, stream=True, thought=THOUGHT))
    assert progress(await ask(upstream, api, headers, wish)) == []


async def test_what_upstream_says_of_its_progress_passes() -> None:
    """An upstream that omits its thinking itself knows best."""
    (whole,) = (answer("messages", stream=True, thought="").steps,)
    told = {"type": "thinking_delta", "thinking": "", "estimated_tokens": 150}
    event = {"type": "content_block_delta", "index": 0, "delta": told}
    frame = b"event: content_block_delta\ndata: " + json.dumps(event).encode() + b"\n\n"
    frames: list[Any] = list(whole)
    start = next(n for n, each in enumerate(frames) if b"content_block_start" in each)
    frames.insert(start + 1, frame)
    reply = await ask(Upstream(Answer(frames)), "messages")
    assert progress(reply) == [150]
    reply = await ask(Upstream(Answer(frames)), "messages", expose="none")
    assert progress(reply) == [150]


async def test_other_apis_have_no_form_for_it() -> None:
    upstream = Upstream(answer("chat", stream=True, thought=THOUGHT))
    app = bridge(upstream, "chat", expose="none")
    reply = await call(app, PATHS["responses"], {"model": "m", "input": "Hi", "stream": True}, BETA)
    assert b"estimated_tokens" not in reply.data
