"""Tenants: who sends a request."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from starlette.types import Scope

from abridge.memory.keys import Key, Keyring
from abridge.memory.tenants import keyed_digest, tenant_tag, tenant_tags

KEY = b"k" * 32


def scope(client: str = "127.0.0.1", server: str = "127.0.0.1", **headers: str) -> Scope:
    given = [(key.replace("_", "-").encode(), value.encode()) for key, value in headers.items()]
    return {"headers": given, "client": (client, 1), "server": (server, 2)}


def tenant(rule: str = "credential", anonymous: Any = "loopback", **headers: str) -> bytes | None:
    return tenant_tag(scope(**headers), KEY, rule, anonymous=anonymous)


def test_a_tag_depends_on_the_whole_credential() -> None:
    mine = tenant(authorization="Bearer sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1")
    assert mine == tenant(authorization="Bearer sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1")
    assert mine != tenant(authorization="Bearer sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa2")
    assert mine != tenant_tag(
        scope(authorization="Bearer sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1"),
        b"another key",
        "credential",
        anonymous=True,
    )


@pytest.mark.parametrize("name", ["authorization", "api_key", "x_api_key", "x_goog_api_key"])
def test_each_credential_header_identifies_a_tenant(name: str) -> None:
    tags = {
        tenant(**{other: "secret-1"})
        for other in ("authorization", "api_key", "x_api_key", "x_goog_api_key")
    }
    assert len(tags) == 4
    assert tenant(**{name: "secret-1"}) in tags
    assert tenant(**{"authorization": "a-secret", "api_key": "another", name: "x"}) not in tags


GATEWAY_KEYS = (
    *("x_portkey_api_key", "helicone_auth", "cf_aig_authorization", "x_litellm_api_key"),
    "x_portkey_aws_secret_access_key",
)
ADDRESSES = ("x_portkey_custom_host", "helicone_target_url", "helicone_openai_api_base")


@pytest.mark.parametrize("name", GATEWAY_KEYS)
def test_a_gateways_key_identifies_a_tenant(name: str) -> None:
    one = tenant(anonymous=False, **{name: "Bearer one"})
    assert one is not None
    assert one != tenant(anonymous=False, **{name: "Bearer two"})
    assert one != tenant(authorization="Bearer one", **{name: "Bearer one"})


@pytest.mark.parametrize("name", ADDRESSES)
def test_a_gateways_address_is_part_of_a_tenant_and_makes_none(name: str) -> None:
    alone, moved = tenant(authorization="k"), tenant(authorization="k", **{name: "https://a.test"})
    assert alone != moved
    assert moved != tenant(authorization="k", **{name: "https://b.test"})
    assert tenant(anonymous=False, **{name: "https://a.test"}) is None
    assert tenant(**{name: "https://a.test"}) not in (tenant(), tenant(**{name: "https://b.test"}))


def test_what_else_a_gateway_is_told_is_no_part_of_it() -> None:
    told = {"cf_aig_cache_key": "1", "helicone_session_id": "2", "x_litellm_tags": "3"}
    assert tenant(authorization="k", **told) == tenant(authorization="k")


@pytest.mark.parametrize(
    "dummy", ["Bearer EMPTY", "Bearer dummy", "none", "Bearer sk-no-key-required", "Bearer ", ""]
)
def test_placeholder_keys_are_no_credential(dummy: str) -> None:
    assert tenant(authorization=dummy, anonymous=False) is None


def test_without_a_credential_the_setting_decides() -> None:
    assert tenant(anonymous=False) is None
    assert tenant(anonymous=True) is not None
    assert tenant(anonymous="loopback") == tenant(anonymous=True)


@pytest.mark.parametrize(
    "away",
    [
        scope(client="10.0.0.7"),
        scope(server="10.0.0.7"),
        scope(x_forwarded_for="1.2.3.4"),
        scope(forwarded="for=1.2.3.4"),
        {"headers": [], "client": None, "server": None},
        {"headers": []},
        {"headers": [], "client": ("unix", None), "server": ("/run/sock", None)},
    ],
)
def test_loopback_means_both_ends_and_no_proxy(away: Scope) -> None:
    assert tenant_tag(away, KEY, "credential", anonymous="loopback") is None


def test_a_configured_header_names_the_tenant() -> None:
    one = tenant("header:X-User", x_user="anna", authorization="Bearer rotating-1")
    assert one == tenant("header:X-User", x_user="anna", authorization="Bearer rotating-2")
    assert one != tenant("header:X-User", x_user="bert", authorization="Bearer rotating-1")
    assert tenant("header:X-User", anonymous=False, authorization="Bearer x") is None
    assert tenant("header:X-User", anonymous=False, x_user=" ") is None
    assert tenant("header:X-User", x_user="token") != tenant("header:X-User", x_user="empty")


def test_a_callable_names_the_tenant() -> None:
    def named(scope: Scope) -> str | None:
        return scope.get("user")

    anna = tenant_tag({**scope(), "user": "anna"}, KEY, named, anonymous="loopback")
    assert anna == tenant_tag({**scope(x_api_key="x"), "user": "anna"}, KEY, named, anonymous=False)
    assert anna != tenant_tag({**scope(), "user": "bert"}, KEY, named, anonymous="loopback")
    for nobody in ("", None):
        by_nobody = {**scope(authorization="Bearer x"), "user": nobody}
        assert tenant_tag(by_nobody, KEY, named, anonymous="loopback") is None
    assert anna not in {tenant(authorization="anna"), tenant("header:named", named="anna")}


@pytest.mark.parametrize("name", [7, 0, b"anna", ["anna"]])
def test_a_callable_that_names_the_tenant_by_no_text_is_told_so(name: Any) -> None:
    """Nor is a user whose number is zero taken for nobody."""
    with pytest.raises(TypeError, match=f"tenant: returned {type(name).__name__}; must return"):
        tenant_tag(scope(), KEY, lambda _: name, anonymous=True)


def test_a_tenant_has_a_tag_under_each_key() -> None:
    ring = Keyring((Key.random(), replace(Key.random(), id="old")))
    tags = tenant_tags(scope(authorization="Bearer x"), ring, "credential", anonymous=False)
    assert tags is not None
    assert list(tags) == ["process", "old"]
    assert len(set(tags.values())) == 2
    assert tenant_tags(scope(), ring, "credential", anonymous=False) is None


def test_parts_split_elsewhere_give_another_digest() -> None:
    assert keyed_digest(KEY, b"ab", b"c") != keyed_digest(KEY, b"a", b"bc")
