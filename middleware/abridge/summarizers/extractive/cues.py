"""Word lists that tell what a sentence of reasoning does: conclude, decide, guess, ask.

English, German, Chinese and Japanese in full; French, Spanish, Italian, Portuguese, Russian and
Korean as far as the commonest words go: in this order. Reasoning in another language is scored by
features that need no word lists: length, form, repetition.

A phrase has one group in angle brackets: `in <summary|short>`. It is looked for only in a sentence
that holds one of these words, so most sentences are not searched at all. One without such a group
is in a script without spaces, and looked for in these alone. Phrases are separated by semicolons,
in small letters.
"""

from __future__ import annotations

import re
from collections import defaultdict
from sys import maxsize

from abridge.lazy_re import lazy_compile

_WIDE = ""  # stands for the words of a script without spaces


class Cue:
    """Phrases that mean the same."""

    def __init__(self, phrases: str) -> None:
        self._phrases = defaultdict[str, list[re.Pattern[str]]](list)
        for phrase in map(str.strip, phrases.split(";")):
            before, words, after = (
                re.split("[<>]", phrase) if "<" in phrase else ("", _WIDE, phrase)
            )
            for word in words.split("|"):
                start = (
                    rf"\b{before}{word}" if before else rf"{word}(?<!\w{word})"
                )  # this is faster
                source = rf"{start}{after}(?!\w)" if word else after
                self._phrases[word].append(lazy_compile(source))
        self.words = frozenset(self._phrases) - {_WIDE}

    def is_in(
        self, text: str, words: frozenset[str], *, wide: bool = False, within: int = maxsize
    ) -> bool:
        """Return true if a sentence in small letters, of which these are words, holds a phrase that
        begins within so many characters."""
        for word in (_WIDE,) if wide else self.words & words:
            for phrase in self._phrases[word]:
                found = phrase.search(text)
                if found and found.start() < within:
                    return True
        return False


CONCLUSION = Cue(r"""
    <therefore|thus|hence|overall|equals|prove|proves|confirms|confirmed>;
    <conclude|concludes|concluded|concluding|conclusion|conclusions|conclusive|conclusively>;
    <conclure|conclus|conclut|concluons|concluir|concluyo|concluye|concluimos|concluo|conclui>;
    <concludo|concludere|concludiamo|conclusione|conclusioni>; in <conclusione>;
    in <summary|short|total>; in the <end>; to <sum> up; <total> (?:is )?\d;
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
    <also>, (?:der|die|das|ich|wir|es); (?:ist|sind) <also>; ich <empfehle|rate|schlage>;
    <also> (?:ist|sind|sollte|muss|kann|bleib\w+|komm\w+|besser);
    kommt (?:\w+ ){0,3}nicht in <frage>; <donc|ainsi|recomiendo|propongo|quindi|dunque|portanto>;
    je <recommande|conseille|propose>; la <réponse|solution|respuesta|solución|risposta>;
    en <conclusion|conclusión|resumen>; par <conséquent>; le <résultat>; por (?:lo )?<tanto>;
    <así> que; (?:el|o) <resultado>; il <risultato>; a <resposta>;
    em <resumo>; <следовательно|поэтому|ответ|итак|значит>; таким <образом>; в <итоге>;
    因此|所以|综上|總之|总之|总结|结论|結論|答案|最终|最終|说明|意味着|也就是说|可见|得到|得出;
    验证了|根本原因|したがって|よって|つまり|答えは|結局|ということ|わか(?:る|った|ります)|以上から;
    が正しい|따라서|그러므로|결론|결국|정답
""")

TASK = Cue(r"""
    (?:they|he|she) <ask|asks|want|wants|need|needs> (?:me|for|to|how|why|what|whether|if|which);
    the <user|users>(?:['’]s?)? (?:wants?|asks?|asked|is asking|needs?|requested|would like|says);
    the <task|goal|question|problem|riddle|puzzle|issue> (?:is|asks|says|here);
    (?:i|we) <need|have|want> to (?:figure out|find|solve|determine|explain|show|prove);
    der <nutzer|benutzer|user>; die <frage|aufgabe>; <gesucht> ist; l['’]<utilisateur|utente>;
    la <question|pregunta|domanda>; el <usuario>; o <usuário>; a <pergunta>; <пользователь|вопрос>;
    用户|题目|任务|问题是|问(?:一共|多久|多少|怎么|如何|能否|是否)|ユーザー|質問|問題は|求め|사용자;
    문제
""")

HEDGE = Cue(r"""
    <might|may|maybe|perhaps|possibly|sometimes|seem|seems|unsure|probably|likely|presumably>;
    <people|potential|potentially|someone|sounds>; <could|would> be; not <sure>; <sort|kind> of;
    first <thought|guess|idea|instinct>; i <think|guess|feel|suppose|wonder>; or <something>;
    <looks> (?:like|right|good|best); soweit ich <weiß>; ich <frage> mich; <klingt|scheint|wohl>;
    <vielleicht|könnte|könnten|vermutlich|wahrscheinlich|möglicherweise>; peut-<être>; tal <vez>;
    <probablement|quizás|probablemente|forse|probabilmente|talvez|provavelmente>;
    <возможно|наверное>; может <быть>;
    可能|也许|或许|大概|应该是|似乎|好像|或者|かもしれない|たぶん|おそらく|だろう|でしょう|気がする;
    아마|것 같
""")

_I_WILL = (
    r"(?:i|we|i['’]ll)(?: (?:should|will|need to|must|can|could|might|also|just|now|want to)){0,3}"
)

META = Cue(rf"""
    <concise|formatting|boxed>; <step> by step; the (?:user|prompt) <said>; as <per> the;
    <structure|craft|compile|phrase|format|word> (?:it|the|this|that|a|my|up);
    {_I_WILL} <ensure|write|state|present|structure|format|phrase|mention|answer|respond|provide>;
    {_I_WILL} <output|return|give|keep|express|note|double>; make <sure>; to be <sure|safe|clear>;
    {_I_WILL} be <clear|concise|careful|friendly|polite|helpful|precise>;
    (?:final|the) <answer|output> (?:should(?! be [\"“'‘\d])|must|is to|can|needs);
    (?:figure out|solve|tackle|answer|parse) this \w+ <question|problem|riddle|puzzle|query|task>;
    (?:figure out|solve|tackle|answer|parse) this \w+ <request|issue>;
    (?:should|must) (?:not )?<give|share|offer|include|tell>; <go|going> with (?:that|it);
    <point|spell|write> (?:that|this|it) (?:out|down);
    <answer|response|reply|draft|output|say>: ?[\"“]; <antworten|beantworten|zusammenfassen>;
    <formulier|formuliere|formulieren|formuliert|formulierte|formulierung|formulierungen>;
    <sicherstellen|sicherzustellen|duze|siezen|berücksichtigen>; ich <schreibe>; in der <antwort>;
    auf <deutsch>; <klar> und; <information|informationen> geben; daran <denken>;
    einfach \w+ \w+ <nennen>; je (?:dois|vais) <répondre>; en <français|español>;
    debo <responder|decir>; devo <rispondere>; in <italiano>; <responder> em; em <português>;
    <ответить> на; на <русском>;
    回答(?:中|时|里|用户|问题)|答案应|用[中英日].?文|应该?说明|确认我理解|仔细阅读|整理答案;
    组织语言|逻辑清晰|没有错误|正确无误|再检查|覆盖所有|格式|简洁|清晰|确保|回答する|日本語で|簡潔;
    わかりやすく|形式で|まとめよう|한국어로|간결
""")
"""Remarks about how to word the answer, and on taking care."""

HINTS = CONCLUSION.words | TASK.words | HEDGE.words | META.words
"""Words of which each sentence with a cue holds one."""
