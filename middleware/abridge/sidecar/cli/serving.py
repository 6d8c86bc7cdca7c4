"""`abridge serve`: open the sockets, say what is served, and run the server."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from errno import EACCES, EADDRINUSE
from functools import partial
from itertools import chain
from urllib.parse import urlsplit

import click

from abridge import __version__
from abridge.config.exposure import hides_raw
from abridge.config.loading import SettingsOrigin
from abridge.config.settings import Settings
from abridge.config.tables import SummarizerSettings
from abridge.config.warnings import settings_warnings
from abridge.errors import SettingsError
from abridge.http.forward_proxy import find_proxy
from abridge.observability.logs import set_up_logging
from abridge.observability.tracing import exporting_spans
from abridge.sidecar.app import create_app
from abridge.sidecar.client_keys.file import keys_notes
from abridge.sidecar.server.metrics_files import shared_metrics
from abridge.sidecar.server.serve import listen, listener_url, run
from abridge.sidecar.server.serve import serve as serve_app

_log = logging.getLogger(__name__)


def run_server(settings: Settings, origin: SettingsOrigin) -> int:
    """Serve until a signal comes; return the exit code. `origin` is where the settings are read
    again. Raises SettingsError."""
    with shared_metrics(settings.server.workers):
        return _run(settings, origin)


def _run(settings: Settings, origin: SettingsOrigin) -> int:
    exporting_spans(settings)  # to report a missing package once, here, and not from each worker
    list(_proxy_lines(settings))  # to report a wrong variable now
    server, app = settings.server, create_app(settings)
    listener = open_listener(server.host, server.port)
    admin_listener = (
        None
        if server.admin_port is None
        else open_listener(server.host, server.admin_port, "--admin-port")
    )

    def announce() -> None:
        for line in startup_lines(
            settings,
            listener_url(listener),
            listener_url(admin_listener) if admin_listener else None,
        ):
            print_line(line)
        for warning in chain(settings_warnings(settings), keys_notes(settings)):
            print_line(f"  note        {warning}")

    set_up_logging(settings.log)
    print_line = _log_line if settings.log.format == "json" else partial(click.echo, err=True)
    if server.workers > 1:
        from abridge.sidecar.server.workers import supervise  # noqa: PLC0415 -- seldom needed

        return run(supervise(settings, origin, listener, admin_listener, announce))
    with exporting_spans(settings):
        run(serve_app(app, origin, listener, admin_listener, announce))
    return 0


def startup_lines(settings: Settings, url: str, admin: str | None) -> Iterator[str]:
    """Yield the lines printed at startup: addresses, upstreams, summarizer, review."""
    server = settings.server
    yield f"abridge {__version__} listens on {url}"
    if server.workers > 1:
        yield f"  workers     {server.workers} processes; limits apply to each"
    for upstream in settings.upstreams:
        models = ", ".join(upstream.models)
        profile = f"profile {upstream.profile}"
        api = "" if upstream.api == "auto" else f", api {upstream.api}"
        spares = ", ".join(each.upstream for each in upstream.fallbacks)
        spare = f", fallback {spares}" if spares else ""
        text = f"{upstream.name}: {upstream.base_url}, models {models}, {profile}{api}{spare}"
        yield f"  upstream    {text}"
    yield f"  summarizer  {_describe_summarizer(settings.summarizer)}"
    yield from _proxy_lines(settings)
    if any(map(hides_raw, settings.routes)):
        yield "  reasoning   hidden from clients"
    review = settings.review
    if review.kind != "none":
        flagged = "stop at" if review.on_flag == "stop" else review.on_flag
        rules = f"{flagged} what it flags, {review.on_failure} what it cannot check"
        yield f"  review      {review.kind} at {review.base_url}: {rules}"
    default = settings.summary.default
    yield f"  summary     {'only if requested' if default == 'off' else default}"
    if server.keys_file is not None:
        yield f"  keys        {server.keys_file}"
    if server.page:
        yield f"  page        {url}/abridge"
    yield f"  metrics     {admin or url + '/abridge'}/metrics"


def _proxy_lines(settings: Settings) -> Iterator[str]:
    """Yield a line for each address that is reached by a proxy. Raises SettingsError."""
    addresses = [upstream.base_url for upstream in settings.upstreams]
    addresses += [settings.summarizer.base_url, settings.review.base_url]
    for address in dict.fromkeys(filter(None, addresses)):
        try:
            proxy = find_proxy(address)
        except ValueError as error:
            raise SettingsError(str(error)) from None
        if proxy is not None:
            yield f"  proxy       {proxy.url}, to {urlsplit(address).hostname}"


def _describe_summarizer(settings: SummarizerSettings) -> str:
    if settings.kind == "model":
        return f"model {settings.model} at {settings.base_url}"
    if settings.kind == "upstream":
        return "upstream: the request's own model"
    return "extractive: sentences copied from the reasoning, no model"


def _log_line(line: str) -> None:
    """Log a line instead of printing it, where every line must be JSON."""
    _log.info("%s", " ".join(line.split()))


def open_listener(host: str, port: int, flag: str = "--port") -> socket.socket:
    """Raises click.ClickException, which names the flag that may help."""
    try:
        return listen(host, port)
    except OSError as error:
        reason = str(error.strerror).partition(" (")[0]
        advice = "--host must be an address of this host"
        if error.errno in (EADDRINUSE, EACCES):
            advice = f"set another port with {flag}"
        text = f"cannot listen on {host}:{port}: {reason}; {advice}"
        raise click.ClickException(text) from None
