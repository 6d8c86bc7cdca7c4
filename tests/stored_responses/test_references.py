"""Ids in a request, and errors about unknown ones."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from abridge.apis.openai import mint_id
from abridge.apis.responses.items import id_prefix
from abridge.apis.responses.messages import read_input_items
from abridge.stored_responses.references import (
    is_same_item,
    item_not_found,
    minted_id,
    previous_not_found,
    referenced_id,
    remove_minted_ids,
)
from abridge.stored_responses.views import response_not_found
from tests.support.streams import THOUGHT, message_item, reasoning_item

Json = dict[str, Any]
USER: Json = {"role": "user", "content": "Hi"}
OURS = mint_id("msg_")


class TestReferences:
    @pytest.mark.parametrize(
        ("item", "name"),
        [
            ({"type": "item_reference", "id": "msg_1"}, "msg_1"),
            ({"type": None, "id": "msg_1"}, "msg_1"),
            ({"id": "msg_1"}, "msg_1"),
            ({"id": 1}, ""),
            ({"type": "item_reference"}, ""),
            ({"id": "msg_1", **USER}, ""),
            ({"id": "msg_1", "output": "x"}, ""),
            (message_item(1, "Hi"), ""),
            ("msg_1", ""),
            (None, ""),
        ],
    )
    def test_the_id_an_item_refers_to(self, item: Any, name: str) -> None:
        assert referenced_id(item) == name

    @pytest.mark.parametrize(
        ("item", "item_id"),
        [
            pytest.param({**USER, "id": OURS}, OURS, id="a question"),
            pytest.param({**message_item(1, "Hi"), "id": OURS}, OURS, id="an answer"),
            (message_item(1, "Hi"), ""),
            ({"type": "item_reference", "id": OURS}, ""),
            ({"type": "local_shell_call_output", "id": mint_id("call_"), "output": "x"}, ""),
            ("x", ""),
        ],
    )
    def test_the_minted_id_of_an_item(self, item: Any, item_id: str) -> None:
        assert minted_id(item) == item_id

    @pytest.mark.parametrize(
        ("content", "items"),
        [
            ({"input": "Hi"}, [USER]),
            ({"input": [USER]}, [USER]),
            ({}, []),
            ({"input": None}, []),
            ({"input": 5}, []),
        ],
    )
    def test_a_string_is_a_user_message(self, content: Json, items: list[Json]) -> None:
        assert read_input_items(content) == items

    def test_only_minted_ids_are_removed(self) -> None:
        ours = {**reasoning_item(0, THOUGHT), "id": mint_id("rs_"), "extra": 1}
        shell = {"type": "local_shell_call_output", "id": mint_id("call_"), "output": "x"}
        others = [USER, message_item(1, "Hi"), {"id": mint_id("rs_")}, shell]
        body: Json = {"input": [ours, *copy.deepcopy(others)]}
        assert remove_minted_ids(body) == 1
        left = {key: value for key, value in reasoning_item(0, THOUGHT).items() if key != "id"}
        assert body == {"input": [{**left, "extra": 1}, *others]}

    @pytest.mark.parametrize("content", ["Hi", None, 5, [5, "x", None]])
    def test_a_body_without_minted_ids_is_unchanged(self, content: Any) -> None:
        body = {"input": content}
        assert remove_minted_ids(body) == 0
        assert body == {"input": content}

    def test_null_fields_make_no_difference_between_items(self) -> None:
        item = message_item(1, "Hi")
        assert is_same_item(item, {**item, "phase": None})
        assert not is_same_item(item, message_item(1, "Ho"))

    @pytest.mark.parametrize(
        ("item_type", "prefix"),
        [("", "msg_"), ("message", "msg_"), ("function_call", "fc_"), ("compaction", "cmp_")],
    )
    def test_id_prefixes_are_openais(self, item_type: str, prefix: str) -> None:
        assert id_prefix(item_type) == prefix

    def test_missing_responses_and_items_are_openais_errors(self) -> None:
        previous, item, whole = (
            previous_not_found("resp_1"),
            item_not_found("msg_1", 2),
            response_not_found("resp_1"),
        )
        assert str(previous) == "Previous response with id 'resp_1' not found."
        assert (previous.status, previous.code) == (400, "previous_response_not_found")
        assert previous.param == "previous_response_id"
        assert str(item) == "Item with id 'msg_1' not found."
        assert (item.status, item.param) == (400, "input[2].id")
        assert (str(whole), whole.status) == ("Response with id 'resp_1' not found.", 404)
