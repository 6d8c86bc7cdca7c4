"""Build the manifests in deploy/, by kustomize and by Helm, and read what their containers are
given."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from abridge.config.loading import load_settings
from abridge.config.settings import Settings
from tests.deploy.dockerfile import ROOT, environment
from tests.deploy.tools import program

KUBERNETES = ROOT / "deploy" / "kubernetes"
CHART = ROOT / "deploy" / "helm" / "abridge"
FORMS = ("sidecar", "sidecar/base", "standalone", "standalone/base")

RELEASES = {
    "sidecar": ("model", f"--values={CHART / 'values-sidecar.yaml'}"),
    "standalone": ("abridge",),
}
"""What Helm is told of each form: the release's name, and values."""

Object = dict[str, Any]

SECRETS = {
    "SEAL_KEYS": "k1:" + "A" * 43 + "=",
    "LEDGER_URL": "postgresql://abridge@db.example/abridge",
    "SUMMARIZER_KEY": "a-key",
    "VALKEY_PASSWORD": "0123456789abcdef",
}
"""The values that the Secret would hold."""


def kustomized(folder: Path) -> list[Object]:
    return list(yaml.safe_load_all(run("kubectl", "kustomize", str(folder))))


def helmed(form: str, *options: str) -> list[Object]:
    """Return the objects of the chart, with a form's values and more options."""
    name, *values = RELEASES[form]
    command = ["template", f"--name-template={name}", str(CHART), *values, *options]
    return [manifest for manifest in yaml.safe_load_all(run("helm", *command)) if manifest]


def run(name: str, *arguments: str) -> str:
    """Return what a program prints, or skip the test if there is none."""
    found = program(name)
    if found is None:
        pytest.skip(f"there is no {name}: python -m tests.deploy.tools")
    done = subprocess.run([found, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def built(form: str) -> list[Object]:
    return kustomized(KUBERNETES / form)


def one(objects: list[Object], kind: str, name: str | None = None) -> Object:
    (found,) = [
        manifest
        for manifest in objects
        if manifest["kind"] == kind and name in (None, manifest["metadata"]["name"])
    ]
    return found


def abridges(objects: list[Object]) -> Object:
    """Return the Deployment that runs Abridge."""
    (found,) = [
        manifest
        for manifest in objects
        if manifest["kind"] == "Deployment" and "abridge" in containers(manifest)
    ]
    return found


def pod(deployment: Object) -> Object:
    return deployment["spec"]["template"]["spec"]


def containers(deployment: Object) -> dict[str, Object]:
    """Return a pod's containers by name, including its sidecar containers."""
    spec = pod(deployment)
    return {
        found["name"]: found for found in [*spec.get("initContainers", []), *spec["containers"]]
    }


def variables(container: Object) -> dict[str, str]:
    """Return a container's environment: the image's, the manifest's and the Secret's."""
    environ = environment()
    for variable in container["env"]:
        given = variable.get("value")
        text = SECRETS[variable["name"]] if given is None else given
        environ[variable["name"]] = re.sub(r"\$\((\w+)\)", lambda name: environ[name[1]], text)
    return environ


def settings(objects: list[Object], folder: Path) -> Settings:
    """Return the settings in force in the pod: the ConfigMap's, overridden by its environment."""
    deployment = abridges(objects)
    container = containers(deployment)["abridge"]
    (mounted,) = container["volumeMounts"]
    volumes = {volume["name"]: volume for volume in pod(deployment)["volumes"]}
    data = one(objects, "ConfigMap", volumes[mounted["name"]]["configMap"]["name"])["data"]
    _, _, config = container["args"]
    assert container["args"][:2] == ["serve", "--config"]
    assert str(Path(config).parent) == mounted["mountPath"]
    file = folder / Path(config).name
    file.write_text(data[file.name])
    return load_settings(file, variables(container))


def quantity(text: str) -> int:
    """Return a memory quantity in bytes."""
    units = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "mb": 1 << 20}
    return int(text[:-2]) * units[text[-2:]]


def secrets(objects: list[Object]) -> Iterator[Object]:
    """Yield each reference to a key of a Secret."""
    for manifest in objects:
        if manifest["kind"] == "Deployment":
            for container in containers(manifest).values():
                for variable in container.get("env", []):
                    if "valueFrom" in variable:
                        yield variable["valueFrom"]["secretKeyRef"]
