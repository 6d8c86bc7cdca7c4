"""The words by which a sentence or a title is judged, for all languages of the corpus at once."""

from __future__ import annotations

import re

WIDE = "\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff"

WIDE_RUN = re.compile(f"[{WIDE}]+")

LEANS = re.compile(
    r"""[\s*_(…–—-]*(?!it(?:['’]s|\s+is)\s+\w+\s+(?:to|that|the\s+user)\b)
        (?!(?:because|since)\b[^.!?]*,\s)(?:
        (?:so|but|and|or|then|thus|therefore|hence|also|because|since|however|which|such|instead
        |alternatively|otherwise|similarly|moreover|besides|another|this|that|these|those|it|they
        |he|she
        |dann|aber|daher|darum|deshalb|dies\w*|denn|sondern|er|sie
        |das\s+(?:ist|sind|war|wäre|wird|kann|muss|\w+t)
        |donc|mais|alors|ensuite|cela|celle|celui|elle|ils?
        |entonces|pero|así\s+que|luego|eso|esto|ese|esa|porque
        )\b(?!['’]s\s+(?:why|what)\s+I|\s+(?:user|question|problem|task|answer)\b|-)
        |因此|所以|但是?|这样|那么|另外|而且|它|这(?!个问题)|那(?!么多)
        |したがって|つまり|でも|しかし|それ|そう|なので|だから|すると|これ
        )""",
    re.IGNORECASE | re.VERBOSE,
)
"""Opens a sentence that leans on one before it."""

TAKES_BACK = re.compile(
    r"""[\W_]*(?:(?:but|hmm+|oh|ah|mais|pero|aber|不过)[\s,.!…]+)?(?:
        (?:wait|hold\s+on|actually|hmm+,?\s+(?:but|no|not)\b|scratch\s+that|correction|never\s+mind|no,\s
        |no[.!]\s|unless\s|on\s+second\s+thought|forget\s
        |(?:that|this|it)\s+(?:can['’]t|cannot|can\s+not)\s+be
        |(?:that|this|it)(?:\s+isn['’]t|['’]s\s+not|\s+is\s+not)\s+(?:right|true|correct|so)\b
        |(?:that|this|it)(?:['’]s|\s+is|\s+was)\s+wrong\b
        |I\s+(?:was\s+wrong|misread|made\s+a\s+mistake|mixed)
        |not\s+(?:needed|quite|so\s+fast|an?\s+(?:problem|issue|concern)\b)
        |or\s+(?:maybe|perhaps)\b|then\s+again\b|so\s+(?:that['’]?s\s+)?(?:fine|okay)\b
        |moment|warte|halt\b|nein\b|doch\s+nicht|quatsch|stimmt\s+nicht
        |attendez|attends|non,|en\s+fait
        |espera|un\s+momento|en\s+realidad|no,\s+espera
        )
        |等等|不对|不是这样|等一下|错了
        |ちょっと待って|いや|待って|違う
        )""",
    re.IGNORECASE | re.VERBOSE,
)
"""Opens a sentence that takes back the one before it."""

NEGATION = re.compile(
    r"""\b(?:not|never|no|none|nothing|nobody|neither|nor|cannot|without|hardly|\w+n['’]t
        |nicht|nichts|kein\w*|nie|niemals|niemand|ohne|weder
        |pas|jamais|aucune?|rien|sans|ni
        |nunca|ningún\w*|ninguna|nada|sin|tampoco
        )\b
        |不(?!过|仅|但|等式|断|同|足|久|如|少|管)|没|未(?!来|知)|并非|无法|无需
        |ない|なかっ|なく|ません|ずに|なし
        """,
    re.IGNORECASE | re.VERBOSE,
)
"""Says that something is not so. Spanish `no` is the English one."""

DEBRIS = re.compile(
    r"""\\[a-zA-Z]{2,}|\\[\[\]()]|\$(?!\s)[^$\n]{0,80}(?<!\s)\$(?!\d)  # LaTeX
        |`{3}|\|[^|\n]*\|  # code, a table
        |^\s*(?:[-*+•]|\d{1,2}[.)]|\#{1,6})\s                         # a list's mark, a heading's
        |<[/!?]?[a-zA-Z][^>\n]*>|\]\(|[{}]\s*$
        |\b(?:e\.g|i\.e|z\.\s?B|vs)\.$|[:：]\s*$|^\W*\d{1,2}\.$   # the rest is missing
        """,
    re.VERBOSE,
)
"""Is no prose."""

SENTENCE_CLOSES = re.compile(r"[.!?…。！？][\"'”’»)\]」』）*_`]*$")

BAD_TITLE_START = re.compile(
    r"""(?:if|because|since|when|although|so|but|and|or|then|therefore|however|that|this|these|it
        |there|they|he|she|which|perhaps|maybe|not|now|well|okay|yes|no|wait|hmm|let['’]s|let\s+me
        |in|on|at|to|for|from|with|by|as
        |wenn|weil|also|aber|das\s+(?:ist|war)|dies\w*|dann|vielleicht|es|ob
        |si|donc|mais|cela|il|elle|alors|entonces|pero|así|eso|esto
        )\b(?!-)|如果|因为|所以|但是|可能|根据|もし|だから|でも|それ
        """,
    re.IGNORECASE | re.VERBOSE,
)

BAD_TITLE_END = re.compile(
    r"""\b(?:is|are|was|were|be|been|the|an?|of|to|for|with|that|which|and|or|can|could|would|will
        |should|must|may|might|by|as|in|on|at|from|has|have|had|its|his|her|their|than|not|only|if
        |der|die|das|ein\w*|und|oder|mit|von|zu|ist|sind|dass|nicht
        |le|la|les|un|une|et|ou|de|des|du|est|que|el|los|las|una|y|o|es|con|por
        )$|[,;:，、：（(]$|(?:的|是|和|は|が|を|の|に|と|で)$
        """,
    re.IGNORECASE | re.VERBOSE,
)

GERUND = re.compile(r"(?:\w+ly\s+)?\w{2,}ing\b", re.IGNORECASE)

FIRST_PERSON = re.compile(
    r"\b(?:I|I['’]\w+|my|me|we|we['’]\w+|our|us|let['’]s|ich|mir|mich|mein\w*|wir|je|j['’]\w+|yo)\b"
    r"|我|私|僕|自分"
)

STOP_WORDS = frozenset(
    """about above after again against also although always another answer because been before being
    between both came cannot come could does doing done down each even ever every first from gets
    give gives goes going good have having here however into itself just keep know least less like
    made make makes many maybe more most much must need needs never next nothing now okay once only
    other over perhaps probably quite rather really right same says seems should since some
    something still such sure take takes than that their them then there therefore these they thing
    things think this those though through thus time under until user using very want wants well
    were what when where whether which while will with within without would yeah your
    aber also auch auf aus dann dass denn der die das dem den des durch eine einen einer eines für
    hier ich ihm ihr immer ist kann kein keine mehr mit nach nicht noch nur oder sein seine sich
    sie sind soll über und von vor war was weil wenn werden wie wird würde zum zur
    alors aucun avec cela celle cette comme dans des donc elle est fait faut les mais pas plus pour
    que qui sans ses sont sur une
    como con cuando del donde ella entonces esa ese eso esta este los las más nada nunca para pero
    por porque que son sus también tiene una uno""".split()  # noqa: SIM905 -- a list reads worse
)
