"""The endpoints that count tokens: what they are sent, and how they answer."""

from __future__ import annotations

import pytest

from abridge.apis.registry import UPSTREAM_APIS
from abridge.apis.token_counters import TOKEN_COUNTERS
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import Profile


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_each_profiles_endpoints_exist_in_an_api_that_it_has(profile: Profile) -> None:
    for name in profile.token_counters:
        assert TOKEN_COUNTERS[name].api in profile.apis
        assert TOKEN_COUNTERS[name].api in UPSTREAM_APIS


def test_an_endpoint_is_sent_the_fields_that_it_takes() -> None:
    chat = {"model": "m", "messages": [], "temperature": 1, "stream": True}
    assert TOKEN_COUNTERS["tokenize"].write(chat) == {
        "model": "m",
        "messages": [],
        "add_generation_prompt": True,
    }
    responses = {"model": "m", "input": "Hi", "store": False, "stream": True}
    assert TOKEN_COUNTERS["responses"].write(responses) == {"model": "m", "input": "Hi"}
    messages = {"model": "m", "messages": [], "context_management": {}}
    assert TOKEN_COUNTERS["messages"].write(messages) == messages


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b'{"count": 7, "max_model_len": 4096, "tokens": [1]}', 7),
        (b'{"count": true}', None),
        (b'{"count": "7"}', None),
        (b'{"tokens": [1]}', None),
        (b"[7]", None),
        (b"oops", None),
    ],
)
def test_the_count_is_read_if_it_is_one(body: bytes, count: int | None) -> None:
    assert TOKEN_COUNTERS["tokenize"].read(body) == count
