"""What one request came to: noted by whoever knows, told to every sink at its end.

Times are in seconds since the request came, on a clock that never goes back; None is what did not
happen, or is not known. Nothing in here was thought, asked or answered, nor is a credential.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import uuid4

from starlette.types import Scope

from abridge.exchange.body import header
from abridge.turn.usage import Tokens

RECORD = "abridge.record"
"""The scope's key under which the middleware keeps a request's record, for whoever knows more."""

REQUEST_ID = b"x-request-id"
_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


@dataclass(slots=True)
class Call:
    """A summarizer was asked for a part: how long that took, and what came of it."""

    part: int
    began: float
    ended: float | None = None
    outcome: str = ""


@dataclass(slots=True)
class Shown:
    """A part of the summary, as the client saw it begin and end."""

    began: float
    ended: float | None = None


@dataclass(slots=True)
class Record:
    """`at` is when the request came, in seconds since the epoch. `outcome` is as in the metrics;
    `cause` is a trouble's code where it is not good. `seconds` is the whole of it, `overhead` what
    Abridge itself took before upstream was asked, `upstream` names one of the settings'.

    Reasoning came from `thinking[0]` to `thinking[1]`, the answer was shown from `answer[0]` to
    `answer[1]` in so many `chunks`, and waited for its summary for `held` seconds.
    """

    id: str
    at: float
    began: float
    time: Callable[[], float] = time.monotonic
    method: str = ""
    api: str | None = None
    upstream: str | None = None
    model: str | None = None
    stream: bool = False
    style: str = "off"
    summarizer: str | None = None
    status: int | None = None
    outcome: str = ""
    cause: str | None = None
    seconds: float | None = None
    overhead: float | None = None
    first_summary: float | None = None
    thinking: tuple[float, float] | None = None
    answer: tuple[float, float] | None = None
    chunks: int = 0
    held: float | None = None
    characters: int = 0
    used: Tokens = Tokens()
    spent: Tokens = Tokens()
    summaries: Counter[str] = field(default_factory=Counter)
    calls: list[Call] = field(default_factory=list)
    parts: list[Shown] = field(default_factory=list)

    @classmethod
    def of(cls, scope: Scope) -> Record:
        """A new one for a request that has just come, by its client's own id if that is one."""
        asked = header(scope["headers"], REQUEST_ID).decode("latin-1")
        identity = asked if _ID.fullmatch(asked) else uuid4().hex
        return cls(identity, time.time(), time.monotonic(), method=scope["method"])

    def now(self) -> float:
        return self.time() - self.began


Sink = Callable[[Record], None]
"""Takes a record that is complete. It must not raise, nor take long."""
