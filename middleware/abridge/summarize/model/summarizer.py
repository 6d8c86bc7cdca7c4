"""A summarizer that calls a model over Chat Completions or Responses.

It calls the transport directly: an `httpx.AsyncClient` on top of it would keep cookies, follow
redirects and read proxies from the environment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from secrets import token_hex

import httpx

from abridge.errors import EventTooLarge
from abridge.settings import SummarizerSettings
from abridge.summarize import Spent
from abridge.summarize.closing import closing
from abridge.summarize.model.answer import Answer
from abridge.summarize.model.endpoint import SPELLINGS, Endpoint
from abridge.summarize.model.prompts import prompt
from abridge.turn.part import Passage
from abridge.wire.codec import dumps
from abridge.wire.profiles import PROFILES

LINGER = 0.05
"""Seconds to read on after the terminal event, so that the connection can be reused."""

HEADERS = {
    "content-type": "application/json",
    "accept": "text/event-stream, application/json",
    "accept-encoding": "identity",
    "x-abridge-call": "summary",
}
"""`x-abridge-call` marks a request made by Abridge, which the middleware never engages on."""


class ModelSummarizer:
    """Calls a model. See the `Summarizer` protocol.

    `marker` generates the marker that fences the reasoning in a prompt: random, new for each call.
    """

    def __init__(
        self,
        transport: httpx.AsyncBaseTransport,
        endpoint: Endpoint,
        settings: SummarizerSettings,
        *,
        name: str = "model",
        marker: Callable[[], str] = lambda: token_hex(4),
    ) -> None:
        self._transport = transport
        self._endpoint = endpoint
        self._settings = settings
        self._marker = marker
        self.name = name

    @classmethod
    def from_settings(
        cls,
        settings: SummarizerSettings,
        transport: httpx.AsyncBaseTransport,
        api_key: str | None = None,
    ) -> ModelSummarizer:
        """Build the summarizer for `kind = "model"`."""
        api = SPELLINGS[settings.api].api
        headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        url, profile = f"{settings.base_url}{api.path}", PROFILES[settings.profile]
        return cls(transport, Endpoint(url, settings.model, api, profile, headers), settings)

    async def summarize(self, passage: Passage) -> AsyncIterator[str | Spent]:
        answer = Answer(self._endpoint)
        try:
            response = await self._transport.handle_async_request(self._request(passage))
            try:
                async with closing(aiter(_stream(response))) as chunks:
                    answer.begin(response.status_code, response.headers.get("content-type", ""))
                    async for chunk in chunks:
                        if text := answer.feed(chunk):
                            yield text
                        if answer.ended:
                            await _linger(chunks)
                            break
                    if not answer.ended and (text := answer.end()):
                        yield text
            finally:
                await response.aclose()
        except httpx.TimeoutException:
            raise answer.error("timeout", "The summarizer model took too long.") from None
        except (httpx.HTTPError, EventTooLarge):
            message = "The call to the summarizer model broke off."
            raise answer.error("upstream_error", message) from None
        answer.check()
        yield answer.spent

    def _request(self, passage: Passage) -> httpx.Request:
        settings = self._settings
        told = prompt(
            passage,
            marker=self._marker(),
            prompts=settings.prompts,
            max_input_chars=settings.max_input_chars,
        )
        return httpx.Request(
            "POST",
            self._endpoint.url,
            headers={**self._endpoint.headers, **HEADERS},
            content=dumps(self._endpoint.body(settings, told)),
            extensions={"timeout": httpx.Timeout(settings.timeout).as_dict()},
        )


def _stream(response: httpx.Response) -> httpx.AsyncByteStream:
    """Return the raw byte stream: the request asks for no content encoding, so none is undone."""
    if not isinstance(response.stream, httpx.AsyncByteStream):
        raise TypeError("An asynchronous transport answers with an asynchronous stream.")
    return response.stream


async def _linger(chunks: AsyncIterator[bytes]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER):
            async for _ in chunks:
                pass
