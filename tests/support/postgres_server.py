"""A real PostgreSQL server on loopback, where the machine has the programs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Self

import pytest

from tests.support.redis_server import ATTEMPTS, free_port

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))

USER = "nobody"
"""Who runs it where the tests are root's, for whom it does not run."""

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "max_connections": "20",
}


class PostgresServer:
    """A server in a folder of its own, which can be stopped and started at the same address."""

    def __init__(self) -> None:
        pytest.importorskip("asyncpg", reason="asyncpg is not installed")
        found = shutil.which("initdb") or (PROGRAMS and str(PROGRAMS[-1] / "initdb"))
        if not found:
            pytest.skip("no PostgreSQL on this machine")
        self._programs = Path(found).parent
        self._folder = Path(mkdtemp(prefix="postgres-"))
        self._as_user = {"user": USER, "group": "nogroup"} if os.getuid() == 0 else {}
        if self._as_user:
            shutil.chown(self._folder, USER)
        self._names = count()
        self.port = 0

    def __enter__(self) -> Self:
        self._run("initdb", "-D", "data", "-U", "abridge", "-A", "trust", "--no-sync", "-E", "UTF8")
        for _ in range(ATTEMPTS):  # another process may take the port first
            self.port = free_port()
            with suppress(subprocess.CalledProcessError):
                self.start()
                return self
        raise ChildProcessError(f"PostgreSQL does not start: {self._folder / 'log'}")

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        options = " ".join(f"-c {name}='{value}'" for name, value in SETTINGS.items())
        self._run(
            "pg_ctl", "-D", "data", "-w", "-l", "log", "-o", f"-p {self.port} {options}", "start"
        )

    def stop(self) -> None:
        """Stop at once, as after a crash."""
        with suppress(subprocess.CalledProcessError):
            self._run("pg_ctl", "-D", "data", "-m", "immediate", "-w", "stop")

    async def new_database(self) -> str:
        """Return the address of an empty database."""
        name = f"ledger_{next(self._names)}"
        await self.query(self.url("postgres"), f"CREATE DATABASE {name}")
        return self.url(name)

    def url(self, database: str) -> str:
        return f"postgresql://abridge@127.0.0.1:{self.port}/{database}"

    @staticmethod
    async def query(url: str, statement: str, *arguments: object) -> list[Any]:
        """Run a statement in a database, and return its rows."""
        import asyncpg  # type: ignore[import-untyped]

        connection = await asyncpg.connect(url)
        try:
            return [tuple(row) for row in await connection.fetch(statement, *arguments)]
        finally:
            await connection.close()

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(  # noqa: S603 -- found on this machine
            (str(self._programs / program), *arguments),
            cwd=self._folder,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self._as_user,  # type: ignore[call-overload]
        )


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """Run one server for all tests; each test uses a database of its own."""
    with PostgresServer() as server:
        yield server
