"""Measure how fast Abridge is and what it costs: `python -m tests.benchmarks`, run by hand."""
