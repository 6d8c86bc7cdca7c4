"""Make the title of a part: what the stretch of reasoning is about, as a status line would say it.

A title is made, not cut: "I need to compare the two plans" gives "Comparing the two plans". It is
in the language of the sentences. It names a topic or a task and claims nothing, so it cannot say
the opposite of what the part concludes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations

from abridge.summarizers.extractive.openings import capitalize
from abridge.summarizers.extractive.titles.drafts import (
    Draft,
    is_presentable,
    mentions_prompt,
    title_key,
)
from abridge.summarizers.extractive.titles.languages import Language, language_of
from abridge.summarizers.extractive.titles.patterns import Pattern
from abridge.summarizers.extractive.titles.phrases import MAX_READ_CHARS, MAX_WORDS, cut_wide
from abridge.summarizers.extractive.titles.themes import Theme, find_themes, find_wide_themes

MAX_SENTENCES = 9  # different sentences that are read for a title
MAX_SENTENCE_CHARS = 400  # characters of a sentence that are read
MAX_HEADINGS = 12  # headings that are read for a title
MAX_TAKEN = 60  # earlier titles that a title must differ from, the latest of them
MIN_TOPIC_WORDS = 3  # words of a topic that are not cut off
CENTRAL_SCORE = 0.3  # on the score of a title that names what recurs, off that of another
OTHER_SCORE = 1.8  # off the score of a title from a sentence that is not shown
TASK_SCORE = 0.6  # the same in the first part, which is about the task of all
PHRASE_SCORE, BOTH_SCORE, WORD_SCORE = 1.6, 1.1, 0.8  # for what recurs: a phrase, two words, one
COUNT_SCORE, MAX_COUNT = 0.1, 5  # for each time that it does
POSITION_SCORE = 0.25  # off the score of a title for each sentence before its own
PROMPT_TALK_SCORE = 2.0  # score that a title needs where the passage speaks of prompts

_WORD = re.compile(r"\w+")
_MAIL = re.compile(r"(?<![^\s@])[^\s@]*+@\S*")
_NAME = re.compile(r"(?<=\w )[A-Z]\w+|\b\w*\d\w*")


def make_title(
    sentences: Sequence[str],
    headings: Sequence[str],
    taken: Sequence[str],
    shown: int = MAX_SENTENCES,
) -> str:
    """Make a title of at most 60 characters, without markup.

    `sentences` are those that the part shows, `shown` in number, then others of the passage.
    `headings` are the headings and bold labels of the passage. `taken` are the titles of earlier
    parts, which are not repeated as long as there is another.
    """
    texts = _clip(dict.fromkeys(sentences[: 4 * MAX_SENTENCES]))
    labels = _clip(headings[:MAX_HEADINGS])
    texts, prompt_talk = _part_prompt_talk(texts[:MAX_SENTENCES])
    private = frozenset(name for text in prompt_talk for name in _NAME.findall(text))
    language = language_of([*texts, *labels])
    labels, _ = _part_prompt_talk(labels)
    earlier = taken[-MAX_TAKEN:]
    shown_texts = [*labels, *texts[:shown]]
    best = _best_draft(language, shown_texts, texts[shown:], earlier, private)
    if best.text and (best.score >= PROMPT_TALK_SCORE or not prompt_talk):
        return best.text
    if prompt_talk and title_key(language.on_request) not in map(title_key, earlier):
        return language.on_request
    return _choose_last_resort(language.last_resort, earlier)


class _Reading:
    """A sentence as it is read for a title. What patterns share is looked for once."""

    def __init__(self, sentence: str, off: float) -> None:
        self.text = _clip_at_word(sentence)
        self.off = off  # off the score of a title made of it
        self._led: dict[re.Pattern[str], list[int]] = {}

    def find(self, pattern: Pattern) -> re.Match[str] | None:
        if pattern.lead is None:
            return pattern.found.search(self.text)
        if pattern.lead not in self._led:
            found = pattern.lead.finditer(self.text)
            self._led[pattern.lead] = [lead.end() for lead in found]
        starts = self._led[pattern.lead]
        return next(filter(None, (pattern.found.match(self.text, start) for start in starts)), None)


def _best_draft(
    language: Language,
    shown: Sequence[str],
    others: Sequence[str],
    earlier: Sequence[str],
    private: frozenset[str],
) -> Draft:
    """Return the best title for what the sentences say, the better the earlier its sentence stands.

    Patterns come by their scores, so most are not looked for.
    """
    known = {title_key(title) for title in earlier}
    rate = _rater(earlier)

    def rated(title: str, score: float) -> Draft:
        may_be = title_key(title) not in known and _may_be_shown(title, private)
        return Draft(title, score - rate(title)) if may_be else Draft("", -9.0)

    themes = _themes_of(language, shown) or _themes_of(language, [*shown, *others])
    best = max([Draft("", -9.0), *(rated(*one) for one in _name_themes(language, themes))],
               key=_score_of)  # fmt: skip
    recurring = {word for theme in themes for word in _topic_of(f"- {theme.text}")}
    readings = [
        _Reading(text, min(POSITION_SCORE * place, 2.0)) for place, text in enumerate(shown)
    ] + [_Reading(text, OTHER_SCORE if earlier else TASK_SCORE) for text in others]
    for pattern in language.patterns:
        for reading in readings:
            score = pattern.score - reading.off
            if score + CENTRAL_SCORE <= best.score or (found := reading.find(pattern)) is None:
                continue
            if title := _form(pattern, found, reading.text):
                is_central = not recurring.isdisjoint(_topic_of(title))
                score += CENTRAL_SCORE if is_central else -CENTRAL_SCORE
                best = max(best, rated(title, score), key=_score_of)
    return best


def _score_of(draft: Draft) -> float:
    return draft.score


def _themes_of(language: Language, texts: Sequence[str]) -> list[Theme]:
    if not language.theme:
        return []
    if language.grammar is None:
        return find_wide_themes(texts)
    return find_themes(texts, language.grammar.stops, language.articles)


def _name_themes(language: Language, themes: Sequence[Theme]) -> Iterator[tuple[str, float]]:
    """Yield titles that name what recurs, and their scores: a phrase, or one or two words."""
    words = [theme for theme in themes if not theme.is_phrase][:3]
    phrases = [theme for theme in themes if theme.is_phrase][:3]
    named = [(theme.text, PHRASE_SCORE, theme.count) for theme in phrases]
    named += [(theme.text, WORD_SCORE, theme.count) for theme in words]
    named += [
        (language.both.format(one.text, other.text), BOTH_SCORE, (one.count + other.count) // 2)
        for one, other in combinations(words if language.both else (), 2)
        if not _is_form_of(one.text, other.text)
    ]
    for text, score, count in named:
        yield capitalize(language.theme.format(text)), score + COUNT_SCORE * min(count, MAX_COUNT)


def _is_form_of(text: str, other: str) -> bool:
    """Return true for two forms of a word, such as its plural."""
    last_words = (text.rpartition(" ")[2], other.rpartition(" ")[2])
    shorter, longer = sorted(last_words, key=len)
    return longer.startswith(shorter)


def _form(pattern: Pattern, found: re.Match[str], sentence: str) -> str:
    """Return the title for what was found in a sentence; empty if it names nothing."""
    if "{" not in pattern.form:
        return pattern.form
    groups = found.groupdict()
    verb = groups.get("verb", "")
    if pattern.verb_of is not None:
        base, space, particle = verb.lower().partition(" ")
        known = pattern.verb_of(base)
        verb = f"{known}{space}{particle}" if known else ""
    topic = groups.get("topic", "").split()[:MIN_TOPIC_WORDS]
    thing = (
        groups.get("object") or _uncapitalized(groups.get("topic", "")) or sentence[found.end() :]
    )
    if pattern.grammar is None:
        thing = cut_wide(thing)
    else:
        thing = pattern.grammar.cut(pattern.opening + thing, MAX_WORDS)
        if topic and (len(thing.split()) < len(topic) or pattern.grammar.is_vague(thing)):
            return ""
    if not thing or ("verb" in groups and not verb):
        return ""
    return capitalize(pattern.form.format(verb=verb, object=thing))


def _uncapitalized(text: str) -> str:
    """Write the first word of a sentence small, unless it seems to be a name."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def _clip(texts: Iterable[str]) -> list[str]:
    clipped = (text[:MAX_SENTENCE_CHARS].strip() for text in texts)
    return [_MAIL.sub("\0", text) if "@" in text else text for text in clipped]


def _clip_at_word(text: str) -> str:
    return text if len(text) <= MAX_READ_CHARS else text[:MAX_READ_CHARS].rpartition(" ")[0]


def _may_be_shown(title: str, private: frozenset[str]) -> bool:
    return is_presentable(title) and private.isdisjoint(_WORD.findall(title))


def _part_prompt_talk(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Part the texts that speak of prompts and secrets, which come second, from the others."""
    if not mentions_prompt("\n".join(texts)):
        return list(texts), []
    talk = [text for text in texts if mentions_prompt(text)]
    return [text for text in texts if text not in talk], talk


def _rater(earlier: Sequence[str]) -> Callable[[str], float]:
    """Return what to take off a title of which earlier ones say the same, or that begin alike."""
    topics = [_topic_of(title) for title in earlier]
    used = set().union(*topics)

    def rate(title: str) -> float:
        words = _topic_of(title)
        told = 0
        if words and _covers(used, words):
            told = sum(_covers(topic, words) for topic in topics)
        first = title.split(maxsplit=1)[0]
        return 0.9 * told + 0.3 * sum(other.startswith(first) for other in earlier[-3:])

    return rate


def _covers(topic: set[str], words: set[str]) -> bool:
    """Return true if most of the words belong to a topic."""
    return 4 * len(words & topic) >= 3 * len(words)


def _topic_of(title: str) -> set[str]:
    return {word for word in title.lower().split()[1:] if len(word) > 3}


def _choose_last_resort(titles: Sequence[str], earlier: Sequence[str]) -> str:
    """Return the title that was not used, or not for the longest time."""
    last_used = {title_key(title): position for position, title in enumerate(earlier)}
    return min(titles, key=lambda title: last_used.get(title_key(title), -1))
