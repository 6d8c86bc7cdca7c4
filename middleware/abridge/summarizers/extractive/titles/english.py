"""How English sentences say what they are about, and the titles that are made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from abridge.summarizers.extractive.titles import lexicon as does
from abridge.summarizers.extractive.titles.lexicon import lexicon
from abridge.summarizers.extractive.titles.phrases import ROOM, Draft, Words
from abridge.summarizers.extractive.titles.questions import PAST
from abridge.summarizers.extractive.titles.words import (
    BASES,
    GERUNDS,
    VERBS,
    gerund_of,
    third_person_of,
)
from abridge.summarizers.extractive.words import words_of

_AUXILIARIES = (
    "is are was were am has have had can could will would should must may might does do did be been"
    " isn't aren't wasn't weren't don't doesn't didn't can't cannot won't wouldn't couldn't"
    " shouldn't hasn't haven't"
)
_POINTERS = "this these their his her my our your"
_PERSONS = "i we you me us i'm i'll i've we're we'll let's i'd we've you're"

_TOPICS: tuple[tuple[frozenset[str], frozenset[str], str, str], ...] = (
    (words_of("about of"), words_of("what how think thinking question wonder wondering talking"
     " talk factor about"), "Considering {}", "topic"),
    (words_of("considering regarding suspect suspects"), frozenset(), "Considering {}", "topic"),
    (words_of("wants needs requested"), words_of("user they he she who"), "Working on {}",
     "task"),
    (words_of("for"), words_of("asks asked asking looking"), "Looking for {}", "task"),
    (words_of("about has reports describes"), words_of("asks asked asking is question user"),
     "Looking into {}", "task"),
)  # fmt: skip
"""Words before what a sentence is about, what stands before them, and the title and its kind."""

ENGLISH = lexicon(
    (does.LINK, ("of to in on at by for with from into about over under between through during"
        " without per than across against toward towards upon onto around near after before along"
        " among behind beyond via whose despite regarding until like as versus vs and or but so"
        " because since if while although though unless that which who whose where when how why"
        " what whether then using up out within inside based derived given relative")),
    (does.WEAK, ("the a an each every both all no any some more less most first next one's its also"
        " just only very really too still exactly actually simply not how many these those this"
        f" such other another same new way manner yes {_POINTERS}")),
    (does.AUXILIARY, (f"{_AUXILIARIES} let let's lets needs takes gives makes means says comes goes"
        " seems becomes being came come depends wants looks provides went equals")),
    (does.PRONOUN, (f"{_PERSONS} {_POINTERS} he she it they him them itself themselves myself there"
        " here it's that's there's such that those its they're he's she's")),
    (does.POINTER, _POINTERS),
    (does.ARTICLE, ("the a an each every its these those that another any some no both all"
        f" {_POINTERS} two three four five six seven eight nine ten one")),
    (does.VAGUE, ("answer answers anyone anything approach area areas aspect bad basics beginning"
        " better big bigger case cases cause certain chance choice clear clearly closed conclusion"
        " condition context correct crux data detail details different easier either empty end"
        " equal even everything example examples fact false final fine free full goal goals good"
        " great hard harder high higher hint idea important indeed input instance issue issues item"
        " items key kind larger level likely long longer low lower main matter middle need note"
        " nothing numbers obvious odd old one open option options order others outcome part parts"
        " people person place point points possibilities possibility possible premise previous"
        " problem problems purpose question questions reason report request response rest result"
        " results riddle right root scenario search section sense sentence short side similar"
        " simple situation small smaller solution someone something start statement step steps"
        " straightforward strategy stuff sure task text thing things third thought time today tool"
        " tools topic total true type unclear used user ways whole word words worse wrong")),
    (does.ADVERB, ("step also always only never just still already actually really typically"
        " usually often then down away straight back out there together first simply both all each"
        " now even probably likely indeed definitely originally initially")),
    (does.FILLER, "also just simply carefully really actually indeed then now again"),
    (does.ASKING, "if how why what whether where who which when whose what's"),
    (does.BREAK, ("but suppose perhaps maybe regardless because so while although though if before"
        " unless which whereas until then rather")),
    (does.FINITE, (f"{' '.join(PAST.values())} contained died happened hit meant needed said seemed"
        " showed stayed turned vanished ended started used created caused changed failed led did"
        " took brought bought caught drew drove felt got heard knew laid lay let met put read rode"
        " sat set sold spoke spent stood stuck taught thought told understood wore"
        f" {' '.join(map(third_person_of, sorted(BASES | VERBS)))}")),
    (does.BASE, " ".join(BASES)),
    (does.VERB, f"{' '.join(VERBS)} get buy sell reach give become press take wait"),
    (does.GERUND, " ".join(GERUNDS)),
    (does.SAYING, ("believe check checking clear conclude concluded conclusion confident confirms"
        " consider considering decide determine determining examine explain explaining explore find"
        " follows found given implies indicates is know mean means mentioned mentions note notice"
        " noting out proves realize realized recall recommend remember say says see shows suggests"
        " sure think true understand understanding wonder wondering")),
    (does.CONCLUDING, ("so therefore thus hence overall ultimately means implies shows proves"
        " confirms indicates follows consequently conclusion conclude summary short finally turns"
        " clear meaning answer")),
    (does.GUESSING, ("maybe perhaps possibly think guess suspect suppose assume wonder possible"
        " believe assuming might may could probably likely seems seem if would presumably")),
    (does.WANTING, "user wants want ask asks asked asking goal aim task question riddle puzzle"),
    (does.TOPICAL, " ".join(word for row in _TOPICS for word in row[0])),
    (does.PLACING, "in"),
    (does.SINCE, ("since because given assuming considering if when with although though while as"
        " after for in by under from once whereas")),
)  # fmt: skip

_DOING = words_of("to let's lets should must can will i'll we'll please i we me us and could first")
"""Words before a verb in its base form that says what is done."""

_OWN = words_of("i we i'll we'll i'm me us let's need")
"""Words by which a verb is seen to tell an intention."""

_BEFORE_DOING = words_of("by involves about consider suggest")
_PARTICLES = words_of("out up through into at down about for on with to from")
_STATES = {
    "concluded": "Concluding that",
    "stated": "Noting that",
    "supposed": "Considering whether",
}
_LEADS = words_of(
    "but and which means meaning that also perhaps maybe however alternatively yes okay now or so"
    " therefore thus hence overall ultimately consequently think believe guess suspect know see"
    " find recall remember then first indeed finally"
)
"""Words before a clause that do not belong to it."""

_INTRODUCING = does.SINCE | does.CONCLUDING | does.BREAK | does.GUESSING | does.ADVERB
_ASKED = words_of("how why whether what")


class EnglishWords(Words):
    """Finds the titles that a sentence may give."""

    def read(self, *, is_told: bool) -> Iterator[Draft]:
        for at, kind in enumerate(self.kinds):
            if kind & _TRIGGERS:
                for triggers, read in _READERS:
                    if kind & triggers:
                        yield from read(self, at)
        may_count = is_told or self.span(0, len(self)) & does.GUESSING  # else all is a finding
        for at in self._statements() if may_count else ():
            yield from self._read_clause(at, is_told=is_told)

    def _ends_of_thing(self, start: int) -> Iterator[int]:
        """Yield the ends of a phrase, or of a question that is an object."""
        if self.kinds[start] & does.ASKING and self.lowered[start + 1] != "to":
            return self.questions(start, ROOM - 1)
        return self.phrases(start, ROOM - 2)

    def read_verb(self, at: int) -> Iterator[Draft]:
        """Read "I need to compare the two plans", "comparing the two plans"."""
        kind = self._kind_of_verb(at)
        start = at + 1
        if kind is None or self.marks[at]:
            return
        verb = self.lowered[at] if self.kinds[at] & does.GERUND else gerund_of(self.lowered[at])
        if self.lowered[start] in _PARTICLES and not self.marks[start]:
            verb = f"{verb} {self.lowered[start]}"
            start += 1
        if self.lowered[start] == "that":
            ends = self.clauses(start + 1, ROOM - 2)
            yield from self.drafts(kind, f"{verb} that {{}}", start + 1, ends)
        else:
            yield from self.drafts(kind, f"{verb} {{}}", start, self._ends_of_thing(start))

    def _kind_of_verb(self, at: int) -> str | None:
        """Return whose deed a verb tells; None if it is no verb here."""
        before = self.before(at)
        if self.kinds[at] & does.GERUND:
            return "doing" if self.begins(at) or before in _BEFORE_DOING else None
        if not at or (at < 3 and self.begins(at) and self.kinds[0] & does.ADVERB):
            return "doing"
        if before not in _DOING:
            return None
        if self.span(0, at) & does.WANTING:
            return "task"
        is_own = (before == "to" and at == 1) or not _OWN.isdisjoint(self.lowered[:at])
        return "intent" if is_own else None

    def read_question(self, at: int) -> Iterator[Draft]:
        """Read "the user asks why salt melts ice", "what is the height of the mast"."""
        word = self.lowered[at]
        if word == "what's" or (word == "what" and self.kinds[at + 1] & does.AUXILIARY):
            start = at + 1 + (word == "what")
            if self.kinds[start] & does.ARTICLE:
                ends = self.phrases(start, ROOM - 2)
                yield from self.drafts("question", "Working out {}", start, ends)
            return
        if self.kinds[at + 1] & (does.GERUND | does.AUXILIARY) or not self._is_asked(at):
            return
        kind: str = "asked" if self.span(0, at) & does.WANTING else "question"
        form, start = ("Working out whether {}", at + 1) if word == "if" else ("Working out {}", at)
        yield from self.drafts(kind, form, start, self._ends_of_thing(at))

    def _is_asked(self, at: int) -> bool:
        """Return true for a word like "how" that asks, itself or after another."""
        if self.begins(at):
            closing = next((marks for marks in self.marks[at:] if marks.strip('",')), "")
            return "?" in closing and self.lowered[at] != "if"
        is_object = self.lowered[at] in _ASKED and self.kinds[at - 1] & does.LINK
        return bool(is_object or self.kinds[at - 1] & (does.SAYING | does.WANTING))

    def read_topic(self, at: int) -> Iterator[Draft]:
        """Read "what about the deposit", "the user wants a plan"."""
        word, before = self.lowered[at], self.before(at)
        for triggers, befores, form, kind in _TOPICS:
            if word in triggers and (before in befores or not befores):
                if kind == "topic" or self.kinds[at + 1] & does.ARTICLE:
                    yield from self.drafts(kind, form, at + 1, self._ends_of_thing(at + 1))
                break

    def read_place(self, at: int) -> Iterator[Draft]:
        """Read "in `utils.py`, the import is missing"."""
        name = self.words[at + 1][1:-1] if at + 1 < len(self) else ""
        is_code = "_" in name or "." in name or any(map(str.isupper, name))
        if is_code and self.begins(at):
            yield from self.drafts("place", "Checking {}", at + 1, [at + 2])

    def _read_clause(self, at: int, *, is_told: bool) -> Iterator[Draft]:
        """Read "so the pump is off", "this means that the pump is off"."""
        start = at
        while self._leads(start) or (self.lowered[start] == "i" and self._leads(start + 1)):
            start += 1
        if self.span(start, start + 3) & does.WANTING:
            return  # it says what somebody does or wants
        before = self.span(max(0, start - 6), start)
        for end in self.clauses(start, ROOM):
            span = self.span(start, end)
            concludes = before & does.CONCLUDING
            guesses = before & does.GUESSING or (span & does.GUESSING and not concludes)
            if is_told or guesses:
                kind = "supposed" if guesses else "concluded" if concludes else "stated"
                yield from self.drafts(kind, f"{_STATES[kind]} {{}}", start, [end])

    def _leads(self, at: int) -> bool:
        return self.lowered[at] in _LEADS and self.marks[at] in ("", ",")

    def _statements(self) -> Iterator[int]:
        """Yield where a statement may begin: at the first word, after "that", and after the comma
        of "since it is odd, ..."."""
        yield 0
        for at, mark in enumerate(self.marks[:-1], start=1):
            if not mark:
                states = self.lowered[at - 1] == "that" and self.kinds[at - 2] & does.SAYING
            elif mark == ",":
                states = (self.kinds[0] & _INTRODUCING) | (self.kinds[at] & does.CONCLUDING)
            else:
                states = mark in (":", ";")
            if states:
                yield at


_Read = Callable[[EnglishWords, int], Iterator[Draft]]
_READERS: tuple[tuple[int, _Read], ...] = (
    (does.VERB | does.GERUND, EnglishWords.read_verb),
    (does.ASKING, EnglishWords.read_question),
    (does.TOPICAL, EnglishWords.read_topic),
    (does.PLACING, EnglishWords.read_place),
)
"""What words may give titles, and how they are read."""

_TRIGGERS = does.VERB | does.GERUND | does.ASKING | does.TOPICAL | does.PLACING
