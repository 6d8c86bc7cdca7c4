"""Mutants of request bodies: every field, of any type, size, nesting and encoding."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

from tests.campaigns.fuzz import streams
from tests.campaigns.fuzz.case import Case, Json, latin
from tests.campaigns.fuzz.mutations import harm_bytes, harm_json, write
from tests.campaigns.fuzz.run import PROMPT
from tests.campaigns.fuzz.world import BODY

IMAGE = "data:image/png;base64,iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
SHARED: Json = {
    "model": "m",
    "metadata": {"a": "b"},
    "temperature": 0.5,
    "top_p": 0.9,
    "user": "u",
    "store": False,
    "service_tier": "auto",
    "parallel_tool_calls": True,
    "prompt_cache_key": "k",
    "safety_identifier": "s",
    "reasoning": {"effort": "high", "summary": "auto"},
    "extra_body": {"x": 1},
}


def chat() -> Json:
    """Return a request that uses every field of Chat Completions."""
    called = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    parts: list[Json] = [
        {"type": "text", "text": PROMPT},
        {"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "file", "file": {"file_data": "AAAA", "filename": "a.pdf"}},
    ]
    return {
        **SHARED,
        "messages": [
            {"role": "system", "content": PROMPT},
            {"role": "developer", "content": [{"type": "text", "text": PROMPT}]},
            {"role": "user", "name": "u", "content": parts},
            {
                "role": "assistant",
                "content": None,
                "refusal": None,
                "tool_calls": [called],
                "reasoning_content": "I look.",
                "reasoning_details": [{"type": "reasoning.text", "text": "I look.", "index": 0}],
                "summary_error": {"code": "timeout", "message": "No."},
            },
            {"role": "tool", "tool_call_id": "c1", "content": "Seen."},
            {"role": "assistant", "content": "Seen.", "thinking_blocks": [{"type": "thinking"}]},
            {"role": "user", "content": PROMPT},
        ],
        "stream_options": {"include_usage": True, "include_obfuscation": False},
        "tools": [
            {"type": "function", "function": {"name": "look", "parameters": SCHEMA}},
            {"type": "custom", "custom": {"name": "say", "format": {"type": "text"}}},
        ],
        "tool_choice": {"type": "function", "function": {"name": "look"}},
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}},
        "n": 1,
        "seed": 1,
        "stop": ["x"],
        "max_tokens": 10,
        "max_completion_tokens": 10,
        "logprobs": False,
        "top_logprobs": 0,
        "logit_bias": {"1": 1},
        "modalities": ["text"],
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "reasoning_effort": "low",
        "verbosity": "low",
        "prediction": {"type": "content", "content": "x"},
    }


def responses() -> Json:
    """Return a request that uses every field of Responses."""
    summary = [{"type": "summary_text", "text": "I look."}]
    called = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
    return {
        **SHARED,
        "instructions": PROMPT,
        "input": [
            {"role": "user", "content": PROMPT},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": PROMPT},
                    {"type": "input_image", "image_url": IMAGE, "detail": "low"},
                    {"type": "input_file", "file_data": "AAAA", "filename": "a.pdf"},
                ],
            },
            {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "c2Vh"},
            {**called, "id": "fc_1"},
            {"type": "function_call_output", "call_id": "c1", "output": "Seen."},
            {"type": "item_reference", "id": "msg_9"},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Seen.", "annotations": []}],
            },
        ],
        "include": ["reasoning.encrypted_content"],
        "tools": [{"type": "function", "name": "look", "parameters": SCHEMA, "strict": True}],
        "tool_choice": "auto",
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "max_output_tokens": 10,
        "max_tool_calls": 2,
        "truncation": "auto",
        "top_logprobs": 0,
        "previous_response_id": None,
        "conversation": None,
        "background": False,
        "prompt": None,
        "stream_options": {"include_obfuscation": False},
    }


FULL = {"chat": chat, "responses": responses}


def make(random: Random, specs: list[Json]) -> Case:
    """Draw a case: the request is odd, the answer is good."""
    spec = random.choice(specs)
    source = spec["client"] if spec["upstream"] == "same" else spec["upstream"]
    case = Case("bodies", spec, streams.PATHS[spec["client"]], "", harm="none", refusable=True)
    asked: Any = _smaller(random, FULL[spec["client"]](), spec["client"])
    asked["stream"] = random.random() < 0.7
    for _ in range(random.choice((0, 1, 1, 1, 2, 5))):
        case.changes.append(harm_json(random, asked))
    if random.random() < 0.03:
        asked = random.choice((None, [], [asked], "x", 5, [[]] * 50))
    body = json.dumps(asked, ensure_ascii=random.random() < 0.5).encode(errors="surrogatepass")
    case.body = latin(_encoded(random, body, case))
    frames = streams.streamed(random, source, "none")
    case.pieces = [latin(write(random, frames, named=True))]
    case.answer_headers = streams.STREAM
    whole = streams.whole(random, source)
    case.whole = latin(json.dumps(whole).encode())
    return case


def _smaller(random: Random, asked: Json, api: str) -> Json:
    """Keep what every request has and a random part of the rest."""
    share = random.choice((0.0, 0.3, 1.0))
    kept = ("model", "messages", "input", "reasoning")
    return {key: each for key, each in asked.items() if key in kept or random.random() < share}


def _encoded(random: Random, body: bytes, case: Case) -> bytes:
    """Change the bytes or headers of a body, seldom more than once; note what was done."""
    for change in random.sample(ENCODINGS, random.choice((0, 0, 0, 1, 1, 2))):
        body = change(random, body, case)
        case.changes.append(change.__name__.strip("_"))
    return body


def _bytes(random: Random, body: bytes, case: Case) -> bytes:
    return harm_bytes(random, body)[0]


def _gzip(random: Random, body: bytes, case: Case) -> bytes:
    case.headers["content-encoding"] = random.choice(("gzip", "GZIP", "x-gzip", "gzip, gzip"))
    return gzip.compress(body)


def _broken_gzip(random: Random, body: bytes, case: Case) -> bytes:
    case.headers["content-encoding"] = random.choice(("gzip", "deflate", "br", "zstd", "identity"))
    return harm_bytes(random, gzip.compress(body))[0]


def _bomb(random: Random, body: bytes, case: Case) -> bytes:
    case.headers["content-encoding"] = "deflate"
    return zlib.compress(b" " * (64 * BODY) + body, 9)


def _charset(random: Random, body: bytes, case: Case) -> bytes:
    name = random.choice(("utf-16", "utf-8-sig", "utf-32", "latin-1"))
    return body.decode(errors="replace").encode(name, errors="replace")


def _large(random: Random, body: bytes, case: Case) -> bytes:
    return body[:-1] + b" " * random.choice((BODY // 2, BODY - len(body), BODY, 2 * BODY)) + b"}"


def _nested(random: Random, body: bytes, case: Case) -> bytes:
    opening, closing = random.choice(((b"[", b"]"), (b'{"a":', b"}")))
    depth = random.choice((100, 254, 255, 500, 1000, 1025, 20_000))
    return body[:-1] + b',"deep":' + opening * depth + b"1" + closing * depth + b"}"


def _many(random: Random, body: bytes, case: Case) -> bytes:
    what = random.choice((b"{}", b"null", b'{"role":"user","content":""}', b"[]"))
    name = random.choice((b"messages", b"input", b"tools", b"x"))
    return body[:-1] + b',"' + name + b'":[' + b",".join([what] * 5000) + b"]}"


def _twice(random: Random, body: bytes, case: Case) -> bytes:
    name = random.choice((b"stream", b"model", b"messages", b"input", b"reasoning"))
    value = random.choice((b"true", b"null", b'"x"', b"[]", b'{"summary":"auto"}'))
    return body[:-1] + b',"' + name + b'":' + value + b"}"


def _header(random: Random, body: bytes, case: Case) -> bytes:
    case.headers |= random.choice(HEADERS)
    return body


HEADERS: tuple[dict[str, str], ...] = (
    {"content-type": "text/plain"},
    {"content-type": ""},
    {"content-type": "application/json; charset=utf-16"},
    {"accept": "text/event-stream"},
    {"authorization": "Bearer " + "x" * 8000},
    {"authorization": ""},
    {"x-request-id": "a b\x01"},
    {"traceparent": "00-" + "0" * 32 + "-x"},
    {"x-abridge-summary": "detailed"},
    {"x-abridge-summary": "\xff"},
    {"x-abridge-summary-language": "de"},
    {"x-abridge-summary-language": "\xff"},
    {"x-abridge-usage": "odd"},
    {"x-abridge-call": "summary"},
    {"expect": "100-continue"},
    {"transfer-encoding": "chunked"},
    {"content-length": "7"},
)

Encoding = Callable[[Random, bytes, Case], bytes]
ENCODINGS: tuple[Encoding, ...] = (
    *(
        _bytes,
        _bytes,
        _gzip,
        _broken_gzip,
        _bomb,
        _charset,
        _large,
        _nested,
        _many,
        _twice,
        _header,
    ),
)
