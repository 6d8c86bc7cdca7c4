"""Test by which names a server may be addressed."""

from __future__ import annotations

import pytest

from abridge.http.hosts import is_allowed_host, is_loopback_name


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST:8400", "localhost.", "a.b.localhost:1"),
        *("127.0.0.1:8400", "10.1.2.3", "[::1]:8400", "[fd00::1]"),
        *("abridge.test", "Abridge.Test.:80", "one.intra.test:8400"),
    ],
)
def test_names_that_are_the_servers(host: str) -> None:
    assert is_allowed_host(host.encode(), ("Abridge.test", "*.intra.test"))


@pytest.mark.parametrize(
    "host",
    [
        *("", "evil.test", "evil.test:8400", "localhost.evil.test", "127.0.0.1.evil.test"),
        *("notlocalhost", "abridge.test.evil.test", "intra.test", "[evil.test]", "::1"),
    ],
)
def test_names_that_are_not(host: str) -> None:
    assert not is_allowed_host(host.encode(), ("abridge.test", "*.intra.test"))
    assert is_allowed_host(host.encode(), ("*",))


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        *(("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True)),
        *(("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("abridge.test", False)),  # noqa: S104 -- only names
    ],
)
def test_who_can_reach_a_listener(host: str, *, loopback: bool) -> None:
    assert is_loopback_name(host) is loopback
