"""Write Chat Completions for an upstream of another API: as chunks, or as a whole completion.

A completion is the sum of its chunks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from abridge.turn.events import Began, Billed, Ended, Event, Failed, Trouble
from abridge.turn.usage import Tokens
from abridge.wire import sse
from abridge.wire.api import Asked
from abridge.wire.chat.composing import ComposedChoice
from abridge.wire.chat.frames import DONE, failure
from abridge.wire.chat.message import Message
from abridge.wire.chat.reader import MOST_CHOICES
from abridge.wire.chat.shown import Shown
from abridge.wire.codec import Json, dumps, string
from abridge.wire.display import Display
from abridge.wire.mint import Mint, mint
from abridge.wire.problem import CUT, TOO_LONG, problem
from abridge.wire.profiles import Profile
from abridge.wire.usage import CHAT


@dataclass(slots=True)
class _Whole:
    """A choice of a completion, added up from its chunks."""

    message: Message = field(default_factory=lambda: Message(sys.maxsize))
    beside: Json = field(default_factory=dict)
    logprobs: dict[str, list[Json]] = field(default_factory=dict)
    finish: str = "stop"

    def add(self, choice: Json) -> None:
        delta = choice["delta"]
        self.message.add(delta)
        self.beside.update({key: delta[key] for key in ("summary_error",) if key in delta})
        for name, told in (choice.get("logprobs") or {}).items():
            if told:
                self.logprobs.setdefault(name, []).extend(told)
        self.finish = choice["finish_reason"] or self.finish

    def spelled(self, index: int) -> Json:
        message = {"role": "assistant", "content": None, "refusal": None}
        told = {name: self.logprobs.get(name) for name in ("content", "refusal")}
        return {
            "index": index,
            "message": {**message, **self.message.as_dict(), **self.beside},
            "logprobs": told if self.logprobs else None,
            "finish_reason": self.finish,
        }


class ChatComposer:
    """Write one response. See the protocol `Writer`.

    A stream holds the arguments of calls that can be written only once they are whole, at most
    `limit` characters for each choice: past that it fails.
    """

    shown = None

    def __init__(
        self, _profile: Profile, display: Display, asked: Asked, limit: int, mint: Mint = mint
    ) -> None:
        self._display = display
        self._asked = asked
        self._limit = limit
        self._mint = mint
        self._shown = Shown(display)
        self._envelope: Json = {}
        self._choices: dict[int, ComposedChoice] = {}
        self._whole: dict[int, _Whole] | None = None
        self._usage: Tokens | None = None
        self._failed: Trouble | None = None
        options = asked.body.get("stream_options")
        self._bills = isinstance(options, dict) and options.get("include_usage") is True

    def write(self, event: Event) -> bytes:
        if isinstance(event, Failed):
            self._failed = event.trouble
            return failure(event.trouble)
        if isinstance(event, Ended):
            return self._ended(event)
        if self._failed is not None:
            return b""
        said = b"".join(self._chunk([choice]) for choice in self._say(event))
        if any(choice.room < 0 for choice in self._choices.values()):
            return said + self.write(Failed(None, None, TOO_LONG))
        return said

    def beat(self) -> bytes:
        return b""

    def note(self, event: Event) -> None:
        whole = self._whole = self._whole or {}
        if isinstance(event, Failed):
            self._failed = event.trouble
        for choice in self._say(event):
            whole.setdefault(choice["index"], _Whole()).add(choice)

    def whole(self, end: Ended) -> bytes:
        self.note(end)
        trouble = end.trouble if end.ok else end.trouble or self._failed or CUT
        completion = self._completion(end, self._whole or {})
        if trouble is None:
            return dumps(completion)
        refusal = problem(trouble.message, code=trouble.code)
        refusal["error"]["response"] = completion
        return dumps(refusal)

    def _completion(self, end: Ended, choices: Mapping[int, _Whole]) -> Json:
        completion = {
            **self._envelope,
            "object": "chat.completion",
            "choices": [whole.spelled(index) for index, whole in choices.items()],
        }
        CHAT.bill(completion, end.usage or self._usage, end.share, merged=self._display.merged)
        return completion

    # Chunks

    def _chunk(self, choices: list[Json], **more: Json | None) -> bytes:
        usage = {"usage": None} if self._bills else {}
        return sse.encode(dumps({**self._envelope, "choices": choices, **usage, **more}))

    def _say(self, event: Event) -> Iterator[Json]:
        if not self._envelope:
            self._begin(event)
            yield from self._announce(0)
        if isinstance(event, Billed):
            self._usage = event.usage
        elif event.lane is not None:
            yield from self._announce(event.lane)
            if (choice := self._choices.get(event.lane)) is not None:
                for said in choice.say(event):
                    yield {"index": event.lane, **said}

    def _begin(self, event: Event) -> None:
        began = event if isinstance(event, Began) else Began(None, None, "", "", 0)
        self._envelope = {
            "id": self._mint("chatcmpl-"),
            "object": "chat.completion.chunk",
            "created": began.created or int(self._asked.now()),
            "model": began.model or string(self._asked.body.get("model")),
        }

    def _announce(self, lane: int) -> Iterator[Json]:
        """Announce choices in order of their index: strict clients fail otherwise."""
        for number in range(len(self._choices), min(lane + 1, MOST_CHOICES)):
            self._choices[number] = ComposedChoice(
                number,
                self._display,
                self._shown,
                self._asked.tools,
                self._mint,
                room=self._limit,
                whole=self._whole is not None,
            )
            delta = {"role": "assistant", "content": ""}
            yield {"index": number, "delta": delta, "finish_reason": None}

    def _ended(self, event: Ended) -> bytes:
        """Write the end; before it, if the client asked for usage, a separate chunk with that."""
        if self._failed is not None:
            return b""
        opening = b"".join(self._chunk([choice]) for choice in self._say(event))
        trouble = event.trouble if event.ok else event.trouble or CUT
        if trouble is not None:
            return opening + failure(trouble)
        if not self._bills:
            return opening + DONE
        bill: Json = {}
        CHAT.bill(bill, event.usage or self._usage, event.share, merged=self._display.merged)
        return opening + self._chunk([], **bill) + DONE
