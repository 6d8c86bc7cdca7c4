"""The settings of a review: what checks each part of a summary before it is shown."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, model_validator

from abridge.config.setting_types import BaseUrl, PositiveSeconds, Table

MODERATIONS_PATH = "/moderations"

EXTRACT_UNREVIEWED = "'extract' would show sentences that no review has seen; must be omit or fail"


def _check_no_path(url: str) -> str:
    if url.endswith(MODERATIONS_PATH):
        raise ValueError(f"must be the address without {MODERATIONS_PATH}, which Abridge adds")
    return url


class ReviewSettings(Table):
    """The review of each complete part before a word of it is shown."""

    kind: Literal["none", "moderations"] = "none"
    """What checks each part: nothing, or `moderations`, an endpoint that speaks OpenAI's
    moderations API. If you mount Abridge, you may pass a review in Python to the middleware
    instead."""
    base_url: Annotated[BaseUrl, AfterValidator(_check_no_path)] | None = None
    """The address of the endpoint, without `/moderations`."""
    model: str | None = None
    """The model that judges. Not set: the server's own default."""
    api_key_env: str | None = None
    """The environment variable that holds the API key. Not set: no key is sent."""
    on_flag: Literal["withhold", "stop"] = "withhold"
    """`withhold` leaves out a flagged part; `stop` also leaves out all later parts of its
    response."""
    on_failure: Literal["show", "withhold"] = "withhold"
    """What happens to a part that cannot be checked."""
    timeout: PositiveSeconds = 3.0
    """How long the check of one part may take."""

    @model_validator(mode="after")
    def _check_complete(self) -> ReviewSettings:
        if self.kind == "moderations" and self.base_url is None:
            raise ValueError("kind = 'moderations' needs base_url")
        return self
