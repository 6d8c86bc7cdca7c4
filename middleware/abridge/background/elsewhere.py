"""A background response that another process runs, or that has ended."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from abridge.stored_responses.event_log import LOOK_SECONDS, EventIndex, StoredEvents
from abridge.stored_responses.leases import PROCESS_STOPPED, Lease, Stop
from abridge.stored_responses.repository import (
    UNFINISHED,
    LocalRecord,
    lookup_error,
    parse_response,
)
from abridge.stored_responses.views import response_not_found


class RunElsewhere(StoredEvents):
    """Its events, and what can be done about such a response from here. It is an `EventSource`."""

    async def index(self) -> EventIndex | None:
        """Return what there is of its events. If its process has stopped, the response is ended:
        nobody else does that."""
        index, has_lease = await self.index_and_lease()
        if has_lease or (index is not None and index.ended):
            return index
        record, lease = await self._repository.get_values(
            ("response", self._response_id), ("lease", self._response_id)
        )
        found = await parse_response(record)
        if lease is not None:
            return index
        if not isinstance(found, LocalRecord):
            return None  # it was deleted, or the store is down
        if found.response["status"] in UNFINISHED:
            found = await self.stop(found, PROCESS_STOPPED)
        if index is not None:
            await self.end(index, found.response)
        return await super().index()

    async def wait(self, number: int) -> None:  # noqa: ARG002 -- another process counts them
        await asyncio.sleep(LOOK_SECONDS)

    async def stop(self, record: LocalRecord, stop: Stop) -> LocalRecord:
        """Have the process that runs it end it, and store it as ended at once, unless it has ended
        meanwhile."""
        await Lease(self._repository, self._response_id).stop(stop)
        (latest,) = await self._repository.find(self._response_id)
        if not isinstance(latest, LocalRecord):
            raise lookup_error(response_not_found(self._response_id), self._repository)
        if latest.response["status"] not in UNFINISHED:
            return latest
        ended = replace(record, response=stop.apply(record.response))
        await self._repository.save_local(self._response_id, ended, {})
        return ended
