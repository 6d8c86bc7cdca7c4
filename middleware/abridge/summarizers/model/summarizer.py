"""A summarizer that calls a model over Chat Completions, Responses or Messages.

It calls the transport directly: an `httpx.AsyncClient` on top of it would keep cookies, follow
redirects and read proxies from the environment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from secrets import token_hex
from typing import cast
from urllib.parse import urlsplit

import httpx

from abridge.apis.api import Api
from abridge.apis.credentials import credential_header
from abridge.apis.json import dumps
from abridge.apis.registry import APIS
from abridge.config.tables import SummarizerSettings
from abridge.core.conversation import Json
from abridge.core.plan import Passage
from abridge.core.usage import SummarizerUsage
from abridge.errors import EventTooLarge, SummarizerError
from abridge.http.transport import os_error_text
from abridge.providers.catalog import PROFILES
from abridge.summarizers.checks import Checks, TranslationChecks
from abridge.summarizers.model.answer import ModelAnswer
from abridge.summarizers.model.endpoint import ModelEndpoint
from abridge.summarizers.model.prompts import build_prompt, said_by_itself, shorten
from abridge.summarizers.summarizer import CheckedSummarizer

DRAIN_SECONDS = 0.05
"""Seconds to read on after the terminal event, so that the connection can be reused."""

REQUEST_HEADERS = {
    "content-type": "application/json",
    "accept": "text/event-stream, application/json",
    "accept-encoding": "identity",
    "x-abridge-call": "summary",
}
"""`x-abridge-call` marks a request made by Abridge, which the middleware never engages on."""


@dataclass(frozen=True, eq=False)
class ModelSummarizer(CheckedSummarizer):
    """Calls a model. See the `Summarizer` protocol.

    `marker` generates the marker that fences the reasoning in a prompt: random, new for each call.
    """

    transport: httpx.AsyncBaseTransport
    endpoint: ModelEndpoint
    settings: SummarizerSettings
    name: str = "model"
    marker: Callable[[], str] = lambda: token_hex(3)

    @classmethod
    def from_settings(
        cls,
        settings: SummarizerSettings,
        transport: httpx.AsyncBaseTransport,
        api_key: str | None = None,
    ) -> ModelSummarizer:
        """Build the summarizer for `kind = "model"`."""
        api = next(row for row in APIS if row.name == settings.api)
        url, profile = f"{settings.base_url}{api.path}", PROFILES[settings.profile]
        headers = {**api.upstream.headers}
        if api_key:
            name, value = credential_header(api_key.encode(), profile, api.upstream)
            headers[name.decode()] = value.decode()
        return cls(transport, ModelEndpoint(url, settings.model, api, profile, headers), settings)

    def summarize(self, passage: Passage) -> AsyncIterator[str | SummarizerUsage]:
        prompt = build_prompt(passage, self.settings, self.marker())
        body = self.endpoint.summary_body(prompt, self.settings)
        return self.call(body, ModelAnswer(self.endpoint))

    def translate(self, body: Json, api: Api, max_tokens: int) -> Json:
        """Return the body of a client's request as the model gets it. Raises RequestError."""
        return self.endpoint.write_body(api.read_request(body), max_tokens, self.settings)

    async def call(self, body: Json, answer: ModelAnswer) -> AsyncIterator[str | SummarizerUsage]:
        """Have the model answer a request in its API. Raises SummarizerError."""
        try:
            request = self._new_request(content=dumps(body))
            response = await self.transport.handle_async_request(request)
            async with aclosing(response), _raw_chunks(response) as chunks:
                answer.start(response.status_code)
                async for chunk in chunks:
                    if text := answer.feed(chunk):
                        yield text
                    if answer.ended:
                        await _drain(chunks)
                        break
                if not answer.ended and (text := answer.end()):
                    yield text
        except (httpx.HTTPError, EventTooLarge) as error:
            failure = _failure(answer, error)
            cause = os_error_text(error) or type(error.__cause__ or error).__name__
            failure.add_note(f"{urlsplit(self.endpoint.url).netloc}: {cause}")
            raise failure from None
        answer.check()
        yield answer.usage

    def new_checks(self, passage: Passage) -> Checks:
        """Return what checks the text for a passage: it must repeat neither what the prompt says
        beside its material nor, where that is hidden, the reasoning in it."""
        if passage.translates:
            return TranslationChecks(passage)
        said = said_by_itself(passage.style, self.settings.prompts)
        shown = shorten(passage.text, self.settings.max_input_chars)
        hidden = f"{passage.before}\n{shown}" if passage.hidden else ""
        return Checks(passage, instructions=said, hidden=hidden)

    @cached_property
    def _new_request(self) -> Callable[..., httpx.Request]:
        return partial(
            httpx.Request,
            "POST",
            httpx.URL(self.endpoint.url),
            headers=httpx.Headers({**self.endpoint.headers, **REQUEST_HEADERS}),
            extensions={"timeout": httpx.Timeout(self.settings.timeout).as_dict()},
        )


def _failure(answer: ModelAnswer, error: Exception) -> SummarizerError:
    """Return the failure of a call, as a client may see it."""
    if isinstance(error, httpx.TimeoutException):
        return answer.error("timeout", "The summarizer model took too long.")
    if isinstance(error, httpx.ConnectError):
        return answer.error("upstream_error", "The summarizer model could not be reached.")
    answer.break_off()
    return answer.error("upstream_error", "The call to the summarizer model broke off.")


def _raw_chunks(response: httpx.Response) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
    """Return the raw chunks: the request asks for no content encoding, so none is undone. To close
    the response closes any but those of a generator, and transports may be a user's."""
    chunks = aiter(cast("httpx.AsyncByteStream", response.stream))
    return aclosing(chunks) if isinstance(chunks, AsyncGenerator) else nullcontext(chunks)


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in chunks:
                pass
