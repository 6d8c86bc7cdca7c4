"""The languages of titles: how each is recognised, its patterns, and its titles of last resort."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from abridge.summarizers.extractive.titles.drafts import words_of
from abridge.summarizers.extractive.titles.patterns import (
    CHINESE_PATTERNS,
    ENGLISH_PATTERNS,
    FRENCH_PATTERNS,
    GERMAN_PATTERNS,
    ITALIAN_PATTERNS,
    JAPANESE_PATTERNS,
    KOREAN_PATTERNS,
    PORTUGUESE_PATTERNS,
    RUSSIAN_PATTERNS,
    SPANISH_PATTERNS,
    Pattern,
)

MAX_TEXT_CHARS = 800
"""Characters of a passage by which its language is recognised."""

MIN_COMMON_WORDS = 3
"""Different words of a language other than English that a passage needs to be taken for it."""


@dataclass(slots=True, frozen=True)
class Language:
    patterns: tuple[Pattern, ...]
    last_resort: tuple[str, ...]  # titles that fit any stretch of reasoning
    on_request: str  # the same where what may not be shown is weighed
    script: str = ""  # its letters, as a range of a regular expression, if no other here uses them
    common_words: frozenset[str] = frozenset()  # where it shares its script


ENGLISH = Language(
    ENGLISH_PATTERNS,
    (
        "Working through the details", "Weighing the options", "Thinking it through",
        "Checking the reasoning", "Considering the next step", "Going over the facts",
        "Looking at it another way", "Piecing things together", "Exploring possibilities",
        "Reviewing the findings", "Narrowing down the options", "Testing the assumptions",
        "Refining the approach", "Looking more closely", "Continuing the analysis",
        "Drawing a conclusion",
    ),
    "Weighing the request",
    common_words=words_of("the and is of to that it this in we be for not have but so are with"),
)  # fmt: skip

LANGUAGES = (
    Language(
        JAPANESE_PATTERNS,
        (
            "詳細の検討", "選択肢の比較", "考え方の整理", "内容の確認", "条件の見直し",
            "次の手順の検討", "別の角度からの検討", "結論の導出",
        ),
        "対応の検討",
        script=r"\u3040-\u30ff",
    ),
    Language(
        KOREAN_PATTERNS,
        (
            "세부 사항 검토", "선택지 비교", "생각 정리", "결과 확인", "조건 재검토",
            "다음 단계 고려", "다른 관점에서 검토", "결론 도출",
        ),
        "요청 검토",
        script=r"\uac00-\ud7af",
    ),
    Language(
        CHINESE_PATTERNS,
        (
            "梳理思路", "权衡选项", "分析细节", "检查推理过程", "考虑下一步", "核对已知条件",
            "换个角度思考", "归纳要点", "继续分析", "得出结论",
        ),
        "权衡这个请求",
        script=r"\u3400-\u9fff",
    ),
    Language(
        RUSSIAN_PATTERNS,
        (
            "Разбор деталей", "Сравнение вариантов", "Проверка рассуждений",
            "Обдумывание следующего шага", "Уточнение условий", "Взгляд с другой стороны",
            "Продолжение анализа", "Подведение итогов",
        ),
        "Обдумывание запроса",
        script=r"\u0400-\u04ff",
    ),
    Language(
        GERMAN_PATTERNS,
        (
            "Die Einzelheiten durchdenken", "Die Möglichkeiten abwägen",
            "Den Gedankengang prüfen", "Den nächsten Schritt überlegen",
            "Die Annahmen überprüfen", "Die Fakten ordnen", "Einen anderen Weg betrachten",
            "Die Überlegungen fortsetzen", "Zu einem Schluss kommen",
        ),
        "Die Anfrage abwägen",
        common_words=words_of(
            "der die das und ist nicht ich ein eine zu mit den auf für dass wir auch es von nach im"
            " am zum zur sind wird hat bei aus wie muss sollte kann des dem den einen"
        ),
    ),
    Language(
        FRENCH_PATTERNS,
        (
            "Examiner les détails", "Peser les options", "Vérifier le raisonnement",
            "Réfléchir à la prochaine étape", "Revoir les hypothèses", "Rassembler les éléments",
            "Envisager une autre approche", "Poursuivre l'analyse", "Tirer une conclusion",
        ),
        "Évaluer la demande",
        common_words=words_of(
            "le la les des est et je une pour que dans qui pas du sur nous il donc un dois faut"
            " avec par au aux sont cette ce mais si on"
        ),
    ),
    Language(
        SPANISH_PATTERNS,
        (
            "Examinar los detalles", "Sopesar las opciones", "Comprobar el razonamiento",
            "Pensar en el siguiente paso", "Revisar las hipótesis", "Reunir los datos",
            "Considerar otro enfoque", "Continuar el análisis", "Sacar una conclusión",
        ),
        "Evaluar la petición",
        common_words=words_of(
            "el la los las es y de que en un una por para con se lo pero del necesito debo hay está"
            " son más como si al este esta"
        ),
    ),
    Language(
        PORTUGUESE_PATTERNS,
        (
            "Examinar os detalhes", "Ponderar as opções", "Conferir o raciocínio",
            "Pensar no próximo passo", "Rever as hipóteses", "Reunir os dados",
            "Considerar outra abordagem", "Continuar a análise", "Tirar uma conclusão",
        ),
        "Avaliar o pedido",
        common_words=words_of(
            "os é e de que em um uma por para com não se mas da na ao isso ou preciso devo são está"
            " mais como um dos das pelo pela"
        ),
    ),
    Language(
        ITALIAN_PATTERNS,
        (
            "Esaminare i dettagli", "Valutare le opzioni", "Verificare il ragionamento",
            "Pensare al prossimo passo", "Rivedere le ipotesi", "Raccogliere i dati",
            "Considerare un altro approccio", "Continuare l'analisi", "Trarre una conclusione",
        ),
        "Valutare la richiesta",
        common_words=words_of(
            "il lo gli è e di che un una con non si ma del della sono la le per devo è bisogna più"
            " come il dei delle nel quattro questo"
        ),
    ),
    Language(
        (),
        (
            "De details doornemen", "De mogelijkheden afwegen", "De redenering controleren",
            "De volgende stap overwegen", "Een andere aanpak bekijken", "Een conclusie trekken",
        ),
        "Het verzoek afwegen",
        common_words=words_of("de het een en van dat niet ik te voor met op zijn maar ook dus"),
    ),
    Language(
        (),
        (
            "Analiza szczegółów", "Porównanie możliwości", "Sprawdzenie rozumowania",
            "Rozważenie następnego kroku", "Inne spojrzenie na problem", "Wyciągnięcie wniosków",
        ),
        "Rozważenie prośby",
        common_words=words_of("w na że nie się jest z jak ale co czy więc dla po są tak"),
    ),
    Language(
        (),
        (
            "Ayrıntıların incelenmesi", "Seçeneklerin karşılaştırılması",
            "Düşüncenin kontrol edilmesi", "Sonraki adımın değerlendirilmesi",
            "Başka bir açıdan bakış", "Sonuca varılması",
        ),
        "İsteğin değerlendirilmesi",
        common_words=words_of(
            "ve bir bu için de da ile ne olarak daha çok ama gibi kadar var değil"
        ),
    ),
    Language(
        (),
        (
            "دراسة التفاصيل", "الموازنة بين الخيارات", "التحقق من الاستدلال",
            "التفكير في الخطوة التالية", "النظر من زاوية أخرى", "استخلاص النتيجة",
        ),
        "دراسة الطلب",
        script=r"\u0600-\u06ff",
    ),
    Language(
        (),
        (
            "विवरण पर विचार", "विकल्पों की तुलना", "तर्क की जाँच", "अगले कदम पर विचार",
            "दूसरे दृष्टिकोण से विचार", "निष्कर्ष निकालना",
        ),
        "अनुरोध पर विचार",
        script=r"\u0900-\u097f",
    ),
)  # fmt: skip
"""Languages other than English; those that share letters with one before them come after it."""

_WORD = re.compile(r"[^\W\d_]+")

_ASCII_WORD = re.compile(r"[a-z]+")

_SCRIPTS = [
    (language, re.compile(f"[{language.script}]")) for language in LANGUAGES if language.script
]

SCRIPT_SHARE = 0.06
"""Share of its letters that a passage must have in a script to be taken for its language."""


def language_of(sentences: Sequence[str]) -> Language:
    """Return the language in which a passage is written, English where that is unclear."""
    text = " ".join(sentences[:8])[:MAX_TEXT_CHARS]
    if not text.isascii():
        for language, letter in _SCRIPTS:
            if len(letter.findall(text)) > SCRIPT_SHARE * len(text):
                return language
    words = (_ASCII_WORD if text.isascii() else _WORD).findall(text.lower())
    different = frozenset(words)
    best, most = ENGLISH, _count(words, ENGLISH)
    for language in LANGUAGES:
        if len(different & language.common_words) < min(MIN_COMMON_WORDS, 1 + len(words) // 5):
            continue
        if (count := _count(words, language)) > most:
            best, most = language, count
    return best


def _count(words: Sequence[str], language: Language) -> int:
    return sum(map(language.common_words.__contains__, words))
