"""The summaries that clients were shown, recognised when a client returns them.

A summary that a client returns, in whatever field, is never sent upstream as reasoning.
`SummaryTracker` follows an answer and registers what it shows, in the forms a client may return;
`SummaryRegistry` knows each text by a keyed digest, its mark, longer than originals live.

A text is recognised for the tenant that was shown it, and for nobody else: what becomes of a text
must not tell who sends it that another tenant was shown it. Requests without a tenant cannot be
told apart, and count as one.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import accumulate
from time import monotonic

from cachetools import TTLCache

from abridge.caches import MARKS, OWNER_KEYS, cached
from abridge.core.conversation import ItemKey, without_blanks
from abridge.core.events import (
    Event,
    NativeSummary,
    ReasoningDelta,
    ResponseEnded,
    SummaryPartDone,
    SummaryTextDelta,
)
from abridge.memory.keys import Key, Keyring
from abridge.memory.stores.store import Store
from abridge.memory.tenants import digester, keyed_digest
from abridge.work import in_turns

SHARE_BATCH = 256
"""Marks sent to the shared store at once: more would take longer than the store's time limit."""

MARK_BYTES = 32
"""Length of a mark, in bytes."""

MAX_COMPARED_RAW = 700
"""Characters of reasoning compared with a summary: an extract of longer reasoning, without its
title, is shorter than the reasoning."""

OwnerTags = Mapping[str, bytes]
"""A tenant's tags, by key id."""


class SummaryRegistry:
    """Recognises up to `max_marks` texts shown by this process, each for `ttl` seconds, and those
    that other processes wrote to a shared store, if there is one."""

    def __init__(
        self,
        keyring: Keyring,
        ttl: float,
        store: Store | None = None,
        time: Callable[[], float] = monotonic,
        max_marks: int = MARKS,
    ) -> None:
        self._keyring = keyring
        self._store = store
        self._marks: TTLCache[bytes, None] = TTLCache(max_marks, ttl, timer=time)
        self._unshared: deque[bytes] = deque(maxlen=max_marks)

    def __bool__(self) -> bool:
        return bool(self._marks) or self._store is not None

    def add(self, texts: Iterable[str], owner: OwnerTags) -> None:
        """Recognise these texts from now on, if `owner` returns them."""
        make_mark = _mark_maker(self._keyring.primary, owner)
        for text in texts:
            if encoded := without_blanks(text):
                mark = make_mark(encoded)
                self._marks[mark] = None
                if self._store is not None:
                    self._unshared.append(mark)

    async def share(self) -> None:
        """Write new marks to the shared store, latest first. Retry later those not written."""
        if not self._unshared or self._store is None:
            return
        batch = [self._unshared.pop() for _ in range(min(SHARE_BATCH, len(self._unshared)))]
        written = False
        try:
            written = await self._store.add_marks(batch)
        finally:
            if not written:
                self._unshared.extend(reversed(batch))

    def recogniser(self, owner: OwnerTags) -> Callable[[str], bool]:
        """Return what says of a text whether this process showed it to `owner`."""
        make_marks, marks = self._mark_makers(owner), self._marks

        def is_known(text: str) -> bool:
            encoded = without_blanks(text)
            for make in make_marks:
                if make(encoded) in marks:
                    return bool(encoded)
            return False

        return is_known

    async def find_shared(self, texts: Iterable[str], owner: OwnerTags) -> set[str]:
        """Return the texts that other processes showed to `owner`."""
        shown, make_marks = set[str](), self._mark_makers(owner)
        if self._store is None:
            return shown
        async for batch in in_turns(texts, SHARE_BATCH // 2):  # of each there are two forms
            encoded = [(text, form) for text in batch for form in _encoded_forms(text)]
            marks = [(text, make(form)) for text, form in encoded if form for make in make_marks]
            found = await self._store.has_marks([mark for _, mark in marks]) if marks else []
            shown.update(text for (text, _), is_found in zip(marks, found, strict=True) if is_found)
        return shown

    def _mark_makers(self, owner: OwnerTags) -> list[Callable[[bytes], bytes]]:
        return [_mark_maker(key, owner) for key in self._keyring.keys]


def _encoded_forms(text: str) -> tuple[bytes, bytes]:
    """Return what is marked of a text, and what earlier versions marked in shared stores."""
    return without_blanks(text), text.strip().encode(errors="surrogatepass")


def _mark_maker(key: Key, owner: OwnerTags) -> Callable[[bytes], bytes]:
    """Return what makes the marks of encoded texts."""
    return digester(_owner_mark_key(key.store, owner[key.id]), MARK_BYTES)


@cached(OWNER_KEYS)
def _owner_mark_key(key: bytes, owner: bytes) -> bytes:
    return keyed_digest(key, b"summary", owner)


class _ShownItem:
    """What was shown of a reasoning item: its finished parts, and the deltas of the open one."""

    def __init__(self) -> None:
        self.raw: str | None = ""  # None: longer than what is compared
        self.done_parts: list[str] = []
        self.deltas: list[str] = []


class _ShownLane:
    """Everything shown in one lane, by part."""

    def __init__(self) -> None:
        self.parts: list[list[str]] = []
        self._last: tuple[int, int] | None = None

    def add_text(self, item: int, part: int, text: str) -> None:
        if self._last != (item, part):
            self._last = item, part
            self.parts.append([])
        self.parts[-1].append(text)


@cache
def _followed_events(*, copied: bool, native: bool, translated: bool) -> frozenset[type[Event]]:
    """Return the types of events that a tracker follows. Each set is kept: it takes 216 bytes."""
    followed: set[type[Event]] = {ResponseEnded}
    if copied:
        followed.add(ReasoningDelta)
    if not native:
        followed |= {SummaryTextDelta, SummaryPartDone}
    if translated:
        followed.add(NativeSummary)
    return frozenset(followed)


class SummaryTracker:
    """Follows one answer and registers the summaries it shows.

    A client returns a summary's parts, or an item's whole summary as one text, or those of all
    items if it has one field for them; if it left mid-summary, as much as it had received. Blanks
    do not count. If `translated` is true, upstream's own summary is registered as well: a client of
    another API may have been shown it as reasoning.

    Of a summary that is `copied` from the reasoning, text equal to the item's reasoning is not
    registered. Of a `native` summary, which is the reasoning itself, nothing is.
    """

    def __init__(
        self,
        summaries: SummaryRegistry,
        owner: OwnerTags,
        *,
        copied: bool,
        native: bool = False,
        translated: bool = False,
    ) -> None:
        self._summaries = summaries
        self._owner = owner
        self._followed = _followed_events(copied=copied, native=native, translated=translated)
        self._items: defaultdict[ItemKey, _ShownItem] = defaultdict(_ShownItem)
        self._lanes: defaultdict[int, _ShownLane] = defaultdict(_ShownLane)

    def note(self, events: Iterable[Event]) -> None:
        """Take events on their way to the client."""
        for event in events:
            if type(event) in self._followed:
                self._follow(event)

    def _follow(self, event: Event) -> None:
        match event:
            case ReasoningDelta():
                item = self._items[event.lane or 0, event.item]
                if item.raw is not None:
                    raw = item.raw + event.text
                    item.raw = raw if len(raw) <= MAX_COMPARED_RAW else None
            case SummaryTextDelta():
                self._item(event).deltas.append(event.text)
                self._lane(event).add_text(event.item, event.index, event.text)
            case SummaryPartDone():
                item = self._item(event)
                item.done_parts.append(event.text)
                item.deltas.clear()
                self._register(item, event.text, "".join(item.done_parts))
            case NativeSummary() if event.text:
                self._lane(event).add_text(event.item, event.index, event.text)
            case ResponseEnded():
                raws = self._raws_by_lane()
                for number, lane in self._lanes.items():
                    text = "".join(map("".join, lane.parts))
                    self._register_lane(raws[number], text)

    def client_left(self) -> None:
        """Register every prefix the client may have received: it left after an unknown delta."""
        for item in self._items.values():
            before = "".join(item.done_parts)
            for text in accumulate(item.deltas):
                self._register(item, text, before + text)
        raws = self._raws_by_lane()
        for number, lane in self._lanes.items():
            before = "".join(map("".join, lane.parts[:-1]))
            for text in accumulate(lane.parts[-1]):
                self._register_lane(raws[number], before + text)

    def _item(self, event: ReasoningDelta | SummaryTextDelta | SummaryPartDone) -> _ShownItem:
        return self._items[event.lane or 0, event.item]

    def _lane(self, event: SummaryTextDelta | NativeSummary) -> _ShownLane:
        return self._lanes[event.lane or 0]

    def _register(self, item: _ShownItem, *texts: str) -> None:
        raw = item.raw and without_blanks(item.raw)
        self._summaries.add((text for text in texts if without_blanks(text) != raw), self._owner)

    def _raws_by_lane(self) -> defaultdict[int, list[str | None]]:
        """Return the reasoning of each lane's items, None where it is not known."""
        raws: defaultdict[int, list[str | None]] = defaultdict(list)
        for (lane, _), item in self._items.items():
            raws[lane].append(item.raw)
        return raws

    def _register_lane(self, raws: list[str | None], text: str) -> None:
        """Register everything a lane shows, as one text."""
        known = [without_blanks(raw) for raw in raws if raw is not None]
        if len(known) < len(raws) or without_blanks(text) != b"".join(known):
            self._summaries.add([text], self._owner)
