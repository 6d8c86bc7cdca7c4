"""Test summaries written by the request's own model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.messages.api import MESSAGES
from abridge.apis.responses.api import RESPONSES
from abridge.config.tables import SummarizerSettings
from abridge.core.plan import Passage
from abridge.core.usage import SummarizerUsage, Tokens
from abridge.providers.catalog import PROFILES
from abridge.summarizers.model.upstream import upstream_summarizer
from tests.apis.messages import scripts as messages
from tests.support.streams import chat_stream, message_item, reasoning_item, responses_stream

SCOPE: dict[str, Any] = {
    "type": "http",
    "method": "POST",
    "scheme": "http",
    "root_path": "",
    "path": "/v1/chat/completions",
    "raw_path": b"/v1/chat/completions",
    "query_string": b"api-version=1",
    "headers": [
        (b"host", b"api.example"),
        (b"authorization", b"Bearer sk-1"),
        (b"x-api-key", b"k"),
        (b"helicone-target-url", b"https://a.test"),
        (b"openai-organization", b"org"),
        (b"openai-project", b"proj"),
        (b"anthropic-version", b"2023-06-01"),
        (b"anthropic-beta", b"oauth-2025-04-20"),
        (b"cookie", b"session=1"),
        (b"content-length", b"999"),
        (b"x-abridge-summary", b"detailed"),
        (b"accept-encoding", b"br"),
    ],
    "abridge.route": "chosen",
}


def replaying(frames: list[bytes], seen: dict[str, Any]) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.update(scope=scope, body=json.loads((await receive())["body"]))
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for frame in frames:
            await send({"type": "http.response.body", "body": frame, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    return app


async def summarize_once(
    frames: list[bytes], api: Api, profile: str, path: str, model: str | None = "thinker-1"
) -> tuple[list[str | SummarizerUsage], dict[str, Any]]:
    seen: dict[str, Any] = {}
    scope = {**SCOPE, "path": path, "raw_path": path.encode()}
    summarizer = upstream_summarizer(
        replaying(frames, seen),
        scope,
        model=model,
        api=api,
        profile=PROFILES[profile],
        settings=SummarizerSettings(kind="upstream"),
    )
    assert summarizer.name == "upstream"
    return [piece async for piece in summarizer.summarize(Passage("why"))], seen


async def test_on_chat_completions_the_call_resembles_the_clients_request() -> None:
    pieces, seen = await summarize_once(
        chat_stream("hm", "So it is."), CHAT, "openai", SCOPE["path"]
    )
    assert "".join(map(str, pieces[:-1])) == "So it is."
    assert pieces[-1] == SummarizerUsage(Tokens(11, 70, 81, 50, 0, 0), "thinker-1")
    assert seen["scope"]["path"] == "/v1/chat/completions"
    assert seen["scope"]["query_string"] == b"api-version=1"
    assert seen["scope"]["abridge.route"] == "chosen"
    headers = dict(seen["scope"]["headers"])
    assert {name: headers[name] for name in (b"authorization", b"x-api-key", b"host")} == {
        b"authorization": b"Bearer sk-1",
        b"x-api-key": b"k",
        b"host": b"api.example",
    }
    assert headers[b"helicone-target-url"] == b"https://a.test"
    assert headers[b"openai-organization"] == b"org"
    assert headers[b"openai-project"] == b"proj"
    assert headers[b"x-abridge-call"] == b"summary"
    assert headers[b"content-length"] != b"999"
    assert not {b"cookie", b"x-abridge-summary"} & headers.keys()
    assert headers[b"accept-encoding"] == b"identity"
    body = seen["body"]
    assert (body["model"], body["reasoning_effort"]) == ("thinker-1", "none")
    assert body["max_completion_tokens"] == 300
    assert not {"max_tokens", "store", "tools"} & body.keys()


async def test_on_responses_nothing_is_stored_and_thinking_is_off() -> None:
    frames = responses_stream([reasoning_item(0, "hm"), message_item(1, "So it is.")])
    pieces, seen = await summarize_once(frames, RESPONSES, "openai", "/v1/responses")
    assert "".join(map(str, pieces[:-1])) == "So it is."
    body = seen["body"]
    assert body["store"] is False
    assert body["reasoning"] == {"effort": "none"}
    assert body["max_output_tokens"] == 300


@pytest.mark.parametrize(
    ("profile", "model", "fields"),
    [
        ("auto", "thinker-1", {"thinking": {"type": "disabled"}, "temperature": 0.3}),
        (
            "vllm",
            "thinker-1",
            {
                "thinking": {"type": "disabled"},
                "chat_template_kwargs": {"enable_thinking": False},
                "temperature": 0.3,
            },
        ),
        ("anthropic", "claude-opus-4-8", {"thinking": {"type": "disabled"}}),
        (
            "anthropic",
            "claude-opus-5-5",  # it always thinks
            {
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "low"},
            },
        ),
        ("anthropic", "claude-3-haiku", {"temperature": 0.3}),
    ],
)
async def test_on_messages_thinking_is_off_where_the_model_allows_it(
    profile: str, model: str, fields: dict[str, Any]
) -> None:
    frames = messages.stream([messages.thinking("hm"), messages.text("So it is.")])
    pieces, seen = await summarize_once(frames, MESSAGES, profile, "/v1/messages", model)
    assert "".join(map(str, pieces[:-1])) == "So it is."
    body = seen["body"]
    (asked,) = body["messages"]
    assert asked["role"] == "user"
    assert isinstance(body["system"], str)
    assert body["max_tokens"] == 300
    known = ("model", "stream", "messages", "system", "max_tokens")
    assert {key: value for key, value in body.items() if key not in known} == fields
    headers = dict(seen["scope"]["headers"])
    assert headers[b"anthropic-version"] == b"2023-06-01"
    assert headers[b"anthropic-beta"] == b"oauth-2025-04-20"


async def test_a_path_that_names_the_model_is_called_as_it_is() -> None:
    path = "/openai/deployments/my%20model/chat/completions"
    _, seen = await summarize_once(chat_stream("", "So it is."), CHAT, "auto", path, model=None)
    assert seen["scope"]["raw_path"] == path.encode()
    assert "model" not in seen["body"]


@pytest.mark.parametrize(
    ("profile", "off"),
    [
        ("vllm", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("deepseek", {"thinking": {"type": "disabled"}}),
        ("qwen", {"enable_thinking": False}),
        ("openrouter", {"reasoning": {"enabled": False}}),
        ("auto", {}),
    ],
)
async def test_thinking_is_switched_off_as_the_profile_says(
    profile: str, off: dict[str, Any]
) -> None:
    _, seen = await summarize_once(chat_stream("", "So it is."), CHAT, profile, SCOPE["path"])
    known = ("model", "stream", "temperature", "messages", "stream_options", "max_tokens")
    assert {key: value for key, value in seen["body"].items() if key not in known} == off
