"""What deploy/README.md tells to type: that it makes what the manifests want."""

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
from tests.deploy.manifests import KUBERNETES, built, kustomized, one, secrets

README = (ROOT / "deploy" / "README.md").read_text()
CREATE = re.findall(r"^\$ (kubectl -n (\w+) create secret .*)$", README, re.MULTILINE)


@pytest.mark.parametrize(("form", "namespace"), [("sidecar", "models"), ("standalone", "abridge")])
def test_the_secret_is_one_that_the_pods_take(form: str, namespace: str) -> None:
    for tool in ("kubectl", "openssl"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool} to make a secret with")
    (command,) = [command for command, where in CREATE if where == namespace]
    made = subprocess.run(
        ["/bin/sh", "-c", f"{command} --dry-run=client --output=yaml"],
        capture_output=True,
        text=True,
        check=True,
    )
    secret = yaml.safe_load(made.stdout)
    held = {name: b64decode(value).decode() for name, value in secret["data"].items()}
    wanted = {each["key"] for each in secrets(built(form)) if not each.get("optional")}
    assert held.keys() == wanted
    assert one(built(form), "Namespace")["metadata"]["name"] == namespace
    assert Keyring.parse(held["SEAL_KEYS"]).primary.id == "k1"
    if password := held.get("VALKEY_PASSWORD"):
        address = parse_address(f"valkey://:{password}@valkey:6379/0")
        assert (address["host"], address["password"]) == ("valkey", password)


def test_an_overlay_of_ones_own_is_built(tmp_path: Path) -> None:
    (overlay,) = re.findall(r"^```yaml\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    for folder in (KUBERNETES, ROOT / "grafana"):
        shutil.copytree(folder, tmp_path / folder.relative_to(ROOT))
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "kustomization.yaml").write_text(overlay)
    (mine / "abridge.toml").write_text("# mine\n")
    objects = kustomized(mine)
    (settings,) = [thing for thing in objects if "abridge.toml" in thing.get("data", {})]
    assert settings["data"]["abridge.toml"] == "# mine\n"
    deployment = one(objects, "Deployment", "abridge")["spec"]["template"]["spec"]
    assert deployment["volumes"][0]["configMap"]["name"] == settings["metadata"]["name"]
    assert deployment["containers"][0]["image"] == "registry.mine.example/abridge:0.1.0"


@pytest.mark.parametrize("page", ["deploy/README.md", "README.md"])
def test_what_it_names_is_there(page: str) -> None:
    text = (ROOT / page).read_text()
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
    named = re.findall(r"\bdeploy/[\w./-]+\w|\bgrafana/[\w./-]+\w", text)
    assert links or named
    for link in links:
        assert (ROOT / page).parent.joinpath(link).exists(), link
    for name in named:
        assert (ROOT / name).exists(), name
