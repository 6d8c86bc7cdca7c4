"""Test what a release says of itself, wherever it is read."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import abridge
from tests.deploy.dockerfile import ROOT

ADDRESS = "https://git.example/abridge"


@pytest.fixture(scope="module")
def release() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "deploy" / "release.py"))


@pytest.mark.parametrize(
    ("link", "absolute"),
    [
        (
            "[hiding](docs/hiding.md#promised)",
            f"[hiding]({ADDRESS}/blob/v1.2/docs/hiding.md#promised)",
        ),
        ("![The page](docs/page.png)", f"![The page]({ADDRESS}/raw/v1.2/docs/page.png)"),
        ("[below](#use-it)", "[below](#use-it)"),
        ("[spec](https://openai.com/a)", "[spec](https://openai.com/a)"),
    ],
)
def test_links_lead_somewhere_on_a_package_index(
    release: dict[str, Any], link: str, absolute: str
) -> None:
    assert release["absolute_links"](f"See {link}.", ADDRESS, "1.2") == f"See {absolute}."


def test_the_packages_name_the_address(release: dict[str, Any], tmp_path: Path) -> None:
    for name in ("README.md", "pyproject.toml"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    release["name_address"](tmp_path, ADDRESS, "1.2")
    urls = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]["urls"]
    assert urls["Source"] == ADDRESS
    readme = (tmp_path / "README.md").read_text()
    assert f"git clone {ADDRESS} abridge" in readme
    assert not re.findall(r"\]\((?!https?://|#)", readme)


def test_all_say_the_same_version(release: dict[str, Any]) -> None:
    chart = yaml.safe_load((ROOT / "deploy" / "helm" / "abridge" / "Chart.yaml").read_text())
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    versions = [release["read_version"](ROOT), *map(chart.get, ("version", "appVersion"))]
    assert {*versions, citation["version"]} == {abridge.__version__}
