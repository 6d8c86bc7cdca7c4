"""Nothing takes time out of proportion to a text.

Every regular expression of the package is fed with repeated beginnings of itself, and so is every
function on text, with the tags of thinking besides. It is the one test that measures time: CPU time
only, and how that grows, so that it does not depend on the machine.
"""

from __future__ import annotations

import gc
import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from abridge.providers.profile import TAGS, Tag
from abridge.stages.tags import TagSplitter
from abridge.summarizers.extractive.titles import asian, english, european
from abridge.summarizers.extractive.titles.patterns import Pattern
from tests.support.growth import Text, grows_too_much
from tests.support.matrix import share_of
from tests.support.package import TextFunction, find_functions, find_patterns, folders, in_folder
from tests.support.pattern_texts import texts_for

_LINES = "lines of at most MAX_LINE_CHARS"
_SENTENCES = "sentences of at most MAX_SENTENCE_CHARS"
_TITLES = "titles, and words of the MAX_READ_CHARS of a sentence that are read"
_OWN = "what the package itself has written"
_SETTINGS = "what the settings say, once at the start"
_EXTRACTIVE = "abridge.summarizers.extractive"

TITLES = {
    f"{module.__name__}.{name}"
    for module in (asian, english, european)
    for name, each in vars(module).items()
    if isinstance(each, tuple) and isinstance(each[0], Pattern)
} | {f"{_EXTRACTIVE}.titles.languages.LANGUAGES"}
"""The expressions that look for titles."""

BOUNDED = {
    "abridge.apis.api.UpstreamApi.endpoint": _OWN,
    "abridge.stages.tag_forms._form": _OWN,
    "abridge.providers.profile.nested_field": _SETTINGS,
    "abridge.stages.json_tokens._BRACKETS": "whole tokens, in which each string ends",
    "abridge.config.warnings._ONE_OF_SEVERAL": _SETTINGS,
    "abridge.http.hosts.is_allowed_host": "globs of the settings, and the host of a head",
    "abridge.observability.spending._ModelPrices.matches": "globs of the settings, and a name",
    "abridge.sidecar.proxy.response_heads.ResponseHeads._may_pass": _SETTINGS,
    "abridge.summarizers.checks.Checks._show": _SENTENCES,
    "abridge.summarizers.checks._SENTENCE_END": _SENTENCES,
    "abridge.summarizers.cleaning.CONSTRUCTS": "texts in which MAX_URL and the like bound them",
    "abridge.summarizers.model.languages.language_name": "a tag of a language, which is short",
    "abridge.summarizers.constructs.beginnings": _OWN,
    f"{_EXTRACTIVE}.blocks._CODE": _LINES,
    f"{_EXTRACTIVE}.privacy.RULES": _SENTENCES,
    f"{_EXTRACTIVE}.privacy._CODE": _SENTENCES,
    f"{_EXTRACTIVE}.titles.make._TOPIC": _TITLES,
    **dict.fromkeys(TITLES, _TITLES),
    "abridge.summarizers.form._BOLD": "a text that grows by characters until it is decided",
}
"""What is given nothing longer than this."""

SHARE = 24
"""Of so many texts of a function or an expression an ordinary run tries one."""

PLAIN_PIECES = "a", "a ", "A. ", "\n", " ", '"', "\\", "{", "[", "<", "`", "\r", "1,", "data: a\n\n"
"""Pieces of any text: words, sentences, lines, and what begins something in JSON, in code and in a
stream of events."""


BLOCKS = tuple(
    text for tag in TAGS for text in (tag.opening, tag.closing, f"{tag.opening}x{tag.closing}y")
)
"""Blocks of thinking, and halves of them."""


@pytest.fixture(autouse=True)
def _no_garbage_is_collected() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


by_folder = pytest.mark.parametrize("folder", folders())
"""What is tested is looked for by the tests: whoever collects them does not wait for it."""


@by_folder
def test_a_regular_expression_takes_time_in_proportion_to_its_text(folder: str) -> None:
    slow = (
        (used.name, method, text)
        for used in in_folder(folder, find_patterns())
        if used.name not in BOUNDED
        for method in used.methods
        for text in share_of(texts_for(used.pattern), used.name, SHARE)
        if grows_too_much(_calling(used.pattern, method), text)
    )
    assert next(slow, None) is None


def _calling(pattern: re.Pattern[Any], method: str) -> Callable[[str], object]:
    def call(text: str) -> object:
        given = text.encode() if isinstance(pattern.pattern, bytes) else text
        found = getattr(pattern, method)(given)
        return deque(found, maxlen=0) if method == "finditer" else found

    return call


@by_folder
def test_a_function_takes_time_in_proportion_to_its_text(folder: str) -> None:
    slow = (
        (function.name, text)
        for function in in_folder(folder, find_functions())
        if function.name not in BOUNDED
        for text in share_of(list(_texts_of(function)), function.name, SHARE)
        if grows_too_much(function.call, text)
    )
    assert next(slow, None) is None


@pytest.mark.parametrize("tag", TAGS, ids=lambda tag: tag.opening)
def test_nor_does_a_text_of_many_blocks_once_it_is_long(tag: Tag) -> None:
    """To copy the rest of a text for each block shows in long texts only."""

    def split(text: str) -> object:
        return TagSplitter((tag,)).feed(text)

    text = Text("", f"{tag.opening}x{tag.closing}")
    assert not grows_too_much(split, text, (256 << 10, 1 << 20))


def test_nothing_is_left_out_that_is_not_there() -> None:
    names = {each.name for each in (*find_patterns(), *find_functions())}
    assert names >= BOUNDED.keys() - TITLES  # languages have expressions in common


def _texts_of(function: TextFunction) -> Iterator[Text]:
    for piece in dict.fromkeys([*PLAIN_PIECES, *BLOCKS, *function.constants]):
        yield Text("", piece)
    for pattern in function.patterns:
        yield from texts_for(pattern)
