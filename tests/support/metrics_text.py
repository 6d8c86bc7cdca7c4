"""`/metrics`, parsed as Prometheus parses it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import fsum

import httpx
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.support.servers import HANG


class Metrics:
    """Only the lines that are asked for are parsed: tests scrape again until they see what they
    wait for."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()

    def _samples(self, beginning: str) -> list[Sample]:
        text = "\n".join(line for line in self._lines if line.startswith(beginning))
        return [
            sample for family in text_string_to_metric_families(text) for sample in family.samples
        ]

    def total(self, name: str, **labels: str) -> float:
        """Sum all samples that have these labels among others."""
        return fsum(
            sample.value
            for sample in self._samples(f"abridge_{name}")
            if sample.name == f"abridge_{name}" and labels.items() <= sample.labels.items()
        )

    @property
    def counted(self) -> set[tuple[str, frozenset[tuple[str, str]], float]]:
        """The labelled counters."""
        return {
            (sample.name, frozenset(sample.labels.items()), sample.value)
            for sample in self._samples("")
            if sample.name.endswith("_total") and sample.labels
        }


async def scrape(client: httpx.AsyncClient, url: str) -> Metrics:
    response = await client.get(url)
    assert response.status_code == 200
    return Metrics(response.text)


async def scrape_until(
    client: httpx.AsyncClient, url: str, condition: Callable[[Metrics], bool]
) -> Metrics:
    """Scrape until `condition` holds: a request may be counted after its client has its answer."""
    async with asyncio.timeout(HANG):
        while not condition(metrics := await scrape(client, url)):  # noqa: ASYNC110 -- another process
            await asyncio.sleep(0.02)
    return metrics
