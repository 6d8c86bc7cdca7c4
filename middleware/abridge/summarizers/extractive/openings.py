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

FILLERS = re.compile(
    r"(?:(?:okay|ok|alright|all right)\W+so\b,?\s+|(?:another |potential )*issue:\s+|(?:okay|ok"
    r"|alright|all right|h+m+|u+h*m+|wait|no|oh|ah|aha|(?:oh )?nice|well|right|great|yes|yeah|yep"
    r"|sure|actually|good|perfect|hold on|anyway|look|you know|i mean|let['’]s see|let me see"
    r"|let me think|yes indeed|indeed|gut|gut so|naja|nun|ja|nein|moment|warte|stimmt|genau"
    r"|mal sehen|bon|bien|alors|attende?[sz]|voyons|euh|oui|non|bueno|vale|espera|a ver|claro|sí"
    r"|certo|allora|bene|aspetta|então|bom|certo|хорошо|так|ну|итак|стоп|да|нет|음|자|아|네"
    r"|잠깐만?)\s*(?:[,.!…—–:]|-\s)+\s*|(?:嗯+|好的?|哦|啊|等等|等一下|不对|对了?|是的|那么?|さて|うーん|えっと|ええと|よし"
    r"|では|じゃあ|まあ|いや|はい|ちょっと待って|待って|待てよ)[，,。.！!、…—]+\s*)+"
)

CONNECTIVES = re.compile(
    r"(?:(?:(?:so(?! (?:that|far|long|many|much|is|are|was|were|do|does|did|can|will|would|has|have"
    r"|as)\b)(?:\s+then(?=,))?|then(?! (?:again|is|are|was|were|do|does|did|can|will|would|has"
    r"|have)\b)|and(?! (?:so on|the like)\b)|but(?! for\b)|also(?=,| (?:the|i|we|there|note)\b)"
    r"|now(?! that\b| is\b)|therefore|thus(?! far\b|(?: \w+)? \w+ing\b)|hence|however(?=,| (?:can"
    r"|i|we|the|there)\b)|moreover|furthermore|additionally|consequently|und|aber|denn"
    r"|also(?=[,:])|mais|et|pero|y(?= (?:el|la|los|las|si|no|por|para|se|es)\b)|así que|ma(?= )"
    r"|e(?= (?:il|la|lo|le|gli|se|non|per|quindi|o|os|as)\b)|quindi|dunque|mas|но|и(?= )|а(?= )"
    r"|итак|значит|поэтому|следовательно|однако|(?:besides|similarly|likewise|accordingly|still"
    r"|yet|as a result|in addition|nevertheless|after all|that said|plus|meanwhile|nonetheless"
    r"|secondly|second|third|thirdly|whatever the \w+|doch|nun|außerdem|donc|alors|cependant"
    r"|par conséquent|entonces|por (?:lo )?tanto|sin embargo|però|portanto|logo"
    r"|no entanto)(?=,))\b[,:]?\s+|(?:所以|因此|因而|于是|但是|但|不过|然而|而且|并且|另外|此外"
    r"|同时|然后|接着|那么|其次|而(?!且)|したがって|よって|つまり|だから|なので|でも|しかし|また"
    r"|そして|そこで|それで|それから|ただし|ただ(?=、))[，,、]?|(?:그러나|하지만|따라서|그래서"
    rf"|그리고|그러므로|그럼|그런데|또한)[,，]?\s*)(?:{FILLERS.pattern})?){{1,3}}"
)

THINKING_ALOUD = re.compile(
    r"(?:(?:but|and|so|or|now|actually|okay|ok|well|yes|yeah|first|then|also|however)\W+)*(?:h+m+"
    r"|wait|hold on|maybe|perhaps|i['’]?m (?:not|just|thinking|getting|still|a bit)|not sure|nah"
    r"|sometimes|should i|let(?:['’]s| me| us)(?! (?:go with|pick|choose|say|assume|suppose))"
    r"|(?:double[- ])?checking|re-?reading|confirming|verifying|looking (?:back|at|through|for)"
    r"|i (?:guess|wonder|feel|can also|remember something|get it)|that makes sense|stop\b|done\b"
    r"|one more (?:look|check)|another (?:angle|idea|thought|approach|way)|check\b|mal sehen"
    r"|vielleicht|warte|moment|was ist mit|lass (?:mich|uns)|schauen wir|attends|voyons|peut-être"
    r"|espera|a ver|quizás|aspetta|vediamo|forse|vamos ver|talvez|хм|подожди|может)\b|嗯|等等"
    r"|等一下|让我|讓我|我(?:再|先(?:把|理|来|看))|可能|也许|有没有可能|うーん|えっと|待って"
    r"|ちょっと|たぶん|もしかし|음|잠깐|아마"
)
"""Starts of sentences that only think aloud."""

CONSEQUENCE = re.compile(
    r"(?:so|therefore|thus|hence|also:|also,? (?:der|die|das|ich|wir|es|ist|sind|sollte|muss|kann"
    r"|besser)|daher|deshalb|somit|folglich|donc|así que|quindi|поэтому|значит)\b|所以|因此|于是"
    r"|したがって|よって|つまり|だから|따라서|그래서"
)
"""What a sentence begins with that draws a consequence."""

_LEANS = re.compile(
    r"(?:none|no need|that|this|these|those|it|its|they|them|their|he|she|his|her|such|which|who"
    r"|another|others?|both|neither|either|because|otherwise|alternatively|instead|again|same|so"
    r"|in (?:that|this|either) case|in both cases|for (?:example|instance)|e\.g|i\.e|similarly"
    r"|likewise|then|or|nor|not|unless|whereas|while|though|although|meaning|like|here|there it"
    r"|(?:with|by|from|at|after|before|given|based on|if|since|when|maybe|perhaps"
    r"|(?:i|we) (?:think|guess)) (?:this|that)|if (?:so|not|he|she)|since (?:he|she)|as such"
    r"|from there|also|thus|still|yet|too|than|where|second|third|the (?:same|other|latter|former"
    r"|(?:first|second|third)(?=,| one))"
    r"|(?:ab da|das|dies(?:e[rsnm]?)?|es|er|sie|damit|dadurch|dafür|dazu|dabei|daran|dann|sonst"
    r"|weil|deshalb|daher|somit|so|ansonsten|welche[rs]?|oder|zusammen|macht|bleiben)(?! (?:nutzer"
    r"|frage|problem))|cela|ça|ce|cette|c['’]est|il|elle|ils|elles|parce que|sinon|ou|ainsi|eso"
    r"|esto|esta?|este|ello|él|ella|ellos|porque|si no|o|così|questo|quello|perché|altrimenti|isso"
    r"|isto|este|ele|ela|eles|caso contrário|это|этот|эта|он|она|они|оно|потому что|иначе"
    r"|или)\b|(?:这|那|它|其(?!次|实|他)|[他她](?![人の们])|否则"
    r"|因为|或者|例如|比如|如此|即|也就是|是$|同样|同理)|(?:それ|これ|この|その|あれ|彼|なぜなら"
    r"|例えば|たとえば|または|すると)|(?:이것|그것|이는|그는|그녀|왜냐하면|예를 들어|또는)"
)

_ARTICLE = re.compile(r"D(?:as|ies(?:e[rs]?)?) [A-ZÄÖÜ]")
"""One in German with its noun, which only looks like a pronoun."""

_NAME = re.compile(r"[^\W\d_]?(?=[\s,.;:)=]|$)|\w*[A-Z_\d(./]")
"""A variable or an identifier: not to be written with a capital."""


def strip(text: str, opening: re.Match[str] | None) -> str:
    """Remove fillers or connectives from the start of a sentence, unless it is no more."""
    if opening is None:
        return text
    rest = text[opening.end() :].lstrip()
    return capitalize(rest) if sum(map(str.isalnum, rest[:12])) > 1 else text


def capitalize(text: str) -> str:
    """Write the first letter as a capital, unless a name or a variable begins with it."""
    if text[0] in "¿¡":
        return text[0] + text[1:2].upper() + text[2:]
    is_name = _NAME.match(text) and text[:2] not in {"a ", "i ", "I'"}
    return text if is_name else text[0].upper() + text[1:]


def leans(text: str) -> bool:
    """Return true if a sentence opens with a reference to what was said before it."""
    if text[0] in "([（":
        return True
    return _LEANS.match(text.lower()) is not None and not _ARTICLE.match(text)
