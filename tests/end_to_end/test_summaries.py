"""Summarizing end to end: the cuts, the requests, and the resulting summary."""

from __future__ import annotations

import re
from itertools import count, pairwise
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from abridge import AbridgeMiddleware, Settings
from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.messages.api import MESSAGES
from abridge.apis.protocols import RequestEcho
from abridge.apis.responses.api import RESPONSES
from abridge.config.tables import SummarizerSettings
from abridge.core.plan import Passage, SummaryPlan
from abridge.core.segmenter import text_size
from abridge.core.usage import Tokens
from abridge.pipeline.exchange_plan import EXTRACT_TAIL_CHARS, FIRST_SHARE
from abridge.summarizers.extractive.extract import extract
from abridge.summarizers.model.prompts import build_prompt
from tests.core.sequencer_driver import SequencerDriver
from tests.end_to_end.translation.turn import ALL_UPSTREAMS, answer
from tests.support.asgi import call
from tests.support.checker import check_chat, check_responses
from tests.support.messages_checker import check_messages
from tests.support.pipeline import Pipeline, chat, responses
from tests.support.streams import (
    call_item,
    chat_stream,
    message_item,
    reasoning_item,
    response,
    responses_stream,
    thinking,
)
from tests.support.upstream import Answer, Upstream

SIZES = (20, 200, 2_000, 20_000)
CODE = """\
def merge(left: list[int], right: list[int]) -> list[int]:
    merged = []
    while left and right:
        merged.append((left if left[0] <= right[0] else right).pop(0))
    return merged + left + right

"""
CHINESE = (
    "我们先看第一种情况，然后再看第二种。因为两边相等，所以结论成立。接下来检查边界，没有问题。\n\n"
)
ITEM = "- option {}: the oven is free from 17:05, so the gratin goes in then\n"


def repeated(text: str, size: int) -> str:
    numbers, made = count(1), ""
    while len(made) < size:
        made += text.format(next(numbers)) if "{}" in text else text
    return made[:size]


KINDS = {
    "prose": (thinking, r"(?:\n\n|[.] )\Z"),
    "list": (lambda size: repeated(ITEM, size), r"\n\Z"),
    "code": (lambda size: repeated(CODE, size), r"\n\Z"),
    "Chinese": (lambda size: repeated(CHINESE, size), r"(?:。|\n\n)\Z"),
    "one endless line": (lambda size: repeated("so then it follows that ", size), r" \Z"),
    "one endless word": (lambda size: "x" * size, r"x\Z"),
}


def titled(passage: Passage) -> str:
    """Summarize as a model does: a title of usual length, a few sentences."""
    written = f"I look at {len(passage.text)} characters and find that they hold."
    return (
        written
        if passage.whole
        else f"**Case {len(passage.titles) + 1} of the proof**\n\n{written}"
    )


def think(text: str, **settings: object) -> Pipeline:
    pipeline = chat(write=titled, **settings)
    pipeline.stream(b"".join(chat_stream(text, "So.")))
    return pipeline


def sent(passages: list[Passage]) -> tuple[int, int]:
    """Return the bytes sent to a summarizer model: reasoning, and in all."""
    material = whole = 0
    for passage in passages:
        written = build_prompt(passage, SummarizerSettings(max_input_chars=10**9), "4f1d9c")
        material += size(passage.text, passage.before, *passage.titles)
        whole += size(written.system, written.user)
    return material, whole


def size(*texts: str) -> int:
    return sum(len(text.encode()) for text in texts)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", SIZES)
class TestAnyReasoning:
    def test_it_is_cut_at_natural_boundaries(self, kind: str, length: int) -> None:
        write, boundary = KINDS[kind]
        text = write(length)
        passages = think(text).passages
        joined = "".join(passage.text for passage in passages)
        assert text.startswith(joined)
        assert len(text) - len(joined) < 400, "a longer rest is worth a part"
        assert all(re.search(boundary, passage.text) for passage in passages[:-1])

    def test_requests_stay_in_proportion_to_the_reasoning(self, kind: str, length: int) -> None:
        text = KINDS[kind][0](length)
        passages = think(text).passages
        material, whole = sent(passages)
        assert len(passages) <= 1 + text_size(text) // 1500
        assert material <= 1.3 * size(text)
        assert whole <= 1.6 * size(text) or length < 2000

    def test_the_extractive_summarizer_makes_one_text(self, kind: str, length: int) -> None:
        pipeline = chat(write=extract)
        stream = pipeline.stream(b"".join(chat_stream(KINDS[kind][0](length), "So.")))
        written = check_chat(stream).choices[0].fields["reasoning_content"]
        titles = re.findall(r"^\*\*(.+)\*\*$", written, re.MULTILINE)
        assert written
        assert all(title != following for title, following in pairwise(titles))
        assert len(written) <= max(320, len(pipeline.passages) * 800)


LOOP = "Wait, no. Maybe I should look at it again. Hmm, what was it? Let me see. " * 20 + "\n\n"
"""Reasoning that goes round in circles and tells nothing, a little more than a part of it."""


@pytest.mark.parametrize("stream", [True, False])
async def test_reasoning_in_circles_is_told_with_what_comes_after_it(*, stream: bool) -> None:
    text = thinking(2_000) + LOOP * 6 + "The lease ends in July, so the deposit is due in June."
    said = [reasoning_item(0, text), message_item(1, "June.")]
    frames = [*responses_stream(said)]
    upstream = Upstream(Answer(frames) if stream else Answer.json(response(said)))
    app = AbridgeMiddleware(upstream, Settings(), registry=CollectorRegistry())
    body = {"model": "m", "input": "Hi", "stream": stream, "reasoning": {"summary": "auto"}}
    received = await call(app, "/v1/responses", body)
    final = check_responses(received.data).response if stream else received.json
    parts = [part["text"] for part in final["output"][0]["summary"]]
    assert len(parts) in (2, 3)
    assert "the deposit is due in June" in parts[-1]
    assert all("\n\n" in part for part in parts), "no title stands alone"


IN_TURN = SummaryPlan(first_share=FIRST_SHARE, in_turn=True, tail_chars=EXTRACT_TAIL_CHARS)


def extracted(text: str, *, pause: int) -> tuple[str, ...]:
    """Return the parts that are extracted of a text, where the model pauses for as long as one
    takes after so many characters."""
    driver = SequencerDriver(IN_TURN)
    driver.open()
    for start in range(0, len(text), 40):
        driver.raw(text[start : start + 40])
        for part in [*driver.requested] if start % pause < 40 else ():
            driver.write(part, extract(driver.requested[part].passage))
    driver.close()
    while driver.requested:
        part = min(driver.requested)
        driver.write(part, extract(driver.requested[part].passage))
    driver.end()
    return driver.ended.summaries[0, 0].parts


@pytest.mark.parametrize("rest", ["", "I see. " * 30, "The lease ends in July. " * 40])
def test_parts_in_circles_are_the_same_at_any_pace(rest: str) -> None:
    text = thinking(1_700) + LOOP * 5 + thinking(900) + LOOP * 3 + rest
    parts = extracted(text, pause=40)
    assert len(parts) > 1
    assert extracted(text, pause=2_000) == parts
    assert extracted(text, pause=len(text)) == parts


class TestReasoningBetweenCalls:
    """Reasoning and a call, twenty times."""

    def test_each_responses_item_has_its_own_summary(self) -> None:
        output = []
        for number in range(20):
            item = reasoning_item(2 * number, thinking(300 + 40 * number))
            output += [item, call_item(2 * number + 1, "look", "{}")]
        pipeline = responses(write=titled)
        seen = check_responses(
            pipeline.stream(b"".join(responses_stream([*output, message_item(40, "So.")])))
        )
        assert [len(item.summary) for item in seen.reasoning] == [1] * 20
        material, _ = sent(pipeline.passages)
        assert material <= 1.3 * size(*(item.raw for item in seen.reasoning))

    def test_short_chat_stretches_share_a_part(self) -> None:
        frames, thought = [], ""
        for number in range(20):
            text = f"Round {number}. " + "I look at the next file. " * 6
            thought += text
            one = chat_stream(text, f"Note {number}. ")
            frames += one[1:-3] if number else one[:-3]
        pipeline = chat(write=titled)
        seen = check_chat(pipeline.stream(b"".join([*frames, *chat_stream("", "")[-3:]])))
        assert seen.choices[0].text == "".join(f"Note {number}. " for number in range(20))
        assert 5 <= len(pipeline.passages) <= 10
        material, _ = sent(pipeline.passages)
        assert material <= 1.3 * size(thought)


def usage_of(client: Api, out: bytes) -> Any:
    if client is CHAT:
        return check_chat(out).usage
    if client is RESPONSES:
        return check_responses(out).response["usage"]
    return check_messages(out).message["usage"]


@pytest.mark.parametrize("upstream", ALL_UPSTREAMS)
@pytest.mark.parametrize("client", [CHAT, RESPONSES, MESSAGES], ids=lambda api: api.name)
def test_a_summarizer_that_reports_no_total_is_in_the_total(client: Api, upstream: str) -> None:
    """As the one in docs/summarizers.md. Messages has no total but that of the share."""
    sent = b"".join(step for step in answer(upstream, stream=True).steps if isinstance(step, bytes))
    bridged = None if upstream == client.name else upstream
    echo = RequestEcho({"stream_options": {"include_usage": True}})

    def bill(**how: Any) -> Any:
        pipeline = Pipeline(client, upstream=bridged, echo=echo, **how)
        return usage_of(client, pipeline.stream(sent))

    alone, merged = bill(expose="raw"), bill(expose="both", spent=Tokens(28, 401))
    share = merged["reasoning_summary"]
    assert (share["total_tokens"], share["incomplete"]) == (28 + 401, False)
    if client is not MESSAGES:
        assert merged["total_tokens"] == alone["total_tokens"] + 28 + 401
