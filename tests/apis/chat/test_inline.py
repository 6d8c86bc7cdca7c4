"""Test text held back as a possible tag: none is lost or overtaken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.stages.thinking import MAX_HELD
from tests.support.checker import check_chat
from tests.support.pipeline import chat
from tests.support.streams import CHAT_USAGE, DONE, call, chunk, frame

ROLE = chunk({"role": "assistant", "content": ""})
STOP = [chunk({}, finish="stop"), DONE]
CALL = {"tool_calls": [call("add", "{}")]}


def chunk_beside(delta: dict[str, Any], **beside: Any) -> bytes:
    """Return a chunk whose choice has fields beside its delta."""
    whole = json.loads(chunk(delta).removeprefix(b"data: "))
    whole["choices"][0].update(beside)
    return frame(whole)


def logged(text: str) -> bytes:
    return chunk_beside({"content": text}, logprobs={"content": [{"token": text}], "refusal": None})


def choices(out: bytes) -> list[dict[str, Any]]:
    return [choice for chunk in check_chat(out).chunks for choice in chunk.get("choices", ())]


def tokens(choice: dict[str, Any]) -> list[str]:
    return [entry["token"] for entry in (choice.get("logprobs") or {}).get("content", ())]


@pytest.mark.parametrize("expose", ["both", "summary", "none"])
class TestOrder:
    @pytest.mark.parametrize("held", ["<", "\n", "<think", "\n\n<"])
    @pytest.mark.parametrize(
        ("later", "field"),
        [(CALL, "tool_calls"), ({"refusal": "No."}, "refusal"), ({"content": "So."}, "content")],
    )
    def test_inline_reasoning_comes_before_whatever_follows(
        self, held: str, later: dict[str, Any], field: str, expose: str
    ) -> None:
        stream = [ROLE, chunk({"content": held}), chunk(later), *STOP]
        seen = check_chat(chat(expose=expose).stream(b"".join(stream))).choices[0]
        assert seen.text == held + later.get("content", "")
        assert seen.order == ["content"] + [field] * (field != "content")

    def test_inline_reasoning_comes_before_an_end_without_finish(self, expose: str) -> None:
        for end in (DONE, b'data: {"error":{"message":"Overloaded"}}\n\n', b""):
            out = chat(expose=expose).stream(b"".join([ROLE, chunk({"content": "<t"}), end]))
            is_shown = expose == "both" or end == DONE  # what breaks off may be thinking
            assert check_chat(out).choices[0].text == ("<t" if is_shown else "")

    def test_choices_are_split_independently(self, expose: str) -> None:
        roles = [chunk({"role": "assistant", "content": ""}, index=index) for index in (0, 1)]
        held = [chunk({"content": f"<{index}"[: 2 - index]}, index=index) for index in (0, 1)]
        seen = check_chat(chat(expose=expose).stream(b"".join([*roles, *held, DONE])))
        assert [choice.text for choice in seen.choices.values()] == ["<0", "<"]

    def test_a_block_may_go_on_after_a_tool_call(self, expose: str) -> None:
        texts = ("<think>odd", " thoughts</thi"), ("nk>So.",)
        before, after = [[chunk({"content": text}) for text in several] for several in texts]
        stream = [ROLE, *before, chunk(CALL), *after, *STOP]
        out = chat(expose=expose).stream(b"".join(stream))
        assert check_chat(out).choices[0].text == "So."
        assert (b"odd" in out) == (expose == "both")


def test_text_held_back_when_a_field_turns_up_is_text() -> None:
    stream = [
        ROLE,
        chunk({"content": "\n"}),
        chunk({"reasoning": "Hm."}),
        chunk({"content": "So."}),
        *STOP,
    ]
    assert check_chat(chat(expose="both").stream(b"".join(stream))).choices[0].text == "\nSo."


class TestOtherFields:
    def test_log_probabilities_go_with_the_text(self) -> None:
        stream = [ROLE, *map(logged, ("\n", "<", "div", ">")), *STOP]
        seen = [
            (choice["delta"].get("content"), tokens(choice))
            for choice in choices(chat().stream(b"".join(stream)))
        ]
        texts = ("\n", "<", "div", ">")
        assert seen == [("", []), *((text, [text]) for text in texts), (None, [])]

    def test_held_text_goes_out_with_its_own_fields(self) -> None:
        deltas = [
            {"content": text, "token_id": number, "sig": f"s{number}"}
            for number, text in enumerate(("\n\n", "<", "thin", "g>"))
        ]
        stream = [ROLE, *map(chunk, deltas), *STOP]
        read = [choice["delta"] for choice in choices(chat().stream(b"".join(stream)))]
        assert read[1:-1] == deltas

    @pytest.mark.parametrize("ending", [STOP, [chunk(CALL), *STOP], [DONE]])
    def test_held_text_keeps_its_fields_whatever_follows(self, ending: list[bytes]) -> None:
        held = {"content": "<", "token_id": 1}
        read = [
            choice["delta"]
            for choice in choices(chat().stream(b"".join([ROLE, chunk(held), *ending])))
        ]
        assert held in read

    def test_the_pieces_of_a_tag_keep_their_fields_apart(self) -> None:
        deltas = [
            {"content": text, "token_id": number}
            for number, text in enumerate(("<th", "ink>", "odd</think>", "So."))
        ]
        out = chat(expose="auto").stream(b"".join([ROLE, *map(chunk, deltas), *STOP]))
        seen = [choice["delta"].get("token_id") for choice in choices(out)]
        assert [number for number in seen if number is not None] == [0, 1, 2, 3]

    def test_text_parts_that_were_held_keep_their_annotations(self) -> None:
        part = {"type": "text", "text": "<", "annotations": [{"type": "note"}]}
        stream = [ROLE, chunk({"content": [part]}), chunk({"content": "b>"}), *STOP]
        read = [
            choice["delta"].get("content") for choice in choices(chat().stream(b"".join(stream)))
        ]
        assert read[1:3] == [[part], "b>"]

    @pytest.mark.parametrize(
        ("texts", "expose", "passed", "dropped"),
        [
            (["<th", "ink>odd", "</think>", "\n", "So."], "both", slice(None), 0),
            (["<th", "ink>odd", "</think>", "\n", "So."], "auto", slice(None), 0),
            (["<think>", "odd", "</think>So."], "none", slice(0), 9),
            (["<th", "", "ink>odd", "</think>", "", "So."], "auto", slice(None), 0),
            (["<", "think", ">odd</think>\n\n", "So."], "both", slice(None), 0),
            (["<th", "eme>"], "auto", slice(None), 0),
            (["<th", "", "eme>"], "both", slice(None), 0),
            (["\n", "So."], "none", slice(0), 6),
        ],
    )
    def test_unknown_fields_go_with_the_text_that_was_held_back(
        self, texts: list[str], expose: str, passed: slice, dropped: int
    ) -> None:
        stream = [
            chunk_beside(
                {"content": text, "copies": [text]}, text=[text], logprobs={"content": [text]}
            )
            for text in texts
        ]
        pipeline = chat(expose=expose)
        read = choices(pipeline.stream(b"".join([ROLE, *stream, *STOP])))
        for seen in (
            [choice.get("text", ()) for choice in read],
            [choice["delta"].get("copies", ()) for choice in read],
            [(choice.get("logprobs") or {}).get("content", ()) for choice in read],
        ):
            assert [text for several in seen for text in several] == texts[passed]
        assert pipeline.reader.dropped == dropped

    def test_unknown_fields_of_the_chunk_go_out_at_once(self) -> None:
        held = chunk({"content": "<"}, citations=["u"])
        seen = check_chat(chat().stream(b"".join([ROLE, held, chunk({"content": "b>"}), *STOP])))
        assert [chunk.get("citations") for chunk in seen.chunks] == [None, ["u"], None, None, None]
        assert seen.choices[0].text == "<b>"

    def test_a_chunk_with_nothing_else_is_dropped(self) -> None:
        held = chunk({"content": "<"}, service_tier=None, x_vendor=None, usage=None)
        seen = check_chat(chat().stream(b"".join([ROLE, held, chunk({"content": "b>"}), *STOP])))
        texts = [chunk["choices"][0]["delta"].get("content") for chunk in seen.chunks]
        assert texts == ["", "<", "b>", None]

    @pytest.mark.parametrize(
        ("delta", "beside", "more"),
        [
            ({"annotations": [{"url": "x"}]}, {}, {}),
            ({}, {"content_filter_results": {"hate": {"filtered": False}}}, {}),
            ({}, {}, {"citations": ["u"]}),
        ],
    )
    def test_a_repeated_role_is_removed_alone(
        self, delta: dict[str, Any], beside: dict[str, Any], more: dict[str, Any]
    ) -> None:
        whole = json.loads(
            chunk_beside({"role": "assistant", "content": "", **delta}, **beside)[6:]
        )
        stream = [ROLE, chunk({"content": "So."}), frame({**whole, **more}), *STOP]
        seen = check_chat(chat().stream(b"".join(stream)))
        carrier = seen.chunks[2]
        assert carrier["choices"][0]["delta"] == delta
        assert {**carrier["choices"][0], **beside} == carrier["choices"][0]
        assert {**carrier, **more} == carrier

    def test_usage_with_a_repeated_role_stays_last(self) -> None:
        stream = [
            ROLE,
            chunk({"content": "So."}, finish="stop"),
            chunk_beside({"role": "assistant", "content": "", "annotations": [1]})[:-3]
            + b', "usage": %b}\n\n' % json.dumps(CHAT_USAGE).encode(),
            DONE,
        ]
        seen = check_chat(chat().stream(b"".join(stream)))
        assert seen.usage == CHAT_USAGE
        assert seen.chunks[-1]["choices"][0]["delta"] == {"annotations": [1]}


TAGGED = [{"type": "text", "text": "<think>odd</think>"}, {"type": "text", "text": "So."}]


@pytest.mark.parametrize("expose", ["both", "summary", "none"])
class TestContentLists:
    def test_tags_in_text_chunks_are_found(self, expose: str) -> None:
        out = chat(expose=expose).stream(b"".join([ROLE, chunk({"content": TAGGED}), *STOP]))
        contents = [choice["delta"].get("content") for choice in choices(out)]
        assert [content for content in contents if content] == [TAGGED[1:]]
        assert (b"odd" in out) == (expose == "both")

    def test_tags_across_lists_and_strings_are_found(self, expose: str) -> None:
        several = ([{"type": "text", "text": "<thi"}], "nk>odd</think>\n", TAGGED[1:])
        stream = [ROLE, *(chunk({"content": content}) for content in several), *STOP]
        out = chat(expose=expose).stream(b"".join(stream))
        contents = [choice["delta"].get("content") for choice in choices(out)]
        assert [content for content in contents if content] == [TAGGED[1:]]
        assert (b"odd" in out) == (expose == "both")


@pytest.mark.parametrize("texts", [("<", "b>"), ("\n", "<b>"), ("", "<b>")])
def test_a_list_whose_text_is_all_the_answer_passes_as_it_came(texts: tuple[str, str]) -> None:
    before, after = ({"type": "text", "text": text, "annotations": []} for text in texts)
    content = [before, {"type": "reference", "reference_ids": [1]}, after]
    sent = chunk({"content": content})
    for rest in (STOP, [chunk({"content": "So."}), *STOP]):
        out = chat(expose="both").stream(b"".join([ROLE, sent, *rest]))
        contents = [choice["delta"].get("content") for choice in choices(out)]
        assert contents[1] == content


@pytest.mark.parametrize("odd", [["x"], {"x": 1}, None, ""])
def test_thinking_in_a_whole_text_is_read_beside_a_field_of_an_unknown_type(odd: Any) -> None:
    message = {"content": "<think>Hm.</think>So.", "reasoning_content": odd}
    body = {"choices": [{"message": message, "finish_reason": "stop"}]}
    for expose, reasoning in (("both", "Hm."), ("none", None)):
        out = json.loads(chat(expose=expose).whole(json.dumps(body).encode()))
        shown = out["choices"][0]["message"]
        assert (shown["content"], shown.get("reasoning")) == ("So.", reasoning)


def test_deltas_without_text_are_not_held_back_for_ever() -> None:
    driven = chat()
    driven.frame(ROLE)
    driven.frame(chunk({"content": "<"}))
    for number in range(MAX_HELD):
        assert b'"<"' not in driven.out
        driven.frame(chunk({"role": "assistant", "token_id": number}))
    driven.frame(chunk({"role": "assistant", "token_id": -1}))
    assert b'"<"' in driven.out
    out = driven.stream(b"".join([chunk({"content": "3"}), *STOP]))
    deltas = [choice["delta"] for choice in choices(out)]
    read = [delta["token_id"] for delta in deltas if "token_id" in delta]
    assert read == [*range(MAX_HELD), -1]
    assert [delta["content"] for delta in deltas if delta.get("content")] == ["<", "3"]


def test_a_content_of_unknown_meaning_passes() -> None:
    stream = b"".join([ROLE, chunk({"content": {"odd": True}}), *STOP])
    assert b'{"odd": true}' in chat(expose="both").stream(stream)
    assert b"odd" not in chat(expose="summary").stream(stream)


def test_an_empty_block_is_no_part_of_a_whole_message() -> None:
    text = "<think>\n\n</think>\n\nSo."
    message = {"role": "assistant", "content": text}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    out = json.loads(chat(expose="both").whole(json.dumps(whole).encode()))
    streamed = chat(expose="both").stream(b"".join([ROLE, chunk({"content": text}), *STOP]))
    assert out["choices"][0]["message"]["content"] == "So."
    assert check_chat(streamed).choices[0].text == "So."


def test_choices_of_a_whole_answer_without_an_index_are_split_independently() -> None:
    message = {"role": "assistant", "content": "<think>Hm.</think>So."}
    body = {"choices": [{"message": message, "finish_reason": "stop"}] * 2}
    out = json.loads(chat(expose="both").whole(json.dumps(body).encode()))
    said = [(choice["index"], choice["message"]["content"]) for choice in out["choices"]]
    assert said == [(0, "So."), (1, "So.")]
