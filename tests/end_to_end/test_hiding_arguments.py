"""Test that of a call's arguments only JSON reaches clients where reasoning is hidden, and all of
that: over every client's and every upstream's API, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from abridge.apis.api import Api
from abridge.apis.display import Exposure
from abridge.apis.registry import APIS
from tests.apis.gemini import scripts as gemini
from tests.apis.messages import scripts as messages
from tests.support.hiding import said
from tests.support.matrix import each_in_turn
from tests.support.pipeline import Pipeline, all_clients
from tests.support.streams import (
    DONE,
    call,
    call_item,
    chunk,
    completion,
    numbered,
    response,
    responses_stream,
)

SECRET = "the user wants SECRET, so I'd say"
CITY = '{"city": "Paris"}'

STRAY: Mapping[str, tuple[str, str]] = {
    "before": (f"Okay, {SECRET}: {CITY}", CITY),
    "after": (f"{CITY}\nWait, {SECRET}: no.", f"{CITY}\n"),
    "between two values": (f"{{}}{SECRET} {CITY}", f"{{}}{CITY}"),
    "around a fence": (f"{SECRET}:\n```json\n{CITY}\n```\n{SECRET}", f"{CITY}\n"),
    "in a comment": (f'{{"a": 1, // {SECRET}\n"b": 2}}', '{"a": 1, \n"b": 2}'),
    "between members": (f'{{"a": 1, {SECRET}. "b": 2}}', '{"a": 1, "b": 2}'),
    "with quotes": (f'Hm. "{SECRET}", "SECRET". {CITY}', CITY),
    "with links": (f"See [SECRET](SECRET) and {{SECRET}}. {CITY}", CITY),
    "in Chinese": (f"我想SECRET。{CITY}SECRET吧", CITY),
    "a tag of the call": (f"{CITY}</tool_call>SECRET", CITY),
    "a block with JSON in it": (f'<think>{{"SECRET": 1}} {SECRET}</think>{CITY}', CITY),
    "nothing else": (f"Hm, {SECRET}", ""),
}
"""Arguments with something else around them, and what is left of them."""

JSON_TEXTS: Mapping[str, str] = {
    "an object": CITY,
    "an empty one": "{}",
    "several values": '{"city": "Paris"}{"city": "Rome"}',
    "an empty one first": f"{{}}{CITY}",
    "lines": f"{CITY}\n{CITY}\n",
    "blanks": '{\n  "city":\t"Paris" ,\n  "n" : [ 1 , 2 ]\n}\n',
    "all kinds of values": '{"a": [true, false, null, -1.5e-3, 0, {}, []], "b": {"c": "d"}}',
    "figures that are none": '{"a": NaN, "b": -Infinity}',
    "a long number": f'{{"a": {"7" * 200}}}',
    "Python's": "{'city': 'Paris', 'now': True, 'why': None, 'who': 'the user\\'s', \"it\": '\"'}",
    "a comma too many": '{"a": [1, 2,],}',
    "cut within a string": '{"city": "Par',
    "cut within a word": '{"now": tru',
    "cut after an escape": '{"city": "a\\',
    "escapes": '{"code": "say(\\"hi\\")\\n# C:\\\\dir\\\\", "u": "\\u00e9\\ud83d\\ude00"}',
    "text in a string": '{"why": "I\'d say: {no}, [maybe] \\"so\\" // it\'s, `x`"}',
    "Chinese": '{"城市": "巴黎，我想去"}',
    "a string of JSON": '"{\\"city\\": \\"Paris\\"}"',
    "a list": '["a", "b"]',
}
"""Arguments that clients can read, some after a repair, or that break off."""


def _cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def _chat(arguments: str, size: int | None) -> bytes:
    if size is None:
        return json.dumps(completion({"tool_calls": [call("look", arguments)]})).encode()
    pieces = [{"index": 0, "function": {"arguments": piece}} for piece in _cut(arguments, size)]
    calls = [{"index": 0, **call("look", "")}, *pieces]
    deltas = [chunk({"tool_calls": [each]}) for each in calls]
    return b"".join([*deltas, chunk({}, finish="tool_calls"), DONE])


def _legacy(arguments: str, size: int | None) -> bytes:
    named = {"name": "look", "arguments": arguments}
    if size is None:
        return json.dumps(completion({"function_call": named})).encode()
    calls = [{**named, "arguments": ""}, *({"arguments": piece} for piece in _cut(arguments, size))]
    deltas = [chunk({"function_call": each}) for each in calls]
    return b"".join([*deltas, chunk({}, finish="function_call"), DONE])


def _responses(arguments: str, size: int | None) -> bytes:
    item = call_item(0, "look", arguments)
    if size is None:
        return json.dumps(response([item])).encode()
    frames = [json.loads(frame.split(b"data: ")[1]) for frame in responses_stream([item])]
    first = next(each for each in frames if each["type"].endswith("arguments.delta"))
    at = frames.index(first)
    deltas = [{**first, "delta": piece} for piece in _cut(arguments, size)]
    rest = [each for each in frames[at:] if each["type"] != first["type"]]
    return b"".join(numbered(*frames[:at], *deltas, *rest))


def _messages(arguments: str, size: int | None) -> bytes:
    pieces = _cut(arguments, size or len(arguments) or 1)
    return b"".join(
        [
            messages.begin(),
            messages.start(0, messages.tool_use()),
            *(messages.delta(0, "input_json", partial_json=piece) for piece in pieces),
            messages.stop(0),
            *messages.finish_at_once("tool_use"),
        ]
    )


ANSWERS: Mapping[str, tuple[str, Callable[[str, int | None], bytes]]] = {
    "chat": ("chat", _chat),
    "chat, function_call": ("chat", _legacy),
    "responses": ("responses", _responses),
    "messages": ("messages", _messages),
}
"""How each API says the arguments as text. Gemini's has objects only."""

EACH = pytest.mark.parametrize("upstream", ANSWERS)


def turn(upstream: str, client: Api) -> int:
    return [*ANSWERS].index(upstream) + APIS.index(client)


SIZES = (None, 1, 2, 5, 1000)


def _shown(
    client: Api, upstream: str, arguments: str, size: int | None, expose: Exposure = "none"
) -> bytes:
    api, answer = ANSWERS[upstream]
    pipeline = Pipeline(client, expose=expose, upstream=None if api == client.name else api)
    is_stream = size is not None or api == "messages"
    body = answer(arguments, size)
    return pipeline.stream(body) if is_stream else pipeline.whole(body)


def _streamed_arguments(out: bytes) -> str:
    lines = (line[6:] for line in out.splitlines() if line.startswith(b"data: {"))
    return "".join(piece for line in lines for piece in _pieces(json.loads(line)))


def _strings(out: bytes) -> str:
    return said(out.decode(), streamed=False)


def _pieces(event: dict[str, Any]) -> Iterator[str]:
    """Yield the arguments in an event of any API."""
    if event.get("type") == "response.function_call_arguments.delta":
        yield event["delta"]
    yield event.get("delta", {}).get("partial_json", "") if "index" in event else ""
    for choice in event.get("choices", ()):
        delta = choice["delta"]
        yield from (one["function"].get("arguments", "") for one in delta.get("tool_calls") or ())
        yield (delta.get("function_call") or {}).get("arguments", "")


@all_clients
@EACH
def test_what_is_no_json_of_arguments_is_hidden(upstream: str, client: Api) -> None:
    for name, (arguments, left) in each_in_turn(STRAY.items(), turn(upstream, client), len(APIS)):
        for size in SIZES:
            out = _shown(client, upstream, arguments, size)
            assert b"SECRET" not in out, (name, size)
            if b"data: " in out:
                seen = "".join(_streamed_arguments(out).split()).removeprefix("{}")
                assert seen == "".join(left.split()).removeprefix("{}"), (name, size)


@all_clients
@EACH
def test_json_of_arguments_stays_as_it_is(upstream: str, client: Api) -> None:
    for name, arguments in each_in_turn(JSON_TEXTS.items(), turn(upstream, client), len(APIS)):
        for size in SIZES:
            hidden = _shown(client, upstream, arguments, size)
            shown = _shown(client, upstream, arguments, size, expose="raw")
            if b"data: " in hidden:
                assert _streamed_arguments(hidden) == _streamed_arguments(shown) != "", name
            else:
                assert _strings(hidden) == _strings(shown), name


@all_clients
def test_arguments_of_gemini_stay_as_they_are(client: Api) -> None:
    arguments = {"city": "Paris", "why": 'I\'d say: {no} "so"', "n": [1, 2.5, None, True]}
    part = gemini.function_call("call_1", **arguments)
    out = Pipeline(client, expose="none", upstream="gemini").stream(b"".join(gemini.stream([part])))
    assert json.loads(_streamed_arguments(out)) == arguments
