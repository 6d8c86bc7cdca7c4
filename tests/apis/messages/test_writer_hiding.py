"""Test what of a Messages upstream's answer a client of Messages gets where reasoning is hidden.

What is known and legal in Anthropic's API survives; canaries (`tests/end_to_end/test_canaries.py`)
show that nothing else does.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.core.envelope import UNSEALED, Envelope
from abridge.core.plan import SummaryPlan
from tests.apis.messages.scripts import (
    Block,
    begin,
    delta,
    event,
    finish_at_once,
    message,
    redacted,
    start,
    stop,
    stream,
    text,
    thinking,
    tool_use,
)
from tests.support.checker import frames as frames_of
from tests.support.messages_checker import check_messages
from tests.support.pipeline import messages
from tests.support.streams import THOUGHT, frame

PLAN = SummaryPlan(style="auto", part_chars=60, tail_chars=5, min_chars=0)
CALLER = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
PAGE = {
    "type": "web_fetch_result",
    "url": "https://example.org/a",
    "retrieved_at": "2026-11-22T00:00:00Z",
    "content": {
        "type": "document",
        "title": "A page",
        "source": {"type": "text", "media_type": "text/plain", "data": "Words of a page."},
        "citations": {"enabled": True},
    },
}
FOUND = {
    "type": "web_search_result",
    "title": "A page",
    "url": "https://example.org/a",
    "encrypted_content": "b3BhcXVl",
    "page_age": "2 days ago",
}
CITATIONS = [
    {
        "type": "char_location",
        "cited_text": "Words.",
        "document_index": 0,
        "document_title": "A page",
        "start_char_index": 0,
        "end_char_index": 6,
        "file_id": None,
    },
    {
        "type": "web_search_result_location",
        "cited_text": "Words.",
        "url": "https://example.org/a",
        "title": "A page",
        "encrypted_index": "b3BhcXVl",
    },
    {
        "type": "page_location",
        "cited_text": "Words.",
        "document_index": 0,
        "document_title": None,
        "start_page_number": 1,
        "end_page_number": 2,
    },
    {
        "type": "content_block_location",
        "cited_text": "Words.",
        "document_index": 0,
        "document_title": None,
        "start_block_index": 0,
        "end_block_index": 1,
    },
    {
        "type": "search_result_location",
        "cited_text": "Words.",
        "search_result_index": 0,
        "source": "https://example.org/a",
        "title": "A page",
        "start_block_index": 0,
        "end_block_index": 1,
    },
]
VIEWED = {
    "file_type": "text",
    "content": "Words.",
    "num_lines": 1,
    "start_line": 1,
    "total_lines": 1,
}
REPLACED = {"lines": ["-Words."], "new_lines": 0, "new_start": 1, "old_lines": 1, "old_start": 1}
OUTPUT = {"type": "code_execution_output", "file_id": "file_1"}
BASH_OUTPUT = {"type": "bash_code_execution_output", "file_id": "file_1"}
RAN: dict[str, Any] = {"stdout": "3\n", "stderr": "", "return_code": 0, "content": [OUTPUT]}
RESULT = {"tool_use_id": "srvtoolu_1"}
LEGAL: list[Block] = [
    {"type": "text", "text": "Cited.", "citations": CITATIONS},
    {**tool_use(0, city="Paris"), "caller": CALLER},
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"q": "x"}},
    {"type": "web_search_tool_result", **RESULT, "content": [FOUND], "caller": CALLER},
    {"type": "web_fetch_tool_result", **RESULT, "content": PAGE},
    {
        "type": "code_execution_tool_result",
        **RESULT,
        "content": {"type": "code_execution_result", **RAN},
    },
    {
        "type": "bash_code_execution_tool_result",
        **RESULT,
        "content": {"type": "bash_code_execution_result", **RAN, "content": [BASH_OUTPUT]},
    },
    {
        "type": "text_editor_code_execution_tool_result",
        **RESULT,
        "content": {"type": "text_editor_code_execution_create_result", "is_file_update": True},
    },
    *(
        {
            "type": "text_editor_code_execution_tool_result",
            **RESULT,
            "content": {"type": f"text_editor_code_execution_{kind}_result", **edit},
        }
        for kind, edit in (("view", VIEWED), ("str_replace", REPLACED))
    ),
    {
        "type": "code_execution_tool_result",
        **RESULT,
        "content": {
            "type": "encrypted_code_execution_result",
            "encrypted_stdout": "b3BhcXVl",
            "stderr": "",
            "return_code": 0,
            "content": [],
        },
    },
    *(
        {
            "type": f"{tool}_tool_result",
            **RESULT,
            "content": {
                "type": f"{tool}_tool_result_error",
                "error_code": "unavailable",
                "error_message": "No.",
            },
        }
        for tool in (
            *("web_search", "web_fetch", "code_execution", "bash_code_execution"),
            *("text_editor_code_execution", "tool_search"),
        )
    ),
    {
        "type": "tool_search_tool_result",
        **RESULT,
        "content": {
            "type": "tool_search_tool_search_result",
            "tool_references": [{"type": "tool_reference", "tool_name": "look"}],
        },
    },
    {"type": "mcp_tool_use", "id": "mcp_1", "name": "f", "server_name": "s", "input": {"a": 1}},
    {**tool_use(0, a=1), "toolset_name": "files"},
    {
        "type": "mcp_tool_result",
        "tool_use_id": "mcp_1",
        "is_error": False,
        "content": [{"type": "text", "text": "Words."}],
    },
    {"type": "container_upload", "file_id": "file_1"},
]
SKILLS = [{"type": "anthropic", "skill_id": "pdf", "version": "1"}]
BESIDE: dict[str, Any] = {
    "stop_details": {"type": "refusal", "category": "cyber"},
    "container": {"id": "container_1", "expires_at": "2026-11-22T00:00:00Z", "skills": SKILLS},
    "context_management": {
        "applied_edits": [
            {
                "type": "clear_thinking_20251015",
                "cleared_thinking_turns": 1,
                "cleared_tool_uses": 2,
                "cleared_input_tokens": 3,
            }
        ]
    },
}
USAGE = {
    "input_tokens": 1,
    "cache_creation": {"ephemeral_5m_input_tokens": 0},
    "output_tokens": 2,
    "output_tokens_details": {"thinking_tokens": 1},
    "server_tool_use": {"web_search_requests": 1},
    "service_tier": "standard",
    "inference_geo": "eu",
    "speed": "fast",
}


def added_up(out: bytes) -> list[Block]:
    """Return the blocks of a stream, also of types that the `anthropic` package does not check."""
    blocks: list[Block] = []
    for _, data in frames_of(out):
        sent = json.loads(data)
        if sent["type"] == "content_block_start":
            blocks.append(sent["content_block"])
        for key, piece in sent.get("delta", {}).items() if "index" in sent else ():
            if key == "partial_json":
                blocks[-1]["input"] = (blocks[-1]["input"] or "") + piece
            elif key != "type":
                blocks[-1][key] += piece
        if sent["type"] == "content_block_stop" and isinstance(blocks[-1].get("input"), str):
            blocks[-1]["input"] = json.loads(blocks[-1]["input"])
    return blocks


@pytest.mark.parametrize("block", LEGAL, ids=[block["type"] for block in LEGAL])
def test_a_known_block_survives_streamed_and_whole(block: Block) -> None:
    body = json.dumps(message([block])).encode()
    assert json.loads(messages(expose="summary").whole(body))["content"] == [block]
    frames = b"".join(stream([block]))
    assert added_up(messages(expose="summary").stream(frames)) == [block]


def test_what_stands_beside_the_content_survives() -> None:
    body = message([text("So.")], usage=USAGE, **BESIDE)
    assert json.loads(messages(expose="summary").whole(json.dumps(body).encode())) == body
    ending = {
        "delta": {
            "stop_reason": "refusal",
            "stop_sequence": None,
            "stop_details": BESIDE["stop_details"],
            "container": BESIDE["container"],
        },
        "usage": USAGE,
        "context_management": BESIDE["context_management"],
    }
    frames = [begin(), event("message_delta", **ending), event("message_stop")]
    out = messages(expose="summary").stream(b"".join(frames))
    sent = [json.loads(line[6:]) for line in out.splitlines() if line.startswith(b"data: ")]
    assert sent[1] == {"type": "message_delta", **ending}


def test_citations_of_a_stream_survive() -> None:
    frames = [
        begin(),
        start(0, {**text(""), "citations": []}),
        delta(0, "citations", citation=CITATIONS[0]),
        delta(0, "text", text="So."),
        stop(0),
        *finish_at_once(),
    ]
    out = messages(expose="summary").stream(b"".join(frames))
    assert json.dumps(CITATIONS[0], separators=(",", ":")).encode() in out


def test_a_block_of_unknown_type_is_left_out_with_all_its_events() -> None:
    odd = [start(0, {"type": "odd"}), delta(0, "text", text="odd"), stop(0)]
    frames = [begin(), *odd, start(1, text("")), delta(1, "text", text="So."), stop(1)]
    answer = check_messages(
        messages(expose="summary").stream(b"".join([*frames, *finish_at_once()]))
    )
    assert answer.blocks == [text("So.")]


def test_thinking_in_texts_and_arguments_is_left_out() -> None:
    content = [text("<think>odd</think>So."), tool_use(0, where="<think>odd</think>here")]
    body = json.dumps(message(content)).encode()
    for out in (
        json.loads(messages(expose="none").whole(body))["content"],
        check_messages(messages(expose="none").stream(b"".join(stream(content)))).blocks,
    ):
        assert "odd" not in str(out)
        assert [block["type"] for block in out][-2:] == ["text", "tool_use"]


def test_what_is_sealed_is_what_upstream_sent() -> None:
    sealed: list[Block] = []

    def seal(envelope: Envelope) -> str:
        sealed.extend(envelope.reasoning)
        return "abr1.x"

    block = thinking(THOUGHT, "c2ln")
    pipeline = messages(expose="summary", plan=PLAN, seal=seal)
    pipeline.stream(b"".join(stream([block, text("So.")])))
    assert sealed == [block]


@pytest.mark.parametrize("limit", [1 << 22, 50])
def test_redacted_thinking_is_sealed_whole_or_a_placeholder(limit: int) -> None:
    sealed: list[Block] = []

    def seal(envelope: Envelope) -> str:
        sealed.extend(envelope.reasoning)
        return "abr1.x"

    pipeline = messages(expose="summary", trusts_state=False, limit=limit, seal=seal)
    block = redacted("b3BhcXVl" * 10)
    body = json.dumps(message([block, text("Hello.")], "end_turn")).encode()
    shown = json.loads(pipeline.whole(body))["content"][0]
    is_kept = limit > len(block["data"])
    assert shown == {**block, "data": "abr1.x" if is_kept else UNSEALED}
    assert sealed == ([block] if is_kept else [])


def test_the_numbers_of_a_calls_input_are_told_to_the_last_digit() -> None:
    call = {**tool_use(), "input": {"number": 0}}
    body = json.dumps(message([call], "tool_use")).replace('"number": 0', '"number":[1E400,1.10]')
    shown = messages(expose="summary").whole(body.encode())
    assert b'"number":[1E400,1.1' in shown


def test_an_event_without_a_type_is_dropped() -> None:
    frames = stream([text("So.")])
    frames.insert(1, frame({"index": 0, "words": THOUGHT}))
    answer = messages(expose="summary").stream(b"".join(frames))
    assert check_messages(answer).text == "So."
    assert THOUGHT.encode() not in answer
