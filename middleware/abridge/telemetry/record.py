"""What one request came to: noted by whoever knows, told to every sink at its end.

Times are in seconds since the request came, on a clock that never goes back; None is what did not
happen, or is not known. Nothing in here was thought, asked or answered, nor is a credential.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import getrandbits

from starlette.types import Scope

from abridge.errors import RequestError
from abridge.history.policy import Mended
from abridge.paths import path_of
from abridge.turn.usage import Tokens

RECORD = "abridge.record"
"""The scope's key under which the middleware keeps a request's record, for whoever knows more."""

TRACE = "abridge.trace"
"""The key under which its spans are, where they are drawn."""

SHUTTING_DOWN = "shutting_down"
"""The cause where the server cancels a request."""

REQUEST_ID = b"x-request-id"
NOTHING = Tokens()

LONGEST = 256
"""Characters of what a client or an upstream chose."""

_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_CODE = re.compile(r"[a-z0-9_.-]{1,64}")


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
    """`at` is when the request came, in seconds since the epoch. `trace` is the trace it belongs
    to, `exemplar` what leads there from a metric, where the trace is kept. `outcome` is as in the
    metrics, the worst until another is known; `cause` is a trouble's code, `upstream` a name in the
    settings. `seconds` is the whole of it, `overhead` what Abridge itself took before upstream was
    asked; on the way `mended` was done to what the request says of the past, and so many fields of
    it were `lost`.

    The rest is of one that was `engaged`: reasoning, so many `characters`, came from `thinking[0]`
    to `thinking[1]`; the answer was shown from `answer[0]` to `answer[1]` in so many `chunks`, and
    waited for its summary for `held` seconds; `used` are upstream's tokens, `spent` the
    summarizer's; `response_id` and `response_model` are as upstream said them; `dropped` and
    `faults` are the Reader's.
    """

    id: str
    at: float
    began: float
    time: Callable[[], float] = time.monotonic
    method: str = ""
    path: str = ""
    trace: str | None = None
    exemplar: dict[str, str] | None = None
    api: str | None = None
    upstream: str | None = None
    model: str | None = None
    stream: bool = False
    style: str = "off"
    summarizer: str | None = None
    status: int | None = None
    outcome: str = "failed"
    cause: str | None = None
    seconds: float = 0.0
    engaged: bool = False
    overhead: float = 0.0
    mended: list[Mended] = field(default_factory=list)
    lost: int = 0
    first_summary: float | None = None
    thinking: tuple[float, float] | None = None
    answer: tuple[float, float] | None = None
    chunks: int = 0
    held: float = 0.0
    characters: int = 0
    used: Tokens = NOTHING
    spent: Tokens = NOTHING
    response_id: str | None = None
    response_model: str | None = None
    summaries: dict[str, int] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    parts: list[Shown] = field(default_factory=list)
    dropped: int = 0
    faults: int = 0

    @classmethod
    def of(cls, scope: Scope) -> Record:
        """A new one for a request that has just come, by its client's own id if that is one."""
        return cls(
            _asked(scope) or f"{getrandbits(128):032x}",
            time.time(),
            time.monotonic(),
            method=scope["method"],
            path=told(path_of(scope)),
        )

    @classmethod
    def in_(cls, scope: Scope) -> Record:
        """The one of a request that has come by the middleware."""
        record: Record = scope[RECORD]
        return record

    def now(self) -> float:
        return self.time() - self.began

    def ask(self, api: str, upstream: str, model: str | None) -> None:
        """It is known what is asked, and of whom."""
        self.api, self.upstream = api, upstream
        self.model = told(model) if model is not None else None

    def prepare(self) -> None:
        """It is made ready for upstream, perhaps anew, since another has not answered it."""
        self.mended, self.lost = [], 0

    def refuse(self, refusal: RequestError) -> None:
        self.outcome, self.status = "refused", refusal.status
        self.fail(refusal.code)

    def fail(self, code: str | None) -> None:
        """Note what was in the way; the first is the cause. Upstream may call it anything."""
        if self.cause is None and code is not None and _CODE.fullmatch(code):
            self.cause = code


def _asked(scope: Scope) -> str | None:
    """The client's own id for its request."""
    for name, value in scope["headers"]:
        if name == REQUEST_ID:
            asked: str = value.decode("latin-1")
            return asked if _ID.fullmatch(asked) else None
    return None


def told(text: str) -> str:
    """What a client or an upstream chose, as any sink can take it: JSON may hold half a character,
    which nothing can write, and a name that fills a body."""
    text = text[:LONGEST]
    return text if text.isascii() else text.encode(errors="replace").decode()


Sink = Callable[[Record], None]
"""Takes a record that is complete. It must not take long; what it raises is logged."""
