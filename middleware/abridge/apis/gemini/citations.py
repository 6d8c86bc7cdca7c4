"""Read the sources of an answer: what grounds it, and what it recites.

`groundingMetadata` lists sources (`groundingChunks`) and says which passage of the answer each
supports (`groundingSupports`); `citationMetadata` names passages that recite a source. Places are
counted in bytes of UTF-8, of a part or of the whole text, and may be given with the passage itself
(ai.google.dev: api/generate-content, `GroundingMetadata` and `CitationMetadata`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from abridge.apis.display import Display
from abridge.apis.json import as_object, entries, first_string, objects, string
from abridge.apis.media import REMOTE
from abridge.apis.shapes import DropCount, Shape, each, fields, number, rebuild
from abridge.apis.usage import as_count
from abridge.core.conversation import Json
from abridge.core.events import LANE, CitationDelta

_SOURCE_KINDS = ("web", "retrievedContext", "maps")

_SOURCE = fields(addresses="uri fileSearchStore documentName", texts="title text domain")

_SEGMENT = fields(numbers="startIndex endIndex partIndex", texts="text")

_CITED = each(fields(numbers="startIndex endIndex", addresses="uri", texts="title"))

METADATA: dict[str, Shape] = {
    "groundingMetadata": fields(
        groundingChunks=each(fields(dict.fromkeys(_SOURCE_KINDS, _SOURCE))),
        groundingSupports=each(fields(segment=_SEGMENT, groundingChunkIndices=each(number))),
    ),
    "citationMetadata": fields(citationSources=_CITED, citations=_CITED),
}
"""What is read of a candidate here, by its key, as far as it is known where thinking is hidden."""


_LISTS = frozenset({"groundingChunks", "groundingSupports", "citationSources", "citations"})


class AnswerCitations:
    """Read what one answer cites. Its chunks may each say something of it."""

    def __init__(self, display: Display) -> None:
        self._said: dict[str, Json] = {}  # by key
        self._hides_raw = display.hides_raw
        self._drops = DropCount(hidden=display.hidden)

    @property
    def dropped(self) -> int:
        return self._drops.count

    def note(self, candidate: Json) -> None:
        """Take what a chunk says. A later list takes the place of an earlier one."""
        for key, shape in METADATA.items():
            said = candidate.get(key)
            metadata = as_object(rebuild(said, shape, self._drops) if self._hides_raw else said)
            metadata = {name: metadata[name] for name in _LISTS & metadata.keys()}
            if metadata:
                self._said[key] = {**self._said.get(key, {}), **metadata}

    def read(self, answer: str | None) -> list[CitationDelta]:
        """Read the sources of an answer with this text; None if that is not known."""
        pairs = [*self._read_grounding(), *self._read_recitations()]
        passages = _find_passages([segment for _, segment in pairs], answer or "")
        return [
            make_citation(source, passage)
            for (source, _), passage in zip(pairs, passages, strict=True)
            if _file_name(source)
        ]

    def _read_grounding(self) -> Iterator[tuple[Json, Json]]:
        """Yield each source with the segments that it supports, or none."""
        metadata = self._said.get("groundingMetadata", {})
        sources = list(map(_read_chunk, objects(metadata.get("groundingChunks"))))
        unused = dict(enumerate(sources))
        for support in objects(metadata.get("groundingSupports")):
            for index in _read_indices(support.get("groundingChunkIndices")):
                if index < len(sources):
                    unused.pop(index, None)
                    yield sources[index], as_object(support.get("segment"))
        yield from ((source, {}) for source in unused.values())

    def _read_recitations(self) -> Iterator[tuple[Json, Json]]:
        metadata = self._said.get("citationMetadata", {})
        for key in ("citationSources", "citations"):  # the Gemini API's, Vertex AI's
            yield from ((source, source) for source in objects(metadata.get(key)))


def _read_chunk(chunk: Json) -> Json:
    return next(filter(None, (as_object(chunk.get(kind)) for kind in _SOURCE_KINDS)), {})


def _read_indices(indices: Any) -> list[int]:
    return [count for count in map(as_count, entries(indices)) if count is not None]


def _file_name(source: Json) -> str:
    """Return what Google calls a source that has no address."""
    return first_string(source, "uri", "documentName", "fileSearchStore", "title")


def make_citation(source: Json, passage: tuple[int, int] | None) -> CitationDelta:
    uri = string(source.get("uri"))
    is_page = uri.startswith(REMOTE)
    return CitationDelta(
        LANE,
        None,
        url=uri if is_page else "",
        file_id="" if is_page else _file_name(source),
        title=string(source.get("title")),
        quote=string(source.get("text")),
        passage=passage,
    )


def _find_passages(segments: list[Json], answer: str) -> list[tuple[int, int] | None]:
    """Find segments of the answer, whose places are counted in bytes; None for one that is not
    where it is said to be."""
    places = read_places(answer, segments, "startIndex", "endIndex")
    return [
        _checked(segment, answer, start, end)
        for segment, (start, end) in zip(segments, places, strict=True)
    ]


def read_places(
    text: str, cited: Iterable[Json], start: str, end: str
) -> list[tuple[int | None, int | None]]:
    """Return where each passage begins and ends in a text, in characters; None if that is outside
    of it. Under these keys that is said in bytes of UTF-8."""
    places = [(as_count(one.get(start)) or 0, as_count(one.get(end)) or 0) for one in cited]
    encoded, counted, last, count = text.encode(errors="surrogatepass"), dict[int, int](), 0, 0
    for place in sorted({place for both in places for place in both}):
        if place <= len(encoded):
            count += len(encoded[last:place].decode(errors="replace"))
            counted[place], last = count, place
    return [(counted.get(begin), counted.get(stop)) for begin, stop in places]


def _checked(
    segment: Json, answer: str, start: int | None, end: int | None
) -> tuple[int, int] | None:
    """Return a passage if it is known, and if its words, where they are given, are those."""
    if start is None or not end or start >= end:
        return None
    words = string(segment.get("text"))
    is_there = len(words) == end - start and answer.startswith(words, start)
    return (start, end) if is_there or not (words or segment.get("partIndex")) else None
