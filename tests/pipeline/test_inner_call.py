"""Answers that Abridge asks for itself, and keeps."""

from __future__ import annotations

from typing import Any

import pytest

from abridge.errors import EventTooLarge
from abridge.pipeline.inner_call import CapturedAnswer


def piece(body: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}


async def test_an_answer_as_large_as_may_be_is_kept_whole() -> None:
    answer = CapturedAnswer(4)
    await answer.take(piece(b"ab"))
    await answer.take(piece(b"cd", more=False))
    assert (bytes(answer.body), answer.ended.is_set()) == (b"abcd", True)


async def test_of_a_larger_one_no_more_is_kept_whatever_the_application_still_sends() -> None:
    answer = CapturedAnswer(4)
    await answer.take(piece(b"abc"))
    for rest in (piece(b"de"), piece(b"f"), piece(b"", more=False)):
        with pytest.raises(EventTooLarge):
            await answer.take(rest)
    assert (bytes(answer.body), answer.ended.is_set()) == (b"abc", False)
