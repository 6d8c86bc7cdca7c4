"""Know what of reasoning may never be shown: secrets, personal data, prompts, policies, orders.

A model reasons about its instructions, and repeats what it must not say so as not to say it. Here
every doubt counts against a sentence, because one that is left out is missed by nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice, pairwise

from abridge.lazy_re import lazy_compile

MAX_KEPT = 8  # the most resolutions not to say something that are looked at in one text

Rule = tuple[list[str], re.Pattern[str]]
"""A kind of text that is private: hints, of which whatever the pattern finds holds one, and the
pattern, both in small letters. To look for hints takes a tenth of the time."""


def _rule(hints: str, pattern: str) -> Rule:
    return hints.split("|"), lazy_compile(pattern)


RULES = (
    _rule(  # the prompt, and orders that came in through a tool
        "prompt|system m|developer|instruct|systemanw|assistant|as an ai|agents ",
        r"system[ -]?prompt|system message|systemanweisung|prompt (?:système|del sistema)"
        r"|developer(?:['’]s)? (?:message|says|said|prompt|instruct)|ai assistants?\b"
        r"|(?:assistants|agents) (?:must|should|have to|are to)\b"
        r"|as an ai\b|instructions? (?:say|state|are to|require|prohibit|tell|système)|(?:my"
        r"|hidden|secret|initial|injected) instructions?\b",
    ),
    _rule(
        "ignore|disregard|forget",
        r"(?:ignore|disregard|forget) (?:all |any |the |my |your )*(?:previous|prior|above"
        r"|earlier|safety|instructions)",
    ),
    _rule(  # the policies by which a model is allowed to answer
        "polic|guideline|disallow|richtlinie",
        r"(?:according to|under|per|against|violat\w{1,8}|openai|content|safety|usage|by|check"
        r"|follow) (?:the |our |my )?(?:polic(?:y|ies)|guidelines?)\b|disallowed"
        r"|laut (?:den )?richtlinien|(?:polic(?:y|ies)|guidelines) (?:check|say|state|violat"
        r"|require|allow|prohibit|forbid)",
    ),
    _rule(  # what the model resolves not to say
        "mention|reveal|disclose|repeat|expos|leak|divulg",
        r"(?:(?:should|must|and)(?:n['’]t| not)|never|avoid(?:ing)?|not to|(?:^|i |we |you |[,;:.] "
        r")(?:do not|don['’]t|will not|won['’]t|can['’]t|cannot))(?: \w+){0,2}? (?:mention|reveal"
        r"|disclose|repeat|expos|leak|divulg)(?:ing|e)?\b",
    ),
    _rule(
        "erwähn|verrat|preisgeb|nenn|wiederhol",
        r"\b(?:nicht|nie|keinesfalls)(?: \w+){0,2}? (?:erwähn|verrat|preisgeb|nenn(?:en|e)\b"
        r"|wiederhol)",
    ),
    _rule(  # passwords and codes
        "pass|kennwort|api|secret|token|contraseña|pin|code",
        r"(?:password|passwd|passphrase|passwort|kennwort|api[ _-]?key|secret key|access token|mot "
        r"de passe|contraseña|\bpin)\s*(?:is|ist|lautet|[:=]|est|es)\s*[\"'`“]?(?=\S*\d)\S|code "
        r"?name|(?:discount|promo|voucher|access|security) code\b(?=.*\d)",
    ),
    _rule(  # personal data
        "birth|dob|geburts|naissance|nacimiento|iban|ssn",
        r"date of birth|\bdob\b|geburtsdatum|date de naissance|fecha de nacimiento|\b(?:iban"
        r"|ssn)\b",
    ),
    _rule(
        "number| no.",
        r"(?:contract|account|card|passport|customer|member|tracking|social security|phone) "
        r"(?:number|no\.)(?=\D{0,12}\d)",
    ),
    _rule(
        "nummer|heiß|name |name:",
        r"(?:kunden|vertrags|konto|ausweis|versicherungs|telefon)nummer|\b(?:seine|ihre"
        r"|meine) nummer|\b(?:er|sie) heißt\b|\bich heiße\b|\bmein name ist\b|\b(?:my|his|her"
        r"|user['’]s|user) name is\b",
    ),
    _rule(
        "提示|消息|指令|政策|准则|规定|提|露|重复|密码|身份证|手机号|出生日期|名字叫|忽略",
        r"系统提示|系統提示|提示词|系统消息|开发者(?:消息|指令)|(?:根据|违反|按照)(?:内容|安全"
        r"|使用)?(?:政策|准则|规定)|(?:不要|不能|不得|不应该?|不可以?|避免)\w{0,3}(?:提及|提到|透露"
        r"|泄露|重复)|密码(?:是|为|：)|身份证|手机号|出生日期|名字叫|忽略(?:之前|以上|上述)",
    ),
    _rule(
        "プロンプト|メッセージ|指示|ポリシー|ガイドライン|ない|ては|番号|パスワード|生年月日",
        r"システムプロンプト|システムメッセージ|開発者(?:メッセージ|の指示)|ポリシー"
        r"|ガイドラインに|(?:言及|公開|明か|漏ら)(?:し|さ)(?:ない|てはいけ|ては)|パスワードは"
        r"|電話番号|生年月日|指示を無視",
    ),
    _rule(
        "프롬프트|정책|비밀번호|전화번호|생년월일",
        r"시스템 프롬프트|정책(?:에|상)|비밀번호는|전화번호|생년월일",
    ),
)

_KEPT = re.compile(
    r"(?:n(?:(?<=\bn)(?:ever|ot)|['’]t)|a(?<=\ba)void)(?: \w+){0,2}? "  # fast: starts with letters
    r"(?:reveal|disclose|divulge|leak|expose|share)(?:ing)? (?:(?:the|a|an|any|my|our|that|this"
    r"|internal|secret) )*(?P<what>[\w-]+(?: [\w-]+){1,3})"
)
"""What the model resolves not to say, so that other sentences that name it are private, too."""

_KEPT_HINTS = ("reveal", "disclose", "divulge", "leak", "expose", "share")  # all it finds holds one

_MAIL = re.compile(r"[\w.+-]@[\w-]{1,64}\.\w")

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

MIN_TOKEN_CHARS = 16
_TOKEN = re.compile(rf"[A-Za-z0-9_-]{{{MIN_TOKEN_CHARS},}}")

_TOKEN_BYTES = bytes(
    ord("x") if chr(code).isascii() and (chr(code).isalnum() or chr(code) in "_-") else ord(" ")
    for code in range(256)
)
"""Turns the characters of tokens into `x`, so that a token is found ten times as fast."""

_KEY_START = re.compile(r"(?:sk|pk|rk|ghp|gho|ghs|xox[abpr]|hf|glpat|AKIA|ASIA|AIza)[-_A-Z0-9]|eyJ")


class Privacy:
    """Tells of the sentences of one text which are private. The text is searched for hints once, so
    that most texts cost nothing."""

    def __init__(self, text: str) -> None:
        lowered = text.lower()
        self._rules = [
            (held, pattern)
            for hints, pattern in RULES
            if (held := [hint for hint in hints if hint in lowered])
        ]
        looks_for_kept = bool(self._rules) and _holds_any(lowered, _KEPT_HINTS)
        self._kept = _find_kept(lowered) if looks_for_kept else []
        self._has_mail = "@" in text
        self._has_digits = bool(_DIGITS.search(text))
        self._has_code = "-" in text
        has_token = b"x" * MIN_TOKEN_CHARS in text.encode(errors="replace").translate(_TOKEN_BYTES)
        self._has_keys = has_token and any(map(_is_key, _TOKEN.findall(text)))

    def covers(self, text: str) -> bool:
        """Return true if a sentence holds what may not be shown."""
        if self._rules:
            lowered = text.lower()
            for hints, pattern in self._rules:
                if _holds_any(lowered, hints) and pattern.search(lowered):
                    return True
            if self._kept and _holds_any(lowered, self._kept):
                return True
        return (
            (self._has_mail and bool(_MAIL.search(text)))
            or (self._has_digits and bool(_NUMBER.search(text)))
            or (self._has_code and "-" in text and bool(_CODE.search(text)))
            or (self._has_keys and any(map(_is_key, _TOKEN.findall(text))))
        )


def _holds_any(lowered: str, hints: Iterable[str]) -> bool:
    for hint in hints:  # noqa: SIM110 -- `any` takes three times as long
        if hint in lowered:
            return True
    return False


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
