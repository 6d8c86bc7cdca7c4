"""A scripted provider: it keeps a ledger of what it said, and judges what it is sent.

Asked by a user who wants so many rounds of tools ("2 rounds"), it gives so many, then answers.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from tests.end_to_end.histories.answers import TOOL, Call, Script
from tests.support.upstream import Answer, ReceivedRequest, Upstream

Json = dict[str, Any]
Turn = list[Json]
"""What the assistant said without a break: a message, or items, or content blocks."""

Plain = tuple[str, list[tuple[str, str, Any]]]
"""A turn's text and its calls, with their arguments read: all of it that is no reasoning."""

SERIAL = "x-serial"
"""The header that says which answer of the ledger's an answer is, whatever becomes of its body."""

CONVERSATION = re.compile(r"conversation (\w+)")
ROUNDS = re.compile(r"(\d+) rounds?")
KEY = re.compile(r"sk-(\w+)-")


@dataclass(frozen=True)
class Entry:
    """An answer, and how it was spelled."""

    script: Script
    written: Turn


@dataclass(frozen=True)
class Refusal:
    """An error as this provider words it, with the body it comes in."""

    body: Json
    status: int = 400


class Provider(Upstream, ABC):
    """`quiet` are the rounds in which it does not think. `refusals` are the errors it gave, and
    `complaints` what it took without a word and would answer the worse for."""

    name: ClassVar[str]
    profile: ClassVar[str] = "auto"
    api: ClassVar[str] = "chat"
    model: ClassVar[str] = "thinker-1"
    demands: ClassVar[Literal["", "rounds", "always"]] = ""
    """Whether turns that call tools have to come back with what was thought: never, until the user
    speaks again, or for good."""
    seals: ClassVar[bool] = False
    """Whether its reasoning is opaque, and what it lets be seen no more than a summary of its
    own, or nothing."""
    distinct: ClassVar[bool] = True
    """Whether no two of its answers are alike but for what was thought."""

    def __init__(self, *quiet: int) -> None:
        super().__init__()
        self.ledger: list[Entry] = []
        self.refusals: list[Refusal] = []
        self.complaints: list[str] = []
        self._quiet = quiet

    def answer(self, request: ReceivedRequest) -> Answer:
        body = request.json
        if (refusal := self.refusal_of(body)) is not None:
            self.refusals.append(refusal)
            return Answer.json(refusal.body, refusal.status)
        script = self._say(
            body, request.header("authorization") or request.header("x-api-key") or ""
        )
        self.ledger.append(Entry(script, self.write_turn(script, body)))
        answer = self.play(self.ledger[-1], stream=bool(body.get("stream")))
        answer.headers = {**answer.headers, SERIAL: str(script.serial)}
        return answer

    def _say(self, body: Json, credential: str) -> Script:
        questions, serial = self.questions(body), len(self.ledger)
        done, calling = self.rounds(body), ROUNDS.search(questions[-1])
        tenant, conversation = KEY.search(credential), CONVERSATION.search(questions[0])
        thinks = done not in self._quiet
        owner = (tenant[1] if tenant else "none", conversation[1] if conversation else "none")
        which = f", {serial}" if self.distinct else ""
        if calling is None or done >= int(calling[1]):
            return Script(*owner, serial, done, thinks, f"It is there{which}.")
        calls = tuple(
            Call(
                self.identity(serial, number, body), TOOL, f'{{"where":"é",  "depth": {number}.0}}'
            )
            for number in range(2 if done == 0 else 1)
        )
        return Script(*owner, serial, done, thinks, f"Looking{which}." if done == 1 else "", calls)

    def identity(self, serial: int, number: int, body: Json) -> str:
        """A call's id; most providers' are random."""
        return f"call_{number}{serial:03}x7Kq9ZtR4mP2s"

    @abstractmethod
    def write_turn(self, script: Script, body: Json) -> Turn:
        """An answer in the provider's words."""

    @abstractmethod
    def play(self, entry: Entry, *, stream: bool) -> Answer:
        """The same, as it is sent."""

    @abstractmethod
    def turns(self, body: Json) -> list[Turn]:
        """The assistant's turns in a request."""

    @abstractmethod
    def questions(self, body: Json) -> list[str]:
        """All that the user said."""

    @abstractmethod
    def rounds(self, body: Json) -> int:
        """How often the assistant has spoken since the user last did."""

    @abstractmethod
    def reasoning(self, turn: Turn) -> list[Json]:
        """All in a turn that holds reasoning, or opaque state, and nothing of what does not."""

    @abstractmethod
    def plain(self, turn: Turn) -> Plain:
        """All of a turn that is no reasoning."""

    def refusal_of(self, body: Json) -> Refusal | None:
        """The error that a request deserves."""
        return None

    def entry(self, turn: Turn) -> Entry | None:
        """Where in the ledger a turn is from, by what else it says."""
        content = self.plain(turn)
        found = (entry for entry in reversed(self.ledger) if self.plain(entry.written) == content)
        return next(found, None)

    def due_reasoning(self, serials: Sequence[int]) -> list[list[Json]]:
        """What it thought in these answers, spelled as it has to come back."""
        return [self.reasoning(self.ledger[serial].written) for serial in serials]

    def returned_reasoning(self, body: Json) -> list[list[Json]]:
        """What a request tells it of its thoughts, turn by turn."""
        return list(map(self.reasoning, self.turns(body)))
