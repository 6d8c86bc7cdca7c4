"""Test the manifests: they build, match Kubernetes's schemas and agree with each other."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest
import yaml
from prometheus_client import CollectorRegistry

from abridge.config.settings import Settings
from abridge.config.warnings import settings_warnings
from abridge.sidecar.app import create_app
from abridge.sidecar.server.serve import CANCEL_SECONDS
from tests.deploy.dockerfile import ROOT, image
from tests.deploy.manifests import (
    FORMS,
    KUBERNETES,
    Object,
    abridges,
    built,
    containers,
    one,
    pod,
    quantity,
    secrets,
    settings,
    variables,
)
from tests.deploy.rule import RULES, prometheus_rule, rules

OPERATORS = ("ServiceMonitor", "PrometheusRule", "ExternalSecret")
"""Kinds that Kubernetes's own schemas do not describe."""

KiB, MiB = 1 << 10, 1 << 20
METRICS = ROOT / "docs" / "metrics.md"
"""The page that runbooks are on."""


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> list[Object]:
    return built(request.param)


@pytest.fixture
def standalone() -> list[Object]:
    return built("standalone")


@pytest.fixture
def sidecar() -> list[Object]:
    return built("sidecar")


@pytest.mark.parametrize("version", ["1.30.0", "1.37.0"])
def test_each_object_matches_its_schema(form: list[Object], version: str) -> None:
    kubernetes_validate = pytest.importorskip(
        "kubernetes_validate", reason="pip install --group deploy"
    )
    for manifest in form:
        if manifest["kind"] not in OPERATORS:
            kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("watched", ["sidecar", "standalone"])
def test_the_base_works_without_the_prometheus_operator(watched: str) -> None:
    """With it, one component says who is scraped, and another what is recorded and alerted."""
    kinds = [manifest["kind"] for manifest in built(watched)]
    assert {"ServiceMonitor", "PrometheusRule"} <= {*kinds}
    assert not {*OPERATORS} & {manifest["kind"] for manifest in built(f"{watched}/base")}


def test_the_settings_load_without_warnings(
    form: list[Object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = settings(form, tmp_path)
    for name, value in variables(containers(abridges(form))["abridge"]).items():
        monkeypatch.setenv(name, value)
    create_app(found, registry=CollectorRegistry())
    assert list(settings_warnings(found)) == []
    assert found.log.format == "json"
    assert found.log.requests


def test_the_grace_period_covers_draining(form: list[Object], tmp_path: Path) -> None:
    server = settings(form, tmp_path).server
    assert server.drain_delay >= 5, "endpoints take seconds to hear that a pod is leaving"
    least = server.drain_delay + server.drain + CANCEL_SECONDS
    grace = pod(abridges(form))["terminationGracePeriodSeconds"]
    assert least + 5 <= grace <= least + 60


def test_a_model_server_ends_after_abridge_and_starts_before_it(sidecar: list[Object]) -> None:
    (vllm,) = pod(abridges(sidecar))["initContainers"]
    assert vllm["restartPolicy"] == "Always"
    assert vllm["startupProbe"]["exec"]["command"] == vllm["livenessProbe"]["exec"]["command"]


def test_a_rollout_waits_as_long_as_a_model_may_load(sidecar: list[Object]) -> None:
    deployment = abridges(sidecar)
    probe = containers(deployment)["vllm"]["startupProbe"]
    loading = probe["periodSeconds"] * probe["failureThreshold"]
    leaving = pod(deployment)["terminationGracePeriodSeconds"]
    assert deployment["spec"]["progressDeadlineSeconds"] > leaving + loading


def test_a_model_server_is_reached_over_loopback_only(
    sidecar: list[Object], tmp_path: Path
) -> None:
    vllm = containers(abridges(sidecar))["vllm"]
    place = urlsplit(settings(sidecar, tmp_path).upstreams[0].base_url or "")
    assert {"--host=127.0.0.1", f"--port={place.port}"} <= {*vllm["args"]}
    assert place.hostname == "127.0.0.1"
    assert "ports" not in vllm


def test_ports_and_probes_agree_with_the_settings(form: list[Object], tmp_path: Path) -> None:
    server = settings(form, tmp_path).server
    container = containers(abridges(form))["abridge"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"http": server.port, "admin": server.admin_port}
    assert sorted(map(str, ports.values())) == sorted(image()["EXPOSE"].words)
    assert server.host == "0.0.0.0", "or the kubelet would not reach it"  # noqa: S104
    probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("readiness", "liveness")}
    assert probes["readiness"] == {"path": "/readyz", "port": "admin"}
    assert probes["liveness"] == {"path": "/healthz", "port": "admin"}


def test_each_service_targets_ports_of_the_pods_it_selects(form: list[Object]) -> None:
    services = [manifest for manifest in form if manifest["kind"] == "Service"]
    assert services
    for service in services:
        (selected,) = _selected(form, service["spec"]["selector"])
        named = {
            port["name"]
            for container in containers(selected).values()
            for port in container.get("ports", [])
        }
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= named


def test_every_pod_selector_matches_some_pod(form: list[Object]) -> None:
    for manifest in form:
        spec = manifest.get("spec", {})
        selector = spec.get("selector") or spec.get("podSelector")
        if manifest["kind"] in ("PodDisruptionBudget", "NetworkPolicy", "Deployment"):
            assert len(_selected(form, selector["matchLabels"])) == 1, manifest["metadata"]
        if manifest["kind"] == "HorizontalPodAutoscaler":
            target = spec["scaleTargetRef"]
            found = one(form, target["kind"], target["name"])
            assert "replicas" not in found["spec"], "each apply would undo what was scaled"


def test_containers_have_no_needless_privileges(form: list[Object]) -> None:
    for manifest in form:
        if manifest["kind"] != "Deployment":
            continue
        spec = pod(manifest)
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] > 0
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in containers(manifest).values():
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_abridge_runs_as_the_images_user(form: list[Object]) -> None:
    context = pod(abridges(form))["securityContext"]
    assert f"{context['runAsUser']}:{context['runAsGroup']}" == image()["USER"].arguments


def test_every_image_has_a_version_and_every_container_resource_limits(form: list[Object]) -> None:
    for manifest in form:
        for container in containers(manifest).values() if manifest["kind"] == "Deployment" else ():
            tag = container["image"].rpartition("/")[2].partition(":")[2]
            assert any(character.isdigit() for character in tag), container["image"]
            assert {"cpu", "memory"} <= {*container["resources"]["requests"]}
            assert "memory" in container["resources"]["limits"]


def test_the_memory_limit_covers_the_limits_in_the_settings(
    form: list[Object], tmp_path: Path
) -> None:
    found = settings(form, tmp_path)
    remembered = found.history.bytes if found.history.store == "memory" else 0
    streams = found.limits.in_flight * 94 * KiB
    most = 60 * MiB + streams + 3 * found.limits.bodies + remembered
    resources = containers(abridges(form))["abridge"]["resources"]
    assert most < quantity(resources["limits"]["memory"])
    assert quantity(resources["requests"]["memory"]) > 60 * MiB + streams


def test_no_secret_is_in_the_manifests_and_each_is_documented(form: list[Object]) -> None:
    assert not [manifest for manifest in form if manifest["kind"] == "Secret"]
    readme = (Path(__file__).parents[2] / "deploy" / "README.md").read_text()
    references = list(secrets(form))
    assert references
    for reference in references:
        assert reference["name"] == "abridge"
        assert f"\n{reference['key']}=" in readme or reference.get("optional")


def test_the_network_policy_allows_exactly_the_addresses_in_the_settings(
    standalone: list[Object], tmp_path: Path
) -> None:
    policy = one(standalone, "NetworkPolicy", "abridge")["spec"]
    assert sorted(policy["policyTypes"]) == ["Egress", "Ingress"]
    places = {
        (*_place(standalone, address), urlsplit(address).port)
        for address in _addresses(settings(standalone, tmp_path))
    }
    reachable = {
        (*_allowed(destination), port["port"])
        for rule in policy["egress"]
        for destination in rule["to"]
        for port in rule["ports"]
    }
    assert reachable - {("kube-dns", "kube-system", 53)} == places


def test_only_abridge_can_reach_the_store(standalone: list[Object]) -> None:
    (rule,) = one(standalone, "NetworkPolicy", "abridge-valkey")["spec"]["ingress"]
    (source,) = rule["from"]
    assert _selected(standalone, source["podSelector"]["matchLabels"]) == [abridges(standalone)]
    assert "egress" not in one(standalone, "NetworkPolicy", "abridge-valkey")["spec"]


def test_the_store_evicts_before_it_exceeds_its_memory_limit(standalone: list[Object]) -> None:
    valkey = containers(one(standalone, "Deployment", "abridge-valkey"))["valkey"]
    most = re.search(r"^maxmemory (\w+)$", valkey["command"][-1], re.MULTILINE)
    assert most
    assert quantity(most[1]) * 1.5 <= quantity(valkey["resources"]["limits"]["memory"])


def test_no_secret_is_on_a_command_line(form: list[Object]) -> None:
    """Where a list of processes would show it."""
    for manifest in form:
        if manifest["kind"] != "Deployment":
            continue
        for container in containers(manifest).values():
            for word in [*container.get("command", []), *container.get("args", [])]:
                assert "$(" not in word, word


def test_no_probe_starts_a_python(form: list[Object]) -> None:
    for container in containers(abridges(form)).values():
        for name in ("startupProbe", "readinessProbe", "livenessProbe"):
            probe = container.get(name, {})
            assert "python" not in str(probe.get("exec", ""))


def test_the_model_servers_probe_tells_healthy_from_not(sidecar: list[Object]) -> None:
    (vllm,) = pod(abridges(sidecar))["initContainers"]
    command = vllm["startupProbe"]["exec"]["command"]
    for status, healthy in ((b"200 OK", True), (b"503 Service Unavailable", False), (b"", False)):
        with answering(status) as port:
            words = [word.replace("8000", str(port)) for word in command]
            done = subprocess.run(words, check=False, capture_output=True, timeout=20)
        assert (done.returncode == 0) is healthy, (status, done.stderr)
    done = subprocess.run(words, check=False, capture_output=True, timeout=20)
    assert done.returncode, "nobody listens any more"


@contextmanager
def answering(status: bytes) -> Iterator[int]:
    """Answer one request with this status, or close without an answer; yield the port."""

    def answer() -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                asked = connection.recv(4096)
                if status and asked.startswith(b"GET /health "):
                    connection.sendall(b"HTTP/1.1 " + status + b"\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=answer)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def test_the_monitor_scrapes_the_metrics_port(standalone: list[Object]) -> None:
    monitor = one(standalone, "ServiceMonitor")
    assert monitor["apiVersion"] == "monitoring.coreos.com/v1"
    for objects in (standalone, built("sidecar")):
        service = _monitored(objects, monitor)
        (endpoint,) = monitor["spec"]["endpoints"]
        assert endpoint["path"] == "/metrics"
        (port,) = service["spec"]["ports"]
        assert (port["name"], port["targetPort"]) == (endpoint["port"], "admin")


def test_a_terminating_pod_is_scraped_to_the_end(standalone: list[Object]) -> None:
    """A terminating pod leaves the endpoints unless its Service publishes unready addresses, which
    a Service for clients must not do."""
    monitor = one(standalone, "ServiceMonitor")
    for objects in (standalone, built("sidecar")):
        monitored = _monitored(objects, monitor)
        assert monitored["spec"]["publishNotReadyAddresses"] is True
        assert monitored["spec"]["clusterIP"] == "None"
        for service in objects:
            if service["kind"] == "Service" and service != monitored:
                assert "publishNotReadyAddresses" not in service["spec"]
                assert "admin" not in {port["name"] for port in service["spec"]["ports"]}


def test_two_namespaces_are_two_jobs(standalone: list[Object]) -> None:
    """Rules and dashboard tell deployments apart by their job label."""
    (endpoint,) = one(standalone, "ServiceMonitor")["spec"]["endpoints"]
    (relabelled,) = endpoint["relabelings"]
    assert relabelled["sourceLabels"] == ["__meta_kubernetes_namespace"]
    assert relabelled["targetLabel"] == "job"
    groups = yaml.safe_load(RULES.read_text())["groups"]
    (down,) = [
        rule for group in groups for rule in group["rules"] if rule.get("alert") == "AbridgeDown"
    ]
    jobs = set(re.findall(r'job=~"(.*?)"', down["expr"]))
    assert len(jobs) == 1
    (job,) = jobs
    for name in ("abridge", relabelled["replacement"].replace("$1", "models")):
        assert re.fullmatch(job, name)


def test_the_prometheusrule_matches_the_committed_rules(standalone: list[Object]) -> None:
    committed = KUBERNETES / "monitoring" / "rules" / "prometheusrule.yaml"
    assert committed.read_text() == prometheus_rule(), "python -m tests.deploy.rule makes it anew"
    rule = one(standalone, "PrometheusRule")
    assert rule["apiVersion"] == "monitoring.coreos.com/v1"
    assert [group["name"] for group in rule["spec"]["groups"]]


def test_each_alert_links_to_its_own_heading() -> None:
    page = "https://wiki.example/abridge"
    plain = yaml.safe_load(rules(page))["groups"]
    for groups in (yaml.safe_load(prometheus_rule(page))["spec"]["groups"], plain):
        alerts = [rule for group in groups for rule in group["rules"] if "alert" in rule]
        assert alerts
        for alert in alerts:
            assert alert["annotations"]["runbook_url"] == f"{page}#{alert['alert'].lower()}"
            assert f"\n### {alert['alert']}\n" in METRICS.read_text()


def test_no_alert_links_to_a_page_that_nobody_named(standalone: list[Object]) -> None:
    assert "runbook_url" not in json.dumps(one(standalone, "PrometheusRule"))


def test_the_dashboard_is_small_enough_for_kubectl_apply(standalone: list[Object]) -> None:
    dashboard = one(standalone, "ConfigMap", "abridge-dashboard")
    assert json.loads(dashboard["data"]["abridge.json"])["panels"]
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert len(json.dumps(dashboard)) < 256 * KiB, "it keeps what was applied in an annotation"


def _monitored(objects: list[Object], monitor: Object) -> Object:
    selector = monitor["spec"]["selector"]["matchLabels"].items()
    (service,) = [
        manifest
        for manifest in objects
        if manifest["kind"] == "Service" and selector <= manifest["metadata"]["labels"].items()
    ]
    return service


def _selected(objects: list[Object], labels: dict[str, str]) -> list[Object]:
    """Return the Deployments whose pods have these labels."""
    return [
        manifest
        for manifest in objects
        if manifest["kind"] == "Deployment"
        and labels.items() <= manifest["spec"]["template"]["metadata"]["labels"].items()
    ]


def _addresses(found: Settings) -> Iterator[str]:
    yield from (upstream.base_url or "" for upstream in found.upstreams)
    yield found.summarizer.base_url or ""
    yield found.history.store


def _place(objects: list[Object], address: str) -> tuple[str, str | None]:
    """Return the pods that a cluster address leads to, and their namespace if it is another one."""
    name, _, rest = (urlsplit(address).hostname or "").partition(".")
    if rest:
        return name, rest.partition(".")[0]
    (selected,) = one(objects, "Service", name)["spec"]["selector"].values()
    return selected, None


def _allowed(destination: Object) -> tuple[str, str | None]:
    (name,) = destination["podSelector"]["matchLabels"].values()
    namespace = destination.get("namespaceSelector", {"matchLabels": {}})["matchLabels"]
    return name, namespace.get("kubernetes.io/metadata.name")
