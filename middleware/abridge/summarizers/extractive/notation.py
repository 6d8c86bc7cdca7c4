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

_ARGUMENT = r"\s?(?:(\w)|\{([^{}]*)\})"
_TEXT = re.compile(r"\\(?:text|mathrm|mathbf|mathbb|operatorname)\{([^{}]*)\}")
_SIGN = re.compile(rf"(\\sqrt|[_^]){_ARGUMENT}")
_FRACTION = re.compile(rf"(?<!\d)\\[dt]?frac(?![A-Za-z]){_ARGUMENT}{_ARGUMENT}")
_GROUP = re.compile(r"(?<!\\)\{([^{}\\]*)\}")
_TERM = re.compile(r"-?[\w.√^]{1,20}")  # needs no brackets as a numerator or an index
_ATOM = re.compile(r"-?\d+(?:\.\d+)?|\w(?:_\w+)?")  # nor as a denominator or an exponent

_SYMBOLS = {"left": "", "right": "", "quad": " "} | dict(
    re.findall(
        r"(\w+) (\S)",
        "ge ≥ geq ≥ le ≤ leq ≤ ne ≠ neq ≠ approx ≈ times × cdot · div ÷ pm ± to → infty ∞ pi π"
        " alpha α beta β theta θ lambda λ epsilon ε Delta Δ in ∈ implies ⇒ ldots … dots …",
    )
)

_COMMAND = re.compile(r"\\([A-Za-z]+)\s?")
_SPACING = re.compile(r"\\[,;!: ]")
_POWER = re.compile(r"\^([23])(?![\d.])")
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
    plain = _COMMAND.sub(_symbol, _SPACING.sub(" ", plain))
    for _ in range(2):  # twice: a fraction may hold a root, and the reverse
        plain = _SIGN.sub(_apply_sign, _TEXT.sub(r"\1", plain))
        plain = _FRACTION.sub(_divide, plain)
    return _GROUP.sub(lambda found: _bracket(found[1], _TERM), plain)


def _apply_sign(found: re.Match[str]) -> str:
    atom = _TERM if found[1] == "_" else _ATOM
    return found[1].replace("\\sqrt", "√") + _bracket(found[2] or found[3], atom)


def _divide(found: re.Match[str]) -> str:
    return f"{_bracket(found[1] or found[2], _TERM)}/{_bracket(found[3] or found[4], _ATOM)}"


def _bracket(argument: str, atom: re.Pattern[str]) -> str:
    return argument if atom.fullmatch(argument) else f"({argument})"


def _symbol(command: re.Match[str]) -> str:
    symbol = _SYMBOLS.get(command[1])
    if symbol is None:
        return command[0]
    return f" {symbol} " if symbol in "≥≤≠≈×·÷±→∈⇒" and symbol else symbol
