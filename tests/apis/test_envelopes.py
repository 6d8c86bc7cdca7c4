"""Test envelopes in requests: opened, removed or refused, in any field."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("cryptography", reason="sealing needs the extra 'seal'")

from abridge.apis.chat.history import ChatHistory, message_place
from abridge.apis.history import History
from abridge.apis.responses.api import RESPONSES
from abridge.apis.responses.history import ResponsesHistory
from abridge.core.conversation import PrefixDigest, ToolCall, Turn
from abridge.core.envelope import ENVELOPE_PREFIX, Envelope
from abridge.core.places import place_after_call
from abridge.errors import RequestError
from abridge.memory.client_envelopes import Sealer
from tests.support.matrix import some
from tests.support.sealers import NOW, sealer, unseal

Json = dict[str, Any]

THOUGHT = "I recall the rule."
ITEM = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [],
    "content": [{"type": "reasoning_text", "text": THOUGHT}],
}
SO = message_place(Turn("assistant", "So.", (ToolCall("call_1", "f", "{}"),)))
BLOB = sealer().seal(Envelope([ITEM], "rs_1"))
KEPT = {"reasoning": THOUGHT}
SAID = sealer().seal(Envelope([KEPT], place=SO))
FOREIGN = sealer(tenant="bert").seal(Envelope([ITEM], "rs_1"))
DAMAGED = BLOB[:-1] + ("A" if BLOB[-1] != "A" else "B")

USER = {"role": "user", "content": "Hi"}
SUMMARY = [{"type": "summary_text", "text": "Ours."}]
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
FUNCTION_CALL = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}


def reasoning(blob: str, **more: Any) -> Json:
    return {"type": "reasoning", "summary": [], "encrypted_content": blob, **more}


def detail(blob: str, **more: Any) -> Json:
    return {"type": "reasoning.encrypted", "data": blob, "format": "unknown", "index": 0, **more}


def block(blob: str) -> Json:
    return {"type": "redacted_thinking", "data": blob, "index": 0}


def message(**more: Any) -> Json:
    return {"role": "assistant", "content": "So.", "tool_calls": [CALL], **more}


def of_responses(*items: Any) -> ResponsesHistory:
    return ResponsesHistory({"input": json.loads(json.dumps([USER, *items]))})


def of_chat(*message_fields: Any) -> ChatHistory:
    return ChatHistory({"messages": json.loads(json.dumps([USER, *message_fields]))})


def items(*given: Any, replica: Sealer | None = None) -> list[Json]:
    """Return what upstream gets of these items."""
    found: list[Json] = unseal(of_responses(*given), replica)["input"][1:]
    return found


def message_fields(given: Json, replica: Sealer | None = None) -> Json:
    """Return what upstream gets of this message."""
    found: Json = unseal(of_chat(given), replica)["messages"][1]
    return found


class TestResponses:
    def test_the_opened_reasoning_takes_the_items_place(self) -> None:
        other = {**ITEM, "id": "rs_2"}
        two = sealer().seal(Envelope([ITEM, other], "rs_1"))
        before = [reasoning(two, summary=SUMMARY, summary_error={"code": "timeout"})]
        assert items(*before, FUNCTION_CALL) == [ITEM, other, FUNCTION_CALL]

    @pytest.mark.parametrize("identity", [{}, {"id": "rs_1"}, {"id": None}, {"id": ""}])
    def test_clients_may_leave_out_its_id(self, identity: Json) -> None:
        assert items(reasoning(BLOB, **identity), FUNCTION_CALL) == [ITEM, FUNCTION_CALL]

    def test_all_of_it_may_stand_before_the_calls(self) -> None:
        """LiteLLM keeps an answer's reasoning in one list, which it returns first."""
        one, two, other = (
            {**FUNCTION_CALL, "call_id": "call_Ab3dEf6hIj"},
            FUNCTION_CALL,
            {**ITEM, "id": "rs_2"},
        )
        after = sealer().seal(Envelope([other], "rs_2", place_after_call("call_Ab3dEf6hIj")))
        moved = [reasoning(BLOB), reasoning(after, id="rs_2")]
        assert items(*moved, one, two) == [ITEM, one, other, two]
        assert items(*moved, two, one) == [ITEM, two, one]
        said = {"role": "assistant", "content": "So."}
        assert items(*moved, one, said) == [ITEM, one, other, said]
        elsewhere = sealer().seal(Envelope([ITEM], "", place_after_call("call_Xy7zWv4uTs")))
        assert items(reasoning(elsewhere), *moved, one, two) == [ITEM, one, other, two]

    def test_several_items_each_have_their_own(self) -> None:
        other = {**ITEM, "id": "rs_2"}
        both = [reasoning(BLOB), reasoning(sealer().seal(Envelope([other], "rs_2")), id="rs_2")]
        assert items(*both, FUNCTION_CALL) == [ITEM, other, FUNCTION_CALL]

    @pytest.mark.parametrize(
        ("replica", "blob", "reason"),
        [
            ({"tenant": "bert"}, BLOB, "foreign"),
            ({"model": "thinker-2"}, BLOB, "foreign"),
            ({"upstream": "another"}, BLOB, "foreign"),
            ({"now": 2 * NOW}, BLOB, "expired"),
            ({"limit": 10}, BLOB, "oversize"),
            ({}, FOREIGN, "foreign"),
        ],
    )
    def test_an_unusable_one_is_removed_with_the_summary_beside_it(
        self, replica: Json, blob: str, reason: str
    ) -> None:
        by = sealer(**replica)
        resting = {"type": "reasoning", "id": "rs_0", "summary": []}
        summed = reasoning(blob, id="rs_1", summary=SUMMARY)
        assert items(resting, reasoning(blob, id="rs_1"), summed, FUNCTION_CALL, replica=by) == [
            resting,
            FUNCTION_CALL,
        ]
        assert by.dropped == {reason: 2}

    def test_but_reasoning_in_the_clear_stays(self) -> None:
        content = [{"type": "reasoning_text", "text": "raw"}]
        given = reasoning(FOREIGN, summary=SUMMARY, content=content)
        bare = {key: given[key] for key in given if key != "encrypted_content"}
        assert items(given, FUNCTION_CALL) == [{**bare, "summary": []}, FUNCTION_CALL]

    def test_an_envelope_in_another_item_is_removed(self) -> None:
        by = sealer()
        assert items(reasoning(BLOB, id="rs_2"), FUNCTION_CALL, replica=by) == [FUNCTION_CALL]
        assert by.dropped == {"edited": 1}

    def test_a_damaged_one_is_reported_under_the_clients_name(self) -> None:
        conversation = of_responses(FUNCTION_CALL, reasoning(BLOB), reasoning(DAMAGED))
        with pytest.raises(RequestError) as caught:
            unseal(conversation)
        assert caught.value.param == "input[3].encrypted_content"
        assert caught.value.code == "invalid_encrypted_content"

    def test_other_state_is_left_as_it_is(self) -> None:
        theirs = [reasoning("gAAAAABo"), reasoning("ABR1.x"), reasoning(7), FUNCTION_CALL]  # type: ignore[arg-type]
        assert items(*theirs) == theirs

    def test_the_turn_reflects_the_opened_envelope(self) -> None:
        conversation = of_responses(reasoning(BLOB, summary=SUMMARY), FUNCTION_CALL)
        turn = conversation.turns[2]
        before = PrefixDigest().extended_by(conversation.turns).digest()
        assert set(conversation.reasoning_texts(turn)) == {"Ours."}
        conversation.open_envelopes(turn, sealer().open)
        assert turn.from_envelope
        assert set(conversation.reasoning_texts(turn)) == {"", THOUGHT}
        assert conversation.strip(turn, lambda text: text == "Ours.") == (0, True)
        assert PrefixDigest().extended_by(conversation.turns).digest() == before


class TestChat:
    @pytest.mark.parametrize(
        "lists",
        [
            {"reasoning_details": [detail(SAID)]},
            {"thinking_blocks": [block(SAID)]},
            {"reasoning_details": [detail(SAID)], "thinking_blocks": [block(SAID)]},
            {"reasoning_details": [{"type": "reasoning.summary", "summary": "x"}, detail(SAID)]},
            {"reasoning_content": "Ours.", "thinking_blocks": [block("theirs"), block(SAID)]},
            {"reasoning_details": [detail(FOREIGN), detail(SAID)]},
            {"content": [{"type": "text", "text": "So."}, block(SAID)]},
        ],
    )
    def test_the_opened_reasoning_replaces_all_of_the_messages(self, lists: Json) -> None:
        content = [{"type": "text", "text": "So."}] if "content" in lists else "So."
        assert message_fields(message(**lists)) == message(**KEPT, content=content)

    def test_inline_reasoning_goes_back_inline(self) -> None:
        inline = f"<think>{THOUGHT}</think>So."
        blob = sealer().seal(Envelope([{"content": inline}], place=SO))
        assert message_fields(message(reasoning_details=[detail(blob)])) == message(content=inline)

    @pytest.mark.parametrize("blob", [SAID, FOREIGN])
    @pytest.mark.parametrize("above", [{}, {"reasoning_details": [detail(SAID)]}])
    def test_an_envelope_is_removed_from_a_copy_too(self, blob: str, above: Json) -> None:
        """LiteLLM's client keeps, and returns, beside a message what it does not know of it."""
        copies = {"reasoning": "Ours.", "reasoning_details": [detail(blob)], "refusal": None}
        remaining = KEPT if above or blob is SAID else {}
        assert message_fields(message(**above, provider_specific_fields=copies)) == message(
            **remaining, provider_specific_fields={"refusal": None}
        )

    @pytest.mark.parametrize(
        "edit",
        [
            {"content": "So!"},
            {"content": None},
            {"tool_calls": []},
            {"tool_calls": [{**CALL, "id": "call_2"}]},
            {"tool_calls": [CALL, CALL]},
        ],
    )
    def test_an_envelope_in_another_turn_is_removed(self, edit: Json) -> None:
        by, edited = sealer(), message(**edit)
        given = {**edited, "reasoning_details": [detail(SAID)], "reasoning_content": "Ours."}
        assert message_fields(given, by) == edited
        assert by.dropped == {"edited": 1}

    def test_an_unusable_one_is_removed_with_all_but_others_state(self) -> None:
        theirs = {"type": "reasoning.encrypted", "data": "gAAAAABo", "index": 0}
        by = sealer()
        signature = {"type": "thinking", "thinking": "", "signature": "s"}
        given = message(
            reasoning="Ours.",
            reasoning_details=[theirs, detail(FOREIGN)],
            thinking_blocks=[signature, block(FOREIGN)],
        )
        assert message_fields(given, by) == message(reasoning_details=[theirs])
        assert by.dropped == {"foreign": 2}

    @pytest.mark.parametrize(
        ("lists", "place"),
        [
            ({"reasoning_details": [detail(DAMAGED)]}, "reasoning_details[0].data"),
            ({"reasoning_details": [None, detail(DAMAGED)]}, "reasoning_details[1].data"),
            (
                {"reasoning_details": [detail(SAID)], "thinking_blocks": [block(DAMAGED)]},
                "thinking_blocks[0].data",
            ),
            (
                {"provider_specific_fields": {"thinking_blocks": [block(DAMAGED)]}},
                "provider_specific_fields.thinking_blocks[0].data",
            ),
        ],
    )
    def test_a_damaged_one_is_reported_under_the_clients_name(
        self, lists: Json, place: str
    ) -> None:
        with pytest.raises(RequestError) as caught:
            unseal(of_chat(None, "x", message(**lists)))
        assert caught.value.param == f"messages[3].{place}"

    def test_other_state_is_left_as_it_is(self) -> None:
        theirs = message(thinking_blocks=[block("x"), 7, None], reasoning_details={"data": "y"})
        assert message_fields(theirs) == theirs

    def test_the_turn_reflects_the_opened_envelope(self) -> None:
        conversation = of_chat(message(reasoning="Ours.", reasoning_details=[detail(SAID)]))
        turn = conversation.turns[1]
        before = PrefixDigest().extended_by(conversation.turns).digest()
        conversation.open_envelopes(turn, sealer().open)
        assert turn.from_envelope
        assert set(conversation.reasoning_texts(turn)) == {THOUGHT}
        assert turn.text == "So."
        assert conversation.strip(turn, lambda text: text == "Ours.") == (0, True)
        assert PrefixDigest().extended_by(conversation.turns).digest() == before

    def test_a_turn_whose_content_was_an_envelope_has_no_text(self) -> None:
        conversation = of_chat({"role": "assistant", "content": [detail(SAID)]})
        turn = conversation.turns[1]
        assert SAID in turn.text
        conversation.open_envelopes(turn, sealer().open)
        assert turn.text == ""


UNEXPECTED: dict[str, Callable[[str], History]] = {
    "nothing after it": lambda blob: of_responses(reasoning(blob)),
    "the user after it": lambda blob: of_responses(reasoning(blob), USER),
    "another kind of item": lambda blob: of_responses({"type": "compaction", **reasoning(blob)}),
    "a compaction": lambda blob: of_responses({"type": "compaction", "encrypted_content": blob}),
    "a call": lambda blob: of_responses({**FUNCTION_CALL, "encrypted_content": blob}),
    "a user's item": lambda blob: of_responses({**USER, "encrypted_content": blob}),
    "a tool's output": lambda blob: of_responses(
        {"type": "function_call_output", "output": "x", "encrypted_content": blob}
    ),
    "items that are none": lambda blob: of_responses(7, reasoning(blob), None),
    "no list of items": lambda blob: ResponsesHistory({"input": reasoning(blob)}),
    "a response's rounds": lambda blob: RESPONSES.upstream.history(
        {"input": [USER, reasoning(blob), FUNCTION_CALL]}
    ),
    "a user's message": lambda blob: of_chat({**USER, "reasoning_details": [detail(blob)]}),
    "a tool's message": lambda blob: of_chat(
        {"role": "tool", "content": [block(blob)], "thinking_blocks": [block(blob)]}
    ),
    "a message of nobody's": lambda blob: of_chat({"reasoning_details": [detail(blob)]}),
    "a detail of another kind": lambda blob: of_chat(
        message(reasoning_details=[detail(blob, type="reasoning.text", text="x")])
    ),
    "a message's copies": lambda blob: of_chat(
        {**USER, "provider_specific_fields": {"reasoning_details": [detail(blob)]}}
    ),
    "messages that are none": lambda blob: of_chat(7, message(thinking_blocks=[block(blob)])),
}


@pytest.mark.parametrize("blob", [BLOB, SAID, FOREIGN], ids=["item", "message", "foreign"])
@pytest.mark.parametrize("make", UNEXPECTED.values(), ids=UNEXPECTED)
def test_no_envelope_of_ours_goes_upstream(make: Callable[[str], History], blob: str) -> None:
    by = sealer()
    body = json.dumps(unseal(make(blob), by))
    assert ENVELOPE_PREFIX in json.dumps(make(blob).body())
    assert ENVELOPE_PREFIX not in body
    assert by.opened + by.dropped.total() == json.dumps(make(blob).body()).count(ENVELOPE_PREFIX)


@pytest.mark.parametrize("make", UNEXPECTED.values(), ids=UNEXPECTED)
def test_a_damaged_one_is_refused_in_any_field(
    make: Callable[[str], History],
) -> None:
    with pytest.raises(RequestError, match="could not be verified"):
        unseal(make(DAMAGED))


def test_an_envelope_in_an_impossible_place_is_removed() -> None:
    by = sealer()
    blob = sealer().seal(Envelope([ITEM]))
    call = {**FUNCTION_CALL, "encrypted_content": blob}
    assert items(call, {**USER, "encrypted_content": blob}, replica=by) == [FUNCTION_CALL, USER]
    assert (by.opened, by.dropped) == (0, {"edited": 2})


def test_an_unexpected_value_loses_only_its_blob() -> None:
    tool = {"role": "tool", "tool_call_id": "call_1", "content": "7"}
    assert message_fields({**tool, "thinking_blocks": [block(SAID)]}) == tool


blobs = st.sampled_from([BLOB, SAID, FOREIGN, DAMAGED, ENVELOPE_PREFIX, "gAAAAABo", "", None, 7])
entries = st.fixed_dictionaries(
    {"type": st.sampled_from(["reasoning.encrypted", "redacted_thinking", "thinking", None])},
    optional={"data": blobs, "text": st.text(max_size=3), "index": st.integers()},
)
lists = st.lists(entries | st.none() | st.text(max_size=3), max_size=3) | st.none() | entries
anything = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["reasoning", "message", "function_call", "compaction", None]),
        "role": st.sampled_from(["assistant", "user", "tool", None]),
        "id": st.sampled_from(["rs_1", "rs_2", "", None]),
        "content": lists | st.sampled_from(["So.", "So!", None]),
        "summary": st.sampled_from([[], SUMMARY, None]),
        "encrypted_content": blobs,
        "reasoning_details": lists,
        "thinking_blocks": lists,
        "tool_calls": st.sampled_from([[CALL], [], None]),
    },
)


@settings(max_examples=some(300))
@given(st.lists(anything | st.none(), max_size=5), st.booleans())
def test_any_request_is_refused_by_name_or_forwarded_without_envelopes(
    given: list[Any],
    by_chat: bool,  # noqa: FBT001 -- drawn
) -> None:
    make: type[ChatHistory | ResponsesHistory]
    make, key = (ChatHistory, "messages") if by_chat else (ResponsesHistory, "input")
    body = json.loads(json.dumps({key: given}))
    left, refused = _opened(make(body), key)
    assert refused is None or refused.code == "invalid_encrypted_content"
    assert refused is None or str(refused.param).startswith(f"{key}[")
    found = [
        blob
        for entry in left
        if isinstance(entry, dict)
        for blob in (_listed(entry) if by_chat else [entry.get("encrypted_content")])
    ]
    assert not any(str(blob).startswith(ENVELOPE_PREFIX) for blob in found)


def _opened(conversation: History, key: str) -> tuple[list[Any], RequestError | None]:
    try:
        return unseal(conversation)[key], None
    except RequestError as refusal:
        return [], refusal


def _listed(entry: Json) -> list[Any]:
    named = [entry.get(name) for name in ("reasoning_details", "thinking_blocks", "content")]
    listed = [each for name in named if isinstance(name, list) for each in name]
    return [each.get("data") for each in listed if isinstance(each, dict)]
