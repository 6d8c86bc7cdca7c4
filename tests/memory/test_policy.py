"""Which earlier reasoning upstream receives: every rule, on a history alone."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, ClassVar, cast, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.apis.chat.history import ChatHistory
from abridge.apis.gemini.history import GeminiHistory
from abridge.apis.messages.history import MessagesHistory
from abridge.apis.responses.history import ResponsesHistory
from abridge.core.conversation import PrefixDigest
from abridge.memory.originals import Original
from abridge.memory.policy import (
    HistoryChanges,
    HistoryPolicy,
    HistoryRewriter,
    KeepPolicy,
    RestorePolicy,
)
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import Profile, ReasoningReturn
from tests.apis.gemini.scripts import inline_data, signed, text

AUTO, DEEPSEEK, GROQ = PROFILES["auto"], PROFILES["deepseek"], PROFILES["groq"]
USER = {"role": "user", "content": "Hi"}
TOOL = {"role": "tool", "tool_call_id": "c1", "content": "7"}
CALLS = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
SUMMARY = "**Adding up**\n\nI add."


def said(text: str = "So.", **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def called(**more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": CALLS, **more}


def rewrite(
    messages: list[Any],
    keep: str = "client",
    restore: str = "altered",
    profile: Profile = AUTO,
    known: dict[str, str] | None = None,
    *,
    altered: bool = True,
) -> tuple[list[Any], HistoryChanges]:
    """The messages that upstream gets; `known` are the originals of turns, by their text or, of
    calls, by their first's name."""
    conversation = ChatHistory({"messages": list(map(copy.deepcopy, messages))})
    rewriter = HistoryRewriter(
        conversation, HistoryPolicy(cast(KeepPolicy, keep), cast(RestorePolicy, restore), profile)
    )
    rewriter.strip({SUMMARY}.__contains__)
    originals = []
    for turn, *_ in rewriter.find_missing():
        raw = (known or {}).get(turn.calls[0].name if turn.calls else turn.text)
        original = (
            Original.from_reasoning([{"reasoning_content": raw}], raw, altered=altered)
            if raw
            else None
        )
        originals.append(original)
    changes = rewriter.restore(originals)
    return conversation.body()["messages"], changes


ROUNDS = [
    USER,
    said("Old.", reasoning_content="old"),
    USER,
    called(reasoning_content="round"),
    TOOL,
    said("New.", reasoning_content="new"),
]


def thoughts(messages: list[Any]) -> list[Any]:
    return [message.get("reasoning_content") for message in messages if message["role"] != "user"]


class TestKeep:
    @pytest.mark.parametrize(
        ("keep", "left"),
        [
            ("client", ["old", "round", None, "new"]),
            ("all", ["old", "round", None, "new"]),
            ("tool_rounds", [None, "round", None, "new"]),
            ("none", [None, None, None, None]),
        ],
    )
    def test_keep_decides_which_reasoning_is_sent(self, keep: str, left: list[Any]) -> None:
        messages, changes = rewrite(ROUNDS, keep)
        assert thoughts(messages) == left
        assert changes.dropped["policy"] == 3 - sum(text is not None for text in left)

    INLINE = said("<think>old</think>\n\nOld.")
    LISTED = said(
        [
            {"type": "thinking", "thinking": [{"type": "text", "text": "old"}]},
            {"type": "text", "text": "Old."},
        ]
    )
    DETAILED = said("Old.", reasoning_details=[{"type": "reasoning.encrypted", "data": "x"}])
    BLOCKS = said("Old.", thinking_blocks=[{"type": "thinking", "thinking": "old"}])

    @pytest.mark.parametrize("message", [INLINE, LISTED, DETAILED, BLOCKS])
    @pytest.mark.parametrize("keep", ["none", "tool_rounds"])
    def test_keep_applies_to_every_reasoning_field(self, keep: str, message: Any) -> None:
        (_, sent, _), changes = rewrite([USER, message, USER], keep)
        assert "old" not in str(sent)
        assert not sent.keys() & {"reasoning_details", "thinking_blocks"}
        text = sent["content"] if isinstance(sent["content"], str) else sent["content"][0]["text"]
        assert text == "Old."
        assert changes.dropped == {"policy": 1}

    def test_reasoning_that_is_not_sent_is_not_looked_up(self) -> None:
        conversation = ChatHistory({"messages": [USER, said("Old."), USER, called(), TOOL]})
        rewriter = HistoryRewriter(conversation, HistoryPolicy("tool_rounds", "always", AUTO))
        rewriter.strip(lambda _: False)
        assert [sought.turn.calls[0].name for sought in rewriter.find_missing()] == ["f"]

    @pytest.mark.parametrize("keep", ["none", "tool_rounds"])
    def test_required_reasoning_is_sent_whatever_keep_says(self, keep: str) -> None:
        history = [USER, called(reasoning_content="old"), TOOL, said("Old.", reasoning="x"), USER]
        messages, _ = rewrite(history, keep, profile=DEEPSEEK)
        assert messages[1] == history[1]
        assert messages[3] == said("Old.")


class TestRestore:
    @pytest.mark.parametrize(
        ("keep", "restore", "altered", "put_back"),
        [
            ("client", "never", True, False),
            ("client", "altered", True, True),
            ("client", "altered", False, False),
            ("client", "always", False, True),
            ("tool_rounds", "altered", False, True),
            ("all", "altered", False, True),
            ("all", "never", True, False),
            ("none", "always", True, False),
        ],
    )
    def test_restore_decides_which_reasoning_is_restored(
        self, keep: str, restore: str, *, altered: bool, put_back: bool
    ) -> None:
        history, known = [USER, called(), TOOL], {"f": "round"}
        messages, changes = rewrite(history, keep, restore, known=known, altered=altered)
        assert messages[1].get("reasoning_content") == ("round" if put_back else None)
        assert changes.restored["store"] == put_back
        assert changes.changed == put_back

    def test_a_summary_is_replaced_by_its_original(self) -> None:
        history = [USER, said(reasoning_content=SUMMARY), USER]
        messages, changes = rewrite(history, known={"So.": "raw"})
        assert messages[1] == said(reasoning_content="raw")
        assert (changes.removed, changes.missed, changes.restored) == (1, 0, {"store": 1})

    def test_a_summary_without_an_original_is_removed(self) -> None:
        messages, changes = rewrite([USER, said(reasoning_content=SUMMARY), USER])
        assert messages[1] == said()
        assert (changes.removed, changes.missed) == (1, 1)

    @pytest.mark.parametrize("said", [[], [text("See:")]])
    @pytest.mark.parametrize(("image", "is_restored"), [("iVBO", True), ("iVBP", False)])
    def test_an_image_gets_its_signature_back_and_no_other(
        self, said: list[Any], image: str, *, is_restored: bool
    ) -> None:
        original = [*said, signed(inline_data("image/png", "iVBO"), "c2ln")]
        parts = [*said, inline_data("image/png", image)]
        history = GeminiHistory({"contents": [{"role": "model", "parts": copy.deepcopy(parts)}]})
        rewriter = HistoryRewriter(history, HistoryPolicy("client", "altered", AUTO))
        rewriter.strip(lambda _: False)
        assert len(rewriter.find_missing()) == 1
        rewriter.restore([Original.from_reasoning(original, "", altered=True)])
        [content] = history.body()["contents"]
        assert content["parts"] == (original if is_restored else parts)

    def test_a_turn_of_which_nothing_is_left_gets_nothing(self) -> None:
        item = {"type": "reasoning", "summary": [{"type": "summary_text", "text": SUMMARY}]}
        history = ResponsesHistory({"input": [USER, item, USER]})
        rewriter = HistoryRewriter(history, HistoryPolicy("client", "altered", AUTO))
        rewriter.strip({SUMMARY}.__contains__)
        assert not rewriter.find_missing()

    def test_the_clients_own_reasoning_wins(self) -> None:
        history = [USER, said(reasoning_content="my own"), USER]
        messages, changes = rewrite(history, restore="always", known={"So.": "raw"})
        assert messages == history
        assert changes.restored == {"client": 1}
        assert not changes.changed

    def test_what_is_left_beside_a_summary_is_told_from_an_edit(self) -> None:
        """A client returned the original and a summary in one field."""
        details = [{"type": "reasoning.text", "text": text} for text in (SUMMARY, "raw")]
        messages, changes = rewrite([USER, said(reasoning_details=details)], known={"So.": "raw"})
        assert messages[1] == said(reasoning_content="raw")
        assert changes.restored == {"store": 1}

    def test_required_reasoning_is_restored_though_the_client_saw_it(self) -> None:
        history, known = [USER, called(), TOOL, said("Plain.")], {"f": "round", "Plain.": "plain"}
        messages, _ = rewrite(history, profile=DEEPSEEK, known=known, altered=False)
        assert messages[1]["reasoning_content"] == "round"
        assert "reasoning_content" not in messages[3]

    def test_required_reasoning_that_is_unknown_is_missed(self) -> None:
        _, changes = rewrite([USER, called(), TOOL], profile=PROFILES["gemini"])
        assert changes.missed == 1

    def test_parallel_calls_may_share_what_is_required(self) -> None:
        """On an API where each call is a turn, only the first has the reasoning before it."""
        calls = [{"type": "tool_use", "id": f"t_{n}", "name": "f", "input": {}} for n in (1, 2)]
        content = [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, *calls]
        for kept, missed in ((content, 0), (calls, 1)):
            conversation = MessagesHistory({"messages": [{"role": "assistant", "content": kept}]})
            policy = HistoryPolicy("client", "altered", AUTO, requires_reasoning=True)
            rewriter = HistoryRewriter(conversation, policy)
            rewriter.strip(lambda _: False)
            assert rewriter.restore([None] * len(rewriter.find_missing())).missed == missed


@pytest.mark.parametrize(
    ("known", "kept"), [("One. Two.", "One. c1 Two. c2"), ("One.", "One. Two. c1 c2")]
)
def test_reasoning_that_was_moved_stays_where_it_is_not_remembered(known: str, kept: str) -> None:
    thoughts = [
        {"type": "thinking", "thinking": text, "signature": ""} for text in ("One.", "Two.")
    ]
    calls = [{"type": "tool_use", "id": f"c{n}", "name": "f", "input": {}} for n in (1, 2)]
    answer = {"role": "assistant", "content": [*thoughts, *calls]}
    conversation = MessagesHistory({"messages": [answer]})
    rewriter = HistoryRewriter(conversation, HistoryPolicy("client", "altered", AUTO, native=True))
    rewriter.strip(lambda _: False)
    originals = [
        Original.from_reasoning([thought], thought["thinking"], altered=True)
        if thought["thinking"] in known
        else None
        for thought, _ in zip(thoughts, rewriter.find_missing(), strict=True)
    ]
    rewriter.restore(originals)
    content = conversation.body()["messages"][0]["content"]
    assert " ".join(each.get("thinking") or each["id"] for each in content) == kept


def test_only_what_precedes_known_turns_is_digested_where_the_answer_is_not_remembered() -> None:
    conversation = ChatHistory({"messages": [USER, said("Old."), USER, said("New."), USER]})
    rewriter = HistoryRewriter(conversation, HistoryPolicy("client", "altered", AUTO))
    keys = {"Old.": [b"key"]}
    (query,) = rewriter.find_missing((), lambda turn: keys.get(turn.text, []), to_end=False)
    before, after = (PrefixDigest().extended_by(conversation.turns[:n]) for n in (1, 2))
    assert query == (conversation.turns[1], [b"key"], before.digest(), b"")
    assert rewriter.prefix.digest() == after.digest()


class TestMissedInTranslation:
    """A history is stripped in the client's API and restored in upstream's."""

    def missed(
        self, items: list[Any], messages: list[Any], known: set[str], profile: Profile = AUTO
    ) -> int:
        policy = HistoryPolicy("client", "altered", profile, translated=True)
        stripping = HistoryRewriter(ResponsesHistory({"input": copy.deepcopy(items)}), policy)
        stripping.strip({SUMMARY}.__contains__)
        stripped = stripping.restore_nothing()
        rewriter = HistoryRewriter(ChatHistory({"messages": messages}), policy)
        rewriter.strip({SUMMARY}.__contains__)
        rewriter.expect(stripped.bare_turns)
        rewriter.changes.add_stripped(stripped)
        original = Original.from_reasoning([{"reasoning_content": "raw"}], "raw", altered=True)
        return rewriter.restore(
            [original if turn.text in known else None for turn, *_ in rewriter.find_missing()]
        ).missed

    SUMMED: ClassVar = {"type": "reasoning", "summary": [{"type": "summary_text", "text": SUMMARY}]}

    @pytest.mark.parametrize(
        ("known", "missed"), [({"One.", "Two."}, 0), ({"Two."}, 1), ({"One."}, 0), (set(), 1)]
    )
    def test_only_a_turn_that_had_reasoning_is_missed(self, known: set[str], missed: int) -> None:
        messages = [USER, said("One."), USER, said("Two."), USER]
        items = [USER, self.SUMMED, said("One."), USER, said("Two."), USER]
        assert self.missed(items, messages, known) == missed

    def test_a_turn_is_known_by_its_calls_too(self) -> None:
        call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
        assert self.missed([USER, self.SUMMED, call], [USER, called(), TOOL], set()) == 1

    def test_required_reasoning_that_the_client_left_out_is_missed(self) -> None:
        call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
        messages = [USER, called(), TOOL]
        assert self.missed([USER, call], messages, set(), PROFILES["gemini"]) == 1
        assert self.missed([USER, self.SUMMED, call], messages, set(), PROFILES["gemini"]) == 1


def profile(place: str, *refuses: str, even_empty: bool = False) -> Profile:
    returns = ReasoningReturn(
        cast(Any, place), rejects=cast(Any, refuses), required_even_empty=even_empty
    )
    return replace(DEEPSEEK, returns=returns)


THINKING = {"type": "thinking", "thinking": [{"type": "text", "text": "raw"}]}


class TestSpelling:
    @pytest.mark.parametrize(
        ("returned", "returns", "sent"),
        [
            (said(reasoning="raw"), profile("reasoning_content"), said(reasoning_content="raw")),
            (said(reasoning_content="raw"), profile("reasoning"), said(reasoning="raw")),
            (said(reasoning="raw"), profile("reasoning"), said(reasoning="raw")),
            (
                said(thinking_blocks=[{"type": "thinking", "thinking": "raw", "signature": "s"}]),
                profile("reasoning"),
                said(reasoning="raw"),
            ),
            (
                said([THINKING, {"type": "text", "text": "So."}]),
                profile("reasoning"),
                said([{"type": "text", "text": "So."}], reasoning="raw"),
            ),
            (said(reasoning="raw"), profile("tags"), said("<think>\nraw\n</think>\n\nSo.")),
            (
                said(reasoning="raw"),
                profile("chunks"),
                said([THINKING, {"type": "text", "text": "So."}]),
            ),
            (
                said([{"type": "text", "text": "So."}], reasoning="raw"),
                profile("chunks"),
                said([THINKING, {"type": "text", "text": "So."}]),
            ),
            (
                said([{"type": "text", "text": "So."}], reasoning="raw"),
                profile("tags"),
                said(
                    [
                        {"type": "text", "text": "<think>\nraw\n</think>\n\n"},
                        {"type": "text", "text": "So."},
                    ]
                ),
            ),
            (said(reasoning="raw"), profile("nothing"), said()),
            (said(reasoning=""), profile("reasoning"), said()),
            (said(reasoning=None), profile("reasoning"), said()),
            (said(reasoning="raw"), profile("reasoning_details"), said(reasoning="raw")),
            (
                said(reasoning="raw", reasoning_content="raw"),
                profile("reasoning", "reasoning_content"),
                said(reasoning="raw"),
            ),
            (
                called(reasoning=None),
                profile("reasoning", even_empty=True),
                called(reasoning=""),
            ),
            (said(), profile("reasoning", even_empty=True), said()),
            (called(), profile("reasoning"), called()),
        ],
    )
    def test_reasoning_moves_to_the_field_upstream_reads(
        self, returned: Any, returns: Profile, sent: Any
    ) -> None:
        (_, message, _), changes = rewrite([USER, returned, USER], profile=returns)
        assert message == sent
        assert changes.changed == (returned != sent)

    @pytest.mark.parametrize("inline", ["<think>raw</think>\n\nSo.", "<thought>raw</thought>So."])
    @pytest.mark.parametrize("place", ["reasoning", "reasoning_content"])
    def test_inline_reasoning_is_not_repeated(self, place: str, inline: str) -> None:
        history = [
            USER,
            said(inline, reasoning_details=[{"type": "reasoning.text", "text": "raw"}]),
        ]
        messages, changes = rewrite(history, profile=profile(place))
        assert messages == history
        assert not changes.changed

    def test_a_quoted_tag_is_no_reasoning(self) -> None:
        quoted = said("The tag is called <think>.", reasoning="raw")
        (_, message), _ = rewrite([USER, quoted], profile=profile("reasoning_content"))
        assert message == said("The tag is called <think>.", reasoning_content="raw")

    def test_reasoning_stays_in_place_for_an_unknown_upstream(self) -> None:
        history = [USER, said(reasoning="raw"), USER]
        assert rewrite(history)[0] == history

    def test_groq_is_never_sent_a_field_it_refuses(self) -> None:
        (_, message, _), _ = rewrite([USER, said(reasoning_content="raw"), USER], profile=GROQ)
        assert message == said(reasoning="raw")


class TestItems:
    @pytest.mark.parametrize(("keep", "left"), [("client", 2), ("tool_rounds", 1), ("none", 0)])
    def test_keep_applies_to_responses_items(self, keep: KeepPolicy, left: int) -> None:
        output = {"type": "function_call_output", "call_id": "c1", "output": "7"}
        call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
        content = [{"type": "reasoning_text", "text": "raw"}]
        raw = {"type": "reasoning", "id": "rs_1", "summary": [], "content": content}
        items = [USER, raw, said("Old."), USER, copy.deepcopy(raw), call, output]
        conversation = ResponsesHistory({"input": copy.deepcopy(items)})
        rewriter = HistoryRewriter(conversation, HistoryPolicy(keep, "altered", AUTO))
        rewriter.strip(lambda _: False)
        rewriter.restore([None] * len(rewriter.find_missing()))
        sent = conversation.body()["input"]
        assert sent.count(raw) == left
        assert [item for item in sent if item != raw] == [item for item in items if item != raw]


FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "reasoning": st.sampled_from(["raw", SUMMARY, "", None]),
        "reasoning_content": st.sampled_from(["raw", SUMMARY, ""]),
        "reasoning_details": st.just([{"type": "reasoning.text", "text": "raw", "index": 0}]),
        "thinking_blocks": st.just([{"type": "thinking", "thinking": "raw", "signature": "s"}]),
        "summary_error": st.just({"code": "timeout"}),
    },
)
TURNS = st.lists(
    st.one_of(
        st.just(USER),
        st.builds(lambda more: called(**more), FIELDS),
        st.builds(lambda text, more: said(text, **more), st.sampled_from(["So.", "No."]), FIELDS),
        st.just(said("<think>raw</think>So.")),
    ),
    max_size=6,
)


@given(
    history=TURNS,
    keep=st.sampled_from(get_args(KeepPolicy)),
    restore=st.sampled_from(get_args(RestorePolicy)),
    name=st.sampled_from(sorted(PROFILES)),
    known=st.booleans(),
)
def test_answers_stay_and_a_second_rewrite_changes_nothing(
    history: list[Any], keep: KeepPolicy, restore: RestorePolicy, name: str, *, known: bool
) -> None:
    row, originals = PROFILES[name], {"f": "raw", "So.": "raw"} if known else {}
    once, _ = rewrite(history, keep, restore, row, originals)
    again, _ = rewrite(once, keep, restore, row, originals)
    assert again == once
    assert SUMMARY not in str(once)
    assert [message.get("tool_calls") for message in once] == [
        message.get("tool_calls") for message in history
    ]
    for sent, returned in zip(once, history, strict=True):
        places = [sent.get(place) for place in ("reasoning", "reasoning_content")]
        assert row.name == "auto" or not any(place in sent for place in row.returns.rejects)
        assert sent["role"] == returned["role"]
        if keep == "none" and not row.returns.required_on_calls:
            assert not any(places)
