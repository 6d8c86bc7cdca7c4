"""A scripted provider that records its answers and validates the reasoning it gets back.

A question that names a number of tool rounds ("2 rounds") gets that many, then an answer.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from tests.end_to_end.histories.answers import TOOL, Call, Script
from tests.support.upstream import Answer, ReceivedRequest, Upstream, of_model

Json = dict[str, Any]
Turn = list[Json]
"""One assistant turn: a message, or items, or content blocks."""

Plain = tuple[str, list[tuple[str, str, Any]]]
"""A turn without reasoning: its text and its calls with parsed arguments."""

SERIAL = "x-serial"
"""The header with an answer's index in the ledger."""

CONVERSATION = re.compile(r"conversation (\w+)")
ROUNDS = re.compile(r"(\d+) rounds?")
KEY = re.compile(r"sk-(\w+)-")


@dataclass(frozen=True)
class Entry:
    """An answer, and its encoding."""

    script: Script
    written: Turn


@dataclass(frozen=True)
class Refusal:
    """This provider's error response."""

    body: Json
    status: int = 400


class Provider(Upstream, ABC):
    """`quiet` are the rounds without reasoning. `refusals` are the errors it returned, `complaints`
    the defects of requests that it accepted but would answer worse."""

    name: ClassVar[str]
    profile: ClassVar[str] = "auto"
    api: ClassVar[str] = "chat"
    model: ClassVar[str] = "thinker-1"
    demands: ClassVar[Literal["", "rounds", "always"]] = ""
    """Whether turns with calls must return with reasoning: never, until the next user message, or
    always."""
    seals: ClassVar[bool] = False
    """Whether its reasoning is opaque, with at most a native summary in the clear."""
    summarizes: ClassVar[bool] = False
    """Whether its reasoning is a summary already, for which its profile vouches."""
    distinct: ClassVar[bool] = True
    """Whether its answers differ in more than their reasoning."""

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
        credentials = map(request.header, ("authorization", "x-api-key", "x-goog-api-key"))
        script = self._say(body, next(filter(None, credentials), ""))
        self.ledger.append(Entry(script, self.write_turn(script, body)))
        answer = of_model(self.play(self.ledger[-1], stream=self.streams(request)), self.model)
        answer.headers = {**answer.headers, SERIAL: str(script.serial)}
        return answer

    def _say(self, body: Json, credential: str) -> Script:
        questions, serial = self.questions(body), len(self.ledger)
        done, calling = self.rounds(body), ROUNDS.search(questions[-1])
        tenant, conversation = KEY.search(credential), CONVERSATION.search(questions[0])
        thinks = self.thinks(serial, done)
        owner = (tenant[1] if tenant else "none", conversation[1] if conversation else "none")
        which = f", {serial}" if self.distinct else self.which(questions)
        if calling is None or done >= int(calling[1]):
            return Script(*owner, serial, done, thinks, f"It is there{which}.")
        calls = tuple(
            Call(
                self.identity(serial, number, body), TOOL, f'{{"where":"é",  "depth": {number}.0}}'
            )
            for number in range(2 if done == 0 else 1)
        )
        return Script(*owner, serial, done, thinks, f"Looking{which}." if done == 1 else "", calls)

    def thinks(self, serial: int, done: int) -> bool:
        """Return whether an answer has reasoning."""
        return done not in self._quiet

    def which(self, questions: list[str]) -> str:
        """Return what ends the text of an answer that may be like another's."""
        del questions
        return ""

    def streams(self, request: ReceivedRequest) -> bool:
        """Return whether a request asks for a stream."""
        return bool(request.json.get("stream"))

    def identity(self, serial: int, number: int, body: Json) -> str:
        """Return a call's id; most providers' are random."""
        return f"call_{number}{serial:03}x7Kq9ZtR4mP2s"

    @abstractmethod
    def write_turn(self, script: Script, body: Json) -> Turn:
        """Encode an answer in the provider's dialect."""

    @abstractmethod
    def play(self, entry: Entry, *, stream: bool) -> Answer:
        """Return the response that sends an answer."""

    @abstractmethod
    def turns(self, body: Json) -> list[Turn]:
        """Return the assistant turns of a request."""

    @abstractmethod
    def questions(self, body: Json) -> list[str]:
        """Return the user's messages."""

    @abstractmethod
    def rounds(self, body: Json) -> int:
        """Count the assistant turns after the last user message."""

    @abstractmethod
    def reasoning(self, turn: Turn) -> list[Json]:
        """Return only the parts of a turn that hold reasoning or opaque state."""

    @abstractmethod
    def plain(self, turn: Turn) -> Plain:
        """Return a turn without its reasoning."""

    def refusal_of(self, body: Json) -> Refusal | None:
        """Return the error for a request, if it has one."""
        return None

    def entry(self, turn: Turn) -> Entry | None:
        """Find a turn's entry in the ledger by its content without reasoning."""
        content = self.plain(turn)
        found = (entry for entry in reversed(self.ledger) if self.plain(entry.written) == content)
        return next(found, None)

    def due_reasoning(self, serials: Sequence[int]) -> list[list[Json]]:
        """Return the reasoning of these answers, encoded as it must come back."""
        return [self.reasoning(self.ledger[serial].written) for serial in serials]

    def returned_reasoning(self, body: Json) -> list[list[Json]]:
        """Return the reasoning in a request, turn by turn."""
        return list(map(self.reasoning, self.turns(body)))
