"""Read the sources that texts name, and write them.

The passage is the whole block: Anthropic begins one wherever a citation begins or ends. A citation
names a page of a web search, a search result that the client itself gave, or a document of the
request, by its place there (Anthropic API reference, `TextCitation`).
"""

from __future__ import annotations

from abridge.apis.json import as_object, string
from abridge.core.conversation import Json
from abridge.core.events import CitationDelta

MARK: Json = {"encrypted_index": ""}
"""Marks citations as Abridge's: one of Anthropic's has opaque state there, or no such field."""


def read_citation(citation: Json) -> CitationDelta:
    """Read a citation. A document of the request has no name but its title."""
    title = string(citation.get("title")) or string(citation.get("document_title"))
    source = string(citation.get("url")) or string(citation.get("source"))
    is_page = source.startswith(("http://", "https://"))
    return CitationDelta(
        None,
        None,
        url=source if is_page else "",
        file_id="" if is_page else source or string(citation.get("file_id")) or title,
        title=title,
        quote=string(citation.get("cited_text")),
    )


def write_citation(citation: CitationDelta, sources: list[str]) -> Json:
    """Write a source of the open text. `sources` are the files cited so far, in whose order they
    are numbered, as no request of the client's has them."""
    said = {"cited_text": citation.quote, "title": citation.title or None, **MARK}
    if citation.url:
        return {"type": "web_search_result_location", "url": citation.url, **said}
    if citation.file_id not in sources:
        sources.append(citation.file_id)
    number = sources.index(citation.file_id)
    whole = {"search_result_index": number, "start_block_index": 0, "end_block_index": 1}
    return {"type": "search_result_location", "source": citation.file_id, **whole, **said}


def strip_citations(block: Json) -> int:
    """Remove Abridge's citations from a text that a client returns; return how many there were."""
    citations = block.get("citations")
    if not isinstance(citations, list):
        return 0
    remaining = [each for each in citations if as_object(each).get("encrypted_index") != ""]
    if len(remaining) < len(citations):
        block["citations"] = remaining or None
    return len(citations) - len(remaining)
