"""Every recorded answer that names sources, replayed to the clients of every other API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import Message
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.messages.api import MESSAGES
from abridge.apis.responses.api import RESPONSES
from tests.end_to_end.recordings.recordings import recordings
from tests.support.checker import check_chat, check_responses, frames
from tests.support.messages_checker import check_message, check_messages
from tests.support.pipeline import translating
from tests.support.shared import RECORDINGS, needs_recordings

pytestmark = needs_recordings

Json = dict[str, Any]

MORE = RECORDINGS / "more"


@dataclass
class Source:
    name: str  # its address, or what upstream calls it
    passage: str = ""  # the words of the answer, where upstream says which
    is_file: bool = False  # then a Responses client is told where its passage ends


def bodies(data: bytes, *, streamed: bool) -> list[Json]:
    if not streamed:
        return [json.loads(data)]
    return [json.loads(text) for _, text in frames(data) if text != "[DONE]"]


def recorded() -> Iterator[tuple[str, Path]]:
    for one in recordings("chat", "responses", "messages"):
        yield str(one.api), one.path
    for entry in json.loads((MORE / "manifest.json").read_bytes()) if MORE.is_dir() else []:
        yield entry["api"], MORE / entry["file"]


def read(path: Path) -> list[Json]:
    data = path.read_bytes()
    return (
        bodies(data.rstrip() + b"\n\n", streamed=True)
        if path.suffix == ".sse"
        else bodies(data, streamed=False)
    )


def cited_in_chat(sent: list[Json]) -> list[Source]:
    listed: list[str] = []
    found: list[Source] = []
    for body in sent:
        listed = body.get("citations") or listed
        for choice in body.get("choices", []):
            said = choice.get("delta") or choice.get("message") or {}
            notes = said.get("annotations") or []
            found += [Source(note["url_citation"]["url"]) for note in notes]
    return found or list(map(Source, listed))


def cited_in_responses(sent: list[Json]) -> list[Source]:
    final = sent[-1].get("response") or sent[-1]
    found = []
    for item in final["output"]:
        for part in item.get("content") or []:
            for note in part.get("annotations") or []:
                start, end = note.get("start_index", 0), note.get("end_index", 0)
                words = part["text"][start:end] if end <= len(part["text"]) else ""
                found.append(Source(note.get("url") or note["file_id"], words))
    return found


def cited_in_messages(sent: list[Json]) -> list[Source]:
    blocks: list[Json] = []
    for event in sent:
        blocks += event.get("content") or []
        if event.get("type") == "content_block_start":
            blocks.append({"citations": [], **event["content_block"]})
        delta = event.get("delta") or {}
        if delta.get("type") == "text_delta":
            blocks[-1]["text"] += delta["text"]
        elif delta.get("type") == "citations_delta":
            blocks[-1]["citations"].append(delta["citation"])
    return [
        Source(citation["url"], block["text"])
        for block in blocks
        for citation in block.get("citations") or []
    ]


def cited_in_gemini(sent: list[Json]) -> list[Source]:
    metadata: Json = {}
    for chunk in sent:
        for candidate in chunk.get("candidates", []):
            metadata |= candidate.get("groundingMetadata") or {}
    chunks = [next(iter(chunk.values())) for chunk in metadata.get("groundingChunks") or []]
    names = [chunk.get("uri") or chunk["fileSearchStore"] for chunk in chunks]
    found, used = [], set()
    for support in metadata.get("groundingSupports") or []:
        for index in support["groundingChunkIndices"]:
            used.add(index)
            found.append(Source(names[index], support["segment"]["text"]))
    return found + [Source(name) for index, name in enumerate(names) if index not in used]


CITED = {
    "chat": cited_in_chat,
    "responses": cited_in_responses,
    "messages": cited_in_messages,
    "gemini": cited_in_gemini,
}


def citing() -> Iterator[tuple[str, Path, list[Source]]]:
    for api, path in recorded():
        needles = (b"citation", b"groundingChunks")
        may_cite = any(needle in path.read_bytes() for needle in needles)
        if sources := CITED[api](read(path)) if may_cite else []:
            yield api, path, sources


PAIRS = [
    pytest.param(api, path, sources, client, id=f"{client.name} <- {path.name}")
    for api, path, sources in citing()
    for client in (CHAT, RESPONSES, MESSAGES)
    if client.name != api
]


def test_there_are_recordings_of_each_api_that_name_sources() -> None:
    assert {pair.values[0] for pair in PAIRS} == set(CITED)
    assert len({pair.values[1] for pair in PAIRS}) >= 20


@pytest.mark.parametrize("expose", ["both", "summary"])
@pytest.mark.parametrize(("api", "path", "sources", "client"), PAIRS)
def test_all_sources_reach_the_client_with_their_passages(
    api: str, path: Path, sources: list[Source], client: Api, expose: str
) -> None:
    streamed = path.suffix == ".sse"
    pipeline = translating(api, client, expose=expose)
    out = pipeline.stream(path.read_bytes()) if streamed else pipeline.whole(path.read_bytes())
    shown = SHOWN[client.name](out, streamed=streamed)
    for source, seen in zip(sources, shown, strict=True):
        is_sentence = expose == "summary" and " " in source.name  # hidden, that is no address
        assert seen.name == source.name or is_sentence
        if client is not MESSAGES:
            assert seen.passage.endswith(source.passage)
            assert seen.is_file or seen.passage == source.passage


def shown_in_chat(out: bytes, *, streamed: bool) -> list[Source]:
    if streamed:
        seen = check_chat(out)
        text = seen.choices[0].text
        deltas = [choice["delta"] for chunk in seen.chunks for choice in chunk["choices"]]
        (annotations,) = [delta["annotations"] for delta in deltas if "annotations" in delta]
    else:
        message = ChatCompletion.model_validate_json(out).choices[0].message.to_dict()
        text, annotations = message["content"], message["annotations"]
    cited = [annotation["url_citation"] for annotation in annotations]
    return [Source(each["url"], text[each["start_index"] : each["end_index"]]) for each in cited]


def shown_in_responses(out: bytes, *, streamed: bool) -> list[Source]:
    if streamed:
        seen = check_responses(out)
        response = seen.response
        added = [event for event in seen.events if "annotation" in event]
    else:
        response = json.loads(out)
    Response.model_validate(response)
    parts = [part for item in response["output"] for part in item.get("content", [])]
    parts = [part for part in parts if part["type"] == "output_text"]
    if streamed:
        for part in parts:
            notes = [added.pop(0) for _ in part["annotations"]]
            assert [note["annotation"] for note in notes] == part["annotations"]
            assert [note["annotation_index"] for note in notes] == list(range(len(notes)))
        assert added == []
    return [read_note(note, part["text"]) for part in parts for note in part["annotations"]]


def read_note(note: Json, text: str) -> Source:
    if note["type"] == "file_citation":
        return Source(note["file_id"], text[: note["index"]], is_file=True)
    return Source(note["url"], text[note["start_index"] : note["end_index"]])


def shown_in_messages(out: bytes, *, streamed: bool) -> list[Source]:
    message = check_messages(out).message if streamed else check_message(json.loads(out))
    blocks = check_messages(out).blocks if streamed else message["content"]
    Message.model_validate({**message, "content": blocks})
    citations = [each for block in blocks for each in block.get("citations") or []]
    return [Source(each.get("url") or each["source"]) for each in citations]


SHOWN = {"chat": shown_in_chat, "responses": shown_in_responses, "messages": shown_in_messages}
