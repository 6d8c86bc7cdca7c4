"""Test who reviews, by the settings."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from abridge.config.settings import Settings
from abridge.errors import SettingsError
from abridge.middleware import AbridgeMiddleware
from abridge.summarizers.review import Reviewer, select_reviewer
from tests.support.upstream import Upstream

ENDPOINT = {"kind": "moderations", "base_url": "http://guard.example/v1"}


class Recording(httpx.MockTransport):
    """A moderation endpoint that passes everything."""

    def __init__(self) -> None:
        self.seen: list[httpx.Request] = []
        self.closed = False
        super().__init__(self._answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        return httpx.Response(200, json={"results": [{"flagged": False}]})

    async def aclose(self) -> None:
        self.closed = True


async def pass_all(text: str) -> str | None:
    return text


def select(review: Any = None, override: Any = None, **tables: Any) -> Reviewer | None:
    settings = Settings.model_validate({"review": review or {}, **tables})
    return select_reviewer(settings, override)


def test_without_one_nothing_is_reviewed() -> None:
    assert select() is None


def test_one_in_python_shares_the_summarizers_time_and_shows_nothing_where_it_fails() -> None:
    assert select(override=pass_all) == Reviewer(pass_all, None)


@pytest.mark.parametrize("on_flag", ["withhold", "stop"])
@pytest.mark.parametrize("on_failure", ["show", "withhold"])
def test_an_endpoint_has_a_time_of_its_own(on_flag: str, on_failure: str) -> None:
    more = {"on_flag": on_flag, "on_failure": on_failure, "timeout": 1.5}
    reviewer = select({**ENDPOINT, **more})
    assert reviewer is not None
    assert reviewer.timeout == 1.5
    assert reviewer.stops_on_flag == (on_flag == "stop")
    assert reviewer.shows_on_failure == (on_failure == "show")


def test_by_default_what_cannot_be_checked_is_withheld() -> None:
    reviewer = select(ENDPOINT)
    assert reviewer is not None
    assert (reviewer.stops_on_flag, reviewer.shows_on_failure) == (False, False)


async def test_its_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARD_KEY", "sk-guard")
    settings = Settings.model_validate({"review": {**ENDPOINT, "api_key_env": "GUARD_KEY"}})
    transport = Recording()
    reviewer = select_reviewer(settings, None, transport)
    assert reviewer is not None
    assert await reviewer.review("So it is.") == "So it is."
    assert transport.seen[0].headers["authorization"] == "Bearer sk-guard"
    assert "sk-guard" not in repr(reviewer)
    await reviewer.aclose()
    assert transport.closed


def test_a_missing_key_stops_the_start() -> None:
    message = r"review.api_key_env: neither the variable \w+, which it names"
    with pytest.raises(SettingsError, match=message):
        select({**ENDPOINT, "api_key_env": "NOT_SET"})


def test_two_reviews_exclude_each_other() -> None:
    with pytest.raises(
        SettingsError, match=r"review.kind: 'moderations' cannot be combined with a review"
    ):
        select(ENDPOINT, pass_all)


@pytest.mark.parametrize(
    "tables",
    [
        {"summary": {"on_failure": "extract"}},
        {"upstreams": [{"name": "a"}, {"name": "b", "summary": {"on_failure": "extract"}}]},
    ],
)
def test_nothing_may_step_in_for_what_a_review_withholds(tables: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=r"summary.on_failure: 'extract' would show sentences"):
        AbridgeMiddleware(Upstream(), Settings.model_validate(tables), review=pass_all)
