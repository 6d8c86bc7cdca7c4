"""How English sentences say what they are about, and the titles that are made of them."""

from __future__ import annotations

from abridge.summarizers.extractive.titles.patterns import Part, Pattern, patterns
from abridge.summarizers.extractive.titles.phrases import Grammar
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
    " shouldn't hasn't haven't not"
)

ENGLISH_GRAMMAR = Grammar(
    links=words_of(
        "of to in on at by for with from into about over under between through during without per"
        " than across against toward towards upon onto around near after before along among behind"
        " beyond via whose despite regarding until like as versus vs and or but so because since if"
        " while although though unless that which who whose where when how why what whether then"
        " using up out within inside based derived given relative"
    ),
    weak=words_of(
        "the a an each every both all no any some more less most first next one's its my your our"
        " their his her also just only very really too still exactly actually simply not how many"
        f" these those this such other another same new way manner {_AUXILIARIES}"
    ),
    ends=words_of(
        f"{_AUXILIARIES} needs takes gives makes means says comes goes seems becomes being came "
        f"come"
        " depends looks provides went"
    ),
    pronouns=words_of(
        "i we you he she it they me us him them itself themselves myself there here it's that's"
        " there's i'm i'll i've we're we'll let's something anything everything nothing someone"
        " such this that these those its their his her my our you're they're he's she's"
    ),
    persons=words_of("he she they it them"),
    pointers=words_of("this these their his her my our your"),
    articles=words_of("the a an each every"),
    adjectives=words_of(
        "clear odd even open closed high low long short big small great good bad fine hard full"
        " empty new old similar easier longer free harder better worse larger smaller bigger"
        " higher lower straightforward obvious simple correct same unclear different right wrong"
        " yes no likely important not still also indeed as to less more most that possible true"
        " false equal based given either"
    ),
    fillers=words_of("also just simply carefully really actually indeed then now again"),
    vague=words_of(
        "a all answer answers approach area areas aspect basics beginning case cases cause"
        " certain chance choice clearly conclusion condition context crux data detail details end"
        " example examples fact final goal goals hint idea input instance issue issues item items"
        " key kind level main matter middle need note numbers one option options order other"
        " others outcome part parts people person place point points possibilities possibility"
        " premise previous problem problems purpose question questions reason report request"
        " response rest result results riddle root scenario search section sense sentence side"
        " situation solution someone start statement step steps strategy stuff sure task text the"
        " thing things third thought time today tool tools topic total two type used user way ways"
        " whole word words"
    ),
    clauses=words_of("if how why what whether where who which when whose"),
    breaks=words_of(
        "being suppose perhaps maybe regardless because so while although though if "
        "before unless which whereas until then rather"
    ),
    verbs=VERBS | words_of("be get have know see take wait pour"),
    finite=words_of(
        f"{_AUXILIARIES} contained died happened hit meant needed said seemed showed stayed turned"
    )
    | {*PAST.values()} | {third_person_of(verb) for verb in BASES},
    plural=BASES,
    plurals=words_of("people men women children mice feet teeth two three four five both police"),
    adverbs=words_of(
        "also always only never just still already actually really typically usually often then "
        "down away straight back out there together first simply both all each now even probably "
        "likely indeed definitely originally initially"
    ),
)  # fmt: skip

_FILLERS = (
    r"(?: (?:also|first|now|then|just|simply|carefully|quickly|next|probably|really|only|still"
    r"|again|clearly|briefly|definitely|actually))*"
)

_MODAL = (
    r"(?:(?:i|we)(?: also| still| just| really| then)?(?:(?:['’]ll| will)(?: need to| have to)?"
    r"|['’]d like to| should| need to| have to| must| want to| plan to|['’]m going to"
    r"| am going to| decided to| needed to| wanted to| can|['’]m trying to)|let(?:['’]?s| me| us)"
    r"|(?:important|crucial|essential|best|better|trying) to"
    r"|(?:involves?|about|centers on|focuses on)(?= \w+ing\b)|^to(?= [^,]{8,140}, ))"
)

_GIVEN = (
    r"(?:(?:goal|aim|task|idea|plan|challenge|objective|next step|first step|answer|solution|fix"
    r"|approach|best way|trick|key|strategy)(?: here| now)? (?:is|was|would be)(?: likely| simply"
    r"| just)? to|(?:i|we)['’]ve been asked to|request to|(?:user|question|problem"
    r"|task|riddle|puzzle|who|they|she|he) (?:wants?|would like|asks?|asked|needs?|is asking"
    r"|plans?|has)(?: me| us)? to)"
)

_DETOUR = (
    r"(?: ?\b(?:(?:start|begin) (?:off )?by|try(?:ing)? to|attempt to|be able to|make sure to"
    r"|remember to|be sure to|go ahead and|help \w+|go through and))*"
)

_INTENT = rf"\b{_MODAL}{_FILLERS}{_DETOUR}{_FILLERS} ?\b"
"""What a verb in its base form follows that says what the reasoning does next."""

_TASK = rf"\b{_GIVEN}{_FILLERS}{_DETOUR}{_FILLERS} ?\b"
"""The same of what is to be done at all."""

_HANDLING = (
    r"(?:(?:look|think)(?! (?:at|into|about|through) (?:how|why|what|where|whether))|read"
    r"|re-read|list|note|show|start|begin|recall|go|break|parse|output|see|say|use|take|put"
    r"|mention|keep|give|explain|present|denote|let|address|cover|include|provide|structure|pick)\b"
)
"""Verbs of what is done on the way."""

_ASKS = r"\b(?:user|question|riddle|problem|puzzle|task)(?: here)?"

_CONCLUDES = (
    r"^(?!.*\b(?:maybe|perhaps|might|may|could|if|unless|assum\w+)\b)"
    r"(?:(?:so|but|and|therefore|thus|hence|overall|ultimately|that means|this means|which means"
    r"|as a result|consequently|(?:it )?turns out|it follows"
    r"|in (?:short|summary|conclusion|the end)"
    r"|the (?:\w+ )?(?:answer|conclusion|upshot) is that),? ){1,2}"
    r"(?:(?:[\w'’]+ ){0,5}?(?:is|means|seems|think|know|clear|sure|confident|suggests|implies|shows"
    r"|follows|out|say) that )?"
)
"""What a conclusion begins with that is not a guess."""

_SURELY = (
    r"^(?:(?!\b(?:maybe|perhaps|might|could|may|if|whether|not|alternatively|unless|suppos\w+"
    r"|assum\w+)\b|n['’]t\b)[^;?])*?"
)
"""The beginning of a sentence that doubts nothing."""

_RESULT = (
    r"\b(?<!of )(?<!in )(?<!for )(?:the|my|our|its) (?P<noun>(?:(?:correct|final|right|most "
    r"likely|best|likely|next|missing"
    r"|total|minimal|minimum|maximum|only|logical|main|primary|expected|overall|root|real|actual"
    r"|underlying|remaining|optimal|simplest|probable|specific) )*(?:answer|result|solution"
    r"|diagnosis|number|total|value|conclusion|probability|cause|reason|option|choice|term|word"
    r"|letter|culprit|explanation|cost|sum|price|time|speed|distance|area|volume|age|amount|day"
    r"|move|fix|difference|count|killer|winner|candidate|next one|treatment|finding|step"
    r"|ratio)(?: (?:of|for|in|per|to) (?:the |a |an |each )?[\w'’-]+){0,2})(?: here)?(?:['’]s"
    r"| is| was| are| would be| should be| must be| equals| will be| comes out to| has to be)"
    r"(?: indeed| likely| probably| actually| simply| still| just| definitely| really|:|,)*"
    r" (?=\S)(?!that\b|(?-i:[a-z]{3,}er)(?: than\b|[^\w\s]|$))"
)
"""Words before a result; a comparative, as in "the price is higher", is no result."""

_SETTLES = (
    r"\b(?:(?:i(?:['’]ll| will| would|['’]d|['’]m)?|we(?:['’]ll| will)?) (?:go(?:ing)? with|choose"
    r"|pick|settle on|stick(?:ing)? with|recommend|bet on|guess|lean(?:ing)? (?:towards?|to)"
    r"|say (?:it['’]s|this is)(?: indeed)?)|(?:fits|matches|lines up|aligns) (?:best |well |most "
    r"|perfectly |nicely |really well )?(?:with|to)|points? (?:to|towards)(?! \w+:)|boils down to"
    r"|likely(?: to be)? due to|indicative of|consistent with|suggestive of|characteristic of"
    r"|(?:this|that|it) (?:must be|is called|is known as)) (?:something like )?"
)

MIN_VERB_CHARS = 4  # of a verb that is not among `VERBS`


def _known_gerund(verb: str) -> str:
    base, space, particle = verb.lower().partition(" ")
    if base in _PHRASES and (space or base != "answer"):
        return _PHRASES[base]
    known = _ENGLISH_VERBS.get(base)
    return f"{known}{space}{particle}" if known else ""


def _gerund(verb: str) -> str:
    """Return the gerund also of a word that is not known, but stands where a verb does."""
    base, space, particle = verb.lower().partition(" ")
    is_long = len(base) > MIN_VERB_CHARS and not base.endswith("ing")
    made = gerund_of(base).capitalize() if is_long and ENGLISH_GRAMMAR.may_be_verb(base) else ""
    return _known_gerund(verb) or (made and f"{made}{space}{particle}")


_ENGLISH_VERBS = {verb: gerund_of(verb).capitalize() for verb in VERBS} | {
    gerund: gerund.capitalize() for gerund in GERUNDS
}
_PHRASES = {
    **dict.fromkeys(("see", "know", "think"), "Working out"),
    "take": "Looking at",
    "answer": "Looking into",
}
_ENGLISH_VERBS |= {"use": "Considering", "using": "Considering", "talk": "Talking"}

_VERB = (
    r"(?P<verb>(?:see|know|think(?: about| through)?)(?= (?:how|why|what|where|whether)\b)"
    r"|take (?:a|another) (?:closer )?look at|answer (?:a|the|this) (?:\w+ )?question (?:about|on)"
    r"|(?!(?:see|know|think|take)\b)[a-z-]+(?: (?:out|up|through|into|at|down)(?= ))?)"
    r" (?!(?:as|by|of|with|from) )"
)


def _task(*rows: tuple[str, str, float]) -> tuple[Pattern, ...]:
    return patterns(ENGLISH_GRAMMAR, *rows)


def _finding(cut: Part, *rows: tuple[str, str, float]) -> tuple[Pattern, ...]:
    return patterns(ENGLISH_GRAMMAR, *rows, cut=cut, late=True)


_CLAUSE_START = r"(?:^|[,:;] [\"“]?|\b(?:so|then|now|well|question is|asks?|is) )"

_ASKED = r"(?=(?:how|why|what|whether|where|which|who|when)\b)"

ENGLISH = (
    *patterns(ENGLISH_GRAMMAR,
              (_TASK + _VERB, "{verb} {object}", 3.9), verbs=_gerund),
    *patterns(ENGLISH_GRAMMAR,
              (rf"{_INTENT}(?!{_HANDLING}){_VERB}", "{verb} {object}", 3.6),
              verbs=_gerund, first=1.0),
    *patterns(ENGLISH_GRAMMAR,
              (rf"{_INTENT}(?={_HANDLING}){_VERB}", "{verb} {object}", 2.4),
              ((r"^(?:(?:(?:first|next|then|finally|lastly),? |step )(?:\w+[:.)] )?)?"
                rf"{_VERB}(?=[^.!?,:;]{{3,50}}\.?$)"), "{verb} {object}", 3.2),
              verbs=_known_gerund, first=0.0),
    *patterns(ENGLISH_GRAMMAR,
        ((rf"{_CLAUSE_START}(?!what(?:['’]s| is| are| was| were) (?:the|an?) "
         rf"|(?:what|how) (?:about|if)\b|why not){_ASKED}(?P<object>[^?]{{8,}})\?"),
         "Working out {object}", 3.4)),
    *_task(
        ((rf"(?:\basks?|\basking|\basked|wants? to (?:know|understand|find out)|{_ASKS} is)"
          rf"[,:]? (?:me |us )?(?:about )?[\"“]?"
          rf"(?:what(?:['’]s| is| are| was| were) (?=(?:the|an?) )|{_ASKED})"),
         "Working out {object}", 3.8),
        (r"^(?:\w+,? )?what(?:['’]s| is| are| was| were) (?P<object>(?:the|an?) [^?]+)\?",
         "Working out {object}", 3.6),
        ((r"\bhow (?P<object>[^.,;\n]{2,60}) (?:might|would|could|will|can)"
          r" (?:affect|impact|change) "), "Weighing the effects of {object}", 3.7),
        ((rf"(?:{_ASKS}|\bthey|\bshe|\bhe) (?:is asking for|asks? for|asked for|is looking for)"
          r" (?!\d)"), "Looking for {object}", 3.3),
        ((rf"{_ASKS} (?:wants|would like|needs|requested) (?!me\b|to\b)"),
         "Working on {object}", 3.3),
        ((rf"{_ASKS} (?:(?:reports|describes|is stuck (?:at|on|with)) (?!that\b)"
          r"|(?:has|gets|sees) (?=an? )|(?:is asking|asks|asked|is) about |about |concerns )"),
         "Looking into {object}", 3.0),
    ),
    *patterns(ENGLISH_GRAMMAR,
        ((r"\b(?:suspects?|wonder(?:ing)? about|think(?:ing)? about|the question of"
          r"|(?:i['’]m|we['’]re)(?: also)? considering"
          r"|another (?:\w+ )?(?:factor|aspect|point|thing|area|thought) is(?: about)?"
          r"|(?:what|how) about(?! that| this| it\b)) "), "Considering {object}", 3.2), first=0.0),
    *_finding("value",
        (_SURELY + _RESULT, "Settling on {object} as the {noun}", 4.6),
        (_SURELY + _SETTLES, "Settling on {object}", 4.4),
        ((r"^(?:(?:so|therefore|thus),? |[^;:?]*(?:[,:]| that) )?(?P<object>[^,;:?]{4,60}?) (?:is"
          r"|was) (?:really |indeed |clearly )?(?:the|an?) (?:\w+ )?(?P<noun>cause|reason|culprit"
          r"|answer|choice|option|solution|bottleneck|explanation|conclusion|winner)\b"),
         "Settling on {object} as the {noun}", 4.2),
        (_RESULT, "Considering {object} as the {noun}", 3.4),
    ),
    *_finding("clause", (_CONCLUDES, "Concluding that {object}", 4.0)),
    *_finding("frequent",
        ((r"(?<=\b[Tt]he )(?!way|first|last|second)"
          r"(?:(?!the |an? )[a-z'’-]+ ){0,3}?[a-z]{4,}(?<!ed)"
          r"(?=[.,;:]| (?:is|are|was|were|has|have|of|in|on|at|and|or|to|for|with|from|can|will"
          r"|would|must)\b)"),
         "Looking into the {object}", 1.5)),
)  # fmt: skip
