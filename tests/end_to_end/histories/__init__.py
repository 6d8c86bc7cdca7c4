"""Whole conversations: what a provider said of its reasoning is what it hears of it, and nothing
else."""
