"""Replay deploy/Dockerfile without a container engine: `python -m tests.deploy.replay`.

Its images become clean virtual environments, and the paths it names lie in a temporary folder. Then
a container is imitated: started as the image would start it, by its user and with its environment
only, found healthy by its own health check, and ended. It must not have written any file.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.deploy.dockerfile import ROOT, Instruction, health, image, instructions

PATIENCE = 60.0
"""Seconds before a step counts as failed."""

READ_ONLY = """
mount --make-rprivate /
mount -o remount,bind,ro /
user=$1 group=$2
shift 2
exec setpriv --reuid="$user" --regid="$group" --clear-groups -- "$@"
"""
"""Run a command as another user on a read-only file system; needs root."""


class Replay:
    """The build, step by step; `places` are the folders of the image that it has used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.places: list[str] = []
        self.env: dict[str, str] = {}
        self.stages = 0
        self.workdir = folder

    def here(self, text: str) -> str:
        """Return the text with each place moved into the folder."""
        for place in self.places:
            text = re.sub(rf"(?<![\w/.]){re.escape(place)}\b", f"{self.folder}{place}", text)
        return text

    def build(self) -> None:
        steps = instructions()
        for instruction in steps:
            if instruction.name == "WORKDIR":
                self.places.append(instruction.arguments)
            if "from" in instruction.flags:
                self.places.append(instruction.words[-1])
        runners: dict[str, Callable[[Instruction], None]] = {
            "FROM": self._from,
            "ENV": self._env,
            "WORKDIR": self._workdir,
            "COPY": self._copy,
            "RUN": self._run,
        }
        for instruction in steps:
            if instruction.name in runners:
                print(
                    f"   {instruction.name} {' '.join(instruction.arguments.split())}", flush=True
                )
                runners[instruction.name](instruction)

    def _from(self, _: Instruction) -> None:
        self.stages += 1
        base = self.folder / f"image-{self.stages}"
        subprocess.run([sys.executable, "-m", "venv", base], check=True)
        self.env = {"PATH": f"{base}/bin:/usr/bin:/bin", "HOME": str(self.folder)}
        passed_on = (
            "PIP_",
            "SSL_",
            "HTTP",
            "NO_PROXY",
            "http",
            "no_proxy",
        )  # how CI reaches a registry
        self.env |= {
            name: value for name, value in os.environ.items() if name.startswith(passed_on)
        }

    def _env(self, instruction: Instruction) -> None:
        for word in instruction.words:
            name, value = word.split("=", 1)
            self.env[name] = self.here(value).replace("$PATH", self.env["PATH"])

    def _workdir(self, instruction: Instruction) -> None:
        self.workdir = Path(self.here(instruction.arguments))
        self.workdir.mkdir(parents=True)

    def _copy(self, instruction: Instruction) -> None:
        *sources, target = instruction.words
        if "from" in instruction.flags:
            assert sources == [target], "an environment that is moved finds its parts no more"
            return
        for source in sources:
            given, to = ROOT / source, self.workdir / target
            if given.is_dir():
                shutil.copytree(given, to, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(given, to)

    def _run(self, instruction: Instruction) -> None:
        for path in re.findall(r"(?<![\w.:/])/\w[\w./-]*", instruction.arguments):
            assert path.startswith(tuple(self.places)), f"{path} is this machine's own"
        command = ["/bin/sh", "-ec", self.here(instruction.arguments)]
        subprocess.run(command, check=True, cwd=self.workdir, env=self.env)

    @property
    def environment(self) -> dict[str, str]:
        """Return a container's environment: the image's and no more."""
        names = [word.split("=", 1)[0] for word in image()["ENV"].words]
        return {name: self.env[name] for name in names}

    @property
    def entrypoint(self) -> list[str]:
        return [self.here(word) for word in image()["ENTRYPOINT"].words]


def identity() -> dict[str, Any]:
    """Return the user to run as: the image's if we are root and that user can run this Python."""
    if os.geteuid() != 0:
        return {}
    user, group = map(int, image()["USER"].arguments.split(":"))
    stranger = {"user": user, "group": group, "extra_groups": []}
    try:
        subprocess.run([os.path.realpath(sys.executable), "-c", ""], check=True, **stranger)
    except PermissionError:
        return {}
    return stranger


def contained(command: list[str]) -> list[str] | None:
    """Return the command on a read-only file system, or None if that is not possible here."""
    user = identity()
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "setpriv"))):
        return None
    ids = [str(user.get("user", 0)), str(user.get("group", 0))]
    inside = ["unshare", "--mount", "/bin/sh", "-ec", READ_ONLY, "sh", *ids]
    tried = subprocess.run([*inside, "/bin/true"], check=False, capture_output=True)
    return [*inside, *command] if tried.returncode == 0 else None


INSTALLED = "import importlib.metadata as m; print(*(d.name for d in m.distributions()))"


def itemize(replay: Replay, listing: list[str], options: dict[str, Any]) -> None:
    """Check that the bill of materials has each distribution of the environment, and no other."""
    bill = json.loads(Path(replay.here("/opt/abridge/sbom.cdx.json")).read_text())
    itself = bill["metadata"]["component"]["name"]
    found = {itself, *(component["name"] for component in bill["components"])}
    listed = subprocess.run(listing, check=True, capture_output=True, text=True, **options)
    installed = set(listed.stdout.split())
    names = [{_canonical(name) for name in each} for each in (found, installed)]
    assert names[0] == names[1], names[0] ^ names[1]
    assert all(component["purl"].startswith("pkg:pypi/") for component in bill["components"])
    print(f"   {len(found)} distributions, as the bill of materials says", flush=True)


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def check(replay: Replay) -> None:
    """Check that the image's command works, what it holds, and that no build tools are in it."""
    options = {"env": replay.environment, "cwd": "/", **identity()}
    for words in (["--version"], ["demo", "--fast"]):
        subprocess.run([*replay.entrypoint, *words], check=True, **options)
    python = Path(replay.entrypoint[0]).with_name("python")
    itemize(replay, [str(python), "-c", INSTALLED], options)
    for builder in ("pip", "setuptools", "hatchling"):
        looked = [python, "-c", f"import importlib.util as u; exit(not u.find_spec('{builder}'))"]
        assert subprocess.run(looked, check=False, **options).returncode == 1, builder


@contextmanager
def container(replay: Replay) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, str]]]:
    """Run a container on free ports; yield its process and environment."""
    port, admin = free(), free()
    env = {
        **replay.environment,
        "ABRIDGE_SERVER__PORT": str(port),
        "ABRIDGE_SERVER__ADMIN_PORT": str(admin),
        "ABRIDGE_UPSTREAMS": '[{"base_url": "http://127.0.0.1:9/v1"}]',
    }
    command = [*replay.entrypoint, *image()["CMD"].words]
    inside = contained(command)
    mode = "on a read-only file system" if inside else "on this machine's file system"
    print(f"   started {mode}, as {identity().get('user', 'whoever replays it')}", flush=True)
    options: dict[str, Any] = {} if inside else identity()
    running = subprocess.Popen(inside or command, env=env, cwd="/", **options)
    try:
        yield running, env
    finally:
        running.kill()
        running.wait()


def live(replay: Replay) -> None:
    """Start a container, find it healthy, end it, find it gone and its files unchanged."""
    before = written(replay.folder)
    with container(replay) as (running, env):
        health_command = [replay.here(word) for word in health()]
        assert running.poll() is None
        deadline = time.monotonic() + PATIENCE
        while subprocess.run(health_command, env=env, check=False, capture_output=True).returncode:
            assert time.monotonic() < deadline, "it does not become healthy"
            assert running.poll() is None, "it ended by itself"
            time.sleep(0.2)
        running.send_signal(getattr(signal, image()["STOPSIGNAL"].arguments))
        assert running.wait(PATIENCE) == 0, "it did not end well"
        gone = subprocess.run(health_command, env=env, check=False, capture_output=True).returncode
        assert gone, "what has ended is found healthy"
    assert written(replay.folder) == before, "it wrote into its own file system"


def written(folder: Path) -> dict[Path, float]:
    return {path: path.lstat().st_mtime for path in folder.rglob("*")}


def free() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)  # a container's user comes in, too
        replay = Replay(folder)
        replay.build()
        check(replay)
        live(replay)
    print("   healthy, ended with 0, and wrote nothing")


if __name__ == "__main__":
    main()
