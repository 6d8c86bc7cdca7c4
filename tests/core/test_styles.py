"""The table of styles, and what must agree with it."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import get_args

import pytest

from abridge.config.settings import Settings
from abridge.config.tables import PromptSettings
from abridge.core.plan import SummaryPlan
from abridge.core.styles import STYLES, SummaryStyle, title_of


def test_every_style_has_a_row() -> None:
    assert set(STYLES) == set(get_args(SummaryStyle))


def test_every_style_is_allowed_by_default() -> None:
    assert Settings().summary.allow == tuple(STYLES)


@pytest.mark.parametrize("style", STYLES)
def test_every_style_may_be_the_default(style: SummaryStyle) -> None:
    settings = Settings.model_validate({"summary": {"default": style}})
    assert settings.summary.default == style


@pytest.mark.parametrize("style", STYLES)
def test_a_model_is_asked_for_a_title_where_there_is_to_be_one_and_may_be_told_otherwise(
    style: SummaryStyle,
) -> None:
    row = STYLES[style]
    assert {"bold title" in form for form in (row.form, row.short_form)} == {row.titled}
    assert bool(title_of(row.example)) == row.titled
    assert style in PromptSettings.model_fields


@pytest.mark.parametrize("style", STYLES)
def test_parts_are_made_live_in_some_styles(style: SummaryStyle) -> None:
    text = "A thought that goes on.\n\n" * 400
    cuts = list(SummaryPlan(style=style).new_segmenter().feed(text))
    assert bool(cuts) == STYLES[style].live


def test_the_page_offers_every_style() -> None:
    page = files("abridge.sidecar.page").joinpath("files/page.html").read_text()
    (select,) = re.findall(r'<select id="style">(.*?)</select>', page, re.DOTALL)
    assert re.findall(r"<option>(\w+)</option>", select) == list(STYLES)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("**Adding up**\n\nIt is four.", "Adding up"),
        ("  **Alone**", "Alone"),
        ("It is **four**.", None),
        ("", None),
    ],
)
def test_a_title_is_the_bold_text_at_the_start(text: str, title: str | None) -> None:
    assert title_of(text) == title
