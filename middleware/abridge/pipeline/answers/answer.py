"""The interface of all kinds of answers, and what they are made with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from abridge.apis.api import Reader, Writer
from abridge.core.events import ErrorDetail, Event, ResponseEnded
from abridge.pipeline.answers.error_writer import ErrorWriter
from abridge.pipeline.body import Room
from abridge.pipeline.client import Client
from abridge.pipeline.summary_runner import SummaryRunner


class Answer(Protocol):
    """One response on its way from the application to the client.

    `passed_ok` is None if the response was read; else it says whether the status that was passed
    on is a success.
    """

    @property
    def passed_ok(self) -> bool | None: ...

    def feed(self, data: bytes) -> None:
        """Take more of the body."""

    async def end(self, error: ErrorDetail | None = None) -> None:
        """End the body; `error` says why it broke off."""

    def emit(self, events: list[Event]) -> None:
        """Take the next events, in the client's order."""

    async def complete(self, ended: ResponseEnded) -> None:
        """Write what is left to be written once the last event, `ended`, was taken."""

    def keep_alive(self) -> bytes:
        """Return a keep-alive if one is due, else nothing."""


@dataclass(slots=True)
class AnswerContext:
    """Collaborators of an answer."""

    client: Client
    runner: SummaryRunner
    reader: Reader
    writer: Writer
    hide_unread: bool  # nothing unread may get through
    hides_raw: bool  # raw reasoning must not get through, nor any text that may quote it
    errors: ErrorWriter
    limit: int  # bytes of one event, or of a whole body
    room: Room  # for what waits of either
    summarizer: str  # its name
    summary_language: str | None  # a tag; None: the reasoning's own
