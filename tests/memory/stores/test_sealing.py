"""How values are sealed that leave the process."""

from __future__ import annotations

import threading
from secrets import token_bytes

from abridge.memory.cipher import Cipher
from abridge.memory.stores.key_names import KeyNames
from abridge.memory.stores.sealing import THREAD_BYTES, ValueSealer
from tests.memory.stores.cases import RING

NAMES = [b"one", b"two"]


class WatchedCipher(Cipher):
    """Notes which of its work is done in the loop's own thread."""

    def __init__(self) -> None:
        super().__init__(RING)
        self.in_loop: list[tuple[str, bool]] = []

    def seal(self, clear: bytes, associated_data: bytes) -> bytes:
        self._note("seal")
        return super().seal(clear, associated_data)

    def unseal(self, data: bytes, associated_data: bytes) -> bytes | None:
        self._note("unseal")
        return super().unseal(data, associated_data)

    def _note(self, work: str) -> None:
        self.in_loop.append((work, threading.current_thread() is threading.main_thread()))


async def test_large_values_are_sealed_and_opened_in_a_thread() -> None:
    cipher = WatchedCipher()
    sealer = ValueSealer(cipher, KeyNames())
    values = [token_bytes(THREAD_BYTES // 2) for _ in NAMES]
    (small,) = await sealer.seal(NAMES[:1], [b"x"])
    large = await sealer.seal(NAMES, values)
    assert await sealer.open(NAMES[:1], [small]) == [b"x"]
    assert await sealer.open(NAMES, large) == values
    assert cipher.in_loop == [
        ("seal", True),
        *2 * [("seal", False)],
        ("unseal", True),
        *2 * [("unseal", False)],
    ]


async def test_a_value_opens_under_its_own_name_only() -> None:
    sealer = ValueSealer(Cipher(RING), KeyNames())
    one, two = await sealer.seal(NAMES, [b"1", b"2"])
    assert await sealer.open(NAMES, [one, two]) == [b"1", b"2"]
    assert await sealer.open(NAMES, [two, one]) == [None, None]
    assert await sealer.open(NAMES, [None, two]) == [None, b"2"]
