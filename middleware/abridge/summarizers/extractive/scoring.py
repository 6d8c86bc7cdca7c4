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
from operator import mul
from typing import NamedTuple

from abridge.core.segmenter import text_size
from abridge.summarizers.extractive import cues, doubts
from abridge.summarizers.extractive.legibility import is_legible, sign_share
from abridge.summarizers.extractive.openings import leans, refers, strip_connectives, strip_fillers
from abridge.summarizers.extractive.privacy import Privacy
from abridge.summarizers.extractive.sentences import Sentence
from abridge.summarizers.extractive.words import is_wide, share_of, topic_words, word_count

LEADING_CHARS = 24  # in which a cue counts as a sentence's start; a third of it in Chinese
UNSOUND_SCORE = -2.5  # of doubts up to which a sentence is not shown
FIRST_SENTENCES = 4  # sentences at the beginning of all among which the task is stated
CHECKED_SCORE = -1.0  # of doubts about a conclusion after which the next sentence asks on
FEW_WORDS = 7  # of a sentence that tells little
MANY_TOPIC_WORDS = 12  # from which a sentence names as much as any

WEIGHTS = {
    "any": -0.85,  # of every sentence
    "first": 1.2,
    "last": 0.7,
    "draws": 0.65,  # draws a consequence
    "task": 0.65,  # states the task
    "hedges": -0.5,
    "meta": -0.55,  # speaks of the answer's wording
    "short": -0.5,
    "told": -0.5,  # share of its topic words that earlier parts used
    "leans": -0.25,  # cannot be understood without the one before it
    "signs": -0.12,  # much that is no letter
    "names": 0.7,  # number of its topic words
    "size": 0.2,  # in hundreds of characters
}
"""What each trait adds to a sentence's score. See `choosing` for where this comes from."""


@dataclass(slots=True, eq=False)
class Candidate:
    """A sentence that may be copied."""

    position: int  # among all sentences
    text: str  # as it stands alone
    tied: str  # as it follows the sentence before it: with its connective
    size: float  # see `text_size`
    words: frozenset[str]  # its topic words
    told: float  # share of them that earlier parts have used
    score: float
    leans: bool = False  # cannot be understood without the one before it
    bound: bool = False  # reads better after the one before it: with a connective or a pronoun
    concludes: bool = False
    sound: bool = True  # neither question nor thinking aloud nor taken back
    announces: bool = False  # a question or an intention: told with what follows alone
    opens: bool = False  # the first sentence of its paragraph
    is_task: bool = False  # speaks of the task


def score_sentences(
    sentences: Sequence[Sentence], told: frozenset[str], privacy: Privacy
) -> Iterator[Candidate]:
    """Yield the sentences that may be shown, in order. `told` are the words of earlier parts."""
    scorer = _Scorer(sentences, told, privacy)
    kept = [position for position in range(len(sentences)) if not scorer.is_nod(position)]
    for place, (before, position) in enumerate(pairwise([-1, *kept])):
        if (one := scorer.rate(place, before, position)) is not None:
            yield one


class _Verdict(NamedTuple):
    """What a sentence does. See `Candidate`."""

    sound: bool
    announces: bool
    concludes: bool
    is_meta: bool  # speaks of the answer's wording
    is_task: bool


class _Scorer:
    def __init__(
        self,
        sentences: Sequence[Sentence],
        told: frozenset[str],
        privacy: Privacy,
    ) -> None:
        self._sentences = sentences
        self._told = told
        texts = [sentence.text for sentence in sentences]
        self._tied = [strip_fillers(text) for text in texts]
        self._lowered = [text.lower() for text in self._tied]
        self._wide = [is_wide(lower) for lower in self._lowered]
        self._openings = [text[: doubts.OPENING_CHARS].lower() for text in texts]
        self._draws = [doubts.CONSEQUENCE.match(lower) is not None for lower in self._lowered]
        self._words = [topic_words(lower) for lower in self._lowered]
        self._hidden = _find_hidden(sentences, privacy)
        self._blocks = [sentence.block for sentence in sentences]
        self._closes = [one != following for one, following in pairwise([*self._blocks, -1])]

    def is_nod(self, position: int) -> bool:
        """Return true for a sentence that says nothing, as if it were not there."""
        lower = self._lowered[position]
        asked = position and self._lowered[position - 1].endswith(("?", '?"'))
        is_fragment = doubts.FRAGMENT.fullmatch(lower) and not (asked or self._draws[position])
        return bool(is_fragment) or doubts.is_nod(lower)

    def rate(self, place: int, before: int, position: int) -> Candidate | None:
        """Return a sentence with its score, or None if it may not be shown. `place` is its number
        without those that only nod, `before` the position of the last of them."""
        sentence, tied = self._sentences[position], self._tied[position]
        if self._hidden[position] or not is_legible(tied):
            return None
        text, words, opens = (
            strip_connectives(tied),
            self._words[position],
            self._opens(before, position),
        )
        found = self._judge(position, opens=opens)
        shown = found.sound or found.announces
        one = Candidate(
            position=place,
            text=text,
            tied=tied,
            size=text_size(text),
            words=words,
            told=share_of(words, self._told),
            score=0.0,
            leans=shown and (sentence.hangs or leans(text)),
            bound=shown and (text != tied or (not opens and refers(text))),
            concludes=found.concludes,
            sound=found.sound,
            announces=found.announces,
            opens=opens and not sentence.hangs,
            is_task=found.is_task,
        )
        traits = self._traits(one, position, is_meta=found.is_meta)
        one.score = sum(map(mul, WEIGHTS.values(), traits))
        return one

    def _judge(self, position: int, *, opens: bool) -> _Verdict:
        lower, wide = self._lowered[position], self._wide[position]
        is_early = position < FIRST_SENTENCES and not self._told
        is_task = is_early and cues.TASK.search(lower, wide=wide) is not None
        own, following = self._score_doubts(position, is_task=is_task)
        sound = own + following > UNSOUND_SCORE
        is_meta, concludes = self._find_cues(position) if sound else (False, False)
        sound &= not is_meta or concludes or is_early
        asks_early = is_early and lower.endswith(("?", "？"))
        announces = False
        if not sound and (asks_early or not following):  # else it is taken back at once
            names = len(self._words[position] - doubts.TASK_WORDS) > 1
            ponders = names and opens and own > doubts.NO_SCORE
            announces = ponders or doubts.announces(lower)
        return _Verdict(sound, announces, concludes, is_meta, is_task)

    def _traits(self, one: Candidate, position: int, *, is_meta: bool) -> tuple[float, ...]:
        """Return what `WEIGHTS` weigh, in their order."""
        lower, wide = self._lowered[position], self._wide[position]
        return (
            1.0,
            one.position == 0,
            position + 1 == len(self._sentences),
            self._draws[position],
            one.is_task,
            cues.HEDGE.search(lower, wide=wide) is not None,
            is_meta,
            word_count(one.text, wide=wide) < FEW_WORDS,
            one.told,
            one.leans,
            sign_share(one.text, wide=wide),
            min(len(one.words), MANY_TOPIC_WORDS) / MANY_TOPIC_WORDS,
            one.size / 100,
        )

    def _opens(self, before: int, position: int) -> bool:
        """Return true for the first sentence of a paragraph that has others."""
        block = self._sentences[position].block
        begins = before < 0 or self._blocks[before] != block
        is_alone = self._closes[position] and position + 1 < len(self._sentences)
        return begins and not is_alone

    def _score_doubts(self, position: int, *, is_task: bool) -> tuple[float, float]:
        """Score the doubts about a sentence: its own, and those that the next one begins with."""
        lower = self._lowered[position]
        if is_task:
            return doubts.score_own(lower, lower), 0.0
        own = doubts.score_own(lower, self._openings[position])
        if position + 1 == len(self._openings):
            return own, 0.0
        following = doubts.score_following(self._openings[position + 1])
        if following == doubts.SECOND_THOUGHT_SCORE and self._settles(position):
            following = CHECKED_SCORE
        return own, following

    def _settles(self, position: int) -> bool:
        """Return true for a consequence that ends its paragraph or is followed by a question."""
        return self._draws[position] and (
            self._closes[position] or self._lowered[position + 1].endswith(("?", "？"))
        )

    def _find_cues(self, position: int) -> tuple[bool, bool]:
        """Return whether a sentence speaks of the answer's wording, and whether it concludes."""
        lower, wide = self._lowered[position], self._wide[position]
        is_meta = cues.META.search(lower, wide=wide) is not None
        found = None if is_meta else cues.CONCLUSION.search(lower, wide=wide)
        leading_chars = LEADING_CHARS // 3 if wide else LEADING_CHARS
        leads = found is not None and found.start() < leading_chars
        return is_meta, leads or self._settles(position)


def _find_hidden(sentences: Sequence[Sentence], privacy: Privacy) -> list[bool]:
    """Mark the sentences that may not be shown, and with one the whole quotation it opens."""
    hidden, quoted = [], False
    for sentence in sentences:
        private = quoted or privacy.covers(sentence.text)
        quoted = private and quoted ^ (sentence.text.count('"') % 2 == 1)
        hidden.append(private)
    return hidden
