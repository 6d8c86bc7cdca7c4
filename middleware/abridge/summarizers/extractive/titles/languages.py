"""The languages of titles: the patterns of each, and its titles of last resort."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from abridge.core.language import likely_language
from abridge.summarizers.extractive.titles import asian, european
from abridge.summarizers.extractive.titles.english import ENGLISH
from abridge.summarizers.extractive.titles.patterns import Pattern

MAX_TEXT_CHARS = 160  # characters of a passage by which its language is recognised


class Language(NamedTuple):
    last_resort: tuple[str, ...]  # titles that fit any stretch of reasoning; the last, a conclusion
    on_request: str  # the same where what may not be shown is weighed
    patterns: tuple[Pattern, ...] = ()


def _language(last_resort: str, on_request: str, patterns: tuple[Pattern, ...] = ()) -> Language:
    return Language(tuple(last_resort.split("; ")), on_request, patterns)


LANGUAGES: Mapping[str, Language] = {
    "en": _language(
        "Working through the details; Weighing the options; Thinking it through; Considering the"
        " next step; Going over the facts; Looking at it another way; Piecing things together;"
        " Narrowing down the options; Looking more closely; Drawing a conclusion",
        "Weighing the request", ENGLISH),
    "ja": _language(
        "詳細の検討; 選択肢の比較; 考え方の整理; 内容の確認; 条件の見直し; 次の手順の検討;"
        " 別の角度からの検討; 結論の導出",
        "対応の検討", asian.JAPANESE),
    "ko": _language(
        "세부 사항 검토; 선택지 비교; 생각 정리; 결과 확인; 조건 재검토; 다음 단계 고려; 다른"
        " 관점에서 검토; 결론 도출",
        "요청 검토", asian.KOREAN),
    "zh": _language(
        "梳理思路; 权衡选项; 分析细节; 检查推理过程; 考虑下一步; 核对已知条件; 换个角度思考;"
        " 归纳要点; 继续分析; 得出结论",
        "权衡这个请求", asian.CHINESE),
    "ru": _language(
        "Разбор деталей; Сравнение вариантов; Проверка рассуждений; Обдумывание следующего шага;"
        " Уточнение условий; Взгляд с другой стороны; Продолжение анализа; Подведение итогов",
        "Обдумывание запроса", european.RUSSIAN),
    "de": _language(
        "Die Einzelheiten durchdenken; Die Möglichkeiten abwägen; Den Gedankengang prüfen; Den"
        " nächsten Schritt überlegen; Die Annahmen überprüfen; Die Fakten ordnen; Einen anderen Weg"
        " betrachten; Die Überlegungen fortsetzen; Zu einem Schluss kommen",
        "Die Anfrage abwägen", european.GERMAN),
    "fr": _language(
        "Examiner les détails; Peser les options; Vérifier le raisonnement; Réfléchir à la"
        " prochaine étape; Revoir les hypothèses; Rassembler les éléments; Envisager une autre"
        " approche; Poursuivre l'analyse; Tirer une conclusion",
        "Évaluer la demande", european.FRENCH),
    "es": _language(
        "Examinar los detalles; Sopesar las opciones; Comprobar el razonamiento; Pensar en el"
        " siguiente paso; Revisar las hipótesis; Reunir los datos; Considerar otro enfoque;"
        " Continuar el análisis; Sacar una conclusión",
        "Evaluar la petición", european.SPANISH),
    "pt": _language(
        "Examinar os detalhes; Ponderar as opções; Conferir o raciocínio; Pensar no próximo passo;"
        " Rever as hipóteses; Reunir os dados; Considerar outra abordagem; Continuar a análise;"
        " Tirar uma conclusão",
        "Avaliar o pedido", european.PORTUGUESE),
    "it": _language(
        "Esaminare i dettagli; Valutare le opzioni; Verificare il ragionamento; Pensare al prossimo"
        " passo; Rivedere le ipotesi; Raccogliere i dati; Considerare un altro approccio;"
        " Continuare l'analisi; Trarre una conclusione",
        "Valutare la richiesta", european.ITALIAN),
    "nl": _language(
        "De details doornemen; De mogelijkheden afwegen; De redenering controleren; De volgende"
        " stap overwegen; Een andere aanpak bekijken; Een conclusie trekken",
        "Het verzoek afwegen"),
    "pl": _language(
        "Analiza szczegółów; Porównanie możliwości; Sprawdzenie rozumowania; Rozważenie następnego"
        " kroku; Inne spojrzenie na problem; Wyciągnięcie wniosków",
        "Rozważenie prośby"),
    "tr": _language(
        "Ayrıntıların incelenmesi; Seçeneklerin karşılaştırılması; Düşüncenin kontrol edilmesi;"
        " Sonraki adımın değerlendirilmesi; Başka bir açıdan bakış; Sonuca varılması",
        "İsteğin değerlendirilmesi"),
    "ar": _language(
        "دراسة التفاصيل; الموازنة بين الخيارات; التحقق من الاستدلال; التفكير في الخطوة التالية;"
        " النظر من زاوية أخرى; استخلاص النتيجة",
        "دراسة الطلب"),
    "hi": _language(
        "विवरण पर विचार; विकल्पों की तुलना; तर्क की जाँच; अगले कदम पर विचार; दूसरे दृष्टिकोण से"
        " विचार; निष्कर्ष निकालना",
        "अनुरोध पर विचार"),
}  # fmt: skip
"""The languages by their tags."""


def language_of(sentences: Sequence[str]) -> Language:
    """Return the language in which a passage is written, English where that is unclear."""
    tag = likely_language(" ".join(sentences[:8])[:MAX_TEXT_CHARS]) or "en"
    return LANGUAGES.get(tag.partition("-")[0], LANGUAGES["en"])
