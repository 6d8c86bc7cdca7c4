"""Blobs that were opened for an earlier request: found again as they would be opened."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("cryptography", reason="sealing needs the extra 'seal'")

from abridge.caches import OPENED_BLOB_BYTES, OPENED_BLOB_SECONDS
from abridge.core.envelope import Envelope
from abridge.errors import RequestError
from abridge.memory.cipher import Cipher, CompressedValue
from abridge.memory.opened_blobs import LARGEST_BLOB, OpenedBlob, OpenedBlobs
from tests.support.sealers import NEW, NOW, OLD, ring, sealer

PLACES = [b"call " + bytes([number] * 16) for number in range(2)]
OWNER = bytes(32)
THOUGHTS = [f"{number}: I recall the rule of odd numbers." for number in range(3)]
SIZE = len(THOUGHTS[0]) + 100

TERMS: list[dict[str, Any]] = [
    {},
    {"tenant": "bert"},
    {"tenant": None},
    {"upstream": "other"},
    {"api": "responses"},
    {"model": "thinker-2"},
    {"keys": ring(NEW, OLD)},
    {"keys": ring(NEW)},
    {"now": NOW + 100, "ttl": 50.0},
    {"limit": 2 * SIZE},
]
"""Who asks: the one who sealed, others, and the one who sealed under other conditions."""


def envelope(number: int) -> Envelope:
    return Envelope([{"reasoning": THOUGHTS[number], "n": [1e400, 1 << 70]}], "rs_1", PLACES[0])


BLOBS = [sealer().seal(envelope(number)) for number in range(len(THOUGHTS))]


@pytest.fixture
def decrypted(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What is decrypted from now on."""
    values: list[bytes] = []
    decrypt = Cipher.decrypt

    def watched(cipher: Cipher, data: bytes, bound: bytes) -> CompressedValue | None:
        values.append(data)
        return decrypt(cipher, data, bound)

    monkeypatch.setattr(Cipher, "decrypt", watched)
    return values


def test_a_blob_is_decrypted_for_the_first_of_its_requests_only(decrypted: list[bytes]) -> None:
    recent = OpenedBlobs()
    found = [sealer(recent=recent).open(BLOBS[0], "input", PLACES[0]) for _ in range(3)]
    assert [each and each.item_id for each in found] == ["rs_1"] * 3
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].reasoning[0]["reasoning"] == found[1].reasoning[0]["reasoning"] == THOUGHTS[0]
    assert found[0].reasoning[0] is not found[1].reasoning[0]
    assert len(decrypted) == 1


@pytest.mark.parametrize("terms", TERMS[1:7], ids=lambda terms: next(iter(terms)))
def test_what_one_has_opened_no_other_finds(terms: dict[str, Any], decrypted: list[bytes]) -> None:
    recent = OpenedBlobs()
    assert sealer(recent=recent).open(BLOBS[0], "input", PLACES[0])
    other = sealer(**{**terms, "recent": recent})
    assert (other.open(BLOBS[0], "input", PLACES[0]) is not None) == ("keys" in terms)
    assert len(decrypted) == 2


class Asked:
    """What sealers of many requests answer, and what they count."""

    def __init__(self, recent: OpenedBlobs | None) -> None:
        self._recent = recent

    def answer(self, terms: dict[str, Any], questions: list[tuple[str, bytes, str]]) -> list[Any]:
        asked = sealer(**terms, recent=self._recent)
        answers = [self._open(asked, *question) for question in questions]
        return [*answers, asked.opened, asked.dropped]

    def _open(self, asked: Any, blob: str, place: bytes | None, item: str) -> Any:
        try:
            return asked.open(blob, "input", place, item)
        except RequestError as error:
            return error.code


def damage(blob: str, where: int, letter: str) -> str:
    return blob[: where % len(blob)] + letter + blob[where % len(blob) + 1 :]


blobs = st.sampled_from(BLOBS)
questions = st.tuples(
    blobs | st.builds(damage, blobs, st.integers(0, 999), st.sampled_from("aB3_-=\ud800")),
    st.sampled_from([*PLACES, PLACES[0], None]),
    st.sampled_from(["", "rs_1", "rs_2"]),
)


@given(st.lists(st.tuples(st.sampled_from(TERMS), st.lists(questions, max_size=5)), max_size=6))
def test_a_blob_opened_before_gives_what_opening_it_gives(
    requests: list[tuple[dict[str, Any], list[tuple[str, bytes, str]]]],
) -> None:
    remembering = Asked(OpenedBlobs())
    for terms, asked in requests:
        assert remembering.answer(terms, asked) == Asked(None).answer(terms, asked)


def test_blobs_take_no_more_memory_than_their_ceiling() -> None:
    blobs, content = OpenedBlobs(), 4096
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(OPENED_BLOB_BYTES // content):
        blobs.add(OWNER, f"{number:01024}", opened(content))
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.9 * OPENED_BLOB_BYTES < blobs.size <= OPENED_BLOB_BYTES
    assert after - before < OPENED_BLOB_BYTES
    assert blobs.get(OWNER, f"{0:01024}") is None
    assert blobs.get(OWNER, f"{number:01024}") is not None


def test_a_large_blob_is_not_kept() -> None:
    blobs = OpenedBlobs()
    blobs.add(OWNER, "large", opened(LARGEST_BLOB))
    assert blobs.get(OWNER, "large") is None
    assert not blobs.size


def test_a_blob_is_kept_for_a_while_and_counted_once() -> None:
    now = 1000.0
    blobs = OpenedBlobs(time=lambda: now)
    for _ in range(2):
        blobs.add(OWNER, "first", opened(100))
    once = blobs.size
    now += OPENED_BLOB_SECONDS / 2
    blobs.add(OWNER, "later", opened(100))
    assert blobs.size == 2 * once
    assert blobs.get(OWNER, "first") is not None
    now += OPENED_BLOB_SECONDS / 2
    assert blobs.get(OWNER, "first") is None
    assert blobs.get(OWNER, "later") is not None
    blobs.add(OWNER, "third", opened(100))
    assert blobs.size == 2 * once


def opened(size: int) -> OpenedBlob:
    return OpenedBlob(bytes(size), int(NOW), OLD, bytes(16), bytes(32))
