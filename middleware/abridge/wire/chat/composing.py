"""Write the translated events of one choice as the deltas of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from abridge.turn.events import (
    Called,
    Closed,
    Event,
    Native,
    Opened,
    PartSaid,
    Raw,
    Refused,
    Said,
    Sealed,
    Stopped,
)
from abridge.turn.question import Tool
from abridge.wire.asking.disguise import free_text
from abridge.wire.chat.blocks import Blocks
from abridge.wire.chat.keeping import Keeping
from abridge.wire.chat.message import ARGUMENTS
from abridge.wire.chat.sealing import spell
from abridge.wire.chat.shown import BETWEEN_PARTS, Shown
from abridge.wire.codec import Json
from abridge.wire.display import Display
from abridge.wire.logprobs import spelled
from abridge.wire.mint import Mint


@dataclass(slots=True)
class _Call:
    kind: str
    disguised: Tool | None = None  # a custom tool, which upstream was offered as a function
    kept: list[str] = field(default_factory=list)  # its arguments, held until they are whole

    def piece(self, text: str) -> Json:
        return {self.kind: {ARGUMENTS[self.kind]: text}}


class ComposedChoice:
    """Write each event as choices of chunks, without their index."""

    def __init__(
        self,
        lane: int,
        display: Display,
        shown: Shown,
        tools: Mapping[str, Tool],
        mint: Mint,
        *,
        room: int,
        whole: bool,
    ) -> None:
        self._lane = lane
        self._display = display
        self._shown = shown
        self._tools = tools
        self._mint = mint
        self.room = room  # characters that may still be held
        self._blocks = Blocks(whole=whole)
        self._calls: dict[int, _Call] = {}
        self._message: int | None = None
        self._troubled = False
        self._kept = Keeping(room) if display.seal is not None else None

    def say(self, event: Event) -> Iterator[Json]:
        return self._say(event) if self._kept is None else self._keep_said(event, self._kept)

    def _keep_said(self, event: Event, kept: Keeping) -> Iterator[Json]:
        kept.hear(event)
        for said in self._say(event):
            kept.see(said["delta"])
            yield said

    def _say(self, event: Event) -> Iterator[Json]:
        match event:
            case Opened():
                self._shown.open(event)
            case Raw() if self._display.raw and event.text:
                self._blocks.think(event.text)
                yield _delta(self._shown.raw((self._lane, event.item), event.text))
            case PartSaid():
                yield _delta(self._part(event.item, event.index, event.text))
            case Native() if self._display.summary and event.text:
                blocks = self._blocks.summarize(event.part, event.text)
                yield _delta({**self._part(event.item, event.part, event.text), **blocks})
            case Sealed():
                yield _delta(self._blocks.seal(event))
            case Closed():
                yield from self._closed(event)
            case Called():
                yield from self._called(event)
            case Said():
                yield self._said(event)
            case Stopped():
                yield from self._rest()
                yield from self._sealed()
                yield {"delta": {}, "finish_reason": event.reason}

    def _part(self, item: int, index: int, text: str) -> Json:
        return self._shown.part((self._lane, item), index, text)

    def _closed(self, event: Closed) -> Iterator[Json]:
        """Report once, as a stretch ends, why there is no summary."""
        self._blocks.close()
        trouble = event.summary.trouble
        if trouble is not None and not self._troubled:
            self._troubled = True
            yield _delta({"summary_error": trouble.as_dict()})

    def _said(self, event: Said) -> Json:
        """Write a piece of the answer; a blank line separates several messages of upstream's."""
        logprobs = spelled(event.logprobs) or None
        if isinstance(event, Refused):
            told = {"content": None, "refusal": logprobs}
            return _delta({"refusal": event.refusal}, told if logprobs else None)
        fresh = self._message not in (None, event.message)
        self._message = event.message
        told = {"content": logprobs, "refusal": None}
        return _delta({"content": BETWEEN_PARTS * fresh + event.text}, told if logprobs else None)

    def _called(self, event: Called) -> Iterator[Json]:
        call = self._calls.get(event.call)
        if call is None:
            yield _delta({"tool_calls": [self._begin(event)]})
        elif call.disguised is not None:
            self._keep(call, event.arguments)
        elif event.arguments:
            fragment = {"index": event.call, **call.piece(event.arguments)}
            yield _delta({"tool_calls": [fragment]})

    def _begin(self, event: Called) -> Json:
        tool = self._tools.get(event.name)
        custom = event.custom or (tool is not None and tool.kind == "custom")
        call = self._calls[event.call] = _Call("custom" if custom else "function")
        text = event.arguments
        if custom and not event.custom:
            call.disguised, text = tool, ""
            self._keep(call, event.arguments)
        name = tool.own if tool is not None and tool.own else event.name
        return {
            "index": event.call,
            "id": event.id or self._mint("call_"),
            "type": call.kind,
            call.kind: {"name": name, ARGUMENTS[call.kind]: text},
        }

    def _keep(self, call: _Call, arguments: str) -> None:
        self.room -= len(arguments)
        call.kept.append(arguments)

    def _rest(self) -> Iterator[Json]:
        """Write the input of the custom tools' calls, whose arguments are whole now."""
        for number, call in self._calls.items():
            if call.disguised is not None:
                text = free_text(call.disguised, "".join(call.kept))
                yield _delta({"tool_calls": [{"index": number, **call.piece(text)}]})

    def _sealed(self) -> Iterator[Json]:
        """Write the envelope in which the reasoning comes back unchanged, if there is one."""
        envelope = self._kept.envelope() if self._kept is not None else None
        if self._display.seal is None or envelope is None:
            return
        name, blocks = self._display.envelope, self._blocks.index
        if blob := self._display.seal(envelope):
            listed = self._shown.listed(self._lane, name)
            index = blocks if name == "thinking_blocks" else listed
            yield _delta({name: [spell(blob, name, index)]})


def _delta(delta: Json, logprobs: Json | None = None) -> Json:
    told = {} if logprobs is None else {"logprobs": logprobs}
    return {"delta": delta, **told, "finish_reason": None}
