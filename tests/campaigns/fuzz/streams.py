"""Mutants of answers: of their bytes, of how they are cut, of their structure and their order."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any
from unittest.mock import patch

from tests.apis.messages import scripts as messages
from tests.campaigns.fuzz.case import Case, Json, latin
from tests.campaigns.fuzz.mutations import (
    Frame,
    add_unknown_keys,
    cut,
    dump,
    harm_bytes,
    harm_json,
    harm_order,
    plant_canary,
    write,
)
from tests.campaigns.fuzz.run import PROMPT
from tests.campaigns.reader import events
from tests.campaigns.secret import disguise_reasoning, sentence
from tests.end_to_end.recordings.recordings import recordings
from tests.support import sloppy_streams
from tests.support.canaries import plant
from tests.support.streams import (
    call,
    call_item,
    chat_stream,
    chunk,
    completion,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}
STREAM = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}
HARMS = ("none", "none", "odd", "odd", "order", "order", "bytes", "bytes", "planted", "outside")

ADDRESS = re.compile(r"\b(\w*index|\w*id|type|error|arguments|input|elements)\b")
"""Changes of keys that say what an event is or belongs to, after which readers differ."""


def make(random: Random, specs: list[Json]) -> Case:
    """Draw a case for one of these deployments."""
    spec = random.choice(specs)
    source = spec["client"] if spec["upstream"] == "same" else spec["upstream"]
    stream, harm = random.random() < 0.8, random.choice(HARMS)
    case = Case(
        "streams",
        spec,
        PATHS[spec["client"]],
        latin(json.dumps(request(spec, stream=stream)).encode()),
        answer_headers=STREAM if stream else JSON,
        stream=stream,
        harm="free" if harm in ("bytes", "outside") else harm,
    )
    written = _written(random, source, harm, case)
    if harm == "bytes":
        for _ in range(random.choice((1, 1, 3))):
            written, change = harm_bytes(random, written)
            case.changes.append(change)
    if harm == "outside":
        _harm_outside(random, case)
    case.pieces = [latin(piece) for piece in cut(random, written)]
    return case


def request(spec: Json, *, stream: bool) -> Json:
    """Return a good request; it asks for a summary, unless the spec says none."""
    asks: Json = {} if spec["summarizer"] == "none" else {"reasoning": {"summary": "auto"}}
    if spec["client"] == "responses":
        return {"model": "m", "stream": stream, "input": f"Hi, {PROMPT}", **asks}
    options: Json = {"stream_options": {"include_usage": True}} if stream else {}
    messages = [{"role": "user", "content": f"Hi, {PROMPT}"}]
    return {"model": "m", "stream": stream, "messages": messages, **options, **asks}


def _written(random: Random, source: str, harm: str, case: Case) -> bytes:
    if not case.stream:
        body = whole(random, source)
        _change(random, [(None, body)], harm, case, plants=lambda: plant(random, body))
        return dump(body, random.random() < 0.5, random.random() < 0.1).encode()
    frames = streamed(random, source, harm, choices=2 if source == case.world["client"] else 1)
    _change(random, frames, harm, case, plants=lambda: plant_canary(random, frames))
    return write(random, frames, named=harm == "none")


def _change(random: Random, frames: list[Frame], harm: str, case: Case, *, plants: Any) -> None:
    """Change frames as a harm says, in place, and note what was done."""
    if harm == "none" and random.random() < 0.5:
        add_unknown_keys(random, random.choice([p for _, p in frames if isinstance(p, dict)]))
        case.changes.append("unknown keys")
    elif harm == "planted":
        plants()
        case.changes.append("a canary")
    elif harm in ("odd", "order"):
        for _ in range(1 if harm == "odd" else random.choice((1, 1, 2, 4))):
            payloads = [payload for _, payload in frames if isinstance(payload, dict)]
            if harm == "order" and len(frames) > 1 and random.random() < 0.7:
                case.changes.append(harm_order(random, frames))
            elif payloads:
                case.changes.append(harm_json(random, random.choice(payloads)))
                if ADDRESS.search(case.changes[-1]):
                    case.harm = "free"


def _harm_outside(random: Random, case: Case) -> None:
    """Have the status or a header say what is not so."""
    case.status = random.choice((200, 200, 201, 400, 401, 404, 429, 500, 502, 503))
    case.answer_headers = {
        **random.choice((STREAM, JSON, {}, {"content-type": "text/html"})),
        **random.choice(({}, {}, {"content-encoding": "gzip"}, {"content-length": "3"})),
        **random.choice(({}, {"retry-after": "soon"}, {"x-odd": "\xe9"})),
    }
    case.changes.append(f"{case.status} {case.answer_headers}")


# Good answers


def streamed(random: Random, source: str, harm: str, *, choices: int = 1) -> list[Frame]:
    """Return a stream; one in five as a sloppy server or as a provider wrote it.

    `choices` is how many the client's API has at most.
    """
    if harm != "none" and random.random() < 0.2 and _found(source):
        return copy.deepcopy(random.choice(_found(source)))
    text, secret = _answer(random), sentence(random, random.choice((1, 20, 60, 200)))
    calls = [("look", json.dumps({"at": text}))] * random.choice((0, 0, 1, 2))
    if source == "chat":
        return _chat(random, text, secret, calls, choices)
    if source == "messages":
        return frames_of(messages.stream(_blocks(random, text, secret, calls), _reason(calls)))
    return frames_of(responses_stream(_items(random, text, secret, calls)))


def _blocks(random: Random, text: str, secret: str, calls: list[tuple[str, str]]) -> list[Json]:
    blocks = [messages.thinking(secret), messages.text(text)]
    if random.random() < 0.2:
        blocks.insert(1, messages.redacted("c2VhbGVk"))
    called = [
        messages.tool_use(at, name, **json.loads(said)) for at, (name, said) in enumerate(calls)
    ]
    return [*blocks, *called]


def _reason(calls: list[tuple[str, str]]) -> str:
    return "tool_use" if calls else "end_turn"


def _chat(
    random: Random, text: str, secret: str, calls: list[tuple[str, str]], choices: int
) -> list[Frame]:
    field = random.choice(("reasoning_content", "reasoning"))
    made = [call(name, said, number) for number, (name, said) in enumerate(calls)]
    if random.random() < 0.15:
        return frames_of(chat_stream("", f"<think>{secret}</think>{text}", calls=made))
    frames = chat_stream(secret, text, calls=made, field=field)
    if choices > 1 and random.random() < 0.15:  # a second choice, beside the first
        extra = chat_stream(secret, _answer(random), field=field, usage=None)[:-1]
        second = [chunk(_delta(one), index=1, finish=_finish(one)) for one in extra]
        frames[1:1] = second[:1]
        frames[-2:-2] = second[1:]
    return frames_of(frames)


def _items(random: Random, text: str, secret: str, calls: list[tuple[str, str]]) -> list[Json]:
    items = [reasoning_item(0, secret), message_item(1, text)]
    if random.random() < 0.2:
        items[0]["encrypted_content"] = "c2VhbGVk"
    if random.random() < 0.15:
        items[0] |= {"summary": [{"type": "summary_text", "text": "Upstream's own."}]}
    items += [call_item(2 + number, name, said) for number, (name, said) in enumerate(calls)]
    if random.random() < 0.2:
        items[2:2] = [reasoning_item(7, sentence(Random(len(secret)), 40))]
    return items


def whole(random: Random, source: str) -> Json:
    """Return the body of an answer that is no stream."""
    text, secret = _answer(random), sentence(random, random.choice((1, 20, 200)))
    calls = [("look", json.dumps({"at": text}))] * random.choice((0, 0, 1, 2))
    if source == "responses":
        return copy.deepcopy(response(_items(random, text, secret, calls)))
    if source == "messages":
        blocks = _blocks(random, text, secret, calls)
        return copy.deepcopy(messages.message(blocks, _reason(calls)))
    message: Json = {"content": text, random.choice(("reasoning_content", "reasoning")): secret}
    if calls:
        message["tool_calls"] = [call(name, said, at) for at, (name, said) in enumerate(calls)]
    return copy.deepcopy(completion(message))


def frames_of(stream: list[bytes] | bytes) -> list[Frame]:
    """Take a stream apart."""
    data = stream if isinstance(stream, bytes) else b"".join(stream)
    return [_frame(text) for _, text in events(data)]


def _frame(text: str) -> Frame:
    try:
        payload = json.loads(text)
    except ValueError:
        return None, text
    named = payload["type"] if isinstance(payload, dict) and "type" in payload else None
    return named, payload


SLOPPY = {"chat": sloppy_streams.SLOPPY_CHAT, "responses": sloppy_streams.SLOPPY}


@cache
def _found(source: str) -> list[list[Frame]]:
    """Return the streams of sloppy servers and of providers, their reasoning disguised."""
    return [frames for frames in _collected(source) if frames]


def _collected(source: str) -> Iterator[list[Frame]]:
    thought = sentence(Random(source), 300)
    table = SLOPPY.get(source, {})
    with patch.object(sloppy_streams, "THOUGHT", thought):
        for build in table.values():
            yield frames_of(build())
    for recording in recordings(source):
        if recording.streamed:
            frames = frames_of(recording.data)
            yield [(name, disguise_reasoning(payload)) for name, payload in frames[:120]]


def _answer(random: Random) -> str:
    """Return an answer that no other case has."""
    words = [f"w{random.randrange(16**6):06x}" for _ in range(random.choice((1, 4, 12)))]
    return "Answer " + " ".join(words) + random.choice((".", "\n", " é\u2028ü.", ""))


def _delta(frame: bytes) -> Json:
    delta: Json = json.loads(frame[6:])["choices"][0]["delta"]
    return delta


def _finish(frame: bytes) -> str | None:
    finish: str | None = json.loads(frame[6:])["choices"][0]["finish_reason"]
    return finish
