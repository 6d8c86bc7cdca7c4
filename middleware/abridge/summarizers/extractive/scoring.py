"""Score how much a sentence tells a reader, and whether it may be shown at all.

A score adds up weighted traits: where the sentence stands, what it does (conclude, state the task,
guess, speak of the answer's wording), how much it names. What raises doubts about it, in itself or
in what follows ("Wait, no"), decides whether it is sound. Sentences that hold a secret, code or
half a formula are no candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from abridge.core.segmenter import text_size
from abridge.summarizers.extractive import cues, doubts
from abridge.summarizers.extractive.legibility import is_legible, sign_share
from abridge.summarizers.extractive.openings import CONNECTIVES, PRONOUNS, leans, strip
from abridge.summarizers.extractive.privacy import Privacy
from abridge.summarizers.extractive.reading import Reading
from abridge.summarizers.extractive.sentences import Sentence
from abridge.summarizers.extractive.words import WORD, share_of, word_count

LEADING_CHARS = 24  # in which a cue counts as a sentence's start; a third of it in Chinese
FIRST_SENTENCES = 4  # sentences at the beginning of all among which the task is stated
FEW_WORDS = 7  # of a sentence that tells little
MANY_TOPIC_WORDS = 12  # from which a sentence names as much as any


@dataclass(slots=True, eq=False)
class Candidate:
    """A sentence that may be copied."""

    position: int  # among all sentences
    text: str  # as it stands alone
    tied: str  # as it follows the sentence before it: with its connective
    size: float  # see `text_size`
    words: frozenset[str]  # its topic words
    told: float  # share of them that earlier parts have used
    score: float = 0.0
    leans: bool = False  # cannot be understood without the one before it
    bound: bool = False  # reads better after the one before it: with a connective or a pronoun
    concludes: bool = False
    sound: bool = True  # neither question nor thinking aloud nor taken back
    announces: bool = False  # a question or an intention: told with what follows alone
    opens: bool = False  # the first sentence of its paragraph
    is_task: bool = False  # speaks of the task


def score_sentences(
    sentences: Sequence[Sentence], told: frozenset[str], hidden: Sequence[bool]
) -> Iterator[Candidate]:
    """Yield the sentences that may be shown, in order. `told` are the words of earlier parts,
    `hidden` says which are private."""
    readings = [Reading(sentence, position) for position, sentence in enumerate(sentences)]
    for read, following in pairwise(readings):
        read.following = following
    place, before, asked = 0, None, False
    for read, private in zip(readings, hidden, strict=True):
        if not doubts.is_nod(read, asked=asked):
            if not private and is_legible(read.text):
                yield _rate(read, place, before, told)
            place, before = place + 1, read
        asked = read.asks


def _rate(read: Reading, place: int, before: Reading | None, told: frozenset[str]) -> Candidate:
    """Return a sentence with its score. `place` is its number without those that only nod, `before`
    the last of them."""
    text = strip(read.text, CONNECTIVES.match(read.lower))
    words = read.topics
    one = Candidate(place, text, read.text, text_size(text), words, share_of(words, told))
    opens, hangs = read.opens(before), read.hangs
    is_early = read.position < FIRST_SENTENCES and not told
    is_meta = _judge(one, read, opens=opens, is_early=is_early)
    one.opens = opens and not hangs
    if one.sound or one.announces:
        one.leans = hangs or leans(text, read.hints)
        one.bound = text != read.text or (not opens and PRONOUNS.is_in(text, read.hints))
    elif told:  # then it is not shown
        return one
    one.score = _score(one, read, is_meta=is_meta)
    return one


def _judge(one: Candidate, read: Reading, *, opens: bool, is_early: bool) -> bool:
    """Find out what a sentence does; return whether it speaks of the answer's wording."""
    one.is_task = is_early and cues.TASK.is_in(read.lower, read.hints, wide=read.wide)
    taken_back = not one.is_task and doubts.is_taken_back(read)
    is_meta = False
    one.sound = not (taken_back or doubts.is_doubtful(read, is_task=one.is_task))
    if one.sound:
        is_meta = cues.META.is_in(read.lower, read.hints, wide=read.wide)
        start = LEADING_CHARS // 3 if read.wide else LEADING_CHARS
        one.concludes = read.settles or (
            not is_meta
            and cues.CONCLUSION.is_in(read.lower, read.hints, wide=read.wide, within=start)
        )
        one.sound = not is_meta or one.concludes or is_early
    if not one.sound and (not taken_back or (is_early and read.text[-1] in "?？")):
        names = len(read.topics - doubts.TASK_WORDS) > 1
        ponders = names and opens and not doubts.tells_nothing(read)
        one.announces = ponders or doubts.announces(read)
    return is_meta


def _score(one: Candidate, read: Reading, *, is_meta: bool) -> float:
    """Add up what each trait is worth. See `choosing` for where the weights come from."""
    connective = one.tied[: len(one.tied) - len(one.text)]
    words = read.words[len(WORD.findall(connective)) :] if connective else read.words
    return (
        -0.85
        + 1.2 * (one.position == 0)
        + 0.7 * (read.following is None)
        + 0.65 * read.draws
        + 0.65 * one.is_task
        - 0.5 * cues.HEDGE.is_in(read.lower, read.hints, wide=read.wide)
        - 0.55 * is_meta
        - 0.5 * (word_count(one.text, FEW_WORDS, wide=read.wide) < FEW_WORDS)
        - 0.5 * one.told
        - 0.25 * one.leans
        - 0.12 * sign_share(one.text, words, wide=read.wide)
        + 0.7 * min(len(one.words) / MANY_TOPIC_WORDS, 1.0)
        + 0.2 * (one.size / 100)
    )


def find_hidden(sentences: Sequence[Sentence], privacy: Privacy) -> Iterator[bool]:
    """Mark the sentences that may not be shown, and with one the whole quotation it opens."""
    quoted = False
    for sentence in sentences:
        private = quoted or privacy.covers(sentence.text)
        quoted = private and quoted ^ (sentence.text.count('"') % 2 == 1)
        yield private
