"""Score how much a sentence tells a reader, and whether it may be shown at all.

What raises a score: words that announce a conclusion, a decision or the task, and words that other
sentences use too. What lowers it: doubts, thinking aloud, suppositions, remarks about the answer's
wording, digits and symbols in place of words. The next sentence counts too: if it takes this one
back ("Wait, no"), this one is hardly worth showing. Sentences that hold a secret, code or half a
formula are no candidates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from abridge.core.segmenter import text_size
from abridge.summarizers.extractive import cues, doubts
from abridge.summarizers.extractive.legibility import is_legible, score_form
from abridge.summarizers.extractive.openings import leans, refers, strip_connectives, strip_fillers
from abridge.summarizers.extractive.privacy import Privacy
from abridge.summarizers.extractive.sentences import Sentence
from abridge.summarizers.extractive.words import is_wide, share_of, topic_words

LEADING_CHARS = 24  # in which a cue counts as a sentence's start; a third of it in Chinese
UNSOUND_SCORE = -2.5  # of doubts up to which a sentence is not shown
FIRST_SENTENCES = 4  # sentences at the beginning of all among which the task is stated
AFTER_HIDDEN_SCORE = -1.5  # for what follows on what is hidden
CHECKED_SCORE = -1.0  # of doubts about a conclusion after which the next sentence asks on
CONSEQUENCE_FORM = -1.0  # the least score of a consequence's form: it may be short, or a sum
ANNOUNCING_SCORE = -0.5  # for a question or an intention
META_ONLY = -2.0  # score of the cues up to which a sentence is about the answer's wording alone

_CUE_SCORES = ((cues.CONCLUSION, 3.0), (cues.DECISION, 2.0))
TASK_SCORE = 2.0  # for stating the task, where no earlier part told it


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
    closes: bool = False  # the last one that may be shown
    block: int = 0  # the number of its paragraph
    states: bool = False  # tells something, so an extract may open with it
    is_task: bool = False  # speaks of the task
    asks: bool = False  # a question


def score_sentences(
    sentences: Sequence[Sentence], told: frozenset[str], privacy: Privacy
) -> Iterator[Candidate]:
    """Yield the sentences that may be shown, in order. Which of them close their paragraph is known
    after all. `told` are the words of earlier parts."""
    scorer = _Scorer(sentences, told, privacy)
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
        counts = Counter(chain.from_iterable(self._words))
        self._word_scores = {word: count - 1 if count < 5 else 4 for word, count in counts.items()}
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
        begins = before < 0 or self._blocks[before] != sentence.block
        if self._hidden[position] or not is_legible(tied):
            return None
        text, lower, words = strip_connectives(tied), self._lowered[position], self._words[position]
        wide, tells = self._wide[position], len(words - doubts.TASK_WORDS) > 1
        is_task = self._is_early(position) and cues.TASK.search(lower, wide=wide) is not None
        own, following = self._score_doubts(position, is_task=is_task)
        sound = own + following > UNSOUND_SCORE
        score, concludes = self._score_cues(position, wide=wide) if sound else (0.0, False)
        sound &= score > META_ONLY or concludes or self._is_early(position)
        is_alone = self._closes[position] and position + 1 < len(self._sentences)
        opens = begins and not is_alone
        ponders = tells and not (sound or following) and own > doubts.NO_SCORE
        announces = not sound and ((ponders and opens) or doubts.announces(lower))
        shown = sound or announces
        form = score_form(text, sentence, wide=wide)
        score += max(form, CONSEQUENCE_FORM) if self._draws[position] else form
        score += self._score_theme(words)
        score += AFTER_HIDDEN_SCORE * self._hidden[max(0, position - 1)]
        score += ANNOUNCING_SCORE if announces else own + following
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
            opens=opens and not sentence.hangs,
            block=sentence.block,
            states=tells and shown,
            is_task=is_task,
            asks=announces and lower[-1] in "?？",
        )

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

    def _is_early(self, position: int) -> bool:
        """Return true for a sentence among which the task is stated."""
        return position < FIRST_SENTENCES and not self._told

    def _score_cues(self, position: int, *, wide: bool) -> tuple[float, bool]:
        """Score the cues, in full at the start of the sentence, half elsewhere; also return whether
        it concludes."""
        starts = cues.find_cues(self._lowered[position], wide=wide)
        is_meta = cues.META in starts
        score = -2.5 * is_meta - 1.0 * (cues.HEDGE in starts)
        score += 0.7 * self._draws[position]
        concludes = self._settles(position)
        task_score = 0.0 if self._told else TASK_SCORE
        leading_chars = LEADING_CHARS // 3 if wide else LEADING_CHARS
        for cue, cue_score in (*_CUE_SCORES, (cues.TASK, task_score)) if starts else ():
            if cue not in starts or (cue is cues.DECISION and is_meta):
                continue
            leading = starts[cue] < leading_chars
            score += cue_score * (1.0 if leading else 0.5) * (0.2 if is_meta else 1.0)
            if cue is cues.CONCLUSION and not concludes:
                concludes = leading and not is_meta
        return score, concludes

    def _score_theme(self, words: frozenset[str]) -> float:
        """Score up to 1.5 for topic words that other sentences use too."""
        if len(words) < 2:
            return -1.0
        shared = sum(map(self._word_scores.__getitem__, words))
        return min(1.5, shared / (4 + len(words)))


def _find_hidden(sentences: Sequence[Sentence], privacy: Privacy) -> list[bool]:
    """Mark the sentences that may not be shown, and with one the whole quotation it opens."""
    hidden, quoted = [], False
    for sentence in sentences:
        private = quoted or privacy.covers(sentence.text)
        quoted = private and quoted ^ (sentence.text.count('"') % 2 == 1)
        hidden.append(private)
    return hidden
