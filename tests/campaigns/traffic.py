"""Send requests, and judge each answer by what upstream was to say."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx

from tests.campaigns.reader import read
from tests.campaigns.script import FAULTS, Script
from tests.campaigns.secret import leaks
from tests.campaigns.stage import HIDDEN, MODELS
from tests.support.checker import check_chat, check_responses

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}
PATIENCE = 60.0
"""Seconds after which a request is said to hang."""


@dataclass(frozen=True)
class Job:
    """A request."""

    script: Script
    api: str
    model: str
    stream: bool
    leaves: bool = False  # the client leaves in the middle

    @property
    def body(self) -> dict[str, Any]:
        prompt = [{"role": "user", "content": self.script.prompt}]
        base = {"model": self.model, "stream": self.stream, "reasoning": {"summary": "auto"}}
        return {**base, ("messages" if self.api == "chat" else "input"): prompt}


@dataclass(frozen=True)
class Outcome:
    """What a client saw: `ok`, `failed` or `cut` in the answer, a status, or an exception's name.

    `wrong` says what must never be.
    """

    job: Job
    kind: str
    seconds: float
    wrong: str = ""


@dataclass
class Tally:
    """Outcomes, added up."""

    kinds: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        self.kinds[outcome.kind] += 1
        self.seconds.append(outcome.seconds)
        if outcome.wrong:
            self.wrong.append(f"{outcome.wrong} -- {outcome.job}")


def draw(random: Random, number: int, *, faults: float) -> Job:
    """Draw a request; `faults` is the share of those with which something is wrong."""
    faulty = random.random() < faults
    wrong = random.choice((*FAULTS, "leaves")) if faulty else "none"
    leaves = wrong == "leaves"
    return Job(
        Script(number, "none" if leaves else wrong),
        random.choice(("chat", "responses")),
        random.choice(MODELS),
        stream=random.random() < 0.8,
        leaves=leaves,
    )


async def send(session: httpx.AsyncClient, url: str, job: Job) -> Outcome:
    """Send a request and judge the answer."""
    began, data, status = time.monotonic(), b"", 0
    try:
        async with (
            asyncio.timeout(PATIENCE),
            session.stream("POST", url + PATHS[job.api], json=job.body) as response,
        ):
            status = response.status_code
            async for piece in response.aiter_raw():
                data += piece
                if job.leaves:
                    return Outcome(job, "left", time.monotonic() - began)
    except httpx.HTTPError as error:
        return _outcome(job, type(error).__name__, began, data)
    except TimeoutError:
        return Outcome(job, "hung", PATIENCE, "it hangs")
    return _outcome(job, "" if status == 200 else str(status), began, data)


def _outcome(job: Job, kind: str, began: float, data: bytes) -> Outcome:
    """Judge what came, in whole or, with an exception's name or a status, in part."""
    seconds = time.monotonic() - began
    if job.model in HIDDEN and leaks(data):
        return Outcome(job, kind or "leak", seconds, "hidden reasoning got out")
    if kind:
        return Outcome(job, kind, seconds, _error_fault(kind, data))
    found = read(job.api, data, stream=job.stream)
    if found.ended != "well":
        return Outcome(job, found.ended, seconds)
    if (found.text, found.calls) != (job.script.text, job.script.calls):
        return Outcome(job, "altered", seconds, f"{found.text!r} is not {job.script.text!r}")
    return Outcome(job, "ok", seconds, _illegal(job, data))


def _error_fault(kind: str, data: bytes) -> str:
    """Return what is wrong with an error: each has a message, and says nothing of our insides."""
    if b"Traceback" in data:
        return "a traceback got out"
    if not kind.isdigit():
        return ""
    try:
        return "" if json.loads(data)["error"]["message"] else "no message"
    except (ValueError, KeyError, TypeError):
        return f"an error without OpenAI's shape: {data[:200]!r}"


def _illegal(job: Job, data: bytes) -> str:
    if not job.stream:
        return ""
    try:
        if job.api == "chat":
            check_chat(data)
        else:
            check_responses(data)
    except (AssertionError, KeyError, ValueError) as error:
        return f"illegal: {error!r}"[:300]
    return ""
