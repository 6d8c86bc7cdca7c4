"""Make the title of a part: what it is about, as a status line would say it.

A title is made, not cut: "I need to compare the two plans" gives "Comparing the two plans". It is
in the language of the sentences. It names the task of the part, or what its last finding says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from types import MappingProxyType

from abridge.summarizers.extractive.keywords import WORD
from abridge.summarizers.extractive.openings import capitalize
from abridge.summarizers.extractive.privacy import Privacy
from abridge.summarizers.extractive.titles.drafts import (
    MAX_TITLE_CHARS,
    MAX_TITLE_WORDS,
    Draft,
    is_presentable,
    title_key,
)
from abridge.summarizers.extractive.titles.english import NAMELESS, name_again
from abridge.summarizers.extractive.titles.languages import language_of
from abridge.summarizers.extractive.titles.patterns import Pattern
from abridge.summarizers.extractive.titles.phrases import MAX_WORDS, clause_wide, cut_wide, plain
from abridge.summarizers.extractive.words import topic_words, words_of

MAX_SENTENCES = 9  # different sentences that are read for a title
MAX_SENTENCE_CHARS = 400  # characters of a sentence that are read
MAX_HEADINGS = 12  # headings that are read for a title
MAX_TAKEN = 60  # earlier titles that a title must differ from, the latest of them
POSITION_SCORE = 0.2  # off the score of a title for each sentence that would be a better source
SURE_SCORE = 3.5  # score of a pattern from which it is no side point that it finds
ASIDE_SCORE = 0.5  # off the score of what the first and the last sentence shown do not name
OUTSIDE_SCORE = 0.9  # off the score of one that is made of what the part does not show
HEDGED_SCORE = 0.8  # off the score of a finding that the sentence itself doubts
THEME_SCORE = 0.6  # for what the whole passage is about
MAX_THEME_COUNT = 4  # sentences with a word from which it is wholly what a passage is about
NO_THEME: Mapping[str, int] = MappingProxyType({})
MIN_NOUN_COUNT = 2  # sentences from which a noun is what a stretch is about
PROMPT_TALK_SCORE = 3.2  # score that a title needs where the passage speaks of prompts

_MAIL = re.compile(r"(?<![^\s@])[^\s@]*+@\S*")
_NAMED = re.compile(r"(?<=[a-z,] )[A-Z]\w*")
_ARTICLES = words_of("the a an each all this these in if der die das ein eine")
_DEED = re.compile(
    r"(?!exist|remain|follow|miss|correspond|interest|surround|[a-z]{1,3}ing)[a-z]{3,}ing \w"
)
"""What is done, and needs no other verb."""

_HEDGE = re.compile(r"\b(?:may|might|could|maybe|perhaps|probably)\b|可能|也许|vielleicht")
_NAME = re.compile(r"(?<=\w )[A-Z]\w+|\b\w*\d\w*")


def make_title(
    body: Sequence[str],
    headings: Sequence[str],
    taken: Sequence[str],
    others: Sequence[str] = (),
    theme: Mapping[str, int] = NO_THEME,
    *,
    privacy: Privacy | None = None,
) -> str:
    """Make a title of at most `MAX_TITLE_CHARS`, without markup.

    `body` are the sentences that the part shows, `headings` the headings and bold labels of the
    passage, `others` more of its sentences, about the same. `theme` says how many of its sentences
    have a topic word. `taken` are the titles of earlier parts, which are not repeated as long as
    there is another. `privacy` is that of the passage.
    """
    shown = _clip(dict.fromkeys(body[:MAX_SENTENCES]))
    more = _clip(dict.fromkeys(others[:MAX_SENTENCES]))
    labels = _clip(headings[:MAX_HEADINGS])
    texts = [*shown, *more, *labels]
    language = language_of(texts)
    hidden = set(filter((privacy or Privacy("\n".join(texts))).covers, texts))
    prompt_talk = hidden.intersection(shown + more)
    private = frozenset(name for text in prompt_talk for name in _NAME.findall(text))
    earlier = taken[-MAX_TAKEN:]
    patterns = language.patterns if earlier else language.first_patterns
    sources = _Texts(
        [text for text in shown if text not in hidden],
        [text for text in labels + more if text not in hidden],
        theme,
    )
    best = _best_draft(patterns, sources, earlier, private)
    is_named = best.text and best.text not in NAMELESS
    if is_named and (best.score >= PROMPT_TALK_SCORE or not prompt_talk):
        return best.text
    if prompt_talk and title_key(language.on_request) not in map(title_key, earlier):
        return language.on_request
    known = set(map(title_key, earlier))
    for title in name_again(best.text, earlier):
        if title_key(title) not in known and is_presentable(title):
            return title
    if best.text:
        return best.text
    last_used = {title_key(title): position for position, title in enumerate(earlier)}
    return min(language.last_resort, key=lambda title: last_used.get(title_key(title), -1))


def _best_draft(
    patterns: Sequence[Pattern],
    texts: _Texts,
    earlier: Sequence[str],
    private: frozenset[str],
) -> Draft:
    """Return the best title for what the sentences say.

    Patterns come by their scores, so most are not looked for.
    """
    best = Draft("", -9.0)
    known = {title_key(title) for title in earlier}
    for pattern in patterns:
        if pattern.score + THEME_SCORE <= best.score:
            break
        for title, score in texts.drafts(pattern, best.score):
            if (
                title_key(title) not in known
                and is_presentable(title)
                and private.isdisjoint(WORD.findall(title))
            ):
                draft = Draft(title, score - _repetition(title, earlier))
                best = max(best, draft, key=lambda draft: draft.score)
    return best


class _Texts:
    """The sentences of a part, those that it shows first."""

    def __init__(
        self, body: Sequence[str], others: Sequence[str], theme: Mapping[str, int]
    ) -> None:
        self._texts = [plain(text) for text in (*body, *others)]
        self._lowered = [text.lower() for text in self._texts]
        self._words = [frozenset(WORD.findall(text)) for text in self._lowered]
        self._all_words = frozenset().union(*self._words)
        self._shown = len(body)
        self._theme = theme or Counter(chain.from_iterable(map(topic_words, self._lowered)))
        shown = range(len(body))
        self._early = [(POSITION_SCORE * position, place) for position, place in enumerate(shown)]
        self._late = list(zip((loss for loss, _ in self._early), reversed(shown), strict=True))
        self._all = self._early + [
            (OUTSIDE_SCORE + POSITION_SCORE * position, len(body) + position)
            for position in range(len(others))
        ]

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(_NAMED.findall("\n".join(self._texts)))

    @cached_property
    def _edges(self) -> frozenset[str]:
        return topic_words(" ".join(self._lowered[: self._shown][:: max(1, self._shown - 1)]))

    @cached_property
    def _counts(self) -> Counter[str]:
        return Counter(chain.from_iterable(map(topic_words, self._lowered[: self._shown])))

    def drafts(self, pattern: Pattern, least: float) -> Iterator[Draft]:
        """Yield what a pattern makes of the sentences, as far as it may be better than `least`."""
        if pattern.part == "recurring" and pattern.grammar is not None:
            thing = pattern.grammar.recurring(self._texts, self._shown)
            thing = _uncapitalized(thing, self._names)
            yield Draft(_fill(pattern, {}, thing), pattern.score)
            return
        if pattern.part == "frequent":
            for place, noun in enumerate(self._frequent_nouns(pattern)):
                yield Draft(_fill(pattern, {}, noun), pattern.score - POSITION_SCORE * place)
            return
        held, words = pattern.held, self._words
        if held and held.isdisjoint(self._all_words):
            return
        named = "{" in pattern.form
        for loss, place in self._late if pattern.late else self._all if named else self._early:
            if pattern.score - loss + THEME_SCORE <= least or (
                held and held.isdisjoint(words[place])
            ):
                continue
            if found := pattern.find(self._lowered[place]):
                title = _form(pattern, found, self._texts[place], self._names)
                yield Draft(title, pattern.score - loss + self._weight(title, pattern))

    def _frequent_nouns(self, pattern: Pattern) -> list[str]:
        """Return the nouns shown that the passage has in several sentences, the most frequent
        first."""
        counts = {
            noun: min((self._theme.get(word, 0) for word in topic_words(noun.lower())), default=0)
            for noun in pattern.found.findall("\n".join(self._texts[: self._shown]))
        }
        grammar = pattern.grammar
        nouns = [
            noun
            for noun, count in counts.items()
            if count >= MIN_NOUN_COUNT
            and (noun.lower() not in grammar.vague if grammar else cut_wide(noun))
        ]
        return sorted(nouns, key=lambda noun: (counts[noun], len(noun)), reverse=True)

    def _weight(self, title: str, pattern: Pattern) -> float:
        """Return what to add for a title whose words tell much, and which other sentences use."""
        if "{" not in pattern.form:
            return 0.0
        words = topic_words(title.partition(" ")[2].lower())
        score = -0.1 * max(0, len(title.split()) - 8) + self._centrality(words)
        if pattern.part in ("subject", "clause"):
            used = sum(self._counts[word] > 1 for word in words)
            score -= 0.5 * (used < 1 + (pattern.part == "clause"))
            score -= HEDGED_SCORE * (_HEDGE.search(title) is not None)
        if pattern.part == "subject":
            score -= 1.2 * (len(words) < 2)
        if pattern.part in ("subject", "clause", "noun") and pattern.score < SURE_SCORE:
            score -= ASIDE_SCORE * (len(words) > 1 and words.isdisjoint(self._edges))
        return score - 0.6 * (len(words) < 2 and title.isascii())

    def _centrality(self, words: frozenset[str]) -> float:
        """Score up to `THEME_SCORE` for words that the passage says again and again."""
        if not words:
            return 0.0
        shares = [min(MAX_THEME_COUNT, self._theme.get(word, 1)) - 1 for word in words]
        return THEME_SCORE * sum(shares) / len(words) / (MAX_THEME_COUNT - 1)


def _form(pattern: Pattern, found: re.Match[str], sentence: str, names: frozenset[str]) -> str:
    """Return the title for what was found in a sentence; empty if it names nothing."""
    if "{" not in pattern.form:
        return pattern.form
    groups = {name: sentence[slice(*found.span(name))] for name in found.re.groupindex}
    if "how" in groups:
        groups["how"] = groups["how"].lower()
    verb = pattern.verb_of(groups.get("verb", ""))
    thing = groups.get("object") or sentence[found.end() :]
    if pattern.grammar is None:
        thing = clause_wide(thing) if pattern.part == "clause" else cut_wide(thing)
    else:
        rest = pattern.form.format(**{**groups, "verb": verb, "object": ""})
        cut = getattr(pattern.grammar, pattern.part)
        room = min(MAX_WORDS, MAX_TITLE_WORDS - len(rest.split()))
        if pattern.part != "value":
            thing = _uncapitalized(thing, names, all_nouns=pattern.grammar.capitals)
        whole = thing
        thing = cut(whole, room)
        while thing and len(thing) + len(rest) > MAX_TITLE_CHARS:
            room = len(thing.split()) - 1
            thing = cut(whole, room)
    return "" if "verb" in groups and not verb else _fill(pattern, groups | {"verb": verb}, thing)


def _fill(pattern: Pattern, groups: dict[str, str], thing: str) -> str:
    """Return the title, empty without a thing. A thing that is done needs no other verb."""
    if not thing:
        return ""
    is_done = pattern.part in ("subject", "recurring") and _DEED.match(thing)
    form = "{object}" if is_done else pattern.form
    return capitalize(form.format(**{**groups, "object": thing}))


def _uncapitalized(text: str, names: frozenset[str], *, all_nouns: bool = False) -> str:
    """Write the first word of a sentence small, unless it seems to be a name."""
    first = WORD.match(text)
    word = first[0] if first else ""
    is_name = word[1:2].isupper() or word in names or len(word) == 1 or all_nouns
    return text if is_name and word.lower() not in _ARTICLES else text[:1].lower() + text[1:]


def _clip(texts: Iterable[str]) -> list[str]:
    clipped = (text[:MAX_SENTENCE_CHARS].strip() for text in texts)
    return [_MAIL.sub("\0", text) if "@" in text else text for text in clipped]


def _repetition(title: str, earlier: Sequence[str]) -> float:
    """Return what to take off a title of which earlier ones say the same, or that begin alike."""
    words = _topic_of(title)
    told = sum(4 * len(words & _topic_of(other)) >= 3 * len(words) for other in earlier if words)
    first = title.split(maxsplit=1)[0]
    return 0.9 * told + 0.3 * sum(other.startswith(first) for other in earlier[-3:])


def _topic_of(title: str) -> set[str]:
    return {word for word in title.lower().split()[1:] if len(word) > 3}
