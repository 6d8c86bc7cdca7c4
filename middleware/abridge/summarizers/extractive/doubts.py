"""Tell doubtful sentences by how they begin, and by how the next one begins.

Reasoning thinks aloud, supposes, and takes back what it said a sentence before. So a sentence is
judged together with the opening of the next one.
"""

from __future__ import annotations

import re

from abridge.summarizers.extractive.openings import THINKING_ALOUD
from abridge.summarizers.extractive.reading import Reading
from abridge.summarizers.extractive.words import word_count, words_of

_TAKES_BACK = re.compile(
    r"\W*(?:(?:but|and|oh|ah|h+m+|okay|ok|well|um+)\b[,.\s…—-]*)*(?:(?P<denies>(?:nope|nah|wrong"
    r"|never ?mind|no(?! (?!that|this|it|wait)\w)|not (?:needed|relevant|quite|exactly|necessarily"
    r"|right|true|likely|possible|used|a (?:problem|concern|bug)|an issue)|(?:that|this|it)(?:['’]s"
    r"| is| was| seems| looks)? (?:not|wrong|incorrect|impossible|vague|too|off|odd|can['’]t"
    r"|isn['’]t|doesn['’]t|won['’]t|contradicts?|fails)|i (?:messed|was wrong|made a mistake|mis\w+"
    r"|must have|forgot)|wait,? (?:no|but|that|actually|the|in|if|maybe|two)|but (?:that|this|then"
    r"|it)|nein|doch nicht|quatsch|stimmt nicht|falsch|das (?:stimmt|geht|schafft"
    r"|ist) (?:\w+ )?(?:nicht|falsch)|non|pas (?:besoin|nécessaire)|erreur|en fait|espera"
    r"|en realidad|aspetta|in realtà|não|na verdade|нет|неверно|на самом деле)\b|不对|不是|错了"
    r"|等等，?(?:不|我|这)|不，|いや|違う|間違|やっぱり|아니|틀렸)|(?:wait|hold on|h+m+|actually"
    r"|unless|or (?:maybe|perhaps)|so (?:ok(?:ay)?|fine|good)|probably (?:ok|fine)|(?:that"
    r"|this)(?:['’]s| is) (?:fine|ok(?:ay)?|good|allowed)|but (?:i['’]m not|hold|maybe|how|why|what"
    r"|does|is)|moment|warte|halt|hm|eigentlich|oder (?:doch|vielleicht)|attends|mais|espera|pero"
    r"|стоп|подожди)\b|(?:good|fine|great|ok(?:ay)?|perfect)[.!]|等等|等一下|慢着|其实|不过"
    r"|ちょっと待って|待って|待てよ|うーん|でも|잠깐)"
)
"""What the next sentence begins with if it denies this one, doubts it, or waves it through."""

_NODDING = words_of(
    "a all also am be bit certain checks confident confused correct done enough everything fine"
    " getting go good great high i is it ll looks low m made makes me needed no not now of off ok"
    " okay out overcomplicating perfect plausible pretty problem proceed quite re really relevant"
    " right s seems sense so sounds still stop stuck sure that the think this to un up unsure used"
    " will wrap yes"
)
"""Words of which a sentence only nods."""

_NOTE = re.compile(
    r"(?:(?:so|but|also|however|then|and)\W+)?(?:do(?:n['’]t| not) \w+|(?:must|need to|should)"
    r"(?! (?:refuse|decline))|can|could|might|may|note(?! that)|show|be|check|mention|provide"
    r"|ensure|avoid|keep|explain|include|use|add|ask|offer|forget|return(?:s|ed)?)\b|(?:i|we)"
    r" (?:should|will|need to|must|can|want to) (?:also )?(?:be (?:clear|concise|brief|careful)"
    r"|ensure|format|keep it|make (?:it|sure)|phrase|structure|write|respond)\b|(?:i think )?"
    r"(?:that|this|it) (?:might|may|could|would) make sense\b|i (?:think|guess) (?:i['’]ve"
    r"|that['’]s (?:it|the))\b|i (?:don['’]t think|don['’]t see)\b"
)
"""Notes to oneself: sentences without a subject, what to mind in the answer, and that all is
said."""

_FRAGMENT = re.compile(r"[^\W\d_]+(?: [^\W\d_]+)?[.!…]+")
"""One or two words, which tell nothing but as an answer."""

_TASK_WORDS = words_of(
    "again analyze answer carefully figure issue look parse problem puzzle question read riddle"
    " since solve step task"
)
"""Words that tell nothing of what a task is about."""

_QUOTED_QUESTION = re.compile(r"[\w,:：]\s*[\"“「][^\"”」]+[?？][\"”」][.。]?$")
"""What the user asked, not what the reasoning asks itself."""

MIN_ASKING_WORDS, MIN_THINKING_WORDS = 4, 5
"""Words from which a question, or what is thought aloud, names what it is about."""


def is_nod(read: Reading, *, asked: bool) -> bool:
    """Return true if a sentence only nods or thinks aloud, and names nothing, or is a gap. After a
    question, one or two words are an answer."""
    nods = _NODDING.issuperset(read.topics) and _NODDING.issuperset(read.words)
    may_nod = len(read.words) < 3 and not asked and not read.draws
    if nods or (may_nod and _FRAGMENT.fullmatch(read.lower)):
        return True
    if not read.thinks or names_a_question(read):
        return False
    is_short = len(read.lower.split()) < MIN_THINKING_WORDS and not read.wide
    return is_short or len(read.topics - _TASK_WORDS) < 2


def names_a_question(read: Reading) -> bool:
    """Return true for a question that says what the next sentences are about."""
    least = MIN_ASKING_WORDS
    return read.asks and word_count(read.lower, least, wide=read.wide) >= least


def is_doubtful(read: Reading) -> bool:
    """Return true if a sentence thinks aloud, asks, or is a note to oneself."""
    muses = read.raw is not read.lower and THINKING_ALOUD.match(read.raw) is not None
    asks = read.asks and not _QUOTED_QUESTION.search(read.lower)
    return read.thinks or muses or asks or _NOTE.match(read.lower) is not None


def is_taken_back(read: Reading, *, is_first: bool) -> bool:
    """Return true if the next sentence doubts this one. One that settles, and the first of all,
    which states the task, is only denied."""
    found = _TAKES_BACK.match(read.following.raw) if read.following else None
    return found is not None and not ((is_first or read.settles) and not found["denies"])
