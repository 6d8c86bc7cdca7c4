"""Odd answers: each ends, and hides reasoning."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.end_to_end.mutations import CHAT, DOCUMENTS, ODD, SECRET, answer, changed, places
from tests.support.asgi import call
from tests.support.deployments import build_app
from tests.support.summarizers import Scripted
from tests.support.upstream import Upstream


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("expose", ["auto", "summary", "none"])
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
async def test_odd_values_anywhere(name: str, expose: str, data: st.DataObject) -> None:
    path, stream, document = DOCUMENTS[name]
    place = data.draw(st.sampled_from(list(places(document))))
    odd = changed(document, place, data.draw(ODD))
    app = build_app(
        "mounted",
        Upstream(answer(odd, stream=stream)),
        writer=Scripted("All is well."),
        reasoning={"expose": expose},
        attribution={"enabled": data.draw(st.booleans())},
    )
    request = {"model": "m", "stream": stream, "reasoning": {"summary": "auto"}}
    body = {"messages": []} if path == CHAT else {"input": "Hi"}
    ended = await call(app, path, {**request, **body})
    assert ended.complete
    if expose != "auto":
        assert SECRET.encode() not in ended.data
