"""The behaviours and the threat model name tests that exist, the docs paths that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "middleware" / "abridge"


def test_each_behaviour_names_tests_that_exist() -> None:
    code = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    tests = set(re.findall(r"def (test_\w+)", code))
    rows = re.findall(
        r"^\| .+ \| (.*) \|$", (ROOT / "tests" / "behaviours.md").read_text(), re.MULTILINE
    )
    named = [re.findall(r"`(\w+)`", row) for row in rows if row != "shown by"]
    assert len(named) > 50
    assert all(named)
    assert {name for names in named for name in names} <= tests


def test_each_line_of_the_threat_model_names_tests_that_exist() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text()
    rows = re.findall(r"^\| .+ \| .+ \| (.*) \|$", text, re.MULTILINE)
    named = [re.findall(r"`([^`]+)`", row) for row in rows if row != "shown by"]
    assert len(named) > 30
    assert all(named)
    for path, _, name in (test.partition("::") for tests in named for test in tests):
        file = ROOT / "tests" / path
        assert file.exists(), path
        assert not name or re.search(rf"(?:def|class) {name}\b", file.read_text()), name


@pytest.mark.parametrize("page", ["architecture.md", "recipes.md"])
def test_each_path_on_the_map_exists(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    paths = set(re.findall(r"`((?:[\w.]+/)+[\w.]*|\w+\.py)`", text))
    bases = ROOT, PACKAGE, *(PACKAGE / "apis" / name for name in ("", "chat", "responses"))
    bases += (PACKAGE / "apis" / "messages",)
    missing = {path for path in paths if not any((base / path).exists() for base in bases)}
    assert not missing


def test_the_map_stays_one_that_people_read() -> None:
    assert len((ROOT / "docs" / "architecture.md").read_text().split()) <= 1400
