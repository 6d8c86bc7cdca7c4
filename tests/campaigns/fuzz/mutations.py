"""Mutations of bytes, of JSON, of the order of events, and of how a stream is written."""

from __future__ import annotations

import copy
import json
import re
from random import Random
from typing import Any

from tests.support.canaries import objects_in, plant

Frame = tuple[str | None, Any]
"""The name of an event, and its payload: an object, or text such as `[DONE]`."""

DEEP: Any = "x"
for _ in range(300):
    DEEP = [DEEP]

ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 10**30, 1e308, "", "x", " ", "\x00", "\ud800", "\u2028", "a\nb\r\n"),
    *([], {}, {"a": 1}, [None], [[]], ["x"], [{}], [{"type": None}], [{"type": ["x"]}]),
    *([{"type": "text", "text": None}], {"type": "reasoning"}, DEEP, "data: x\n\n", "9" * 5000),
)
"""Values that nobody expects."""


# Bytes


def harm_bytes(random: Random, data: bytes) -> tuple[bytes, str]:
    """Return the bytes with one fault, and its name."""
    fault = random.choice(BYTE_FAULTS)
    start = random.randrange(len(data) + 1)
    end = min(len(data), start + random.choice((1, 1, 2, 5, 40, 400)))
    return fault(random, data, start, end), f"{fault.__name__.strip('_')} at {start}"


def _flip(random: Random, data: bytes, start: int, _: int) -> bytes:
    changed = bytearray(data)
    if start < len(changed):
        changed[start] ^= 1 << random.randrange(8)
    return bytes(changed)


def _overwrite(random: Random, data: bytes, start: int, end: int) -> bytes:
    return data[:start] + random.randbytes(end - start) + data[end:]


def _delete(random: Random, data: bytes, start: int, end: int) -> bytes:
    return data[:start] + data[end:]


def _repeat(random: Random, data: bytes, start: int, end: int) -> bytes:
    return data[:end] + data[start:end] * random.choice((1, 1, 3, 50)) + data[end:]


def _move(random: Random, data: bytes, start: int, end: int) -> bytes:
    rest = data[:start] + data[end:]
    at = random.randrange(len(rest) + 1)
    return rest[:at] + data[start:end] + rest[at:]


def _truncate(random: Random, data: bytes, start: int, _: int) -> bytes:
    return data[:start]


def _insert(random: Random, data: bytes, start: int, _: int) -> bytes:
    return data[:start] + random.choice(TOKENS) + data[start:]


BYTE_FAULTS = (_flip, _overwrite, _delete, _repeat, _move, _truncate, _insert)

TOKENS = (
    *(b"\x00", b"\xff", b"\xed\xa0\x80", b"\xf0\x9f", b"\xef\xbb\xbf", b"\r", b"\n", b"\n\n"),
    *(b"\r\n\r\n", b"data:", b"data: [DONE]\n\n", b"data: {}\n\n", b"event: error\n", b":\n\n"),
    *(b"<think>", b"</think>", b'"', b"\\", b"\\u", b"{", b"}", b"]", b"null", b"NaN", b"1e999"),
    *(b'"error":{"message":"x"},', b"retry: 1\n", b"id: 1\n\n", b"[" * 2000, b'{"a":' * 2000),
)


# JSON


def harm_json(random: Random, value: Any) -> str:
    """Change one place of a value, in place; return what was done."""
    holders = [*objects_in(value)] if isinstance(value, dict | list) else []
    holder = random.choice([one for one in holders if one] or [{}])
    if not holder:
        return "nothing"
    key = random.choice(sorted(holder, key=str))
    match random.randrange(5):
        case 0:
            del holder[key]
            return f"without {key}"
        case 1:
            other = random.choice(list(objects_in(value)))
            holder[key] = copy.deepcopy(random.choice([*other.values(), None]))
            return f"{key} of elsewhere"
        case 2 if isinstance(holder[key], str):
            holder[key] = holder[key] * random.choice((0, 2, 40))
            return f"{key} repeated"
        case 3 if isinstance(holder[key], list):
            holder[key] = holder[key] * random.choice((0, 2, 20))
            return f"{key} with its elements repeated"
        case _:
            holder[key] = copy.deepcopy(random.choice(ODD))
            return f"{key} odd"


def add_unknown_keys(random: Random, value: Any) -> None:
    """Add keys that mean nothing; but parts of summaries are compared as they are."""
    holders = [one for one in objects_in(value) if one.get("type") != "summary_text"]
    for holder in random.sample(holders, min(2, len(holders))):
        holder[random.choice(("x_trace_id", "obfuscation", "extra"))] = random.choice(
            ("k3v", 7, None, {"a": ["b"]})
        )


# The order of events


def harm_order(random: Random, frames: list[Frame]) -> str:
    """Drop, repeat, swap, move or cut events, in place; return what was done."""
    at, to = random.randrange(len(frames)), random.randrange(len(frames))
    match random.randrange(6):
        case 0:
            del frames[at]
            return f"event {at} dropped"
        case 1:
            frames.insert(to, copy.deepcopy(frames[at]))
            return f"event {at} repeated at {to}"
        case 2:
            frames[at], frames[to] = frames[to], frames[at]
            return f"events {at} and {to} swapped"
        case 3:
            frames.insert(to, frames.pop(at))
            return f"event {at} moved to {to}"
        case 4:
            del frames[at:]
            return f"cut at event {at}"
        case _:
            frames.insert(at, copy.deepcopy(random.choice(STRANGE_FRAMES)))
            return f"a strange event at {at}"


STRANGE_FRAMES: tuple[Frame, ...] = (
    (None, "[DONE]"),
    (None, ""),
    (None, "null"),
    (None, "[]"),
    (None, "not JSON"),
    (None, {"error": {"message": "No.", "type": "server_error", "code": 500}}),
    (None, {"error": "No."}),
    (None, {"choices": []}),
    (None, {"choices": [{"index": 3, "delta": {"content": "Other."}}]}),
    ("error", {"type": "error", "message": "No.", "code": None, "param": None}),
    ("response.failed", {"type": "response.failed", "response": {"error": {"message": "No."}}}),
    ("response.queued", {"type": "response.queued", "response": {}}),
    ("ping", {"type": "ping"}),
    ("response.created", {"type": "response.created", "response": {"id": "other"}}),
)


def plant_canary(random: Random, frames: list[Frame]) -> str:
    payloads = [payload for _, payload in frames if isinstance(payload, dict)]
    if payloads:
        plant(random, random.choice(payloads))
    return "a canary"


# How it is written


def write(random: Random, frames: list[Frame], *, named: bool) -> bytes:
    """Write a stream in one of the many ways that mean the same; `named`: with events' names."""
    end = random.choice(("\n", "\n", "\n", "\r\n", "\r"))
    space, ascii_only = random.choice(("", " ")), random.random() < 0.5
    spread = random.random() < 0.1
    names = named or random.random() < 0.8
    parts = []
    for name, payload in frames:
        data = payload if isinstance(payload, str) else dump(payload, ascii_only, spread)
        lines = [f"event:{space}{name}"] if name and names else []
        lines += [f"data:{space}{line}" for line in data.split("\n")]
        if random.random() < 0.03:
            lines.insert(0, random.choice((": ping", "id: 7", "retry: 100")))
        parts.append(end.join([*lines, "", ""]))
    return "".join(parts).encode(errors="surrogatepass")


def dump(payload: Any, ascii_only: bool, spread: bool) -> str:  # noqa: FBT001 -- drawn together
    """Write JSON; surrogates always escaped."""
    data = json.dumps(payload, ensure_ascii=ascii_only, indent=1 if spread else None)
    # UTF-8 has no bytes for surrogates, and readers differ about those written all the same
    return re.sub("[\ud800-\udfff]", lambda one: f"\\u{ord(one[0]):04x}", data)


def cut(random: Random, data: bytes) -> list[bytes]:
    """Return the bytes as they may arrive: at once, in a few pieces, or one by one."""
    match random.randrange(8):
        case 0 | 1 | 2:
            return [data]
        case 3 if len(data) < 2000:
            return [data[at : at + 1] for at in range(len(data))]
        case _:
            count = min(len(data), random.choice((1, 2, 5, 30)))
            cuts = sorted(random.sample(range(len(data)), count)) if data else []
            return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True) if a < b]
