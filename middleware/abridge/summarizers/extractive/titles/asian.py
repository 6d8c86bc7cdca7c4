"""How sentences in scripts without spaces, and Korean, say what they are about; their titles."""

from __future__ import annotations

from abridge.lazy_re import lazy_compile
from abridge.summarizers.extractive.titles.patterns import patterns
from abridge.summarizers.extractive.words import words_of

MAX_WIDE_CHARS = 12  # of an object in a script without spaces; a word in Latin letters counts two
MAX_WIDE_CLAUSE_CHARS = 22  # of a clause

_WIDE_POINTS = lazy_compile(r"[它他她您你我这那其]|用户|これ|それ|この|その|ユーザー")

_LATIN = lazy_compile(r"[A-Za-z0-9_.()]+")

_WIDE_START = lazy_compile(
    r"(?:[了下出到好]|一下|清楚|如何把|整个|各个|(?:这|那)(?:个|些|道|种)|一个|一种|自己的|用户的?|我的?)+"
)

_WIDE_VAGUE = lazy_compile(
    r"[它他她您你这那其我吗呢吧]|(?<!还)是|用户|\$|[了后时中前]$|完毕|有|^[的后时为之]|^作为|回答"
    r"|^ユーザー|^(?:问题|答案|结果|情况|内容|输入|结构|代码|步骤|自分|重要|必要|時間|一方|結果|結論|最初"
    r"|最後|今|次|問題|答え|우리|이것|그것|것|문제|질문)$"
)


def _phrase(text: str) -> str:
    """Return an object in a script without spaces, or its last noun if it is long; empty if it
    names nothing."""
    text = _WIDE_START.sub("", text, count=1).strip(" の・的和与及")
    if _size(text) > MAX_WIDE_CHARS:
        text = _WIDE_START.sub("", text.rpartition("的")[2], count=1)
    return text if 2 <= _size(text) <= MAX_WIDE_CHARS and not _WIDE_VAGUE.search(text) else ""


def _clause(text: str) -> str:
    """Return a clause in a script without spaces, empty if it points at what is not shown."""
    text = text.strip("，、 `")
    return (
        text if 1 < _size(text) <= MAX_WIDE_CLAUSE_CHARS and not _WIDE_POINTS.search(text) else ""
    )


def _size(text: str) -> int:
    latin = _LATIN.findall(text)
    return len(text.replace(" ", "")) - sum(map(len, latin)) + 2 * len(latin)


_CHINESE_VERBS = (
    "转化为|转换为|转换成|找出|找到|查找|搜索|检索|查询|求解|求出|计算|算出|推导|推断|证明|验证"
    "|检验|检查|核对|核实|确认|确定|判断|分析|理解|考虑|比较|对比|选择|设计|实现|编写|撰写|写出"
    "|生成|创建|构建|绘制|画出|修改|修复|优化(?!器)|处理|整理|列出|总结|归纳|解释|说明|讨论|评估|估算"
    "|测试|转换|翻译|拆分|简化|提取|回顾|查看|阅读|解决|决定|规划|安排|展示|覆盖|调用|执行"
)
_CHINESE_OBJECT = r"(?P<object>[^，。；：？！,;:?!、\n（(“”\"]{2,80})"
_CHINESE_NOUN = (
    r"(?:^|(?<=[^\u4e00-\u9fff]|[的在和与是把被对从]))(?P<object>(?:(?![的了是在和与就也都把被对从到用要会能不有这那个我你他它们一如果因为所以可以需应该再先后还而但很最"
    r"每两第次时说想看做来去上下中里等或并且让给向按比更没只])[\u4e00-\u9fff]){2,8})"
)

CHINESE = (
    *patterns(
        _clause,
        ((r"(?:想知道|问的?(?:是|题是)?|判断|确认一下|要看|考虑|题目问)[：:，]?(?P<object>(?:要不要"
          r"|是否|是不是|能不能|如何|怎么|怎样|为什么|什么|哪)[^，。；：？！?]{2,40})"),
         "弄清{object}", "asked"),
        ((r"用户(?:想要?|打算|希望)(?P<object>(?!知道|让|问|了解|确认|要我|请|一|更|有|详)[^，。；：？！]{4,20})(?=[，。；])"),
         "弄清如何{object}", "topic"),
        ((r"(?:答案|结果)(?:就|应该|应当)?(?:是|为)[：:]?(?P<object>[^，。；？！]{1,20})"),
         "得出答案：{object}", "result"),
        ((r"(?:根本)?原因(?:就|应该)?是[：:]?(?P<object>[^，。；？！]{3,20})"),
         "找到原因：{object}", "result"),
        (r"建议(?:就)?是[：:]?(?P<object>[^，。；？！]{4,20})", "给出建议：{object}", "result"),
        ((r"(?:^|[，。；])(?:因此|所以|也就是说|可见|由此可见|这说明|总结来说|综上|总之"
          r"|结论是)[，：]?(?P<object>(?!可能|如果|总结|需要|在|应该|对|当|由于|刚好|我的|可以|通过"
          r"|根据)[^，。；：？！]{4,22})(?=[，。；]|$)"), "确认{object}", "concluded"),
    ),
    *patterns(
        _phrase,
        ((r"(?:^|[的，：])(?P<object>[\u4e00-\u9fff]{2,6}?)(?:(?:最近|每天|突然|经常|总|一直)"
          r"[^，。；的]{0,10}?)?(?P<verb>变得?很?慢|报错|失败|崩溃|超时)"),
         "查明{object}{verb}的原因", "asked"),
        ((r"用户问的(?:是|题是)(?:一个|一道)?(?P<object>[^，。：？]{2,14}?问题)(?=[：，。])"),
         "解答{object}", "asked"),
        ((r"(?:需要|应该|应当|必须|可以|想要|希望|打算|让我们?|用户要求?|要|会|先|得|来|我)(?:(?:帮"
          r"|为|给|用|把|将|对|先|再|仔细|逐一|根据|从|通过|这里)[^，。；：、？！,;:?!]{0,24}?)?"
          rf"(?P<verb>{_CHINESE_VERBS})(?!起来|的话|来说|一下[，。]){_CHINESE_OBJECT}"),
         "{verb}{object}", "intent"),
        ((rf"(?:^|[，；：、。\s]|去|并|如何)(?P<verb>{_CHINESE_VERBS})(?!起来|的话|来说"
          rf"|一下[，。]){_CHINESE_OBJECT}"),
         "{verb}{object}", "doing"),
        (_CHINESE_NOUN, "分析{object}", "noun"),
    ),
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
    "組": "作成",
}  # fmt: skip
"""Verbs as they begin, and the noun for each."""

_JAPANESE_NOUN = r"[\u4e00-\u9fff々ァ-ヶーA-Za-z0-9の・]{2,16}"
_JAPANESE_VERB = "|".join(sorted(_JAPANESE_NOUNS, key=len, reverse=True))

JAPANESE = (
    *patterns(
        _clause,
        ((r"(?:^|、|は)(?P<object>[^、。「」はも]{2,14}(?:は|も|を)?[^、。「」]{2,14}?べきか)"
          r"(?:どうか)?(?=と|を|が|、|。)"), "{object}の検討", "asked"),
        ((r"(?:^|、)(?:だから|つまり|したがって|よって|結論としては?|以上から|結局"
          r"|結論は)、?(?:[^。、「」]{2,12}、)?"
          r"(?P<object>[^。、「」]{5,20}?(?:い|る|た|だ|べき|ない))(?=。|$|、)"),
         "{object}という結論", "concluded"),
        ((r"(?:答え|原因|理由|結論)は、?(?P<object>(?!いくつ|何|次|以下)[^。、「」]{2,16}?)(?:だ"
          r"|です|である|になる|となる|。|$)"),
         "{object}という結論", "result"),
    ),
    *patterns(
        _phrase,
        (rf"(?P<object>{_JAPANESE_NOUN})を(?:もう一度|まず|先に|正確に|再)?(?P<verb>{_JAPANESE_VERB})",
         "{object}の{verb}", "intent"),
        (r"(?P<object>[\u4e00-\u9fffァ-ヶー]{2,10})", "{object}の検討", "noun"),
        verbs=_JAPANESE_NOUNS.__getitem__,
    ),
)  # fmt: skip

_KOREAN_VERBS = {
    noun: noun
    for noun in words_of(
        "계산 확인 검토 분석 비교 증명 설명 정리 작성 결정 선택 검증 수정 조사 측정 설계 구현 추가"
    )
} | {"구하": "계산", "구해": "계산", "찾": "찾기", "풀": "풀이", "살펴": "검토", "고려": "검토"}
"""Verbs as they begin, and the noun for each."""
_KOREAN_NOUN = r"(?P<object>(?:[가-힣A-Za-z0-9]+(?:의|과|와)? ){0,2}[가-힣A-Za-z0-9]+?)"

KOREAN = patterns(
    _phrase,
    (rf"{_KOREAN_NOUN}[을를] (?:다시 |먼저 )?(?P<verb>{'|'.join(_KOREAN_VERBS)})",
     "{object} {verb}", "intent"),
    (rf"^{_KOREAN_NOUN}(?=[은는이가] )", "{object} 검토", "noun"),
    verbs=_KOREAN_VERBS.__getitem__,
)  # fmt: skip
