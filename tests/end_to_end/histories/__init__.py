"""Whole conversations: a provider gets back its own reasoning, unchanged, and nothing else."""
