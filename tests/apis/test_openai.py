from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.apis.openai import MINT_MARK, CallIds, derived_id, is_minted, mint_id
from abridge.core.conversation import is_random_id

PREFIXES = ["resp_", "rs_", "msg_", "fc_", "call_", "chatcmpl-", "item_", "ctco_"]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_minted_id_has_openais_form_and_is_recognized(prefix: str) -> None:
    identity = mint_id(prefix)
    assert re.fullmatch(rf"{prefix}[0-9a-f]{{48}}", identity)
    assert is_minted(identity)
    assert is_random_id(identity)
    assert identity != mint_id(prefix)


def test_calls_of_one_answer_have_ids_of_their_own() -> None:
    ids = CallIds("call_", lambda prefix: f"{prefix}new")
    assert [ids.take(given) for given in ("a", "b", "a")] == ["a", "b", "call_new"]
    assert CallIds("call_", mint_id).take("") != CallIds("call_", mint_id).take("")


@given(st.binary(min_size=20, max_size=64))
def test_an_id_derived_from_a_digest_is_always_the_same(digest: bytes) -> None:
    assert derived_id("msg_", digest) == derived_id("msg_", digest[:20])
    assert is_minted(derived_id("msg_", digest))


@pytest.mark.parametrize(
    "identity",
    [
        "",
        "resp_1",
        "resp_67cb71b351908190a308f3859487620d06981a8637e6bc44",
        f"resp_{MINT_MARK}",
        f"resp_{MINT_MARK}{'0' * 39}",
        f"resp_{MINT_MARK}{'0' * 41}",
        f"resp_{MINT_MARK}{'g' * 40}",
        f"resp_0{MINT_MARK}{'0' * 39}",
        f"{MINT_MARK}{'0' * 40}",
        f"resp_{MINT_MARK}{'0' * 40}\n",
    ],
)
def test_other_ids_are_not_minted(identity: str) -> None:
    assert not is_minted(identity)
