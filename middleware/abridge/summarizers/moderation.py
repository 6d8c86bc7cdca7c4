"""A review by an endpoint that speaks OpenAI's moderations API.

`POST {base_url}/moderations` with `{"model", "input"}` answers
`{"results": [{"flagged": bool, "categories": {name: bool}}]}` (openai-openapi,
`CreateModerationResponse`). The transport is called directly, as for a summarizer model.
"""

from __future__ import annotations

from typing import Any, cast

import httpx

from abridge.apis.json import dumps, parse_object, replace_halves
from abridge.config.review import MODERATIONS_PATH, ReviewSettings
from abridge.core.conversation import Json
from abridge.errors import SummarizerError

MAX_BYTES = 256 << 10
"""Maximum bytes of a response's body; one result takes some 2 KiB."""


class Moderation:
    """Checks texts; usable as a `Review`. `aclose` closes `transport`."""

    def __init__(
        self,
        settings: ReviewSettings,
        transport: httpx.AsyncBaseTransport,
        api_key: str | None = None,
    ) -> None:
        self._url = f"{settings.base_url}{MODERATIONS_PATH}"
        self._model = settings.model
        self._timeout = httpx.Timeout(settings.timeout).as_dict()
        self._transport = transport
        self._headers = {
            "content-type": "application/json",
            "accept": "application/json",
            "accept-encoding": "identity",
            **({"authorization": f"Bearer {api_key}"} if api_key else {}),
        }

    async def __call__(self, text: str) -> str | None:
        """Return the text, or None if it is flagged.

        Raises SummarizerError or TimeoutError if the endpoint does not say.
        """
        try:
            response = await self._transport.handle_async_request(self._request(text))
            try:
                body = await _read_body(response)
            finally:
                await response.aclose()
        except httpx.TimeoutException:
            raise TimeoutError from None
        except httpx.HTTPError as error:
            raise _failure(f"gave no complete answer ({type(error).__name__})") from None
        return None if is_flagged(body) else text

    async def aclose(self) -> None:
        await self._transport.aclose()

    def _request(self, text: str) -> httpx.Request:
        body: Json = {"input": replace_halves(text)}  # many an endpoint refuses them
        if self._model is not None:
            body = {"model": self._model, **body}
        return httpx.Request(
            "POST",
            self._url,
            headers=self._headers,
            content=dumps(body),
            extensions={"timeout": self._timeout},
        )


async def _read_body(response: httpx.Response) -> bytes:
    if not 200 <= response.status_code < 300:
        raise _failure(f"answered with status {response.status_code}")
    body = bytearray()
    async for chunk in cast(httpx.AsyncByteStream, response.stream):
        body += chunk
        if len(body) > MAX_BYTES:
            raise _failure(f"answered with more than {MAX_BYTES} bytes")
    return bytes(body)


def is_flagged(body: bytes) -> bool:
    """Return whether a response flags its input in any of its results.

    Raises SummarizerError if none does and one of them, or the body, does not say.
    """
    results = (parse_object(body) or {}).get("results")
    verdicts = [_read_result(result) for result in results] if isinstance(results, list) else []
    if True in verdicts:
        return True
    if not verdicts or None in verdicts:
        raise _failure("answered without a verdict")
    return False


def _read_result(result: Any) -> bool | None:
    """Return whether a result is flagged, None if it does not say.

    Mistral's results have no `flagged`, only categories (docs.mistral.ai: Classifiers Endpoints).
    Null is a category that does not apply.
    """
    if not isinstance(result, dict):
        return None
    flagged, categories = result.get("flagged"), result.get("categories")
    if flagged is None and isinstance(categories, dict) and categories:
        values = list(categories.values())
        if all(value is None or isinstance(value, bool) for value in values):
            return True in values
    return flagged if isinstance(flagged, bool) else None


def _failure(what: str) -> SummarizerError:
    return SummarizerError("upstream_error", f"The moderation endpoint {what}.")
