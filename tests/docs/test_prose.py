"""Check how the pages for readers are written: short sentences, without turns that nobody says.

A sentence ends at a full stop, a question or an exclamation mark before a space, and at the end of
its paragraph, list item, heading or table cell. A span of code and a link's address are no more
than one word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, name_of, without_fences

MOST_WORDS = 35

GENERATED = {"docs/examples-of-summaries.md"}  # models wrote it
PROSE = [page for page in PAGES if name_of(page) not in GENERATED]

UNIDIOMATIC = (
    *("nothing to mend", "mended", "is reckoned", "for want of", "in other words", "of who"),
    *("none of their words", "so it was", "has it that", "goes by", "stands for", "dear case"),
    *("one that is none", "that are none", "is no part of", "each alike", "what is above"),
    *("is told by", "is said by", "whoever asks", "from who can", "made anew", "begun anew"),
    *("as it came", "stands beside", "by itself", "of theirs", "of ours", "win over"),
)

_SENTENCE_END = re.compile(r"(?<=[.!?])[)\"*_]*\s+(?=[^a-z])")
_ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|vs|cf)\.")


def blocks_of_prose(page: Path) -> Iterator[str]:
    """Yield each paragraph, list item, heading and table cell of a page, in one line each."""
    paragraph: list[str] = []
    for line in [*without_fences(page).splitlines(), ""]:
        is_row = line.lstrip().startswith("|")
        begins = is_row or not line.strip() or re.match(r" *(?:[-*+]|\d+\.|#+|>) ", line)
        if begins and paragraph:
            yield " ".join(paragraph)
            paragraph = []
        if is_row:
            yield from re.split(r"(?<!\\)\|", line)
        elif line.strip():
            paragraph.append(re.sub(r"^ *(?:[-*+]|\d+\.|#+|>) ", "", line).strip())


def sentences(text: str) -> list[str]:
    plain = re.sub(r"`+[^`]+`+", "Code", text)
    plain = re.sub(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])?", r"\1", plain)
    return _SENTENCE_END.split(_ABBREVIATION.sub(r"\1", plain))


def words(sentence: str) -> int:
    return sum(any(map(str.isalnum, word)) for word in sentence.split())


@pytest.mark.parametrize("page", PROSE, ids=name_of)
def test_no_sentence_is_long(page: Path) -> None:
    found = [each for block in blocks_of_prose(page) for each in sentences(block)]
    assert found
    assert not [each for each in found if words(each) > MOST_WORDS]


@pytest.mark.parametrize("page", PROSE, ids=name_of)
def test_no_turn_comes_back_that_nobody_says(page: Path) -> None:
    text = " ".join(" ".join(blocks_of_prose(page)).lower().split())
    assert not [turn for turn in UNIDIOMATIC if re.search(rf"\b{turn}\b", text)]


def test_sentences_are_found_as_readers_find_them(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A title\n\nOne goes\non. `two.a three` is one word! (Yes.) See [the page](x y.md).\n"
        "- item e.g. this\n  goes on\n- next\n\n| a cell | another `a \\| b` |\n|---|---|\n"
        "```text\nno prose\n```\n"
    )
    found = [each for block in blocks_of_prose(page) for each in sentences(block)]
    counts = [words(each) for each in found if words(each)]
    assert counts == [2, 3, 4, 1, 3, 5, 1, 2, 2]
