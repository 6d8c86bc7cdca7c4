"""A request to an API, as its client sent it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic
from typing import Literal, cast

from starlette.types import Scope

from abridge.apis.api import Api, ReasoningWish
from abridge.apis.json import (
    contains,
    count_values,
    loads_exact,
    parse_object,
    string,
    without_integers,
)
from abridge.apis.model_names import MAX_NAME_CHARS
from abridge.apis.obfuscation import wants_obfuscation
from abridge.apis.opaque_state import STATE_OR_ENVELOPE
from abridge.apis.params import invalid_value_error
from abridge.apis.registry import compacts, counts_tokens
from abridge.apis.summary_request import (
    STYLE_NAMES,
    check_language,
    check_style_allowed,
    requested_language,
    requested_style,
)
from abridge.caches import CONTENT_TYPES, cached
from abridge.config.settings import ROUTE, Route
from abridge.config.tables import LimitSettings
from abridge.core.conversation import Json
from abridge.core.styles import SummaryStyle
from abridge.errors import RequestError
from abridge.http.asgi import can_decode, content_encoding, decoder_for, get_header, request_paths
from abridge.observability.record import BACKGROUND
from abridge.pipeline.body import BufferedBody, ReserveMemory
from abridge.stored_responses.references import BackgroundStage
from abridge.work import Work

SUMMARY_HEADER = b"x-abridge-summary"

LANGUAGE_HEADER = b"x-abridge-summary-language"

USAGE_HEADER = b"x-abridge-usage"

CALL_HEADER = b"x-abridge-call"

WISHED_STYLES = {"summarized": "auto", "omitted": "off", "off": "off"}
"""The style of summary that an API's own word for reasoning implies."""

CHARSETS = frozenset({b"utf-8", b"utf8", b"us-ascii", b"ascii", b"iso-8859-1", b"latin1"})
"""Charsets in which what is JSON in UTF-8 is the same JSON, but for characters in its texts."""

_CHARSET = re.compile(rb"charset\s*=[\s\"']*([^\s\"';,]*)", re.IGNORECASE)

MANY_PACKED_BYTES = 4 << 10
"""Compressed bytes that may unpack to megabytes."""

VALUE_BYTES = 160
"""Memory that a JSON value takes at most, parsed and read as part of a conversation."""

TEXT_COPIES = 3
"""Times its size that a body takes while it is worked on, as far as it is text."""


@dataclass(slots=True)
class ApiRequest:
    """A request whose body was parsed."""

    api: Api
    scope: Scope  # the client's, with the route
    buffered: BufferedBody
    decoded: bytes  # the body without its content encoding
    body: Json  # the parsed body, until it is taken
    model: str  # as the client names it
    read_at: float  # when the body had been read, in monotonic seconds
    wants_obfuscation: bool  # see `apis/obfuscation.py`
    wish: ReasoningWish | None  # for reasoning, in the API's own words
    work: Work  # on the body
    _may_have_state: bool | None = None  # None until it is asked
    counts_tokens: bool = False  # it asks for the number of its input tokens alone
    begins_background: bool = False  # it is answered by a background response of Abridge's own
    compacts: bool = False  # it asks for a compaction by its path
    drops_state: Literal["", "foreign_state", "refused_state", "compacted"] = ""
    """Why opaque reasoning state is left out for upstream: another provider made it, upstream
    refused it, or the conversation is summed up. Empty if it is not."""
    refused: frozenset[str] = frozenset()
    """The fields that Abridge would add, and upstream refused."""

    @classmethod
    async def read(
        cls,
        api: Api,
        scope: Scope,
        buffered: BufferedBody,
        decoded: bytes,
        *,
        limits: LimitSettings,
        choose_route: Callable[[str | None], Route],
    ) -> ApiRequest | None:
        """Parse a request and choose its route by its model, which `scope` is given; None where the
        body is no JSON object, which upstream will report. Raises RequestError for one that exceeds
        the limits."""
        read_at, work = monotonic(), Work.on(decoded)
        await admit_values(decoded, work, limits.values, buffered.reserve)
        body = await work.run(parse_object, decoded, loads_exact)
        if body is None:
            return None
        check_item_count(body, api.conversation_field, limits.items)
        model = string(body.get("model"))
        _check_fallback_names(body)
        route = choose_route(model or None)
        scope[ROUTE] = route
        return cls(
            api=api,
            scope=scope,
            buffered=buffered,
            decoded=decoded,
            body=body,
            model=model,
            read_at=read_at,
            wants_obfuscation=wants_obfuscation(body),
            wish=api.read_wish(body),
            work=work,
            counts_tokens=bool(api.counts_tokens_at) and counts_tokens(*request_paths(scope)),
            compacts=bool(api.compacts_at) and compacts(*request_paths(scope)),
        )

    async def reread(self, fallback: Route | None = None) -> ApiRequest:
        """Return the request with its body parsed again, to be replayed again; for another upstream
        if `fallback` is its route.

        Its time starts now: the time before was spent on another of upstream's APIs, or on another
        upstream.
        """
        read_at = monotonic()
        body = await self.work.run(parse_object, self.decoded, loads_exact)
        buffered = self.buffered.with_body(self.buffered.data or b"")
        again = replace(self, body=body or {}, read_at=read_at, buffered=buffered)
        if fallback is None:
            return again
        is_foreign = fallback.upstream.profile != self.route.upstream.profile
        return replace(
            again,
            scope={**self.scope, ROUTE: fallback},
            drops_state="foreign_state" if is_foreign else "",
            refused=frozenset(),
        )

    @property
    def may_have_state(self) -> bool:
        """The body may hold opaque state, a provider's or envelopes, by one search for all of it:
        in a long body without any, each search takes a while."""
        if self._may_have_state is None:
            self._may_have_state = contains(self.decoded, STATE_OR_ENVELOPE)
        return self._may_have_state

    def take_body(self) -> Json:
        """Return the parsed body, and forget it: it will be edited, and may be large."""
        body, self.body = self.body, {}
        return body

    @property
    def route(self) -> Route:
        route: Route = self.scope[ROUTE]
        return route

    @property
    def background(self) -> bool:
        """The client asks for a background response, in an API that has them."""
        return self.body.get("background") is True and self.api.upstream.stores_responses

    @property
    def background_stage(self) -> BackgroundStage:
        return "runs" if self.scope.get(BACKGROUND) else "begins" if self.begins_background else ""

    def wants_opaque_state(self, body: Json) -> bool | None:
        """Return whether `body`, in the client's API, requests opaque state; None if the API cannot
        express that. A summarizer's own call never does."""
        return False if self._is_summary_call else self.api.wants_state(body)

    def summary_style(self) -> SummaryStyle | None:
        """Return the requested summary style: the body's, else the header's, else what the API's
        own word for reasoning implies, else the settings' default.

        Raises RequestError for an unknown style, or one that the settings do not allow.
        """
        if self._is_summary_call:
            return None
        summary = self.route.summary
        requested, param = requested_style(self.body), "reasoning.summary"
        if requested is None:
            requested = self._header_value(SUMMARY_HEADER, ("off", *STYLE_NAMES))
            param = SUMMARY_HEADER.decode()
        if requested is None:
            requested = WISHED_STYLES.get(self.wish or "", summary.default)
        elif requested != "off":
            check_style_allowed(requested, summary.allow, param)
        return None if requested == "off" else cast(SummaryStyle, requested)

    def summary_language(self) -> str:
        """Return the language that the summary is to be written in: the body's, else the header's,
        else the settings'. It is `auto`, `reasoning` or a tag.

        Raises RequestError for anything else.
        """
        requested = requested_language(self.body)
        if requested is None and (value := self._header(LANGUAGE_HEADER)):
            requested = check_language(value, LANGUAGE_HEADER.decode())
        return requested or self.route.summary.language

    def usage_mode(self) -> Literal["merged", "separate"]:
        """Return whether the summarizer's tokens are added to the totals."""
        requested = self._header_value(USAGE_HEADER, ("merged", "separate"))
        return cast(Literal["merged", "separate"], requested or self.route.usage.count)

    @property
    def _is_summary_call(self) -> bool:
        return get_header(self.scope["headers"], CALL_HEADER) == b"summary"

    def _header_value(self, name: bytes, allowed: tuple[str, ...]) -> str | None:
        value = self._header(name)
        if not value:
            return None
        if value not in allowed:
            raise invalid_value_error(value, name.decode(), allowed)
        return value

    def _header(self, name: bytes) -> str:
        return get_header(self.scope["headers"], name).decode("latin-1").strip()


def must_decode(scope: Scope) -> bool:
    """Return whether a body may be encoded, or in another charset than UTF-8. Few are."""
    for name, value in scope["headers"]:
        if name == b"content-encoding" or (name == b"content-type" and b"=" in value):
            return True
    return False


async def decode_body(scope: Scope, received: bytes, limit: int) -> bytes:
    """Undo the body's content encoding. Raises RequestError if it is unsupported or invalid, or
    the text is in a charset in which upstream would read other JSON than Abridge."""
    headers = scope["headers"]
    if any(not _is_readable(value) for name, value in headers if name == b"content-type"):
        raise RequestError(
            "The request body has an unsupported charset: JSON must be UTF-8.",
            status=415,
            param="content-type",
        )
    if not content_encoding(headers):
        return received
    if not can_decode(headers):
        raise RequestError(
            "The request body has an unsupported encoding.",
            status=415,
            param="content-encoding",
        )
    try:
        work = Work(heavy=len(received) > MANY_PACKED_BYTES)
        return await work.run(decoder_for(headers, limit), received)
    except ValueError as error:
        raise RequestError(f"The request body cannot be decoded: {error}.") from None


@cached(CONTENT_TYPES)
def _is_readable(content_type: bytes) -> bool:
    return all(name.lower() in CHARSETS for name in _CHARSET.findall(content_type))


async def admit_values(data: bytes, work: Work, limit: int, reserve: ReserveMemory) -> None:
    """Reserve memory for the values in JSON, beyond what their text takes.

    Raises RequestError if they are more than `limit`, or memory is short. Those of a body that is
    light to work on are not counted, unless they may exceed the limit.
    """
    if not (work.is_heavy or len(data) > limit):
        return
    in_text = TEXT_COPIES * len(data) // VALUE_BYTES  # so many take no more than their text
    count = await work.run(count_values, data, min(limit, in_text))
    if count > limit:
        raise RequestError(
            f"The request contains too many JSON values: {count}. The limit is {limit} "
            "(limits.values).",
            code="too_many_values",
        )
    reserve(max(0, VALUE_BYTES * count - TEXT_COPIES * len(data)))


def check_item_count(body: Json, field: str, limit: int) -> None:
    """Raise RequestError if the conversation in `field` has more than `limit` messages or items."""
    items = body.get(field)
    if isinstance(items, list) and len(items) > limit:
        raise RequestError(
            f"Invalid '{field}': array too long. Expected an array with maximum length {limit} "
            f"(limits.items), but got an array with length {len(items)} instead.",
            param=field,
            code="array_above_max_length",
        )


def too_large(what: str, limit: float) -> RequestError:
    message = f"The {what} is larger than {int(limit)} bytes."
    return RequestError(message, status=413, code="request_too_large")


def check_model_name(name: str, param: str = "model") -> None:
    """Raise RequestError for a name that no model has. One that is passed on unread may be any."""
    if len(name) > MAX_NAME_CHARS:
        raise RequestError(
            f"Invalid '{param}': string too long. Expected a string with maximum length "
            f"{MAX_NAME_CHARS}, but got a string with length {len(name)} instead.",
            param=param,
            code="string_above_max_length",
        )


def _check_fallback_names(body: Json) -> None:
    """Check the names of OpenRouter's fallbacks, which are renamed as `model` is."""
    models = body.get("models")
    for number, name in enumerate(models if isinstance(models, list) else ()):
        check_model_name(string(name), f"models[{number}]")


async def read_model(
    body: bytes, work: Work, limits: LimitSettings, reserve: ReserveMemory
) -> str | None:
    """Return the model named in a JSON body, None if there is none.

    Tokens to embed, of which there may be hundreds of thousands, do not count as values. Raises
    RequestError if there are too many others.
    """
    work.add(body)
    if work.is_heavy:
        body = await work.run(without_integers, body)
    await admit_values(body, work, limits.values, reserve)
    return await work.run(_parse_model, body)


def _parse_model(body: bytes) -> str | None:
    data = parse_object(body)
    return string(data.get("model")) or None if data is not None else None
