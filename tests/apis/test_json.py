"""Test that JSON is written again as it was spelled."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.apis.json import (
    MAX_DEPTH,
    MAX_PARSED_DEPTH,
    ExactNumber,
    as_integer,
    contains,
    count_values,
    dumps,
    loads,
    loads_exact,
    parse_object,
    without_integers,
)
from abridge.apis.usage import as_count
from abridge.errors import NestedTooDeep
from tests.support.nesting import nested

ODD_NUMBERS = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1E400",
    "-1e999",
    "18446744073709551616",
    "-9223372036854775809",
    "12345678901234567890123",
    "1" * 5000,
    "0.1000000000000000000001",
]


@pytest.mark.parametrize("number", ODD_NUMBERS)
@pytest.mark.parametrize("before", ["", "1,", "0.5,", "123456789012345678901234,", '"\\ud83d",'])
def test_a_number_is_written_as_it_was_spelled(number: str, before: str) -> None:
    text = f'{{"a":[{before}{number},{{"b":{number}}}]}}'.encode()
    assert dumps(loads_exact(text)) == text


def test_a_body_with_a_long_integer_keeps_the_spelling_of_all_its_numbers() -> None:
    text = b"[12345678901234567890123,1.0e5,1E5,1.50,-0.0,1e-7,7,9223372036854775807,1E400]"
    assert dumps(loads_exact(text)) == text


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_any_value_is_written_back(value: object) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    assert dumps(loads_exact(text)) == text


def test_an_exact_number_is_a_float_but_never_a_count() -> None:
    fields = loads_exact(b'{"a":12345678901234567890123,"b":NaN,"c":7}')
    assert fields["a"] + 0 == pytest.approx(1.2345678901234567e22)
    assert math.isnan(fields["b"])
    assert list(map(as_count, fields.values())) == [None, None, 7]


@pytest.mark.parametrize("spelled", [b"7", b"7.0", b"0.7e1", b'"7"'])
def test_a_number_without_a_fraction_is_an_integer_however_it_is_spelled(spelled: bytes) -> None:
    number = as_integer(loads_exact(spelled))
    assert (number, type(number)) == (7, int)
    assert as_count(loads_exact(spelled)) == 7


@pytest.mark.parametrize("spelled", [b"7.5", b"NaN", b"1E400", b'"7.0"', b'"-7"', b'""', b"null"])
def test_any_other_value_is_no_integer(spelled: bytes) -> None:
    assert as_integer(loads_exact(spelled)) is None
    assert as_count(loads_exact(spelled)) is None


def test_exact_numbers_are_equal_if_they_are_spelled_alike() -> None:
    assert ExactNumber("NaN") == ExactNumber("NaN")
    assert ExactNumber("12345678901234567890123") != ExactNumber("12345678901234567890124")
    assert ExactNumber("1.0e5") == 100000
    assert hash(ExactNumber("1.0e5")) == hash(100000)


@pytest.mark.parametrize("before", ["", "\\ud83d", "ü", '\\"'])
def test_half_of_a_surrogate_pair_is_written_as_an_escape(before: str) -> None:
    text = f'{{"k":["{before}\\ud83d",NaN,{{"\\ud83d":1E400}}],"n":12345678901234567890123}}'
    for parse in (loads, loads_exact):
        assert json.loads(dumps(parse(text.encode())["k"][0])) == json.loads(f'"{before}\\ud83d"')
    written = dumps(loads_exact(text.encode()))
    assert written.replace("ü".encode(), b"\\u00fc") == text.replace("ü", "\\u00fc").encode()


def test_an_integer_that_nobody_parsed_may_be_long() -> None:
    assert dumps({"a": [10**30, True]}) == b'{"a":[1000000000000000000000000000000,true]}'


@pytest.mark.parametrize("innermost", [1, "\ud83d", {"\ud83d": 10**30}])
def test_what_is_nested_is_written_down_to_a_depth(innermost: Any) -> None:
    value = nested(MAX_DEPTH - isinstance(innermost, dict), innermost)
    assert json.loads(dumps(value)) == value
    for levels in (300, 1000, 20_000):
        with pytest.raises(NestedTooDeep):
            dumps(nested(levels, innermost))


def test_what_json_cannot_say_is_refused() -> None:
    with pytest.raises(TypeError):
        dumps({"a": object()})


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b'"a"', b"{'a': 1}", b"[" * 100_000])
def test_what_is_no_object_is_none(data: bytes) -> None:
    assert parse_object(data) is None
    assert parse_object(data, loads_exact) is None


@pytest.mark.parametrize("number", [-(1 << 63), (1 << 63) - 512, (1 << 63) - 1, (1 << 64) - 1])
def test_what_fits_in_64_bits_is_an_integer(number: int) -> None:
    (read,) = loads_exact(b"[%d]" % number)
    assert read == number
    assert type(read) is int


JSON_VALUES = st.recursive(
    st.none() | st.integers() | st.text() | st.text("\\\"[]{},'"),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('\\"[{,a'), inner),
)


def count_marks(text: str) -> int:
    """Count, character by character, the brackets and commas that are in no string, and one."""
    count, is_within, is_escaped = 1, False, False
    for char in text:
        if is_escaped:
            is_escaped = False
        elif char == "\\":
            is_escaped = True
        elif char == '"':
            is_within = not is_within
        else:
            count += not is_within and char in "[{,"
    return count


def count_parsed(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count_parsed, inner))


@given(JSON_VALUES, st.integers(1, 9))
def test_values_are_counted_wherever_the_bytes_are_split(value: object, size: int) -> None:
    text = json.dumps(value, ensure_ascii=False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("abridge.apis.json._SLICE", size)
        count = count_values(text.encode(errors="surrogatepass"))
    assert count == count_marks(text)
    assert count >= count_parsed(value)


@given(JSON_VALUES)
def test_what_is_large_is_parsed_as_what_is_small(value: object) -> None:
    data = json.dumps(value).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("abridge.apis.json._SLICE", 1)
        patched.setattr("abridge.apis.json.MAX_CALL", 0)
        large = loads_exact(data)
    assert dumps(large) == dumps(loads_exact(data))


@pytest.mark.parametrize("number", [1, 10**20])
def test_other_threads_have_their_turn_while_something_large_is_parsed(number: int) -> None:
    data = json.dumps([{"number": number}] * 3).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("abridge.apis.json._SLICE", 20)
        patched.setattr("abridge.apis.json.MAX_CALL", 40)
        giving = Mock(side_effect=lambda parsed: parsed)
        patched.setattr("abridge.apis.json._give_way", giving)
        loads_exact(data)
    assert giving.call_count == 3


@given(JSON_VALUES, st.integers(1, 9), st.integers(0, 40))
def test_values_are_counted_only_until_they_are_few_enough(
    value: object, size: int, enough: int
) -> None:
    data = json.dumps([value, "a, [b], {c}"]).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("abridge.apis.json._SLICE", size)
        exact, count = count_values(data), count_values(data, enough)
    assert count == exact or exact <= count <= enough


@pytest.mark.parametrize("size", [1, 5, 20, 1000])
def test_a_pattern_is_found_wherever_the_bytes_are_split(size: int) -> None:
    pattern = re.compile(rb'"(?:signature|abr1\.)"')
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("abridge.apis.json._SLICE", size)
        assert contains(b'{"a": "text", "signature": 1}', pattern)
        assert not contains(b'{"a": "text", \\"signature\\": 1}', pattern)


@given(JSON_VALUES, st.sampled_from(["utf-16", "utf-16-be", "utf-32", "utf-8-sig"]))
def test_no_value_is_overlooked_in_another_encoding(value: object, encoding: str) -> None:
    text = json.dumps([value])
    assert count_values(text.encode(encoding)) >= count_parsed([value])


TOKENS = st.lists(st.integers(0, 10**6) | st.floats(0, 9) | st.none(), max_size=60)


@given(st.lists(st.lists(st.integers(0, 10**6)) | TOKENS | st.text()), st.integers(20, 300))
def test_without_integers_the_rest_is_still_there(lists: list[Any], size: int) -> None:
    text = json.dumps({"input": lists, "model": "m"}).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("abridge.apis.json._SLICE", size)
        rest = loads(without_integers(text))
    assert rest["model"] == "m"
    for before, after in zip(lists, rest["input"], strict=True):
        if isinstance(before, list):
            others = [it for it in before if not isinstance(it, int)]
            assert [it for it in after if not isinstance(it, int)] == others


def test_few_of_many_integers_are_left() -> None:
    text = json.dumps([list(range(300))] * 1000).encode()
    assert count_values(without_integers(text)) < 5_000


@pytest.mark.parametrize("size", [3, 18, 19, 20, 1000])
def test_a_long_number_is_found_wherever_the_bytes_are_split(size: int) -> None:
    text = b'["some text",' + b"9" * 25 + b",7]"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("abridge.apis.json._SLICE", size)
        assert dumps(loads_exact(text)) == text


@pytest.mark.parametrize("parse", [loads, loads_exact])
@pytest.mark.parametrize("value", ["NaN", '"[[["', '"\\ud800"'])  # which orjson rejects, or not
def test_depth_is_limited_alike_whatever_parses(parse: Callable[[bytes], Any], value: str) -> None:
    def listed(levels: int) -> bytes:
        return b"%b%b%b" % (b"[" * levels, value.encode(), b"]" * levels)

    parse(b"[%b]" % b",".join([listed(100)] * 100))
    for levels in (MAX_PARSED_DEPTH + 1, 20_000, 200_000):
        with pytest.raises((ValueError, RecursionError)):
            parse(listed(levels))
