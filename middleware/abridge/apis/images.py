"""Answers with images, rebuilt from what is understood of them, where raw reasoning is hidden.

A model that thinks before it draws may say so beside its images, as vLLM-Omni does in `cot_output`.
"""

from __future__ import annotations

from collections.abc import Mapping

from abridge.apis import sse
from abridge.apis.errors import ERROR, identifier, message
from abridge.apis.frames import parse_frame
from abridge.apis.json import dumps, string
from abridge.apis.shapes import (
    FILTER_RESULTS,
    DropCount,
    Shape,
    address,
    by_type,
    each,
    fields,
    figures,
    name,
    number,
    opaque,
    proper_name,
    rebuild,
    text,
    under,
)

_IMAGE: Mapping[str, Shape] = {"url": address, "b64_json": opaque, "revised_prompt": text}

_MADE_WITH: Mapping[str, Shape] = {
    **under("background output_format quality size", name),
    **under("created created_at", number),
    "usage": figures,
}

IMAGES = fields(
    _MADE_WITH,
    under("model provider", proper_name),
    names="id object",
    error=ERROR,
    data=each(
        fields(
            _IMAGE,
            under("content_filter_results prompt_filter_results", FILTER_RESULTS),  # Azure
            names="type mime_type",  # Together, xAI
            numbers="index seed",
        )
    ),
)
"""The shape of a body (openai-openapi: `ImagesResponse`)."""

_EVENT = fields(_IMAGE, _MADE_WITH, names="type", numbers="partial_image_index sequence_number")

_FAILURE = fields(under("code param", identifier), names="type", error=ERROR, message=message)

EVENT = by_type(
    {
        **under("image_generation.partial_image image_generation.completed", _EVENT),
        **under("image_edit.partial_image image_edit.completed", _EVENT),
        "error": _FAILURE,
        "": fields(error=ERROR),  # how many servers report an error within a stream
    }
)
"""The shape of an event (openai-openapi: `ImageGenStreamEvent`, `ImageEditStreamEvent`)."""


def rebuild_frame(frame: bytes, drops: DropCount) -> bytes:
    """Return a frame of a stream rebuilt; nothing of what is not understood. A comment stays, as it
    keeps the connection alive, without its words."""
    data = sse.frame_data(frame)
    if data is None:
        return sse.encode_comment("")
    if data.strip() == sse.DONE:
        return sse.encode_frame(sse.DONE)
    event = rebuild(parse_frame(frame), EVENT, drops)
    return sse.encode_frame(dumps(event), string(event.get("type"))) if event else b""
