"""The axes of the fault matrix and its possible cells."""

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
    """How much of a response was sent: everything before this place, and nothing after it."""

    CONNECT = 0  # before a request is read
    HEADERS = 1  # a request is read
    FIRST = 2  # the headers are sent
    THINKING = 3
    BETWEEN = 4  # all the reasoning is sent, and nothing of the answer
    ANSWER = 5
    TERMINAL = 6  # all but the final event or byte
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
        """Return whether the fault is possible, given whether the response is `streamed`.

        Either end can reset, stall, half-close or send garbage at any time. Only a server can
        refuse a connection, answer with an error status or send an error event. An empty answer
        after reasoning is a fault in a summarizer alone.
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
    """Return all faults of one party."""
    every = (Fault(who, what, where) for what in What for where in Where)
    return (fault for fault in every if fault.can_happen(streamed=streamed))


@dataclass(frozen=True)
class Case:
    """A fault, the API, whether the client requests a stream, and whether it requests a summary."""

    api: str
    streamed: bool
    fault: Fault
    engaged: bool = True

    def __str__(self) -> str:
        shape = "stream" if self.streamed else "whole"
        return f"{self.api} {shape}{'' if self.engaged else ' untouched'}: {self.fault}"
