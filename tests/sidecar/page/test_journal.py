"""Test the journal: it keeps the last exchanges without their content."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from abridge.core.usage import Tokens
from abridge.observability.record import Record, ShownPart, SummarizerCall
from abridge.sidecar.page.journal import MAX_EXCHANGES, MAX_MODEL_CHARS, MAX_TIMINGS, Journal


def record(number: int = 0, **more: object) -> Record:
    made = Record(f"id-{number}", 1000.0 + number, 0.0, api="responses", model="m")
    for name, value in more.items():
        setattr(made, name, value)
    return made


def test_the_last_exchanges_are_kept_newest_first() -> None:
    journal = Journal()
    for number in range(MAX_EXCHANGES + 7):
        journal.add(record(number))
    listed = [(entry["number"], entry["at"]) for entry in journal.newest_first()]
    assert listed == [(number, 1000.0 + number) for number in range(MAX_EXCHANGES + 6, 6, -1)]


def test_a_request_id_finds_its_exchange_and_is_never_listed() -> None:
    journal = Journal()
    for number in range(3):
        journal.add(record(number))
    (found,) = journal.newest_first("id-1")
    assert found["at"] == 1001.0
    assert journal.newest_first("id") == journal.newest_first("") == []
    assert "id-" not in json.dumps(journal.newest_first())


def test_a_request_to_no_api_is_not_listed() -> None:
    journal = Journal()
    journal.add(record(api=None))
    assert journal.newest_first() == []


def test_an_entry_has_times_and_counts_as_json() -> None:
    journal = Journal()
    journal.add(
        record(
            engaged=True,
            style="auto",
            held_seconds=0.5,
            thinking=(0.1, 2.0),
            answer=(2.5, 3.0),
            seconds=3.1,
            upstream_tokens=Tokens(1, 2, 3, reasoning=2),
            summarizer_tokens=Tokens(4, 5, 9),
            summaries=Counter(ok=1),
            calls=[SummarizerCall(0, 1.0, 1.5, "ok")],
            parts=[ShownPart(1.1, 1.5)],
        )
    )
    listed = json.loads(json.dumps(journal.newest_first()))[0]
    assert listed["thinking"] == [0.1, 2.0]
    assert listed["answer"] == [2.5, 3.0]
    assert listed["held"] == 0.5
    assert listed["used"] == {"input": 1, "output": 2, "total": 3}
    assert listed["spent"] == {"input": 4, "output": 5, "total": 9}
    assert listed["calls"] == [{"part": 0, "began": 1.0, "ended": 1.5, "outcome": "ok"}]
    assert listed["parts"] == [{"began": 1.1, "ended": 1.5}]
    assert listed["summaries"] == {"ok": 1}


@pytest.mark.parametrize(
    ("more", "held"),
    [
        ({"style": "auto", "answer": (1.0, 2.0)}, 0.0),
        ({"style": "auto", "answer": None, "held_seconds": 0.5}, 0.5),
        ({"style": "auto", "answer": None}, None),
        ({"style": "off", "answer": (1.0, 2.0)}, None),
    ],
)
def test_held_time_is_unknown_without_an_answer_or_a_summary_due(
    more: dict[str, Any], held: float | None
) -> None:
    journal = Journal()
    journal.add(record(engaged=True, **more))
    assert journal.newest_first()[0]["held"] == held


def test_an_entry_has_a_bounded_size() -> None:
    journal = Journal()
    many = [ShownPart(float(number)) for number in range(10_000)]
    journal.add(record(model="m" * 10_000, parts=many))
    listed = journal.newest_first()[0]
    assert len(listed["model"]) == MAX_MODEL_CHARS
    assert len(listed["parts"]) == MAX_TIMINGS
