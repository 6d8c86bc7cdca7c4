"""English words that titles are made with: verbs and their gerunds, and the classes of other words.

The list of verbs is closed. A title is made from a verb that is known, and a word that is not known
to be anything else counts as a noun or an adjective.
"""

from __future__ import annotations

import re
from types import MappingProxyType

from abridge.summarizers.extractive.titles.drafts import words_of

STRONG_VERBS = words_of(
    "abstract add adapt batch plug adjust align analyse analyze append apply approximate arrange"
    " assess assign avoid backfill balance benchmark blend block bound build bypass cache"
    " calculate calibrate categorize centralize change characterize clarify clean coerce collect"
    " combine compare compile compress compute configure confirm connect construct convert"
    " coordinate copy correct count craft create cross-check debug decide decode decouple deduce"
    " deduplicate defer define delay delete derive design detect determine diagnose differentiate"
    " disable distinguish divide downgrade draft draw drop edit eliminate enable encode enforce"
    " enumerate escape establish estimate evaluate examine expand explore extend extract factor"
    " factorize filter find fix flatten flush force format formulate generate graph group guard"
    " guess handle hide identify implement import improve infer initialize inline inspect install"
    " integrate interpret intersect invert investigate invoke isolate iterate justify limit link"
    " list load locate log lower map mark match maximize measure merge migrate minimize mock"
    " model modify monitor move multiply narrow normalize optimize order organize outline"
    " override parse patch pin place plan plot predict prevent prioritize profile propose prove"
    " prune query queue rank read rebuild reconcile reconsider reconstruct recover recreate"
    " redesign redirect reduce refactor refine refresh regenerate register reject release remove"
    " rename render reorder repair replace reproduce rerun reset resolve restore restrict"
    " restructure retrieve retry reuse reverse revert review revise rewrite round route run"
    " sample scale scan schedule search secure select separate serialize set sharpen shift"
    " shorten simplify simulate sketch skip solve sort specify split stabilize standardize stop"
    " store stream strengthen strip structure study subtract sum support swap switch tackle test"
    " throttle tie tighten time toggle trace track transform translate traverse trim tune uncover"
    " undo unify untangle update upgrade validate verify visualize weigh wire wrap"
)
"""Verbs that say what a stretch of reasoning is about."""

WEAK_VERBS = words_of(
    "accept account address adopt allow answer approach argue ask assume back break bring call"
    " cancel catch check choose cite clear close commit compose consider continue convey cook"
    " cool cover cross cut deal deliver deny describe detail discuss double draw elaborate"
    " emphasize ensure devise drink eat encourage end explain express favour favor figure fill"
    " fit follow gather grant grow guide help highlight hold illustrate include incorporate"
    " increase inform introduce invent join keep learn leave light limit look maintain make"
    " manage mention mix note observe offer open opt pair pass pause pay perform pick play ponder"
    " prefer prepare present preserve print produce protect provide pull push put quote raise"
    " recap recommend refer refuse reflect relate rely remind repeat report represent request"
    " require respect respond return reveal rule save scroll send serve share shape show sit"
    " soften start state step stick store submit substitute suggest summarise summarize surface"
    " take talk teach tell think transport treat try turn understand use view visit wait walk"
    " warn watch work write zoom"
)
"""Verbs of handling, speaking and answering: good for a title where there is no better."""

PLAIN_VERBS = words_of(
    "absorb affect agree appear arise arrive ask be become begin behave believe belong break"
    " burn cause come contain contradict contribute cost depend die differ equal exist expect"
    " face fail fall feel fly forget freeze get give go happen have hear hit imply indicate"
    " involve know lack last lead let lie like live lose matter mean meet melt need occur own"
    " point prove reach receive recall refer remain remember result rise say see seem sell sense"
    " shed sound speak spend stand stay suffer suppose trigger want win wonder work"
)
"""Verbs that are known, and of which no title is made."""

NOUN_VERBS = words_of(
    "account address answer approach ask average back balance benchmark block bound break build"
    " cache call cause change check claim close commit compromise copy cost count cover cross cut"
    " deal delay design detail display draft draw drop edit end escape estimate face filter fit"
    " fix force format graph group guard guess guide help hit hold import increase input issue"
    " last light like limit link list load log look lower map mark match matter measure mix model"
    " move note offer open order outline output pair pass patch pause pay pick pin place plan"
    " play plot point present print process profile project pull push query queue quote raise"
    " rank read release repair repeat report request reset result return reverse review rise"
    " round route rule run sample save scale scan schedule search sense separate set shape share"
    " shift show sketch sort sound split stand start state step stick stop store stream structure"
    " study sum support surface swap switch talk test tie time trace track trigger try tune turn"
    " update upgrade use view visit wait walk want watch win wire work wrap patient clean clear"
    " correct direct lead cool double equal free own secure slow warm interface escape request"
    " factor compress burn fall fly lie need record feature function"
)
"""Verbs that are as often nouns or adjectives."""

_DOUBLING = words_of(
    "begin bypass commit plug ship chop grab spot cut debug defer drop fit forget get hit infer"
    " let log map occur pin plan plot prefer put quit refer reset rerun run set shed sit skip"
    " split step stop strip submit sum swap trim win wrap tag run"
) - {"bypass"}
"""Verbs whose last consonant is doubled."""

VERBS = STRONG_VERBS | WEAK_VERBS


def gerund_of(verb: str) -> str:
    """Return the gerund of a verb's base form: `tie` gives `tying`."""
    if verb in _DOUBLING:
        return f"{verb}{verb[-1]}ing"
    if verb.endswith("ie"):
        return f"{verb[:-2]}ying"
    if verb.endswith("e") and verb != "be" and not verb.endswith(("ee", "oe", "ye")):
        return f"{verb[:-1]}ing"
    return f"{verb}ing"


def third_person_of(verb: str) -> str:
    """Return the third person of a verb's base form: `try` gives `tries`."""
    if verb.endswith(("s", "x", "z", "ch", "sh", "o")):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if re.search(r"[^aeiou]y$", verb) else f"{verb}s"


GERUNDS = MappingProxyType({gerund_of(verb): verb for verb in VERBS})
"""Gerunds, and the verbs they are of."""

_NOUN_FORMS = NOUN_VERBS | {third_person_of(verb) for verb in NOUN_VERBS}
_ALL_FORMS = {
    form for verb in VERBS | PLAIN_VERBS for form in (verb, third_person_of(verb))
} | _NOUN_FORMS

_PAST = words_of(
    "became began bought broke brought built came caught chose cost cut did drew drove fell felt"
    " found froze gave got grew had heard held hid kept knew led left let lost made meant met"
    " paid put ran read rose said sat saw sent set shown sold spent split spoke stole stood stuck"
    " stuck taken taught thought told took understood went won wrote chosen broken drawn driven"
    " fallen frozen given grown hidden known lit seen spoken stolen written"
)

_NO_GERUNDS = words_of(
    "anything building ceiling during evening everything king meaning morning nothing ping ring"
    " something spring string thing thinking wording heading setting warning rating pricing"
    " timing padding spacing rounding"
)

_NO_ADVERBS = words_of(
    "family reply supply assembly anomaly daily weekly monthly friendly only apply multiply"
    " imply fly italy july poly reliably"
)

_CLOSED = {
    "D": "the a an one this these those each every all both some any no another other either"
    " neither my your his her its our their several many few most such what's more less enough"
    " same",
    "P": "in on at by for with from into about over under between through during without within per"
    " than across against toward towards upon onto off around near after before along among behind"
    " below above beyond via despite regarding except until like unlike as versus vs up down out",
    "O": "of",
    "T": "to",
    "A": "and or & nor",
    "C": "but so because since if while although though unless that then whereas yet therefore thus"
    " hence whom when until once whenever regardless depending",
    "W": "what why how whether where who which whose",
    "R": "i we you he she it they me us him them ones myself itself themselves yourself oneself"
    " himself herself ourselves something anything everything nothing someone anyone everyone"
    " somebody anybody nobody none others there here it's that's there's i'm i've i'd i'll we're"
    " we've we'll you're you've they're they've he's she's what's who's let's s else",
    "X": "is are was were be been being am has have had do does did can could will would shall"
    " should may might must cannot can't won't don't doesn't didn't isn't aren't wasn't weren't"
    " hasn't haven't hadn't couldn't wouldn't shouldn't mustn't ought not seems seem becomes gets"
    " got centers means contains gives",
    "L": "also just only very really quite too still already now always never often again even"
    " perhaps maybe however instead actually rather almost simply first next finally later soon"
    " indeed well yes okay ok please back away together otherwise elsewhere directly fast ever"
    " likely early somehow anyway else once twice",
}
"""Words of closed classes: determiner, preposition, of, to, and, conjunction, question word,
pronoun, auxiliary, adverb."""

CLASS_OF = MappingProxyType(
    {word: letter for letter, words in reversed(_CLOSED.items()) for word in words.split()}
    | dict.fromkeys(_NO_GERUNDS | _NO_ADVERBS, "N")
    | dict.fromkeys(_PAST, "E")
    | dict.fromkeys(_ALL_FORMS - _NOUN_FORMS, "V")
    | dict.fromkeys(_NOUN_FORMS, "B")
    | {word: letter for letter, words in reversed(_CLOSED.items()) for word in words.split()}
)
"""The class of a word by itself: those above, N noun, E past form, V verb, B verb or noun."""

VAGUE_WORDS = words_of(
    "answer answers approach aspect attempt bit case cases chance choice context detail details"
    " example fact goal gist hand idea ideas information input instance issue issues item items"
    " key kind lot matter mention name need note notes one option options other others outcome"
    " part parts people person phrase place point points possibility potential prompt problem"
    " problems purpose question questions reason reasons request response result results rest"
    " section sense sentence set side situation solution someone sort sources statement step"
    " steps stuff task tasks text thing things thought thoughts time times topic total trick type"
    " user users value way ways wording word words work good bad right wrong true false simple"
    " same clear common likely sure able possible important necessary different general new next"
    " last first second third few okay fine correct final entire whole actual certain better best"
    " main following real used start end beginning ends today everything possibility"
    " possibilities rare insight observation conclusion angle hot cold warm cool active inactive"
    " big small large long short high low easy hard fast slow late open full empty old young"
    " strong weak heavy dark quick simple honest helpful direct standard focus only such error"
    " errors output outputs number numbers amount line lines bug"
)
"""Nouns and adjectives that name no topic alone."""

QUANTIFIERS = words_of(
    "no any some another other few many most neither several both enough less more either"
)
"""Determiners that are left out of a title, or say what it should not."""

DURATIONS = words_of(
    "second seconds minute minutes hour hours day days week weeks month months year years long"
)

UNITS = DURATIONS | words_of(
    "euro euros dollar dollars cent cents percent kg km cm mm ms kilogram kilograms pound pounds"
    " degree degrees byte bytes characters char chars times"
)

INTRANSITIVE = words_of(
    "pay work change behave fail happen help run live differ grow end start look go respond"
    " react move fit matter apply appear arrive exist last occur"
)
"""Verbs that need no object, so that a question may end in one."""

PAIRING_VERBS = words_of(
    "Comparing Balancing Combining Connecting Relating Distinguishing Weighing"
)
"""Verbs that need both of two things."""

LOOSE_ENDS = words_of("way manner order terms sense form kind front part addition respect")
"""Nouns at which a phrase is not complete."""

OPEN_NOUNS = words_of(
    "amount bunch combination couple end kind list lot middle name number pair part piece rest"
    " root series set side sort sources source start sum top total type value way version word"
    " majority half concept definition meaning lack use cost price size length result results use"
)
"""Nouns that say little without what follows their "of"."""
