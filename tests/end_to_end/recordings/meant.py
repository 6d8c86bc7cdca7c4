"""What a client is told otherwise than upstream said it, and why that is meant."""

from __future__ import annotations

import re

TOLD_OTHERWISE = {
    "chat-2cb036fe.response.json": (
        {"text"},
        "the answer is a block of thinking that was cut off by its length",
    ),
    "messages-ec6c02df.response.json": (
        {"text"},
        "the text begins with a block of thinking in tags",
    ),
    **dict.fromkeys(
        ("responses-0f38bde9.response.sse", "responses-74328e38.response.json"),
        ({"finish"}, "upstream made an image, of which Messages knows no form"),
    ),
    **dict.fromkeys(
        ("responses-32a7210a.response.sse", "responses-29fd4032.response.json"),
        ({"finish", "text"}, "the same, with a text that is held until what is hidden is clear"),
    ),
    "gemini-505de1e2.response.json": (
        {"cited"},
        "an address with blanks is no address where thinking is hidden: its title stands for it",
    ),
}
"""By recording, the fields of `Told` that differ."""

REASONING = {
    "chat": (
        r"choices\.\*\.(message|delta)\.(reasoning|reasoning_content|reasoning_details|channel)",
        r"choices\.\*\.message\.(thought_signature|extra_content)",
        r"choices\.\*\.(message|delta)\.content",
    ),
    "messages": (
        r"(content\.\*|delta)\.(thinking|signature|text)",
        r"(content_block|delta)\.type",
        "index",
    ),
    "responses": (
        r"(response\.)?reasoning\.summary",
        r"(response\.output\.\*|output\.\*|item)\.(summary|content)\.\*",
        "summary_index",
    ),
}
"""By API, where reasoning stands, and the text in which tags may hold it.

A summary takes its place. What the text itself says, `Told` compares.
"""

MADE_LEGAL = {
    "chat": ("object",),  # Perplexity's chat.completion.done
    "messages": (  # told in events of their own
        r"content_block\.input",
        r"message\.(content\.\*|stop_reason)",
    ),
    "responses": (r"(item|response|response\.output\.\*)\.id", "item_id"),  # one id an item
}
"""By API, where upstream's spelling would not be accepted by strict clients in a rewritten
answer."""

CLOSED = {
    "chat": (
        r"choices\.\*\.(seed|delta\.index|delta\.tool_calls)",
        r"choices\.\*\.message\.(executed_tools|annotations\.\*\.url_citation\.content)",
        "created|error|metadata|moderation|obfuscation|provider|request_id|sla_metrics",
        "time_info|usage|usage_breakdown|x_groq",
    ),
    "messages": (
        r"(content\.\*|content_block|delta)\.(content|from|to|tool_use_id|type|partial_json)",
        r"usage\.iterations",
    ),
    "responses": (
        r"(response\.)?(tools|tool_choice|tool_usage|instructions|text|content_filters)",
        r"(response\.output\.\*|output\.\*|item)\.(arguments|id|name|status|type)",
        r"(response\.output\.\*|output\.\*|item)\.(background|output_format|quality|size)",
        r"(response\.output\.\*|output\.\*|item)\.revised_prompt",
        r"(item|response\.output\.\*)\.encrypted_content",
        r"([a-z_.*]*\.)?logprobs",
        r"(response\.)?error\.message",
        "content_index|copilot_usage|delta|diff|obfuscation|part|sequence_number|text|type",
        "total_tokens",
    ),
}
"""By API, what is not understood well enough to be shown where reasoning is hidden."""


def may_be_missing(api: str, path: str, *, hidden: bool) -> bool:
    rows = [*REASONING[api], *MADE_LEGAL[api], *(CLOSED[api] if hidden else ())]
    return any(re.match(rf"(?:{row})(?![a-z_])", path) for row in rows)
