"""What a registry has counted."""

from __future__ import annotations

from prometheus_client import CollectorRegistry


def total(registry: CollectorRegistry, name: str, **labels: str) -> float:
    """Of all samples that have these labels, whatever others they have."""
    return sum(
        sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == f"abridge_{name}" and labels.items() <= sample.labels.items()
    )
