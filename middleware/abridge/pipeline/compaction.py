"""Compact conversations: have a model sum one up, and keep that for later requests.

The model that the request names is asked in the client's own API: the request, with a prompt at the
end of its conversation, goes the way of any other. So nothing is in the answer that is hidden from
the client; and reasoning of earlier turns is not sent along, so that none of it is quoted.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from time import time
from typing import TypeAlias

from starlette.types import Message, Receive, Scope, Send

from abridge.apis.api import UpstreamApi
from abridge.apis.compaction.form import CompactedAnswer, Compaction, CompactionForm, write_prompt
from abridge.apis.compaction.responses import (
    CONTEXT_MANAGEMENT,
    RESPONSES_COMPACTION,
    compaction_item,
    kept_items,
    open_calls,
    retained_items,
    without_compaction,
    without_summaries,
)
from abridge.apis.display import Display
from abridge.apis.json import dumps, objects, string
from abridge.apis.protocols import RequestEcho
from abridge.apis.responses.messages import read_input_items
from abridge.apis.token_counters import estimate_tokens
from abridge.config.client_key import must_count
from abridge.config.exposure import hides_raw
from abridge.config.settings import Settings
from abridge.core.conversation import Json
from abridge.core.events import ResponseEnded
from abridge.core.usage import SummarizerUsage
from abridge.errors import EventTooLarge, RequestError, SummarizerError, UpstreamBroken
from abridge.http.asgi import (
    EVENT_STREAM,
    drop_headers,
    json_start,
    scope_for_body,
    scope_of_read_answer,
)
from abridge.memory.registry import MemoryRegistry
from abridge.observability.record import RECORD, TRACE, CompactionRecord, Record
from abridge.pipeline.answers.compacted import ShownCompaction
from abridge.pipeline.answers.error_writer import ErrorWriter
from abridge.pipeline.early_head import EARLY_HEAD, send_head_early
from abridge.pipeline.engage import Endpoints
from abridge.pipeline.inner_call import CapturedAnswer
from abridge.pipeline.prepare import RequestPreparation
from abridge.pipeline.request import CALL_HEADER, ApiRequest
from abridge.pipeline.request_translation import as_items
from abridge.pipeline.steps import RequestDraft
from abridge.providers.catalog import PROFILES
from abridge.stored_responses.compactions import Compactions
from abridge.stored_responses.references import CONVERSATION, PREVIOUS_RESPONSE_ID
from abridge.stored_responses.rewriting import RewritingApp
from abridge.stored_responses.storage import FinishedResponse, NoteUpstream
from abridge.summarizers.model.answer import ModelAnswer
from abridge.summarizers.model.endpoint import ModelEndpoint
from abridge.summarizers.model.summarizer import ModelSummarizer

MAX_SUMMARY_CHARS = 200_000
"""Characters of a summary. A longer one replaces nothing."""

NOTHING_TO_COMPACT = "The conversation contains nothing to compact."

UPSTREAMS = "A conversation that upstream stores cannot be compacted here."

NOTHING_CODE = "compaction_nothing_to_summarize"

COMPACT_SEGMENT = "/compact"

_log = logging.getLogger(__name__)

Ask: TypeAlias = Callable[[ApiRequest, UpstreamApi, Endpoints], Awaitable[None]]
"""Answers a request on one of upstream's APIs."""


@dataclass(slots=True, frozen=True)
class Summary:
    """What a model wrote."""

    text: str
    usage: SummarizerUsage
    reason: str  # why it stopped, unless it was done


class AnsweredOtherwise(Exception):
    """What the model's server answered is no success; `messages` are its answer, if the client is
    there to get it."""

    def __init__(self, messages: Iterable[Message]) -> None:
        super().__init__()
        self.messages = list(messages)


@dataclass(slots=True, frozen=True)
class Compactable:
    """A conversation as items of Responses, and what of them is not left to the summary."""

    items: list[Json]
    open_calls: list[str]  # names of the tools
    kept: list[Json]
    retained: list[Json]


@dataclass(slots=True, frozen=True)
class Asking:
    """A request for which a summary is asked."""

    request: ApiRequest
    upstream: UpstreamApi
    endpoints: Endpoints
    form: CompactionForm
    compactions: Compactions


class Compactor:
    """Compacts the conversations of requests. `writer` is the model that is to write summaries, if
    that is not the one that a request names; `ask` answers requests, those for a summary too."""

    def __init__(
        self,
        settings: Settings,
        memory: MemoryRegistry,
        preparation: RequestPreparation,
        writer: ModelSummarizer | None,
        ask: Ask,
    ) -> None:
        self._settings = settings.compaction
        self._event_limit = int(settings.limits.event)
        self._memory = memory
        self._preparation = preparation
        self._writer = writer if self._settings.kind == "model" else None
        self._ask = ask

    async def take(self, request: ApiRequest, upstream: UpstreamApi, endpoints: Endpoints) -> bool:
        """Answer a request that asks for a compaction, unless upstream makes it. Return False for
        any other. Raises RequestError."""
        form = request.api.compaction
        if form is None or self._leaves_to_upstream(request, form, upstream):
            return False
        if request.compacts or form.is_asked(request.body):
            await self.answer(request, upstream, endpoints)
            return True
        threshold = form.read_threshold(request.body)
        if threshold is not None:
            await self._answer_shortened(request, upstream, endpoints, threshold)
        return threshold is not None

    def _leaves_to_upstream(
        self, request: ApiRequest, form: CompactionForm, upstream: UpstreamApi
    ) -> bool:
        """Return whether upstream compacts conversations itself. What its answer says of one may
        quote reasoning, unless it is opaque, and its own endpoint's is not read here."""
        route = request.route
        is_opaque = form.is_opaque and not request.compacts
        return (
            self._settings.kind == "auto"
            and upstream is request.api.upstream
            and request.api.name in PROFILES[route.upstream.profile].compacts
            and (is_opaque or not (hides_raw(route) or must_count(request.scope)))
        )

    async def answer(
        self, request: ApiRequest, upstream: UpstreamApi, endpoints: Endpoints
    ) -> None:
        """Answer a request that wants nothing but a compaction. Raises RequestError."""
        streams = request.body.get("stream") is True
        if streams:
            send_head_early(request.scope, request.route.summary.early_head)
        asking = self._begin(request, upstream, endpoints)
        asking.compactions.check(asking.form.param)
        body, instructions = asking.form.read_request(request.take_body())
        resolved = await self._preparation.resolve(replace(request, body=body), upstream)
        try:
            answer = await self._compact(asking, resolved.body, instructions)
        except AnsweredOtherwise as otherwise:
            record = Record.get(request.scope)
            for message in otherwise.messages:
                record.status = message.get("status", record.status)
                record.outcome = "error"
                await endpoints.send(message)
            return
        except SummarizerError as error:
            raise _failure(str(error)) from None
        if not answer.blob and asking.form.needs_blob:
            raise _failure(f"the model stopped ({answer.reason or 'it wrote nothing'}).")
        whole = asking.form.write_whole(answer, _echo(resolved, answer))
        storage = resolved.references.storage
        if _is_stored_here(resolved) and storage is not None and not request.compacts:
            ended = ResponseEnded(None, None, ok=True)
            with suppress(RequestError):  # the client has what it asked for all the same
                await storage.save(FinishedResponse(whole, ended, Display(), request.work))
        await _send(asking, whole, streams=streams)

    async def _answer_shortened(
        self, request: ApiRequest, upstream: UpstreamApi, endpoints: Endpoints, threshold: int
    ) -> None:
        """Answer a request with its conversation compacted if that has so many tokens. The
        compaction comes last in the input, and first in the answer. Where none can be made, the
        conversation stays as it is."""
        asking = self._begin(request, upstream, endpoints)
        asking.compactions.check(CONTEXT_MANAGEMENT)
        body = without_compaction(request.take_body())
        resolved = await self._preparation.resolve(await request.reread(), upstream)
        answer = None
        if await request.work.run(self._is_long, resolved.body, threshold):
            try:
                answer = await self._compact(asking, resolved.body)
            except (AnsweredOtherwise, RequestError, SummarizerError) as failure:
                if Record.get(request.scope).outcome == "left":
                    return
                _log.warning("a conversation was not compacted: %s", type(failure).__name__)
        if answer is None or not answer.blob:
            await self._ask(await _with_body(request, body, request.scope), upstream, endpoints)
            return
        item = compaction_item(answer.blob)
        body["input"] = [*read_input_items(body), item]

        async def ask(scope: Scope, receive: Receive, send: Send) -> None:
            shorter = await _with_body(request, body, scope)
            await self._ask(shorter, upstream, Endpoints(endpoints.app, receive, send))

        merged, limit = request.usage_mode() == "merged", self._event_limit
        shown = ShownCompaction(item, answer.tokens, merged=merged)
        app = RewritingApp(
            ask,
            shown.show_whole,
            limit,
            hide_unread=False,
            hides_raw=False,
            rewrite_frame=shown.show_frame,
        )
        await app(request.scope, endpoints.receive, endpoints.send)

    def _is_long(self, body: Json, threshold: int) -> bool:
        """Return whether a conversation is to be compacted, and would become shorter: not so if
        upstream has its beginning."""
        if body.get(PREVIOUS_RESPONSE_ID) or body.get(CONVERSATION):
            return False
        items = objects(read_input_items(body))
        stays = len(kept_items(items, self._settings.keep_tokens)) + len(retained_items(items))
        return estimate_tokens(body) >= threshold and stays < len(items)

    def _begin(self, request: ApiRequest, upstream: UpstreamApi, endpoints: Endpoints) -> Asking:
        form = request.api.compaction or RESPONSES_COMPACTION
        memory = self._memory.for_route(request.route)
        compactions = Compactions.for_tenant(memory, memory.tenant_tags(request.scope))
        return Asking(request, upstream, endpoints, form, compactions)

    async def _compact(self, asking: Asking, body: Json, instructions: str = "") -> CompactedAnswer:
        """Compact the conversation of a body, which is whole. Raises RequestError,
        AnsweredOtherwise and SummarizerError."""
        request, form, max_tokens = asking.request, asking.form, self._settings.max_tokens
        if body.get(CONVERSATION):
            raise RequestError(UPSTREAMS, param=CONVERSATION, code="unsupported_value")
        content = await request.work.run(self._read, body, request)
        if not (content.items or body.get(PREVIOUS_RESPONSE_ID)):
            raise RequestError(NOTHING_TO_COMPACT, param=form.param, code=NOTHING_CODE)
        prompt = write_prompt(max_tokens, content.open_calls, instructions)
        asked = await request.work.run(form.write_request, body, prompt, max_tokens)
        record = Record.get(request.scope)
        made = record.compaction = record.compaction or CompactionRecord(
            "upstream" if self._writer is None else "model"
        )
        made.outcome = "failed"
        summary = await self._summarize(asking, asked, made)
        is_whole = bool(summary.text) and not summary.reason
        compaction = Compaction(summary.text, content.kept)
        blob = await asking.compactions.keep(compaction) if is_whole else ""
        made.outcome = "ok" if blob else "empty"
        return CompactedAnswer(
            blob,
            summary.text,
            summary.usage.model or request.model,
            summary.usage.tokens,
            summary.reason,
            content.retained if request.compacts else None,
        )

    def _read(self, body: Json, request: ApiRequest) -> Compactable:
        items = as_items(body, request.api)
        own = without_summaries(items)
        return Compactable(
            items,
            [string(items[index].get("name")) for index in open_calls(items)],
            kept_items(own, self._settings.keep_tokens),
            [own[index] for index in retained_items(own)],
        )

    async def _summarize(self, asking: Asking, body: Json, made: CompactionRecord) -> Summary:
        """Have the summary written. The call for it has a record of its own, in which is what it
        used, whatever comes of it."""
        request, writer = asking.request, self._writer
        call = Record.start(request.scope)
        call.id = Record.get(request.scope).id  # errors name the request by it
        model = request.model if writer is None else writer.endpoint.model
        call.note_target(request.api.name, request.route.upstream.name, model)
        made.calls.append(call)
        ask = self._ask_model if writer is None else partial(self._ask_writer, writer)
        try:
            summary = await ask(asking, body, call)
        except SummarizerError as error:
            call.upstream_tokens = error.spent or call.upstream_tokens
            raise
        call.upstream_tokens = summary.usage.tokens or call.upstream_tokens
        return summary

    async def _ask_model(self, asking: Asking, body: Json, call: Record) -> Summary:
        """Have the model that the request names write the summary."""
        request, captured = asking.request, CapturedAnswer(self._event_limit)
        endpoints = replace(asking.endpoints, send=captured.take)
        inner = await _inner_request(request, body, call)
        try:
            await self._ask(inner, asking.upstream, endpoints)
        except (UpstreamBroken, EventTooLarge) as broken:
            raise SummarizerError("upstream_error", str(broken)) from None
        if call.outcome == "left":
            Record.get(request.scope).outcome = "left"
            raise AnsweredOtherwise(())
        profile = PROFILES[request.route.upstream.profile]
        endpoint = ModelEndpoint("", request.model, request.api, profile)
        return await request.work.run(_read_summary, captured, endpoint)

    async def _ask_writer(
        self, writer: ModelSummarizer, asking: Asking, body: Json, _call: Record
    ) -> Summary:
        """Have the configured summarizer write the summary, in its own API."""
        request, max_tokens = asking.request, self._settings.max_tokens
        translated = await request.work.run(writer.translate, body, request.api, max_tokens)
        history = writer.endpoint.api.upstream.history(translated)
        for turn in history.turns:
            history.drop_reasoning(turn)
        text, answer = list[str](), ModelAnswer(writer.endpoint)
        async for piece in writer.call(history.sent_body(), answer):
            text += [piece] if isinstance(piece, str) else []
        return _summary("".join(text), answer)


def _read_summary(captured: CapturedAnswer, endpoint: ModelEndpoint) -> Summary:
    """Read the summary in an answer. Raises SummarizerError and AnsweredOtherwise."""
    start, body = captured.start, bytes(captured.body)
    if start is None:
        raise SummarizerError("upstream_error", "The application did not answer.")
    if start["status"] >= 300:
        last = {"type": "http.response.body", "body": body, "more_body": False}
        raise AnsweredOtherwise((start, last))
    answer = ModelAnswer(endpoint)
    answer.start(start["status"])
    try:
        text = answer.feed(body)
        text += "" if answer.ended else answer.end()
    except EventTooLarge as error:
        raise answer.error("upstream_error", str(error)) from None
    if answer.failed:
        answer.check()
    return _summary(text, answer)


def _summary(text: str, answer: ModelAnswer) -> Summary:
    if len(text) > MAX_SUMMARY_CHARS:
        raise answer.error("upstream_error", "The summary is too long.")
    return Summary(text.strip(), answer.usage, answer.reason)


def _failure(reason: str) -> RequestError:
    message = f"The conversation could not be compacted: {reason}"
    return RequestError(message, status=502, code="upstream_error")


def _echo(resolved: RequestDraft, answer: CompactedAnswer) -> RequestEcho:
    """Return what the response with a compaction repeats of its request."""
    repeated = {name: value for name, value in resolved.body.items() if name != "input"}
    echo = RequestEcho({**repeated, "model": answer.model}, now=time)
    return replace(resolved.references.update_echo(echo), stored=_is_stored_here(resolved))


def _is_stored_here(resolved: RequestDraft) -> bool:
    """Return whether the answer is stored: upstream, which does not make it, cannot do so."""
    storage = resolved.references.storage
    return storage is not None and not isinstance(storage, NoteUpstream)


async def _send(asking: Asking, whole: Json, *, streams: bool) -> None:
    form, record = asking.form, Record.get(asking.request.scope)
    record.status, record.outcome, record.stream = 200, "ok", streams
    named = ErrorWriter(asking.request.api, record.id).id_headers([])
    data = form.write_stream(whole) if streams else dumps(whole)
    start = json_start(200, data, named)
    if streams:
        headers = [(b"content-type", EVENT_STREAM), (b"cache-control", b"no-cache"), *named]
        start = {**start, "headers": headers}
    await asking.endpoints.send(start)
    await asking.endpoints.send({"type": "http.response.body", "body": data, "more_body": False})


async def _inner_request(request: ApiRequest, body: Json, call: Record) -> ApiRequest:
    """Return the request for a summary, with its own record."""
    scope = scope_of_read_answer({**request.scope, TRACE: None, EARLY_HEAD: None})
    scope["headers"] = [*drop_headers(scope["headers"], {CALL_HEADER}), (CALL_HEADER, b"summary")]
    if request.compacts:
        scope["path"] = str(scope["path"]).rstrip("/").removesuffix(COMPACT_SEGMENT)
        scope.pop("raw_path", None)
    scope[RECORD] = call
    inner = await _with_body(request, body, scope)
    call.request_bytes = len(inner.decoded)
    return replace(inner, compacts=False, wish=None, drops_state="compacted")


async def _with_body(request: ApiRequest, body: Json, scope: Scope) -> ApiRequest:
    """Return a request with another body."""
    data = await request.work.run(dumps, body)
    request.buffered.reserve(len(data))
    return replace(
        request,
        scope=scope_for_body(scope, data),
        body=body,
        decoded=data,
        buffered=request.buffered.with_body(data),
        _may_have_state=None,
    )
