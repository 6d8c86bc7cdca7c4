"""The report on provider profiles: `abridge profiles`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from itertools import zip_longest
from typing import Any

from abridge.apis.credentials import credential_header
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import Profile, ReasoningReturn, RejectedFields
from abridge.sidecar.cli.options import text_columns

HEADINGS = ("profile", "reasoning in", "sent back in", "APIs")

EMPTY = "-"


def profile_table() -> Iterator[str]:
    """Yield a table with one line for each profile."""
    yield from text_columns([HEADINGS, *map(_table_row, PROFILES.values())])


def _table_row(profile: Profile) -> tuple[str, ...]:
    returned_in = profile.returns.place
    necessity = (
        "required"
        if profile.returns.required_on_calls
        else "wanted"
        if profile.returns.wanted
        else ""
    )
    fields_read = ", ".join(profile.reasoning_in) or EMPTY
    return (
        profile.name,
        fields_read,
        f"{returned_in}, {necessity}".removesuffix(", "),
        ", ".join(profile.apis),
    )


def profile_details(profile: Profile) -> Iterator[str]:
    """Yield everything that is known about one profile."""
    yield profile.name
    header, value = (part.decode() for part in credential_header("…".encode(), profile))
    for title, lines in (
        ("reasoning in", [", ".join(profile.reasoning_in) or "no readable field"]),
        ("", _describe_quirks(profile)),
        ("sent back in", _describe_return(profile.returns)),
        ("thinking off", [json.dumps(dict(profile.thinking_off))] if profile.thinking_off else []),
        ("effort in", [profile.effort_field]),
        ("token limit in", [profile.max_tokens_field]),
        ("rejects", map(_describe_rejection, profile.rejects)),
        ("APIs", [", ".join(profile.apis)]),
        ("key in", [f"{header}: {value}"]),
        ("source", [profile.source]),
    ):
        shown_lines = [line for line in lines if line] or ([EMPTY] if title else [])
        for head, line in zip_longest([title], shown_lines, fillvalue=""):
            if line:
                yield f"  {head:<14} {line}"


def _describe_quirks(profile: Profile) -> Iterator[str]:
    if profile.learns:
        yield "learned from what the upstream sends"
    if profile.prefilled:
        yield f"the prompt template opens {profile.tags[0].opening}"
    if profile.summary_is_raw:
        yield "its summaries on Responses are raw reasoning"
    if profile.summarized_models:
        yield f"already a summary: {', '.join(profile.summarized_models)}"
    if profile.makes_summaries:
        yield "its summaries are written for readers"


def _describe_return(returns: ReasoningReturn) -> Iterator[str]:
    yield returns.place
    if returns.required_on_calls:
        empty = ", even if empty" if returns.required_even_empty else ""
        yield f"required on turns that call tools{empty}"
    elif returns.wanted:
        yield "without it, answers get worse"
    if returns.rejects:
        yield f"rejects {', '.join(returns.rejects)}"


_REJECT_CONDITIONS = {
    "always": "",
    "thinking": ", unless thinking is off",
    "asked": ", if thinking is requested",
}


def _describe_rejection(rejection: RejectedFields) -> str:
    exceptions = f" except {', '.join(rejection.except_models)}" if rejection.except_models else ""
    condition = _REJECT_CONDITIONS[rejection.when]
    return f"{', '.join(rejection.fields)}: {', '.join(rejection.models)}{exceptions}{condition}"


def profiles_as_json(profiles: Iterable[Profile]) -> str:
    return json.dumps(list(profiles), default=_to_jsonable, indent=2, ensure_ascii=False)


def _to_jsonable(value: Any) -> Any:
    """Convert a profile, or a part of one; `dataclasses.asdict` cannot copy a read-only mapping."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, frozenset):
        return sorted(value)
    return {field.name: getattr(value, field.name) for field in fields(value)}
