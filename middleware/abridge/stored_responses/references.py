"""References in a request: to the previous response or a conversation, and to items by their ids.

For an upstream with another API than the client's, or one that forgets its responses, all
references are resolved here: it has no stored responses. Any other resolves its own, but cannot
know Abridge's ids.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from abridge.apis.json import loads_exact, objects, packed, string
from abridge.apis.object_references import loaded_id
from abridge.apis.openai import is_minted
from abridge.apis.params import require_list
from abridge.apis.protocols import RequestEcho
from abridge.apis.responses.items import id_prefix
from abridge.apis.responses.messages import read_input_items
from abridge.apis.responses.reasoning import is_reasoning
from abridge.core.conversation import Json
from abridge.errors import RequestError
from abridge.stored_responses.repeats import StoredConversation
from abridge.stored_responses.repository import (
    UNFINISHED,
    InputItems,
    LocalRecord,
    ResponseRepository,
    is_reasoning_id,
    lookup_error,
)
from abridge.stored_responses.storage import (
    ExtendConversation,
    NoteUpstream,
    StorageAction,
    StoreLocally,
    StoreNothing,
)
from abridge.work import Work

PREVIOUS_RESPONSE_ID, CONVERSATION = "previous_response_id", "conversation"

AdmitItems: TypeAlias = Callable[[Sequence[bytes]], Awaitable[None]]
"""Admits the JSON of items to a request. Raises RequestError if they are too much."""

BackgroundStage: TypeAlias = Literal["", "begins", "runs"]
"""What a request is to a background response. The one that `begins` it only has it stored here; the
one that `runs` it makes the answer, which whoever runs it stores. Any other is neither."""

_INPUT_INDEX = re.compile(r"\binput\[(\d+)\]([\w.\[\]]*)")


@dataclass(slots=True, frozen=True)
class ReferenceResolver:
    """Resolves the references of one request."""

    repository: ResponseRepository | None  # None if nothing is stored for the client
    upstream: str  # its name in the settings
    resolves_all: bool  # upstream stores no responses
    shares_key: bool = False  # upstream takes all clients for one
    background: BackgroundStage = ""

    async def resolve(self, body: Json, admit: AdmitItems, work: Work) -> ResolvedReferences:
        """Replace the references in a request's body by the items they stand for.

        Awaits `admit` with the JSON of these items, once they are known. Raises RequestError for
        missing ones.
        """
        store_wanted = body.get("store") in (None, True)
        if self.shares_key and not self.resolves_all:
            await self._check_owner(body, work)
        references = await work.run(
            References,
            body,
            "" if self.resolves_all else self.upstream,
            resolve_all=self.resolves_all,
            include_returned=self.resolves_all and store_wanted,
        )
        await references.look_up(self.repository)
        if resolved := references.resolved:
            await admit(resolved)
            await work.run(references.drop_repeats)
        storage = await work.run(self._storage_action, references, work) if store_wanted else None
        if not references:
            return ResolvedReferences(storage)
        items_before = await work.run(references.substitute)
        return ResolvedReferences(
            storage,
            references.previous_id,
            references.conversation_id,
            substituted=True,
            items_before=items_before,
            indexes=references.indexes,
        )

    async def _check_owner(self, body: Json, work: Work) -> None:
        """Raise RequestError for a response or an item that upstream did not make for the tenant:
        upstream itself would hand it out.

        Reasoning only loses its id: it may be whole as it is, or be restored from memory.
        """
        named = await work.run(lambda: list(_upstream_ids(body)))
        ids = list(dict.fromkeys(name for name, _ in named))
        owners = await self.repository.find_owners(ids) if self.repository is not None else ()
        own = {name for name, owner in zip(ids, owners, strict=False) if owner == self.upstream}
        for name, index in named:
            if name in own:
                continue
            if index is None:
                raise lookup_error(previous_not_found(name), self.repository)
            if not is_reasoning(item := body["input"][index]):
                raise lookup_error(item_not_found(name, index), self.repository)
            del item["id"]
        if self.repository is not None:
            await self.repository.note_owner(own, self.upstream)

    def _storage_action(self, references: References, work: Work) -> StorageAction | None:
        repository, conversation_id = self.repository, references.conversation_id
        if repository is None:
            return None
        note = NoteUpstream(repository, self.upstream, self.shares_key)
        begins = self.background == "begins"
        if not (begins or self.resolves_all or conversation_id):
            return note
        basis = references.add_to_input_items(repository.create_input_items())
        local = StoreLocally(repository, self.upstream, basis, work)
        if begins:
            return local
        storage: StorageAction = local if self.resolves_all else note
        if self.resolves_all and self.background == "runs":
            storage = StoreNothing()
        if not conversation_id:
            return storage
        added_ids = basis.ids[len(references.history_ids) :]
        return ExtendConversation(repository, conversation_id, added_ids, basis.new, storage)


@dataclass(slots=True, frozen=True)
class ResolvedReferences:
    """Result of resolving a request's references."""

    storage: StorageAction | None = None  # stores the answer, if it is to be stored
    previous_id: str = ""  # id of the response that the request continues
    conversation_id: str = ""  # of the conversation, stored here, that it continues
    substituted: bool = False  # items were put in the place of references
    items_before: int = 0  # items now standing before the client's own
    indexes: tuple[int, ...] = ()  # of the client's own items, in the input as it was sent

    def update_echo(self, echo: RequestEcho) -> RequestEcho:
        """Return the echo of a translated request, with what the client's request continued."""
        conversation = {"id": self.conversation_id} if self.conversation_id else None
        continued = {PREVIOUS_RESPONSE_ID: self.previous_id or None, CONVERSATION: conversation}
        body = {**echo.body, **continued}
        return replace(echo, body=body, stored=self.storage is not None)

    def moved(self, sources: Sequence[int]) -> ResolvedReferences:
        """Return these for an input each item of which comes from that with this index."""
        own = [source - self.items_before for source in sources if source >= self.items_before]
        indexes = tuple(self.indexes[index] for index in own) if self.substituted else tuple(own)
        return replace(self, items_before=len(sources) - len(own), indexes=indexes)

    def renumber_error(self, error: RequestError) -> RequestError:
        """Return the error with indexes into `input` as the client counts them."""
        if not ((self.items_before or self.indexes) and error.param):
            return error
        message, param = (
            _INPUT_INDEX.sub(self._renumber, text) for text in (str(error), error.param)
        )
        return RequestError(
            message, status=error.status, kind=error.kind, param=param, code=error.code
        )

    def _renumber(self, match: re.Match[str]) -> str:
        position = int(match[1]) - self.items_before
        if not 0 <= position < len(self.indexes):
            return CONVERSATION if self.conversation_id else PREVIOUS_RESPONSE_ID
        return f"input[{self.indexes[position]}]{match[2]}"


NO_REFERENCES = ResolvedReferences()


class References:
    """References of one request: all if `resolve_all`, else only those to Abridge's own ids.

    With `include_returned`, Abridge's stored items that the client sends back in full are looked
    up, too. `upstream` is the name of one that knows what its own responses continue; `param` is
    what errors call the input.
    """

    def __init__(
        self,
        body: Json,
        upstream: str = "",
        *,
        resolve_all: bool,
        include_returned: bool,
        param: str = "input",
    ) -> None:
        previous, items = string(body.get(PREVIOUS_RESPONSE_ID)), read_input_items(body)
        self.previous_id = previous if resolve_all or is_minted(previous) else ""
        conversation = read_conversation_id(body)
        self.conversation_id = conversation if resolve_all or is_minted(conversation) else ""
        if self.conversation_id and previous:
            raise _exclusive()
        self._body, self._param = body, param
        self._upstream = upstream
        self._upstreams_previous = ""  # what the previous response itself continues there
        self._input = [(referenced_id(item), item) for item in items]
        names = [name for name, _ in self._input if name]
        if names and not resolve_all:
            self._input = [(name if is_minted(name) else "", item) for name, item in self._input]
            names = list(filter(is_minted, names))
        self.indexes = tuple(range(len(items)))
        self._has_names = bool(names)
        if include_returned:
            names = [each for name, item in self._input if (each := name or minted_id(item))]
        self._requested_ids = names
        self.history_ids: list[str] = []  # of the items that what is continued stands for
        self._stored_items: dict[str, bytes] = {}

    async def look_up(self, repository: ResponseRepository | None) -> None:
        """Load what is referred to. Raises RequestError for anything missing."""
        if repository is not None:
            await self._fetch(repository)
        elif self._continues:
            raise self._not_found()
        for index, (name, _) in enumerate(self._input if self._has_names else ()):
            if name and name not in self._stored_items:
                raise lookup_error(item_not_found(name, index, self._param), repository)

    async def _fetch(self, repository: ResponseRepository) -> None:
        history_ids = await self._find_history(repository) if self._continues else []
        ids = list(dict.fromkeys([*history_ids, *self._requested_ids]))
        self._stored_items = await repository.find_items(ids)
        self.history_ids = [name for name in history_ids if name in self._stored_items]
        if not all(map(is_reasoning_id, set(history_ids).difference(self.history_ids))):
            raise lookup_error(self._not_found(), repository)
        await repository.refresh(self._stored_items)

    async def _find_history(self, repository: ResponseRepository) -> list[str]:
        """Return the ids of the items of what the request continues."""
        if self.conversation_id:
            conversation = await repository.find_conversation(self.conversation_id)
            if conversation is None:
                raise lookup_error(self._not_found(), repository)
            return conversation.items
        (record,) = await repository.find(self.previous_id)
        if not isinstance(record, LocalRecord):
            raise lookup_error(self._not_found(), repository)
        if record.response.get("status") in UNFINISHED:
            raise _previous_unfinished(self.previous_id)
        if record.upstream == self._upstream:
            self._upstreams_previous = record.continues_upstream
        return [*record.basis, *record.output]

    @property
    def _continues(self) -> bool:
        return bool(self.previous_id or self.conversation_id)

    def _not_found(self) -> RequestError:
        if self.conversation_id:
            return conversation_not_found(self.conversation_id, param=CONVERSATION)
        return previous_not_found(self.previous_id)

    def drop_repeats(self) -> None:
        """Leave out the items that what the request continues stands for already."""
        if not self._continues:
            return
        known_ids = set(self.history_ids)
        stored = [self._stored_items[name] for name in self.history_ids]
        conversation = StoredConversation(list(map(loads_exact, stored)))
        own = [{} if name or not isinstance(item, dict) else item for name, item in self._input]
        repeats = conversation.find_repeats(own)
        repeats |= {index for index, (name, _) in enumerate(self._input) if name in known_ids}
        self.indexes = tuple(index for index in self.indexes if index not in repeats)
        self._input = [self._input[index] for index in self.indexes]

    @property
    def resolved(self) -> list[bytes]:
        """The JSON of all resolved items, each as often as it is referred to."""
        ids = [*self.history_ids, *[name for name, _ in self._input]]
        return [self._stored_items[name] for name in ids if name in self._stored_items]

    def add_to_input_items(self, input_items: InputItems) -> InputItems:
        """Add the items that the answer is made from, and return them.

        An item with Abridge's id that the client sends back is the stored one if it is unchanged;
        otherwise it is stored as a new item.
        """
        for name in self.history_ids:
            input_items.add_known(name)
        for name, item in self._input:
            if not isinstance(item, dict):
                continue  # rejected when the request is read
            item_id = name or minted_id(item)
            stored = self._stored_items.get(item_id)
            unchanged = stored is not None and (name or is_same_item(loads_exact(stored), item))
            if not (unchanged and input_items.add_known(item_id)):
                new_item = loads_exact(stored) if name and stored is not None else item
                prefix = id_prefix(string(new_item.get("type")))
                input_items.add(prefix, packed(new_item))
        return input_items

    def __bool__(self) -> bool:
        return self._continues or self._has_names

    def substitute(self) -> int:
        """Put the resolved items into `input`; return how many stand before the client's own."""
        if self._body.get("input") is not None and not self._input:
            require_list(self._body, "input")
        history = [self._stored_items[name] for name in self.history_ids]
        items = [
            loads_exact(self._stored_items[name]) if name else item for name, item in self._input
        ]
        self._body["input"] = [*map(loads_exact, history), *items]
        if self._continues:
            del self._body[CONVERSATION if self.conversation_id else PREVIOUS_RESPONSE_ID]
        if self._upstreams_previous:
            self._body[PREVIOUS_RESPONSE_ID] = self._upstreams_previous
        return len(history)


CALL_ID_PREFIX = "call_"
"""Prefix of call ids. Some clients send the call's id as the id of its output item."""


def _upstream_ids(body: Json) -> Iterator[tuple[str, int | None]]:
    """Yield the ids by which upstream would load something, each with its index in the input; None
    for the previous response. Those that Abridge made are not upstream's."""
    if (previous := string(body.get(PREVIOUS_RESPONSE_ID))) and not is_minted(previous):
        yield previous, None
    for index, item in enumerate(read_input_items(body)):
        name = referenced_id(item) or loaded_id(item)
        if name and not is_minted(name):
            yield name, index


def read_conversation_id(body: Json) -> str:
    """Return the id of the conversation that a request continues; empty if it names none."""
    value = body.get(CONVERSATION)
    return string(value.get("id") if isinstance(value, dict) else value)


def referenced_id(item: Any) -> str:
    """Return the id that an item reference names; empty for an item that is no reference."""
    if not isinstance(item, dict) or "id" not in item:
        return ""
    is_bare = item.get("type") is None and item.keys() <= {"type", "id"}
    return string(item.get("id")) if is_bare or item.get("type") == "item_reference" else ""


def minted_id(item: Any) -> str:
    """Return the minted id of an item that the client sends back; empty if it has none."""
    if not isinstance(item, dict) or "id" not in item or referenced_id(item):
        return ""
    item_id = string(item.get("id"))
    return item_id if is_minted(item_id) and not item_id.startswith(CALL_ID_PREFIX) else ""


def is_same_item(item: Json, other: Json) -> bool:
    """Return whether two items are equal but for null fields, which clients may add."""
    return _without_nulls(item) == _without_nulls(other)


def _without_nulls(item: Json) -> Json:
    return {key: value for key, value in item.items() if value is not None}


def remove_minted_ids(body: Json) -> int:
    """Remove minted ids from a request, since upstream cannot know them.

    Return how many there were.
    """
    items = [item for item in objects(body.get("input")) if "id" in item and minted_id(item)]
    for item in items:
        del item["id"]
    return len(items)


def refuse_unstored(body: Json, *, resolves_all: bool, has_store: bool) -> None:
    """Raise RequestError for a request that continues a response of Abridge's, or of an upstream
    that has none, where nothing is stored for the client: the error names the setting."""
    previous, conversation = string(body.get(PREVIOUS_RESPONSE_ID)), read_conversation_id(body)
    reason = why_unstored(has_store=has_store)
    if previous and (resolves_all or is_minted(previous)):
        raise previous_not_found(previous, reason)
    if conversation and (resolves_all or is_minted(conversation)):
        raise conversation_not_found(conversation, reason, param=CONVERSATION)


def why_unstored(*, has_store: bool) -> str:
    """Return why nothing is stored for a client, as an addition to an error."""
    if has_store:
        return ": nothing is stored for clients without a credential (history.anonymous)"
    return ': history.store is "none", so no response is stored'


def previous_not_found(response_id: str, reason: str = "") -> RequestError:
    return RequestError(
        f"Previous response with id '{response_id}' not found{reason}.",
        param="previous_response_id",
        code="previous_response_not_found",
    )


def conversation_not_found(
    conversation_id: str, reason: str = "", *, param: str | None = None
) -> RequestError:
    message = f"Conversation with id '{conversation_id}' not found{reason}."
    return RequestError(message, status=404, param=param)


def _exclusive() -> RequestError:
    return RequestError(
        f"Mutually exclusive parameters: '{PREVIOUS_RESPONSE_ID}' and '{CONVERSATION}'. Provide "
        "only one of them.",
        param=PREVIOUS_RESPONSE_ID,
        code="mutually_exclusive_parameters",
    )


def _previous_unfinished(response_id: str) -> RequestError:
    return RequestError(
        f"Previous response with id '{response_id}' has not finished yet.",
        param="previous_response_id",
        code="previous_response_unfinished",
    )


def item_not_found(item_id: str, index: int, param: str = "input") -> RequestError:
    return RequestError(f"Item with id '{item_id}' not found.", param=f"{param}[{index}].id")
