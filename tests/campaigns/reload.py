"""Reload: `python -m tests.campaigns.reload [--streams N] [--reloads N] [--workers N]`.

Streams run at all times, each through one of two upstreams, while the settings change between them
again and again, now and then to some that cannot be used. Each stream says which upstream and which
request it belongs to in every piece. It must come whole, and as the settings have it under which it
began: one upstream's reasoning is shown, the other's is hidden.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import random
from tempfile import TemporaryDirectory

import httpx
from starlette.types import Receive, Scope, Send

from tests.campaigns.cores import Starvation
from tests.campaigns.paced import Answer, Shape, answer, client_for
from tests.campaigns.verdict import tell
from tests.support.asgi import body_of
from tests.support.metrics_text import Metrics, scrape
from tests.support.servers import serve
from tests.support.sidecar import HANG_UP, Sidecar, client, sidecar
from tests.support.streams import CHAT_USAGE

PATIENCE = 120.0

RETRY_SECONDS = 0.5
"""Seconds after a stream that failed before the next is begun in its place."""

SETTLED = 6.0
"""Seconds after the last request in which all idle connections are closed."""

MISTAKE_EACH = 5
"""One change in so many cannot be used."""

MORE_FILES, MORE_MEMORY = 8, 24.0
"""How many more descriptors, and MiB, the second half of the changes may leave behind."""

SHOWS, HIDES = "A", "B"
"""The upstream whose reasoning is shown, and the one whose is hidden."""

GAUGES = ("requests_in_flight", "streams_open", "summarizer_in_flight", "breaker_open")

FORMS = "<{letter}{number}r{piece}> ", "<{letter}{number}c{piece}> "
"""What the pieces of reasoning and of text say."""

_SAID = re.compile(r"<(\w)(\d+)([rc])(\d+)>")


class Upstream:
    """A model that says its letter, the number of the request and that of the piece."""

    def __init__(self, letter: str, shape: Shape) -> None:
        self._letter = letter
        self._shape = shape

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        number = json.loads(await body_of(receive))["messages"][0]["content"]
        await answer(send, self._shape, FORMS, CHAT_USAGE, letter=self._letter, number=number)


class Changes:
    """The file of settings, and which of them may be in force."""

    def __init__(self, file: Path, urls: dict[str, str], workers: int) -> None:
        self._file = file
        self._urls = urls
        self._workers = workers
        self._number = 0
        self.possible = {SHOWS}
        """The letters of the settings in force, and of those that are about to be."""
        self.history: list[set[str]] = []
        self._write(SHOWS)

    @property
    def letter(self) -> str:
        (letter,) = self.possible
        return letter

    async def make(self, running: Sidecar, *, wrong: bool) -> None:
        """Change the settings, and wait until every process has taken them over, or refused."""
        self._number += 1
        before, new = self.letter, HIDES if self.letter == SHOWS else SHOWS
        self._write(new, wrong=wrong)
        self.possible |= set() if wrong else {new}
        seen = len(running.output)
        running.signal(HANG_UP)
        words = "settings not reloaded" if wrong else "settings reloaded"
        async with asyncio.timeout(PATIENCE):
            while running.output.count(words, seen) < self._workers:
                assert running.process.stderr is not None
                running.output += (await running.process.stderr.readline()).decode()
        self.possible = {before if wrong else new}

    def _write(self, letter: str, *, wrong: bool = False) -> None:
        text = f"""
[[upstreams]]
name = "{letter}"
base_url = "{self._urls[letter]}/v1"
api = "chat"
[summary]
default = "{"auto" if letter == SHOWS else "off"}"
[reasoning]
expose = "{"both" if letter == SHOWS else "none"}"
[limits]
client_share = 1.0
in_flight = {"0" if wrong else 4000 + self._number}
[history]
keep = "none"
bytes = "1MiB"
[server]
workers = {self._workers}
"""
        new = self._file.with_suffix(".new")
        new.write_text(text)
        new.replace(self._file)


@dataclass
class Streams:
    """Keeps so many streams open, until told to stop."""

    session: httpx.AsyncClient
    url: str
    changes: Changes
    shape: Shape

    def __post_init__(self) -> None:
        self.letters: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.open = 0
        self._number = 0
        self._stopped = False

    async def keep(self, count: int) -> None:
        await asyncio.gather(*(self._go_on() for _ in range(count)))

    def stop(self) -> None:
        """Begin no more; those that are open come to their end."""
        self._stopped = True

    async def _go_on(self) -> None:
        await asyncio.sleep(self.shape.seconds / 2 * random())
        while not self._stopped:
            self._number += 1
            number, possible = self._number, set(self.changes.possible)
            self.open += 1
            try:
                problem = await self._stream(number, possible)
            except (httpx.HTTPError, ValueError) as error:
                problem = repr(error)
            self.open -= 1
            if problem is not None:
                self.wrong.append(f"stream {number}: {problem}")
                await asyncio.sleep(RETRY_SECONDS)

    async def _stream(self, number: int, possible: set[str]) -> str | None:
        """Return what is wrong with one stream."""
        asked = {
            "model": "m",
            "stream": True,
            "messages": [{"role": "user", "content": f"{number}"}],
        }
        found, url = Answer(), f"{self.url}/v1/chat/completions"
        async with self.session.stream("POST", url, json=asked) as response:
            possible |= self.changes.possible
            if response.status_code != 200:
                return f"status {response.status_code}: {(await response.aread())[:200]!r}"
            await found.read(response)
        return self._judge(number, possible, found) if found.ended else "did not end"

    def _judge(self, number: int, possible: set[str], found: Answer) -> str | None:
        pieces = [match.groups() for match in _SAID.finditer(found.text)]
        letter = pieces[0][0] if pieces else ""
        if letter not in possible:
            return f"was answered by {letter!r}, not {possible}"
        self.letters[letter] += 1
        whole = [(letter, f"{number}", "c", f"{piece}") for piece in range(self.shape.pieces)]
        if pieces != whole:
            return f"its text is {found.text[:200]!r}"
        raw = found.raw if letter == SHOWS else found.raw + found.summary
        shown = [match.groups() for match in _SAID.finditer(raw)]
        due = [(letter, f"{number}", "r", f"{piece}") for piece in range(self.shape.pieces)]
        if shown != (due if letter == SHOWS else []):
            return f"under {letter} its reasoning is {raw[:200]!r}"
        return None


@dataclass(frozen=True)
class Held:
    """What the processes hold while nothing is under way."""

    files: int
    memory: float  # in MiB

    @classmethod
    def by(cls, pids: Sequence[int]) -> Held:
        folders = [Path(f"/proc/{pid}") for pid in pids]
        pages = [int((folder / "statm").read_text().split()[1]) for folder in folders]
        files = sum(len(list((folder / "fd").iterdir())) for folder in folders)
        return cls(files, sum(pages) * 4096 / (1 << 20))


@asynccontextmanager
async def stage(shape: Shape, workers: int) -> AsyncIterator[tuple[Sidecar, Changes]]:
    with TemporaryDirectory() as folder:
        async with (
            serve(Upstream(SHOWS, shape), log_level="critical", backlog=2048) as first,
            serve(Upstream(HIDES, shape), log_level="critical", backlog=2048) as second,
        ):
            file = Path(folder) / "abridge.toml"
            changes = Changes(file, {SHOWS: first, HIDES: second}, workers)
            async with sidecar("--config", str(file)) as running:
                yield running, changes


async def campaign(streams: int, reloads: int, shape: Shape, workers: int) -> int:
    """Return how many things were wrong."""
    wrong: list[str] = []
    async with stage(shape, workers) as (running, changes):
        pids = [running.process.pid, *(running.workers if workers > 1 else ())]
        starvation, held = Starvation({f"process {pid}": pid for pid in pids}), list[Held]()
        async with client_for(PATIENCE) as session:
            for half in (reloads // 2, reloads - reloads // 2):
                load = Streams(session, running.url, changes, shape)
                began = time.monotonic()
                keeping = asyncio.create_task(load.keep(streams))
                wrong += await change(running, changes, load, half)
                load.stop()
                await keeping
                wrong += load.wrong
                await asyncio.sleep(SETTLED)
                held.append(Held.by(pids))
                seconds, letters = time.monotonic() - began, dict(load.letters)
                print(f"{half} changes in {seconds:.0f} s; streams by upstream: {letters}")
        async with client() as one:
            wrong += judge(await scrape(one, running.metrics), held, reloads, workers)
        print(starvation.report())
    return tell(wrong)


async def change(running: Sidecar, changes: Changes, load: Streams, times: int) -> list[str]:
    """Change the settings so often under the load, about six times in the time that a stream takes.
    Return where a change took too long for the streams to be under way."""
    await asyncio.sleep(load.shape.seconds / 2)
    for number in range(1, times + 1):
        await changes.make(running, wrong=number % MISTAKE_EACH == 0)
        await asyncio.sleep(load.shape.seconds / 6)
    return [] if load.open else ["no stream was open under the changes"]


def judge(counted: Metrics, held: list[Held], reloads: int, workers: int) -> list[str]:
    """Return what is wrong once all is over."""
    outcomes = {
        outcome: counted.total("reloads_total", outcome=outcome)
        for outcome in ("applied", "refused")
    }
    mistakes = sum(half // MISTAKE_EACH for half in (reloads // 2, reloads - reloads // 2))
    wrong = []
    print(f"reloads: {outcomes}; held after each half: {held}")
    if outcomes["refused"] != mistakes * workers:
        wrong.append(f"{outcomes['refused']:g} changes were refused, not {mistakes * workers}")
    if sum(outcomes.values()) != reloads * workers:
        wrong.append(f"{sum(outcomes.values()):g} changes were counted")
    left = {name: counted.total(name) for name in GAUGES}
    wrong += [f"{name} is {value:g} at the end" for name, value in left.items() if value]
    first, last = held
    if last.files > first.files + MORE_FILES:
        wrong.append(f"descriptors grew from {first.files} to {last.files}")
    if last.memory > first.memory + MORE_MEMORY:
        wrong.append(f"memory grew from {first.memory:.0f} to {last.memory:.0f} MiB")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.reload", description=__doc__)
    parser.add_argument("--streams", type=int, default=500, help="open at once")
    parser.add_argument("--reloads", type=int, default=50)
    parser.add_argument("--pieces", type=int, default=20, help="of the reasoning and of the text")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between two pieces")
    parser.add_argument("--workers", type=int, default=1)
    parsed = parser.parse_args(arguments)
    shape = Shape(parsed.pieces, parsed.pause)
    return asyncio.run(campaign(parsed.streams, parsed.reloads, shape, parsed.workers))


if __name__ == "__main__":
    sys.exit(min(main(), 1))
