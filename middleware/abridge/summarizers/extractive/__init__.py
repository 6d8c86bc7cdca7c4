"""Summarize by copying telling sentences, without a model."""
