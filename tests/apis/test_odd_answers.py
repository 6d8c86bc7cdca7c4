"""Answers with something odd anywhere in them, translated for each client API: the result is legal,
and hides what is to be hidden.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abridge.apis.api import Api
from abridge.apis.registry import APIS
from tests.end_to_end.mutations import DOCUMENTS, ODD, SECRET, changed, places
from tests.support.matrix import some
from tests.support.messages_checker import CHECKS
from tests.support.pipeline import translating
from tests.support.streams import frame
from tests.support.translated import read_events, turn_of


def test_calls_that_are_a_text_are_no_reasoning() -> None:
    _, _, chunks = DOCUMENTS["chat stream"]
    odd = changed(chunks, (6, "choices", 0, "delta", "tool_calls"), "x")
    as_sent, read = (
        turn_of(read_events("chat", b"".join(map(written, each)))) for each in (chunks, odd)
    )
    assert read.answer.raw == as_sent.answer.raw


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("client", APIS, ids=lambda api: api.name)
@settings(max_examples=some(100))
@given(data=st.data())
def test_an_odd_value_leaves_a_legal_result(name: str, client: Api, data: st.DataObject) -> None:
    _, stream, document = DOCUMENTS[name]
    odd = changed(document, data.draw(st.sampled_from(list(places(document)))), data.draw(ODD))
    upstream = name.split(maxsplit=1)[0]
    body = b"".join(map(written, odd if isinstance(odd, list) else [odd])) if stream else None
    read = written(odd)[6:] if body is None else body
    turn_of(read_events(upstream, read, streamed=stream))
    pipeline = translating(upstream, client, expose=data.draw(st.sampled_from(["summary", "none"])))
    out = pipeline.stream(read) if stream else pipeline.whole(read)
    assert SECRET.encode() not in out
    if not stream:
        assert isinstance(json.loads(out), dict)
    else:
        CHECKS[client.name](out)


def written(payload: Any) -> bytes:
    return frame(json.dumps(payload))
