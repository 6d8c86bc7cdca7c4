"""The registry of APIs: by path, by name, and in the order in which they are tried."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.registry import APIS, UPSTREAM_APIS, fallbacks, find_api
from abridge.apis.responses.api import RESPONSES
from abridge.apis.token_counters import TOKEN_COUNTERS
from abridge.config.tables import SummarizerSettings
from abridge.config.upstreams import UpstreamSettings
from abridge.providers.profile import ApiName
from abridge.sidecar import page
from tests.end_to_end.translation import turn
from tests.end_to_end.whole_chain import clients, upstreams
from tests.support.pipeline import TRANSLATING_WRITERS
from tests.support.translated import TRANSLATING_READERS


def test_every_api_is_named_wherever_one_has_to_be() -> None:
    """A new one fails here until all of them name it."""
    of_clients, of_upstreams = {api.name for api in APIS}, UPSTREAM_APIS.keys()
    choices = get_args(UpstreamSettings.model_fields["api"].annotation)
    assert set(get_args(ApiName)) == of_upstreams
    assert set(choices) == {"same", "auto", *of_upstreams}
    of_summarizers = set(get_args(SummarizerSettings.model_fields["api"].annotation))
    assert of_summarizers == of_clients  # a summarizer may be asked in its client's API
    assert {api.name for api in APIS if api.counts_tokens_at} <= TOKEN_COUNTERS.keys()


def test_every_api_is_in_the_tables_of_the_tests() -> None:
    """They run it over all that holds for every API."""
    of_clients, of_upstreams = {api.name for api in APIS}, UPSTREAM_APIS.keys()
    assert set(turn.ALL_UPSTREAMS) == upstreams.UPSTREAMS.keys() == of_upstreams
    assert TRANSLATING_READERS.keys() == of_upstreams
    assert turn.PATHS.keys() == clients.CLIENTS.keys() == TRANSLATING_WRITERS.keys() == of_clients


def test_the_page_has_the_titles_of_the_clients_apis() -> None:
    script = (Path(page.__file__).parent / "files" / "exchanges.js").read_text()
    titles = ", ".join(f'{api.name}: "{api.upstream.title}"' for api in APIS)
    assert f"const APIS = {{ {titles} }};" in script


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_fallbacks_are_other_apis_of_upstreams(api: Api) -> None:
    assert api.name not in api.fallbacks
    assert [found.name for found in fallbacks(api)] == list(api.fallbacks)
    assert set(api.fallbacks) <= UPSTREAM_APIS.keys()


def test_openais_apis_fall_back_on_each_other() -> None:
    assert fallbacks(CHAT) == (RESPONSES.upstream,)
    assert fallbacks(RESPONSES) == (CHAT.upstream,)


@pytest.mark.parametrize(
    ("path", "raw_path", "api"),
    [
        ("/v1/chat/completions", "/v1/chat/completions", CHAT),
        ("/v1//responses", "/v1//responses", RESPONSES),
        ("/v1/responses", "/v1/%72esponses", RESPONSES),
        ("/v1/x/../responses", "/v1/x/../responses", RESPONSES),
        ("/v1/responses/resp_1", "/v1/responses/resp_1", None),
        ("/v1/models", "/v1/models", None),
    ],
)
def test_an_endpoint_is_found_however_its_path_is_written(
    path: str, raw_path: str, api: object
) -> None:
    assert find_api(path, raw_path) is api
