"""Test what type checkers make of the documentation's programs, and of mistakes in settings."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import abridge
from tests.docs.pages import ROOT, blocks

PACKAGES = Path(abridge.__file__).parents[1]

FORMS = """\
from abridge import LimitSettings, PromptSettings, Settings, SummarizerSettings, SummarySettings
from abridge import UpstreamSettings

Settings(summary={"default": "auto", "allow": ["auto", "title"], "grace": 3})
Settings(summary=SummarySettings(default="auto", allow=["auto", "title"], grace=3))
Settings(upstreams=[{"name": "a", "models": ["a-*"], "summary": {"live": False}}])
Settings(upstreams=[UpstreamSettings(models=["a-*"]), {"name": "b", "rename": {"a": "b"}}])
Settings(limits={"body": "32MiB", "held": 1 << 20}, history={"anonymous": "loopback"})
Settings(limits=LimitSettings(body=1 << 20), server={"allowed_hosts": ("*.internal",)})
Settings(summarizer=SummarizerSettings(prompts=PromptSettings(auto="Sum up.")))
Settings(summarizer={"prompts": {"auto": "Sum up."}, "extra_body": {"seed": 1}})
grace: float = Settings().summary.grace
"""

MISTAKES = """\
from abridge import Settings, SummarySettings

Settings(summary={"default": "sometimes"})
Settings(summary={"grace": "soon"})
Settings(summary={"defalt": "auto"})
Settings(sumary={"default": "auto"})
Settings(upstreams=[{"api": "chats"}])
Settings(upstreams=[{"summary": {"defalt": "auto"}}])
SummarySettings(defalt="auto")
SummarySettings(default="sometimes")
"""

Checker = Callable[[Path, Path], Iterator[tuple[str, int]]]
"""Checks a folder, and yields the file and the line of each error; the other folder is for what it
learns of Abridge, until the next run."""


def mypy(folder: Path, cache: Path) -> Iterator[tuple[str, int]]:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    options = ("--strict", "--ignore-missing-imports", "--follow-imports=silent", "--config-file=")
    ran = subprocess.run(  # noqa: S603 -- fixed command
        [sys.executable, "-m", "mypy", *options, f"--cache-dir={cache}", "."],
        cwd=folder,
        env={**os.environ, "MYPYPATH": "" if "site-packages" in PACKAGES.parts else str(PACKAGES)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode in (0, 1), ran.stderr
    sys.stdout.write(ran.stdout)
    for file, line in re.findall(r"^(.+?):(\d+): error:", ran.stdout, re.MULTILINE):
        yield file, int(line)


def pyright(folder: Path, _: Path) -> Iterator[tuple[str, int]]:
    command = shutil.which("pyright")
    if command is None:
        pytest.skip("pyright is not installed")
    settings = {"extraPaths": [str(PACKAGES)], "reportMissingImports": False}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    ran = subprocess.run(  # noqa: S603 -- fixed command
        [command, "--outputjson", "--pythonpath", sys.executable],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    sys.stdout.write(ran.stdout)
    for found in json.loads(ran.stdout)["generalDiagnostics"]:
        if found["severity"] == "error":
            yield Path(found["file"]).name, found["range"]["start"]["line"] + 1


def programs() -> Iterator[tuple[str, str]]:
    """Yield the documentation's programs that use Abridge, each with a name for its file."""
    if importlib.util.find_spec("fastapi") is not None:
        yield "fastapi_app.py", (ROOT / "docs" / "examples" / "fastapi_app.py").read_text()
    for block in blocks("python"):
        if "from abridge import" in block.text:
            yield f"{block.page.stem.lower().replace('-', '_')}_{block.line}.py", block.text


@pytest.mark.repeat  # CI asks for it
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_type_checkers_accept_the_documentations_programs_and_no_wrong_setting(
    checker: Checker, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    files = {**dict(programs()), "forms.py": FORMS, "mistakes.py": MISTAKES}
    assert len(files) > 5
    for name, program in files.items():
        (tmp_path / name).write_text(program)
    mistaken = {
        ("mistakes.py", number)
        for number, line in enumerate(MISTAKES.splitlines(), 1)
        if line.endswith(")")
    }
    assert set(checker(tmp_path, pytestconfig.cache.mkdir("type-checker"))) == mistaken
