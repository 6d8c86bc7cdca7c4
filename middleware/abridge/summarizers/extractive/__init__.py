"""Summarize without a model, by copying the sentences that say most."""
