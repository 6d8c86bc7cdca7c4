"""Test the review by a moderation endpoint."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.config.review import ReviewSettings
from abridge.errors import SummarizerError
from abridge.summarizers.moderation import MAX_BYTES, Moderation, is_flagged

BASE = "http://guard.example/v1"
PART = "**Adding up**\n\nI add the numbers."
PASSED = {"id": "modr-1", "model": "omni", "results": [{"flagged": False, "categories": {}}]}
FLAGGED = {"id": "modr-1", "model": "omni", "results": [{"flagged": True, "categories": {}}]}


class Endpoint(httpx.MockTransport):
    """Answers every request alike, or raises; `requests` are those received."""

    def __init__(self, answer: Any, status: int = 200) -> None:
        self.requests: list[httpx.Request] = []
        self.closed = 0

        def handle(request: httpx.Request) -> httpx.Response:
            self.requests.append(request)
            if isinstance(answer, Exception):
                raise answer
            if isinstance(answer, bytes):
                return httpx.Response(status, content=answer)
            if isinstance(answer, httpx.AsyncByteStream):
                return httpx.Response(status, stream=answer)
            return httpx.Response(status, json=answer)

        super().__init__(handle)

    async def aclose(self) -> None:
        self.closed += 1


class Body(httpx.AsyncByteStream):
    """A body that grows without end, or breaks off."""

    def __init__(self, *pieces: bytes | Exception) -> None:
        self.pieces = pieces
        self.read = 0
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            for piece in self.pieces:
                if isinstance(piece, Exception):
                    raise piece
                self.read += len(piece)
                yield piece

    async def aclose(self) -> None:
        self.closed = True


def moderation(endpoint: Endpoint, key: str | None = None, **more: Any) -> Moderation:
    settings = ReviewSettings(kind="moderations", base_url=BASE, **more)
    return Moderation(settings, endpoint, key)


async def failure(answer: Any, status: int = 200) -> str:
    with pytest.raises(SummarizerError) as failed:
        await moderation(Endpoint(answer, status))(PART)
    assert PART not in str(failed.value)
    return str(failed.value)


async def test_a_part_is_sent_whole_with_the_model_and_the_key() -> None:
    endpoint = Endpoint(PASSED)
    assert await moderation(endpoint, "sk-1", model="omni")(PART) == PART
    (request,) = endpoint.requests
    assert (request.method, str(request.url)) == ("POST", f"{BASE}/moderations")
    assert request.headers["authorization"] == "Bearer sk-1"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["accept-encoding"] == "identity"
    assert json.loads(request.content) == {"model": "omni", "input": PART}


async def test_without_a_model_and_a_key_the_server_decides() -> None:
    endpoint = Endpoint(PASSED)
    await moderation(endpoint)(PART)
    (request,) = endpoint.requests
    assert "authorization" not in request.headers
    assert json.loads(request.content) == {"input": PART}


async def test_half_a_character_keeps_no_part_from_being_checked() -> None:
    endpoint = Endpoint(PASSED)
    part = "half \ud800, in two deltas \ud83d" + "\ude00"
    assert await moderation(endpoint)(part) == part
    assert (
        json.loads(endpoint.requests[0].content)["input"] == "half \ufffd, in two deltas \U0001f600"
    )


async def test_a_flagged_part_is_withheld() -> None:
    assert await moderation(Endpoint(FLAGGED))(PART) is None


@pytest.mark.parametrize("status", [301, 400, 401, 429, 500, 503])
async def test_another_status_is_no_verdict(status: int) -> None:
    assert (
        await failure(PASSED, status) == f"The moderation endpoint answered with status {status}."
    )


@pytest.mark.parametrize(
    "error", [httpx.ConnectError("refused by secret.example"), httpx.ReadError("broke off")]
)
async def test_a_call_that_breaks_off_is_no_verdict(error: httpx.TransportError) -> None:
    message = await failure(error)
    assert message == f"The moderation endpoint gave no complete answer ({type(error).__name__})."


async def test_a_body_that_breaks_off_is_no_verdict() -> None:
    body = Body(b'{"results": [', httpx.ReadError("gone"))
    assert "gave no complete answer" in await failure(body)
    assert body.closed


@pytest.mark.parametrize("error", [httpx.ConnectTimeout("slow"), httpx.ReadTimeout("slow")])
async def test_one_that_takes_too_long_is_told_apart(error: httpx.TimeoutException) -> None:
    with pytest.raises(TimeoutError):
        await moderation(Endpoint(error))(PART)


async def test_a_body_is_read_up_to_a_limit() -> None:
    body = Body(b" " * 1000)
    assert "more than" in await failure(body)
    assert body.read <= MAX_BYTES + 1000
    assert body.closed


async def test_closing_it_closes_its_connections() -> None:
    endpoint = Endpoint(PASSED)
    await moderation(endpoint).aclose()
    assert endpoint.closed == 1


CATEGORIES = {"violence": True, "pii": False}


@pytest.mark.parametrize(
    ("results", "flagged"),
    [
        ([{"flagged": False}], False),
        ([{"flagged": True}], True),
        ([{"flagged": False}, {"flagged": True}], True),
        ([{"flagged": False}, {"flagged": False}], False),
        ([{"flagged": True}, "odd"], True),
        ([{"flagged": False, "categories": CATEGORIES}], False),
        ([{"flagged": True, "categories": {"violence": False}}], True),
        ([{"categories": CATEGORIES, "category_scores": {}}], True),
        ([{"categories": {"violence": False, "pii": False}}], False),
        ([{"categories": {"illicit": None}}], False),
    ],
)
def test_any_result_flags(results: Any, *, flagged: bool) -> None:
    assert is_flagged(json.dumps({"results": results}).encode()) is flagged


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no",
        b"[]",
        b"{}",
        b'{"results": null}',
        b'{"results": {}}',
        b'{"results": []}',
        b'{"results": [null]}',
        b'{"results": [{}]}',
        b'{"results": [{"categories": {}}]}',
        b'{"results": [{"categories": {"a": "true"}}]}',
        b'{"results": [{"categories": {"a": false, "b": 1}}]}',
        b'{"results": [{"flagged": "no"}]}',
        b'{"results": [{"flagged": 0}]}',
        b'{"results": [{"flagged": false}, {}]}',
        b'{"error": {"message": "Later."}}',
        b'{"results": [{"flagged": false}]',
    ],
)
def test_what_does_not_say_is_no_verdict(body: bytes) -> None:
    with pytest.raises(SummarizerError, match="without a verdict"):
        is_flagged(body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["results", "flagged", "categories", "a"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(JSON)
def test_nothing_passes_that_is_flagged_or_does_not_say(answer: Any) -> None:
    try:
        flagged = is_flagged(json.dumps(answer).encode())
    except SummarizerError:
        return
    results = answer["results"]
    assert results
    if not flagged:
        assert all(result.get("flagged") in (False, None) for result in results)
        assert not any(
            value is True
            for result in results
            if result.get("flagged") is None
            for value in result["categories"].values()
        )
