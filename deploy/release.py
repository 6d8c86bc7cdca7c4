"""Build all that a release consists of: `python deploy/release.py ADDRESS [--into FOLDER]`.

ADDRESS is where the repository can be browsed, such as https://github.com/example/abridge. The
README's links are made absolute with it, and the packages name it, so that both are right on a
package index. What is built is the commit that is checked out, tagged `v` and its version or not:

- `asgi_abridge-*.whl` and `.tar.gz`
- `asgi-abridge-*.cdx.json`: what the wheel brings with it, in CycloneDX
- `abridge-*.tgz`: the chart, if there is a helm
- the image `abridge:VERSION`, if there is a docker that answers; it is not pushed
- `SHA256SUMS`

It needs git and `pip install --group release`.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#|mailto:)([^)\s]+)\)")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build all that a release consists of.")
    parser.add_argument("address", help="where the repository can be browsed")
    parser.add_argument("--into", type=Path, default=ROOT / "dist", help="the folder to fill")
    options = parser.parse_args()
    into = options.into.resolve()
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="release-") as name:
        source = Path(name) / "source"
        check_out(source)
        version = read_version(source)
        name_address(source, options.address.rstrip("/"), version)
        build_packages(source, into)
        list_components(into, version, Path(name))
        build_chart(source, into)
        build_image(source, version)
    write_sums(into)


def check_out(folder: Path) -> None:
    """Write the files of the commit that is checked out."""
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")


def read_version(source: Path) -> str:
    module = (source / "middleware" / "abridge" / "__init__.py").read_text()
    found = re.search(r'^__version__ = "(.+)"$', module, re.MULTILINE)
    if found is None:
        raise SystemExit("There is no __version__.")
    return found[1]


def name_address(source: Path, address: str, version: str) -> None:
    """Put the address into the README's links and the packages' metadata."""
    readme, project = source / "README.md", source / "pyproject.toml"
    text = absolute_links(readme.read_text(), address, version)
    readme.write_text(text.replace("<address of this repository>", address))
    urls = {
        "Source": address,
        "Documentation": f"{address}/blob/v{version}/README.md",
        "Changelog": f"{address}/blob/v{version}/CHANGELOG.md",
    }
    table = "".join(f'{name} = "{url}"\n' for name, url in urls.items())
    project.write_text(f"{project.read_text()}\n[project.urls]\n{table}")


def absolute_links(text: str, address: str, version: str) -> str:
    """Return a page of the root with its links to other files made absolute: an index has none of
    them. An image needs the file itself, and not the page that shows it."""

    def link(found: re.Match[str]) -> str:
        kind = "raw" if found[1] else "blob"
        return f"{found[1]}[{found[2]}]({address}/{kind}/v{version}/{found[3]})"

    return LINK.sub(link, text)


def build_packages(source: Path, into: Path) -> None:
    run(sys.executable, "-m", "build", "--quiet", "--outdir", into, source)


def list_components(into: Path, version: str, work: Path) -> None:
    """Install the wheel where nothing else is, and list what came with it."""
    environment = work / "environment"
    venv.create(environment)
    python = environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    (wheel,) = into.glob(f"asgi_abridge-{version}-*.whl")
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", wheel)
    listed = into / f"asgi-abridge-{version}.cdx.json"
    command = (sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible")
    run(*command, "--output-file", listed, python)


def build_chart(source: Path, into: Path) -> None:
    helm = shutil.which("helm")
    if helm is None:
        print("No chart: there is no helm here.")
    else:
        run(helm, "package", "--destination", into, source / "deploy" / "helm" / "abridge")


def build_image(source: Path, version: str) -> None:
    docker = shutil.which("docker")
    if (
        docker is None
        or subprocess.run([docker, "info"], check=False, capture_output=True).returncode
    ):
        print("No image: there is no docker here that answers.")
        return
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    arguments = (f"--build-arg=VERSION={version}", f"--build-arg=REVISION={commit}")
    file = source / "deploy" / "Dockerfile"
    run(docker, "build", "-f", file, *arguments, "-t", f"abridge:{version}", source)


def write_sums(into: Path) -> None:
    files = sorted(file for file in into.iterdir() if file.name != "SHA256SUMS")
    sums = (f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    (into / "SHA256SUMS").write_text("".join(sums))
    print("".join(f"{file.name}\n" for file in files), end="")


def run(*command: str | Path) -> None:
    subprocess.run(list(map(str, command)), check=True)


if __name__ == "__main__":
    main()
