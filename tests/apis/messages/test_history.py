"""Test the history of a Messages request: its turns, and the changes made to them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.api import UpstreamOptions
from abridge.apis.messages.api import MESSAGES
from abridge.apis.messages.history import MessagesHistory
from abridge.core.conversation import PrefixDigest, ToolCall, Turn
from abridge.core.model_request import Message, ModelRequest, TextPart, ToolCallPart
from abridge.memory.originals import Original
from abridge.memory.policy import HistoryPolicy, HistoryRewriter
from abridge.providers.catalog import PROFILES
from tests.apis.messages.scripts import (
    Block,
    message,
    read_frames,
    reader,
    redacted,
    stream,
    text,
    thinking,
    tool_use,
)


def result(number: int = 0, given: str = "7") -> Block:
    return {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": given}


def request(*content: Any, **more: Any) -> dict[str, Any]:
    """Return a request whose messages are the user's and the assistant's in turn."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": given} for at, given in enumerate(content)]
    return {"model": "claude-opus-4-5", "system": "Be brief.", "messages": messages, **more}


def nothing(_: str) -> bool:
    return False


ANSWER = [thinking("Hm."), redacted("ZGF0YQ"), text("I look."), tool_use(0, a=1)]


class TestTurns:
    def test_each_speaker_and_each_result_has_a_turn(self) -> None:
        body = request("Hi", ANSWER, [result(), text("And?")])
        turns = MessagesHistory(body).turns
        assert [(turn.role, turn.text, turn.answers_call) for turn in turns] == [
            ("system", "Be brief.", ""),
            ("user", "Hi", ""),
            ("assistant", "I look.", ""),
            ("tool", "7", "toolu_0"),
            ("user", "And?", ""),
        ]
        assert turns[2].calls == (ToolCall("toolu_0", "look", '{"a": 1}'),)
        assert turns[2].reasoning_texts == ("Hm.",)

    def test_content_other_than_text_counts_too(self) -> None:
        image = {"type": "image", "source": {"type": "url", "url": "https://a.test/b.png"}}
        (_, one), (_, other) = (
            MessagesHistory(request([text("Hi"), *more])).turns for more in ([], [image])
        )
        assert one.encode_canonical() != other.encode_canonical()

    @pytest.mark.parametrize("messages", [None, "text", [None, 7], [{}], {}])
    def test_odd_messages_are_not_fatal(self, messages: Any) -> None:
        conversation = MessagesHistory({"messages": messages})
        assert conversation.turns[0] == Turn("system")
        assert conversation.body() == {"messages": messages}

    @pytest.mark.parametrize(
        "content",
        [
            ANSWER,
            [thinking("Hm."), text("One, "), text("two.")],
            [redacted("ZGF0YQ"), tool_use(0), tool_use(1, b=[1, 2.5], a="ü")],
            [thinking("Hm."), {"type": "server_tool_use", "id": "s", "input": {}}, text("Hi")],
        ],
    )
    def test_a_recorded_turn_is_recognized_when_it_returns(self, content: list[Block]) -> None:
        """Whichever way it was read, and whichever pieces the client returns it in."""
        one, other = reader(), reader()
        read_frames(stream(content), one)
        other.read_whole(json.dumps(message(content)).encode())
        (recorded,), (same,) = one.recorded_turns(), other.recorded_turns()
        turn = self.returned(content)
        assert (
            recorded.turn.encode_identity() == same.turn.encode_identity() == turn.encode_identity()
        )
        assert (
            recorded.turn.encode_canonical()
            == same.turn.encode_canonical()
            == turn.encode_canonical()
        )

    def returned(self, content: list[Block]) -> Turn:
        """Return the content as an OpenAI client returns it, without its reasoning."""
        given = "".join(block["text"] for block in content if block["type"] == "text")
        calls = [
            ToolCallPart(block["id"], block["name"], json.dumps(block["input"], indent=1))
            for block in content
            if block["type"] == "tool_use"
        ]
        request_messages = [
            Message("user", [TextPart("Hi")]),
            Message("assistant", [TextPart(given), *calls]),
        ]
        question = ModelRequest(model="claude-opus-4-5", messages=request_messages)
        written = MESSAGES.upstream.write_request(question, UpstreamOptions(PROFILES["auto"]))
        return MESSAGES.upstream.history(written.body).turns[2]


class TestChanges:
    def read(self, *content: Block) -> tuple[MessagesHistory, Turn]:
        conversation = MessagesHistory(request("Hi", list(content), [result()]))
        return conversation, conversation.turns[2]

    def test_our_summary_is_removed(self) -> None:
        conversation, turn = self.read(thinking("ours"), redacted("ZGF0YQ"), tool_use())
        assert conversation.strip(turn, lambda given: given == "ours") == (1, False)
        assert conversation.body()["messages"][1]["content"] == [redacted("ZGF0YQ"), tool_use()]

    def test_the_models_reasoning_is_left_alone(self) -> None:
        conversation, turn = self.read(*ANSWER)
        assert conversation.strip(turn, nothing) == (0, True)
        assert conversation.body()["messages"][1]["content"] == ANSWER

    def test_a_signature_without_its_text_is_not_reasoning_that_is_left(self) -> None:
        conversation, turn = self.read(thinking("", "c2ln"), tool_use())
        assert conversation.strip(turn, nothing) == (0, False)

    def test_blocks_go_back_before_everything_else_as_they_were(self) -> None:
        conversation, turn = self.read(thinking("", "c2ln"), text("So."), tool_use())
        conversation.restore(turn, ANSWER[:2])
        content = conversation.body()["messages"][1]["content"]
        assert content == [*ANSWER[:2], text("So."), tool_use()]

    def test_blocks_go_back_before_a_plain_text(self) -> None:
        conversation = MessagesHistory(request("Hi", "So."))
        conversation.restore(conversation.turns[2], ANSWER[:1])
        assert conversation.body()["messages"][1]["content"] == [ANSWER[0], text("So.")]

    def test_hidden_reasoning_comes_back_whole(self) -> None:
        by = reader()
        read_frames(stream(ANSWER), by)
        (recorded,) = by.recorded_turns()
        original = Original.from_reasoning(recorded.original, recorded.raw, altered=True)
        conversation, turn = self.read(thinking("", "c2ln"), *ANSWER[2:])
        mending = HistoryRewriter(
            conversation, HistoryPolicy("client", "altered", PROFILES["auto"])
        )
        mending.strip(lambda _: False)
        assert [sought.turn for sought in mending.find_missing()] == [turn]
        assert mending.restore([original]).restored == {"store": 1}
        assert conversation.body()["messages"][1]["content"] == ANSWER
        before, after = PrefixDigest(), PrefixDigest()
        before.add(turn)
        after.add(recorded.turn)
        assert before.digest() == after.digest()


class TestABudgetInARoundOfCalls:
    THINKING = ({"type": "enabled", "budget_tokens": 2000}, {"type": "adaptive"})

    @pytest.mark.parametrize(
        ("content", "stays"),
        [
            (["Hi", [tool_use()], [result()]], False),
            (["Hi", [text("So."), tool_use()], [result(), text("Go on.")]], False),
            (["Hi", [thinking("Hm."), tool_use()], [result()]], True),
            (["Hi", [redacted("ZGF0YQ"), tool_use()], [result()]], True),
            (["Hi", [thinking("Hm."), tool_use()], [result()], [tool_use(1)], [result(1)]], True),
            (["Hi", [tool_use()], [result()], [thinking("Hm."), tool_use(1)], [result(1)]], False),
            (["Hi", [tool_use()], [result()], [text("So.")], [text("And?")]], True),
            (["Hi"], True),
        ],
    )
    def test_a_round_that_began_without_thinking_continues_without(
        self, content: list[Any], *, stays: bool
    ) -> None:
        budget, adaptive = self.THINKING
        fixed = MessagesHistory(request(*content, thinking=budget)).body()
        assert ("thinking" in fixed) == stays
        free = MessagesHistory(request(*content, thinking=adaptive)).body()
        assert free["thinking"] == adaptive

    def test_thinking_that_is_put_back_keeps_it(self) -> None:
        budget = self.THINKING[0]
        conversation = MessagesHistory(request("Hi", [tool_use()], [result()], thinking=budget))
        conversation.restore(conversation.turns[2], [thinking("Hm.")])
        assert conversation.body()["thinking"] == budget
