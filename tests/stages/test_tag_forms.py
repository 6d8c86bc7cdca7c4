"""The table of tags: whatever has a row is found, however it comes."""

from __future__ import annotations

import pytest

from abridge.providers.profile import TAGS, Tag
from abridge.stages.hidden_thinking import ThinkingFilter
from abridge.stages.tag_forms import ANY_TAG, FORMS

PAIRS = [
    (opening, closing)
    for form in FORMS
    for opening in form.examples
    if form.opening.fullmatch(opening)
    for closing in form.examples
    if form.closing.fullmatch(closing)
]


def test_every_row_has_examples_of_both_its_tags() -> None:
    openings, closings = zip(*PAIRS, strict=True)
    for form in FORMS:
        assert any(map(form.opening.fullmatch, openings)), form
        assert any(map(form.closing.fullmatch, closings)), form


def test_every_tag_is_looked_for_where_one_may_begin() -> None:
    for form in FORMS:
        assert all(map(ANY_TAG.match, form.examples)), form.examples


@pytest.mark.parametrize("tag", TAGS, ids=lambda tag: tag.opening)
def test_what_is_thinking_where_it_is_shown_is_thinking_where_it_is_hidden(tag: Tag) -> None:
    assert any(
        form.opening.fullmatch(tag.opening) and form.closing.match(tag.closing) for form in FORMS
    )


@pytest.mark.parametrize(("opening", "closing"), PAIRS)
def test_what_stands_between_the_tags_of_a_row_is_hidden(opening: str, closing: str) -> None:
    text = f"{opening}secret{closing}Answer"
    for size in (1, 2, 3, len(text)):
        thinking = ThinkingFilter(may_begin_inside=False, limit=1000)
        pieces = [
            piece
            for start in range(0, len(text), size)
            for piece in thinking.feed(text[start : start + size])
        ]
        pieces += thinking.end()
        assert "secret" not in "".join(piece.text for piece in pieces if piece.kind == "text")
