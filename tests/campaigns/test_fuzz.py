"""The short fuzz run, the cases that were findings once, and that the campaign would notice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from tests.campaigns.fuzz import __main__ as fuzz
from tests.campaigns.fuzz.case import CASES, Case
from tests.campaigns.fuzz.run import watching
from tests.campaigns.fuzz.world import World, Worlds
from tests.campaigns.reader import read
from tests.campaigns.secret import leaks, sentence
from tests.support.matrix import some

SHORT = 300
"""Cases of each kind, if all are tried."""

NOT_YET = pytest.mark.xfail(strict=True, reason="not mended yet; once it is, move it up a folder")
FOUND = [
    *(pytest.param(path, id=path.stem) for path in sorted(CASES.glob("*.json"))),
    *(
        pytest.param(path, id=path.stem, marks=NOT_YET)
        for path in sorted(CASES.glob("open/*.json"))
    ),
]


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_a_short_run_finds_nothing(kind: str, tmp_path: Path) -> None:
    arguments = [
        "--cases",
        str(some(SHORT)),
        "--kind",
        kind,
        "--seed",
        "1",
        "--findings",
        str(tmp_path),
    ]
    assert fuzz.main(arguments) == 0


@pytest.mark.parametrize("path", FOUND)
async def test_what_was_found_stays_mended(path: Path) -> None:
    with watching() as watch:
        assert await fuzz.run(Case.load(path), Worlds(), watch) == []


# That it would notice


class Broken:
    """The app of a world, its output changed on the way."""

    def __init__(self, app: Any, change: Callable[[bytes], bytes]) -> None:
        self._app = app
        self._change = change

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def changed(message: Message) -> None:
            if message.get("body"):
                message = {**message, "body": self._change(message["body"])}
            await send(message)

        await self._app(scope, receive, changed)
        self._change(b"")


def crash(data: bytes) -> bytes:
    """Fail once all is said."""
    if not data:
        raise ZeroDivisionError
    return data


FAULTS: dict[str, Callable[[bytes], bytes]] = {
    "leak": lambda data: data.replace(b"Answer", b"\xea\x84\x80"),
    "altered": lambda data: data.replace(b"Answer", b"Answr"),
    "illegal": lambda data: data.replace(b"data: [DONE]\n\n", b"").removesuffix(b"\n"),
    "exception": crash,
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make = await fuzz.KINDS["streams"](1)
    drawn = (make(Random(number)) for number in range(5000))
    case = next(
        one
        for one in drawn
        if (one.harm, one.stream, one.world["expose"]) == ("none", True, "summary")
        and one.world["summarizer"] == "good"
        and "Answer" in "".join(one.pieces)
    )
    worlds = Worlds()
    with watching() as watch:
        assert await fuzz.run(case, worlds, watch) == []
        world: World = worlds.get(case.world)
        world.app = Broken(world.app, FAULTS[fault])
        wrong = await fuzz.run(case, worlds, watch)
    assert any(one.startswith(fault) for one in wrong)


# Its parts


@pytest.mark.parametrize(
    "write",
    [
        lambda text: text.encode(),
        lambda text: json.dumps(text).encode(),
        lambda text: json.dumps(text).upper().replace("\\U", "\\u").encode(),
        lambda text: b"".join(b"%%%X" % byte for byte in text.encode()),
    ],
    ids=["utf-8", "escaped", "escaped in capitals", "quoted"],
)
def test_secret_letters_are_found_however_written(write: Callable[[str], bytes]) -> None:
    text = sentence(Random(1), 40)
    assert len(leaks(write(text))) == sum(ord(letter) > 127 for letter in text)


def test_the_reader_reads_every_way_to_write_a_stream() -> None:
    chunk = '{"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}'
    for end in ("\n", "\r", "\r\n"):
        data = f"\ufeff: x{end}event:y{end}data:{chunk[:12]}{end}data: {chunk[12:]}{end}{end}"
        found = read("chat", data.encode(), stream=True)
        assert (found.text, found.ended, found.broken) == ("a", "well", 0)
