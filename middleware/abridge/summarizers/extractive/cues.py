"""Word lists that tell what a sentence of reasoning does: conclude, decide, guess, ask.

English, German, Chinese and Japanese in full; French, Spanish, Italian, Portuguese, Russian and
Korean as far as the commonest words go: in this order. Reasoning in another language is scored by
features that need no word lists: length, form, repetition.

Cues are searched in lower-cased text, which takes a third of the time of a case-insensitive search.
A sentence is searched for the cues of its kind of script alone.
"""

from __future__ import annotations

import re

from abridge.lazy_re import lazy_compile


class Cue:
    """Alternatives in small letters: those in scripts with spaces, and those without."""

    def __init__(self, spaced: str, wide: str) -> None:
        self._wide = lazy_compile(wide)
        self._spaced = lazy_compile(rf"\b(?:{spaced})(?!\w)")

    def search(self, text: str, *, wide: bool) -> re.Match[str] | None:
        """Search text in small letters, which is in a wide script or is not."""
        return (self._wide if wide else self._spaced).search(text)


CONCLUSION = Cue(
    spaced=(
        r"therefore|thus|hence|overall|conclu[a-z]+|in (?:summary|short|total|the end)|to sum up"
        r"|so (?:the|this|that['’]s|it|they|there|(?:we|i) have|in total|total|yes|only|answer)"
        r"|(?:the|final|correct|best) (?:answer|result|solution|decision|diagnosis|verdict)"
        r"|(?:the|final|my) (?:recommendation|advice|fix|takeaway|upshot|bottom line|cause)"
        r"|i(?:['’]d| would|['’]ll| will)? (?:go with|recommend|choose|suggest|propose|prefer)"
        r"|(?:must|have to|should) (?:refuse|decline)|equals|(?:which|this|that) means|root cause"
        r"|turns out|consistent with|must be|(?:best|first|right) (?:choice|fit|approach)"
        r"|(?:final )?answer(?=:)|that(?:['’]s| is) (?:the|why|what|because|how)|total (?:is )?\d"
        r"|(?:putting|taking|combining) (?:\w+ ){0,3}together|all (?:this|these|of this)|proves?"
        r"|rules? out|confirm(?:s|ed)|comes? to|daher|deshalb|somit|folglich|insgesamt|zusammen"
        r"|das heißt|mein rat|fazit|also, (?:der|die|das|ich|wir|es)|ergibt sich|bedeutet"
        r"|also (?:ist|sind|sollte|muss|kann|bleib\w+|komm\w+|besser)|fällt (?:also )?weg|passt"
        r"|kommt (?:\w+ ){0,3}nicht in frage|die (?:antwort|lösung)|das ergebnis"
        r"|(?:ist|sind) also|ich (?:empfehle|rate|schlage)|macht (?=\d)|donc|ainsi|par conséquent"
        r"|la (?:réponse|solution)|le résultat|en conclusion|je (?:recommande|conseille|propose)"
        r"|por (?:lo )?tanto|así que|en (?:resumen|conclusión)|la (?:respuesta|solución)"
        r"|el resultado|recomiendo|propongo|quindi|dunque|la risposta|il risultato|in conclusione"
        r"|portanto|a resposta|o resultado|em resumo|следовательно|таким образом|поэтому|ответ"
        r"|итак|значит|в итоге"
    ),
    wide=(
        r"因此|所以|综上|總之|总之|总结|结论|結論|答案|最终|最終|说明|意味着|也就是说|可见|得到"
        r"|得出|验证了|根本原因|したがって|よって|つまり|答えは|結局|ということ"
        r"|わか(?:る|った|ります)|以上から|が正しい|따라서|그러므로|결론|결국|정답"
    ),
)

TASK = Cue(
    spaced=(
        r"(?:they|he|she) (?:asks?|wants?|needs?) (?:me|for|to|how|why|what|whether|if|which)"
        r"|the user['’]?s? (?:wants?|asks?|asked|is asking|needs?|requested|would like|says)"
        r"|the (?:task|goal|question|problem|riddle|puzzle|issue) (?:is|asks|says|here)"
        r"|(?:i|we) (?:need|have|want) to (?:figure out|find|solve|determine|explain|show|prove)"
        r"|der (?:nutzer|benutzer|user)|die (?:frage|aufgabe)|gesucht ist|l['’]utilisateur"
        r"|la question|el usuario|la pregunta|l['’]utente|la domanda|o usuário|a pergunta"
        r"|пользователь|вопрос"
    ),
    wide=(
        r"用户|题目|任务|问题是|问(?:一共|多久|多少|怎么|如何|能否|是否)|ユーザー|質問|問題は"
        r"|求め|사용자|문제"
    ),
)

HEDGE = Cue(
    spaced=(
        r"might|may|maybe|perhaps|possibly|sometimes|some people|seems?|unsure|could be|would be"
        r"|first (?:thought|guess|idea|instinct)|probably|likely|i think|i guess"
        r"|i (?:feel|suppose|wonder)|presumably|not sure|people|sort of|kind of|potential(?:ly)?"
        r"|or something|someone|sounds|looks (?:like|right|good|best)|vielleicht|könnten?"
        r"|vermutlich|wahrscheinlich|möglicherweise|soweit ich weiß|ich frage mich|klingt|scheint"
        r"|wohl|peut-être|probablement|quizás|tal vez|probablemente|forse|probabilmente|talvez"
        r"|provavelmente|может быть|возможно|наверное"
    ),
    wide=(
        r"可能|也许|或许|大概|应该是|似乎|好像|或者|かもしれない|たぶん|おそらく|だろう|でしょう"
        r"|気がする|아마|것 같"
    ),
)

_META_VERBS = (
    "ensure|make sure|write|state|present|structure|format|phrase|mention|answer|respond|provide"
    "|output|return|give|keep|express|note|be (?:clear|concise|careful|friendly|polite|helpful"
    "|precise)|double"
)

_MODALS = "should|will|need to|must|can|could|might|also|just|now|want to"

_TASK_NOUNS = "question|problem|riddle|puzzle|query|task|request|issue"

META = Cue(
    spaced=(
        rf"concise|formatting|boxed"
        rf"|(?:structure|craft|compile|phrase|format|word) (?:it|the|this|that|a|my|up)"
        rf"|(?:i|we|i['’]ll)(?: (?:{_MODALS})){{0,3}} (?:{_META_VERBS})"
        rf"|(?:final|the) (?:answer|output) (?:should(?! be [\"“'‘\d])|must|is to|can|needs)"
        rf"|(?:figure out|solve|tackle|answer|parse) this \w+ (?:{_TASK_NOUNS})"
        rf"|step by step|the (?:user|prompt) said|as per the"
        rf"|(?:should|must) (?:not )?(?:give|share|offer|include|tell)|make sure"
        rf"|to be (?:sure|safe|clear)"
        rf"|(?:point|spell|write) (?:that|this|it) (?:out|down)|go(?:ing)? with (?:that|it)"
        rf"|(?:answer|response|reply|draft|output|say): ?[\"“]|antworten|beantworten|formulier\w*"
        rf"|zusammenfassen|sicherstellen|sicherzustellen|duze|siezen|ich schreibe|in der antwort"
        rf"|auf deutsch|klar und|information(?:en)? geben|daran denken|berücksichtigen"
        rf"|einfach \w+ \w+ nennen|je (?:dois|vais) répondre|en français|debo (?:responder|decir)"
        rf"|en español|devo rispondere|in italiano|responder em|em português|ответить на"
        rf"|на русском"
    ),
    wide=(
        r"回答(?:中|时|里|用户|问题)|答案应|用[中英日].?文|应该?说明|确认我理解|仔细阅读|整理答案"
        r"|组织语言|逻辑清晰|没有错误|正确无误|再检查|覆盖所有|格式|简洁|清晰|确保|回答する"
        r"|日本語で|簡潔|わかりやすく|形式で|まとめよう|한국어로|간결"
    ),
)
"""Remarks about how to word the answer, and on taking care."""
