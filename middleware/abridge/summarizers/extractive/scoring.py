"""Score how much a sentence tells a reader, and whether it may be shown at all.

What raises a score: words that announce a conclusion, a decision or a finding, words that other
sentences use too, news beside what earlier parts told. What lowers it: doubts, thinking aloud,
suppositions, remarks about the answer's wording, digits and symbols in place of words. The next
sentence counts too: if it takes this one back ("Wait, no"), this one is hardly worth showing.
Sentences that hold a secret, code or half a formula are no candidates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from abridge.core.plan import Passage
from abridge.core.segmenter import text_size
from abridge.core.styles import ExtractRules
from abridge.summarizers.extractive import cues, doubts
from abridge.summarizers.extractive.legibility import is_legible, score_form
from abridge.summarizers.extractive.openings import leans, strip_connectives, strip_fillers
from abridge.summarizers.extractive.privacy import Privacy
from abridge.summarizers.extractive.sentences import Sentence
from abridge.summarizers.extractive.words import is_wide, share_of, topic_words, words_of

LEADING_CHARS = 24  # in which a cue counts as a sentence's start; a third of it in Chinese
UNSOUND_SCORE = -2.5  # of doubts from which a sentence is shown only if there is nothing else
FIRST_SCORE = 2.5  # for the first sentence of all, which mostly says what the task is
FIRST_SENTENCES = 4  # sentences at the beginning of all among which the task is stated
END_SCORE = 0.8  # for the two sentences at the end of all
ANSWER_SCORE = 3.0  # for a sentence that the reasoning itself marks as the answer
SUPPOSED_SCORE = -1.5  # for what is tried out, and what follows on what may not be shown
DISMISSED_SCORE = -4.0  # for a paragraph that ends with "Not needed" or the like
ANNOUNCING_SCORE = -0.5  # for a question or an intention, in place of all doubts
TOLD_SCORE = -4.0  # for the share of its words beyond half that earlier parts have used
STATING_SCORE = -0.5  # from which a sentence may state the task
META_ONLY = -2.0  # score of the cues up to which a sentence is about the answer's wording alone
_TASK_WORDS = words_of("answer figure parse problem puzzle question riddle solve step task")

_CUE_SCORES = ((cues.CONCLUSION, 3.0), (cues.DECISION, 2.0), (cues.FINDING, 1.0))


@dataclass(slots=True, eq=False)
class Candidate:
    """A sentence that may be copied."""

    position: int  # among all sentences
    text: str  # as it stands alone
    tied: str  # as it follows the sentence before it: with its connective
    size: float  # see `text_size`
    leans: bool  # cannot be understood without the one before it; only looked for in sound ones
    words: frozenset[str]  # its topic words
    told: float  # share of them that earlier parts have used
    concludes: bool
    sound: bool  # neither question nor thinking aloud nor taken back
    opens: bool  # the first sentence of its paragraph
    block: int  # the number of its paragraph
    turned: bool  # the sentence after it turns against it
    score: float
    announces: bool = False  # a question or an intention: told with what follows alone
    tentative: bool = False  # not sound, but told where there is little else
    states: bool = False  # tells something, so an extract may open with it
    is_task: bool = False  # speaks of the task
    asks: bool = False  # a question
    withdrawn: float = 0.0  # what it scores less because the next sentence takes it back


def score_sentences(
    sentences: Sequence[Sentence],
    passage: Passage,
    rules: ExtractRules,
    told: frozenset[str],
    privacy: Privacy,
) -> Iterator[Candidate]:
    """Yield the sentences that may be shown, in order. `told` are the words of earlier parts."""
    scorer = _Scorer(sentences, passage, rules, told, privacy)
    kept = [position for position in range(len(sentences)) if not scorer.is_nod(position)]
    for place, (before, position) in enumerate(pairwise([-1, *kept])):
        one = scorer.rate(position, place, before)
        if one is not None:
            yield one


class _Scorer:
    def __init__(
        self,
        sentences: Sequence[Sentence],
        passage: Passage,
        rules: ExtractRules,
        told: frozenset[str],
        privacy: Privacy,
    ) -> None:
        self._sentences = sentences
        self._is_last = passage.last
        self._rules = rules
        self._told = told
        texts = [sentence.text for sentence in sentences]
        self._tied = [strip_fillers(text) for text in texts]
        self._lowered = [text.lower() for text in self._tied]
        self._wide = [is_wide(lower) for lower in self._lowered]
        self._openings = [text[: doubts.OPENING_CHARS].lower() for text in texts]
        self._begins = [doubts.BEGINNING.match(lower) is not None for lower in self._lowered]
        self._words = [topic_words(lower) for lower in self._lowered]
        counts = Counter(chain.from_iterable(self._words))
        self._word_scores = {word: count - 1 if count < 5 else 4 for word, count in counts.items()}
        self._hidden = _find_hidden(sentences, privacy)
        raised = {
            sentence.block
            for sentence, opening in zip(sentences, self._openings, strict=True)
            if "issue:" in opening
        }
        self._dismissed = {
            sentence.block
            for sentence, lower, begins in zip(sentences, self._lowered, self._begins, strict=True)
            if begins
            and (
                doubts.DISMISSAL.fullmatch(lower)
                or (sentence.block in raised and doubts.SHRUG.fullmatch(lower))
            )
        }
        blocks = [sentence.block for sentence in sentences]
        self._closes = [one != next_one for one, next_one in pairwise([*blocks, -1])]  # a paragraph
        self._supposing: int | None = None  # the block in which something is tried out
        self._is_first = not told  # nothing was said yet

    def is_nod(self, position: int) -> bool:
        """Return true for a sentence that says nothing, as if it were not there."""
        return self._begins[position] and doubts.is_nod(self._lowered[position])

    def rate(self, position: int, place: int, before: int) -> Candidate | None:
        """Return the next sentence with its score, or None if it may not be shown. `place` is its
        number without those that only nod, `before` the position of the last that does not."""
        supposed = self._is_supposed(position)
        tied, lower, words = self._tied[position], self._lowered[position], self._words[position]
        if self._hidden[position] or not is_legible(tied):
            return None
        text, wide = strip_connectives(tied), self._wide[position]
        own, following = self._score_doubts(position, wide=wide)
        doubt = own + following
        sound = doubt > UNSOUND_SCORE
        waved_off = following < 0 and self.is_nod(position + 1)
        announces = doubts.announces(lower) and not waved_off
        if announces and not sound:
            doubt = ANNOUNCING_SCORE
        score, concludes = self._score_cues(position, wide=wide) if sound else (0.0, False)
        is_meta = score <= META_ONLY and not concludes
        is_note = is_meta and not self._is_early(position)
        sound &= not is_note
        sentence = self._sentences[position]
        score += doubt + score_form(text, sentence, wide=wide) + self._score_theme(words)
        score += self._score_place(position, late=score > 0, concludes=concludes)
        score += SUPPOSED_SCORE * supposed + DISMISSED_SCORE * (sentence.block in self._dismissed)
        if sound and self._is_first and position < FIRST_SENTENCES:
            self._is_first = False
            score += FIRST_SCORE
        told = share_of(words, self._told)
        score += TOLD_SCORE * max(0.0, told - 0.5)
        if announces and not sound and told < 0.5:
            score = max(score, ANNOUNCING_SCORE)
        return Candidate(
            position=place,
            text=text,
            tied=tied,
            size=text_size(text),
            leans=own > doubts.NO_SCORE and leans(text),
            words=words,
            told=told,
            concludes=concludes,
            sound=sound,
            opens=self._opens(position, before),
            block=sentence.block,
            turned=self._begins_with(doubts.CONTRAST, position + 1),
            score=score,
            announces=announces,
            tentative=own > doubts.NO_SCORE and not is_note and not waved_off,
            states=sound and score > STATING_SCORE and len(words - _TASK_WORDS) > 1,
            is_task=self._is_early_task(position, wide=wide),
            asks=announces and lower[-1] in "?？",
            withdrawn=min(0.0, following),
        )

    def _opens(self, position: int, before: int) -> bool:
        """Return true for the first of the sentences of a paragraph."""
        block = self._sentences[position].block
        is_alone = self._closes[position] and position + 1 < len(self._sentences)
        return not is_alone and (before < 0 or self._sentences[before].block != block)

    def _begins_with(self, pattern: re.Pattern[str], position: int) -> bool:
        return (
            position < len(self._begins)
            and self._begins[position]
            and pattern.match(self._lowered[position]) is not None
        )

    def _is_supposed(self, position: int) -> bool:
        """Return true while something is tried out: until the paragraph ends or concludes."""
        lower, block = self._lowered[position], self._sentences[position].block
        if self._begins_with(doubts.HYPOTHESIS, position):
            self._supposing = block
        elif self._supposing == block:
            found = cues.CONCLUSION.search(lower, wide=self._wide[position])
            if found is not None and found.start() < 4:
                self._supposing = None
        return self._supposing == block

    def _score_doubts(self, position: int, *, wide: bool) -> tuple[float, float]:
        """Score the doubts about a sentence: its own, and those that the next one begins with."""
        lower = self._lowered[position]
        if self._is_early_task(position, wide=wide):
            return doubts.score_own(lower, lower), 0.0
        following = "".join(self._openings[position + 1 : position + 2])
        own = doubts.score_own(lower, self._openings[position], begins=self._begins[position])
        return own, doubts.score_following(following)

    def _is_early(self, position: int) -> bool:
        """Return true for a sentence among which the task is stated."""
        return position < FIRST_SENTENCES and not self._told

    def _is_early_task(self, position: int, *, wide: bool) -> bool:
        lower = self._lowered[position]
        return self._is_early(position) and cues.TASK.search(lower, wide=wide) is not None

    def _score_cues(self, position: int, *, wide: bool) -> tuple[float, bool]:
        """Score the cues, in full at the start of the sentence, half elsewhere; also return whether
        it concludes."""
        lower = self._lowered[position]
        starts = cues.find_cues(lower, wide=wide)
        is_meta, is_plan = cues.META in starts, cues.PLAN in starts
        score = -2.5 * is_meta - 0.5 * is_plan
        score -= 1.0 * (cues.HEDGE in starts)
        draws = self._begins_with(doubts.CONSEQUENCE, position)
        score += 0.7 * draws + 0.5 * self._begins_with(doubts.CONTRAST, position)
        is_answer = self._sentences[position].is_answer
        concludes = is_answer or (draws and self._closes[position])
        score += ANSWER_SCORE * is_answer
        task_score = -0.5 if self._told else self._rules.task_score
        leading_chars = LEADING_CHARS // 3 if wide else LEADING_CHARS
        for cue, cue_score in (*_CUE_SCORES, (cues.TASK, task_score)) if starts else ():
            if cue not in starts or (cue is cues.DECISION and (is_meta or is_plan)):
                continue
            leading = starts[cue] < leading_chars
            score += cue_score * (1.0 if leading else 0.5) * (0.2 if is_meta else 1.0)
            if cue is cues.CONCLUSION and not concludes:
                concludes = not is_meta and (leading or cues.ANSWER in starts)
        return score, concludes

    def _score_theme(self, words: frozenset[str]) -> float:
        """Score up to 1.5 for topic words that other sentences use too."""
        if len(words) < 2:
            return -1.0
        shared = sum(map(self._word_scores.__getitem__, words))
        return min(1.5, shared / (4 + len(words)))

    def _score_place(self, position: int, *, late: bool, concludes: bool) -> float:
        """Score a late position, where that is of interest, and the end of all."""
        sentence, count = self._sentences[position], len(self._sentences)
        score = 0.0
        if late and not sentence.hangs:
            late_score = self._rules.late_score * (2.0 if self._is_last and concludes else 1.0)
            score += late_score * (position / count) ** 2
        if self._is_last and position > count - 3:
            score += END_SCORE
        if position and self._hidden[position - 1]:
            score += SUPPOSED_SCORE
        return score


def _find_hidden(sentences: Sequence[Sentence], privacy: Privacy) -> list[bool]:
    """Mark the sentences that may not be shown, and with one the whole quotation it opens."""
    hidden, quoted = [], False
    for sentence in sentences:
        private = quoted or privacy.covers(sentence.text)
        quoted = private and quoted ^ (sentence.text.count('"') % 2 == 1)
        hidden.append(private)
    return hidden
