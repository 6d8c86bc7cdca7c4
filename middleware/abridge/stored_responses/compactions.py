"""Keep the compactions of one tenant: sealed, for the client to carry, or stored under a name.

A sealed one is an envelope that is bound to its tenant alone: any upstream and model may go on from
it, in every process with the keys. Without keys it stays in the store, and what the client carries
is its name there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from abridge.apis.compaction.form import Compaction, unreadable_error
from abridge.apis.json import dumps, loads_exact
from abridge.apis.openai import mint_id
from abridge.core.envelope import ENVELOPE_PREFIX, Envelope
from abridge.errors import RequestError
from abridge.memory.route_memory import RouteMemory
from abridge.stored_responses.repository import ResponseRepository, lookup_error

if TYPE_CHECKING:
    from abridge.memory.client_envelopes import Sealer

STORED_PREFIX = f"{ENVELOPE_PREFIX}."
"""Begins what stands for a stored compaction: no key has an empty id."""

PLACE = b"compaction"
"""What the envelopes are bound to in the place of an answer."""

NEITHER = (
    "Compactions cannot be kept: set history.seal_keys_env to seal them, or history.store to "
    "store them."
)

NOBODY = (
    "Compactions cannot be kept for requests without a credential: send one, or set "
    "history.anonymous."
)


@dataclass(slots=True, frozen=True)
class Compactions:
    """The compactions of the tenant that sends a request."""

    sealer: Sealer | None
    repository: ResponseRepository | None
    refusal: str  # why neither is there, if so

    @classmethod
    def for_tenant(cls, memory: RouteMemory, tags: Mapping[str, bytes] | None) -> Compactions:
        sealer = memory.create_sealer(tags, PLACE.decode(), "", upstream="") if tags else None
        repository = ResponseRepository.for_tenant(memory, tags)
        has_means = memory.keyring.configured or memory.store is not None
        return cls(sealer, repository, NOBODY if has_means else NEITHER)

    def check(self, param: str) -> None:
        """Raise RequestError if none can be kept."""
        if self.sealer is None and self.repository is None:
            raise RequestError(self.refusal, param=param, code="unsupported_value")

    async def keep(self, compaction: Compaction) -> str:
        """Return what stands for a compaction in later requests. One that is too large to be
        sealed is stored; empty if that cannot be either."""
        fields = asdict(compaction)
        blob = self.sealer.seal(Envelope([fields], place=PLACE)) if self.sealer is not None else ""
        if blob or self.repository is None:
            return blob
        name = mint_id("cmp_")
        await self.repository.save_compaction(name, dumps(fields))
        return STORED_PREFIX + name

    async def open(self, blob: str, param: str, code: str) -> Compaction:
        """Return the compaction that a blob stands for. Raises RequestError."""
        fields = None
        repository = self.repository if blob.startswith(STORED_PREFIX) else None
        if repository is not None:
            name = blob.removeprefix(STORED_PREFIX)
            stored = await repository.find_compaction(name)
            fields = None if stored is None else loads_exact(stored)
        elif self.sealer is not None:
            fields = self._unseal(self.sealer, blob, param)
        if fields is None:
            raise lookup_error(unreadable_error(param, code), repository)
        return Compaction(**fields)

    @staticmethod
    def _unseal(sealer: Sealer, blob: str, param: str) -> dict[str, object] | None:
        try:
            envelope = sealer.open(blob, param, PLACE)
        except RequestError:  # it is damaged
            return None
        return None if envelope is None else envelope.reasoning[0]
