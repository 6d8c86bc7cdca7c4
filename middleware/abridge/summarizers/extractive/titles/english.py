"""How English sentences say what they are about, and the titles that are made of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from abridge.summarizers.extractive.titles.patterns import Part, Pattern, patterns
from abridge.summarizers.extractive.titles.phrases import Grammar
from abridge.summarizers.extractive.titles.words import GERUNDS, VERBS, gerund_of, third_person_of
from abridge.summarizers.extractive.words import words_of

_AUXILIARIES = (
    "is are was were am has have had can could will would should must may might does do did be been"
    " isn't aren't wasn't weren't don't doesn't didn't can't cannot won't wouldn't couldn't"
    " shouldn't hasn't haven't not"
)

_VERBS = VERBS | words_of(
    "allow begin belong become cause come contain cost decrease depend die fall fail forget get "
    "give go appear arrive contribute develop exist expel stand come feel follow form look matter "
    "produce result work grow happen have hit involve kill know lack lead let lie live lose lower "
    "mean melt need occur own pay prove reach remain rise say see seem sink speak stay survive "
    "take tend travel turn weigh win"
)

_PAST = (
    "became began came chose contained cost died fell found gave got grew had happened held hit "
    "kept knew left lost made meant met needed paid ran rose said sank saw seemed showed stayed "
    "took turned went won wrote"
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
    pointers=words_of("this these their his her my our your"),
    articles=words_of("the a an each every"),
    adjectives=words_of(
        "clear odd even open closed high low long short big small great good bad fine hard full"
        " empty new old similar easier longer free harder better worse larger smaller bigger"
        " higher lower straightforward obvious simple correct same unclear different right wrong"
        " yes no likely important not still also indeed as to less more most that possible true"
        " false equal based given either"
    ),
    unsaid=words_of(
        "admit adopt assume believe ensure expect forget guess happen imagine intend mention "
        "notice pretend realize recall rely remember rephrase restate suggest suppose trust waste"
    ),
    fillers=words_of("also just simply carefully really actually indeed then now again"),
    vague=words_of(
        "a all an area areas basics condition data answer answers approach aspect beginning best "
        "better case cases cause certain chance choice clear conclusion context correct crux "
        "current detail details different each elements end entire even every example examples "
        "fact few final first following goal goals hint idea important input instance intended "
        "issue issues item items key kind last level likely log main matter necessary need next "
        "note numbers one option options order other others outcome overall part parts people "
        "person place point points possibility possible premise previous problem problems proposed "
        "purpose question questions reason report request response rest riddle right root same "
        "second section sense scenario sentence side simple simplest situation solution someone "
        "start statement step steps strategy stuff sure task text the thing things third thought "
        "thoughts time today topic total true two type used user way ways whole word words wrong"
    ),
    clauses=words_of("if how why what whether where who which when whose"),
    breaks=words_of(
        "being suppose perhaps maybe regardless but because so since while although though if "
        "before unless after which whereas until then rather"
    ),
    verbs=VERBS | words_of("be get have know see take wait pour"),
    finite=words_of(f"{_AUXILIARIES} {_PAST}") | {third_person_of(verb) for verb in _VERBS},
    plural=_VERBS,
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
    r"(?:(?:i|we)(?: also| still| just| really| then)?(?:['’]ll|['’]d like to| will| should"
    r"| need to| have to| must| want to| plan to|['’]m going to| am going to| decided to"
    r"| needed to| wanted to| can|['’]m trying to|['’]ve been asked to)|let(?:['’]?s| me| us)"
    r"|(?:goal|aim|task|idea|plan|challenge|objective|next step|first step)(?: here| now)? (?:is"
    r"|was)(?: to)?|(?:important|crucial|essential|best|better|trying) to|(?:user|question|problem"
    r"|task|riddle|puzzle|who|they|she|he) (?:wants?|would like|asks?|asked|needs?|is asking"
    r"|plans?|has)(?: me| us)? to"
    r"|(?:involves?|about|centers on|focuses on)(?= \w+ing\b)|^to(?= [^,]{8,120}, (?:i|we|let)\b))"
)

_ORDER = (
    r"^(?:(?:first|next|then|finally|lastly),? )?"
    r"(?=(?!\w+ing )\w+ (?:the|a|an|each|how|why|whether)\b)"
)
"""The beginning of a sentence whose first word may be a verb, and may be any other."""

_DETOUR = (
    r"(?: ?\b(?:(?:start|begin) (?:off )?by|try(?:ing)? to|attempt to|be able to|make sure to"
    r"|remember to|be sure to|go ahead and|help \w+|go through and))*"
)

_INTENT = rf"\b{_MODAL}{_FILLERS}{_DETOUR}{_FILLERS} ?\b"
"""What a verb in its base form follows."""

_ASKS = r"\b(?:user|question|riddle|problem|puzzle|task)(?: here)?"

_CHECKS = (
    r"(?:check|verify|confirm|see|make sure|ensure|checking|verifying)(?: (?:if|that|whether))"
)

_SAID = (
    r"(?:(?:i|we) (?:think|know|see|believe|recall|remember|guess|suppose|suspect|notice"
    r"|realize)(?: that)?|it(?:['’]s| is)? (?:seems|appears|follows|turns out|looks like|clear"
    r"|possible)(?: that)?|i(?:['’]m| am) (?:pretty |fairly |quite )?(?:sure|confident"
    r"|certain)(?: that)?|(?:this|that|which|it) (?:means|suggests|implies|shows|tells \w+"
    r"|indicates)(?: that)?|(?:the )?(?:\w+ )?(?:key|point|answer|conclusion|reason|problem|issue"
    r"|bug|idea|truth|thing|catch|trick|root cause|takeaway|insight)(?: here)? is that|the fact is"
    r"|note that|given that|i(?:['’]d| would) say(?: that)?)"
)

_LINK = (
    r"(?:so|maybe|perhaps|but|and|therefore|thus|hence|also|now|then|because|since|first|second"
    r"|third|finally|overall|again|however|next|yes|okay|well|for example|for instance|additionally"
    r"|moreover|in (?:short|summary|conclusion|total|the end|other words|this case|that case|fact)"
    r"|on the other hand|step \d+:?|at this point|either way|ultimately|alternatively|similarly)"
)

_PREPOSED = (
    r"(?:(?:given|in|for|with|by|on|after|as|based|looking|considering|during|from|at|under"
    r"|without|using|according|like|to|when|since|because|while|although|though|putting"
    r"|taking) [^,.;:]{3,70}, )"
)

_SAYS_MUCH = (
    r"(?!.{1,50}\b(?:comes? to mind|rings? a bell|(?:is|was|are) (?:(?:also|just|an?|the|very"
    r"|really|pretty) )*(?:another|key|important|crucial|clear|fine|good|correct|right|wrong|likely"
    r"|possible|thing|interesting|different|here|straightforward|tricky|complex|related|relevant"
    r"|similar|unclear|irrelevant|essential|sound|false|true)\W|makes? sense|stands? out|matters?"
    r"|helps?|seems?|looks?|sounds?|feels?|adds? up|checks? out|says?|asks?|mentions?|goes)\b)"
)
"""What follows tells more than that something is so."""

_LEAD = rf"^(?:(?:{_LINK},?|{_SAID},?) )*{_PREPOSED}?(?:(?:then|so|therefore),? )?(?:{_SAID} )?"

_CONCLUDES = (
    r"^(?=(?:so|therefore|thus|hence|overall|ultimately|in (?:short|summary|conclusion|the end)"
    r"|that means|this means|which means|as a result|consequently|the (?:answer|conclusion|key"
    r"|point) is that|(?:it )?turns out|it follows)\b)"
)

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
    r"|move|fix|difference|count|killer|winner|candidate|next|next one|treatment|finding|step"
    r"|ratio)(?: (?:of|for|in|per|to) (?:the |a |an |each )?[\w'’-]+)?)(?: here)?(?:['’]s| is| was"
    r"| are| would be| should be| must be| equals| will be| comes out to| has to be)(?: indeed"
    r"| likely| probably| actually| simply| still| just| definitely| really|:|,)* (?=\S)(?!that\b)"
)

_SETTLES = (
    r"\b(?:(?:i(?:['’]ll| will| would|['’]d|['’]m)?|we(?:['’]ll| will)?) (?:go(?:ing)? with|choose"
    r"|pick|settle on|stick(?:ing)? with|recommend|bet on|guess|lean(?:ing)? (?:towards?|to)"
    r"|say (?:it['’]s|this is)(?: indeed)?)|(?:fits|matches|lines up|aligns) (?:best |well |most "
    r"|perfectly |nicely |really well )?(?:with|to)|points? (?:\w+ )?(?:to|towards)|boils down to"
    r"|likely(?: to be)? due to|indicative of|consistent with|suggestive of|characteristic of"
    r"|(?:this|that|it) (?:must be|is called|is known as)) (?:something like )?"
)

_MODIFIED = (
    r"\b(?P<object>the (?!part|aspect|case|type|kind|rest)(?:(?!back|out|away)[\w'’-]+ ){1,3}(?:of"
    r"|between|for|in|behind) (?!question|general|fact|\d|one |two |three |a few )"
    r"(?:(?:the|an?|each|all|two) )?(?:[\w'’-]+ ){0,2}?[\w'’-]+)(?=[,.;:]|$| (?:is|are|was"
    r"|were|has|have|can|could|will|would|should|must|may"
    r"|because|so|but|that|which|at|on|with|by|to|in|for|from|when|if|after|before|than)\b)"
)
"""A thing and what it belongs to, wherever in a sentence."""

_ENGLISH_ACTIONS = (
    ((r"\b(?:double[- ]check|verif(?:y|ied)|check (?:again|this|that)|confirms?|same (?:answer"
      r"|result|as before)|consistent with)\b"), "Checking the result", 0.9),
    (r"\d ?[-+*/×÷=] ?\d|\b(?:in total|adds? up|multipl\w+|divided?|equals)\b",
     "Working through the calculation", 0.7),
    (r"\b(?:answer (?:is|must|should|would)|conclu\w+|therefore|decid\w+|go with)\b",
     "Settling on the answer", 0.6),
    (r"\b(?:or|alternatively|another|maybe|perhaps)\b", "Weighing other explanations", 0.3),
)  # fmt: skip
"""What is done, for sentences that name nothing."""

NAMELESS = {
    "Checking the result": "Checking",
    "Working through the calculation": "Working through",
    "Settling on the answer": "Working out",
    "Weighing other explanations": "Weighing",
    "Working through the details": "Working through",
    "Weighing the options": "Going through",
    "Thinking it through": "Thinking through",
    "Drawing a conclusion": "Returning to",
}
"""Titles that name nothing, and how each begins where an earlier title names the topic."""

_TOPIC = re.compile(
    r"[A-Z][a-z-]+ing (?:out |into |through |at |for |on |up |with |about )?+(?!that\b|whether\b"
    r"|what\b|it\b|other |another |(?:the|an?) \w+$)"
    r"(?P<topic>[\w'’-]+(?: [\w'’.-]+)+?)(?: as the .*)?"
)


def name_again(title: str, earlier: Sequence[str]) -> Iterator[str]:
    """Yield titles that say what `title` says, or the like, of what the first earlier title that
    names a topic was about."""
    topic = next((found["topic"] for one in earlier if (found := _TOPIC.fullmatch(one))), "")
    if topic:
        begin = NAMELESS.get(title, "Working through")
        yield from (f"{verb} {topic}" for verb in (begin, *NAMELESS.values()))


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
    r"(?P<verb>(?:see|know|think(?: about)?)(?= (?:how|why|what|where)\b)|take (?:a|another) "
    r"(?:closer )?look at|answer (?:a|the|this) (?:\w+ )?question (?:about|on)"
    r"|(?!(?:see|know|think|take)\b)[a-z-]+(?: (?:out|up|through|into|at|down)(?= ))?)"
    r" (?!(?:as|by|of|with) )"
)


def _task(*rows: tuple[str, str, float]) -> tuple[Pattern, ...]:
    return patterns(ENGLISH_GRAMMAR, *rows)


def _finding(cut: Part, *rows: tuple[str, str, float]) -> tuple[Pattern, ...]:
    return patterns(ENGLISH_GRAMMAR, *rows, cut=cut, late=True)


ENGLISH = (
    *patterns(
        ENGLISH_GRAMMAR,
        (rf"(?:{_ORDER}|{_INTENT}){_CHECKS} ", "Checking whether {object}", 4.2),
        cut="clause",
    ),
    *_task(
        (r"\bsuspects? (?=(?:the|an?) )", "Considering {object}", 2.9),
        ((r"\b(?:wonder(?:ing)? about|think(?:ing)? about|the question of|(?:i['’]m|we['’]re)"
          r"(?: also)? considering|another (?:\w+ )?(?:factor|aspect|point|thing|area) is) "),
         "Considering {object}", 3.0),
    ),
    *patterns(ENGLISH_GRAMMAR, (_INTENT + _VERB, "{verb} {object}", 3.6), verbs=_gerund),
    *patterns(ENGLISH_GRAMMAR, (_ORDER + _VERB, "{verb} {object}", 3.6),
              (rf"^(?:(?:first |next )?step(?: \w+)?[:.)] )?{_VERB}(?=[^.!?,:;]{{3,50}}$)",
               "{verb} {object}", 3.2),
              verbs=_known_gerund),
    *_task(
        ((rf"(?:\basks?|\basking|\basked|wants? to (?:know|understand|find out)|{_ASKS} is)"
          r"[,:]? (?:me |us )?(?:about )?(?=(?:how|why|what|whether|where|which|who|when)\b)"),
         "Working out {object}", 3.5),
        (r"\b(?:what|how) about (?!that|this|it\b)", "Considering {object}", 2.9),
        ((rf"{_ASKS} (?:(?:reports|describes|is stuck (?:at|on|with)) (?!that\b)"
          r"|(?:has|gets|sees) (?=an? ))"), "Looking into {object}", 3.2),
        ((r"\b(?P<how>when|where|why|how \w+) (?P<be>is|are|was|were) "
          r"(?P<object>(?:the|an?|this) (?:\w+ ){0,2}?\w+) (?P<rest>\w+)\?"),
         "Working out {how} {object} {be} {rest}", 3.3),
        (r"\b(?:user|person|client|customer)['’]s (?P<object>\w+ [a-z]+)(?= \w+(?:ed|s)\b)",
         "Looking into the {object}", 2.6),
        ((r"\bhow (?P<object>[^.,;\n]{2,60}) (?:might|would|could|will|can)"
          r" (?:affect|impact|change) "), "Weighing the effects of {object}", 3.4),
        (rf"{_ASKS} (?:is asking for|asks for|asked for|is looking for) (?!\d)",
         "Looking for {object}", 3.5),
        (rf"{_ASKS} (?:is asking about|asks about|asked about|is about|about|concerns) ",
         "Looking into {object}", 3.5),
        ((rf"{_ASKS} (?:wants|would like|needs|requested) (?!me\b|to\b)"),
         "Working on {object}", 3.3),
        (r"^(?:\w+,? )?what(?:['’]s| is| are| was| were) (?P<object>(?:the|an?) [^?]+)\?",
         "Working out {object}", 3.3),
        (r"\bwhat happens (?=if |when )", "Considering what happens {object}", 3.4),
    ),
    *patterns(ENGLISH_GRAMMAR,
        ((rf"{_ASKS} (?:says?|said|reports|writes|complains|notices|noticed)(?: that)? "
          r"(?=(?:their|his|her|my|our|the|an?|some) )"), "Looking into {object}", 2.9),
        cut="subject",
    ),
    *_finding("value",
        (_SURELY + _RESULT, "Settling on {object} as the {noun}", 4.6),
        (_SURELY + _RESULT, "Confirming {object} as the {noun}", 4.3),
        (_SURELY + _SETTLES, "Settling on {object}", 4.4),
        ((r"^(?:(?:so|therefore|thus),? |[^;:?]*[,:] )?(?P<object>[^,;:?]{4,60}?) (?:is|was)"
          r" (?:really |indeed |clearly )?(?:the|an?) (?:\w+ )?(?P<noun>cause|reason|culprit|answer"
          r"|solution|bottleneck|explanation|conclusion|winner)\b"),
         "Settling on {object} as the {noun}", 4.2),
        ((r"^(?:[^;:?]*[,:] )?(?P<object>[^,;:?]{4,60}?) is (?:the|an?) (?:\w+ )?(?:cause|reason"
          r"|answer|solution|explanation|conclusion)\b"), "Settling on {object}", 4.1),
        (_RESULT, "Considering {object} as the {noun}", 3.9),
    ),
    *patterns(ENGLISH_GRAMMAR,
        (rf"(?:^|[,:] )(?:so,? |therefore,? )?you should(?: always| definitely| just)? {_VERB}",
         "{verb} {object}", 3.9),
        ((rf"\b(?:answer|solution|fix|approach|best way|trick|key|strategy|option|choice|move"
          rf"|plan|way)(?: here)? (?:is|would be|should be|must be)(?: likely| simply| just)? to "
          rf"{_VERB}"),
         "{verb} {object}", 4.5), verbs=_gerund, late=True),
    *_finding("clause",
        (rf"{_CONCLUDES}{_LEAD}{_SAYS_MUCH}", "Concluding that {object}", 4.0),
        ((rf"{_LEAD}(?P<object>[^,;:]{{8,70}}?),? (?:because|since|due to) "),
         "Explaining why {object}", 3.7),
        ((r"^(?:\w+,? )?(?:if|suppose|assume|assuming|say|what if)(?: that)? "
          r"(?P<object>[^,;:?]{6,60})[,?]"), "Considering what happens if {object}", 2.9),
        (rf"{_LEAD}{_SAYS_MUCH}(?!.*\d)", "Finding that {object}", 3.3),
    ),
    *_finding("subject",
        (rf"{_LEAD}(?=.*\b(?:than|whereas|compared|versus|unlike)\b)", "Comparing {object}", 3.0),
        ((rf"{_LEAD}(?=.*\b(?:rules? out|can['’]t|cannot|impossible|not possible|wo(?:n['’]t|uld "
          rf"not)|unlikely)\b)"), "Questioning {object}", 2.9),
        (rf"{_LEAD}(?=.*\b(?:equals|total|sum|add|per|\d)\b)", "Working out {object}", 2.8),
        (rf"{_LEAD}", "Considering {object}", 2.7),
    ),
    *patterns(ENGLISH_GRAMMAR, (_MODIFIED, "Considering {object}", 1.9), cut="noun"),
    *_finding("recurring", ("^", "Considering {object}", 2.4)),
    *_finding("frequent",
        ((r"(?<=\b[Tt]he )(?!way|first|last|second)[a-z]{4,}(?=[.,;:]| (?:is|are|was|were|has|have"
          r"|of|in|on|at|and|or|to|for|with|from|can|will|would|must)\b)"),
         "Considering the {object}", 1.5)),
    *_task(*_ENGLISH_ACTIONS),
)  # fmt: skip
