"""Random answers of each API, with JSON of any kind beside what is known in them.

Shares no code with Abridge.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar

from tests.apis.messages import scripts
from tests.support.canaries import objects_in
from tests.support.streams import (
    CHAT_USAGE,
    CREATED,
    call_item,
    message_item,
    pieces,
    reasoning_item,
    response,
    responses_stream,
)

Json = dict[str, Any]
T = TypeVar("T")

THOUGHT = "First I look at the question, and then I add the numbers one by one. So it is."
WORDS = ("The sum is 100.", 'It is "ten²" \\ é💡\n', "A < b, </think> and <think> are quoted.")
TAGGED = f"<think>{THOUGHT}</think>\n\nIt is 100."
ARGUMENTS = '{"to": "bob", "dry_run": true, "sum": [5, -0.5]}'
SPELLINGS = ("NaN", "-Infinity", "1E400", "12345678901234567890123", "0.1000000000000000000001")
HALF = '"\\ud83d"'
"""Half a character, which is written as an escape."""

NAMES = ("x_trace", "thoughts", "provider_specific_fields", "extra_content", "context", "raw")
"""Names under which something is put beside what is known; none of it is reasoning."""


def random_json(random: Random, depth: int = 0) -> Any:
    """Return a value that says something: no null, which may stand for nothing."""
    match random.randrange(8 if depth < 3 else 6):
        case 0 | 1:
            return f'It is {random.randrange(1000)}, "é" \\ \n'
        case 2:
            return random.choice([True, False, 0, -1, 1.5, 1e30, 2**63])
        case 3:
            return f"spelled {random.randrange(len(SPELLINGS))}"
        case 4:
            return "half"
        case 5:
            return {random.choice(["text", "type", "index", "delta", 'a"é']): "x"}
        case 6:
            return [random_json(random, depth + 1) for _ in range(random.randint(1, 3))]
    return {name: random_json(random, depth + 1) for name in random.sample(NAMES, 2)}


def put_beside(random: Random, payloads: Sequence[Json], times: int) -> list[Json]:
    """Return copies of these payloads with values under unknown names in random objects."""
    copies: list[Json] = copied(list(payloads))
    for _ in range(times):
        holder = random.choice(list(objects_in(random.choice(copies))))
        holder.setdefault(random.choice(NAMES), random_json(random))
    return copies


def encode(random: Random, payload: Json) -> str:
    """Spell a payload in one of the ways in which servers do."""
    separators = random.choice([(",", ":"), (", ", ": ")])
    spelled = json.dumps(payload, ensure_ascii=random.random() < 0.5, separators=separators)
    for number, spelling in enumerate(SPELLINGS):
        spelled = spelled.replace(f'"spelled {number}"', spelling)
    return spelled.replace('"half"', HALF)


def to_frames(random: Random, payloads: Sequence[Json]) -> list[bytes]:
    """Return the frames of a stream."""
    ends = random.choice(["\n", "\r\n"])
    named = [(payload.get("type"), encode(random, payload)) for payload in payloads]
    frames = [
        (f"event: {kind}{ends}" if kind else "") + f"data: {data}{ends}{ends}"
        for kind, data in named
    ]
    last = [] if payloads[0].get("type") else [f"data: [DONE]{ends}{ends}"]
    return [frame.encode() for frame in [*frames, *last]]


def random_cuts(random: Random, frames: Sequence[bytes]) -> list[int]:
    """Return where the bytes of a stream are split: nowhere, at its frames, or anywhere."""
    size = sum(map(len, frames))
    match random.randrange(3):
        case 0:
            return []
        case 1:
            return [sum(map(len, frames[:count])) for count in range(1, len(frames))]
    return [random.randrange(1, size) for _ in range(random.randint(1, 60))]


# Chat Completions


def chat_chunks(random: Random) -> list[Json]:
    """Return the chunks of one or two choices, several of whose deltas may share a chunk."""
    waiting = [_chat_deltas(random, lane) for lane in range(random.choice([1, 1, 2]))]
    chunks = [_chunk([deltas.pop(0)]) for deltas in waiting]
    while any(waiting):
        chosen = random.choice([deltas for deltas in waiting if deltas])
        others = [deltas for deltas in waiting if deltas and random.random() < 0.3]
        taken = [deltas for deltas in waiting if deltas is chosen or deltas in others]
        chunks.append(_chunk([deltas.pop(0) for deltas in taken]))
    last = _chunk([]) if random.random() < 0.5 else chunks.pop()
    return [*chunks, {**last, "usage": CHAT_USAGE}]


def _chunk(choices: list[Json]) -> Json:
    header = {"id": "c", "object": "chat.completion.chunk", "created": CREATED, "model": "m"}
    return {**header, "choices": choices}


def _chat_deltas(random: Random, lane: int) -> list[Json]:
    field = random.choice(["reasoning_content", "reasoning"])
    said: list[Json] = [{field: piece} for piece in pieces(THOUGHT, 9)]
    said += [{"content": piece} for piece in pieces(random.choice(WORDS), 5)]
    said += [{"images": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]
    fragments: list[Json] = [
        {"index": 0, "function": {"arguments": piece}} for piece in pieces(ARGUMENTS, 9)
    ]
    fragments[0] |= {"id": f"call_{lane}", "type": "function"}
    fragments[0]["function"] |= {"name": "f"}
    said += [{"tool_calls": [each]} for each in fragments] if random.random() < 0.5 else []
    deltas: list[Json] = []
    for each in said:
        if deltas and not deltas[-1].keys() & each.keys() and random.random() < 0.5:
            deltas[-1] = {**deltas[-1], **each}
        else:
            deltas.append(each)
    deltas = [{"role": "assistant", "content": ""}, *deltas, {}]
    choices: list[Json] = [
        {"index": lane, "delta": delta, "finish_reason": None} for delta in deltas
    ]
    for choice in random.sample(choices[1:], 3):
        choice["logprobs"] = {"content": [{"token": "x", "logprob": -1}], "refusal": None}
    choices[-1]["finish_reason"] = "stop"
    if random.random() < 0.5:
        choices[-2:] = [{**choices[-2], "finish_reason": "stop"}]
    return choices


def completion(random: Random) -> Json:
    """Return a whole completion."""
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": ARGUMENTS}}]
    said = random.choice([{"reasoning": THOUGHT}, {"reasoning_content": THOUGHT}, {}])
    message = {"content": random.choice([*WORDS, None]), "tool_calls": calls, **said}
    choice = {"message": {"role": "assistant", **message}, "finish_reason": "stop"}
    choices = [{"index": index, **choice} for index in range(random.choice([1, 2]))]
    header = {"id": "c", "object": "chat.completion", "created": CREATED, "model": "m"}
    return copied({**header, "choices": choices, "usage": CHAT_USAGE})


# Responses


def output(random: Random) -> list[Json]:
    """Return output items of many types, known or not."""
    makers: list[Callable[[int], Json]] = [
        lambda number: reasoning_item(number, THOUGHT, encrypted_content="c3RhdGU="),
        lambda number: message_item(number, random.choice(WORDS)),
        lambda number: call_item(number, "f", ARGUMENTS),
        lambda number: {"id": f"ws_{number}", "type": "web_search_call", "status": "completed"},
        lambda number: {"id": f"ig_{number}", "type": "image_generation_call", "result": "aGk="},
        lambda number: {"id": f"cp_{number}", "type": "compaction", "encrypted_content": "eA=="},
        lambda number: {"id": f"un_{number}", "type": "musing", "words": [{"said": "so"}]},
    ]
    chosen = [makers[0], *random.choices(makers, k=random.randint(1, 5))]
    items: list[Json] = [make(number) for number, make in enumerate(chosen)]
    for item in items:
        if item["type"] == "message":
            item["content"][0]["annotations"] = [{"type": "url_citation", "url": "u"}]
    return copied(items)


def whole_response(random: Random) -> Json:
    return copied(response(output(random)))


def responses_events(random: Random) -> list[Json]:
    """Return the events of a response, with some of unknown types about its items."""
    frames = responses_stream(output(random))
    events: list[Json] = []
    for event in (json.loads(one.partition(b"data: ")[2]) for one in frames):
        events.append(event)
        if event["type"] == "response.output_item.added" and random.random() < 0.3:
            about = {"output_index": event["output_index"], "item_id": event["item"]["id"]}
            events.append({"type": "response.odd.progress", **about, "odd": True})
    for number, event in enumerate(events):
        event["sequence_number"] = number
    return events


# Messages


def content(random: Random) -> list[Json]:
    """Return blocks of many types, known or not."""
    place = {"start_char_index": 0, "end_char_index": 1, "document_index": 0}
    citation = {"type": "char_location", "cited_text": "x", "document_title": None, **place}
    makers: list[Callable[[int], list[Json]]] = [
        lambda number: [scripts.thinking(THOUGHT)],
        lambda number: [scripts.redacted("b3BhcXVl")],
        lambda number: [scripts.text(random.choice(WORDS))],
        lambda number: [{**scripts.text(random.choice(WORDS)), "citations": [citation]}],
        lambda number: [{**scripts.tool_use(number), "input": json.loads(ARGUMENTS)}],
        scripts.search,
        lambda number: [{"type": "musing", "words": [{"said": "so"}]}],
    ]
    chosen = [makers[0], *random.choices(makers, k=random.randint(1, 5))]
    return copied([block for number, make in enumerate(chosen) for block in make(number)])


def _stop(blocks: list[Json]) -> str:
    return "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"


def message(random: Random) -> Json:
    blocks = content(random)
    return copied(scripts.message(blocks, _stop(blocks)))


def messages_events(random: Random) -> list[Json]:
    """Return the events of a message, with some of an unknown type."""
    blocks = content(random)
    events: list[Json] = []
    for frame in scripts.stream(blocks, _stop(blocks))[:-1]:
        events.append(json.loads(frame.partition(b"data: ")[2]))
        if random.random() < (0.3 if events[-1]["type"] == "content_block_start" else 0.03):
            events.append({"type": "odd_event", "odd": True})
    return [*events, {"type": "message_stop"}]


def copied(value: T) -> T:
    """Return a copy that shares nothing with a fixture, nor one part of it with another."""
    copy: T = json.loads(json.dumps(value))
    return copy


STREAMS = {"chat": chat_chunks, "responses": responses_events, "messages": messages_events}
WHOLES = {"chat": completion, "responses": whole_response, "messages": message}
