"""Choose the sentences that make an extract, as editors would.

Whether a sentence is copied depends on its neighbours, too: those that stood together read as a
paragraph. So all choices are weighed as a whole. A choice is worth what its sentences are worth
(`scoring`), and what each run of neighbours begins with, goes on with and ends with. The best one
is found by dynamic programming, in time that grows with the number of sentences.

The weights here and in `scoring` were fitted to what editors had chosen from 184 stretches of
reasoning, as those of a conditional random field are; then those for what comes last were raised,
and no run may begin with a sentence that leans on the one before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from abridge.core.styles import ExtractRules
from abridge.summarizers.extractive.scoring import Candidate

BEGIN, BEGIN_OPENING = -0.8, 0.6  # for a run, and if it begins where a paragraph does
GO_ON, GO_ON_LEANING, GO_ON_BOUND, GO_ON_OPENING = -0.3, 0.45, 0.25, -0.5
"""For a further sentence of a run: if it leans on the one before it, is tied to it, or begins a
paragraph."""

END_ANNOUNCING = -0.85  # for a run that ends with a question or an intention
MUST = 9.0  # for what has to be told
LAST = 1.5  # for what a passage says last, and what it concludes last
ASKED = 2.5  # for a question at the beginning of all
MAX_OPENING = 5  # the first sentences of all that state the task
MIN_OPENING_PLACES = 3  # sentences of an extract from which it has to state the task
MAX_PRICE = 10.0  # of a hundred characters
LEAST_SHARE = 0.6  # of a short stretch that is told as far as it may be
PRICES = 10  # that are tried
ROUNDS = 4  # in which sentences that say the same are left out
SAME_SHARE = 0.62  # share of its words from which a sentence says the same as another


@dataclass(slots=True)
class _Room:
    """How much an extract may and should hold."""

    least: float  # size
    most: float  # size
    places: int  # sentences

    def judge(self, chosen: Sequence[Candidate]) -> int:
        """Return 1 for too much, -1 for too little, else 0."""
        size = sum([one.size for one in chosen])
        if size > self.most or len(chosen) > self.places:
            return len(chosen) > 1
        return -1 if size < self.least and len(chosen) < self.places else 0


def choose_sentences(
    candidates: Sequence[Candidate],
    rules: ExtractRules,
    told: Sequence[frozenset[str]],
    *,
    is_last: bool = False,
) -> list[Candidate]:
    """Return the sentences to copy, in order; none if there is nothing to tell.

    What an earlier part has told is not told again, but for the conclusion of all.
    """
    found = [one for one in candidates if one.sound and one.concludes and one.words not in told]
    again = found[-1:] if is_last else []
    shown = [
        one
        for one in candidates
        if (one.sound or one.announces) and (one in again or not _is_told(one, told))
    ]
    size = sum([one.size for one in candidates])
    places = max(rules.min_sentences, int(size // rules.chars_per_sentence) + 1)
    least = min(rules.min_chars, LEAST_SHARE * size)
    room = _Room(least, rules.max_chars, min(rules.max_sentences, places))
    more = _add_worth(shown, told, room, is_last=is_last)
    for _ in range(ROUNDS):
        chosen = _choose_within(shown, more, room)
        kept = _without_repeated(chosen)
        if len(kept) == len(chosen):
            return chosen
        shown = [one for one in shown if one in kept or not any(repeats(one, it) for it in kept)]
    return kept


def _add_worth(
    shown: Sequence[Candidate], told: Sequence[frozenset[str]], room: _Room, *, is_last: bool
) -> dict[int, float]:
    """Return what some sentences are worth beside their scores, by position: the task and its
    question at the beginning of all, and what is concluded last."""
    more = dict.fromkeys([one.position for one in shown if one.sound][-1:], LAST)
    found = [one.position for one in shown if one.sound and one.concludes][-1:]
    more |= dict.fromkeys(found, MUST if is_last else LAST)
    if not told and room.places >= MIN_OPENING_PLACES:
        early = [one for one in shown if one.position < MAX_OPENING]
        more |= {one.position: ASKED for one in early if one.tied[-1] in "?？"}
        more |= dict.fromkeys([one.position for one in early if one.is_task][:1], MUST)
    return more


def _choose_within(
    shown: Sequence[Candidate], more: dict[int, float], room: _Room
) -> list[Candidate]:
    """Return the best choice that fits. The price of characters that makes it as long as it should
    be is as near to nothing as possible."""
    low, price, high = -MAX_PRICE, 0.0, MAX_PRICE
    found: dict[int, list[Candidate]] = {}  # the latest choice that was too short, fit, or too long
    for _ in range(PRICES):
        chosen = _choose(shown, more, price)
        verdict = room.judge(chosen)
        found[verdict] = chosen
        if price == verdict == 0:
            break
        if verdict > 0 or (not verdict and price < 0):
            low = price
        else:
            high = price
        price = (low + high) / 2
    return found.get(0) or _top_up(found.get(-1, []), found.get(1, []), room)


def _top_up(short: Sequence[Candidate], long: Sequence[Candidate], room: _Room) -> list[Candidate]:
    """Return a choice that is too short with the best of one that is too long, as far as they fit.
    None of equal worth may be between them."""
    chosen = {one.position: one for one in short}
    for one in sorted(long, key=lambda one: one.score, reverse=True):
        more = {**chosen, one.position: one}
        if (not one.leans or one.position - 1 in chosen) and room.judge(list(more.values())) <= 0:
            chosen = more
    return [chosen[position] for position in sorted(chosen)]


def _choose(shown: Sequence[Candidate], more: dict[int, float], price: float) -> list[Candidate]:
    """Return the choice that is worth most where a hundred characters cost a price."""
    without, taken = 0.0, -inf  # what the best choice is worth without and with the latest sentence
    steps: list[tuple[bool, bool]] = []  # whether they have the sentence before it
    position, ending = -9, 0.0
    for one in shown:
        follows, position = one.position == position + 1, one.position
        ended = taken + ending
        begun = (without if follows else max(without, ended)) + _worth_of_beginning(one)
        gone_on = taken + _worth_of_going_on(one) if follows else -inf
        steps.append((ended > without, gone_on > begun if follows else ended > without))
        without = max(without, ended)
        own = one.score - price * one.size / 100 + more.get(position, 0.0)
        taken, ending = max(begun, gone_on) + own, END_ANNOUNCING * one.announces
    chosen: list[Candidate] = []
    has = taken + ending > without
    for one, (has_before_it, has_before) in zip(reversed(shown), reversed(steps), strict=True):
        if has:
            chosen.append(one)
        has = has_before if has else has_before_it
    return chosen[::-1]


def _worth_of_beginning(one: Candidate) -> float:
    return -inf if one.leans else BEGIN + BEGIN_OPENING * one.opens


def _worth_of_going_on(one: Candidate) -> float:
    return GO_ON + GO_ON_LEANING * one.leans + GO_ON_BOUND * one.bound + GO_ON_OPENING * one.opens


def _is_told(one: Candidate, told: Sequence[frozenset[str]]) -> bool:
    """Return true if a sentence of an earlier part says as much."""
    if one.told < SAME_SHARE:
        return False
    words, count = one.words, len(one.words)
    for other in told:  # noqa: SIM110 -- `any` takes twice as long
        if len(words & other) / count >= SAME_SHARE:
            return True
    return False


def _without_repeated(chosen: Sequence[Candidate]) -> list[Candidate]:
    """Return what was chosen, of sentences that say the same the one that tells most; and nothing
    that leaned on one that is gone."""
    kept: list[Candidate] = []
    for one in sorted(chosen, key=lambda one: one.score, reverse=True):
        if not any(repeats(one, other) for other in kept):
            kept.append(one)
    positions = set[int]()
    for one in sorted(kept, key=lambda one: one.position):
        if not one.leans or one.position - 1 in positions:
            positions.add(one.position)
    return [one for one in chosen if one.position in positions]


def repeats(one: Candidate, other: Candidate) -> bool:
    """Return true if two sentences say the same. A question says nothing, and its answer has the
    same words."""
    if one.announces != other.announces:
        return False
    fewer = min(len(one.words), len(other.words))
    is_same = fewer > 1 and len(one.words & other.words) >= SAME_SHARE * fewer
    return is_same or one.text == other.text
