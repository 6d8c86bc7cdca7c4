"""Score how much a sentence tells a reader, and whether it may be shown at all.

A score adds up weighted traits: where the sentence stands, whether it concludes, how much it names.
What raises doubts about it, in itself or in what follows ("Wait, no"), decides whether it is sound.
Sentences that hold a secret, code or half a formula are no candidates.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from abridge.core.segmenter import text_size
from abridge.summarizers.extractive import doubts
from abridge.summarizers.extractive.blocks import Sentence
from abridge.summarizers.extractive.conclusions import concludes
from abridge.summarizers.extractive.legibility import is_legible
from abridge.summarizers.extractive.openings import CONNECTIVES, leans, strip
from abridge.summarizers.extractive.reading import Reading
from abridge.summarizers.extractive.words import word_count

FEW_WORDS = 7  # of a sentence that tells little
MANY_TOPIC_WORDS = 12  # from which a sentence names as much as any
_SPEAKS = re.compile(r"i(?<!\wi)(?:ch)?(?=['’ ])")  # in the first person; fast to find
_DIGIT = re.compile(r"\d")


@dataclass(slots=True, eq=False)
class Candidate:
    """A sentence that may be copied."""

    position: int  # among all sentences but those that only nod
    text: str  # as it stands alone
    tied: str  # as it follows the sentence before it: with its connective
    size: float  # see `text_size`
    words: frozenset[str]  # its topic words
    told: float  # share of them that earlier parts have used
    score: float = 0.0
    leans: bool = False  # cannot be understood without the one before it
    concludes: bool = False
    sound: bool = True  # neither question nor thinking aloud nor taken back
    asks: bool = False  # a question: told with what follows alone


def score_sentences(
    sentences: Sequence[Sentence], told: frozenset[str], private: Collection[str]
) -> Iterator[Candidate]:
    """Yield the sentences that may be shown, in order. `told` are the words of earlier parts,
    `private` are sentences that may not be shown."""
    readings = [Reading(sentence) for sentence in sentences]
    for read, following in pairwise(readings):
        read.following = following
    place, asked = 0, False
    for sentence, read in zip(sentences, readings, strict=True):
        if not doubts.is_nod(read, asked=asked):
            if sentence.text not in private and is_legible(read.text):
                yield _rate(read, place, told)
            place += 1
        asked = read.asks


def _rate(read: Reading, place: int, told: frozenset[str]) -> Candidate:
    """Return a sentence with its score. `place` is its number without those that only nod."""
    text = strip(read.text, CONNECTIVES.match(read.lower))
    share = len(read.topics & told) / max(1, len(read.topics))
    one = Candidate(place, text, read.text, text_size(text), read.topics, share)
    taken_back = doubts.is_taken_back(read, is_first=not (place or told))
    one.sound = not (taken_back or doubts.is_doubtful(read))
    one.asks = not (one.sound or taken_back) and doubts.names_a_question(read)
    if one.sound or one.asks or not told:
        one.concludes = one.sound and concludes(read)
        one.leans = read.hangs or leans(text)
        one.score = _score(one, read)
    return one


def _score(one: Candidate, read: Reading) -> float:
    """Add up what each trait is worth. See `choosing` for where the weights come from."""
    return (
        -0.85
        + 1.2 * (one.position == 0)
        + 0.65 * read.draws
        + 0.5 * one.concludes
        + 0.5 * (bool(read.numbers) and _DIGIT.search(one.text) is not None)
        - 0.4 * (_SPEAKS.search(read.lower) is not None)
        - 0.5 * (word_count(one.text, FEW_WORDS, wide=read.wide) < FEW_WORDS)
        - 0.5 * one.told
        + 0.7 * min(len(one.words) / MANY_TOPIC_WORDS, 1.0)
        + 0.2 * (one.size / 100)
    )
