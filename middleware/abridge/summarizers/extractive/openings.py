"""Know how a sentence opens, and what of that it can do without.

Three kinds of words open a sentence of reasoning. Fillers (`Okay, hmm,`) say nothing. Connectives
(`So`, `But`, `Also`) tie it to the one before; where that is not shown they are stripped, and the
rest is a whole sentence. Other openings (`This`, `It`, `Because`, `Otherwise`) lean on what was
said before: such a sentence cannot be understood without it, nor be mended by stripping.

They are looked for in lower-cased text, which takes a third of the time of a match without regard
to case.
"""

from __future__ import annotations

import re

_FILLER = re.compile(
    r"(?:(?:okay|ok|alright|all right)\W+so\b,?\s+|(?:another |potential )*issue:\s+"
    r"|(?:okay|ok|alright|all right|h+m+|u+h*m+|wait|no|oh|ah|aha|well|right|great|yes|yeah|yep"
    r"|sure"
    r"|actually|good|perfect|hold on|anyway|look|you know|i mean|let['’]s see|let me see"
    r"|let me think"
    r"|yes indeed|indeed|gut|gut so|naja|nun|ja|nein|moment|warte|stimmt|genau|mal sehen|bon|bien"
    r"|alors|attends|voyons|euh|oui|non|bueno|vale|espera|a ver|claro|sí|certo|allora|bene|aspetta"
    r"|então|bom|certo|хорошо|так|ну|итак|стоп|да|нет|음|자|아|네|잠깐만?)\s*(?:[,.!…—–:]|-\s)+\s*"
    r"|(?:嗯+|好的?|哦|啊|等等|等一下|不对|对了?|是的|那么?|さて|うーん|えっと|ええと|よし|では"
    r"|じゃあ|まあ"
    r"|いや|はい|ちょっと待って|待って|待てよ)[，,。.！!、…—]+\s*)+"
)

_CONNECTIVE = re.compile(
    r"(?:"
    r"so(?! (?:that|far|long|many|much|is|are|was|were|do|does|did|can|will|would|has|have|as)\b)"
    r"(?:\s+then(?=,))?"
    r"|then(?! (?:again|is|are|was|were|do|does|did|can|will|would|has|have)\b)"
    r"|and(?! (?:so on|the like)\b)|but(?! for\b)|also(?=,| (?:the|i|we|there|note)\b)"
    r"|now(?! that\b| is\b)|therefore|thus(?! far\b|(?: \w+)? \w+ing\b)|hence|however(?=,"
    r"| (?:can|i|we|the|there)\b)"
    r"|moreover|furthermore|additionally|besides(?=,)|similarly(?=,)|likewise(?=,)|consequently"
    r"|accordingly(?=,)|still(?=,)|yet(?=,)|as a result(?=,)|in addition(?=,)|nevertheless(?=,)"
    r"|after all(?=,)|that said(?=,)|plus(?=,)|meanwhile(?=,)|nonetheless(?=,)|secondly(?=,)"
    r"|second(?=,)|third(?=,)|thirdly(?=,)"
    r"|(?:putting|taking) (?:it|this|that|these|them|everything|all (?:of )?th\w+)(?: all)?"
    r" together(?=,)|whatever the \w+(?=,)"
    r"|und|aber|denn|also(?=,)|doch(?=,)|nun(?=,)|außerdem(?=,)"
    r"|mais|et|donc(?=,)|alors(?=,)|cependant(?=,)|par conséquent(?=,)"
    r"|pero|y(?= (?:el|la|los|las|si|no|por|para|se|es)\b)|así que|entonces(?=,)"
    r"|por (?:lo )?tanto(?=,)|sin embargo(?=,)"
    r"|ma(?= )|e(?= (?:il|la|lo|le|gli|se|non|per|quindi|o|os|as)\b)|quindi|dunque|però(?=,)|mas"
    r"|portanto(?=,)|logo(?=,)|no entanto(?=,)"
    r"|но|и(?= )|а(?= )|итак|значит|поэтому|следовательно|однако"
    r")\b,?\s+"
    r"|(?:所以|因此|因而|于是|但是|但|不过|然而|而且|并且|另外|此外|同时|然后|接着|那么|其次"
    r"|而(?!且)"
    r"|したがって|よって|つまり|だから|なので|でも|しかし|また|そして|そこで|それで|それから"
    r"|ただし|ただ(?=、))[，,、]?"
    r"|(?:그러나|하지만|따라서|그래서|그리고|그러므로|그럼|그런데|또한)[,，]?\s*"
)

_LEANS = re.compile(
    r"(?:that|this|these|those|it|its|they|them|their|he|she|his|her|such|which|who|another"
    r"|others?|both"
    r"|neither|either|either way|because|otherwise|alternatively|instead|in that case|in this case"
    r"|in either case|in both cases|for example|for instance|e\.g\.|i\.e\.|similarly|likewise"
    r"|again|same|so|then|or|nor|not|unless|whereas|while|though|although|meaning|same thing"
    r"|with (?:this|that|these|it)|by (?:this|that)|from (?:this|that|there)|(?:after"
    r"|before) (?:this|that)"
    r"|given (?:this|that|these)|based on (?:this|that|these)|if (?:so|not|it|they|that|this|he"
    r"|she)"
    r"|since (?:it|they|that|this|these|he|she)|when (?:it|they|that|this)|as (?:it|they|such)"
    r"|like (?:that|this)|here|there it|at (?:this|that)|also|thus|still|yet|too|than|where"
    r"|(?:i|we) (?:think|guess) (?:it|that|this|they)(?:['’]s|\b)|the (?:same|other|latter|former)"
    r"|maybe (?:it|they|that|this)|perhaps (?:it|they|that|this)|second|third"
    r"|(?:das|dies(?:e[rsnm]?)?|es|er|sie|damit|dadurch|dafür|dazu|dabei|daran|dann|sonst|weil"
    r"|deshalb"
    r"|daher|somit|so|ansonsten|welche[rs]?|oder|zusammen|macht|bleiben)(?! (?:nutzer|frage"
    r"|problem))"
    r"|cela|ça|ce|cette|c['’]est|il|elle|ils|elles|parce que|sinon|ou|ainsi"
    r"|eso|esto|esta?|este|ello|él|ella|ellos|porque|si no|o|così|questo|quello|perché|altrimenti"
    r"|isso|isto|este|ele|ela|eles|caso contrário"
    r"|это|этот|эта|он|она|они|оно|потому что|иначе|или)\b(?!['’]s (?:important|crucial|clear"
    r"|best) to)"
    r"|(?:这|那|它|其(?!次|实|他)|他|她|否则|因为|或者|例如|比如|如此|即|也就是|是$|同样|同理)"
    r"|(?:それ|これ|この|その|あれ|彼|なぜなら|例えば|たとえば|または|すると)"
    r"|(?:이것|그것|이는|그는|그녀|왜냐하면|예를 들어|또는)"
)

_LEANS_EARLY = re.compile(
    r"(?:on|in|at|with|by|for|from|to|if|when|since|as|while|once|after|before|\w+ing|i|we|you"
    r"|let['’]s)\b"
    r",?\s(?:[\w'’:.-]+,?\s){0,3}?(?:it|they|them|these|those|both|there)\b(?!['’]s (?:important"
    r"|crucial|best) )"
    r"|(?:wenn|weil|da|falls|auch|bei|mit|für|in|ich|wir)\s(?:\w+\s){0,2}?(?:er|es|ihn|ihm"
    r"|diese[rnms]?)\b"
)
"""Pronouns among the first words: `On the road, it`."""

_NAMED = re.compile(
    r"(?i:(?:this|that|these|those) (?:user|question|problem|task|function|code|riddle|request"
    r"|puzzle)\b|(?:that|this) (?:the|a)\b|es gibt|it is (?:known|possible) that\b"
    r"|it(?:['’]s| is) (?:clear|important|crucial|worth|essential|best)"
    r"|(?:putting|taking|combining) (?:it|this|these|all))"
    r"|(?:[Dd]as|[Dd]ies|[Dd]iese[rs]?) [A-ZÄÖÜ]\w+"
    r"|这个?(?:函数|问题|题|数列|代码|用户|道题)|この(?:問題|質問|関数|コード)|他[人の]|她们"
)
"""Openings that only look as if they leaned: they name what they speak of."""

_NAME = re.compile(r"[^\W\d_]?(?=[\s,.;:)=]|$)|\w*[A-Z_\d(./]")
"""A variable or an identifier: not to be written with a capital."""


def strip_fillers(text: str) -> str:
    """Remove an "Okay, so" from the start of a sentence; return it unchanged if it is no more."""
    found = _FILLER.match(text.lower())
    return _without(text, found)


def strip_connectives(text: str) -> str:
    """Remove "So", "But, then" and the like from the start of a sentence without fillers."""
    for _ in range(3):
        found = _CONNECTIVE.match(text.lower())
        if found is None:
            break
        text = strip_fillers(_without(text, found))
    return text


def _without(text: str, found: re.Match[str] | None) -> str:
    if found is None:
        return text
    rest = text[found.end() :].lstrip()
    if sum(map(str.isalnum, rest[:12])) < 2:
        return text
    return capitalize(rest)


def capitalize(text: str) -> str:
    """Write the first letter as a capital, unless a name or a variable begins with it."""
    is_name = _NAME.match(text) and text[:2] not in {"a ", "i ", "I'"}
    return text if is_name else text[0].upper() + text[1:]


def leans(text: str) -> bool:
    """Return true if a sentence opens with a reference to what was said before it."""
    if text[0] in "([（":
        return True
    lower = text.lower()
    found = _LEANS.match(lower) or _LEANS_EARLY.match(lower)
    return found is not None and not _NAMED.match(text)
