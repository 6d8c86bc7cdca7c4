"""A field that cannot be translated is reported under the client's name for it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.end_to_end.translation.test_translation import KEY, bridge
from tests.end_to_end.translation.turn import PATHS, answer
from tests.support.asgi import call
from tests.support.upstream import Upstream

SOUND = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
ITEMS: dict[str, tuple[str, dict[str, Any]]] = {
    "audio": ("input[0].content[0]", {"input": [{"role": "user", "content": [SOUND]}]}),
    "an image of no kind": (
        "input[0].content[0]",
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
    ),
    "a file of no kind": (
        "input[0].content[0]",
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_data": "x"}]}]},
    ),
    "nothing": ("input", {"input": ""}),
    "nothing but blanks": ("input", {"input": [{"role": "user", "content": " "}]}),
    "nothing but thoughts": (
        "input",
        {"input": [{"type": "reasoning", "summary": [], "encrypted_content": "x"}]},
    ),
    "a format": ("text.format", {"input": "Hi", "text": {"format": {"type": "json_object"}}}),
    "what is kept elsewhere": (
        "previous_response_id",
        {"input": "Hi", "previous_response_id": "r"},
    ),
    "a temperature": ("temperature", {"input": "Hi", "temperature": "hot"}),
    "a bound": ("max_output_tokens", {"input": "Hi", "max_output_tokens": 0}),
}
MESSAGES: dict[str, tuple[str, dict[str, Any]]] = {
    "audio": ("messages[0].content[0]", {"messages": [{"role": "user", "content": [SOUND]}]}),
    "nothing": ("messages", {"messages": [{"role": "user", "content": ""}]}),
    "stops": ("stop", {"messages": [{"role": "user", "content": "Hi"}], "stop": [1]}),
}


@pytest.mark.parametrize("case", ITEMS)
async def test_toward_messages_by_the_names_of_responses(case: str) -> None:
    param, fields = ITEMS[case]
    await assert_refused("responses", param, fields)


@pytest.mark.parametrize("case", MESSAGES)
async def test_toward_messages_by_the_names_of_chat(case: str) -> None:
    param, fields = MESSAGES[case]
    await assert_refused("chat", param, fields)


async def assert_refused(client: str, param: str, fields: dict[str, Any]) -> None:
    played = Upstream(answer("messages", stream=False))
    reply = await call(bridge(played, "messages"), PATHS[client], {"model": "m", **fields}, KEY)
    assert (reply.status, reply.json["error"]["param"]) == (400, param)
    assert not played.requests
