"""Keys, as they are written in settings."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode

import pytest

from abridge.memory.keys import Keyring

ROOT = bytes(range(200, 232))
WRITTEN = b64encode(ROOT).decode()


def test_each_use_has_its_own_key() -> None:
    key = Keyring.parse(f"a:{WRITTEN}").primary
    assert len({ROOT, key.seal, key.tenant, key.store}) == 4
    assert key == Keyring.parse(f" a:{urlsafe_b64encode(ROOT).decode()} ,").primary


def test_the_first_key_writes_and_all_are_found() -> None:
    ring = Keyring.parse(f"b:{b64encode(bytes(32)).decode()},a:{WRITTEN}")
    assert ring.primary.id == "b"
    assert ring.get("a") == Keyring.parse(f"a:{WRITTEN}").primary
    assert ring.get("c") is None
    assert ring.configured
    assert not Keyring.random().configured
    assert Keyring.random() != Keyring.random()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "holds no key"),
        (" , ", "holds no key"),
        (WRITTEN, "key 1 is not written id:base64"),
        (f":{WRITTEN}", "key 1 must have an id"),
        (f"a b:{WRITTEN}", "key 1 must have an id"),
        (f"a:{WRITTEN},b:???", "key 2 is not valid base64"),
        ("a:c2VjcmV0", "key 1 has 6 bytes; must have 32"),
        (f"a:{WRITTEN},a:{WRITTEN}", "the same id"),
    ],
)
def test_invalid_keys_are_refused_without_repeating_them(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as raised:
        Keyring.parse(text)
    assert WRITTEN not in str(raised.value)
    assert "c2VjcmV0" not in str(raised.value)


def test_a_key_is_never_printed() -> None:
    ring = Keyring.parse(f"a:{WRITTEN}")
    assert repr(ring.primary.seal) not in repr(ring)
