"""Test the commands and files in deploy/README.md against the manifests."""

from __future__ import annotations

import re
import shutil
import subprocess
from base64 import b64decode
from pathlib import Path

import pytest
import yaml

from abridge.memory.keys import Keyring
from abridge.memory.stores.redis_client import parse_address
from tests.deploy.dockerfile import ROOT
from tests.deploy.manifests import KUBERNETES, built, helmed, kustomized, one, secrets, settings
from tests.deploy.tools import program
from tests.docs.pages import texts_of

README = (ROOT / "deploy" / "README.md").read_text()
CREATE = re.findall(
    r"^\$ (kubectl -n (\w+) create secret .*?<<END$.*?^END$)", README, re.MULTILINE | re.DOTALL
)


@pytest.mark.parametrize(("form", "namespace"), [("sidecar", "models"), ("standalone", "abridge")])
def test_the_command_creates_the_secret_that_the_pods_read(form: str, namespace: str) -> None:
    kubectl = program("kubectl")
    if kubectl is None or shutil.which("openssl") is None:
        pytest.skip("there is no kubectl, or no openssl, to make a secret with")
    (command,) = [command for command, target in CREATE if target == namespace]
    dry = command.replace("<<END", "--dry-run=client --output=yaml <<END")
    made = subprocess.run(
        ["/bin/sh", "-c", dry.replace("kubectl", kubectl, 1)],
        capture_output=True,
        text=True,
        check=True,
    )
    secret = yaml.safe_load(made.stdout)
    values = {name: b64decode(value).decode() for name, value in secret["data"].items()}
    wanted = {each["key"] for each in secrets(built(form)) if not each.get("optional")}
    assert values.keys() == wanted
    assert one(built(form), "Namespace")["metadata"]["name"] == namespace
    assert Keyring.parse(values["SEAL_KEYS"]).primary.id == "k1"
    if password := values.get("VALKEY_PASSWORD"):
        address = parse_address(f"valkey://:{password}@valkey:6379/0")
        assert (address["host"], address["password"]) == ("valkey", password)


def test_the_overlay_builds(tmp_path: Path) -> None:
    overlay, _ = texts_of("deploy/README.md", "yaml")
    for folder in (KUBERNETES, ROOT / "grafana"):
        shutil.copytree(folder, tmp_path / folder.relative_to(ROOT))
    overlay_folder = tmp_path / "mine"
    overlay_folder.mkdir()
    (overlay_folder / "kustomization.yaml").write_text(overlay)
    (overlay_folder / "abridge.toml").write_text("# mine\n")
    objects = kustomized(overlay_folder)
    (mine,) = [manifest for manifest in objects if "abridge.toml" in manifest.get("data", {})]
    assert mine["data"]["abridge.toml"] == "# mine\n"
    deployment = one(objects, "Deployment", "abridge")["spec"]["template"]["spec"]
    assert deployment["volumes"][0]["configMap"]["name"] == mine["metadata"]["name"]
    assert deployment["containers"][0]["image"] == "registry.mine.example/abridge:0.1.0"


def test_the_values_for_a_ledger_give_the_pods_its_address(tmp_path: Path) -> None:
    _, values = texts_of("deploy/README.md", "yaml")
    (tmp_path / "values.yaml").write_text(values)
    objects = helmed("standalone", f"--values={tmp_path / 'values.yaml'}")
    assert "LEDGER_URL" in {each["key"] for each in secrets(objects)}
    assert settings(objects, tmp_path).ledger.url_env == "LEDGER_URL"


@pytest.mark.parametrize("page", ["deploy/README.md", "README.md"])
def test_every_path_exists(page: str) -> None:
    named = re.findall(r"\b(?:deploy|grafana)/[\w./-]+\w", (ROOT / page).read_text())
    assert named
    for name in named:
        assert (ROOT / name).exists(), name
