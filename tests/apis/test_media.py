"""Images and files as data URLs."""

from __future__ import annotations

import pytest

from abridge.apis.media import split_data_url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("data:image/png;base64,QUJD", ("image/png", "QUJD")),
        ("DATA:Image/PNG;BASE64,QUJD", ("image/png", "QUJD")),
        ("data:image/png;name=a;base64,QU,JD", ("image/png", "QU,JD")),
        ("data:;base64,QUJD", ("", "QUJD")),
    ],
)
def test_a_data_url_is_split(url: str, expected: tuple[str, str]) -> None:
    assert split_data_url(url) == expected


@pytest.mark.parametrize(
    "url", ["https://a.test/b.png", "data:image/png,QUJD", "data:base64,QUJD", "data:aaa", ""]
)
def test_anything_else_has_no_type(url: str) -> None:
    assert split_data_url(url) == ("", url)
