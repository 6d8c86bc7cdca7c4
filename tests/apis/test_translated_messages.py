"""A request's messages, translated from one API to the other."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from abridge.apis.api import UpstreamOptions
from abridge.apis.messages.api import MESSAGES
from abridge.core.model_request import ImagePart, TextPart
from abridge.providers.catalog import PROFILES
from tests.apis.translation import (
    HELLO,
    Json,
    chat_request,
    refused_param,
    responses_request,
    to_chat,
    to_responses,
    unfit,
)

PIXEL = "data:image/png;base64,AA=="
PDF = "data:application/pdf;base64,AA=="


def reasoning(text: str = "", **more: Any) -> Json:
    content = {"content": [{"type": "reasoning_text", "text": text}]} if text else {}
    return {"type": "reasoning", "id": "rs_1", "summary": [], **content, **more}


def call(id_: str) -> Json:
    return {"type": "function_call", "call_id": id_, "name": "f", "arguments": "{}"}


def output(id_: str, value: Any = "ok") -> Json:
    return {"type": "function_call_output", "call_id": id_, "output": value}


def assistant(text: str) -> Json:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": content}


def chat_call(id_: str) -> Json:
    return {"id": id_, "type": "function", "function": {"name": "f", "arguments": "{}"}}


def messages(*items: Json, profile: str = "deepseek", **fields: Any) -> list[Json]:
    """Return what a chat upstream gets of a Responses client's input."""
    written: list[Json] = to_chat(responses_request(*items, **fields), profile).body["messages"]
    return written


def items(*given_messages: Json, profile: str = "auto") -> list[Json]:
    """Return what a Responses upstream gets of a chat client's messages."""
    written: list[Json] = to_responses(chat_request(*given_messages), profile).body["input"]
    return written


class TestReasoningTowardChat:
    def test_is_in_the_field_that_the_profile_reads(self) -> None:
        turn = (reasoning("Hm."), assistant("Hi"), HELLO)
        assert messages(*turn)[0]["reasoning_content"] == "Hm."
        assert messages(*turn, profile="vllm")[0]["reasoning"] == "Hm."
        assert (
            messages(*turn, profile="huggingface")[0]["content"] == "<think>\nHm.\n</think>\n\nHi"
        )
        chunks = messages(*turn, profile="mistral")[0]["content"]
        assert [chunk["type"] for chunk in chunks] == ["thinking", "text"]
        details = messages(*turn, profile="openrouter")[0]["reasoning_details"]
        assert details == [{"type": "reasoning.text", "text": "Hm.", "index": 0}]

    @pytest.mark.parametrize("profile", ["openai", "gemini", "xai"])
    def test_is_not_sent_to_upstreams_that_read_none(self, profile: str) -> None:
        written = to_chat(responses_request(reasoning("Hm."), assistant("Hi"), HELLO), profile)
        assert written.body["messages"][0] == {"role": "assistant", "content": "Hi"}
        assert unfit(written) == {"input[0]": False}

    def test_absent_stays_absent(self) -> None:
        assert messages(assistant("Hi"), HELLO)[0] == {"role": "assistant", "content": "Hi"}

    def test_is_present_even_when_empty(self) -> None:
        assert messages(call("c"), output("c"))[0]["reasoning_content"] == ""
        assert "reasoning" not in messages(call("c"), output("c"), profile="vllm")[0]

    def test_is_attached_to_the_next_message(self) -> None:
        assert messages(HELLO, reasoning("Hm."), assistant("Hi")) == [
            HELLO,
            {"role": "assistant", "content": "Hi", "reasoning_content": "Hm."},
        ]

    def test_is_attached_to_the_next_call(self) -> None:
        assert messages(HELLO, reasoning("Hm."), call("c"), output("c")) == [
            HELLO,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [chat_call("c")],
                "reasoning_content": "Hm.",
            },
            {"role": "tool", "tool_call_id": "c", "content": "ok"},
        ]

    @pytest.mark.parametrize("role", ["user", "system", "developer"])
    def test_a_message_ends_the_wait(self, role: str) -> None:
        between = {"role": role, "content": "Now."}
        written_messages = messages(HELLO, reasoning("Hm."), between, assistant("Hi"))
        assert not any("Hm." in str(message) for message in written_messages)

    def test_an_output_ends_the_wait(self) -> None:
        written_messages = messages(call("c"), reasoning("Hm."), output("c"), assistant("Hi"))
        assert not any("Hm." in str(message) for message in written_messages)

    def test_a_call_s_turn_keeps_its_reasoning(self) -> None:
        written_messages = messages(reasoning("Hm."), call("c"), output("c"), assistant("Hi"))
        assert [message.get("reasoning_content") for message in written_messages] == [
            "Hm.",
            None,
            None,
        ]

    def test_thinking_on_other_turns_is_ignored(self) -> None:
        block = {"type": "thinking", "thinking": "Hm."}
        request_fields = {"role": "user", "content": [block, {"type": "text", "text": "Hello"}]}
        written_messages = items(
            {**request_fields, "thinking_blocks": [block], "reasoning_content": "Hm."}
        )
        assert written_messages == [{"type": "message", **HELLO}]

    def test_parallel_calls_share_it(self) -> None:
        written_messages = messages(
            reasoning("Hm."), call("a"), call("b"), output("a"), output("b")
        )
        assert [message["role"] for message in written_messages] == ["assistant", "tool", "tool"]
        assert [called["id"] for called in written_messages[0]["tool_calls"]] == ["a", "b"]
        assert written_messages[0]["reasoning_content"] == "Hm."

    def test_trailing_reasoning_is_dropped(self) -> None:
        assert messages(HELLO, reasoning("Hm.")) == [HELLO]

    def test_consecutive_reasoning_accumulates(self) -> None:
        written_messages = messages(reasoning("One."), reasoning("Two."), assistant("Hi"), HELLO)
        assert written_messages[0]["reasoning_content"] == "One.\n\nTwo."

    @pytest.mark.parametrize("text", ["<think>Hm.</think>Hi", "<think>\nHm.\n</think>\n\nHi"])
    def test_what_the_text_repeats_in_tags_is_said_once(self, text: str) -> None:
        turn = (reasoning("Hm."), assistant(text), HELLO)
        for profile in ("auto", "deepseek", "huggingface", "mistral", "openrouter", "openai"):
            assert messages(*turn, profile=profile) == messages(
                reasoning("Hm."), assistant("Hi"), HELLO, profile=profile
            )

    def test_what_the_text_repeats_in_tags_is_no_answer_toward_messages(self) -> None:
        asked = responses_request(reasoning("Hm."), assistant("<think>Hm.</think>Hi"), HELLO)
        written = MESSAGES.upstream.write_request(asked, UpstreamOptions(PROFILES["auto"]))
        assert written.body["messages"][0]["content"] == [{"type": "text", "text": "Hi"}]

    def test_several_stretches_that_one_block_repeats_are_said_once(self) -> None:
        turn = (reasoning("One."), reasoning("Two."), assistant("<think>One.\n\nTwo.</think>Hi"))
        written = messages(*turn, HELLO)[0]
        assert (written["reasoning_content"], written["content"]) == ("One.\n\nTwo.", "Hi")

    @pytest.mark.parametrize(
        "turn",
        [
            (reasoning("Hm."), assistant("<think>Else.</think>Hi")),
            (reasoning("Hm."), assistant("Say <think>Hm.</think>Hi")),
            (reasoning("Hm."), call("c"), output("c"), assistant("<think>Hm.</think>Hi")),
            (reasoning("Hm."), assistant("So."), assistant("<think>Hm.</think>Hi")),
            (assistant("<think>Hm.</think>Hi"),),
        ],
    )
    def test_tags_that_repeat_no_reasoning_before_them_are_the_answer_s(
        self, turn: tuple[Json, ...]
    ) -> None:
        written = messages(*turn, HELLO)
        assert turn[-1]["content"][0]["text"] in str(written[-2]["content"])

    def test_reasoning_may_be_all_there_is(self) -> None:
        assert messages(reasoning("Hm.")) == [{"role": "user", "content": ""}]

    def test_a_summary_is_never_sent_as_reasoning(self) -> None:
        summary = [{"type": "summary_text", "text": "I thought."}]
        item = reasoning(summary=summary, encrypted_content="gAAA")
        for profile in ("auto", "litellm", "openrouter", "deepseek", "mistral", "huggingface"):
            assert "I thought." not in str(messages(item, assistant("Hi"), HELLO, profile=profile))

    def test_opaque_state_is_dropped_quietly(self) -> None:
        item = reasoning("Hm.", encrypted_content="gAAA")
        written = to_chat(responses_request(item, assistant("Hi"), HELLO), "vllm")
        assert unfit(written) == {"input[0]": False}
        assert "gAAA" not in str(written.body)

    def test_opaque_state_is_sent_where_the_profile_has_a_field(self) -> None:
        turn = (
            reasoning("Signed.", encrypted_content="sig1.abc"),
            reasoning(encrypted_content="opaque"),
            reasoning("Open."),
            assistant("Hi"),
            HELLO,
        )
        litellm = messages(*turn, profile="litellm")[0]
        assert litellm["thinking_blocks"] == [
            {"type": "thinking", "thinking": "Signed.", "signature": "abc", "index": 0},
            {"type": "redacted_thinking", "data": "opaque", "index": 1},
        ]
        assert litellm["reasoning_content"] == "Open."
        assert messages(*turn, profile="openrouter")[0]["reasoning_details"] == [
            {"type": "reasoning.text", "text": "Signed.", "signature": "abc", "index": 0},
            {"type": "reasoning.encrypted", "data": "opaque", "index": 1},
            {"type": "reasoning.text", "text": "Open.", "index": 2},
        ]


class TestReasoningTowardResponses:
    def blocks(self, *blocks: Any, **message: Any) -> list[Json]:
        answer = {"role": "assistant", "content": "Hi", "thinking_blocks": list(blocks), **message}
        return items(HELLO, answer, HELLO)[1:-1]

    def test_thinking_becomes_a_summary(self) -> None:
        block = {"type": "thinking", "thinking": "All of it."}
        assert self.blocks(block) == [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "All of it."}]},
            {"type": "message", "role": "assistant", "content": "Hi"},
        ]
        signed = {**block, "signature": "abc"}
        assert self.blocks(signed) == self.blocks(block)

    def test_redacted_thinking_keeps_its_data(self) -> None:
        data = "gAAAA+/=\u00e9 \\n"
        assert self.blocks({"type": "redacted_thinking", "data": data})[0] == {
            "type": "reasoning",
            "summary": [],
            "encrypted_content": data,
        }

    @pytest.mark.parametrize(
        "blocks",
        [None, [], [{"type": "redacted_thinking"}], [{"type": "redacted_thinking", "data": None}]],
    )
    def test_empty_blocks_become_nothing(self, blocks: Any) -> None:
        answer = {"role": "assistant", "content": "Hi", "thinking_blocks": blocks}
        written = to_responses(chat_request(HELLO, answer, HELLO))
        assert [item["type"] for item in written.body["input"]] == ["message"] * 3
        assert written.unsupported == []

    def test_unknown_blocks_are_skipped_and_counted(self) -> None:
        blocks = [
            {"type": "thinking", "thinking": "One."},
            {"type": "pondering", "text": "?"},
            "no block",
            {"type": "redacted_thinking", "data": "x"},
            {"type": "thinking", "thinking": "Two."},
        ]
        answer = {"role": "assistant", "content": "Hi", "thinking_blocks": blocks}
        written = to_responses(chat_request(HELLO, answer, HELLO))
        assert unfit(written) == {
            "messages[1].thinking_blocks[1]": False,
            "messages[1].thinking_blocks[2]": False,
        }
        made = [item for item in written.body["input"] if item["type"] == "reasoning"]
        assert [(item["summary"] or [{}])[0].get("text") for item in made] == ["One.", None, "Two."]
        assert [item.get("encrypted_content") for item in made] == [None, "x", None]

    def test_reasoning_then_message_then_call(self) -> None:
        block = {"type": "thinking", "thinking": "Hm."}
        made = self.blocks(block, tool_calls=[chat_call("c")])
        assert [item["type"] for item in made] == ["reasoning", "message", "function_call"]

    def test_empty_thinking_is_dropped(self) -> None:
        assert len(self.blocks({"type": "thinking", "thinking": " \n"})) == 1
        assert len(self.blocks({"type": "thinking", "thinking": "", "signature": "abc"})) == 1

    def test_several_accumulate(self) -> None:
        blocks = [{"type": "thinking", "thinking": text} for text in ("One.", "Two.")]
        made = self.blocks(*blocks)
        assert [item["type"] for item in made] == ["reasoning", "reasoning", "message"]

    def test_reasoning_before_a_call_alone(self) -> None:
        block = {"type": "thinking", "thinking": "Hm."}
        made = self.blocks(block, content=None, tool_calls=[chat_call("c")])
        assert [item["type"] for item in made] == ["reasoning", "function_call"]

    @pytest.mark.parametrize("field", ["thinking_blocks", "reasoning_content"])
    def test_a_signature_that_comes_alone_signs_what_is_before_it(self, field: str) -> None:
        plain = field == "reasoning_content"
        blocks = [] if plain else [{"type": "thinking", "thinking": "Hm."}]
        signing = {"type": "thinking", "thinking": "", "signature": "abc"}
        fields = {"reasoning_content": "Hm."} if plain else {}
        question = chat_request(
            {"role": "assistant", **fields, "thinking_blocks": [*blocks, signing]}
        )
        (reasoning_text,) = question.messages[0].parts
        assert (reasoning_text.text, reasoning_text.state, reasoning_text.is_signature) == (
            "Hm.",
            "abc",
            True,
        )  # type: ignore[union-attr]

    @pytest.mark.parametrize(
        "message",
        [
            {"content": "Hi", "reasoning_content": "Hm."},
            {"content": "Hi", "reasoning": "Hm."},
            {"content": "<think>\nHm.</think>\n\nHi"},
            {"content": "Hi", "reasoning_details": [{"type": "reasoning.text", "text": "Hm."}]},
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
                    {"type": "text", "text": "Hi"},
                ]
            },
        ],
    )
    def test_reasoning_in_any_field_is_read_once(self, message: Json) -> None:
        assert items(HELLO, {"role": "assistant", **message}, HELLO)[1:-1] == [
            {
                "type": "reasoning",
                "summary": [],
                "content": [{"type": "reasoning_text", "text": "Hm."}],
            },
            {"type": "message", "role": "assistant", "content": "Hi"},
        ]

    def test_a_quoted_tag_is_the_answer_s(self) -> None:
        written_messages = items({"role": "assistant", "content": "Say <think>x</think>."}, HELLO)
        assert written_messages[0]["content"] == "Say <think>x</think>."

    def test_openai_takes_no_raw_reasoning(self) -> None:
        answer = {"role": "assistant", "content": "Hi", "reasoning_content": "Hm."}
        written = to_responses(chat_request(answer, HELLO), "openai")
        assert [item["type"] for item in written.body["input"]] == ["message", "message"]
        assert unfit(written) == {"messages[0]": False}

    def test_ollama_reads_it_where_it_writes_it(self) -> None:
        answer = {"role": "assistant", "content": "Hi", "reasoning_content": "Hm."}
        (item, *_) = items(answer, HELLO, profile="ollama")
        assert item["encrypted_content"] == "Hm."

    def test_details_and_summaries_of_openrouter(self) -> None:
        details = [
            {"type": "reasoning.summary", "summary": "In short."},
            {"type": "reasoning.encrypted", "data": "gAAA"},
            {"type": "reasoning.server_tool_call"},
        ]
        answer = {"role": "assistant", "content": "Hi", "reasoning_details": details}
        written = to_responses(chat_request(answer, HELLO))
        made = written.body["input"]
        assert unfit(written) == {"messages[0].reasoning_details[2]": False}
        assert made[0]["summary"] == [{"type": "summary_text", "text": "In short."}]
        assert made[1]["encrypted_content"] == "gAAA"

    def test_a_text_beside_blocks_that_hold_it_is_sent_once(self) -> None:
        block = {"type": "thinking", "thinking": "Hm."}
        made = self.blocks(block, reasoning_content="Hm.")
        assert [item["type"] for item in made] == ["reasoning", "message"]

    def test_reasoning_that_nothing_follows_is_dropped(self) -> None:
        answer = {"role": "assistant", "content": None, "reasoning_content": "Hm."}
        assert [item["type"] for item in items(HELLO, answer, HELLO)] == ["message", "message"]

    def test_encrypted_content_goes_back_as_it_came(self) -> None:
        block = {"type": "redacted_thinking", "data": "gAAA"}
        answer = {"role": "assistant", "content": "Hi", "thinking_blocks": [block]}
        written = to_responses(chat_request(HELLO, answer, HELLO))
        assert written.body["input"][1]["encrypted_content"] == "gAAA"
        assert (written.body["store"], written.body["include"]) == (
            False,
            ["reasoning.encrypted_content"],
        )


class TestInstructions:
    def test_are_one_system_message_for_a_template(self) -> None:
        developer = {"role": "developer", "content": "Be kind."}
        written_messages = messages(developer, HELLO, developer, instructions="Be brief.")
        assert written_messages == [
            {"role": "system", "content": "Be brief.\n\nBe kind."},
            HELLO,
            {"role": "user", "content": "<system-reminder>\nBe kind.\n</system-reminder>"},
        ]

    def test_are_what_they_were_for_openai(self) -> None:
        developer = {"role": "developer", "content": "Be kind."}
        written_messages = messages(developer, HELLO, instructions="Be brief.", profile="openai")
        assert written_messages == [{"role": "system", "content": "Be brief."}, developer, HELLO]

    def test_of_a_chat_client_keep_their_place(self) -> None:
        text_part = [
            {"role": "system", "content": "A"},
            {"role": "developer", "content": "B"},
            HELLO,
        ]
        assert [(item["role"], item["content"]) for item in items(*text_part)] == [
            ("system", "A"),
            ("developer", "B"),
            ("user", "Hello"),
        ]

    def test_input_may_be_a_string(self) -> None:
        written = to_chat(responses_request(input="Hello"))
        assert written.body["messages"] == [HELLO]


class TestContent:
    CHAT: ClassVar[list[Json]] = [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}},
        {"type": "file", "file": {"file_id": "file_1"}},
    ]
    RESPONSES: ClassVar[list[Json]] = [
        {"type": "input_text", "text": "Look:"},
        {"type": "input_image", "image_url": PIXEL, "detail": "low"},
        {"type": "input_file", "filename": "a.pdf", "file_data": PDF},
        {"type": "input_file", "file_id": "file_1"},
    ]

    def test_images_and_files_have_their_places_on_both(self) -> None:
        assert items({"role": "user", "content": self.CHAT})[0]["content"] == self.RESPONSES
        assert messages({"role": "user", "content": self.RESPONSES})[0]["content"] == self.CHAT

    @pytest.mark.parametrize(
        "part",
        [
            {"type": "input_image", "file_id": "file_1", "detail": "auto"},
            {"type": "input_file", "file_url": "https://example.com/a.pdf"},
            {"type": "input_video", "video_url": "https://example.com/a.mp4"},
        ],
    )
    def test_what_chat_has_no_place_for(self, part: Json) -> None:
        content = [{"type": "input_text", "text": "Look:"}, part]
        written = to_chat(responses_request({"role": "user", "content": content}))
        assert unfit(written) == {"input[0].content[1]": True}

    @pytest.mark.parametrize(
        "part",
        [
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
            {"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}},
        ],
    )
    def test_what_responses_has_no_place_for(self, part: Json) -> None:
        content = [{"type": "text", "text": "Listen:"}, part]
        written = to_responses(chat_request({"role": "user", "content": content}))
        assert unfit(written) == {"messages[0].content[1]": True}

    def test_audio_that_a_server_s_responses_take_is_known_to_chat(self) -> None:
        part = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}
        assert messages({"role": "user", "content": [part]})[0]["content"] == [part]

    def test_the_models_audio_is_passed_on(self) -> None:
        question = chat_request(HELLO, {"role": "assistant", "audio": {"id": "audio_1"}}, HELLO)
        assert to_chat(question).body["messages"][1]["audio"] == {"id": "audio_1"}

    def test_the_models_audio_is_refused(self) -> None:
        answer = {"role": "assistant", "audio": {"id": "audio_1"}}
        written = to_responses(chat_request(HELLO, answer, HELLO))
        assert unfit(written) == {"messages[1].audio": True}

    def test_an_original_image_is_looked_at_closely(self) -> None:
        image = {"type": "input_image", "image_url": PIXEL, "detail": "original"}
        (written_messages,) = messages({"role": "user", "content": [image]})[0]["content"]
        assert written_messages["image_url"]["detail"] == "high"

    def test_an_image_s_url_may_stand_alone(self) -> None:
        image = {"type": "image_url", "image_url": PIXEL}
        (written_messages,) = items({"role": "user", "content": [image]})[0]["content"]
        assert written_messages == {"type": "input_image", "image_url": PIXEL, "detail": "auto"}

    def test_refusals(self) -> None:
        refused = {"type": "refusal", "refusal": "No."}
        answer = {"type": "message", "role": "assistant", "content": [refused]}
        written_messages = messages(answer, HELLO, profile="openai")[0]
        assert written_messages == {"role": "assistant", "content": None, "refusal": "No."}
        assert messages(answer, HELLO)[0] == {"role": "assistant", "content": "No."}
        assert items(written_messages, HELLO)[0]["content"] == [refused]
        assert items({"role": "assistant", "content": [refused]})[0]["content"] == [refused]

    def test_a_message_s_texts_are_one_and_two_messages_are_two(self) -> None:
        parts = [{"type": "output_text", "text": text, "annotations": []} for text in "ab"]
        first = {"type": "message", "role": "assistant", "content": parts}
        assert messages(first, assistant("c"), HELLO)[0]["content"] == "ab\n\nc"
        chunks = [{"type": "text", "text": text} for text in "ab"]
        assert items({"role": "assistant", "content": chunks})[0]["content"] == "ab"

    def test_a_speaker_s_name_begins_the_text_but_the_model_s_own_is_dropped(self) -> None:
        written = to_responses(
            chat_request(
                {**HELLO, "name": "Ada"}, {"role": "assistant", "content": "b", "name": "c"}
            )
        )
        assert [item["content"] for item in written.body["input"]] == ["Ada: Hello", "b"]
        assert unfit(written) == {"messages[1].name": False}

    def test_a_speaker_without_a_text_is_named_before_the_image(self) -> None:
        image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
        content = items({"role": "user", "name": "Ada", "content": [image]})[0]["content"]
        assert [part.get("text") for part in content] == ["Ada: ", None]

    def test_an_empty_message_stays_one(self) -> None:
        assert items({"role": "user", "content": ""})[0]["content"] == ""

    @pytest.mark.parametrize(
        ("message", "param"),
        [
            ({"role": "function", "name": "f", "content": "1"}, "messages[1]"),
            (
                {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
                "messages[1].function_call",
            ),
        ],
    )
    def test_legacy_functions_are_refused(self, message: Json, param: str) -> None:
        assert unfit(to_responses(chat_request(HELLO, message, HELLO))) == {param: True}


class TestOutputs:
    def test_are_results_of_their_calls(self) -> None:
        turn = (HELLO, call("a"), call("b"), output("b", "2"), output("a", "1"))
        written_messages = messages(*turn, profile="vllm")
        assert [(result["tool_call_id"], result["content"]) for result in written_messages[2:]] == [
            ("b", "2"),
            ("a", "1"),
        ]
        assert items(*written_messages) == [{"type": "message", **HELLO}, *turn[1:]]

    def test_follow_their_calls_whatever_came_between(self) -> None:
        written_messages = messages(
            call("a"), call("b"), output("a"), HELLO, output("b"), assistant("Hi"), HELLO
        )
        assert [message["role"] for message in written_messages] == [
            *("assistant", "tool", "tool", "user", "assistant", "user")
        ]

    def test_of_calls_that_are_not_there_stay_where_they_are(self) -> None:
        written_messages = messages(HELLO, output("a"), assistant("Hi"), HELLO)
        assert [message["role"] for message in written_messages] == [
            "user",
            "tool",
            "assistant",
            "user",
        ]

    def test_images_of_outputs_follow_the_last_output(self) -> None:
        output_parts = [
            {"type": "input_text", "text": "A pixel."},
            {"type": "input_image", "image_url": PIXEL},
        ]
        written_messages = messages(
            call("a"), call("b"), output("a", output_parts), output("b"), HELLO
        )
        assert [message["role"] for message in written_messages] == [
            "assistant",
            "tool",
            "tool",
            "user",
            "user",
        ]
        assert written_messages[1]["content"] == "A pixel."
        assert written_messages[3]["content"][1] == {
            "type": "image_url",
            "image_url": {"url": PIXEL},
        }
        assert written_messages[4] == HELLO

    def test_an_image_alone_is_pointed_to(self) -> None:
        output_parts = [{"type": "input_image", "image_url": PIXEL}]
        written_messages = messages(call("a"), output("a", output_parts))
        assert written_messages[1]["content"] == "See the next message."
        assert written_messages[2]["content"][1]["type"] == "image_url"

    def test_an_output_that_no_tool_can_give_is_refused(self) -> None:
        content = [{"type": "input_video"}]
        written = to_chat(responses_request(call("a"), output("a", content)))
        assert unfit(written) == {"input[1].output": True}
        part = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}
        message = {"role": "tool", "tool_call_id": "c", "content": [part]}
        for written in (to_responses(chat_request(message)), to_chat(chat_request(message))):
            assert unfit(written) == {"messages[0].content[0]": True}

    def test_arguments_that_are_an_object_are_serialized(self) -> None:
        sloppy = {"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}
        (item,) = items({"role": "assistant", "tool_calls": [sloppy]})
        assert item["arguments"] == '{"a":1}'


def test_an_empty_answer_is_none() -> None:
    assert messages(HELLO, assistant(""), HELLO) == [HELLO, HELLO]
    (called,) = messages(reasoning("Hm."), assistant(""), call("a"))
    assert (called["content"], called["reasoning_content"]) == (None, "Hm.")
    assert messages(HELLO, assistant(" "), HELLO)[1]["content"] == " "


def test_images_in_an_answer_are_refused() -> None:
    image = {"type": "input_image", "image_url": PIXEL}
    written = to_chat(responses_request({"role": "assistant", "content": [image]}, HELLO))
    assert unfit(written) == {"input[0].content[0]": True}
    chat_image = {"type": "image_url", "image_url": {"url": PIXEL}}
    answer = {"role": "assistant", "content": [chat_image]}
    written = to_responses(chat_request(answer, HELLO))
    assert unfit(written) == {"messages[0].content[0]": True}
    written = to_responses(chat_request({"role": "assistant", "images": [chat_image]}, HELLO))
    assert unfit(written) == {"messages[0].images[0]": True}


def test_images_in_an_answer_go_back_where_a_chat_api_takes_them() -> None:
    made = {"type": "image_generation_call", "id": "ig_1", "result": "AA=="}
    answer = messages(HELLO, assistant("Look."), made, HELLO, profile="openrouter")[1]
    image = {"type": "image_url", "image_url": {"url": PIXEL}}
    assert answer == {"role": "assistant", "content": "Look.", "images": [image]}
    said, shown = chat_request(answer).messages[0].parts
    assert (said, shown) == (TextPart("Look."), ImagePart(PIXEL))


class TestNames:
    @pytest.mark.parametrize("field", ["call_id", "name"])
    def test_an_item_id_is_not_taken_for_a_call_id(self, field: str) -> None:
        call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f"}
        del call[field]
        assert (
            refused_param(lambda: responses_request(HELLO, {**call, "arguments": "{}"}))
            == f"input[1].{field}"
        )

    def test_an_item_id_is_not_taken_for_an_outputs_call_id(self) -> None:
        output = {"type": "function_call_output", "id": "fc_1", "output": "7"}
        assert refused_param(lambda: responses_request(HELLO, output)) == "input[1].call_id"

    def test_a_calls_id_goes_where_it_belongs(self) -> None:
        call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f"}
        output = {"type": "function_call_output", "id": "o_1", "call_id": "call_1", "output": "7"}
        messages = to_chat(responses_request({**call, "arguments": "{}"}, output)).body["messages"]
        assert messages[0]["tool_calls"][0]["id"] == messages[1]["tool_call_id"] == "call_1"

    def test_a_chats_call_has_an_id(self) -> None:
        message = {"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}
        assert refused_param(lambda: chat_request(HELLO, message)) == "messages[1].tool_calls[0].id"

    def test_an_output_needs_a_call_id(self) -> None:
        assert (
            refused_param(lambda: chat_request(HELLO, {"role": "tool", "content": "7"}))
            == "messages[1].tool_call_id"
        )

    def test_arguments_that_are_no_text_are_kept(self) -> None:
        item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": {"a": 1}}
        output = {"type": "function_call_output", "call_id": "c", "output": "7"}
        messages = to_chat(responses_request(item, output)).body["messages"]
        assert messages[0]["tool_calls"][0]["function"]["arguments"] == '{"a":1}'
