"""The command line: `abridge serve`, `abridge check`, `abridge profiles` and `abridge demo`."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click

from abridge import __version__
from abridge.app import create_app
from abridge.check.effective import effective_toml
from abridge.check.reach import Finding
from abridge.check.run import Check
from abridge.cli import profile_report
from abridge.cli.options import nest_options, with_setting_options
from abridge.config.loading import load_settings
from abridge.config.settings import Settings, SummarizerSettings
from abridge.config.warnings import settings_warnings
from abridge.demo.show import run_demo
from abridge.errors import SettingsError
from abridge.observability.logs import set_up_logging
from abridge.observability.tracing import exporting_spans
from abridge.providers.catalog import PROFILES
from abridge.server.serve import listen, listener_url, run
from abridge.server.serve import serve as serve_app
from abridge.server.workers import shared_metrics, supervise

_log = logging.getLogger(__name__)


class InvalidInput(click.ClickException):
    """Invalid settings or arguments."""

    exit_code = 2


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="abridge", message="%(prog)s %(version)s")
def main() -> None:
    """Live reasoning summaries, in OpenAI's format, for every model."""


@main.command()
@with_setting_options
def serve(upstream: str | None, config: Path | None, **flags: str | None) -> None:
    """Run the proxy, and summarize reasoning.

    Flags win over the environment (ABRIDGE_SECTION__KEY), which wins over the file.
    """
    try:
        settings = _load_settings(config, nest_options(upstream, flags))
        with shared_metrics(settings.server.workers):
            code = _serve(settings)
    except SettingsError as error:
        raise InvalidInput(str(error)) from None
    raise SystemExit(code)


def _serve(settings: Settings) -> int:
    """Return the exit code. Raises SettingsError."""
    exporting_spans(settings)  # to report a missing package once, here, and not from each worker
    server, app = settings.server, create_app(settings)
    listener = _open_listener(server.host, server.port)
    admin_listener = (
        None if server.admin_port is None else _open_listener(server.host, server.admin_port)
    )

    def announce() -> None:
        for line in startup_lines(
            settings,
            listener_url(listener),
            listener_url(admin_listener) if admin_listener else None,
        ):
            print_line(line)
        for warning in settings_warnings(settings):
            print_line(f"  note        {warning}")

    set_up_logging(settings.log)
    print_line = _log_line if settings.log.format == "json" else partial(click.echo, err=True)
    if server.workers > 1:
        return run(supervise(settings, listener, admin_listener, announce))
    run(serve_app(app, settings, listener, admin_listener, announce))
    return 0


@main.command()
@with_setting_options
@click.option("--probe", "probing", is_flag=True, help="Also send a small request to each API.")
@click.option("--model", metavar="NAME", help="The model to probe.  [the first one listed]")
@click.option(
    "--key-env",
    metavar="VARIABLE",
    help="The variable with a client's API key, for upstreams that have none in the settings.",
)
def check(
    upstream: str | None,
    config: Path | None,
    *,
    probing: bool,
    model: str | None,
    key_env: str | None,
    **flags: str | None,
) -> None:
    """Print the settings in force, and check that the servers they name can be reached.

    Exit with 0 if there is no fault, else with 1.
    """
    try:
        settings = _load_settings(config, nest_options(upstream, flags))
    except SettingsError as error:
        click.echo(Finding("settings", str(error), "fault"))
        raise SystemExit(1) from None
    for line in effective_toml(settings):
        click.echo(line)
    click.echo()
    checks = Check(settings, probing=probing, model=model, key_env=key_env)
    if not asyncio.run(_print_findings(checks)):
        raise SystemExit(1)


async def _print_findings(checks: Check) -> bool:
    """Print findings as they come; return False if one of them is a fault."""
    ok = True
    async for finding in checks.findings():
        click.echo(finding)
        ok = ok and finding.grade != "fault"
    return ok


@main.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print everything, as JSON.")
def profiles(name: str | None, *, as_json: bool) -> None:
    """List the profiles of providers and servers, or print everything about one NAME."""
    if name is not None and name not in PROFILES:
        raise InvalidInput(f"NAME: got {name!r:.80}; must be one of {', '.join(sorted(PROFILES))}")
    chosen = list(PROFILES.values()) if name is None else [PROFILES[name]]
    if as_json:
        click.echo(profile_report.profiles_as_json(chosen))
        return
    for line in (
        profile_report.profile_table()
        if name is None
        else profile_report.profile_details(chosen[0])
    ):
        click.echo(line)


@main.command()
@click.option("--fast", is_flag=True, help="Run faster, as without a terminal.")
@click.option("--serve", is_flag=True, help="Keep it running afterwards, so that you can try it.")
def demo(*, fast: bool, serve: bool) -> None:
    """Show live summaries of a scripted model's reasoning, without any AI.

    Needs no settings and no network.
    """
    run(run_demo(fast=fast, keep_serving=serve))


def _load_settings(config: Path | None, flags: dict[str, Any]) -> Settings:
    settings = load_settings(config, flags=flags)
    if not settings.upstreams:
        raise SettingsError(
            "upstreams: none is set; set at least one, with --upstream http://127.0.0.1:8000/v1 "
            "or in the file"
        )
    return settings


def startup_lines(settings: Settings, url: str, admin: str | None) -> Iterator[str]:
    """Yield the lines printed at startup: addresses, upstreams, summarizer, review."""
    server = settings.server
    yield f"abridge {__version__} listens on {url}"
    if server.workers > 1:
        yield f"  workers     {server.workers} processes"
    for upstream in settings.upstreams:
        models = ", ".join(upstream.models)
        profile = f"profile {upstream.profile}"
        api = "" if upstream.api == "same" else f", api {upstream.api}"
        spare = "" if upstream.fallback is None else f", fallback {upstream.fallback}"
        text = f"{upstream.name}: {upstream.base_url}, models {models}, {profile}{api}{spare}"
        yield f"  upstream    {text}"
    yield f"  summarizer  {_describe_summarizer(settings.summarizer)}"
    review = settings.review
    if review.kind != "none":
        flagged = "stop at" if review.on_flag == "stop" else review.on_flag
        rules = f"{flagged} what it flags, {review.on_failure} what it cannot check"
        yield f"  review      {review.kind} at {review.base_url}: {rules}"
    default = settings.summary.default
    yield f"  summary     {'only if requested' if default == 'off' else default}"
    if server.page:
        yield f"  page        {url}/abridge"
    yield f"  metrics     {admin or url + '/abridge'}/metrics"


def _describe_summarizer(settings: SummarizerSettings) -> str:
    if settings.kind == "model":
        return f"model {settings.model} at {settings.base_url}"
    if settings.kind == "upstream":
        return "upstream: the request's own model"
    return "extractive: sentences copied from the reasoning, no model"


def _log_line(line: str) -> None:
    """Log a line instead of printing it, where every line must be JSON."""
    _log.info("%s", " ".join(line.split()))


def _open_listener(host: str, port: int) -> socket.socket:
    try:
        return listen(host, port)
    except OSError as error:
        reason = str(error.strerror).partition(" (")[0]
        raise click.ClickException(f"cannot listen on {host}:{port}: {reason}") from None
