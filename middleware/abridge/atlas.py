"""The report on provider profiles: `abridge profiles`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from itertools import zip_longest
from typing import Any

from abridge.wire.credential import credential
from abridge.wire.profile import Profile, Refusal, Returns
from abridge.wire.profiles import PROFILES

TITLES = ("profile", "reasoning in", "comes back in", "APIs")
NOTHING = "-"


def table() -> Iterator[str]:
    """Yield a table with one line for each profile."""
    rows = [TITLES, *map(_row, PROFILES.values())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(map(str.ljust, row, widths)).rstrip()


def _row(profile: Profile) -> tuple[str, ...]:
    back = profile.returns.place
    needed = "required" if profile.returns.on_calls else "wanted" if profile.returns.wanted else ""
    where = ", ".join(profile.holds) or NOTHING
    return profile.name, where, f"{back}, {needed}".removesuffix(", "), ", ".join(profile.apis)


def described(profile: Profile) -> Iterator[str]:
    """Yield everything that is known about one profile."""
    yield profile.name
    header, value = (said.decode() for said in credential("…".encode(), profile))
    for title, lines in (
        ("reasoning in", [", ".join(profile.holds) or "nothing that can be read"]),
        ("", _peculiar(profile)),
        ("comes back in", _returns(profile.returns)),
        ("thinking off", [json.dumps(dict(profile.thinking_off))] if profile.thinking_off else []),
        ("effort in", [profile.effort]),
        ("bounded by", [profile.max_tokens]),
        ("refuses", map(_refusal, profile.refuses)),
        ("APIs", [", ".join(profile.apis)]),
        ("key in", [f"{header}: {value}"]),
        ("source", [profile.source]),
    ):
        told = [line for line in lines if line] or ([NOTHING] if title else [])
        for head, line in zip_longest([title], told, fillvalue=""):
            if line:
                yield f"  {head:<14} {line}"


def _peculiar(profile: Profile) -> Iterator[str]:
    if profile.learns:
        yield "what is seen of an upstream is learned"
    if profile.prefilled:
        yield f"the prompt's template opens {profile.tags[0].opening}"
    if profile.summary_is_raw:
        yield "what it calls a summary on Responses is the reasoning itself"


def _returns(returns: Returns) -> Iterator[str]:
    yield returns.place
    if returns.on_calls:
        yield f"required on turns that call tools{', even if empty' if returns.even_empty else ''}"
    elif returns.wanted:
        yield "without it, answers get worse"
    if returns.refuses:
        yield f"refuses {', '.join(returns.refuses)}"


_WHEN = {"always": "", "thinking": ", unless they do not think", "asked": ", asked to think"}


def _refusal(refusal: Refusal) -> str:
    but = f" but {', '.join(refusal.but)}" if refusal.but else ""
    return f"{', '.join(refusal.fields)}: {', '.join(refusal.models)}{but}{_WHEN[refusal.when]}"


def as_json(profiles: Iterable[Profile]) -> str:
    return json.dumps(list(profiles), default=_plain, indent=2, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Convert a profile, or a part of one; `dataclasses.asdict` cannot copy a read-only mapping."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, frozenset):
        return sorted(value)
    return {field.name: getattr(value, field.name) for field in fields(value)}
