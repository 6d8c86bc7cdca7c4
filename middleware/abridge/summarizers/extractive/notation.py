r"""Write simple inline LaTeX as plain text: `\(n^2 \ge \sqrt{2}\)` becomes `n² ≥ √2`.

Only what needs no layout is rewritten. What remains with a backslash is a formula that a sentence
cannot hold, and is left out with its sentence.
"""

from __future__ import annotations

import re

_BOXED = re.compile(r"\\boxed\{([^{}\n]{1,80})\}")

_INLINE = re.compile(
    r"[\\$](?:(?<=\\)\(\s*+(?=\S)([^\n]{1,160}?)\s*+\\\)"  # fast to find: starts with a character
    r"|(?<=\$)(?<![\\$]\$)(?=[^\s$])([^$\n]{1,160}?)(?<=[^\s\\])\$(?![\d$]))"
)

_GROUPS = (
    (re.compile(r"\\(?:text|mathrm|mathbf|mathbb|operatorname)\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}"), r"{\1}/{\2}"),
    (re.compile(r"\\[dt]?frac\s*(\d)\s*(\d)"), r"\1/\2"),
    (re.compile(r"\\[dt]?frac\s*(\d)\{([^{}]*)\}"), r"\1/{\2}"),
    (re.compile(r"\\sqrt\s*(\w)"), r"√\1"),
    (re.compile(r"\\sqrt(?=\{)"), "√"),
    (re.compile(r"(?<!\\)\{(-?[\w.√]{1,20})\}"), r"\1"),
    (re.compile(r"(?<!\\)\{([^{}\\]*)\}"), r"(\1)"),
)
"""Commands with arguments, innermost first; braces that remain become brackets."""

_GROUP_START = re.compile(r"\{|\\[dt]?frac|\\sqrt")  # whatever one of them finds holds this

_SYMBOLS = {"left": "", "right": "", "quad": " "} | dict(
    re.findall(
        r"(\w+) (\S)",
        "ge ≥ geq ≥ le ≤ leq ≤ ne ≠ neq ≠ approx ≈ times × cdot · div ÷ pm ± to → infty ∞ pi π"
        " alpha α beta β theta θ lambda λ epsilon ε Delta Δ in ∈ implies ⇒ ldots … dots …",
    )
)

_COMMAND = re.compile(r"\\([A-Za-z]+)\s?")
_SPACING = re.compile(r"\\[,;!: ]")
_POWER = re.compile(r"\^([23])(?!\d)")
_SPACES = re.compile(r"\s{2,}")


def plain_math(text: str) -> str:
    """Rewrite the inline formulas of a text that are simple enough; leave the others."""
    if "\\boxed" in text:
        text = _BOXED.sub(r"\1", text)
    if "\\(" in text or text.count("$") > 1:
        text = _INLINE.sub(_rewrite, text)
    return text


def _rewrite(found: re.Match[str]) -> str:
    plain = found[1] or found[2]
    if "{" in plain or "\\" in plain:
        plain = _rewrite_commands(plain)
    plain = _POWER.sub(lambda power: "²³"["23".index(power[1])], plain)
    plain = plain.replace("\\{", "{").replace("\\}", "}")
    if "\\" in plain:
        return found[0]
    return _SPACES.sub(" ", plain).strip()


def _rewrite_commands(plain: str) -> str:
    for _ in range(2):  # twice: a fraction may hold a root, and the reverse
        if not _GROUP_START.search(plain):
            break
        for group, replacement in _GROUPS:
            plain = group.sub(replacement, plain)
    return _COMMAND.sub(_symbol, _SPACING.sub(" ", plain))


def _symbol(command: re.Match[str]) -> str:
    symbol = _SYMBOLS.get(command[1])
    if symbol is None:
        return command[0]
    return f" {symbol} " if symbol in "≥≤≠≈×·÷±→∈⇒" and symbol else symbol
