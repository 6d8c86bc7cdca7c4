"""The languages of titles: the patterns of each, and its titles of last resort."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from abridge.core.language import likely_language
from abridge.summarizers.extractive.titles import asian, european
from abridge.summarizers.extractive.titles.english import ENGLISH, EnglishWords
from abridge.summarizers.extractive.titles.patterns import Pattern
from abridge.summarizers.extractive.titles.phrases import FINDINGS, Draft
from abridge.summarizers.extractive.words import words_of

_ENGLISH_WORDS = words_of("the is that of to and so this it are with for should which what")
"""Three of them are in no other language: to look for them takes a tenth of the time."""

MAX_TEXT_CHARS = 160  # characters of a passage by which its language is recognised


class Language(NamedTuple):
    last_resort: tuple[str, ...]  # titles that fit any stretch of reasoning; the last, a conclusion
    on_request: str  # the same where what may not be shown is weighed
    goes_on: Sequence[str] = ()  # say of an earlier title that a stretch goes on with it
    patterns: tuple[Pattern, ...] = ()  # of a language that is not read word by word

    def read(self, text: str, names: frozenset[str], *, is_told: bool) -> Iterator[Draft]:
        """Yield titles of a sentence, with names of its passage; what it finds if it is told."""
        if self is LANGUAGES["en"]:
            yield from EnglishWords(text, ENGLISH, names).read(is_told=is_told)
            return
        lowered = text.lower()
        lowered = lowered if len(lowered) == len(text) else text
        for pattern in self.patterns:
            if is_told or pattern.kind not in FINDINGS:
                yield from pattern.read(text, lowered)


def _language(last_resort: str, others: str, patterns: tuple[Pattern, ...] = ()) -> Language:
    on_request, *goes_on = others.split("; ")
    return Language(tuple(last_resort.split("; ")), on_request, goes_on, patterns)


LANGUAGES: Mapping[str, Language] = {
    "en": _language(
        "Working through the details; Weighing the options; Thinking it through; Drawing a"
        " conclusion", "Weighing the request; Going over {}; Checking {}; Weighing {}; Confirming"
        " {}; Working through {}; Thinking through {}"),
    "ja": _language(
        "詳細の検討; 選択肢の比較; 考え方の整理; 結論の導出",
        "対応の検討; {}の続き", asian.JAPANESE),
    "ko": _language(
        "세부 사항 검토; 선택지 비교; 생각 정리; 결론 도출", "요청 검토; {} 계속", asian.KOREAN),
    "zh": _language(
        "梳理思路; 权衡选项; 分析细节; 得出结论", "权衡这个请求; 继续{}", asian.CHINESE),
    "ru": _language(
        "Разбор деталей; Сравнение вариантов; Проверка рассуждений; Подведение итогов",
        "Обдумывание запроса; Продолжение: {}", european.RUSSIAN),
    "de": _language(
        "Die Einzelheiten durchdenken; Die Möglichkeiten abwägen; Den Gedankengang prüfen; Zu"
        " einem Schluss kommen", "Die Anfrage abwägen; Weiter: {}", european.GERMAN),
    "fr": _language(
        "Examiner les détails; Peser les options; Vérifier le raisonnement; Tirer une"
        " conclusion", "Évaluer la demande; Suite : {}", european.FRENCH),
    "es": _language(
        "Examinar los detalles; Sopesar las opciones; Comprobar el razonamiento; Sacar una"
        " conclusión", "Evaluar la petición; Continuación: {}", european.SPANISH),
    "pt": _language(
        "Examinar os detalhes; Ponderar as opções; Conferir o raciocínio; Tirar uma conclusão",
        "Avaliar o pedido; Continuação: {}", european.PORTUGUESE),
    "it": _language(
        "Esaminare i dettagli; Valutare le opzioni; Verificare il ragionamento; Trarre una"
        " conclusione", "Valutare la richiesta; Seguito: {}", european.ITALIAN),
    "nl": _language(
        "De details doornemen; De mogelijkheden afwegen; Een conclusie trekken",
        "Het verzoek afwegen"),
    "pl": _language(
        "Analiza szczegółów; Porównanie możliwości; Wyciągnięcie wniosków", "Rozważenie prośby"),
    "tr": _language(
        "Ayrıntıların incelenmesi; Seçeneklerin karşılaştırılması; Sonuca varılması",
        "İsteğin değerlendirilmesi"),
    "ar": _language("دراسة التفاصيل; الموازنة بين الخيارات; استخلاص النتيجة", "دراسة الطلب"),
    "hi": _language("विवरण पर विचार; विकल्पों की तुलना; निष्कर्ष निकालना", "अनुरोध पर विचार"),
}  # fmt: skip
"""The languages by their tags."""


def language_of(sentences: Sequence[str]) -> Language:
    """Return the language in which a passage is written, English where that is unclear."""
    text = " ".join(sentences[:8])[:MAX_TEXT_CHARS]
    if text.isascii() and len(_ENGLISH_WORDS.intersection(text.lower().split())) > 2:
        return LANGUAGES["en"]
    tag = likely_language(text) or "en"
    return LANGUAGES.get(tag.partition("-")[0], LANGUAGES["en"])
