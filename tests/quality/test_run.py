"""The corpus through the real pipeline: what is collected, what it is held to, what is written."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.campaigns import upstream as summarizer
from tests.campaigns.script import SUMMARY
from tests.quality import __main__ as command
from tests.quality import corpus, page, report
from tests.quality.gates import GATES, Gate
from tests.quality.run import Options, Shown, run
from tests.quality.texts import letters
from tests.support.servers import serve, unused_address

REASONINGS = {one.name: one for one in corpus.load()}


@pytest.fixture(scope="module")
def shown() -> list[Shown]:
    """What the built-in summarizer makes of the project's own corpus."""
    return page.embedded()


@pytest.fixture(scope="module")
def results(shown: Sequence[Shown]) -> list[report.Result]:
    return [report.Result.of(one) for one in shown]


def test_every_reasoning_has_a_summary(shown: Sequence[Shown]) -> None:
    assert [one.reasoning.name for one in shown] == list(REASONINGS)
    assert all(one.parts for one in shown)
    assert not any(one.failures for one in shown)


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
def test_the_embedded_summarizer_is_held_to_its_bounds(
    results: Sequence[report.Result], gate: Gate
) -> None:
    value = gate.figure([one.measure for one in results])
    assert gate.holds(value), f"{gate.name}: {value:.1f}, {gate.target}"


@pytest.mark.parametrize("pace", [400.0, 4000.0])
async def test_the_pace_changes_no_word(shown: Sequence[Shown], pace: float) -> None:
    (fast,) = (one for one in shown if one.reasoning.name == "climb")
    (paced,) = await run([fast.reasoning], Options(pace=pace))
    assert paced.parts == fast.parts
    assert len(paced.parts) > 1


async def test_the_model_thinks_at_the_pace_that_is_asked_for() -> None:
    (paced,) = await run([REASONINGS["climb"]], Options(pace=800))
    assert paced.seconds >= len(REASONINGS["climb"].text) / 4 / 800 - 0.1
    assert len(paced.begun) == len(paced.parts)
    assert paced.first_text == paced.begun[0]


async def test_a_tool_call_ends_a_turn_and_the_next_goes_on(shown: Sequence[Shown]) -> None:
    agent = REASONINGS["double-charge"]
    (whole,) = (one for one in shown if one.reasoning.name == agent.name)
    assert len(agent.turns) == 4
    assert len(whole.parts) >= 4
    (alone,) = await run([agent], Options(pace=0))
    assert alone.parts == whole.parts


async def test_a_model_that_is_named_writes() -> None:
    async with serve(summarizer.app) as url:
        model = {"kind": "model", "base_url": f"{url}/summarizer/v1", "model": "scripted"}
        (written,) = await run([REASONINGS["climb"]], Options({"summarizer": model}, pace=0))
    assert {letters(part) for part in written.parts} == {letters(SUMMARY)}
    assert not written.failures


def test_a_model_that_cannot_be_reached_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    model = ["--base-url", f"{unused_address()}/v1", "--model", "none"]
    assert command.main([*model, "--only", "voucher", "--pace", "0"]) == 1
    assert "voucher: failed: upstream_error" in capsys.readouterr().out


def test_the_command_prints_tables_and_keeps_rows_and_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, parts = tmp_path / "rows.csv", tmp_path / "parts.json"
    call = ["--only", "climb", "loaves", "--pace", "0", "--csv", str(rows)]
    for _ in range(2):
        assert command.main([*call, "--parts", str(parts)]) in (0, 1)
    out = capsys.readouterr().out
    assert all(gate.name in out for gate in GATES)
    assert "gerund titles" in out
    with rows.open(newline="") as file:
        kept = list(csv.DictReader(file))
    assert [row["name"] for row in kept] == ["climb", "loaves"] * 2
    assert {row["summarizer"] for row in kept} == {"extractive"}
    written = json.loads(parts.read_text())
    assert [entry["name"] for entry in written] == ["climb", "loaves"]
    assert command.main(["--read", str(parts), "--only", "climb"]) in (0, 1)
    assert "loaves" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["figures", "embedded", "beside"])
def test_the_page_shows_what_the_code_makes(shown: Sequence[Shown], name: str) -> None:
    """After a change of the summarizer: read the examples, correct what `examples.toml` says of
    them, and run `python -m tests.quality --examples`."""
    written = page.section(page.PAGE.read_text(encoding="utf-8"), name)
    assert written == page.embedded_sections(shown)[name].strip()


def test_ten_summaries_of_each_are_shown() -> None:
    for writer in ("embedded", "model"):
        said = page.verdicts(writer)
        assert len(said) == 10
        assert said.keys() <= REASONINGS.keys()


def test_six_reasonings_stand_in_full_beside_their_summaries() -> None:
    assert len(page.BESIDE) == 6
    assert len({REASONINGS[name].language for name in page.BESIDE}) >= 4


def test_a_model_s_parts_are_shown_unedited(
    shown: Sequence[Shown], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, parts = tmp_path / "examples.md", tmp_path / "parts.json"
    copy.write_text(page.PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(page, "PAGE", copy)
    monkeypatch.setattr(page, "embedded", lambda: shown)
    report.write_parts(parts, [Shown(REASONINGS["climb"], ["**Timing it**\n\nI add *it* up."])])
    assert command.main(["--examples", str(parts), "--model", "some-model"]) == 0
    written = page.section(copy.read_text(encoding="utf-8"), "model")
    assert written.startswith("## Written by some-model")
    assert "> **Timing it**\n>\n> I add *it* up." in written
    assert "loaves" not in written


def test_rows_go_only_into_a_file_that_has_their_columns(
    tmp_path: Path, results: Sequence[report.Result]
) -> None:
    other = tmp_path / "other.csv"
    other.write_text("a,b\n")
    with pytest.raises(ValueError, match="other columns"):
        report.append_csv(other, results, {})


def test_a_reasoning_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--only", "nothing-like-it"])
    assert "nothing-like-it" in capsys.readouterr().err
