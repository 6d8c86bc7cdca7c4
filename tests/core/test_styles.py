"""The table of styles, and what must agree with it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import abridge
from abridge.config.settings import Settings
from abridge.config.tables import PromptSettings
from abridge.core import styles
from abridge.core.plan import SummaryPlan
from abridge.core.styles import STYLES, SummaryStyle, body_of, title_of
from abridge.sidecar.page.page import Page
from tests.support.sidecar import environment

SOURCE = styles.__file__


def test_every_style_has_a_row() -> None:
    assert set(STYLES) == set(get_args(SummaryStyle))


def test_type_checkers_are_told_of_every_row() -> None:
    (told,) = re.findall(r"SummaryStyle: TypeAlias = Literal\[(.*)\]", Path(SOURCE).read_text())
    assert told == ", ".join(f'"{style}"' for style in STYLES)


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


def test_the_documentation_has_a_row_for_every_style() -> None:
    page = (Path(__file__).parents[2] / "docs" / "summaries.md").read_text()
    rows = re.findall(
        r"^\| `(\w+)` \| (yes|no)\b.*? \| (yes|no) \| .* \| (\d+) \|$", page, re.MULTILINE
    )
    truth = {True: "yes", False: "no"}
    assert sorted(rows) == sorted(
        (style, truth[row.live], truth[row.titled], str(row.max_tokens))
        for style, row in STYLES.items()
    )


def test_the_page_offers_every_style() -> None:
    page = Page("extractive").html.decode()
    (select,) = re.findall(r'<select id="style">(.*?)</select>', page, re.DOTALL)
    assert re.findall(r"<option>(\w+)</option>", select) == list(STYLES)


ANOTHER_ROW = """\
STYLES: Mapping[SummaryStyle, Style] = {
    "listed": Style(
        native="auto",
        live=False,
        titled=False,
        form="a list",
        short_form="a short list",
        example="- I look.",
        size=600,
        extract=ExtractRules(800, 2, 400, 0),
        lists=True,
    ),
"""

ANOTHER_STYLE = """
import sys, types
from pathlib import Path

folder, row = sys.argv[1:]
package = types.ModuleType("abridge")
package.__path__ = [folder]
sys.modules["abridge"] = package  # so that nothing is imported before the table has the row
source = Path(folder, "core", "styles.py").read_text()
assert row.partition(chr(10))[0] in source
styles = sys.modules["abridge.core.styles"] = types.ModuleType("abridge.core.styles")
exec(source.replace(row.partition(chr(10))[0] + chr(10), row), vars(styles))

from abridge.apis.summary_request import requested_style
from abridge.config.settings import Settings
from abridge.core.plan import Passage
from abridge.sidecar.page.page import Page
from abridge.summarizers.cleaning import Cleaner
from abridge.summarizers.model.prompts import build_prompt

settings = Settings(summary={"default": "listed"}, summarizer={"prompts": {"listed": "Say it."}})
assert "listed" in settings.summary.allow
assert settings.summarizer.prompts.listed == "Say it."
assert requested_style({"reasoning": {"summary": "listed"}}) == "listed"

text = "- I look.\\n- I leap."
assert Cleaner("listed").feed(text, last=True) == text
assert Cleaner("concise").feed(text, last=True) == "I look.\\nI leap."

def asked(style):
    passage = Passage("A thought. " * 99, style)
    return build_prompt(passage, Settings().summarizer, "m")

assert asked("listed").user.endswith("a list. End with what you conclude, or do next.")
assert "lists" in asked("concise").system and "lists" not in asked("listed").system
assert b"<option>listed</option>" in Page("extractive").html
"""


def test_a_row_is_all_that_a_style_needs() -> None:
    """Settings and requests take it, its instructions can be replaced, a summarizer is asked for
    its form and keeps to it, and the page offers it."""
    package = Path(abridge.__file__).parent
    subprocess.run(  # noqa: S603 -- fixed command
        [sys.executable, "-c", ANOTHER_STYLE, str(package), ANOTHER_ROW],
        check=True,
        env=environment(),
    )


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


@pytest.mark.parametrize(
    ("text", "title", "body"),
    [
        ("**A title**\n\nSome words.", "A title", "Some words."),
        ("Some **bold** words.", None, "Some **bold** words."),
        ("**Not closed ye", None, "**Not closed ye"),
        ("", None, ""),
    ],
)
def test_a_bold_first_line_is_the_title_of_a_part(text: str, title: str | None, body: str) -> None:
    assert (title_of(text), body_of(text)) == (title, body)
