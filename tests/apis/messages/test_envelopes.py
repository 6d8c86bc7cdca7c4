"""Test the envelopes of Messages: sealed in signatures, opened when a client returns them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("cryptography", reason="sealing needs the extra 'seal'")


from abridge.apis.messages.history import STATE_KEYS, MessagesHistory
from abridge.apis.messages.writer import MessagesSealing
from abridge.core.envelope import ENVELOPE_PREFIX, UNSEALED
from abridge.core.events import ProviderState, ReasoningDelta
from abridge.errors import RequestError
from abridge.memory.client_envelopes import Sealer
from tests.apis.messages.scripts import Block, redacted, text, thinking
from tests.support.sealers import STRETCHES, sealer, unseal

Json = dict[str, Any]

A, B = "toolu_Ab3dEf6hIj", "toolu_Xy7zWv4uTs"
QUESTION = {"role": "user", "content": "Hi"}
RAW = [thinking("I recall the rule.", "")]


def call(call_id: str) -> Block:
    return {"type": "tool_use", "id": call_id, "name": "look", "input": {}}


def result(call_id: str, given: str = "7") -> Block:
    return {"type": "tool_result", "tool_use_id": call_id, "content": given}


def assistant(*content: Block) -> Json:
    return {"role": "assistant", "content": list(content)}


def user(*content: Block | str) -> Json:
    return {"role": "user", "content": [text(b) if isinstance(b, str) else b for b in content]}


def history(*messages: Json) -> MessagesHistory:
    return MessagesHistory({"messages": json.loads(json.dumps(messages))})


def place(*messages: Json) -> bytes:
    return history(*messages).next_place()


def sealing(*before: Json, **terms: Any) -> MessagesSealing:
    """Return what seals the answer to these messages."""
    seal = sealer(place=place(*(before or (QUESTION,))), **terms).seal
    return MessagesSealing(seal, 1000)


def shown(blob: str) -> Block:
    return thinking("**Recalling the rule**", blob)


def blobs_around_a_call(between: list[Block]) -> list[str]:
    """Seal reasoning before a call of an answer, and each of these blocks after it."""
    answer = sealing()
    first = answer.seal(RAW)
    answer.note_call(A)
    return [first, *(answer.seal([block]) for block in between)]


def opened(*messages: Json, replica: Sealer | None = None) -> list[Any]:
    """Return the messages that upstream gets of these."""
    found: list[Any] = unseal(history(*messages), replica)["messages"]
    return found


def test_the_place_after_very_many_texts_is_found() -> None:
    """Looking through the message for results at each of its texts would take minutes here."""
    texts = [{"type": "text", "text": str(number)} for number in range(30_000)]
    assert history({"role": "user", "content": texts}).next_place().startswith(b"user ")


class TestOpening:
    def test_the_sealed_blocks_take_the_blocks_place(self) -> None:
        blocks = [thinking("One.", "c2ln"), redacted("ZGF0YQ"), *RAW]
        blob = sealing().seal(blocks)
        said = assistant(shown(blob), text("So."))
        assert opened(QUESTION, said) == [QUESTION, assistant(*blocks, text("So."))]

    def test_reasoning_between_calls_comes_back_between_them(self) -> None:
        answer = sealing()
        one = shown(answer.seal(RAW))
        answer.note_call(A)
        other = shown(answer.seal([thinking("I look again.", "")]))
        whole = assistant(one, call(A), other, call(B))
        assert opened(QUESTION, whole, user(result(A), result(B)))[1] == assistant(
            *RAW, call(A), thinking("I look again.", ""), call(B)
        )

    def test_a_message_may_be_split_after_each_call(self) -> None:
        answer = sealing()
        one = shown(answer.seal(RAW))
        answer.note_call(A)
        other = shown(answer.seal([thinking("I look again.", "")]))
        split = [
            *(assistant(one, call(A)), user(result(A))),
            *(assistant(other, call(B)), user(result(B))),
        ]
        assert opened(QUESTION, *split)[1:4:2] == [
            assistant(*RAW, call(A)),
            assistant(thinking("I look again.", ""), call(B)),
        ]

    def test_all_reasoning_may_stand_before_the_calls(self) -> None:
        """LiteLLM keeps an answer's reasoning in one list, which it returns first."""
        between = [thinking("I look again.", ""), thinking("And again.", "")]
        moved = [shown(blob) for blob in blobs_around_a_call(between)]
        said = assistant(*moved, text("I look."), call(A), call(B))
        assert opened(QUESTION, said, user(result(A), result(B)))[1] == assistant(
            *RAW, text("I look."), call(A), *between, call(B)
        )

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ([0, 1, "call"], []),  # nothing follows the call without a break
            ([0, 1, "call"], [B]),  # but a result
            ([0, "call", B, 1], []),
        ],
    )
    def test_but_reasoning_goes_into_no_other_answer_and_not_back(
        self, first: list[Any], second: list[str]
    ) -> None:
        by, blobs = sealer(), blobs_around_a_call([thinking("I look again.", "")])
        pieces = {0: shown(blobs[0]), 1: shown(blobs[1]), "call": call(A), B: call(B)}
        said = [assistant(*map(pieces.__getitem__, each)) for each in (first, second)]
        left = [*RAW, *(pieces[each] for each in first if each not in (0, 1))]
        sent = opened(QUESTION, said[0], user(result(A)), said[1], replica=by)
        assert sent[1] == assistant(*left)
        assert "again" not in str(sent)
        assert (by.opened, by.dropped) == (1, {"edited": 1})

    def test_a_summary_beside_the_reasoning_is_dropped(self) -> None:
        beside = shown(sealing().seal([]))
        assert opened(QUESTION, assistant(*RAW, beside, text("So.")))[1] == assistant(
            *RAW, text("So.")
        )

    def test_a_message_with_nothing_else_is_dropped(self) -> None:
        beside = shown(sealing().seal([]))
        assert opened(QUESTION, assistant(beside), QUESTION) == [QUESTION, QUESTION]

    def test_nothing_is_sealed_without_a_key_or_with_too_much_to_keep(self) -> None:
        assert MessagesSealing(None, 1000).sign(RAW) == UNSEALED
        assert sealing().sign(None) == UNSEALED

    @pytest.mark.parametrize(
        ("replica", "reason"),
        [
            ({"tenant": "bert"}, "foreign"),
            ({"upstream": "another"}, "foreign"),
            ({"now": 2e10}, "expired"),
            ({"limit": 10}, "oversize"),
        ],
    )
    def test_an_unusable_one_is_dropped_with_its_summary(self, replica: Json, reason: str) -> None:
        by = sealer(**replica)
        said = assistant(shown(sealing().seal(RAW)), text("So."))
        assert opened(QUESTION, said, replica=by)[1] == assistant(text("So."))
        assert by.dropped == {reason: 1}

    def test_one_from_elsewhere_is_dropped(self) -> None:
        by, blob = sealer(), sealing(user("Something else")).seal(RAW)
        said = assistant(shown(blob), text("So."))
        assert opened(QUESTION, said, replica=by)[1] == assistant(text("So."))
        assert by.dropped == {"edited": 1}

    def test_a_damaged_one_is_refused_by_name(self) -> None:
        blob = sealing().seal(RAW)
        damaged = blob[:-1] + ("A" if blob[-1] != "A" else "B")
        with pytest.raises(RequestError) as refused:
            opened(QUESTION, assistant(text("So."), shown(damaged)))
        assert refused.value.param == "messages.1.content.1.signature"
        assert refused.value.code == "invalid_encrypted_content"

    def test_upstreams_own_state_is_left_alone(self) -> None:
        said = assistant(thinking("Hm.", "c2ln"), redacted("ZGF0YQ"), text("So."))
        assert opened(QUESTION, said) == [QUESTION, said]

    def test_one_in_a_message_of_the_user_is_removed(self) -> None:
        by, blob = sealer(), sealing().seal(RAW)
        given = {"role": "user", "content": [redacted(blob), result(A), text("Hi")]}
        assert opened(given, replica=by) == [user(result(A), "Hi")]
        assert (by.opened, by.dropped) == (0, {"edited": 1})


SAME = {
    "a text is written as a block": (place(QUESTION), place(user("Hi"))),
    "the oldest turns are left out": (
        place(user("One"), assistant(text("So.")), user("Two")),
        place(user("Two")),
    ),
    "messages of the user are joined": (place(user("A"), user("B")), place(user("A", "B"))),
    "a tool's output is shortened": (
        place(QUESTION, assistant(call(A)), user(result(A))),
        place(assistant(call(A)), user(result(A, "…"))),
    ),
    "a client adds a note to a question": (
        place(QUESTION),
        place(user("<system-reminder>It is Monday.</system-reminder>", "Hi")),
    ),
    "a client adds a note to a result": (
        place(QUESTION, assistant(call(A)), user(result(A))),
        place(QUESTION, assistant(call(A)), user(result(A), "Keep to your list.")),
    ),
    "an image joins the question": (
        place(QUESTION),
        place(user({"type": "image", "source": {"type": "url", "url": "https://a.test"}}, "Hi")),
    ),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_the_place_stays_the_same(one: bytes, other: bytes) -> None:
    assert one == other


OTHERS = {
    "another question": (place(QUESTION), place(user("Ho"))),
    "another call": (place(user(result(A))), place(user(result(B)))),
    "a question split elsewhere": (place(user("ab", "c")), place(user("a", "bc"))),
    "a question after an answer": (
        place(user("A"), assistant(text("So.")), user("B")),
        place(user("A", "B")),
    ),
}


@pytest.mark.parametrize(("one", "other"), OTHERS.values(), ids=OTHERS)
def test_the_place_differs(one: bytes, other: bytes) -> None:
    assert one != other


class TestBuilding:
    def build(self, *events: ReasoningDelta | ProviderState, limit: int = 1000) -> Any:
        made = MessagesSealing(lambda _: "", limit)
        for event in events:
            made.add(event)
        return made.collected()

    def text(self, given: str) -> ReasoningDelta:
        return ReasoningDelta(0, None, 0, given)

    def state(self, data: str, *, signs: bool = False) -> ProviderState:
        return ProviderState(0, None, 0, data, signs)

    def test_each_signature_is_of_its_own_text(self) -> None:
        events = [self.text("A"), self.state("1", signs=True), self.text("B"), self.text("C")]
        assert self.build(*events) == [thinking("A", "1"), thinking("BC", "")]

    def test_state_that_stands_for_unseen_reasoning_is_a_block_of_its_own(self) -> None:
        assert self.build(self.text("A"), self.state("xyz"), self.text("B")) == [
            *(thinking("A", ""), redacted("xyz"), thinking("B", ""))
        ]

    @given(STRETCHES)
    def test_nothing_of_a_stretch_is_lost(self, events: list[Any]) -> None:
        blocks = self.build(*events)
        raw = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
        assert "".join(block.get("thinking", "") for block in blocks) == raw
        signatures = [event.data for event in events if isinstance(event, ProviderState)]
        kept = [block.get("signature") or block.get("data") for block in blocks]
        assert set(filter(None, kept)) <= set(signatures)


blobs = st.sampled_from(
    [
        *(sealing().seal(RAW), sealing(tenant="bert").seal(RAW), sealing().seal([])),
        *(f"{ENVELOPE_PREFIX}old.AAAA", ENVELOPE_PREFIX, "gAAAAABo", "", None, 7),
    ]
)
blocks = st.fixed_dictionaries(
    {"type": st.sampled_from(["thinking", "redacted_thinking", "text", "tool_use", None])},
    optional={"signature": blobs, "data": blobs, "thinking": st.just("Hm."), "text": st.just("a")},
)
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["assistant", "user", "system", None])},
    optional={"content": st.lists(blocks | st.none(), max_size=4) | st.just("So.") | st.none()},
)


@given(st.lists(messages | st.none(), max_size=4))
def test_any_request_is_refused_by_name_or_forwarded_without_envelopes(given: list[Any]) -> None:
    left, refused = _opened(json.loads(json.dumps(given)))
    assert refused is None or refused.code == "invalid_encrypted_content"
    assert refused is None or str(refused.param).startswith("messages.")
    assert not any(str(state).startswith(ENVELOPE_PREFIX) for state in _states(left))


def _opened(given: list[Any]) -> tuple[list[Any], RequestError | None]:
    try:
        return unseal(MessagesHistory({"messages": given}))["messages"], None
    except RequestError as refusal:
        return [], refusal


def _states(messages: list[Any]) -> list[Any]:
    """Return the opaque state in all blocks of reasoning."""
    contents = [message.get("content") for message in messages if isinstance(message, dict)]
    blocks = [
        block
        for content in contents
        if isinstance(content, list)
        for block in content
        if isinstance(block, dict)
    ]
    return [block.get(STATE_KEYS.get(block.get("type"), "")) for block in blocks]
