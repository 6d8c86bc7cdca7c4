"""The clients of a fleet."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from random import random

from tests.campaigns.fleet.model import TEXT
from tests.campaigns.fleet.processes import key_of
from tests.campaigns.paced import Answer

ATTEMPTS = 5
"""How often a client sends a request that failed, as official clients do."""


@dataclass
class Tally:
    """What clients saw."""

    whole: int = 0
    retried: Counter[str] = field(default_factory=Counter)  # attempts that failed, by why
    lost: list[str] = field(default_factory=list)
    without_summary: int = 0


class Clients:
    """Runs conversations of two turns, so many at once, until told to stop. An answer that takes
    longer than `patience`, in seconds, is given up."""

    def __init__(self, url: str, pieces: int, patience: float) -> None:
        self._url, self._pieces, self._patience = url, pieces, patience
        self._number = 0
        self._stopped = False
        self.killed: set[str] = set()
        """The addresses whose replica was killed, while it may still be noticed."""
        self.tally = Tally()
        self.statuses: Counter[tuple[str, int]] = Counter()

    def stop(self) -> None:
        self._stopped = True

    async def converse(self, spread: float) -> None:
        await asyncio.sleep(spread * random())
        while not self._stopped:
            history: list[dict[str, str]] = []
            for _ in range(2):
                self._number += 1
                history.append({"role": "user", "content": f"conversations {self._number}"})
                if (answer := await self._ask(history, self._number)) is None:
                    break
                said = {"role": "assistant", "content": answer.text}
                history.append(said | {"reasoning_content": answer.summary})

    async def _ask(self, history: list[dict[str, str]], number: int) -> Answer | None:
        """Ask until the answer is whole."""
        why = ""
        for attempt in range(ATTEMPTS):
            answer = await self._attempt("conversations", history)
            if answer.ended and answer.text == self._whole(number):
                self.tally.whole += 1
                self.tally.without_summary += not answer.summary.strip()
                return answer
            why = self._why(answer)
            self.tally.retried[why] += 1
            if why != "killed":
                self.tally.lost.append(f"request {number}: {why}: {answer.text[:80]!r}")
            await asyncio.sleep(0.2 * 2**attempt * random())
        self.tally.lost.append(f"request {number}: given up ({why})")
        return None

    def _whole(self, number: int) -> str:
        return "".join(TEXT.format(number=number, piece=piece) for piece in range(self._pieces))

    def _why(self, answer: Answer) -> str:
        if answer.replica in self.killed:
            return "killed"
        if answer.status != 200:
            return f"status {answer.status}"
        return "altered" if answer.ended else "cut"

    async def _attempt(self, name: str, messages: list[dict[str, str]]) -> Answer:
        body = json.dumps({"model": "m", "stream": True, "messages": messages}).encode()
        answer = Answer()
        try:
            async with asyncio.timeout(self._patience):
                await answer.ask(self._url, "/v1/chat/completions", key_of(name), body)
        except (OSError, TimeoutError):
            answer.ended = False
        return answer

    async def press(self, name: str) -> None:
        """Send more than the key's limit allows."""
        while not self._stopped:
            self._number += 1
            message = {"role": "user", "content": f"{name} {self._number}"}
            answer = await self._attempt(name, [message])
            self.statuses[name, answer.status] += 1
            await asyncio.sleep(0.5 * (1 if answer.status == 429 else 0.2) * (0.5 + random()))
