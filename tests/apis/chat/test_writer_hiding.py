"""Test that hidden raw reasoning is nowhere in the bytes, wherever upstream has put it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.providers.catalog import PROFILES
from tests.support.checker import check_chat
from tests.support.pipeline import chat
from tests.support.streams import DONE, chunk, completion, frame

SECRET = "odd thoughts"
ROLE = chunk({"role": "assistant", "content": ""})
STOP = [chunk({}, finish="stop"), DONE]
RAW = {"reasoning_content": SECRET}
TAGGED = f"<think>{SECRET}</think>"
SUMMARY = {"type": "reasoning.summary", "summary": "I add.", "index": 0}
SEALED = {"type": "reasoning.encrypted", "data": "x", "index": 1}
BLOCK = {"type": "thinking", "thinking": SECRET, "index": 0}
BESIDE: dict[str, dict[str, Any]] = {
    "raw_output": {"raw_output": SECRET},
    "text": {"text": SECRET},
    "token_ids": {"token_ids": [SECRET]},
    "log probabilities": {"logprobs": {"reasoning_content": [SECRET]}},
}
"""Fields of a choice that repeat its reasoning."""


def of(*choices: dict[str, Any], **more: Any) -> bytes:
    whole = json.loads(chunk().removeprefix(b"data: "))
    numbered = [{"index": 0, "finish_reason": None, **choice} for choice in choices]
    return frame({**whole, "choices": numbered, **more})


STREAMS: dict[str, list[bytes]] = {
    **{
        f"{name} beside a delta": [of({"delta": {**RAW, "content": "So."}, **keys})]
        for name, keys in BESIDE.items()
    },
    **{
        f"{name} beside inline text": [of({"delta": {"content": f"{TAGGED}So."}, **keys})]
        for name, keys in BESIDE.items()
    },
    "a field, then the same in tags": [
        chunk(RAW),
        *(chunk({"content": text}) for text in ("<thi", f"nk>{SECRET}", "</think>", "\n\nSo.")),
    ],
    "a field and tags by turns": [
        chunk({"content": "<think>"}),
        *(chunk({key: text}) for text in ("odd ", "thoughts") for key in (*RAW, "content")),
        chunk({"content": "</think>So."}),
    ],
    "a field and tags in one delta": [chunk({**RAW, "content": f"{TAGGED}So."})],
    "a message in a delta's place": [of({"message": {**RAW, "content": "So."}})],
    "a message that repeats all": [
        of({"delta": {"content": "So."}, "message": {**RAW, "content": f"{TAGGED}So."}})
    ],
    "a native summary and a block": [
        chunk({"reasoning_details": [SUMMARY], "thinking_blocks": [BLOCK]}),
        chunk({"content": "So."}),
    ],
    "a native summary and another field": [
        chunk({"reasoning_details": [SUMMARY], "reasoning_content": "I add.", "reasoning": SECRET}),
        chunk({"content": "So."}),
    ],
    "a native summary and an object": [
        chunk({"reasoning_details": [SUMMARY], "reasoning": {"text": SECRET}}),
        chunk({"content": "So."}),
    ],
    "a native summary and unknown keys": [
        of({"delta": {"reasoning_details": [SUMMARY], "copy": SECRET}, "raw_output": SECRET}),
        chunk({"content": "So."}),
    ],
    "opaque state with a text": [
        chunk({"reasoning_details": [{**SEALED, "text": SECRET}]}),
        chunk({"content": "So."}),
    ],
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("expose", ["summary", "none"])
def test_nothing_hidden_is_in_a_stream(name: str, expose: str) -> None:
    out = chat(expose=expose).stream(b"".join([ROLE, *STREAMS[name], *STOP]))
    assert not any(word.encode() in out for word in SECRET.split())
    seen = check_chat(out).choices[0]
    assert (seen.text.strip(), seen.finish) == ("So.", "stop")


WHOLES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    **{name: ({**RAW, "content": "So."}, keys) for name, keys in BESIDE.items()},
    "a field and tags": ({**RAW, "content": f"{TAGGED}So."}, {}),
    "a field and tags in a list": (
        {**RAW, "content": [{"type": "text", "text": f"{TAGGED}So."}]},
        {},
    ),
    "tags in a list": ({"content": [{"type": "text", "text": f"{TAGGED}So."}]}, {}),
    "a delta too": ({**RAW, "content": "So."}, {"delta": RAW}),
    "a native summary and a block": (
        {"reasoning_details": [SUMMARY], "thinking_blocks": [BLOCK], "content": "So."},
        {},
    ),
    "a native summary and another field": (
        {"reasoning_details": [SUMMARY], "reasoning": SECRET, "content": "So."},
        {},
    ),
    "a native summary and tags": (
        {"reasoning_details": [SUMMARY], "content": f"{TAGGED}So."},
        {},
    ),
    "a native summary and unknown keys": (
        {"reasoning_details": [SUMMARY], "copy": SECRET, "content": "So."},
        {"raw_output": SECRET},
    ),
}


@pytest.mark.parametrize("name", WHOLES)
@pytest.mark.parametrize("expose", ["summary", "none"])
def test_nothing_hidden_is_in_a_whole_completion(name: str, expose: str) -> None:
    message, beside = WHOLES[name]
    body = completion(message)
    body["choices"][0].update(beside)
    out = json.loads(chat(expose=expose).whole(json.dumps(body).encode()))
    (choice,) = out["choices"]
    assert SECRET not in json.dumps(choice)
    assert choice["message"]["content"] in ("So.", [{"type": "text", "text": "So."}])


class TestWhatStays:
    def test_opaque_state_stays_alone(self) -> None:
        details = [{"type": "reasoning.text", "text": SECRET, "index": 0}, SEALED]
        for delta in ({"reasoning_details": details}, {"reasoning_details": details, "role": "x"}):
            seen = check_chat(chat(expose="none").stream(b"".join([ROLE, chunk(delta), *STOP])))
            assert seen.chunks[1]["choices"][0]["delta"] == {"reasoning_details": [SEALED]}

    def test_a_native_summary_stays_of_a_choice_that_holds_more(self) -> None:
        delta = {"reasoning_details": [SUMMARY, SEALED], "reasoning": "I add.", "copy": SECRET}
        pipeline = chat(expose="summary", profile=PROFILES["openrouter"])
        seen = check_chat(pipeline.stream(b"".join([ROLE, of({"delta": delta, "text": "x"})])))
        del delta["copy"]
        assert seen.chunks[1]["choices"][0] == {"index": 0, "delta": delta, "finish_reason": None}
        assert pipeline.reader.dropped == 2
        assert not pipeline.passages

    def test_known_fields_of_the_choice_stay(self) -> None:
        known = {"content_filter_results": {"hate": {"filtered": False}}, "stop_reason": 7}
        unknown = {"text": SECRET, "logprobs": {"content": []}, "token_ids": None}
        mixed = of({"delta": {**RAW, "content": "So."}, **known, **unknown})
        pipeline = chat(expose="summary")
        seen = check_chat(pipeline.stream(b"".join([ROLE, mixed, *STOP])))
        expected = {"index": 0, "delta": {"content": "So."}, "finish_reason": None, **known}
        assert expected in [choice for chunk in seen.chunks for choice in chunk["choices"]]
        assert pipeline.reader.dropped == 1

        body = completion({**RAW, "content": "So."})
        body["choices"][0].update({**known, **unknown})
        pipeline = chat(expose="none")
        (choice,) = json.loads(pipeline.whole(json.dumps(body).encode()))["choices"]
        message = {"role": "assistant", "content": "So."}
        shape = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        assert choice == {**shape, **known}
        assert pipeline.reader.dropped == 1

    def test_of_a_choice_without_reasoning_only_what_is_known_stays(self) -> None:
        plain = of({"delta": {"content": "So."}, "text": "So.", "token_ids": [1]})
        seen = check_chat(chat(expose="none").stream(b"".join([ROLE, chunk(RAW), plain, *STOP])))
        assert seen.chunks[1]["choices"] == [
            {"index": 0, "delta": {"content": "So."}, "finish_reason": None}
        ]

    def test_everything_stays_where_raw_is_shown(self) -> None:
        message = {"role": "assistant", "content": "So."}
        plain = of({"delta": {"content": "So."}, "message": message})
        assert plain in chat(expose="both").stream(b"".join([ROLE, plain, *STOP]))
        tagged = chunk({"content": f"{TAGGED}So."})
        assert tagged in chat(expose="both").stream(b"".join([ROLE, chunk(RAW), tagged, *STOP]))

    def test_a_prefilled_template_may_be_served_with_a_parser(self) -> None:
        stream = [ROLE, chunk(RAW), chunk({"content": "So."}), *STOP]
        settings = {"profile": PROFILES["prefilled"], "expose": "summary"}
        assert check_chat(chat(**settings).stream(b"".join(stream))).choices[0].text == "So."
        body = json.dumps(completion({**RAW, "content": "So."})).encode()
        out = json.loads(chat(**settings).whole(body))
        assert out["choices"][0]["message"]["content"] == "So."


def test_reasoning_that_is_repeated_is_recorded_once() -> None:
    for name in ("a field and tags by turns", "a field and tags in one delta"):
        pipeline = chat(expose="summary")
        pipeline.stream(b"".join([ROLE, *STREAMS[name], *STOP]))
        assert [passage.text for passage in pipeline.passages] == [SECRET]
        (recorded,) = pipeline.recorded_turns()
        assert (recorded.raw, recorded.turn.text) == (SECRET, "So.")
        assert recorded.original == [{**RAW, "content": f"{TAGGED}So."}]


def test_a_turn_is_recorded_with_the_text_that_was_shown() -> None:
    body = json.dumps(completion({**RAW, "content": f"{TAGGED}So."})).encode()
    for expose, text in (("summary", "So."), ("both", f"{TAGGED}So.")):
        pipeline = chat(expose=expose)
        out = json.loads(pipeline.whole(body))
        (recorded,) = pipeline.recorded_turns()
        assert recorded.turn.text == out["choices"][0]["message"]["content"] == text


ERROR = {"code": 502, "message": f"Overloaded by {SECRET}"}
TOLD = {
    "message": "Upstream reported an error.",
    "type": "server_error",
    "param": None,
    "code": 502,
}


class TestErrors:
    @pytest.mark.parametrize(
        "choice",
        [
            {"delta": RAW},
            {"message": RAW},
            {"delta": {"content": TAGGED}},
            {"delta": {"content": ""}, "text": SECRET},
            {"delta": {}, "message": RAW},
        ],
    )
    def test_an_error_goes_out_without_the_rest_of_its_chunk(self, choice: dict[str, Any]) -> None:
        error = of(choice, error=ERROR)
        for expose in ("summary", "none"):
            pipeline = chat(expose=expose)
            seen = check_chat(pipeline.stream(b"".join([ROLE, error, DONE])))
            assert seen.error == TOLD
            assert seen.chunks[-1].keys() == {"id", "object", "created", "model", "error"}
        assert error in chat(expose="both").stream(b"".join([ROLE, error, DONE]))

    def test_an_error_is_told_in_other_words_only_where_reasoning_is_hidden(self) -> None:
        silent = {"delta": {"role": "assistant", "content": ""}, "native_finish_reason": "error"}
        error = of({**silent, "finish_reason": "error"}, error=ERROR)
        stream = b"".join([ROLE, error, DONE])
        assert check_chat(chat(expose="none").stream(stream)).error == TOLD
        assert check_chat(chat().stream(stream)).error == ERROR
