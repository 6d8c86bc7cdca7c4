"""Test what `auto` learns of an upstream from its answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.display import Display
from abridge.apis.responses.api import RESPONSES
from abridge.caches import LEARNED_MODELS, MAX_KEY_CHARS
from abridge.providers.catalog import PROFILES
from abridge.providers.learned import NO_OBSERVATION, Learned, Observation
from tests.support.streams import (
    chat_stream,
    chunk,
    completion,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)

AUTO = PROFILES["auto"]
THOUGHT = "First I think.\nThen again."
SUMMARY = [{"type": "summary_text", "text": THOUGHT}]
CALLED = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def seen_in(api: Api, answer: list[bytes] | dict[str, Any], *, raw: bool = True) -> Observation:
    """Return what a reader observed in a stream or a whole body."""
    reader = api.reader(AUTO, Display(show_raw=raw), 1 << 20)
    if isinstance(answer, dict):
        reader.read_whole(json.dumps(answer).encode())
    else:
        for frame in answer:
            reader.read(frame)
        reader.end()
    return reader.observed()


# Observations


MESSAGES: list[tuple[dict[str, Any], Observation]] = [
    ({"content": "Hi"}, NO_OBSERVATION),
    ({"reasoning_content": THOUGHT, "content": "Hi"}, Observation("reasoning_content")),
    ({"reasoning": THOUGHT, "content": "Hi"}, Observation("reasoning")),
    ({"reasoning": " ", "content": "Hi"}, NO_OBSERVATION),
    (
        {
            "reasoning": THOUGHT,
            "reasoning_details": [{"type": "reasoning.text", "text": THOUGHT, "index": 0}],
        },
        Observation("reasoning_details"),
    ),
    (
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x", "index": 0}]},
        Observation("reasoning_details"),
    ),
    (
        {
            "reasoning_content": THOUGHT,
            "thinking_blocks": [{"type": "thinking", "thinking": THOUGHT, "signature": "s"}],
        },
        Observation("thinking_blocks"),
    ),
    (
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}]},
        Observation("chunks"),
    ),
    ({"content": f"<think>\n{THOUGHT}\n</think>\n\nHi"}, Observation("tags")),
    ({"tool_calls": [{**CALLED, "extra_content": {"g": 1}}]}, Observation("extra_content")),
    ({"tool_calls": [CALLED]}, NO_OBSERVATION),
    ({"content": f"{THOUGHT}\n</think>\n\nHi"}, Observation(unopened_tags=1)),
    ({"content": "It ends with `</think>`, as you know."}, NO_OBSERVATION),
    ({"content": "```\n</think>\n```\nis how it ends."}, NO_OBSERVATION),
    ({"content": "Like so:\n<think>\nHm\n</think>\nIs it?"}, NO_OBSERVATION),
    ({"reasoning": THOUGHT, "content": "a\n</think>\nb"}, Observation("reasoning")),
]


@pytest.mark.parametrize(("message", "seen"), MESSAGES)
def test_a_chat_reader_sees_where_reasoning_is(message: dict[str, Any], seen: Observation) -> None:
    assert seen_in(CHAT, completion(message)) == seen
    calls = [{**call, "index": 0} for call in message.get("tool_calls", ())]
    delta = {**message, "tool_calls": calls}
    assert seen_in(CHAT, [chunk(delta), chunk({}, finish="stop")]) == seen


@pytest.mark.parametrize("raw", [True, False])
def test_a_chat_reader_observes_reasoning_that_it_hides(*, raw: bool) -> None:
    assert (
        seen_in(CHAT, chat_stream(THOUGHT, "Hi", field="reasoning"), raw=raw).place == "reasoning"
    )
    assert seen_in(CHAT, chat_stream("", f"<think>{THOUGHT}</think>Hi"), raw=raw).place == "tags"


@pytest.mark.parametrize(
    ("item", "is_raw"),
    [
        (reasoning_item(0, THOUGHT), None),
        (reasoning_item(0, "", summary=SUMMARY), False),
        (reasoning_item(0, "", summary=SUMMARY, encrypted_content="gAAAA"), False),
        (reasoning_item(0, "", summary=SUMMARY, encrypted_content=THOUGHT), True),
    ],
)
@pytest.mark.parametrize("name", ["auto", "ollama"])
def test_a_responses_reader_sees_whether_a_summary_is_one(
    item: dict[str, Any], name: str, *, is_raw: bool | None
) -> None:
    """The profile in force may be learned and out of date, so it must not matter."""
    output = [item, message_item(1, "Hi")]
    for answer in (responses_stream(output), [json.dumps(response(output)).encode()]):
        reader = RESPONSES.reader(PROFILES[name], Display(), 1 << 20)
        if len(answer) == 1:
            reader.read_whole(answer[0])
        for frame in answer if len(answer) > 1 else ():
            reader.read(frame)
        assert reader.observed() == Observation(summary_is_raw=is_raw)


INLINE = f"<think>\n{THOUGHT}\n</think>\n\nHi"


@pytest.mark.parametrize(
    ("text", "is_inline"),
    [
        (INLINE, True),
        ("Hi", False),
        (f"Hi\n{INLINE}", False),
        ("<think>\n\n</think>\n\nHi", False),
        (f"<think>\n{THOUGHT}", False),
    ],
)
@pytest.mark.parametrize("raw", [True, False])
def test_a_responses_reader_sees_reasoning_inside_messages(
    text: str, *, is_inline: bool, raw: bool
) -> None:
    output = [message_item(0, text), message_item(1, "So.")]
    for answer in (responses_stream(output), response(output)):
        seen = seen_in(RESPONSES, answer, raw=raw)
        assert seen == Observation(inline_on_responses=is_inline)


def test_a_responses_reader_sees_several_things_in_one_response() -> None:
    output = [reasoning_item(0, "", summary=SUMMARY), message_item(1, INLINE)]
    expected = Observation(summary_is_raw=False, inline_on_responses=True)
    assert seen_in(RESPONSES, responses_stream(output)) == expected


# Conclusions


def test_without_observations_nothing_changes() -> None:
    learned = Learned()
    learned.record("m", NO_OBSERVATION)
    assert learned.refine(AUTO, "m") is AUTO
    assert learned.refine(AUTO, "another") is AUTO


def test_reasoning_is_returned_in_the_field_it_came_from() -> None:
    learned = Learned()
    learned.record("m", Observation("reasoning"))
    refined = learned.refine(AUTO, "m")
    assert refined.returns.place == refined.reasoning_in[0] == "reasoning"
    assert sorted(refined.reasoning_in) == sorted(AUTO.reasoning_in)
    assert learned.refine(AUTO, "another") is AUTO


def test_the_latest_observation_counts_and_none_changes_nothing() -> None:
    learned = Learned()
    for seen in (Observation("reasoning_content"), Observation("reasoning"), NO_OBSERVATION):
        learned.record("m", seen)
    assert learned.refine(AUTO, "m").returns.place == "reasoning"


def test_text_does_not_override_what_only_a_server_can_show() -> None:
    learned = Learned()
    for seen in (Observation("tags"), Observation("reasoning"), Observation("tags")):
        learned.record("m", seen)
    assert learned.refine(AUTO, "m").returns.place == "reasoning"


def test_text_counts_if_there_is_nothing_else() -> None:
    learned = Learned()
    learned.record("m", Observation("tags"))
    assert learned.refine(AUTO, "m").returns.place == "tags"


def test_a_raw_summary_is_remembered_until_a_real_one_comes() -> None:
    learned = Learned()
    learned.record("m", Observation(summary_is_raw=True))
    learned.record("m", NO_OBSERVATION)
    assert learned.refine(AUTO, "m").summary_is_raw
    learned.record("m", Observation(summary_is_raw=False))
    assert not learned.refine(AUTO, "m").summary_is_raw


def test_reasoning_inside_messages_is_looked_for_once_it_was_seen() -> None:
    learned = Learned()
    assert not AUTO.inline_on_responses
    for seen in (Observation(inline_on_responses=True), NO_OBSERVATION):
        learned.record("m", seen)
        assert learned.refine(AUTO, "m").inline_on_responses
    assert not learned.refine(AUTO, "another").inline_on_responses


@pytest.mark.parametrize("name", ["openai", "ollama"])
def test_a_profile_that_was_chosen_is_not_refined(name: str) -> None:
    learned = Learned()
    learned.record("m", Observation("reasoning", summary_is_raw=name == "openai"))
    assert learned.refine(PROFILES[name], "m") is PROFILES[name]


def test_unopened_blocks_are_reported_and_change_nothing() -> None:
    learned, unopened = Learned(), Observation(unopened_tags=1)
    learned.record("m", unopened)
    assert not learned.seems_prefilled("m")
    learned.record("m", unopened)
    assert learned.seems_prefilled("m")
    assert not learned.refine(AUTO, "m").prefilled
    learned.record("m", NO_OBSERVATION)
    assert not learned.seems_prefilled("m")


def test_a_model_with_an_endless_name_is_not_remembered() -> None:
    learned, endless = Learned(), "m" * (MAX_KEY_CHARS + 1)
    for _ in range(3):
        assert not learned.record(endless, Observation("reasoning", unopened_tags=1))
    assert learned.refine(AUTO, endless) is AUTO


def test_only_the_latest_models_are_remembered() -> None:
    learned = Learned()
    for number in range(LEARNED_MODELS):
        learned.record(f"m{number}", Observation("reasoning"))
    learned.record("m0", NO_OBSERVATION)
    learned.record("more", Observation("reasoning"))
    assert learned.refine(AUTO, "m1") is AUTO
    assert learned.refine(AUTO, "m0").returns.place == "reasoning"
