"""The law of the whole chain: a client gets upstream's answer, or one that ends failed.

Whatever an upstream of any API says of several parts, in whatever interleaving, split, repetition
or omission, over all stages on and off: each text and each call is upstream's own and whole.
"""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.end_to_end.translation.turn import PATHS, request_body
from tests.end_to_end.whole_chain.clients import CLIENTS, Heard
from tests.end_to_end.whole_chain.speech import Part, Speech, interleave, speeches
from tests.end_to_end.whole_chain.upstreams import UPSTREAMS
from tests.support.asgi import call
from tests.support.deployments import ORIGIN, build_app
from tests.support.matrix import some
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

PAIRS = [(upstream, client) for upstream in UPSTREAMS for client in CLIENTS]
EACH_PAIR = pytest.mark.parametrize(("upstream", "client"), PAIRS)
EACH_STAGE = pytest.mark.parametrize("expose", ["both", "summary", "none"])

TELLS_ENDS = ("chat", "messages")
"""The APIs whose last word says that the answer is over, but not why."""

_TEXT_AND_CALL = (
    Part("text", ("It", " is")),
    Part("call", ('{"q": 1}',), "look", "call_0Kq8ZpXw3TzV5bN"),
)

OPEN_TEXT = Speech(_TEXT_AND_CALL, interleave(_TEXT_AND_CALL, [0, 1, 0]))
"""A text that is still open as a call begins."""

_TEXTS_AND_REASONING = (
    *(Part("text", ("It", "&lt;")), Part("text", ("is", " so"))),
    Part("reasoning", ("First",)),
)

OPEN_TEXTS = Speech(_TEXTS_AND_REASONING, interleave(_TEXTS_AND_REASONING, []), stops=False)
"""A text that may end with the beginning of a tag, and is still open as the next begins."""

cuts = st.lists(st.floats(0, 1), max_size=12)
"""Where the bytes are split, in parts of the whole; without any each event comes by itself."""


def answer(upstream: str, speech: Speech, places: list[float]) -> Answer:
    frames = UPSTREAMS[upstream](speech)
    if not places:
        return Answer(frames)
    data = b"".join(frames)
    edges = sorted({0, len(data), *(int(place * len(data)) for place in places)})
    return Answer([data[start:end] for start, end in pairwise(edges)])


def listen(
    upstream: str, client: str, expose: str, played: Answer, *, texts_agree: bool = True
) -> Heard:
    app = build_app(
        "sidecar",
        Upstream(played),
        writer=Scripted("**Adding up**\n\nI do it."),
        upstreams=[{"api": upstream, "base_url": f"{ORIGIN}/v1"}],
        reasoning={"expose": expose},
    )
    wish = {"thinking": {"type": "adaptive"}} if client == "messages" else {}
    body = request_body(client, stream=True, **wish)
    return CLIENTS[client](
        asyncio.run(call(app, PATHS[client], body)).data, texts_agree=texts_agree
    )


def said(upstream: str, speech: Speech, kind: str = "text") -> str:
    """Return a kind's text: APIs with parts of their own have it part by part."""
    in_parts = upstream in ("responses", "messages")
    return speech.joined(kind) if in_parts else speech.said_first(kind)  # type: ignore[arg-type]


def assert_whole(heard: Heard, upstream: str, speech: Speech) -> None:
    text, whole = squeezed(heard.text), squeezed(said(upstream, speech))
    assert text == whole or (speech.returns_to("text") and sorted(text) == sorted(whole))
    assert sorted(map(str, heard.calls)) == sorted(map(str, speech.calls))
    assert heard.finish == ("tool_calls" if speech.calls else "stop")
    if heard.order and not speech.together:
        told = [kind for kind in heard.order if kind not in ("reasoning", "thinking")]
        assert (told[:1] == ["call"]) == (speech.begins_with(upstream) == "call")


def squeezed(text: str) -> str:
    """Translations join parts by blank lines, and leave blanks out where nothing else is said."""
    return "".join(text.split())


@EACH_STAGE
@EACH_PAIR
@settings(max_examples=some(24))
@given(speech=speeches(), places=cuts)
@example(speech=OPEN_TEXT, places=[])
@example(speech=OPEN_TEXTS, places=[])
def test_a_whole_answer_arrives_whole(
    upstream: str, client: str, expose: str, speech: Speech, places: list[float]
) -> None:
    agree = not (upstream == client == "responses" and speech.returns_to("reasoning"))
    played = answer(upstream, speech, places)
    heard = listen(upstream, client, expose, played, texts_agree=agree)
    assert not heard.failed
    assert_whole(heard, upstream, speech)
    if expose != "both":
        assert "First" not in heard.reasoning


@EACH_STAGE
@EACH_PAIR
@settings(max_examples=some(24))
@given(speech=speeches(whole=False), places=cuts)
def test_an_answer_without_an_end_invents_none(
    upstream: str, client: str, expose: str, speech: Speech, places: list[float]
) -> None:
    agree = not (upstream == client == "responses" and speech.returns_to("reasoning"))
    played = answer(upstream, speech, places)
    heard = listen(upstream, client, expose, played, texts_agree=agree)
    assert (
        squeezed(said(upstream, speech)).startswith(squeezed(heard.text)) or not speech.is_in_order
    )
    if heard.failed:
        assert not (speech.ends and upstream in TELLS_ENDS and speech.is_in_order)
        return
    if upstream == "gemini":  # whose streams have no end but the connection's
        speech = speech.as_far_as_it_came()
    assert speech.cut is None
    assert_whole(heard, upstream, speech)
