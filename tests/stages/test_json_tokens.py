"""Test telling the tokens of JSON from what is none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.stages.json_tokens import JsonTokens
from abridge.stages.tags import TagPiece, join_alike

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
PIECES = st.sampled_from(
    [
        *('{"a": 1', '"', "'", "{", "}", "[", "]", ",", ":", "\\", "\n", " ", "hm", "I'd", "tru"),
        *("12", '"a" :', '"a, b"', "e", "-", "don't", "我", "`"),
    ]
)


def sort_out(pieces: list[str]) -> tuple[str, str]:
    """Return the tokens of a text that comes in pieces, and its strays."""
    tokens = JsonTokens()
    found = []
    for piece in pieces:
        after = tokens.after(piece)
        taken = [*tokens.take(piece)]
        if after is not None:
            assert join_alike(taken) == join_alike([TagPiece("text", piece)])
            assert vars(after) == vars(tokens)
        found += taken
    found += tokens.end()
    text = "".join(one.text for one in found if one.kind == "text")
    return text, "".join(one.text for one in found if one.kind == "raw")


@given(st.lists(VALUES, max_size=3), st.integers(1, 9), st.sampled_from([None, 1, "\t"]))
def test_json_has_no_strays(values: list[object], size: int, indent: int | str | None) -> None:
    text = "\n".join(json.dumps(value, ensure_ascii=False, indent=indent) for value in values)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert sort_out(pieces) == (text, "")


@given(st.lists(PIECES, max_size=40))
def test_pieces_do_not_matter_and_nothing_is_lost(pieces: list[str]) -> None:
    text = "".join(pieces)
    whole = sort_out([text])
    assert sort_out(pieces) == whole == sort_out([*text])
    assert sorted("".join(whole)) == sorted(text)


@given(st.text(alphabet=st.characters(categories=["L", "P", "Zs"], exclude_characters='"[{]}')))
def test_prose_is_all_stray(text: str) -> None:
    shown, _ = sort_out([f"Hm {text}"])
    assert shown == ""


def test_a_stray_ends_where_an_object_begins() -> None:
    assert sort_out(['So {that} is [it]: {"a": 1}.']) == ('{"a": 1}', "So {that} is [it]: .")


def test_a_stray_within_an_object_ends_at_the_next_name() -> None:
    assert sort_out(['{"a": 1, so "b" ', 'and "c": 2}']) == ('{"a": 1, "c": 2}', 'so "b" and ')


def test_each_stray_is_counted() -> None:
    tokens = JsonTokens()
    assert len([*tokens.take('Hm {"a": 1} so {"b": 2}'), *tokens.end()]) > 0
    assert tokens.strays == 2


@pytest.mark.parametrize(
    ("before", "piece"),
    [
        ("", '{"'),
        ('{"a', '": "b'),
        ('{"a": "b', '",'),
        ('{"a": [', "1, true],"),
        ('{"a": "b', 'c\\"\\ud83d'),
        ('{"a": "b\\\\', '"}'),
    ],
)
def test_what_comes_after_whole_tokens_is_known(before: str, piece: str) -> None:
    tokens = JsonTokens()
    assert "".join(one.text for one in tokens.take(before)) == before
    assert tokens.after(piece) is not None


@pytest.mark.parametrize(
    ("before", "piece"),
    [
        ("", "Hm"),
        ("", "Hm, "),
        ("Hm, ", "so "),
        ('{"a": 1', "2"),
        ('{"a": ', "1"),
        ('{"a": ', "tru"),
        ('{"a": "b', "c\\"),
        ('{"a": "b\\', '"'),
        ('{"a": "b', '", so'),
        ('{"a": "b"', " so "),
        ('{"a": 1, so', ', "b'),
    ],
)
def test_what_is_held_back_or_stray_is_not_known(before: str, piece: str) -> None:
    tokens = JsonTokens()
    _ = [*tokens.take(before)]
    state = dict(vars(tokens))
    assert tokens.after(piece) is None
    assert vars(tokens) == state
