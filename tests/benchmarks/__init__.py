"""How fast Abridge is, and what it costs: run by hand, `python -m tests.benchmarks`."""
