"""Who runs a background response, and who has ended it.

The process that runs it renews a lease, which expires in the store by itself: so no clock but the
store's counts. Any other process may end the response by a stop, which the one that runs it finds.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from abridge.apis.json import dumps, loads
from abridge.apis.responses.errors import as_failed
from abridge.core.conversation import Json
from abridge.core.events import ErrorDetail
from abridge.stored_responses.repository import ResponseRepository, store_unavailable


@dataclass(slots=True, frozen=True)
class Stop:
    """Why a response ends before it is complete. Field names are the stored JSON keys."""

    status: str  # "failed", "cancelled" or "deleted"
    reason: str = ""  # of a failure

    def apply(self, response: Json) -> Json:
        """Return the response as it ends."""
        if self.status == "failed":
            return as_failed(response, ErrorDetail("server_error", self.reason))
        return {**response, "status": "cancelled"}


CANCELLED, DELETED = Stop("cancelled"), Stop("deleted")

SERVER_STOPPING = Stop("failed", "The server was shut down while this response was running.")

PROCESS_STOPPED = Stop(
    "failed", "The process that ran this response stopped, or could no longer reach the store."
)


@dataclass(slots=True, frozen=True)
class Lease:
    """The lease of one response, and its stop."""

    repository: ResponseRepository
    response_id: str

    async def renew(self, seconds: float) -> bool:
        """Return whether that worked. A store that forgets what was not used for longest keeps the
        record as well."""
        await self.repository.get_values(("response", self.response_id))
        return await self.repository.put_values({("lease", self.response_id): b"1"}, seconds)

    async def stop(self, stop: Stop) -> None:
        """Raises RequestError if the store cannot be reached."""
        if not await self.repository.put_values({("stop", self.response_id): dumps(asdict(stop))}):
            raise store_unavailable("The store cannot be reached, so it may go on.")

    async def find_stop(self) -> Stop | None:
        (value,) = await self.repository.get_values(("stop", self.response_id))
        return None if value is None else Stop(**loads(value))
