"""What the words of a language do to a phrase: end it, begin another, stand for something else."""

from __future__ import annotations

from typing import NamedTuple

from abridge.summarizers.extractive.words import words_of

(
    LINK,  # a phrase may be cut before it, and does not end with it
    WEAK,  # a phrase does not end with it
    ARTICLE,  # begins the name of a thing
    POINTER,  # points at what is not shown, before a noun
    PRONOUN,  # stands for what is not shown
    VAGUE,  # names nothing alone
    ADVERB,  # stands between a subject and its verb
    FILLER,  # is left out
    ASKING,  # begins a question
    BREAK,  # begins another clause
    AUXILIARY,  # a finite verb that tells nothing itself
    FINITE,  # a verb that can follow a subject
    BASE,  # one that can follow a subject in the plural
    VERB,  # a verb of which a title is made, in its base form
    GERUND,  # the same, ending in "ing"
    SAYING,  # may be followed by a clause that begins with "that"
    CONCLUDING,  # says that a clause is a conclusion
    GUESSING,  # says that it is a guess
    WANTING,  # says that somebody wants something
    PLACING,  # may stand before a file or a function
    SINCE,  # begins a clause after whose comma the statement comes
    TOPICAL,  # may stand before what a sentence is about
    SYMBOL,  # no word
) = (1 << bit for bit in range(23))


class Lexicon(NamedTuple):
    kinds: dict[str, int]  # of each word in small letters
    capitals: bool = False  # nouns begin with one
    measures: str = ""  # a pattern of what a title leaves out, such as "after seven months"


def lexicon(*rows: tuple[int, str], capitals: bool = False, measures: str = "") -> Lexicon:
    """Make a lexicon of rows of kinds and the words that are of them."""
    kinds: dict[str, int] = {}
    for kind, words in rows:
        for word in words_of(words):
            kinds[word] = kinds.get(word, 0) | kind
    return Lexicon(kinds, capitals, measures)
