"""What is served for the page: to whom, with what headers, and only where it is wanted."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp

from abridge.sidecar.page.page import SECURITY_HEADERS, Page
from tests.support.asgi import Call, call
from tests.support.deployments import build_app
from tests.support.streams import THOUGHT, message_item, reasoning_item, responses_stream
from tests.support.upstream import Answer, Upstream

FILES = {
    file.name: file.read_bytes()
    for file in files("abridge.sidecar.page").joinpath("files").iterdir()
}
SOURCE = Path(__file__).parents[3] / "middleware/abridge/sidecar/page/files"
SCRIPTS = [name for name in FILES if name.endswith(".js")]


def sidecar(upstream: Upstream | None = None, *, page: bool = True, **tables: Any) -> ASGIApp:
    upstream = upstream or Upstream(Answer.json({"upstream": True}))
    return build_app("sidecar", upstream, server={"page": page}, **tables)


async def get(app: ASGIApp, path: str, host: str = "127.0.0.1:8400", **more: Any) -> Call:
    return await call(app, path, b"", {"host": host}, method="GET", **more)


class TestOff:
    @pytest.mark.parametrize("path", ["/abridge", "/abridge/exchanges", "/abridge/page/page.js"])
    async def test_its_paths_are_upstreams(self, path: str) -> None:
        upstream = Upstream(Answer.json({"upstream": True}))
        assert (await get(sidecar(upstream, page=False), path)).json == {"upstream": True}
        assert upstream.requests[0].path == path

    async def test_there_is_no_page_by_default(self) -> None:
        app = build_app("sidecar", Upstream(Answer.json({"upstream": True})))
        assert (await get(app, "/abridge")).json == {"upstream": True}


class TestServed:
    @pytest.mark.parametrize("path", ["/abridge", "/abridge/exchanges", "/abridge/page/none.js"])
    async def test_every_answer_is_fenced(self, path: str) -> None:
        sent = await get(sidecar(), path)
        assert {name: sent.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS
        policy = sent.headers["content-security-policy"].split("; ")
        assert "default-src 'none'" in policy
        assert not [rule for rule in policy if "unsafe" in rule or "http" in rule or "*" in rule]

    async def test_the_list_is_kept_nowhere(self) -> None:
        sent = await get(sidecar(), "/abridge/exchanges")
        assert sent.headers["cache-control"] == "no-store"

    @pytest.mark.parametrize("name", sorted(FILES))
    async def test_each_file_is_served_as_what_it_is(self, name: str) -> None:
        path = "/abridge" if name == "page.html" else f"/abridge/page/{name}"
        sent = await get(sidecar(), path)
        served = Page("extractive").html if name == "page.html" else FILES[name]
        assert (sent.status, sent.data) == (200, served)
        kinds = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
        kind = kinds.get(name.rpartition(".")[2], "image/svg+xml")
        assert sent.headers["content-type"].partition(";")[0] == kind

    async def test_there_are_no_others(self) -> None:
        for path in ("/abridge/page/none.js", "/abridge/page/..", "/abridge/page/%2e%2e"):
            assert (await get(sidecar(), path)).status == 404

    async def test_it_is_found_with_a_slash_too(self) -> None:
        sent = await get(sidecar(), "/abridge/")
        assert (sent.status, sent.headers["location"]) == (307, "../abridge")

    async def test_it_is_only_read(self) -> None:
        assert (await call(sidecar(), "/abridge", b"", {"host": "localhost"})).status == 405

    @pytest.mark.skipif(not SOURCE.is_dir(), reason="there is no source beside the tests")
    def test_what_is_installed_has_every_file(self) -> None:
        assert {file.name: file.read_bytes() for file in SOURCE.iterdir()} == FILES


class TestWritten:
    def test_nothing_is_inline_and_nothing_foreign(self) -> None:
        html = FILES["page.html"].decode()
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", html)
        assert re.findall(r"<script[^>]*>(.*?)</script>", html, re.DOTALL) == [""]
        for name, data in FILES.items():
            text = data.decode().replace("http://www.w3.org/2000/svg", "")
            assert not re.search(r"https?://|\burl\(\s*[\"']?//|@import", text), name

    @pytest.mark.parametrize("name", sorted(SCRIPTS))
    def test_what_is_said_can_only_become_text(self, name: str) -> None:
        script = FILES[name].decode()
        ways = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|srcdoc"
        assert not re.search(ways, script)

    @pytest.mark.parametrize("name", sorted(SCRIPTS))
    def test_modules_import_what_there_is(self, name: str) -> None:
        for names, module in re.findall(
            r"^import (.+?) from \"\./(.+?)\";$", FILES[name].decode(), re.MULTILINE
        ):
            for one in re.findall(r"\w+", names.partition("* as")[0]):
                exported = rf"^export (async )?(class|const|function\*?) {one}\b"
                assert re.search(exported, FILES[module].decode(), re.MULTILINE), one


class TestStrangers:
    @pytest.mark.parametrize("path", ["/abridge", "/abridge/exchanges", "/abridge/page/page.js"])
    @pytest.mark.parametrize(
        "host", ["evil.test", "127.0.0.1.evil.test", "localhost.evil.test:80", ""]
    )
    async def test_a_name_that_was_made_to_point_here_gets_nothing(
        self, path: str, host: str
    ) -> None:
        sent = await get(sidecar(), path, host)
        assert sent.status == 421
        assert b"http://127.0.0.1" in sent.data

    @pytest.mark.parametrize(
        "host",
        [
            "localhost",
            "localhost:8400",
            "LocalHost.:8400",
            "a.localhost:1",
            "127.0.0.1:8400",
            "[::1]:8400",
            "0.0.0.0:8400",
            "[::]:8400",
        ],
    )
    async def test_this_machine_has_several_names(self, host: str) -> None:
        assert (await get(sidecar(), "/abridge", host)).status == 200

    @pytest.mark.parametrize("server", [("172.17.0.2", 8400), ("fd00::1", 8400), None])
    async def test_behind_a_port_mapping_the_name_must_be_local_too(
        self, server: tuple[str, int] | None
    ) -> None:
        for host, status in (("localhost:9000", 200), ("10.1.2.3:80", 200), ("evil.test", 421)):
            assert (await get(sidecar(), "/abridge", host, server=server)).status == status

    async def test_the_settings_may_add_names(self) -> None:
        app = build_app(
            "sidecar", Upstream(), server={"page": True, "allowed_hosts": ["*.Intra.test"]}
        )
        assert (await get(app, "/abridge", "abridge.intra.test:80")).status == 200
        assert (await get(app, "/abridge", "intra.test.evil.test")).status == 421


class TestExchanges:
    async def test_the_list_is_empty_before_the_first_exchange(self) -> None:
        listing = (await get(sidecar(), "/abridge/exchanges")).json
        assert listing["exchanges"] == []
        assert listing["summarizer"] == "extractive"

    async def test_each_is_told_without_a_word_of_it(self) -> None:
        output = [reasoning_item(0, THOUGHT), message_item(1, "Hello you.")]
        app = sidecar(Upstream(Answer(responses_stream(output))))
        body = {
            "model": "m",
            "input": "A secret?",
            "stream": True,
            "reasoning": {"summary": "auto"},
        }
        request_headers = {"x-request-id": "the-id", "authorization": "Bearer sk-hidden"}
        answer = (await call(app, "/v1/responses", body, request_headers)).data
        assert b"reasoning_summary_text.delta" in answer
        sent = await get(app, "/abridge/exchanges")
        (listing,) = sent.json["exchanges"]
        assert (listing["api"], listing["model"]) == ("responses", "m")
        assert (listing["outcome"], listing["style"], listing["summarizer"]) == (
            "ok",
            "auto",
            "extractive",
        )
        assert listing["thinking"] is not None
        assert listing["parts"] != []
        for word in (b"secret", b"sk-hidden", b"Hello", b"odd numbers", b"the-id"):
            assert word not in sent.data
        assert (await get(app, "/abridge/exchanges", query_string=b"id=the-id")).json[
            "exchanges"
        ] == [listing]
        assert (await get(app, "/abridge/exchanges", query_string=b"id=the")).json[
            "exchanges"
        ] == []

    async def test_what_is_none_is_not_told(self) -> None:
        app = sidecar()
        await get(app, "/v1/models")
        await get(app, "/abridge/exchanges")
        assert (await get(app, "/abridge/exchanges")).json["exchanges"] == []


async def test_it_may_be_mounted() -> None:
    app = build_app("embedded", Upstream(Answer.json({})), server={"page": True})
    assert (await get(app, "/llm/abridge")).data == Page("extractive").html
    assert (await get(app, "/llm/abridge/page/page.css")).status == 200
