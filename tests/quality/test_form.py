"""What no part may be is found where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from abridge.core.styles import SummaryStyle
from tests.quality import form, page, real
from tests.quality.corpus import Reasoning
from tests.quality.run import Shown

GOOD = "**Weighing the truck**\n\nI add the load. It is too heavy."


def shown(*parts: str) -> list[Shown]:
    reasoning = Reasoning("truck", "It weighs nine tons. " * 40, "en")
    return [Shown(reasoning, list(parts), failures=["loop"], output_tokens=90)]


@pytest.mark.parametrize(
    ("part", "fault", "style"),
    [
        ("I add the load.", "without a title", "auto"),
        (f"{GOOD} {'I add it up again. ' * 60}", "over length", "auto"),
        (f"{GOOD} I add the load.", "with a sentence twice", "auto"),
        (f"{GOOD} [d4baeb end]", "with a marker", "auto"),
        (f"{GOOD}<|im_end|>", "with a marker", "concise"),
        (f"{GOOD}\n\nI go on.", "in several paragraphs", "auto"),
    ],
)
def test_a_fault_is_found(part: str, fault: str, style: SummaryStyle) -> None:
    assert form.counts(shown(GOOD), style)[fault] == 0
    found = form.counts(shown(GOOD, part), style)
    assert found[fault] == 1
    assert found["parts"] == 2
    assert not form.holds(found)


def test_what_failed_is_told_and_is_no_fault() -> None:
    found = form.counts(shown(GOOD), "auto")
    assert form.holds(found)
    assert found["failed"] == 1
    lines = form.table(found, shown(GOOD))
    assert any(line.split() == ["failed:", "loop", "1"] for line in lines)
    assert any("90 of 210" in line for line in lines)


def test_the_row_of_a_model_is_written_in_place_of_its_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "summaries.md"
    copy.write_text("A\n\n<!-- floor -->\n\n<!-- end of floor -->\n\nB\n")
    monkeypatch.setattr(page, "SUMMARIES", copy)
    for model, parts in (("a", [GOOD]), ("b", [GOOD]), ("a", [GOOD, GOOD])):
        page.write_floor(model, form.counts(shown(*parts), "auto"), shown(*parts))
    head, _, *rows = page.section(copy.read_text(), "floor").splitlines()
    assert head.startswith("| writes | parts | without a title | over length |")
    assert [row.split(" | ")[:2] for row in rows] == [["| b", "1"], ["| a", "2"]]


def test_the_weights_are_found(tmp_path: Path) -> None:
    assert real.find_weights(tmp_path) is None
    weights = tmp_path / "weights.gguf"
    weights.touch()
    assert real.find_weights(tmp_path) == weights
