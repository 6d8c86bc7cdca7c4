"""A turn that is a text alone is rewritten, looked up and restored as any other, in less time."""

from __future__ import annotations

import copy
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.apis.chat.history import ChatHistory
from abridge.apis.history import History
from abridge.apis.messages.history import MessagesHistory
from abridge.apis.responses.history import ResponsesHistory
from abridge.core.envelope import Envelope
from abridge.memory.originals import Original
from abridge.memory.policy import HistoryPolicy, HistoryRewriter, KeepPolicy, RestorePolicy
from abridge.providers.catalog import PROFILES

Json = dict[str, Any]

RAW, OURS, BLOB = "I think.", "**Thinking**", "abr1.opens"

TAGGED = [f"<think>{text}</think>So." for text in (OURS, RAW)]
TEXTS = st.sampled_from(["So.", "", " ", OURS, *TAGGED, "1 < 2", "\ud800"])
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def message(role: str, **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries({"role": st.just(role)}, optional=optional)


def parts(*types: str, **more: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Json]]:
    fields = {"type": st.sampled_from(types), "text": TEXTS}
    return st.lists(st.fixed_dictionaries(fields, optional=more), max_size=2)


CHAT = message(
    "assistant",
    content=st.none() | TEXTS | parts("text"),
    refusal=st.just("No."),
    reasoning=TEXTS,
    reasoning_details=st.just([{"type": "reasoning.encrypted", "data": BLOB}]),
    provider_specific_fields=st.just({"reasoning": OURS}),
    summary_error=st.just({"code": "timeout"}),
    extra_content=st.just({"google": {}}),
    tool_calls=st.just([{**CALL, "reasoning_ref": "call_0"}]) | st.just([]),
)
ITEMS = message(
    "assistant",
    type=st.sampled_from(["message", "reasoning", "function_call"]),
    content=TEXTS | parts("output_text"),
    summary=parts("summary_text"),
    encrypted_content=st.sampled_from([BLOB, "gAAA"]),
)
MESSAGES = message(
    "assistant",
    content=TEXTS
    | parts("text", "thinking", "tool_use", thinking=TEXTS, signature=st.sampled_from([BLOB, ""])),
)


def history_of(api: str, answers: list[Json], *, is_translated: bool) -> History:
    said: list[Json] = [{"role": "user", "content": "Hi"}]
    for answer in copy.deepcopy(answers):
        said += [answer, {"role": "user", "content": "And?"}]
    match api:
        case "chat":
            return ChatHistory({"messages": said})
        case "responses":
            return ResponsesHistory({"input": said}, is_translated=is_translated)
    return MessagesHistory({"messages": said}, is_translated=is_translated)


ORIGINALS: dict[str, Json] = {
    "chat": {"reasoning": RAW},
    "responses": {"type": "reasoning", "content": [{"type": "reasoning_text", "text": RAW}]},
    "messages": {"type": "thinking", "thinking": RAW, "signature": "c2ln"},
}


def rewritten(history: History, policy: HistoryPolicy, restored: list[bool], original: Json) -> Any:
    """Return everything that becomes of a history, in which every other turn is known."""
    found = Original.from_reasoning([original], RAW, altered=True)
    rewriter = HistoryRewriter(history, policy)
    rewriter.open_envelopes(lambda *_: Envelope([copy.deepcopy(original)]))
    unknown = rewriter.strip(OURS.__eq__)
    queries = rewriter.find_missing()
    known = [found if restores else None for restores in (*restored, *[False] * len(queries))]
    changes = rewriter.restore(known[: len(queries)])
    looked_up = [(query.turn.encode_identity(), *query[1:]) for query in queries]
    return unknown, looked_up, changes, history.body(), rewriter.prefix.numbered_digest()


@pytest.mark.parametrize(
    ("api", "answers"), [("chat", CHAT), ("responses", ITEMS), ("messages", MESSAGES)]
)
@given(st.data())
def test_a_plain_turn_is_treated_as_any_other(
    api: str, answers: st.SearchStrategy[Json], data: st.DataObject
) -> None:
    policy = HistoryPolicy(
        data.draw(st.sampled_from(get_args(KeepPolicy))),
        data.draw(st.sampled_from(get_args(RestorePolicy))),
        PROFILES[data.draw(st.sampled_from(sorted(PROFILES)))],
        requires_reasoning=data.draw(st.booleans()),
        native=data.draw(st.booleans()),
    )
    said = data.draw(st.lists(answers, max_size=3))
    restored = data.draw(st.lists(st.booleans(), max_size=3))
    is_translated = data.draw(st.booleans())
    quick, slow = (history_of(api, said, is_translated=is_translated) for _ in range(2))
    for turn in slow.turns:
        turn.is_plain = False
    assert rewritten(quick, policy, restored, ORIGINALS[api]) == rewritten(
        slow, policy, restored, ORIGINALS[api]
    )


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
@pytest.mark.parametrize(("text", "is_plain"), [("So.", True), ("<think>So.", False)])
def test_a_text_without_tags_makes_a_plain_turn(api: str, text: str, *, is_plain: bool) -> None:
    answer = {"role": "assistant", "content": text}
    turns = history_of(api, [answer], is_translated=False).turns
    assert [turn.is_plain for turn in turns if turn.role == "assistant"] == [is_plain]
    assert not any(turn.is_plain for turn in turns if turn.role != "assistant")


@given(st.sampled_from(["user", "assistant"]), TEXTS.filter(bool))
def test_a_text_of_a_message_is_read_as_the_one_block_that_it_stands_for(
    role: str, text: str
) -> None:
    block = {"type": "text", "text": text}
    [_, *read] = MessagesHistory({"messages": [{"role": role, "content": text}]}).turns
    [_, *of_block] = MessagesHistory({"messages": [{"role": role, "content": [block]}]}).turns
    assert [turn.encode_canonical() for turn in read] == [
        turn.encode_canonical() for turn in of_block
    ]
    if role == "assistant":
        assert [turn.items for turn in read] == [turn.items for turn in of_block] == [[block]]
