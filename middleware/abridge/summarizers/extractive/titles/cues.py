"""What English sentences are recognised by that a title can be made of: patterns of lower case."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from abridge.summarizers.extractive.alternatives import group_alternatives

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
