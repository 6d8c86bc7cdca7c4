"""Send reasoning state back to the upstream that made it.

Only the account that made state can read it. A request's own upstream is asked first anyway. So it
is only of what a fallback made that a note is kept, in the store, under a digest of the state;
envelopes say themselves for whom they were sealed. A request that carries such state goes first to
the fallback that made it, while that is up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

from abridge.apis.opaque_state import find_states, last_states
from abridge.config.settings import Route
from abridge.core.conversation import RecordedTurn
from abridge.core.envelope import ENVELOPE_PREFIX
from abridge.memory.registry import MemoryRegistry
from abridge.memory.turn_memory import TurnMemory
from abridge.pipeline.request import ApiRequest
from abridge.stored_responses.repository import ResponseRepository, tenant_repositories


async def note_maker(memory: TurnMemory, turns: Iterable[RecordedTurn]) -> None:
    """Note which upstream made the state of an answer."""
    tags = memory.owner.tags if memory.owner is not None else None
    repository = ResponseRepository.for_tenant(memory.route_memory, tags)
    states = [state for turn in turns for state in find_states(turn.original)]
    if repository is not None and states:
        await repository.note_owner(map(_state_id, states), memory.route.upstream.name)


async def find_maker(
    request: ApiRequest, routes: Sequence[Route], registry: MemoryRegistry
) -> Route | None:
    """Return the route of the upstream that made the latest state in a request, if it is one of
    these and known."""
    if not request.may_have_state:
        return None
    items = request.body.get(request.api.conversation_field)
    states = await request.work.run(last_states, items)
    for state in states:
        if state.startswith(ENVELOPE_PREFIX):
            return next((each for each in routes if _sealed(state, request, each, registry)), None)
    return await find_owner(list(map(_state_id, states)), request, routes, registry)


async def find_owner(
    names: Sequence[str], request: ApiRequest, routes: Iterable[Route], registry: MemoryRegistry
) -> Route | None:
    """Return the route of the upstream that made a response, or what else has one of these names,
    if it is one of these and known."""
    by_name = {route.upstream.name: route for route in routes}
    memories = map(registry.for_route, by_name.values() if names else ())
    for repository in tenant_repositories(memories, request.scope):
        records = await repository.find(*names)
        made = [record.upstream for record in records if record is not None]
        for upstream in made or await repository.find_owners(names):
            if upstream in by_name:
                return by_name[upstream]
    return None


def _sealed(blob: str, request: ApiRequest, route: Route, registry: MemoryRegistry) -> bool:
    """Return whether an envelope was sealed for this upstream."""
    memory, model = registry.for_route(route), route.renames.to_upstream(request.model)
    tags = memory.tenant_tags(request.scope) or {}
    sealer = memory.create_sealer(tags, request.api.name, model)
    return sealer is not None and sealer.has_sealed(blob)


def _state_id(state: str) -> str:
    return f"state:{sha256(state.encode(errors='surrogatepass')).hexdigest()}"
