"""Test that no way in which raw reasoning may come from Chat Completions leads out.

Where nothing is hidden, all that is said in these ways passes: so each of them says something.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import pytest

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.delta_patterns import FrameReader
from abridge.apis.messages.api import MESSAGES
from abridge.apis.responses.api import RESPONSES
from abridge.apis.sse import FrameDecoder
from abridge.core.events import Event
from abridge.providers.catalog import PROFILES
from tests.end_to_end.chat_frames import FRAMES, LEARNED, content, ending
from tests.end_to_end.chat_ways import SECRET, WAYS
from tests.support.matrix import batches, each_in_turn
from tests.support.messages_checker import CHECKS
from tests.support.pipeline import Pipeline

CLIENTS = (CHAT, RESPONSES, MESSAGES)
EXPOSURES = ("summary", "none")
NUMBERS = {name: number for number, name in enumerate(WAYS)}


def new_pipeline(client: Api, expose: str, profile: str) -> Pipeline:
    return Pipeline(
        client,
        expose=expose,  # type: ignore[arg-type]
        profile=PROFILES[profile],
        write=lambda _: "**Part**\n\nSaid.",
        upstream=None if client is CHAT else CHAT.name,
    )


def said(payloads: Iterable[Any]) -> str:
    """Return all strings in these payloads, with those of one place joined as a client joins
    deltas; and all keys."""
    places: dict[tuple[Any, ...], str] = defaultdict(str)

    def walk(value: Any, place: tuple[Any, ...]) -> None:
        if isinstance(value, dict):
            place = (*place, value.get("index"), value.get("output_index"))
            for key, inner in value.items():
                places[()] += f"{key}\n"
                walk(inner, (*place, key))
        elif isinstance(value, list):
            for inner in value:
                walk(inner, place)
        elif isinstance(value, str):
            places[place] += value

    for payload in payloads:
        walk(payload, (payload.get("type"),))
    return "\n".join(places.values())


def said_in_stream(client: Api, out: bytes) -> str:
    CHECKS[client.name](out)
    data = [frame.partition(b"data: ")[2] for frame in out.split(b"\n\n")]
    return said(json.loads(one) for one in data if one.startswith(b"{")) + out.decode()


def cases(number: int, unless: str, *, many: bool) -> Iterator[tuple[str, Api, str]]:
    """Yield profiles that do not vouch for a way, with clients and exposures: `auto` with the
    client of the same API and one of the others, and another profile with one, each its turn."""
    profiles = [name for name in PROFILES if not (unless and getattr(PROFILES[name], unless))]
    if many:
        yield from product({"auto", *profiles[number % 5 :: 5]}, CLIENTS, EXPOSURES)
        return
    for turn, client in enumerate((CHAT, CLIENTS[1 + number % 2]), start=number // 2):
        yield "auto", client, EXPOSURES[turn % len(EXPOSURES)]
    client = CLIENTS[number // len(profiles) % len(CLIENTS)]
    yield profiles[number % len(profiles)], client, EXPOSURES[number // 2 % len(EXPOSURES)]


@pytest.mark.parametrize("names", batches(WAYS))
def test_no_way_leads_out(names: list[str], request: pytest.FixtureRequest) -> None:
    for name in names:
        check_way(name, many=request.config.getoption("--matrix"))


def check_way(name: str, *, many: bool) -> None:
    way = WAYS[name]
    streams = (way.stream(), way.split_stream(1), way.split_stream(5))
    for turn, (profile, client, expose) in enumerate(cases(NUMBERS[name], way.unless, many=many)):
        where = name, profile, client.name, expose
        for stream in streams if many else streams[(NUMBERS[name] + turn) % len(streams) :][:1]:
            out = new_pipeline(client, expose, profile).stream(stream)
            assert SECRET not in said_in_stream(client, out), where
        out = new_pipeline(client, expose, profile).whole(way.body())
        assert SECRET not in said([json.loads(out or b"{}")]), where
        assert SECRET.encode() not in out, where


@pytest.mark.parametrize("names", batches(WAYS))
def test_each_leads_out_where_nothing_is_hidden(names: list[str]) -> None:
    for name in names:
        streamed = new_pipeline(CHAT, "both", "auto").stream(WAYS[name].stream())
        whole = new_pipeline(CHAT, "raw", "auto").whole(WAYS[name].body())
        assert SECRET in (streamed + whole).decode(), name


def as_it_comes(pipeline: Pipeline, reads: Iterable[bytes]) -> bytes:
    """Pass a stream of which each frame comes by itself, as `StreamAnswer` does."""
    decoder = FrameDecoder(1 << 20)
    for data in reads:
        for frame in decoder.feed(data):
            pipeline.frame(frame)
    for frame in decoder.end():
        pipeline.frame(frame)
    pipeline.close()
    return bytes(pipeline.out)


@pytest.mark.parametrize("names", batches(FRAMES))
def test_no_frame_leads_out(names: list[str], request: pytest.FixtureRequest) -> None:
    many = request.config.getoption("--matrix")
    for name in names:
        number = list(FRAMES).index(name)
        for ends in each_in_turn((True, False), number, 2):
            check_frame(name, number + ends, many=many, ends=ends)


def check_frame(name: str, number: int, *, many: bool, ends: bool) -> None:
    frames = [*LEARNED, *FRAMES[name], *(ending(FRAMES[name]) if ends else ())]
    for profile, client, expose in cases(number, "", many=many):
        out = as_it_comes(new_pipeline(client, expose, profile), frames)
        where, heard = (name, ends, profile, client.name, expose), said_in_stream(client, out)
        assert SECRET not in heard, where
        at_once = new_pipeline(client, expose, profile).stream(b"".join(frames))
        assert said_in_stream(client, at_once) == heard, where


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_frames_like_those_are_read_by_their_patterns(
    client: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed, parse = list[bytes](), FrameReader._parse

    def note(self: FrameReader, frame: bytes) -> list[Event]:
        parsed.append(frame)
        return parse(self, frame)

    monkeypatch.setattr(FrameReader, "_parse", note)
    frames = new_pipeline(client, "none", "auto").frames
    for frame in [*LEARNED, content("d"), content("<think>")]:
        frames.read([frame])
    assert content("d") not in parsed
    assert content("<think>") in parsed
