"""Test that what is known of Chat Completions survives, and holds no sentence but in texts."""

from __future__ import annotations

import json
from typing import Any

from abridge.apis.chat.shapes import ChatRebuilder
from abridge.providers.catalog import PROFILES, TEXT_FIELDS
from tests.support.canaries import CANARY, planted_everywhere
from tests.support.pipeline import chat

RATED = {"filtered": False, "detected": False, "severity": "safe"}
RATINGS = dict.fromkeys(
    (
        *("hate", "self_harm", "sexual", "violence", "profanity", "jailbreak", "indirect_attack"),
        *("protected_material_text", "protected_material_code"),
    ),
    RATED,
)
STATE = {"google": {"thought_signature": "abc="}}
CITED = {"url": "x:", "title": "A page", "start_index": 0, "end_index": 1}
NOTE = {"type": "url_citation", "url_citation": CITED}
IMAGE = {"type": "image_url", "index": 0, "image_url": {"url": "x:", "detail": "low"}}
SIGNED = {"index": 0, "id": "r_1", "format": "anthropic-claude-v1", "signature": "abc="}
KNOWN: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "thinker-1",
    "system_fingerprint": "fp_1",
    "service_tier": "default",
    "provider": "Somebody",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "name": "anna",
                "content": [
                    {"type": "text", "text": "So.", "annotations": [NOTE]},
                    {"text": "So."},
                    {"type": "output_text", "text": "So."},
                    {"type": "refusal", "refusal": "No."},
                    IMAGE,
                    {"type": "image_url", "image_url": "x:"},
                    {
                        "type": "thinking",
                        "thinking": [{"type": "text", "text": "Hm."}],
                        "closed": True,
                        "signature": "abc=",
                    },
                    {"type": "thinking", "thinking": "Hm."},
                    {"type": "reference", "reference_ids": [1, "two"]},
                ],
                "refusal": "No.",
                "tool_calls": [
                    {
                        "index": 0,
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "f", "arguments": "{}"},
                        "extra_content": STATE,
                    },
                    {"id": "call_2", "type": "custom", "custom": {"name": "g", "input": "x"}},
                ],
                "function_call": {"name": "f", "arguments": "{}"},
                "audio": {"id": "a", "data": "abc=", "expires_at": 1, "transcript": "So."},
                "annotations": [NOTE],
                "images": [IMAGE],
                "extra_content": STATE,
                **dict.fromkeys(TEXT_FIELDS, "Hm."),
                "reasoning_details": [
                    {"type": "reasoning.text", "text": "Hm.", **SIGNED},
                    {"type": "reasoning.summary", "summary": "Hm.", **SIGNED},
                    {"type": "reasoning.encrypted", "data": "abc=", **SIGNED},
                    {"text": "Hm."},
                ],
                "thinking_blocks": [
                    {"type": "thinking", "index": 0, "thinking": "Hm.", "signature": "abc="},
                    {"type": "redacted_thinking", "id": "b", "data": "abc="},
                ],
            },
            "finish_reason": "stop",
            "native_finish_reason": "STOP",
            "stop_reason": 7,
            "matched_stop": "###",
            "content_filter_results": RATINGS,
            "content_filter_offsets": {"check_offset": 1, "start_offset": 2},
            "logprobs": None,
        }
    ],
    "usage": {"total_tokens": 2, "cost": 0.1, "prompt_tokens_details": {"cached_tokens": 1}},
    "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": RATINGS}],
    "x_groq": {"id": "req_1", "usage": {"total_tokens": 2}},
}
"""All that is known of a completion."""

TEXTS = frozenset(
    {
        *("content", "text", "refusal", "input", "transcript", "title", "summary", "thinking"),
        *TEXT_FIELDS,
    }
)
"""Keys of texts that are shown, or are reasoning."""


def rebuilt(body: dict[str, Any]) -> dict[str, Any]:
    return ChatRebuilder().rebuild_completion(body)


def test_what_is_known_survives() -> None:
    assert rebuilt(KNOWN) == KNOWN
    (choice,) = KNOWN["choices"]
    others = {key: choice[key] for key in choice if key != "message"}
    chunk = {**KNOWN, "choices": [{**others, "delta": choice["message"]}]}
    assert ChatRebuilder().rebuild_chunk(chunk) == chunk


def test_no_value_of_a_known_completion_can_be_a_sentence() -> None:
    for planted in planted_everywhere(KNOWN, TEXTS, frozenset({"arguments"})):
        pipeline = chat(expose="none", profile=PROFILES["openai"])
        assert CANARY.encode() not in pipeline.whole(json.dumps(planted).encode())
