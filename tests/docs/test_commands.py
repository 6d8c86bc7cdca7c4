"""Check the commands, settings and programs on the pages for readers.

- Each line of a `console` block that begins with `$ `, or `# ` for root, is a command, with the
  lines that it goes on over. Its shell syntax is parsed, files of the project that it names exist,
  and each program in it is checked as `PROGRAMS` says:
  `abridge` by the real command line, with the settings that its flags, the variables set before it
  and the page's own file make; the lines shown below `abridge serve` are the ones it prints, and
  `abridge profiles` and `abridge demo` are run;
  `curl` with Abridge's address is run against `abridge demo --serve`, and has to succeed; that of
  docs/hiding.md with the page's own settings, too;
  `pip` by the extras and groups of pyproject.toml; `python -m` by the module it names;
  others, such as `kubectl`, by no more than the program that they run after a `--`, since they are
  not here or would change the machine.
- In the text, `abridge` in a span of code is followed by commands and options that there are.
- A `toml` block is loaded as settings, alone or, where it only adds to them, over an earlier one of
  its page, unless its first line names another program's file. That, `json` and `yaml` are parsed;
  there may be several documents in one.
- A `python` block compiles; `test_types.py` type-checks it, and `test_examples.py` runs those for
  clients.
- A `text` block, or one without a language, is a picture or an output, and is checked only where
  `test_examples.py` runs the program above it. Any other language is refused.
"""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

from abridge.config.loading import load_settings
from abridge.errors import AbridgeError, SettingsError
from abridge.sidecar.cli.commands import main, serve
from abridge.sidecar.cli.options import nest_options
from abridge.sidecar.cli.serving import startup_lines
from tests.docs.pages import (
    ADDRESS,
    PAGES,
    ROOT,
    Block,
    assert_printed,
    blocks,
    blocks_of,
    name_of,
    texts_of,
    with_readers_own,
    without_fences,
)
from tests.support.servers import serve as serve_app
from tests.support.servers import unused_address
from tests.support.sidecar import environment, sidecar
from tests.support.streams import chat_stream
from tests.support.upstream import Answer, Upstream

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
OWN_FILE = re.compile(r"\b(?:deploy|docs|grafana|middleware|tests)/[\w./-]*\w")
SUBSTITUTION = re.compile(r"\$\(([^()]*)\)")
OPERATORS = ("&&", "||", "|", ";", "&")
OUR_FILE = "abridge.toml"


@dataclass
class Command:
    """A command of a page, the lines shown below it, and what was set and defined before it."""

    block: Block
    text: str
    output: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        return f"{self.block}: {self.text.partition(chr(10))[0]:.60}"

    def programs(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each program that it runs, with its arguments."""
        inner = SUBSTITUTION.findall(self.text)
        for text in (*inner, SUBSTITUTION.sub("_", self.text)):
            for is_operator, words in groupby(_words(text), OPERATORS.__contains__):
                if not is_operator and (rest := self._without_head(list(words))):
                    yield rest[0], rest[1:]

    def _without_head(self, words: list[str]) -> list[str]:
        """Note the variables and the function that words set; return what is left of them."""
        while words:
            name, assigned, value = words[0].lstrip("(").partition("=")
            if name.endswith("()"):
                self.functions.add(name[:-2])
                words = words[1:]  # and the brace
            elif assigned and name.isidentifier():
                self.variables[name] = value
            elif name not in ("export", "}"):
                return [name, *words[1:]]
            words = words[1:]
        return []


def _words(text: str) -> list[str]:
    lexer = shlex.shlex(text.replace("\\\n", ""), posix=True, punctuation_chars="&|;")
    lexer.whitespace_split = True
    return list(lexer)


def commands_of(block: Block) -> Iterator[Command]:
    variables, functions = dict[str, str](), set[str]()
    prompt = "# " if block.text.startswith("# ") else "$ "
    command: Command | None = None
    for line in block.text.splitlines():
        if command is not None and _goes_on(command.text):
            command.text += f"\n{line}"
        elif line.startswith(prompt):
            if command is not None:
                yield command
            command = Command(block, line[2:], "", variables, functions)
        else:
            command = command or Command(block, "")  # which is refused
            command.output += f"{line}\n"
    if command is not None:
        yield command


def _goes_on(text: str) -> bool:
    try:
        _words(text)
    except ValueError:  # a quote is open
        return True
    return text.endswith("\\")


COMMANDS = [command for block in blocks("console") for command in commands_of(block)]


def check_abridge(command: Command, arguments: list[str], folder: Path, demo: str) -> None:
    words, parser = list(arguments), main
    while isinstance(parser, click.Group) and words and not words[0].startswith("-"):
        assert words[0] in parser.commands, f"there is no abridge {words[0]}"
        parser = parser.commands[words.pop(0)]  # type: ignore[assignment]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        if {"--help", "--version", "-h"} & set(words):
            run_abridge(arguments)
            return
        with parser.make_context("abridge", list(words)) as context:
            given = context.params
    if {"upstream", "config"} <= given.keys():
        check_settings(command, given, folder)
    elif parser.name in ("profiles", "demo") and not given.get("serve"):
        assert_printed(command.output, run_abridge(arguments))


def check_settings(command: Command, given: Mapping[str, Any], folder: Path) -> None:
    """Load the settings of an `abridge serve` or `abridge check`, and compare what it prints."""
    flags = {option.name or "" for option in serve.params} - {"config", "upstream"}
    nested = nest_options(given["upstream"], {name: given[name] for name in flags})
    config = given["config"] and page_settings(command.block, Path(given["config"]).name, folder)
    settings = load_settings(config, command.variables, nested)
    assert settings.upstreams or given["config"]
    if command.output:
        assert_printed(command.output, "\n".join(startup_lines(settings, ADDRESS, None)))


def page_settings(block: Block, name: str, folder: Path) -> Path | None:
    """Write the file that a command names, as its page shows it; None if it shows none."""
    texts = [each.text for each in blocks_of(block.page) if each.language == "toml"]
    shown = next((text for text in texts if name in text.partition("\n")[0]), None)
    if shown is None:
        return None
    file = folder / name
    file.write_text(shown)
    return file


def check_curl(command: Command, arguments: list[str], folder: Path, demo: str) -> None:
    if ADDRESS not in command.text or shutil.which("curl") is None:
        return
    run(("curl", "--fail", *(with_readers_own(each, demo) for each in arguments)), folder)


def check_pip(command: Command, arguments: list[str], folder: Path, demo: str) -> None:
    for extra in re.findall(r"\.\[([\w,]+)\]", " ".join(arguments)):
        names = set(extra.split(","))
        assert names <= PROJECT["project"]["optional-dependencies"].keys()
    for option, value in pairwise(arguments):
        assert option != "--group" or value in PROJECT["dependency-groups"]


def check_python(command: Command, arguments: list[str], folder: Path, demo: str) -> None:
    if arguments[0] == "-m":
        assert importlib.util.find_spec(arguments[1]) is not None
    else:
        assert any(ROOT.glob(f"docs/examples/{arguments[0]}")) or (ROOT / arguments[0]).exists()


def check_uvicorn(command: Command, arguments: list[str], folder: Path, demo: str) -> None:
    module, _, app = arguments[0].partition(":")
    assert app.isidentifier()
    known = (ROOT / "docs" / "examples" / f"{module}.py").exists()
    assert known or f"`{module}.py`" in command.block.page.read_text()


def check_inner(command: Command, arguments: list[str], folder: Path, demo: str) -> None:
    """Check only what follows `--`; the program is not here, or would change the machine."""
    if "--" in arguments:
        inner = arguments[arguments.index("--") + 1 :]
        check_program(command, inner, folder, demo)


PROGRAMS: dict[str, Callable[[Command, list[str], Path, str], None]] = {
    "abridge": check_abridge,
    "curl": check_curl,
    "pip": check_pip,
    "python": check_python,
    "python3": check_python,
    "uvicorn": check_uvicorn,
    **dict.fromkeys(
        (
            *(".", "cd", "echo", "git", "install", "npm", "openssl", "pytest", "umask", "uv"),
            *("aider", "claude", "cline", "codex", "export", "open-webui"),
            *("buildah", "docker", "helm", "kubectl", "kustomize", "sudo", "systemctl"),
        ),
        check_inner,
    ),
}


def is_ours(block: Block) -> bool:
    """Return whether a block holds settings, and is not the file of another program."""
    first = block.text.partition("\n")[0]
    names_a_file = re.match(r"# \S*\w\.\w", first) is not None
    return block.language == "toml" and (OUR_FILE in first or not names_a_file)


def run_abridge(arguments: list[str]) -> str:
    ran = CliRunner().invoke(main, arguments)
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def run(command: tuple[str, ...], folder: Path) -> str:
    ran = subprocess.run(  # noqa: S603 -- the documentation's own
        command,
        cwd=folder,
        env=environment({"NO_COLOR": "1"}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_every_command_is_one(command: Command, demo: str, tmp_path: Path) -> None:
    check(command, tmp_path, demo)


needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")


@pytest.mark.parametrize(
    "text",
    [
        "frobnicate",
        "abridge sevre",
        "abridge serve --upsteam http://127.0.0.1:8000/v1",
        "abridge serve --upstream nowhere",
        "abridge serve --upstream http://127.0.0.1:8000/v1 --port seventy",
        "ABRIDGE_SUMMARY__DEFAULT=sometimes abridge serve --upstream http://127.0.0.1:8000/v1",
        "abridge serve --upstream http://127.0.0.1:8000/v1\nabridge serves",
        "abridge profiles nobody",
        pytest.param("curl http://127.0.0.1:8400/v1/no/such/path", marks=needs_curl),
        "pip install '.[nothing]'",
        "python -m tests.nothing",
        "kubectl exec pod -- /opt/abridge/bin/abridge checks",
        "cat deploy/nothing.yaml",
        "cd 'somewhere",
    ],
)
def test_a_command_that_is_wrong_is_found(text: str, demo: str, tmp_path: Path) -> None:
    block = Block(ROOT / "README.md", 1, "console", f"$ {text}\n")
    with pytest.raises((AssertionError, ValueError, click.ClickException, AbridgeError)):
        check_all(commands_of(block), tmp_path, demo)


@needs_curl
@pytest.mark.parametrize("has_summarizer", [True, False])
async def test_hiding_goes_as_its_page_says(
    demo: str, tmp_path: Path, *, has_summarizer: bool
) -> None:
    page, file = "docs/hiding.md", tmp_path / OUR_FILE
    curl = next(text for text in texts_of(page, "console") if text.startswith("$ curl"))[2:]
    written = "**Planning the oven**\n\nI work out when each dish has to go in."
    async with serve_app(Upstream(Answer(chat_stream("", written)))) as summarizer:
        other = summarizer if has_summarizer else unused_address()
        text = texts_of(page, "toml")[0].replace("http://127.0.0.1:8000", demo)
        file.write_text(text.replace("http://127.0.0.1:8001", other))
        async with sidecar("--config", str(file)) as running:
            hidden, raw = [
                json.loads(await asyncio.to_thread(run, ("sh", "-c", command), tmp_path))
                for command in (with_readers_own(curl, url) for url in (running.url, demo))
            ]
    reasoning = hidden["output"][0]
    assert reasoning["content"] == []
    assert bool(reasoning["summary"]) == has_summarizer != ("summary_error" in reasoning)
    shown, (thought,) = json.dumps(hidden, ensure_ascii=False), raw["output"][0]["content"]
    for words in re.findall(r"[^.\n]{30,}", thought["text"]):
        assert words not in shown


def check_all(found: Iterable[Command], tmp_path: Path, demo: str) -> None:
    for command in found:
        check(command, tmp_path, demo)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_and_option_named_in_the_text_exists(page: Path) -> None:
    for span in re.findall(r"`abridge( [^`]+)`", without_fences(page)):
        words, parser = span.split(), main
        while isinstance(parser, click.Group) and words and words[0].isalpha():
            assert words[0] in parser.commands, span
            parser = parser.commands[words.pop(0)]  # type: ignore[assignment]
        known = {name for option in parser.params for name in option.opts} | {"--help", "--version"}
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known, span


def check(command: Command, tmp_path: Path, demo: str) -> None:
    assert command.text, "a console block begins with a command, after `$ `"
    if (shell := shutil.which("bash")) is not None:
        run((shell, "-n", "-c", command.text), tmp_path)
    for file in OWN_FILE.findall(command.text):
        assert (ROOT / file).exists(), file
    for program, arguments in command.programs():
        check_program(command, [program, *arguments], tmp_path, demo)


def check_program(command: Command, words: list[str], folder: Path, demo: str) -> None:
    program = words[0].rpartition("/")[2]
    if program not in command.functions:
        assert program in PROGRAMS, f"say in PROGRAMS how {program} is checked"
        PROGRAMS[program](command, words[1:], folder, demo)


@pytest.mark.parametrize("block", [*filter(is_ours, blocks("toml"))], ids=str)
def test_every_settings_file_is_valid(block: Block, tmp_path: Path) -> None:
    check_toml(block, [*filter(is_ours, blocks_of(block.page))], tmp_path / OUR_FILE)


def test_settings_that_are_wrong_are_found(tmp_path: Path) -> None:
    """Those that others before them complete are right, and only those."""
    page, hides = ROOT / "README.md", '[reasoning]\nexpose = "summary"\n'
    writes = 'kind = "model"\nbase_url = "http://127.0.0.1:8001/v1"\nmodel = "small"\n'
    others = [Block(page, 1, "toml", f"[summarizer]\n{writes}")]
    check_toml(Block(page, 9, "toml", hides), others, tmp_path / OUR_FILE)
    for text, before in ((hides, []), ("[sumary]\n", others), ("[summary]\ngrace = -1\n", others)):
        with pytest.raises(SettingsError):
            check_toml(Block(page, 9, "toml", text), before, tmp_path / OUR_FILE)


def check_toml(block: Block, others: list[Block], file: Path) -> None:
    """Load a block as settings, alone or over one that is before it on its page."""
    added = tomllib.loads(block.text)
    try:
        load_settings(None, {}, added)
    except SettingsError:
        for other in others:
            file.write_text(other.text)
            if other.line < block.line:
                with suppress(SettingsError):
                    load_settings(file, {}, added)
                    return
        raise


def tables_in(text: str) -> list[object]:
    return [tomllib.loads(text)]


def values_in(text: str) -> Iterator[object]:
    """Yield the values of a block, one after the other."""
    rest = text.strip()
    while rest:
        value, end = json.JSONDecoder().raw_decode(rest)
        yield value
        rest = rest[end:].strip()


@pytest.mark.parametrize("block", blocks("json", "toml", "yaml"), ids=str)
def test_every_document_can_be_read(block: Block) -> None:
    read = {"toml": tables_in, "json": values_in, "yaml": yaml.safe_load_all}[block.language]
    assert all(list(read(block.text)))


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_every_program_compiles(block: Block) -> None:
    assert ast.parse(block.text, str(block)).body


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_is_in_a_language_that_is_checked(page: Path) -> None:
    checked = {"", "console", "js", "json", "python", "sql", "text", "toml", "yaml"}
    others = [str(block) for block in blocks_of(page) if block.language not in checked]
    assert not others
    assert page.read_text().count("```") == 2 * len(list(blocks_of(page)))
