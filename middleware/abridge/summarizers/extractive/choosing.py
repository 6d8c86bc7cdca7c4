"""Choose the runs of neighbouring sentences that make an extract.

Sentences that stood beside each other make a paragraph; single ones, however good, do not. First
comes what states the task, then the run that ends with what was found last, then the best of the
others, as far as the room goes. A run has at most four sentences, begins best where a paragraph
begins, and never with a sentence that leans on the one before it. It ends best where a paragraph
ends. What an earlier part has said is not said again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from abridge.core.styles import ExtractRules
from abridge.summarizers.extractive.scoring import Candidate

MAX_RUN = 4  # the most sentences that are taken together
MAX_RUNS = 3  # the most runs that are taken
SENTENCE_COST = 1.0  # what a sentence must score to be worth its place in a run
RUN_COST = 2.0  # what a run must be worth that continues no paragraph
NEIGHBOUR_SCORE = 0.8  # for a run that continues another
OPENING_SCORE = 1.4  # for a run that begins where a paragraph begins
FIRST_OPENING_SCORE = 3.0  # more for the first such run
CLOSING_SCORE = 1.0  # for a run that ends where a paragraph ends
CONCLUDED_SCORE = 1.5  # for a run that ends with a conclusion
BOUND_SCORE = -2.5  # for a run that begins with what reads better after the sentence before it
UNASKED_SCORE = -1.5  # for a run that answers a question which is left out
FLOOR = -1.0  # the least worth of another run
SHORT_FLOOR = -5.5  # the same where there are fewer characters than a part should have
FOUND_FLOOR = -1.5  # the least score of a sentence that ends an extract
FOUND_LATE_SCORE = 10.0  # for such a sentence at the end, beside one at the start
SAME_SHARE = 0.62  # share of its words from which a sentence says the same as another

MAX_OPENING = 4  # the most sentences that state the task
MIN_OPENING_PLACES = 3  # sentences of a part from which it has such an opening
OPENING_SHARE = 0.5  # of the room, which they may take

Run = list[Candidate]


@dataclass(slots=True)
class Choice:
    """The sentences chosen so far, and the room that is left."""

    candidates: dict[int, Candidate]  # by position
    told: Sequence[frozenset[str]]  # words of the sentences that were told before
    room: float
    min_size: int  # up to which a run is added that is worth less
    places: int
    is_last: bool  # nothing follows: the conclusion of all belongs here
    chosen: dict[int, Candidate] = field(default_factory=dict)
    said: set[int] = field(default_factory=set)  # positions of sentences that one chosen repeats

    def find_opening(self) -> Run:
        """Return the sentences that state the task, up to its question; none where an earlier part
        told it, or where there is room for little else."""
        early = [one for one in self.candidates.values() if one.position < MAX_OPENING]
        stating = [one for one in early if one.states and not one.leans]
        first = max(stating, key=lambda one: one.is_task, default=None)
        if self.told or first is None or self.places < MIN_OPENING_PLACES:
            return []
        run = [first]
        for position in range(first.position + 1, first.position + MAX_OPENING):
            one = self.candidates.get(position)
            if one is None or run[-1].closes or run[-1].asks:
                break
            if not one.asks and (not one.sound or repeats(one, run)):
                break
            run.append(one)
        while len(run) > 1 and _size(run) > self.room * OPENING_SHARE:
            run.pop()
        return run

    def find_ending(self) -> Run:
        """Return the best run that ends with what was found last: rather late than good."""
        end = max(self.candidates, default=0) + 1
        found = {
            position: one.score + _end_score(one) + FOUND_LATE_SCORE * position / end
            for position, one in self.candidates.items()
            if one.score > FOUND_FLOOR
        }
        runs = [run for run in self.find_runs() if run[-1].position in found]
        best = max((found[run[-1].position] for run in runs), default=None)
        ending = [run for run in runs if found[run[-1].position] == best]
        return max(ending, key=self.value, default=[])

    def find_best(self) -> Run:
        """Return the run that is worth most; an empty one if none is worth it."""
        floor = SHORT_FLOOR if self.is_short else FLOOR
        best: Run = []
        for run in self.find_runs():
            if (value := self.value(run)) > floor:
                best, floor = run, value
        return best

    def find_runs(self) -> Iterator[Run]:
        """Yield the runs that may be added, and fit."""
        run_count = sum([position - 1 not in self.chosen for position in self.chosen])
        for start, first in self.candidates.items():
            before = start - 1 in self.chosen
            if first.leans and not before:
                continue
            run: Run = []
            size = 0.0
            for position in range(start, start + min(MAX_RUN, max(1, self.places))):
                one = self.candidates.get(position)
                if one is None or position in self.said or (run and one.announces):
                    break
                size += one.size
                if size > self.room and (run or self.chosen):
                    break
                if self.is_told(one) or repeats(one, run):
                    break
                run.append(one)
                after = position + 1 in self.chosen
                if (one.sound or after) and (before or after or run_count < MAX_RUNS):
                    yield list(run)

    def value(self, run: Run) -> float:
        """Return what adding a run is worth."""
        first, last = run[0], run[-1]
        before = self.candidates.get(first.position - 1)
        worth = sum([one.score - SENTENCE_COST for one in run]) + _end_score(last)
        if first.position - 1 in self.chosen:
            return worth + NEIGHBOUR_SCORE - RUN_COST * first.opens
        worth += NEIGHBOUR_SCORE if last.position + 1 in self.chosen else -RUN_COST
        if first.opens:
            worth += OPENING_SCORE
            earlier = (one for one in self.chosen.values() if one.position < first.position)
            worth += FIRST_OPENING_SCORE * (not any(one.opens for one in earlier))
        if before is not None:
            worth += BOUND_SCORE * first.bound + UNASKED_SCORE * before.asks
        return worth

    @property
    def is_short(self) -> bool:
        """Return true while fewer than 40 words are chosen."""
        return _size(self.chosen.values()) < self.min_size

    def fill(self) -> None:
        """Add runs as long as there is room, and one that is worth it."""
        while (self.places > 0 or self.is_short) and (run := self.find_best()):
            self.take(run)

    def take(self, run: Run) -> None:
        self.chosen |= {one.position: one for one in run}
        self.said |= {
            position
            for position, one in self.candidates.items()
            if position not in self.said and repeats(one, run)
        }
        self.room -= _size(run)
        self.places -= len(run)

    def is_told(self, one: Candidate) -> bool:
        """Return true if a sentence of an earlier part says as much. The conclusion of all is told
        at the end in another sentence."""
        if one.told < SAME_SHARE:
            return False
        if self.is_last and one.concludes:
            return one.words in self.told
        words, count = one.words, len(one.words)
        for other in self.told:  # noqa: SIM110 -- `any` takes twice as long
            if len(words & other) / count >= SAME_SHARE:
                return True
        return False


def _end_score(last: Candidate) -> float:
    return CONCLUDED_SCORE * last.concludes + CLOSING_SCORE * last.closes


def _size(run: Iterable[Candidate]) -> float:
    return sum([one.size for one in run])


def repeats(one: Candidate, run: Run) -> bool:
    """Return true if a sentence of a run says as much. A question says nothing, and its answer has
    the same words."""
    words, count = one.words, len(one.words)
    for other in run:
        if other.announces and one.sound:
            continue
        fewer = min(count, len(other.words))
        if other.text == one.text or (fewer > 1 and len(words & other.words) >= SAME_SHARE * fewer):
            return True
    return False


def choose_sentences(
    candidates: Sequence[Candidate],
    rules: ExtractRules,
    told: Sequence[frozenset[str]],
    *,
    is_last: bool = False,
) -> list[Candidate]:
    """Return the sentences to copy; none if nothing is worth it."""
    size = _size(candidates)
    places = min(
        rules.max_sentences, max(rules.min_sentences, int(size // rules.chars_per_sentence) + 1)
    )
    shown = {one.position: one for one in candidates if one.sound or one.announces}
    choice = Choice(shown, told, rules.max_chars, rules.min_chars, places, is_last)
    choice.take(choice.find_opening())
    choice.take(choice.find_ending())
    choice.fill()
    return list(choice.chosen.values())
