"""Test that nothing of a Messages upstream's reasoning leaves where that is hidden.

That is so whichever way it comes, streamed or whole, and whichever API the client speaks.

`test_writer_hiding.py` shows that what is known and legal survives.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.display import Display
from abridge.apis.messages.api import MESSAGES
from abridge.apis.messages.shapes import MAX_INDEXES, MessagesRebuilder
from abridge.apis.responses.api import RESPONSES
from abridge.core.events import ResponseEnded
from abridge.providers.catalog import PROFILES
from tests.apis.messages import scripts
from tests.apis.messages.scripts import (
    Block,
    begin,
    delta,
    event,
    finish_at_once,
    message,
    start,
    stop,
    text,
    thinking,
    tool_use,
)
from tests.apis.messages.test_writer_hiding import BESIDE as KNOWN_BESIDE
from tests.apis.messages.test_writer_hiding import LEGAL
from tests.apis.messages.test_writer_hiding import USAGE as KNOWN_USAGE
from tests.support.canaries import CANARY, SENTENCE, planted_everywhere, said
from tests.support.messages_checker import CHECKS, check_messages
from tests.support.pipeline import Pipeline
from tests.support.streams import frame

TAGGED = f"<think>{SENTENCE}</think>"
SAID = SENTENCE.encode()
CLIENTS = (MESSAGES, CHAT, RESPONSES)
HIDING = [(api, expose) for api in CLIENTS for expose in ("summary", "none")]
PROFILES_TRIED = ("auto", "anthropic", "vllm", "prefilled")


def cited(**keys: Any) -> list[Block]:
    citation = {"type": "char_location", "cited_text": "So.", "document_index": 0, **keys}
    return [{**text("So."), "citations": [citation]}]


def result(kind: str, content: Any, **keys: Any) -> list[Block]:
    return [{"type": kind, "tool_use_id": "srvtoolu_1", "content": content, **keys}]


def ran(kind: str, **keys: Any) -> list[Block]:
    content = {"type": f"{kind}_result", "stdout": "", "stderr": "", "return_code": 0, **keys}
    return result(f"{kind}_tool_result", content)


def found(**keys: Any) -> list[Block]:
    entry = {"type": "web_search_result", "title": "A page", "url": "x:", **keys}
    return result("web_search_tool_result", [entry])


def fetched(**keys: Any) -> list[Block]:
    return result("web_fetch_tool_result", {"type": "web_fetch_result", "url": "x:", **keys})


def edited(**keys: Any) -> list[Block]:
    content = {"type": "text_editor_code_execution_view_result", **keys}
    return result("text_editor_code_execution_tool_result", content)


def called(kind: str = "tool_use", **keys: Any) -> list[Block]:
    return [{"type": kind, "id": "toolu_0", "name": "look", "input": {}, **keys}]


CONTENTS: dict[str, list[Any]] = {
    "thinking": [thinking(SENTENCE)],
    "an unknown key of thinking": [{**thinking("x"), "summary": SENTENCE}],
    "a signature that is a sentence": [thinking("x", SENTENCE)],
    "redacted thinking that is a sentence": [scripts.redacted(SENTENCE)],
    "an unknown key of redacted thinking": [{**scripts.redacted("abc="), "thinking": SENTENCE}],
    "a block of unknown type": [{"type": "musing", "text": SENTENCE}],
    "a compaction": [{"type": "compaction", "content": SENTENCE}],
    "reasoning": [{"type": "reasoning", "text": SENTENCE, "reasoning": SENTENCE}],
    "thinking in other letters": [{"type": "Thinking", "thinking": SENTENCE, "text": SENTENCE}],
    "no type": [{"text": SENTENCE, "thinking": SENTENCE}],
    "null as a type": [{"type": None, "text": SENTENCE, "thinking": SENTENCE}],
    "a list as a type": [{"type": ["text"], "text": SENTENCE}],
    "a sentence as a type": [{"type": SENTENCE, "text": "So."}],
    "a string as a block": [SENTENCE],
    "a list as a block": [[text(SENTENCE)]],
    "an unknown key of a text": [{**text("So."), "thinking": SENTENCE, "signature": SENTENCE}],
    "a text that is an object": [{"type": "text", "text": {"thinking": SENTENCE}}],
    "a text that is a list": [{"type": "text", "text": [SENTENCE]}],
    "tags": [text(f"{TAGGED}So.")],
    "tags after the answer has begun": [text(f"So. {TAGGED}Yes.")],
    "tags in a second text": [text("So. "), text(f"{TAGGED}Yes.")],
    "a tag that nothing closes": [text(f"So. <think>{SENTENCE}")],
    "tags around the end of a text": [text(f"So. <think>{SENTENCE}"), text(f"{SENTENCE}</think>")],
    "tags around a call": [
        text(f"<think>{SENTENCE}"),
        tool_use(),
        text(f"{SENTENCE}</think>So."),
    ],
    "tags around three texts": [
        text("So. <thinking>Now "),
        *cited()[:1],
        text(SENTENCE),
        text(f"{SENTENCE}</thinking>Yes."),
    ],
    "tags inside thinking": [thinking(TAGGED)],
    "harmony": [text(f"<|channel|>analysis<|message|>{SENTENCE}<|end|>So.")],
    "tags in brackets": [text(f"[THINK]{SENTENCE}[/THINK]So.")],
    "tags of prompts for Claude": [text(f"<antThinking>{SENTENCE}</antThinking>So.")],
    "a citation of unknown type": cited(type="musing", cited_text=SENTENCE),
    "an unknown key of a citation": cited(why=SENTENCE),
    "tags in what is cited": cited(cited_text=TAGGED),
    "tags in a document's title": cited(document_title=TAGGED, title=TAGGED),
    "a sentence as an address": cited(url=SENTENCE, source=SENTENCE),
    "a sentence as a file": cited(file_id=SENTENCE, encrypted_index=SENTENCE),
    "a sentence as a number": cited(document_index=SENTENCE),
    "citations that are an object": [{**text("So."), "citations": {"why": SENTENCE}}],
    "a sentence as a call's id": called(id=SENTENCE),
    "a sentence as a call's name": called(name=SENTENCE),
    "an unknown key of a call": called(reasoning=SENTENCE, thinking=SENTENCE),
    "a call's caller": called(caller={"type": SENTENCE, "tool_id": SENTENCE, "why": SENTENCE}),
    "an input that is a string": called(input=SENTENCE),
    "an input that is a list": called(input=[SENTENCE]),
    "tags in an input": called(input={"a": f"{TAGGED}b"}),
    "tags deep in an input": called(input={"a": {"b": [TAGGED]}}),
    "tags in a name of an input": called(input={TAGGED: 1}),
    "tags in the input of the server's tool": called("server_tool_use", input={"query": TAGGED}),
    "a sentence as the server's tool": called("server_tool_use", id=SENTENCE, name=SENTENCE),
    "an unknown key of the server's call": called("server_tool_use", reasoning=SENTENCE),
    "an input of the server's that is a list": called("server_tool_use", input=[SENTENCE]),
    "tags in an input of MCP": called("mcp_tool_use", server_name="s", input={"q": TAGGED}),
    "a sentence as a server": called("mcp_tool_use", server_name=SENTENCE),
    "an unknown key of what is found": found(why=SENTENCE),
    "tags in what is found": found(title=TAGGED, page_age=TAGGED),
    "a sentence as an address that is found": found(url=SENTENCE, encrypted_content=SENTENCE),
    "a find of unknown type": found(type="musing"),
    "a result that is a text": result("web_search_tool_result", TAGGED),
    "an unknown key of a result": result("web_search_tool_result", [], why=SENTENCE),
    "a sentence as a result's call": result("web_search_tool_result", [], tool_use_id=SENTENCE),
    "an error of a tool": result(
        "web_search_tool_result",
        {"type": "web_search_tool_result_error", "error_code": SENTENCE, "error_message": TAGGED},
    ),
    "tags in a document": fetched(
        retrieved_at=TAGGED,
        content={"type": "document", "title": TAGGED, "source": {"type": "text", "data": TAGGED}},
    ),
    "unknown keys of a document": fetched(
        why=SENTENCE,
        content={
            "type": "document",
            "context": SENTENCE,
            "source": {"type": "text", "media_type": SENTENCE, "why": SENTENCE},
            "citations": {"enabled": SENTENCE, "why": SENTENCE},
        },
    ),
    "tags in code's output": ran("code_execution", stdout=TAGGED, stderr=TAGGED),
    "unknown keys of code's output": ran(
        "code_execution",
        return_code=SENTENCE,
        abort_reason=SENTENCE,
        content=[{"type": "code_execution_output", "file_id": SENTENCE, "why": SENTENCE}],
    ),
    "code's output as an object": ran("code_execution", stdout={"why": SENTENCE}),
    "tags in a shell's output": ran("bash_code_execution", stdout=TAGGED, stderr=TAGGED),
    "a sentence as encrypted output": result(
        "code_execution_tool_result",
        {"type": "encrypted_code_execution_result", "encrypted_stdout": SENTENCE},
    ),
    "tags in a file": edited(content=TAGGED, lines=[TAGGED, {"why": SENTENCE}]),
    "unknown keys of a file": edited(file_type=SENTENCE, num_lines=SENTENCE, why=SENTENCE),
    "a tool that was found": result(
        "tool_search_tool_result",
        {
            "type": "tool_search_tool_search_result",
            "tool_references": [{"tool_name": SENTENCE, "description": SENTENCE}],
        },
    ),
    "tags in what MCP answers": result("mcp_tool_result", [{**text(TAGGED), "why": SENTENCE}]),
    "an answer of MCP of unknown type": result(
        "mcp_tool_result", [{"type": "x", "text": SENTENCE}]
    ),
    "a sentence as a flag": result("mcp_tool_result", "So.", is_error=SENTENCE),
    "a sentence as an upload": [{"type": "container_upload", "file_id": SENTENCE, "why": SENTENCE}],
}
"""Ways for the blocks of an answer to say what is hidden."""

BESIDE: dict[str, dict[str, Any]] = {
    "an unknown key": {"reasoning": SENTENCE},
    "thinking": {"thinking": SENTENCE},
    "an answer of another API": {"choices": [{"message": {"content": SENTENCE}}]},
    "a sentence as an id": {"id": SENTENCE},
    "a sentence as a model": {"model": SENTENCE},
    "a sentence as a role": {"role": SENTENCE},
    "a sentence as a reason": {"stop_reason": SENTENCE},
    "tags in a stop sequence": {"stop_sequence": TAGGED},
    "a stop sequence that is an object": {"stop_sequence": {"why": SENTENCE}},
    "why it stopped": {
        "stop_details": {"type": "refusal", "category": SENTENCE, "explanation": SENTENCE}
    },
    "a sentence of why it stopped": {"stop_details": SENTENCE},
    "a container": {
        "container": {
            "id": SENTENCE,
            "expires_at": SENTENCE,
            "skills": [{"type": SENTENCE, "skill_id": SENTENCE, "why": SENTENCE}],
            "why": SENTENCE,
        }
    },
    "edits": {
        "context_management": {
            "applied_edits": [{"type": SENTENCE, "cleared_tool_uses": SENTENCE, "why": SENTENCE}],
            "why": SENTENCE,
        }
    },
    "words in the usage": {"usage": {**scripts.USAGE, "note": SENTENCE}},
    "a sentence as a figure's name": {"usage": {**scripts.USAGE, SENTENCE: 1}},
    "a sentence deep in the usage": {"usage": {**scripts.USAGE, "cache": {SENTENCE: 1}}},
    "a sentence as a tier": {
        "usage": {**scripts.USAGE, "service_tier": SENTENCE, "speed": {"why": SENTENCE}}
    },
    "usage that is a sentence": {"usage": SENTENCE},
}
"""Ways for what stands beside the content, in each event that holds any of it."""


TEXTS = frozenset(
    {
        *("text", "cited_text", "title", "document_title", "page_age", "retrieved_at", "data"),
        *("stdout", "stderr", "content", "lines", "error_message", "stop_sequence"),
    }
)
"""Keys of texts that are shown."""


def says(**fields: Any) -> bytes:
    return event("content_block_delta", index=0, delta=fields)


def block_in(block: Block, *deltas: bytes) -> list[bytes]:
    """Return the second block of an answer."""
    return [start(1, block), *deltas, stop(1)]


MUSING = {"type": "musing"}
CITED = {
    "type": "char_location",
    "cited_text": TAGGED,
    "document_index": 0,
    "document_title": None,
    "start_char_index": 0,
    "end_char_index": 3,
    "why": SENTENCE,
}
EVENTS: dict[str, list[bytes]] = {
    "a ping": [event("ping", content=SENTENCE, thinking={"why": SENTENCE})],
    "an event of unknown type": [event("thought", text=SENTENCE)],
    "a sentence as a type": [frame({"type": SENTENCE})],
    "an event without a type": [frame({"index": 0, "delta": {"type": "text_delta", "text": "x"}})],
    "a sentence as an event's name": [frame({"type": "ping"}, SENTENCE)],
    "an id line": [b"id: %b\n%b" % (SAID, event("ping"))],
    "a comment": [b": %b\n\n" % SAID, b": %b\n%b" % (SAID, event("ping"))],
    "no data": [b"retry: 1\nid: %b\n\n" % SAID],
    "no JSON": [b"data: %b\n\n" % SAID],
    "no object": [b'data: ["%b"]\n\n' % SAID],
    "an object that breaks off": [b'data: {"type": "ping", "why": "%b\n\n' % SAID],
    "half a character": [b'data: {"type": "ping", "why": "\xff%b"}\n\n' % SAID],
    "more than the end": [b"data: [DONE] %b\n\n" % SAID],
    "a key twice": [
        says(type="text_delta", text="x").replace(b'"text"', b'"text": "%b", "text"' % SAID)
    ],
    "a delta of unknown type": [says(type="musing_delta", text=SENTENCE)],
    "a delta without a type": [says(text=SENTENCE, thinking=SENTENCE)],
    "null as a delta's type": [says(type=None, text=SENTENCE, thinking=SENTENCE)],
    "a compaction's delta": [says(type="compaction_delta", content=SENTENCE)],
    "an unknown key of a delta": [says(type="text_delta", text="x", thinking=SENTENCE)],
    "a delta that is an object": [says(type="text_delta", text={"why": SENTENCE})],
    "a delta that is a sentence": [event("content_block_delta", index=0, delta=SENTENCE)],
    "thinking within a text": [says(type="thinking_delta", thinking=SENTENCE)],
    "text beside thinking": [says(type="thinking_delta", thinking="x", text=SENTENCE)],
    "text beside a signature": [says(type="signature_delta", signature="x", text=SENTENCE)],
    "a signature within a text": [says(type="signature_delta", signature=SENTENCE)],
    "arguments within a text": [says(type="input_json_delta", partial_json=SENTENCE)],
    "a citation": [says(type="citations_delta", citation=CITED)],
    "a citation of unknown type": [
        says(type="citations_delta", citation={"type": "musing", "cited_text": SENTENCE})
    ],
    "thinking beside a citation": [says(type="citations_delta", citation=CITED, thinking=SENTENCE)],
    "tags one by one": [says(type="text_delta", text=one) for one in TAGGED],
    "an unknown key of an event": [
        event("content_block_delta", index=0, delta={"type": "text_delta"}, thinking=SENTENCE)
    ],
    "a sentence as an index": [
        event("content_block_delta", index=SENTENCE, delta={"type": "text_delta", "text": "x"})
    ],
    "an unknown block": block_in(MUSING, delta(1, "text", text=SENTENCE)),
    "an unknown block with an index that is no number": [
        event("content_block_start", index="1", content_block=MUSING),
        event("content_block_delta", index="1", delta={"type": "text_delta", "text": SENTENCE}),
    ],
    "an unknown block without an index": [
        event("content_block_start", content_block=MUSING),
        event("content_block_delta", delta={"type": "text_delta", "text": SENTENCE}),
    ],
    "a delta of an unknown block without an index": [
        start(1, MUSING),
        event("content_block_delta", delta={"type": "text_delta", "text": SENTENCE}),
    ],
    "a delta of an unknown block with another index": [
        start(1, MUSING),
        delta(2, "text", text=SENTENCE),
    ],
    "an unknown block whose index has a point": [
        event("content_block_start", index=1.0, content_block=MUSING),
        delta(1, "text", text=SENTENCE),
    ],
    "a start without a block": [
        event("content_block_start", index=1, thinking=SENTENCE),
        delta(1, "text", text=SENTENCE),
    ],
    "a start with a sentence for a block": [
        event("content_block_start", index=1, content_block=SENTENCE),
        delta(1, "text", text=SENTENCE),
    ],
    "unknown keys of a start and a stop": [
        event("content_block_start", index=1, content_block=text(""), thinking=SENTENCE),
        event("content_block_stop", index=1, content_block=thinking(SENTENCE)),
    ],
    "text within a call": block_in(tool_use(), delta(1, "text", text=SENTENCE)),
    "thinking within a call": block_in(tool_use(), delta(1, "thinking", thinking=SENTENCE)),
    "text within a result": block_in(
        *result("web_search_tool_result", []), delta(1, "text", text=SENTENCE)
    ),
    "arguments within a result": block_in(
        *result("web_search_tool_result", []), delta(1, "input_json", partial_json=SENTENCE)
    ),
    "thinking within redacted thinking": block_in(
        scripts.redacted("abc="), delta(1, "thinking", thinking=SENTENCE)
    ),
    "tags within thinking": block_in(thinking(""), delta(1, "text", text=TAGGED)),
    "thinking that nothing starts": [delta(1, "thinking", thinking=SENTENCE)],
    "tags in a text that nothing starts": [delta(1, "text", text=TAGGED)],
    "arguments that nothing starts": [delta(1, "input_json", partial_json=SENTENCE)],
    "an error": [event("error", error={"type": "api_error", "message": SENTENCE, "why": SENTENCE})],
    "an error that is a sentence": [event("error", error=SENTENCE, request_id=SENTENCE)],
    "an error that is a sentence everywhere": [
        event("error", error={"type": SENTENCE, "message": {"why": SENTENCE}, "code": SENTENCE})
    ],
    "an error without a type": [frame({"error": {"message": SENTENCE}})],
    "a second error": [
        event("error", error={"type": "api_error", "message": "x"}),
        event("error", error={"type": "api_error", "message": SENTENCE}),
    ],
    "a second start": [event("message_start", message=message([text(SENTENCE)]))],
    "an end that is a sentence": [event("message_delta", delta=SENTENCE, usage=scripts.USAGE)],
    "a message at the end": [event("message_stop", message=message([text(SENTENCE)]))],
}
"""Ways for the events of a stream, within the first block or after it."""


def client(api: Api, expose: str, profile: str = "auto") -> Pipeline:
    return Pipeline(
        api,
        expose=expose,  # type: ignore[arg-type]
        profile=PROFILES[profile],
        upstream=None if api is MESSAGES else "messages",
        write=lambda _: "**Part**\n\nSaid.",
    )


def streamed(content: list[Any]) -> bytes:
    """Return a stream of these blocks, each character in an event of its own."""
    frames = [begin()]
    for index, block in enumerate(content):
        frames += [*_begun(index, block), stop(index)]
    return b"".join([*frames, *finish_at_once()])


def _begun(index: int, block: Any) -> list[bytes]:
    match block:
        case {"type": "text", "text": str(words)}:
            texts = [delta(index, "text", text=one) for one in words]
            return [start(index, {**block, "text": ""}), *texts]
        case {"type": "thinking", "thinking": words, "signature": signature}:
            thoughts = [delta(index, "thinking", thinking=one) for one in words]
            empty = {**block, "thinking": "", "signature": ""}
            return [start(index, empty), *thoughts, delta(index, "signature", signature=signature)]
        case {"input": dict(arguments)} if arguments:
            texts = [delta(index, "input_json", partial_json=one) for one in json.dumps(arguments)]
            return [start(index, {**block, "input": {}}), *texts]
    return [start(index, block)]


def at_once(content: list[Any]) -> bytes:
    """Return a stream of these blocks, each with all its content in its start."""
    frames = [
        one for index, block in enumerate(content) for one in (start(index, block), stop(index))
    ]
    return b"".join([begin(), *frames, *finish_at_once()])


def whole(content: list[Any], **keys: Any) -> bytes:
    return json.dumps({**message(content), **keys}).encode()


@pytest.mark.parametrize("profile", PROFILES_TRIED)
@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_nothing_hidden_leaves_in_a_block(content: list[Any], profile: str) -> None:
    for api, expose in HIDING:
        for stream in (streamed(content), at_once(content)):
            assert CANARY not in said(client(api, expose, profile).stream(stream))
        assert CANARY not in said(client(api, expose, profile).whole(whole(content)))


def test_nothing_unknown_leaves_beside_thinking_that_is_a_summary() -> None:
    display, profile = Display(hides_raw=True, native=True, style=None), PROFILES["anthropic"]
    body = whole([{**thinking("In short."), "why": SENTENCE}, text("So.")])
    (*events, end) = MESSAGES.reader(profile, display, 1 << 20).read_whole(body)
    assert isinstance(end, ResponseEnded)
    writer = MESSAGES.writer(profile, display, None, 1 << 20)
    for one in events:
        writer.note(one)
    out = writer.write_whole(end)
    assert json.loads(out)["content"] == [thinking("In short."), text("So.")]


@pytest.mark.parametrize("block", LEGAL, ids=[block["type"] for block in LEGAL])
def test_no_value_of_a_known_block_can_be_a_sentence(block: Block) -> None:
    for planted in planted_everywhere(block, TEXTS, frozenset({"input"})):
        for stream in (streamed([planted]), at_once([planted])):
            assert CANARY not in said(client(MESSAGES, "none").stream(stream))
        assert CANARY not in said(client(MESSAGES, "none").whole(whole([planted])))


def test_no_value_beside_the_content_can_be_a_sentence() -> None:
    for planted in planted_everywhere({**KNOWN_BESIDE, "usage": KNOWN_USAGE}, TEXTS):
        body = {**message([text("So.")]), **planted}
        assert CANARY not in said(client(MESSAGES, "none").whole(json.dumps(body).encode()))


@pytest.mark.parametrize("keys", BESIDE.values(), ids=BESIDE)
def test_nothing_hidden_leaves_beside_the_content(keys: dict[str, Any]) -> None:
    change = {"stop_reason": "end_turn", **keys}
    frames = [
        event("message_start", message={**message([], None), **keys}),
        *(start(0, text("")), delta(0, "text", text="So."), stop(0)),
        event("message_delta", **{"usage": scripts.USAGE, **keys, "delta": change}),
        event("message_stop", **keys),
    ]
    for api, expose in HIDING:
        assert CANARY not in said(client(api, expose).stream(b"".join(frames)))
        assert CANARY not in said(client(api, expose).whole(whole([text("So.")], **keys)))


@pytest.mark.parametrize("is_cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("odd", EVENTS.values(), ids=EVENTS)
def test_nothing_hidden_leaves_in_an_event(odd: list[bytes], *, is_cut: bool) -> None:
    begun = [begin(), start(0, text("")), delta(0, "text", text="So.")]
    ending = [] if is_cut else [stop(0), *finish_at_once()]
    for api, expose in HIDING:
        out = client(api, expose).stream(b"".join([*begun, *odd, *ending]))
        assert CANARY not in said(out)
        CHECKS[api.name](out)


@pytest.mark.parametrize("api", CLIENTS, ids=lambda api: api.name)
def test_what_follows_the_end_is_left_out(api: Api) -> None:
    late = [
        *(delta(0, "text", text=SENTENCE), event("ping", why=SENTENCE)),
        *(b"data: %b\n\n" % SAID, b"id: %b\ndata: [DONE] %b\n\n" % (SAID, SAID)),
    ]
    frames = [begin(), start(0, text("So.")), stop(0), *finish_at_once(), *late]
    out = client(api, "none").stream(b"".join(frames))
    assert CANARY not in said(out)
    done = b"data: [DONE]\n\n"  # some gateways send it here, too
    CHECKS[api.name](out.removesuffix(done) if api is MESSAGES else out)


NO_MESSAGES: list[Any] = [
    *([SENTENCE], SENTENCE, {"completion": SENTENCE}, {"content": SENTENCE}),
    {"type": "error", "error": {"type": "api_error", "message": SENTENCE}},
]


@pytest.mark.parametrize("body", NO_MESSAGES, ids=str)
@pytest.mark.parametrize("api", CLIENTS, ids=lambda api: api.name)
def test_a_body_that_is_no_message_fails_and_says_nothing(api: Api, body: Any) -> None:
    pipeline = client(api, "none")
    assert CANARY not in said(pipeline.whole(json.dumps(body).encode()))
    assert not pipeline.end.ok
    assert CANARY not in str(pipeline.end.error)


def test_blocks_beyond_those_that_are_remembered_are_left_out() -> None:
    odd = [start(index, MUSING) for index in range(MAX_INDEXES + 1)]
    late = [start(0, text("")), delta(0, "text", text=SENTENCE)]
    out = client(MESSAGES, "none").stream(b"".join([begin(), *odd, *late, *finish_at_once()]))
    assert CANARY not in said(out)


@pytest.mark.parametrize("ends", [stop(1), delta(5, "thinking", thinking="Hm.")], ids=str)
@pytest.mark.parametrize("block", [tool_use(), {"type": "redacted_thinking", "data": "abcd"}])
def test_text_under_the_index_of_another_block_that_has_ended_is_looked_through(
    block: Block, ends: bytes
) -> None:
    late = [start(1, block), ends, delta(1, "text", text=TAGGED)]
    out = client(MESSAGES, "none").stream(b"".join([begin(), *late, *finish_at_once()]))
    assert CANARY not in said(out)


def test_no_more_blocks_are_remembered() -> None:
    rebuilder = MessagesRebuilder()
    for index in range(2 * MAX_INDEXES):
        rebuilder.rebuild({"type": "content_block_start", "index": index, "content_block": MUSING})
    known = [value for value in vars(rebuilder).values() if isinstance(value, dict)]
    assert max(map(len, known)) == MAX_INDEXES + 1  # and the last one


def test_what_is_left_out_is_counted_and_no_fault() -> None:
    odd = [*block_in(MUSING, delta(1, "text", text=SENTENCE)), event("thought", text=SENTENCE)]
    pipeline = client(MESSAGES, "none")
    pipeline.stream(b"".join([begin(), *odd, *finish_at_once()]))
    assert (pipeline.reader.dropped, pipeline.reader.faults) == (4, 0)


def shown_so_far(pipeline: Pipeline, *frames: bytes) -> bytes:
    for one in frames:
        pipeline.frame(one)
    return bytes(pipeline.out)


@pytest.mark.parametrize("api", CLIENTS, ids=lambda api: api.name)
class TestWhatIsHeld:
    REASONED = (begin(), start(0, thinking("Hm.")), stop(0))
    ANSWERED = (start(1, text("")), delta(1, "text", text="So."))

    def test_text_waits_until_it_cannot_be_thinking(self, api: Api) -> None:
        assert b"So." not in shown_so_far(client(api, "none"), begin(), *self.ANSWERED)

    def test_after_reasoning_it_does_not(self, api: Api) -> None:
        assert b"So." in shown_so_far(client(api, "none"), *self.REASONED, *self.ANSWERED)

    @pytest.mark.parametrize("empty", ["<think>\n\n</think>\n\n", "\n</think>\n\n"])
    def test_after_an_empty_block_it_does_not(self, api: Api, empty: str) -> None:
        frames = [start(0, text("")), delta(0, "text", text=empty), delta(0, "text", text="So.")]
        assert b"So." in shown_so_far(client(api, "none"), begin(), *frames)

    @pytest.mark.parametrize("ending", [[], [event("error", error={"type": "api_error"})]])
    def test_it_is_not_shown_if_the_answer_breaks_off(self, api: Api, ending: list[bytes]) -> None:
        out = client(api, "none").stream(b"".join([begin(), *self.ANSWERED, *ending]))
        assert b"So." not in out
        CHECKS[api.name](out)

    def test_tags_in_several_strings_of_arguments_are_text(self, api: Api) -> None:
        (call,) = called(input={"a": "<think>", "b": ["x", "</think>"]})
        for out in (
            client(api, "none").stream(streamed([call])),
            client(api, "none").whole(whole([call])),
        ):
            assert "x" in said(out).partition("<think>")[2].partition("</think>")[0]


def test_an_index_may_come_again() -> None:
    odd = [start(0, MUSING), delta(0, "text", text=SENTENCE), stop(0)]
    known = [start(0, text("")), delta(0, "text", text="So."), stop(0)]
    out = client(MESSAGES, "none").stream(b"".join([begin(), *odd, *known, *finish_at_once()]))
    assert check_messages(out).blocks == [text("So.")]


@pytest.mark.parametrize("api", CLIENTS, ids=lambda api: api.name)
@given(cuts=st.sets(st.integers(0, len(SENTENCE))))
def test_thinking_is_found_however_texts_are_cut(api: Api, cuts: set[int]) -> None:
    edges = [0, *sorted(cuts), len(SENTENCE)]
    thoughts = [SENTENCE[at:to] for at, to in pairwise(edges)]
    texts = ["So. <thinking>", *thoughts, "</thinking> Yes."]
    content = [text(words) for words in texts]
    for stream in (streamed(content), at_once(content)):
        out = client(api, "none").stream(stream)
        assert CANARY not in said(out)
        assert "Yes." in said(out)
