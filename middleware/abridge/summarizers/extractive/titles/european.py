"""Make titles of sentences in German, French, Spanish, Portuguese, Italian and Russian.

A sentence that says what is to be done gives its infinitive and object ("Vérifier la solution"; in
German the infinitive comes last: "Die Reisekosten berechnen"). Where no sentence does, the title
names what the passage mentions most.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise

from abridge.summarizers.extractive.titles.drafts import MAX_TITLE_CHARS, Draft, readable, words_of

MAX_READ_CHARS = 240
"""Characters of a sentence that are read."""

MAX_WORDS = 7

_STOP = re.compile(r"[,.;:!?()\n\"“”„«»=<>{}\\$*/|–—…\[\]]")


@dataclass(frozen=True)
class Grammar:
    """What a language's titles are made with. Words are separated by |."""

    intent: str  # what comes before an infinitive
    infinitive: str
    fillers: str  # words that may stand between, and are left out
    no_verbs: str  # infinitives of which no title is made
    links: str  # prepositions and conjunctions: a phrase may be cut before them, and not after
    weak: str  # words that a phrase cannot end with, such as articles
    pronouns: str  # words that point to what a title does not show
    article: str  # a definite article, with the space after it where there is one
    frames: tuple[str, ...]  # titles for a noun that the passage uses often
    vague: str  # nouns that name nothing

    @cached_property
    def intent_pattern(self) -> re.Pattern[str]:
        """Finds an infinitive that says what is to be done."""
        return re.compile(
            rf"\b(?:{self.intent})\s*(?:(?:{self.fillers})\s+)*"
            rf"(?P<verb>(?!(?:{self.no_verbs})\b){self.infinitive})\b(?= )",
            re.IGNORECASE,
        )

    @cached_property
    def noun_pattern(self) -> re.Pattern[str]:
        """Finds a noun with its article."""
        pattern = rf"\b{self.article}(?!(?:{self.vague})s?\b)[a-zà-ÿ]{{4,}}\b"
        return re.compile(pattern, re.IGNORECASE)


_FRENCH = Grammar(
    intent=r"je (?:dois|vais|peux|veux|voudrais)|nous (?:devons|allons|pouvons)|il faut|on doit"
    r"|il est (?:important|nécessaire|utile) (?:de |d['’])|l['’]objectif est (?:de |d['’])"
    r"|l['’]utilisateur (?:veut|souhaite|me demande (?:de |d['’])|demande (?:de |d['’]))",
    infinitive=r"[a-zà-ÿ]{2,}(?:er|ir|re)",
    fillers="aussi|d['’]abord|ensuite|donc|maintenant|bien|encore|simplement|me|juste",
    no_verbs="être|avoir|faire|dire|savoir|voir|penser|aller|répondre|croire|mettre|pouvoir|falloir",
    links="de|du|des|à|au|aux|en|dans|par|pour|avec|sans|sur|sous|entre|vers|chez|et|ou|mais|que|qui"
    "|dont|où|si|comme|car|parce|lorsque|quand|afin|puis|avant|après|pendant|selon",
    weak="le|la|les|l|un|une|ce|cet|cette|ces|mon|ma|mes|son|sa|ses|leur|leurs|plus|très|est|sont|a|d",
    pronouns="il|elle|ils|elles|cela|ça|ceci|lui|moi|toi|nous|vous|je|tu|celui|celle",
    article=r"(?:les? |la |l['’])",
    frames=("Examiner {}", "Étudier {}", "Vérifier {}", "Analyser {}"),
    vague="réponse|question|problème|utilisateur|fait|cas|chose|façon|exemple|première?|même|suite",
)

_SPANISH = Grammar(
    intent=r"(?:necesito|debo|voy a|tengo que|hay que|quiero|puedo|vamos a|debemos|necesitamos"
    r"|es (?:importante|necesario|útil)|el objetivo es|el usuario (?:quiere|pide))",
    infinitive=r"[a-záéíóúñ]{2,}[aei]r",
    fillers="también|primero|luego|ahora|bien|simplemente|entonces|solo|sólo",
    no_verbs="ser|estar|tener|hacer|decir|saber|ver|pensar|ir|responder|haber|poder|creer|dar",
    links="de|del|a|al|en|por|para|con|sin|sobre|entre|hasta|desde|y|e|o|pero|que|quien|cuyo|donde"
    "|si|como|porque|cuando|según|mientras|antes|después|cuánto|cuál|cómo|qué",
    weak="el|la|los|las|un|una|unos|unas|lo|este|esta|estos|estas|mi|mis|su|sus|más|muy|es|son|se",
    pronouns="él|ella|ellos|ellas|esto|eso|aquello|le|les|me|te|nos|yo|tú",
    article=r"(?:el |la |los |las )",
    frames=("Analizar {}", "Examinar {}", "Revisar {}", "Considerar {}"),
    vague="respuesta|pregunta|problema|usuario|caso|cosa|forma|ejemplo|primera?|mismo|misma",
)

_PORTUGUESE = Grammar(
    intent=r"(?:preciso|devo|vou|tenho (?:que|de)|é preciso|quero|posso|vamos|precisamos|devemos"
    r"|é (?:importante|necessário|útil)|o objetivo é|o usuário (?:quer|pede para))",
    infinitive=r"[a-zà-ÿ]{2,}[aei]r",
    fillers="também|primeiro|depois|agora|bem|simplesmente|então|só",
    no_verbs="ser|estar|ter|fazer|dizer|saber|ver|pensar|ir|responder|haver|poder|achar|dar",
    links="de|do|da|dos|das|em|no|na|nos|nas|por|para|com|sem|sobre|entre|até|desde|e|ou|mas|que"
    "|quem|cujo|onde|se|como|porque|quando|segundo|ao|à|pelo|pela|quanto|qual",
    weak="o|a|os|as|um|uma|uns|umas|este|esta|esse|essa|meu|minha|seu|sua|mais|muito|é|são",
    pronouns="ele|ela|eles|elas|isto|isso|aquilo|lhe|me|te|nós|eu|tu|você",
    article=r"(?:o |a |os |as )",
    frames=("Analisar {}", "Examinar {}", "Verificar {}", "Considerar {}"),
    vague="resposta|pergunta|problema|usuário|caso|coisa|forma|exemplo|primeir[oa]|mesm[oa]",
)

_ITALIAN = Grammar(
    intent=r"(?:devo|dobbiamo|bisogna|voglio|posso|possiamo|occorre|vorrei|andiamo a"
    r"|è (?:importante|necessario|utile)|l['’]obiettivo è|l['’]utente (?:vuole|chiede di))",
    infinitive=r"[a-zà-ÿ]{2,}[aei]re",
    fillers="anche|prima|poi|ora|adesso|bene|semplicemente|quindi|solo",
    no_verbs="essere|avere|fare|dire|sapere|vedere|pensare|andare|rispondere|potere|credere|dare",
    links="di|del|della|dei|degli|delle|dello|a|al|alla|ai|in|nel|nella|da|dal|dalla|per|con|senza"
    "|su|sul|sulla|tra|fra|e|ed|o|ma|che|chi|cui|dove|se|come|perché|quando|secondo|quanto|quale",
    weak="il|lo|la|i|gli|le|l|un|uno|una|questo|questa|mio|mia|suo|sua|più|molto|è|sono",
    pronouns="egli|lui|lei|loro|esso|essa|ciò|mi|ti|ci|vi|io|tu|noi|voi",
    article=r"(?:il |lo |la |gli |le |l['’])",
    frames=("Analizzare {}", "Esaminare {}", "Verificare {}", "Considerare {}"),
    vague="risposta|domanda|problema|utente|caso|cosa|modo|esempio|prim[oa]|stess[oa]",
)

_RUSSIAN = Grammar(
    intent=r"(?:нужно|надо|следует|должен|должна|должны|необходимо|хочу|могу|можем|давайте|стоит"
    r"|важно|попробую|пользователь (?:хочет|просит))",
    infinitive=r"[а-яё]{2,}(?:ть|ти|чь)",
    fillers="также|сначала|теперь|потом|просто|ещё|еще|мне|нам|сперва|затем|снова",
    no_verbs="быть|сказать|знать|думать|иметь|видеть|мочь|стать|ответить|дать|понимать",
    links="в|во|на|с|со|из|к|ко|по|для|о|об|от|до|за|под|при|через|между|без|и|или|но|что|чтобы"
    "|который|которая|которые|которого|как|если|когда|где|потому|так|ли|почему|сколько",
    weak="не|же|бы|это|этот|эта|эти|мой|моя|свой|его|её|их|очень|более|весь|все|всё",
    pronouns="он|она|они|оно|ему|ей|им|них|него|неё|мне|тебе|нас|вас|я|ты|мы|вы|того|этого|это",
    article="",
    frames=(),
    vague="",
)

_GERMAN_INTENT = re.compile(
    r"\b(?:(?:ich|wir) (?:sollten?|muss|müssen|werden?|möchten?|will|wollen|kann|können)"
    r"|(?:sollten?|muss|müssen|werde|möchte|will|kann) (?:ich|wir|man|er|sie)"
    r"|(?:der (?:nutzer|benutzer)|die nutzerin) (?:möchte|will)|man muss"
    r"|lass(?:t|en)? (?:mich|uns|sie uns))\b"
    r"(?P<rest>[^.;:!?()\n,]{4,120})",
    re.IGNORECASE,
)

_GERMAN_ASKED = re.compile(
    r"\b(?:nutzer|benutzer|nutzerin|frage|aufgabe)\b (?:fragt|sucht|bittet) "
    r"(?P<word>nach|um) (?P<rest>[^.;:!?()\n,]{4,80})",
    re.IGNORECASE,
)

_GERMAN_FILLERS = words_of(
    "auch also einfach zuerst noch nun jetzt erst einmal jedoch nur dann hier mal zunächst daher"
    " außerdem nochmal bloß aber trotzdem deshalb kurz genau mindestens vorher"
)

_GERMAN_NO_VERBS = words_of(
    "werden sein haben können müssen sollen wollen machen sagen wissen denken gehen sehen tun"
    " antworten geben lassen sicherstellen achten daran schreiben erwähnen gehören brauchen"
)

_GERMAN_PRONOUNS = words_of(
    "es ich du er sie wir ihr ihn ihm ihnen mich mir dich dir uns euch sich man dies dieses"
    " dessen seine seinen seiner ihre ihren ihrer dazu damit davon daran darauf nicht kein keine"
    " keinen ob dass wie warum was"
)

_GERMAN_LINKS = words_of(
    "in im an am auf aus bei mit nach von vom zu zum zur für über unter vor gegen ohne durch um"
    " zwischen und oder bis seit pro als wie"
)

_DEPENDENT = _GERMAN_LINKS | {"der", "des", "eines", "einer"}
"""Words with which a noun goes on to what belongs to it."""

_GERMAN_NOUN = re.compile(
    r"\b(?i:der|die|das|den|dem|des|eine?[nmrs]?|zum|zur|im|am|beim|diese[nmrs]?)"
    r" (?:[a-zäöüß]{4,} )?"
    r"(?P<noun>[A-ZÄÖÜ][a-zäöüß]{2,}(?:-[A-ZÄÖÜ]?[a-zäöüß]+)*)"
)

_GERMAN_VAGUE = re.compile(
    r"(?:Antworte?n?|Fragen?|Nutzer\w*|Benutzers?|Problem\w*|Fall|Fälle\w*|Dinge?|Weise|Beispiel\w*"
    r"|Rest\w*|Ende|Anfang|Tage?s?|Woche|Stunde|Satz|Punkt|Teil\w*|Text|Wort|Informationen?|Frau"
    r"|Mann|Ruhe|Leute|Lösung)"
)

_GERMAN_FRAMES = (
    (
        re.compile(r"\b(?:prüf\w*|kontroll\w*|stimmt|passt|sicherstell\w*)"),
        ("{} prüfen", "{} kontrollieren"),
    ),
    (re.compile(r"\b(?:fehler|problem|kaputt|falsch|ursache)\w*"), ("{} klären", "{} untersuchen")),
    (
        re.compile(r"\b(?:alternativ\w*|besser|oder|statt|vergleich\w*)\b"),
        ("{} abwägen", "{} vergleichen"),
    ),
    (
        re.compile(r"\b(?:euro|summe|rechne\w*|zusammen|macht|kosten)\b"),
        ("{} durchrechnen", "{} prüfen"),
    ),
    (re.compile(""), ("{} betrachten", "{} durchdenken", "{} klären", "{} einordnen")),
)
"""Titles for a noun, by the sentence that says most."""


def draft_german(sentences: Sequence[str], headings: Sequence[str]) -> Iterator[Draft]:
    """Yield titles such as "Die Reisekosten berechnen"."""
    nouns: Counter[str] = Counter()
    for position, sentence in readable(sentences, headings, MAX_READ_CHARS):
        penalty = min(0.15 * position, 1.5)
        for found in list(_GERMAN_INTENT.finditer(sentence))[:2]:
            if title := _put_infinitive_last(found["rest"].split()):
                yield Draft(title, 3.0 - penalty)
        if (asked := _GERMAN_ASKED.search(sentence)) and (
            thing := _shorten_german(asked["rest"].split(), MAX_WORDS - 2)
        ):
            yield Draft(
                f"{'Frage' if asked['word'] == 'nach' else 'Bitte'} {asked['word']} {thing}",
                2.9 - penalty,
            )
        for match in _GERMAN_NOUN.finditer(sentence):
            nouns[match["noun"]] += (3 if position < 2 else 1) + (len(match["noun"]) > 9)
    first = " ".join(sentences[:1]).lower()
    frames = next(frames for cue, frames in _GERMAN_FRAMES if cue.search(first))
    common = [noun for noun, _ in nouns.most_common(10) if not _GERMAN_VAGUE.fullmatch(noun)]
    for one, other in pairwise(common):
        yield Draft(frames[0].format(f"{one} und {other}"), 0.2 * min(nouns[other], 6))
    for noun in common:
        for place, frame in enumerate(frames):
            yield Draft(frame.format(noun), 0.2 * min(nouns[noun], 6) - 0.2 * place - 0.1)


def _put_infinitive_last(words: Sequence[str]) -> str:
    """Return the object and infinitive of a clause that ends in one; empty if there is none."""
    if len(words) < 2:
        return ""
    verb = words[-1].lower()
    if not re.fullmatch(r"[a-zäöüß]+(?:en|ern|eln)", words[-1]) or verb in _GERMAN_NO_VERBS:
        return ""
    thing = _shorten_german(words[:-1], MAX_WORDS - 1)
    return f"{thing[0].upper()}{thing[1:]} {verb}" if thing else ""


def _shorten_german(words: Sequence[str], limit: int) -> str:
    """Return a phrase up to its first noun, and what depends on that; empty if it has a pronoun."""
    kept = [word for word in words if word.lower() not in _GERMAN_FILLERS][:limit]
    if not kept or {kept[0].lower(), *map(str.lower, kept[1:2])} & _GERMAN_LINKS:
        return ""
    end = start = 0
    while noun := next(
        (at for at, word in enumerate(kept[start:], start + 1) if _is_noun(word)), 0
    ):
        end = start = noun
        if noun < len(kept) and not _is_noun(kept[noun]) and kept[noun].lower() not in _DEPENDENT:
            break
    phrase = " ".join(kept[:end])
    if len(phrase) < 4 or any(word.lower() in _GERMAN_PRONOUNS for word in kept[:end]):
        return ""
    return phrase


def _is_noun(word: str) -> bool:
    return word[0].isupper()


def draft_by_infinitive(
    grammar: Grammar, sentences: Sequence[str], headings: Sequence[str]
) -> Iterator[Draft]:
    """Yield titles such as "Vérifier la solution"."""
    nouns: Counter[str] = Counter()
    for position, sentence in readable(sentences, headings, MAX_READ_CHARS):
        for found in list(grammar.intent_pattern.finditer(sentence))[:2]:
            if title := _verb_phrase(found["verb"], sentence[found.end() :], grammar):
                yield Draft(title, 3.0 - min(0.15 * position, 1.5))
        if grammar.article:
            nouns.update(match[0].lower() for match in grammar.noun_pattern.finditer(sentence))
    for noun, count in nouns.most_common(6):
        for place, frame in enumerate(grammar.frames):
            yield Draft(frame.format(noun), 0.2 * min(count, 5) - 0.2 * place)


def _verb_phrase(verb: str, rest: str, grammar: Grammar) -> str:
    """Return an infinitive and its object; empty if nothing can be shown."""
    links, weak = set(grammar.links.split("|")), set(grammar.weak.split("|"))
    pronouns = set(grammar.pronouns.split("|"))
    words = [verb.lower(), *_STOP.split(rest, maxsplit=1)[0].split()]
    end = next((at for at, word in enumerate(words) if word.lower() in pronouns), len(words))
    while end > 1:
        following = words[end].lower() if end < len(words) else ""
        last = words[end - 1].lower()
        cuttable = end == len(words) or following in links or following in pronouns
        if end <= MAX_WORDS and cuttable and last not in links | weak:
            title = " ".join(words[:end])
            return title[0].upper() + title[1:] if len(title) <= MAX_TITLE_CHARS else ""
        end -= 1
    return ""


draft_french = partial(draft_by_infinitive, _FRENCH)
draft_spanish = partial(draft_by_infinitive, _SPANISH)
draft_portuguese = partial(draft_by_infinitive, _PORTUGUESE)
draft_italian = partial(draft_by_infinitive, _ITALIAN)
draft_russian = partial(draft_by_infinitive, _RUSSIAN)
