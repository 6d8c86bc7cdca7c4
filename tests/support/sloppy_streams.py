"""Streams of servers that break the rules, event by event.

Each is the same turn: it reasons, answers, and in some calls two tools. Responses streams name the
code that sends them; Chat Completions streams leave out one thing each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from tests.support.streams import CREATED, DONE, THOUGHT, call, chat_stream, frame, pieces, response

Json = dict[str, Any]

TEXT = "One hundred."
CALLS = (("add", '{"a": 1}'), ("look", "{}"))
USAGE = {"input_tokens": 11, "output_tokens": 70, "total_tokens": 81}


def event(kind: str, **fields: Any) -> Json:
    return {"type": f"response.{kind}", **fields}


def named(events: Iterable[Json]) -> list[bytes]:
    return [frame(event, event["type"]) for event in events]


def text_part(text: str) -> Json:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def llama(text: str = TEXT, calls: Iterable[tuple[str, str]] = ()) -> list[bytes]:
    """ggml-org/llama.cpp tools/server/server-task.cpp at 00efb3e: no numbers, no indexes, no id
    of a call but the one it is addressed by, every end at the end. The last of the text may be in
    no delta: that comes with the end (`to_json_oaicompat_resp_stream`)."""
    begun = {"id": "resp_x", "object": "response", "status": "in_progress"}
    reasoning: Json = {"id": "rs_x", "summary": [], "type": "reasoning", "content": []}
    message_head = {"content": [], "id": "msg_x", "role": "assistant", "type": "message"}
    thought = [{"text": THOUGHT, "type": "reasoning_text"}]
    output: list[Json] = [{**reasoning, "content": thought, "encrypted_content": ""}]
    events = [
        event("created", response=begun),
        event("in_progress", response=begun),
        event(
            "output_item.added",
            item={**reasoning, "encrypted_content": "", "status": "in_progress"},
        ),
        *(event("reasoning_text.delta", delta=delta, item_id="rs_x") for delta in pieces(THOUGHT)),
    ]
    ends = [event("output_item.done", item=output[0])]
    if text:
        part = {"type": "output_text", "text": ""}
        streamed = pieces(text)[: None if calls else -1]
        events += [
            event("output_item.added", item={**message_head, "status": "in_progress"}),
            event("content_part.added", item_id="msg_x", part=part),
            *(event("output_text.delta", item_id="msg_x", delta=delta) for delta in streamed),
        ]
        output.append({**message_head, "status": "completed", "content": [text_part(text)]})
        ends += [
            event("output_text.done", item_id="msg_x", text=text),
            event("content_part.done", item_id="msg_x", part=text_part(text)),
            event("output_item.done", item=output[-1]),
        ]
    for number, (name, arguments) in enumerate(calls):
        at = f"fc_{number}"
        called = {"type": "function_call", "call_id": at, "name": name}
        kind = "function_call_arguments.delta"
        events += [
            event("output_item.added", item={**called, "arguments": "", "status": "in_progress"}),
            *(event(kind, delta=delta, item_id=at) for delta in pieces(arguments, 3)),
        ]
        output.append({**called, "status": "completed", "arguments": arguments})
        ends.append(event("output_item.done", item=output[-1]))
    final = {**begun, "created_at": CREATED, "status": "completed", "model": "thinker-1"}
    end = event("completed", response={**final, "output": output, "usage": USAGE})
    return named([*events, *ends, end])


def ollama() -> list[bytes]:
    """ollama/ollama openai/responses.go at 017eb8a: the reasoning is sent as a summary of which no
    part opens; a message before calls is never done, its index is the first call's too, and the
    final response lacks it."""
    reasoning: Json = {"id": "rs_5", "type": "reasoning", "summary": []}
    summary = {"item_id": "rs_5", "output_index": 0, "summary_index": 0}
    done = {"summary": [{"type": "summary_text", "text": THOUGHT}], "encrypted_content": THOUGHT}
    message = {"id": "msg_5", "type": "message", "status": "in_progress", "role": "assistant"}
    text = {"item_id": "msg_5", "output_index": 1, "content_index": 0}
    kind = "reasoning_summary_text"
    events = [
        event("created", response=response([], status="in_progress", usage=None)),
        event("in_progress", response=response([], status="in_progress", usage=None)),
        event("output_item.added", output_index=0, item=reasoning),
        *(event(f"{kind}.delta", **summary, delta=delta) for delta in pieces(THOUGHT)),
        event(f"{kind}.done", **summary, text=THOUGHT),
        event("output_item.done", output_index=0, item={**reasoning, **done}),
        event("output_item.added", output_index=1, item={**message, "content": []}),
        event("content_part.added", **text, part=text_part("")),
        *(event("output_text.delta", **text, delta=delta, logprobs=[]) for delta in pieces(TEXT)),
    ]
    output: list[Json] = [{**reasoning, **done}]
    for number, (name, arguments) in enumerate(CALLS):
        at = {"item_id": f"fc_5_{number}", "output_index": 1 + number}
        called = {"id": at["item_id"], "type": "function_call", "call_id": f"call_{number}"}
        output.append({**called, "status": "completed", "name": name, "arguments": arguments})
        added = {**output[-1], "status": "in_progress", "arguments": ""}
        events += [
            event("output_item.added", output_index=at["output_index"], item=added),
            event("function_call_arguments.delta", **at, delta=arguments),
            event("function_call_arguments.done", **at, arguments=arguments),
            event("output_item.done", output_index=at["output_index"], item=output[-1]),
        ]
    events.append(event("completed", response=response(output)))
    return named({**each, "sequence_number": place} for place, each in enumerate(events))


def vllm() -> list[bytes]:
    """vllm-project/vllm vllm/entrypoints/openai/serving_responses.py at 00b6063: every delta is a
    content of its own, the part of reasoning is opened as text, the message is announced under the
    id and index of the reasoning, no part of reasoning is closed."""
    count = iter(range(1000))
    reasoning: Json = {"type": "reasoning", "id": "a", "summary": []}
    thought = {"content": [{"text": THOUGHT, "type": "reasoning_text"}], "status": "completed"}
    message_head = {"id": "a", "type": "message", "role": "assistant", "status": "in_progress"}
    raw, text = {"output_index": 0, "item_id": "a"}, {"output_index": 1, "item_id": "b"}
    done = {**message_head, "id": "b", "content": [text_part(TEXT)], "status": "completed"}
    kind = "reasoning_text"
    events = [
        event("created", response=response([], status="in_progress", usage=None)),
        event("in_progress", response=response([], status="in_progress", usage=None)),
        event("output_item.added", output_index=0, item={**reasoning, "status": "in_progress"}),
        event("content_part.added", **raw, content_index=next(count), part=text_part("")),
        *(
            event(f"{kind}.delta", **raw, content_index=next(count), delta=delta)
            for delta in pieces(THOUGHT)
        ),
        event(f"{kind}.done", **raw, content_index=next(count), text=THOUGHT),
        event("output_item.done", output_index=0, item={**reasoning, **thought}),
        event("output_item.added", output_index=0, item={**message_head, "content": []}),
        event("content_part.added", **text, content_index=0, part=text_part("")),
        *(
            event("output_text.delta", **text, content_index=1 + place, delta=delta, logprobs=[])
            for place, delta in enumerate(pieces(TEXT))
        ),
        event("output_text.done", **text, content_index=8, text=TEXT, logprobs=[]),
        event("content_part.done", **text, content_index=9, part=text_part(TEXT)),
        event("output_item.done", output_index=1, item=done),
    ]
    final = [{**reasoning, **thought, "id": "rs_9"}, {**done, "id": "msg_9"}]
    events.append(event("completed", response=response(final)))
    return named({**each, "sequence_number": -1} for each in events)


def gpt_oss() -> list[bytes]:
    """openai/gpt-oss gpt_oss/responses_api/api_server.py: items have no ids, nor events."""
    reasoning: Json = {"type": "reasoning", "summary": []}
    thought = {"type": "reasoning_text", "text": THOUGHT}
    message_head: Json = {"type": "message", "role": "assistant", "status": "completed"}
    raw, text = ({"output_index": place, "content_index": 0} for place in (0, 1))
    output = [{**reasoning, "content": [thought]}, {**message_head, "content": [text_part(TEXT)]}]
    events = [
        event("created", response=response([], status="in_progress", usage=None)),
        event("output_item.added", output_index=0, item={**reasoning, "content": []}),
        event("content_part.added", **raw, part={**thought, "text": ""}),
        *(event("reasoning_text.delta", **raw, delta=delta) for delta in pieces(THOUGHT)),
        event("reasoning_text.done", **raw, text=THOUGHT),
        event("content_part.done", **raw, part=thought),
        event("output_item.done", output_index=0, item=output[0]),
        event("output_item.added", output_index=1, item={**message_head, "content": []}),
        event("content_part.added", **text, part=text_part("")),
        *(event("output_text.delta", **text, delta=delta) for delta in pieces(TEXT)),
        event("output_text.done", **text, text=TEXT),
        event("content_part.done", **text, part=text_part(TEXT)),
        event("output_item.done", output_index=1, item=output[1]),
        event("completed", response=response(output)),
    ]
    return named({**each, "sequence_number": 1 + place} for place, each in enumerate(events))


def only_wholes() -> list[bytes]:
    """LM Studio says reasoning in one event (earendil-works/pi pull 4191), and small gateways the
    answer too (Sophomoresty/gemini-web2api pull 57): no item begins, and no event has a name."""
    begun = {"id": "resp_1", "object": "response", "status": "in_progress"}
    events = [
        event("created", response=begun),
        event("reasoning_text.done", text=THOUGHT),
        event("output_text.done", text=TEXT),
        event("completed", response={**begun, "status": "completed", "usage": None}),
    ]
    return [frame(each) for each in events]


SLOPPY: dict[str, Callable[[], list[bytes]]] = {
    "llama.cpp": llama,
    "llama.cpp calls": lambda: llama(calls=CALLS),
    "llama.cpp only calls": lambda: llama("", CALLS),
    "ollama": ollama,
    "vllm": vllm,
    "gpt-oss": gpt_oss,
    "only wholes": only_wholes,
}


def _chunks(change: Callable[[Json], object]) -> list[bytes]:
    """A turn in Chat Completions, every chunk changed."""
    calls = [call(name, arguments, number) for number, (name, arguments) in enumerate(CALLS)]
    stream = [
        json.loads(one[6:]) for one in chat_stream(THOUGHT, TEXT, calls=calls, finish="stop")[:-1]
    ]
    for chunk in stream:
        change(chunk)
    return [*map(frame, stream), DONE]


def _lacking(*keys: str, of: str = "") -> list[bytes]:
    def lack(chunk: Json) -> None:
        for thing in {"": [chunk], "choice": chunk["choices"], "delta": _deltas(chunk)}[of]:
            for key in keys:
                thing.pop(key, None)

    return _chunks(lack)


def _deltas(chunk: Json) -> list[Json]:
    return [choice["delta"] for choice in chunk["choices"]]


def _uncounted(chunk: Json) -> None:
    for delta in _deltas(chunk):
        for fragment in delta.get("tool_calls", ()):
            del fragment["index"]


def _untyped(chunk: Json) -> None:
    for delta in _deltas(chunk):
        for fragment in delta.get("tool_calls", ()):
            del fragment["type"]


def _finishing_late(finish: str | None) -> Callable[[Json], None]:
    """Return what has chunks say so instead of null, or nothing where that is None."""

    def change(chunk: Json) -> None:
        for choice in chunk["choices"]:
            if choice["finish_reason"] is None and finish is None:
                del choice["finish_reason"]
            else:
                choice["finish_reason"] = choice["finish_reason"] or finish

    return change


def _finish_beside_the_usage(chunk: Json) -> None:
    """As OpenRouter has it."""
    if chunk.get("usage"):
        chunk["choices"] = [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}]


def _without_list(chunk: Json) -> None:
    chunk["choices"] = chunk["choices"] or None


SLOPPY_CHAT: dict[str, Callable[[], list[bytes]]] = {
    "no mark of the end": lambda: _lacking()[:-1],
    "no usage": lambda: _lacking("usage"),
    "no role": lambda: _lacking("role", of="delta"),
    "no index": lambda: _lacking("index", of="choice"),
    "no finish": lambda: _lacking("finish_reason", of="choice"),
    "a finish in the last chunk alone": lambda: _chunks(_finishing_late(None)),
    "an empty finish before": lambda: _chunks(_finishing_late("")),
    "a finish that is repeated": lambda: _chunks(_finish_beside_the_usage),
    "no type of calls": lambda: _chunks(_untyped),
    "no object": lambda: _lacking("object"),
    "an empty object": lambda: _chunks(lambda chunk: chunk.update(object="")),
    "no head": lambda: _lacking("id", "created", "model", "object"),
    "no index of calls": lambda: _chunks(_uncounted),
    "no choices with the usage": lambda: _chunks(_without_list),
}
