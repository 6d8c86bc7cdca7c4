"""Know what of reasoning may never be shown: secrets, personal data, prompts, policies, orders.

A model reasons about its instructions, and repeats what it must not say so as not to say it. Here
every doubt counts against a sentence, because one that is left out is missed by nobody.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice, pairwise

from abridge.lazy_re import lazy_compile
from abridge.summarizers.extractive.words import read_phrases

MAX_KEPT = 8  # the most resolutions not to say something that are looked at in one text

_PHRASES = r"""
    system[ -]?<prompt>; <system message|systemanweisung>; <prompt> (?:système|del sistema);
    <developer>(?:['’]s)? (?:message|says|said|prompt|instruct); <ai assistant>s?\b; <as an ai>\b;
    <assistants|agents> (?:must|should|have to|are to)\b;
    <instruction>s? (?:say|state|are to|require|prohibit|tell|système);
    (?:my|hidden|secret|initial|injected) <instruction>s?\b; <ignore|disregard|forget>
    (?:all |any |the |my |your )*(?:previous|prior|above|earlier|safety|instructions);
    (?:according to|under|per|against|violat\w{1,8}|openai|content|safety|usage|by|check|follow)
    (?:the |our |my )?<policy|policies|guideline>s?\b; <disallowed>; laut (?:den )?<richtlinien>;
    <policy|policies|guidelines> (?:check|say|state|violat|require|allow|prohibit|forbid);
    (?:(?:should|must|and)(?:n['’]t| not)|never|avoid(?:ing)?|not
    to|(?:^|i |we |you |[,:.\x3b] )(?:(?:do|will) not|(?:don|won|can)['’]t|cannot))(?: \w+){0,2}?
    <mention|reveal|disclose|repeat|expos|leak|divulg>(?:ing|e)?\b;
    \b(?:nicht|nie|keinesfalls)(?: \w+){0,2}? <erwähn|verrat|preisgeb|nenne|wiederhol>;
    <passw|passphr|kennwort|mot de passe|contraseña>\w*\s*(?:ist?|lautet|[:=]|est?)\W*(?=\S*\d)\w;
    (?:secret |access |api[ _-]?)<key|token>\s*(?:is|ist|[:=])\W*(?=\S*\d)\w; <code name|codename>;
    \b<pin>\s*(?:is|ist|[:=])\W*\d; (?:discount|promo|voucher|access|security) <code>\b(?=.*\d);
    <date of birth|geburtsdatum|date de naissance|fecha de nacimiento>; \b<dob|iban|ssn>\b;
    (?:contract|account|card|passport|customer|member|tracking|social security|phone)
    <number|no.>(?=\D{0,12}\d); (?:kunden|vertrags|konto|ausweis|versicherungs|telefon)<nummer>;
    \b(?:seine|ihre|meine) <nummer>; \b(?:er|sie) <heißt>\b; \bich <heiße>\b; \bmein <name ist>\b;
    \b(?:my|his|her|user['’]s|user) <name is>\b;
    <系统提示|系統提示|提示词|系统消息|开发者消息|开发者指令|身份证|手机号|出生日期|名字叫>;
    (?:根据|违反|按照)(?:内容|安全|使用)?<政策|准则|规定>; <密码>(?:是|为|：);
    (?:不要|不能|不得|不应该?|不可以?|避免)\w{0,3}<提及|提到|透露|泄露|重复>;
    <忽略>(?:之前|以上|上述); <システムプロンプト|システムメッセージ|ポリシー|ガイドラインに>;
    <パスワードは|電話番号|生年月日|指示を無視>; 開発者<メッセージ|の指示>;
    <言及|公開|明か|漏ら>(?:し|さ)(?:ない|ては);
    <시스템 프롬프트|정책에|정책상|비밀번호는|전화번호|생년월일>
"""
"""The prompt, and orders that came in through a tool; the policies by which a model is allowed to
answer; what it resolves not to say; passwords and codes; personal data. See `read_phrases`."""

RULES = tuple(
    (word, lazy_compile(f"{before}{word}{after}")) for before, word, after in read_phrases(_PHRASES)
)
"""What is private, in small letters, by a word that it holds: to look for that takes a tenth of
the time."""

_REVEALING = "reveal", "disclose", "divulge", "leak", "expose", "share"
_KEPT = re.compile(
    r"(?:n(?:(?<=\bn)(?:ever|ot)|['’]t)|a(?<=\ba)void)(?: \w+){0,2}? "  # fast: starts with letters
    rf"(?:{'|'.join(_REVEALING)})(?:ing)? (?:(?:the|a|an|any|my|our|that|this|internal|secret) )*"
    r"(?P<what>[\w-]+(?: [\w-]+){1,3})"
)
"""What the model resolves not to say, so that other sentences that name it are private, too."""

_MAIL = re.compile(r"@(?<=[\w.+-]@)[\w-]{1,64}\.\w")

_CODE = re.compile(  # a voucher or serial number, such as AB-12-CD; fast: starts with a letter
    r"[A-Z](?<=\b(?!ISO|UTF|CVE|RFC|SHA|AES|TLS|GPT|HTTP)[A-Z])[A-Z]{1,11}-(?=[A-Z0-9-]*\d)[A-Z0-9]+"
    r"-[A-Z0-9-]+"
)

_NUMBER = re.compile(  # of a telephone, of a card
    r"(?=[+(\d])(?:(?<![\w.,/+-])(?:\+\d{1,3}[ ./-]?[\d(]|\(?0[1-9]\d{1,4}\)?[ ./-]\d)"
    r"[\d ()./-]{3,20}\d|(?<![\w.-])\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}(?![\w-])"
    r"|\b\d{4}[ -]\d{4}[ -]\d{4}[ -]\d)"
)

_DIGITS = re.compile(r"\d[\d ()./-]{6,}\d")
MARKS = (_MAIL, _MAIL), (re.compile(r"-(?<=[A-Z]{2}-)[A-Z0-9]"), _CODE), (_DIGITS, _NUMBER)
"""What a text holds, fast to find, of which a sentence may hold what is private."""

_TOKEN = re.compile(r"(?<![A-Za-z0-9_-])(?:[A-Za-z0-9_-]{16,}|[prs]k-[A-Za-z0-9_-]{8,})")
_KEY_START = re.compile(r"(?:sk|pk|rk|ghp|gho|ghs|xox[abpr]|hf|glpat|AKIA|ASIA|AIza)[-_A-Z0-9]|eyJ")


def find_private(texts: Sequence[str]) -> set[str]:
    """Return those sentences of one text that may not be shown, and with one the whole quotation
    that it opens. The text is searched for hints once, so that most sentences cost nothing."""
    whole = "\n".join(texts)
    lowered = whole.lower()
    rules = [(word, pattern) for word, pattern in RULES if word in lowered]
    marks = [pattern for found, pattern in MARKS if found.search(whole)]
    names = _find_kept(lowered) if rules and any(word in lowered for word in _REVEALING) else []
    long_words = " ".join([word for word in whole.split() if len(word) > 10])  # as all tokens are
    names += [token.lower() for token in _TOKEN.findall(long_words) if _is_key(token)]
    private, quoted = set[str](), False
    for text in texts if rules or marks or names else ():
        lowered = text.lower()
        if (
            quoted
            or any(pattern.search(lowered) for word, pattern in rules if word in lowered)
            or (marks and any(pattern.search(text) for pattern in marks))
            or any(map(lowered.__contains__, names))
        ):
            private.add(text)
            quoted ^= text.count('"') % 2 == 1
    return private


def _find_kept(lowered: str) -> list[str]:
    """Return the names of what must not be said: pairs of longer words, such as "staff rate"."""
    pairs: list[str] = []
    for found in islice(_KEPT.finditer(lowered), MAX_KEPT):
        words = found["what"].split()
        pairs += [f"{one} {two}" for one, two in pairwise(words) if min(len(one), len(two)) > 3]
    return pairs


def _is_key(token: str) -> bool:
    """Return true if a long word begins as keys do, is hexadecimal, or mixes digits with small and
    capital letters."""
    digits = sum(map(str.isdigit, token))
    if _KEY_START.match(token) and digits:
        return True
    mixed = not token.islower() and not token.isupper() and "_" not in token[7:]
    is_hexadecimal = len(token) >= 32 and not token.strip("0123456789abcdefABCDEF")
    return is_hexadecimal or (len(token) >= 20 and digits > 2 and mixed and digits < len(token))
