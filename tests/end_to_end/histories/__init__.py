"""Whole conversations: a provider gets its reasoning back as it sent it, and nothing else."""
