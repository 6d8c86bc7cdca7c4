"""Make titles of sentences in Chinese, Japanese and Korean.

There are no spaces to go by in the first two, so a title begins or ends with a verb that is known.
Where no sentence has one, it names what the passage mentions most.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from abridge.summarizers.extractive.titles.drafts import Draft, readable, words_of

MAX_READ_CHARS = 160
"""Characters of a sentence that are read."""

MAX_SIZE = 14
"""Maximum characters of a title; a word in Latin letters counts two."""


def _any_of(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))


_LATIN = re.compile(r"[A-Za-z0-9_.()]+")

_CHINESE_VERBS = (
    "转化为|转换为|转换成|找出|找到|查找|搜索|检索|查询|求解|求出|计算|算出|推导|推断|证明|验证|检验|检查|核对|核实|确认|确定|判断|分析"
    "|理解|考虑|比较|对比|选择|设计|实现|编写|撰写|写出|生成|创建|构建|绘制|画出|修改|修复|优化|处理|整理|列出"
    "|总结|归纳|解释|说明|讨论|评估|估算|测试|转换|翻译|拆分|简化|提取|回顾|查看|阅读|解决|决定|规划|安排|展示|覆盖|调用|执行"
)

_CHINESE_INTENT = re.compile(
    r"(?:需要|应该|应当|必须|可以|想要|希望|打算|让我们?|要|会|先|得|来|将|我)"
    rf"[^，。；：、？！,;:?!]{{0,28}}?(?P<verb>{_CHINESE_VERBS})(?P<object>[^，。；：？！,;:?!\n（(]{{2,40}})"
)

_CHINESE_ACTION = re.compile(
    rf"(?:^|[，；：、。\s]|则是|来|去|并|再|以|如何)(?P<verb>{_CHINESE_VERBS})"
    rf"(?P<object>[^，。；：？！,;:?!\n（(]{{2,40}})"
)

_CHINESE_OBJECT_START = re.compile(
    r"(?:[了下出到好]|一下|清楚|如何把|整个|各个|这(?:个|些|道|种)|那(?:个|些)|一个|一种|自己的|用户的?|我的?)+"
)

_CHINESE_VAGUE = re.compile(
    r"[它他她您你]|[这那其]|(?<!还)是(?!否)|我|用户|\$|[了吗呢吧后时中前]$|完毕|有|^(?:[的后时为之]|作为).*|^(?:问题|答案|结果|情况|内容|输入|结构|代码|步骤)$|回答"
)

_CHINESE_BREAK = re.compile(
    r"[^\u4e00-\u9fff]+|[的了是在和与或有不这那个们我你他她它会要能就都也很到从对把被为以其所于而但若则由向并将让给用"
    r"每各些种该此再还又及等着过得地吗呢吧]"
    rf"|{_CHINESE_VERBS}|需要|可以|应该|可能|因此|因为|如果|首先|接下来|最后|例如|比如|然后|怎么|什么|问题|答案|情况"
    "|一下|部分|直接|具体|注意|确保|包括|根据|不同|没有|是否|对应|特别|比较|主要|单独|复杂|一步|成立|总结来说"
)

_CHINESE_FRAMES = (
    (re.compile("检查|验证|核对|确认|符合"), ("检查{}", "核对{}")),
    (re.compile("错误|失败|异常|报错|漏洞"), ("排查{}", "分析{}")),
    (re.compile("比较|对比|还是|方案|选择"), ("比较{}", "权衡{}")),
    (re.compile("因此|所以|综上|总之|结论"), ("梳理{}", "总结{}")),
    (re.compile(""), ("分析{}", "思考{}", "梳理{}", "研究{}")),
)

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

_JAPANESE_INTENT = re.compile(
    r"(?P<object>[\u4e00-\u9fff々ァ-ヶーA-Za-z0-9の・]{2,16})を"
    rf"(?:もう一度|まず|先に|正確に|再)?(?P<verb>{_any_of(_JAPANESE_NOUNS)})"
    r"|(?P<about>[\u4e00-\u9fff々ァ-ヶーA-Za-z0-9の・]{2,16})について"
)

_JAPANESE_BREAK = re.compile(
    r"[^\u4e00-\u9fff々ァ-ヶー]+|必要|可能|場合|問題|答|質問|方法|今|次|前|後|以上|以下"
)

_JAPANESE_FRAMES = (
    (re.compile("確認|検算|正しい"), ("{}の確認", "{}の検証")),
    (re.compile("エラー|失敗|バグ|間違"), ("{}の原因調査", "{}の検討")),
    (re.compile("より|比べ|比較|どちら"), ("{}の比較", "{}の検討")),
    (re.compile(""), ("{}の検討", "{}の整理", "{}の分析", "{}についての考察")),
)

_KOREAN_VERBS = {
    noun: noun
    for noun in words_of(
        "계산 확인 검토 분석 비교 증명 설명 정리 작성 결정 선택 검증 수정 조사 측정 설계 구현 추가"
    )
} | {"구하": "계산", "구해": "계산", "찾": "찾기", "풀": "풀이", "살펴": "검토", "고려": "검토"}
"""Verbs as they begin, and the noun for each."""

_KOREAN_INTENT = re.compile(
    r"(?P<object>(?:[가-힣A-Za-z0-9]+(?:의|과|와)? ){0,2}[가-힣A-Za-z0-9]+)[을를] "
    rf"(?:다시 |먼저 )?(?P<verb>{_any_of(_KOREAN_VERBS)})"
)

_KOREAN_WORD = re.compile(
    r"[가-힣]{2,8}?(?=(?:은|는|이|가|을|를|의|에서|에|으로|로|와|과|도)(?![가-힣]))"
)

_KOREAN_FRAMES = (
    (re.compile("확인|검증|맞"), ("{} 확인", "{} 검증")),
    (re.compile(""), ("{} 검토", "{} 분석", "{} 정리")),
)

_VAGUE_NOUNS = words_of(
    "用户 ユーザー 사용자 문제 질문 경우 것 우리 이것 그것 自分 正確 重要 必要 時間 一方 結果"
    " 結論 最初 最後"
)


def draft_chinese(sentences: Sequence[str], headings: Sequence[str]) -> Iterator[Draft]:
    """Yield titles such as 计算方程的根."""
    for position, sentence in readable(sentences, headings, MAX_READ_CHARS):
        penalty = min(0.15 * position, 1.5)
        for pattern, score in ((_CHINESE_INTENT, 3.0), (_CHINESE_ACTION, 1.9)):
            for found in list(pattern.finditer(sentence))[:2]:
                thing = _shorten_chinese(found["object"], MAX_SIZE - len(found["verb"]))
                if thing:
                    yield Draft(found["verb"] + thing, score - penalty)
    yield from _draft_topics(sentences, _CHINESE_BREAK, _CHINESE_FRAMES)


def _shorten_chinese(text: str, limit: int) -> str:
    """Return the object of a verb, or its last noun if it is long; empty if it names nothing."""
    start = _CHINESE_OBJECT_START.match(text)
    text = re.split(
        "[、“”]|以便|来(?=[^源])|然后|并(?!行)|而(?!且)|时$", text[start.end() :] if start else text
    )[0].strip()
    if _size(text) > limit:
        text = text.rpartition("的")[2]
    start = _CHINESE_OBJECT_START.match(text)
    text = text[start.end() :] if start else text
    usable = 2 <= _size(text) <= limit and not _CHINESE_VAGUE.search(text)
    return text.rstrip("的和与及") if usable else ""


def draft_japanese(sentences: Sequence[str], headings: Sequence[str]) -> Iterator[Draft]:
    """Yield titles such as 方程式の解法."""
    for position, sentence in readable(sentences, headings, MAX_READ_CHARS):
        for found in list(_JAPANESE_INTENT.finditer(sentence))[:3]:
            thing = (found["object"] or found["about"]).strip("の・")
            noun = _JAPANESE_NOUNS.get(found["verb"], "検討")
            if _size(thing) > 1 and thing not in _VAGUE_NOUNS and _size(thing) < MAX_SIZE:
                yield Draft(f"{thing}の{noun}", 3.0 - min(0.15 * position, 1.5))
    yield from _draft_topics(sentences, _JAPANESE_BREAK, _JAPANESE_FRAMES)


def draft_korean(sentences: Sequence[str], headings: Sequence[str]) -> Iterator[Draft]:
    """Yield titles such as 방정식의 해 계산."""
    for position, sentence in readable(sentences, headings, MAX_READ_CHARS):
        for found in list(_KOREAN_INTENT.finditer(sentence))[:3]:
            noun = _KOREAN_VERBS[found["verb"]]
            if found["object"].split()[-1] not in _VAGUE_NOUNS:
                yield Draft(f"{found['object']} {noun}", 3.0 - min(0.15 * position, 1.5))
    words = Counter(
        word
        for _, text in readable(sentences, (), MAX_READ_CHARS)
        for word in _KOREAN_WORD.findall(text)
    )
    yield from _frame_topics(words, " ".join(sentences[:1]), _KOREAN_FRAMES)


def _draft_topics(
    sentences: Sequence[str],
    separator: re.Pattern[str],
    frames: Sequence[tuple[re.Pattern[str], tuple[str, ...]]],
) -> Iterator[Draft]:
    words: Counter[str] = Counter()
    for position, text in readable(sentences, (), MAX_READ_CHARS):
        weight = 3 if position < 2 else 1  # the sentences that say most come first
        for word in separator.split(text):
            if 2 <= len(word) <= 8:
                words[word] += weight
    yield from _frame_topics(words, "".join(sentences[:1]), frames)


def _frame_topics(
    words: Counter[str], sentence: str, frames: Iterable[tuple[re.Pattern[str], tuple[str, ...]]]
) -> Iterator[Draft]:
    """Yield titles for the words that are used most, framed as the first sentence suggests."""
    for name in _VAGUE_NOUNS:
        words.pop(name, None)
    forms = next(forms for cue, forms in frames if cue.search(sentence))
    for rank, (word, count) in enumerate(words.most_common(6)):
        for place, form in enumerate(forms):
            score = 0.2 * min(count, 5) + 0.1 * min(len(word), 5) - 0.1 * rank - 0.2 * place
            yield Draft(form.format(word), score)


def _size(text: str) -> int:
    latin = _LATIN.findall(text)
    return len(text.replace(" ", "")) - sum(map(len, latin)) + 2 * len(latin)


DRAFTERS = {"zh": draft_chinese, "ja": draft_japanese, "ko": draft_korean}
