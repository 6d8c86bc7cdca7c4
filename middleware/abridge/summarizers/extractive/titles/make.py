"""Make the title of a part: what the stretch of reasoning is about, as a status line would say it.

A title is made, not cut: "I need to compare the two plans" gives "Comparing the two plans". It is
in the language of the sentences. It names a topic or a task and claims nothing, so it cannot say
the opposite of what the part concludes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from abridge.summarizers.extractive.openings import capitalize
from abridge.summarizers.extractive.titles.drafts import (
    Draft,
    is_presentable,
    mentions_prompt,
    title_key,
)
from abridge.summarizers.extractive.titles.languages import language_of
from abridge.summarizers.extractive.titles.patterns import Pattern
from abridge.summarizers.extractive.titles.phrases import MAX_READ_CHARS, MAX_WORDS, cut_wide

MAX_SENTENCES = 9  # different sentences that are read for a title
MAX_SENTENCE_CHARS = 400  # characters of a sentence that are read
MAX_HEADINGS = 12  # headings that are read for a title
MAX_TAKEN = 60  # earlier titles that a title must differ from, the latest of them
MIN_TOPIC_WORDS = 3  # words of a topic that are not cut off
POSITION_SCORE = 0.25  # off the score of a title for each sentence before its own
PROMPT_TALK_SCORE = 2.0  # score that a title needs where the passage speaks of prompts

_WORD = re.compile(r"\w+")
_MAIL = re.compile(r"(?<![^\s@])[^\s@]*+@\S*")
_NAME = re.compile(r"(?<=\w )[A-Z]\w+|\b\w*\d\w*")


def make_title(sentences: Sequence[str], headings: Sequence[str], taken: Sequence[str]) -> str:
    """Make a title of at most 60 characters, without markup.

    `sentences` are those chosen for the part, best first, then others of the passage. `headings`
    are the headings and bold labels of the passage. `taken` are the titles of earlier parts, which
    are not repeated as long as there is another.
    """
    texts = _clip(dict.fromkeys(sentences[: 4 * MAX_SENTENCES]))
    labels = _clip(headings[:MAX_HEADINGS])
    texts, prompt_talk = _part_prompt_talk(texts[:MAX_SENTENCES])
    private = frozenset(name for text in prompt_talk for name in _NAME.findall(text))
    language = language_of([*texts, *labels])
    labels, _ = _part_prompt_talk(labels)
    earlier = taken[-MAX_TAKEN:]
    best = _best_draft(language.patterns, [*labels, *texts], earlier, private)
    if best.text and (best.score >= PROMPT_TALK_SCORE or not prompt_talk):
        return best.text
    if prompt_talk and title_key(language.on_request) not in map(title_key, earlier):
        return language.on_request
    return _choose_last_resort(language.last_resort, earlier)


def _best_draft(
    patterns: Sequence[Pattern],
    sentences: Sequence[str],
    earlier: Sequence[str],
    private: frozenset[str],
) -> Draft:
    """Return the best title for what the sentences say, the better the earlier its sentence stands.

    Patterns come by their scores, so most are not looked for.
    """
    best = Draft("", -9.0)
    known = {title_key(title) for title in earlier}
    rate = _rater(earlier)
    for pattern in sorted(patterns, key=lambda pattern: -pattern.score):
        for position, sentence in enumerate(sentences):
            score = pattern.score - min(POSITION_SCORE * position, 2.0)
            if score <= best.score:
                break
            read = _clip_at_word(sentence)
            title = _form(pattern, found, read) if (found := pattern.found.search(read)) else ""
            if not title or title_key(title) in known or not _may_be_shown(title, private):
                continue
            best = max(best, Draft(title, score - rate(title)), key=lambda draft: draft.score)
    return best


def _form(pattern: Pattern, found: re.Match[str], sentence: str) -> str:
    """Return the title for what was found in a sentence; empty if it names nothing."""
    if "{" not in pattern.form:
        return pattern.form
    groups = found.groupdict()
    verb = groups.get("verb", "")
    if pattern.verbs:
        base, space, particle = verb.lower().partition(" ")
        known = pattern.verbs.get(base)
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
