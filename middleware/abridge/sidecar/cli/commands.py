"""The command line: `abridge serve`, `check`, `profiles`, `demo`, `keys` and `usage`.

Each command imports what it runs, so that none waits for the modules of another.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from abridge import __version__
from abridge.config.loading import SettingsOrigin, check_secrets
from abridge.errors import SettingsError
from abridge.providers.catalog import PROFILES
from abridge.sidecar.cli.keys import keys
from abridge.sidecar.cli.options import (
    InvalidInput,
    Overview,
    flag_names,
    nest_options,
    one_of,
    with_setting_options,
)
from abridge.sidecar.cli.usage import usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from abridge.sidecar.check.reach import Finding
    from abridge.sidecar.check.run import Check

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=Overview, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="abridge", message="%(prog)s %(version)s")
def main() -> None:
    """Live reasoning summaries, in OpenAI's format, for every model."""


main.add_command(keys)
main.add_command(usage)


@main.command()
@with_setting_options
def serve(upstream: str | None, config: Path | None, **flags: str | None) -> None:
    """Run the proxy and summarize reasoning.

    Flags override environment variables (ABRIDGE_SECTION__KEY), which override the file.
    """
    from abridge.sidecar.cli.serving import run_server

    origin = _find_origin(config, upstream, flags)
    sources = origin.read()
    settings = sources.load_served()
    try:
        check_secrets(settings)
        code = run_server(settings, origin)
    except SettingsError as error:
        raise SettingsError(sources.locate(str(error))) from None
    raise SystemExit(code)


@main.command()
@with_setting_options
@click.option("--probe", "probing", is_flag=True, help="Also send a small request to each API.")
@click.option("--model", metavar="NAME", help="The model to probe.  [the first one listed]")
@click.option(
    "--key-env",
    metavar="VARIABLE",
    help="The variable that holds a client's API key, for upstreams without one in the settings.",
)
@click.option("--json", "as_json", is_flag=True, help="Print only what was found, as JSON lines.")
def check(
    upstream: str | None,
    config: Path | None,
    *,
    as_json: bool,
    probing: bool,
    model: str | None,
    key_env: str | None,
    **flags: str | None,
) -> None:
    """Print the settings in force and check that the servers they name can be reached.

    Exit with 0 if there is no fault, otherwise with 1.
    """
    from abridge.config.effective import effective_toml
    from abridge.sidecar.check.reach import Finding
    from abridge.sidecar.check.run import Check

    show = Finding.as_json if as_json else Finding.__str__
    try:
        settings = _find_origin(config, upstream, flags).read().load_served()
    except SettingsError as error:
        for line in str(error).splitlines():
            click.echo(show(Finding("settings", line, "fault")))
        raise SystemExit(1) from None
    if not as_json:
        click.echo("\n".join([*effective_toml(settings), ""]))
    checks = Check(settings, probing=probing, model=model, key_env=key_env)
    if not asyncio.run(_print_findings(checks, show)):
        raise SystemExit(1)


async def _print_findings(checks: Check, show: Callable[[Finding], str]) -> bool:
    """Print findings as they come; return False if one of them is a fault."""
    ok = True
    async for finding in checks.findings():
        click.echo(show(finding))
        ok = ok and finding.grade != "fault"
    return ok


@main.command()
@click.argument("name", required=False, shell_complete=one_of(PROFILES))
@click.option("--json", "as_json", is_flag=True, help="Print everything, as JSON.")
def profiles(name: str | None, *, as_json: bool) -> None:
    """List the profiles of providers and servers, or print everything about one NAME."""
    from abridge.sidecar.cli import profile_report

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
@click.option("--fast", is_flag=True, help="Run faster, as it does without a terminal.")
@click.option("--serve", is_flag=True, help="Keep it running afterwards, so that you can try it.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="With --serve, the port to listen on.  [any free one]",
)
def demo(*, fast: bool, serve: bool, port: int | None) -> None:
    """Show live summaries of a scripted model's reasoning, without any AI.

    Needs no settings and no network.
    """
    from abridge.sidecar.cli.serving import open_listener
    from abridge.sidecar.demo.show import run_demo
    from abridge.sidecar.server.serve import run

    if port is not None and not serve:
        raise InvalidInput("--port: needs --serve")
    listener = open_listener("127.0.0.1", port or 0)
    run(run_demo(listener, fast=fast, keep_serving=serve))


def _find_origin(
    config: Path | None, upstream: str | None, flags: dict[str, str | None]
) -> SettingsOrigin:
    """Raises SettingsError."""
    command = click.get_current_context().command
    return SettingsOrigin(config, nest_options(upstream, flags), flag_names(command))
