"""The languages of titles: the patterns of each, and its titles of last resort."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from abridge.core.language import likely_language
from abridge.summarizers.extractive.titles import patterns as of
from abridge.summarizers.extractive.titles.drafts import words_of
from abridge.summarizers.extractive.titles.phrases import Grammar

MAX_TEXT_CHARS = 160  # characters of a passage by which its language is recognised


class Language(NamedTuple):
    last_resort: tuple[str, ...]  # titles that fit any stretch of reasoning; the last, a conclusion
    on_request: str  # the same where what may not be shown is weighed
    theme: str = ""  # the form of a title that names what recurs; empty: none is looked for
    both: str = ""  # two things that recur
    grammar: Grammar | None = None  # None: the script has no spaces
    articles: frozenset[str] = frozenset()  # before a noun, as far as a title keeps them
    patterns: tuple[of.Pattern, ...] = ()  # the best first


def _language(
    last_resort: str,
    on_request: str,
    theme: str = "",
    both: str = "",
    *,
    grammar: Grammar | None = None,
    articles: str = "",
    patterns: tuple[of.Pattern, ...] = (),
) -> Language:
    titles = tuple(last_resort.split("; "))
    best_first = tuple(sorted(patterns, key=lambda pattern: -pattern.score))
    return Language(titles, on_request, theme, both, grammar, words_of(articles), best_first)


LANGUAGES: Mapping[str, Language] = {
    "en": _language(
        "Working through the details; Thinking it through; Going over the facts; Looking at it"
        " another way; Piecing things together; Looking more closely; Drawing a conclusion",
        "Weighing the request", "Considering {}", "{} and {}", grammar=of.ENGLISH_GRAMMAR,
        articles="the a an", patterns=of.ENGLISH),
    "ja": _language(
        "詳細の検討; 考え方の整理; 内容の確認; 条件の見直し; 別の角度からの検討; 結論の導出",
        "対応の検討", "{}の検討", patterns=of.JAPANESE),
    "ko": _language(
        "세부 사항 검토; 생각 정리; 결과 확인; 조건 재검토; 다른 관점에서 검토; 결론 도출",
        "요청 검토", patterns=of.KOREAN),
    "zh": _language(
        "梳理思路; 分析细节; 核对已知条件; 换个角度思考; 归纳要点; 得出结论",
        "权衡这个请求", "分析{}", patterns=of.CHINESE),
    "ru": _language(
        "Разбор деталей; Проверка рассуждений; Уточнение условий; Взгляд с другой стороны;"
        " Продолжение анализа; Подведение итогов",
        "Обдумывание запроса", patterns=of.RUSSIAN),
    "de": _language(
        "Die Einzelheiten durchdenken; Den Gedankengang prüfen; Die Annahmen überprüfen; Die Fakten"
        " ordnen; Einen anderen Weg betrachten; Zu einem Schluss kommen",
        "Die Anfrage abwägen", "{} betrachten", "{} und {}", grammar=of.GERMAN_GRAMMAR,
        patterns=of.GERMAN),
    "fr": _language(
        "Examiner les détails; Vérifier le raisonnement; Revoir les hypothèses; Rassembler les"
        " éléments; Envisager une autre approche; Tirer une conclusion",
        "Évaluer la demande", "Examiner {}", "{} et {}", grammar=of.ROMANCE_GRAMMAR,
        articles="le la les",
        patterns=of.ROMANCE),
    "es": _language(
        "Examinar los detalles; Comprobar el razonamiento; Revisar las hipótesis; Reunir los datos;"
        " Considerar otro enfoque; Sacar una conclusión",
        "Evaluar la petición", "Analizar {}", "{} y {}", grammar=of.ROMANCE_GRAMMAR,
        articles="el la los las", patterns=of.ROMANCE),
    "pt": _language(
        "Examinar os detalhes; Conferir o raciocínio; Rever as hipóteses; Reunir os dados;"
        " Considerar outra abordagem; Tirar uma conclusão",
        "Avaliar o pedido", "Analisar {}", "{} e {}", grammar=of.ROMANCE_GRAMMAR,
        articles="o a os as",
        patterns=of.ROMANCE),
    "it": _language(
        "Esaminare i dettagli; Verificare il ragionamento; Rivedere le ipotesi; Raccogliere i dati;"
        " Considerare un altro approccio; Trarre una conclusione",
        "Valutare la richiesta", "Analizzare {}", "{} e {}", grammar=of.ROMANCE_GRAMMAR,
        articles="il lo la i gli le", patterns=of.ROMANCE),
    "nl": _language(
        "De details doornemen; De redenering controleren; Een andere aanpak bekijken; Een conclusie"
        " trekken", "Het verzoek afwegen"),
    "pl": _language(
        "Analiza szczegółów; Sprawdzenie rozumowania; Inne spojrzenie na problem; Wyciągnięcie"
        " wniosków", "Rozważenie prośby"),
    "tr": _language(
        "Ayrıntıların incelenmesi; Düşüncenin kontrol edilmesi; Başka bir açıdan bakış; Sonuca"
        " varılması", "İsteğin değerlendirilmesi"),
    "ar": _language(
        "دراسة التفاصيل; التحقق من الاستدلال; النظر من زاوية أخرى; استخلاص النتيجة", "دراسة الطلب"),
    "hi": _language(
        "विवरण पर विचार; तर्क की जाँच; दूसरे दृष्टिकोण से विचार; निष्कर्ष निकालना", "अनुरोध पर विचार"),
}  # fmt: skip
"""The languages by their tags."""


def language_of(sentences: Sequence[str]) -> Language:
    """Return the language in which a passage is written, English where that is unclear."""
    tag = likely_language(" ".join(sentences[:8])[:MAX_TEXT_CHARS]) or "en"
    return LANGUAGES.get(tag.partition("-")[0], LANGUAGES["en"])
