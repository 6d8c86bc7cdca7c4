"""Scripted answers of Gemini's Interactions API, whole and streamed, as its documentation and the
types of its official client show them. None of them was recorded."""

from __future__ import annotations

import json
from typing import Any

from abridge.apis.display import Display
from abridge.apis.interactions.api import INTERACTIONS
from abridge.apis.protocols import Reader
from abridge.core.events import Event
from abridge.providers.catalog import PROFILES
from tests.support.streams import frame, pieces

Json = dict[str, Any]

USAGE = {
    "total_input_tokens": 23,
    "total_output_tokens": 20,
    "total_thought_tokens": 50,
    "total_cached_tokens": 7,
    "total_tool_use_tokens": 0,
    "total_tokens": 93,
    "input_tokens_by_modality": [{"modality": "text", "tokens": 23}],
}
SIGNATURE = "Ev8BCvwBAXLI2nx9k4c7"


def thought(text: str = "", signature: str = SIGNATURE) -> Json:
    summary = {"summary": [{"type": "text", "text": text}]} if text else {}
    return {"type": "thought", **({"signature": signature} if signature else {}), **summary}


def text(words: str, *annotations: Json) -> Json:
    return {
        "type": "text",
        "text": words,
        **({"annotations": list(annotations)} if annotations else {}),
    }


def image(media_type: str, data: str) -> Json:
    return {"type": "image", "mime_type": media_type, "data": data}


def output(*contents: Json | str) -> Json:
    content = [text(each) if isinstance(each, str) else each for each in contents]
    return {"type": "model_output", "content": content}


def function_call(identity: str = "un6k8t18", name: str = "look", **arguments: Any) -> Json:
    return {"type": "function_call", "id": identity, "name": name, "arguments": arguments}


def event(kind: str, **fields: Any) -> Json:
    return {**fields, "event_type": kind}


def interaction(status: str, **more: Any) -> Json:
    head = {"id": "v1_ChdKq2Zt", "object": "interaction", "model": "gemini-3-flash-preview"}
    dates = {"created": "2026-05-12T18:44:51Z", "updated": "2026-05-12T18:44:51Z"}
    return {**head, "status": status, **dates, **more}


def status_of(steps: list[Json]) -> str:
    calls = [step for step in steps if step["type"] == "function_call"]
    return "requires_action" if calls else "completed"


def whole(steps: list[Json], status: str = "", **more: Any) -> Json:
    return interaction(status or status_of(steps), usage=USAGE, steps=steps, **more)


def events(steps: list[Json], status: str = "") -> list[Json]:
    """Return the events in which these steps stream."""
    told = [
        event("interaction.created", interaction=interaction("in_progress")),
        event("interaction.status_update", interaction_id="v1_ChdKq2Zt", status="in_progress"),
    ]
    for index, step in enumerate(steps):
        told += [event("step.start", index=index, step=start_of(step))]
        told += [event("step.delta", index=index, delta=delta) for delta in deltas_of(step)]
        told += [event("step.stop", index=index)]
    ended = interaction(status or status_of(steps), usage=USAGE)
    return [*told, event("interaction.completed", interaction=ended)]


def frames(told: list[Json]) -> list[bytes]:
    return [frame(each, each.get("event_type")) for each in told]


def stream(steps: list[Json], status: str = "") -> list[bytes]:
    return [*frames(events(steps, status)), b"event: done\ndata: [DONE]\n\n"]


def start_of(step: Json) -> Json:
    """Return what a step starts with: its content comes in deltas."""
    rest = {key: step[key] for key in step if key not in ("summary", "signature", "content")}
    return {**rest, "arguments": {}} if step["type"] == "function_call" else rest


def deltas_of(step: Json) -> list[Json]:
    match step["type"]:
        case "thought":
            said = [piece for part in step.get("summary", []) for piece in _pieces(part)]
            told = [{"type": "thought_summary", "content": piece} for piece in said]
            signature = step.get("signature")
            signed = [{"type": "thought_signature", "signature": signature}] if signature else []
            return [*told, *signed]
        case "model_output":
            return [delta for content in step["content"] for delta in _content_deltas(content)]
        case "function_call":
            written = json.dumps(step["arguments"])
            return [{"type": "arguments_delta", "arguments": piece} for piece in pieces(written)]
    return []


def _content_deltas(content: Json) -> list[Json]:
    annotations = content.get("annotations")
    noted = [{"type": "text_annotation_delta", "annotations": annotations}] if annotations else []
    return [*_pieces({key: content[key] for key in content if key != "annotations"}), *noted]


def _pieces(content: Json) -> list[Json]:
    words = content.get("text")
    if not isinstance(words, str):
        return [content]
    return [{**content, "text": piece} for piece in pieces(words)]


def reader(limit: int = 1 << 20, **display: Any) -> Reader:
    return INTERACTIONS.translating_reader(PROFILES["gemini-native"], Display(**display), limit)


def read_frames(given: list[bytes], by: Reader | None = None) -> list[Event]:
    """Return all events read from a stream."""
    by = by or reader()
    return [*(each for one in given for each in by.read(one)), *by.end()]
