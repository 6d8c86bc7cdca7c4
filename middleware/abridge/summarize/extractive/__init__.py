"""The embedded summarizer: it copies the sentences that matter."""

from abridge.summarize.extractive.extract import Extractive, extract

__all__ = ["Extractive", "extract"]
