"""The headers of a request describe the body that the application receives."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from tests.support.asgi import call
from tests.support.deployments import FORMS, PREFIX, Form, build_app
from tests.support.streams import chat_stream
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, ReceivedRequest, Upstream

PLAIN: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
ASKING = {**PLAIN, "reasoning": {"summary": "auto"}}
DIGESTS = {
    "content-digest": "sha-256=:AAAA:",
    "repr-digest": "sha-256=:AAAA:",
    "digest": "sha-256=AAAA",
    "content-md5": "AAAA",
}


async def forward(form: Form, data: bytes, headers: dict[str, str], **tables: Any) -> Any:
    upstream = Upstream(Answer(chat_stream("", "Hello.")))
    app = build_app(form, upstream, writer=Scripted(), **tables)
    await call(app, f"{PREFIX[form]}/v1/chat/completions", data, headers)
    return upstream.requests[0]


def names(request: ReceivedRequest) -> set[str]:
    return {name.decode() for name, _ in request.headers}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("body", "tables"),
    [
        pytest.param(ASKING, {}, id="engaged"),
        pytest.param(PLAIN, {"upstreams": [{"effort": "low"}]}, id="not engaged"),
    ],
)
async def test_a_changed_body_has_no_digest_of_the_old_one(
    form: Form, body: dict[str, Any], tables: dict[str, Any]
) -> None:
    if form != "mounted" and tables:
        tables = {"upstreams": [{**tables["upstreams"][0], "base_url": "http://upstream.test/v1"}]}
    request = await forward(form, json.dumps(body).encode(), DIGESTS, **tables)
    assert request.json != body
    assert names(request).isdisjoint(DIGESTS)
    assert request.header("content-length") == str(len(request.body))


@pytest.mark.parametrize("default", ["auto", "off"])
async def test_an_unchanged_body_keeps_its_digest(default: str) -> None:
    data = json.dumps(PLAIN).encode()
    request = await forward("mounted", data, DIGESTS, summary={"default": default})
    assert request.body == data
    assert names(request) >= set(DIGESTS)


async def test_a_decoded_body_has_no_digest_of_the_encoded_one() -> None:
    data = json.dumps(PLAIN).encode()
    headers = {**DIGESTS, "content-encoding": "gzip"}
    request = await forward("mounted", gzip.compress(data), headers, summary={"default": "auto"})
    assert request.body == data
    assert names(request).isdisjoint({*DIGESTS, "content-encoding"})


@pytest.mark.parametrize("body", [ASKING, PLAIN])
async def test_a_whole_body_is_framed_by_its_length_alone(body: dict[str, Any]) -> None:
    headers = {"transfer-encoding": "chunked"}
    data = json.dumps(body).encode()
    request = await forward("mounted", data, headers, summary={"default": "auto"})
    assert "transfer-encoding" not in names(request)
    assert request.header("content-length") == str(len(request.body))
