"""How a response stored upstream is shown."""

from __future__ import annotations

from typing import Any

import pytest

from abridge.apis.display import Display
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import Profile
from abridge.stored_responses.repository import UpstreamRecord
from abridge.stored_responses.views import UpstreamView, find_summaries
from tests.support import openapi
from tests.support.streams import THOUGHT, call_item, message_item, reasoning_item, response

Json = dict[str, Any]
USER: Json = {"role": "user", "content": "Hi"}


RAW = "odd numbers"
SUMMARY = [{"type": "summary_text", "text": "I add."}]
ERROR = {"code": "timeout", "message": "Too late."}
BOTH = Display(show_raw=True, show_summary=True)
HIDDEN = Display(show_raw=False, show_summary=True)
HIDING = Display(show_raw=False, hides_raw=True, show_summary=True)
NOTHING = Display(show_raw=False, show_summary=False)


def response_as_shown(
    body: Json, display: Display, fields: Json, made: Json, profile: Profile | None
) -> Json | None:
    record = UpstreamRecord("", raw=display.show_raw, fields=fields, made=made)
    return UpstreamView(record, None, display, profile, None).response_as_shown(body)


def items_as_shown(body: Json, display: Display, made: Json, profile: Profile) -> Json | None:
    record = UpstreamRecord("", raw=display.show_raw)
    return UpstreamView(record, None, display, profile, None).items_as_shown(body, made)


def hiding(
    items: list[Any], profile: str, *before: Any, **more: Any
) -> tuple[list[Any], list[Any]]:
    """Return items where reasoning is hidden: of a response, and listed with others before them."""
    again = response_as_shown(response(items, **more), HIDING, {}, {}, PROFILES[profile])
    page = {"object": "list", "data": [*before, *items], "note": THOUGHT}
    listed = items_as_shown(page, HIDING, {}, PROFILES[profile])
    assert again is not None
    assert listed is not None
    assert listed["data"][len(before) :] == again["output"]
    assert THOUGHT not in str([{**again, "output": []}, {**listed, "data": []}])
    return again["output"], listed["data"][: len(before)]


class TestAsShown:
    OUTPUT = (reasoning_item(0, THOUGHT), call_item(1, "f", "{}"), reasoning_item(2, "So."))

    def shown(self) -> Json:
        """Return the response as its client received it."""
        items = [dict(item) for item in self.OUTPUT]
        items[0]["summary"] = SUMMARY
        items[2]["summary_error"] = ERROR
        return response(items, reasoning={"effort": None, "summary": "auto"})

    def test_summaries_are_put_back(self) -> None:
        shown = self.shown()
        fields = {"reasoning": shown["reasoning"]}
        stored = response(list(self.OUTPUT))
        again = response_as_shown(
            stored, BOTH, fields, find_summaries(shown["output"]), PROFILES["openai"]
        )
        assert again == shown
        openapi.check("Response", again)

    def test_a_response_without_summaries_is_unchanged(self) -> None:
        stored = response([reasoning_item(0, THOUGHT, summary=SUMMARY), message_item(1, "Hi")])
        assert response_as_shown(stored, BOTH, {}, {}, PROFILES["openai"]) == stored
        assert find_summaries(list(self.OUTPUT)) == {}

    @pytest.mark.parametrize("display", [HIDDEN, NOTHING])
    def test_hidden_reasoning_is_removed(self, display: Display) -> None:
        shown = self.shown()
        stored = response(
            [*self.OUTPUT, {**message_item(3, "Hi"), "content": reasoning_item(3, "x")}]
        )
        again = response_as_shown(
            stored, display, {}, find_summaries(shown["output"]), PROFILES["openai"]
        )
        assert again is not None
        assert RAW not in str(again)
        assert [item.get("summary") for item in again["output"][:3:2]] == (
            [SUMMARY, []] if display.show_summary else [[], []]
        )

    @pytest.mark.parametrize("masked", [True, False])
    def test_raw_reasoning_called_a_summary_is_removed(self, *, masked: bool) -> None:
        masked_text = [{"type": "summary_text", "text": THOUGHT}]
        sealed = {} if masked else {"encrypted_content": THOUGHT}
        item = {"id": "rs_0", "type": "reasoning", "summary": masked_text, **sealed}
        profile = PROFILES["ollama" if masked else "openai"]
        again = response_as_shown(response([item]), HIDDEN, {}, {}, profile)
        listed = items_as_shown({"object": "list", "data": [item]}, HIDDEN, {}, profile)
        assert RAW not in str(again)
        assert RAW not in str(listed)

    @pytest.mark.parametrize("name", ["auto", "openai"])
    def test_where_reasoning_is_hidden_nothing_unknown_is_shown(self, name: str) -> None:
        native = [{"type": "summary_text", "text": "I think of odd numbers."}]
        item = {**reasoning_item(0, THOUGHT, summary=native), "trace": THOUGHT}
        message = {**message_item(1, "Hi"), "trace": THOUGHT}
        items = [item, {"type": "musing", "text": THOUGHT}, message]
        style = {"effort": None, "summary": THOUGHT}
        shown, earlier = hiding(items, name, USER, output_messages=[THOUGHT], reasoning=style)
        assert shown[1] == message_item(1, "Hi")
        assert shown[0]["summary"] == (native if name == "openai" else [])
        assert earlier == [USER]
        assert str(shown).count(RAW) == (1 if name == "openai" else 0)

    @pytest.mark.parametrize("name", ["auto", "openai", "prefilled"])
    def test_thinking_is_taken_out_of_what_the_model_wrote(self, name: str) -> None:
        block = f"<think>{THOUGHT}</think>"
        question = {"type": "message", "role": "user", "content": f"What is {block}?"}
        early = {"role": "assistant", "content": f"{block}Hi"}
        call = call_item(1, "f", f'{{"a": "{block}b"}}')
        shown, earlier = hiding([message_item(0, f"{block}Hi"), call], name, question, early)
        assert shown == [message_item(0, "Hi"), call_item(1, "f", '{"a": "b"}')]
        assert (earlier[0], earlier[1]["content"]) == (question, "Hi")

    def test_an_answer_after_reasoning_is_no_thinking(self) -> None:
        items = [reasoning_item(0, THOUGHT), message_item(1, "So it ends.")]
        assert hiding(items, "prefilled")[0][1] == items[1]

    @pytest.mark.parametrize("name", ["auto", "vllm"])
    @pytest.mark.parametrize(
        "between", [USER, {"type": "function_call_output", "call_id": "c", "output": "o"}]
    )
    @pytest.mark.parametrize("step", [1, -1])
    def test_reasoning_of_another_response_says_nothing_of_a_message(
        self, step: int, between: Json, name: str
    ) -> None:
        answers = [reasoning_item(0, THOUGHT), message_item(1, "A </think> tag."), between]
        page = {"object": "list", "data": [*answers, message_item(2, f"{THOUGHT}</think>Hi")]}
        page["data"] = page["data"][::step]
        listed = items_as_shown(page, HIDING, {}, PROFILES[name])
        assert listed is not None
        assert THOUGHT not in str(listed)
        assert "A  tag." in str(listed)

    def test_reasoning_after_a_message_says_nothing_of_it(self) -> None:
        items = [message_item(0, f"{THOUGHT}</think>Hi"), reasoning_item(1, THOUGHT)]
        again = response_as_shown(response(items), HIDING, {}, {}, PROFILES["auto"])
        assert again is not None
        assert again["output"][0] == message_item(0, "Hi")

    def test_what_is_stored_here_is_as_it_was_shown(self) -> None:
        shown = {**self.shown(), "usage": {"reasoning_summary": {"model": "two words"}}}
        again = response_as_shown(shown, HIDING, {}, find_summaries(shown["output"]), None)
        assert again is not None
        assert again["usage"] == shown["usage"]
        assert again["output"][0]["summary"] == SUMMARY

    def test_listed_items_are_rewritten_likewise(self) -> None:
        items: list[Any] = [USER, *self.OUTPUT, None]
        body = {"object": "list", "data": items, "has_more": False}
        again = items_as_shown(
            body, HIDDEN, find_summaries(self.shown()["output"]), PROFILES["openai"]
        )
        assert again is not None
        assert RAW not in str(again)
        assert again["data"][1]["summary"] == SUMMARY
        assert (again["data"][0], again["data"][4]) == (USER, None)

    @pytest.mark.parametrize("body", [{}, {"output": None}, {"data": {}}])
    def test_other_bodies_cannot_be_read(self, body: Json) -> None:
        assert response_as_shown(body, BOTH, {}, {}, PROFILES["openai"]) is None
        assert items_as_shown(body, BOTH, {}, PROFILES["openai"]) is None
