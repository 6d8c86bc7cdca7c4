"""A request's history: its turns, and the ways to change what of them reaches upstream.

`History` is all that the rest of Abridge knows of one. Where an answer is a list of pieces (items
on Responses, blocks on Messages, parts on Gemini), some of which are reasoning, a turn is a run of
them: `PieceHistory` says for all of these what becomes of the reasoning, and each API what of its
pieces is which.
"""

from __future__ import annotations

import operator
import re
from abc import ABC, abstractmethod
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, groupby, islice, pairwise
from typing import Any, ClassVar, Literal, TypeAlias

from abridge.apis.attribution_fields import strip_attribution
from abridge.apis.json import objects, string
from abridge.apis.opaque_state import find_states
from abridge.core.conversation import ItemKey, Json, RecordedTurn, Turn, encode_sorted
from abridge.core.envelope import Envelope, OpenEnvelope
from abridge.core.places import place_after_call
from abridge.providers.profile import TAGS, Profile, Tag
from abridge.stages.tags import may_have_tags

IsOurSummary: TypeAlias = Callable[[str], bool]
"""Recognizes a summary of Abridge's by its text."""

FindOriginal: TypeAlias = Callable[[Turn], Sequence[Json]]
"""Returns the reasoning that upstream sent with a turn, as far as it is known."""

Placement: TypeAlias = Literal["unchanged", "moved", "dropped"]
"""Result of placing a turn's reasoning for upstream, which may read it elsewhere than in the field
where the client has it.
"""

MAX_CALLS_AHEAD = 16
"""Calls of an answer after which sealed reasoning that stands before them may be from: each of the
next ones is tried."""


class History(ABC):
    """A request's turns, and the ways to change what of them reaches upstream."""

    turns: list[Turn]

    def __init__(self, body: Json) -> None:
        self._body = body

    @abstractmethod
    def strip(self, turn: Turn, is_our_summary: IsOurSummary) -> tuple[int, bool]:
        """Take out of a turn what Abridge put into it.

        Return the number of things taken out, and True if reasoning is left that is the model's
        own.
        """

    def strip_attribution(self, turn: Turn) -> int:
        """Take the attribution out of a turn's calls; return how many fields that were.

        Attribution says nothing about the state of the turn's reasoning.
        """
        return sum(map(strip_attribution, self.calls(turn)))

    def calls(self, _turn: Turn) -> Iterable[Json]:
        """Return a turn's calls, on an API that clients speak: only they get an attribution."""
        return ()

    def open_envelopes(self, _turn: Turn, _open_envelope: OpenEnvelope) -> None:  # noqa: B027 -- only clients send any
        """Replace each envelope in a turn by what `open_envelope` returns for it.

        No envelope of Abridge's is left, whichever turn it is in. Only clients send any.
        """

    @abstractmethod
    def reasoning_texts(self, turn: Turn) -> tuple[str, ...]:
        """Return the texts that stand in the places of reasoning."""

    @abstractmethod
    def reasoning_states(self, turn: Turn) -> set[str]:
        """Return the opaque state in a turn's reasoning and, on Responses, the ids of its items:
        all by which a client says whose reasoning it returned."""

    def put_back(self, _find_original: FindOriginal) -> int:
        """Move what a client returned of a turn's reasoning before an earlier call of its answer to
        that turn again; return how many pieces."""
        return 0

    @abstractmethod
    def restore(self, turn: Turn, original: list[Json]) -> None:
        """Give a turn the reasoning that upstream sent with it, and no other."""

    @abstractmethod
    def drop_reasoning(self, turn: Turn) -> bool:
        """Remove all reasoning from a turn, inline and opaque included; return True if there was
        any.
        """

    def place_reasoning(self, _turn: Turn, _profile: Profile) -> Placement:
        """Put a turn's reasoning where the profile reads it, if anywhere; most APIs have one place
        for it."""
        return "unchanged"

    def next_place(self) -> bytes | None:
        """Return what an envelope in the answer is bound to, from what the request ends with; None
        on an API where envelopes are bound to their own answer."""
        return None

    def body(self) -> Json:
        """Return the request's body in its present state."""
        return self._body

    def sent_body(self) -> Json:
        """Return the same for upstream, which gets it as it is, and not translated: without what it
        would refuse with this history."""
        return self.body()


class PieceHistory(History):
    """A history in which the items of an assistant's turn are the pieces of an answer."""

    separator: ClassVar[str] = ""
    """Stands between the texts of several pieces of reasoning."""

    @staticmethod
    @abstractmethod
    def is_reasoning(piece: Json, /) -> bool: ...

    @staticmethod
    @abstractmethod
    def raw_text(piece: Json, /) -> str:
        """Return the text of a piece of reasoning that is no summary."""

    @classmethod
    def raw_texts(cls, pieces: Iterable[Json]) -> list[str]:
        return [
            text for piece in pieces if cls.is_reasoning(piece) and (text := cls.raw_text(piece))
        ]

    @classmethod
    def without_reasoning(cls, pieces: Iterable[Json]) -> list[Json]:
        return [piece for piece in pieces if not cls.is_reasoning(piece)]

    @staticmethod
    @abstractmethod
    def read_joined_turn(pieces: Sequence[Json]) -> Turn:
        """Return the one turn that all pieces of an answer make."""

    @classmethod
    def original_of(cls, answer: Sequence[Json]) -> list[Json]:
        """Return what of an answer has to come back as it was: all of it if it has reasoning, where
        an API wants back each piece as it was."""
        return list(answer) if any(map(cls.is_reasoning, answer)) else []

    @classmethod
    def record_joined_turn(
        cls, answer: Sequence[Json], keys: Iterable[ItemKey]
    ) -> list[RecordedTurn]:
        """Return the turn of an answer for a client of another API, with the keys of its reasoning
        items."""
        if not answer:
            return []
        raw, original = cls.separator.join(cls.raw_texts(answer)), cls.original_of(answer)
        return [RecordedTurn(cls.read_joined_turn(answer), raw, original, tuple(keys))]

    def reasoning_texts(self, turn: Turn) -> tuple[str, ...]:
        """Return the whole reasoning of a turn: a piece of it may be another turn's."""
        return tuple(filter(None, ["".join(self.raw_texts(turn.items))]))

    def reasoning_states(self, turn: Turn) -> set[str]:
        return set(find_states(list(filter(self.is_reasoning, turn.items))))

    def drop_reasoning(self, turn: Turn) -> bool:
        remaining = self.without_reasoning(turn.items)
        dropped = len(remaining) < len(turn.items)
        turn.items[:] = remaining
        return dropped


class ClientPieceHistory(PieceHistory):
    """The same, of an API that clients speak as well.

    A turn ends with a call, since clients drop the reasoning between two texts or join these. A
    client of another API sends everything the assistant wrote without a break as one message: so in
    a translated request all of that is one joined turn.
    """

    order: ClassVar[Mapping[str, int]]
    """The order, by their types, in which reasoning is simply put before the rest of its turn, and
    clients of other APIs can keep the rest, since they have one place for text and one for calls.
    Any other type is ""."""

    def __init__(self, body: Json, *, is_translated: bool = False) -> None:
        super().__init__(body)
        self._is_translated = is_translated
        self._moved = defaultdict[int, list[Json]](list)  # reasoning, by `id()` of its turn

    @staticmethod
    @abstractmethod
    def read_turns(pieces: Sequence[Json]) -> Iterator[Turn]:
        """Yield the turns that pieces make for a client of the same API: a call ends one."""

    @property
    @abstractmethod
    def _places(self) -> tuple[Mapping[int, Any], bytes]:
        """The places of pieces with reasoning, by `id()`, and that of what comes next."""

    def next_place(self) -> bytes:
        _, place = self._places
        return place

    def open_envelopes(self, turn: Turn, open_envelope: OpenEnvelope) -> None:
        ahead = self._calls_ahead[id(turn)]
        if next(iter(ahead.values()), None) is turn:
            ahead.popitem(last=False)
        opened = [self._open_piece(piece, turn, open_envelope) for piece in turn.items]
        turn.items[:] = chain(self._moved.pop(id(turn), ()), *opened)

    @abstractmethod
    def _open_piece(self, piece: Json, turn: Turn, open_envelope: OpenEnvelope) -> list[Json]:
        """Return what stands in the place of a piece of this turn: the piece itself, unless it has
        an envelope."""

    def _take_opened(self, found: Envelope, turn: Turn, place: bytes | None) -> list[Json]:
        """Return what of an envelope stands where it was found: nothing if it is from after a call.
        Then it goes there."""
        ahead = self._calls_ahead[id(turn)]
        own = turn if found.place == place else ahead.get(found.place or b"", turn)
        own.from_envelope, own.is_plain = True, False
        if own is turn:
            return found.reasoning
        while next(iter(ahead.values())) is not own:
            ahead.popitem(last=False)
        self._moved[id(own)] += found.reasoning
        return []

    def _places_ahead(self, turn: Turn) -> Iterable[bytes]:
        """Return the places after the next calls before which a turn's reasoning stands: the
        reasoning of an answer is in the order of its calls."""
        return islice(self._calls_ahead[id(turn)], MAX_CALLS_AHEAD)

    @cached_property
    def _calls_ahead(self) -> defaultdict[int, OrderedDict[bytes, Turn]]:
        """For each turn of an answer, by `id()`, the turns that follow its calls, by the places
        after these. Clients that keep the reasoning of an answer in a list of its own, as LiteLLM
        does, return it before all calls."""
        found = defaultdict[int, OrderedDict[bytes, Turn]](OrderedDict)
        for before, turn in pairwise(self.turns):
            if turn.role == before.role == "assistant":
                found[id(turn)] = found[id(before)]
                if place := place_after_call(before.calls[-1].id if before.calls else ""):
                    found[id(turn)].setdefault(place, turn)
        return found

    def put_back(self, find_original: FindOriginal) -> int:
        runs = groupby(self.turns, lambda turn: turn.role == "assistant")
        return sum(self._put_back(list(run), find_original) for is_answer, run in runs if is_answer)

    def _put_back(self, turns: Sequence[Turn], find_original: FindOriginal) -> int:
        homes = self._find_homes(turns, find_original) if len(turns) > 1 else {}
        moved = 0
        items = [list[Json]() for _ in turns]
        for number, turn in enumerate(turns):
            for piece in turn.items:
                home = max(number, homes.get(id(piece), 0))
                items[home].append(piece)
                moved += home > number
        for turn, own in zip(turns, items, strict=True):
            turn.is_plain = turn.is_plain and len(own) == len(turn.items)
            turn.items[:] = own
        return moved

    def _find_homes(self, turns: Sequence[Turn], find_original: FindOriginal) -> dict[int, int]:
        """Return the numbers of the turns with which upstream sent the reasoning in an answer, by
        the `id()` of its pieces."""
        returned = defaultdict[str, deque[Json]](deque)
        for piece in chain.from_iterable(turn.items for turn in turns):
            for mark in self._marks(piece):
                returned[mark].append(piece)
        homes = dict[int, int]()
        for number, turn in enumerate(turns):
            for piece in find_original(turn):
                same = next((returned[mark] for mark in self._marks(piece) if returned[mark]), None)
                if same:
                    homes.setdefault(id(same.popleft()), number)
        return homes

    def _marks(self, piece: Json) -> list[str]:
        """Return what a piece of reasoning is known by, the best first, whatever clients drop."""
        if not self.is_reasoning(piece):
            return []
        texts = string(piece.get("id")), self.raw_text(piece).strip()
        return [*find_states(piece), *filter(None, texts)]

    @staticmethod
    def as_sent(pieces: Iterable[Json]) -> list[Json]:
        """Return pieces as upstream wrote them, which a reader may have changed."""
        return list(pieces)

    @staticmethod
    def says_anything(_reasoning: Sequence[Json]) -> bool:
        """Return whether there is anything in reasoning that would ever have to be restored."""
        return True

    def restore(self, turn: Turn, original: list[Json]) -> None:
        """Put reasoning where it was in the turn or, if that was edited since, before it."""
        turn.is_plain = False
        said, given = self.without_reasoning(original), self.without_reasoning(turn.items)
        before, now = self.read_joined_turn(said), self.read_joined_turn(given)
        if before.encode_canonical() != now.encode_canonical():
            turn.items[:] = [*filter(self.is_reasoning, original), *given]
            return
        is_split_alike = list(map(kind_of, said)) == list(map(kind_of, given))
        own = iter(given if is_split_alike else said)
        turn.items[:] = [each if self.is_reasoning(each) else next(own) for each in original]

    @classmethod
    def original_of(cls, answer: Sequence[Json]) -> list[Json]:
        """See `PieceHistory`: here its reasoning, readable or not. If its pieces are in another
        order, all of them."""
        reasoning = list(filter(cls.is_reasoning, answer))
        places = [cls.order.get(kind_of(piece), cls.order[""]) for piece in answer]
        is_kept = places == sorted(places) or not reasoning
        return cls.as_sent(reasoning if is_kept else answer)

    @classmethod
    def record(
        cls, pieces: Sequence[tuple[ItemKey | None, Json]], *, joined: bool
    ) -> list[RecordedTurn]:
        """Return the turns of an answer, for a client of the same API or, `joined`, of another:
        each piece with the key of the reasoning item that it is, or None."""
        keys = [key for key, piece in pieces if cls.is_reasoning(piece)]
        answer = [piece for _, piece in pieces]
        if joined:
            return cls.record_joined_turn(answer, filter(None, keys))
        return cls._record_turns(answer, iter(keys))

    @classmethod
    def _record_turns(
        cls, answer: Sequence[Json], keys: Iterator[ItemKey | None]
    ) -> list[RecordedTurn]:
        turns, recorded = list(cls.read_turns(answer)), list[RecordedTurn]()
        for index, turn in enumerate(turns):
            reasoning = list(filter(cls.is_reasoning, turn.items))
            own_keys = [key for _, key in zip(reasoning, keys, strict=False)]
            raw = "".join(cls.raw_texts(reasoning))
            original = cls.original_of(turn.items) if cls.says_anything(reasoning) else []
            turns_before = tuple(turns[max(index - 1, 0) : index])
            recorded.append(
                RecordedTurn(turn, raw, original, tuple(filter(None, own_keys)), turns_before)
            )
        return recorded


def kind_of(piece: Json) -> str:
    """Return the type of a piece; clients leave out that of a message."""
    return string(piece.get("type")) or "message"


def read_text(content: Any, other_key: str = "text") -> str:
    """Return the text of a content, followed by its other parts as JSON. A part has its text under
    `text` or, on an API with refusals, under another key."""
    if isinstance(content, str):
        return content
    parts = objects(content)
    texts = "".join([string(part.get("text")) or string(part.get(other_key)) for part in parts])
    others = [encode_sorted(part) for part in parts if "text" not in part and other_key not in part]
    return "\n".join([texts, *others])


# Summaries inside the text of an answer, between tags: clients write reasoning that they find no
# field for that way, as pydantic-ai does with every part of a summary but the first
# (`models/openai.py`, thinking parts of a Responses request).

TEXT_TYPES = ("text", "output_text")
"""Types of the parts of a content that hold an answer's text."""

_OPENINGS = tuple(tag.opening for tag in TAGS)

_BLANK_LINES = re.compile(r"\s*\n")


def strip_content(content: Any, is_our_summary: IsOurSummary) -> Any:
    """Return an answer's content, a text or a list of parts, without Abridge's summaries in it.

    Parts of which nothing is left are left out. Unchanged, the content itself is returned.
    """
    if isinstance(content, str):
        return strip_text(content, is_our_summary)
    if not isinstance(content, list) or not any(map(_may_have_tags, content)):
        return content
    remaining = [rest for part in content for rest in _strip_part(part, is_our_summary)]
    is_same = len(remaining) == len(content) and all(map(operator.is_, remaining, content))
    return content if is_same else remaining


def _may_have_tags(part: Any) -> bool:
    if not isinstance(part, dict) or part.get("type") not in TEXT_TYPES:
        return False
    return may_have_tags(string(part.get("text")))


def _strip_part(part: Any, is_our_summary: IsOurSummary) -> list[Any]:
    """Return what is left of a part: the part itself, another one, or nothing."""
    if not isinstance(part, dict) or part.get("type") not in TEXT_TYPES:
        return [part]
    text = string(part.get("text"))
    rest = strip_text(text, is_our_summary)
    if rest == text:
        return [part]
    return [{**part, "text": rest}] if rest.strip() else []


def strip_text(text: str, is_our_summary: IsOurSummary) -> str:
    """Return a text without the tagged blocks in it that hold a summary of Abridge's."""
    for tag in TAGS if may_have_tags(text) else ():
        if tag.opening in text:
            text = _strip_blocks(text, tag, is_our_summary)
    return text


def _strip_blocks(text: str, tag: Tag, is_our_summary: IsOurSummary) -> str:
    """Remove blocks between these tags, with the blank lines after them. A block that is not closed
    reaches to the end of the text."""
    kept, position = list[str](), 0
    while (start := text.find(tag.opening, position)) >= 0:
        inner = start + len(tag.opening)
        end = text.find(tag.closing, inner)
        end, after = (len(text), len(text)) if end < 0 else (end, end + len(tag.closing))
        if is_our_summary(text[inner:end]):
            kept.append(text[position:start])
            blank = _BLANK_LINES.match(text, after)
            after = blank.end() if blank else after
        else:
            kept.append(text[position:after])
        position = after
    return "".join([*kept, text[position:]])


def in_tags(text: str, profile: Profile) -> str:
    """Return reasoning between tags, as a server has it in its texts."""
    tag = (profile.tags or TAGS)[0]
    return f"{tag.opening}\n{text}\n{tag.closing}\n\n"


def is_tagged(content: Any) -> bool:
    """Return whether a content is nothing but one block of reasoning between tags."""
    text = content
    if not isinstance(text, str):
        text = "".join([string(part.get("text")) for part in objects(content)])
    if not may_have_tags(text):
        return False
    text = text.strip()
    return text.startswith(_OPENINGS) and any(
        text.startswith(tag.opening) and text.find(tag.closing) == len(text) - len(tag.closing)
        for tag in TAGS
    )
