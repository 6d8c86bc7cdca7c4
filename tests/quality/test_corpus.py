"""The corpus itself: what the manifest says of each text is in that text."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.quality import corpus
from tests.quality.corpus import Reasoning
from tests.quality.run import REQUESTS
from tests.support.shared import SHARED

REASONINGS = corpus.load()

each = pytest.mark.parametrize("reasoning", REASONINGS, ids=lambda one: one.name)


def test_every_text_has_an_entry() -> None:
    texts = {path.stem for path in corpus.OWN.glob("*.txt")}
    assert texts == {one.name for one in REASONINGS}
    assert len(texts) == len(REASONINGS)


def test_it_has_several_languages_and_kinds() -> None:
    languages = Counter(one.language for one in REASONINGS)
    assert languages.keys() >= {"en", "de", "zh", "ja", "fr", "es"}
    assert len({one.kind for one in REASONINGS}) >= 10


@each
def test_what_a_reader_must_learn_is_there_to_learn(reasoning: Reasoning) -> None:
    patterns = (*reasoning.key, *reasoning.final, *reasoning.secret)
    assert [one.pattern for one in patterns if not one.search(reasoning.prose)] == []


@each
def test_its_user_speaks_its_language(reasoning: Reasoning) -> None:
    assert reasoning.language in REQUESTS


@each
def test_it_says_what_a_summary_must_say(reasoning: Reasoning) -> None:
    assert len(reasoning.key) >= 3
    assert reasoning.final


@pytest.mark.skipif(
    not (SHARED / "reasoning").is_dir(), reason=f"no other reasonings at {SHARED / 'reasoning'}"
)
def test_another_folder_is_read_alike() -> None:
    others = corpus.load(SHARED / "reasoning")
    assert len(others) > 20
    assert all(one.text and one.key for one in others)
    assert {one.name for one in others}.isdisjoint(one.name for one in REASONINGS)
