"""Answers that consist of what upstream ran itself, read for clients of other APIs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.apis.gemini import scripts as gemini
from tests.apis.interactions import scripts as interactions
from tests.apis.messages import scripts as messages
from tests.support.streams import (
    call_item,
    frame,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)
from tests.support.translated import TranslatedTurn, read_events, turn_of

SEARCH = {"id": "ws_0", "type": "web_search_call", "status": "completed"}
REMOTE = {"id": "mcp_0", "type": "mcp_call", "name": "roll", "status": "completed"}
SEARCHED = {"type": "google_search_call", "id": "g_1", "arguments": {"queries": ["a"]}}
FOUND = {"type": "google_search_result", "call_id": "g_1", "result": []}
REMOTELY = {"type": "mcp_server_tool_call", "id": "m_1", "name": "roll", "arguments": {}}
TOOL_CALL = {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "a"}}

Json = dict[str, Any]


def both_ways(api: str, whole: Json, stream: list[bytes]) -> list[TranslatedTurn]:
    return [
        turn_of(read_events(api, b"".join(stream))),
        turn_of(read_events(api, json.dumps(whole).encode(), streamed=False)),
    ]


def answers(api: str, *items: Json) -> list[TranslatedTurn]:
    match api:
        case "responses":
            output = list(items)
            return both_ways(api, response(output), responses_stream(output))
        case "messages":
            content = list(items)
            return both_ways(api, messages.message(content), messages.stream(content))
    if api == "interactions":
        steps = list(items)
        return both_ways(api, interactions.whole(steps), interactions.stream(steps))
    parts = list(items)
    whole = gemini.whole(parts)
    return both_ways(api, whole, [frame(whole)])


ONLY_HOSTED: dict[str, tuple[list[Json], list[Json]]] = {
    "responses": (
        [reasoning_item(0, "Hm."), SEARCH, REMOTE],
        [{"type": "web_search_call"}, {"type": "mcp_call", "name": "roll"}],
    ),
    "messages": (
        [messages.thinking("Hm."), *messages.search()],
        [{"type": "server_tool_use", "name": "web_search"}],
    ),
    "gemini": (
        [gemini.thought("Hm."), TOOL_CALL, {"executableCode": {"code": "1"}}],
        [{"type": "toolCall", "name": "GOOGLE_SEARCH_WEB"}, {"type": "executableCode"}],
    ),
    "interactions": (
        [interactions.thought("Hm."), SEARCHED, FOUND, REMOTELY],
        [{"type": "google_search_call"}, {"type": "mcp_server_tool_call", "name": "roll"}],
    ),
}


@pytest.mark.parametrize("api", list(ONLY_HOSTED))
def test_they_stop_and_say_what_was_run(api: str) -> None:
    items, calls = ONLY_HOSTED[api]
    for turn in answers(api, *items):
        assert (turn.ok, turn.answer.stop, turn.answer.text) == (True, "stop", "")
        assert turn.answer.hosted_calls == calls


SAID: dict[str, list[Json]] = {
    "responses": [message_item(3, "So.")],
    "messages": [messages.text("So.")],
    "gemini": [gemini.text("So.")],
    "interactions": [interactions.output("So.")],
}
CALLED: dict[str, list[Json]] = {
    "responses": [call_item(3, "f", "{}")],
    "messages": [messages.tool_use(0)],
    "gemini": [gemini.function_call("fc_1")],
    "interactions": [interactions.function_call("fc_1")],
}


@pytest.mark.parametrize("api", list(ONLY_HOSTED))
@pytest.mark.parametrize("more", [SAID, CALLED], ids=["text", "call"])
def test_any_other_answer_says_nothing_of_it(api: str, more: dict[str, list[Json]]) -> None:
    for turn in answers(api, *ONLY_HOSTED[api][0], *more[api]):
        assert turn.answer.hosted_calls == []
