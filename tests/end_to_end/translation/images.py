"""The images in an answer, as clients find them."""

from __future__ import annotations

import json

from tests.support.asgi import Call
from tests.support.checker import check_responses


def images_of(client: str, reply: Call, *, stream: bool) -> list[str]:
    if client == "chat":
        data = reply.data.splitlines() if stream else [b"data: " + reply.data]
        chunks = [json.loads(line[6:]) for line in data if line.startswith(b"data: {")]
        messages = [
            choice["delta" if stream else "message"] for one in chunks for choice in one["choices"]
        ]
        (images,) = [message["images"] for message in messages if "images" in message]
        return [image["image_url"]["url"] for image in images]
    items = (
        [item.done for item in check_responses(reply.data).items.values()]
        if stream
        else reply.json["output"]
    )
    calls = [item for item in items if item and item["type"] == "image_generation_call"]
    assert {call["status"] for call in calls} == {"completed"}
    return [f"data:image/{call['output_format']};base64,{call['result']}" for call in calls]
