"""Test the chart: it makes the objects of the kustomizations, and its options are valid."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

import abridge
from abridge.observability.metrics import metrics_for
from tests.deploy.manifests import (
    CHART,
    KUBERNETES,
    RELEASES,
    Object,
    abridges,
    built,
    containers,
    helmed,
    kustomized,
    one,
    pod,
    run,
    settings,
)
from tests.deploy.test_kubernetes import OPERATORS

HELMS = {
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "helm.sh/chart",
}
"""Labels that only the chart sets: they tell one release from another."""


def shared(manifest: Object) -> Object:
    """Return an object without what is Helm's or kustomize's own: the release's labels and others
    that nothing selects by, the namespace, the hash of the settings in a name or an annotation, and
    how the settings are spelled."""
    manifest = json.loads(json.dumps(manifest))
    metadata = manifest["metadata"]
    metadata.pop("namespace", None)
    _strip(manifest)
    labels = metadata.get("labels", {})
    labels.pop("app.kubernetes.io/part-of", None)
    if manifest["kind"] != "Service":
        labels.pop("app.kubernetes.io/name", None)
    metadata["labels"] = labels
    if "abridge.toml" in manifest.get("data", {}):
        manifest["data"] = tomllib.loads(manifest["data"]["abridge.toml"])
        metadata["name"] = "settings"
    if manifest["kind"] == "Deployment":
        for volume in pod(manifest)["volumes"]:
            if volume["name"] == "settings":
                volume["configMap"]["name"] = "settings"
        manifest["spec"]["template"]["metadata"].pop("annotations", None)
    if manifest["kind"] in OPERATORS:
        metadata["name"] = "abridge"  # the chart's is the release's
    if metadata["name"].endswith("-dashboard"):
        metadata["name"] = "abridge-dashboard"
    return manifest


def _strip(tree: Any) -> None:
    """Remove Helm's labels, wherever they are."""
    for value in tree.values() if isinstance(tree, dict) else tree:
        if isinstance(value, dict | list):
            _strip(value)
    if isinstance(tree, dict):
        for label in HELMS:
            tree.pop(label, None)


def keyed(objects: list[Object]) -> dict[str, Object]:
    return {
        f"{each['kind']}/{each['metadata']['name']}": each
        for each in map(shared, objects)
        if each["kind"] != "Namespace"  # `helm install --create-namespace`, or README's command
    }


@pytest.mark.parametrize("form", RELEASES)
def test_the_chart_makes_the_objects_of_the_kustomization(form: str) -> None:
    chart = keyed(helmed(form, "--set=monitoring.enabled=true,monitoring.runbooks="))
    kustomization = keyed(built(form))
    assert chart.keys() == kustomization.keys()
    for key, manifest in kustomization.items():
        assert chart[key] == manifest, key


def test_changed_settings_are_a_rollout_unless_pods_take_them_over_by_themselves() -> None:
    def checksum(*flags: str) -> str | None:
        manifest = one(helmed("standalone", *flags), "Deployment", "abridge")
        metadata = manifest["spec"]["template"]["metadata"]
        found: str | None = metadata.get("annotations", {}).get("checksum/settings")
        return found

    other = "--set=settings.limits.in_flight=7"
    assert checksum() != checksum(other)
    assert checksum("--set=rolloutOnChange=false") is None
    assert checksum("--set=rolloutOnChange=false", other) is None


OPTIONS = {
    "ingress and external secret": (
        "--set=ingress.enabled=true,externalSecret.enabled=true",
        {"Ingress", "ExternalSecret"},
        set(),
    ),
    "Prometheus's operator": (
        "--set=monitoring.enabled=true,monitoring.runbooks=",
        {"ServiceMonitor", "PrometheusRule"},
        set(),
    ),
    "more replicas by open streams, and a pod that sleeps before it ends": (
        "--set=autoscaling.streams=600,settings.server.drain_delay=0",
        set(),
        set(),
    ),
    "no valkey, no autoscaler, no policy": (
        "--set=valkey.enabled=false,autoscaling.enabled=false,networkPolicy.enabled=false",
        set(),
        {"HorizontalPodAutoscaler", "NetworkPolicy"},
    ),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_each_option_adds_or_leaves_out_its_objects(option: str) -> None:
    flag, added, left_out = OPTIONS[option]
    usual = {manifest["kind"] for manifest in helmed("standalone")}
    kinds = {manifest["kind"] for manifest in helmed("standalone", flag)}
    assert kinds == (usual | added) - left_out


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("version", ["1.30.0", "1.37.0"])
def test_what_an_option_makes_matches_its_schema(option: str, version: str) -> None:
    kubernetes_validate = pytest.importorskip(
        "kubernetes_validate", reason="pip install --group deploy"
    )
    for manifest in helmed("standalone", OPTIONS[option][0]):
        if manifest["kind"] not in OPERATORS:
            kubernetes_validate.validate(manifest, version, strict=True)


def test_the_components_make_what_the_options_make(tmp_path: Any) -> None:
    chart = keyed(helmed("standalone", OPTIONS["ingress and external secret"][0]))
    overlay = overlay_of(tmp_path, "../kubernetes/ingress", "../kubernetes/external-secrets")
    kustomization = keyed(kustomized(overlay))
    for key in ("Ingress/abridge", "ExternalSecret/abridge", "NetworkPolicy/abridge"):
        assert chart[key] == kustomization[key], key


def overlay_of(folder: Any, *components: str) -> Any:
    """Return a folder with a kustomization of the standalone form and these components."""
    (folder / "kubernetes").symlink_to(KUBERNETES)
    (folder / "grafana").symlink_to(KUBERNETES.parents[1] / "grafana")
    mine = folder / "mine"
    mine.mkdir()
    content = {"resources": ["../kubernetes/standalone"], "components": list(components)}
    (mine / "kustomization.yaml").write_text(yaml.safe_dump({"namespace": "abridge", **content}))
    return mine


@pytest.mark.parametrize(
    "value", ["autoscalling.enabled=false", "ingress.hots=a", "image.digest=latest", "replicas=no"]
)
def test_a_value_that_is_mistaken_is_refused(value: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(value.partition("=")[0].split(".")[0])):
        helmed("standalone", f"--set={value}")


def test_the_runbooks_page_is_that_of_alerts_and_dashboard() -> None:
    page = "https://wiki.example/abridge"
    made = helmed("standalone", f"--set=monitoring.enabled=true,monitoring.runbooks={page}")
    dashboard = one(made, "ConfigMap", "abridge-dashboard")["data"]["abridge.json"]
    rule = json.dumps(one(made, "PrometheusRule"))
    for text in (dashboard, rule):
        assert page in text
        assert "git.example" not in text
    assert "runbook_url" not in json.dumps(
        helmed("standalone", "--set=monitoring.enabled=true,monitoring.runbooks=")
    )
    with pytest.raises(AssertionError, match=r"monitoring\.runbooks must be set"):
        helmed("standalone", "--set=monitoring.enabled=true")


def test_an_image_by_its_digest_and_more_of_the_pods_own() -> None:
    digest = "sha256:" + "0" * 64
    objects = helmed("standalone", f"--set=image.digest={digest},podAnnotations.mine=yes")
    container = containers(abridges(objects))["abridge"]
    assert container["image"] == f"registry.example/abridge@{digest}"
    annotations = abridges(objects)["spec"]["template"]["metadata"]["annotations"]
    assert annotations["mine"] == "yes"


def test_changed_settings_are_a_rollout_and_a_longer_end(tmp_path: Any) -> None:
    before, after = (
        abridges(helmed("standalone", *options))
        for options in ((), ("--set=settings.server.drain=300",))
    )
    marks = [
        each["spec"]["template"]["metadata"]["annotations"]["checksum/settings"]
        for each in (before, after)
    ]
    assert marks[0] != marks[1]
    assert pod(after)["terminationGracePeriodSeconds"] == 320
    changed = helmed("standalone", "--set=settings.limits.bodies=200000000")
    assert settings(changed, tmp_path).limits.bodies == 200_000_000


@pytest.mark.parametrize(
    ("delay", "slept", "grace"), [(10, None, 200), (30, None, 220), (4, 6, 200), (0, 10, 200)]
)
def test_a_pod_sleeps_for_what_the_drain_delay_lacks(
    delay: int, slept: int | None, grace: int
) -> None:
    deployment = abridges(helmed("standalone", f"--set=settings.server.drain_delay={delay}"))
    hook = containers(deployment)["abridge"].get("lifecycle")
    assert hook == (slept and {"preStop": {"sleep": {"seconds": slept}}})
    assert pod(deployment)["terminationGracePeriodSeconds"] == grace


def test_replicas_follow_cpu_and_on_demand_open_streams(tmp_path: Any) -> None:
    usual, streams = (
        one(helmed("standalone", *options), "HorizontalPodAutoscaler")
        for options in ((), ("--set=autoscaling.streams=600",))
    )
    assert [each["type"] for each in usual["spec"]["metrics"]] == ["Resource"]
    assert [each["type"] for each in streams["spec"]["metrics"]] == ["Resource", "Pods"]
    overlay = overlay_of(tmp_path, "../kubernetes/streams")
    theirs = one(kustomized(overlay), "HorizontalPodAutoscaler")
    assert shared(streams)["spec"] == shared(theirs)["spec"]


def test_the_adapter_reads_a_metric_that_there_is_for_each_pod() -> None:
    values = yaml.safe_load((KUBERNETES / "streams" / "adapter.yaml").read_text())
    (rule,) = values["rules"]["custom"]
    name, _, matchers = rule["seriesQuery"].partition("{")
    hpa = one(helmed("standalone", "--set=autoscaling.streams=600"), "HorizontalPodAutoscaler")
    assert hpa["spec"]["metrics"][1]["pods"]["metric"]["name"] == name
    registry = CollectorRegistry()
    metrics_for(registry).streams_open.labels("chat").inc()
    assert registry.get_sample_value(name, {"api": "chat"}) == 1
    assert {*rule["resources"]["overrides"]} == {*re.findall(r"(\w+)!=", matchers)}


def test_two_releases_in_one_namespace_select_their_own_pods() -> None:
    first = helmed("standalone")
    second = helmed("standalone", "--name-template=another")
    assert not names(first) & names(second)
    theirs = one(second, "Service", "another-abridge")["spec"]["selector"]
    labels = abridges(first)["spec"]["template"]["metadata"]["labels"]
    assert not theirs.items() <= labels.items()


def names(objects: list[Object]) -> set[tuple[str, str]]:
    return {(manifest["kind"], manifest["metadata"]["name"]) for manifest in objects}


def test_the_linter_finds_nothing() -> None:
    assert "0 chart(s) failed" in run("helm", "lint", "--strict", str(CHART))


def test_the_chart_has_the_packages_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == abridge.__version__
