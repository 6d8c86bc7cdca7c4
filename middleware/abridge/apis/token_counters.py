"""Count the tokens of a request before a model answers it: by an endpoint of upstream's, else by an
estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from abridge.apis.json import as_object, dumps, objects, parse_object, string
from abridge.core.conversation import Json
from abridge.core.segmenter import text_size
from abridge.providers.profile import ApiName


@dataclass(slots=True, frozen=True)
class TokenCounter:
    """An endpoint that counts, and what it takes and returns."""

    api: ApiName  # in which the request is written for it
    path: str  # of the endpoint, below that of the API's own; from the server's root if `at_root`
    count: str  # the field of the answer that holds the count
    at_root: bool = False
    fields: tuple[str, ...] | None = None  # of the request, those that it takes; None: all
    added: Mapping[str, Any] = field(default_factory=dict)

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


TOKEN_COUNTERS: Mapping[str, TokenCounter] = {
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
        added={"add_generation_prompt": True},
    ),
}
"""By the names that profiles have for them."""


# An estimate of the input tokens of a Messages or Responses request, where nothing at hand counts.
#
# The rule, which docs/messages.md repeats: a token for four characters of text, for 1.6 Chinese,
# Japanese or Korean ones, and for three of JSON (tools, and the input of their calls); 1,600 for an
# image; of a document in base64 one for 32 characters, and 1,500 at least; 4 for each message and
# each tool. Thinking of earlier turns counts nothing: most models' templates leave it out.

CHARS_PER_TOKEN = 4

JSON_CHARS_PER_TOKEN = 3

TOKENS_PER_IMAGE = 1600
"""What an image takes at most, unless the model sees it in high resolution (docs.anthropic.com:
build-with-claude/vision)."""

BASE64_CHARS_PER_TOKEN = 32

TOKENS_PER_PAGE = 1500
"""What a page of a PDF takes at least (docs.anthropic.com: build-with-claude/pdf-support)."""

FRAME_TOKENS = 4
"""What the template writes around a message or a tool."""

MAX_LEVELS = 8
"""Levels of blocks within blocks that are looked at: a tool's result has two."""


def estimate_tokens(request: Json) -> int:
    """Return the number of input tokens that a request may have."""
    tokens = _content_tokens(request.get("system")) + _content_tokens(request.get("instructions"))
    conversation = request.get("messages") or request.get("input")
    if isinstance(conversation, str):
        tokens += FRAME_TOKENS + _content_tokens(conversation)
    for message in objects(conversation):
        tokens += FRAME_TOKENS + _block_tokens(message, MAX_LEVELS)
    for tool in objects(request.get("tools")):
        tokens += FRAME_TOKENS + _json_tokens(tool)
    return ceil(tokens)


def _content_tokens(content: Any, levels: int = MAX_LEVELS) -> float:
    """Return the tokens of a string, or of a list of blocks."""
    if isinstance(content, str):
        return text_size(content) / CHARS_PER_TOKEN
    return sum(_block_tokens(block, levels - 1) for block in objects(content)) if levels else 0


def _block_tokens(block: Json, levels: int) -> float:
    kind = block.get("type")
    if kind in ("text", "input_text", "output_text"):
        return _content_tokens(block.get("text"))
    if kind in ("image", "input_image"):
        return TOKENS_PER_IMAGE
    if kind == "input_file":
        return _document_tokens({"data": block.get("file_data")}, levels)
    if kind == "document":
        return _document_tokens(as_object(block.get("source")), levels)
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        return _json_tokens([block.get("name"), block.get("input")])
    if kind in ("function_call", "custom_tool_call"):
        return _json_tokens([block.get("name"), block.get("arguments") or block.get("input")])
    if kind in ("thinking", "redacted_thinking", "reasoning"):
        return 0
    told = block.get("content") or block.get("output")  # of messages, and the results of tools
    return _content_tokens(told, levels)


def _document_tokens(source: Json, levels: int) -> float:
    if source.get("type") == "text":
        return _content_tokens(source.get("data"))
    if source.get("type") == "content":
        return _content_tokens(source.get("content"), levels)
    return max(TOKENS_PER_PAGE, len(string(source.get("data"))) / BASE64_CHARS_PER_TOKEN)


def _json_tokens(value: Any) -> float:
    return text_size(dumps(value).decode()) / JSON_CHARS_PER_TOKEN
