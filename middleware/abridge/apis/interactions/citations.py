"""Read the sources that annotate a text (google-genai, `Annotation`).

Places are counted in bytes of UTF-8, of the text that is annotated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from abridge.apis.gemini.citations import make_citation, read_places
from abridge.apis.json import first_string, string
from abridge.apis.shapes import fields
from abridge.core.conversation import Json
from abridge.core.events import CitationDelta

ANNOTATION = fields(
    names="type",
    numbers="start_index end_index",
    addresses="url document_uri source place_id",
    texts="title name file_name",
)
"""What is known of an annotation where thinking is hidden."""

KINDS = frozenset({"url_citation", "file_citation", "place_citation"})


def read_citations(annotations: Sequence[Json], said: str, before: int) -> Iterator[CitationDelta]:
    """Yield the sources of a text, with this many characters of the answer before it."""
    places = read_places(said, annotations, "start_index", "end_index")
    for annotation, (first, last) in zip(annotations, places, strict=True):
        start, end = first or 0, last or 0
        passage = (before + start, before + end) if start < end else None
        yield make_citation(_read_source(annotation), passage)


def is_citation(annotation: Json) -> bool:
    return annotation.get("type") in KINDS and any(_read_source(annotation).values())


def _read_source(annotation: Json) -> Json:
    """Return a source as generateContent has it."""
    return {
        "uri": first_string(annotation, "url", "document_uri", "source"),
        "title": first_string(annotation, "title", "file_name", "name"),
        "documentName": string(annotation.get("place_id")),
    }
