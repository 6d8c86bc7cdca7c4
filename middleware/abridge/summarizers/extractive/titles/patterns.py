"""How sentences say what they are about, by language: all that a title is made from.

A pattern finds a verb and its object ("I need to compare the two plans"), or a topic alone ("The
pump is off"), and has the form of the title that is made of them. A topic is named only where the
sentence opens with it, under a verb that claims nothing, so that no title contradicts the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from abridge.summarizers.extractive.titles.drafts import words_of
from abridge.summarizers.extractive.titles.phrases import Grammar
from abridge.summarizers.extractive.titles.words import GERUNDS, VERBS, gerund_of


@dataclass(frozen=True)
class Pattern:
    """A way to say what is thought about. It finds a `verb` and an `object`, or one of them; where
    it has no group `object`, that is what follows. A `topic` is an object at a sentence's start."""

    found: re.Pattern[str]
    form: str  # of the title, from both
    score: float
    grammar: Grammar | None = None  # None: the script has no spaces
    verbs: Mapping[str, str] = field(default_factory=dict)
    """Verbs as they are found, and as they stand in a title; empty: as they are found."""
    opening: str = ""  # what the object begins with, whatever the sentence said


def _patterns(grammar: Grammar | None, *rows: tuple[str, str, float]) -> tuple[Pattern, ...]:
    return tuple(
        Pattern(re.compile(found, re.IGNORECASE), form, score, grammar)
        for found, form, score in rows
    )


_FINITE = (
    "is are was were am has have had can could will would should must may might does do did be been"
    " needs takes gives makes means says comes goes seems becomes isn't aren't wasn't don't doesn't"
    " always being came come depends looks provides went didn't can't won't wouldn't couldn't"
    " shouldn't hasn't haven't not"
)

_ENGLISH = Grammar(
    links=words_of(
        "of to in on at by for with from into about over under between through during without per"
        " than across against toward towards upon onto around near after before along among behind"
        " beyond via whose despite regarding until like as versus vs and or but so because since if"
        " while although though unless that which who whose where when how why what whether then"
        " using up out within inside based derived given relative"
    ),
    weak=words_of(
        "the a an each every both all no any some more less most first next one's its my your our"
        " their his her also just only very really too still exactly actually simply not how many"
        f" these those this such other another same new way manner {_FINITE}"
    ),
    ends=words_of(
        "i we you he she it they me us him them itself themselves myself there here it's that's"
        " there's i'm i'll i've we're we'll let's something anything everything nothing someone"
        f" this that these those its their his her my your our {_FINITE}"
    ),
    fillers=words_of(
        "also just simply carefully really actually indeed then first now again any some"
    ),
    vague=words_of(
        "a all an answer answers approach aspect beginning best better case cases cause certain"
        " chance choice clear context correct current detail details different each elements end"
        " entire even every example examples fact few final first following goal goals hint idea"
        " important input instance intended issue issues item items key kind last level likely log"
        " main matter necessary need next note numbers one option options order other others"
        " outcome overall part parts people person place point points possibility possible premise"
        " previous problem problems proposed purpose question questions reason request response"
        " rest right root same second section sense sentence side simple simplest situation"
        " solution someone start statement step steps strategy stuff sure task text the thing"
        " things third thought thoughts time today topic total true two type used user way ways"
        " whole word words wrong"
    ),
    clauses=words_of("if how why what whether where who which when whose"),
    breaks=words_of("but because so since while although though if before unless after"),
    verbs=VERBS | words_of("be get have know see take"),
)

_FILLERS = (
    r"(?: (?:also|first|now|then|just|simply|carefully|quickly|next|probably|really|only|still"
    r"|again|clearly|briefly|definitely|actually))*"
)

_MODAL = (
    r"(?:(?:i|we)(?: also| still| just| really| then)?(?:['’]ll|['’]d like to| will| should"
    r"| need to| have to| must| want to| plan to|['’]m going to| am going to| decided to"
    r"| needed to| wanted to| can)|let(?:['’]?s| me| us)|(?:goal|aim|task|idea|plan|key|challenge"
    r"|objective|point|trick|approach|solution|fix)(?: here| now)? (?:is|was)(?: to)?|(?:important"
    r"|crucial|essential|best|better|trying) to|(?:user|question|problem|task) (?:wants|would like"
    r"|asks|asked|needs|is asking)(?: me| us)? to|(?:involves?|about|centers on"
    r"|focuses on)(?= \w+ing\b)|^to(?= [^,]{8,80}, (?:i|we|let)\b)|^(?:(?:first|next|then|finally"
    r"|lastly),? )?(?=\w+ (?:the|a|an|each|how|why|whether)\b))"
)

_DETOUR = (
    r"(?: ?\b(?:(?:start|begin) (?:off )?by|try(?:ing)? to|attempt to|be able to|make sure to"
    r"|remember to|be sure to|go ahead and|help \w+))*"
)

_INTENT = rf"\b{_MODAL}{_FILLERS}{_DETOUR}{_FILLERS} ?\b"

_ASKS = r"\b(?:user|question|riddle|problem|puzzle|task)(?: here)?"

_CHECKS = (
    r"(?:check|verify|confirm|see|make sure|ensure|checking|verifying)(?: (?:if|that|whether))"
)

_LEAD = (
    r"^(?:(?:so|but|and|therefore|thus|hence|also|now|then|because|since|first|finally|overall|if"
    r"|in (?:short|total|the end)|it (?:seems|appears|turns out)(?: that)?|(?:this|that) (?:means"
    r"|suggests)(?: that)?|(?:i|we) (?:think|know|see|believe)(?: that)?|given(?: that)?)\b,? ?)*"
)


def _topic(group: str, words_between: str, noun: str = r"[\w'’.()/-]+") -> str:
    """Return a topic that a sentence opens with: an article, words, a noun before its verb."""
    return (
        rf"{_LEAD}(?P<{group}>(?:the|a|an|each (?=\w+['’]s))"
        rf" (?:(?!that\b|which\b|who\b|and\b|or\b)[\w'’.()/-]+ ){words_between}{noun})"
        r"(?= (?:is|are|was|were|has|have|had|can|could|will|would|should|must|may|might|does|do"
        r"|did|takes?|needs?|requires?|shows?|lowers?|points?|isn['’]t|aren['’]t|doesn['’]t"
        r"|wasn['’]t|allows?|makes?|gives?|means|costs?|fits?|centers|starts?) )"
    )


_MODIFIED = (
    r"\b(?P<topic>the (?!part|aspect|case|type|kind)(?:[\w'’-]+ ){1,3}(?:of|between|for|in|from"
    r"|behind|against) (?!question|general|fact)(?:(?:the|an?|each|all|two) )?(?:[\w'’-]+ ){0,2}?"
    r"[\w'’-]+)"
    r"(?=[,.;:]|$| (?:is|are|was|were|has|have|can|could|will|would|should|must|may|and|because"
    r"|so|but|that|which|at|on|with|by|to|in|for|from|when|if|after|before|than)\b)"
)
"""A thing and what it belongs to, wherever in a sentence."""

_BARE_TOPIC = (
    rf"{_LEAD}(?P<topic>(?!perhaps|maybe|alternatively|another|other|these|those|every|something|like|many|some|most|because|while|when)"
    r"(?:\w{3,} (?:\w{3,} )?\w{3,}))(?= (?:also )?(?:is|are|was|were|can|could"
    r"|will|would|must|may|might|has|have|had|takes?|means|makes?) )"
)
"""A topic without an article, of two or three words."""

_QUANTITY = (
    r"(?:rate|cost|number|total|sum|count|speed|distance|area|volume|price|probability|chance"
    r"|average|ratio|percentage|budget)s?(?: (?:of|per) (?:[\w'’]+ ){0,2}[\w'’]+)?"
)

_ENGLISH_ACTIONS = (
    ((r"\b(?:double[- ]check|verif(?:y|ied)|check (?:again|this|that)|confirms?|same (?:answer"
      r"|result|as before)|consistent with)\b"), "Checking the result", 0.9),
    (r"\b(?:compile[rs]?|\w+\.(?:go|js|py|rs|ts)|struct|unit tests?)\b|\w\(\)",
     "Reading the code", 0.8),
    (r"\d ?[-+*/×÷=] ?\d|\b(?:in total|adds? up|multipl\w+|divided?|equals)\b",
     "Working through the calculation", 0.7),
    (r"\b(?:answer (?:is|must|should|would)|conclu\w+|therefore|decid\w+|go with)\b",
     "Settling on the answer", 0.6),
    (r"\b(?:suppose|assum\w+|in that case|case \w+|if [a-z]=)\b", "Going through the cases", 0.5),
)  # fmt: skip
"""What is done, for sentences that name nothing."""

_ENGLISH_VERBS = {verb: gerund_of(verb).capitalize() for verb in VERBS} | {
    gerund: gerund.capitalize() for gerund in GERUNDS
}
_ENGLISH_VERBS |= {"use": "Considering", "using": "Considering"}


def _english() -> tuple[Pattern, ...]:
    verb = r"(?P<verb>[a-z-]+(?: (?:out|up|through|into|at|down)(?= ))?) (?!(?:as|by|of|with) )"
    checks = re.compile(rf"{_INTENT}{_CHECKS} ", re.IGNORECASE)
    return (
        Pattern(checks, "Checking {object}", 4.0, _ENGLISH, opening="whether "),
        *_patterns(
            _ENGLISH,
            (rf"{_INTENT}(?:see|know|think(?: about)?) (?=(?:how|why|what|where)\b)",
             "Working out {object}", 3.8),
            (rf"{_INTENT}take (?:a|another) (?:closer )?look at ", "Looking at {object}", 3.8),
            ((r"\b(?:wonder(?:ing)? about|think(?:ing)? about|the question of|(?:i['’]m|we['’]re)"
              r"(?: also)? considering|another (?:\w+ )?(?:factor|aspect|point|thing|area) is) "),
             "Considering {object}", 3.0),
            (rf"{_INTENT}(?:find|figure) out (?=(?:who|where|when|which)\b)",
             "Finding out {object}", 3.9),
        ),
        Pattern(re.compile(_INTENT + verb, re.IGNORECASE), "{verb} {object}", 3.6, _ENGLISH,
                _ENGLISH_VERBS),
        Pattern(re.compile(rf"^(?:step \w+[:.)] )?{verb}(?=[^.!?,:;]{{3,50}}$)", re.IGNORECASE),
                "{verb} {object}", 3.2, _ENGLISH, _ENGLISH_VERBS),
        *_patterns(
            _ENGLISH,
            ((rf"{_ASKS} (?:asks|is asking|asked|wants to (?:know|understand|find out)|is)"
             r" (?=(?:how|why|what|whether|where|which)\b)"), "Working out {object}", 3.5),
            ((r"\bhow (?P<object>[^.,;\n]{2,60}) (?:might|would|could|will|can)"
              r" (?:affect|impact|change) "), "Weighing the effects of {object}", 3.4),
            (rf"{_ASKS} (?:is asking for|asks for|asked for|is looking for) ",
             "Looking for {object}", 3.5),
            (rf"{_ASKS} (?:is asking about|asks about|asked about|is about|about|concerns) ",
             "Looking into {object}", 3.5),
            (rf"{_ASKS} (?:wants|would like|needs|requested) (?!me\b|to\b)", "Working on {object}",
             3.3),
            (r"\b(?:root cause|problem|bug|issue)(?: here)? is(?: that)? (?=(?:the|a|an) )",
             "Investigating {object}", 3.2),
            (_topic("object", "{0,3}?", _QUANTITY), "Working out {object}", 2.4),
            (r"\bthis (?P<object>(?:\w+ )?(?:analogy|riddle|puzzle|sequence|syllogism|equation))\b",
             "Working on the {object}", 2.2),
            (_topic("topic", "{1,4}?"), "Considering {object}", 2.0),
            (_MODIFIED, "Considering {object}", 1.9),
            (_BARE_TOPIC, "Considering {object}", 1.6),
            *_ENGLISH_ACTIONS,
            (_topic("object", "{0,4}?"), "Considering {object}", 0.4),
            (rf"{_LEAD}(?P<topic>\w{{5,}}s)(?= (?:are|were|can|will|must|have|had) )",
             "Considering {object}", 0.4),
        ),
    )  # fmt: skip


ENGLISH = _english()


def _infinitive(wills: str, fillers: str, vague: str, form: str) -> str:
    """Return the pattern of a verb after a word that wants an infinitive."""
    return rf"\b(?:{wills})\s*(?:(?:{fillers})\s+)*(?P<verb>(?!(?:{vague})\b){form})\b "


_ROMANCE = Grammar(
    links=words_of(
        "de du des à au aux en dans par pour avec sans sur sous entre vers chez et ou mais que"
        " qui dont où si comme car parce lorsque quand afin puis avant après pendant selon del al"
        " por para con sin sobre hasta desde y pero quien cuyo donde como porque cuando según"
        " mientras antes después cuánto cuál cómo qué do da dos das em no na nos nas com sem até"
        " mas quem cujo onde quando segundo ao pelo pela quanto qual di della dei degli delle"
        " dello alla ai nel nella dal dalla per senza su sul sulla tra fra ed ma che chi cui dove"
        " se come perché quale"
    ),
    weak=words_of(
        "le la les l un une ce cet cette ces mon ma mes son sa ses leur leurs plus très est sont"
        " a d el los las una unos unas lo este esta estos estas mi mis tu sus más muy es o os as"
        " um uma uns umas esse essa meu minha seu sua mais muito é são il i gli uno questo questa"
        " mio mia suo più molto è sono e"
    ),
    ends=words_of(
        "elle ils elles cela ça ceci lui moi toi nous vous je celui celle él ella ellos ellas"
        " esto eso aquello me te yo tú ele ela eles elas isto isso aquilo lhe nós eu você egli lei"
        " loro esso ciò ti ci vi io noi voi"
    ),
    vague=words_of(
        "réponse question problème utilisateur fait cas chose façon exemple première même suite"
        " respuesta pregunta problema usuario caso cosa forma ejemplo primera mismo misma resposta"
        " pergunta usuário coisa exemplo primeiro mesmo risposta domanda utente modo esempio primo"
        " stesso"
    ),
)
"""What a phrase ends with, and how it goes on, is alike in these languages."""


def _romance(wills: str, articles: str, verbs: str, form: str) -> tuple[Pattern, ...]:
    topic = rf"^(?P<object>(?:{articles})[\w' -]{{3,40}}?)(?= (?:{verbs}) )"
    return _patterns(_ROMANCE, (wills, "{verb} {object}", 3.6), (topic, form, 2.0))


FRENCH = _romance(
    _infinitive(
        r"je (?:dois|vais|peux|veux|voudrais)|nous (?:devons|allons|pouvons)|il faut|on doit"
        r"|il est (?:important|nécessaire|utile) (?:de |d['’])|l['’]objectif est (?:de |d['’])"
        r"|l['’]utilisateur (?:veut|souhaite|(?:me )?demande (?:de |d['’]))",
        "aussi|d['’]abord|ensuite|donc|maintenant|bien|encore|simplement|me|juste",
        "être|avoir|faire|dire|savoir|voir|penser|aller|répondre|croire|mettre|pouvoir|falloir",
        "[a-zà-ÿ]{2,}(?:er|ir|re)",
    ),
    "les? |la |l['’]", "est|sont|a|ont|était|peut|doit", "Examiner {object}",
)  # fmt: skip

SPANISH = _romance(
    _infinitive(
        "necesito|debo|voy a|tengo que|hay que|quiero|puedo|vamos a|debemos|necesitamos"
        "|es (?:importante|necesario|útil)|el objetivo es|el usuario (?:quiere|pide)",
        "también|primero|luego|ahora|bien|simplemente|entonces|solo|sólo",
        "ser|estar|tener|hacer|decir|saber|ver|pensar|ir|responder|contestar|haber|poder|creer|dar",
        "[a-záéíóúñ]{2,}[aei]r",
    ),
    "el |la |los |las ", "es|son|está|están|tiene|era|puede|debe", "Analizar {object}",
)  # fmt: skip

PORTUGUESE = _romance(
    _infinitive(
        "preciso|devo|vou|tenho (?:que|de)|é preciso|quero|posso|vamos|precisamos|devemos"
        "|é (?:importante|necessário|útil)|o objetivo é|o usuário (?:quer|pede para)",
        "também|primeiro|depois|agora|bem|simplesmente|então|só",
        "ser|estar|ter|fazer|dizer|saber|ver|pensar|ir|responder|haver|poder|achar|dar",
        "[a-zà-ÿ]{2,}[aei]r",
    ),
    "o |a |os |as ", "é|são|está|estão|tem|era|pode|deve", "Analisar {object}",
)  # fmt: skip

ITALIAN = _romance(
    _infinitive(
        "devo|dobbiamo|bisogna|voglio|posso|possiamo|occorre|vorrei|andiamo a"
        "|è (?:importante|necessario|utile)|l['’]obiettivo è|l['’]utente (?:vuole|chiede di)",
        "anche|prima|poi|ora|adesso|bene|semplicemente|quindi|solo",
        "essere|avere|fare|dire|sapere|vedere|pensare|andare|rispondere|potere|credere|dare",
        "[a-zà-ÿ]{2,}[aei]re",
    ),
    "il |lo |la |gli |le |l['’]", "è|sono|ha|hanno|era|può|deve", "Analizzare {object}",
)  # fmt: skip

RUSSIAN = _patterns(
    Grammar(
        links=words_of(
            "в во на с со из к ко по для о об от до за под при через между без и или но что чтобы"
            " который которая которые которого как если когда где потому так ли почему сколько"
        ),
        weak=words_of("не же бы это этот эта эти мой моя свой его её их очень более весь все всё"),
        ends=words_of("он она они оно ему ей им них него неё мне тебе нас вас я ты мы вы того"),
        vague=words_of("вопрос ответ задача"),
    ),
    (
        _infinitive(
            "нужно|надо|следует|должен|должна|должны|необходимо|хочу|могу|можем|давайте|стоит"
            "|важно|попробую|пользователь (?:хочет|просит)",
            "также|сначала|теперь|потом|просто|ещё|еще|мне|нам|сперва|затем|снова",
            "быть|сказать|знать|думать|иметь|видеть|мочь|стать|ответить|дать|понимать",
            "[а-яё]{2,}(?:ть|ти|чь)",
        ),
        "{verb} {object}",
        3.6,
    ),
)

_GERMAN = Grammar(
    links=words_of(
        "in im an am auf aus bei mit nach von vom zu zum zur für über unter vor gegen ohne durch um"
        " zwischen und oder bis seit pro als wie ob dass wenn weil bevor damit"
    ),
    weak=words_of(
        "der die das den dem des ein eine einen einem einer eines kein keine keinen nur sehr nicht"
        " diese dieser diesen mein meine seine ihre zwei vorher"
    ),
    ends=words_of(
        "es ich du er sie wir ihr ihn ihm ihnen mich mir dich dir uns euch sich man dies dieses"
        " dessen seine seinen seiner ihre ihren ihrer dazu damit davon daran darauf nicht kein"
        " keine keinen ob dass wie warum was ist sind war hat haben wird"
    ),
    fillers=words_of(
        "auch also einfach zuerst noch nun jetzt erst einmal jedoch nur dann hier mal zunächst"
        " daher außerdem nochmal bloß aber trotzdem deshalb kurz genau mindestens vorher"
    ),
    vague=words_of(
        "der die das den ein eine antwort antworten frage nutzer benutzer problem fall fälle ding"
        " dinge weise beispiel rest ende anfang tag tage satz punkt teil text wort lösung"
    ),
)

_GERMAN_VERB = (
    r"(?P<verb>(?!(?:werden|sein|haben|können|müssen|sollen|wollen|machen|sagen|wissen|denken|gehen"
    r"|sehen|tun|antworten|geben|lassen|sicherstellen|achten|schreiben|erwähnen"
    r"|brauchen)\b)[a-zäöüß]+(?:en|ern|eln))(?=[.,;:!]|$| und )"
)

_GERMAN_TOPIC = (
    r"^(?:(?:also|aber|und|damit|dann|so),? )?(?P<object>(?:der|die|das|ein"
    r"|eine) (?:[a-zäöüß]+ )?(?-i:[A-ZÄÖÜ])[\wäöüß-]+)(?= (?:ist|sind|war|hat|wird|kann|muss|fällt"
    r"|kostet|braucht)\b)"
)

GERMAN = _patterns(
    _GERMAN,
    (
        (r"\b(?:(?:ich|wir) (?:sollten?|muss|müssen|werden?|möchten?|will|wollen|kann|können)"
        r"|(?:sollten?|muss|müssen|werde|möchte|will|kann) (?:ich|wir|man|er|sie)|(?:der (?:nutzer"
        r"|benutzer)|die nutzerin) (?:möchte|will)|man muss"
        rf"|lass(?:t|en)? (?:mich|uns|sie uns)) (?P<object>[^.;:!?()\n,]{{4,80}}?) {_GERMAN_VERB}"),
        "{object} {verb}",
        3.6,
    ),
    (r"\b(?:nutzer|benutzer|nutzerin|frage) (?:fragt|sucht) nach ", "Frage nach {object}", 3.4),
    (r"\b(?:nutzer|benutzer|nutzerin) (?:möchte|bittet um|will)(?: also)? (?=eine? )",
     "Wunsch: {object}", 3.3),
    (_GERMAN_TOPIC, "Zum Thema: {object}", 2.0),
    ((r"\b(?P<object>(?:die|das) (?-i:[A-ZÄÖÜ])[\wäöüß-]+ (?:auf|für|wegen|zwischen|von|der|des)"
      r" (?:(?:die|das|den|dem|der|des|[\d.]+) )?(?-i:[A-ZÄÖÜ])[\wäöüß-]+)"),
     "Zum Thema: {object}", 1.9),
)  # fmt: skip


_CHINESE_VERBS = (
    "转化为|转换为|转换成|找出|找到|查找|搜索|检索|查询|求解|求出|计算|算出|推导|推断|证明|验证"
    "|检验|检查|核对|核实|确认|确定|判断|分析|理解|考虑|比较|对比|选择|设计|实现|编写|撰写|写出"
    "|生成|创建|构建|绘制|画出|修改|修复|优化|处理|整理|列出|总结|归纳|解释|说明|讨论|评估|估算"
    "|测试|转换|翻译|拆分|简化|提取|回顾|查看|阅读|解决|决定|规划|安排|展示|覆盖|调用|执行"
)

_CHINESE_OBJECT = r"(?P<object>[^，。；：？！,;:?!、\n（(“”\"]{2,40})"

CHINESE = _patterns(
    None,
    (
        (r"(?:需要|应该|应当|必须|可以|想要|希望|打算|让我们?|用户要求?|要|会|先|得|来|将|我)"
        rf"[^，。；：、？！,;:?!]{{0,28}}?(?P<verb>{_CHINESE_VERBS}){_CHINESE_OBJECT}"),
        "{verb}{object}",
        3.6,
    ),
    (rf"(?:^|[，；：、。\s]|去|并|如何)(?P<verb>{_CHINESE_VERBS}){_CHINESE_OBJECT}",
     "{verb}{object}", 2.6),
    ((r"^(?P<object>(?!这|那|因此|所以|如果|特别|尤其|其|题目|现在|接下来)[\u4e00-\u9fff]{2,8}?)(?=的[\u4e00-\u9fff]+(?:是|为|有)"
     r"|是|为|有|可以|需要|应该)"), "分析{object}", 1.8),
    (r"原因是", "归纳原因", 0.8),
    (r"\d ?[-+*/×÷=] ?\d", "核对计算", 0.7),
    (r"建议|第一.{4,60}第二", "提出建议", 0.6),
)  # fmt: skip

_JAPANESE_NOUNS = {
    noun: noun
    for noun in words_of(
        "計算 検算 確認 検討 調査 比較 作成 説明 証明 検証 修正 選択 決定 整理 特定 分析 理解"
        " 追加 変更 削除 実装 設計 推定 評価 測定 導出 定義 適用 解釈 推測"
    )
} | {
    "調べ": "調査", "求め": "算出", "解": "解法", "比べ": "比較", "考え": "検討", "作": "作成",
    "書": "作成", "直": "修正", "選": "選択", "決め": "決定", "まとめ": "整理", "探": "検索",
    "見つけ": "特定", "導": "導出", "見直": "見直し", "使": "利用", "測": "測定", "思い出": "整理",
}  # fmt: skip
"""Verbs as they begin, and the noun for each."""

_JAPANESE_NOUN = r"[\u4e00-\u9fff々ァ-ヶーA-Za-z0-9の・]{2,16}"

_JAPANESE_VERB = "|".join(sorted(_JAPANESE_NOUNS, key=len, reverse=True))

JAPANESE = (
    Pattern(
        re.compile(
            rf"(?P<object>{_JAPANESE_NOUN})を(?:もう一度|まず|先に|正確に|再)?(?P<verb>{_JAPANESE_VERB})"
        ),
        "{object}の{verb}",
        3.6,
        verbs=_JAPANESE_NOUNS,
    ),
    *_patterns(
        None,
        (rf"(?P<object>{_JAPANESE_NOUN})について", "{object}の検討", 3.0),
        (rf"^(?P<object>{_JAPANESE_NOUN})(?=は)", "{object}の検討", 1.8),
    ),
)

_KOREAN_VERBS = {
    noun: noun
    for noun in words_of(
        "계산 확인 검토 분석 비교 증명 설명 정리 작성 결정 선택 검증 수정 조사 측정 설계 구현 추가"
    )
} | {"구하": "계산", "구해": "계산", "찾": "찾기", "풀": "풀이", "살펴": "검토", "고려": "검토"}
"""Verbs as they begin, and the noun for each."""

_KOREAN_NOUN = r"(?P<object>(?:[가-힣A-Za-z0-9]+(?:의|과|와)? ){0,2}[가-힣A-Za-z0-9]+?)"

KOREAN = (
    Pattern(
        re.compile(rf"{_KOREAN_NOUN}[을를] (?:다시 |먼저 )?(?P<verb>{'|'.join(_KOREAN_VERBS)})"),
        "{object} {verb}",
        3.6,
        verbs=_KOREAN_VERBS,
    ),
    *_patterns(None, (rf"^{_KOREAN_NOUN}(?=[은는이가] )", "{object} 검토", 1.8)),
)
