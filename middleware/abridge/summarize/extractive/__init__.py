"""The built-in summarizer, which copies the most important sentences."""

from abridge.summarize.extractive.extract import Extractive, extract

__all__ = ["Extractive", "extract"]
