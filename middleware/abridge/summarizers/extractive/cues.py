"""Word lists that classify a sentence of reasoning.

English, German, French, Spanish, Russian, Chinese, Japanese and Korean. Reasoning in other
languages is scored by features that need no words: position, length, repetition.

Cues are searched in lower-cased text, which takes a third of the time of a case-insensitive search.
Cues in wide scripts are skipped for ASCII text, which saves another third.
"""

from __future__ import annotations

import re


class Cue:
    """A set of words; `wide` are those in scripts without spaces between words."""

    def __init__(self, *words: str, wide: str) -> None:
        spaced = rf"\b(?:{'|'.join(words)})\b"
        self._spaced = re.compile(spaced)
        self._any = re.compile(f"{spaced}|{wide}")

    def search(self, text: str) -> re.Match[str] | None:
        return (self._spaced if text.isascii() else self._any).search(text)


CONCLUSION = Cue(
    "therefore|thus|hence|overall|conclu[a-z]+|in (?:summary|short|total|the end)|to sum up",
    "so (?:the|this|that['’]s|it|they|there|(?:we|i) have|in total|total|yes|only)",
    "(?:the|final|so|correct) (?:answer|result|solution|decision|sum|product)|equals",
    "(?:which|this|that) means|root cause|turns out",
    "daher|deshalb|somit|folglich|insgesamt|die antwort|das ergebnis",
    "donc|ainsi|par conséquent|la réponse|le résultat",
    "por (?:lo )?tanto|así que|en resumen|la respuesta|el resultado",
    "следовательно|таким образом|поэтому|ответ",
    wide="因此|所以|综上|總之|总之|结论|結論|答案|最终|最終|したがって|よって|つまり|答えは"
    "|따라서|그러므로|결론",
)

DECISION = Cue(
    "(?:i|we)(?:['’]ll| will| shall| should| need to| must| decided?| choose| chose| picked?)",
    "i['’]m (?:going|choosing)|let['’]?s (?:go with|use)|best (?:to|way|approach|option)|instead",
    "let me (?:call|use|load|invoke|fix|first)|(?:the|my) (?:plan|approach|strategy)|first(?=,)",
    "finally|ich werde|wir müssen|je vais|il faut|nous devons|voy a|debemos|hay que|нужно|сначала",
    wide="我们?(?:需要|要|会|应该|将|可以)|首先|其次|决定|決定|必要がある|すべき|まず|次に|먼저|해야",
)

TASK = Cue(
    "the user (?:wants|asks|asked|is asking|needs|requested)|we are asked|the (?:task|goal)",
    "der nutzer|l['’]utilisateur|el usuario|пользователь",
    wide="用户|ユーザー|사용자",
)

FINDING = Cue(
    "because|since|found|the (?:problem|issue|cause|key|bug|error|point|difference)|crucial|key",
    "important(?:ly)?|essential|requires?|involves?|i know|confirm(?:s|ed)?|depends|must|unless",
    "weil|wichtig|parce que|important|porque|importante|потому что",
    wide="因为|因為|发现|問題|问题|关键|重要|なぜなら|原因|때문",
)

HEDGE = Cue(
    "might|may|maybe|perhaps|possibly|sometimes|some people|seems?|unsure|could|would|people",
    "concise|brief|short|simple|verbose|clear|clearly|directly|format|formatting|chit-chat",
    "(?:structure|craft|compile|state|give|phrase|keep) (?:it|the|this|a|my)|make it",
    "vielleicht|könnte|peut-être|quizás|может быть",
    wide="可能|也许|かもしれない|たぶん|아마",
)
"""Guesses, and remarks about how to phrase the answer."""

THINKING_ALOUD = re.compile(
    r"(?:(?:but|and|so|or|now|actually)\W+)?"
    r"(?:h+m+|wait|hold on|maybe|perhaps|i['’]?m not|not sure|nah|sometimes|should i"
    r"|let['’]?s (?:see|think|check|count|verify|list|ensure|double|go through|write)"
    r"|let me (?:think|see|check|re|count|verify|double|try|go|spell|confirm|make sure|look|write"
    r"|start|recall|let)"
    r"|i (?:think|guess|wonder|recall|feel|can also)"
    r"|mal sehen|vielleicht|attends|voyons|peut-être|espera|a ver|quizás|хм|подожди|может)\b"
    r"|嗯|等等|等一下|让我|讓我|可能|也许|うーん|えっと|待って|ちょっと|たぶん|음|잠깐",
)
"""Starts of sentences that only think aloud."""

INTERJECTION = re.compile(
    r"(?:(?:okay|ok|alright)\W+so,?\s+"
    r"|(?:okay|ok|alright|h+m+|wait|no|oh|ah|well|right|great|yes|yeah|yep|actually|good|also"
    r"|gut|bon|bueno|хорошо|嗯|好的?|等等|さて|うーん|음)\s*[,.!…—，。、]+\s*)+",
    re.IGNORECASE,
)
"""Fillers that may be removed from the start of a sentence."""

LEAD_IN = re.compile(
    r"(?:(?:first|firstly|next|then|finally|now|so|also|therefore|thus|overall|but|and)\b,?\s*"
    r"|(?:i|we)(?:['’]ll(?: have to)?|['’]m going to|['’]d like to|['’]m| will| can| could| must"
    r"| am| (?:also )?(?:need|have|want|plan|am going|are asked) to| (?:also |probably )?should)"
    r"(?!['’]| not\b)\b\s*"
    r"|(?:also|probably|just|simply|first|now)\s+|let me\s+|let['’]s\s+|we are asked:?\s*"
    r"|the user (?:(?:wants|asked|needs|requested|is asking|would like)(?: me)? (?:to|about|for)"
    r"|asks (?:about|for|me to|to)|is asking|asks|asked|wants|requested)\s+"
    r"|i (?:think|know|see|found|remember|notice)(?: that)?\s+"
    r"|make sure (?:to|that)\s+|(?:try|start) (?:to|by)\s+"
    r"|it['’]?s? (?:is )?(?:important|crucial|essential|best) (?:to|that)\s+"
    r"|(?:ich werde|wir müssen|der nutzer möchte|je vais|il faut|voy a|debemos|нужно)\s+"
    r"|(?:daher|deshalb|somit|donc|ainsi)\s+"
    r"|(?:首先|其次|另外|最后|所以|因此|总之|综上|したがって|つまり|よって|まず|次に)[，,、]?"
    r"|用户(?:想要?|希望|要求|需要)?我?|我们?(?:需要|应该|可以|要|会|先)+|让我)+",
    re.IGNORECASE,
)
"""Lead-ins that are removed from the start of a title."""

CLAUSE_BREAK = re.compile(
    r"\s+(?:to|for|with|in|on|by|as|that|of|from|at|before|after|while|using|when|if|and|or|so|but"
    r"|because|which|since|where|is|are|was|und|oder|et|ou|pour|y|o|para|и|или|для)\s+",
    re.IGNORECASE,
)
"""Words before which a clause may be cut."""

STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "about also been could does first from have just like make more need only other really "
        "should some something sure than that their them then there these they thing think this "
        "those user want wants what when where which will with would your",
    )
)
"""Stop words of four and more letters."""
