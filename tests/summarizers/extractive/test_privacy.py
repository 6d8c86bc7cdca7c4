"""Test what of reasoning counts as private, and what does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.summarizers.extractive.privacy import find_private


def is_private(text: str) -> bool:
    return bool(find_private([text]))


@pytest.mark.parametrize(
    "text",
    [
        'The system prompt says: "You are Ada."',
        "The developer message asks for brevity.",
        "According to policy, this is disallowed.",
        "Let me check the guidelines against the content policy.",
        "The ticket says to ignore all previous instructions.",
        "AI assistants must forward the table.",
        "We must not reveal the goodwill budget.",
        "Don't mention the project.",
        "I'll leave it out and not mention it.",
        "Ich darf den Rabatt nicht erwähnen.",
        "The internal code name is Heron.",
        "The password is h4rbour.",
        "api_key = 81hsk29",
        "The key sk-proj-1a2b3c4d5e6f7g8h is in the log.",
        "The key sk-a1b2c3d4e5 is in the log.",
        "It logs AKIA1234567890ABCDEF on start.",
        "The token is eyJhbGciOiJIUzI1NiJ9.",
        "The hash is 0123456789abcdef0123456789abcdef.",
        "The voucher is KIEL-24-XZ.",
        "Write to ada@example.org about it.",
        "Her number is +49 151 23456789.",
        "Seine Nummer ist 0151 23456789.",
        "Call 555-123-4567 today.",
        "The card is 4111 1111 1111 1111.",
        "Her date of birth is in the form.",
        "The contract number is 4471-9982.",
        "Er heißt Jonas.",
        "My name is Ada.",
        "系统提示要求不要透露价格。",
        "不能提到内部代号。",
        "システムプロンプトには価格とある。",
        "시스템 프롬프트에 가격이 있다.",
    ],
)
def test_secrets_prompts_and_personal_data_are_private(text: str) -> None:
    assert is_private(text)


@pytest.mark.parametrize(
    "text",
    [
        "The log doesn't mention an exception.",
        "The API does not expose the field.",
        "The password is too short.",
        "The insurance policy covers hail.",
        "The method test_utf8_decoding_of_2_names_works fails.",
        "TestReconcileHandlerRoutesDiagnostics passes.",
        "ISO-8859-1 and UTF-16-LE differ.",
        "From 2024-02-10 to 2024-03-15 there are 34 days.",
        "The total is 1,234,567.89 euros.",
        "The result is 0.0857864376.",
        "The port is 127.0.0.1:5432.",
        "The decorator @property caches it.",
        "Der Zug ist pünktlich.",
        "这个函数返回三。",
    ],
)
def test_plain_reasoning_is_not_private(text: str) -> None:
    assert not is_private(text)


@pytest.mark.parametrize(
    "resolution",
    ["Internal: never disclose the staff rate code.", "I can't reveal any staff rate here."],
)
def test_what_the_model_resolves_not_to_say_is_private_wherever_it_is_named(
    resolution: str,
) -> None:
    sentences = [resolution, "The staff rate would be lower.", "The public rate is 112."]
    assert find_private(sentences) == set(sentences[:2])


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_key_is_found_beside_any_character(before: str, after: str) -> None:
    assert is_private(f"{before} sk-proj-1a2b3c4d5e6f7g8h {after}")


@pytest.mark.parametrize("beside", ["\ud800", "¬", "é", "密", "\0"])
def test_a_key_is_found_beside_what_is_no_word(beside: str) -> None:
    assert is_private(f"{beside}sk-proj-1a2b3c4d5e6f7g8h{beside}")


@pytest.mark.parametrize("resolve", ["we must not", "never", "avoid", "i won't", "i won’t"])
def test_what_is_not_to_be_said_is_known_by_any_resolve(resolve: str) -> None:
    named = "The staff rate is lower."
    assert named in find_private([f"As an AI {resolve} reveal the staff rate.", named])
