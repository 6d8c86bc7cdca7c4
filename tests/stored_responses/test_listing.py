"""Items of a stored response, listed page by page."""

from __future__ import annotations

from typing import Any

import pytest

from abridge.apis.openai import mint_id
from abridge.errors import RequestError
from abridge.stored_responses.listing import PageQuery, list_page
from tests import openapi
from tests.scripts import THOUGHT, call_item, message_item, reasoning_item

Json = dict[str, Any]
USER: Json = {"role": "user", "content": "Hi"}
OURS = mint_id("msg_")


IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}
ACTION = {"type": "exec", "command": ["ls"], "env": {}}
ITEMS: dict[str, Json] = {
    "a text": USER,
    "a message": {"type": "message", **USER},
    "a developer's": {"role": "developer", "content": [{"type": "input_text", "text": "Hi"}]},
    "parts": {"role": "user", "content": [{"type": "text", "text": "Hi"}, IMAGE]},
    "what the model said": {"role": "assistant", "content": "Hi"},
    "in parts": {"role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
    "as it was said": message_item(0, "Hi"),
    "a refusal": {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
    "reasoning": {"type": "reasoning", "summary": None, "encrypted_content": "gAAA"},
    "reasoning as it was said": reasoning_item(0, THOUGHT),
    "a call": {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    "a call as it was said": call_item(0, "f", "{}"),
    "an output": {"type": "function_call_output", "call_id": "c", "output": "42"},
    "a custom call": {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"},
    "its output": {"type": "custom_tool_call_output", "call_id": "c", "output": "42"},
    "a shell's call": {"type": "local_shell_call", "call_id": "c", "action": ACTION},
    "a shell's output": {"type": "local_shell_call_output", "call_id": "c", "output": "{}"},
    "the old way": {"type": "local_shell_call_output", "id": "c", "output": "{}"},
    "a search": {
        "type": "tool_search_call",
        "call_id": "c",
        "execution": "client",
        "arguments": {},
    },
}


class TestListing:
    @pytest.mark.parametrize("name", ITEMS)
    def test_an_item_is_listed_as_the_description_has_it(self, name: str) -> None:
        shown = list_page([(OURS, ITEMS[name])], has_more=False)
        openapi.check("ResponseItemList", shown)
        assert shown["data"][0]["id"] == OURS

    def test_the_old_way_a_shells_output_keeps_its_call(self) -> None:
        (item,) = list_page([(OURS, ITEMS["the old way"])], has_more=False)["data"]
        assert item["call_id"] == "c"

    def test_an_empty_page_is_one(self) -> None:
        shown = list_page([], has_more=False)
        openapi.check("ResponseItemList", shown)
        assert shown["data"] == []

    NAMES = tuple(f"msg_{number:03}" for number in range(130))

    @pytest.mark.parametrize("order", ["asc", "desc", None])
    @pytest.mark.parametrize("limit", [1, 7, 20, 100, None])
    def test_pages_are_all_there_is(self, order: str | None, limit: int | None) -> None:
        fields = {"order": order, "limit": limit}
        query = "&".join(f"{key}={value}" for key, value in fields.items() if value is not None)
        seen: list[str] = []
        more = True
        while more:
            after = f"&after={seen[-1]}" if seen else ""
            names, more = PageQuery.parse((query + after).encode()).select(self.NAMES)
            assert len(names) == (limit or 20) or not more
            seen += names
        assert seen == sorted(self.NAMES, reverse=order != "asc")

    @pytest.mark.parametrize(
        ("query", "param", "code"),
        [
            ("limit=0", "limit", "integer_below_min_value"),
            ("limit=-1", "limit", "integer_below_min_value"),
            ("limit=101", "limit", "integer_above_max_value"),
            ("limit=x", "limit", "invalid_value"),
            (f"limit={'9' * 5000}", "limit", "invalid_value"),
            ("limit=1.5", "limit", "invalid_value"),
            ("order=up", "order", "invalid_value"),
            ("after=msg_x", "after", None),
        ],
    )
    def test_what_cannot_be_is_refused(self, query: str, param: str, code: str | None) -> None:
        with pytest.raises(RequestError) as caught:
            PageQuery.parse(query.encode()).select(self.NAMES)
        assert (caught.value.status, caught.value.param, caught.value.code) == (400, param, code)

    def test_what_else_is_asked_for_is_passed_over(self) -> None:
        page = PageQuery.parse(b"include[]=x&include=reasoning.encrypted_content&limit=")
        assert page == PageQuery()
