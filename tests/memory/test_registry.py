"""Opening the store that replicas share: invalid settings are refused at the start."""

from __future__ import annotations

import sys

import pytest

from abridge.config.loading import require_extra
from abridge.config.setting_types import STORE_SCHEMES
from abridge.errors import SettingsError
from abridge.memory.registry import BACKENDS, open_shared_store
from tests.memory.stores.cases import RING, TTL

ADDRESSES = [
    "redis://localhost",
    "redis://anna:sesame@[::1]:6380/3",
    "redis://localhost/",
    "redis://localhost/?db=1",
    "rediss://cache.example:6380?ssl_ca_certs=/etc/ca.pem",
    "valkey://cache.example",
    "valkeys://cache.example/1?ssl_cert_reqs=required",
    "unix:///run/redis.sock?db=2",
    "redis-sentinel://one,two:26380/service",
    "redis-sentinel://anna:sesame@10.0.0.1:26379/service/3?sentinel_password=sesame",
    "redis-sentinel://[::1]:26379/service",
    "redis+cluster://one,two:6380",
    "redis+cluster://one,[::1]:6380",
    "redis+cluster://anna:sesame@10.0.0.1/",
]

NO_ADDRESSES = [
    "",
    "memory",
    "http://localhost:6379",
    "valkeyss://localhost",
    "localhost:6379",
    "redis://localhost:many",
    "redis://localhost:sesame:6379",
    "redis://anna:123/sesame@localhost",
    "redis://localhost/sesame",
    "redis://localhost?sesame=1",
    "redis://localhost?decode_responses=sesame",
    "redis://localhost?socket_timeout=100",
    "redis://localhost?connection_class=sesame",
    "redis://localhost?ssl_ca_certs=sesame",
    "redis://localhost?db=sesame",
    "rediss://localhost?ssl_cert_reqs=sesame",
    "redis-sentinel://localhost",
    "redis-sentinel:///service",
    "redis-sentinel://localhost,/service",
    "redis-sentinel://localhost:sesame/service",
    "redis-sentinel://localhost/service/sesame",
    "redis-sentinel://localhost/service?db=sesame",
    "redis-sentinel://anna:123/sesame@localhost",
    "redis-sentinel://[sesame/service",
    "redis+cluster://localhost/sesame",
    "redis+cluster://localhost,",
    "redis+cluster://localhost?db=1",
    "redis+cluster://anna:123/sesame@localhost",
]


@pytest.mark.parametrize("url", ADDRESSES)
async def test_valid_addresses_open(url: str) -> None:
    store = open_shared_store(url, RING, ttl=TTL)
    assert store.size is None
    await store.aclose()


def test_there_is_a_backend_for_each_scheme_and_for_no_other() -> None:
    assert set(BACKENDS) == set(STORE_SCHEMES)


@pytest.mark.parametrize(
    "url", ["memcached://anna:sesame@localhost", "sesame", "REDIS://localhost"]
)
def test_an_unknown_scheme_is_refused_with_those_that_are_known(url: str) -> None:
    with pytest.raises(
        SettingsError,
        match=r"redis, rediss, redis-sentinel, redis\+cluster, valkey, valkeys, unix$",
    ) as raised:
        open_shared_store(url, RING, ttl=TTL)
    assert "sesame" not in str(raised.value)


@pytest.mark.parametrize("url", NO_ADDRESSES)
def test_invalid_addresses_are_refused_without_repeating_them(url: str) -> None:
    with pytest.raises(SettingsError, match=r"^history\.store: takes an address such as") as raised:
        open_shared_store(url, RING, ttl=TTL)
    assert "sesame" not in str(raised.value)
    assert "sesame" not in repr(raised.value.__cause__)


@pytest.mark.parametrize(
    ("package", "who"),
    [("redis.asyncio", "stores.redis_client"), ("cryptography.exceptions", "cipher")],
)
def test_a_missing_package_is_named(
    package: str, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"abridge.memory.{who}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SettingsError) as raised:
        open_shared_store("redis://localhost", RING, ttl=TTL)
    name = package.partition(".")[0]
    assert str(raised.value) == (
        f"history.store: needs the package {name}, which comes with asgi-abridge[redis]"
    )


def test_an_installed_package_is_not_missed() -> None:
    with require_extra("redis", "history.store"):
        import redis
    assert redis
