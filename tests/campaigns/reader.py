"""Read answers of each API, streamed or whole, as tolerantly as a careful client would.

Written for the campaigns from the APIs' and SSE's descriptions, and sharing no code with Abridge:
what it reads of upstream's bytes is the truth that the client's bytes are compared with.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

LINE_END = re.compile(r"\r\n|\r|\n")
TERMINAL = ("response.completed", "response.incomplete")
FAILED = ("response.failed", "error")


@dataclass
class Reading:
    """The contents of an answer.

    `text` and `calls` (names and arguments) are those of all choices or items, in order; of a
    Responses stream, as its last event has them, where `streamed` and `streamed_calls` are what its
    deltas add up to. `first` is the text of the first choice alone, `wholes` are those of events
    that repeat a text. `ended` is `well`, `failed` or `cut`. `broken` counts what could not be
    read.
    """

    text: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    streamed_calls: list[tuple[str, str]] = field(default_factory=list)
    first: str = ""
    wholes: list[str] = field(default_factory=list)
    usage: Json | None = None
    ended: str = "cut"
    broken: int = 0
    streamed: str = ""
    final: str | None = None
    errors: list[Any] = field(default_factory=list)


def read(api: str, data: bytes, *, stream: bool) -> Reading:
    """Read a body of `chat`, `responses` or `messages`."""
    reading = READINGS[api]()
    whole = [(None, data.decode(errors="replace"))]
    for _, text in events(data) if stream else whole:
        reading.take(text, stream=stream)
    found = reading.finish()
    if not stream:
        found.streamed, found.streamed_calls = found.text, found.calls
    return found


def events(data: bytes) -> list[tuple[str | None, str]]:
    """Return the name and the data of each event of a stream, by the rules of the HTML standard.

    An event that the end of the stream cuts off is returned, too: nothing says that it is lost.
    """
    found: list[tuple[str | None, str]] = []
    lines: list[str] = []
    event: str | None = None
    for line in [*LINE_END.split(data.decode(errors="replace").removeprefix("\ufeff")), ""]:
        if not line:
            found += [(event, "\n".join(lines))] if lines else []
            lines, event = [], None
        name, _, value = line.partition(":")
        if name == "data":
            lines.append(value.removeprefix(" "))
        elif name == "event":
            event = value.removeprefix(" ")
    return found


def texts_in(content: Any, kinds: tuple[str, ...] = ("text", "output_text")) -> str:
    """Return the shown text of a string or of a list of parts."""
    if isinstance(content, str):
        return content
    parts = [part for part in _list(content) if isinstance(part, dict)]
    texts = [part.get("text") for part in parts if part.get("type") in kinds]
    return "".join(text for text in texts if isinstance(text, str))


class ChatReading:
    """Adds up the chunks of a stream, or reads a completion."""

    def __init__(self) -> None:
        self._reading = Reading()
        self._texts: dict[Any, str] = {}
        self._calls: dict[Any, list[str]] = {}
        self._ids: dict[Any, Any] = {}
        self._finished = False
        self._done = False

    def take(self, text: str, *, stream: bool) -> None:
        if stream and text.strip().startswith("[DONE]"):
            self._done = True
            return
        chunk = parse(text)
        if chunk is None or self._done:
            self._reading.broken += 1
            return
        if chunk.get("error"):
            self._reading.errors.append(chunk["error"])
        if isinstance(chunk.get("usage"), dict):
            self._reading.usage = chunk["usage"]
        for choice in _list(chunk.get("choices")):
            self._take_choice(choice)

    def _take_choice(self, choice: Any) -> None:
        message = choice.get("delta") or choice.get("message") if isinstance(choice, dict) else None
        if isinstance(choice, dict) and choice.get("finish_reason"):
            self._finished = True
        if not isinstance(message, dict):
            return
        index = str(_number(choice.get("index")))
        self._texts[index] = self._texts.get(index, "") + texts_in(message.get("content"))
        for place, call in enumerate(_list(message.get("tool_calls"))):
            if isinstance(call, dict):
                at = _number(call["index"]) if "index" in call else call.get("id", place)
                key = (index, str(at))
                if call.get("id") and self._ids.setdefault(key, call["id"]) != call["id"]:
                    key = (index, str(call["id"]))
                self._take_call(key, call)

    def _take_call(self, key: Any, call: Json) -> None:
        known = self._calls.setdefault(key, ["", ""])
        function = call.get("function")
        for place, name in enumerate(("name", "arguments")):
            value = function.get(name) if isinstance(function, dict) else None
            if isinstance(value, str) and (name == "arguments" or not known[place]):
                known[place] += value

    def finish(self) -> Reading:
        found = self._reading
        found.text = found.streamed = "".join(self._texts.values())
        found.first = next(iter(self._texts.values()), "")
        found.calls = [(name, said) for name, said in self._calls.values() if name.strip()]
        found.streamed_calls = found.calls
        found.ended = "well" if self._finished or self._done else "cut"
        found.ended = "failed" if found.errors else found.ended
        return found


class ResponsesReading:
    """Adds up the events of a stream, or reads a response object."""

    def __init__(self) -> None:
        self._reading = Reading()
        self._texts: dict[Any, str] = {}
        self._arguments: dict[Any, str] = {}
        self._names: dict[Any, Any] = {}
        self._ended: str | None = None

    def take(self, text: str, *, stream: bool) -> None:
        if stream and text.strip().startswith("[DONE]"):
            return
        event = parse(text)
        if event is None or self._ended is not None:
            self._reading.broken += 1
        elif stream:
            self._take_event(event)
        else:
            self._take_end(event, "well")

    def _take_event(self, event: Json) -> None:
        kind = event.get("type")
        if kind in FAILED:
            self._reading.errors.append(event)
        item, at = event.get("item"), _place(event)
        if kind == "response.output_text.delta" and isinstance(event.get("delta"), str):
            self._texts[at] = self._texts.get(at, "") + event["delta"]
        elif kind == "response.output_text.done" and isinstance(event.get("text"), str):
            self._reading.wholes.append(event["text"])
            self._texts.setdefault(at, event["text"])
        elif kind == "response.function_call_arguments.delta":
            delta = event.get("delta")
            self._arguments[at] = self._arguments.get(at, "") + (
                delta if isinstance(delta, str) else ""
            )
        elif kind == "response.output_item.added" and isinstance(item, dict):
            if item.get("type") == "function_call":
                self._names[at] = item.get("name") or ""
        elif kind == "response.output_item.done" and isinstance(item, dict):
            self._take_item(at, item)
        elif kind in (*TERMINAL, "response.failed"):
            response = event.get("response")
            self._take_end(
                response if isinstance(response, dict) else {},
                "failed" if kind == "response.failed" else "well",
            )

    def _take_item(self, at: Any, item: Json) -> None:
        if item.get("type") == "message":
            self._reading.wholes.append(texts_in(_list(item.get("content"))))
            self._texts.setdefault(at, self._reading.wholes[-1])
        if item.get("type") == "function_call":
            self._names[at] = item.get("name") or ""
            self._arguments.setdefault(at, str(item.get("arguments")))

    def _take_end(self, response: Json, ended: str) -> None:
        found = self._reading
        self._ended = "failed" if response.get("error") else ended
        found.usage = response["usage"] if isinstance(response.get("usage"), dict) else None
        items = [item for item in _list(response.get("output")) if isinstance(item, dict)]
        if items:
            found.final = "".join(
                texts_in(_list(item.get("content")))
                for item in items
                if item.get("type") == "message"
            )
            calls = [item for item in items if item.get("type") == "function_call"]
            made = [(call.get("name") or "", str(call.get("arguments"))) for call in calls]
            found.calls = [call for call in made if _named(call[0])]

    def finish(self) -> Reading:
        found = self._reading
        found.streamed = "".join(self._texts.values())
        found.text = found.streamed if found.final is None else found.final
        named = {at: name for at, name in self._names.items() if _named(name)}
        made = [(named[at], said) for at, said in self._arguments.items() if at in named]
        found.streamed_calls = made
        found.calls = made if found.final is None else found.calls
        found.first = found.text
        found.ended = "failed" if found.errors else self._ended or "cut"
        return found


class MessagesReading:
    """Adds up the blocks of a stream, or reads a message."""

    def __init__(self) -> None:
        self._reading = Reading()
        self._texts: dict[int, str] = {}
        self._names: dict[int, str] = {}
        self._inputs: dict[int, str] = {}
        self._given: dict[int, str] = {}
        self._stopped = False

    def take(self, text: str, *, stream: bool) -> None:
        event = parse(text)
        if event is None or self._stopped:
            self._reading.broken += 1
        elif not stream:
            self._take_message(event)
        elif event.get("type") == "error":
            self._reading.errors.append(event)
        elif event.get("type") == "message_stop":
            self._stopped = True
        else:
            self._take_block(_number(event.get("index")), event)

    def _take_message(self, message: Json) -> None:
        self._stopped = message.get("type") == "message"
        if not self._stopped:
            self._reading.errors.append(message)
        for index, block in enumerate(_list(message.get("content"))):
            if isinstance(block, dict):
                self._take_block(index, {"content_block": block})

    def _take_block(self, index: int, event: Json) -> None:
        block, delta = (_object(event.get(name)) for name in ("content_block", "delta"))
        for text in (block.get("text"), delta.get("text")):
            if isinstance(text, str):
                self._texts[index] = self._texts.get(index, "") + text
        if block.get("type") == "tool_use" and isinstance(block.get("name"), str):
            self._names[index] = block["name"]
            self._given[index] = _compact(block["input"]) if block.get("input") else "{}"
        if isinstance(piece := delta.get("partial_json"), str):
            self._inputs[index] = self._inputs.get(index, "") + piece

    def finish(self) -> Reading:
        found = self._reading
        found.text = found.streamed = found.first = "".join(self._texts.values())
        found.calls = [
            (name, self._inputs.get(at) or self._given[at])  # deltas replace what it began with
            for at, name in self._names.items()
            if name.strip()
        ]
        found.streamed_calls = found.calls
        found.ended = "failed" if found.errors else "well" if self._stopped else "cut"
        return found


READINGS: dict[str, type[ChatReading | ResponsesReading | MessagesReading]] = {
    "chat": ChatReading,
    "responses": ResponsesReading,
    "messages": MessagesReading,
}


def parse(text: str) -> Json | None:
    """Return a JSON object; None for anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _number(index: Any) -> int:
    """Return an index; 0 for what is none."""
    return index if isinstance(index, int) and not isinstance(index, bool) else 0


def _place(event: Json) -> Any:
    index = event.get("output_index")
    return f"{index}" if index is not None else f"id {event.get('item_id')}"


def _named(name: Any) -> bool:
    """Return whether a call has a name: one without can be no call."""
    return isinstance(name, str) and bool(name.strip())


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
