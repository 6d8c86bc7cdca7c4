"""What outlasts an answer: what was learned from it, remembered of it and stored."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeAlias

from abridge.apis.display import Display
from abridge.apis.protocols import Reader, Writer
from abridge.config.settings import ATTEMPT, Settings
from abridge.core.conversation import Json
from abridge.core.events import ResponseEnded
from abridge.errors import RequestError
from abridge.lasting import Lasting
from abridge.memory.registry import MemoryRegistry
from abridge.memory.turn_memory import TurnMemory
from abridge.observability.metrics_sink import MetricsSink
from abridge.pipeline.affinity import note_maker
from abridge.pipeline.health import Attempt
from abridge.pipeline.prepare import PreparedRequest
from abridge.providers.catalog import PROFILES
from abridge.providers.learned import Learned
from abridge.stored_responses.storage import FinishedResponse, StorageAction
from abridge.work import Work

RememberTurn: TypeAlias = Callable[[Reader, ResponseEnded, Work], Coroutine[Any, Any, None]]
"""Remembers an answer, however it ended, with the summaries that were shown; the work is that on
all of it. The coroutine starts after the last event was written, and finishes before the client is
sent it."""

SEEMS_PREFILLED = (
    "upstream %s: a model's answers close a block of reasoning that nothing opened; its profile "
    "is probably 'prefilled'"
)

_log = logging.getLogger(__name__)


class AnswerMemory:
    """Learns from answers, remembers and stores them. Failing at that costs no client its answer.

    `learned` is what answers taught of each upstream, by its name.
    """

    def __init__(
        self,
        settings: Settings,
        memory: MemoryRegistry,
        metrics_sink: MetricsSink,
        lasting: Lasting,
    ) -> None:
        self.learned = {
            route.upstream.name: lasting.get(("learned", route.upstream.identity), Learned)
            for route in settings.routes
        }
        self._memory = memory
        self._metrics_sink = metrics_sink

    def for_request(
        self, prepared: PreparedRequest, display: Display, writer: Writer
    ) -> RememberTurn:
        """Return what remembers the answer to one request."""
        attempt: Attempt | None = prepared.scope.get(ATTEMPT)
        stands_in = attempt is not None and attempt.stands_in
        memory, storage = prepared.turn_memory, prepared.storage
        return _AnswerToRemember(self, memory, storage, display, writer, stands_in)

    def note_size(self) -> None:
        """Set the gauge of what is remembered and stored."""
        self._metrics_sink.metrics.store_bytes.set(self._memory.stores.size)


@dataclass(slots=True, frozen=True)
class _AnswerToRemember:
    """The answer to one request. It refers to no more of that than is needed: it is kept for as
    long as the answer streams."""

    answers: AnswerMemory
    memory: TurnMemory
    storage: StorageAction | None
    display: Display
    writer: Writer
    stands_in: bool  # a fallback gave it

    async def __call__(self, reader: Reader, ended: ResponseEnded, work: Work) -> None:
        if ended.ok:
            self._learn(reader)
            await self._remember(reader, ended, work)
        if self.storage is None:
            return
        response = await work.run(lambda: self.writer.final_response)
        if response is not None:
            await self._store(self.storage, response, ended, work)

    def _learn(self, reader: Reader) -> None:
        upstream = self.memory.route.upstream
        learned = self.answers.learned[upstream.name]
        seems_prefilled = learned.record(self.memory.model, reader.observed())
        if seems_prefilled and PROFILES[upstream.profile].learns:
            _log.warning(SEEMS_PREFILLED, upstream.name)

    async def _remember(self, reader: Reader, ended: ResponseEnded, work: Work) -> None:
        try:
            recorded_turns = await work.run(reader.recorded_turns)
            await self.memory.remember(recorded_turns, ended, self.display, work)
            if self.stands_in:
                await note_maker(self.memory, recorded_turns)
        except Exception as error:  # noqa: BLE001 -- upstream may have sent anything
            _log.warning("an answer could not be remembered: %s", type(error).__name__)
        self.answers.note_size()

    async def _store(
        self, storage: StorageAction, response: Json, ended: ResponseEnded, work: Work
    ) -> None:
        try:
            await storage.save(FinishedResponse(response, ended, self.display, work))
        except Exception as error:  # noqa: BLE001 -- upstream may have sent anything
            reason = error.code if isinstance(error, RequestError) else type(error).__name__
            _log.warning("answer not stored: %s", reason)
        self.answers.note_size()
