"""The endpoints by which servers count the tokens of a request, before a model answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from abridge.apis.json import parse_object
from abridge.core.conversation import Json
from abridge.providers.profile import ApiName, TokenCounterName


@dataclass(slots=True, frozen=True)
class TokenCounter:
    """An endpoint that counts, and what it takes and returns."""

    api: ApiName  # in which the request is written for it
    path: str  # of the endpoint, below that of the API's own; from the server's root if `at_root`
    count: str  # the field of the answer that holds the count
    at_root: bool = False
    fields: tuple[str, ...] | None = None  # of the request, those that it takes; None: all
    added: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def write(self, request: Json) -> Json:
        """Return what the endpoint is sent for a request in its API."""
        kept = {
            name: request[name]
            for name in (request if self.fields is None else self.fields)
            if name in request
        }
        return {**kept, **self.added}

    def read(self, body: bytes) -> int | None:
        """Return the count in an answer; None if there is none."""
        count = (parse_object(body) or {}).get(self.count)
        return count if isinstance(count, int) and not isinstance(count, bool) else None


TOKEN_COUNTERS: Mapping[TokenCounterName, TokenCounter] = MappingProxyType(
    {
        # the API reference of Anthropic: api/messages-count-tokens
        "messages": TokenCounter("messages", "/count_tokens", "input_tokens"),
        # developers.openai.com: api/reference, responses/input_tokens
        "responses": TokenCounter(
            "responses",
            "/input_tokens",
            "input_tokens",
            fields=(
                *("model", "input", "instructions", "tools", "tool_choice", "text", "reasoning"),
                *("parallel_tool_calls", "truncation"),
            ),
        ),
        # vllm/entrypoints/serve/tokenize/protocol.py: `TokenizeChatRequest`
        "tokenize": TokenCounter(
            "chat",
            "/tokenize",
            "count",
            at_root=True,
            fields=("model", "messages", "tools", "chat_template_kwargs"),
            added=MappingProxyType({"add_generation_prompt": True}),
        ),
    }
)
"""By the names that profiles have for them."""
