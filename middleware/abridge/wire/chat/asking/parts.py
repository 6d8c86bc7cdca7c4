"""Read and write the parts of a message's content."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from abridge.turn.question import Audio, File, Foreign, Image, Part, Refusal, Text, Unfit
from abridge.wire.asking import content as contents
from abridge.wire.asking.content import Writers
from abridge.wire.asking.require import an_object, entries
from abridge.wire.codec import Json, string

DETAILS = ("auto", "low", "high")
"""Values of an image's `detail` (openai-openapi, image parts of a message)."""


def read_parts(content: Any, param: str) -> list[Part]:
    """Read the parts of a content; thinking chunks are left out."""
    if content is None or isinstance(content, str):
        return [Text(content)] if content else []
    chunks = entries(content, param)
    return [_read(chunk, name) for chunk, name in chunks if chunk.get("type") != "thinking"]


def _read(chunk: Json, param: str) -> Part:
    kind = chunk.get("type")
    if kind == "text":
        return Text(string(chunk.get("text")))
    if kind == "refusal":
        return Refusal(string(chunk.get("refusal")))
    if kind == "image_url":
        image = chunk.get("image_url")
        image = image if isinstance(image, dict) else {"url": image}
        return Image(string(image.get("url")), detail=string(image.get("detail")), param=param)
    if kind == "file":
        file = an_object(chunk.get("file"), f"{param}.file")
        data, id_ = string(file.get("file_data")), string(file.get("file_id"))
        return File(data, file=id_, name=string(file.get("filename")), param=param)
    if kind == "input_audio":
        audio = an_object(chunk.get("input_audio"), f"{param}.input_audio")
        return Audio(string(audio.get("data")), string(audio.get("format")), param=param)
    return Foreign(chunk, param)


def write_content(parts: Sequence[Part], unfit: list[Unfit]) -> str | list[Json]:
    return contents.write_content(parts, WRITERS, unfit)


def _image(image: Image) -> Json | None:
    if not image.url:
        return None
    detail = "high" if image.detail == "original" else image.detail
    asked = {"detail": detail} if detail in DETAILS else {}
    return {"type": "image_url", "image_url": {"url": image.url, **asked}}


def _file(file: File) -> Json | None:
    said = {"filename": file.name, "file_data": file.data, "file_id": file.file}
    given = {key: value for key, value in said.items() if value}
    return {"type": "file", "file": given} if file.data or file.file else None


def _audio(audio: Audio) -> Json | None:
    given = {"data": audio.data, "format": audio.format}
    return {"type": "input_audio", "input_audio": given} if audio.data else None


WRITERS: Writers = MappingProxyType(
    {
        Text: lambda part: {"type": "text", "text": part.text},
        Refusal: lambda part: {"type": "refusal", "refusal": part.text},
        Image: _image,
        File: _file,
        Audio: _audio,
    }
)
