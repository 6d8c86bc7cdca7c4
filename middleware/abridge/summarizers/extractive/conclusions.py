"""Recognise a sentence that concludes or decides, by its words.

English, German, Chinese and Japanese in full; French, Spanish, Italian, Portuguese, Russian and
Korean as far as the commonest words go: in this order.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from abridge.lazy_re import lazy_compile
from abridge.summarizers.extractive.reading import Reading
from abridge.summarizers.extractive.words import read_phrases

LEADING_CHARS = 24  # of a sentence, in which a phrase begins that concludes; a third in Chinese

_PHRASES = r"""
    <therefore|thus|hence|overall|equals|prove|proves|confirms|confirmed>;
    <conclude|concludes|concluded|concluding|conclusion|conclusions|conclusive|conclusively>;
    <conclure|conclus|conclut|concluons|concluir|concluyo|concluye|concluimos|concluo|conclui>;
    <concludo|concludere|concludiamo|conclusione|conclusioni>; in <conclusione>;
    in <summary|short|total>; in the <end>; to <sum> up; <total> (?:is )?\d+;
    <so> (?:the|this|that['’]s|it|they|there|(?:we|i) have|in total|total|yes|only|answer);
    (?:the|final|correct|best) <answer|result|solution|decision|diagnosis|verdict>;
    (?:the|final|my) <recommendation|advice|fix|takeaway|upshot|cause>;
    (?:the|final|my) <bottom> line;
    i(?:['’]d| would|['’]ll| will)? <recommend|choose|suggest|propose|prefer>;
    i(?:['’]d| would|['’]ll| will)? <go> with; (?:must|have to|should) <refuse|decline>;
    (?:which|this|that) <means>; <root> cause; <turns|rule|rules> out; <consistent> with; <must> be;
    (?:best|first|right) <choice|fit|approach>; <answer>(?=:); <come|comes> to;
    <that>(?:['’]s| is) (?:the|why|what|because|how); <all> (?:this|these|of this);
    (?:putting|taking|combining) (?:\w+ ){0,3}<together>;
    <daher|deshalb|somit|folglich|insgesamt|zusammen|fazit|bedeutet|passt>; mein <rat>;
    das <heißt|ergebnis>; die <antwort|lösung>; <ergibt> sich; fällt (?:also )?<weg>;
    <also>(?=:|, (?:der|die|das|ich|wir|es)); (?:ist|sind) <also>; ich <empfehle|rate|schlage>;
    <also> (?:ist|sind|sollte|muss|kann|bleib\w+|komm\w+|besser);
    kommt (?:\w+ ){0,3}nicht in <frage>; <donc|ainsi|recomiendo|propongo|quindi|dunque|portanto>;
    je <recommande|conseille|propose>; la <réponse|solution|respuesta|solución|risposta>;
    en <conclusion|conclusión|resumen>; par <conséquent>; le <résultat>; por (?:lo )?<tanto>;
    <así> que; (?:el|o) <resultado>; il <risultato>; a <resposta>;
    em <resumo>; <следовательно|поэтому|ответ|итак|значит>; таким <образом>; в <итоге>;
    因此|所以|综上|總之|总之|总结|结论|結論|答案|最终|最終|说明|意味着|也就是说|可见|得到|得出;
    验证了|根本原因|したがって|よって|つまり|答えは|結局|ということ|わか(?:る|った|ります)|以上から;
    が正しい|따라서|그러므로|결론|결국|정답
"""
"""Each is looked for only in a sentence that holds one of its words (see `read_phrases`), so most
sentences are not searched at all; those without one, in scripts without spaces alone."""


def _by_word(phrases: str) -> Mapping[str, list[re.Pattern[str]]]:
    patterns = defaultdict[str, list[re.Pattern[str]]](list)
    for before, word, after in read_phrases(phrases):
        start = rf"\b{before}{word}" if before else rf"{word}(?<!\w{word})"  # this is faster
        patterns[word].append(lazy_compile(rf"{start}{after}(?!\w)" if word else after))
    return patterns


PATTERNS = _by_word(_PHRASES)
_WORDS = frozenset(PATTERNS)


def concludes(read: Reading) -> bool:
    """Return true if a sentence settles its paragraph, or begins with what concludes."""
    if read.settles:
        return True
    most = LEADING_CHARS // 3 if read.wide else LEADING_CHARS
    for word in ("",) if read.wide else _WORDS.intersection(read.words):
        for phrase in PATTERNS[word]:
            found = phrase.search(read.lower)
            if found and found.start() < most:
                return True
    return False
