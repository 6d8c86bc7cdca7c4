"""What `/metrics` tells, read as Prometheus reads it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import fsum

import httpx
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.support.servers import HANG


class Figures:
    def __init__(self, text: str) -> None:
        self._samples: list[Sample] = [
            sample for family in text_string_to_metric_families(text) for sample in family.samples
        ]

    def total(self, name: str, **labels: str) -> float:
        """The sum of all that has these labels, whatever its others."""
        return fsum(
            sample.value
            for sample in self._samples
            if sample.name == f"abridge_{name}" and labels.items() <= sample.labels.items()
        )

    @property
    def counted(self) -> set[tuple[str, frozenset[tuple[str, str]], float]]:
        """What requests have counted."""
        return {
            (sample.name, frozenset(sample.labels.items()), sample.value)
            for sample in self._samples
            if sample.name.endswith("_total") and sample.labels
        }


async def scrape(client: httpx.AsyncClient, url: str) -> Figures:
    response = await client.get(url)
    assert response.status_code == 200
    return Figures(response.text)


async def until_told(
    client: httpx.AsyncClient, url: str, condition: Callable[[Figures], bool]
) -> Figures:
    """A request is counted when it is over, which may be after its client has all of it."""
    async with asyncio.timeout(HANG):
        while not condition(told := await scrape(client, url)):  # noqa: ASYNC110 -- it is another process
            await asyncio.sleep(0.02)
    return told
