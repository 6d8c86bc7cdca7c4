"""Scripted answers of Gemini's, whole and streamed, as its documentation shows them."""

from __future__ import annotations

from typing import Any

from abridge.apis.display import Display
from abridge.apis.gemini.api import GEMINI
from abridge.apis.protocols import Reader
from abridge.core.events import Event
from abridge.providers.catalog import PROFILES
from tests.support.streams import frame, pieces

Json = dict[str, Any]

USAGE = {
    "promptTokenCount": 23,
    "candidatesTokenCount": 20,
    "thoughtsTokenCount": 50,
    "cachedContentTokenCount": 7,
    "totalTokenCount": 93,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 23}],
}


def signed(part: Json, signature: str) -> Json:
    return {**part, "thoughtSignature": signature}


def thought(text: str) -> Json:
    return {"text": text, "thought": True}


def text(words: str) -> Json:
    return {"text": words}


def inline_data(media_type: str, data: str) -> Json:
    return {"inlineData": {"mimeType": media_type, "data": data}}


def function_call(identity: str = "", name: str = "look", **args: Any) -> Json:
    named = {"id": identity} if identity else {}
    return {"functionCall": {**named, "name": name, "args": args}}


def chunk(parts: list[Json], reason: str = "", **more: Any) -> Json:
    finish = {"finishReason": reason} if reason else {}
    candidate = {"content": {"parts": parts, "role": "model"}, **finish, "index": 0}
    return {
        "candidates": [candidate],
        "modelVersion": "gemini-3-flash-preview",
        "responseId": "Il0taoSYJ5Cez7",
        **more,
    }


def whole(parts: list[Json], reason: str = "STOP", **more: Any) -> Json:
    return chunk(parts, reason, usageMetadata=USAGE, **more)


def stream(parts: list[Json], reason: str = "STOP") -> list[bytes]:
    """Return the chunks in which these parts stream; a signature comes with the last piece."""
    so_far = {"promptTokenCount": 23, "totalTokenCount": 23}
    frames = [
        frame(chunk([piece], usageMetadata=so_far)) for part in parts for piece in _pieces(part)
    ]
    return [*frames, frame(chunk([text("")], reason, usageMetadata=USAGE))]


def _pieces(part: Json) -> list[Json]:
    if "text" not in part:
        return [part]
    rest = {key: part[key] for key in part if key not in ("text", "thoughtSignature")}
    split = [{"text": piece, **rest} for piece in pieces(part["text"])]
    if "thoughtSignature" in part:
        split.append({"text": "", **rest, "thoughtSignature": part["thoughtSignature"]})
    return split


def reader(limit: int = 1 << 20, **display: Any) -> Reader:
    return GEMINI.translating_reader(PROFILES["gemini-native"], Display(**display), limit)


def read_frames(frames: list[bytes], by: Reader | None = None) -> list[Event]:
    """Return all events read from a stream."""
    by = by or reader()
    return [*(event for each in frames for event in by.read(each)), *by.end()]
