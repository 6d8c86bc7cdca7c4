"""How sentences of European languages say what they are about, and the titles made of them."""

from __future__ import annotations

from abridge.summarizers.extractive.titles import lexicon as does
from abridge.summarizers.extractive.titles.lexicon import lexicon
from abridge.summarizers.extractive.titles.patterns import Pattern, patterns

_ROMANCE = lexicon(
    (does.LINK, ("de du des à au aux en dans par pour avec sans sur sous entre vers chez et ou mais"
        " que qui dont où si comme car parce lorsque quand afin puis avant après pendant selon del"
        " al por para con sin sobre hasta desde y pero quien cuyo donde como porque cuando según"
        " mientras antes después cuánto cuál cómo qué do da dos das em no na nos nas com sem até"
        " mas quem cujo onde quando segundo ao pelo pela quanto qual di della dei degli delle dello"
        " alla ai nel nella dal dalla per senza su sul sulla tra fra ed ma che chi cui dove se come"
        " perché quale")),
    (does.WEAK, ("le la les l un une ce cet cette ces mon ma mes son sa ses leur leurs plus très"
        " est sont a d el los las una unos unas lo este esta estos estas mi mis tu sus más muy es o"
        " os as um uma uns umas esse essa meu minha seu sua mais muito é são il i gli uno questo"
        " questa mio mia suo più molto è sono e")),
    (does.PRONOUN, ("elle ils elles cela ça ceci lui moi toi nous vous je celui celle él ella ellos"
        " ellas esto eso aquello me te yo tú ele ela eles elas isto isso aquilo lhe nós eu você"
        " egli lei loro esso ciò ti ci vi io noi voi")),
    (does.VAGUE, ("réponse question problème utilisateur fait cas chose choses points cosas coisas"
        " puntos cose façon exemple première même suite respuesta pregunta problema usuario caso"
        " cosa forma ejemplo primera mismo misma resposta pergunta usuário coisa exemplo primeiro"
        " mesmo risposta domanda utente modo esempio primo stesso")),
    (does.ASKING, ("si combien comment pourquoi quand où quel quelle quels quelles cómo cuánto"
        " cuánta cuántos cuántas qué cuándo cuál se como quanto quanta quantos quantas quando qual"
        " quale perché come")),
    (does.BREAK, ("mais car parce pero porque aunque sino mas porém ma perché dove quien qui cuyo"
        " dont donde où")),
    (does.FINITE, ("est sont a ont était peut peuvent doit doivent reste restent faut suffit coûte"
        " donne n'est es son está están tiene tienen era puede pueden debe deben queda quedan paga"
        " pagan cuesta basta sirve falta falten fue hay vale é são estão tem têm pode podem deve"
        " devem fica ficam custa foi è sono ha hanno può possono devono costa resta bastano serve"
        " no não non ne")),
    (does.ADVERB, "no não non ne ya también todavía déjà aussi já também già anche"),
)  # fmt: skip
"""What a phrase ends with, and how it goes on, is alike in these languages."""


_WILLS = (
    r"je (?:dois|vais|peux|veux|voudrais)|nous (?:devons|allons|pouvons)|il faut|on doit"
    r"|il est (?:important|nécessaire|utile) (?:de |d['’])|l['’]objectif est (?:de |d['’])"
    r"|l['’]utilisat(?:eur|rice) (?:veut|doit|souhaite|(?:me )?demande (?:de |d['’]))"
    r"|necesito|debo|voy a|tengo que|hay que|quiero|puedo|vamos a|debemos|necesitamos"
    r"|[eé]s? (?:importante|necesario|necessári[oa]|necessario|útil|utile)"
    r"|el objetivo es|el usuario (?:quiere|pide|necesita|tiene que)"
    r"|preciso|devo|vou|tenho (?:que|de)|é preciso|quero|posso|vamos|precisamos|devemos"
    r"|o objetivo é|o usuário (?:quer|pede para|precisa|tem que)|dobbiamo|bisogna|voglio"
    r"|possiamo|occorre|vorrei|andiamo a|l['’]obiettivo è|l['’]utente (?:vuole|chiede di)"
)
"""What wants an infinitive in French, Spanish, Portuguese and Italian."""

_ROMANCE_VERB = (
    rf"\b(?:{_WILLS})\s*(?:(?:aussi|d['’]abord|ensuite|donc|maintenant|bien|encore|simplement|me"
    r"|juste|también|primero|luego|ahora|simplemente|entonces|solo|sólo|também|primeiro|depois|agora"
    r"|bem|simplesmente|então|só|anche|prima|poi|ora|adesso|bene|semplicemente|quindi)\s+)*"
    r"(?P<verb>(?!(?:être|avoir|faire|dire|savoir|voir|penser|aller|répondre|croire|mettre|pouvoir"
    r"|falloir|ser|estar|tener|hacer|decir|saber|ver|pensar|ir|responder|contestar|haber|poder|creer"
    r"|dar|ter|fazer|dizer|haver|achar|essere|avere|fare|sapere|vedere|pensare|andare|rispondere"
    r"|potere|credere|dare)\b)[a-zà-ÿ]{2,}(?:[aei]re?))\b "
)

_ROMANCE_QUESTION = (
    r"\b(?:demande(?:r|nt)?|question est(?: de savoir)?|savoir|vérifier|voir|déterminer|comprendre"
    r"|pregunta|saber|aclarar|ver|comprobar|determinar|averiguar|la (?:cuestión|pregunta) es"
    r"|pergunta|esclarecer|verificar|a (?:questão|pergunta) é|chiede|sapere|chiarire|vedere"
    r"|verificare|capire|la domanda è)(?: donc| entonces)?[,:]? (?=(?:si|combien|comment|pourquoi"
    r"|quand|où|quel\w*|cómo|cuánt[oa]s?|qué|por qué|cuándo|cuál|se|como|quant[oaie]s?|o que"
    r"|por que|quando|qual|come|che cosa|perché|quale)\b)"
)

_SO = (
    "donc|ainsi|alors|par conséquent|en conclusion|finalement|au final|así que|por (?:lo )?tanto"
    "|entonces|en conclusión|por eso|en resumen|luego|portanto|logo|então|assim|em conclusão"
    "|por isso|em resumo|quindi|dunque|perciò|pertanto|in conclusione|allora"
)


def _romance(answer: str, claim: str) -> tuple[Pattern, ...]:
    """Return the patterns of a language, with the verbs of its titles."""
    drawn = rf"^(?:{_SO})[, ]+"
    return patterns(
        _ROMANCE,
        (_ROMANCE_QUESTION, f"{answer} {{object}}", "question"),
        (_ROMANCE_VERB, "{verb} {object}", "intent"),
        (drawn, f"{claim} {{object}}", "concluded"),
    )


FRENCH = _romance("Déterminer", "Conclure que")
SPANISH = _romance("Averiguar", "Concluir que")
PORTUGUESE = _romance("Descobrir", "Concluir que")
ITALIAN = _romance("Capire", "Concludere che")

RUSSIAN = patterns(
    lexicon(
    (does.LINK, ("в во на с со из к ко по для о об от до за под при через между без и или но что"
        " чтобы который которая которые которого как если когда где потому так ли почему"
        " сколько")),
    (does.WEAK, "не же бы это этот эта эти мой моя свой его её их очень более весь все всё"),
    (does.PRONOUN, "он она они оно ему ей им них него неё мне тебе нас вас я ты мы вы того"),
    (does.VAGUE, "вопрос ответ задача"),
),
    (
        (r"\b(?:нужно|надо|следует|должен|должна|должны|необходимо|хочу|могу|можем|давайте|стоит"
         r"|важно|попробую|пользователь (?:хочет|просит))\s*(?:(?:также|сначала|теперь|потом|просто"
         r"|ещё|еще|мне|нам|сперва|затем|снова)\s+)*(?P<verb>(?!(?:быть|сказать|знать|думать|иметь"
         r"|видеть|мочь|стать|ответить|дать|понимать)\b)[а-яё]{2,}(?:ть|ти|чь))\b "),
        "{verb} {object}",
        "intent",
    ),
)  # fmt: skip

_GERMAN = lexicon(
    (does.LINK, ("in im an am auf aus bei mit nach von vom zu zum zur für über unter vor gegen ohne"
        " durch um zwischen und oder bis seit pro als wie ob dass wenn weil bevor damit")),
    (does.WEAK, ("der die das den dem des ein eine einen einem einer eines kein keine keinen nur"
        " sehr nicht diese dieser diesen mein meine seine ihre zwei vorher")),
    (does.AUXILIARY, "ist sind war hat haben wird"),
    (does.PRONOUN, ("es ich du er sie wir ihr ihn ihm ihnen mich mir dich dir uns euch sich man"
        " dies dieses dessen seine seinen seiner ihre ihren ihrer dazu damit davon daran darauf"
        " nicht kein keine keinen dass")),
    (does.FILLER, ("auch also einfach zuerst nun jetzt erst einmal jedoch dann hier mal zunächst"
        " daher außerdem nochmal bloß aber trotzdem deshalb kurz genau")),
    (does.VAGUE, ("der die das den ein eine antwort antworten euro frage grad jahr jahre minuten"
        " prozent stunden uhr nutzer benutzer problem fall fälle ding dinge weise beispiel rest"
        " ende anfang tag tage satz punkt teil text wort lösung")),
    (does.ASKING, "ob warum wie welche welcher welches welchen wann was wer wo wieso"),
    (does.BREAK, "aber denn weil sondern da obwohl falls wenn dass und damit"),
    (does.FINITE, ("ist sind war waren hat haben hatte wird werden wurde kann können muss müssen"
        " soll sollte darf dürfen fällt kostet braucht passt reicht bleibt bleiben liegt steht"
        " stehen gilt kommt geht dauert fehlt fährt zahlt ergibt beträgt lag verjähren nennt")),
    (does.ADVERB, "also daher nur dann noch immer so auch"),
    capitals=True,
    measures=r" (?:nach|seit|von|vor|für|ab|bis) (?:rund |etwa |ca\. )?(?:\d[\d.,]*|zwei|drei|vier"
    r"|fünf|sechs|sieben|acht|neun|zehn|zwölf)(?: (?:Euro|Jahren|Jahre|Monaten|Monate|Wochen|Tagen"
    r"|Stunden|Minuten|Prozent|Personen|kWh|km|m))?(?= [a-zäöüß])",
)  # fmt: skip

_GERMAN_VERB = (
    r"(?P<verb>(?!(?:werden|sein|haben|können|müssen|sollen|wollen|machen|sagen|wissen|denken|gehen"
    r"|sehen|tun|antworten|geben|lassen|sicherstellen|achten|schreiben|erwähnen"
    r"|brauchen)\b)[a-zäöüß]+(?:en|ern|eln))(?=[.,;:!]|$| und )"
)

GERMAN = patterns(
    _GERMAN,
    ((r"\b(?:fragt(?: mich| sich)?|wissen(?: will)?|klären|prüfen|überlegen|frage(?: ist| "
      r"lautet)?|will wissen|weiß nicht|heraus(?:zu)?finden),? (?:also )?(?=(?:ob|warum|wie"
      r"|welche[rsnm]?|wann|was|wer|wo|wieso)\b)"),
     "Klären, {object}", "asked"),
    ((r"\b(?:(?:ich|wir) (?:sollten?|muss|müssen|werden?|möchten?|will|wollen|kann|können)"
      r"|(?:sollten?|muss|müssen|werde|möchte|will|kann) (?:ich|wir|man|er|sie)|(?:der "
      r"(?:nutzer|benutzer)|die nutzerin) (?:möchte|will)|man muss"
      rf"|lass(?:t|en)? (?:mich|uns|sie uns)) (?P<object>[^.;:!?()\n,]{{4,80}}?) "
      rf"{_GERMAN_VERB}"),
     "{object} {verb}", "intent"),
    (r"\b(?:nutzer|benutzer|nutzerin|frage) (?:fragt|sucht) nach ",
     "Frage nach {object}", "asked"),
    ((r"\b(?:antwort|lösung|diagnose|gesamtsumme|summe|ergebnis)(?: ist| lautet| beträgt| "
      r"wäre)(?: also| daher| damit)? (?!eine? )"),
     "Ergebnis: {object}", "result"),
    ((r"\bich (?:empfehle|rate zu|nehme|wähle|schlage)(?: also| daher| ihm| ihr)? "
      r"(?P<object>[^.;:,!?]+?)(?: vor)?(?=[.,;:!?]|$)"),
     "Empfehlung: {object}", "result"),
)  # fmt: skip
