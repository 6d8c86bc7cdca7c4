"""Test compose.yaml: its files exist and its services reach each other."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from abridge.config.loading import load_settings
from abridge.config.settings import Settings
from abridge.http.hosts import is_allowed_host
from abridge.sidecar.cli.options import nest_options
from abridge.sidecar.demo.model import scripted_model
from abridge.sidecar.server.serve import CANCEL_SECONDS
from tests.deploy.dockerfile import ROOT, environment

DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


@pytest.fixture
def settings() -> Settings:
    """Return the settings in force in the container if no upstream is named."""
    abridge = SERVICES["abridge"]
    command, flag, upstream, *others = abridge["command"]
    assert (command, flag, others) == ("serve", "--upstream", [])
    given = re.fullmatch(r"\$\{UPSTREAM:-(.*)\}", upstream)
    assert given
    return load_settings(
        None, {**environment(), **abridge["environment"]}, nest_options(given[1], {})
    )


def mounts(service: str) -> dict[str, str]:
    """Return a container's mounts: path in the container to source."""
    volumes = [volume.split(":") for volume in SERVICES[service]["volumes"]]
    return {there: here for here, there, *_ in volumes if here.startswith(".")}


def test_every_mounted_and_built_path_exists() -> None:
    for service in ("prometheus", "grafana"):
        assert mounts(service)
        for here in mounts(service).values():
            assert (DEPLOY / here).exists(), here
    build = SERVICES["abridge"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()


def test_ports_are_published_on_loopback_and_privileges_are_dropped() -> None:
    for service in SERVICES.values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert re.search(r":v?\d+\.\d+\.\d+$", service["image"])


def test_abridge_listens_where_it_is_published_and_has_time_to_drain(settings: Settings) -> None:
    assert SERVICES["abridge"]["ports"] == [f"127.0.0.1:{settings.server.port}:8400"]
    least = settings.server.drain_delay + settings.server.drain + CANCEL_SECONDS
    assert least < int(SERVICES["abridge"]["stop_grace_period"].removesuffix("s"))
    assert settings.server.page


@pytest.mark.parametrize(
    ("host", "is_allowed"),
    [
        (b"127.0.0.1:8400", True),
        (b"localhost:8400", True),
        (b"abridge:8401", True),  # as Prometheus calls it
        (b"host.docker.internal:8400", True),
        (b"evil.test:8400", False),
    ],
)
def test_no_web_site_may_point_its_name_to_the_published_port(
    host: bytes,
    is_allowed: bool,  # noqa: FBT001 -- a column of the table
    settings: Settings,
) -> None:
    assert is_allowed_host(host, settings.server.served_hosts) is is_allowed


def test_the_scripted_model_is_the_upstream(settings: Settings) -> None:
    place = urlsplit(settings.upstreams[0].base_url or "")
    _, _, code = SERVICES["model"]["entrypoint"]
    assert place.hostname == "model"
    assert f"port={place.port}" in code
    compile(code, "compose.yaml", "exec")
    assert scripted_model(pause=0).routes


def test_prometheus_scrapes_the_admin_port_and_loads_the_rules(settings: Settings) -> None:
    there = "/etc/prometheus/prometheus.yml"
    config = yaml.safe_load((DEPLOY / mounts("prometheus")[there]).read_text())
    (job,) = config["scrape_configs"]
    assert job["static_configs"] == [{"targets": [f"abridge:{settings.server.admin_port}"]}]
    assert {*config["rule_files"]} <= mounts("prometheus").keys()
    assert f"--config.file={there}" in SERVICES["prometheus"]["command"]


def test_promtool_accepts_the_prometheus_settings() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool to ask")
    process = subprocess.run(
        [promtool, "check", "config", "--syntax-only", str(DEPLOY / "prometheus.yaml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr


def test_grafana_finds_prometheus_and_the_dashboard() -> None:
    mounted = mounts("grafana")
    provisioning = DEPLOY / mounted["/etc/grafana/provisioning/datasources"]
    (source,) = yaml.safe_load((provisioning / "prometheus.yaml").read_text())["datasources"]
    assert urlsplit(source["url"]).hostname == "prometheus"
    assert SERVICES["prometheus"]["ports"] == [f"127.0.0.1:9090:{urlsplit(source['url']).port}"]
    provisioning = DEPLOY / mounted["/etc/grafana/provisioning/dashboards"]
    (provider,) = yaml.safe_load((provisioning / "abridge.yaml").read_text())["providers"]
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home.rpartition("/")[0] == provider["options"]["path"]
    assert home in mounted
