"""Items of a stored response, listed page by page."""

from __future__ import annotations

from typing import Any

import pytest

from abridge.apis.openai import mint_id
from abridge.errors import RequestError
from abridge.stored_responses.listing import PageQuery, list_page
from tests.support import openapi
from tests.support.streams import THOUGHT, call_item, message_item, reasoning_item

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
    "an assistant message": {"role": "assistant", "content": "Hi"},
    "in parts": {"role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
    "an output message": message_item(0, "Hi"),
    "a refusal": {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
    "reasoning": {"type": "reasoning", "summary": None, "encrypted_content": "gAAA"},
    "output reasoning": reasoning_item(0, THOUGHT),
    "a call": {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    "an output call": call_item(0, "f", "{}"),
    "an output": {"type": "function_call_output", "call_id": "c", "output": "42"},
    "a custom call": {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"},
    "its output": {"type": "custom_tool_call_output", "call_id": "c", "output": "42"},
    "a shell's call": {"type": "local_shell_call", "call_id": "c", "action": ACTION},
    "a shell's output": {"type": "local_shell_call_output", "call_id": "c", "output": "{}"},
    "a shell output with an id": {"type": "local_shell_call_output", "id": "c", "output": "{}"},
    "a search": {
        "type": "tool_search_call",
        "call_id": "c",
        "execution": "client",
        "arguments": {},
    },
}


class TestListing:
    @pytest.mark.parametrize("name", ITEMS)
    def test_a_listed_item_matches_the_api_description(self, name: str) -> None:
        shown = list_page([(OURS, ITEMS[name])], has_more=False)
        openapi.check("ResponseItemList", shown)
        assert shown["data"][0]["id"] == OURS

    def test_a_shell_output_with_only_an_id_keeps_it_as_call_id(self) -> None:
        (item,) = list_page([(OURS, ITEMS["a shell output with an id"])], has_more=False)["data"]
        assert item["call_id"] == "c"

    def test_an_empty_page_is_valid(self) -> None:
        shown = list_page([], has_more=False)
        openapi.check("ResponseItemList", shown)
        assert shown["data"] == []

    NAMES = tuple(f"msg_{number:03}" for number in range(130))

    @pytest.mark.parametrize("order", ["asc", "desc", None])
    @pytest.mark.parametrize("limit", [1, 7, 20, 100, None])
    def test_the_pages_together_hold_all_items(self, order: str | None, limit: int | None) -> None:
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
    def test_invalid_parameters_are_refused(self, query: str, param: str, code: str | None) -> None:
        with pytest.raises(RequestError) as caught:
            PageQuery.parse(query.encode()).select(self.NAMES)
        assert (caught.value.status, caught.value.param, caught.value.code) == (400, param, code)

    def test_unknown_parameters_are_ignored(self) -> None:
        page = PageQuery.parse(b"include[]=x&include=reasoning.encrypted_content&limit=")
        assert page == PageQuery()
