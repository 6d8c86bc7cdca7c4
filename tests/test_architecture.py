"""The shape of the package: which folder may import which, and what modules have in common.

`docs/architecture.md` says what each folder is for. A new folder takes its place in `FOLDERS`.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import abridge
from abridge.apis.registry import APIS, UPSTREAM_APIS

PACKAGE = Path(abridge.__file__).parent

FOLDERS = (
    "errors",
    "caches",
    "lazy_re",
    "work",
    "waiting",
    "breaker",
    "client_shares",
    "lasting",
    "http",
    "core",
    "providers",
    "stages",
    "apis",
    "attribution",
    "config",
    "memory",
    "observability",
    "summarizers",
    "stored_responses",
    "pipeline",
    "background",
    "websocket",
    "serving",
    "middleware",
    "sidecar",
    "sidecar.admin",
    "sidecar.client_keys",
    "sidecar.proxy",
    "sidecar.page",
    "sidecar.app",
    "sidecar.server",
    "sidecar.check",
    "sidecar.demo",
    "sidecar.cli",
    "__main__",
    "__init__",
)
"""Folders, and the modules beside them, from the bottom up: each may import those before it."""

MAY_ONLY_IMPORT = {
    "errors": set[str](),
    "caches": set[str](),
    "lazy_re": set[str](),
    "work": set[str](),
    "waiting": set[str](),
    "breaker": set[str](),
    "client_shares": {"caches"},
    "lasting": set[str](),
    "http": {"errors", "caches", "waiting"},
    "core": {"caches"},
    "providers": {"caches", "core"},
    "stages": {"caches", "lazy_re", "core", "providers"},
    "apis": {"errors", "caches", "core", "providers", "stages"},
    "attribution": {"core", "apis"},
    "config": {"errors", "http", "core", "providers", "apis"},
    "sidecar.page": {"http", "core", "apis", "observability", "config"},
}
"""Folders that may import only some of those before them."""

PURE_FOLDERS = ("core", "providers", "stages", "apis", "attribution")

IMPURE_MODULES = frozenset(
    {
        *("anyio", "asyncio", "concurrent", "contextvars", "datetime", "httpx"),
        *("logging", "multiprocessing", "os", "pathlib", "redis", "select", "selectors", "socket"),
        *("ssl", "starlette", "subprocess", "threading", "time", "uvicorn"),
    }
)
"""Sockets, clocks, tasks, files and frameworks."""

API_MODULES = ("api", "request", "messages", "tools", "reasoning", "reader", "history", "errors")
"""The modules that each API has; one that clients speak has `shapes` and a `writer` as well."""

BUDGETS = {"abridge.": 68_326, "abridge.apis.": 25_065, "abridge.stages.": 2_423}
"""Lines of all modules of a folder: a feature pays with lines that it makes unnecessary."""


class Import(NamedTuple):
    """An import of a module of the package, or of another top-level module."""

    importer: str
    imported: str
    line: int
    is_deferred: bool  # in a function
    for_types: bool  # for type checkers alone

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


def module_name(path: Path) -> str:
    parts = ("abridge", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def folder_of(module: str) -> str:
    """Return a module's folder below the package; the sidecar's folders stand for themselves."""
    _, folder, *inner = f"{module}.__init__".split(".")
    below = [name for name in inner if name != "__init__"][:1]
    return ".".join([folder, *below]) if folder == "sidecar" else folder


@cache
def imports_of(module: str) -> tuple[Import, ...]:
    return tuple(_imports_of(module))


def _imports_of(module: str) -> Iterator[Import]:
    """Yield a module's imports. The version is the package's own, and anybody may import it."""
    pending: list[tuple[ast.AST, bool, bool]] = []
    pending.append((ast.parse(MODULES[module].read_text()), False, False))
    while pending:
        node, is_deferred, for_types = pending.pop()
        for_types |= isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        is_deferred |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        children = (each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.expr))
        pending += [(child, is_deferred, for_types) for child in children]
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name != "abridge.__version__":
                imported = name if name in MODULES else name.rpartition(".")[0] or name
                yield Import(module, imported, node.lineno, is_deferred, for_types)


@cache
def all_imports() -> list[Import]:
    """Return all imports that are run."""
    return [found for module in MODULES for found in imports_of(module) if not found.for_types]


def within_package() -> list[Import]:
    return [found for found in all_imports() if found.imported in MODULES]


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Not even in a function, or for type checkers: each can be read after those that it needs."""
    graph = {
        module: {found.imported for found in imports_of(module)} - {module} for module in MODULES
    }
    circle = []
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = error.args[1]
    assert not circle, " imports ".join(reversed(circle))


def test_each_folder_has_its_place() -> None:
    assert {folder_of(module) for module in MODULES} == set(FOLDERS)


def test_folders_import_only_what_is_below_them() -> None:
    wrong = [
        str(found)
        for found in within_package()
        if not _is_below(folder_of(found.imported), folder_of(found.importer))
    ]
    assert wrong == []


def _is_below(imported: str, importer: str) -> bool:
    below = FOLDERS[: FOLDERS.index(importer)]
    return imported == importer or imported in MAY_ONLY_IMPORT.get(importer, below)


def test_the_library_imports_nothing_of_the_sidecar() -> None:
    """What is mounted in an application does not carry a server, a proxy and a command."""
    library = [module for module in MODULES if not _is_of_sidecar(module)]
    wrong = [
        str(found)
        for found in within_package()
        if found.importer in library and _is_of_sidecar(found.imported) and not found.is_deferred
    ]
    assert wrong == []


def _is_of_sidecar(module: str) -> bool:
    return folder_of(module).startswith(("sidecar", "__main__"))


def test_pure_folders_have_no_socket_no_clock_and_no_task() -> None:
    wrong = [
        str(found)
        for found in all_imports()
        if folder_of(found.importer) in PURE_FOLDERS
        and found.imported.split(".")[0] in IMPURE_MODULES
    ]
    assert wrong == []


def test_the_package_keeps_within_its_budgets() -> None:
    lines = {module: len(path.read_text().splitlines()) for module, path in MODULES.items()}
    for folder, budget in BUDGETS.items():
        assert sum(count for module, count in lines.items() if module.startswith(folder)) <= budget


def test_the_folders_of_all_apis_have_the_same_modules() -> None:
    clients = {api.name for api in APIS}
    for name in UPSTREAM_APIS:
        expected = {*API_MODULES, *(["shapes", "writer"] if name in clients else [])}
        present = {path.stem for path in (PACKAGE / "apis" / name).glob("*.py")}
        assert expected - present == set(), f"abridge.apis.{name}"


def public_classes(module: str) -> list[str]:
    return re.findall(r"^class ([^\W_]\w*)", MODULES[module].read_text(), re.MULTILINE)


def test_no_public_class_shares_its_name() -> None:
    names = Counter(name for module in MODULES for name in public_classes(module))
    assert not {name for name, count in names.items() if count > 1}


def test_the_same_role_in_each_api_bears_the_apis_name() -> None:
    """Whoever knows one API finds the class of another by its name."""
    clients = {api.name for api in APIS}
    for name in UPSTREAM_APIS:
        folder = f"abridge.apis.{name}."
        classes = {
            found
            for module in MODULES
            if module.startswith(folder)
            for found in public_classes(module)
        }
        roles = {"Reader", "History", "ConversationBuilder"}
        roles |= {"Writer", "Rebuilder"} if name in clients else set()
        assert {f"{name.title()}{role}" for role in roles} <= classes
