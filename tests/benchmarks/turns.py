"""The load generator's requests, on either API."""

from __future__ import annotations

import json

APIS = {"chat": "Chat Completions", "responses": "Responses"}
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}
ENGAGED = {"x-abridge-summary": "auto"}
QUESTION = "What is the sum of the first ten odd numbers?"


def body(api: str, question: str = QUESTION) -> str:
    """Return a request for a stream."""
    chat = {"messages": [{"role": "user", "content": question}]}
    fields = chat if api == "chat" else {"input": question}
    return json.dumps({"model": "thinker-1", "stream": True, **fields})
