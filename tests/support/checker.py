"""The stream checker: assert OpenAI's order on any stream that a test produces, and read it.

Every test that sees a stream uses it. It shares no code with Abridge.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

TERMINAL = ("response.completed", "response.incomplete", "response.failed")
ANSWER_FIELDS = ("content", "refusal", "tool_calls", "function_call")
REASONING_FIELDS = ("reasoning_content", "reasoning")


def frames(stream: bytes) -> list[tuple[str | None, str]]:
    """Return the name and data of each event in a stream, without comments."""
    ends = b"\n\n", b"\r\n\r\n"
    assert stream == b"" or stream.endswith(ends), f"unterminated: {stream[-200:]!r}"
    found = []
    for block in stream.decode().replace("\r\n", "\n").split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if not lines:
            continue
        names = [line[6:].strip() for line in lines if line.startswith("event:")]
        data = [line[5:].removeprefix(" ") for line in lines if line.startswith("data:")]
        assert len(data) == 1, f"one data line an event: {block!r}"
        found.append((names[0] if names else None, data[0]))
    return found


def comments(stream: bytes) -> list[str]:
    return [line[1:].strip() for line in stream.decode().splitlines() if line.startswith(":")]


CallAttribution = list[dict[str, str]] | str | None
"""The reasoning parts that led to a call, or the id of another call, or nothing."""


def attribution_of(call: dict[str, Any]) -> CallAttribution:
    """Read a call's attribution, checking its form."""
    assert not ("reasoning" in call and "reasoning_ref" in call), f"never both: {call}"
    attributions: CallAttribution = call.get("reasoning", call.get("reasoning_ref"))
    assert "reasoning" not in call or (isinstance(attributions, list) and attributions)
    for part in attributions if isinstance(attributions, list) else ():
        kind = part["type"]
        assert kind in ("reasoning_text", "summary_text", "redacted")
        assert part.keys() == ({"type"} if kind == "redacted" else {"type", "text"})
        assert kind == "redacted" or part["text"].strip()
    return attributions


def check_attributions(ids: list[str], attributions: list[CallAttribution]) -> None:
    """Assert that each reference is to the latest earlier call that has parts."""
    latest = None
    for call, one in zip(ids, attributions, strict=True):
        if isinstance(one, str):
            assert one == latest, f"{call} refers to {one}, not to {latest}"
        latest = call if isinstance(one, list) else latest


TEXT_DONE = {
    "response.output_text.done": "text",
    "response.reasoning_text.done": "text",
    "response.refusal.done": "refusal",
}
"""The events with the whole text of a part, and its field."""


@dataclass
class Part:
    text: str = ""
    done: str | None = None
    closed: bool = False
    status: str | None = None


@dataclass
class Item:
    id: str
    type: str
    parts: list[Part] = field(default_factory=list)
    raw: str = ""
    text: str = ""
    arguments: str = ""
    contents: list[Part] = field(default_factory=list)
    done: dict[str, Any] | None = None

    @property
    def summary(self) -> list[str]:
        return [part.text for part in self.parts]


@dataclass
class ResponsesStream:
    """The contents of a Responses stream. `kinds` are the event types, in order."""

    events: list[dict[str, Any]] = field(default_factory=list)
    items: dict[int, Item] = field(default_factory=dict)
    terminal: dict[str, Any] | None = None
    errors: list[dict[str, Any]] = field(default_factory=list)
    texts_agree: bool = True

    @property
    def kinds(self) -> list[str]:
        return [event["type"] for event in self.events]

    @property
    def response(self) -> dict[str, Any]:
        assert self.terminal is not None
        response: dict[str, Any] = self.terminal["response"]
        return response

    @property
    def text(self) -> str:
        return "".join(item.text for item in self.items.values())

    @property
    def reasoning(self) -> list[Item]:
        return [item for item in self.items.values() if item.type == "reasoning"]

    @property
    def summary(self) -> list[str]:
        return [text for item in self.reasoning for text in item.summary]

    @property
    def raw(self) -> str:
        return "".join(item.raw for item in self.reasoning)


def check_responses(stream: bytes, *, texts_agree: bool = True) -> ResponsesStream:
    """Assert that a Responses stream is legal; return its contents.

    Deltas, done events and final texts agree, unless upstream's own do not: then `texts_agree` is
    False.
    """
    seen = ResponsesStream(texts_agree=texts_agree)
    open_item: int | None = None
    for name, data in frames(stream):
        if data == "[DONE]":
            assert seen.terminal is not None, "[DONE] before the end"
            continue
        event = json.loads(data)
        kind = event["type"]
        assert name == kind, f"event: {name} but type {kind}"
        assert event.get("sequence_number") == len(seen.events), f"numbers are dense: {event}"
        if not seen.events:
            assert kind in ("response.created", "error"), f"first comes created, not {kind}"
        else:
            assert kind != "response.created", "created once"
        assert seen.terminal is None, f"{kind} after the end"
        seen.events.append(event)
        if kind == "error":
            seen.errors.append(event)
            continue
        if "response" in event:
            first = seen.events[0]
            assert event["response"]["id"] == first["response"]["id"], "the response's id changed"
        if kind == "response.output_item.added":
            number, item = event["output_index"], event["item"]
            assert open_item is None, f"{number} added before {open_item} was done"
            assert number == len(seen.items), f"output_index is dense: {number}"
            assert item["id"] not in {other.id for other in seen.items.values()}, "ids are unique"
            seen.items[number] = Item(item["id"], item["type"])
            open_item = number
        elif kind in TERMINAL:
            seen.terminal = event
            _check_end(seen, open_item)
        elif "output_index" in event:
            assert event["output_index"] == open_item, f"{kind} of an item not open: {event}"
            _check_item_event(seen.items[event["output_index"]], event, texts_agree=texts_agree)
            if kind == "response.output_item.done":
                open_item = None
    return seen


def _check_item_event(item: Item, event: dict[str, Any], *, texts_agree: bool) -> None:
    kind = event["type"]
    if "content_index" in event and "summary" not in kind:
        _check_content_event(item, event, texts_agree=texts_agree)
    if texts_agree:
        _check_item_texts(item, event)
    if "item_id" in event:
        assert event["item_id"] == item.id, f"{kind} addresses {event['item_id']}, not {item.id}"
    if kind.startswith("response.reasoning_summary"):
        _check_part_event(item, event)
    elif kind in ("response.reasoning_text.delta", "response.output_text.delta"):
        assert event["delta"] != "" or _says_more(event), "no empty deltas"
        attribute = "raw" if "reasoning" in kind else "text"
        setattr(item, attribute, getattr(item, attribute) + event["delta"])
    elif kind == "response.function_call_arguments.delta":
        item.arguments += event["delta"]
    elif kind == "response.output_item.done":
        item.done = event["item"]
        _check_done(item, event["item"])


def _says_more(event: dict[str, Any]) -> bool:
    """Return whether a delta says more than its text."""
    plain = {*("type", "sequence_number", "item_id", "output_index", "content_index", "delta")}
    return any(event[key] not in (None, []) for key in event.keys() - plain)


def _check_content_event(item: Item, event: dict[str, Any], *, texts_agree: bool) -> None:
    """Assert that parts are added in order, and that each event is of an open one.

    Several may be open at once.
    """
    kind, index = event["type"], event["content_index"]
    if kind == "response.content_part.added":
        assert index == len(item.contents), f"content_index is dense: {index}"
        item.contents.append(Part())
        return
    assert index < len(item.contents), f"{kind} of a part that was not added: {index}"
    part = item.contents[index]
    assert not part.closed, f"{kind} of a part that is done: {index}"
    if kind.endswith(".delta"):
        assert part.done is None, "a delta after the part's text was done"
        part.text += event["delta"]
    elif kind == "response.content_part.done":
        assert part.done is not None, "part done before its text"
        part.closed = True
        fields = event["part"]
        text = fields.get("text", fields.get("refusal", part.text))
        assert not texts_agree or text == part.text, "the done part is the deltas joined"
    elif kind in TEXT_DONE:
        assert part.done is None, "a part's text is done once"
        part.done = event[TEXT_DONE[kind]]
        assert not texts_agree or part.done == part.text, "the done text is the deltas joined"


def _check_item_texts(item: Item, event: dict[str, Any]) -> None:
    """Assert that the deltas add up to each text that repeats all of an item's."""
    if event["type"] == "response.function_call_arguments.done":
        assert event["arguments"] == item.arguments, "the done arguments are the deltas joined"
    if event["type"] != "response.output_item.done":
        return
    done = event["item"]
    streamed = "".join(part.text for part in item.contents)
    if streamed:
        texts = [part.get("text", part.get("refusal", "")) for part in done.get("content", [])]
        assert "".join(texts) == streamed, "the item's text is the deltas joined"
    if item.arguments:
        assert done["arguments"] == item.arguments, "the item's arguments are the deltas joined"


def _check_part_event(item: Item, event: dict[str, Any]) -> None:
    assert item.type == "reasoning"
    kind, index = event["type"], event["summary_index"]
    if kind.endswith("part.added"):
        assert index == len(item.parts), f"summary_index is dense: {index}"
        assert all(part.closed for part in item.parts), "a part opens before the last is closed"
        assert event["part"] == {"type": "summary_text", "text": ""}
        item.parts.append(Part())
        return
    assert index == len(item.parts) - 1, f"{kind} of a part that is not the last: {index}"
    part = item.parts[index]
    assert not part.closed
    if kind.endswith("text.delta"):
        assert part.done is None, "a delta after the part's text was done"
        assert event["delta"] != ""
        part.text += event["delta"]
    elif kind.endswith("text.done"):
        assert event["text"] == part.text, "the done text is the deltas joined"
        part.done = event["text"]
    elif kind.endswith("part.done"):
        assert part.done is not None, "part done before its text"
        assert event["part"] == {"type": "summary_text", "text": part.text}
        part.closed, part.status = True, event.get("status")


def _check_done(item: Item, done: dict[str, Any]) -> None:
    assert (done["id"], done["type"]) == (item.id, item.type), "an item's identity changed"
    assert all(part.closed for part in item.contents), "an item is done while a part is open"
    assert all(part.closed for part in item.parts), "an item is done while a part is open"
    if item.type != "reasoning":
        return
    texts = [part["text"] for part in done["summary"]]
    if item.parts:
        assert texts == item.summary, "the item's summary is its parts"


def _check_end(seen: ResponsesStream, open_item: int | None) -> None:
    output = seen.response["output"]
    if seen.terminal is not None and seen.terminal["type"] == "response.completed":
        assert open_item is None, "completed while an item is open"
        assert [item["id"] for item in output] == [item.id for item in seen.items.values()]
    calls = [item for item in output if item["type"].endswith("_call")]
    check_attributions(
        [call.get("call_id") or call["id"] for call in calls], list(map(attribution_of, calls))
    )
    done = {item.id: item.done for item in seen.items.values() if item.done is not None}
    for call in calls:
        if call["id"] in done:
            assert attribution_of(call) == attribution_of(done[call["id"]]), (
                "a call is attributed anew at the end"
            )
    for item in output:
        if seen.texts_agree and item["id"] in done:
            for name in ("content", "arguments", "input"):
                assert item.get(name) == done[item["id"]].get(name), f"the final {name} differs"
        if item["type"] == "reasoning" and item["id"] in done:
            assert item["summary"] == done[item["id"]]["summary"], "the final summary differs"
            assert item.get("summary_error") == done[item["id"]].get("summary_error")


@dataclass
class Choice:
    role: str | None = None
    fields: dict[str, str] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    calls: dict[int, dict[str, str]] = field(default_factory=dict)
    attributions: list[CallAttribution] = field(default_factory=list)
    finish: str | None = None
    summary_error: dict[str, str] | None = None

    @property
    def text(self) -> str:
        return self.fields.get("content", "")


@dataclass
class ChatStream:
    chunks: list[dict[str, Any]] = field(default_factory=list)
    choices: dict[int, Choice] = field(default_factory=dict)
    usage: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    done: bool = False


def check_chat(stream: bytes) -> ChatStream:
    """Assert that a Chat Completions stream is legal; return its contents.

    A choice's `order` lists its fields as they came, consecutive repeats once.
    """
    seen = ChatStream()
    for _, data in frames(stream):
        assert not seen.done, f"after [DONE]: {data}"
        if data.startswith("[DONE]"):
            seen.done = True
            continue
        chunk = json.loads(data)
        seen.chunks.append(chunk)
        if chunk.get("error"):
            seen.error = chunk["error"]
            continue
        assert seen.error is None, f"after the error: {data}"
        for choice in chunk["choices"]:
            _check_choice(seen, choice)
        if seen.usage is not None:
            assert chunk.get("usage"), "a chunk after the usage erases it"
        seen.usage = chunk.get("usage") or seen.usage
    return seen


def _check_choice(seen: ChatStream, choice: dict[str, Any]) -> None:
    index = choice["index"]
    if index not in seen.choices:
        assert index == len(seen.choices), f"choices are announced in order: {index}"
        seen.choices[index] = Choice()
    state, delta = seen.choices[index], choice.get("delta") or {}
    _check_delta(state, delta)
    for call in delta.get("tool_calls") or ():
        _check_call(state, call)
    if choice.get("finish_reason"):
        assert state.finish is None, "finished once"
        state.finish = choice["finish_reason"]


def _check_delta(state: Choice, delta: dict[str, Any]) -> None:
    for name in ("role", "summary_error"):
        if delta.get(name):
            assert getattr(state, name) is None, f"{name} comes once"
            setattr(state, name, delta[name])
    for name in (*REASONING_FIELDS, *ANSWER_FIELDS, "summary_error"):
        if delta.get(name) and state.order[-1:] != [name]:
            state.order.append(name)
    for name in (*REASONING_FIELDS, "content", "refusal"):
        if isinstance(delta.get(name), str):
            state.fields[name] = state.fields.get(name, "") + delta[name]
    for name in ("reasoning_details", "thinking_blocks"):
        entries = delta[name] if isinstance(delta.get(name), list) else ()
        for entry in (entry for entry in entries if isinstance(entry, dict)):
            assert isinstance(entry["index"], int), f"{name} needs an index"


def _check_call(state: Choice, call: dict[str, Any]) -> None:
    index = call["index"]
    if index not in state.calls:
        assert index == len(state.calls), f"tool calls are dense: {index}"
        state.calls[index] = {"id": "", "name": "", "arguments": ""}
        state.attributions.append(attribution_of(call))
    else:
        assert attribution_of(call) is None, (
            f"a call is attributed once, by its first fragment: {call}"
        )
    known, function = state.calls[index], call.get("function") or {}
    for name, value in (("id", call.get("id")), ("name", function.get("name"))):
        assert not (value and known[name]), f"a call's {name} comes once"
        known[name] = known[name] or value or ""
    known["arguments"] += function.get("arguments") or ""
    check_attributions([call["id"] for call in state.calls.values()], state.attributions)
