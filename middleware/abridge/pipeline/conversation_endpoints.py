"""Serve the endpoints of conversations that are kept here, since upstream keeps none.

Whose id Abridge made is kept here. Who keeps a new one is found out when it is created: upstream is
asked first, unless it is known to keep none, or the path is closed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple, cast

from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.apis.json import dumps, loads_exact, parse_object
from abridge.apis.openai import is_minted
from abridge.client_shares import client_of
from abridge.config.settings import ROUTE, Settings
from abridge.core.conversation import Json
from abridge.errors import EndpointMissing, RequestError
from abridge.http.asgi import decoded_path, request_paths, send_json
from abridge.memory.registry import MemoryRegistry
from abridge.observability.record import Record
from abridge.pipeline.body import BufferedBody, MemoryBudget, ReserveMemory, buffer_body
from abridge.pipeline.closed_paths import ClosedPaths
from abridge.pipeline.discovery import endpoint_trial
from abridge.pipeline.request import admit_values, check_item_count, decode_body, too_large
from abridge.providers.catalog import PROFILES
from abridge.stored_responses.conversations import LocalConversation
from abridge.stored_responses.endpoints import lacks_storage
from abridge.stored_responses.references import conversation_not_found, why_unstored
from abridge.stored_responses.repository import (
    ResponseRepository,
    lookup_error,
    tenant_repositories,
)
from abridge.work import Work

CONVERSATIONS_PATH = "/conversations"

Resource = Literal["conversations", "conversation", "items", "item"]

ENDPOINTS = (
    *(("POST", "conversations"), ("GET", "conversation"), ("POST", "conversation")),
    *(("DELETE", "conversation"), ("GET", "items"), ("POST", "items")),
    *(("GET", "item"), ("DELETE", "item")),
)

_PATH = re.compile(
    r".*/conversations(?:/([\w-]+)(?:/(items)(?:/([\w+=-]+))?)?)?/?", re.ASCII | re.DOTALL
)


class ConversationPath(NamedTuple):
    """The endpoint that a request addresses."""

    method: str
    resource: Resource
    conversation_id: str  # empty for `conversations`
    item_id: str  # empty but for `item`

    @classmethod
    def parse(cls, method: str, path: str) -> ConversationPath | None:
        match = _PATH.fullmatch(path)
        if match is None:
            return None
        conversation_id, items, item_id = match.groups("")
        names = ("conversations", "conversation", "items", "item")
        depth = sum(map(bool, (conversation_id, items, item_id)))
        resource = cast(Resource, names[depth])
        if (method, resource) not in ENDPOINTS:
            return None
        return cls(method, resource, conversation_id, item_id)


class ConversationEndpoints:
    """Serves conversations that are kept here; `app` is asked whether it keeps them itself."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        memory: MemoryRegistry,
        budget: MemoryBudget,
        paths: ClosedPaths,
    ) -> None:
        self._trial = endpoint_trial(app)
        self._route = settings.routes[0]
        self._memories = [memory.for_route(route) for route in settings.routes]
        self._limits = settings.limits
        self._budget = budget
        self._paths = paths
        upstream = self._route.upstream
        self._lacks_storage = (
            lacks_storage(upstream) or PROFILES[upstream.profile].forgets_responses
        )

    def _takes(self, path: ConversationPath, scope: Scope, *, may_ask: bool) -> bool:
        """Return whether a request is served here. `may_ask`: upstream may be asked."""
        is_at_base = self._paths.opened.lead_to(CONVERSATIONS_PATH, *request_paths(scope))
        if self._lacks_storage and is_at_base:
            return True
        if path.conversation_id:
            return is_minted(path.conversation_id)
        return self._repository(scope) is not None and (may_ask or is_at_base)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer a request about a conversation that is kept here; return False for any other.
        Raises RequestError."""
        path = ConversationPath.parse(scope["method"], decoded_path(scope))
        if path is None:
            return False
        may_ask = self._paths.may_ask(scope, self._route)
        if not self._takes(path, scope, may_ask=may_ask):
            return False
        with self._budget.reserving(client_of(scope)) as reserve:
            buffered = await buffer_body(scope, receive, self._limits, reserve)
            if buffered.client_left:
                return True
            asks_first = path.resource == "conversations" and may_ask and not self._lacks_storage
            if asks_first and await self._ask_upstream(scope, buffered, send):
                return True
            content = await self._answer_locally(path, scope, buffered)
        record = Record.get(scope)
        record.status, record.outcome = 200, "stored"
        await send_json(send, await Work(heavy=True).run(dumps, content))
        return True

    async def _ask_upstream(self, scope: Scope, buffered: BufferedBody, send: Send) -> bool:
        """Have upstream create a conversation; return False if it has no such endpoint."""
        replayed = buffered.with_body(buffered.data) if buffered.data is not None else buffered
        try:
            await self._trial({**scope, ROUTE: self._route}, replayed, send)
        except EndpointMissing:
            return False
        Record.get(scope).outcome = "untouched"
        return True

    async def _answer_locally(
        self, path: ConversationPath, scope: Scope, buffered: BufferedBody
    ) -> Json:
        work, admit = Work(), partial(self._admit, buffered.reserve)
        body = await self._parse(scope, buffered, work) if path.method == "POST" else {}
        repository = self._repository(scope)
        if path.resource == "conversations" and repository is not None:
            return await LocalConversation.create(repository, body, admit, work)
        conversation = await self._find(path, scope)
        match path.method, path.resource:
            case "GET", "conversation":
                return conversation.retrieve()
            case "POST", "conversation":
                return await conversation.update(body)
            case "DELETE", "conversation":
                return await conversation.delete()
            case "GET", "items":
                return await conversation.list_items(scope.get("query_string", b""))
            case "POST", "items":
                return await conversation.add_items(body, admit, work)
            case "GET", "item":
                return await conversation.retrieve_item(path.item_id)
        return await conversation.delete_item(path.item_id)

    async def _parse(self, scope: Scope, buffered: BufferedBody, work: Work) -> Json:
        if buffered.data is None:
            raise too_large("request body", self._limits.body)
        data = await decode_body(scope, buffered.data, int(self._limits.body)) or b"{}"
        work.add(data)
        await admit_values(data, work, self._limits.values, buffered.reserve)
        body = await work.run(parse_object, data, loads_exact)
        if body is None:
            raise RequestError("The request body is not a JSON object.", code="invalid_json")
        return body

    async def _admit(self, reserve: ReserveMemory, items: Sequence[bytes]) -> None:
        """Admit all items of a conversation that is to grow: it may grow no larger than a request
        that continues it."""
        check_item_count({"items": items}, "items", self._limits.items)
        size = sum(map(len, items))
        if size > self._limits.body:
            raise too_large("conversation", self._limits.body)
        reserve(size)

    def _repository(self, scope: Scope) -> ResponseRepository | None:
        """Return where the tenant's new conversations are kept; None if nothing is."""
        return next(tenant_repositories(self._memories[:1], scope), None)

    async def _find(self, path: ConversationPath, scope: Scope) -> LocalConversation:
        for repository in tenant_repositories(self._memories, scope):
            record = await repository.find_conversation(path.conversation_id)
            if record is not None:
                return LocalConversation(path.conversation_id, record, repository)
        reason = why_unstored(has_store=self._memories[0].store is not None)
        if path.resource == "conversations":
            raise RequestError(f"A conversation cannot be created{reason}.")
        is_kept = self._repository(scope) is not None
        error = conversation_not_found(path.conversation_id, "" if is_kept else reason)
        raise lookup_error(error, *tenant_repositories(self._memories, scope))
