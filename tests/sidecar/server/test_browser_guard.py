"""Web sites that have a visitor's browser send requests to a sidecar, and clients that are none."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from abridge.config.tables import ServerSettings
from abridge.sidecar.server.browser_guard import BrowserGuard
from tests.support.asgi import Call, call
from tests.support.servers import serve
from tests.support.sidecar import client, sidecar
from tests.support.streams import completion
from tests.support.upstream import Answer, Upstream

CHAT = "/v1/chat/completions"
BODY = {"model": "m", "messages": []}
JSON = {"content-type": "application/json"}
SITE = "https://evil.test"
FRIEND = "https://app.example.com"


async def send(
    headers: dict[str, str], path: str = CHAT, method: str = "POST", **more: Any
) -> Call:
    """Send a request to a guarded app that answers "ok"."""
    app = Upstream(Answer([b"ok"], headers={"access-control-allow-origin": "*"}))
    refused: list[str] = []
    guard = BrowserGuard(app, ServerSettings(**more), refused.append)
    answer = await call(guard, path, BODY, {"host": "localhost:8400", **headers}, method=method)
    assert refused == ([] if app.requests else [answer.json["error"]["code"]])
    return answer


class TestHosts:
    @pytest.mark.parametrize("path", [CHAT, "/v1/models", "/abridge/healthz"])
    async def test_a_name_that_was_made_to_point_here_reaches_nothing(self, path: str) -> None:
        answer = await send({"host": "evil.test:8400"}, path)
        assert (answer.status, answer.json["error"]["code"]) == (421, "misdirected_request")
        assert "server.allowed_hosts" in answer.json["error"]["message"]

    @pytest.mark.parametrize(
        ("listening", "allowed", "host", "status"),
        [
            ("127.0.0.1", None, "127.0.0.1:8400", 200),
            ("::1", None, "evil.test", 421),
            ("localhost", None, "abridge.test", 421),
            ("0.0.0.0", None, "abridge.default.svc:8400", 200),  # noqa: S104 -- only a setting
            ("0.0.0.0", ["abridge.*"], "abridge.default.svc:8400", 200),  # noqa: S104 -- only a setting
            ("0.0.0.0", ["abridge.*"], "10.1.2.3:8400", 200),  # noqa: S104 -- only a setting
            ("0.0.0.0", ["abridge.*"], "evil.test", 421),  # noqa: S104 -- only a setting
            ("127.0.0.1", ["*"], "evil.test", 200),
            ("127.0.0.1", None, "", 421),
        ],
    )
    async def test_which_names_are_allowed(
        self, listening: str, allowed: list[str] | None, host: str, status: int
    ) -> None:
        answer = await send({"host": host}, host=listening, allowed_hosts=allowed)
        assert answer.status == status

    async def test_a_probe_that_names_no_host_is_answered(self) -> None:
        app = Upstream(Answer([b"ok"]))
        guard = BrowserGuard(app, ServerSettings())
        assert (await call(guard, "/abridge/healthz", b"", method="GET")).status == 200


class TestOrigins:
    @pytest.mark.parametrize(
        "headers",
        [
            {"sec-fetch-site": "cross-site", "origin": SITE},
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
            {"origin": SITE},
            {"origin": "null"},
            {"origin": "http://localhost:3000"},
            {"origin": "http://localhost:8400.evil.test"},
        ],
    )
    @pytest.mark.parametrize("method", ["POST", "GET", "OPTIONS", "DELETE"])
    async def test_other_sites_are_refused(self, headers: dict[str, str], method: str) -> None:
        answer = await send(headers, method=method)
        assert (answer.status, answer.json["error"]["code"]) == (403, "cross_site_request")
        assert "access-control-allow-origin" not in answer.headers

    @pytest.mark.parametrize(
        "headers",
        [
            {},
            {"sec-fetch-site": "same-origin", "origin": "http://localhost:8400"},
            {"sec-fetch-site": "same-origin", "origin": "https://behind.a.proxy"},
            {"sec-fetch-site": "same-site", "origin": "http://localhost:3000"},
            {"sec-fetch-site": "none"},
            {"origin": "http://localhost:8400"},
        ],
    )
    async def test_clients_and_the_page_itself_are_served(self, headers: dict[str, str]) -> None:
        assert (await send(headers)).data == b"ok"

    @pytest.mark.parametrize("origin", ["http://localhost:8400", FRIEND])
    async def test_upstream_does_not_judge_the_origin_again(self, origin: str) -> None:
        app = Upstream(Answer([b"ok"]))
        guard = BrowserGuard(app, ServerSettings(allowed_origins=(FRIEND,)))
        headers = {"host": "localhost:8400", "origin": origin}
        assert (await call(guard, CHAT, BODY, headers)).status == 200
        assert app.requests[0].header("origin") is None

    async def test_a_link_to_the_page_may_be_anywhere(self) -> None:
        link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
        opened = await send({**link, "sec-fetch-dest": "document"}, "/abridge", "GET")
        framed = await send({**link, "sec-fetch-dest": "iframe"}, "/abridge", "GET")
        form = await send({**link, "sec-fetch-dest": "document"}, "/abridge", "POST")
        assert (opened.status, framed.status, form.status) == (200, 403, 403)

    @pytest.mark.parametrize("glob", [FRIEND, "https://*.example.com", "*"])
    async def test_the_settings_let_sites_in_and_read_the_answers(self, glob: str) -> None:
        headers = {"sec-fetch-site": "cross-site", "origin": FRIEND}
        answer = await send(headers, allowed_origins=[glob])
        assert (answer.status, answer.data) == (200, b"ok")
        assert answer.headers["access-control-allow-origin"] == FRIEND
        other = await send(
            {**headers, "origin": "https://example.com.evil.test"}, allowed_origins=[FRIEND]
        )
        assert other.status == 403

    async def test_a_preflight_is_answered_for_them(self) -> None:
        app = Upstream(Answer([b"no"]))
        guard = BrowserGuard(app, ServerSettings(allowed_origins=(FRIEND,)))
        asking = {
            "host": "localhost",
            "origin": FRIEND,
            "sec-fetch-site": "cross-site",
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization,content-type,x-abridge-summary",
        }
        answer = await call(guard, CHAT, b"", asking, method="OPTIONS")
        assert (answer.status, app.requests) == (200, [])
        assert answer.headers["access-control-allow-origin"] == FRIEND
        assert "authorization" in answer.headers["access-control-allow-headers"]


class TestContentTypes:
    @pytest.mark.parametrize("path", [CHAT, "/v1/responses", "//v1/x/../responses"])
    @pytest.mark.parametrize(
        "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
    )
    async def test_what_a_form_can_send_is_no_request_to_a_model(
        self, kind: str, path: str
    ) -> None:
        answer = await send({"content-type": kind}, path)
        assert (answer.status, answer.json["error"]["param"]) == (415, "content-type")

    @pytest.mark.parametrize(
        "kind", ["application/json", "Application/JSON; charset=utf-8", "application/x+json"]
    )
    async def test_json_is(self, kind: str) -> None:
        assert (await send({"content-type": kind})).status == 200

    async def test_other_endpoints_take_what_they_take(self) -> None:
        upload = {"content-type": "multipart/form-data; boundary=x"}
        assert (await send(upload, "/v1/audio/transcriptions")).status == 200


ATTACKS = {
    "a form": {"content-type": "text/plain", "origin": SITE},
    "a script": {**JSON, "origin": SITE, "sec-fetch-site": "cross-site"},
    "a name": {**JSON, "host": "evil.test", "sec-fetch-site": "same-origin"},
}


@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_sidecar_is_guarded(attack: str) -> None:
    upstream = Upstream(Answer.json(completion({"content": "Hi"})))
    async with (
        serve(upstream) as url,
        sidecar("--upstream", f"{url}/v1", "--page") as running,
        client() as session,
    ):
        body = json.dumps(BODY)

        async def post(headers: dict[str, str]) -> httpx.Response:
            return await session.post(f"{running.url}{CHAT}", content=body, headers=headers)

        refused = await post(ATTACKS[attack])
        assert refused.status_code in (403, 421)
        assert not upstream.requests
        metrics = await session.get(running.metrics)
        code = refused.json()["error"]["code"]
        assert f'abridge_refusals_total{{code="{code}"}} 1.0' in metrics.text
        assert (await post(JSON)).status_code == 200
        page = {"host": "evil.test"} if attack == "a name" else {}
        opened = await session.get(f"{running.url}/abridge", headers=page)
        assert opened.status_code == (421 if page else 200)


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_the_admin_port_is_guarded(workers: str) -> None:
    flags = ("--upstream", "http://127.0.0.1:9/v1", "--admin-port", "0", "--workers", workers)
    async with sidecar(*flags, ABRIDGE_HISTORY__STORE="none") as running, client() as session:
        for path in ("/metrics", "/healthz"):
            assert (await session.get(f"{running.admin}{path}")).status_code == 200
            renamed = await session.get(f"{running.admin}{path}", headers={"host": "evil.test"})
            assert renamed.status_code == 421
