"""`GET /models`: the shape that the client's headers ask for, whichever upstream has."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from tests.support.asgi import Call, call
from tests.support.deployments import FORMS, ORIGIN, PREFIX, Form, build_app
from tests.support.upstream import Answer, Upstream

OPENAIS = {
    "object": "list",
    "data": [{"id": "m", "object": "model", "created": 1_700_000_000, "owned_by": "vllm"}],
}
ANTHROPICS = {
    "data": [
        {
            "type": "model",
            "id": "claude",
            "display_name": "Claude",
            "created_at": "2023-11-14T22:13:20Z",
        }
    ],
    "has_more": True,
    "first_id": "claude",
    "last_id": "claude",
}
VERSION = {"anthropic-version": "2023-06-01"}


async def get(
    upstream: Upstream,
    path: str = "/v1/models",
    headers: dict[str, str] | None = None,
    form: Form = "sidecar",
    **tables: Any,
) -> Call:
    app = build_app(form, upstream, **tables)
    return await call(app, PREFIX[form] + path, b"", headers=headers or {}, method="GET")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "headers", [VERSION, {"x-api-key": "k"}, {**VERSION, "authorization": "Bearer k"}]
)
async def test_an_anthropic_client_gets_anthropics_shape(
    form: Form, headers: dict[str, str]
) -> None:
    answer = await get(Upstream(Answer.json(OPENAIS)), headers=headers, form=form)
    assert answer.json["has_more"] is False
    assert (answer.json["first_id"], answer.json["last_id"]) == ("m", "m")
    (model,) = answer.json["data"]
    assert model["type"] == "model"
    assert model["display_name"] == "m"
    assert model["created_at"] == "2023-11-14T22:13:20Z"
    assert model["owned_by"] == "vllm"  # what else upstream says of it is kept


@pytest.mark.parametrize("headers", [{}, {"x-api-key": "k", "authorization": "Bearer k"}])
async def test_any_other_client_gets_openais_shape(headers: dict[str, str]) -> None:
    upstream = Upstream(Answer.json(ANTHROPICS))
    messages = [{"base_url": f"{ORIGIN}/v1", "api": "messages", "profile": "anthropic"}]
    answer = await get(upstream, headers=headers, upstreams=messages)
    assert answer.json["object"] == "list"
    (model,) = answer.json["data"]
    assert (model["object"], model["created"], model["owned_by"]) == ("model", 1_700_000_000, "")
    assert upstream.requests[0].header("anthropic-version") == "2023-06-01"


@pytest.mark.parametrize(
    ("body", "headers", "api"),
    [
        (OPENAIS, {}, "same"),
        (OPENAIS, {}, "messages"),
        (ANTHROPICS, VERSION, "same"),
        (ANTHROPICS, VERSION, "messages"),
        ({"data": "odd"}, VERSION, "same"),
        ([1, 2], VERSION, "same"),
    ],
)
async def test_the_same_shape_stays_as_it_came(
    body: Any, headers: dict[str, str], api: str
) -> None:
    sent = json.dumps(body, indent=3).encode()
    upstream = Upstream(Answer([sent], headers={"content-type": "application/json", "etag": "x"}))
    entry = {"base_url": f"{ORIGIN}/v1", "api": api}
    answer = await get(upstream, headers=headers, upstreams=[entry])
    assert answer.data == sent
    assert answer.headers["etag"] == "x"


async def test_compression_of_a_list_that_needs_no_reading_passes() -> None:
    packed = gzip.compress(json.dumps(OPENAIS).encode())
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    upstream = Upstream(Answer([packed], headers=headers))
    answer = await get(upstream, headers={"accept-encoding": "gzip"})
    assert answer.data == packed
    assert upstream.requests[0].header("accept-encoding") == "gzip"


async def test_a_compressed_list_is_read_where_it_must_be() -> None:
    packed = gzip.compress(json.dumps(OPENAIS).encode())
    headers = {"content-type": "application/json", "content-encoding": "gzip", "etag": "x"}
    answer = await get(Upstream(Answer([packed], headers=headers)), headers=VERSION)
    assert answer.json["data"][0]["type"] == "model"
    assert not {"content-encoding", "etag"} & set(answer.headers)


async def test_one_model_is_described_in_the_clients_shape() -> None:
    upstream = Upstream(Answer.json({"id": "org/m", "object": "model", "created": None}))
    answer = await get(upstream, "/v1/models/org/m", VERSION)
    assert answer.json == {
        "type": "model",
        "id": "org/m",
        "display_name": "org/m",
        "created_at": "1970-01-01T00:00:00Z",
        "object": "model",
        "created": None,
    }


async def test_joined_lists_have_one_shape() -> None:
    upstream = Upstream(Answer.json(OPENAIS), Answer.json(ANTHROPICS))
    two = [
        {"name": "one", "base_url": f"{ORIGIN}/v1", "models": ["m"]},
        {"name": "two", "base_url": f"{ORIGIN}/v1", "models": ["claude"], "api": "messages"},
    ]
    answer = await get(upstream, headers=VERSION, upstreams=two)
    assert [model["type"] for model in answer.json["data"]] == ["model", "model"]
    upstream = Upstream(Answer.json(OPENAIS), Answer.json(ANTHROPICS))
    answer = await get(upstream, upstreams=two)
    assert [model["object"] for model in answer.json["data"]] == ["model", "model"]


async def test_an_empty_list_has_no_ends() -> None:
    answer = await get(Upstream(Answer.json({"object": "list", "data": []})), headers=VERSION)
    assert answer.json == {"data": [], "has_more": False, "first_id": None, "last_id": None}


async def test_parameters_for_pages_reach_upstream() -> None:
    upstream = Upstream(Answer.json(OPENAIS))
    app = build_app("sidecar", upstream)
    answer = await call(
        app, "/v1/models", b"", headers=VERSION, method="GET", query_string=b"limit=1000"
    )
    assert answer.json["has_more"] is False
    assert upstream.requests[0].query == b"limit=1000"


async def test_errors_of_upstream_pass() -> None:
    error = {"type": "error", "error": {"type": "authentication_error", "message": "no"}}
    answer = await get(Upstream(Answer.json(error, 401)), headers=VERSION)
    assert (answer.status, answer.json) == (401, error)


async def test_an_unknown_model_is_told_in_anthropics_shape() -> None:
    two = [{"name": name, "base_url": f"{ORIGIN}/v1", "models": [name]} for name in ("one", "two")]
    answer = await get(Upstream(), "/v1/models/three", VERSION, upstreams=two)
    assert answer.status == 404
    assert answer.json["type"] == "error"


class TestGemini:
    LISTED = {  # noqa: RUF012 -- never changed
        "models": [
            {"name": "models/gemini-3-flash", "displayName": "Gemini 3 Flash"},
            {"name": "models/gemini-embedding"},
        ]
    }
    ENTRY = {"api": "gemini", "base_url": f"{ORIGIN}/v1beta"}  # noqa: RUF012 -- same

    async def test_its_list_comes_in_openais_shape(self) -> None:
        upstream = Upstream(Answer.json(self.LISTED))
        key = {"authorization": "Bearer k"}
        answer = await get(upstream, headers=key, upstreams=[self.ENTRY])
        assert answer.json["object"] == "list"
        assert [model["id"] for model in answer.json["data"]] == [
            "gemini-3-flash",
            "gemini-embedding",
        ]
        assert all(model["object"] == "model" for model in answer.json["data"])
        (sent,) = upstream.requests
        assert sent.path == "/v1beta/models"
        assert (sent.header("x-goog-api-key"), sent.header("authorization")) == ("k", None)

    async def test_its_list_comes_in_anthropics_shape(self) -> None:
        answer = await get(
            Upstream(Answer.json(self.LISTED)), headers=VERSION, upstreams=[self.ENTRY]
        )
        model, _ = answer.json["data"]
        assert (model["type"], model["id"]) == ("model", "gemini-3-flash")
        assert model["display_name"] == "Gemini 3 Flash"

    async def test_one_model(self) -> None:
        upstream = Upstream(Answer.json(self.LISTED["models"][0]))
        answer = await get(upstream, "/v1/models/gemini-3-flash", upstreams=[self.ENTRY])
        assert (answer.json["object"], answer.json["id"]) == ("model", "gemini-3-flash")

    async def test_the_list_of_its_other_api_is_the_same(self) -> None:
        upstream = Upstream(Answer.json(self.LISTED))
        entry = {**self.ENTRY, "api": "interactions"}
        answer = await get(upstream, headers={"authorization": "Bearer k"}, upstreams=[entry])
        assert answer.json["data"][0]["id"] == "gemini-3-flash"
        assert upstream.requests[0].header("x-goog-api-key") == "k"

    async def test_its_list_is_joined_to_others(self) -> None:
        others = {"name": "other", "base_url": f"{ORIGIN}/v1", "models": ["m"]}
        upstream = Upstream(Answer.json(self.LISTED), Answer.json(OPENAIS))
        answer = await get(upstream, upstreams=[self.ENTRY, others])
        assert {"m", "gemini-3-flash"} <= {model["id"] for model in answer.json["data"]}


@pytest.mark.parametrize("form", FORMS)
async def test_a_name_for_every_model_is_none_for_their_list(form: Form) -> None:
    upstream = Upstream(Answer.json(OPENAIS))
    entry = {"base_url": f"{ORIGIN}/v1", "rename": {"*": "m"}}
    await get(upstream, form=form, upstreams=[entry])
    assert [request.path for request in upstream.requests] == ["/v1/models"]
