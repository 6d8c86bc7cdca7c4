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

TEXTS = ("input_text", "output_text", "text")
"""Some servers and clients send `text` for either of the others."""


def read_parts(content: Any, param: str) -> list[Part]:
    if content is None or isinstance(content, str):
        return [Text(content)] if content else []
    return [_read(part, name) for part, name in entries(content, param)]


def _read(part: Json, param: str) -> Part:
    kind = part.get("type")
    if kind in TEXTS:
        return Text(string(part.get("text")))
    if kind == "refusal":
        return Refusal(string(part.get("refusal")))
    if kind == "input_image":
        url, id_ = string(part.get("image_url")), string(part.get("file_id"))
        return Image(url, id_, string(part.get("detail")), param=param)
    if kind == "input_file":
        data, url = string(part.get("file_data")), string(part.get("file_url"))
        id_, name = string(part.get("file_id")), string(part.get("filename"))
        return File(data, url, id_, name, param=param)
    if kind == "input_audio":
        audio = an_object(part.get("input_audio"), f"{param}.input_audio")
        return Audio(string(audio.get("data")), string(audio.get("format")), param=param)
    return Foreign(part, param)


def write_content(parts: Sequence[Part], unfit: list[Unfit]) -> str | list[Json]:
    return contents.write_content(parts, WRITERS, unfit)


def _image(image: Image) -> Json:
    said = {"image_url": image.url, "file_id": image.file}
    given = {key: value for key, value in said.items() if value}
    return {"type": "input_image", **given, "detail": image.detail or "auto"}


def _file(file: File) -> Json:
    said = {
        "filename": file.name,
        "file_data": file.data,
        "file_url": file.url,
        "file_id": file.file,
    }
    return {"type": "input_file", **{key: value for key, value in said.items() if value}}


WRITERS: Writers = MappingProxyType(
    {
        Text: lambda part: {"type": "input_text", "text": part.text},
        Refusal: lambda part: {"type": "refusal", "refusal": part.text},
        Image: _image,
        File: _file,
    }
)
