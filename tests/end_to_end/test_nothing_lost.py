"""Where nothing is hidden, no JSON value of an answer is lost, changed or moved.

Values of any kind are put beside all that is known, in random answers that arrive in random pieces.
Run whole, by `--matrix`, that is 20,000 times. Between two APIs `whole_chain/` shows the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.messages.api import MESSAGES
from abridge.apis.responses.api import RESPONSES
from abridge.providers.catalog import PROFILES
from tests.apis.messages import scripts
from tests.support import random_answers
from tests.support.checker import frames
from tests.support.messages_checker import CHECKS
from tests.support.nothing_lost import (
    WHOLES,
    assert_said,
    decode,
    said_in_chunks,
    said_in_events,
    said_in_message_events,
    spelled,
)
from tests.support.pipeline import Pipeline
from tests.support.random_answers import encode, put_beside, random_cuts, to_frames
from tests.support.streams import (
    chat_stream,
    message_item,
    responses_stream,
)

EXAMPLES, FEW = 20_000 // 3, 100
PROFILES_TRIED = ("auto", "openai", "deepseek", "vllm")
APIS: dict[str, Api] = {api.name: api for api in (CHAT, RESPONSES, MESSAGES)}


def pipeline(random: Random, client: str) -> Pipeline:
    exposures = ["auto", "raw"] if client == "messages" else ["auto", "both", "raw"]
    return Pipeline(
        APIS[client],
        expose=random.choice(exposures),  # type: ignore[arg-type]
        profile=PROFILES[random.choice(PROFILES_TRIED)],
        merge_usage=False,
    )


def lose_nothing_of_a_stream(random: Random) -> None:
    api = random.choice([*APIS])
    beside = random.choice([0, 1, 5])
    payloads = put_beside(random, random_answers.STREAMS[api](random), beside)
    sent = to_frames(random, payloads)
    out = pipeline(random, api).stream(b"".join(sent), random_cuts(random, sent))
    is_known = not (beside or (api == "messages" and b"musing" in out))
    if api == "chat" or is_known:  # others repeat what they say, or refuse what they do not know
        CHECKS[api](out)
    given, seen = (
        [decode(data) for _, data in frames(stream) if data != "[DONE]"]
        for stream in (b"".join(sent), out)
    )
    if api == "chat":
        assert_said(said_in_chunks(given), said_in_chunks(seen))
    else:
        said = said_in_events if api == "responses" else said_in_message_events
        assert said(seen) == said(given)


def lose_nothing_of_a_body(random: Random) -> None:
    api = random.choice([*APIS])
    whole = random_answers.WHOLES[api](random)
    (answer,) = put_beside(random, [whole], random.choice([0, 1, 5]))
    sent = encode(random, answer)
    out = pipeline(random, api).whole(sent.encode())
    assert WHOLES[api](decode(out)) == WHOLES[api](decode(sent))


# Thinking within texts


def beside_thinking(random: Random) -> list[tuple[str, Any]]:
    """Return the pieces of a text that begins with thinking, and what stands beside each."""
    text = random_answers.TAGGED
    edges = [0, *sorted(random.choices(range(len(text)), k=random.randint(0, 9))), len(text)]
    return [
        (text[start:end], [number, random_answers.random_json(random)])
        for number, (start, end) in enumerate(pairwise(edges))
    ]


def tagged_stream(random: Random, api: str) -> list[dict[str, Any]]:
    """Return a stream whose deltas have something beside a text that is split."""
    said = beside_thinking(random)
    text = "".join(piece for piece, _ in said)
    if api == "chat":
        chunks = [json.loads(one[6:]) for one in chat_stream("", text)[:-1]]
        deltas = [{**chunks[1]["choices"][0], "delta": {"content": piece}} for piece, _ in said]
        place = random.choice(["chunk", "choice", "delta"])
        made = []
        for delta, (_, beside) in zip(deltas, said, strict=True):
            chunk = {**chunks[1], "choices": [delta]}
            holders = {"chunk": chunk, "choice": delta, "delta": delta["delta"]}
            holders[place]["x"] = beside
            made.append(chunk)
        return [chunks[0], *made, *chunks[-2:]]
    if api == "responses":
        streamed = responses_stream([message_item(0, text)])
        kind = "response.output_text.delta"
    else:
        streamed = scripts.stream([scripts.text(text)])
        kind = "content_block_delta"
    events = [json.loads(one.partition(b"data: ")[2]) for one in streamed]
    first = next(n for n, event in enumerate(events) if event["type"] == kind)
    last = next(n for n in range(first, len(events)) if events[n]["type"] != kind)
    deltas = []
    for piece, beside in said:
        delta: Any = piece if api == "responses" else {"type": "text_delta", "text": piece}
        deltas.append({**events[first], "delta": delta, "x": beside})
    events[first:last] = deltas
    for number, event in enumerate(events if api == "responses" else ()):
        event["sequence_number"] = number
    return events


def find_beside(value: Any) -> list[str]:
    """Return all that is called `x`, in its order."""
    if isinstance(value, list):
        return [found for each in value for found in find_beside(each)]
    if not isinstance(value, dict):
        return []
    own = [spelled(value["x"])] if "x" in value else []
    return [*own, *(found for key in value if key != "x" for found in find_beside(value[key]))]


def lose_nothing_beside_thinking(random: Random) -> None:
    api = random.choice([*APIS])
    sent = to_frames(random, tagged_stream(random, api))
    profile = PROFILES["transformers" if api == "responses" else "auto"]
    pipe = Pipeline(APIS[api], expose=random.choice(["auto", "both", "raw"]), profile=profile)  # type: ignore[arg-type]
    out = pipe.stream(b"".join(sent), random_cuts(random, sent))
    CHECKS[api](out)
    given, seen = (
        find_beside([decode(data) for _, data in frames(stream) if data != "[DONE]"])
        for stream in (b"".join(sent), out)
    )
    assert seen == given


@pytest.mark.parametrize(
    "check",
    [lose_nothing_of_a_stream, lose_nothing_of_a_body, lose_nothing_beside_thinking],
)
def test_no_value_of_an_answer_is_lost_changed_or_moved(
    check: Callable[[Random], None], request: pytest.FixtureRequest
) -> None:
    examples = EXAMPLES if request.config.getoption("--matrix") else FEW

    @settings(max_examples=examples)
    @given(st.integers(0, 1 << 63))
    def run(seed: int) -> None:
        check(Random(seed))

    run()
