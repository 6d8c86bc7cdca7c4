"""Check that a server can be reached, an upstream's or the summarizer's, and list its models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, cast

import click
import httpx

from abridge.apis.credentials import Header, bearer_header
from abridge.apis.gemini.api import as_openais
from abridge.apis.json import dumps, objects, parse_object, string
from abridge.config.addresses import other_addresses, without_version
from abridge.config.loading import read_secret
from abridge.core.conversation import Json
from abridge.http.asgi import can_decode, content_encoding, decoder_for
from abridge.http.transport import os_error_text
from abridge.sidecar.proxy.targets import VIA, make_instance

Grade = Literal["ok", "note", "fault"]

COLOURS: dict[Grade, str] = {"ok": "green", "note": "yellow", "fault": "red"}


HEALTH_PATH = "/abridge/healthz"

MAX_LISTED_MODELS = 3
"""Model names printed."""

MAX_RESPONSE_BYTES = 4 << 20
"""Bytes read of a response."""


@dataclass(slots=True, frozen=True)
class Finding:
    subject: str
    text: str
    grade: Grade = "ok"
    """`note`: may surprise; `fault`: keeps Abridge from working."""

    def __str__(self) -> str:
        return f"{click.style(f'{self.grade:6}', COLOURS[self.grade])}{self.subject}: {self.text}"

    def as_json(self) -> str:
        return dumps(asdict(self)).decode()


@dataclass(slots=True, frozen=True)
class CheckTarget:
    base_url: str
    transport: httpx.AsyncBaseTransport
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    key_setting: str = ""  # what names the variable that holds its key

    @classmethod
    def with_key(
        cls,
        base_url: str,
        transport: httpx.AsyncBaseTransport,
        variable: str | None,
        setting: str,
        make_header: Callable[[bytes], Header] = bearer_header,
    ) -> CheckTarget:
        """Return a target with its API key. Raises SettingsError.

        The key is read from the environment variable `variable`, which the setting `setting`
        names; `make_header` turns it into a header.
        """
        if variable is None:
            return cls(base_url, transport, key_setting=setting)
        name, value = make_header(read_secret(variable, setting).encode())
        return cls(base_url, transport, {name.decode(): value.decode()}, setting)

    @asynccontextmanager
    async def send_request(
        self, path: str, body: Json | None = None, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[httpx.Response]:
        """Send a GET, or a POST if there is a body, with the header that the proxy adds: the demo
        answers such a request as a model's server alone. Raises httpx.TransportError."""
        content = None if body is None else dumps(body)
        own = {"content-type": "application/json", VIA.decode(): make_instance().decode()}
        request = httpx.Request(
            "GET" if body is None else "POST",
            f"{self.base_url}{path}",
            headers={**own, **self.headers, **(headers or {})},
            content=content,
        )
        response = await self.transport.handle_async_request(request)
        try:
            yield response
        finally:
            await response.aclose()


async def read_chunks(response: httpx.Response) -> AsyncIterator[bytes]:
    """Yield the body's chunks without their encoding, up to `MAX_RESPONSE_BYTES` in total.

    Some servers compress unasked. Raises httpx.TransportError.
    """
    remaining, decode = MAX_RESPONSE_BYTES, _decoder(response)
    async for encoded in cast(httpx.AsyncByteStream, response.stream):
        try:
            chunk = decode(encoded)
        except ValueError as error:
            raise httpx.RemoteProtocolError(
                f"its answer does not match its headers: {error}"
            ) from None
        yield chunk[:remaining]
        remaining -= len(chunk)
        if remaining <= 0:
            return


def _decoder(response: httpx.Response) -> Callable[[bytes], bytes]:
    headers = response.headers.raw
    if not can_decode(headers):
        encoding = content_encoding(headers).decode()
        raise httpx.RemoteProtocolError(
            f"its answer is encoded, although that was not requested: {encoding}"
        )
    return decoder_for(headers, MAX_RESPONSE_BYTES)


def describe_error(error: httpx.TransportError) -> str:
    """Describe an error, with the operating system's message if there is one."""
    if isinstance(error, httpx.TimeoutException):
        return "did not answer in time"
    reason = os_error_text(error) or _bracketed_end(str(error))
    failure = "cannot be reached" if isinstance(error, httpx.ConnectError) else "breaks off"
    return f"{failure}: {reason}"


def _bracketed_end(text: str) -> str:
    """Return what stands in brackets at the end of a text, all of it if nothing does."""
    inner = text.partition("[")[2] if text.endswith("]") else ""
    return inner[:-1] or text


@dataclass(slots=True, frozen=True)
class ReachResult:
    finding: Finding
    models: list[str] | None = None  # None: the server returned no list
    owners: frozenset[str] = frozenset()  # of the models, as the list says
    answers: bool = True  # whatever it said
    list_fails: bool = False  # the server failed to list models, which says little of the rest

    @property
    def is_reachable(self) -> bool:
        return self.finding.grade != "fault"


async def reach(target: CheckTarget, subject: str) -> ReachResult:
    """Request the list of models: nothing is cheaper, and nearly every server has one.

    Where there is none, look for one at the addresses that may have been meant.
    """
    url = target.base_url
    try:
        status, body = await _get(target, "/models")
    except httpx.TransportError as error:
        finding = Finding(subject, f"{url} {describe_error(error)}", "fault")
        return ReachResult(finding, answers=False)
    lists_models = status == 200 and _has_models(body)
    if status in (200, 404) and not lists_models:
        for other in other_addresses(url):
            if await _is_api(replace(target, base_url=other)):
                return ReachResult(wrong_address(subject, url, other))
    if lists_models:
        return _models_result(subject, url, body)
    return ReachResult(_status_finding(subject, target, status), list_fails=status >= 500)


def wrong_address(subject: str, url: str, other: str) -> Finding:
    text = f"{url} answers, but has no API there; set base_url to {other}, which has one"
    return Finding(subject, text, "fault")


async def is_abridge(target: CheckTarget) -> bool:
    """Return whether an Abridge answers at an address."""
    mounted = CheckTarget(without_version(target.base_url), target.transport)
    try:
        return await _get(mounted, HEALTH_PATH) == (200, b"ok\n")
    except httpx.TransportError:
        return False


async def _is_api(target: CheckTarget) -> bool:
    """Return whether there are models at an address, or whether it asks for a key to list them."""
    try:
        status, body = await _get(target, "/models")
    except httpx.TransportError:
        return False
    return status in (401, 403) or (status == 200 and _has_models(body))


async def _get(target: CheckTarget, path: str) -> tuple[int, bytes]:
    """Return status and body. Raises httpx.TransportError."""
    async with target.send_request(path) as response:
        body = b"".join([chunk async for chunk in read_chunks(response)])
    return response.status_code, body


def _has_models(body: bytes) -> bool:
    return isinstance(as_openais(parse_object(body) or {}).get("data"), list)


def _models_result(subject: str, url: str, body: bytes) -> ReachResult:
    listed = objects(as_openais(parse_object(body) or {}).get("data"))
    models = [string(model.get("id")) for model in listed]
    names = ", ".join(models[:MAX_LISTED_MODELS]) + (
        ", …" if len(models) > MAX_LISTED_MODELS else ""
    )
    text = f"{url} answers; models: {names or 'none listed'}"
    owners = frozenset(string(model.get("owned_by")) for model in listed)
    return ReachResult(Finding(subject, text), models, owners=owners)


def _status_finding(subject: str, target: CheckTarget, status: int) -> Finding:
    url = target.base_url
    if status in (401, 403) and target.headers:
        text = f"{url} refuses the key ({status}), whose variable {target.key_setting} names"
        return Finding(subject, text, "fault")
    if status in (401, 403):
        text = f"{url} answers, but requires a key ({status}): {target.key_setting} can name one"
        return Finding(subject, text, "note")
    if status >= 500:
        return Finding(subject, f"{url} answers with status {status}", "fault")
    if status == 200:
        text = f"{url} answers, but with no list of models: is it a model server's address?"
        return Finding(subject, text, "note")
    return Finding(subject, f"{url} answers, but lists no models ({status})")
