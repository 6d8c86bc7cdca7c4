"""Make titles of English sentences: a gerund, and what it is about.

A sentence that says what is to be done ("I need to compare the two plans") gives its verb and
object. One that states something gives its subject alone, under a verb that claims nothing
("Considering the two plans"), so that no title contradicts the text.

The patterns by which sentences are recognised are of lower case.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from abridge.summarizers.extractive.alternatives import group_alternatives
from abridge.summarizers.extractive.titles.drafts import Draft
from abridge.summarizers.extractive.titles.phrases import (
    MAX_WORDS,
    Phrase,
    cut_verb,
    names_something,
    parse,
    render,
    shorten,
)
from abridge.summarizers.extractive.titles.words import (
    CLASS_OF,
    DURATIONS,
    GERUNDS,
    QUANTIFIERS,
    STRONG_VERBS,
    VAGUE_WORDS,
    VERBS,
    gerund_of,
    third_person_of,
)

LEAD = re.compile(
    r"(?:(?:so|but|and|or|therefore|thus|hence|also|now|then|because|since|first(?:ly)?|next"
    r"|finally|lastly|however|alternatively|similarly|additionally|wait|okay|ok|yes|well|actually"
    r"|perhaps|maybe|overall|in (?:short|summary|total|the end)|for example"
    r"|another (?:thought|idea|angle)|potential issue|issue"
    r"|(?:that|this) (?:means|implies|suggests)"
    r"|(?:the )?(?:key |main )?(?:insight|point|observation|catch|thing|idea|fact)(?: here)? is"
    r" that"
    r"|it (?:seems|appears|turns out)|(?:i|we) (?:think|know|see|guess|believe|notice|realize|have)"
    r"|there (?:is|are|was|were)|if|suppose|that)\b[,:\s]*)+"
)

_FILLERS = (
    r"(?:\s+(?:also|first|now|then|just|simply|carefully|quickly|next|probably|really|only|still"
    r"|again|double[- ]?|clearly|briefly|definitely|actually))*\s+"
)

_TO_DO = group_alternatives(
    r"(?:goal|aim|task|idea|plan|key|step|challenge|objective|point|trick|focus|job|strategy"
    r"|approach|solution|option|fix|thing|remedy|answer)"
    r"(?: here| now)? (?:is|was)(?: to)?"
    r"|(?:important|crucial|essential|necessary|best|good|better|wise|useful|helpful"
    r"|safer|easier|simplest|requires|trying) to"
)

INTENT = re.compile(
    r"\b(?=[a-z])(?:(?:"
    r"(?:i|we)(?:['’]ll|['’]d like to| will| should| need to| have to| must| want to| plan to"
    r"|['’]m going to| am going to| decided to| needed to| wanted to| (?P<weak>can|could|might))"
    r"|let(?:['’]?s| me| us)"
    rf"|{_TO_DO}"
    r"|(?P<task>(?:user|question|problem|task) (?:wants|would like|asks|asked|needs|requested"
    r"|is asking|is|requires)(?: me| us)? to|(?:we|i) (?:are|am|were|was) (?:asked|told) to))"
    + _FILLERS
    + r"|(?:involves?|focus(?:es)? on|centers on|includes?|requires?|consists of|about"
    r"|(?P<means>by))"
    r" (?=\w+ing\b)"
    r"|(?:use|using|call|run|do|search)\b[^.,]{1,40}? to (?=(?:verify|confirm|check|find"
    r"|identify|determine|measure|compare)\b))"
    r"|^to (?=\w+ [^,]{8,80}, (?:i|we|let)\b)"
    r"|(?P<order>(?:^|: )(?:(?:first|next|then|finally|lastly|second|third),? )?)"
    r"(?=[a-z]\w+ (?:the|a|an|one|two|each|every|all|how|why|whether|which|that|this)\b)"
)
"""What comes before a verb that says what is to be done."""

DETOUR = re.compile(
    r"^(?:(?:start|begin) (?:off )?by |try(?:ing)? (?:to |(?=\w+ing))|attempt to |be able to "
    r"|remember to |be sure to |need to |have to |go ahead and |take a moment to |get to |help \w+ "
    r"|(?:carefully|simply|just|also|first) )+"
)
"""What may stand between that and the verb that counts."""

REPLACED = (
    (re.compile(r"(?:make sure|ensure)(?: that)? "), "check whether "),
    (
        re.compile(
            r"(?:check|verify|confirm|see)(?: (?:that|if|whether))? "
            r"(?=(?:(?:the|a|this|that|these|all|each|every|any|there) )?.{3,60}\b"
            r"(?:is|are|was|were|has|had|have|does|do|did|can)\b)"
        ),
        "check whether ",
    ),
    (re.compile(r"(?:check|verify|confirm|see) (?:if|that) "), "check whether "),
    (re.compile(r"(?:see|know|think about|think) (?=(?:how|why|what|where)\b)"), "work out "),
    (re.compile(r"(?:take|get|have) (?:a|another) (?:closer )?look at "), "look at "),
    (re.compile(r"go (?:with|for) "), "choose "),
    (re.compile(r"(?:go|run|walk) (?:through|over) "), "review "),
    (re.compile(r"come up with "), "devise "),
)
"""Words that stand for a verb, and the verb."""

NUMBERED = re.compile(r"^(?:(?:step|part|phase|section|option)\s*)?\w{1,3}[:.)]\s+", re.IGNORECASE)

METHOD = re.compile(
    r"^\S+ [^,.;:]*\b(?:formula|algorithm|rule|theorem|method|law|identity|test|lemma|equation)\b"
)
"""What is applied, where other things that are used are only considered."""

META_VERBS = frozenset(("Responding", "Answering", "Mentioning", "Ensuring", "Reminding", "Giving"))
"""Gerunds that tell little of what is thought about."""

ASKED = re.compile(
    r"\b(?:user|question|riddle|problem|puzzle|task|he|she)(?: here)? (?:"
    r"(?P<search>is asking for|asks for|asked for|is looking for|is to find)"
    r"|(?P<about>is asking about|asks about|asked about|is about|concerns)"
    r"|(?P<how>asks|is asking|wants to (?:know|understand|find out)|asked|is)"
    r"(?= (?:how|why|what|whether|where|which)\b)"
    r"|(?P<do>wants to|would like to|needs to)(?= (?!know|understand|be\b|have\b))"
    r"|(?P<want>wants|would like|needs|requested|requests)(?! (?:me|to)\b)) "
)

ASKED_VERBS = MappingProxyType(
    {
        "search": ("Looking for", "Finding"),
        "about": ("Looking into", "Exploring"),
        "want": ("Working on", "Preparing"),
        "how": ("Working out", "Figuring out"),
        "do": ("Working out how to", "Figuring out how to"),
    }
)

TROUBLE = re.compile(r"\b(?:problem|issue|bug|cause|error|catch|trouble)(?: here)? is(?: that)? ")

ANSWER = re.compile(
    r"\b(?:answer|result|solution) (?:is|should be|must be|would be)(?: (?:just|simply|clearly))? "
    r"(?P<answer>[^,.;:(]{2,40}?)(?=$|[,.;:(]| because| since| as )"
)

HEDGE = re.compile(
    r"\b(?:might|maybe|perhaps|could|possibly|if|suppose|not|probably|unless)\b|n['’]t\b|\?"
)

OTHERS = re.compile(r"\w+ (?:\w+ )?(?:his|her|its|their|such)\b")

KIND = re.compile(
    r"\b(?:(?P<trouble>bugs?|errors?|fail\w*|crash\w*|missing|unused|wrong|mistakes?|root cause"
    r"|broken|incorrect|mismatch|contradict\w*|issues?|problems?)"
    r"|(?P<check>check\w*|verif\w+|confirm\w*|consistent|match\w*|make sure|correct)"
    r"|(?P<choice>versus|compared|alternatives?|either|options?|prefer|trade-?offs?)"
    r"|(?P<conclusion>therefore|thus|hence|conclu\w+|overall))\b"
)

KIND_VERBS: Mapping[str | None, tuple[str, ...]] = MappingProxyType(
    {
        "trouble": ("Investigating", "Diagnosing", "Looking into"),
        "check": ("Checking", "Verifying", "Reviewing"),
        "choice": ("Weighing", "Comparing", "Considering"),
        "conclusion": ("Considering", "Drawing conclusions about"),
        None: ("Considering", "Examining", "Exploring", "Looking at"),
    }
)
"""Verbs for a topic, by the kind of sentence that speaks of it."""

QUANTITY = re.compile(
    r"\b(?:rate|time|cost|number|total|sum|product|count|speed|distance|area|volume|weight|price"
    r"|probability|average|ratio|percentage|budget|value|length|duration)s?\b"
)

QUANTITY_VERBS = ("Working out", "Calculating", "Checking")

IDENTIFIER = re.compile(r"[a-z][A-Z]|[a-z]_[a-z]|\w\(\)|[a-z]\.[a-z]")

IDENTIFIER_VERBS = ("Inspecting", "Reviewing", "Examining", "Tracing")


MAX_TEXT_CHARS = 4000
"""Characters of a passage in which words are counted."""

MAX_STATEMENTS = 5
"""Sentences whose subject is looked for; only what is to be done is looked for in the others."""

MAX_LEAD_CHARS = 110
"""Characters of a sentence within which it must come to what is to be done."""

MAX_HEADINGS = 4
"""Different headings of which titles are made."""

_NOUN_PHRASE = r"D[NSE#G]*N#?|[NS#][NSG]*N#?|N#?"

_TOPIC = re.compile(rf"(?:{_NOUN_PHRASE})(?:O(?:{_NOUN_PHRASE}))?")

_SUBJECT = re.compile(rf"(?:{_NOUN_PHRASE})(?:[OP](?:{_NOUN_PHRASE})){{0,2}}(?=L*[XVE]|[.ZC]|$)")

_GERUND_SUBJECT = re.compile(r"G(?=[DNSP#]).{1,9}?N(?=L*[XV]|\.)")

_PREDICATE = re.compile(r"L*X?L*[VN]")

_OBJECT = re.compile(r"L*X?L*[VE]P?(?P<object>D[NSE#G]*N|[NS][NS]*N)(?=[.COPAT]|$)")

_ASKED_OF = MappingProxyType(
    {
        form: verb
        for verb in ("take", "need", "require", "make", "produce", "cost", "weigh")
        for form in (verb, third_person_of(verb))
    }
)
"""Forms of verbs that say what something takes or makes, and the verbs."""

_LONG_WORD = re.compile(r"[a-z][\w'.()-]*[\w)]")

_PROPER = re.compile(r"[A-Z](?<=[a-z,;] [A-Z])\w+")  # starts with a character: fast to find


@dataclass(slots=True, frozen=True)
class Subject:
    """What a passage speaks of."""

    lower: str  # its text
    theme: Counter[str]  # its longer words
    proper: frozenset[str]  # words with a capital letter within a sentence
    topics: Counter[str]  # noun phrases of the sentences read so far, by their keys
    phrases: dict[str, tuple[Phrase, bool]]  # the first of each, and whether it began a sentence


def draft_english(sentences: Sequence[str], headings: Sequence[str]) -> Iterator[Iterator[Draft]]:
    """Yield titles for tasks, then titles for topics."""
    subject = _read_subject(sentences)
    yield _draft_tasks(sentences, headings, subject)
    yield _draft_topics(sentences, subject)


def _draft_tasks(
    sentences: Sequence[str], headings: Sequence[str], subject: Subject
) -> Iterator[Draft]:
    """Yield titles for headings, and for what sentences say is to be done, or asked."""
    seen = Counter(headings)
    for heading in list(seen)[:MAX_HEADINGS]:
        penalty = 1.0 * (seen[heading] > 1) + 0.5 * (len(seen) > 2)
        yield from _rate(_draft_heading(heading, penalty, subject), subject)
    lowered = [sentence.lower() for sentence in sentences]
    for position, (sentence, lower) in enumerate(zip(sentences, lowered, strict=True)):
        penalty = min(0.12 * position, 1.2) + 3.0 * lower.endswith("?")
        yield from _rate(_draft_intent(sentence, lower, penalty), subject)
        if position < MAX_STATEMENTS:
            yield from _rate(_draft_asked(sentence, lower, 0.2 * position), subject)
            yield from _draft_answer(sentence, lower, 0.2 * position, lowered)


def _draft_topics(sentences: Sequence[str], subject: Subject) -> Iterator[Draft]:
    """Yield titles for what sentences speak of, and for what the passage names often."""
    for position, sentence in enumerate(sentences[:MAX_STATEMENTS]):
        lower = sentence.lower()
        penalty = 0.3 * position + 3.0 * lower.endswith("?")
        yield from _rate(_draft_statement(sentence, lower, penalty, subject), subject)
    yield from _rate(_draft_common(_name_common(subject)), subject)


def _name_common(subject: Subject) -> list[tuple[str, int]]:
    """Return what a passage names most often, and how often."""
    common = []
    for key, count in subject.topics.most_common(8):
        phrase, at_start = subject.phrases[key]
        if name := _name(phrase, subject, at_start=at_start):
            common.append((name, count))
    return common[:5]


def _key_of(phrase: Phrase) -> str:
    start = phrase.classes.startswith("D")
    return " ".join(phrase.words[start:]).lower()


def _draft_common(topics: Sequence[tuple[str, int]]) -> Iterator[Draft]:
    """Draft titles for what a passage names often, alone and in pairs."""
    for topic, count in topics:
        for place, verb in enumerate(_verbs_for(topic, "")[:3]):
            yield Draft(f"{verb} {topic}", 0.3 + 0.3 * min(count, 5) - 0.2 * place)
    for (topic, _), (other, count) in pairwise(topics):
        apart = set(topic.lower().split()).isdisjoint(set(other.lower().split()) - {"the", "a"})
        if (
            apart
            and count > 1
            and len(f"{topic} {other}".split()) < MAX_WORDS - 1
            and " and " not in topic + other
        ):
            yield Draft(f"Considering {topic} and {other}", 0.7 + 0.3 * min(count, 5))


def _read_subject(sentences: Sequence[str]) -> Subject:
    text = "\n".join(sentences)[:MAX_TEXT_CHARS]
    lower = text.lower()
    theme = Counter(_LONG_WORD.findall(lower))
    return Subject(lower, theme, frozenset(_PROPER.findall(text)), Counter(), {})


def _rate(drafts: Iterable[Draft], subject: Subject) -> Iterator[Draft]:
    for draft in drafts:
        if draft.text.count(" ") < MAX_WORDS:
            yield Draft(draft.text, draft.score + _score_theme(draft.text, subject.theme))


def _score_theme(title: str, theme: Mapping[str, int]) -> float:
    """Score a title for words that the passage uses often, and for its length."""
    words = title.lower().split()[1:]
    content = [
        word
        for word in words
        if len(word) > 2 and word not in VAGUE_WORDS and CLASS_OF.get(word, "N") in "NVBE"
    ]
    if not content:
        return -2.0
    shared = sum(min(theme[word], 4) for word in content) / (len(content) + 1)
    return min(1.6, 0.5 * shared) + 0.3 * (2 <= len(words) <= 4) - 0.3 * (len(words) < 2)


def _draft_heading(heading: str, penalty: float, subject: Subject) -> Iterator[Draft]:
    """Draft "Choosing a database" for that, or "Choose a database"; else for what is named."""
    phrase = parse(NUMBERED.sub("", heading))
    if not 0 < len(phrase.words) <= MAX_WORDS or set("Z.RXC") & set(phrase.classes):
        return
    first = phrase.words[0].lower()
    rest = render(phrase.cut(1, len(phrase.words)))
    if first in GERUNDS and rest:
        yield Draft(f"{first.capitalize()} {rest}", 4.5 - penalty)
    elif first in VERBS and rest and phrase.classes[0] == "V":
        yield Draft(f"{gerund_of(first).capitalize()} {rest}", 4.0 - penalty)
    elif "V" not in phrase.classes and (name := _name(phrase, subject)):
        for place, verb in enumerate(_verbs_for(name, heading.lower())):
            yield Draft(f"{verb} {name}", 3.0 - penalty - 0.3 * place)


def _draft_intent(sentence: str, lower: str, penalty: float) -> Iterator[Draft]:
    """Draft "Comparing the two plans" for "I need to compare the two plans"."""
    for found in list(INTENT.finditer(lower, 0, MAX_LEAD_CHARS))[:3]:
        if found["order"] == ": " and " or " in lower:  # one of several that are only named
            continue
        start = found.end()
        if detour := DETOUR.match(lower[start:]):
            start += detour.end()
        rest = sentence[start:]
        replaced = _replace_verb(rest)
        title, strong = _gerund_phrase(replaced)
        if not title and replaced is not rest:
            title, strong = _gerund_phrase(rest)
        if title:
            score = (
                (3.8 if strong else 2.4)
                + 0.4 * bool(found["task"])
                - 0.8 * bool(found["weak"] or found["means"])
            )
            score -= 0.4 * (found.start() > 40) + 1.0 * bool(OTHERS.match(rest))
            score -= 1.0 * (title.split()[0] in META_VERBS)
            yield Draft(title, score - penalty)


def _replace_verb(text: str) -> str:
    lower = text.lower()
    for pattern, verb in REPLACED:
        if found := pattern.match(lower):
            return verb + text[found.end() :]
    return text


def _gerund_phrase(text: str) -> tuple[str, bool]:
    """Return a title for a text that begins with a verb, and whether it is a strong one."""
    phrase = parse(text)
    if len(phrase.words) < 2:
        return "", False
    first = phrase.words[0].lower()
    verb = GERUNDS.get(first, first)
    if verb not in VERBS or phrase.words[1].lower() in ("as", "than", "like"):
        return "", False
    head = [gerund_of(verb).capitalize()]
    if verb == "use":
        head = ["Applying" if METHOD.search(text[:80].lower()) else "Considering"]
    while len(head) < 3 and phrase.classes[len(head) : len(head) + 1] in ("P", "T"):
        head.append(phrase.words[len(head)].lower())
    body = phrase.cut(len(head), len(phrase.words))
    strong = verb in STRONG_VERBS or head[1:2] == ["out"]
    if head == ["Finding", "out"] and body.classes.startswith("W"):
        head.pop()
    rest = shorten(body, head)
    return (" ".join([*head, rest]), strong) if rest else ("", False)


def _draft_asked(sentence: str, lower: str, penalty: float) -> Iterator[Draft]:
    """Draft a title for what the user or the question asks."""
    found = ASKED.search(lower, 0, MAX_LEAD_CHARS)
    if not found or found.lastgroup is None:
        return
    phrase = parse(sentence[found.end() :])
    for place, verb in enumerate(ASKED_VERBS[found.lastgroup]):
        if rest := shorten(phrase, verb.split()):
            yield Draft(f"{verb} {rest}", 3.4 - penalty - 0.4 * place)


def _draft_answer(
    sentence: str, lower: str, penalty: float, all_lower: Sequence[str]
) -> Iterator[Draft]:
    """Draft "Settling on the copper pipe" where that alone is called the answer."""
    found = ANSWER.search(lower)
    if not found or HEDGE.search(lower) or found.start() > 60:
        return
    answers = {match["answer"] for other in all_lower for match in ANSWER.finditer(other)}
    phrase = parse(sentence[found.start("answer") : found.end("answer")])
    if len(answers) > 1:
        yield Draft("Weighing the possible answers", 2.4 - penalty)
        return
    first = "".join(phrase.words[:1])
    named = phrase.classes[:1] == "D" or first[:1].isupper() or len(phrase.words) > 1
    whole = len(phrase.words) < 5 and _TOPIC.fullmatch(phrase.classes)
    if named and whole and names_something(phrase):
        yield Draft(f"Settling on {render(phrase)}", 3.5 - penalty)
    yield Draft("Working out the answer", 2.6 - penalty)


def _draft_statement(
    sentence: str, lower: str, penalty: float, subject: Subject
) -> Iterator[Draft]:
    """Draft titles for what a sentence speaks of, leaving out what it says of it."""
    lead = LEAD.match(lower)
    start = lead.end() if lead else 0
    trouble = TROUBLE.search(lower, start, start + 80)
    phrase = parse(sentence[trouble.end() if trouble else start :])
    for match in _TOPIC.finditer(phrase.classes):
        topic = phrase.cut(*match.span())
        key = _key_of(topic)
        subject.topics[key] += 1
        subject.phrases.setdefault(key, (topic, not match.start()))
    if gerund := _GERUND_SUBJECT.match(phrase.classes):
        title, strong = _gerund_phrase(" ".join(phrase.words[: gerund.end()]))
        listed = phrase.words[gerund.end() : gerund.end() + 1] == [","]
        if title and (strong or not listed or title.startswith("Looking")):
            yield Draft(title, 2.8 + 0.4 * strong - penalty)
    if found := _SUBJECT.match(phrase.classes):
        score = 2.2 + 0.8 * bool(trouble) - 0.5 * bool(HEDGE.search(lower)) - penalty
        named = phrase.cut(*found.span())
        rest = phrase.cut(found.end(), len(phrase.words))
        if not (name := _name(named, subject)) and (object_ := _OBJECT.match(rest.classes)):
            name = _name(rest.cut(*object_.span("object")), subject, at_start=False)
            score -= 0.3
        if name:
            score += 0.15 * min(subject.topics[_key_of(named)], 4)
            yield from _draft_subject(name, rest, _verbs_for(name, lower), score, subject)


def _draft_subject(
    name: str, rest: Phrase, verbs: Sequence[str], score: float, subject: Subject
) -> Iterator[Draft]:
    """Draft titles for the subject of a sentence, of which `rest` is said."""
    for place, verb in enumerate(verbs):
        yield Draft(f"{verb} {name}", score - 0.2 * place)
    if title := _question_of(name, rest):
        yield Draft(title, score + 0.3)
    elif title := _pair_of(name, rest, subject):
        yield Draft(title, score + 0.1)


def _question_of(name: str, rest: Phrase) -> str:
    """Return "Working out how long the trip takes" for "the trip takes two hours"."""
    found = _PREDICATE.match(rest.classes)
    verb = _ASKED_OF.get(rest.words[found.end() - 1].lower()) if found else None
    if not found or not verb or len(name.split()) > 3:
        return ""
    plural = name.endswith("s") and not name.endswith("ss")
    after = {word.lower() for word in rest.words[found.end() : found.end() + 4]}
    if verb in ("take", "make", "produce") and "#" not in rest.classes[found.end() :][:2]:
        return ""
    asked = "how long" if verb == "take" and after & DURATIONS else "what"
    return f"Working out {asked} {name} {verb if plural else third_person_of(verb)}"


def _pair_of(name: str, rest: Phrase, subject: Subject) -> str:
    """Return "Considering salt and the freezing point" for "salt lowers the freezing point"."""
    found = _OBJECT.match(rest.classes)
    if not found or len(name.split()) > 3 or " and " in name or "'" in name:
        return ""
    other = _name(rest.cut(*found.span("object")), subject, at_start=False)
    if (
        not other
        or other == name
        or len(other.split()) > 3
        or " of " in other
        or other[0].isdigit()
    ):
        return ""
    return f"Considering {name} and {other}"


def _verbs_for(name: str, lower: str) -> tuple[str, ...]:
    """Return the verbs that fit a topic, and the sentence that speaks of it."""
    if QUANTITY.search(re.split(" of | per ", name, maxsplit=1)[0]):
        return QUANTITY_VERBS
    if IDENTIFIER.search(name):
        return IDENTIFIER_VERBS
    kind = KIND.search(lower)
    return KIND_VERBS[kind.lastgroup if kind else None]


def _name(phrase: Phrase, subject: Subject, *, at_start: bool = True) -> str:
    """Return a noun phrase as it stands within a title; empty if it names nothing."""
    phrase = cut_verb(phrase)
    while phrase.words and phrase.words[0].lower() in QUANTIFIERS:
        if phrase.words[0].lower() in ("no", "neither"):
            return ""
        phrase = phrase.cut(1, len(phrase.words))
    name = shorten(phrase, ["Considering"]) if names_something(phrase) else ""
    first = name.split()[0] if name else ""
    if at_start and first.istitle() and first.isalpha() and not _is_proper(name, subject):
        name = name[0].lower() + name[1:]
    if name and phrase.classes[0] != "D" and _takes_article(name.lower(), subject.lower):
        return f"the {name}"
    return name


def _is_proper(name: str, subject: Subject) -> bool:
    first, _, rest = name.partition(" ")
    return first in subject.proper or rest[:1].isupper()


def _takes_article(name: str, text: str) -> bool:
    """Return true if `text` has a name with an article, or a word of it that can be counted."""
    if f"the {name}" in text:
        return True
    return (
        " " not in name and not name.endswith("s") and (f"{name}s" in text or f"a {name}" in text)
    )
