"""Two scenes of chaos, short, and that the table tells what was wrong."""

from __future__ import annotations

import pytest

from tests.campaigns import chaos
from tests.campaigns.chaos import Result, judge
from tests.campaigns.scenes import Scene
from tests.campaigns.traffic import Tally

SHORT = ("--seconds", "1", "--rate", "8")


@pytest.mark.parametrize(
    "name", [pytest.param("upstream-killed", marks=pytest.mark.repeat), "summarizer-lying"]
)
def test_it_is_well_again_after(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert chaos.main(["--only", name, *SHORT]) == 0
    assert name in capsys.readouterr().out


class TestVerdict:
    def test_what_must_not_be_noticed_is(self) -> None:
        tally = Tally()
        tally.kinds.update(["ok", "502"])
        assert judge(Scene(None, bears=True), Result("x", tally, recovery=0.0)) == [  # type: ignore[arg-type]
            "users noticed: {'ok': 1, '502': 1}"
        ]

    def test_it_never_becomes_well(self) -> None:
        assert judge(Scene(None), Result("x")) == ["it was not well again within 30 s"]  # type: ignore[arg-type]
        assert "never" in Result("x").row()

    def test_a_request_takes_too_long(self) -> None:
        result = Result("x", Tally(seconds=[21.0]), recovery=0.0)
        assert judge(Scene(None), result) == ["a request took 21.0 s"]  # type: ignore[arg-type]
