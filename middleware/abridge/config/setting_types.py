"""The base of the tables, the types of single settings, and the message for an invalid one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import GenericAlias
from typing import Annotated, Any, ClassVar, TypeVar, get_args

import httpx
from annotated_types import Unit
from pydantic import (
    AfterValidator,
    BaseModel,
    ByteSize,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_before_validator_function

from abridge.apis.registry import APIS
from abridge.config.field_docs import add_descriptions, document
from abridge.core.language import parse_language
from abridge.errors import SettingsError
from abridge.providers.catalog import PROFILES

REDIS_SCHEMES = (
    *("redis", "rediss", "redis-sentinel", "redis+cluster"),
    *("valkey", "valkeys", "unix"),
)
"""URL schemes of a Redis or Valkey, which can be the store, and hold the ledger."""

SQL_SCHEMES = ("postgresql", "postgres")
"""Those of a database, which can hold the ledger."""

_HOST = re.compile(rb"[\w:%-]{1,63}(?:\.[\w:%-]{1,63})*\.?", re.ASCII)
"""A host's name, encoded by IDNA, or an IP address."""

_HEADER_NAME = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
"""A header name as RFC 9110, section 5.6.2, defines it."""


_SIZE = re.compile(r"\s*+\d++(\.\d++)?\s*+[A-Za-z]*+\s*+", re.ASCII)

T = TypeVar("T")


class Table(BaseModel):
    """A table of settings: immutable, and unknown keys are errors.

    Made in code, an invalid one raises SettingsError, in the words of the command line. What reads
    tables from elsewhere (`model_validate`) raises pydantic's error, which has more to tell.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra=add_descriptions, defer_build=True
    )

    table_path: ClassVar[tuple[str, ...]] = ()
    """Where the table is among all settings, which `Settings` notes."""

    def __init__(self, /, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise SettingsError(explain_error(error, type(self), self.table_path)) from None

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # not within tables

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        document(cls)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Yield what was set alone; the rest is as `help` says."""
        return (pair for pair in super().__repr_args__() if pair[0] in self.model_fields_set)

    @field_validator("*", mode="before")
    @classmethod
    def _spell_bool(cls, value: Any, info: ValidationInfo) -> Any:
        """Spell a boolean out where a number is expected: Python would take true for 1."""
        kind = cls.model_fields[info.field_name or ""].annotation
        kinds = [inner for part in (kind, *get_args(kind)) for inner in (part, *get_args(part))]
        is_number = int in kinds or float in kinds
        return repr(value).lower() if is_number and isinstance(value, bool) else value


def note_places(table: type[Table], path: tuple[str, ...] = ()) -> None:
    """Note in each table within another where it is."""
    for name, field in table.model_fields.items():
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, Table):
                is_listed = part is not field.annotation
                part.table_path = (*path, f"{name}[]" if is_listed else name)
                note_places(part, part.table_path)


def _check_profile(name: str) -> str:
    if name not in PROFILES:
        raise ValueError(f"must be one of {', '.join(sorted(PROFILES))}")
    return name


def _check_base_url(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    if scheme not in ("http", "https") or not separator or not rest.split("/")[0]:
        raise ValueError("must be an http or https address such as http://127.0.0.1:8000/v1")
    if any(mark in rest for mark in "@?#") or not _has_port(rest.split("/")[0]):
        raise ValueError("must be an address without credentials, query, fragment or invalid port")
    if not _has_host(url) or not rest.isprintable() or " " in rest:
        raise ValueError("must be an address with a valid host name or IP address")
    url = url.rstrip("/")
    for path in (*(api.path for api in APIS), "/models"):
        if url.endswith(path):
            raise ValueError(f"must be the address without {path}, which Abridge adds")
    return url


def _has_port(netloc: str) -> bool:
    """Return whether nothing but a valid port follows the host."""
    _, _, port = netloc.rpartition("]")[2].partition(":")
    return port == "" or (port.isdecimal() and int(port) < 1 << 16)


def _has_host(url: str) -> bool:
    """Return whether there is a host that can be looked up."""
    try:
        return _HOST.fullmatch(httpx.URL(url).raw_host) is not None
    except httpx.InvalidURL:
        return False


def _like(pattern: str, requirement: str) -> AfterValidator:
    """Return what accepts values of this form alone. Its error does not repeat them: an address may
    hold a password."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value, re.DOTALL):
            raise ValueError(requirement)
        return value

    return AfterValidator(check)


def _address(schemes: Iterable[str]) -> str:
    return rf"(?:{'|'.join(map(re.escape, schemes))})://.+"


def _check_model_glob(value: str) -> str:
    if not value or value != value.strip():
        raise ValueError("must be a model name or a glob, without spaces around it")
    if "," in value:
        raise ValueError('must be a single glob; write several as a list, such as ["gpt-*", "o3*"]')
    if "[" in value and "]" not in value.partition("[")[2]:
        raise ValueError("must be a glob with a ] for each [")
    return value


def _check_size(value: Any) -> Any:
    """Check a size in words: pydantic reads its beginning alone."""
    if isinstance(value, str) and not _SIZE.fullmatch(value):
        raise PydanticCustomError("byte_size", "no number of bytes")
    return value


SummaryLanguage = Annotated[str, AfterValidator(parse_language)]
"""`auto`, `reasoning` or a language tag."""

ProfileName = Annotated[str, AfterValidator(_check_profile)]

BaseUrl = Annotated[str, AfterValidator(_check_base_url)]

TenantRule = Annotated[
    str, _like(rf"credential|header:\s*{_HEADER_NAME}\s*", "must be credential or header:<name>")
]

StoreAddress = Annotated[
    str,
    _like(
        rf"memory|none|{_address(REDIS_SCHEMES)}",
        "must be memory, none or an address such as redis://127.0.0.1:6379/0",
    ),
]

LedgerAddress = Annotated[
    str,
    _like(
        rf"store|{_address((*REDIS_SCHEMES, *SQL_SCHEMES))}",
        "must be store or an address such as redis://127.0.0.1:6379/0 or "
        "postgresql://127.0.0.1/abridge",
    ),
]

PathGlob = Annotated[str, _like("/.*", "must begin with /, such as /users/*")]

ModelGlob = Annotated[str, AfterValidator(_check_model_glob)]

HostGlob = Annotated[
    str,
    _like(r"[^/:\s]+(?<!\.)", "must be a host name or a glob, without scheme, port and path"),
]

OriginGlob = Annotated[
    str,
    _like(
        r"null|[^/*\s]*+\*[^/\s]*+|[^/:\s]++://[^/\s]++",
        "must be an origin or a glob, without a path, such as https://app.example.com",
    ),
]
"""One that begins with a scheme, or whose first star may match it, and has no path."""

HeaderGlob = Annotated[
    str,
    AfterValidator(lambda value: value.strip().lower()),
    _like(_HEADER_NAME, "must be a header name, in which * matches any characters"),
]

CHARACTERS, TOKENS = Unit("characters"), Unit("tokens")

BYTES, BYTES_PER_SECOND = Unit("bytes"), Unit("bytes a second")


@dataclass(frozen=True)
class _AsBytes:
    """Has a number of bytes accepted in words, too: `"32MiB"`."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return no_info_before_validator_function(_check_size, handler(ByteSize))


@dataclass(frozen=True)
class _AsTuple:
    """Has any sequence accepted, of which a tuple is made."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return handler(GenericAlias(tuple, (*get_args(source), ...)))


Size = Annotated[int, _AsBytes(), Field(gt=0), BYTES]

Several = Annotated[Sequence[T], _AsTuple()]

CENTURY = Field(le=36_525 * 86400.0)  # clocks and stores overflow beyond, as at infinity

Seconds = Annotated[NonNegativeFloat, CENTURY, Unit("seconds")]

PositiveSeconds = Annotated[PositiveFloat, CENTURY, Unit("seconds")]

Characters = Annotated[PositiveInt, CHARACTERS]

Tokens = Annotated[PositiveInt, TOKENS]


def explain_error(
    error: ValidationError, table: type[BaseModel], path: tuple[str | int, ...] = ()
) -> str:
    """Return a line for each mistake in a table: the key, the value it got, the values it takes.
    `path` is the table's own."""
    from abridge.config.mistakes import explain  # noqa: PLC0415 -- seldom needed

    return explain(error, table, path)
