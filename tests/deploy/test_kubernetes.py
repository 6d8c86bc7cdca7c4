"""The manifests: that they are built, that they are Kubernetes's, and that they fit together."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from prometheus_client import CollectorRegistry

from abridge.app import create_app
from abridge.config.settings import Settings
from abridge.config.warnings import settings_warnings
from abridge.server.serve import CANCEL_SECONDS
from tests.deploy.dockerfile import image
from tests.deploy.manifests import (
    FORMS,
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
from tests.deploy.rule import RULES, prometheus_rule

OPERATORS = ("ServiceMonitor", "PrometheusRule")
"""Which no schema of Kubernetes's own describes."""

KiB, MiB = 1 << 10, 1 << 20


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
def test_each_object_is_as_its_schema_says(form: list[Object], version: str) -> None:
    kubernetes_validate = pytest.importorskip(
        "kubernetes_validate", reason="pip install --group deploy"
    )
    for thing in form:
        if thing["kind"] not in OPERATORS:
            kubernetes_validate.validate(thing, version, strict=True)


def test_what_needs_an_operator_is_in_the_form_for_it_alone(standalone: list[Object]) -> None:
    assert {thing["kind"] for thing in standalone if thing["kind"] in OPERATORS} == {*OPERATORS}
    for plain in ("sidecar", "standalone/base"):
        assert not [thing for thing in built(plain) if thing["kind"] in OPERATORS]


def test_the_settings_are_settings_and_nothing_about_them_surprises(
    form: list[Object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = settings(form, tmp_path)
    for name, value in variables(containers(abridges(form))["abridge"]).items():
        monkeypatch.setenv(name, value)
    create_app(found, registry=CollectorRegistry())
    assert list(settings_warnings(found)) == []
    assert found.log.format == "json"
    assert found.log.requests


def test_a_pod_is_given_the_time_that_draining_takes(form: list[Object], tmp_path: Path) -> None:
    server = settings(form, tmp_path).server
    assert server.drain_delay >= 5, "endpoints take seconds to hear that a pod is leaving"
    least = server.drain_delay + server.drain + CANCEL_SECONDS
    grace = pod(abridges(form))["terminationGracePeriodSeconds"]
    assert least + 5 <= grace <= least + 60


def test_a_model_server_ends_after_abridge_and_starts_before_it(sidecar: list[Object]) -> None:
    (vllm,) = pod(abridges(sidecar))["initContainers"]
    assert vllm["restartPolicy"] == "Always"
    assert vllm["startupProbe"]["exec"]["command"] == vllm["livenessProbe"]["exec"]["command"]


def test_a_rollout_is_not_given_up_while_a_model_may_yet_load(sidecar: list[Object]) -> None:
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


def test_each_service_leads_to_ports_of_the_pods_it_selects(form: list[Object]) -> None:
    services = [thing for thing in form if thing["kind"] == "Service"]
    assert services
    for service in services:
        (selected,) = _selected(form, service["spec"]["selector"])
        named = {
            port["name"]
            for container in containers(selected).values()
            for port in container.get("ports", [])
        }
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= named


def test_whatever_is_about_pods_finds_some(form: list[Object]) -> None:
    for thing in form:
        spec = thing.get("spec", {})
        selector = spec.get("selector") or spec.get("podSelector")
        if thing["kind"] in ("PodDisruptionBudget", "NetworkPolicy", "Deployment"):
            assert len(_selected(form, selector["matchLabels"])) == 1, thing["metadata"]
        if thing["kind"] == "HorizontalPodAutoscaler":
            target = spec["scaleTargetRef"]
            found = one(form, target["kind"], target["name"])
            assert "replicas" not in found["spec"], "each apply would undo what was scaled"


def test_no_container_may_do_more_than_it_must(form: list[Object]) -> None:
    for thing in form:
        if thing["kind"] != "Deployment":
            continue
        spec = pod(thing)
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] > 0
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in containers(thing).values():
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_abridge_runs_as_its_images_user(form: list[Object]) -> None:
    context = pod(abridges(form))["securityContext"]
    assert f"{context['runAsUser']}:{context['runAsGroup']}" == image()["USER"].arguments


def test_every_image_is_of_a_version_and_every_container_has_its_share(form: list[Object]) -> None:
    for thing in form:
        for container in containers(thing).values() if thing["kind"] == "Deployment" else ():
            tag = container["image"].rpartition("/")[2].partition(":")[2]
            assert any(character.isdigit() for character in tag), container["image"]
            assert {"cpu", "memory"} <= {*container["resources"]["requests"]}
            assert "memory" in container["resources"]["limits"]


def test_memory_is_enough_for_what_the_limits_let_in(form: list[Object], tmp_path: Path) -> None:
    found = settings(form, tmp_path)
    remembered = found.history.bytes if found.history.store == "memory" else 0
    streams = found.limits.in_flight * 94 * KiB
    most = 60 * MiB + streams + 3 * found.limits.bodies + remembered
    resources = containers(abridges(form))["abridge"]["resources"]
    assert most < quantity(resources["limits"]["memory"])
    assert quantity(resources["requests"]["memory"]) > 60 * MiB + streams


def test_no_secret_is_in_the_manifests_and_each_is_told_of(form: list[Object]) -> None:
    assert not [thing for thing in form if thing["kind"] == "Secret"]
    readme = (Path(__file__).parents[2] / "deploy" / "README.md").read_text()
    references = list(secrets(form))
    assert references
    for reference in references:
        assert reference["name"] == "abridge"
        assert f"--from-literal={reference['key']}=" in readme or reference.get("optional")


def test_only_the_settings_places_can_be_reached(standalone: list[Object], tmp_path: Path) -> None:
    policy = one(standalone, "NetworkPolicy", "abridge")["spec"]
    assert sorted(policy["policyTypes"]) == ["Egress", "Ingress"]
    places = {
        (*_place(address), urlsplit(address).port)
        for address in _addresses(settings(standalone, tmp_path))
    }
    reachable = {
        (*_allowed(destination), port["port"])
        for rule in policy["egress"]
        for destination in rule["to"]
        for port in rule["ports"]
    }
    assert reachable - {("kube-dns", "kube-system", 53)} == places


def test_the_store_is_asked_by_abridge_alone(standalone: list[Object]) -> None:
    (rule,) = one(standalone, "NetworkPolicy", "valkey")["spec"]["ingress"]
    (source,) = rule["from"]
    assert _selected(standalone, source["podSelector"]["matchLabels"]) == [abridges(standalone)]
    assert "egress" not in one(standalone, "NetworkPolicy", "valkey")["spec"]


def test_the_store_forgets_before_it_outgrows_its_container(standalone: list[Object]) -> None:
    valkey = containers(one(standalone, "Deployment", "valkey"))["valkey"]
    args = valkey["args"]
    most = quantity(args[args.index("--maxmemory") + 1])
    assert most * 1.5 <= quantity(valkey["resources"]["limits"]["memory"])
    assert "allkeys-lru" in args


def test_the_monitor_finds_the_port_with_the_metrics(standalone: list[Object]) -> None:
    monitor = one(standalone, "ServiceMonitor")
    assert monitor["apiVersion"] == "monitoring.coreos.com/v1"
    for objects in (standalone, built("sidecar")):
        service = _monitored(objects, monitor)
        (endpoint,) = monitor["spec"]["endpoints"]
        assert endpoint["path"] == "/metrics"
        (port,) = service["spec"]["ports"]
        assert (port["name"], port["targetPort"]) == (endpoint["port"], "admin")


def test_who_leaves_is_scraped_to_the_end(standalone: list[Object]) -> None:
    """What an Endpoints lists, a pod that terminates is not among, unless its Service says so; and
    a Service of clients must not."""
    monitor = one(standalone, "ServiceMonitor")
    for objects in (standalone, built("sidecar")):
        monitored = _monitored(objects, monitor)
        assert monitored["spec"]["publishNotReadyAddresses"] is True
        assert monitored["spec"]["clusterIP"] == "None"
        for service in objects:
            if service["kind"] == "Service" and service != monitored:
                assert "publishNotReadyAddresses" not in service["spec"]
                assert "admin" not in {port["name"] for port in service["spec"]["ports"]}


def test_what_runs_in_two_namespaces_is_two_jobs(standalone: list[Object]) -> None:
    """Rules and dashboard tell deployments apart by their job, which they all filter by."""
    (endpoint,) = one(standalone, "ServiceMonitor")["spec"]["endpoints"]
    (relabelled,) = endpoint["relabelings"]
    assert relabelled["sourceLabels"] == ["__meta_kubernetes_namespace"]
    assert relabelled["targetLabel"] == "job"
    rules = [
        rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
    ]
    (down,) = [rule for rule in rules if rule.get("alert") == "AbridgeDown"]
    jobs = set(re.findall(r'job=~"(.*?)"', down["expr"]))
    assert len(jobs) == 1
    (job,) = jobs
    for name in ("abridge", relabelled["replacement"].replace("$1", "models")):
        assert re.fullmatch(job, name)


def test_the_rules_are_those_of_the_dashboards_folder(standalone: list[Object]) -> None:
    committed = Path(__file__).parents[2] / "deploy/kubernetes/monitoring/prometheusrule.yaml"
    assert committed.read_text() == prometheus_rule(), "python -m tests.deploy.rule makes it anew"
    rule = one(standalone, "PrometheusRule")
    assert rule["apiVersion"] == "monitoring.coreos.com/v1"
    assert [group["name"] for group in rule["spec"]["groups"]]


def test_the_dashboard_is_no_larger_than_kubectl_can_apply(standalone: list[Object]) -> None:
    dashboard = one(standalone, "ConfigMap", "abridge-dashboard")
    assert json.loads(dashboard["data"]["abridge.json"])["panels"]
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert len(json.dumps(dashboard)) < 256 * KiB, "it keeps what was applied in an annotation"


def _monitored(objects: list[Object], monitor: Object) -> Object:
    selector = monitor["spec"]["selector"]["matchLabels"].items()
    (service,) = [
        thing
        for thing in objects
        if thing["kind"] == "Service" and selector <= thing["metadata"]["labels"].items()
    ]
    return service


def _selected(objects: list[Object], labels: dict[str, str]) -> list[Object]:
    """The Deployments whose pods have these labels."""
    return [
        thing
        for thing in objects
        if thing["kind"] == "Deployment"
        and labels.items() <= thing["spec"]["template"]["metadata"]["labels"].items()
    ]


def _addresses(found: Settings) -> Iterator[str]:
    yield from (upstream.base_url or "" for upstream in found.upstreams)
    yield found.summarizer.base_url or ""
    yield found.history.store


def _place(address: str) -> tuple[str, str | None]:
    """Whom an address of the cluster's names, and in which namespace other than this."""
    name, _, rest = (urlsplit(address).hostname or "").partition(".")
    return name, rest.partition(".")[0] or None


def _allowed(destination: Object) -> tuple[str, str | None]:
    (name,) = destination["podSelector"]["matchLabels"].values()
    namespace = destination.get("namespaceSelector", {"matchLabels": {}})["matchLabels"]
    return name, namespace.get("kubernetes.io/metadata.name")
