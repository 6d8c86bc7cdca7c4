"""Test writing requests in the format of the Interactions API."""

from __future__ import annotations

from typing import Any

import pytest

from abridge.apis.api import UpstreamOptions
from abridge.apis.gemini.reasoning import NO_SIGNATURE
from abridge.apis.interactions.api import INTERACTIONS
from abridge.apis.interactions.reasoning import write_state
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
    Role,
    TextPart,
    Tool,
    ToolCallPart,
    ToolChoice,
    ToolOutputPart,
    TranslatedRequest,
)
from abridge.errors import RequestError
from abridge.providers.catalog import PROFILES
from tests.apis.interactions.scripts import (
    SIGNATURE,
    events,
    function_call,
    image,
    output,
    text,
    thought,
    whole,
)
from tests.apis.interactions.spec import (
    GENAI,
    check_answer,
    check_events,
    check_request,
    needs_genai,
)

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
STATE = ReasoningPart("Hm.", state=write_state(0, SIGNATURE))
SUMMARIES = {"thinking_summaries": "auto"}
UNSIGNED = {"type": "thought", "signature": NO_SIGNATURE}


def message_of(role: Role, *parts: MessagePart | str) -> Message:
    return Message(role, [TextPart(part) if isinstance(part, str) else part for part in parts])


def write(*given: Message, **fields: Any) -> TranslatedRequest:
    """Write a request; check it with Google's own types if they are installed."""
    messages = list(given or [message_of("user", "Hi")])
    request = ModelRequest(**{"model": FLASH, "messages": messages, **fields})
    written = INTERACTIONS.write_request(request, UpstreamOptions(PROFILES["gemini-native"]))
    if GENAI:
        check_request(written.body)
    return written


def steps(*given: Message, **fields: Any) -> list[Json]:
    written: list[Json] = write(*given, **fields).body["input"]
    return written


def config(**fields: Any) -> Json:
    written: Json = write(**fields).body.get("generation_config", {})
    return written


def left_out(written: TranslatedRequest) -> list[tuple[str, bool]]:
    return [(each.param, each.essential) for each in written.unsupported]


def asked(*contents: Json | str) -> Json:
    return {**output(*contents), "type": "user_input"}


def result(identity: str, name: str, given: Any, **more: Any) -> Json:
    return {"type": "function_result", "call_id": identity, "name": name, "result": given, **more}


def test_the_least_request_has_google_keep_nothing() -> None:
    assert write(model=OLD).body == {"model": OLD, "input": [asked("Hi")], "store": False}


def test_a_model_is_named_as_google_names_it() -> None:
    assert write(model=f"models/{FLASH}", stream=True).body["model"] == FLASH
    with pytest.raises(RequestError) as caught:
        write(model="")
    assert caught.value.param == "model"


def test_a_stream_is_asked_for_in_the_body() -> None:
    assert write(stream=True).body["stream"] is True


@needs_genai
def test_the_scripted_answers_are_answers() -> None:
    said = [
        thought("Hm."),
        output("Yes.", image("image/png", "iVBO")),
        function_call("fc", city="Paris"),
        {"type": "google_search_call", "id": "g", "arguments": {"queries": ["a"]}},
    ]
    check_answer(whole(said))
    check_events(events(said[:3]))


class TestMessages:
    def test_instructions_join_the_system_instruction(self) -> None:
        written = write(
            message_of("system", "Be brief."),
            message_of("user", "Hi"),
            message_of("developer", "Be kind."),
            message_of("user", "And?"),
        )
        assert written.body["system_instruction"] == "Be brief.\n\nBe kind."
        assert written.body["input"] == [asked("Hi"), asked("And?")]

    def test_instructions_alone_are_the_users(self) -> None:
        written = write(message_of("system", "Be brief."))
        assert written.body["input"] == [asked("Be brief.")]
        assert "system_instruction" not in written.body

    def test_nothing_to_answer_is_unsupported(self) -> None:
        assert left_out(write(message_of("user", ""))) == [("messages", True)]

    def test_a_tool_loop(self) -> None:
        assert steps(
            message_of("user", "Where?"),
            message_of(
                "assistant",
                STATE,
                "Hm.",
                ToolCallPart("fc_1", "look", '{"city": "Paris"}'),
                ToolCallPart("fc_2", "hear", ""),
            ),
            message_of("tool", ToolOutputPart("fc_2", (TextPart("No."),), failed=True)),
            message_of("tool", ToolOutputPart("fc_1", (TextPart("Here."), TextPart("Now.")))),
        )[1:] == [
            thought("Hm."),
            output("Hm."),
            function_call("fc_1", city="Paris"),
            function_call("fc_2", "hear"),
            result("fc_2", "hear", "No.", is_error=True),
            result("fc_1", "look", "Here.\nNow."),
        ]

    @pytest.mark.parametrize(
        ("part", "expected"),
        [
            (ImagePart("data:image/png;base64,iVBO"), image("image/png", "iVBO")),
            (
                ImagePart("https://example.com/a.png"),
                {"type": "image", "mime_type": "image/png", "uri": "https://example.com/a.png"},
            ),
            (
                FilePart(data="JVBERi0x"),
                {"type": "document", "mime_type": "application/pdf", "data": "JVBERi0x"},
            ),
            (
                FilePart(url="https://example.com/a"),
                {"type": "document", "uri": "https://example.com/a"},
            ),
            (AudioPart("UklG", "wav"), {"type": "audio", "mime_type": "audio/wav", "data": "UklG"}),
        ],
    )
    def test_media(self, part: MessagePart, expected: Json) -> None:
        assert steps(message_of("user", "See:", part)) == [asked("See:", expected)]

    @pytest.mark.parametrize(
        "part",
        [
            ImagePart(file_id="file_1", param="p"),
            ImagePart("https://generativelanguage.googleapis.com/v1beta/files/a", param="p"),
            AudioPart(id="a", param="p"),
        ],
    )
    def test_media_that_nobody_could_get_are_unsupported(self, part: MessagePart) -> None:
        assert left_out(write(message_of("user", "Hi", part))) == [("p", True)]

    @pytest.mark.parametrize(("model", "inside"), [(FLASH, True), (BUDGET, False)])
    def test_images_in_results(self, model: str, *, inside: bool) -> None:
        picture = image("image/png", "iVBO")
        outputs = [
            ToolOutputPart("fc_1", (TextPart("Here."), ImagePart("data:image/png;base64,iVBO"))),
            ToolOutputPart("fc_2", (TextPart("There."),)),
        ]
        calls = [ToolCallPart(f"fc_{number}", "look", "{}") for number in (1, 2)]
        *_, first, second, last = steps(
            message_of("user", "Where?"),
            message_of("assistant", STATE, *calls),
            message_of("tool", *outputs),
            model=model,
        )
        if inside:
            assert second == result("fc_1", "look", [text("Here."), picture])
            return
        assert (first, second) == (
            result("fc_1", "look", "Here."),
            result("fc_2", "look", "There."),
        )
        assert last == asked(picture)


class TestSignatures:
    @pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "lost"])
    def test_each_thought_stands_before_what_it_led_to(self, *, is_kept: bool) -> None:
        """It does so too where the client has lost the order, as those of Chat Completions do."""
        states = [STATE, *(ReasoningPart(state=write_state(n, f"Ev8{n}")) for n in (1, 3, 4))]
        first, second = (ToolCallPart(f"fc_{n}", "look", "{}") for n in (1, 2))
        kept: list[MessagePart] = [STATE, TextPart("I look."), states[1], first, second]
        kept += states[2:]
        lost: list[MessagePart] = [*reversed(states[1:]), STATE, TextPart("I look."), first, second]
        answer = Message("assistant", [*(kept if is_kept else lost), TextPart("So.")])
        assert steps(message_of("user", "Hi"), answer)[1:] == [
            thought("Hm."),
            output("I look."),
            thought(signature="Ev81"),
            function_call("fc_1"),
            function_call("fc_2"),
            thought(signature="Ev83"),
            output("So."),
            thought(signature="Ev84"),
        ]

    def test_another_apis_reasoning_is_left_out(self) -> None:
        foreign = ReasoningPart("Hm.", state="gemini1.0.c2ln", param="p")
        written = write(message_of("user", "Hi"), message_of("assistant", foreign, "Yes."))
        assert written.body["input"][1:] == [output("Yes.")]
        assert left_out(written) == [("p", False)]

    @pytest.mark.parametrize(
        ("model", "marked"), [(FLASH, [False, True, True]), (BUDGET, [False, False, False])]
    )
    def test_each_unsigned_step_of_the_current_turn_is_marked(
        self, model: str, marked: list[bool]
    ) -> None:
        def step(number: int) -> list[Message]:
            calls = [ToolCallPart(f"fc_{number}{each}", "look", "{}") for each in "ab"]
            outputs = [ToolOutputPart(each.id, (TextPart("Here."),)) for each in calls]
            return [message_of("assistant", "So.", *calls), message_of("tool", *outputs)]

        question = message_of("user", "Where?")
        written = steps(question, *step(0), question, *step(1), *step(2), model=model)
        before = [
            written[n - 1] for n, each in enumerate(written) if each.get("id", "")[-1:] == "a"
        ]
        assert before == [UNSIGNED if is_marked else output("So.") for is_marked in marked]
        assert written.count(UNSIGNED) == sum(marked)


class TestThinking:
    @pytest.mark.parametrize(
        ("model", "effort", "expected"),
        [
            (FLASH, None, {}),
            (FLASH, "minimal", {"thinking_level": "minimal"}),
            (FLASH, "max", {"thinking_level": "high"}),
            (FLASH, "new", {}),
            (PRO, "medium", {"thinking_level": "low"}),
            ("gemini-4-argon", "medium", {"thinking_level": "medium"}),
            ("gemini-4-argon", "xhigh", {"thinking_level": "high"}),
            ("gemini-4-hydrogen", "xhigh", {"thinking_level": "xhigh"}),
            (BUDGET, "minimal", {"thinking_level": "low"}),
        ],
    )
    def test_effort(self, model: str, effort: str | None, expected: Json) -> None:
        assert config(model=model, effort=effort) == {**SUMMARIES, **expected}

    @pytest.mark.parametrize(
        ("model", "effort"), [(OLD, None), ("gemini-2.5-flash-image", None), (TUNED, "new")]
    )
    def test_what_may_not_think_is_not_asked_to(self, model: str, effort: str | None) -> None:
        assert config(model=model, effort=effort) == {}

    def test_whatever_is_asked_to_think_is_asked_for_summaries(self) -> None:
        assert config(model=TUNED, effort="high") == {"thinking_level": "high", **SUMMARIES}

    @pytest.mark.parametrize("asked", [{"effort": "none"}, {"declines_reasoning": True}])
    def test_what_cannot_be_switched_off_is_asked_for_the_least(self, asked: Json) -> None:
        written = write(model=BUDGET, **asked)
        assert written.body["generation_config"] == {"thinking_level": "low", **SUMMARIES}
        assert left_out(written) == [("reasoning_effort", False)]

    @pytest.mark.parametrize(("model", "effort"), [(OLD, "high"), (TUNED, "none")])
    def test_an_effort_that_a_model_may_not_take_is_left_out(self, model: str, effort: str) -> None:
        written = write(model=model, effort=effort)
        assert "generation_config" not in written.body
        assert left_out(written) == [("reasoning_effort", False)]

    def test_googles_own_word_for_it_is_understood(self) -> None:
        given = {"google": {"thinking_config": {"thinking_level": "low"}}}
        written = write(extra={"extra_body": given})
        assert written.body["generation_config"] == {"thinking_level": "low", **SUMMARIES}
        assert not written.unsupported

    def test_a_budget_in_googles_words_is_left_out(self) -> None:
        given = {"google": {"thinking_config": {"thinking_budget": 8000}}}
        written = write(extra=given)
        assert written.body["generation_config"] == SUMMARIES
        assert left_out(written) == [("google", False)]


class TestTools:
    def test_functions(self) -> None:
        written = write(tools=[LOOK, LISTEN])
        look = {"type": "function", "name": "look", "description": "Looks.", "parameters": SCHEMA}
        assert written.body["tools"] == [look, {"type": "function", "name": "hear"}]
        assert "tool_choice" not in written.body["generation_config"]
        assert written.tools.keys() == {"look", "hear"}

    def test_empty_lists_of_required_properties_are_left_out_of_schemas(self) -> None:
        values = {"enum": [{"required": []}], "default": {"required": []}}
        inner = {"type": "object", "required": [], **values}
        given = {
            "type": "object",
            "properties": {"required": {"type": "array"}, "a": inner},
            "anyOf": [{"required": []}, SCHEMA],
            "required": [],
        }
        (written,) = write(tools=[Tool("look", parameters=given)]).body["tools"]
        assert written["parameters"] == {
            "type": "object",
            "properties": {"required": {"type": "array"}, "a": {"type": "object", **values}},
            "anyOf": [{}, SCHEMA],
        }

    @pytest.mark.parametrize(
        ("choice", "expected", "offered"),
        [
            (ToolChoice("none"), "none", 2),
            (ToolChoice("auto"), "auto", 2),
            (ToolChoice("auto", ("look",)), "auto", 1),
            (ToolChoice("required"), "any", 2),
            (
                ToolChoice("required", ("look",)),
                {"allowed_tools": {"mode": "any", "tools": ["look"]}},
                2,
            ),
        ],
    )
    def test_choice(self, choice: ToolChoice, expected: Any, offered: int) -> None:
        written = write(tools=[LOOK, LISTEN], tool_choice=choice)
        assert written.body["generation_config"]["tool_choice"] == expected
        assert len(written.body["tools"]) == offered

    def test_without_tools_there_is_no_choice(self) -> None:
        assert "tool_choice" not in config(tool_choice=ToolChoice("auto"))


class TestParams:
    def test_sampling_and_limits(self) -> None:
        given = {"max_tokens": 100, "temperature": 0.5, "top_p": 0.9, "seed": 7, "stop": ["END"]}
        assert config(model=OLD, params=given) == {
            "max_output_tokens": 100,
            "temperature": 0.5,
            "top_p": 0.9,
            "seed": 7,
            "stop_sequences": ["END"],
        }

    @pytest.mark.parametrize(
        ("output_format", "expected"),
        [(OutputFormat(), {}), (OutputFormat(SCHEMA, "city", strict=True), {"schema": SCHEMA})],
    )
    def test_structured_output(self, output_format: OutputFormat, expected: Json) -> None:
        written = write(output_format=output_format).body["response_format"]
        assert written == {"type": "text", "mime_type": "application/json", **expected}

    @pytest.mark.parametrize(
        ("name", "value", "essential"),
        [("n", 2, True), ("top_k", 40, False), ("presence_penalty", 0.1, False)],
    )
    def test_what_it_has_no_field_for_is_unsupported(
        self, name: str, value: Any, *, essential: bool
    ) -> None:
        written = write(params={name: value}, param_names={name: name})
        assert left_out(written) == [(name, essential)]

    def test_its_own_fields_pass_and_unknown_ones_are_left_out(self) -> None:
        own = {
            "safety_settings": [{"type": "harassment", "threshold": "block_none"}],
            "labels": {"team": "a"},
        }
        foreign = {"min_p": 0.1, "cached_content": "cachedContents/1", "background": True}
        written = write(extra={**own, **foreign})
        assert {key: written.body[key] for key in own} == own
        assert left_out(written) == [(name, False) for name in foreign]
        assert written.body.keys().isdisjoint(foreign)

    def test_safety_settings_in_generate_contents_words_are_understood(self) -> None:
        setting = {"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}
        written = write(extra={"safetySettings": [setting]})
        expected = [{"type": "harassment", "threshold": "block_none"}]
        assert written.body["safety_settings"] == expected
        assert not written.unsupported
