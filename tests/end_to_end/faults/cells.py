"""The axes of the fault matrix, and which of its cells there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Who(StrEnum):
    UPSTREAM = "upstream"
    SUMMARIZER = "summarizer"
    CLIENT = "client"


class What(StrEnum):
    REFUSE = "refuse"
    RESET = "reset"
    STALL = "stall"
    HALF_CLOSE = "half-close"
    GARBAGE = "garbage"
    ERROR_EVENT = "error event"
    BAD_REQUEST = "4xx"
    UNAVAILABLE = "5xx"
    NOTHING = "nothing"


class Where(IntEnum):
    """How far a conversation has come, as its server plays it: the place is reached, and nothing
    beyond it was sent."""

    CONNECT = 0  # before a request was read
    HEADERS = 1  # a request was read
    FIRST = 2  # the headers are sent
    THINKING = 3
    BETWEEN = 4  # all the reasoning is, and nothing of the answer
    ANSWER = 5
    TERMINAL = 6  # all but the event, or the byte, that ends the answer
    AFTER = 7


STATUSES = {What.BAD_REQUEST: b"429 Too Many Requests", What.UNAVAILABLE: b"503 Unavailable"}


@dataclass(frozen=True)
class Fault:
    who: Who
    what: What
    where: Where

    def __str__(self) -> str:
        return f"{self.who} {self.what} at {self.where.name.lower()}"

    def can_happen(self, *, streamed: bool) -> bool:
        """`streamed`: whether whoever answers does so with a stream.

        A connection can be reset, left silent, closed on one side or fed garbage at any time, by
        either end. The rest only those can do who are connected to: refuse it, answer with a status
        where the headers are due, send an event in a stream. And to think and then say nothing is a
        fault in a summarizer alone.
        """
        serves = self.who is not Who.CLIENT
        if self.what is What.REFUSE:
            return serves and self.where is Where.CONNECT
        if self.what in STATUSES:
            return serves and self.where is Where.HEADERS
        if self.what is What.ERROR_EVENT:
            return serves and streamed and self.where >= Where.FIRST
        if self.what is What.NOTHING:
            return self.who is Who.SUMMARIZER and self.where is Where.BETWEEN
        return True


def faults(who: Who, *, streamed: bool) -> Iterator[Fault]:
    """All that can happen to one of the three."""
    every = (Fault(who, what, where) for what in What for where in Where)
    return (fault for fault in every if fault.can_happen(streamed=streamed))


@dataclass(frozen=True)
class Case:
    """A fault, and what it befalls: the API, whether the client asked for a stream, and whether a
    summary was asked for, without which Abridge touches nothing."""

    api: str
    streamed: bool
    fault: Fault
    engaged: bool = True

    def __str__(self) -> str:
        shape = "stream" if self.streamed else "whole"
        return f"{self.api} {shape}{'' if self.engaged else ' untouched'}: {self.fault}"
