"""Test the history of a Messages request: its turns, and the changes made to them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.api import UpstreamOptions
from abridge.apis.messages.api import MESSAGES
from abridge.apis.messages.history import MessagesHistory
from abridge.core.conversation import PrefixDigest, ToolCall, Turn
from abridge.core.envelope import UNSEALED, UNSEALED_RAW
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
    search,
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
    @pytest.mark.parametrize(("is_translated", "beside"), [(True, "user"), (False, "tool")])
    def test_each_speaker_and_each_result_has_a_turn(
        self, beside: str, *, is_translated: bool
    ) -> None:
        """What a client puts beside results does not end a round of calls."""
        body = request("Hi", ANSWER, [result(), text("And?")], [text("So.")], "Go on.")
        history = MessagesHistory(body, is_translated=is_translated)
        turns = history.turns
        assert [(turn.role, turn.text, turn.answers_call) for turn in turns] == [
            ("system", "Be brief.", ""),
            ("user", "Hi", ""),
            ("assistant", "I look.", ""),
            ("tool", "7", "toolu_0"),
            (beside, "And?", ""),
            ("assistant", "So.", ""),
            ("user", "Go on.", ""),
        ]
        assert turns[2].calls == (ToolCall("toolu_0", "look", '{"a": 1}'),)
        assert history.reasoning_texts(turns[2]) == ("Hm.",)

    def test_a_call_ends_a_turn_and_nothing_else(self) -> None:
        content = [*ANSWER, tool_use(1), thinking("So?"), tool_use(2), text("Or"), thinking("No.")]
        history = MessagesHistory(request("Hi", content))
        turns = history.turns[2:]
        assert [turn.items for turn in turns] == [
            *(content[:4], content[4:5], content[5:7], content[7:])
        ]
        texts = [history.reasoning_texts(turn) for turn in turns]
        assert texts == [("Hm.",), (), ("So?",), ("No.",)]
        (joined,) = MessagesHistory(request("Hi", content), is_translated=True).turns[2:]
        assert joined.items == content

    def test_messages_without_a_break_are_one_answer(self) -> None:
        """Clients that keep an answer in pieces return each as a message."""
        split = [{"role": "assistant", "content": [block]} for block in ANSWER]
        user = {"role": "user", "content": "Hi"}
        history = MessagesHistory({"messages": [user, *split, user]})
        assert [turn.items for turn in history.turns[2:-1]] == [ANSWER]
        assert history.body()["messages"] == [user, *split, user]
        history.strip(history.turns[2], lambda given: given == "Hm.")
        answer = {"role": "assistant", "content": ANSWER[1:]}
        assert history.body()["messages"] == [user, answer, user]

    def test_but_an_answer_that_went_on_after_a_pause_is_another(self) -> None:
        paused, rest = [thinking("Hm."), *search()], [thinking("So."), text("So.")]
        messages = [{"role": "assistant", "content": blocks} for blocks in (paused, rest)]
        history = MessagesHistory({"messages": messages})
        assert [turn.items for turn in history.turns[1:]] == [paused, rest]
        assert history.body()["messages"] == messages

    def test_content_other_than_text_counts_too(self) -> None:
        image = {"type": "image", "source": {"type": "url", "url": "https://a.test/b.png"}}
        (_, one), (_, other) = (
            MessagesHistory(request([text("Hi"), *more])).turns for more in ([], [image])
        )
        assert one.encode_canonical() != other.encode_canonical()

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

    def test_a_block_that_says_nothing_and_our_mark_are_removed(self) -> None:
        marked = {**thinking("Hm."), "summary_error": {"code": "timeout", "message": "Late."}}
        conversation, turn = self.read(thinking("", ""), marked, tool_use())
        assert conversation.strip(turn, nothing) == (2, True)
        assert conversation.body()["messages"][1]["content"] == [thinking("Hm."), tool_use()]

    @pytest.mark.parametrize(
        ("name", "model", "left_out"),
        [
            *(("anthropic", "claude-opus-4-5", 1), ("auto", "anthropic/claude-opus-5", 1)),
            *(("auto", "thinker-1", 0), ("vllm", "claude-opus-4-5", 0)),
        ],
    )
    def test_thinking_without_a_signature_is_left_out_where_it_is_refused(
        self, name: str, model: str, left_out: int
    ) -> None:
        content = [thinking("Mine.", ""), thinking("Hm."), tool_use()]
        conversation = MessagesHistory(request("Hi", content, model=model))
        placement = conversation.place_reasoning(conversation.turns[2], PROFILES[name])
        assert placement == ("dropped" if left_out else "unchanged")
        assert conversation.body()["messages"][1]["content"] == content[left_out:]

    @pytest.mark.parametrize(
        ("shown", "left"),
        [
            (thinking("Hm.", UNSEALED_RAW), [thinking("Hm.", "")]),
            (thinking("", UNSEALED_RAW), []),
            (thinking("A summary, perhaps edited, that no store knows.", UNSEALED), []),
            (thinking("", UNSEALED), []),
        ],
    )
    def test_a_signature_that_holds_nothing_tells_a_summary(
        self, shown: Block, left: list[Block]
    ) -> None:
        history = MessagesHistory(request("Hi", [shown, text("Hello.")]))

        def open_none(*_: object) -> None:
            raise AssertionError("it is no envelope")

        turn = history.turns[2]
        history.open_envelopes(turn, open_none)
        assert history.strip(turn, nothing)[0] >= 1
        assert history.body()["messages"][1]["content"] == [*left, text("Hello.")]

    def test_a_message_with_nothing_left_is_removed(self) -> None:
        conversation = MessagesHistory(request("Hi", [thinking("ours", "")], "And?"))
        conversation.strip(conversation.turns[2], lambda given: given == "ours")
        assert [message["content"] for message in conversation.body()["messages"]] == ["Hi", "And?"]

    def test_attribution_is_removed_from_every_call(self) -> None:
        server_call = {**search()[0], "reasoning_ref": "toolu_0"}
        call = {**tool_use(), "reasoning": [{"type": "summary_text", "text": "ours"}]}
        conversation = MessagesHistory(request("Hi", [call, server_call]))
        assert sum(map(conversation.strip_attribution, conversation.turns[2:])) == 2
        assert conversation.body()["messages"][1]["content"] == [tool_use(), search()[0]]

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


class TestRecording:
    CONTENT = (
        *(thinking("One."), tool_use(0), tool_use(1), redacted("ZGF0YQ"), text("So.")),
        *(thinking("Two.", ""), tool_use(2)),
    )
    KEYS = ((0, 0), None, None, (0, 1), None, (0, 2), None)
    PIECES = tuple(zip(KEYS, CONTENT, strict=True))

    def test_each_call_has_its_own_reasoning(self) -> None:
        recorded = MessagesHistory.record(self.PIECES, joined=False)
        assert [(turn.raw, turn.original, turn.item_keys) for turn in recorded] == [
            ("One.", [self.CONTENT[0]], ((0, 0),)),
            ("", [], ()),
            ("Two.", list(self.CONTENT[3:]), ((0, 1), (0, 2))),
        ]
        assert [len(turn.turns_before) for turn in recorded] == [0, 1, 1]

    @pytest.mark.parametrize("split", [False, True])
    def test_it_is_found_again_in_a_message_that_a_client_splits(self, *, split: bool) -> None:
        contents = [
            *([self.CONTENT[1:2], self.CONTENT[2:3]] if split else [self.CONTENT[1:3]]),
            *[[*self.CONTENT[4:5], self.CONTENT[6]]],
        ]
        messages = [{"role": "assistant", "content": list(content)} for content in contents]
        turns = MessagesHistory({"messages": messages}).turns[1:]
        recorded = MessagesHistory.record(self.PIECES, joined=False)
        found = {turn.encode_identity() for turn in turns}
        assert {turn.turn.encode_identity() for turn in (recorded[0], recorded[2])} <= found

    def test_without_reasoning_a_turn_is_recorded_as_bare(self) -> None:
        pieces = [(None, text("So.")), (None, tool_use())]
        (turn,) = MessagesHistory.record(pieces, joined=False)
        assert turn.is_bare
        assert (turn.turn.text, len(turn.turn.calls)) == ("So.", 1)


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
            (["Hi", [{"type": ["odd"]}]], True),
        ],
    )
    def test_a_round_that_began_without_thinking_continues_without(
        self, content: list[Any], *, stays: bool
    ) -> None:
        budget, adaptive = self.THINKING
        fixed = MessagesHistory(request(*content, thinking=budget)).sent_body()
        assert ("thinking" in fixed) == stays
        free = MessagesHistory(request(*content, thinking=adaptive)).sent_body()
        assert free["thinking"] == adaptive
        translated = MessagesHistory(request(*content, thinking=budget)).body()
        assert translated["thinking"] == budget

    @pytest.mark.parametrize(
        ("blocks", "stays"),
        [([thinking("Hm."), tool_use()], True), ([text("So."), tool_use()], False)],
    )
    def test_an_answer_in_several_messages_began_with_the_first(
        self, blocks: list[Any], *, stays: bool
    ) -> None:
        body = request("Hi", blocks, [result()], thinking=self.THINKING[0])
        question, answer, results = body["messages"]
        split = [{**answer, "content": [block]} for block in answer["content"]]
        history = MessagesHistory({**body, "messages": [question, *split, results]})
        assert ("thinking" in history.sent_body()) == stays

    def test_thinking_that_is_put_back_keeps_it(self) -> None:
        budget = self.THINKING[0]
        conversation = MessagesHistory(request("Hi", [tool_use()], [result()], thinking=budget))
        conversation.restore(conversation.turns[2], [thinking("Hm.")])
        assert conversation.sent_body()["thinking"] == budget
