"""Read the sources that an answer names, and write them.

OpenAI annotates the message: `{"type": "url_citation", "url_citation": {"url", "title",
"start_index", "end_index"}}`. OpenRouter adds the source's words as `content`, and says 0 to 0
where it knows no passage (openrouter.ai: features/web-search). Perplexity lists addresses beside
the choices, as `citations`, and more of them as `search_results` (docs.perplexity.ai:
api-reference/chat-completions-post).
"""

from __future__ import annotations

import sys
from typing import Any

from abridge.apis.json import as_object, objects, string
from abridge.apis.usage import as_count
from abridge.core.conversation import Json
from abridge.core.events import CitationDelta


def read_annotations(message: Json, lane: int) -> list[CitationDelta]:
    """Read the sources that a message or a delta names. Some gateways write them flat."""
    read = [
        _read_annotation({**annotation, **as_object(annotation.get(kind))}, lane)
        for annotation in objects(message.get("annotations"))
        if (kind := string(annotation.get("type"))).endswith("_citation")
    ]
    return [citation for citation in read if citation.source]


def _read_annotation(fields: Json, lane: int) -> CitationDelta:
    return CitationDelta(
        lane,
        None,
        url=string(fields.get("url")),
        file_id=string(fields.get("file_id")),
        title=string(fields.get("title")) or string(fields.get("filename")),
        quote=string(fields.get("content")),
        passage=read_passage(fields.get("start_index"), fields.get("end_index")),
    )


def read_passage(start: Any, end: Any) -> tuple[int, int] | None:
    """Read a passage; None for an empty one at the beginning, as for one that is none."""
    first, after = as_count(start), as_count(end)
    return (first, after) if first is not None and after and first <= after else None


def read_listed(body: Json, lane: int) -> list[CitationDelta]:
    """Read the sources that are listed beside the choices, of a chunk or of a completion."""
    listed, found = body.get("citations"), objects(body.get("search_results"))
    titles = {string(result.get("url")): string(result.get("title")) for result in found}
    urls = [url for url in listed if isinstance(url, str)] if isinstance(listed, list) else []
    return [
        CitationDelta(lane, None, url=url, title=titles.get(url, ""))
        for url in filter(None, urls or titles)
    ]


def write_annotation(citation: CitationDelta, moved: int) -> Json:
    """Write a source. The passage begins so many characters later in the client's text.

    There is no other type, and strict clients refuse any (AI SDK): a file's id stands in the place
    of the address.
    """
    start, end = citation.passage_after(-moved, sys.maxsize)
    fields = {"url": citation.source, "title": citation.title}
    quote = {"content": citation.quote} if citation.quote else {}
    place = {"start_index": start, "end_index": end}
    return {"type": "url_citation", "url_citation": {**fields, **place, **quote}}
