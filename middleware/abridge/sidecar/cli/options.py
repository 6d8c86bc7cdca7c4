"""The command-line options that set settings, and what commands have in common.

An option's parameter is named as in the environment, section and key. Its value goes to the
settings as it was typed, so that all validation is in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import IO, Any, get_args

import click
from pydantic import BaseModel

from abridge.apis.registry import UPSTREAM_APIS
from abridge.config.tables import LogSettings, ReasoningSettings, SummarySettings
from abridge.config.upstreams import UpstreamSettings
from abridge.core.styles import STYLES
from abridge.errors import SettingsError
from abridge.providers.catalog import PROFILES


class InvalidInput(click.ClickException):
    """Invalid settings or arguments, a line for each mistake."""

    exit_code = 2

    def show(self, file: IO[str] | None = None) -> None:
        for line in self.message.splitlines():
            click.echo(f"Error: {line}", file=file, err=file is None)


def parse_time(flag: str, text: str, forms: str = "") -> datetime:
    """Parse a day or time, which is UTC unless it says otherwise. Raises InvalidInput, which also
    names other forms that the flag takes."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"{flag}: got {text!r:.80}; must be a day or a time, such as 2027-01-31 or "
            f"2027-01-31T12:00:00Z{forms}"
        ) from None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


def text_columns(rows: Sequence[Sequence[str]], *, numbers: bool = False) -> Iterator[str]:
    """Yield a line for each row. With `numbers`, all columns but the first are aligned right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    align = str.rjust if numbers else str.ljust
    for first, *others in rows:
        yield "  ".join((first.ljust(widths[0]), *map(align, others, widths[1:]))).rstrip()


class Overview(click.Group):
    """A group whose help lists each command with all of its first paragraph: click cuts it. What is
    wrong with settings is told as invalid input."""

    group_class = type

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except SettingsError as error:
            raise InvalidInput(str(error)) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        helps = {name: self.commands[name].help or "" for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl([(name, text.split("\n\n")[0]) for name, text in helps.items()])


Command = Callable[..., None]

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def one_of(values: Iterable[str]) -> Complete:
    """Have a shell complete one of these. Whether it is one of them is for the settings to say."""
    return lambda _context, _option, typed: [value for value in values if value.startswith(typed)]


def choices(table: type[BaseModel], key: str) -> Complete:
    """The same for the values of a setting."""
    return one_of(get_args(table.model_fields[key].annotation))


def with_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return what adds these options to a command, in their order."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


def file_option(flag: str, text: str) -> Callable[[Command], Command]:
    return click.option(flag, type=click.Path(path_type=Path), metavar="FILE", help=text)


def _value(
    flag: str, parameter: str, metavar: str, text: str, complete: Complete | None = None
) -> Callable[[Command], Command]:
    return click.option(flag, parameter, metavar=metavar, help=text, shell_complete=complete)


def _switch(flag: str, parameter: str, text: str) -> Callable[[Command], Command]:
    return click.option(flag, parameter, is_flag=True, default=None, help=text)


_PROFILE = "Its kind, one of `abridge profiles`.  [auto]"

_API = f"Its API: auto, same (as the client's), {', '.join(UPSTREAM_APIS)}.  [auto]"

_ADMIN_PORT = "A separate port for metrics and health.  [none]"

_PAGE = "Serve a page at /abridge that shows the latest requests."

_STYLE = f"The style for requests that name none: off, {', '.join(STYLES)}.  [off]"

_EXPOSE = "What clients see of the reasoning: auto, both, summary, raw or none.  [auto]"

_STYLES, _EXPOSED = choices(SummarySettings, "default"), choices(ReasoningSettings, "expose")

with_setting_options = with_options(
    _value("--upstream", "upstream", "URL", "The model server, such as http://127.0.0.1:8000/v1."),
    _value("--profile", "profile", "NAME", _PROFILE, one_of(PROFILES)),
    _value("--api", "api", "NAME", _API, choices(UpstreamSettings, "api")),
    file_option("--config", "The settings file, in TOML."),
    _value("--host", "server__host", "HOST", "The address to listen on.  [127.0.0.1]"),
    _value("--port", "server__port", "PORT", "The port to listen on; 0 for any free one.  [8400]"),
    _value("--admin-port", "server__admin_port", "PORT", _ADMIN_PORT),
    _value("--workers", "server__workers", "N", "The number of processes that serve.  [1]"),
    _switch("--page", "server__page", _PAGE),
    _value(
        "--log-format",
        "log__format",
        "NAME",
        "The format of the log: text or json.  [text]",
        choices(LogSettings, "format"),
    ),
    _switch("--log-requests", "log__requests", "Log a line for each request."),
    _value("--summary", "summary__default", "STYLE", _STYLE, _STYLES),
    _value(
        "--summarizer-url",
        "summarizer__base_url",
        "URL",
        "The address of the model that writes summaries.",
    ),
    _value(
        "--summarizer-model",
        "summarizer__model",
        "NAME",
        "The name of that model.  [none: sentences are copied]",
    ),
    _value("--expose", "reasoning__expose", "WHAT", _EXPOSE, _EXPOSED),
)


UPSTREAM_OPTIONS = ("profile", "api")

UPSTREAM_KEYS = {
    "upstreams": "--upstream",
    "upstreams[0]": "--upstream",
    "upstreams[0].base_url": "--upstream",
    **{f"upstreams[0].{name}": f"--{name}" for name in UPSTREAM_OPTIONS},
}
"""The flags that set keys of the upstream."""


def nest_options(upstream: str | None, options: dict[str, str | None]) -> dict[str, Any]:
    """Return the options that were given, nested like the settings. Raises SettingsError."""
    upstream_table = {
        name: value for name in UPSTREAM_OPTIONS if (value := options.pop(name, None)) is not None
    }
    tables: dict[str, Any] = {}
    for name, value in options.items():
        if value is not None:
            table, key = name.split("__")
            tables.setdefault(table, {})[key] = value
    if "summarizer" in tables:
        tables["summarizer"]["kind"] = "model"
    if upstream is not None:
        tables["upstreams"] = [{"base_url": upstream, **upstream_table}]
    elif upstream_table:
        name = next(iter(upstream_table))
        raise SettingsError(f"--{name}: needs --upstream; in a file, set it for each upstream")
    return tables


def flag_names(command: click.Command) -> dict[str, str]:
    """Return a command's flags by the settings that they set."""
    named = {(option.name or "").replace("__", "."): option.opts[0] for option in command.params}
    return {**{key: flag for key, flag in named.items() if "." in key}, **UPSTREAM_KEYS}
