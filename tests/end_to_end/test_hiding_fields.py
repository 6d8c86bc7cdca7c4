"""Test that what an answer says beside its text gets through hiding, and no thinking with it.

Each value stands where providers send it. It must reach the client as it is, streamed and whole; a
canary in any place of it, or beside what it holds, must not.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any
from zlib import compress

import pytest

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.messages.api import MESSAGES
from abridge.apis.responses.api import RESPONSES
from abridge.providers.catalog import PROFILES
from tests.apis.gemini import scripts as gemini
from tests.apis.messages import scripts
from tests.support.canaries import CANARY, SENTENCE, planted_everywhere
from tests.support.matrix import each_in_turn
from tests.support.pipeline import Pipeline
from tests.support.streams import (
    DONE,
    chunk,
    completion,
    frame,
    message_item,
    response,
    responses_stream,
)

Json = dict[str, Any]

ANSWER = "It is 42."
URL = "https://example.com/a"
PROFILES_TRIED = ("auto", "vllm", "openai")
TEXTS = frozenset(
    {
        *("title", "content", "text", "intent", "filepath", "filename", "cited_text", "date"),
        *("document_title", "snippet", "revised_prompt", "search_queries", "related_questions"),
        *("output", "error"),
    }
)
"""Keys of texts, which are looked through for blocks."""

LEFT_ALONE = frozenset({"text", "arguments"})
"""Keys of the answer itself, which other tests are about."""

PLACE = {"start_index": 0, "end_index": 5}
PAGE = {"url": URL, "title": "A page", **PLACE}
FILTERED = {"hate": {"filtered": False, "severity": "safe"}}
FLAGS = {"hate": True, "self-harm/intent": False}
MODERATED = {
    "type": "moderation",
    "model": "omni",
    "results": [{"flagged": True, "categories": FLAGS, "category_scores": {"hate": 0.5}}],
}

IN_A_MESSAGE: dict[str, Json] = {
    "annotations": {"annotations": [{"type": "url_citation", "url_citation": PAGE}]},
    "an annotation with a quote": {
        "annotations": [{"type": "url_citation", "url_citation": {**PAGE, "content": "42 it is"}}]
    },
    "flat annotations": {"annotations": [{"type": "url_citation", **PAGE}]},
    "a file's annotation": {
        "annotations": [
            {"type": "file_citation", "file_citation": {"file_id": "f1", "filename": "数 据.pdf"}}
        ]
    },
    "Azure's context": {
        "context": {
            "intent": '["what is it"]',
            "citations": [
                {
                    "title": "文 档",
                    "url": URL,
                    "content": "It.",
                    "filepath": "a b.md",
                    "chunk_id": "0",
                }
            ],
        }
    },
    "what a tool did": {
        "executed_tools": [
            {
                "index": 0,
                "type": "search",
                "arguments": '{"query":"it"}',
                "output": "Found it",
                "search_results": {"results": [{"title": "A page", "url": URL, "score": 0.5}]},
            }
        ]
    },
}
IN_A_CHOICE: dict[str, Json] = {
    "content filters": {"content_filter_results": FILTERED},
    "a seed": {"seed": 7},
    "vLLM's stop sequence": {"stop_reason": "Observation:"},
    "SGLang's stop sequence": {"matched_stop": "\n\n"},
}
IN_A_COMPLETION: dict[str, Json] = {
    "citations": {"citations": [URL]},
    "sources": {"search_results": [{"title": "A page", "url": URL, "date": "today"}]},
    "questions": {"related_questions": ["And what is it not?"]},
    "prompt filters": {
        "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": FILTERED}]
    },
    "a model of several words": {"model": "Llama 3.1 8B Instruct (Q4)"},
    "a model in Chinese": {"model": "通义千问-Max"},
    "a provider": {"provider": "Amazon Bedrock"},
    "times": {"time_info": {"queue_time": 0.5}},
    "moderation": {"moderation": {"input": MODERATED, "output": MODERATED}},
}


def in_chat(place: Json, *, where: str, streams: bool) -> bytes:
    """Return an answer of Chat Completions with this in a message, a choice or beside them."""
    said = {"content": ANSWER, **(place if where == "message" else {})}
    beside = place if where == "completion" else {}
    if not streams:
        body = completion(said, **beside)
        body["choices"][0] |= place if where == "choice" else {}
        return json.dumps(body).encode()
    last = json.loads(chunk({}, finish="stop", **beside).partition(b"data: ")[2])
    last["choices"][0] |= place if where == "choice" else {}
    first = chunk({"role": "assistant", **said}, **beside)
    return first + frame(last) + DONE


IMAGE = {
    "type": "image_generation_call",
    "id": "ig_1",
    "status": "completed",
    "result": "iVBORw0K",
    "size": "1024x1024",
    "quality": "high",
    "revised_prompt": "a red boat",
}
ITEMS: dict[str, Json] = {
    "an image": IMAGE,
    "annotations": {
        **message_item(0, ANSWER),
        "content": [
            {
                "type": "output_text",
                "text": ANSWER,
                "annotations": [
                    {"type": "url_citation", **PAGE},
                    {"type": "file_citation", "index": 3, "file_id": "f1", "filename": "数 据.pdf"},
                ],
                "logprobs": [],
            }
        ],
    },
    "a call of MCP": {
        "type": "mcp_call",
        "id": "mcp_1",
        "name": "查询",
        "server_label": "s",
        "arguments": '{"a":1}',
        "output": "Sunny",
        "error": None,
        "status": "completed",
    },
}
IN_A_RESPONSE: dict[str, Json] = {
    "a model": {"model": "Llama 3.1 8B Instruct"},
    "filters": {
        "content_filters": [
            {"blocked": False, "source_type": "prompt", "content_filter_results": FILTERED}
        ]
    },
    "defaults": {
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "none",
    },
}


def in_responses(item: Json | None, more: Json, *, streams: bool) -> bytes:
    output = [item or message_item(0, ANSWER)]
    if streams:
        return b"".join(responses_stream(output, **more))
    return json.dumps(response(output, **more)).encode()


CITATIONS = [
    {
        "type": "char_location",
        "cited_text": "It is",
        "document_index": 0,
        "document_title": "A page",
        "start_char_index": 0,
        "end_char_index": 5,
    },
    {
        "type": "web_search_result_location",
        "cited_text": "It is",
        "url": URL,
        "title": "A page",
        "encrypted_index": "EoAB",
    },
    {
        "type": "page_location",
        "cited_text": "数 据",
        "document_index": 1,
        "start_page_number": 1,
        "end_page_number": 2,
    },
    {
        "type": "search_result_location",
        "cited_text": "It is",
        "source": URL,
        "title": "A",
        "search_result_index": 0,
        "start_block_index": 0,
        "end_block_index": 1,
    },
]
BLOCKS: dict[str, Json] = {
    **{f"{one['type']}": {**scripts.text(ANSWER), "citations": [one]} for one in CITATIONS},
    "a fallback": {"type": "fallback", "from": {"model": "claude-a"}, "to": {"model": "claude-b"}},
}
IN_A_RESPONSE_OF_MESSAGES: dict[str, Json] = {
    "a model": {"model": "Llama 3.1 8B Instruct"},
    "rounds": {"usage": {"output_tokens": 1, "iterations": [{"type": "message", "model": "c"}]}},
    "a stop sequence": {"stop_reason": "stop_sequence", "stop_sequence": "\n\nObservation:"},
}


def in_messages(block: Json | None, more: Json, *, streams: bool) -> bytes:
    content = [block or scripts.text(ANSWER)]
    if not streams:
        return json.dumps(scripts.message(content, **more)).encode()
    frames = scripts.stream(content)
    if citations := (block or {}).get("citations"):
        notes = [scripts.delta(0, "citations", citation=one) for one in citations]
        frames = [scripts.begin(), scripts.start(0, {**scripts.text(""), "citations": []})]
        frames += [scripts.delta(0, "text", text=ANSWER), *notes, scripts.stop(0)]
        frames += scripts.finish_at_once()
    if more:
        change = {"stop_reason": "end_turn", **more}
        usage = change.pop("usage", scripts.USAGE)
        begun = scripts.event(
            "message_start", message=scripts.message([], None, **{"model": "m", **more})
        )
        ended = scripts.event("message_delta", delta=change, usage=usage)
        frames = [begun, *frames[1:-2], ended, frames[-1]]
    return b"".join(frames)


def strings(value: Any) -> Iterator[Any]:
    """Yield what is said anywhere in a value."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)
    elif value is not None:
        yield value


def bodies(out: bytes, *, streams: bool) -> list[Any]:
    lines = [line[6:] for line in out.split(b"\n") if line.startswith(b"data: {")]
    return [json.loads(line) for line in (lines if streams else [out])]


def told(out: bytes, *, streams: bool) -> list[Any]:
    return [one for body in bodies(out, streams=streams) for one in strings(body)]


CASES = [
    *(
        pytest.param(CHAT, place, {"where": where}, id=f"chat: {name}")
        for where, places in (
            ("message", IN_A_MESSAGE),
            ("choice", IN_A_CHOICE),
            ("completion", IN_A_COMPLETION),
        )
        for name, place in places.items()
    ),
    *(pytest.param(RESPONSES, item, {}, id=f"responses: {name}") for name, item in ITEMS.items()),
    *(
        pytest.param(RESPONSES, more, {"beside": True}, id=f"a response: {name}")
        for name, more in IN_A_RESPONSE.items()
    ),
    *(pytest.param(MESSAGES, block, {}, id=f"messages: {name}") for name, block in BLOCKS.items()),
    *(
        pytest.param(MESSAGES, more, {"beside": True}, id=f"a message: {name}")
        for name, more in IN_A_RESPONSE_OF_MESSAGES.items()
    ),
]


def answer(api: Api, place: Json, *, streams: bool, where: str = "", beside: bool = False) -> bytes:
    if api is CHAT:
        return in_chat(place, where=where, streams=streams)
    build = in_responses if api is RESPONSES else in_messages
    return build(None if beside else place, place if beside else {}, streams=streams)


def pass_through(api: Api, body: bytes, profile: str, *, streams: bool, **more: Any) -> bytes:
    pipeline = Pipeline(api, expose="none", profile=PROFILES[profile], **more)
    return pipeline.stream(body) if streams else pipeline.whole(body)


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("profile", PROFILES_TRIED)
def test_what_is_said_beside_a_text_stays(profile: str, *, streams: bool) -> None:
    turn = PROFILES_TRIED.index(profile) + streams
    for case in each_in_turn(CASES, turn, 2):
        api, place, options = case.values
        said = answer(api, place, streams=streams, **options)
        out = told(pass_through(api, said, profile, streams=streams), streams=streams)
        assert [one for one in strings(place) if one not in out and one != ANSWER] == [], case.id


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(("api", "place", "options"), CASES)
def test_nothing_else_passes_in_its_place(
    api: Api, place: Json, options: Json, *, streams: bool
) -> None:
    for planted in planted_everywhere(place, TEXTS, LEFT_ALONE):
        if not isinstance(planted, dict) or planted.get("type") != place.get("type"):
            continue
        if not all(isinstance(one, dict) and "text" in one for one in planted.get("content", ())):
            continue
        said = answer(api, planted, streams=streams, **options)
        assert CANARY.encode() not in pass_through(api, said, "openai", streams=streams), planted


@pytest.mark.parametrize("name", ["my own model", "I think of it now"])
def test_a_name_that_the_client_gave_passes_and_no_other(name: str) -> None:
    body = json.dumps(completion({"content": ANSWER}, model=name)).encode()
    assert name not in told(pass_through(CHAT, body, "openai", streams=False), streams=False)
    pipeline = Pipeline(CHAT, expose="none", echoed={"model": name})
    assert name in told(pipeline.whole(body), streams=False)


def test_a_sentence_is_no_model_and_no_stop_sequence() -> None:
    body = completion({"content": ANSWER}, model=SENTENCE, provider=SENTENCE)
    body["choices"][0] |= {"stop_reason": SENTENCE, "matched_stop": SENTENCE}
    out = pass_through(CHAT, json.dumps(body).encode(), "openai", streams=False)
    assert CANARY.encode() not in out


# Log probabilities


def token(text: str, *others: str) -> Json:
    top = [{"token": one, "logprob": -1.0, "bytes": list(one.encode())} for one in others]
    return {"token": text, "logprob": -0.1, "bytes": list(text.encode()), "top_logprobs": top}


TOKENS = [token("It", "That"), token(" is", " was"), token(" 42", " 24"), token(".", "!")]
THOUGHT = [token("<think>"), token("Hm"), token("</think>")]


def chat_logprobs(deltas: list[tuple[str, list[Json]]], *, streams: bool) -> bytes:
    if not streams:
        body = completion({"content": "".join(text for text, _ in deltas)})
        content = [one for _, tokens in deltas for one in tokens]
        body["choices"][0]["logprobs"] = {"content": content, "refusal": None}
        return json.dumps(body).encode()
    frames = [chunk({"role": "assistant", "content": ""})]
    for text, tokens in deltas:
        one = json.loads(chunk({"content": text}).partition(b"data: ")[2])
        one["choices"][0]["logprobs"] = {"content": tokens, "refusal": None}
        frames.append(frame(one))
    return b"".join([*frames, chunk({}, finish="stop"), DONE])


def kept_tokens(out: bytes, *, streams: bool) -> str:
    choices = [one["choices"][0] for one in bodies(out, streams=streams) if one.get("choices")]
    entries = [(choice.get("logprobs") or {}).get("content") or [] for choice in choices]
    return "".join(entry["token"] for each in entries for entry in each)


DELTAS = [(one["token"], [one]) for one in TOKENS]


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("profile", PROFILES_TRIED)
def test_the_log_probabilities_of_what_is_shown_stay(profile: str, *, streams: bool) -> None:
    said = chat_logprobs(DELTAS, streams=streams)
    out = pass_through(CHAT, said, profile, streams=streams)
    assert kept_tokens(out, streams=streams) == ANSWER
    assert " was" in told(out, streams=streams)


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("profile", PROFILES_TRIED)
@pytest.mark.parametrize(
    "deltas",
    [
        [("<think>", THOUGHT[:1]), ("Hm", THOUGHT[1:2]), ("</think>", THOUGHT[2:]), *DELTAS],
        [("It is 42.", [token("Hm"), *TOKENS])],
        [("It is 42.", [*TOKENS, token("Hm")])],
        [("It is 42.", [{**TOKENS[0], "bytes": list(b"Hm")}, *TOKENS[1:], token("Hm")])],
        [("It is 42.", [token("It", "Hm I think")])],
    ],
)
def test_those_of_anything_else_do_not(
    deltas: list[tuple[str, list[Json]]], profile: str, *, streams: bool
) -> None:
    out = pass_through(CHAT, chat_logprobs(deltas, streams=streams), profile, streams=streams)
    assert "Hm" not in "".join(map(str, told(out, streams=streams)))
    assert [72, 109] not in [
        one["bytes"]
        for body in bodies(out, streams=streams)
        for choice in body.get("choices", ())
        for one in (choice.get("logprobs") or {}).get("content") or ()
    ]


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("client", [RESPONSES, CHAT], ids=lambda api: api.name)
@pytest.mark.parametrize("tokens", [TOKENS, [*THOUGHT, *TOKENS]], ids=["shown", "more"])
def test_those_of_responses_stay_likewise(
    tokens: list[Json], client: Api, *, streams: bool
) -> None:
    item = message_item(0, ANSWER)
    item["content"][0]["logprobs"] = tokens
    said = in_responses(item, {}, streams=streams)
    upstream = None if client is RESPONSES else RESPONSES.name
    out = pass_through(client, said, "openai", streams=streams, upstream=upstream)
    if not (streams and client is CHAT):  # the deltas had none
        assert (" was" in told(out, streams=streams)) == (tokens is TOKENS)
    assert "Hm" not in told(out, streams=streams)


# Gemini


@pytest.mark.parametrize("client", [CHAT, RESPONSES, MESSAGES], ids=lambda api: api.name)
def test_a_call_of_any_name_and_a_model_of_several_words_stay_of_gemini(client: Api) -> None:
    parts = [gemini.function_call("fc_1", "查询天气", city="北京")]
    body = {**gemini.whole(parts), "modelVersion": "Gemini 3 Pro"}
    out = told(
        pass_through(
            client, json.dumps(body).encode(), "gemini-native", streams=False, upstream="gemini"
        ),
        streams=False,
    )
    assert "查询天气" in out
    assert "Gemini 3 Pro" in out


# Opaque state

STATE = "gAAAAABoB2x3" + "kX9qVQ2_pL7w" * 9
ENCODED = b64encode(compress(f"First I look at it. {SENTENCE}, and then I add.".encode())).decode()
NOT_VOUCHED = [name for name, one in PROFILES.items() if not one.encrypts_state]


def with_state(api: Api, state: str) -> Json:
    if api is CHAT:
        details = [{"type": "reasoning.encrypted", "data": state}]
        return completion({"content": ANSWER, "reasoning_details": details})
    if api is MESSAGES:
        return scripts.message([scripts.redacted(state), scripts.text(ANSWER)])
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": state}
    return response([item, message_item(1, ANSWER)])


def states_shown(api: Api, state: str, profile: str) -> bool:
    display = {"expose": "none", "profile": PROFILES[profile]}
    pipeline = Pipeline(api, trusts_state=PROFILES[profile].encrypts_state, **display)
    return state in pipeline.whole(json.dumps(with_state(api, state)).encode()).decode()


@pytest.mark.parametrize("api", [CHAT, RESPONSES, MESSAGES], ids=lambda api: api.name)
def test_state_passes_where_a_vendor_vouches_for_its_encryption(api: Api) -> None:
    for profile in ("openai", "anthropic", "auto"):
        assert states_shown(api, STATE, profile)
        assert not states_shown(api, ENCODED, profile)
    for profile in NOT_VOUCHED:
        assert not states_shown(api, STATE, profile)
