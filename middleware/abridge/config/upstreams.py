"""The settings of one upstream."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt, field_validator, model_validator

from abridge.apis.effort import LEAST_BUDGET, Effort, EffortLimits, RequestDefaults, Verbosity
from abridge.apis.model_names import ModelRenames
from abridge.config.setting_types import (
    TOKENS,
    BaseUrl,
    HeaderGlob,
    ModelGlob,
    PathGlob,
    PositiveSeconds,
    ProfileName,
    Several,
    Table,
    Tokens,
)
from abridge.providers.catalog import PROFILES

UpstreamName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class FallbackSettings(Table):
    """An upstream that may answer in place of another."""

    upstream: UpstreamName
    """Its name."""
    weight: PositiveFloat | None = None
    """How often it comes first among its neighbours with a weight, in proportion to theirs."""


class UpstreamSettings(Table):
    """An upstream to which requests go. Its tables override the general ones, key by key."""

    name: UpstreamName = "default"
    """Its name in the log, in metrics and in other settings; each upstream needs a unique one."""
    base_url: BaseUrl | None = None
    """Its address, without `/chat/completions` and the like. The proxy needs one; around an
    application there is none."""
    models: Annotated[Several[ModelGlob], Field(min_length=1)] = ("*",)
    """Globs of model names. A request goes to the first upstream with a match, or to the first of
    all if it names no model. If there is only one upstream, it gets every request."""
    rename: dict[str, str] = Field(default_factory=dict)
    """Its model names, by globs of the names that clients use; the first match counts. `{}` in a
    name is replaced by what the glob's `*` matched."""
    fallback: UpstreamName | Several[UpstreamName | FallbackSettings] | None = None
    """The upstreams to try if this one cannot be reached, breaks off before its answer begins, or
    answers 429, 503 or 529: a name, or a list of them in the order to try. Neighbours such as
    `{ upstream = "b", weight = 3 }` share the requests by weight."""
    breaker_failures: PositiveInt = 5
    """Consecutive failures (no connection, no answer, 503, 529) after which it counts as down: a
    request that has a fallback skips it."""
    breaker_seconds: PositiveSeconds = 30.0
    """How long it is skipped. Then single requests try whether it is up again."""
    api: Literal["same", "auto", "chat", "responses", "messages", "gemini", "interactions"] = "auto"
    """The API it speaks. `same`: the client's; `auto`: the client's or, if upstream lacks it (404,
    405), another for ten minutes: Responses and Chat Completions for each other, and either for
    Messages. Around an application, the default is `same`."""
    profile: ProfileName = "auto"
    """The peculiarities of its provider, one of `abridge profiles`. `auto` finds reasoning wherever
    it is, and learns where to send it back."""
    unsupported: Literal["refuse", "drop"] = "refuse"
    """What to do with a field that its API cannot express and that changes the meaning of the
    answer: refuse with a 400 that names the field, or drop it."""
    max_tokens: Tokens = 16384
    """The limit on an answer, for an API that requires one, if the client sets none."""
    effort: Effort | None = None
    """The reasoning effort for requests that set none. Not set: upstream's own default."""
    verbosity: Verbosity | None = None
    """The verbosity for requests that set none. Not set: upstream's own default."""
    effort_max: Effort | None = None
    """The highest reasoning effort that clients may ask for. A higher one is lowered, and the
    response says so in `x-abridge-effort`. Not set: no limit."""
    budget_max: Annotated[int, Field(ge=LEAST_BUDGET), TOKENS] | None = None
    """The most thinking tokens that clients may ask for. A higher number is lowered, and the
    response says so in `x-abridge-budget`. Not set: no limit."""
    api_key_env: str | None = None
    """The environment variable that holds the API key, shared by all clients. Not set: the client's
    own credential may go to upstream, as `credential` says."""
    credential: Literal["client", "none"] | None = None
    """Whether the client's credential is forwarded if there is no `api_key_env`. Not set: only if
    this is the only upstream."""
    forward_headers: Several[HeaderGlob] = ()
    """Globs of further request headers that are forwarded."""
    forward_paths: Several[PathGlob] = ()
    """Globs of further paths that are forwarded with the key of `api_key_env`. All clients share
    what is behind them."""
    summary: dict[str, Any] = Field(default_factory=dict)
    """Keys of the table `summary` that differ for this upstream."""
    reasoning: dict[str, Any] = Field(default_factory=dict)
    """Keys of the table `reasoning` that differ for this upstream."""
    usage: dict[str, Any] = Field(default_factory=dict)
    """Keys of the table `usage` that differ for this upstream."""
    history: dict[str, Any] = Field(default_factory=dict)
    """Keys of the table `history` that differ for this upstream."""

    @property
    def identity(self) -> str:
        """What tells it from any other, and from one of the same name after a change of settings:
        what was found out about it holds for no other."""
        return f"{self.name} {self.profile} {self.base_url}"

    @property
    def fallbacks(self) -> tuple[FallbackSettings, ...]:
        """Its fallbacks, each as a table."""
        listed = (self.fallback,) if isinstance(self.fallback, str) else self.fallback or ()
        return tuple(
            FallbackSettings(upstream=each) if isinstance(each, str) else each for each in listed
        )

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

    def model_post_init(self, _: Any) -> None:
        """Have an application that answers by itself be asked for nothing but what its clients ask
        for, unless it is said otherwise."""
        if self.base_url is None and "api" not in self.model_fields_set:
            object.__setattr__(self, "api", "same")

    @field_validator("rename")
    @classmethod
    def _check_rename(cls, table: dict[str, str]) -> dict[str, str]:
        ModelRenames.parse(table)
        return table

    @model_validator(mode="after")
    def _check_credential(self) -> UpstreamSettings:
        if self.api_key_env is not None and self.credential is not None:
            raise ValueError(
                "credential: must not be set together with api_key_env, which is sent instead"
            )
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
