"""Test what hiding tells apart over every client's and every upstream's API, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from abridge.apis.api import Api
from abridge.apis.registry import APIS
from abridge.providers.catalog import PROFILES
from tests.apis.gemini import scripts as gemini
from tests.apis.interactions import scripts as interactions
from tests.apis.messages import scripts as messages
from tests.support.hiding import ANSWER, THINKING, chat_answer, said, samples, spoken
from tests.support.hiding_samples import FORMATS, LEGITIMATE
from tests.support.matrix import each_in_turn
from tests.support.pipeline import Pipeline, all_clients
from tests.support.streams import message_item, numbered, response, responses_stream

Json = dict[str, Any]

CUT: Mapping[str, Json] = {
    "stop": {},
    "length": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
}


def _responses(text: str, finish: str, *, stream: bool) -> bytes:
    output = [message_item(0, text)]
    if stream:
        return b"".join(responses_stream(output, **CUT[finish]))
    return json.dumps(response(output, **CUT[finish])).encode()


def _messages(text: str, finish: str, *, stream: bool) -> bytes:
    blocks, stop = [messages.text(text)], {"length": "max_tokens"}.get(finish, "end_turn")
    if stream:
        return b"".join(messages.stream(blocks, stop))
    return json.dumps(messages.message(blocks, stop)).encode()


def _gemini(text: str, finish: str, *, stream: bool) -> bytes:
    parts, reason = [gemini.text(text)], {"length": "MAX_TOKENS"}.get(finish, "STOP")
    if stream:
        return b"".join(gemini.stream(parts, reason))
    return json.dumps(gemini.whole(parts, reason)).encode()


def _interactions(text: str, finish: str, *, stream: bool) -> bytes:
    steps, status = [interactions.output(text)], {"length": "incomplete"}.get(finish, "")
    if stream:
        return b"".join(interactions.stream(steps, status))
    return json.dumps(interactions.whole(steps, status)).encode()


def _chat(text: str, finish: str, *, stream: bool) -> bytes:
    return chat_answer({"content": text}, finish, 7 if stream else None)


ANSWERS: Mapping[str, Callable[..., bytes]] = {
    "chat": _chat,
    "responses": _responses,
    "messages": _messages,
    "gemini": _gemini,
    "interactions": _interactions,
}

THOUGHTS: dict[str, Json] = {
    **{each["name"]: each for each in samples("thinking-in-text")},
    **{each.writer: each._asdict() for each in FORMATS},
}

PLAIN: dict[str, str] = {
    **{
        each["name"]: each["text"]
        for each in samples("legitimate")
        if each["kind"] == "text" and "…" not in each["text"]
    },
    **LEGITIMATE,
}

EACH = pytest.mark.parametrize("upstream", ANSWERS)


def turn(upstream: str, client: Api) -> int:
    return [*ANSWERS].index(upstream) + APIS.index(client)


def shown(client: Api, upstream: str, text: str, finish: str = "stop", *, stream: bool) -> str:
    """Return all that a client gets of a text, one string after the other."""
    translated = None if upstream == client.name else upstream
    profile = PROFILES["auto"]
    pipeline = Pipeline(client, expose="none", profile=profile, upstream=translated)
    answer = ANSWERS[upstream](text, finish, stream=stream)
    out = pipeline.stream(answer) if stream else pipeline.whole(answer)
    return said(out.decode(), streamed=stream)


@all_clients
@EACH
def test_thinking_is_hidden_and_its_answer_is_not(upstream: str, client: Api) -> None:
    for name, sample in each_in_turn(THOUGHTS.items(), turn(upstream, client), len(APIS)):
        text = spoken(sample)
        for stream in (False, True):
            seen = shown(client, upstream, text, sample["finish"], stream=stream)
            assert THINKING not in seen, (name, stream)
            assert (ANSWER in seen) == (ANSWER in text), (name, stream)


@all_clients
@EACH
def test_what_only_looks_like_it_stays(upstream: str, client: Api) -> None:
    for name, text in each_in_turn(PLAIN.items(), turn(upstream, client), len(APIS)):
        for stream in (False, True):
            assert text in shown(client, upstream, text, stream=stream), (name, stream)


UNDECIDED = f"So {THINKING}"
"""A text that began with no sign of thinking, and may have begun inside it."""

FAILED = {"status": "failed", "error": {"code": "server_error", "message": "Broken."}}


def _deltas(frames: list[bytes]) -> list[bytes]:
    """Return the frames up to the ends of a text and of what is around it."""
    return [frame for frame in frames if b".done" not in frame][:-1]


def _failing(output: list[Json]) -> list[bytes]:
    """Return a response that fails in the middle of its text, and repeats this output."""
    end = {"type": "response.failed", "response": response(output, **FAILED)}
    return [*_deltas(responses_stream([message_item(0, UNDECIDED)])), *numbered(end)]


BROKEN: dict[str, tuple[str, list[bytes]]] = {
    **{
        f"chat, {finish}": ("chat", [chat_answer({"content": UNDECIDED}, finish, 7)])
        for finish in ("error", "abort", "timeout")
    },
    "chat, in a list": (
        "chat",
        [chat_answer({"content": [{"type": "text", "text": UNDECIDED}]}, "abort", 7)],
    ),
    "responses, failed": ("responses", _failing([])),
    "responses, failed, with its text": ("responses", _failing([message_item(0, UNDECIDED)])),
    "messages, an error": (
        "messages",
        [
            *messages.stream([messages.text(UNDECIDED)])[:-4],
            messages.event("error", error={"type": "api_error", "message": "Broken."}),
        ],
    ),
}


@all_clients
@pytest.mark.parametrize("name", BROKEN)
def test_undecided_text_stays_back_where_the_answer_breaks_off(name: str, client: Api) -> None:
    upstream, frames = BROKEN[name]
    pipeline = Pipeline(
        client, expose="none", upstream=None if upstream == client.name else upstream
    )
    assert THINKING not in pipeline.stream(b"".join(frames)).decode()


@all_clients
@EACH
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_it_goes_out_where_upstream_says_that_it_ended(
    finish: str, upstream: str, client: Api
) -> None:
    for stream in (False, True):
        assert UNDECIDED in shown(client, upstream, UNDECIDED, finish, stream=stream)
