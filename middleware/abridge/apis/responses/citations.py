"""Read the sources that messages name in the annotations of their texts, and write them.

OpenAI names pages as `url_citation`, with the passage, and files as `file_citation`, with the place
in the text (`index`) where the file is cited (openai-openapi, `Annotation`). xAI's annotations have
neither title nor passage.
"""

from __future__ import annotations

from abridge.apis.json import as_object, objects, string
from abridge.apis.responses.items import TEXT, TEXT_TYPE_ALIASES
from abridge.apis.responses.reasoning import LANE
from abridge.apis.usage import as_count
from abridge.core.conversation import Json
from abridge.core.events import CitationDelta

ANNOTATION_ADDED = "response.output_text.annotation.added"


_CITING_TYPES = ("url_citation", "file_citation", "container_file_citation", "file_path")

_TEXT_TYPES = (TEXT.name, *TEXT_TYPE_ALIASES)


class MessageCitations:
    """Read what the messages of one response cite, each at its end."""

    def __init__(self) -> None:
        self._messages_read = 0
        self._text_length = 0  # of these messages
        self._streamed: dict[tuple[int, int], list[Json]] = {}
        """Annotations that streamed, by message and part."""

    def note(self, number: int, event: Json) -> None:
        """Note an annotation that streams, in case the end of its message repeats none."""
        place = number, as_count(event.get("content_index")) or 0
        self._streamed.setdefault(place, []).append(as_object(event.get("annotation")))

    def read(self, number: int, message: Json) -> list[CitationDelta]:
        """Read the sources of a message. Where passages are is known if it ends in its turn."""
        before = self._text_length if number == self._messages_read else -1
        citations, length = list[CitationDelta](), 0
        for index, part in enumerate(objects(message.get("content"))):
            if string(part.get("type")) not in _TEXT_TYPES:
                continue
            text = string(part.get("text"))
            streamed = self._streamed.pop((number, index), [])
            annotations = objects(part.get("annotations")) or streamed
            place = (before + length, len(text)) if before >= 0 else None
            citations += [_read_annotation(each, number, place) for each in annotations]
            length += len(text)
        self._messages_read, self._text_length = self._messages_read + 1, self._text_length + length
        return [citation for citation in citations if citation.source]


def _read_annotation(annotation: Json, number: int, place: tuple[int, int] | None) -> CitationDelta:
    """Read the source of a message. `place` says where its text begins in the answer, and how long
    it is."""
    is_known = string(annotation.get("type")) in _CITING_TYPES
    url, file_id = string(annotation.get("url")), string(annotation.get("file_id"))
    return CitationDelta(
        LANE,
        None,
        message_index=number,
        url=url if is_known else "",
        file_id=file_id if is_known else "",
        title=string(annotation.get("title")) or string(annotation.get("filename")),
        passage=_read_passage(annotation, *place) if place is not None else None,
    )


def _read_passage(annotation: Json, before: int, length: int) -> tuple[int, int] | None:
    """Read a passage; None where there is none in the text. A file is cited at one place."""
    index = annotation.get("index")
    start, end = (
        as_count(annotation.get("start_index", index)),
        as_count(annotation.get("end_index", index)),
    )
    if start is None or not end or not start <= end <= length:
        return None
    return before + start, before + end


def forget_passages(message: Json) -> Json:
    """Return a message whose texts were changed without the places that its annotations name."""
    content = [
        {**part, "annotations": [_without_place(each) for each in objects(part["annotations"])]}
        if isinstance(part.get("annotations"), list)
        else part
        for part in objects(message.get("content"))
    ]
    return {**message, "content": content}


def _without_place(annotation: Json) -> Json:
    places = annotation.keys() & {"start_index", "end_index", "index"}
    return {**annotation, **dict.fromkeys(places, 0)}


def write_annotation(citation: CitationDelta, before: int, length: int) -> Json:
    """Write a source of a text that comes after so many characters of the answer."""
    start, end = citation.passage_after(before, length)
    if citation.url:
        named = {"url": citation.url, "title": citation.title}
        return {"type": "url_citation", "start_index": start, "end_index": end, **named}
    name = citation.title or citation.file_id
    return {"type": "file_citation", "file_id": citation.file_id, "filename": name, "index": end}
