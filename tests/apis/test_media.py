"""Images and files as data URLs."""

from __future__ import annotations

import json

import pytest

from abridge.apis.api import UpstreamOptions
from abridge.apis.media import split_data_url
from abridge.apis.registry import UPSTREAM_APIS
from abridge.providers.catalog import PROFILES
from tests.apis.translation import HELLO, responses_request, unfit


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


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("upstream", UPSTREAM_APIS)
def test_an_image_among_instructions_is_sent_or_named(upstream: str, place: int) -> None:
    image = {"type": "input_image", "image_url": "https://a.test/b.png"}
    items = [{"role": "developer", "content": [{"type": "input_text", "text": "Like:"}, image]}]
    items.insert(1 - place, HELLO)
    options = UpstreamOptions(PROFILES["auto"])
    written = UPSTREAM_APIS[upstream].write_request(responses_request(*items), options)
    is_sent = image["image_url"] in json.dumps(written.body)
    assert is_sent or unfit(written) == {f"input[{place}].content[1]": True}
