"""Summaries of Abridge's in the text of an answer, between tags."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.apis.chat.history import ChatHistory
from abridge.apis.history import History, is_tagged, strip_content, strip_text
from abridge.apis.messages.history import MessagesHistory
from abridge.apis.responses.history import ResponsesHistory
from abridge.memory.policy import HistoryPolicy, HistoryRewriter
from abridge.providers.catalog import PROFILES

Json = dict[str, Any]

OURS = "**Recalling the rule**\n\nI recall the rule."


def is_ours(text: str) -> bool:
    return text.strip() == OURS


TAGGED = f"<think>\n{OURS}\n</think>"

TEXTS = {
    "alone": (TAGGED, ""),
    "before the answer": (f"{TAGGED}\n\nSo.", "So."),
    "after it": (f"So.\n\n{TAGGED}", "So.\n\n"),
    "between": (f"One.\n{TAGGED}\nTwo.", "One.\nTwo."),
    "twice": (f"{TAGGED}\n{TAGGED}\nSo.", "So."),
    "not closed": (f"So.\n<think>\n{OURS}", "So.\n"),
    "in other tags": (f"<thinking>{OURS}</thinking>So.", "So."),
    "after another's": (f"<think>Mine.</think>{TAGGED}So.", "<think>Mine.</think>So."),
    "beside another's in other tags": (f"<thought>x</thought>{TAGGED}", "<thought>x</thought>"),
}


@pytest.mark.parametrize(("text", "left"), TEXTS.values(), ids=TEXTS)
def test_ours_is_taken_out_and_nothing_else(text: str, left: str) -> None:
    assert strip_text(text, is_ours) == left


@given(st.lists(st.sampled_from(["<think>", "</think>", "<thinking>", OURS, "a", "\n"])))
def test_without_ours_every_text_stays(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert strip_text(text, lambda _: False) == text
    content = [{"type": "text", "text": text}, {"type": "image"}, 7]
    assert strip_content(content, lambda _: False) is content


def test_unclosed_blocks_are_looked_at_once() -> None:
    """However many there are: each reaches to the end of the text."""
    seen: list[str] = []
    text = "<think>" * 1000
    assert strip_text(text, lambda inner: bool(seen.append(inner))) == text
    assert len(seen) == 1


@pytest.mark.parametrize("content", [None, 7, {}, [None, 7, {"type": "text"}], [{"type": None}]])
def test_odd_contents_are_left_alone(content: Any) -> None:
    assert strip_content(content, is_ours) is content
    assert not is_tagged(content)


@pytest.mark.parametrize(
    ("text", "tagged"),
    [(TAGGED, True), (f" {TAGGED}\n", True), (f"{TAGGED}So.", False), ("<think>a", False)],
)
def test_a_text_that_is_nothing_but_reasoning_is_known(text: str, *, tagged: bool) -> None:
    assert is_tagged(text) == is_tagged([{"type": "output_text", "text": text}]) == tagged


def stripped(history: History) -> Any:
    """Return what is left of a conversation for an upstream that speaks another API."""
    policy = HistoryPolicy("client", "altered", PROFILES["auto"], translated=True)
    rewriter = HistoryRewriter(history, policy)
    rewriter.strip(is_ours)
    assert rewriter.restore_nothing().removed
    return history.body()


QUESTION = {"role": "user", "content": "Hi"}


def test_a_part_that_pydantic_ai_returns_as_text_is_no_text_of_the_turn() -> None:
    """It writes a message of its own for each, between the reasoning and the call."""
    reasoning = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    call = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
    tagged = {"type": "message", "role": "assistant", "content": TAGGED}
    items: list[Json] = [QUESTION, reasoning, tagged, {**tagged}, call]
    history = ResponsesHistory({"input": copy.deepcopy(items)})
    assert [turn.role for turn in history.turns] == ["system", "user", "assistant"]
    assert stripped(history)["input"] == [QUESTION, reasoning, call]
    plain = ResponsesHistory({"input": [QUESTION, reasoning, call]}).turns[-1]
    assert history.turns[-1].encode_canonical() == plain.encode_canonical()


@pytest.mark.parametrize("tags", ["<think>\n\n</think>", "<think></think>"])
def test_nor_is_a_part_of_which_nothing_was_shown(tags: str) -> None:
    call = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
    said: Json = {"type": "message", "role": "assistant", "content": "So."}
    empty: Json = {"type": "message", "role": "assistant", "content": tags}
    listed: Json = {**empty, "content": [{"type": "output_text", "text": tags}]}
    items = [QUESTION, empty, listed, said, call]
    history = ResponsesHistory({"input": copy.deepcopy(items)})
    assert stripped(history)["input"] == [QUESTION, said, call]
    plain = ResponsesHistory({"input": [QUESTION, said, call]}).turns[-1]
    assert history.turns[-1].encode_canonical() == plain.encode_canonical()


@pytest.mark.parametrize(
    "text", ["<think></think>So.", "Write <think></think>", "<think>Mine.</think>"]
)
def test_what_else_a_message_says_stays(text: str) -> None:
    items = [QUESTION, {"role": "assistant", "content": TAGGED}]
    said = {"role": "assistant", "content": text}
    history = ResponsesHistory({"input": copy.deepcopy([*items, said])})
    assert stripped(history)["input"] == [QUESTION, said]


def test_an_answer_on_responses_keeps_its_own_text() -> None:
    said = {"role": "assistant", "content": [{"type": "output_text", "text": f"{TAGGED}\nSo."}]}
    history = ResponsesHistory({"input": [QUESTION, copy.deepcopy(said)]})
    left = stripped(history)["input"][1]
    assert left == {**said, "content": [{"type": "output_text", "text": "So."}]}
    assert history.turns[-1].text == "So."


def test_a_signed_turn_on_messages_keeps_its_thinking_in_front() -> None:
    signed = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    call = {"type": "tool_use", "id": "t_1", "name": "f", "input": {}}
    content = [{"type": "text", "text": TAGGED}, signed, {"type": "text", "text": "So."}, call]
    history = MessagesHistory(
        {"messages": [QUESTION, {"role": "assistant", "content": copy.deepcopy(content)}]}
    )
    left = stripped(history)["messages"][1]["content"]
    assert left == [signed, {"type": "text", "text": "So."}, call]


@pytest.mark.parametrize("content", [f"So.\n{TAGGED}", [{"type": "text", "text": TAGGED}, "So."]])
def test_it_is_found_anywhere_in_a_chat_message(content: Any) -> None:
    message = {"role": "assistant", "content": copy.deepcopy(content)}
    history = ChatHistory({"messages": [QUESTION, message]})
    assert OURS not in str(stripped(history)["messages"][1])


def test_a_users_own_words_are_never_changed() -> None:
    user = {"role": "user", "content": TAGGED}
    for history, key in (
        (ChatHistory({"messages": [dict(user)]}), "messages"),
        (ResponsesHistory({"input": [dict(user)]}), "input"),
        (MessagesHistory({"messages": [dict(user)]}), "messages"),
    ):
        rewriter = HistoryRewriter(history, HistoryPolicy("client", "altered", PROFILES["auto"]))
        rewriter.strip(is_ours)
        assert history.body()[key] == [user]
