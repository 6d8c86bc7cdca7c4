"""Answers with deep nesting anywhere: each ends, and hides reasoning."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.end_to_end.mutations import (
    CHAT,
    DOCUMENTS,
    MESSAGES,
    RESPONSES,
    SECRET,
    answer,
    changed,
    places,
)
from tests.support.asgi import Call, call
from tests.support.deployments import build_app
from tests.support.matrix import some
from tests.support.nesting import PLACE
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("expose", ["auto", "both", "summary", "none"])
@settings(max_examples=some(60), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
async def test_nested_values_anywhere(name: str, expose: str, data: st.DataObject) -> None:
    path, stream, document = DOCUMENTS[name]
    place = data.draw(st.sampled_from(list(places(document))))
    odd = answer(changed(document, place, "nested here"), stream=stream)
    levels = data.draw(st.sampled_from([*range(244, 257), 600, 1000, 2000]))
    hole, brackets = PLACE.encode(), b"[" * levels + b"]" * levels
    odd.steps = [step.replace(hole, brackets) for step in odd.steps if isinstance(step, bytes)]
    ended = await ask(path, odd, expose, attributes=data.draw(st.booleans()))
    assert ended.complete
    if expose in ("summary", "none"):
        assert SECRET.encode() not in ended.data


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name.endswith("stream")])
async def test_what_is_nested_beside_an_answer_passes_with_it(name: str) -> None:
    path = DOCUMENTS[name][0]
    frames = [{**payload, "x": "nested here"} for payload in DOCUMENTS[name][2]]
    odd = answer(frames, stream=True)
    hole, brackets = PLACE.encode(), b"[" * 600 + b"]" * 600
    odd.steps = [step.replace(hole, brackets) for step in odd.steps if isinstance(step, bytes)]
    ended = await ask(path, odd, "both", attributes=False)
    assert ended.complete
    assert b"Hello." in ended.data
    assert ended.data.count(brackets) == len(frames)


async def ask(path: str, odd: Answer, expose: str, *, attributes: bool) -> Call:
    app = build_app(
        "mounted",
        Upstream(odd),
        writer=Scripted("All is well."),
        reasoning={"expose": expose},
        attribution={"enabled": attributes},
    )
    stream = "stream" in odd.headers["content-type"]
    request = {"model": "m", "stream": stream, "reasoning": {"summary": "auto"}}
    bodies: dict[str, Any] = {
        CHAT: {"messages": []},
        RESPONSES: {"input": "Hi"},
        MESSAGES: {"messages": [], "max_tokens": 9},
    }
    return await call(app, path, {**request, **bodies[path]})
