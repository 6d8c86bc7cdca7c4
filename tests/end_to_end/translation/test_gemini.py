"""Gemini's own API as an upstream, for clients of each API."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from abridge.apis.gemini.reasoning import NO_SIGNATURE
from tests.apis.gemini import scripts as gemini
from tests.end_to_end.translation.test_translation import KEY, TOOLS
from tests.end_to_end.translation.tool_loops import KEEPS, client_items, results, returned_items
from tests.end_to_end.translation.turn import (
    CLIENTS,
    PATHS,
    UPSTREAMS,
    WORDS,
    read_answer,
    request_body,
)
from tests.support.asgi import Call, call
from tests.support.checker import check_responses
from tests.support.counters import total
from tests.support.deployments import ORIGIN, build_app
from tests.support.messages_checker import check_message, check_messages
from tests.support.streams import frame
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

Json = dict[str, Any]
MODEL = "gemini-3-flash-preview"
THOUGHTS = "**Adding up**\n\nI add the odd numbers."
OURS = "**Ours**\n\nWritten by a summarizer."
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
EACH = pytest.mark.parametrize("client", CLIENTS)
ANY = pytest.mark.parametrize("client", UPSTREAMS)


def play(parts: list[Json], *, stream: bool, reason: str = "STOP") -> Answer:
    whole = gemini.whole(parts, reason)
    return Answer(gemini.stream(parts, reason)) if stream else Answer.json(whole)


class Stage:
    """A sidecar before an upstream that speaks Gemini's API."""

    api = "gemini"

    def __init__(self, client: str, *answers: Answer, stream: bool, **tables: Any) -> None:
        self.client, self.stream = client, stream
        self.played, self.registry = Upstream(*answers), CollectorRegistry()
        entry = {
            "api": self.api,
            "profile": "gemini-native",
            "base_url": f"{ORIGIN}/v1beta",
            **tables.pop("entry", {}),
        }
        self.app: ASGIApp = build_app(
            "sidecar",
            self.played,
            upstreams=[entry],
            writer=Scripted(OURS),
            registry=self.registry,
            **tables,
        )

    def returned(self) -> list[list[Json]]:
        """Return the parts of the model's own in the last request, by content."""
        contents = self.played.requests[-1].json["contents"]
        return [content["parts"] for content in contents if content["role"] == "model"]

    async def ask(self, *, model: str = MODEL, **more: Any) -> Call:
        body = {**request_body(self.client, stream=self.stream), "model": model, **more}
        return await call(self.app, PATHS[self.client], body, KEY)


@BOTH
@ANY
async def test_an_answer_with_its_thoughts_as_the_summary(client: str, *, stream: bool) -> None:
    stage = Stage(
        client, play([gemini.thought(THOUGHTS), gemini.text(WORDS)], stream=stream), stream=stream
    )
    received = read_answer(client, await stage.ask(), stream=stream)
    assert (received.text, received.summary, received.raw) == (WORDS, THOUGHTS, "")
    assert total(stage.registry, "summaries_total", outcome="native") == 1
    assert received.usage is not None
    assert received.usage.get("total_tokens", 93) == 93  # Messages has none


@BOTH
@ANY
async def test_the_model_is_in_the_path_and_the_key_in_its_header(
    client: str, *, stream: bool
) -> None:
    stage = Stage(client, play([gemini.text(WORDS)], stream=stream), stream=stream)
    await stage.ask()
    (sent,) = stage.played.requests
    method, query = (
        ("streamGenerateContent", b"alt=sse") if stream else ("generateContent", b"alt=json")
    )
    assert (sent.path, sent.query) == (f"/v1beta/models/{MODEL}:{method}", query)
    assert sent.header("x-goog-api-key") == KEY["authorization"].removeprefix("Bearer ")
    assert sent.header("authorization") is None
    assert sent.json["contents"] == [{"role": "user", "parts": [{"text": "Hi"}]}]
    assert not {"model", "stream"} & sent.json.keys()


@pytest.mark.parametrize(
    ("model", "raw_path"),
    [
        ("models/gemini-3-flash", b"/v1beta/models/gemini-3-flash:generateContent"),
        ("../../../v1/files", b"/v1beta/models/files:generateContent"),
        ("..", b"/v1beta/models/..:generateContent"),
        ("a?alt=json&b#c", b"/v1beta/models/a%3Falt=json&b%23c:generateContent"),
        ("a%2F..%2Fb", b"/v1beta/models/a%252F..%252Fb:generateContent"),
        ("gemini\r\nx: y", b"/v1beta/models/gemini%0D%0Ax:%20y:generateContent"),
    ],
)
async def test_no_models_name_leads_out_of_its_place_in_the_path(
    model: str, raw_path: bytes
) -> None:
    stage = Stage("chat", play([gemini.text(WORDS)], stream=False), stream=False)
    reply = await stage.ask(model=model)
    assert reply.status == 200
    assert stage.played.requests[0].raw_path.partition(b"?")[0] == raw_path


@EACH
async def test_a_request_without_a_model_is_refused(client: str) -> None:
    stage = Stage(client, play([gemini.text(WORDS)], stream=False), stream=False)
    reply = await stage.ask(model="")
    assert reply.status == 400
    assert reply.json["error"]["param"] == "model"
    assert stage.played.requests == []


def rounds(*, stream: bool) -> list[tuple[list[Json], Answer]]:
    """Return the parts of three rounds of calls, each with its answer."""
    made = [
        [
            gemini.thought(f"Round {number}."),
            gemini.text(f"Looking, {number}."),
            gemini.signed(
                gemini.function_call(f"fc_{number}a7Kq9ZtR4mP2s", where="é"), f"c2ln{number}"
            ),
            gemini.function_call(f"fc_{number}b7Kq9ZtR4mP2s", depth=1.0),
        ]
        for number in range(3)
    ]
    return [(parts, play(parts, stream=stream)) for parts in made]


def unsigned(parts: list[Json]) -> list[Json]:
    """Return parts without thoughts and signatures."""
    return [
        {key: part[key] for key in part if key != "thoughtSignature"}
        for part in parts
        if not part.get("thought")
    ]


async def loop(
    stage: Stage, keeps: str, times: int, before: list[Json] | None = None, **more: Any
) -> list[Json]:
    """Run a client through rounds and return its history, or what is new since `before`."""
    history = [*before] if before else [{"role": "user", "content": "Where is it?"}]
    field = "messages" if stage.client == "chat" else "input"
    for _ in range(times):
        asked = {**(more if stage.client == "responses" else {}), field: history}
        reply = await stage.ask(tools=TOOLS[stage.client], **asked)
        assert reply.status == 200, reply.data
        items = client_items(stage.client, reply, stream=stage.stream)
        items = returned_items(items, keeps)
        history += [*items, *results(items)]
    return history[len(before or ()) :]


@BOTH
@EACH
@pytest.mark.parametrize("keeps", KEEPS)
async def test_each_round_of_calls_comes_back_as_the_model_wrote_it(
    client: str, keeps: str, *, stream: bool
) -> None:
    played = rounds(stream=stream)
    stage = Stage(client, *(answer for _, answer in played), stream=stream)
    await loop(stage, keeps, 3)
    assert stage.returned() == [parts for parts, _ in played[:2]]
    outputs = stage.played.requests[-1].json["contents"][2]["parts"]
    answered = [part["functionResponse"] for part in outputs]
    assert [(each["id"], each["name"]) for each in answered] == [
        ("fc_0a7Kq9ZtR4mP2s", "look"),
        ("fc_0b7Kq9ZtR4mP2s", "look"),
    ]


@BOTH
@EACH
async def test_without_a_store_the_client_brings_the_signatures_back(
    client: str, monkeypatch: pytest.MonkeyPatch, *, stream: bool
) -> None:
    """Each request goes to another replica, which has the keys alone."""
    monkeypatch.setenv("KEYS", f"key:{'A' * 43}=")
    played = rounds(stream=stream)
    stage = Stage(
        client,
        *(answer for _, answer in played),
        stream=stream,
        history={"store": "none", "seal_keys_env": "KEYS"},
        chat={"envelope": "reasoning_details"},
    )
    await loop(stage, "everything", 3, include=["reasoning.encrypted_content"])
    assert stage.returned() == [parts for parts, _ in played[:2]]


@EACH
async def test_a_lost_signature_is_replaced_by_googles_placeholder(client: str) -> None:
    played = rounds(stream=False)
    stage = Stage(
        client, *(answer for _, answer in played), stream=False, history={"store": "none"}
    )
    await loop(stage, "standard fields", 2)
    (parts,) = stage.returned()
    first, second = [part for part in parts if "functionCall" in part]
    assert first["thoughtSignature"] == NO_SIGNATURE
    assert "thoughtSignature" not in second


@EACH
@pytest.mark.parametrize("message", ["Corrupted thought signature.", "Invalid thought signature."])
async def test_a_signature_that_is_refused_is_left_out_once(client: str, message: str) -> None:
    first, second = (answer for _, answer in rounds(stream=False)[:2])
    refusal = {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}
    stage = Stage(client, first, Answer.json(refusal, status=400), second, stream=False)
    await loop(stage, "standard fields", 2)
    assert len(stage.played.requests) == 3
    (parts,) = stage.returned()
    signatures = [part.get("thoughtSignature") for part in parts]
    assert signatures == [None, NO_SIGNATURE, None]


@EACH
@pytest.mark.parametrize(
    ("keep", "earlier"), [("none", False), ("tool_rounds", False), ("all", True)]
)
async def test_what_is_kept_of_earlier_turns(client: str, keep: str, *, earlier: bool) -> None:
    """The calls of the current turn keep their signatures, whatever is kept."""
    played = rounds(stream=False)
    stage = Stage(client, *(answer for _, answer in played), stream=False, history={"keep": keep})
    history = await loop(stage, "standard fields", 1)
    history.append({"role": "user", "content": "And elsewhere?"})
    history += await loop(stage, "standard fields", 1, history)
    await loop(stage, "standard fields", 1, history)
    before, current = stage.returned()
    assert before == (played[0][0] if earlier else unsigned(played[0][0]))
    assert current == played[1][0]


@EACH
async def test_a_renamed_model(client: str) -> None:
    played = play([gemini.thought(THOUGHTS), gemini.text(WORDS)], stream=False)
    stage = Stage(client, played, stream=False, entry={"rename": {"fast": MODEL}})
    reply = await stage.ask(model="fast")
    assert stage.played.requests[0].path == f"/v1beta/models/{MODEL}:generateContent"
    assert reply.json["model"] == "fast"
    assert total(stage.registry, "summaries_total", outcome="native") == 1


@EACH
@pytest.mark.parametrize(
    ("model", "limit", "expected"),
    [
        (MODEL, {"effort_max": "low"}, {"thinkingLevel": "low"}),
        ("gemini-2.5-flash", {"budget_max": 2000}, {"thinkingBudget": 2000}),
    ],
)
async def test_a_limit_of_effort(client: str, model: str, limit: Json, expected: Json) -> None:
    answer = play([gemini.text(WORDS)], stream=False)
    stage = Stage(client, answer, stream=False, entry=limit)
    wish = {"summary": "auto", "effort": "high"}
    await stage.ask(model=model, reasoning=wish)
    config = stage.played.requests[0].json["generationConfig"]["thinkingConfig"]
    assert config == {"includeThoughts": True, **expected}


@BOTH
@EACH
async def test_hidden_thoughts_stay_hidden_where_nothing_is_asked_for(
    client: str, *, stream: bool
) -> None:
    parts = [gemini.thought("A secret."), gemini.text(f"<think>A secret.</think>{WORDS}")]
    stage = Stage(client, play(parts, stream=stream), stream=stream, reasoning={"expose": "none"})
    reply = await stage.ask()
    assert read_answer(client, reply, stream=stream).text == WORDS
    assert b"secret" not in reply.data


@BOTH
@EACH
@pytest.mark.parametrize(("profile", "shown"), [("gemini-native", THOUGHTS), ("auto", OURS)])
async def test_where_raw_is_hidden_thoughts_are_a_summary_if_the_profile_vouches_for_them(
    client: str, profile: str, shown: str, *, stream: bool
) -> None:
    played = play([gemini.thought(THOUGHTS), gemini.text(WORDS)], stream=stream)
    hiding = {"expose": "summary"}
    stage = Stage(client, played, stream=stream, reasoning=hiding, entry={"profile": profile})
    received = read_answer(client, await stage.ask(), stream=stream)
    assert (received.text, received.summary, received.raw) == (WORDS, shown, "")


@BOTH
async def test_a_response_is_continued_by_its_id(*, stream: bool) -> None:
    played = rounds(stream=stream)
    stage = Stage("responses", *(answer for _, answer in played), stream=stream)
    tools = TOOLS["responses"]
    first = read_answer("responses", await stage.ask(tools=tools), stream=stream)
    outputs = results(first.body["output"])
    await stage.ask(tools=tools, input=outputs, previous_response_id=first.body["id"])
    assert stage.returned() == [played[0][0]]


ERROR = {"error": {"code": 429, "message": "Quota exceeded.", "status": "RESOURCE_EXHAUSTED"}}


@BOTH
@EACH
@pytest.mark.parametrize("body", [ERROR, [ERROR]], ids=["object", "list"])
async def test_an_error_comes_in_the_clients_shape(client: str, body: Any, *, stream: bool) -> None:
    stage = Stage(client, Answer.json(body, status=429), stream=stream)
    reply = await stage.ask()
    assert reply.status == 429
    assert reply.json["error"]["message"] == "Quota exceeded."
    assert reply.json["error"]["code"] == "rate_limit_exceeded"


@EACH
async def test_an_error_within_a_stream_ends_the_answer_failed(client: str) -> None:
    frames = [frame(gemini.chunk([gemini.text("One")])), frame(ERROR)]
    stage = Stage(client, Answer(frames), stream=True)
    reply = await stage.ask()
    assert reply.status == 200
    assert b"Quota exceeded." in reply.data
    assert b'"response.completed"' not in reply.data
    assert b"[DONE]" not in reply.data


@EACH
async def test_a_malformed_call_is_an_error(client: str) -> None:
    answer = play([], stream=False, reason="MALFORMED_FUNCTION_CALL")
    reply = await Stage(client, answer, stream=False).ask()
    assert reply.status == 502
    assert "MALFORMED_FUNCTION_CALL" in json.dumps(reply.json)


class TestMessagesClients:
    """Clients that speak Anthropic's Messages, as Claude Code does."""

    TOOLS = [{"name": "look", "input_schema": {"type": "object"}}]  # noqa: RUF012 -- never changed

    async def ask(self, stage: Stage, messages: list[Json], **more: Any) -> Json:
        """Send a request; return the answer's message, checked."""
        body = {
            "model": MODEL,
            "max_tokens": 4096,
            "messages": messages,
            "stream": stage.stream,
            "thinking": {"type": "adaptive"},
            **more,
        }
        key = {"x-api-key": "sk-anna-1234", "anthropic-version": "2023-06-01"}
        reply = await call(stage.app, "/v1/messages", body, key, query_string=b"beta=true")
        assert reply.status == 200, reply.data
        return check_messages(reply.data).message if stage.stream else check_message(reply.json)

    async def loop(self, stage: Stage, kept: Callable[[Json], bool], times: int = 3) -> None:
        """Run a client that returns the blocks that it keeps through rounds of calls."""
        messages: list[Json] = [{"role": "user", "content": "Where is it?"}]
        for _ in range(times):
            message = await self.ask(stage, messages, tools=self.TOOLS)
            content = list(filter(kept, message["content"]))
            calls = [block["id"] for block in content if block["type"] == "tool_use"]
            outputs = [
                {"type": "tool_result", "tool_use_id": each, "content": "None."} for each in calls
            ]
            messages += [
                {"role": "assistant", "content": content},
                {"role": "user", "content": outputs},
            ]

    @BOTH
    @pytest.mark.parametrize("keeps_thinking", [True, False])
    async def test_each_round_of_calls_comes_back_as_the_model_wrote_it(
        self, *, keeps_thinking: bool, stream: bool
    ) -> None:
        played = rounds(stream=stream)
        stage = Stage("messages", *(answer for _, answer in played), stream=stream)
        await self.loop(stage, lambda block: keeps_thinking or "thinking" not in block["type"])
        assert b"beta" not in stage.played.requests[0].query
        assert stage.returned() == [parts for parts, _ in played[:2]]

    @BOTH
    async def test_without_a_store_the_client_brings_the_signatures_back(
        self, monkeypatch: pytest.MonkeyPatch, *, stream: bool
    ) -> None:
        monkeypatch.setenv("KEYS", f"key:{'A' * 43}=")
        history = {"store": "none", "seal_keys_env": "KEYS"}
        played = rounds(stream=stream)
        stage = Stage("messages", *(answer for _, answer in played), stream=stream, history=history)
        await self.loop(stage, lambda _: True)
        assert stage.returned() == [parts for parts, _ in played[:2]]


PNG = "iVBORw0KGgoAAAANSUhEUg=="
IMAGE = gemini.signed(gemini.inline_data("image/png", PNG), "c2ln")
EXPOSED = pytest.mark.parametrize("expose", ["both", "summary", "none"])


def images_of(client: str, reply: Call, *, stream: bool) -> list[str]:
    if client == "chat":
        data = reply.data.splitlines() if stream else [b"data: " + reply.data]
        chunks = [json.loads(line[6:]) for line in data if line.startswith(b"data: {")]
        messages = [
            choice["delta" if stream else "message"] for one in chunks for choice in one["choices"]
        ]
        (images,) = [message["images"] for message in messages if "images" in message]
        return [image["image_url"]["url"] for image in images]
    items = (
        [item.done for item in check_responses(reply.data).items.values()]
        if stream
        else reply.json["output"]
    )
    calls = [item for item in items if item and item["type"] == "image_generation_call"]
    assert {call["status"] for call in calls} == {"completed"}
    return [f"data:image/{call['output_format']};base64,{call['result']}" for call in calls]


@BOTH
@EACH
@EXPOSED
async def test_images_reach_clients_in_their_apis_form(
    client: str, expose: str, *, stream: bool
) -> None:
    parts = [gemini.thought("Hm."), gemini.text(WORDS), IMAGE, IMAGE]
    stage = Stage(client, play(parts, stream=stream), stream=stream, reasoning={"expose": expose})
    reply = await stage.ask()
    assert images_of(client, reply, stream=stream) == [f"data:image/png;base64,{PNG}"] * 2
    assert read_answer(client, reply, stream=stream).text == WORDS


@BOTH
@EACH
async def test_an_answer_may_be_an_image_alone(client: str, *, stream: bool) -> None:
    stage = Stage(client, play([IMAGE], stream=stream), stream=stream)
    reply = await stage.ask()
    assert images_of(client, reply, stream=stream) == [f"data:image/png;base64,{PNG}"]


@BOTH
@pytest.mark.parametrize(
    ("client", "part", "words"),
    [
        ("messages", IMAGE, "an image"),
        *((each, gemini.inline_data("audio/L16", "AAEC"), "audio") for each in PATHS),
    ],
)
async def test_an_answer_with_what_the_clients_api_cannot_carry_fails(
    client: str, part: Json, words: str, *, stream: bool
) -> None:
    stage = Stage(client, play([gemini.text(WORDS), part], stream=stream), stream=stream)
    reply = await stage.ask()
    assert f"The answer contains {words}, which this API cannot represent.".encode() in reply.data
    assert reply.status == (200 if stream else 502)


@EACH
async def test_an_image_comes_back_as_the_model_sent_it(client: str) -> None:
    """It does so too where the client does not return it, as those of Chat Completions do not."""
    parts = [gemini.thought("Hm."), gemini.text(WORDS), IMAGE]
    answers = play(parts, stream=False), play([gemini.text(WORDS)], stream=False)
    stage = Stage(client, *answers, stream=False)
    reply = await stage.ask()
    said = client_items(client, reply, stream=False)
    field = "messages" if client == "chat" else "input"
    question = {"role": "user", "content": "Hi"}
    await stage.ask(**{field: [question, *said, question]})
    assert stage.returned() == [parts]


async def test_an_image_that_is_nowhere_kept_comes_back_from_the_client() -> None:
    stage = Stage("responses", play([gemini.text(WORDS)], stream=False), stream=False)
    call = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": PNG}
    question = {"role": "user", "content": "Hi"}
    assert (await stage.ask(input=[question, call, question])).status == 200
    assert stage.returned() == [[gemini.inline_data("image/png", PNG)]]
