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
from abridge.summarizers.extractive import cues, doubts
from abridge.summarizers.extractive.legibility import is_legible, score_form
from abridge.summarizers.extractive.openings import leans, refers, strip_connectives, strip_fillers
from abridge.summarizers.extractive.privacy import Privacy
from abridge.summarizers.extractive.sentences import Sentence
from abridge.summarizers.extractive.words import is_wide, share_of, topic_words

LEADING_CHARS = 24  # in which a cue counts as a sentence's start; a third of it in Chinese
UNSOUND_SCORE = -2.5  # of doubts up to which a sentence is not shown
FIRST_SCORE = 2.5  # for the first sentence of all, which mostly says what the task is
FIRST_SENTENCES = 4  # sentences at the beginning of all among which the task is stated
ANSWER_SCORE = 3.0  # for a sentence that the reasoning itself marks as the answer
LATE_SCORE = 0.5  # for the end of a stretch, beside its start
TRIED_SCORE = -1.5  # for what is tried out or looked at again, and what follows on what is hidden
CHECKED_SCORE = -1.0  # of doubts about a conclusion after which the next sentence asks on
CONSEQUENCE_FORM = -1.0  # the least score of a consequence's form: it may be short, or a sum
ANNOUNCING_SCORE = -0.5  # for a question or an intention
STATING_SCORE = -0.5  # from which a sentence may state the task
META_ONLY = -2.0  # score of the cues up to which a sentence is about the answer's wording alone

_CUE_SCORES = ((cues.CONCLUSION, 3.0), (cues.DECISION, 2.0), (cues.FINDING, 1.0))
TASK_SCORE, LATER_TASK_SCORE = 2.0, -0.5  # for stating the task, first and where it was told


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
    tentative: bool = False  # thought aloud, and told where there is little else
    opens: bool = False  # the first sentence of its paragraph
    closes: bool = False  # the last one that may be shown
    block: int = 0  # the number of its paragraph
    states: bool = False  # tells something, so an extract may open with it
    is_task: bool = False  # speaks of the task
    asks: bool = False  # a question


def score_sentences(
    sentences: Sequence[Sentence], passage: Passage, told: frozenset[str], privacy: Privacy
) -> Iterator[Candidate]:
    """Yield the sentences that may be shown, in order. Which of them close their paragraph is known
    after all. `told` are the words of earlier parts."""
    scorer = _Scorer(sentences, passage, told, privacy)
    kept = [position for position in range(len(sentences)) if not scorer.is_nod(position)]
    last: Candidate | None = None
    for place, (before, position) in enumerate(pairwise([-1, *kept])):
        one = scorer.rate(place, before, position)
        if one is None:
            continue
        if one.sound or one.announces:
            one.closes = True
            if last is not None:
                last.closes = last.block != one.block
            last = one
        yield one


class _Scorer:
    def __init__(
        self,
        sentences: Sequence[Sentence],
        passage: Passage,
        told: frozenset[str],
        privacy: Privacy,
    ) -> None:
        self._sentences = sentences
        self._is_last = passage.last
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
        self._blocks = [sentence.block for sentence in sentences]
        self._closes = [one != following for one, following in pairwise([*self._blocks, -1])]
        self._dismissed = set(self._find_dismissed())
        self._tried: int | None = None  # the block in which something is tried out
        self._is_first = not told  # nothing was said yet

    def _find_dismissed(self) -> Iterator[int]:
        """Yield the paragraphs that come to nothing."""
        raised = set()
        for position, block in enumerate(self._blocks):
            if "issue:" in self._openings[position]:
                raised.add(block)
            if self._begins[position]:
                dismissal = doubts.SHRUG_OR_DISMISSAL if block in raised else doubts.DISMISSAL
                if dismissal.fullmatch(self._lowered[position]):
                    yield block

    def is_nod(self, position: int) -> bool:
        """Return true for a sentence that says nothing, as if it were not there."""
        return self._begins[position] and doubts.is_nod(self._lowered[position])

    def rate(self, place: int, before: int, position: int) -> Candidate | None:
        """Return a sentence with its score, or None if it may not be shown. `place` is its number
        without those that only nod, `before` the position of the last of them."""
        sentence, tied = self._sentences[position], self._tied[position]
        begins = before < 0 or self._blocks[before] != sentence.block
        tried = self._is_tried(position, begins=begins)
        introduces = self._introduces(position)
        if self._hidden[position] or not is_legible(f"{tied[:-1]}." if introduces else tied):
            return None
        text, lower, words = strip_connectives(tied), self._lowered[position], self._words[position]
        wide, tells = self._wide[position], len(words - doubts.TASK_WORDS) > 1
        is_task = self._is_early(position) and cues.TASK.search(lower, wide=wide) is not None
        own, following = self._score_doubts(position, is_task=is_task)
        waved_off = following < 0 and self.is_nod(position + 1)
        dismissed = sentence.block in self._dismissed
        sound = own + following > UNSOUND_SCORE and not dismissed and not introduces
        score, concludes = self._score_cues(position, wide=wide) if sound else (0.0, False)
        sound &= score > META_ONLY or concludes or self._is_early(position)
        is_alone = self._closes[position] and position + 1 < len(self._sentences)
        opens = begins and not is_alone
        ponders = tells and not (sound or following or dismissed) and own > doubts.NO_SCORE
        announces = not (sound or dismissed or waved_off) and (
            introduces or (ponders and opens) or doubts.announces(lower)
        )
        shown = sound or announces
        score += self._score_theme(words) + self._score_place(position, score, concludes=concludes)
        score += self._score_form(text, position, wide=wide) + TRIED_SCORE * tried
        score += ANNOUNCING_SCORE if announces else own + following
        if sound and self._is_first and position < FIRST_SENTENCES:
            self._is_first = False
            score += FIRST_SCORE
        return Candidate(
            position=place,
            text=text,
            tied=tied,
            size=text_size(text),
            words=words,
            told=share_of(words, self._told),
            score=max(score, ANNOUNCING_SCORE) if announces else score,
            leans=shown and (sentence.hangs or leans(text)),
            bound=shown and (text != tied or (not opens and refers(text))),
            concludes=concludes,
            sound=sound,
            announces=announces,
            tentative=ponders,
            opens=opens and not sentence.hangs,
            block=sentence.block,
            states=tells and (announces or (sound and score >= STATING_SCORE)),
            is_task=is_task,
            asks=announces and lower[-1] in "?？",
        )

    def _introduces(self, position: int) -> bool:
        """Return true for the line before a list."""
        following = self._sentences[position + 1 : position + 2]
        is_line = self._sentences[position].text.endswith((":", "："))
        return is_line and bool(following) and following[0].hangs and len(self._words[position]) > 1

    def _begins_with(self, pattern: re.Pattern[str], position: int) -> bool:
        return (
            position < len(self._begins)
            and self._begins[position]
            and pattern.match(self._lowered[position]) is not None
        )

    def _is_tried(self, position: int, *, begins: bool) -> bool:
        """Return true while something is tried out or looked at again: until the paragraph ends or
        concludes."""
        lower, block = self._lowered[position], self._blocks[position]
        if self._begins_with(doubts.HYPOTHESIS, position) or (
            begins and doubts.CHECK.match(self._openings[self._blocks.index(block)])
        ):
            self._tried = block
        elif self._tried == block:
            found = cues.CONCLUSION.search(lower, wide=self._wide[position])
            if found is not None and found.start() < 4:
                self._tried = None
        return self._tried == block

    def _score_doubts(self, position: int, *, is_task: bool) -> tuple[float, float]:
        """Score the doubts about a sentence: its own, and those that the next one begins with."""
        lower = self._lowered[position]
        if is_task:
            return doubts.score_own(lower, lower), 0.0
        own = doubts.score_own(lower, self._openings[position], begins=self._begins[position])
        if position + 1 == len(self._openings):
            return own, 0.0
        following = doubts.score_following(self._openings[position + 1])
        if (
            following == doubts.SECOND_THOUGHT_SCORE
            and self._begins_with(doubts.CONSEQUENCE, position)
            and (self._closes[position] or self._lowered[position + 1].endswith(("?", "？")))
        ):
            following = CHECKED_SCORE
        return own, following

    def _is_early(self, position: int) -> bool:
        """Return true for a sentence among which the task is stated."""
        return position < FIRST_SENTENCES and not self._told

    def _score_cues(self, position: int, *, wide: bool) -> tuple[float, bool]:
        """Score the cues, in full at the start of the sentence, half elsewhere; also return whether
        it concludes."""
        starts = cues.find_cues(self._lowered[position], wide=wide)
        is_meta, is_plan = cues.META in starts, cues.PLAN in starts
        score = -2.5 * is_meta - 0.5 * is_plan - 1.0 * (cues.HEDGE in starts)
        draws = self._begins_with(doubts.CONSEQUENCE, position)
        score += 0.7 * draws
        is_answer = self._sentences[position].is_answer
        concludes = is_answer or (draws and self._closes[position])
        score += ANSWER_SCORE * is_answer
        task_score = LATER_TASK_SCORE if self._told else TASK_SCORE
        leading_chars = LEADING_CHARS // 3 if wide else LEADING_CHARS
        for cue, cue_score in (*_CUE_SCORES, (cues.TASK, task_score)) if starts else ():
            if cue not in starts or (cue is cues.DECISION and (is_meta or is_plan)):
                continue
            leading = starts[cue] < leading_chars
            score += cue_score * (1.0 if leading else 0.5) * (0.2 if is_meta else 1.0)
            if cue is cues.CONCLUSION and not concludes:
                concludes = not is_meta and (leading or cues.ANSWER in starts)
        return score, concludes

    def _score_form(self, text: str, position: int, *, wide: bool) -> float:
        score = score_form(text, self._sentences[position], wide=wide)
        if score < CONSEQUENCE_FORM and self._begins_with(doubts.CONSEQUENCE, position):
            return CONSEQUENCE_FORM
        return score

    def _score_theme(self, words: frozenset[str]) -> float:
        """Score up to 1.5 for topic words that other sentences use too."""
        if len(words) < 2:
            return -1.0
        shared = sum(map(self._word_scores.__getitem__, words))
        return min(1.5, shared / (4 + len(words)))

    def _score_place(self, position: int, score: float, *, concludes: bool) -> float:
        """Score a late position, where that is of interest, and one after what is hidden."""
        place = TRIED_SCORE if position and self._hidden[position - 1] else 0.0
        if score > 0 and not self._sentences[position].hangs:
            late_score = LATE_SCORE * (2.0 if self._is_last and concludes else 1.0)
            place += late_score * (position / len(self._sentences)) ** 2
        return place


def _find_hidden(sentences: Sequence[Sentence], privacy: Privacy) -> list[bool]:
    """Mark the sentences that may not be shown, and with one the whole quotation it opens."""
    hidden, quoted = [], False
    for sentence in sentences:
        private = quoted or privacy.covers(sentence.text)
        quoted = private and quoted ^ (sentence.text.count('"') % 2 == 1)
        hidden.append(private)
    return hidden
