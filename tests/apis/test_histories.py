"""Test request histories: what holds on every API, then what only OpenAI's have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from abridge.apis.chat.history import ChatHistory
from abridge.apis.history import History
from abridge.apis.registry import APIS, UPSTREAM_APIS
from abridge.apis.responses.history import ResponsesHistory, read_turns
from abridge.core.conversation import PrefixDigest, ToolCall, Turn

Json = dict[str, Any]

FUNCTION = {"name": "look", "arguments": '{"a": 1}'}

THOUGHTS: dict[str, Callable[[str], Json]] = {
    "chat": lambda text: {"reasoning_content": text},
    "responses": lambda text: {
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": text}],
    },
    "messages": lambda text: {"type": "thinking", "thinking": text, "signature": "c2ln"},
    "gemini": lambda text: {"text": text, "thought": True},
    "interactions": lambda text: {"type": "thought", "summary": [{"type": "text", "text": text}]},
}
"""Reasoning as each API spells it."""


def spell(api: str, reasoning: str | None) -> Json:
    """Return a conversation with this reasoning in its answer, which calls a tool."""
    thought = [] if reasoning is None else [THOUGHTS[api](reasoning)]
    user, text, call = {"role": "user", "content": "Hi"}, {"type": "text", "text": "I look."}, "c1"
    match api:
        case "chat":
            calls = [{"id": call, "type": "function", "function": FUNCTION}]
            answer = {"role": "assistant", "content": "I look.", "tool_calls": calls}
            answer |= {key: value for fields in thought for key, value in fields.items()}
            result = {"role": "tool", "tool_call_id": call, "content": "7"}
            system = {"role": "system", "content": "Be brief."}
            return {"messages": [system, user, answer, result]}
        case "responses":
            message = {"type": "message", "role": "assistant", "content": "I look."}
            calls = [{"type": "function_call", "call_id": call, **FUNCTION}]
            results = [{"type": "function_call_output", "call_id": call, "output": "7"}]
            items = [user, *thought, message, *calls, *results]
            return {"instructions": "Be brief.", "input": items}
        case "messages":
            use = {"type": "tool_use", "id": call, "name": "look", "input": {"a": 1}}
            blocks = [{"type": "tool_result", "tool_use_id": call, "content": "7"}]
            answer = {"role": "assistant", "content": [*thought, text, use]}
            messages = [user, answer, {"role": "user", "content": blocks}]
            return {"system": "Be brief.", "messages": messages}
        case "interactions":
            steps = [
                {"type": "user_input", "content": [{"type": "text", "text": "Hi"}]},
                *thought,
                {"type": "model_output", "content": [text]},
                {"type": "function_call", "id": call, "name": "look", "arguments": {"a": 1}},
                {"type": "function_result", "call_id": call, "name": "look", "result": "7"},
            ]
            return {"system_instruction": "Be brief.", "input": steps}
    use = {"functionCall": {"id": call, "name": "look", "args": {"a": 1}}}
    response = {"functionResponse": {"id": call, "name": "look", "response": {"output": "7"}}}
    contents = [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": [*thought, {"text": "I look."}, use]},
        {"role": "user", "parts": [response]},
    ]
    return {"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": contents}


ODD_CONTENT, ODD_PARTS = [{"role": "assistant", "content": 7}], [{"role": "model", "parts": 7}]

READ: dict[str, tuple[str, Callable[[Json], History]]] = {
    **{f"{api.name} of a client": (api.name, api.history) for api in APIS},
    **{f"{api.name} for upstream": (api.name, api.history) for api in UPSTREAM_APIS.values()},
}
"""How each history is read, and in which API's spelling."""


@pytest.mark.parametrize(("api", "read"), READ.values(), ids=READ)
class TestEach:
    def read(
        self, api: str, read: Callable[[Json], History], reasoning: str | None
    ) -> tuple[History, Turn]:
        history = read(spell(api, reasoning))
        return history, history.turns[2]

    def test_each_speaker_has_a_turn(self, api: str, read: Callable[[Json], History]) -> None:
        history, answer = self.read(api, read, "Hm.")
        assert [(turn.role, turn.text) for turn in history.turns[:3]] == [
            ("system", "Be brief."),
            ("user", "Hi"),
            ("assistant", "I look."),
        ]
        assert (history.turns[3].role, history.turns[3].answers_call) == ("tool", "c1")
        (call,) = answer.calls
        assert call.canonicalize() == ["c1", "look", '{"a": 1}']
        assert "Hm." in history.reasoning_texts(answer)

    def test_a_turn_is_the_same_with_and_without_reasoning(
        self, api: str, read: Callable[[Json], History]
    ) -> None:
        given, bare = (self.read(api, read, reasoning) for reasoning in ("Hm.", None))
        assert given[1].encode_identity() == bare[1].encode_identity()
        one, other = (PrefixDigest().extended_by(history.turns) for history, _ in (given, bare))
        assert one.digest() == other.digest()

    def test_our_summary_is_taken_out(self, api: str, read: Callable[[Json], History]) -> None:
        history, turn = self.read(api, read, "Ours.")
        assert history.strip(turn, is_ours("Ours.")) == (1, False)
        assert history.body() == spell(api, None)

    def test_the_models_own_reasoning_stays(
        self, api: str, read: Callable[[Json], History]
    ) -> None:
        history, turn = self.read(api, read, "Hm.")
        assert history.strip(turn, is_ours("Ours.")) == (0, True)
        assert history.body() == history.sent_body() == spell(api, "Hm.")

    def test_reasoning_is_dropped_once(self, api: str, read: Callable[[Json], History]) -> None:
        history, turn = self.read(api, read, "Hm.")
        assert history.drop_reasoning(turn)
        assert not history.drop_reasoning(turn)
        assert history.body() == spell(api, None)

    @pytest.mark.parametrize("shown", [None, "Another's."])
    def test_the_original_goes_back_to_its_place(
        self, api: str, read: Callable[[Json], History], shown: str | None
    ) -> None:
        history, turn = self.read(api, read, shown)
        whole = {  # answers that are kept whole
            "gemini": spell("gemini", "Hm.")["contents"][1]["parts"],
            "interactions": spell("interactions", "Hm.")["input"][1:4],
        }
        history.restore(turn, whole.get(api, [THOUGHTS[api]("Hm.")]))
        assert history.body() == spell(api, "Hm.")

    @pytest.mark.parametrize(
        "given", [None, "text", [None, 7, "x"], [{}], {}, ODD_CONTENT, ODD_PARTS], ids=str
    )
    def test_an_odd_conversation_is_not_fatal(
        self, api: str, read: Callable[[Json], History], given: Any
    ) -> None:
        name = {"responses": "input", "gemini": "contents", "interactions": "input"}.get(
            api, "messages"
        )
        assert read({name: given}).body() == {name: given}


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

    @pytest.mark.parametrize("kind", ["message", "reasoning"])
    def test_very_many_items_make_one_turn(self, kind: str) -> None:
        """Adding each to all those before it would take minutes here."""
        part = {"type": "text", "text": "x" * 1000}
        item = {"type": kind, "role": "assistant", "content": [part]}
        history = self.read([item] * 30_000)
        (_, turn) = history.turns
        assert len(turn.items) == 30_000
        assert len(turn.text or history.reasoning_texts(turn)[0]) == 30_000_000

    def test_reasoning_after_a_text_is_of_its_turn(self, items: list[dict[str, Any]]) -> None:
        turns = self.read([*items, items[1]]).turns
        assert turns[-1].items == [items[-1], items[1]]


def test_arguments_are_compared_by_what_they_mean() -> None:
    one = Turn("assistant", calls=(ToolCall("c", "f", '{"a": 1, "b": 2}'),))
    same = Turn("assistant", calls=(ToolCall("c", "f", '{"b":2,"a":1}'),))
    other = Turn("assistant", calls=(ToolCall("c", "f", '{"a": 2}'),))
    assert one.encode_identity() == same.encode_identity() != other.encode_identity()


def test_blanks_tell_no_answers_apart_but_questions() -> None:
    """Clients of another API join the pieces of an answer with blanks of their own."""
    for role, count in (("assistant", 1), ("user", 2), ("tool", 2)):
        turns = [Turn(role, text) for text in ("One.Two.", "One.\n\nTwo. ")]
        assert len({turn.encode_canonical() for turn in turns}) == count
        assert len({turn.encode_identity() for turn in turns}) == count
    assert Turn("assistant", "One").encode_identity() != Turn("assistant", "Two").encode_identity()


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


def test_patches_of_one_call_id_are_told_apart() -> None:
    """By what they do: some servers count their calls anew in each answer."""
    calls = [
        {"type": "apply_patch_call", "call_id": "c1", "operation": {"type": kind, "path": "a"}}
        for kind in ("create_file", "delete_file")
    ]
    identities = [turn.encode_identity() for item in calls for turn in read_turns([item])]
    assert len(set(identities)) == 2
