"""Test that only what is understood leaves where reasoning is hidden on Chat Completions.

The ways in which it may come are in `tests/end_to_end/chat_ways.py`; here is what is made of them.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from abridge.apis.chat.chunks import MAX_CHOICES
from abridge.apis.chat.texts import ChoiceTexts, place_pieces
from abridge.apis.display import Display
from abridge.apis.errors import UPSTREAM_FAILED
from abridge.core.events import ErrorDetail, ResponseEnded
from abridge.providers.catalog import PROFILES
from abridge.stages.hidden_thinking import ThinkingFilter, visible_text
from tests.support.checker import check_chat
from tests.support.loop_turns import counting_calls
from tests.support.pipeline import Pipeline, chat
from tests.support.streams import DONE, chunk, completion, frame

SECRET = "odd-thoughts"
BLOCK = f"<think>{SECRET}</think>"
PIECES = ("So", " ", "\n", "<", "think", "<think>", "</think>", "[THINK]", "`", "<|end|>")
ROLE = chunk({"role": "assistant", "content": ""})
STOP = [chunk({}, finish="stop"), DONE]


def call(**fields: Any) -> dict[str, Any]:
    function = {"name": "f", "arguments": "{}"}
    known = {"index": 0, "id": "c", "type": "function", "function": function}
    return {"tool_calls": [{**known, **fields}]}


def silent(pipeline: Pipeline) -> Pipeline:
    pipeline.write = lambda _: "**Part**\n\nSaid."
    return pipeline


def feed(pipeline: Pipeline, *frames: bytes) -> bytes:
    for one in frames:
        pipeline.frame(one)
    return bytes(pipeline.out)


class TestAMessageInTheWrongPlace:
    SAYS: ClassVar[dict[str, dict[str, Any]]] = {
        "content": {"content": f"{BLOCK}So."},
        "refusal": {"content": None, "refusal": f"{BLOCK}No."},
        "tool calls": {"tool_calls": [{"id": "c", "type": "function", "function": {"name": "f"}}]},
        "tags in a call": call(function={"name": "f", "arguments": f"{BLOCK}{{}}"}),
        "tags in a legacy call": {"function_call": {"name": "f", "arguments": f"{BLOCK}{{}}"}},
        "speech": {"audio": {"id": "a", "transcript": f"{BLOCK}So."}},
    }

    @pytest.mark.parametrize("says", SAYS.values(), ids=SAYS)
    def test_in_a_chunk_it_is_read_as_a_delta(self, says: dict[str, Any]) -> None:
        whole = json.loads(chunk({}, finish="stop").removeprefix(b"data: "))
        del whole["choices"][0]["delta"]
        whole["choices"][0]["message"] = says
        out = silent(chat(expose="none")).stream(frame(whole) + DONE)
        assert SECRET.encode() not in out
        deltas = [choice["delta"] for one in check_chat(out).chunks for choice in one["choices"]]
        assert any(says.keys() & delta.keys() for delta in deltas)

    @pytest.mark.parametrize("says", SAYS.values(), ids=SAYS)
    def test_in_a_completion_a_delta_is_read_as_a_message(self, says: dict[str, Any]) -> None:
        body = completion({})
        body["choices"][0]["delta"] = says
        del body["choices"][0]["message"]
        pipeline = silent(chat(expose="none"))
        out = pipeline.whole(json.dumps(body).encode())
        assert SECRET.encode() not in out
        assert says.keys() & json.loads(out)["choices"][0]["message"].keys()
        (turn,) = pipeline.reader.recorded_turns()
        assert turn.is_bare != bool(says.get("content"))

    def test_one_that_repeats_the_deltas_is_left_out(self) -> None:
        whole = json.loads(chunk({}, finish="stop").removeprefix(b"data: "))
        del whole["choices"][0]["delta"]
        whole["choices"][0]["message"] = {"role": "assistant", "content": "So."}
        stream = [ROLE, chunk({"content": "So."}), frame(whole), DONE]
        assert check_chat(chat(expose="none").stream(b"".join(stream))).choices[0].text == "So."

    def test_a_stream_of_messages_is_read(self) -> None:
        pieces = [chunk({"content": text}).replace(b'"delta"', b'"message"') for text in "So."]
        seen = check_chat(chat(expose="none").stream(b"".join([*pieces, *STOP])))
        assert seen.choices[0].text == "So."


class TestAnOddChunk:
    @pytest.mark.parametrize(
        "odd", [{"type": "ping"}, {"object": "thought", "text": SECRET}, {"choices": []}, {}]
    )
    def test_of_which_nothing_is_left_vanishes(self, odd: dict[str, Any]) -> None:
        pipeline = chat(expose="none")
        plain = [ROLE, chunk({"content": "So."}), DONE]
        odd_one = [*plain[:-1], frame(odd), DONE]
        assert pipeline.stream(b"".join(odd_one)) == chat(expose="none").stream(b"".join(plain))
        assert pipeline.reader.dropped == len(odd.keys() & {"type", "text"})

    def test_with_padding_loses_that_uncounted(self) -> None:
        pipeline = chat(expose="none")
        padded = [chunk({"content": text}, obfuscation=SECRET, p="ab") for text in ("So", ".")]
        out = pipeline.stream(b"".join([ROLE, *padded, *STOP]))
        assert SECRET.encode() not in out
        assert check_chat(out).choices[0].text == "So."
        assert pipeline.reader.dropped == 0

    @pytest.mark.parametrize("said", ["content", "reasoning_content"])
    def test_is_counted_each_time_that_it_loses_something(self, said: str) -> None:
        pipeline = chat(expose="none", profile=PROFILES["openai"])
        first = chunk({said: "Hm"})
        pipeline.stream(b"".join([ROLE, first, *[chunk({said: "Hm", "x": SECRET})] * 5, *STOP]))
        assert pipeline.reader.dropped == 5

    def test_with_filter_results_passes(self) -> None:
        results = {"prompt_filter_results": [{"prompt_index": 0}]}
        out = chat(expose="none").stream(b"".join([frame({"choices": [], **results}), *STOP]))
        assert b"prompt_filter_results" in out

    @pytest.mark.parametrize(
        "odd",
        [
            {"object": "error", "message": SECRET, "type": "BadRequestError", "code": 400},
            {"object": "error"},
            {"message": SECRET, "code": 500},
            {"detail": SECRET},
        ],
    )
    def test_that_is_an_error_is_told_as_one(self, odd: dict[str, Any]) -> None:
        pipeline = chat(expose="none", profile=PROFILES["openai"])
        out = pipeline.stream(b"".join([ROLE, chunk({"content": "So."}), frame(odd), DONE]))
        seen = check_chat(out)
        assert SECRET.encode() not in out
        assert seen.choices[0].text == "So."
        assert seen.error is not None
        assert seen.error["code"] == odd.get("code")
        assert {one.get("object") for one in seen.chunks if one.get("choices")} == {
            "chat.completion.chunk"
        }

    def test_is_an_error_in_a_whole_body_too(self) -> None:
        body = json.dumps({"object": "error", "message": SECRET}).encode()
        (end,) = chat(expose="none").reader.read_whole(body)
        assert isinstance(end, ResponseEnded)
        assert end.error == ErrorDetail("upstream_error", UPSTREAM_FAILED)


class TestChoicesThatNobodyAskedFor:
    @pytest.mark.parametrize("index", [-1, MAX_CHOICES, 1 << 40])
    def test_they_are_left_out_of_a_stream(self, index: int) -> None:
        pipeline = chat(expose="none")
        odd = chunk({"content": SECRET}, index=index)
        out = pipeline.stream(b"".join([ROLE, odd, chunk({"content": "So."}), *STOP]))
        assert check_chat(out).choices.keys() == {0}
        assert pipeline.reader.dropped == 1

    def test_more_than_there_may_be_are_left_out(self) -> None:
        body = completion({"content": "So."})
        body["choices"] *= MAX_CHOICES + 1
        pipeline = chat(expose="none")
        out = json.loads(pipeline.whole(json.dumps(body).encode()))
        assert [choice["index"] for choice in out["choices"]] == list(range(MAX_CHOICES))
        assert pipeline.reader.dropped == 1

    def test_they_are_left_out_of_a_completion(self) -> None:
        body = completion({"content": "So."})
        body["choices"].insert(0, {**body["choices"][0], "index": MAX_CHOICES})
        out = json.loads(chat(expose="none").whole(json.dumps(body).encode()))
        assert [choice["index"] for choice in out["choices"]] == [0]


@pytest.mark.parametrize("indices", [(None, None), (0, 0), (1, True), ("a", "b")])
def test_choices_with_one_index_are_looked_through_one_by_one(indices: tuple[Any, Any]) -> None:
    body = completion({"content": "Yes."})
    (choice,) = body["choices"]
    second = {**choice, "message": {"role": "assistant", "content": f"{SECRET}</think>So."}}
    choices = zip((choice, second), indices, strict=True)
    body["choices"] = [{**each, "index": index} for each, index in choices]
    out = json.loads(silent(chat(expose="none")).whole(json.dumps(body).encode()))
    said = [(choice["index"], choice["message"]["content"]) for choice in out["choices"]]
    assert said == [(0, "Yes."), (1, "So.")]


class TestPartsOfAContent:
    NOTES: ClassVar[list[Any]] = [
        {"type": "url_citation", "url_citation": {"url": "x:", "title": "t"}}
    ]
    IMAGE: ClassVar[dict[str, Any]] = {"type": "image_url", "image_url": {"url": "x:"}}

    def content_of(self, parts: list[Any]) -> Any:
        body = json.dumps(completion({"content": parts})).encode()
        out = silent(chat(expose="none")).whole(body)
        return json.loads(out)["choices"][0]["message"]["content"]

    def test_they_keep_their_places_and_annotations(self) -> None:
        parts = [
            {"type": "text", "text": "So.", "annotations": self.NOTES},
            self.IMAGE,
            {"type": "text", "text": "Yes."},
        ]
        assert self.content_of(parts) == parts

    def test_only_thinking_is_taken_out_of_them(self) -> None:
        parts = [
            {"type": "text", "text": f"{SECRET} one", "annotations": self.NOTES},
            self.IMAGE,
            {"type": "text", "text": f"{SECRET}</think>So. ", "annotations": self.NOTES},
            self.IMAGE,
            {"type": "text", "text": f"<think>{SECRET}"},
            {"type": "text", "text": f"{SECRET}</think>Yes."},
        ]
        last = {"type": "text", "text": "Yes."}
        assert self.content_of(parts) == [
            *(self.IMAGE, {**parts[2], "text": "So. "}, self.IMAGE, last)
        ]

    def test_a_refusal_whose_tag_comes_in_two_chunks_is_looked_through(self) -> None:
        texts = ("No. <thi", f"nk>{SECRET}</th", "ink>Never.<")
        parts = [[{"type": "refusal", "refusal": text}] for text in texts]
        deltas = [chunk({"content": part}) for part in parts]
        out = chat(expose="none").stream(b"".join([ROLE, *deltas, *STOP]))
        assert SECRET.encode() not in out
        refusals = [
            "".join(part["refusal"] for part in choice["delta"].get("content") or ())
            + (choice["delta"].get("refusal") or "")
            for one in check_chat(out).chunks[1:]
            for choice in one["choices"]
        ]
        assert "".join(refusals) == "No. Never.<"


@given(st.lists(st.lists(st.sampled_from(PIECES)).map("".join)))
@example(["</think> </think>So<think> So"])
def test_parts_show_what_their_joined_text_would_show(texts: list[str]) -> None:
    parts = [{"type": "text", "text": text} for text in texts]
    by_part, joined = (ThinkingFilter(may_begin_inside=True, limit=1 << 20) for _ in range(2))
    _, rest = place_pieces(parts, [*by_part.feed("".join(texts)), *by_part.end()])
    shown = visible_text([*joined.feed("".join(texts)), *joined.end()])
    assert "".join(part["text"] for part in rest) == shown


class TestSummariesOfUpstreamsOwn:
    @pytest.mark.parametrize("kind", ["reasoning.text", "reasoning.encrypted", "musing", ""])
    @pytest.mark.parametrize(
        "beside", [[], [{"type": "reasoning.summary", "summary": "In short."}]]
    )
    def test_only_entries_of_summaries_hold_them(
        self, kind: str, beside: list[dict[str, Any]]
    ) -> None:
        entries = [*beside, {"type": kind, "summary": SECRET, "index": 0}]
        pipeline = chat(expose="summary", profile=PROFILES["openrouter"])
        delta = {"reasoning_details": entries}
        out = pipeline.stream(b"".join([ROLE, chunk(delta), chunk({"content": "So."}), *STOP]))
        assert SECRET.encode() not in out
        body = json.dumps(completion({"content": "So.", **delta})).encode()
        pipeline = chat(expose="summary", profile=PROFILES["openrouter"])
        assert SECRET.encode() not in pipeline.whole(body)


class TestWhatIsHeld:
    def test_text_waits_until_it_cannot_be_thinking(self) -> None:
        pipeline = chat(expose="none")
        texts = [chunk({"content": text}) for text in ("S", "o", ".")]
        assert feed(pipeline, ROLE, *texts).count(b"content") == 1
        assert check_chat(pipeline.stream(b"".join(STOP))).choices[0].text == "So."

    @pytest.mark.parametrize("first", [{"reasoning_content": "x"}, {"content": "<think>x</think>"}])
    def test_after_reasoning_it_does_not(self, first: dict[str, str]) -> None:
        out = feed(chat(expose="none"), ROLE, chunk(first), chunk({"content": "So."}))
        assert b"So." in out

    def test_it_does_not_where_the_servers_parse_their_models_text(self) -> None:
        pipeline = chat(expose="none", profile=PROFILES["openai"])
        assert b"So." in feed(pipeline, ROLE, chunk({"content": "So."}))

    def test_blank_reasoning_is_none(self) -> None:
        pipeline, blank = chat(expose="none"), chunk({"reasoning_content": "\n"})
        assert b"So." not in feed(pipeline, ROLE, blank, chunk({"content": "So."}))

    def test_reasoning_that_begins_blank_is_some(self) -> None:
        thoughts = [chunk({"reasoning_content": text}) for text in ("\n", "x", "x")]
        assert b"So." in feed(chat(expose="none"), ROLE, *thoughts, chunk({"content": "So."}))

    def test_refusals_and_what_is_spoken_do_not_wait(self) -> None:
        spoken = {"audio": {"id": "a", "transcript": "Oh."}}
        out = feed(chat(expose="none"), ROLE, chunk(spoken), chunk({"refusal": "No."}))
        assert b"Oh." in out
        assert b"No." in out

    @pytest.mark.parametrize("ending", [[], [frame({"error": {"message": "x"}}), DONE]])
    @pytest.mark.parametrize("kind", ["tool_calls", "function_call"])
    def test_an_open_block_in_arguments_is_shown_only_at_their_end(
        self, kind: str, ending: list[bytes]
    ) -> None:
        function = {"name": "f", "arguments": f'{{"a": "<think>{SECRET}'}
        delta = call(function=function) if kind == "tool_calls" else {kind: function}
        begun = b"".join([ROLE, chunk(delta)])
        assert SECRET.encode() not in chat(expose="none").stream(begun + b"".join(ending))
        assert SECRET.encode() in chat(expose="none").stream(begun + b"".join(STOP))

    @pytest.mark.parametrize("ending", [[], [frame({"error": {"message": "x"}}), DONE]])
    def test_it_is_not_shown_if_the_answer_breaks_off(self, ending: list[bytes]) -> None:
        stream = [ROLE, chunk({"content": "So."}), *ending]
        seen = check_chat(chat(expose="none").stream(b"".join(stream)))
        assert seen.error is not None
        assert seen.choices[0].text == ""

    def test_calls_release_the_text_before_them(self) -> None:
        ending = [chunk({}, finish="tool_calls"), DONE]
        stream = [ROLE, chunk({"content": "So."}), chunk(call()), *ending]
        seen = check_chat(chat(expose="none").stream(b"".join(stream)))
        assert seen.choices[0].order == ["content", "tool_calls"]

    def test_a_mention_in_arguments_is_released_at_their_end(self) -> None:
        pieces = ['{"a": "the <think', "> tag", '"}']
        calls = [call(function={"name": "f", "arguments": pieces[0]})]
        calls += [{"tool_calls": [{"index": 0, "function": {"arguments": p}}]} for p in pieces[1:]]
        stream = [ROLE, *map(chunk, calls), chunk({}, finish="tool_calls"), DONE]
        out = chat(expose="none").stream(b"".join(stream))
        arguments = [
            fragment["function"].get("arguments", "")
            for one in check_chat(out).chunks
            for choice in one["choices"]
            for fragment in choice["delta"].get("tool_calls", ())
        ]
        assert "".join(arguments) == "".join(pieces)


@given(st.data())
def test_any_split_hides_the_same(data: st.DataObject) -> None:
    texts = [f"{BLOCK}So.", f"{SECRET}</think>So.", f"So {BLOCK}and.", "So."]
    text = data.draw(st.sampled_from(texts))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    pipeline = silent(chat(expose="summary"))
    deltas = [chunk({"content": piece}) for piece in pieces]
    seen = check_chat(pipeline.stream(b"".join([ROLE, *deltas, *STOP])))
    body = json.dumps(completion({"content": text})).encode()
    whole = json.loads(silent(chat(expose="summary")).whole(body))
    assert seen.choices[0].text == whole["choices"][0]["message"]["content"]
    assert SECRET not in seen.choices[0].text
    assert [passage.text for passage in pipeline.passages] == [SECRET] * (SECRET in text)


class TestWhatIsLeftOut:
    WAYS: ClassVar[dict[str, dict[str, Any]]] = {
        "beside reasoning": {"reasoning_content": "x", "content": f"{BLOCK}So."},
        "in a refusal": {"refusal": f"{BLOCK}No."},
        "in what is spoken": {"audio": {"id": "a", "transcript": f"{BLOCK}So."}},
        "in a call": call(function={"name": "f", "arguments": f"{BLOCK}{{}}"}),
    }

    @pytest.mark.parametrize("delta", WAYS.values(), ids=WAYS)
    def test_it_is_counted(self, delta: dict[str, Any]) -> None:
        pipeline = chat(expose="none")
        out = pipeline.stream(b"".join([ROLE, chunk(delta), *STOP]))
        assert SECRET.encode() not in out
        assert pipeline.reader.dropped == 1

    def test_it_is_all_thinking_in_texts_where_reasoning_is_a_summary(self) -> None:
        display = Display(hides_raw=True, drops_inline=True)
        texts = ChoiceTexts(0, PROFILES["auto"], display, 1000)
        message = {"content": f"{BLOCK}So."}
        assert texts.split_message(message) == {"content": "So."}
        assert texts.dropped == 1

    def test_a_call_takes_no_longer_after_hundreds_of_others(self) -> None:
        pipeline = chat(expose="none")

        def count_for(index: int) -> int:
            frame = chunk(call(index=index, id=f"c{index}"))
            with counting_calls() as turns:
                pipeline.frame(frame)
            return sum(turns)

        _, second, *_, last = [count_for(index) for index in range(400)]
        assert last < 2 * second


class TestWhereNothingIsHidden:
    BESIDE: ClassVar[dict[str, Any]] = {
        "images": [{"type": "image_url", "image_url": {"url": "x:"}}],
        "extra_content": {"google": {"thought_signature": "abc="}},
        "context": {"citations": [1]},
        "provider_specific_fields": {"a": "b"},
    }
    LOGPROBS: ClassVar[dict[str, Any]] = {"content": [{"token": "a", "logprob": -1.0}]}

    def test_a_whole_message_loses_nothing_beside_its_reasoning(self) -> None:
        body = completion({"reasoning_content": "x", "content": "So.", **self.BESIDE})
        body["choices"][0]["logprobs"] = self.LOGPROBS
        (choice,) = json.loads(chat().whole(json.dumps(body).encode()))["choices"]
        assert self.BESIDE.items() <= choice["message"].items()
        assert choice["logprobs"] == self.LOGPROBS

    @pytest.mark.parametrize("content", [{}, {"content": "So."}])
    @pytest.mark.parametrize("earlier", [[], [chunk({"reasoning_content": "x"})]])
    def test_a_chunk_with_reasoning_loses_nothing_beside_it(
        self, content: dict[str, str], earlier: list[bytes]
    ) -> None:
        shape = json.loads(chunk({}).removeprefix(b"data: "))
        delta = {"reasoning_content": "y", **content, **self.BESIDE}
        choice = {**shape["choices"][0], "delta": delta, "logprobs": self.LOGPROBS}
        mixed = frame({**shape, "choices": [choice], "x_vendor": 1})
        seen = check_chat(chat().stream(b"".join([ROLE, *earlier, mixed, *STOP])))
        deltas = [choice["delta"] for one in seen.chunks for choice in one["choices"]]
        assert any(self.BESIDE.items() <= delta.items() for delta in deltas)
        logprobs = [choice.get("logprobs") for one in seen.chunks for choice in one["choices"]]
        assert logprobs.count(self.LOGPROBS) == 1
        assert [one["x_vendor"] for one in seen.chunks if "x_vendor" in one] == [1]

    @pytest.mark.parametrize("expose", ["auto", "both", "raw"])
    def test_a_continuation_loses_nothing_that_is_false_or_empty(self, expose: str) -> None:
        beside = {"flag": False, "n": 0, "images": []}
        deltas = [{"reasoning_content": "x"}, {"reasoning_content": "y", **beside}]
        seen = check_chat(chat(expose=expose).stream(b"".join([ROLE, *map(chunk, deltas), *STOP])))
        read = [choice["delta"] for one in seen.chunks for choice in one["choices"]]
        assert [beside.items() <= delta.items() for delta in read].count(True) == 1

    ODD: ClassVar[list[dict[str, Any]]] = [
        {"reasoning": {"summary": "s"}},
        {"reasoning": ["x"]},
        {"reasoning_content": 5},
        {"reasoning_details": "x"},
    ]

    @pytest.mark.parametrize("expose", ["auto", "both", "raw"])
    @pytest.mark.parametrize("odd", ODD)
    def test_reasoning_of_an_unknown_type_passes(self, odd: dict[str, Any], expose: str) -> None:
        stream = [ROLE, chunk(odd), chunk({"content": "So."}), *STOP]
        seen = check_chat(chat(expose=expose).stream(b"".join(stream)))
        assert odd in [choice["delta"] for one in seen.chunks for choice in one["choices"]]
        body = json.dumps(completion({"content": "So.", **odd})).encode()
        (choice,) = json.loads(chat(expose=expose).whole(body))["choices"]
        assert odd.items() <= choice["message"].items()

    def test_reasoning_of_an_unknown_type_passes_beside_reasoning(self) -> None:
        odd = {"reasoning": {"summary": "s"}}
        delta = {"reasoning_content": "x", **odd}
        seen = check_chat(chat().stream(b"".join([ROLE, chunk(delta), *STOP])))
        assert odd in [choice["delta"] for one in seen.chunks for choice in one["choices"]]
        body = json.dumps(completion({"content": "So.", **delta})).encode()
        (choice,) = json.loads(chat().whole(body))["choices"]
        assert odd.items() <= choice["message"].items()
