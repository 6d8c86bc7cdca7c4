"""Totals of a metrics registry."""

from __future__ import annotations

from prometheus_client import CollectorRegistry


def total(registry: CollectorRegistry, name: str, **labels: str) -> float:
    """Sum all samples that have these labels among others."""
    return sum(
        sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == f"abridge_{name}" and labels.items() <= sample.labels.items()
    )
