"""Test reasoning that goes back into messages, between tags."""

from __future__ import annotations

from typing import Any

import pytest

from abridge.apis.responses.history import put_into_tags, takes_tags
from abridge.providers.catalog import PROFILES
from tests.support.asgi import call
from tests.support.checker import check_responses
from tests.support.deployments import ORIGIN, build_app
from tests.support.streams import (
    THOUGHT,
    call_item,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

THINKING = THOUGHT.strip()
TRANSFORMERS = PROFILES["transformers"]
TAGGED = f"<think>\n{THINKING}\n</think>\n\n"
KEY = {"authorization": "Bearer sk-anna-1234567890"}


def texts(items: list[Any]) -> list[str]:
    """Return the texts of messages; the types of all other items."""
    return [
        item["content"][0]["text"] if item["type"] == "message" else item["type"] for item in items
    ]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([reasoning_item(0, THINKING), message_item(1, "So.")], [f"{TAGGED}So."]),
        ([reasoning_item(0, THINKING), call_item(1, "f", "{}")], [TAGGED, "function_call"]),
        ([reasoning_item(0, THINKING), message_item(1, f"{TAGGED}So.")], [f"{TAGGED}So."]),
        ([reasoning_item(0, THINKING)], [TAGGED]),
        ([message_item(0, "So."), reasoning_item(1, "")], ["So.", "reasoning"]),
    ],
)
def test_reasoning_is_put_before_the_text_that_follows(
    items: list[Any], expected: list[str]
) -> None:
    assert texts(list(put_into_tags(items, TRANSFORMERS))) == expected


def test_opaque_state_stays_in_its_item() -> None:
    sealed = {**reasoning_item(0, THINKING), "encrypted_content": "gAAAA"}
    assert list(put_into_tags([sealed], TRANSFORMERS)) == [sealed]


def test_which_servers_take_tags() -> None:
    assert [name for name, row in PROFILES.items() if takes_tags(row)] == [
        "prefilled",
        "transformers",
    ]


@pytest.mark.parametrize("keeps_reasoning", [True, False])
@pytest.mark.parametrize("expose", ["summary", "both"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_server_gets_its_reasoning_back_in_tags(
    expose: str, *, keeps_reasoning: bool, stream: bool
) -> None:
    output = [message_item(0, f"{TAGGED}So.")]
    first = Answer(responses_stream(output)) if stream else Answer.json(response(output))
    upstream = Upstream(first, Answer.json(response([message_item(0, "Done.")])))
    entry = {"base_url": f"{ORIGIN}/v1", "api": "responses", "profile": "transformers"}
    app = build_app(
        "sidecar",
        upstream,
        writer=Scripted(),
        upstreams=[entry],
        reasoning={"expose": expose},
        history={"restore": "always"},
    )
    user = {"role": "user", "content": "Hi"}
    body = {"model": "m", "input": [user], "reasoning": {"summary": "auto"}}
    answer = await call(app, "/v1/responses", {**body, "stream": stream}, KEY)
    final = check_responses(answer.data).response if stream else answer.json
    kept = [item for item in final["output"] if keeps_reasoning or item["type"] == "message"]
    await call(app, "/v1/responses", {**body, "input": [user, *kept, user]}, KEY)
    (sent,) = [item for item in upstream.requests[1].json["input"] if item != user]
    assert sent["content"][0]["text"] == f"{TAGGED}So."


async def test_so_it_does_from_a_chat_client() -> None:
    upstream = Upstream(
        Answer.json(response([message_item(0, f"{TAGGED}So.")])),
        Answer.json(response([message_item(0, "Done.")])),
    )
    entry = {"base_url": f"{ORIGIN}/v1", "api": "responses", "profile": "transformers"}
    app = build_app("sidecar", upstream, writer=Scripted(), upstreams=[entry])
    user = {"role": "user", "content": "Hi"}
    body = {"model": "m", "messages": [user], "reasoning": {"summary": "auto"}}
    answer = await call(app, "/v1/chat/completions", body, KEY)
    message = answer.json["choices"][0]["message"]
    await call(app, "/v1/chat/completions", {**body, "messages": [user, message, user]}, KEY)
    (sent,) = [
        item for item in upstream.requests[1].json["input"] if item.get("role") == "assistant"
    ]
    assert sent["content"] == f"{TAGGED}So."
