"""Translate requests of one API for an upstream of another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from abridge.apis.api import UpstreamOptions
from abridge.apis.chat import request as chat
from abridge.apis.messages import request as messages
from abridge.apis.responses import request as responses
from abridge.core.model_request import ModelRequest, TranslatedRequest
from abridge.errors import RequestError
from abridge.providers.catalog import PROFILES
from tests.apis.messages.spec import ANTHROPIC, check_request
from tests.support.openapi import check

Json = dict[str, Any]

HELLO = {"role": "user", "content": "Hello"}


def chat_request(*messages: Json, **fields: Any) -> ModelRequest:
    return chat.read_request({"model": "m", "messages": list(messages or [HELLO]), **fields})


def responses_request(*items: Json, **fields: Any) -> ModelRequest:
    return responses.read_request({"model": "m", "input": list(items or [HELLO]), **fields})


def messages_request(*turns: Json, **fields: Any) -> ModelRequest:
    body = {"model": "m", "max_tokens": 100, "messages": list(turns or [HELLO]), **fields}
    return messages.read_request(body)


def to_responses(question: ModelRequest, profile: str = "auto") -> TranslatedRequest:
    """Translate for a Responses upstream; check the body against OpenAI's description."""
    written = responses.write_request(question, UpstreamOptions(PROFILES[profile]))
    check("CreateResponse", described(written.body))
    return written


def to_chat(question: ModelRequest, profile: str = "auto") -> TranslatedRequest:
    """Translate for a chat upstream; check the body against OpenAI's description."""
    options = UpstreamOptions(PROFILES[profile])
    written = chat.write_request(question, options)
    if options.profile.returns.place != "chunks":
        check("CreateChatCompletionRequest", written.body)
    return written


def to_messages(question: ModelRequest, profile: str = "auto") -> TranslatedRequest:
    """Translate for a Messages upstream; check the body with Anthropic's types if installed."""
    written = messages.write_request(question, UpstreamOptions(PROFILES[profile]))
    if ANTHROPIC:
        check_request(written.body)
    return written


def described(body: Json) -> Json:
    """Return the body adapted to OpenAI's description, which is stricter than the API: it demands
    ids of the model's items, and exactly one reading of a message with parts."""
    return {**body, "input": [_described(item) for item in body["input"]]}


def _described(item: Json) -> Json:
    if item.get("type") == "reasoning":
        return {"id": "rs_1", **item}
    if item.get("type") != "message" or isinstance(item["content"], str):
        return item
    if item["role"] == "assistant":
        return {**item, "id": "msg_1", "status": "completed"}
    check("InputMessage", item)
    return {**item, "content": ""}


def unfit(written: TranslatedRequest) -> dict[str, bool]:
    """Return the fields that upstream cannot be sent, and whether that matters."""
    return {left_out.param: left_out.essential for left_out in written.unsupported}


def refused_param(read: Callable[[], object]) -> str | None:
    """Return the field that a request is refused for."""
    with pytest.raises(RequestError) as refused:
        read()
    return refused.value.param
