"""Test what one client may hold of a budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.client_shares import ClientShares, client_name, client_of


def test_one_client_gets_its_share_and_others_the_rest() -> None:
    shares = ClientShares(total=10, share=6)
    assert shares.take("a", 6)
    assert not shares.take("a", 1)
    assert not shares.take("b", 5)
    assert shares.take("b", 4)
    assert not shares.take("c", 1)
    shares.give_back("a", 2)
    assert shares.take("c", 1)
    assert shares.take("a", 1)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 7)), max_size=40))
def test_what_was_taken_and_given_back_leaves_nothing(takes: list[tuple[str, int]]) -> None:
    shares = ClientShares(total=20, share=9)
    taken = [(client, amount) for client, amount in takes if shares.take(client, amount)]
    assert sum(amount for _, amount in taken) <= 20
    assert all(sum(n for other, n in taken if other == client) <= 9 for client, _ in taken)
    for client, amount in taken:
        shares.give_back(client, amount)
    assert vars(shares) == vars(ClientShares(total=20, share=9))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("", "unix:", False),
    ],
)
def test_an_ipv6_network_is_one_client(one: str, other: str, *, same: bool) -> None:
    assert (client_name(one) == client_name(other)) == same


def test_a_request_without_a_peer_has_a_client_too() -> None:
    assert client_of({"client": None}) == client_of({}) == ""
    assert client_of({"client": ("192.0.2.1", 80)}) == "192.0.2.1"


def test_what_is_held_still_counts_after_a_change_of_the_total() -> None:
    shares = ClientShares(10, 10)
    assert shares.take("anna", 8)
    shares.resize(12, 12)
    assert not shares.take("bert", 5)
    assert shares.take("bert", 4)
    shares.give_back("anna", 8)
    assert shares.take("bert", 8)
