"""How English sentences say what they are about, and the titles that are made of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from abridge.summarizers.extractive.titles import lexicon as does
from abridge.summarizers.extractive.titles.drafts import CLAUSES, Draft, Kind
from abridge.summarizers.extractive.titles.lexicon import lexicon
from abridge.summarizers.extractive.titles.phrases import ROOM, End, Words
from abridge.summarizers.extractive.titles.questions import PAST
from abridge.summarizers.extractive.titles.words import (
    BASES,
    GERUNDS,
    VERBS,
    gerund_of,
    third_person_of,
)
from abridge.summarizers.extractive.words import words_of

NOUN_ROOM = 8  # of a noun with what belongs to it
MIN_VERB_CHARS = 4  # of a verb that is not known
CONTEXT = 8  # words before another that say whose intention it is

_AUXILIARIES = (
    "is are was were am has have had can could will would should must may might does do did be been"
    " isn't aren't wasn't weren't don't doesn't didn't can't cannot won't wouldn't couldn't"
    " shouldn't hasn't haven't"
)
_POINTERS = "this these their his her my our your"
_PERSONS = "i we you me us i'm i'll i've we're we'll let's i'd we've you're"

ENGLISH = lexicon(
    (does.LINK, ("of to in on at by for with from into about over under between through"
                 " during without per than across against toward towards upon onto around"
                 " near after before along among behind beyond via whose despite regarding"
                 " until like as versus vs and or but so because since if while although"
                 " though unless that which who whose where when how why what whether then"
                 " using up out within inside based derived given relative")),
    (does.WEAK, ("the a an each every both all no any some more less most first next one's"
                 " its also just only very really too still exactly actually simply not how"
                 f" many these those this such other another same new way manner {_POINTERS}"
                 f" {_AUXILIARIES}")),
    (does.AUXILIARY, (f"{_AUXILIARIES} let let's lets needs takes gives makes means says"
                      " comes goes seems becomes being came come depends wants looks"
                      " provides went equals")),
    (does.PRONOUN, (f"{_PERSONS} {_POINTERS} he she it they him them itself themselves"
                    " myself there here it's that's there's such that those its they're"
                    " he's she's")),
    (does.POINTER, _POINTERS),
    (does.ARTICLE, ("the a an each every its these those that another any some no both all"
                    f" {_POINTERS} two three four five six seven eight nine ten one")),
    (does.VAGUE, ("a all answer answers approach area areas aspect basics beginning case"
                  " cases cause certain chance choice clearly conclusion condition context"
                  " crux data detail details end example examples fact final goal goals"
                  " hint idea input instance issue issues item items key kind level main"
                  " matter middle need note numbers one option options order other others"
                  " outcome part parts people person place point points possibilities"
                  " possibility premise previous problem problems purpose question"
                  " questions reason report request response rest result results riddle"
                  " root scenario search section sense sentence side situation solution"
                  " someone something anything everything nothing anyone start statement"
                  " step steps strategy stuff sure task text thing things third thought"
                  " time today tool tools topic total two type used user way ways whole"
                  " word words")),
    (does.ADJECTIVE, ("clear odd even open closed high low long short big small great good"
                      " bad fine hard full empty new old similar easier longer free harder"
                      " better worse larger smaller bigger higher lower straightforward"
                      " obvious simple correct same unclear different right wrong yes"
                      " likely important not still also indeed less more most possible true"
                      " false equal based given either")),
    (does.ADVERB, ("step also always only never just still already actually really"
                   " typically usually often then down away straight back out there"
                   " together first simply both all each now even probably likely indeed"
                   " definitely originally initially")),
    (does.FILLER, "also just simply carefully really actually indeed then now again"),
    (does.ASKING, "if how why what whether where who which when whose what's"),
    (does.BREAK, ("but suppose perhaps maybe regardless because so while although though"
                  " if before unless which whereas until then rather")),
    (does.FINITE, (f"{_AUXILIARIES} {' '.join(PAST.values())} contained died happened hit"
                   " meant needed said seemed showed stayed turned vanished ended started"
                   " used created caused changed failed led did took brought bought caught"
                   " drew drove felt got heard knew laid lay let met put read rode sat set"
                   " sold spoke spent stood stuck taught thought told understood wore"
                   f" {' '.join(map(third_person_of, sorted(BASES | VERBS)))}")),
    (does.BASE, " ".join(BASES)),
    (does.VERB, (f"{' '.join(VERBS)} get buy sell reach give become press see know take be"
                 " have wait")),
    (does.GERUND, " ".join(GERUNDS)),
    (does.SAYING, ("means implies shows proves confirms indicates suggests know note"
                   " notice see recall remember found find clear sure confident conclude"
                   " concluded conclusion say says given is think believe realize realized"
                   " follows out mean recommend true understand noting mentions mentioned"
                   " wonder wondering")),
    (does.CONCLUDING, ("so therefore thus hence overall ultimately means implies shows"
                       " proves confirms indicates follows consequently conclusion conclude"
                       " summary short finally turns clear meaning answer")),
    (does.GUESSING, ("maybe perhaps possibly think guess suspect suppose assume wonder"
                     " possible believe assuming might may could probably likely seems seem"
                     " if would presumably")),
    (does.LIMITING, ("no not never only every each all any none few most nor cannot from"
                     " unless until don't doesn't didn't can't won't isn't aren't wasn't"
                     " couldn't wouldn't shouldn't")),
    (does.WANTING, "user wants want ask asks asked asking goal aim task question riddle puzzle"),
    (does.TOPICAL, ("about of considering regarding suspect suspects wants needs requested"
                    " for has reports describes in to")),
    (does.SINCE, ("since because given assuming considering if when with although though"
                  " while as after for in by under from once whereas")),
)  # fmt: skip

_DOING = words_of("to let's lets should must can will i'll we'll please i we me us and could first")
"""Words before a verb in its base form that says what is done."""

_STEPS = words_of(
    "make put take give keep start note show recall say let ask mention output use get go come have"
    " be see know think look mean want need try feel seem state add set"
)  # fmt: skip
"""Verbs of what is done on the way."""

_BEFORE_DOING = words_of("by involves about consider suggest")
_PHRASES = {"see": "Working out", "know": "Working out", "think": "Working out",
            "answer": "Looking into", "use": "Considering",
            "using": "Considering"}  # fmt: skip
_PARTICLES = words_of("out up through into at down about for on with to from")
_STATES = {
    "concluded": "Concluding that",
    "stated": "Noting that",
    "supposed": "Considering whether",
}
_SPEAKERS = words_of("i i'm i've i'd i'll")
_LEADS = words_of(
    "but and which means meaning that also perhaps maybe however alternatively yes okay now or so"
    " therefore thus hence overall ultimately consequently think believe guess suspect know see"
    " find recall remember then first indeed finally"
)
"""Words before a clause that do not belong to it."""

_USERS = words_of("user they he she who question")
_ASKING = words_of("how why whether what")
_ASKED_AFTER = does.LINK | does.SAYING | does.WANTING | does.AUXILIARY
"""What stands before one of them where that is asked."""

_FINDING_OUT = words_of(
    "out determine know check see decide clear sure find understand explain explore consider"
    " examine determining checking understanding explaining considering"
)
_ASKS_NOTHING = words_of("about if i we but else")  # after a word like "what"

_TOPICS: tuple[tuple[frozenset[str], frozenset[str], str, Kind], ...] = (
    (words_of("about of"), words_of("what how think thinking question wonder wondering talking"
     " talk factor about"), "Considering {}", "topic"),
    (words_of("considering regarding suspect suspects"), frozenset(), "Considering {}", "topic"),
    (words_of("wants needs requested"), words_of("user they he she who"), "Working on {}",
     "wanted"),
    (words_of("for"), words_of("asks asked asking looking"), "Looking for {}", "wanted"),
    (words_of("about"), words_of("asks asked asking is question"), "Looking into {}", "wanted"),
    (words_of("has reports describes"), words_of("user"), "Looking into {}", "wanted"),
)  # fmt: skip
"""Words before what a sentence is about, what stands before them, and the title and its kind."""


class EnglishReader:
    """Finds the titles that a sentence may give, of the kinds that are wanted."""

    def __init__(self, words: Words, wanted: Collection[Kind]) -> None:
        self._words, self._wanted = words, wanted

    def read(self) -> Iterator[Draft]:
        words = self._words
        rows = [row for row in _READERS if not row[1].isdisjoint(self._wanted)]
        for at, kind in enumerate(words.kinds):
            for triggers, _, read in rows:
                if kind & triggers:
                    yield from read(self, at)
        if not CLAUSES.isdisjoint(self._wanted):
            for at in words.starts():
                yield from self._read_clause(at)

    def _made(self, kind: Kind, form: str, start: int, ends: Iterable[End]) -> Iterator[Draft]:
        if kind in self._wanted:
            for end in ends:
                yield Draft(kind, form, self._words, start, end.at, end.loss)

    def _ends_of_thing(self, start: int) -> Iterator[End]:
        """Yield the ends of a phrase, or of a question that is an object."""
        words = self._words
        if words.kind(start) & does.ASKING and words.word(start + 1) != "to":
            return words.questions(start, ROOM - 1)
        return words.phrases(start, ROOM - 2)

    def read_verb(self, at: int) -> Iterator[Draft]:
        """Read "I need to compare the two plans", "comparing the two plans"."""
        words = self._words
        kind = self._kind_of_verb(at)
        start = at + 1
        if kind is None or start >= len(words) or words.marks[at]:
            return
        verb = _gerund(words.lowered[at])
        if words.word(start) in _PARTICLES and not words.marks[start] and " " not in verb:
            verb = f"{verb} {words.lowered[start]}"
            start += 1
        if not verb[0].isupper() or start >= len(words):
            return
        if words.lowered[start] == "that":
            ends = words.clauses(start + 1, ROOM - 2)
            yield from self._made(kind, f"{verb} that {{}}", start + 1, ends)
        else:
            yield from self._made(kind, f"{verb} {{}}", start, self._ends_of_thing(start))

    def _kind_of_verb(self, at: int) -> Kind | None:
        """Return whose deed a verb tells; None if it is no verb here."""
        words = self._words
        before = words.before(at)
        if words.kinds[at] & does.GERUND:
            return "doing" if words.begins(at) or before in _BEFORE_DOING else None
        if not at or (
            at < 3 and words.marks[at - 1] in (",", ":") and words.kinds[0] & does.ADVERB
        ):
            is_object = not words.word(at + 1).isdigit() and not words.kind(at + 1) & (
                does.LINK | does.AUXILIARY | does.PRONOUN | does.FINITE
            )
            return "note" if is_object or words.word(at + 1) in ("for", "whether", "how") else None
        if before not in _DOING:
            return None
        if words.span(max(0, at - CONTEXT), at) & does.WANTING:
            return "task"
        if before == "to" and at == 1:
            return "purpose"
        is_own = before in ("let's", "i'll", "we'll", "i", "we", "me", "us") or not (
            {"i", "we", "i'll", "i'm", "need"}.isdisjoint(words.lowered[max(0, at - 4) : at])
        )
        is_step = words.lowered[at] in _STEPS
        return None if not is_own else "doing" if is_step else "intent"

    def read_question(self, at: int) -> Iterator[Draft]:
        """Read "the user asks why salt melts ice", "what is the height of the mast"."""
        words = self._words
        word, after = words.lowered[at], words.word(at + 1)
        if word == "what's" or (word == "what" and words.kind(at + 1) & does.AUXILIARY):
            start = at + 1 + (word == "what")
            if words.kind(start) & does.ARTICLE:
                ends = words.phrases(start, ROOM - 2)
                yield from self._made("question", "Working out {}", start, ends)
            return
        asks_nothing = words.kind(at + 1) & (does.GERUND | does.AUXILIARY) or after in _ASKS_NOTHING
        if asks_nothing or not self._is_asked(at):
            return
        is_users = not _USERS.isdisjoint(words.lowered[max(0, at - 5) : at])
        kind: Kind = "asked" if is_users else "question" if words.begins(at) else "wondered"
        form, start = ("Working out whether {}", at + 1) if word == "if" else ("Working out {}", at)
        yield from self._made(kind, form, start, words.questions(at, ROOM - 1))

    def _is_asked(self, at: int) -> bool:
        """Return true for a word like "how" that asks, itself or after another."""
        words = self._words
        if words.begins(at):
            closing = next((marks for marks in words.marks[at:] if marks.strip('",')), "")
            return "?" in closing and words.lowered[at] != "if"
        asked_after = _ASKED_AFTER if words.lowered[at] in _ASKING else does.WANTING
        return bool(words.kinds[at - 1] & asked_after) or words.lowered[at - 1] in _FINDING_OUT

    def read_topic(self, at: int) -> Iterator[Draft]:
        """Read "what about the deposit", "the user wants a plan", "in utils.py"."""
        words = self._words
        word, before = words.lowered[at], words.before(at)
        for triggers, befores, form, kind in _TOPICS:
            if word in triggers and (before in befores or not befores):
                if kind == "topic" or words.kind(at + 1) & does.ARTICLE:
                    yield from self._made(kind, form, at + 1, self._ends_of_thing(at + 1))
                break
        if word == "to" and not words.kind(at + 1) and words.span(0, at) & does.WANTING:
            yield from self._read_unknown_verb(at + 1)
        if word == "in" and words.begins(at) and _is_code(words, at + 1):
            yield Draft("place", "Checking {}", words, at + 1, at + 2)

    def _read_unknown_verb(self, at: int) -> Iterator[Draft]:
        """Read "the user wants to crochet a blanket"."""
        verb = self._words.word(at)
        if verb.isalpha() and len(verb) > MIN_VERB_CHARS and not verb.endswith(("ly", "ed", "ing")):
            form = f"{gerund_of(verb).capitalize()} {{}}"
            yield from self._made("task", form, at + 1, self._ends_of_thing(at + 1))

    def _read_clause(self, at: int) -> Iterator[Draft]:
        """Read "so the pump is off", "this means that the pump is off"."""
        words = self._words
        if at and not words.marks[at - 1]:  # after "that"
            if at < 2 or not words.kinds[at - 2] & does.SAYING:
                return
        elif at and words.marks[at - 1] not in (":", ";") and not self._is_main_clause(at):
            return
        start = at
        while self._leads(start) or (words.word(start) == "i" and self._leads(start + 1)):
            start += 1
        if words.word(start) in _SPEAKERS or words.span(start, start + 3) & does.WANTING:
            return  # it says what somebody does or wants
        before = words.span(max(0, start - 6), start)
        for end in words.clauses(start, ROOM):
            span = words.span(start, end.at)
            if before & does.GUESSING or (span & does.GUESSING and not before & does.CONCLUDING):
                kind: Kind = "supposed"
            else:
                kind = "concluded" if before & does.CONCLUDING else "stated"
            yield from self._made(kind, f"{_STATES[kind]} {{}}", start, [end])

    def _leads(self, at: int) -> bool:
        return self._words.word(at) in _LEADS and self._words.marks[at] in ("", ",")

    def _is_main_clause(self, at: int) -> bool:
        """Return true if a sentence states something after a comma: "since it is odd, ..."."""
        words = self._words
        begins = words.kinds[0] & (
            does.SINCE | does.CONCLUDING | does.BREAK | does.GUESSING | does.ADVERB
        )
        return words.marks[at - 1] == "," and bool(begins or words.kinds[at] & does.CONCLUDING)

    def read_noun(self, at: int) -> Iterator[Draft]:
        """Read any noun with its article."""
        words = self._words
        if (
            words.lowered[at] in ("the", "a", "an")
            and not words.before(at).isdigit()  # "112 a night"
            and words.kind(at + 1) & (does.VERB | does.FINITE) == 0
        ):
            ends = words.phrases(at + 1, NOUN_ROOM)
            yield from self._made("noun", f"Looking into {words.lowered[at]} {{}}", at + 1, ends)


def _gerund(verb: str) -> str:
    return _PHRASES.get(verb) or (verb if verb in GERUNDS else gerund_of(verb)).capitalize()


def _is_code(words: Words, at: int) -> bool:
    inner = words.words[at][1:-1] if at < len(words) else ""
    return "_" in inner or "." in inner or any(map(str.isupper, inner))


_Read = Callable[[EnglishReader, int], Iterator[Draft]]
_READERS: tuple[tuple[int, frozenset[Kind], _Read], ...] = (
    (
        does.VERB | does.GERUND,
        frozenset({"task", "intent", "purpose", "note", "doing"}),
        EnglishReader.read_verb,
    ),
    (does.ASKING, frozenset({"asked", "question", "wondered"}), EnglishReader.read_question),
    (does.TOPICAL, frozenset({"topic", "wanted", "place", "task"}), EnglishReader.read_topic),
    (does.ARTICLE, frozenset({"noun"}), EnglishReader.read_noun),
)
"""What words may give titles, of which kinds, and how they are read."""
