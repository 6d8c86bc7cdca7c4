"""The settings of one upstream."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, PositiveInt, field_validator, model_validator

from abridge.apis.defaults import Effort, RequestDefaults, Verbosity
from abridge.apis.effort_limits import LEAST_BUDGET, EffortLimits
from abridge.apis.model_names import ModelRenames
from abridge.config.setting_types import BaseUrl, HeaderGlob, PathGlob, ProfileName, Table
from abridge.providers.catalog import PROFILES


class UpstreamSettings(Table):
    """One upstream. Its tables override the general ones, key by key."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")] = "default"
    base_url: BaseUrl | None = None  # required by the proxy; mounted, there is none
    models: Annotated[tuple[str, ...], Field(min_length=1)] = ("*",)  # globs of model names
    rename: dict[str, str] = Field(default_factory=dict)
    """Its names of models, by globs of those that clients say: the first that matches counts. `{}`
    in a name is what the glob's `*` matched."""
    fallback: str | None = None
    """The name of the upstream that is asked next where this one cannot be reached, or answers 429,
    503 or 529. A request moves on once at most."""
    api: Literal["same", "auto", "chat", "responses", "messages", "gemini"] = "same"
    """The API it speaks: `same` is the client's; `auto` the client's, unless upstream turns out not
    to have it."""
    profile: ProfileName = "auto"
    unsupported: Literal["refuse", "drop"] = "refuse"  # for what its API cannot express
    max_tokens: PositiveInt = 16384  # for an API that requires a bound, if the client gives none
    effort: Effort | None = None  # if the client gives none
    verbosity: Verbosity | None = None  # if the client gives none
    effort_max: Effort | None = None  # the most that clients may ask for
    budget_max: Annotated[int, Field(ge=LEAST_BUDGET)] | None = None
    """The most tokens of thinking that clients may ask for."""
    api_key_env: str | None = None  # the variable that holds the key it is called with
    credential: Literal["client", "none"] | None = None
    """Whether the client's credential is forwarded where there is no `api_key_env`. None: it is if
    this is the only upstream."""
    forward_headers: tuple[HeaderGlob, ...] = ()
    """Globs of further request headers that are forwarded."""
    forward_paths: tuple[PathGlob, ...] = ()
    """Globs of further paths that are forwarded with the key of `api_key_env`. What is behind them
    belongs to all clients alike."""
    summary: dict[str, Any] = Field(default_factory=dict)
    reasoning: dict[str, Any] = Field(default_factory=dict)
    usage: dict[str, Any] = Field(default_factory=dict)
    history: dict[str, Any] = Field(default_factory=dict)

    @property
    def request_defaults(self) -> RequestDefaults:
        return RequestDefaults(self.effort, self.verbosity)

    @property
    def effort_limits(self) -> EffortLimits:
        return EffortLimits(self.effort_max, self.budget_max)

    @property
    def changes_requests(self) -> bool:
        """True if its settings change requests that nothing else does."""
        limits_or_names = self.rename or self.effort_max or self.budget_max
        return bool(limits_or_names) or self.request_defaults != RequestDefaults()

    @property
    def shares_key(self) -> bool:
        """True if all clients are one and the same to it, since they share Abridge's key."""
        return self.api_key_env is not None and self.base_url is not None

    def takes_client_credential(self, *, is_only: bool) -> bool:
        if self.api_key_env is None and self.credential is None:
            return is_only
        return self.credential == "client"

    @field_validator("rename")
    @classmethod
    def _check_rename(cls, table: dict[str, str]) -> dict[str, str]:
        ModelRenames.parse(table)
        return table

    @model_validator(mode="after")
    def _check_credential(self) -> UpstreamSettings:
        if self.api_key_env is not None and self.credential is not None:
            raise ValueError("credential: must be left out with api_key_env, which is sent instead")
        return self

    @model_validator(mode="after")
    def _check_effort(self) -> UpstreamSettings:
        speaks_chat = self.api in ("same", "auto", "chat")
        if speaks_chat and self.request_defaults.has_unsupported_effort(PROFILES[self.profile]):
            raise ValueError(
                f"effort: profile {self.profile!r} has no field for it on Chat Completions"
            )
        if self.effort is not None and not self.effort_limits.allows(self.effort):
            raise ValueError("effort: must not be above effort_max")
        return self
