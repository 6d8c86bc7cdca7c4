"""Test the moving picture of the demo, and that the README's is one."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

from abridge.sidecar.demo.script import ANSWER, QUESTION
from tests.sidecar.demo.picture import COLUMNS, FRAME_SECONDS, LINES, Frame, draw

README_PICTURE = Path(__file__).parents[3] / "docs" / "demo.svg"

SVG = "{http://www.w3.org/2000/svg}"


def frames_of(picture: str) -> list[list[tuple[str, str]]]:
    """Return the frames of a picture, each as its texts with their classes."""
    groups = ET.fromstring(picture).iter(f"{SVG}g")  # noqa: S314 -- our own
    return [[(str(text.get("class")), text.text or "") for text in group] for group in groups]


def words_of(frame: list[tuple[str, str]]) -> str:
    return " ".join(text for _, text in frame)


def test_texts_keep_their_columns_rows_and_emphasis() -> None:
    picture = draw([Frame(0, ["\x1b[1mWhy?\x1b[0m", "\x1b[2ma b   \x1b[0m | <c>"])])
    texts = [
        (text.get("class"), text.get("x"), text.get("y"), text.text)
        for text in ET.fromstring(picture).iter(f"{SVG}text")  # noqa: S314 -- our own
    ]
    assert texts == [
        ("bold", "20", "34", "Why?"),
        ("dim", "20", "53", "a b"),
        ("plain", "78.8", "53", "| <c>"),
    ]


def test_each_frame_is_visible_until_the_next() -> None:
    picture = draw([Frame(0, ["a"]), Frame(2, ["b"]), Frame(4, ["c"])])  # and 6 s for the last
    spans = re.findall(r"@keyframes f(\d) .*? (\S+)% \{ visibility: visible \} (\S+)% ", picture)
    assert spans == [("0", "0.00", "20.00"), ("1", "20.00", "40.00"), ("2", "40.00", "100.00")]


def test_the_readme_shows_the_demo_as_it_is() -> None:
    picture = README_PICTURE.read_text(encoding="utf-8")
    assert "<script" not in picture
    assert not re.search(r"(?:href|url)", picture)
    frames = frames_of(picture)
    assert len(frames) > 5 / FRAME_SECONDS
    assert all(len(text) <= COLUMNS for frame in frames for _, text in frame)
    assert all(len(frame) <= 2 * LINES for frame in frames)
    assert QUESTION in words_of(frames[0])
    assert "summary, 0 parts" in words_of(frames[0])
    assert " ".join(ANSWER.splitlines()[-1].split()) in words_of(frames[-1])
