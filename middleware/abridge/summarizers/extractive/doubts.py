"""Tell doubtful sentences by how they begin, and by how the next one begins.

Reasoning thinks aloud, supposes, and takes back what it said a sentence before. So a sentence is
judged together with the opening of the next one.
"""

from __future__ import annotations

import re

from abridge.summarizers.extractive.openings import THINKING_ALOUD
from abridge.summarizers.extractive.reading import Reading
from abridge.summarizers.extractive.words import word_count, words_of

RETRACTION = re.compile(
    r"\W*(?:(?:but|and|oh|ah|h+m+|okay|ok|well|um+)\b[,.\s…—-]*)*(?:(?:nope|nah|wrong|never ?mind"
    r"|no(?! (?!that|this|it|wait)\w)|not (?:needed|relevant|quite|exactly|necessarily|right|true"
    r"|likely|possible|used|a (?:problem|concern|bug)|an issue))\b|(?:that|this|it)(?:['’]s| is"
    r"| was| seems| looks)? (?:not|wrong|incorrect|impossible|vague|too|off|odd|can['’]t|isn['’]t"
    r"|doesn['’]t|won['’]t|contradicts?|fails)|i (?:messed|was wrong|made a mistake|mis\w+"
    r"|must have|forgot)|wait,? (?:no|but|that|actually|the|in|if|maybe|two)"
    r"|but (?:that|this|then|it)|nein|doch nicht|quatsch|stimmt nicht|falsch"
    r"|das (?:stimmt|geht|schafft|ist) (?:\w+ )?(?:nicht|falsch)|non|pas (?:besoin|nécessaire)"
    r"|erreur|en fait|espera|en realidad|aspetta|in realtà|não|na verdade|нет|неверно"
    r"|на самом деле)\b|\W*(?:不对|不是|错了|等等，?(?:不|我|这)|不，|いや|違う|間違|やっぱり|아니"
    r"|틀렸)"
)
"""What the next sentence begins with if it takes this one back."""

SECOND_THOUGHT = re.compile(
    r"\W*(?:(?:but|and|oh|ah|okay|ok|well|um+)\b[,.\s…—-]*)*(?:wait|hold on|h+m+|actually|unless"
    r"|or (?:maybe|perhaps)|so (?:ok(?:ay)?|fine|good)\b"
    r"|probably (?:ok|fine)|(?:that|this)(?:['’]s| is) (?:fine|ok(?:ay)?|good|allowed)"
    r"|but (?:i['’]m not|hold|maybe|how|why|what|does|is)|moment|warte|halt|hm|eigentlich"
    r"|oder (?:doch|vielleicht)|attends|mais|espera|pero|стоп|подожди)\b|\W*(?:(?:good|fine|great"
    r"|ok(?:ay)?|perfect)[.!])|\W*(?:等等|等一下|慢着|其实|不过|ちょっと待って|待って|待てよ|うーん"
    r"|でも|잠깐)"
)
"""What the next sentence begins with if it puts this one in doubt, or waves it through."""

SHRUG = re.compile(
    r"(?:so,? )?(?:i think )?(?:that['’]?s? (?:is )?)?(?:good|fine|great|ok(?:ay)?|perfect|yes|no"
    r"|right|correct|enough|done|stop\b.{0,20}|not (?:needed|relevant|used|a \w+)"
    r"|i(?:['’]ll| will) (?:proceed|go ahead|wrap (?:it|this) up).{0,30}"
    r"|(?:that|this|it) (?:(?:seems|looks|sounds) (?:high|low|right|correct|plausible|off)"
    r"|makes sense|checks out)(?: to me)?|i(?: think i)?['’]?(?:m| am) (?:pretty |quite )?"
    r"(?:confident|sure|done|overcomplicating)\b.{0,30}|(?:everything |it all |all (?:of )?this )?"
    r"(?:makes|made) (?:\w+ )?sense(?: now)?|(?:but )?i(?:['’]m| am) (?:still |also )?(?:not|un"
    r"|really|a bit|getting|so) ?(?:\w+ )?(?:sure|certain|confused|stuck)\b[^,;:]{0,24}|…)\W*"
)
"""Sentences that only nod, and gaps."""

NOTE = re.compile(
    r"(?:(?:so|but|also|however|then|and)\W+)?(?:do(?:n['’]t| not) \w+|(?:must|need to|should)"
    r"(?! (?:refuse|decline))|can|could|might|may|note(?! that)|show|be|check|mention|provide"
    r"|ensure|avoid|keep|explain|include|use|add|ask|offer|return(?:s|ed)?)\b|(?:i think )?"
    r"(?:that|this|it) (?:might|may|could|would) make sense\b|i (?:think|guess) (?:i['’]ve"
    r"|that['’]s (?:it|the))\b|i (?:don['’]t think|don['’]t see)\b"
)
"""Sentences without a subject, which are notes to oneself, and those that say that all is said."""

FRAGMENT = re.compile(r"[^\W\d_]+(?: [^\W\d_]+)?[.!…]+")
"""One or two words, which tell nothing but as an answer."""

_QUESTION = re.compile(r"[?？]\W*$")
_TOLD_QUESTION = re.compile(
    r"[\w,:：]\s*[\"“「][^\"”」]+[?？][\"”」][.。]?$|^(?:\w+,? ){0,2}?(?:question|riddle|problem"
    r"|puzzle)(?: here)?(?: is|['’]s| asks| says| goes)\b[^?]{12,}\?$|^(?:用户|题目|问题)(?:想|问"
    r"|是|：).{6,}？$"
)
"""A question that the user asked, not one that the reasoning asks itself."""

NO_SCORE = -4.5
"""Score of a sentence's own doubts up to which it tells nothing: a question, a nod."""

SECOND_THOUGHT_SCORE = -2.5

TASK_WORDS = words_of(
    "again analyze answer carefully figure issue look parse problem puzzle question read riddle"
    " since solve step task"
)
"""Words that tell nothing of what a task is about."""

MIN_ASKING_WORDS, MIN_THINKING_WORDS = 4, 5
"""Words from which a question, or what is thought aloud, names what it is about."""

_INTENT = re.compile(
    r"(?:(?:so|but|also|and|now|then|next|first),? )*(?:let(?:['’]s| me| us)(?! (?:say|assume"
    r"|suppose))|i (?:also )?(?:need to|should) (?:also )?(?:consider|think about|check|figure out"
    r"|decide|look)\b|(?:i['’]m|there['’]s|there is) (?:also )?(?:(?:thinking|wondering) about"
    r"|considering|the (?:question|issue|matter) of)\b|another (?:\w+ )?(?:thing|factor|point"
    r"|aspect|question)\b|lass (?:mich|uns)|schauen wir|veamos|voyons|vediamo|让我|我需要|接下来)"
)
"""What a sentence begins with that says what comes next."""


def is_nod(read: Reading, *, asked: bool = False) -> bool:
    """Return true if a sentence only nods or thinks aloud, and names nothing. After a question, one
    or two words are an answer."""
    lower = read.lower
    answers = asked or read.draws or lower.count(" ") > 1
    if SHRUG.fullmatch(lower) or (not answers and FRAGMENT.fullmatch(lower)):
        return True
    if not read.thinks or announces(read):
        return False
    is_short = len(lower.split()) < MIN_THINKING_WORDS and not read.wide
    return is_short or len(read.topics - TASK_WORDS) < 2


def announces(read: Reading) -> bool:
    """Return true for a question or an intention that says what the next sentences are about."""
    lower = read.lower
    words = word_count(lower, MIN_THINKING_WORDS, wide=read.wide)
    if _QUESTION.search(lower, max(0, len(lower) - 4)):
        return words >= MIN_ASKING_WORDS
    return (
        words >= MIN_THINKING_WORDS
        and bool(_INTENT.match(lower))
        and len(read.topics - TASK_WORDS) > 1
    )


def score_own(read: Reading, *, is_task: bool = False) -> float:
    """Score the doubts that a sentence itself raises, 0 for none."""
    lower, score = read.lower, 0.0
    if read.thinks or (read.raw is not lower and not is_task and THINKING_ALOUD.match(read.raw)):
        score -= 3.0
    end = lower[-4:]
    if ("?" in end or "？" in end) and _QUESTION.search(end) and not _TOLD_QUESTION.search(lower):
        score -= 5.0
    if NOTE.match(lower):
        score -= 5.0
    return score


def score_following(read: Reading) -> float:
    """Score what the next sentence says of the one before it."""
    if RETRACTION.match(read.raw):
        return -4.0
    return SECOND_THOUGHT_SCORE if SECOND_THOUGHT.match(read.raw) else 0.0
