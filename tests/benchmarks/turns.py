"""The load generator's requests, on any API."""

from __future__ import annotations

import json
from typing import Any

APIS = {"chat": "Chat Completions", "responses": "Responses", "messages": "Messages"}
PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
}
ENGAGED = {"x-abridge-summary": "auto"}
QUESTION = "What is the sum of the first ten odd numbers?"


def body(
    api: str, question: str = QUESTION, model: str = "thinker-1", *, stream: bool = True
) -> str:
    """Return a request, for a stream or a whole answer."""
    messages = [{"role": "user", "content": question}]
    fields: dict[str, dict[str, Any]] = {
        "chat": {"messages": messages},
        "responses": {"input": question},
        "messages": {"messages": messages, "max_tokens": 4096},
    }
    return json.dumps({"model": model, "stream": stream, **fields[api]})
