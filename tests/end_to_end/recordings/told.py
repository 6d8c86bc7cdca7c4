"""What an answer tells its client, in words that all APIs share; read without Abridge's readers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.end_to_end.recordings.recordings import Recording, bodies_of, content_of

Json = dict[str, Any]

FINISHES = {
    "content_filter": "filtered",
    "refusal": "filtered",
    "SAFETY": "filtered",
    "PROHIBITED_CONTENT": "filtered",
    "MODEL_ARMOR": "filtered",
    "MALFORMED_FUNCTION_CALL": "failed",
    "UNEXPECTED_TOOL_CALL": "failed",
    "RECITATION": "filtered",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_context_window_exceeded": "length",
    "MAX_TOKENS": "length",
    "tool_calls": "calls",
    "function_call": "calls",
    "tool_use": "calls",
    "pause_turn": "paused",
    "failed": "failed",
    "queued": "unfinished",
    "in_progress": "unfinished",
}
"""Why answers end, by the words of all APIs; any other word is an ordinary end."""


@dataclass(frozen=True)
class Told:
    """Texts are without white space, since translations join parts by blank lines."""

    text: str
    refusal: str
    calls: tuple[tuple[str | None, str], ...]
    finish: str
    cited: frozenset[str]


def told(recording: Recording, data: bytes, api: str) -> Told:
    bodies = bodies_of(data, streamed=recording.streamed)
    if "error" in bodies[0] and not recording.streamed and bodies[0].get("object") is None:
        return Told("", "", (), "failed", frozenset())
    content = content_of(recording, data, api)
    calls = tuple((name, _spelled(text)) for _, name, text in content.calls)
    return Told(
        text=_squeezed(content.text),
        refusal=_squeezed("".join(REFUSALS[api](bodies))),
        calls=calls,
        finish=_finish(content.finish, bodies, calls=bool(calls)),
        cited=frozenset(CITED[api](bodies)),
    )


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _spelled(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except ValueError:
        return arguments


def _finish(reason: str | None, bodies: list[Json], *, calls: bool) -> str:
    response = bodies[-1].get("response") or bodies[-1]
    details = response.get("incomplete_details") or {}
    if any(body.get("error") or body.get("type") == "error" for body in (*bodies, response)):
        return "failed"
    ordinary = "calls" if calls else "end"
    return FINISHES.get(details.get("reason") or reason or "", ordinary)


# Refusals


def _chat_refusals(bodies: list[Json]) -> Iterator[str]:
    for message in _chat_messages(bodies):
        yield message.get("refusal") or ""


def _responses_refusals(bodies: list[Json]) -> Iterator[str]:
    for part in _response_parts(bodies):
        yield part.get("refusal") or ""


def _no_refusals(bodies: list[Json]) -> Iterator[str]:
    yield from ()


REFUSALS = {
    "chat": _chat_refusals,
    "responses": _responses_refusals,
    "messages": _no_refusals,
    "gemini": _no_refusals,
}


# Addresses of what is cited


def _chat_cited(bodies: list[Json]) -> Iterator[str]:
    for message in _chat_messages(bodies):
        for annotation in message.get("annotations") or ():
            yield from _addresses(annotation.get("url_citation") or annotation)
    for body in bodies:
        for source in body.get("citations") or body.get("search_results") or ():
            yield from _addresses({"url": source} if isinstance(source, str) else source)


def _responses_cited(bodies: list[Json]) -> Iterator[str]:
    for part in _response_parts(bodies):
        for annotation in part.get("annotations") or ():
            yield from _addresses(annotation)


def _messages_cited(bodies: list[Json]) -> Iterator[str]:
    for body in bodies:
        for block in (*(body.get("content") or ()), body.get("content_block") or {}):
            for citation in block.get("citations") or ():
                yield from _addresses(citation)
        yield from _addresses((body.get("delta") or {}).get("citation") or {})


def _gemini_cited(bodies: list[Json]) -> Iterator[str]:
    for body in bodies:
        for candidate in (body.get("candidates") or ())[:1]:
            grounding = candidate.get("groundingMetadata") or {}
            used = {
                index
                for support in grounding.get("groundingSupports") or ()
                for index in support.get("groundingChunkIndices") or ()
            }
            for index, chunk in enumerate(grounding.get("groundingChunks") or ()):
                if index in used:
                    yield from _addresses(chunk.get("web") or {})


def _addresses(citation: Json) -> Iterator[str]:
    address = citation.get("url") or citation.get("uri")
    if isinstance(address, str) and "://" in address:
        yield address


CITED = {
    "chat": _chat_cited,
    "responses": _responses_cited,
    "messages": _messages_cited,
    "gemini": _gemini_cited,
}


# Where it stands


def _chat_messages(bodies: list[Json]) -> Iterator[Json]:
    for body in bodies:
        for choice in body.get("choices") or ():
            yield choice.get("delta") or choice.get("message") or {}


def _response_parts(bodies: list[Json]) -> Iterator[Json]:
    response = bodies[-1].get("response") or bodies[-1]
    for item in response.get("output") or ():
        yield from (part for part in item.get("content") or () if isinstance(part, dict))
