"""Make the title of a part: what it is about, as a status line would say it.

A title is made, not cut: "I need to compare the two plans" gives "Comparing the two plans". It is
in the language of the sentences. It names the task of the part, or what its last finding says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from types import MappingProxyType

from abridge.summarizers.extractive.openings import capitalize
from abridge.summarizers.extractive.privacy import Privacy
from abridge.summarizers.extractive.titles.drafts import (
    MAX_CLAUSE_TITLE_WORDS,
    MAX_TITLE_CHARS,
    MAX_TITLE_WORDS,
    Draft,
    is_presentable,
    title_key,
)
from abridge.summarizers.extractive.titles.languages import language_of
from abridge.summarizers.extractive.titles.patterns import Pattern
from abridge.summarizers.extractive.titles.phrases import Grammar, clause_wide, cut_wide, plain
from abridge.summarizers.extractive.titles.topics import take_up
from abridge.summarizers.extractive.words import topic_words, words_of

MAX_SENTENCES = 9  # different sentences that are read for a title
MAX_SENTENCE_CHARS = 400  # characters of a sentence that are read
MAX_HEADINGS = 12  # headings that are read for a title
MAX_TAKEN = 60  # earlier titles that a title must differ from, the latest of them
POSITION_SCORE = 0.2  # off the score of a title for each sentence that would be a better source
HEADING_SCORE = 2.5  # for the heading of a passage, which is a title already, half for each of two
MANY_HEADINGS = 3  # of which none says what the whole passage is about
MAX_POSITION = 4  # sentences of which that is true at most
LATE_SCORE = 0.35  # the same for each sentence that comes after a finding
SETTLED_SHARE = 0.5  # of both for what is settled on, which may be said at the beginning
ASIDE_SCORE = 0.5  # off the score of a finding that the first and the last sentence do not share
CUT_SCORE = 0.3  # off the score of a phrase that goes on
HALVED_SCORE = 0.8  # off the score of one that says something else without what follows
THEME_SCORE = 0.8  # for what the whole passage is about
MAX_THEME_COUNT = 4  # sentences with a word from which it is wholly what a passage is about
WEAK_SCORE = 3.0  # up to which a title says less than what the whole is about
NO_THEME: Mapping[str, int] = MappingProxyType({})
PROMPT_TALK_SCORE = 3.2  # score that a title needs where the passage speaks of prompts

_WORD = re.compile(r"\w+")
_MAIL = re.compile(r"(?<![^\s@])[^\s@]*+@\S*")
_NAMED = re.compile(r"(?<=[a-z,] )[A-Z]\w*")
_ARTICLES = words_of("the a an each all this these in if der die das ein eine")
_NAME = re.compile(r"(?<=\w )[A-Z]\w+|\b\w*\d\w*")
_HALVED_BEFORE = words_of(
    "that who whose which of and or than versus vs it them this these i we you he she they"
)
"""Words that bring what a phrase cannot do without."""


def make_title(
    body: Sequence[str],
    headings: Sequence[str],
    taken: Sequence[str],
    first: Sequence[str] = (),
    theme: Mapping[str, int] = NO_THEME,
    *,
    privacy: Privacy | None = None,
) -> str:
    """Make a title of at most `MAX_TITLE_CHARS`, without markup.

    `body` are the sentences that the part shows, `headings` the headings and bold labels of the
    passage, `first` the sentences that it begins with, shown or not. `theme` says how many of its
    sentences have a topic word. `taken` are the titles of earlier parts, which are not repeated as
    long as there is another. `privacy` is that of the passage.
    """
    shown = _clip(dict.fromkeys(body[:MAX_SENTENCES]))
    more = _clip(dict.fromkeys(first[:MAX_SENTENCES]))
    labels = _clip(headings[:MAX_HEADINGS])
    texts = [*shown, *more, *labels]
    language = language_of(texts)
    hidden = set(filter((privacy or Privacy("\n".join(texts))).covers, texts))
    prompt_talk = hidden.intersection(shown + more)
    private = frozenset(name for text in prompt_talk for name in _NAME.findall(text))
    earlier = taken[-MAX_TAKEN:]
    patterns = language.patterns if earlier else language.first_patterns
    shown, more, labels = (_without(hidden, each) for each in (shown, more, labels))
    sources = _Texts(shown, more, labels, theme)
    best = _best_draft(patterns, sources, earlier, private)
    known = set(map(title_key, earlier))
    if prompt_talk and best.score < PROMPT_TALK_SCORE:
        if title_key(language.on_request) not in known:
            return language.on_request
    elif best.score < WEAK_SCORE:
        for title in take_up(earlier, language.goes_on):
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
        if pattern.score + texts.most_added <= best.score:
            break
        for title, score in texts.drafts(pattern, best.score):
            if (
                title_key(title) not in known
                and is_presentable(title)
                and private.isdisjoint(_WORD.findall(title))
            ):
                draft = Draft(title, score - _repetition(title, earlier))
                best = max(best, draft, key=lambda draft: draft.score)
    return best


class _Texts:
    """The sentences of a part that it shows, those that it begins with, and its headings."""

    def __init__(
        self, body: list[str], first: list[str], labels: list[str], theme: Mapping[str, int]
    ) -> None:
        sentences = list(dict.fromkeys([*first, *body]))
        self._texts = [plain(text) for text in (*sentences, *labels)]
        self._lowered = [text.lower() for text in self._texts]
        self._shown = [sentences.index(one) for one in body]
        self._theme = theme or Counter(chain.from_iterable(map(topic_words, self._lowered)))
        heading = HEADING_SCORE / len(labels) if 0 < len(labels) < MANY_HEADINGS else 0.0
        self.most_added = THEME_SCORE + heading
        self._early = [(-heading, len(sentences) + place) for place in range(len(labels))]
        self._early += [
            (POSITION_SCORE * min(place, MAX_POSITION), place) for place in range(len(sentences))
        ]
        self._late = [(LATE_SCORE * at, place) for at, place in enumerate(self._shown[::-1])]

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(_NAMED.findall("\n".join(self._texts)))

    @cached_property
    def _edges(self) -> frozenset[str]:
        edges = (*self._shown[:1], *self._shown[-1:])
        return topic_words(" ".join(self._lowered[place] for place in edges))

    def drafts(self, pattern: Pattern, least: float) -> Iterator[Draft]:
        """Yield what a pattern makes of the sentences, as far as it may be better than `least`."""
        if pattern.part == "frequent":
            for place, noun in enumerate(self._frequent_nouns(pattern)):
                yield Draft(_fill(pattern, {}, noun), pattern.score - POSITION_SCORE * place)
            return
        share = SETTLED_SHARE if pattern.part == "value" else 1.0
        for loss, place in self._late if pattern.late else self._early:
            score = pattern.score - share * loss
            if score + THEME_SCORE > least and (found := pattern.find(self._lowered[place])):
                title, cut_off = _form(pattern, found, self._texts[place], self._names)
                yield Draft(title, score + self._weight(title, pattern) - cut_off)

    def _frequent_nouns(self, pattern: Pattern) -> list[str]:
        """Return the nouns shown, those that most sentences of the passage have first."""
        grammar = pattern.grammar
        found = pattern.found.findall("\n".join(self._texts[place] for place in self._shown))
        counts = {
            noun: min((self._theme.get(word, 0) for word in topic_words(noun.lower())), default=0)
            for noun in found
            if (grammar.phrase(noun, MAX_TITLE_WORDS) == noun if grammar else cut_wide(noun))
        }
        nouns = sorted(counts, key=lambda noun: (counts[noun], len(noun)), reverse=True)
        nouns = [noun for noun in nouns if counts[noun]]
        return [_uncapitalized(noun, self._names, grammar) for noun in nouns] if grammar else nouns

    def _weight(self, title: str, pattern: Pattern) -> float:
        """Return what to add for a title of which other sentences speak, too."""
        if "{" not in pattern.form:
            return 0.0
        words = topic_words(title.partition(" ")[2].lower())
        is_aside = pattern.late and len(words) > 1 and words.isdisjoint(self._edges)
        return self._centrality(words) - ASIDE_SCORE * is_aside

    def _centrality(self, words: frozenset[str]) -> float:
        """Score up to `THEME_SCORE` for words that the passage says again and again."""
        if not words:
            return 0.0
        shares = [min(MAX_THEME_COUNT, self._theme.get(word, 1)) - 1 for word in words]
        return THEME_SCORE * sum(shares) / len(words) / (MAX_THEME_COUNT - 1)


def _form(
    pattern: Pattern, found: re.Match[str], sentence: str, names: frozenset[str]
) -> tuple[str, float]:
    """Return the title for what was found in a sentence, empty if it names nothing; and what it
    loses by what was cut off."""
    if "{" not in pattern.form:
        return pattern.form, 0.0
    groups = {name: sentence[slice(*found.span(name))] for name in found.re.groupindex}
    if "how" in groups:
        groups["how"] = groups["how"].lower()
    cut_off, verb = 0.0, pattern.verb_of(groups.get("verb", ""))
    thing = groups.get("object") or sentence[found.end() :]
    if pattern.grammar is None:
        thing = clause_wide(thing) if pattern.part == "clause" else cut_wide(thing)
    else:
        rest = pattern.form.format(**{**groups, "verb": verb, "object": ""})
        if pattern.grammar.measures:
            thing = re.sub(pattern.grammar.measures, "", thing)
        asks = thing.partition(" ")[0].lower() in pattern.grammar.clauses
        if asks or (found.start("object") if "object" in groups else found.end()) == 0:
            thing = _uncapitalized(thing, names, pattern.grammar)
        is_clause = asks or pattern.part in ("clause", "value")
        thing, cut_off = _cut(
            getattr(pattern.grammar, pattern.part), thing, rest, is_clause=is_clause
        )
    if "verb" in groups and not verb:
        return "", 0.0
    return _fill(pattern, groups | {"verb": verb}, thing), cut_off


def _cut(
    cut: Callable[[str, int], str], whole: str, rest: str, *, is_clause: bool
) -> tuple[str, float]:
    """Cut a phrase so that it fits with the rest of a title, and say what it loses by that.

    One that would say something else without what follows may be a little longer, or is cut before.
    """
    long_room = MAX_CLAUSE_TITLE_WORDS - len(rest.split())
    room = long_room if is_clause else MAX_TITLE_WORDS - len(rest.split())
    thing = cut(whole, room)
    while thing and len(thing) + len(rest) > MAX_TITLE_CHARS:
        thing = cut(whole, len(thing.split()) - 1)
    loss = _loss_of_cut(whole, thing)
    if loss == HALVED_SCORE:
        for other in (cut(whole, long_room), cut(whole, len(thing.split()) - 1)):
            fits = len(other) + len(rest) <= MAX_TITLE_CHARS and len(other.split()) > 2
            if fits and _loss_of_cut(whole, other) < loss:
                return other, CUT_SCORE
    return thing, loss


def _loss_of_cut(whole: str, thing: str) -> float:
    """Return what a phrase loses by the words that follow it in its sentence."""
    rest = whole.removeprefix(thing) if thing else whole
    following = rest.split(maxsplit=1)[0].lower() if rest[:1] == " " else ""
    return HALVED_SCORE if following in _HALVED_BEFORE else CUT_SCORE * (following != "")


def _fill(pattern: Pattern, groups: dict[str, str], thing: str) -> str:
    """Return the title, empty without a thing."""
    return capitalize(pattern.form.format(**{**groups, "object": thing})) if thing else ""


def _without(hidden: set[str], texts: Sequence[str]) -> list[str]:
    return [text for text in texts if text not in hidden]


def _uncapitalized(text: str, names: frozenset[str], grammar: Grammar) -> str:
    """Write the first word of a sentence small, unless it seems to be a name."""
    first = _WORD.match(text)
    word = first[0] if first else ""
    is_name = word[1:2].isupper() or word in names or len(word) == 1 or grammar.capitals
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
