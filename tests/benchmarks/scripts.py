"""Scripts of the scripted upstream: their pieces and when each is due.

A frame may hold a stamp: the upstream fills in the moment at which it writes it, and the load
generator measures the time since. No API knows the key, so Abridge passes it on with the event, and
its own events have none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count, groupby
from typing import Any

from abridge.core.plan import SummaryPlan
from abridge.pipeline.exchange_plan import FIRST_SHARE
from tests.apis.messages import scripts as messages
from tests.support.streams import (
    CHAT_USAGE,
    chunk,
    completion,
    message_item,
    pieces,
    reasoning_item,
    response,
    responses_stream,
    thinking,
)

STAMP = b'"p":"0000000000.000000"'
"""Where upstream writes when it sends a frame: in a field with which providers pad theirs, since no
provider has fields of its own that differ from frame to frame."""

ANSWER = "The sum of the first n odd numbers is n squared, which the squares drawn above show. "
SHORT = (thinking(31 * 40), (ANSWER * 15)[: 31 * 40])
"""Reasoning and answer of thirty-one deltas each, as many as GoModel's benchmark sends."""
PLAN = SummaryPlan(first_share=FIRST_SHARE)
"""A summary with Abridge's default cuts, for reasoning that ends soon after one."""


@dataclass(frozen=True)
class Script:
    """A script; `steps` are frames or a body, each with its time in seconds after the request."""

    kind: bytes
    steps: Sequence[tuple[float, bytes]]

    @property
    def stream(self) -> bool:
        return self.kind == b"text/event-stream"


def script(name: str) -> Script:
    """Return a script by name: `json`, `summarizer`, or an API, a dash and a scenario."""
    if name == "json":
        body = completion({"content": ANSWER * 4, "reasoning_content": thinking(200)})
        return Script(b"application/json", [(0.0, json.dumps(body).encode())])
    if name == "summarizer":
        return _stream(_summary(), 0.3, 0.7)
    api, _, scenario = name.partition("-")
    if scenario == "whole":
        return Script(b"application/json", [(0.0, json.dumps(_whole(api, *SHORT)).encode())])
    if scenario == "stream":
        return Script(b"text/event-stream", [(0.0, each) for each in _frames(api, *SHORT, 40)])
    if scenario == "open":
        frames = _frames(api, thinking(30 * 40), ANSWER * 5, size=40)
        return _stream([_stamped(frame) for frame in frames], 0.0, 0.5 * (len(frames) - 1))
    if scenario == "fast":
        frames = _frames(api, thinking(300 * 7), (ANSWER * 9)[: 90 * 7], size=7)
        return _stream([_stamped(frame) for frame in frames], 0.0, 0.02 * (len(frames) - 1))
    if scenario in ("paced", "burst"):
        frames = _frames(api, thinking(300 * 7), (ANSWER * 9)[: 90 * 7], size=7)
        return _stream(frames, 0.0, 0.005 * (len(frames) - 1) if scenario == "paced" else 0.0)
    return _live(api, reasoning(scenario))


def events(name: str) -> int:
    """Return how many events a script has."""
    return sum(data.count(b"\n\n") for _, data in script(name).steps)


@cache
def reasoning(scenario: str) -> str:
    """Return 8,000 characters for `live`, or, as in `tail100`, that many after the last cut."""
    if scenario == "live":
        return thinking(8000)
    text = thinking(9900)
    cut = sum(len(cut.text) for cut in PLAN.new_segmenter().feed(text))
    return text[: cut + int(scenario.removeprefix("tail"))]


def _live(api: str, thought: str) -> Script:
    """Return a hundred tokens a second; the answer's first is stamped."""
    frames = _frames(api, thought, (ANSWER * 10)[:800], size=4)
    needles = {
        "chat": b'"content":"T',
        "responses": b"output_text.delta",
        "messages": b"text_delta",
    }
    first = next(place for place, frame in enumerate(frames) if needles[api] in frame)
    frames[first] = _stamped(frames[first])
    return _stream(frames, 0.0, 0.01 * (len(frames) - 1))


def _summary() -> list[bytes]:
    """Return a summary of about a hundred tokens."""
    text = (
        "**Checking small cases**\n\nI look at the first few sums, and see that each is a square. "
        "Odd numbers as corners around a square show why that goes on. By induction I add the next."
    )
    return _chat("", text, size=12)


def _stream(frames: Sequence[bytes], wait: float, last: float) -> Script:
    """Spread frames evenly: the first after `wait` seconds, the last one `last` seconds later."""
    between = last / max(1, len(frames) - 1)
    steps = [(wait + place * between, frame) for place, frame in enumerate(frames)]
    if not last:
        steps = [(wait, b"".join(frames))]
    return Script(b"text/event-stream", steps)


def _whole(api: str, thought: str, answer: str) -> dict[str, Any]:
    match api:
        case "chat":
            return completion({"content": answer, "reasoning_content": thought})
        case "responses":
            return response([reasoning_item(0, thought), message_item(1, answer)])
        case _:
            return messages.message([messages.thinking(thought), messages.text(answer)])


def _frames(api: str, thought: str, answer: str, size: int) -> list[bytes]:
    write = {"chat": _chat, "responses": _responses, "messages": _messages}[api]
    return write(thought, answer, size)


def _chat(thought: str, answer: str, size: int) -> list[bytes]:
    frames = [chunk({"role": "assistant", "content": ""})]
    frames += [chunk({"reasoning_content": piece}) for piece in pieces(thought, size)]
    frames += [chunk({"content": piece}) for piece in pieces(answer, size)]
    frames += [chunk({}, finish="stop"), chunk(usage=CHAT_USAGE)]
    return [*(_frame(_payload(frame)) for frame in frames), b"data: [DONE]\n\n"]


def _responses(thought: str, answer: str, size: int) -> list[bytes]:
    texts = {"response.reasoning_text.delta": thought, "response.output_text.delta": answer}
    output = [reasoning_item(0, thought), message_item(1, answer)]
    payloads = map(_payload, responses_stream(output))
    number = count()
    return [
        _frame({**event, "sequence_number": next(number)}, event["type"])
        for event in _resized(payloads, texts, size)
    ]


def _messages(thought: str, answer: str, size: int) -> list[bytes]:
    frames = [messages.begin(), messages.start(0, messages.thinking("", ""))]
    frames += [messages.delta(0, "thinking", thinking=piece) for piece in pieces(thought, size)]
    frames += [messages.delta(0, "signature", signature="c2ln" * 40), messages.stop(0)]
    frames.append(messages.start(1, messages.text("")))
    frames += [messages.delta(1, "text", text=piece) for piece in pieces(answer, size)]
    payloads = map(_payload, [*frames, messages.stop(1), *messages.finish()])
    return [_frame(event, event["type"]) for event in payloads]


def _resized(
    payloads: Iterator[dict[str, Any]], texts: dict[str, str], size: int
) -> Iterator[dict[str, Any]]:
    """Return the same events with their texts in deltas of `size` characters."""
    for kind, group in groupby(payloads, lambda event: event["type"]):
        if kind in texts:
            event = next(group)
            yield from ({**event, "delta": piece} for piece in pieces(texts[kind], size))
        else:
            yield from group


def _payload(frame: bytes) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(frame[frame.index(b"data: ") + 6 :])
    return payload


def _frame(payload: dict[str, Any], event: str | None = None) -> bytes:
    """Write a frame without spaces, as providers do."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(payload, separators=(',', ':'))}\n\n".encode()


def _stamped(frame: bytes) -> bytes:
    return frame.replace(b"}\n\n", b"," + STAMP + b"}\n\n")
