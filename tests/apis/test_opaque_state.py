"""Test where requests have opaque reasoning state, and how upstreams refuse it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.messages.api import MESSAGES
from abridge.apis.opaque_state import (
    STATE_OR_ENVELOPE,
    has_opaque_state,
    refuses_state,
)
from abridge.apis.responses.api import RESPONSES
from abridge.pipeline.steps import ENVELOPE

USER = {"role": "user", "content": "Hi"}

NAMES = [b"signature", b"encrypted_content", b"reasoning.encrypted"]
WORDS = [b'"', b"abr1.", *NAMES, b"\\", b" "]


def chat(**message: Any) -> dict[str, Any]:
    return {"messages": [USER, {"role": "assistant", "content": "Hello.", **message}, USER]}


def messages(*blocks: Any) -> dict[str, Any]:
    return {"messages": [USER, {"role": "assistant", "content": list(blocks)}, USER]}


def responses(**item: Any) -> dict[str, Any]:
    return {"input": [USER, {"type": "reasoning", "summary": [], **item}, USER]}


WITH_STATE = [
    (RESPONSES, responses(encrypted_content="gAAAA")),
    (MESSAGES, messages({"type": "thinking", "thinking": "Hm.", "signature": "Eu8B"})),
    (MESSAGES, messages({"type": "redacted_thinking", "data": "EmwK"})),
    (CHAT, chat(reasoning_details=[{"type": "reasoning.encrypted", "data": "gAAAA"}])),
    (CHAT, chat(thinking_blocks=[{"type": "thinking", "thinking": "", "signature": "Eu8B"}])),
    (CHAT, chat(extra_content={"google": {"thought_signature": "CAES"}})),
]

WITHOUT_STATE = [
    (RESPONSES, responses(encrypted_content=None)),
    (RESPONSES, responses(content=[{"type": "reasoning_text", "text": "Hm."}])),
    (RESPONSES, responses(encrypted_content="abr1.k1.AAAA")),
    (MESSAGES, messages({"type": "text", "text": "signature", "signature": "Eu8B"})),
    (MESSAGES, messages({"type": "thinking", "thinking": "Hm.", "signature": ""})),
    (CHAT, chat(reasoning_content="Hm.")),
    (CHAT, chat(reasoning_details=[{"type": "reasoning.text", "text": "Hm."}])),
]


@pytest.mark.parametrize(("api", "body"), WITH_STATE)
def test_opaque_state_is_found(api: Api, body: dict[str, Any]) -> None:
    assert any(map(has_opaque_state, api.history(body).turns))
    assert STATE_OR_ENVELOPE.search(json.dumps(body).encode())


@pytest.mark.parametrize(("api", "body"), WITHOUT_STATE)
def test_what_is_no_state_of_a_providers_is_not_taken_for_it(
    api: Api, body: dict[str, Any]
) -> None:
    assert not any(map(has_opaque_state, api.history(body).turns))


@pytest.mark.parametrize(
    ("error", "refuses"),
    [
        ({"code": "invalid_encrypted_content", "message": "Could not be verified."}, True),
        ({"message": "messages.1.content.0: Invalid `signature` in `thinking` block"}, True),
        ({"message": "messages.1.content.0: Invalid `data` in `redacted_thinking` block"}, True),
        ({"message": "The encrypted content gAAA could not be verified. Reason: …"}, True),
        ({"message": "Thought signature is not valid", "code": 400}, True),
        ({"message": "encrypted content, " + "then " * 500 + "could not be verified"}, False),
        ({"message": "Invalid `signature` in the document"}, False),
        ({"message": "messages.1.content.0: signature: Field required"}, False),
        ({"code": "invalid_request", "message": None}, False),
        ("invalid_encrypted_content", False),
        (None, False),
    ],
)
def test_a_refusal_is_known_by_its_code_or_its_words(error: Any, *, refuses: bool) -> None:
    assert refuses_state(json.dumps({"error": error}).encode()) is refuses


def test_an_error_in_a_list_is_read() -> None:
    error = {"error": {"code": 400, "message": "Thought signature is not valid."}}
    assert refuses_state(json.dumps([error], indent=2).encode())


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b"{"])
def test_what_is_no_error_refuses_nothing(body: bytes) -> None:
    assert not refuses_state(body)


@given(st.lists(st.sampled_from(WORDS), max_size=8).map(b"".join))
def test_one_search_finds_state_and_envelopes(body: bytes) -> None:
    found = any(b'"%b"' % name in body for name in NAMES) or ENVELOPE.search(body)
    assert bool(STATE_OR_ENVELOPE.search(body)) == bool(found)
