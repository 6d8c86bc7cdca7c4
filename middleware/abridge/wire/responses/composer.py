"""Write translated events as the Responses API: a stream, or a whole response."""

from __future__ import annotations

from abridge.turn.events import (
    Began,
    Billed,
    Closed,
    Ended,
    Event,
    Failed,
    Opened,
    Said,
    Stopped,
    Trouble,
)
from abridge.turn.usage import Tokens
from abridge.turn.weight import said
from abridge.wire.api import Asked
from abridge.wire.codec import Json, dumps, string
from abridge.wire.display import Display
from abridge.wire.mint import Mint, mint
from abridge.wire.problem import CUT, TOO_LONG, problem
from abridge.wire.profiles import Profile
from abridge.wire.responses.composing.output import ComposedOutput
from abridge.wire.responses.composing.response import response_of
from abridge.wire.responses.frames import frame_of
from abridge.wire.responses.response import failed
from abridge.wire.responses.spoken import Spoken
from abridge.wire.usage import RESPONSES

INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


class ResponsesComposer:
    """Writes one response. See `abridge.apis.api.Writer`.

    The last event of a stream repeats the whole response, so a stream fails once it exceeds `limit`
    characters.
    """

    def __init__(
        self, _profile: Profile, display: Display, asked: Asked, limit: int, mint: Mint = mint
    ) -> None:
        self._display = display
        self._output = ComposedOutput(display, asked.tools, mint)
        self._asked = asked
        self._mint = mint
        self._room = limit
        self._next = 0
        self._response: Json | None = None
        self._lane: int | None = None
        self._over = False
        self._stop = ""
        self._usage: Tokens | None = None
        self._failure: Trouble | None = None

    def write(self, event: Event) -> bytes:
        self._room -= said(event)
        if self._over:
            return b""
        if self._room < 0:
            event = Ended(None, None, ok=False, trouble=TOO_LONG)
        return b"".join(self._frame(kind, fields) for kind, fields in self._say(event))

    def beat(self) -> bytes:
        """See `ResponsesWriter.keep_alive`."""
        if self._response is None or self._over:
            return b""
        return self._frame("response.in_progress", {"response": self._response})

    def note(self, event: Event) -> None:
        for _ in self._say(event):
            pass

    def whole(self, end: Ended) -> bytes:
        self.note(end)
        response = self._response or {}
        if end.trouble is None or not end.ok:
            return dumps(response)
        refusal = problem(end.trouble.message, code=end.trouble.code)
        refusal["error"]["response"] = response
        return dumps(refusal)

    @property
    def shown(self) -> Json | None:
        return self._response if self._over else None

    def _frame(self, kind: str, fields: Json) -> bytes:
        self._next += 1
        return frame_of(kind, {"sequence_number": self._next - 1, **fields})

    # Events

    def _say(self, event: Event) -> Spoken:
        if self._response is None:
            yield from self._begin(event)
        if self._is_another(event.lane):
            return
        match event:
            case Said():
                yield from self._output.answer(event)
            case Opened():
                yield from self._output.begin()
            case Closed():
                yield from self._output.close(event)
            case Stopped():
                self._stop = event.reason
                cut = event.reason in INCOMPLETE
                yield from self._output.let_go("incomplete" if cut else "completed")
            case Billed():
                self._usage = event.usage
            case Failed():
                self._failure = event.trouble
            case Ended():
                yield from self._end(event)
            case _:
                yield from self._output.think(event)

    def _is_another(self, lane: int | None) -> bool:
        """Return whether the event is of another choice than the first: a response has one."""
        self._lane = lane if self._lane is None else self._lane
        return lane is not None and lane != self._lane

    def _begin(self, event: Event) -> Spoken:
        began = event if isinstance(event, Began) else Began(None, None, "", "", 0)
        self._response = response_of(
            self._asked,
            self._display,
            self._mint("resp_"),
            began.model or string(self._asked.body.get("model")),
            began.created or int(self._asked.now()),
        )
        yield "response.created", {"response": self._response}
        yield "response.in_progress", {"response": self._response}

    def _end(self, event: Ended) -> Spoken:
        yield from self._output.let_go("completed" if event.ok else "incomplete")
        self._over = True
        response = self._response = self._final(event)
        yield f"response.{response['status']}", {"response": response}

    def _final(self, event: Ended) -> Json:
        usage, merged = event.usage or self._usage, self._display.merged
        response = {**(self._response or {}), "output": self._output.items}
        RESPONSES.bill(response, usage, event.share, merged=merged)
        trouble = event.trouble
        if not event.ok:
            trouble = trouble or self._failure or CUT
        if trouble is not None:
            return failed(response, trouble)
        if self._stop in INCOMPLETE:
            details = {"reason": INCOMPLETE[self._stop]}
            return {**response, "status": "incomplete", "incomplete_details": details}
        completed = max(response["created_at"], int(self._asked.now()))
        return {**response, "status": "completed", "completed_at": completed}
