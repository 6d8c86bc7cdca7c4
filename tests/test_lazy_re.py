"""Expressions that are compiled on first use."""

from __future__ import annotations

import re

import pytest

from abridge.lazy_re import lazy_compile


def test_an_expression_is_compiled_once_when_it_is_first_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled: list[str] = []
    really_compile = re.compile

    def compile_noted(pattern: str, flags: int) -> re.Pattern[str]:
        compiled.append(pattern)
        return really_compile(pattern, flags)

    monkeypatch.setattr(re, "compile", compile_noted)
    word = lazy_compile("[a-z]+", re.IGNORECASE)
    assert compiled == []
    found = word.search("1 One")
    assert found is not None
    assert found[0] == "One"
    assert word.sub("x", "Two 2") == "x 2"
    assert (word.pattern, compiled) == ("[a-z]+", ["[a-z]+"])
