"""The header with an upstream's key."""

from __future__ import annotations

import pytest

from abridge.apis.chat.api import CHAT
from abridge.apis.credentials import Header, credential_header, move_key
from abridge.apis.messages.api import MESSAGES
from abridge.apis.responses.api import RESPONSES
from abridge.providers.catalog import PROFILES


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("auto", (b"authorization", b"Bearer k")),
        ("anthropic", (b"x-api-key", b"k")),
        ("azure", (b"api-key", b"k")),
    ],
)
def test_a_key_goes_where_the_provider_looks_for_it(name: str, header: Header) -> None:
    assert credential_header(b"k", PROFILES[name]) == header


def test_a_providers_header_wins_over_its_apis() -> None:
    assert credential_header(b"k", PROFILES["auto"], MESSAGES.upstream) == (b"x-api-key", b"k")
    assert credential_header(b"k", PROFILES["azure"], MESSAGES.upstream) == (b"api-key", b"k")


@pytest.mark.parametrize(
    ("headers", "moved"),
    [
        ([(b"authorization", b"bearer  k ")], [(b"x-api-key", b"k")]),
        ([(b"authorization", b"Basic k")], [(b"authorization", b"Basic k")]),
        (
            [(b"authorization", b"Bearer k"), (b"x-api-key", b"own")],
            [(b"authorization", b"Bearer k"), (b"x-api-key", b"own")],
        ),
    ],
)
def test_a_clients_bearer_key_moves_to_the_header_that_upstream_reads(
    headers: list[Header], moved: list[Header]
) -> None:
    assert move_key(headers, PROFILES["auto"], MESSAGES.upstream, CHAT.upstream) == moved


@pytest.mark.parametrize(
    ("profile", "moved"),
    [("auto", (b"authorization", b"Bearer k")), ("azure", (b"api-key", b"k"))],
)
def test_a_messages_clients_key_moves_there_too(profile: str, moved: Header) -> None:
    headers = [(b"x-api-key", b"k"), (b"accept", b"*/*")]
    written = move_key(headers, PROFILES[profile], CHAT.upstream, MESSAGES.upstream)
    assert written == [moved, (b"accept", b"*/*")]


def test_a_header_that_is_no_key_of_the_clients_api_stays() -> None:
    headers = [(b"x-api-key", b"k")]
    assert move_key(headers, PROFILES["auto"], RESPONSES.upstream, CHAT.upstream) == headers


def test_a_bearer_key_stays_where_upstream_reads_it() -> None:
    headers = [(b"authorization", b"bearer k")]
    assert move_key(headers, PROFILES["auto"], CHAT.upstream, MESSAGES.upstream) == headers
