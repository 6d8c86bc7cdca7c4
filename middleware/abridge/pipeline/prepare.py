"""Prepare a request for upstream: read it, run the steps, encode it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from starlette.types import Scope

from abridge.apis.api import UpstreamApi
from abridge.apis.effort import LoweredEffort
from abridge.apis.json import dumps, string
from abridge.apis.params import DAMAGED_CODE
from abridge.apis.protocols import RequestEcho
from abridge.apis.shapes import NAMED_BY_CLIENTS
from abridge.config.tables import LimitSettings
from abridge.core.conversation import Json
from abridge.core.language import REASONING
from abridge.errors import RequestError
from abridge.http.asgi import (
    BODY_HEADERS,
    FRAMING_HEADERS,
    get_header,
    scope_for_body,
    scope_of_read_answer,
)
from abridge.memory.registry import MemoryRegistry
from abridge.memory.turn_memory import TurnMemory
from abridge.observability.metrics_sink import MetricsSink
from abridge.observability.record import Record
from abridge.pipeline.body import BufferedBody
from abridge.pipeline.refused_fields import REFUSED, RefusedFields
from abridge.pipeline.request import ApiRequest
from abridge.pipeline.steps import RESOLVING, SAME_API, TRANSLATED, RequestDraft, Step, StepContext
from abridge.providers.catalog import PROFILES
from abridge.providers.learned import Learned
from abridge.providers.profile import Profile
from abridge.stored_responses.storage import StorageAction

TOO_DEEP = "The request body is nested too deeply."


class PreparedRequest(NamedTuple):
    """A request that is ready for upstream."""

    request: ApiRequest  # the client's
    scope: Scope  # for the application
    body: bytes  # for the application
    changed: bool  # the body is not the client's
    model: str  # as upstream names it
    renamed: Mapping[str, str]  # clients' names of models, by upstream's
    lowered: LoweredEffort
    hides_usage: bool  # the client did not ask for it
    models: tuple[str, ...]  # all that may answer: OpenRouter's `models` are fallbacks
    upstream: UpstreamApi
    profile: Profile  # upstream's, refined by what was learned of the model
    turn_memory: TurnMemory
    echo: RequestEcho | None  # what the answer repeats, if it is translated
    echoed: Json  # the fields of the body that an answer of the client's API repeats
    wants_opaque_state: bool | None  # None if the client's API cannot express that
    may_have_state: bool  # there may be opaque reasoning state in the body
    added: frozenset[str]  # the fields that Abridge added, and the request can do without
    storage: StorageAction | None  # stores the answer, if it is to be stored
    summary_language: str | None  # a tag; None: the reasoning's own

    @property
    def translated(self) -> bool:
        """True if upstream speaks another API than the client."""
        return self.echo is not None

    def name_of_upstream(self, answered: str) -> str:
        """Return upstream's name for a model that an answer names, in which clients' names stand
        for the requested ones."""
        names = (name for name, clients in self.renamed.items() if clients == answered)
        return next(names, answered)

    @property
    def buffered(self) -> BufferedBody:
        """The body as the application receives it where its answer is not read."""
        buffered = self.request.buffered
        return buffered.with_body(self.body) if self.changed else buffered


@dataclass(slots=True, frozen=True)
class RequestPreparation:
    """Prepares requests; `learned` has what answers taught of each upstream, by its name, `refused`
    the fields that upstreams refuse."""

    limits: LimitSettings
    memory: MemoryRegistry
    learned: Mapping[str, Learned]
    refused: RefusedFields
    metrics_sink: MetricsSink

    async def prepare(
        self,
        request: ApiRequest,
        upstream: UpstreamApi,
        *,
        engaged: bool,
        summary_due: bool = False,
        summary_language: str = REASONING,
    ) -> PreparedRequest:
        """Prepare a request for one of upstream's APIs. Raises RequestError."""
        context = self._context(
            request, upstream, summary_language, engaged=engaged, summary_due=summary_due
        )
        body = request.take_body()
        draft = RequestDraft(body, request.scope, sent=frozenset(body))
        try:
            await self._take(TRANSLATED if context.translates else SAME_API, draft, context)
            return await context.work.run(_finish, draft, context)
        except RecursionError:
            raise RequestError(TOO_DEEP, code="invalid_json") from None
        finally:
            record = Record.get(request.scope)
            record.history_changes = draft.history_changes
            record.dropped_request_fields = draft.dropped_fields

    async def resolve(self, request: ApiRequest, upstream: UpstreamApi) -> RequestDraft:
        """Return a request with its whole conversation in the body. Raises RequestError."""
        context = self._context(request, upstream, REASONING, engaged=True, summary_due=False)
        draft = RequestDraft(request.take_body(), request.scope)
        await self._take(RESOLVING, draft, context)
        return draft

    async def _take(self, steps: Sequence[Step], draft: RequestDraft, context: StepContext) -> None:
        request = context.request
        try:
            for step in steps:
                await step(draft, context)
        except RequestError as error:
            if error.code == DAMAGED_CODE:
                self.metrics_sink.count_refused_envelope(request.api, request.scope)
            raise draft.references.renumber_error(error) from None

    def _context(
        self,
        request: ApiRequest,
        upstream: UpstreamApi,
        summary_language: str,
        *,
        engaged: bool,
        summary_due: bool,
    ) -> StepContext:
        route = request.route
        model = route.renames.to_upstream(request.model)
        profile = PROFILES[route.upstream.profile]
        return StepContext(
            request,
            model,
            upstream,
            self.learned[route.upstream.name].refine(profile, model),
            TurnMemory(
                self.memory.for_route(route),
                route,
                request.api.name,
                model,
                request.scope,
                translated=upstream is not request.api.upstream,
                requires_reasoning=upstream.requires_reasoning,
                is_read=engaged,
                work=request.work,
            ),
            engaged,
            self.limits,
            summary_language,
            summary_due,
            partial(self.refused.those, REFUSED, route.upstream, model),
        )


def _finish(draft: RequestDraft, context: StepContext) -> PreparedRequest:
    """Encode the draft that the last step made. Raises NestedTooDeep."""
    request, echo = context.request, draft.echo
    body = dumps(draft.body) if draft.changed else request.decoded
    named = {"model": context.model, **draft.body}  # an API may have the model in its path
    repeated = (*request.api.echoed_fields, *NAMED_BY_CLIENTS)
    echoed = {name: named[name] for name in repeated if name in named}
    restored = any(changes.restored for changes in draft.history_changes)
    if echo is not None or context.hides_raw:
        _check_repeatable(echoed if echo is None else echo.body)
    return PreparedRequest(
        request=request,
        scope=_app_scope(draft, body, is_read=context.engaged or bool(draft.renamed)),
        body=body,
        changed=draft.changed,
        model=string(named.get("model")),
        renamed=draft.renamed,
        lowered=draft.lowered,
        hides_usage=draft.hides_usage,
        models=_named_models(named),
        upstream=context.upstream,
        profile=context.profile,
        turn_memory=context.turn_memory,
        echo=echo,
        echoed=echoed,
        wants_opaque_state=request.wants_opaque_state(draft.body if echo is None else echo.body),
        may_have_state=request.may_have_state or restored or draft.references.substituted,
        added=draft.added,
        storage=draft.references.storage,
        summary_language=draft.summary_language,
    )


def _named_models(body: Json) -> tuple[str, ...]:
    fallbacks = body.get("models")
    names = [body.get("model"), *(fallbacks if isinstance(fallbacks, list) else ())]
    return tuple(string(name) for name in names if name is not None)


def _check_repeatable(fields: Json) -> None:
    """Raise NestedTooDeep for fields that the answer could not repeat.

    They stand up to two levels deeper there, in the response of an error. Found out only then, the
    answer would be lost.
    """
    dumps([[fields]])


def _app_scope(draft: RequestDraft, body: bytes, *, is_read: bool) -> Scope:
    """Return the scope for the application.

    It describes the body that the application receives; where the response `is_read`, nothing in it
    lets that go out unread or compressed.
    """
    scope, headers = draft.scope, draft.scope["headers"]
    if draft.changed or is_read:
        replaced = draft.changed or get_header(headers, b"content-encoding")
        scope = scope_for_body(scope, body, BODY_HEADERS if replaced else FRAMING_HEADERS)
    return scope_of_read_answer(scope) if is_read else scope
