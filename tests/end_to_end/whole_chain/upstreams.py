"""How the upstreams of five APIs say a speech, in frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.end_to_end.whole_chain.speech import Part, Piece, Speech
from tests.support.streams import CREATED, frame

Json = dict[str, Any]


def _said(speech: Speech) -> tuple[Piece, ...]:
    return speech.pieces if speech.cut is None else speech.pieces[: speech.cut]


def _has_calls(speech: Speech) -> bool:
    return any(part.kind == "call" for part in speech.parts)


# Chat Completions


def chat(speech: Speech) -> list[bytes]:
    header = {"id": "c", "object": "chat.completion.chunk", "created": CREATED, "model": "m"}
    deltas = [{"role": "assistant"}, *_chat_deltas(speech)]
    if speech.together:
        deltas = list(_joined(deltas))
    choices: list[Json] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    if speech.finishes:
        reason = "tool_calls" if _has_calls(speech) else "stop"
        choices.append({"index": 0, "delta": {}, "finish_reason": reason})
    frames = [frame({**header, "choices": [choice]}) for choice in choices]
    return [*frames, b"data: [DONE]\n\n"] if speech.ends else frames


def _chat_deltas(speech: Speech) -> Iterator[Json]:
    numbers = [number for number, part in enumerate(speech.parts) if part.kind == "call"]
    for piece in _said(speech):
        part = speech.parts[piece.part]
        if part.kind == "reasoning":
            yield {"reasoning_content": piece.text}
        elif part.kind == "text":
            yield {"content": piece.text}
        else:
            yield {"tool_calls": [_chat_fragment(part, piece, numbers.index(piece.part))]}


def _chat_fragment(part: Part, piece: Piece, index: int) -> Json:
    fragment: Json = {"index": index, "function": {"arguments": piece.text}}
    if piece.first:
        fragment |= {"id": part.id, "type": "function"}
        fragment["function"] = {"name": part.name, "arguments": piece.text}
    return fragment


def _joined(deltas: list[Json]) -> Iterator[Json]:
    """Put deltas of different fields into one, as servers do that send them at intervals."""
    held: Json = {}
    for delta in deltas:
        if held.keys() & delta.keys():
            yield held
            held = {}
        held = {**held, **delta}
    yield held


# Responses


def responses(speech: Speech) -> list[bytes]:
    events = [_responses_event("created", response=_response(speech, "in_progress", []))]
    for piece in _said(speech):
        events += _responses_piece(speech, piece)
    if speech.finishes:
        output = [_item(number, part, part.text) for number, part in enumerate(speech.parts)]
        events.append(
            _responses_event("completed", response=_response(speech, "completed", output))
        )
    for number, event in enumerate(events):
        event["sequence_number"] = number
    return [frame(event, event["type"]) for event in events]


def _responses_event(kind: str, **fields: Any) -> Json:
    return {"type": f"response.{kind}", **fields}


def _response(speech: Speech, status: str, output: list[Json]) -> Json:
    header = {"id": "resp_1", "object": "response", "created_at": CREATED, "model": "m"}
    return {**header, "status": status, "output": output, "tools": [], "usage": None}


def _item(number: int, part: Part, text: str) -> Json:
    match part.kind:
        case "reasoning":
            content: list[Json] = [{"type": "reasoning_text", "text": text}] if text else []
            return {"id": f"rs_{number}", "type": "reasoning", "summary": [], "content": content}
        case "text":
            content = [{"type": "output_text", "text": text, "annotations": []}] if text else []
            head = {"id": f"msg_{number}", "type": "message", "role": "assistant"}
            return {**head, "status": "completed", "content": content}
        case _:
            head = {"id": f"fc_{number}", "type": "function_call", "status": "completed"}
            return {**head, "call_id": part.id, "name": part.name, "arguments": text}


DELTAS = {
    "reasoning": "reasoning_text.delta",
    "text": "output_text.delta",
    "call": "function_call_arguments.delta",
}


def _responses_piece(speech: Speech, piece: Piece) -> Iterator[Json]:
    part = speech.parts[piece.part]
    item = _item(piece.part, part, "")
    place: Json = {"output_index": piece.part, "item_id": item["id"]}
    if piece.first:
        yield _responses_event("output_item.added", output_index=piece.part, item=item)
    within = place if part.kind == "call" else {**place, "content_index": 0}
    empty = {"type": "reasoning_text" if part.kind == "reasoning" else "output_text", "text": ""}
    if piece.first and part.kind != "call":
        yield _responses_event("content_part.added", **within, part=empty)
    if piece.text:
        yield _responses_event(DELTAS[part.kind], **within, delta=piece.text)
    if piece.last:
        yield from _responses_ends(speech, piece.part, within, empty)


def _responses_ends(speech: Speech, number: int, within: Json, empty: Json) -> Iterator[Json]:
    part = speech.parts[number]
    kind = DELTAS[part.kind].replace(".delta", ".done")
    if speech.repeats:
        yield _responses_event(
            kind, **within, **{"arguments" if part.kind == "call" else "text": part.text}
        )
        if part.kind != "call":
            yield _responses_event("content_part.done", **within, part={**empty, "text": part.text})
    item = _item(number, part, part.text)
    yield _responses_event("output_item.done", output_index=number, item=item)


# Messages


def messages(speech: Speech) -> list[bytes]:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    usage = {"input_tokens": 1, "output_tokens": 1}
    start = {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}
    events: list[Json] = [{"type": "message_start", "message": start}]
    for piece in _said(speech):
        events += _messages_piece(speech, piece)
    if speech.finishes:
        reason = "tool_use" if _has_calls(speech) else "end_turn"
        delta = {"stop_reason": reason, "stop_sequence": None}
        events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}})
    if speech.ends:
        events.append({"type": "message_stop"})
    return [frame(event, event["type"]) for event in events]


def _messages_piece(speech: Speech, piece: Piece) -> Iterator[Json]:
    part, place = speech.parts[piece.part], {"index": piece.part}
    if piece.first:
        yield {"type": "content_block_start", **place, "content_block": _block(part)}
    if piece.text:
        yield {"type": "content_block_delta", **place, "delta": _block_delta(part, piece.text)}
    if piece.last and speech.tells_stops:
        yield {"type": "content_block_stop", **place}


def _block(part: Part) -> Json:
    match part.kind:
        case "reasoning":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "text":
            return {"type": "text", "text": ""}
        case _:
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": {}}


def _block_delta(part: Part, text: str) -> Json:
    match part.kind:
        case "reasoning":
            return {"type": "thinking_delta", "thinking": text}
        case "text":
            return {"type": "text_delta", "text": text}
        case _:
            return {"type": "input_json_delta", "partial_json": text}


# Gemini


def gemini(speech: Speech) -> list[bytes]:
    parts = [found for piece in _said(speech) if (found := _gemini_part(speech, piece))]
    bodies = [_gemini_body([part]) for part in parts]
    if speech.together:
        bodies = [_gemini_body(parts)]
    if speech.finishes:
        bodies.append(_gemini_body([], finishReason="STOP"))
    return [_with_arguments(speech, frame(body)) for body in bodies]


def _with_arguments(speech: Speech, data: bytes) -> bytes:
    """Put arguments where they are named, as they are spelled."""
    for number, part in enumerate(speech.parts):
        data = data.replace(b'{"part": %d}' % number, part.text.encode())
    return data


def _gemini_body(parts: list[Json], **more: Any) -> Json:
    candidate = {"content": {"parts": parts, "role": "model"}, "index": 0, **more}
    return {"candidates": [candidate], "modelVersion": "m", "responseId": "r"}


def _gemini_part(speech: Speech, piece: Piece) -> Json | None:
    part = speech.parts[piece.part]
    if part.kind == "call":
        call = {"id": part.id, "name": part.name, "args": {"part": piece.part}}
        return {"functionCall": call} if piece.last else None
    thought = {"thought": True} if part.kind == "reasoning" else {}
    return {"text": piece.text, **thought}


# Interactions


def interactions(speech: Speech) -> list[bytes]:
    head = {"id": "v1_1", "object": "interaction", "model": "m"}
    created = {**head, "status": "in_progress"}
    events: list[Json] = [{"event_type": "interaction.created", "interaction": created}]
    for piece in _said(speech):
        events += _interactions_piece(speech, piece)
    if speech.finishes:
        status = "requires_action" if _has_calls(speech) else "completed"
        completed = {**head, "status": status}
        events.append({"event_type": "interaction.completed", "interaction": completed})
    frames = [frame(event, event["event_type"]) for event in events]
    return [*frames, b"event: done\ndata: [DONE]\n\n"] if speech.ends else frames


def _interactions_piece(speech: Speech, piece: Piece) -> Iterator[Json]:
    part, place = speech.parts[piece.part], {"index": piece.part}
    if piece.first:
        yield {"event_type": "step.start", **place, "step": _step(part)}
    if piece.text:
        yield {"event_type": "step.delta", **place, "delta": _step_delta(part, piece.text)}
    if piece.last and speech.tells_stops:
        yield {"event_type": "step.stop", **place}


def _step(part: Part) -> Json:
    match part.kind:
        case "reasoning":
            return {"type": "thought"}
        case "text":
            return {"type": "model_output"}
        case _:
            return {"type": "function_call", "id": part.id, "name": part.name, "arguments": {}}


def _step_delta(part: Part, text: str) -> Json:
    match part.kind:
        case "reasoning":
            return {"type": "thought_summary", "content": {"type": "text", "text": text}}
        case "text":
            return {"type": "text", "text": text}
        case _:
            return {"type": "arguments_delta", "arguments": text}


UPSTREAMS: dict[str, Callable[[Speech], list[bytes]]] = {
    "chat": chat,
    "responses": responses,
    "messages": messages,
    "gemini": gemini,
    "interactions": interactions,
}
