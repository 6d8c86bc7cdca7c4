"""The command line: `abridge serve` and `abridge demo`.

A flag that sets a setting is named in here as in the environment, section and key; its value goes
to the settings as it was typed, so that there is one place which says what is wrong with it.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from abridge import __version__
from abridge.app import create_app
from abridge.configure import load
from abridge.demo.show import demonstrate
from abridge.errors import SettingsError
from abridge.serve import address, listen, run
from abridge.serve import serve as serve_app
from abridge.settings import Settings, SummarizerSettings

LOG = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class Wrong(click.ClickException):
    """The settings are."""

    exit_code = 2


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="abridge", message="%(prog)s %(version)s")
def main() -> None:
    """Live reasoning summaries, in OpenAI's own shape, for every model."""


@main.command()
@click.option(
    "--upstream", metavar="URL", help="The model server, such as http://127.0.0.1:8000/v1."
)
@click.option("--profile", metavar="NAME", help="That server's ways, where they must be told.")
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Settings in TOML.")
@click.option("--host", "server__host", metavar="HOST", help="Where to listen.  [127.0.0.1]")
@click.option("--port", "server__port", metavar="PORT", help="0 is any that is free.  [8400]")
@click.option(
    "--admin-port", "server__admin_port", metavar="PORT", help="Metrics and health alone.  [none]"
)
@click.option(
    "--summary",
    "summary__default",
    metavar="STYLE",
    help="For requests that ask for none: off, auto, concise or detailed.  [off]",
)
@click.option(
    "--summarizer-url", "summarizer__base_url", metavar="URL", help="Where its model is called."
)
@click.option(
    "--summarizer-model",
    "summarizer__model",
    metavar="NAME",
    help="The model that writes summaries.  [none: sentences are extracted]",
)
@click.option(
    "--expose",
    "reasoning__expose",
    metavar="WHAT",
    help="What clients see of reasoning: auto, both, summary, raw or none.  [auto]",
)
def serve(
    upstream: str | None, profile: str | None, config: Path | None, **flags: str | None
) -> None:
    """Stand before a model, and summarize.

    Flags win over the environment (ABRIDGE_SECTION__KEY), which wins over the file.
    """
    try:
        settings = _load(config, nested(upstream, profile, flags))
        app = create_app(settings)
    except SettingsError as error:
        raise Wrong(str(error)) from None
    server = settings.server
    listener = _listen(server.host, server.port)
    admin = None if server.admin_port is None else _listen(server.host, server.admin_port)

    def announce() -> None:
        for line in banner(settings, address(listener), address(admin) if admin else None):
            click.echo(line, err=True)

    logging.basicConfig(format=LOG, level=logging.WARNING)
    logging.getLogger("abridge").setLevel(logging.INFO)
    run(serve_app(app, server, listener, admin, announce))


@main.command()
@click.option("--fast", is_flag=True, help="Hurry, as it does anyway where output is no terminal.")
@click.option("--serve", is_flag=True, help="Keep it running afterwards, to be tried.")
def demo(*, fast: bool, serve: bool) -> None:
    """Watch a scripted model, no AI, be summarized.

    Needs no settings and no network.
    """
    run(demonstrate(fast=fast, keep=serve))


def nested(
    upstream: str | None, profile: str | None, flags: dict[str, str | None]
) -> dict[str, Any]:
    """The flags that were given, as the settings nest them. Raises SettingsError."""
    tables: dict[str, Any] = {}
    for name, value in flags.items():
        if value is not None:
            table, key = name.split("__")
            tables.setdefault(table, {})[key] = value
    if "summarizer" in tables:
        tables["summarizer"]["kind"] = "model"
    if upstream is not None:
        tables["upstreams"] = [{"base_url": upstream, "profile": profile or "auto"}]
    elif profile is not None:
        raise SettingsError("--profile: goes with --upstream; in a file, each upstream has its own")
    return tables


def _load(config: Path | None, flags: dict[str, Any]) -> Settings:
    settings = load(config, flags=flags)
    if not settings.upstreams:
        raise SettingsError(
            "upstreams: got none; takes at least one, by --upstream http://127.0.0.1:8000/v1 or in "
            "the file"
        )
    return settings


def banner(settings: Settings, url: str, admin: str | None) -> Iterator[str]:
    """What runs where, for whoever started it."""
    yield f"abridge {__version__} listens on {url}"
    for upstream in settings.upstreams:
        models = ", ".join(upstream.models)
        profile = f"profile {upstream.profile}"
        yield f"  upstream    {upstream.name}: {upstream.base_url}, models {models}, {profile}"
    yield f"  summarizer  {_summarizer(settings.summarizer)}"
    default = settings.summary.default
    yield f"  summary     {'only where asked for' if default == 'off' else default}"
    yield f"  metrics     {admin or url + '/abridge'}/metrics"


def _summarizer(settings: SummarizerSettings) -> str:
    if settings.kind == "model":
        return f"model {settings.model} at {settings.base_url}"
    if settings.kind == "upstream":
        return "upstream: the request's own model"
    return "extractive: sentences of the reasoning itself, no model"


def _listen(host: str, port: int) -> socket.socket:
    try:
        return listen(host, port)
    except OSError as error:
        cause = str(error.strerror).partition(" (")[0]
        raise click.ClickException(f"cannot listen on {host}:{port}: {cause}") from None


if __name__ == "__main__":
    main()
