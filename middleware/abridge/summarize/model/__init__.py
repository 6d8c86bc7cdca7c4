"""Summarizers that call a language model."""

from abridge.summarize.model.summarizer import ModelSummarizer
from abridge.summarize.model.upstream import own_model

__all__ = ["ModelSummarizer", "own_model"]
