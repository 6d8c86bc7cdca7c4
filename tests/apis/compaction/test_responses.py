"""Which items of a conversation a compaction keeps, and which stay before it: laws for any."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from abridge.apis.compaction.form import FoundCompaction
from abridge.apis.compaction.responses import (
    RESPONSES_COMPACTION,
    RETAINED_TOKENS,
    kept_items,
    open_calls,
    retained_items,
)
from abridge.apis.token_counters import estimate_tokens

Json = dict[str, Any]

SAID = st.text("abc ", min_size=1, max_size=60)


@st.composite
def conversations(draw: st.DrawFn) -> list[Json]:
    """Draw the items of a conversation: each output follows its call, some calls have none yet."""
    items: list[Json] = []
    waiting: list[str] = []
    for number in range(draw(st.integers(1, 25))):
        kind = draw(st.sampled_from(("user", "assistant", "developer", "reasoning", "call", "out")))
        if kind == "call":
            waiting.append(f"call_{number}")
            call = {"type": "function_call", "call_id": waiting[-1], "name": "f"}
            items.append({**call, "arguments": "{}"})
        elif kind == "out" and waiting:
            call_id = waiting.pop(draw(st.integers(0, len(waiting) - 1)))
            output = draw(SAID) * draw(st.sampled_from((1, 50)))
            items.append({"type": "function_call_output", "call_id": call_id, "output": output})
        elif kind == "reasoning":
            items.append({"type": "reasoning", "summary": [], "content": []})
        elif kind != "out":
            items.append({"type": "message", "role": kind, "content": f"{number} {draw(SAID)}"})
    return items


BUDGETS = st.integers(0, 600)


def call_ids(items: list[Json], kind: str) -> list[str]:
    return [item["call_id"] for item in items if item.get("type") == kind]


@given(conversations(), BUDGETS)
def test_what_is_kept_is_of_the_conversation_and_in_its_order(
    items: list[Json], budget: int
) -> None:
    kept = kept_items(items, budget)
    places = [items.index(item) for item in kept]
    assert places == sorted(places)
    assert not any(item["type"] == "reasoning" for item in kept)


@given(conversations(), BUDGETS)
def test_every_open_call_is_kept_and_every_output_has_its_call(
    items: list[Json], budget: int
) -> None:
    kept = kept_items(items, budget)
    assert {items[index]["call_id"] for index in open_calls(items)} <= set(
        call_ids(kept, "function_call")
    )
    called: set[str] = set()
    for item in kept:
        if item["type"] == "function_call_output":
            assert item["call_id"] in called
        called.add(item.get("call_id", ""))


@given(conversations(), BUDGETS)
def test_the_last_items_fit(items: list[Json], budget: int) -> None:
    """Beside them only calls that are open, and the user's last message, which fits as well."""
    kept = kept_items(items, budget)
    unanswered = [items[index] for index in open_calls(items)]
    closed = [item for item in kept if item not in unanswered]
    assert estimate_tokens({"input": closed}) <= 2 * budget + len(closed)
    users = [item for item in items if item.get("role") == "user"]
    if users and estimate_tokens({"input": users[-1:]}) <= budget:
        assert users[-1] in kept


@given(conversations(), conversations(), BUDGETS)
def test_a_compaction_stands_for_what_comes_before_it(
    before: list[Json], after: list[Json], budget: int
) -> None:
    """Instructions and the user's messages stay, each once; what comes later follows it."""
    kept = kept_items(before, budget)
    summary = {"type": "message", "role": "user", "content": "So far."}
    compaction = {"type": "compaction", "encrypted_content": "abr1..x"}
    body = {"input": [*before, compaction, *after]}
    found = RESPONSES_COMPACTION.find(body)
    assert found == FoundCompaction((len(before),), "abr1..x", found.param if found else "")
    assert found is not None
    given_items = list(body["input"])
    sources = RESPONSES_COMPACTION.replace(body, found, [summary, *kept])
    items = body["input"]
    assert len(sources) == len(items)
    at = items.index(summary)
    assert items[at:] == [summary, *kept, *after]
    assert [given_items[source] for source in sources[:at]] == items[:at]
    assert sources[at : at + 1 + len(kept)] == [len(before)] * (1 + len(kept))
    assert [given_items[source] for source in sources[at + 1 + len(kept) :]] == after
    said = [item for item in before if item.get("role") in ("user", "developer")]
    assert [item for item in items[:at] if item not in kept] == items[:at]
    assert all(item in items for item in said)


def test_the_users_messages_stay_up_to_a_ceiling_the_latest_first() -> None:
    long = "x" * 4 * (RETAINED_TOKENS - 16)
    items = [{"role": "user", "content": text} for text in ("first", long, "last", "late")]
    assert retained_items(items) == [1, 2, 3]
    longer = [items[0], {"role": "user", "content": f"{long}{long}"}, items[2]]
    assert retained_items(longer) == [2]


def test_a_message_that_is_kept_does_not_stay_as_well_however_it_is_written() -> None:
    text = [{"type": "input_text", "text": "Do it."}]
    written = {"id": "msg_1", "type": "message", "role": "user", "content": text}
    assert retained_items([written], [{"role": "user", "content": "Do it."}]) == []
