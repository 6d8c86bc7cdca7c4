"""Test writing requests in Gemini's format."""

from __future__ import annotations

from typing import Any

import pytest

from abridge.apis.api import UpstreamOptions
from abridge.apis.gemini.api import GEMINI
from abridge.apis.gemini.history import GeminiHistory
from abridge.apis.gemini.messages import MADE_ID
from abridge.apis.gemini.reasoning import NO_SIGNATURE, write_state
from abridge.core.conversation import Json
from abridge.core.model_request import (
    AudioPart,
    FilePart,
    ImagePart,
    Message,
    MessagePart,
    ModelRequest,
    OutputFormat,
    ReasoningPart,
    RefusalPart,
    Role,
    TextPart,
    Tool,
    ToolCallPart,
    ToolChoice,
    ToolOutputPart,
    TranslatedRequest,
    UnknownPart,
)
from abridge.errors import RequestError
from abridge.providers.catalog import PROFILES
from tests.apis.gemini.scripts import function_call, signed, text, thought, whole
from tests.apis.gemini.spec import GENAI, check_answer, check_request, needs_genai

FLASH, PRO, BUDGET, OLD, TUNED = (
    "gemini-3-flash-preview",
    "gemini-3-pro-preview",
    "gemini-2.5-flash",
    "gemini-2.0-flash",
    "our-tuned-model",
)
SCHEMA: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
LOOK = Tool("look", description="Looks.", parameters=SCHEMA)
LISTEN = Tool("hear")
USER = "user"


def message_of(role: Role, *parts: MessagePart | str) -> Message:
    return Message(role, [TextPart(part) if isinstance(part, str) else part for part in parts])


def write(*given: Message, **fields: Any) -> TranslatedRequest:
    """Write a request; check it with Google's own types if they are installed."""
    messages = list(given or [message_of("user", "Hi")])
    request = ModelRequest(**{"model": FLASH, "messages": messages, **fields})
    written = GEMINI.write_request(request, UpstreamOptions(PROFILES["gemini-native"]))
    if GENAI:
        check_request(written.body)
    return written


def contents(*given: Message, **fields: Any) -> list[Json]:
    written: list[Json] = write(*given, **fields).body["contents"]
    return written


def config(**fields: Any) -> Json:
    written: Json = write(**fields).body.get("generationConfig", {})
    return written


def left_out(written: TranslatedRequest) -> list[tuple[str, bool]]:
    return [(each.param, each.essential) for each in written.unsupported]


def test_the_least_request() -> None:
    assert write(model=OLD).body == {"contents": [{"role": USER, "parts": [text("Hi")]}]}


def test_a_model_is_required() -> None:
    with pytest.raises(RequestError) as caught:
        write(model="")
    assert caught.value.param == "model"


@needs_genai
def test_the_scripted_answers_are_answers() -> None:
    check_answer(whole([thought("Hm."), signed(function_call("fc"), "c2ln")]))


class TestMessages:
    def test_instructions_join_the_system_instruction(self) -> None:
        written = write(
            message_of("system", "Be brief."),
            message_of("user", "Hi"),
            message_of("developer", "Be kind."),
            message_of("user", "And?"),
        )
        assert written.body["systemInstruction"] == {"parts": [text("Be brief.\n\nBe kind.")]}
        assert [content["role"] for content in written.body["contents"]] == [USER, USER]

    def test_instructions_alone_are_the_users(self) -> None:
        written = write(message_of("system", "Be brief."))
        assert written.body["contents"] == [{"role": USER, "parts": [text("Be brief.")]}]
        assert "systemInstruction" not in written.body

    def test_nothing_to_answer_is_unsupported(self) -> None:
        assert left_out(write(message_of("user", ""))) == [("messages", True)]

    def test_a_tool_loop(self) -> None:
        assert contents(
            message_of("user", "Where?"),
            message_of(
                "assistant",
                RefusalPart("Hm."),
                ToolCallPart("fc_1", "look", '{"city": "Paris"}'),
                ToolCallPart("fc_2", "hear", ""),
            ),
            message_of("tool", ToolOutputPart("fc_2", (TextPart("No."),), failed=True)),
            message_of("tool", ToolOutputPart("fc_1", (TextPart("Here."),))),
        )[1:] == [
            {
                "role": "model",
                "parts": [
                    text("Hm."),
                    signed(function_call("fc_1", city="Paris"), NO_SIGNATURE),
                    function_call("fc_2", "hear"),
                ],
            },
            {
                "role": USER,
                "parts": [
                    _result("fc_2", "hear", error="No."),
                    _result("fc_1", "look", output="Here."),
                ],
            },
        ]

    def test_an_id_that_was_made_is_not_sent_back(self) -> None:
        identity = f"{MADE_ID}00"
        _, call, result = contents(
            message_of("user", "Where?"),
            message_of("assistant", ToolCallPart(identity, "look", "{}")),
            message_of("tool", ToolOutputPart(identity, (TextPart("Here."),))),
        )
        sent = GeminiHistory({"contents": [call, result]}).body()["contents"]
        assert sent[0]["parts"] == [signed(function_call(), NO_SIGNATURE)]
        assert sent[1]["parts"] == [_result("", "look", output="Here.")]

    @pytest.mark.parametrize("identity", ["", "k"])
    def test_results_of_calls_with_one_id_are_theirs_in_order(self, identity: str) -> None:
        def turn(*names: str) -> list[Message]:
            calls = [ToolCallPart(identity, name, "{}") for name in names]
            outputs = [ToolOutputPart(identity, (TextPart(name),)) for name in names]
            return [message_of("assistant", *calls), message_of("tool", *outputs)]

        written = contents(message_of("user", "Where?"), *turn("f"), *turn("g", "h"), *turn("f"))
        results = [each["parts"] for each in written if "functionResponse" in each["parts"][0]]
        assert [part for parts in results for part in parts] == [
            _result(identity, name, output=name) for name in "fghf"
        ]

    def test_texts_of_a_result_stand_line_by_line(self) -> None:
        output = ToolOutputPart("fc_1", (TextPart("One."), TextPart("Two.")))
        call = message_of("assistant", ToolCallPart("fc_1", "look", "{}"))
        *_, last = contents(message_of("user", "Where?"), call, message_of("tool", output))
        assert last["parts"] == [_result("fc_1", "look", output="One.\nTwo.")]

    @pytest.mark.parametrize(
        ("arguments", "args"),
        [("", {}), (" ", {}), ('{"a": 1', {"arguments": '{"a": 1'}), ("[1]", {"arguments": "[1]"})],
    )
    def test_arguments_that_are_no_object_are_kept(self, arguments: str, args: Json) -> None:
        call = message_of("assistant", ToolCallPart("fc_1", "look", arguments))
        (part,) = contents(message_of("user", "Where?"), call)[1]["parts"]
        assert part["functionCall"]["args"] == args

    def test_a_custom_tools_input_is_an_argument(self) -> None:
        call = message_of("assistant", ToolCallPart("fc_1", "patch", "+ a", custom=True))
        (part,) = contents(message_of("user", "Where?"), call)[1]["parts"]
        assert part["functionCall"]["args"] == {"input": "+ a"}

    @pytest.mark.parametrize(
        ("part", "expected"),
        [
            (ImagePart("data:image/png;base64,iVBO"), ("image/png", "iVBO")),
            (ImagePart("data:image/png;charset=x;base64,iVBO"), ("image/png", "iVBO")),
            (
                FilePart(data="data:application/pdf;base64,JVBERi0x"),
                ("application/pdf", "JVBERi0x"),
            ),
            (FilePart(data="JVBERi0x"), ("application/pdf", "JVBERi0x")),
            (FilePart(data="SGk=", name="a.txt"), ("text/plain", "SGk=")),
            (AudioPart("UklG", "wav"), ("audio/wav", "UklG")),
        ],
    )
    def test_media_by_their_bytes(self, part: MessagePart, expected: tuple[str, str]) -> None:
        kind, data = expected
        medium = {"inlineData": {"mimeType": kind, "data": data}}
        assert contents(message_of("user", part)) == [{"role": USER, "parts": [medium]}]

    @pytest.mark.parametrize(
        ("part", "kind"),
        [
            (ImagePart("https://example.com/a.png?x=1"), "image/png"),
            (ImagePart("https://example.com/a"), "image/jpeg"),
            (FilePart(url="https://example.com/a.pdf"), "application/pdf"),
            (FilePart(url="https://example.com/a.pdf?x=1#page=2", name="A"), "application/pdf"),
            (FilePart(url="https://example.com/a.pdf", name="On Node.js"), "application/pdf"),
            (FilePart(url="https://example.com/a?x=1.txt", name="a.pdf"), "application/pdf"),
        ],
    )
    def test_media_by_their_address(self, part: ImagePart | FilePart, kind: str) -> None:
        medium = {"fileData": {"fileUri": part.url, "mimeType": kind}}
        assert contents(message_of("user", part)) == [{"role": USER, "parts": [medium]}]

    @pytest.mark.parametrize(
        "part",
        [
            ImagePart(file_id="file_1", param="p"),
            ImagePart("gs://bucket/a.png", param="p"),
            ImagePart("https://generativelanguage.googleapis.com/v1beta/files/a", param="p"),
            ImagePart("https://x@GenerativeLanguage.GoogleAPIs.com.:443/v1beta/files/a", param="p"),
            ImagePart("https://[x/a.png", param="p"),
            FilePart(data="AAAA", param="p"),
            AudioPart(id="a", param="p"),
            UnknownPart({"type": "video"}, "p"),
        ],
    )
    def test_what_gemini_has_no_form_for_is_unsupported(self, part: MessagePart) -> None:
        assert left_out(write(message_of("user", "Hi", part))) == [("p", True)]

    @pytest.mark.parametrize(("model", "inside"), [(FLASH, True), (BUDGET, False)])
    def test_images_in_results(self, model: str, *, inside: bool) -> None:
        output = ToolOutputPart(
            "fc_1", (TextPart("Here."), ImagePart("data:image/png;base64,iVBO"))
        )
        *_, content = contents(
            message_of("user", "Where?"),
            message_of("assistant", ToolCallPart("fc_1", "look", "{}")),
            message_of("tool", output),
            model=model,
        )
        image = {"inlineData": {"mimeType": "image/png", "data": "iVBO"}}
        result = _result("fc_1", "look", output="Here.")
        if inside:
            result["functionResponse"]["parts"] = [image]
        assert content["parts"] == ([result] if inside else [result, image])


class TestSignatures:
    STATE = ReasoningPart(state=write_state(1, "c2ln"))

    def test_a_signature_goes_to_the_call_that_it_came_with(self) -> None:
        calls = [ToolCallPart(f"fc_{n}", "look", "{}") for n in range(2)]
        answer = message_of("assistant", ReasoningPart("Hm."), self.STATE, "I look.", *calls)
        assert contents(message_of("user", "Hi"), answer, model=BUDGET)[1]["parts"] == [
            thought("Hm."),
            text("I look."),
            function_call("fc_0"),
            signed(function_call("fc_1"), "c2ln"),
        ]

    def test_another_apis_reasoning_is_left_out(self) -> None:
        foreign = ReasoningPart("Hm.", state="gAAAA", param="p")
        written = write(message_of("user", "Hi"), message_of("assistant", foreign, "Yes."))
        assert written.body["contents"][1]["parts"] == [text("Yes.")]
        assert left_out(written) == [("p", False)]

    @pytest.mark.parametrize(
        ("model", "marked"), [(FLASH, [False, True, True]), (BUDGET, [False, False, False])]
    )
    def test_each_unsigned_step_of_the_current_turn_is_marked(
        self, model: str, marked: list[bool]
    ) -> None:
        def step(number: int) -> list[Message]:
            call = ToolCallPart(f"fc_{number}", "look", "{}")
            output = ToolOutputPart(f"fc_{number}", (TextPart("Here."),))
            return [message_of("assistant", call), message_of("tool", output)]

        question = message_of("user", "Where?")
        written = contents(question, *step(0), question, *step(1), *step(2), model=model)
        parts = [each["parts"][0] for each in written if each["role"] == "model"]
        assert ["thoughtSignature" in part for part in parts] == marked


class TestThinking:
    @pytest.mark.parametrize(
        ("model", "effort", "expected"),
        [
            (FLASH, None, {"includeThoughts": True}),
            (FLASH, "minimal", {"includeThoughts": True, "thinkingLevel": "minimal"}),
            (FLASH, "medium", {"includeThoughts": True, "thinkingLevel": "medium"}),
            (FLASH, "max", {"includeThoughts": True, "thinkingLevel": "high"}),
            (FLASH, "new", {"includeThoughts": True}),
            (PRO, "minimal", {"includeThoughts": True, "thinkingLevel": "low"}),
            (PRO, "medium", {"includeThoughts": True, "thinkingLevel": "low"}),
            ("gemini-3.8-flash", "medium", {"includeThoughts": True, "thinkingLevel": "medium"}),
            ("gemini-4-carbon", "xhigh", {"includeThoughts": True, "thinkingLevel": "high"}),
            ("gemini-4-hydrogen", "minimal", {"includeThoughts": True, "thinkingLevel": "low"}),
            ("gemini-4-hydrogen", "xhigh", {"includeThoughts": True, "thinkingLevel": "xhigh"}),
            ("gemini-4-hydrogen", "max", {"includeThoughts": True, "thinkingLevel": "xhigh"}),
            (
                "google/gemini-flash-latest",
                "low",
                {"includeThoughts": True, "thinkingLevel": "low"},
            ),
            (BUDGET, "minimal", {"includeThoughts": True, "thinkingBudget": 1024}),
            (BUDGET, "medium", {"includeThoughts": True, "thinkingBudget": 8192}),
            (BUDGET, "xhigh", {"includeThoughts": True, "thinkingBudget": 24576}),
            (BUDGET, "none", {"thinkingBudget": 0}),
            (OLD, None, None),
            ("gemini-2.5-flash-image", None, None),
            ("gemma-3-27b-it", None, None),
            (TUNED, None, None),
            (TUNED, "new", None),
            (TUNED, "high", {"includeThoughts": True, "thinkingBudget": 24576}),
        ],
    )
    def test_effort(self, model: str, effort: str | None, expected: Json | None) -> None:
        assert config(model=model, effort=effort).get("thinkingConfig") == expected

    @pytest.mark.parametrize(
        ("model", "expected"),
        [
            (FLASH, {"includeThoughts": True, "thinkingLevel": "minimal"}),
            ("gemini-2.5-pro", {"includeThoughts": True, "thinkingBudget": 128}),
        ],
    )
    def test_what_cannot_be_switched_off_is_asked_for_the_least(
        self, model: str, expected: Json
    ) -> None:
        written = write(model=model, effort="none")
        assert written.body["generationConfig"]["thinkingConfig"] == expected
        assert left_out(written) == [("reasoning_effort", False)]

    @pytest.mark.parametrize(
        ("model", "budget", "expected"),
        [
            (BUDGET, 4000, {"thinkingBudget": 4000}),
            (BUDGET, 1, {"thinkingBudget": 1024}),
            (BUDGET, 100_000, {"thinkingBudget": 24576}),
            (FLASH, 4000, {"thinkingLevel": "low"}),
            (TUNED, 4000, {"thinkingBudget": 4000}),
        ],
    )
    def test_the_budget_is_the_clients_own_where_a_model_takes_one(
        self, model: str, budget: int, expected: Json
    ) -> None:
        written = config(model=model, effort="low", budget=budget)
        assert written["thinkingConfig"] == {"includeThoughts": True, **expected}

    @pytest.mark.parametrize(
        ("model", "expected"),
        [
            (BUDGET, {"thinkingBudget": 0}),
            (FLASH, {"includeThoughts": True, "thinkingLevel": "minimal"}),
            (OLD, None),
            (TUNED, None),
        ],
    )
    def test_a_client_that_declines_thinking_gets_the_least(
        self, model: str, expected: Json | None
    ) -> None:
        assert config(model=model, declines_reasoning=True).get("thinkingConfig") == expected

    @pytest.mark.parametrize(("model", "effort"), [(OLD, "high"), (TUNED, "none")])
    def test_an_effort_that_a_model_may_not_take_is_left_out(self, model: str, effort: str) -> None:
        assert left_out(write(model=model, effort=effort)) == [("reasoning_effort", False)]


class TestTools:
    def test_functions(self) -> None:
        written = write(tools=[LOOK, LISTEN])
        look = {"name": "look", "description": "Looks.", "parametersJsonSchema": SCHEMA}
        assert written.body["tools"] == [{"functionDeclarations": [look, {"name": "hear"}]}]
        assert "toolConfig" not in written.body
        assert written.tools.keys() == {"look", "hear"}

    @pytest.mark.parametrize(
        ("choice", "expected", "offered"),
        [
            (ToolChoice("none"), {"mode": "NONE"}, 2),
            (ToolChoice("auto"), {"mode": "AUTO"}, 2),
            (ToolChoice("auto", ("look",)), {"mode": "AUTO"}, 1),
            (ToolChoice("required"), {"mode": "ANY"}, 2),
            (
                ToolChoice("required", ("look",)),
                {"mode": "ANY", "allowedFunctionNames": ["look"]},
                2,
            ),
        ],
    )
    def test_choice(self, choice: ToolChoice, expected: Json, offered: int) -> None:
        written = write(tools=[LOOK, LISTEN], tool_choice=choice)
        assert written.body["toolConfig"] == {"functionCallingConfig": expected}
        assert len(written.body["tools"][0]["functionDeclarations"]) == offered

    def test_what_its_tools_lack_is_no_reason_to_refuse(self) -> None:
        strict = Tool("look", parameters=SCHEMA, strict=True, param="tools[0]")
        params = {"parallel_tool_calls": False}
        written = write(tools=[strict], params=params, param_names={name: name for name in params})
        assert left_out(written) == [("tools[0]", False), ("parallel_tool_calls", False)]

    def test_hosted_tools_are_unsupported(self) -> None:
        hosted = Tool("file_search", kind="hosted", param="tools[0]")
        assert left_out(write(tools=[hosted])) == [("tools[0]", True)]


class TestParams:
    def test_sampling_and_limits(self) -> None:
        params = {
            "max_tokens": 100,
            "temperature": 0.5,
            "top_p": 0.9,
            "top_k": 40,
            "seed": 7,
            "presence_penalty": 0.1,
            "frequency_penalty": 0.2,
            "stop": ["END"],
        }
        assert config(model=OLD, params=params) == {
            "maxOutputTokens": 100,
            "temperature": 0.5,
            "topP": 0.9,
            "topK": 40,
            "seed": 7,
            "presencePenalty": 0.1,
            "frequencyPenalty": 0.2,
            "stopSequences": ["END"],
        }

    @pytest.mark.parametrize(
        ("output_format", "expected"),
        [
            (OutputFormat(), {}),
            (OutputFormat(SCHEMA, "city", strict=True), {"responseJsonSchema": SCHEMA}),
        ],
    )
    def test_structured_output(self, output_format: OutputFormat, expected: Json) -> None:
        written = config(model=OLD, output_format=output_format)
        assert written == {"responseMimeType": "application/json", **expected}

    @pytest.mark.parametrize(
        ("name", "value", "essential"),
        [("n", 2, True), ("logprobs", True, True), ("user", "anna", False)],
    )
    def test_what_it_has_no_field_for_is_unsupported(
        self, name: str, value: Any, *, essential: bool
    ) -> None:
        written = write(params={name: value}, param_names={name: name})
        assert left_out(written) == [(name, essential)]

    def test_its_own_fields_pass_and_unknown_ones_are_left_out(self) -> None:
        cached = {"cachedContent": "cachedContents/1"}
        settings = [{"category": "C", "threshold": "OFF"}]
        extra = {"safetySettings": settings, "min_p": 0.1, **cached}
        written = write(extra=extra)
        assert written.body["safetySettings"] == extra["safetySettings"]
        assert left_out(written) == [("min_p", False), ("cachedContent", False)]

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ({"thinking_budget": 0}, {"thinkingBudget": 0}),
            (
                {"thinking_level": "low", "include_thoughts": False},
                {"thinkingLevel": "low", "includeThoughts": True},
            ),
        ],
    )
    @pytest.mark.parametrize("wrap", [lambda own: own, lambda own: {"extra_body": own}])
    def test_googles_own_words_for_thinking_are_understood(
        self, wrap: Any, given: Json, expected: Json
    ) -> None:
        written = write(extra=wrap({"google": {"thinking_config": given}}))
        thinking = written.body["generationConfig"]["thinkingConfig"]
        assert thinking == expected
        assert not written.unsupported

    @pytest.mark.parametrize(
        ("google", "effort"),
        [
            ({"thinking_config": {"thinking_budget": 1}}, "high"),
            ({"thinking_config": {"thinking_budget": 1}, "cached_content": "x"}, None),
            ({"thinking_config": {}}, None),
        ],
    )
    def test_what_else_is_said_there_is_left_out(self, google: Json, effort: str | None) -> None:
        written = write(extra={"google": google}, effort=effort)
        thinking = written.body["generationConfig"]["thinkingConfig"]
        assert "thinkingBudget" not in thinking
        assert left_out(written) == [("google", False)]


def _result(identity: str, name: str, **response: str) -> Json:
    named = {"id": identity} if identity else {}
    return {"functionResponse": {**named, "name": name, "response": response}}
