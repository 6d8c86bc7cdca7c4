"""The command-line options that set settings.

An option's parameter is named as in the environment, section and key. Its value goes to the
settings as it was typed, so that all validation is in one place.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from abridge.errors import SettingsError

Command = Callable[..., None]

SETTING_OPTIONS = (
    click.option(
        "--upstream", metavar="URL", help="The model server, such as http://127.0.0.1:8000/v1."
    ),
    click.option("--profile", metavar="NAME", help="That server's ways, where they must be told."),
    click.option(
        "--api",
        metavar="NAME",
        help="What it speaks: same, auto, chat, responses or messages.  [same: what clients speak]",
    ),
    click.option(
        "--config", type=click.Path(path_type=Path), metavar="FILE", help="Settings in TOML."
    ),
    click.option("--host", "server__host", metavar="HOST", help="Where to listen.  [127.0.0.1]"),
    click.option("--port", "server__port", metavar="PORT", help="0 is any that is free.  [8400]"),
    click.option(
        "--admin-port",
        "server__admin_port",
        metavar="PORT",
        help="Metrics and health alone.  [none]",
    ),
    click.option(
        "--workers", "server__workers", metavar="N", help="How many processes serve.  [1]"
    ),
    click.option(
        "--page",
        "server__page",
        is_flag=True,
        default=None,
        help="Show it at work, on a page at /abridge.",
    ),
    click.option("--log-format", "log__format", metavar="NAME", help="text or json.  [text]"),
    click.option(
        "--log-requests",
        "log__requests",
        is_flag=True,
        default=None,
        help="Log a line for each request.",
    ),
    click.option(
        "--summary",
        "summary__default",
        metavar="STYLE",
        help="For requests that ask for none: off, auto, concise or detailed.  [off]",
    ),
    click.option(
        "--summarizer-url", "summarizer__base_url", metavar="URL", help="Where its model is called."
    ),
    click.option(
        "--summarizer-model",
        "summarizer__model",
        metavar="NAME",
        help="The model that writes summaries.  [none: sentences are extracted]",
    ),
    click.option(
        "--expose",
        "reasoning__expose",
        metavar="WHAT",
        help="What clients see of reasoning: auto, both, summary, raw or none.  [auto]",
    ),
)


def with_setting_options(command: Command) -> Command:
    for option in reversed(SETTING_OPTIONS):
        command = option(command)
    return command


UPSTREAM_OPTIONS = ("profile", "api")


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
        raise SettingsError(f"--{name}: goes with --upstream; in a file, each upstream has its own")
    return tables
