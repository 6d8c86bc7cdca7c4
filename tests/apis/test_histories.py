"""Test request histories: their turns, and minimal changes to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from abridge.apis.chat.history import ChatHistory
from abridge.apis.responses.history import ResponsesHistory
from abridge.core.conversation import PrefixDigest, ToolCall, Turn


def is_ours(*texts: str) -> Callable[[str], bool]:
    return lambda text: text in texts


def nothing(_: str) -> bool:
    return False


class TestChat:
    BODY: dict[str, Any]

    @pytest.fixture
    def assistant(self) -> dict[str, Any]:
        return {
            "role": "assistant",
            "content": None,
            "reasoning_content": "our summary",
            "summary_error": {"code": "timeout", "message": "m"},
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
            ],
            "vendor": 1,
        }

    def read(self, assistant: dict[str, Any]) -> tuple[ChatHistory, Turn]:
        messages = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            assistant,
            {"role": "tool", "tool_call_id": "c1", "content": "7"},
        ]
        conversation = ChatHistory({"model": "m", "messages": messages})
        return conversation, conversation.turns[2]

    def test_turns_texts_and_calls(self, assistant: dict[str, Any]) -> None:
        conversation, turn = self.read(assistant)
        assert [other.role for other in conversation.turns] == [
            "system",
            "user",
            "assistant",
            "tool",
        ]
        assert conversation.turns[1].text == "Hi"
        assert turn.calls == (ToolCall("c1", "f", '{"a": 1}'),)
        assert conversation.turns[3].answers_call == "c1"

    def test_our_marks_and_summaries_are_removed(self, assistant: dict[str, Any]) -> None:
        conversation, turn = self.read(assistant)
        assert conversation.strip(turn, is_ours("our summary")) == (2, False)
        message = conversation.body()["messages"][2]
        assert message.keys() == {"role", "content", "tool_calls", "vendor"}

    def test_raw_reasoning_is_left_alone(self, assistant: dict[str, Any]) -> None:
        assistant["reasoning"] = "raw"
        conversation, turn = self.read(assistant)
        assert conversation.strip(turn, is_ours("our summary")) == (2, True)
        assert conversation.body()["messages"][2]["reasoning"] == "raw"

    def test_our_details_are_taken_out_and_others_stay(self, assistant: dict[str, Any]) -> None:
        theirs = {"type": "reasoning.encrypted", "data": "x", "index": 0}
        mine = {"type": "reasoning.summary", "summary": "our summary", "index": 1}
        assistant["reasoning_details"] = [theirs, mine]
        conversation, turn = self.read(assistant)
        conversation.strip(turn, is_ours("our summary"))
        assert conversation.body()["messages"][2]["reasoning_details"] == [theirs]

    def test_the_original_goes_back_in_the_field_upstream_used(
        self, assistant: dict[str, Any]
    ) -> None:
        conversation, turn = self.read(assistant)
        conversation.restore(turn, [{"reasoning": "raw"}])
        message = conversation.body()["messages"][2]
        assert message["reasoning"] == "raw"
        assert "reasoning_content" not in message

    def test_inline_reasoning_goes_back_into_the_content(self) -> None:
        conversation, turn = self.read({"role": "assistant", "content": "So."})
        conversation.restore(turn, [{"content": "<think>raw</think>So."}])
        assert conversation.body()["messages"][2]["content"] == "<think>raw</think>So."

    @pytest.mark.parametrize("identity", ["call_1", "", None, []])
    def test_each_call_gets_its_state_back_whatever_their_ids(self, identity: Any) -> None:
        call = {"id": identity, "function": {"name": "f", "arguments": "{}"}}
        conversation, turn = self.read({"role": "assistant", "tool_calls": [{**call}, {**call}]})
        original = {"tool_calls": [{"id": identity, "extra_content": "signature"}]}
        conversation.restore(turn, [original])
        assert conversation.body()["messages"][2]["tool_calls"] == [
            {**call, "extra_content": "signature"},
            call,
        ]

    @pytest.mark.parametrize("messages", [None, "text", [None, 7, "x"], {}])
    def test_odd_messages_are_not_fatal(self, messages: Any) -> None:
        body = {"messages": messages}
        assert ChatHistory(body).turns == []
        assert ChatHistory(body).body() == {"messages": messages}


class TestResponses:
    REASONING: dict[str, Any]

    @pytest.fixture
    def items(self) -> list[dict[str, Any]]:
        return [
            {"role": "user", "content": "Hi"},
            {
                "type": "reasoning",
                "id": "rs_0",
                "summary": [{"type": "summary_text", "text": "our summary"}],
                "content": [],
            },
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
            {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "7"},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "So."}],
            },
        ]

    def read(self, items: list[dict[str, Any]]) -> ResponsesHistory:
        return ResponsesHistory({"model": "m", "input": items})

    def test_turns_end_with_a_call(self, items: list[dict[str, Any]]) -> None:
        turns = self.read(items).turns
        assert [turn.role for turn in turns] == [
            "system",
            "user",
            "assistant",
            "assistant",
            "tool",
            "assistant",
        ]
        assert [len(turn.items) for turn in turns[1:]] == [1, 2, 1, 1, 1]

    def test_our_summary_is_removed_and_the_empty_item_with_it(
        self, items: list[dict[str, Any]]
    ) -> None:
        conversation = self.read(items)
        assert conversation.strip(conversation.turns[2], is_ours("our summary")) == (1, False)
        assert conversation.body()["input"] == [items[0], *items[2:]]

    def test_an_item_with_opaque_state_keeps_it(self, items: list[dict[str, Any]]) -> None:
        items[1]["encrypted_content"] = "gAAAA"
        conversation = self.read(items)
        conversation.strip(conversation.turns[2], is_ours("our summary"))
        assert conversation.body()["input"][1]["encrypted_content"] == "gAAAA"
        assert conversation.body()["input"][1]["summary"] == []

    def test_native_summaries_are_left_alone(self, items: list[dict[str, Any]]) -> None:
        conversation = self.read(items)
        assert conversation.strip(conversation.turns[2], nothing) == (0, False)
        assert conversation.body()["input"] == items

    def test_the_original_goes_back_before_what_it_led_to(
        self, items: list[dict[str, Any]]
    ) -> None:
        original = {"type": "reasoning", "id": "rs_0", "summary": [], "content": [{"text": "raw"}]}
        for sent in (items, [items[0], *items[2:]]):
            conversation = self.read(list(sent))
            conversation.restore(conversation.turns[2], [original])
            assert conversation.body()["input"] == [items[0], original, *items[2:]]

    def test_a_turn_with_calls_is_the_same_with_and_without_reasoning(
        self, items: list[dict[str, Any]]
    ) -> None:
        stays, dropped = self.read(items), self.read([items[0], *items[2:]])
        assert [turn.encode_identity() for turn in stays.turns] == [
            turn.encode_identity() for turn in dropped.turns
        ]
        assert (
            PrefixDigest().extended_by(stays.turns).digest()
            == PrefixDigest().extended_by(dropped.turns).digest()
        )

    @pytest.mark.parametrize("kind", ["message", "reasoning"])
    def test_very_many_items_make_one_turn(self, kind: str) -> None:
        """Adding each to all those before it would take minutes here."""
        part = {"type": "text", "text": "x" * 1000}
        item = {"type": kind, "role": "assistant", "content": [part]}
        history = self.read([item] * 30_000)
        (_, turn) = history.turns
        assert len(turn.items) == 30_000
        assert len(turn.text or "".join(history.reasoning_texts(turn))) == 30_000_000

    @pytest.mark.parametrize("given", ["Hi", None, [None, 7], {}])
    def test_odd_input_is_left_as_it_is(self, given: Any) -> None:
        assert self.read(given).body()["input"] == given

    def test_trailing_reasoning_is_a_separate_turn(self, items: list[dict[str, Any]]) -> None:
        turns = self.read([*items, items[1]]).turns
        assert turns[-1].items == [items[1]]


def test_arguments_are_compared_by_what_they_mean() -> None:
    one = Turn("assistant", calls=(ToolCall("c", "f", '{"a": 1, "b": 2}'),))
    same = Turn("assistant", calls=(ToolCall("c", "f", '{"b":2,"a":1}'),))
    other = Turn("assistant", calls=(ToolCall("c", "f", '{"a": 2}'),))
    assert one.encode_identity() == same.encode_identity() != other.encode_identity()


def test_a_prefix_depends_on_everything_before_it() -> None:
    turns = [Turn("user", "a"), Turn("assistant", "b"), Turn("user", "c")]
    digest = PrefixDigest().extended_by(turns).digest()
    assert PrefixDigest().extended_by(turns[:2]).extended_by(turns[2:]).digest() == digest
    for other in (
        [Turn("user", "A"), *turns[1:]],
        turns[:2],
        [turns[1], turns[0], turns[2]],
        [Turn("user", "ab"), Turn("assistant", ""), Turn("user", "c")],
    ):
        assert PrefixDigest().extended_by(other).digest() != digest
